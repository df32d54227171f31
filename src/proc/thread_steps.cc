// ThreadStop's steps: one instruction each.
#include <elf.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <unordered_map>

#include "proc/proc_folder.h"
#include "proc/step_calls.h"
#include "proc/thread_stop.h"

namespace hangscope {
namespace {

constexpr size_t kMostVectorBytes = 16384;
constexpr TimeNs kLongestStep = 20 * kMillisecond;  // beyond the time for all of them

#if defined(__aarch64__)
constexpr uint64_t kStepFlags = 1u << 21;  // PSTATE.SS
void CopyState(const user_regs_struct& raw, StepState* state) {
  std::copy(std::begin(raw.regs), std::end(raw.regs), state->general.begin());
  state->general[31] = raw.sp;
  state->pc = raw.pc;
  state->flags = raw.pstate & ~kStepFlags;
}
constexpr int kVectorSet = NT_PRFPREG;
#else
constexpr uint64_t kStepFlags = 0x10100;  // trap and resume: of stepping, not of the program
void CopyState(const user_regs_struct& raw, StepState* state) {
  const std::array<uint64_t, 16> values = {raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi,
                                           raw.rbp, raw.rsp, raw.r8,  raw.r9,  raw.r10, raw.r11,
                                           raw.r12, raw.r13, raw.r14, raw.r15};
  std::copy(values.begin(), values.end(), state->general.begin());
  state->pc = raw.rip;
  state->flags = raw.eflags & ~kStepFlags;
  state->segments = {raw.fs_base, raw.gs_base};
}
constexpr int kVectorSet = NT_X86_XSTATE;
#endif

using StepKind = ThreadStop::StepKind;

#if defined(__aarch64__)
StepKind KindOfCode(const uint8_t* code) {
  uint32_t bits = 0;
  std::memcpy(&bits, code, sizeof bits);
  // A load-exclusive's reservation is lost with every step, so that its loop would never end.
  const bool is_exclusive = (bits & 0x3f000000) == 0x08000000;
  return (bits & 0xffe0001f) == 0xd4000001 ? StepKind::kKernel
         : is_exclusive                    ? StepKind::kNever
                                           : StepKind::kPlain;
}
StepCall CallOf(const StepState& state) {
  StepCall call;
  call.number = static_cast<int>(state.general[8]);
  std::copy_n(state.general.begin(), call.arguments.size(), call.arguments.begin());
  return call;
}
#else
StepKind KindOfCode(const uint8_t* code) {
  if (code[0] == 0x0f && code[1] == 0x05) return StepKind::kKernel;  // syscall
  // int N, int3: its trap would be taken for the step's
  if (code[0] == 0xcd || code[0] == 0xcc) return StepKind::kNever;
  // A transaction never gets to its end in steps.
  if (code[0] == 0xc7 && code[1] == 0xf8) return StepKind::kNever;
  // pushf would save the step's trap flag, and the program would run into it after the next popf.
  const uint8_t first = code[0] == 0x66 || (code[0] & 0xf0) == 0x40 ? code[1] : code[0];
  return first == 0x9c ? StepKind::kNever : StepKind::kPlain;
}
StepCall CallOf(const StepState& state) {
  const auto& g = state.general;
  return {static_cast<int>(g[0]), {g[5], g[4], g[1], g[10], g[8], g[9]}, 0};
}
#endif

class CodeKinds {
 public:
  explicit CodeKinds(const ReadMemory& read) : read_(read) {}

  StepKind Of(uint64_t pc) {
    const auto known = kinds_.find(pc);
    if (known != kinds_.end()) return known->second;
    uint8_t code[4] = {};
    // The last instruction of a mapping may be shorter.
    const bool is_there = read_(pc, code, 4) || read_(pc, code, 2) || read_(pc, code, 1);
    return kinds_[pc] = is_there ? KindOfCode(code) : StepKind::kNever;
  }

 private:
  const ReadMemory& read_;
  std::unordered_map<uint64_t, StepKind> kinds_;
};

bool Sleeps(int tid) {
  const auto stat = ProcFolder("/proc").Stat(tid);
  return stat && (stat->state == ThreadState::kSleeping || stat->state == ThreadState::kDiskSleep);
}

uint64_t HashOf(const StepState& state) {
  uint64_t hash = state.pc * 0x9e3779b97f4a7c15u ^ state.flags ^ state.memory;
  for (const uint64_t value : state.general)
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29);
  return hash;
}

}  // namespace

const char* WhyNotToStep(const TaskStatus& status) {
  const uint64_t trap = uint64_t{1} << (SIGTRAP - 1);
  if ((status.blocked_signals & trap) != 0)
    return "it blocks SIGTRAP, and carrying it step by step would unblock that";
  if ((status.ignored_signals & trap) != 0)
    return "its process ignores SIGTRAP, and carrying it step by step would end that";
  return nullptr;
}

bool ThreadStop::ReadState(StepState* state) const {
  user_regs_struct raw = {};
  iovec part = {&raw, sizeof raw};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &part) != 0 || part.iov_len != sizeof raw)
    return false;
  CopyState(raw, state);
  return true;
}

bool ThreadStop::StepOnce(TimeNs until) {
  if (!is_stopped_ || signal_ != 0 || ptrace(PTRACE_SINGLESTEP, tid_, nullptr, nullptr) != 0)
    return false;
  is_stopped_ = false;
  is_stepping_ = true;
  for (unsigned spins = 0;; ++spins) {
    int status = 0;
    const pid_t got = waitpid(tid_, &status, __WALL | WNOHANG);
    if (got < 0 || (got == tid_ && !WIFSTOPPED(status))) return false;
    if (got == tid_) {
      is_stopped_ = true;
      signal_ = SignalOf(status);
      const bool is_trap = status >> 16 != PTRACE_EVENT_STOP && signal_ == 0;
      is_stepping_ = !is_trap;
      return is_trap;
    }
    sched_yield();
    // A step into a page that is not there may take any time. The thread is let go once it is done.
    constexpr unsigned kSpinsBetweenLooks = 64;
    if (spins % kSpinsBetweenLooks == 0 && clock_.Monotonic() > until) return false;
  }
}

