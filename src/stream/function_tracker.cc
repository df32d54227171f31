#include "stream/function_tracker.h"

#include "code/riscv.h"

namespace hangscope {
namespace {

constexpr int kLongestTracedBlock = 512;         // instructions; QEMU's blocks are shorter
constexpr size_t kMostTrackedPlaces = 1u << 20;  // whose functions are kept

bool IsLink(uint8_t number) { return number == 1 || number == 5; }

bool Same(const TrackedFunction& a, const TrackedFunction& b) {
  return a.begin != 0 || b.begin != 0 ? a.begin == b.begin : a.name == b.name;
}

}  // namespace

const TrackedFunction* FunctionTracker::FunctionAt(uint64_t pc) {
  if (functions_.size() >= kMostTrackedPlaces) functions_.clear();
  const auto [at, is_new] = functions_.try_emplace(pc);
  if (is_new) {
    const Location location = code_.Locate(pc);
    at->second = {location.function, location.function_begin};
  }
  return at->second.name.empty() ? nullptr : &at->second;
}

// How control left the step; the code may not be known, or be no RISC-V.
FunctionTracker::Way FunctionTracker::WayFrom(const Step& step) {
  uint64_t pc = step.pc;
  for (int count = 0; count < kLongestTracedBlock; ++count) {
    const auto bits = code_.InsnAt(pc);
    if (!bits) return Way::kUnknown;
    const riscv::Insn insn = riscv::Decode(*bits, code_.xlen());
    switch (insn.op) {
      case riscv::Op::kUnknown:
        return Way::kUnknown;
      case riscv::Op::kJal:
        return IsLink(insn.rd) ? Way::kCall : Way::kJump;
      case riscv::Op::kJalr:
        if (IsLink(insn.rd)) return Way::kCall;
        return insn.rd == 0 && IsLink(insn.rs1) ? Way::kReturn : Way::kJump;
      case riscv::Op::kBranch:
        return Way::kJump;
      case riscv::Op::kReturnFromTrap:
        return Way::kReturnFromTrap;
      default:
        break;
    }
    if (!step.starts_block || insn.ends_block()) return Way::kUnknown;
    pc += insn.length;
  }
  return Way::kUnknown;
}

void FunctionTracker::Open(const TrackedFunction& function, uint64_t pc) {
  if (open_.size() >= kDeepest) return;
  open_.push_back(function);
  enter_(function, pc);
}

void FunctionTracker::CloseTo(size_t depth) {
  while (open_.size() > depth) {
    open_.pop_back();
    leave_();
  }
}

// Into another function than the innermost one.
void FunctionTracker::Move(const TrackedFunction& function, const Step& step) {
  const Way way = has_previous_ ? WayFrom(previous_) : Way::kUnknown;
  size_t depth = open_.size();
  while (depth > 0 && !Same(open_[depth - 1], function)) --depth;
  if (depth == 0 && open_.size() >= kDeepest) return;
  const bool at_begin = step.pc == function.begin || function.begin == 0;
  const bool goes_back = way == Way::kReturn || way == Way::kReturnFromTrap;
  if (depth > 0 && (!at_begin || goes_back || function.begin == 0)) {
    CloseTo(depth);
  } else if (at_begin && !goes_back) {
    if (way == Way::kJump) CloseTo(open_.size() - 1);
    Open(function, step.pc);
  } else {
    CloseTo(0);
    Open(function, step.pc);
  }
}

// In the function that it is in already: another turn of it, or back from one.
void FunctionTracker::Stay(const TrackedFunction& function, const Step& step) {
  if (step.pc == function.begin && has_previous_ && WayFrom(previous_) == Way::kCall)
    return Open(function, step.pc);
  const bool is_open_twice = open_.size() > 1 && Same(open_[open_.size() - 2], function);
  if (is_open_twice && WayFrom(previous_) == Way::kReturn) CloseTo(open_.size() - 1);
}

void FunctionTracker::Take(const Step& step) {
  const TrackedFunction* const function = FunctionAt(step.pc);
  if (function == nullptr) {
    ++nameless_;
  } else if (open_.empty()) {
    Open(*function, step.pc);
  } else if (!Same(open_.back(), *function)) {
    Move(*function, step);
  } else {
    Stay(*function, step);
  }
  previous_ = step;
  has_previous_ = true;
}

}  // namespace hangscope
