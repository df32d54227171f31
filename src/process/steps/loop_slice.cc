#include "process/steps/loop_slice.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace hangscope {
namespace {

constexpr uint64_t kWord = 8;
constexpr uint64_t kPart = 4;  // of memory
constexpr StepPlace kResult = 0, kStackPointer = 7;

uint64_t Down(uint64_t address, uint64_t to) { return address / to * to; }

// How many of its arguments the kernel looks at: what the other registers hold is left over.
std::vector<StepPlace> ArgumentsOf(const StepState& state) {
  constexpr StepPlace kAll[] = {5, 4, 1, 10, 8, 9};
  const auto first = [&](size_t count) { return std::vector<StepPlace>(kAll, kAll + count); };
  switch (state.general[0]) {
    case SYS_sched_yield:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid:
      return {};
    case SYS_kill:
    case SYS_nanosleep:
    case SYS_clock_gettime:
    case SYS_gettimeofday:
      return first(2);
    case SYS_read:
    case SYS_write:
    case SYS_tgkill:
    case SYS_ioctl:
    case SYS_fcntl:
#if defined(__x86_64__)
    case SYS_poll:
#endif
      return first(3);
    case SYS_wait4:
    case SYS_clock_nanosleep:
      return first(4);
    case SYS_futex:
      switch (state.general[4] & FUTEX_CMD_MASK) {
        case FUTEX_WAKE:
          return first(3);
        case FUTEX_WAIT:
          return first(4);
        default:
          return {kAll[0], kAll[1], kAll[2], kAll[3], kAll[5]};
      }
    default:
      return first(6);
  }
}

struct Operation {
  std::vector<StepPlace> uses, defines, replaces;
  // That are always of interest: where it stores, or what it looks at, must not wander off.
  std::vector<StepPlace> addresses;
  std::vector<uint64_t> reads, writes;  // parts of memory
  bool replaces_memory = false;
  bool decides = false;
  bool is_clock = false;  // what it defines is another one each time
};

void AddParts(const StepRange& range, std::vector<uint64_t>* parts) {
  for (uint64_t at = Down(range.address, kPart); at < range.address + range.bytes; at += kPart)
    parts->push_back(at);
}

// A register or a part of memory.
class Places {
 public:
  bool Has(StepPlace place) const { return registers.count(place) != 0; }
  bool HasAny(const Operation& of) const {
    return std::any_of(of.defines.begin(), of.defines.end(),
                       [&](StepPlace place) { return Has(place); }) ||
           HasAnyOf(of.writes);
  }
  bool HasAnyOf(const std::vector<uint64_t>& parts) const {
    return std::any_of(parts.begin(), parts.end(),
                       [&](uint64_t part) { return memory.count(part) != 0; });
  }
  bool Contains(const Places& other) const {
    return std::all_of(other.registers.begin(), other.registers.end(),
                       [&](StepPlace place) { return Has(place); }) &&
           std::all_of(other.memory.begin(), other.memory.end(),
                       [&](uint64_t part) { return memory.count(part) != 0; });
  }
  void Add(const Places& other) {
    registers.insert(other.registers.begin(), other.registers.end());
    memory.insert(other.memory.begin(), other.memory.end());
  }

  std::set<StepPlace> registers;
  std::unordered_set<uint64_t> memory;
};

class Slicer {
 public:
  Slicer(std::span<const StepState> round, const CodeRange& clock_code, bool naps,
         StepExaminer& examiner)
      : round_(round), clock_code_(clock_code), naps_(naps), examiner_(examiner) {
    for (size_t i = 0; i + 1 < round_.size() && understood_;) i = AddOperation(i);
  }

  // What is of interest at the round's begin, because it decides on the way of this round or of any
  // later one. Nothing: that is not known, or a clock decides.
  std::optional<Places> Find() {
    constexpr int kMostTimes = 8;
    Places begin;
    for (int times = 0; times < kMostTimes && understood_; ++times) {
      Places now = Before(begin);
      if (clock_decides_) return std::nullopt;
      if (begin.Contains(now)) return begin;
      begin.Add(now);
    }
    return std::nullopt;
  }

  // Where functions are, of tables that do not change.
  bool IsTarget(uint64_t part) const { return targets_.count(part) != 0; }

 private:
  bool IsOfClock(const StepState& state) const {
    return state.pc >= clock_code_.first && state.pc < clock_code_.second;
  }

