#include "process/step_helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "proc/proc_folder.h"
#include "proc/thread_stop.h"
#include "process/steps/thread_twin.h"

namespace hangscope {
namespace {

constexpr size_t kFirstSteps = 100;
constexpr size_t kUsualSteps = 4000;
constexpr size_t kMostStepsInAll = 100'000;
constexpr size_t kMostStepsTwice = 2000;  // a longer circle is gone around once where that will do
constexpr TimeNs kLongestWaitForHelper = kSecond;  // besides its steps; the machine may be busy
// A thread that waits for its turn is not held meanwhile; on a busy machine that takes long.
constexpr TimeNs kLongestWaitForTurn = 400 * kMillisecond;
constexpr TimeNs kLongestNotes = kSecond;  // of the calls that it makes, each in a turn of its own
constexpr size_t kFewCalls = 6, kManyCalls = 128;
constexpr int kMostMoments = 4;  // of a thread, to step from
constexpr size_t kMostSentReads = 65536;
constexpr size_t kMostSentCalls = 64;
constexpr size_t kMostSentFlickers = 256;

// What the helper sends, followed by `reads` ranges, `calls` calls, `flickers` addresses. Both ends
// are the same program.
struct Report {
  uint64_t steps;
  uint64_t period;
  uint64_t stack_pointer;
  uint64_t found;
  int64_t held;
  StepRange kernel_words;
  uint64_t begin;
  uint64_t end;
  uint64_t reads;
  uint64_t calls;
  uint64_t flickers;
  bool flickers_cut;
  bool changes_memory;
  bool in_part;
  bool understood;
  bool calls_kernel;
  bool yields;
  bool reads_clock;
};
static_assert(std::is_trivially_copyable_v<Report> &&
              std::is_trivially_copyable_v<LoopAccess::Range> &&
              std::is_trivially_copyable_v<SteppedLoop::Call>);

// Of those made at or after step `begin`. False: they are too many.
bool CollectCalls(const StepTrace& trace, size_t begin, std::vector<SteppedLoop::Call>* calls) {
  for (size_t i = 0; i < trace.calls.size(); ++i) {
    if (trace.call_steps[i] < begin) continue;
    const auto known = std::find_if(calls->begin(), calls->end(),
                                    [&](const auto& each) { return each.call == trace.calls[i]; });
    if (known != calls->end())
      ++known->times;
    else if (calls->size() < kMostSentCalls)
      calls->push_back({trace.calls[i], 1});
    else
      return false;
  }
  return true;
}

// In the newer half of the steps it has been nowhere where it was not in the older one.
bool IsInALoop(const StepTrace& trace) {
  const size_t half = trace.states.size() / 2;
  std::unordered_set<uint64_t> older;
  for (size_t i = 0; i < half; ++i) older.insert(trace.states[i].pc);
  return std::all_of(trace.states.begin() + static_cast<long>(half), trace.states.end(),
                     [&](const StepState& state) { return older.count(state.pc) != 0; });
}

// Of the calls that a stop interrupts, one that looks and does not wait.
bool ComesBackAtOnce(const ThreadStop& stop, const ReadMemory& read) {
  ThreadMoment moment;
  if (!stop.CopyMoment({}, &moment)) return false;
  const StepCall call = moment.AskedCall();
  const auto points_to_zero = [&read](uint64_t timeout) {
    std::array<int64_t, 2> time = {};
    return timeout != 0 && read(timeout, time.data(), sizeof time) && time[0] == 0 && time[1] == 0;
  };
  switch (call.number) {
#if defined(__x86_64__)
    case SYS_poll:
      return static_cast<int>(call.arguments[2]) == 0;
    case SYS_select:
      return points_to_zero(call.arguments[4]);
#endif
    case SYS_ppoll:
      return points_to_zero(call.arguments[2]);
    case SYS_pselect6:
      return points_to_zero(call.arguments[4]);
    default:
      return false;
  }
}

// A poll that was to come back at once is begun again after a stop, so it is taken to its end: a
// thread that does nothing else is hardly ever seen outside of it. A sleep, too, is begun again,
// and is not to be cut into pieces. Null: it sleeps, or does not stop.
std::unique_ptr<ThreadStop> StopBetweenCalls(Clock& clock, const SteppedThread& thread,
                                             const std::function<void()>& while_waiting = {}) {
  constexpr int kTries = 30;
  const ProcFolder proc("/proc");
  for (int tries = 0; tries < kTries; ++tries) {
    auto stop = ThreadStop::Stop(clock, thread.tid, kLongestWaitForTurn, while_waiting);
    if (!stop.ok() || !(*stop)->Registers().ok()) return nullptr;
    if ((*stop)->interrupted_call() < 0) return std::move(*stop);
    if (ComesBackAtOnce(**stop, thread.read))
      return (*stop)->FinishCall(clock.Monotonic() + kLongestWaitForTurn) ? std::move(*stop)
                                                                          : nullptr;
    stop->reset();
    clock.Sleep(kMillisecond / 5);
    const auto stat = proc.Stat(thread.tid);
    if (!stat || stat->state != ThreadState::kRunning) return nullptr;
  }
  return nullptr;
}

bool IsIn(const CodeRange& range, uint64_t address) {
  return address >= range.first && address < range.second;
}

// What a round whose way is the same for ever tells: steps `begin` to `end`.
void TellRound(const StepTrace& trace, size_t begin, size_t end, const LoopSlice& slice,
               const CodeRange& stack, LoopMemory& memory, const ReadMemory& read,
               SteppedLoop* loop) {
  constexpr uint64_t kPart = 4;
  loop->period = end - begin;
  loop->in_part = true;
  loop->access = ExamineSteps(std::span(trace.states).subspan(begin, end - begin), read);
  loop->access.reads_clock = false;  // but that does not decide
  loop->access.reads.clear();
  for (const uint64_t part : slice.polls) loop->access.reads.push_back({part, kPart});
  loop->changes_memory =
      !memory.is_understood() || std::any_of(slice.changed.begin(), slice.changed.end(),
                                             [&](uint64_t word) { return !IsIn(stack, word); });
  std::set<uint64_t> flickers;
  for (const LoopStore& store : memory.stores()) {
    if (store.step >= begin && store.step < end && store.before != store.after)
      flickers.insert(store.word);
  }
  loop->flickers.assign(flickers.begin(), flickers.end());
}

// Some part of what decides on its way is memory that is not its own.
bool LooksForSomething(const LoopSlice& slice, const CodeRange& stack) {
  return std::any_of(slice.polls.begin(), slice.polls.end(),
                     [&](uint64_t part) { return !IsIn(stack, part); });
}

// A futex that it did not sleep on, as the word was not what it had to be, is that now.
bool FoundAnotherWord(const StepTrace& trace, const ReadMemory& read) {
  return std::any_of(trace.calls.begin(), trace.calls.end(), [&](const StepCall& call) {
    uint32_t word = 0;
    const auto operation = static_cast<int>(call.arguments[1]) & FUTEX_CMD_MASK;
    return call.number == SYS_futex && call.result == -EAGAIN &&
           (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) &&
           read(call.arguments[0], &word, sizeof word) &&
           word == static_cast<uint32_t>(call.arguments[2]);
  });
}

// So much new in memory of others' is no loop's that only looks.
bool Works(const LoopMemory& memory, const CodeRange& stack) {
  constexpr ptrdiff_t kManyWords = 16;
  const auto is_outside = [&](uint64_t word) { return !IsIn(stack, word); };
  return std::count_if(memory.changed().begin(), memory.changed().end(), is_outside) >= kManyWords;
}

void AddPage(uint64_t address, const SteppedThread& thread, std::set<uint64_t>* pages) {
  const MemoryMapping* const mapping = FindMapping(*thread.mappings, address);
  if (mapping != nullptr && mapping->writable)
    pages->insert(address / kMomentPageBytes * kMomentPageBytes);
}

// Memory that a thread is likely to come to, so that it is copied while it stands.
std::set<uint64_t> LikelyPages(const SteppedThread& thread, const ThreadRegisters& registers) {
  constexpr uint64_t kOfStack = 16384, kMostOfMapping = 16, kMostOfAll = 96;
  std::set<uint64_t> pages;
  for (uint64_t bytes = 0; bytes < kOfStack; bytes += kMomentPageBytes)
    AddPage(registers.stack_pointer() + bytes, thread, &pages);
  for (const auto& value : registers.values) {
    if (value) AddPage(*value, thread, &pages);
  }
  for (const MemoryMapping& mapping : *thread.mappings) {
    if (!mapping.writable || mapping.inode == 0 ||
        mapping.size_bytes() > kMostOfMapping * kMomentPageBytes)
      continue;
    for (uint64_t page = mapping.begin; page < mapping.end; page += kMomentPageBytes) {
      if (pages.size() < kMostOfAll) pages.insert(page);
    }
  }
  return pages;
}

// A thread whose twin is stepped, and what is found out so.
struct Followed {
  explicit Followed(const SteppedThread& its_thread) : thread(its_thread) {}

