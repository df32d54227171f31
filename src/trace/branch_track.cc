#include "trace/branch_track.h"

#include <fmt/format.h>

#include <algorithm>

namespace hangscope {
namespace {

enum BranchKind : size_t { kBranchKind, kEnterKind, kLeaveKind };

}  // namespace

size_t AddBranchKinds(std::vector<TraceEventKind>* kinds) {
  const size_t first = kinds->size();
  kinds->push_back({"branch",
                    "trace",
                    "%x %s -> %x %s (within %u ns)",
                    {{"from", TraceFieldType::kPointer, 64},
                     {"from_place", TraceFieldType::kText, 0},
                     {"to", TraceFieldType::kPointer, 64},
                     {"to_place", TraceFieldType::kText, 0},
                     {"within_ns", TraceFieldType::kUnsigned, 64}},
                    TraceMeaning::kPlain});
  kinds->push_back({"traced_function_enter",
                    "function",
                    "%s, %s, %x",
                    {{"function", TraceFieldType::kText, 0},
                     {"source", TraceFieldType::kText, 0},
                     {"pc", TraceFieldType::kPointer, 64}},
                    TraceMeaning::kFunctionEnter});
  kinds->push_back({"traced_function_leave", "function", "", {}, TraceMeaning::kFunctionLeave});
  return first;
}

std::string NameOfPlace(const Location& location, uint64_t address) {
  if (location.function.empty()) return {};
  return fmt::format("{}+{:#x}", location.function,
                     address - std::min(location.function_begin, address));
}

TraceEvent& BranchTrack::AddEvent(size_t kind, TimeNs time) {
  TraceEvent event;
  event.track = track_;
  event.kind = kind;
  event.time = time;
  event.task = task_;
  event.sequence = sequence_++;
  items_->emplace_back(std::move(event));
  return std::get<TraceEvent>(items_->back());
}

void BranchTrack::Add(const TraceBranch& branch, TimeNs time, std::optional<uint64_t> within_ns) {
  const auto place = [this](uint64_t address) {
    return address == 0 ? std::string() : NameOfPlace(locate_(address), address);
  };
  if (branch.from == 0) LeaveAll(time);
  AddEvent(first_kind_ + kBranchKind, time).values = {
      {branch.from, {}, branch.from != 0},
      {0, place(branch.from), true},
      {branch.to, {}, branch.to != 0},
      {0, place(branch.to), true},
      {within_ns.value_or(0), {}, within_ns.has_value()}};
  if (branch.to == 0)
    LeaveAll(time);
  else
    Arrive(branch.to, time);
}

void BranchTrack::Arrive(uint64_t address, TimeNs time) {
  const Location location = locate_(address);
  if (location.function.empty()) return LeaveAll(time);
  const bool is_call = address == location.function_begin;
  const auto same = [&](const Open& open) {
    return open.begin == location.function_begin && open.function == location.function;
  };
  const auto open = std::find_if(open_.rbegin(), open_.rend(), same);
  if (is_call && open != open_.rbegin()) return Enter(location, address, time);
  if (open == open_.rend()) {
    if (!open_.empty()) Leave(time);
    return Enter(location, address, time);
  }
  const auto depth = static_cast<size_t>(open_.rend() - open);
  while (open_.size() > depth) Leave(time);
}

void BranchTrack::Enter(const Location& location, uint64_t address, TimeNs time) {
  if (open_.size() == kDeepestCalls) return;
  open_.push_back({location.function, location.function_begin});
  TraceEvent& event = AddEvent(first_kind_ + kEnterKind, time);
  event.what = location.function;
  event.where = location.source();
  event.values = {{0, location.function, true}, {0, event.where, true}, {address, {}, true}};
}

void BranchTrack::Leave(TimeNs time) {
  open_.pop_back();
  AddEvent(first_kind_ + kLeaveKind, time);
}

void BranchTrack::LeaveAll(TimeNs time) {
  while (!open_.empty()) Leave(time);
}

}  // namespace hangscope
