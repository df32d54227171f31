#include "runtime/go/go_reach.h"

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

bool GoReach::Fail(std::string trouble) {
  trouble_ = std::move(trouble);
  return false;
}

// Nothing: it cannot be read whole.
std::optional<GoStack> GoReach::StackOf(const Goroutine& goroutine) const {
  GoStack stack;
  stack.begin = goroutine.stack_pointer != 0 ? goroutine.stack_pointer : goroutine.stack_begin;
  if (stack.begin % go_layout::kBytesOfPointer != 0 || stack.begin > goroutine.stack_end ||
      goroutine.stack_end - stack.begin > kMostStackBytes)
    return std::nullopt;
  stack.bytes.resize(goroutine.stack_end - stack.begin);
  if (!memory_->Read(stack.begin, stack.bytes.data(), stack.bytes.size())) return std::nullopt;
  return stack;
}

// All words of its stack, unless it waits.
bool GoReach::AddPointersOf(const Goroutine& goroutine, std::vector<uint64_t>* pointers) {
  const auto stack = StackOf(goroutine);
  const auto deferred = memory_->Get<uint64_t>(goroutine.address + go_layout::kDeferred);
  if (!stack || !deferred) return Fail("not all stacks of its goroutines can be read");
  const std::vector<uint64_t> its = goroutine.waits
                                        ? code_.PointersOfStack(goroutine.pc, *stack, *deferred)
                                        : GoCode::WordsOf(*stack);
  pointers->insert(pointers->end(), its.begin(), its.end());
  return true;
}

// Where it goes on; of who runs, any word of its stack may be one of these.
const std::vector<uint64_t>& GoReach::FramesOf(const Goroutine& goroutine) {
  const auto [frames, is_new] = frames_.try_emplace(goroutine.id);
  const auto stack = is_new ? StackOf(goroutine) : std::nullopt;
  if (stack)
    frames->second =
        goroutine.waits ? code_.FramesOf(goroutine.pc, *stack) : GoCode::WordsOf(*stack);
  return frames->second;
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
  const auto stack = goroutine.reason == "sync.Cond.Wait" ? StackOf(goroutine) : std::nullopt;
  if (stack) waiter.objects = code_.PointersOfWait(goroutine.pc, *stack);
  if (waiter.objects.empty()) return std::nullopt;
  return waiter;
}

// What the pointers lead to gets a mark; what has one of `known` is not followed. Without these
// they are of those who go on, whose values of functions are kept.
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
    if (++looked % kLooksAtTime == 0 && IsLate())
      return Fail("there was no time to follow all its pointers");
    const bool is_read = heap_.PointersIn(*object, &pointers);
    if (marks->size() > kMostMarks || memory_->IsFull())
      return Fail("its heap is too large for its pointers to be followed");
    if (!is_read) return Fail("not all of its heap can be read");
  }
  return true;
}

bool GoReach::AddRootsOfVariables(const GoReachInput& input) {
  constexpr size_t kMostOwn = 256;
  std::vector<GoCode::Variable> variables;
  if (!code_.PointersOfVariables(input.semaphores, input.semaphores_end, &variables))
    return Fail("the program's variables cannot be read");
  for (const GoCode::Variable& each : variables) {
    const auto begin = input.own_variable && own_variables_.size() < kMostOwn
                           ? input.own_variable(each.address)
                           : std::nullopt;
    if (!begin) {
      roots_.push_back(each.pointer);
      continue;
    }
    if (own_variables_.empty() || own_variables_.back().begin != *begin)
      own_variables_.push_back({*begin, 0, {}, false, false, {}});
    own_variables_.back().end = each.address + go_layout::kBytesOfPointer;
    own_variables_.back().pointers.push_back(each.pointer);
  }
  // What is waited for may lie in a variable itself.
  for (const auto& each : waiters_) {
    for (const uint64_t object : each.second.objects) {
      if (heap_.ObjectAt(object) || IsOnStack(object, *each.second.goroutine)) continue;
      if (const auto begin = input.own_variable ? input.own_variable(object) : std::nullopt)
        own_variables_.push_back(
            {*begin, object + go_layout::kBytesOfPointer, {}, false, false, {}});
    }
  }
  return true;
}

// It is in a function that may come to the variable from where it is.
bool GoReach::ComesTo(const Goroutine& goroutine, const OwnVariable& variable) {
  for (const uint64_t pc : FramesOf(goroutine)) {
    const auto function = code_.FunctionBeginAt(pc);
    if (!function || variable.users->functions.count(*function) == 0) continue;
    const auto end = code_.FunctionEndAt(pc);
    if (!goroutine.waits || !end || uses_->value().MayComeTo(variable.users->places, pc, *end))
      return true;
  }
  return false;
}

// By somebody who goes on: from where that is, or over a value of a function that is in reach.
bool GoReach::MayBeUsed(const GoReachInput& input, OwnVariable* variable) {
  if (!uses_) uses_.emplace(GoUses::Read(code_, read_));
  if (!uses_->ok()) return true;
  if (!std::exchange(variable->was_asked, true))
    variable->users = uses_->value().UsersOf(variable->begin, variable->end, input.kind_of,
                                             [this] { return IsLate(); });
  if (!variable->users || IsLate()) return true;
  const auto is_user = [&](uint64_t code) { return variable->users->functions.count(code) != 0; };
  return std::any_of(values_of_functions_.begin(), values_of_functions_.end(), is_user) ||
         std::any_of(input.goroutines.begin(), input.goroutines.end(), [&](const auto& each) {
           return go_on_.count(each.id) != 0 && ComesTo(each, *variable);
         });
}