  const SteppedThread& thread;
  std::unique_ptr<PagesInMemory> in_memory;
  ReadMemory source;  // of the thread's, as far as that is no fault of its process
  std::unique_ptr<ThreadTwin> twin;
  ReadMemory read;  // of the twin's
  ThreadMoment moment;
  std::set<uint64_t> pages;  // to be copied besides those that are likely
  size_t calls = 0;          // to be noted
  TimeNs held = 0;           // for how long at a time, at most
  // Of the newest moment:
  std::unique_ptr<LoopMemory> memory;
  StepTrace trace;
  SteppedLoop loop;
  size_t first = 0;  // of the round, or of all
  bool may_be_round = false;
};

bool MakeTwin(Clock& clock, Followed* followed) {
  const SteppedThread& thread = followed->thread;
  followed->in_memory = std::make_unique<PagesInMemory>(thread.tid);
  followed->source = [&thread, &in_memory = *followed->in_memory](uint64_t address, void* into,
                                                                  size_t bytes) {
    for (uint64_t page = address / kMomentPageBytes * kMomentPageBytes; page < address + bytes;
         page += kMomentPageBytes) {
      const MemoryMapping* const mapping = FindMapping(*thread.mappings, page);
      const bool is_of_file = mapping != nullptr && mapping->inode != 0 && !mapping->shared;
      if (!is_of_file && !in_memory.Has(page)) return false;
    }
    return thread.read(address, into, bytes);
  };
  auto twin = ThreadTwin::Make(clock, *thread.mappings, followed->source);
  if (!twin.ok()) return false;
  followed->twin = std::move(*twin);
  followed->read = [&of = *followed->twin](uint64_t address, void* into, size_t bytes) {
    return of.Read(address, into, bytes);
  };
  return true;
}

std::vector<uint64_t> PagesToCopy(const Followed& followed, const ThreadRegisters& registers) {
  std::set<uint64_t> pages = LikelyPages(followed.thread, registers);
  pages.insert(followed.pages.begin(), followed.pages.end());
  std::erase_if(pages, [&](uint64_t page) { return !followed.in_memory->Has(page); });
  return {pages.begin(), pages.end()};
}

// While it goes on. What this process does for the first time takes far longer than what it does
// again: its code and its memory are its parent's until then.
void Rehearse(const Followed& followed) {
  ThreadRegisters registers;
  registers.values[ThreadRegisters::kStackPointer] = followed.thread.stack.first;
  ThreadMoment moment;
  moment.CopyPages(followed.thread.tid, PagesToCopy(followed, registers));
}

// As it stands.
bool CopyMoment(const ThreadStop& stop, Followed* followed) {
  auto registers = stop.Registers();
  if (!registers.ok()) return false;
  followed->moment = {};
  return stop.CopyMoment(PagesToCopy(*followed, *registers), &followed->moment);
}

void LetGo(std::unique_ptr<ThreadStop> stop, Followed* followed) {
  followed->held = std::max(followed->held, stop->longest_hold());
}

// All of them, at one time. One that wants a CPU first, which others have, lets those that stand
// already wait for it, but not for long: then they are let go, and all are stopped anew. Empty: one
// of them does not stop, or they never stood together.
std::vector<std::unique_ptr<ThreadStop>> StopAll(Clock& clock, std::vector<Followed>* all) {
  constexpr TimeNs kLongestTogether = kMillisecond / 2;
  constexpr int kTries = 40;
  const TimeNs until = clock.Monotonic() + 2 * kLongestWaitForTurn;
  std::vector<std::unique_ptr<ThreadStop>> stops;
  const auto let_go = [&] {
    for (size_t i = 0; i < stops.size(); ++i) LetGo(std::move(stops[i]), &(*all)[i]);
    stops.clear();
  };
  const auto let_go_if_late = [&] {
    if (!stops.empty() && stops.front()->longest_hold() > kLongestTogether) let_go();
  };
  for (int tries = 0; tries < kTries && stops.size() < all->size(); ++tries) {
    if (tries > 0 && clock.Monotonic() > until) break;
    if (tries > 0) clock.Sleep(kMillisecond);
    for (size_t i = 0; i < all->size(); ++i) {
      auto stop = StopBetweenCalls(clock, (*all)[i].thread, let_go_if_late);
      if (stop == nullptr) return {};
      let_go_if_late();
      if (stops.size() < i) break;  // `stop` goes, too
      stops.push_back(std::move(stop));
    }
  }
  if (stops.size() < all->size()) let_go();
  return stops;
}

// Of one time: all of them stand at once, for as long as it takes to copy. False: one of them does
// not stop.
bool CopyMoments(Clock& clock, std::vector<Followed>* all) {
  std::vector<std::unique_ptr<ThreadStop>> stops = StopAll(clock, all);
  if (stops.empty()) return false;
  for (size_t i = 0; i < all->size(); ++i) {
    if (!CopyMoment(*stops[i], &(*all)[i])) return false;
  }
  const auto note = [&](ThreadStop& stop, Followed& each) {
    if (each.calls > 0)
      stop.NoteCalls(each.calls, clock.Monotonic() + kLongestNotes, each.source, &each.moment);
  };
  const bool is_one = all->size() == 1;
  for (size_t i = 0; i < all->size(); ++i) {
    if (is_one) note(*stops[i], (*all)[i]);
    LetGo(std::move(stops[i]), &(*all)[i]);
  }
  for (Followed& each : *all) {
    if (is_one || each.calls == 0) continue;
    auto stop = StopBetweenCalls(clock, each.thread);
    if (stop == nullptr) return false;
    note(*stop, each);
    LetGo(std::move(stop), &each);
  }
  return true;
}

void ForgetRound(SteppedLoop* loop) {
  loop->period = 0;
  loop->in_part = false;
  loop->changes_memory = !loop->access.understood || !loop->access.writes.empty();
}

void StepTwin(Clock& clock, const StepTimes& times, Followed* followed) {
  const SteppedThread& thread = followed->thread;
  followed->memory = std::make_unique<LoopMemory>(followed->read);
  followed->loop = {};
  followed->trace = {};
  followed->may_be_round = false;
  LoopMemory& memory = *followed->memory;
  SteppedLoop& loop = followed->loop;
  const TimeNs start = clock.Monotonic();
  StepLimits limits;
  limits.most = kFirstSteps;
  limits.until = start + std::max(times.usual, times.longest);
  bool is_longer = false;
  limits.longer = [&](const StepTrace& so_far) -> size_t {
    const size_t steps = so_far.states.size();
    // Often enough is seen much sooner. Not that a loop looks for something: what it looks for may
    // come yet, as a lock does that is given back.
    if (steps < kUsualSteps) {
      const bool is_enough = memory.is_understood() && Works(memory, thread.stack);
      return is_enough || clock.Monotonic() > start + times.usual
                 ? 0
                 : std::min(kUsualSteps, 2 * steps);
    }
    if (is_longer || !memory.is_understood() || !IsInALoop(so_far)) return 0;
    LoopSlice slice;
    const bool is_steady = FindSteadyRound(so_far.states, memory.stores(), thread.clock_code,
                                           memory.examiner(), &slice)
                               .has_value();
    const bool may_come_back =
        !is_steady && (!memory.Counts() || (!slice.registers.empty() && !memory.CountsIn(slice)));
    is_longer = true;
    // Where vectors count, the circle is gone around twice, and must close in half of the steps.
    const size_t most = memory.uses_vectors() ? kMostStepsInAll / 2 : kMostStepsInAll;
    return may_come_back && times.longest > 0 ? most : 0;
  };
  if (!followed->twin->BeAt(followed->moment)) return;
  followed->trace = followed->twin->Step(limits, memory);
  const StepTrace& trace = followed->trace;
  if (trace.states.size() < 2) return;
  loop.steps = trace.states.size() - 1;
  loop.stack_pointer = trace.states.back().general[ThreadRegisters::kStackPointer];
  const size_t looked_at = trace.period > 0 ? trace.period : loop.steps;
  followed->first = loop.steps - looked_at;
  loop.access =
      ExamineSteps(std::span(trace.states).subspan(followed->first, looked_at), followed->read);
  // What it may have changed before it came into the circle counts as part of that, too.
  loop.flickers = memory.TakeChanged();
  // The same again, with an eye on what the registers that are no part of a state hold, and on
  // whether the calls find the same.
  const bool is_proven = trace.period > kMostStepsTwice && memory.is_understood() &&
                         !loop.access.uses_vectors && trace.calls.empty();
  const TimeNs until = std::max(limits.until, clock.Monotonic() + times.usual);
  if (trace.period > 0 && (is_proven || followed->twin->StepsBackInto(trace, until, memory))) {
    loop.period = trace.period;
    loop.changes_memory = !memory.is_understood();
    if (!is_proven) loop.flickers = memory.TakeChanged();
  }
  // Who waits so for a lock that others have, and give back, is none that spins.
  const bool is_moved = FoundAnotherWord(trace, followed->source);
  if (is_moved || loop.period == 0) ForgetRound(&loop);
  const bool all_calls = CollectCalls(trace, followed->first, &loop.calls);
  loop.access.calls_kernel = loop.access.calls_kernel || trace.wants_kernel || !all_calls;
  followed->may_be_round =
      loop.period == 0 && !is_moved && !trace.wants_kernel && all_calls && memory.is_understood();
}

void FindRound(Followed* followed) {
  constexpr size_t kMostSteps = 20'000;  // rounds of many steps take their time to be found
  if (!followed->may_be_round || followed->trace.states.size() > kMostSteps) return;
  const SteppedThread& thread = followed->thread;
  LoopMemory& memory = *followed->memory;
  const StepTrace& trace = followed->trace;
  LoopSlice slice;
  const auto round =
      FindSteadyRound(trace.states, memory.stores(), thread.clock_code, memory.examiner(), &slice);
  if (!round || !LooksForSomething(slice, thread.stack)) return;
  TellRound(trace, *round, *round + slice.steps, slice, thread.stack, memory, followed->read,
            &followed->loop);
  followed->first = *round;
}

// Whether another moment may show more: with more of its calls, or with memory of that moment.
// Of several that is needed: their memory must be that of one time.
bool WantsAnotherMoment(bool of_several, Followed* followed) {
  if (followed->twin->wants_calls() && followed->calls < kManyCalls) {
    followed->calls = followed->calls == 0 ? kFewCalls : kManyCalls;
    return true;
  }
  constexpr size_t kMostLate = 64;
  const std::set<uint64_t>& late = followed->twin->late_pages();
  const size_t known = followed->pages.size();
  if (late.size() > kMostLate || Works(*followed->memory, followed->thread.stack)) return false;
  followed->pages.insert(late.begin(), late.end());
  if (followed->pages.size() == known || followed->trace.states.empty()) return false;
  return followed->loop.period == 0 ? IsInALoop(followed->trace) : of_several;
}

// The thread is at one of the round's steps. Of registers that do not decide on its way nothing is
// asked.
bool IsInRound(const Followed& followed, const StepState& now) {
  constexpr size_t kOverwritten[] = {2, 11};  // by calls
  const std::vector<StepState>& states = followed.trace.states;
  const auto begin = states.begin() + static_cast<long>(followed.first);
  const auto end = begin + static_cast<long>(followed.loop.period) + 1;
  if (followed.loop.in_part && IsIn(followed.thread.clock_code, now.pc)) return true;
  return std::any_of(begin, end, [&](const StepState& state) {
    if (state.pc != now.pc) return false;
    if (followed.loop.in_part) return true;
    StepState same = now;
    for (const size_t each : kOverwritten) {
      if (!followed.trace.calls.empty()) same.general[each] = state.general[each];
    }
    return same.general == state.general && same.segments == state.segments;
  });
}

// What it looks at is in its memory what it is in the twin's.
bool FindsTheSame(const Followed& followed) {
  constexpr uint64_t kWordBytes = 8;
  constexpr size_t kMostCompared = 4096;
  const std::vector<uint64_t>& flickers = followed.loop.flickers;
  size_t compared = 0;
  for (const StepRange& range : followed.loop.access.reads) {
    const uint64_t end = range.address + range.bytes;
    for (uint64_t at = range.address; at < end; at = (at / kWordBytes + 1) * kWordBytes) {
      if (std::binary_search(flickers.begin(), flickers.end(), at / kWordBytes * kWordBytes))
        continue;
      uint64_t one = 0, other = 0;
      const size_t bytes = std::min(end, (at / kWordBytes + 1) * kWordBytes) - at;
      if (followed.source(at, &one, bytes) && followed.read(at, &other, bytes) && one != other)
        return false;
      if (++compared >= kMostCompared) return true;
    }
  }
  return true;
}

// The twin tells what the thread would do if nobody else did anything. Whether that is so, the
// thread tells, a few times.
bool IsStillThere(Clock& clock, Followed* followed) {
  for (const TimeNs later : {kMillisecond, 4 * kMillisecond, 15 * kMillisecond}) {
    clock.Sleep(later);
    auto stop = StopBetweenCalls(clock, followed->thread);
    ThreadMoment now;
    if (stop == nullptr || !stop->CopyMoment({}, &now)) return false;
    LetGo(std::move(stop), followed);
    if (!IsInRound(*followed, now.State()) || !FindsTheSame(*followed)) return false;
  }
  return true;
}

// Empty where one of them does not stop.
std::vector<SteppedLoop> StepHere(Clock& clock, const std::vector<SteppedThread>& threads,
                                  const StepTimes& times) {
  std::vector<Followed> all;
  all.reserve(threads.size());  // what they are made of has pointers into them
  for (const SteppedThread& thread : threads) {
    if (!MakeTwin(clock, &all.emplace_back(thread))) return {};
  }
  for (const Followed& each : all) Rehearse(each);
  const TimeNs until =
      clock.Monotonic() + times.usual * static_cast<TimeNs>(threads.size()) + times.longest / 2;
  for (int moments = 1;; ++moments) {
    if (!CopyMoments(clock, &all)) return {};
    bool again = false;
    for (Followed& each : all) {
      StepTwin(clock, times, &each);
      FindRound(&each);
      again = WantsAnotherMoment(all.size() > 1, &each) || again;
    }
    if (!again || moments >= kMostMoments || clock.Monotonic() > until) break;
  }
  std::vector<SteppedLoop> loops;
  for (Followed& each : all) {
    const bool is_of_one_time = all.size() == 1 || each.twin->late_pages().empty();
    if (each.loop.period > 0 && (!is_of_one_time || !IsStillThere(clock, &each)))
      ForgetRound(&each.loop);
    each.loop.held = each.held;
    each.loop.kernel_words = each.moment.kernel_words;
    loops.push_back(std::move(each.loop));
  }
  return loops;
}

// The round of one that naps: from the end of one nap to the begin of the next, in the function
// that calls for it. Nothing: it is not all there.
std::optional<std::pair<size_t, size_t>> RoundOf(const StepTrace& trace, const NapPlace& nap,
                                                 StepExaminer& examiner) {
  constexpr size_t kStackPointer = ThreadRegisters::kStackPointer;
  constexpr uint64_t kCallBytes = 2, kPushed = 8;
  const std::vector<StepState>& states = trace.states;
  const StepState& last = states.back();
  if (last.pc + kCallBytes != nap.pc || last.general[kStackPointer] != nap.stack_pointer)
    return std::nullopt;
  if (nap.back == nap.pc) return std::pair(size_t{0}, states.size() - 1);
  const auto is_back = [&](const StepState& state) {
    return state.pc == nap.back && state.general[kStackPointer] == nap.stack_pointer_back;
  };
  const auto first = std::find_if(states.begin(), states.end(), is_back);
  if (first == states.end()) return std::nullopt;
  const auto begin = static_cast<size_t>(first - states.begin());
  for (size_t i = states.size() - 1; i-- > begin;) {
    const StepState& state = states[i];
    if (state.general[kStackPointer] != nap.stack_pointer_back) continue;
    const bool calls = states[i + 1].general[kStackPointer] == nap.stack_pointer_back - kPushed &&
                       state.pc + examiner.EffectOf(state).size == nap.back;
    return calls ? std::optional(std::pair(begin, i)) : std::nullopt;
  }
  return std::nullopt;
}

// As the nap leaves it: what a function may overwrite is what it was after the nap before.
StepState AfterNap(const StepState& before, const StepState& after_earlier) {
  constexpr size_t kOverwritten[] = {0, 1, 2, 4, 5, 8, 9, 10, 11};
  StepState after = before;
  after.pc = after_earlier.pc;
  after.flags = after_earlier.flags;
  for (const size_t each : kOverwritten) after.general[each] = after_earlier.general[each];
  return after;
}

// Null: it is none, or does not stop. What it does in between takes a moment.
std::unique_ptr<ThreadStop> StopInNap(Clock& clock, int tid, const NapPlace& nap) {
  constexpr int kTries = 5;
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) clock.Sleep(kMillisecond / 2);
    auto stop = ThreadStop::Stop(clock, tid, kLongestWaitForStop);
    const auto registers =
        stop.ok() ? (*stop)->Registers() : Result<ThreadRegisters>(stop.status());
    if (!registers.ok()) return nullptr;
    if (StopIsHarmlessIn((*stop)->interrupted_call()) && registers->pc == nap.pc &&
        registers->stack_pointer() == nap.stack_pointer)
      return std::move(*stop);
  }
  return nullptr;
}