  size_t AddOperation(size_t i) {
    if (IsOfClock(round_[i])) return AddClock(i);
    const StepState& state = round_[i];
    const StepEffect effect = examiner_.EffectOf(state);
    Operation operation;
    for (const StepRange& range : effect.reads) AddParts(range, &operation.reads);
    for (const StepRange& range : effect.writes) AddParts(range, &operation.writes);
    const bool is_nap = naps_ && i + 2 == round_.size();
    if (is_nap && !effect.is_call) {
      operation = CallThatNaps();
    } else if (effect.is_call) {
      AddCall(state, effect, is_nap, &operation);
    } else {
      const StepFlow& flow = examiner_.FlowAt(state.pc);
      understood_ = effect.understood && flow.understood;
      operation.uses = flow.uses;
      operation.defines = flow.defines;
      operation.replaces = flow.replaces;
      operation.addresses = flow.addresses;
      operation.decides = flow.decides;
      operation.is_clock = effect.reads_clock;
      if (flow.jumps_by_memory) targets_.insert(operation.reads.begin(), operation.reads.end());
      operation.replaces_memory =
          flow.stores_whole &&
          std::all_of(effect.writes.begin(), effect.writes.end(), [](const StepRange& range) {
            return range.address % kPart == 0 && range.bytes % kPart == 0;
          });
    }
    operations_.push_back(std::move(operation));
    return i + 1;
  }

  // What it finds is the same each time, unless it is a time.
  void AddCall(const StepState& state, const StepEffect& effect, bool is_nap, Operation* call) {
    constexpr StepPlace kOverwritten[] = {kResult, 2, 11};
    call->uses = ArgumentsOf(state);
    call->uses.push_back(kResult);
    call->decides = true;
    call->is_clock = effect.use == CallUse::kClock;
    call->defines.assign(std::begin(kOverwritten), std::end(kOverwritten));
    call->replaces = call->defines;
    understood_ = is_nap || (effect.understood && effect.use != CallUse::kNever);
    const uint64_t number = state.general[kResult];
    const bool tells_whether = number == SYS_clock_gettime || number == SYS_gettimeofday ||
                               number == SYS_getrusage || number == SYS_getcpu;
    if (call->is_clock && tells_whether) call->defines.erase(call->defines.begin());
  }

  // Of a function: what it does inside is its own, and comes out the same as before. Its first
  // argument tells for what, or how long.
  static Operation CallThatNaps() {
    Operation call;
    call.decides = true;
    call.uses = {5, kStackPointer};
    call.defines = {kResult, 1, 2, 4, 5, 8, 9, 10, 11, kFlagsPlace};
    call.replaces = call.defines;
    return call;
  }

  // To where it comes back from there. What it leaves is the time; and whether it could tell that.
  size_t AddClock(size_t i) {
    Operation clock;
    const uint64_t stack = round_[i].general[kStackPointer];
    size_t end = i;
    for (; end < round_.size() && IsOfClock(round_[end]); ++end) {
      const StepEffect effect = examiner_.EffectOf(round_[end]);
      understood_ = understood_ && effect.understood && !effect.is_call;
      for (const StepRange& range : effect.writes) {
        if (range.address >= stack || range.address + 65536 < stack) AddParts(range, &clock.writes);
      }
    }
    if (end == round_.size()) {
      understood_ = false;
      return end;
    }
    clock.is_clock = true;
    clock.replaces_memory = true;
    clock.decides = true;
    clock.uses = {5, 4, kStackPointer};
    clock.replaces = {kResult, 1, 2, 4, 5, 8, 9, 10, 11, kFlagsPlace};
    clock.defines.assign(clock.replaces.begin() + 1, clock.replaces.end());
    if (round_[end].general[kResult] != 0) clock.defines.push_back(kResult);
    AddParts({stack, kWord}, &clock.reads);  // where it returns to
    operations_.push_back(std::move(clock));
    return end;
  }

  Places Before(const Places& after) {
    Places live = after;
    for (auto at = operations_.rbegin(); at != operations_.rend(); ++at) {
      const Operation& each = *at;
      const bool matters = live.HasAny(each);
      if (each.is_clock && matters) clock_decides_ = true;
      for (const StepPlace place : each.replaces) live.registers.erase(place);
      if (each.replaces_memory) {
        for (const uint64_t part : each.writes) live.memory.erase(part);
      }
      live.registers.insert(each.addresses.begin(), each.addresses.end());
      if (!matters && !each.decides) continue;
      live.registers.insert(each.uses.begin(), each.uses.end());
      live.memory.insert(each.reads.begin(), each.reads.end());
    }
    return live;
  }