// The trap flag is off while it is in there: whoever is killed meanwhile, the thread goes on. Asked
// again after each wait, `may_wait` says whether to wait on; who is in there then stays there: the
// kernel lets go of it when this thread ends.
bool ThreadStop::GoThroughCall(const std::function<bool(TimeNs since)>& may_wait) {
  constexpr int kCallStop = SIGTRAP | 0x80;
  if (ptrace(PTRACE_SETOPTIONS, tid_, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return false;
  for (int stops = 0; stops < 2; ++stops) {  // on its way in, or on, and on its way out
    if (!is_stopped_ || signal_ != 0 || ptrace(PTRACE_SYSCALL, tid_, nullptr, nullptr) != 0)
      return false;
    is_stopped_ = false;
    is_in_call_ = true;
    const TimeNs begin = clock_.Monotonic();
    int status = 0;
    for (pid_t got = 0; got != tid_; got = waitpid(tid_, &status, __WALL | WNOHANG)) {
      if (got < 0 || !may_wait(begin)) return false;
    }
    if (!WIFSTOPPED(status)) return false;
    is_stopped_ = true;
    is_in_call_ = false;
    if (WSTOPSIG(status) != kCallStop) {
      signal_ = SignalOf(status);
      return false;
    }
  }
  return true;
}

bool ThreadStop::StepThroughCall(TimeNs until) {
  constexpr TimeNs kQuick = kMillisecond;
  return GoThroughCall([&](TimeNs since) {
    const TimeNs now = clock_.Monotonic();
    if (now > until || (now > since + kQuick && Sleeps(tid_))) return false;
    sched_yield();
    return true;
  });
}

bool ThreadStop::FinishCall(TimeNs until) {
  constexpr TimeNs kBetweenLooks = 50'000;
  return GoThroughCall([&](TimeNs) {
    if (clock_.Monotonic() > until) return false;
    clock_.Sleep(kBetweenLooks);
    return true;
  });
}

// One instruction, or one system call. False: it is not carried out, or not to its end.
bool ThreadStop::StepOn(StepKind kind, TimeNs until, const ReadMemory& read, StepMemory& memory,
                        StepState* state, std::vector<StepCall>* calls) {
  if (kind == StepKind::kNever) return false;
  memory.Before(*state);
  if (kind == StepKind::kPlain) {
    if (!StepOnce(until) || !ReadState(state)) return false;
  } else {
    StepCall call = CallOf(*state);
    if (UseOf(call, read) == CallUse::kNever || !StepThroughCall(until) || !ReadState(state))
      return false;
    call.result = static_cast<int64_t>(state->general[0]);
    calls->push_back(call);
    if (!ChangedNothing(call)) return false;
  }
  state->memory = memory.After();
  return true;
}

StepTrace ThreadStop::Step(const StepLimits& limits, const ReadMemory& read, StepMemory& memory) {
  StepTrace trace;
  StepState state;
  // It is stopped, so its mask stays as it is; the few system calls that are stepped into change
  // nothing of it.
  const auto text = ProcFolder("/proc").Read(std::to_string(tid_) + "/status");
  const auto status = text ? ParseTaskStatus(*text) : std::nullopt;
  if (!status || WhyNotToStep(*status) != nullptr || !ReadState(&state)) return trace;
  CodeKinds kinds(read);
  std::unordered_map<uint64_t, size_t> seen;
  TimeNs until = limits.until;
  for (;;) {
    const auto [at, is_new] = seen.emplace(HashOf(state), trace.states.size());
    const bool is_back = !is_new && trace.states[at->second] == state;
    if (is_back) trace.period = trace.states.size() - at->second;
    trace.states.push_back(state);
    if (is_back || trace.states.size() > limits.most) return trace;
    if (clock_.Monotonic() > until) {
      if (!limits.longer) return trace;
      until = limits.longer(trace);
      if (clock_.Monotonic() > until) return trace;
    }
    const StepKind kind = kinds.Of(state.pc);
    if (kind == StepKind::kKernel) trace.call_steps.push_back(trace.states.size() - 1);
    if (!StepOn(kind, until + kLongestStep, read, memory, &state, &trace.calls)) {
      trace.wants_kernel = kind == StepKind::kKernel;
      trace.call_steps.resize(trace.calls.size());
      return trace;
    }
  }
}

bool ThreadStop::StepsBackInto(const StepTrace& trace, TimeNs until, const ReadMemory& read,
                               StepMemory& memory) {
  CodeKinds kinds(read);
  const std::string before = VectorRegisters();
  StepState state = trace.states.back();
  std::vector<StepCall> calls;
  for (size_t i = 0; i < trace.period; ++i) {
    if (clock_.Monotonic() > until ||
        !StepOn(kinds.Of(state.pc), until + kLongestStep, read, memory, &state, &calls))
      return false;
  }
  return state == trace.states.back() && !before.empty() && VectorRegisters() == before;
}

std::string ThreadStop::VectorRegisters() const {
  std::string bytes(kMostVectorBytes, '\0');
  iovec part = {bytes.data(), bytes.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, kVectorSet, &part) != 0) return {};
  bytes.resize(part.iov_len);
  return bytes;
}

}  // namespace hangscope