// From the end of its nap to the begin of the next, which the thread goes to meanwhile. The nap
// itself is as long as it was. Empty where it does not come to that.
std::optional<SteppedLoop> StepFromNap(Clock& clock, const StepTimes& times, Followed* followed) {
  const NapPlace& nap = *times.nap;
  {
    auto stop = StopInNap(clock, followed->thread.tid, nap);
    if (stop == nullptr || !stop->FinishCall(clock.Monotonic() + times.longest_nap) ||
        !CopyMoment(*stop, followed))
      return std::nullopt;
    stop->NoteCalls(kManyCalls, clock.Monotonic() + kLongestNotes, followed->source,
                    &followed->moment);
    LetGo(std::move(stop), followed);
  }
  SteppedLoop loop;
  LoopMemory memory(followed->read);
  memory.KeepLoads();
  StepLimits limits;
  limits.most = kMostStepsInAll;
  limits.until = clock.Monotonic() + times.usual;
  if (!followed->twin->BeAt(followed->moment)) return std::nullopt;
  const StepTrace trace = followed->twin->Step(limits, memory);
  if (trace.states.size() < 2 || !trace.wants_kernel || !memory.is_understood()) return loop;
  loop.steps = trace.states.size() - 1;
  loop.stack_pointer = nap.stack_pointer_back;
  const auto round = RoundOf(trace, nap, memory.examiner());
  if (!round) return loop;
  const auto [begin, end] = *round;
  std::vector<StepState> states(trace.states.begin() + static_cast<long>(begin),
                                trace.states.begin() + static_cast<long>(end) + 1);
  const bool is_call = nap.back == nap.pc;
  StepState after = AfterNap(states.back(), states.front());
  if (is_call) {  // the kernel leaves the others
    after = states.back();
    after.pc = states.front().pc;
    for (const size_t each : {0, 2, 11}) after.general[each] = states.front().general[each];
  }
  states.push_back(after);
  const LoopSlice slice = SliceLoop(states, begin, memory.stores(), followed->thread.clock_code,
                                    true, memory.examiner());
  if (!slice.closes || !CollectCalls(trace, begin, &loop.calls)) return loop;
  TellRound(trace, begin, end, slice, followed->thread.stack, memory, followed->read, &loop);
  loop.found = HashOfParts(slice.polls, [&](uint64_t part) { return memory.Loaded(part); });
  return loop;
}