// True: some have come into reach, and what they lead to is added.
bool GoReach::ReleaseVariables(const GoReachInput& input) {
  bool any = false;
  for (OwnVariable& variable : own_variables_) {
    if (variable.is_in_reach || !MayBeUsed(input, &variable)) continue;
    variable.is_in_reach = any = true;
    roots_.insert(roots_.end(), variable.pointers.begin(), variable.pointers.end());
  }
  return any;
}

bool GoReach::LetGoOn(const Goroutine& goroutine) {
  go_on_.insert(goroutine.id);
  // Its own object, too, which is passed over as one that others only have the address of.
  const auto object = heap_.ObjectAt(goroutine.address);
  if (object && !heap_.PointersIn(*object, &roots_))
    return Fail("not all of its goroutines can be read");
  return AddPointersOf(goroutine, &roots_);
}

bool GoReach::Begin(const GoReachInput& input) {
  is_late_ = input.is_late;
  goroutine_objects_.clear(), marks_.clear(), waiters_.clear(), go_on_.clear();
  own_variables_.clear(), values_of_functions_.clear(), frames_.clear();
  roots_ = input.registers;
  for (const Goroutine& each : input.goroutines) {
    if (const auto object = heap_.ObjectAt(each.address)) goroutine_objects_.insert(object->begin);
  }
  for (const Goroutine& each : input.goroutines) {
    if (auto waiter = WaiterOf(each))
      waiters_.emplace(each.id, std::move(*waiter));
    else if (!LetGoOn(each))
      return false;
  }
  roots_.insert(roots_.end(), heap_.finalized().begin(), heap_.finalized().end());
  return AddRootsOfVariables(input);
}

// What lies in a variable is in everybody's reach, but for those that only some functions use.
bool GoReach::MayBeComeTo(uint64_t object, const Goroutine& waiter) const {
  if (IsOnStack(object, waiter)) return false;
  if (const auto place = heap_.ObjectAt(object)) return marks_.count(place->begin) != 0;
  return std::none_of(own_variables_.begin(), own_variables_.end(), [&](const auto& variable) {
    return !variable.is_in_reach && variable.Has(object);
  });
}

bool GoReach::FindWhoGoesOn(const GoReachInput& input) {
  for (bool any = true; any;) {
    if (!Follow(std::exchange(roots_, {}), nullptr, &marks_)) return false;
    any = false;
    bool all = true;
    for (auto& [id, waiter] : waiters_) {
      if (!waiter.IsStranded()) continue;
      const auto holder = input.held_by.find(id);
      const Goroutine& goroutine = *waiter.goroutine;
      waiter.goes_on =
          holder != input.held_by.end()
              ? go_on_.count(holder->second) != 0
              : std::any_of(waiter.objects.begin(), waiter.objects.end(),
                            [&](uint64_t object) { return MayBeComeTo(object, goroutine); });
      all = all && waiter.goes_on;
      any = any || waiter.goes_on;
      if (waiter.goes_on && !LetGoOn(goroutine)) return false;
    }
    if (!any && !all) any = ReleaseVariables(input);
  }
  return true;
}

// Of each, who of the others has what it waits for: on its stack, or over a variable that it comes
// to from where it is.
bool GoReach::AddOthers(const GoReachInput& input, StrandedGoroutines* stranded) {
  size_t followed = 0;
  for (const auto& each : *stranded) {
    if (followed++ == kMostStranded) break;
    if (IsLate()) return Fail("there was no time to find who has what others wait for");
    const Waiter& has = waiters_.at(each.first);
    std::vector<uint64_t> pointers;
    if (!AddPointersOf(*has.goroutine, &pointers)) return false;
    std::vector<const OwnVariable*> variables;
    for (const OwnVariable& variable : own_variables_) {
      if (variable.is_in_reach || !variable.users || !ComesTo(*has.goroutine, variable)) continue;
      variables.push_back(&variable);
      pointers.insert(pointers.end(), variable.pointers.begin(), variable.pointers.end());
    }
    Marks its;
    if (!Follow(std::move(pointers), &marks_, &its)) return false;
    const auto comes_to = [&](uint64_t object) {
      const auto place = heap_.ObjectAt(object);
      return place ? its.count(place->begin) != 0
                   : std::any_of(variables.begin(), variables.end(),
                                 [&](const auto* variable) { return variable->Has(object); });
    };
    for (auto& [id, others] : *stranded) {
      const Waiter& wants = waiters_.at(id);
      // Who waits for the same in the same way does not give it.
      if (id == each.first || input.held_by.count(id) != 0 ||
          (wants.goroutine->reason == has.goroutine->reason &&
           Overlaps(wants.objects, has.objects)))
        continue;
      if (std::any_of(wants.objects.begin(), wants.objects.end(), comes_to))
        others.push_back(each.first);
    }
  }
  return true;
}

Result<StrandedGoroutines> GoReach::Stranded(const GoReachInput& input) {
  if (!Begin(input) || !FindWhoGoesOn(input)) return Status::Io(trouble_);
  StrandedGoroutines stranded;
  for (const auto& [id, waiter] : waiters_) {
    if (!waiter.IsStranded()) continue;
    std::vector<uint64_t>& others = stranded[id];
    if (const auto holder = input.held_by.find(id); holder != input.held_by.end())
      others.push_back(holder->second);
  }
  if (!AddOthers(input, &stranded)) return Status::Io(trouble_);
  return stranded;
}

}  // namespace hangscope
