#include "runtime/go/go_reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/go/go_layout.h"

namespace hangscope {
namespace {

constexpr size_t kMostMemory = 256 << 20;  // that is read for it
constexpr size_t kMostMarks = 4 << 20;
constexpr uint64_t kMostStackBytes = 8 << 20;  // of one goroutine
constexpr size_t kMostStranded = 64;           // for each of which it is looked who else has what
constexpr size_t kLooksAtTime = 64;            // objects between two looks at the clock

bool WaitsForChannels(const std::string& reason) {
  return reason == "chan receive" || reason == "chan send" || reason == "select";
}

bool WaitsForNothing(const std::string& reason) {
  return reason == "chan receive (nil chan)" || reason == "chan send (nil chan)" ||
         reason == "select (no cases)";
}

bool Overlaps(const std::vector<uint64_t>& some, const std::vector<uint64_t>& others) {
  return std::any_of(some.begin(), some.end(), [&](uint64_t each) {
    return std::find(others.begin(), others.end(), each) != others.end();
  });
}

bool IsOnStack(uint64_t address, const Goroutine& goroutine) {
  return address >= goroutine.stack_begin && address < goroutine.stack_end;
}

}  // namespace

Result<GoReach> GoReach::Read(uint64_t heap_at, uint64_t module, const ReadMemory& read) {
  auto memory = std::make_shared<GoMemory>(read, kMostMemory);
  auto heap = GoHeap::Read(heap_at, memory);
  if (!heap.ok()) return heap.status();
  auto code = GoCode::Read(module, memory);
  if (!code.ok()) return code.status();
  return GoReach(memory, std::move(*heap), std::move(*code), read);
}

GoStack GoReach::StackOf(const Goroutine& goroutine) const {
  GoStack stack;
  const uint64_t begin =
      goroutine.stack_pointer != 0 ? goroutine.stack_pointer : goroutine.stack_begin;
  stack.begin = begin;
  if (begin % go_layout::kBytesOfPointer != 0 || begin >= goroutine.stack_end ||
      goroutine.stack_end - begin > kMostStackBytes)
    return stack;
  stack.bytes.resize(goroutine.stack_end - begin);
  if (!memory_->Read(begin, stack.bytes.data(), stack.bytes.size())) stack.bytes.clear();
  return stack;
}

std::vector<uint64_t> GoReach::PointersOf(const Goroutine& goroutine, bool precisely) const {
  const GoStack stack = StackOf(goroutine);
  if (!precisely) return GoCode::WordsOf(stack);
  const auto deferred = memory_->Get<uint64_t>(goroutine.address + go_layout::kDeferred);
  return code_.PointersOfStack(goroutine.pc, stack, deferred.value_or(0));
}

// Nothing: it may go on by itself, or for all that is known.
std::optional<GoReach::Waiter> GoReach::WaiterOf(const Goroutine& goroutine) const {
  if (!goroutine.waits) return std::nullopt;
  Waiter waiter;
  waiter.goroutine = &goroutine;
  if (WaitsForNothing(goroutine.reason)) {
    waiter.never = true;
    return waiter;
  }
  if (WaitsForChannels(goroutine.reason)) waiter.objects = goroutine.channels;
  if (goroutine.reason == "semacquire" && goroutine.semaphore != 0)
    waiter.objects = {goroutine.semaphore};
  // Who waits has the condition in hand: what its innermost frames have.
  if (goroutine.reason == "sync.Cond.Wait") {
    for (const uint64_t pointer : code_.PointersOfWait(goroutine.pc, StackOf(goroutine)))
      waiter.objects.push_back(pointer);
  }
  if (waiter.objects.empty()) return std::nullopt;
  return waiter;
}

bool GoReach::IsMarked(uint64_t address, const Marks& marks) const {
  const auto object = heap_.ObjectAt(address);
  return object && marks.count(object->begin) != 0;
}

// What the pointers lead to gets a mark; what has one of `known` is not followed.
bool GoReach::Follow(std::vector<uint64_t> pointers, const Marks* known, Marks* marks) {
  size_t looked = 0;
  while (!pointers.empty()) {
    const uint64_t pointer = pointers.back();
    pointers.pop_back();
    const auto object = heap_.ObjectAt(pointer);
    // A value of a function begins with where its code is, on the heap as among the constants.
    if (known == nullptr && pointer % go_layout::kBytesOfPointer == 0) {
      const uint64_t code = memory_->Get<uint64_t>(pointer).value_or(0);
      if (code >= code_.extent().text_begin && code < code_.extent().text_end)
        values_of_functions_.insert(code);
    }
    // A goroutine leads to what it has only once it may go on.
    if (!object || goroutine_objects_.count(object->begin) != 0 ||
        (known != nullptr && known->count(object->begin) != 0) ||
        !marks->insert(object->begin).second)
      continue;
    if (++looked % kLooksAtTime == 0 && is_late_ && is_late_()) {
      trouble_ = "there was no time to follow all its pointers";
      return false;
    }
    if (marks->size() > kMostMarks || !heap_.PointersIn(*object, &pointers)) {
      trouble_ = memory_->IsFull() || marks->size() > kMostMarks
                     ? "its heap is too large for its pointers to be followed"
                     : "not all of its heap can be read";
      return false;
    }
  }
  return true;
}

bool GoReach::AddRootsOfVariables(const GoReachInput& input, std::vector<uint64_t>* roots) {
  constexpr size_t kMostOwn = 256;
  std::vector<GoCode::Variable> variables;
  if (!code_.PointersOfVariables(input.semaphores, input.semaphores_end, &variables)) return false;
  for (const GoCode::Variable& each : variables) {
    const auto begin = input.own_variable && own_variables_.size() < kMostOwn
                           ? input.own_variable(each.address)
                           : std::nullopt;
    if (!begin) {
      roots->push_back(each.pointer);
      continue;
    }
    if (own_variables_.empty() || own_variables_.back().begin != *begin)
      own_variables_.push_back({*begin, 0, {}, false, false, {}});
    own_variables_.back().end = each.address + go_layout::kBytesOfPointer;
    own_variables_.back().pointers.push_back(each.pointer);
  }
  return true;
}

// By somebody who goes on: one of its functions may come to it from where it is, or can be called
// over a value of a function that is in reach.
bool GoReach::MayBeUsed(OwnVariable* variable, const GoReachInput& input,
                        const std::set<uint64_t>& go_on) {
  if (!uses_) uses_.emplace(GoUses::Read(code_, read_));
  if (!uses_->ok()) return true;
  const GoUses& uses = uses_->value();
  if (!std::exchange(variable->was_asked, true))
    variable->users = uses.UsersOf(variable->begin, variable->end, input.kind_of);
  if (!variable->users || (is_late_ && is_late_())) return true;
  const GoUsers& users = *variable->users;
  if (std::any_of(values_of_functions_.begin(), values_of_functions_.end(),
                  [&](uint64_t code) { return users.functions.count(code) != 0; }))
    return true;
  for (const Goroutine& each : input.goroutines) {
    if (go_on.count(each.id) == 0) continue;
    const GoStack stack = StackOf(each);
    const std::vector<uint64_t> frames =
        each.waits ? code_.FramesOf(each.pc, stack) : GoCode::WordsOf(stack);
    for (const uint64_t pc : frames) {
      const auto function = code_.FunctionBeginAt(pc);
      if (!function || users.functions.count(*function) == 0) continue;
      const auto end = code_.FunctionEndAt(pc);
      if (!each.waits || !end || uses.MayComeTo(users.places, pc, *end)) return true;
    }
  }
  return false;
}

// A variable that has the object, or leads to it, and that the goroutine comes to from where it is.
bool GoReach::UsesVariableOf(uint64_t object, const Goroutine& goroutine) {
  const auto place = heap_.ObjectAt(object);
  for (OwnVariable& variable : own_variables_) {
    if (variable.is_in_reach || !variable.users) continue;
    Marks its;
    const bool has = place ? Follow(variable.pointers, &its, &its) && its.count(place->begin) != 0
                           : object >= variable.begin && object < variable.end;
    if (!has) continue;
    for (const uint64_t pc : code_.FramesOf(goroutine.pc, StackOf(goroutine))) {
      const auto function = code_.FunctionBeginAt(pc);
      const auto end = code_.FunctionEndAt(pc);
      if (function && end && variable.users->functions.count(*function) != 0 &&
          uses_->value().MayComeTo(variable.users->places, pc, *end))
        return true;
    }
  }
  return false;
}

// True: some have come into reach, and what they lead to is added.
bool GoReach::ReleaseVariables(const GoReachInput& input, const std::set<uint64_t>& go_on,
                               std::vector<uint64_t>* roots) {
  bool any = false;
  for (OwnVariable& variable : own_variables_) {
    if (variable.is_in_reach || !MayBeUsed(&variable, input, go_on)) continue;
    variable.is_in_reach = any = true;
    roots->insert(roots->end(), variable.pointers.begin(), variable.pointers.end());
  }
  return any;
}

Result<StrandedGoroutines> GoReach::Stranded(const GoReachInput& input) {
  is_late_ = input.is_late;
  goroutine_objects_.clear();
  own_variables_.clear();
  values_of_functions_.clear();
  for (const Goroutine& each : input.goroutines) {
    if (const auto object = heap_.ObjectAt(each.address)) goroutine_objects_.insert(object->begin);
  }
  std::map<uint64_t, Waiter> waiters;
  std::set<uint64_t> go_on;
  std::vector<uint64_t> roots = input.registers;
  const auto add_all = [&](const Goroutine& goroutine, bool precisely) {
    const auto pointers = PointersOf(goroutine, precisely);
    roots.insert(roots.end(), pointers.begin(), pointers.end());
    // Its own object, too, which is passed over as one that others only have the address of.
    std::vector<uint64_t> its_own;
    if (const auto object = heap_.ObjectAt(goroutine.address)) heap_.PointersIn(*object, &its_own);
    roots.insert(roots.end(), its_own.begin(), its_own.end());
  };
  for (const Goroutine& each : input.goroutines) {
    if (auto waiter = WaiterOf(each)) {
      waiters.emplace(each.id, std::move(*waiter));
      continue;
    }
    go_on.insert(each.id);
    add_all(each, each.waits);
  }
  roots.insert(roots.end(), heap_.finalized().begin(), heap_.finalized().end());
  if (!AddRootsOfVariables(input, &roots))
    return Status::Io("the program's variables cannot be read");
  // What is waited for may lie in a variable itself.
  for (const auto& each : waiters) {
    for (const uint64_t object : each.second.objects) {
      if (heap_.ObjectAt(object) || IsOnStack(object, *each.second.goroutine)) continue;
      if (const auto begin = input.own_variable ? input.own_variable(object) : std::nullopt)
        own_variables_.push_back(
            {*begin, object + go_layout::kBytesOfPointer, {}, false, false, {}});
    }
  }
  const auto is_own = [&](uint64_t address) {
    return std::any_of(own_variables_.begin(), own_variables_.end(), [&](const OwnVariable& each) {
      return !each.is_in_reach && address >= each.begin && address < each.end;
    });
  };
  Marks marks;
  for (bool any = true; any;) {
    if (!Follow(std::exchange(roots, {}), nullptr, &marks)) return Status::Io(trouble_);
    any = false;
    for (auto& each : waiters) {
      const uint64_t id = each.first;
      Waiter& waiter = each.second;
      if (waiter.goes_on || waiter.never) continue;
      const auto holder = input.held_by.find(id);
      const auto may_be_come_to = [&](uint64_t object) {
        if (IsOnStack(object, *waiter.goroutine)) return false;
        const auto place = heap_.ObjectAt(object);
        return place ? marks.count(place->begin) != 0 : !is_own(object);
      };
      waiter.goes_on =
          holder != input.held_by.end()
              ? go_on.count(holder->second) != 0
              : std::any_of(waiter.objects.begin(), waiter.objects.end(), may_be_come_to);
      if (!waiter.goes_on) continue;
      any = true;
      go_on.insert(id);
      add_all(*waiter.goroutine, true);
    }
    const bool all_go_on = std::all_of(waiters.begin(), waiters.end(), [](const auto& each) {
      return each.second.goes_on || each.second.never;
    });
    if (!any && !all_go_on) any = ReleaseVariables(input, go_on, &roots);
  }
  StrandedGoroutines stranded;
  for (const auto& each : waiters) {
    const uint64_t id = each.first;
    const Waiter& waiter = each.second;
    if (waiter.goes_on || waiter.never) continue;
    std::vector<uint64_t>& others = stranded[id];
    if (const auto holder = input.held_by.find(id); holder != input.held_by.end())
      others.push_back(holder->second);
  }
  size_t followed = 0;
  for (const auto& each : stranded) {
    if (followed++ == kMostStranded) break;
    const Waiter& has = waiters.at(each.first);
    Marks its;
    if (!Follow(PointersOf(*has.goroutine, true), &marks, &its)) return Status::Io(trouble_);
    for (auto& [id, others] : stranded) {
      const Waiter& wants = waiters.at(id);
      // Who waits for the same in the same way does not give it.
      if (id == each.first || input.held_by.count(id) != 0 ||
          (wants.goroutine->reason == has.goroutine->reason &&
           Overlaps(wants.objects, has.objects)))
        continue;
      if (std::any_of(wants.objects.begin(), wants.objects.end(), [&](uint64_t object) {
            return IsMarked(object, its) || UsesVariableOf(object, *has.goroutine);
          }))
        others.push_back(each.first);
    }
  }
  return stranded;
}

}  // namespace hangscope