std::vector<SteppedLoop> FollowNapHere(Clock& clock, const SteppedThread& thread,
                                       const StepTimes& times) {
  Followed followed(thread);
  if (!MakeTwin(clock, &followed)) return {};
  Rehearse(followed);
  std::optional<SteppedLoop> loop;
  for (int moments = 0; moments < kMostMoments; ++moments) {
    loop = StepFromNap(clock, times, &followed);
    const std::set<uint64_t>& late = followed.twin->late_pages();
    if (!loop || loop->period > 0 || (late.empty() && !followed.twin->wants_calls())) break;
    followed.pages.insert(late.begin(), late.end());
  }
  if (!loop) return {};
  loop->held = followed.held;
  loop->kernel_words = followed.moment.kernel_words;
  return {std::move(*loop)};
}

template <typename T>
void Append(const std::vector<T>& list, size_t count, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(list.data()), count * sizeof(T));
}

void Send(int fd, const SteppedLoop& loop) {
  const LoopAccess& access = loop.access;
  const Report report = {loop.steps,
                         loop.period,
                         loop.stack_pointer,
                         loop.found,
                         loop.held,
                         loop.kernel_words,
                         access.begin,
                         access.end,
                         std::min(access.reads.size(), kMostSentReads),
                         loop.calls.size(),
                         std::min(loop.flickers.size(), kMostSentFlickers),
                         loop.flickers.size() > kMostSentFlickers,
                         loop.changes_memory,
                         loop.in_part,
                         access.understood,
                         access.calls_kernel,
                         access.yields,
                         access.reads_clock};
  std::string bytes(reinterpret_cast<const char*>(&report), sizeof report);
  Append(access.reads, report.reads, &bytes);
  Append(loop.calls, report.calls, &bytes);
  Append(loop.flickers, report.flickers, &bytes);
  // Where nobody listens any more, nobody misses it.
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = write(fd, bytes.data() + sent, bytes.size() - sent);
    if (now <= 0) return;
    sent += static_cast<size_t>(now);
  }
}

