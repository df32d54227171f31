// A twin's steps: one instruction each, or one system call that the thread has made.
#include <sys/ptrace.h>

#include <cstring>
#include <unordered_map>

#include "proc/steps/step_calls.h"
#include "process/steps/thread_twin.h"

namespace hangscope {
namespace {

#if defined(__aarch64__)
bool IsCall(const uint8_t* code) {
  uint32_t bits = 0;
  std::memcpy(&bits, code, sizeof bits);
  return (bits & 0xffe0001f) == 0xd4000001;
}
// A load-exclusive's reservation is lost with every step, so that its loop would never end.
bool IsNotForSteps(const uint8_t* code) {
  uint32_t bits = 0;
  std::memcpy(&bits, code, sizeof bits);
  return (bits & 0x3f000000) == 0x08000000;
}
#else
bool IsCall(const uint8_t* code) { return code[0] == 0x0f && code[1] == 0x05; }
bool IsNotForSteps(const uint8_t* code) {
  // int N, int3: its trap would be taken for the step's; sysenter
  if (code[0] == 0xcd || code[0] == 0xcc || (code[0] == 0x0f && code[1] == 0x34)) return true;
  // A transaction never gets to its end in steps.
  if (code[0] == 0xc7 && code[1] == 0xf8) return true;
  // pushf would save the step's trap flag, which is no part of the thread's state.
  const uint8_t first = code[0] == 0x66 || (code[0] & 0xf0) == 0x40 ? code[1] : code[0];
  return first == 0x9c;
}
#endif

uint64_t HashOf(const StepState& state) {
  uint64_t hash = state.pc * 0x9e3779b97f4a7c15u ^ state.flags ^ state.memory;
  for (const uint64_t value : state.general)
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29);
  return hash;
}

}  // namespace

ThreadTwin::StepKind ThreadTwin::KindAt(uint64_t pc) {
  const auto known = kinds_.find(pc);
  if (known != kinds_.end()) return known->second;
  uint8_t code[4] = {};
  // The last instruction of a mapping may be shorter.
  const bool is_there = Read(pc, code, 4) || Read(pc, code, 2) || Read(pc, code, 1);
  return kinds_[pc] = !is_there || IsNotForSteps(code) ? StepKind::kNever
                      : IsCall(code)                   ? StepKind::kKernel
                                                       : StepKind::kPlain;
}

// False: it is not carried out.
bool ThreadTwin::StepOn(StepMemory& memory, StepState* state, StepTrace* trace) {
  const StepKind kind = KindAt(state->pc);
  if (kind == StepKind::kNever) return false;
  memory.Before(*state);
  if (kind == StepKind::kPlain) {
    if (!StepOnce() || !ReadState(state)) return false;
  } else {
    StepCall call = CallAt(*state);
    const auto read = [this](uint64_t address, void* into, size_t bytes) {
      return Read(address, into, bytes);
    };
    if (UseOf(call, read) == CallUse::kNever || !Answer(&call) || !ReadState(state)) {
      trace->wants_kernel = true;
      return false;
    }
    trace->call_steps.push_back(trace->states.size() - 1);
    trace->calls.push_back(call);
    if (!ChangedNothing(call)) {
      trace->wants_kernel = true;
      return false;
    }
  }
  state->memory = memory.After();
  return true;
}

StepTrace ThreadTwin::Step(const StepLimits& limits, StepMemory& memory) {
  StepTrace trace;
  StepState state;
  if (!ReadState(&state)) return trace;
  std::unordered_map<uint64_t, size_t> seen;
  size_t most = limits.most;
  for (;;) {
    const auto [at, is_new] = seen.emplace(HashOf(state), trace.states.size());
    const bool is_back = !is_new && trace.states[at->second] == state;
    if (is_back) trace.period = trace.states.size() - at->second;
    trace.states.push_back(state);
    if (is_back) return trace;
    constexpr size_t kStepsBetweenLooks = 64;
    if (trace.states.size() % kStepsBetweenLooks == 0 && clock_.Monotonic() > limits.until)
      return trace;
    if (trace.states.size() > most) {
      if (limits.longer) most = limits.longer(trace);
      if (trace.states.size() > most) return trace;
    }
    if (!StepOn(memory, &state, &trace)) return trace;
  }
}

bool ThreadTwin::StepsBackInto(const StepTrace& trace, TimeNs until, StepMemory& memory) {
  const std::string before = VectorRegisters();
  StepTrace again;
  again.states.push_back(trace.states.back());
  StepState state = trace.states.back();
  for (size_t i = 0; i < trace.period; ++i) {
    if (clock_.Monotonic() > until || !StepOn(memory, &state, &again)) return false;
  }
  return state == trace.states.back() && !before.empty() && VectorRegisters() == before;
}

}  // namespace hangscope