  const std::span<const StepState> round_;
  const CodeRange clock_code_;
  const bool naps_;
  StepExaminer& examiner_;
  std::vector<Operation> operations_;
  std::unordered_set<uint64_t> targets_;
  bool understood_ = true;
  bool clock_decides_ = false;
};

// Of a place that is no general register nothing is known but that it is of interest.
bool AreSame(const std::set<StepPlace>& places, const StepState& one, const StepState& other) {
  return std::all_of(places.begin(), places.end(), [&](StepPlace place) {
    if (place < kGeneralPlaces) return one.general[place] == other.general[place];
    constexpr uint64_t kConditions = 0x8d5;  // carry, parity, adjust, zero, sign, overflow
    return place == kFlagsPlace && (one.flags & kConditions) == (other.flags & kConditions);
  });
}

struct Change {
  uint64_t before, after;
  bool IsOf(uint64_t part) const {
    const uint64_t shift = part % kWord * 8;
    return static_cast<uint32_t>(before >> shift) != static_cast<uint32_t>(after >> shift);
  }
};

// What words held at any step, as far as they were stored to.
class StoreHistory {
 public:
  explicit StoreHistory(const std::vector<LoopStore>& stores) {
    for (const LoopStore& store : stores) words_[store.word].push_back(&store);
  }
  bool AreSame(const std::set<uint64_t>& words, size_t one, size_t other) const {
    return std::all_of(words.begin(), words.end(), [&](uint64_t word) {
      const auto at = words_.find(word);
      return at == words_.end() || ValueAt(at->second, one) == ValueAt(at->second, other);
    });
  }

 private:
  static uint64_t ValueAt(const std::vector<const LoopStore*>& stores, size_t step) {
    const auto next = std::partition_point(
        stores.begin(), stores.end(), [&](const LoopStore* store) { return store->step < step; });
    return next == stores.begin() ? stores.front()->before : (*std::prev(next))->after;
  }

  std::unordered_map<uint64_t, std::vector<const LoopStore*>> words_;
};

std::unordered_map<uint64_t, Change> ChangesIn(size_t begin, size_t end,
                                               const std::vector<LoopStore>& stores) {
  std::unordered_map<uint64_t, Change> changes;
  for (const LoopStore& store : stores) {
    if (store.step < begin || store.step >= end) continue;
    const auto [at, is_new] = changes.emplace(store.word, Change{store.before, store.after});
    if (!is_new) at->second.after = store.after;
  }
  std::erase_if(changes, [](const auto& each) { return each.second.before == each.second.after; });
  return changes;
}

}  // namespace

LoopSlice SliceLoop(std::span<const StepState> round, size_t begin,
                    const std::vector<LoopStore>& stores, const CodeRange& clock_code, bool naps,
                    StepExaminer& examiner) {
  LoopSlice slice;
  if (round.size() < 2 || round.front().pc != round.back().pc) return slice;
  slice.steps = round.size() - 1;
  const auto changes = ChangesIn(begin, begin + round.size() - 1, stores);
  for (const auto& [word, change] : changes) slice.changed.push_back(word);
  std::sort(slice.changed.begin(), slice.changed.end());
  Slicer slicer(round, clock_code, naps, examiner);
  const auto places = slicer.Find();
  if (!places) return slice;
  slice.registers.assign(places->registers.begin(), places->registers.end());
  slice.polls.assign(places->memory.begin(), places->memory.end());
  std::sort(slice.polls.begin(), slice.polls.end());
  const bool same_memory = std::none_of(slice.polls.begin(), slice.polls.end(), [&](uint64_t part) {
    const auto at = changes.find(Down(part, kWord));
    return at != changes.end() && at->second.IsOf(part);
  });
  std::erase_if(slice.polls, [&](uint64_t part) { return slicer.IsTarget(part); });
  slice.closes = same_memory && AreSame(places->registers, round.front(), round.back());
  return slice;
}

std::optional<size_t> FindSteadyRound(const std::vector<StepState>& states,
                                      const std::vector<LoopStore>& stores,
                                      const CodeRange& clock_code, StepExaminer& examiner,
                                      LoopSlice* slice) {
  constexpr int kTries = 4;
  const auto is_of_clock = [&](const StepState& state) {
    return state.pc >= clock_code.first && state.pc < clock_code.second;
  };
  size_t end = states.size();
  while (end > 0 && is_of_clock(states[end - 1])) --end;
  if (end < 2) return std::nullopt;
  const StepState& last = states[--end];
  // Of interest at least, as the shortest of the rounds that were tried shows it.
  std::set<StepPlace> places;
  std::set<uint64_t> words;
  const StoreHistory history(stores);
  size_t at = end;
  for (int tries = 0; tries < kTries && at > 0; ++tries) {
    const auto comes_back = [&](const StepState& state) {
      return state.pc == last.pc && state.general[kStackPointer] == last.general[kStackPointer] &&
             AreSame(places, state, last);
    };
    while (at > 0 && !(comes_back(states[at - 1]) && history.AreSame(words, at - 1, end))) --at;
    if (at == 0) return std::nullopt;
    --at;
    const std::span<const StepState> round(states.data() + at, end - at + 1);
    *slice = SliceLoop(round, at, stores, clock_code, false, examiner);
    if (slice->closes) return at;
    if (slice->registers.empty() || slice->registers.back() >= kFirstOtherPlace)
      return std::nullopt;
    places.insert(slice->registers.begin(), slice->registers.end());
    for (const uint64_t part : slice->polls) words.insert(Down(part, kWord));
  }
  return std::nullopt;
}

}  // namespace hangscope