// A twin's memory is a file in memory, to which the limit of files applies.
bool MayMakeTwins() {
  rlimit limit = {};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_max == RLIM_INFINITY ||
         limit.rlim_max >= ThreadTwin::kFileBytes;
}

// As far as it may.
void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Never returns. No signal but SIGKILL ends it while it holds a thread: nor one that was meant for
// the group, or for all of this name.
[[noreturn]] void BeHelper(Clock& clock, int fd, const std::vector<SteppedThread>& threads,
                           const StepTimes& times) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  RaiseFileLimit();
  (void)setpgid(0, 0);
  prctl(PR_SET_NAME, "stepper");
  // Whoever waits for the end of this program's output is not to wait for this process.
  constexpr int kAnswers = 0;
  dup2(fd, kAnswers);
  close(STDOUT_FILENO);
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
  const std::vector<SteppedLoop> loops =
      times.nap ? FollowNapHere(clock, threads[0], times) : StepHere(clock, threads, times);
  for (const SteppedLoop& loop : loops) Send(kAnswers, loop);
  _exit(0);
}

std::string ReadUntil(Clock& clock, int fd, TimeNs end) {
  std::string bytes;
  char buffer[4096];
  for (;;) {
    pollfd file = {fd, POLLIN, 0};
    const TimeNs left = end - clock.Monotonic();
    if (left <= 0) return {};
    const int ready = poll(&file, 1, static_cast<int>(left / kMillisecond) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got <= 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
  }
}

// What is left of `bytes` begins with `count` of them. memcpy takes no null, not even of no bytes.
template <typename T>
void TakeFrom(std::string_view* bytes, uint64_t count, std::vector<T>* list) {
  list->resize(count);
  if (count > 0) std::memcpy(list->data(), bytes->data(), count * sizeof(T));
  bytes->remove_prefix(count * sizeof(T));
}

// Takes what is of one thread from the front of `bytes`. False: that cannot be.
bool TakeLoop(std::string_view* bytes, SteppedLoop* loop) {
  Report report = {};
  if (bytes->size() < sizeof report) return false;
  std::memcpy(&report, bytes->data(), sizeof report);
  bytes->remove_prefix(sizeof report);
  if (report.reads > kMostSentReads || report.calls > kMostSentCalls ||
      report.flickers > kMostSentFlickers ||
      bytes->size() < report.reads * sizeof(LoopAccess::Range) +
                          report.calls * sizeof(SteppedLoop::Call) +
                          report.flickers * sizeof(uint64_t) ||
      report.steps == 0)
    return false;
  loop->steps = report.steps;
  loop->period = report.period;
  loop->stack_pointer = report.stack_pointer;
  loop->held = report.held;
  loop->kernel_words = report.kernel_words;
  loop->changes_memory = report.changes_memory;
  loop->flickers_cut = report.flickers_cut;
  loop->in_part = report.in_part;
  loop->found = report.found;
  loop->access.begin = report.begin;
  loop->access.end = report.end;
  loop->access.understood = report.understood;
  loop->access.calls_kernel = report.calls_kernel;
  loop->access.yields = report.yields;
  loop->access.reads_clock = report.reads_clock;
  TakeFrom(bytes, report.reads, &loop->access.reads);
  TakeFrom(bytes, report.calls, &loop->calls);
  TakeFrom(bytes, report.flickers, &loop->flickers);
  return true;
}

Result<std::vector<SteppedLoop>> Understand(std::string_view bytes,
                                            const std::vector<SteppedThread>& threads) {
  std::vector<SteppedLoop> loops;
  for (const SteppedThread& thread : threads) {
    if (TakeLoop(&bytes, &loops.emplace_back())) continue;
    const std::string why = MayMakeTwins()
                                ? "nothing came of its steps"
                                : fmt::format(
                                      "hangscope needs a file of {} in memory for that, and its "
                                      "limit (ulimit -f) is lower",
                                      FormatSize(ThreadTwin::kFileBytes));
    return Status::Io(
        fmt::format("whether thread {} goes in circles was not seen: {}", thread.tid, why));
  }
  return loops;
}

}  // namespace

