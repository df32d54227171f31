#include "stream/function_tracker.h"

#include <algorithm>
#include <utility>

#include "code/riscv.h"

namespace hangscope {
namespace {

constexpr int kLongestTracedBlock = 512;         // instructions; QEMU's blocks are shorter
constexpr size_t kMostPlacesOfAWay = 10'000;     // that are looked through for distinct ones
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
FunctionTracker::Exit FunctionTracker::ExitOf(const Step& step) {
  uint64_t pc = step.pc;
  for (int count = 0; count < kLongestTracedBlock; ++count) {
    const auto bits = code_.InsnAt(pc);
    if (!bits) return {};
    const riscv::Insn insn = riscv::Decode(*bits, code_.xlen());
    switch (insn.op) {
      case riscv::Op::kUnknown:
        return {};
      case riscv::Op::kJal:
        return {IsLink(insn.rd) ? Way::kCall : Way::kJump, pc};
      case riscv::Op::kJalr:
        if (IsLink(insn.rd)) return {Way::kCall, pc};
        return {insn.rd == 0 && IsLink(insn.rs1) ? Way::kReturn : Way::kJump, pc};
      case riscv::Op::kBranch:
        return {Way::kJump, pc};
      case riscv::Op::kReturnFromTrap:
        return {Way::kReturnFromTrap, pc};
      default:
        break;
    }
    if (!step.starts_block || insn.ends_block()) return {};
    pc += insn.length;
  }
  return {};
}

void FunctionTracker::Open(const TrackedFunction& function, uint64_t pc, uint64_t site) {
  if (open_.size() >= kDeepest) return;
  open_.push_back(function);
  sites_.push_back(site);
  enter_(function, pc);
}

void FunctionTracker::CloseTo(size_t depth) {
  while (open_.size() > depth) {
    open_.pop_back();
    sites_.pop_back();
    leave_();
  }
}

// Into another function than the innermost one.
void FunctionTracker::Move(const TrackedFunction& function, const Step& step) {
  const Exit exit = has_previous_ ? ExitOf(previous_) : Exit();
  size_t depth = open_.size();
  while (depth > 0 && !Same(open_[depth - 1], function)) --depth;
  if (depth == 0 && open_.size() >= kDeepest) return;
  const bool at_begin = step.pc == function.begin || function.begin == 0;
  const bool goes_back = exit.way == Way::kReturn || exit.way == Way::kReturnFromTrap;
  if (depth > 0 && (!at_begin || goes_back || function.begin == 0)) {
    CloseTo(depth);
  } else if (at_begin && !goes_back) {
    // Who jumps there gives it its own caller.
    uint64_t site = exit.way == Way::kCall ? exit.pc : 0;
    if (exit.way == Way::kJump) {
      site = sites_.back();
      CloseTo(open_.size() - 1);
    }
    Open(function, step.pc, site);
  } else {
    CloseTo(0);
    Open(function, step.pc, 0);
  }
}

// In the function that it is in already: another turn of it, or back from one.
void FunctionTracker::Stay(const TrackedFunction& function, const Step& step) {
  if (step.pc == function.begin && has_previous_) {
    const Exit exit = ExitOf(previous_);
    if (exit.way == Way::kCall) return Open(function, step.pc, exit.pc);
  }
  const bool is_open_twice = open_.size() > 1 && Same(open_[open_.size() - 2], function);
  if (is_open_twice && ExitOf(previous_).way == Way::kReturn) CloseTo(open_.size() - 1);
}

void FunctionTracker::Take(const Step& step) {
  const TrackedFunction* const function = FunctionAt(step.pc);
  if (function == nullptr) {
    ++nameless_;
  } else if (open_.empty()) {
    Open(*function, step.pc, 0);
  } else if (!Same(open_.back(), *function)) {
    Move(*function, step);
  } else {
    Stay(*function, step);
  }
  previous_ = step;
  has_previous_ = true;
}

namespace {

// The newest steps of a way, each once, where it was last.
class LastWaySteps {
 public:
  LastWaySteps(ProgramCode& code, size_t most) : code_(code), most_(most) {}

  // `callers`: the outermost first.
  void Note(uint64_t pc, const std::vector<std::string>& callers, const std::string& function) {
    WayStep step{code_.PlaceOf(pc), {callers.rbegin(), callers.rend()}};
    if (step.place.function.empty()) step.place.function = function;
    std::erase_if(steps_, [&](const WayStep& other) {
      return other.place == step.place && other.callers == step.callers;
    });
    steps_.push_back(std::move(step));
    if (steps_.size() > most_) steps_.erase(steps_.begin());
  }

  // The functions that are open at the end; the last of them is the one that it is in.
  std::vector<WayStep> EndIn(uint64_t pc, std::vector<std::string> open) {
    const auto is_last = [&](const WayStep& step) {
      return step.place.function == open.back() && step.callers.size() + 1 == open.size();
    };
    if (!open.empty() && (steps_.empty() || !is_last(steps_.back()))) {
      const std::string function = open.back();
      open.pop_back();
      Note(pc, open, function);
    }
    return std::move(steps_);
  }

 private:
  ProgramCode& code_;
  const size_t most_;
  std::vector<WayStep> steps_;
};

}  // namespace

std::vector<WayStep> FindWay(std::span<const Step> steps, ProgramCode& code, size_t most) {
  LastWaySteps way(code, most);
  std::vector<std::string> open;
  FunctionTracker tracker(
      code,
      [&](const TrackedFunction& function, uint64_t pc) {
        way.Note(pc, open, function.name);
        open.push_back(function.name);
      },
      [&] { open.pop_back(); });
  for (const Step& step : steps) tracker.Take(step);
  if (tracker.nameless() == steps.size()) {
    for (const Step& step : steps.last(std::min<size_t>(steps.size(), kMostPlacesOfAWay)))
      way.Note(step.pc, {}, {});
  }
  return way.EndIn(steps.empty() ? 0 : steps.back().pc, std::move(open));
}

std::vector<uint64_t> FunctionTracker::CallSites() const {
  std::vector<uint64_t> sites;
  if (open_.size() >= kDeepest) return sites;  // what is deeper is not followed
  for (size_t i = sites_.size(); i > 0 && sites_[i - 1] != 0; --i) sites.push_back(sites_[i - 1]);
  return sites;
}

}  // namespace hangscope