uint64_t HashOfParts(const std::vector<uint64_t>& parts,
                     const std::function<std::optional<uint32_t>(uint64_t)>& value) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
  uint64_t hash = 0;
  for (const uint64_t part : parts) {
    const auto known = value(part);
    hash = (hash ^ (known ? *known : kFactor)) * kFactor + part;
    hash ^= hash >> 29;
  }
  return hash;
}

Result<std::vector<SteppedLoop>> StepInHelper(Clock& clock,
                                              const std::vector<SteppedThread>& threads,
                                              const StepTimes& times) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "make", "a pipe");
  const pid_t helper = fork();
  if (helper == 0) BeHelper(clock, ends[1], threads, times);
  close(ends[1]);
  if (helper < 0) {
    close(ends[0]);
    return Status::FromErrno(errno, "start", "the process that steps");
  }
  const auto count = static_cast<TimeNs>(threads.size());
  const TimeNs longest = 2 * (times.usual * count + times.longest) + 2 * times.longest_nap +
                         kLongestWaitForHelper + kLongestNotes * count;
  const std::string bytes = ReadUntil(clock, ends[0], clock.Monotonic() + longest);
  close(ends[0]);
  // It is never killed: it may have a thread in its hands. One that is late is left to init.
  for (int tries = 0; tries < 100 && waitpid(helper, nullptr, WNOHANG) == 0; ++tries)
    clock.Sleep(kMillisecond);
  return Understand(bytes, threads);
}

}  // namespace hangscope
