#include "process/step_helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

#include "proc/proc_folder.h"
#include "proc/thread_stop.h"

namespace hangscope {
namespace {

constexpr size_t kMostStepsInAll = 100'000;
constexpr size_t kMostStepsTwice = 2000;  // a longer circle is gone around once where that will do
constexpr TimeNs kLongestWaitForHelper = kSecond;  // besides its steps; the machine may be busy
constexpr int kTimesUsual = 3;                     // where the machine is too busy for enough steps
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

// A poll that was to come back at once is begun again after a stop, and so is a sleep, which is not
// to be cut into pieces. Null: it sleeps, or does not stop.
std::unique_ptr<ThreadStop> StopBetweenCalls(Clock& clock, int tid) {
  constexpr int kTries = 30;
  const ProcFolder proc("/proc");
  for (int tries = 0; tries < kTries; ++tries) {
    auto stop = ThreadStop::Stop(clock, tid, kLongestWaitForStop);
    if (!stop.ok() || !(*stop)->Registers().ok()) return nullptr;
    if ((*stop)->interrupted_call() < 0) return std::move(*stop);
    stop->reset();
    clock.Sleep(kMillisecond / 5);
    const auto stat = proc.Stat(tid);
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

// What a thread did while it was held, and what is found out of that afterwards.
struct HeldSteps {
  explicit HeldSteps(const ReadMemory& read) : memory(read) {}
  LoopMemory memory;
  StepTrace trace;
  SteppedLoop loop;
  bool may_be_round = false;
};

void StepHeld(Clock& clock, ThreadStop& stop, const SteppedThread& thread, TimeNs usual, TimeNs end,
              HeldSteps* held) {
  LoopMemory& memory = held->memory;
  SteppedLoop& loop = held->loop;
  const TimeNs start = clock.Monotonic();
  end = std::max(end, start + usual);
  StepLimits limits;
  constexpr TimeNs kFirstLook = kMillisecond / 2;
  limits.until = start + std::min(kFirstLook, usual);
  limits.most = kMostStepsInAll;
  // Where vectors count, the circle is gone around twice, and must close in half of the time.
  std::optional<TimeNs> may_be_longer;
  limits.longer = [&](const StepTrace& so_far) {
    // Often enough is seen much sooner. Not that a loop looks for something: what it looks for may
    // come yet, as a lock does that is given back.
    if (const TimeNs now = clock.Monotonic(); now < start + usual) {
      const bool is_enough = memory.is_understood() && Works(memory, thread.stack);
      return is_enough ? TimeNs{0} : std::min(start + usual, now + (now - start));
    }
    // On a busy machine it may hardly have begun.
    constexpr size_t kFewSteps = 1000;
    const TimeNs soon = start + kTimesUsual * usual;
    if (may_be_longer) return *may_be_longer;
    if (memory.is_understood() && so_far.states.size() < kFewSteps && clock.Monotonic() < soon)
      return soon;
    may_be_longer = 0;
    if (!memory.is_understood() || !IsInALoop(so_far)) return TimeNs{0};
    LoopSlice slice;
    const bool is_steady = FindSteadyRound(so_far.states, memory.stores(), thread.clock_code,
                                           memory.examiner(), &slice)
                               .has_value();
    const bool may_come_back =
        !is_steady && (!memory.Counts() || (!slice.registers.empty() && !memory.CountsIn(slice)));
    if (may_come_back) may_be_longer = memory.uses_vectors() ? start + (end - start) / 2 : end;
    return *may_be_longer;
  };
  held->trace = stop.Step(limits, thread.read, memory);
  const StepTrace& trace = held->trace;
  if (trace.states.size() < 2) return;
  loop.steps = trace.states.size() - 1;
  loop.stack_pointer = trace.states.back().general[ThreadRegisters::kStackPointer];
  const size_t looked_at = trace.period > 0 ? trace.period : loop.steps;
  const size_t first = loop.steps - looked_at;
  loop.access = ExamineSteps(std::span(trace.states).subspan(first, looked_at), thread.read);
  // What it may have changed before it came into the circle counts as part of that, too.
  loop.flickers = memory.TakeChanged();
  // The same again, with an eye on what the registers that are no part of a state hold, and on
  // whether the calls find the same.
  const bool is_proven = trace.period > kMostStepsTwice && memory.is_understood() &&
                         !loop.access.uses_vectors && trace.calls.empty();
  const TimeNs until = std::max(end, clock.Monotonic() + usual);
  if (trace.period > 0 && (is_proven || stop.StepsBackInto(trace, until, thread.read, memory))) {
    loop.period = trace.period;
    loop.changes_memory = !memory.is_understood();
    if (!is_proven) loop.flickers = memory.TakeChanged();
  }
  // Who waits so for a lock that others have, and give back, is none that spins.
  const bool is_moved = memory.others_write() || FoundAnotherWord(trace, thread.read);
  if (is_moved) loop.period = 0;
  const bool all_calls = CollectCalls(trace, first, &loop.calls);
  loop.access.calls_kernel = loop.access.calls_kernel || trace.wants_kernel || !all_calls;
  if (loop.period == 0)
    loop.changes_memory = !loop.access.understood || !loop.access.writes.empty();
  held->may_be_round =
      loop.period == 0 && !is_moved && !trace.wants_kernel && all_calls && memory.is_understood();
}

void FindRound(const SteppedThread& thread, HeldSteps* held) {
  if (!held->may_be_round) return;
  LoopMemory& memory = held->memory;
  const StepTrace& trace = held->trace;
  LoopSlice slice;
  const auto round =
      FindSteadyRound(trace.states, memory.stores(), thread.clock_code, memory.examiner(), &slice);
  if (round && LooksForSomething(slice, thread.stack))
    TellRound(trace, *round, *round + slice.steps, slice, thread.stack, memory, thread.read,
              &held->loop);
}

// Empty where one of them does not stop.
std::vector<SteppedLoop> StepHere(Clock& clock, const std::vector<SteppedThread>& threads,
                                  const StepTimes& times) {
  std::vector<std::unique_ptr<HeldSteps>> held;
  const TimeNs begin = clock.Monotonic();
  {
    std::vector<std::unique_ptr<ThreadStop>> stops;
    for (const SteppedThread& thread : threads) {
      stops.push_back(StopBetweenCalls(clock, thread.tid));
      if (stops.back() == nullptr) return {};
    }
    const TimeNs end = clock.Monotonic() + std::max(times.longest, times.usual);
    for (size_t i = 0; i < threads.size(); ++i) {
      held.push_back(std::make_unique<HeldSteps>(threads[i].read));
      StepHeld(clock, *stops[i], threads[i], times.usual, end, held.back().get());
    }
  }
  const TimeNs for_so_long = clock.Monotonic() - begin;
  std::vector<SteppedLoop> loops;
  for (size_t i = 0; i < threads.size(); ++i) {
    FindRound(threads[i], held[i].get());
    loops.push_back(std::move(held[i]->loop));
    loops.back().held = for_so_long;
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

// Waits for the end of its nap, and follows it to the next. The nap itself is as long as it was.
SteppedLoop StepFromNap(Clock& clock, const SteppedThread& thread, const StepTimes& times) {
  const ReadMemory& read = thread.read;
  SteppedLoop loop;
  LoopMemory memory(read);
  memory.KeepLoads();
  StepTrace trace;
  {
    auto stop = StopInNap(clock, thread.tid, *times.nap);
    if (stop == nullptr || !stop->FinishCall(clock.Monotonic() + times.longest_nap)) return loop;
    const TimeNs begin = clock.Monotonic();
    StepLimits limits;
    limits.until = begin + kTimesUsual * times.usual;
    limits.most = kMostStepsInAll;
    trace = stop->Step(limits, read, memory);
    stop.reset();
    loop.held = clock.Monotonic() - begin;
  }
  if (trace.states.size() < 2 || !trace.wants_kernel || !memory.is_understood()) return loop;
  loop.steps = trace.states.size() - 1;
  loop.stack_pointer = times.nap->stack_pointer_back;
  const auto round = RoundOf(trace, *times.nap, memory.examiner());
  if (!round) return loop;
  const auto [begin, end] = *round;
  std::vector<StepState> states(trace.states.begin() + static_cast<long>(begin),
                                trace.states.begin() + static_cast<long>(end) + 1);
  const bool is_call = times.nap->back == times.nap->pc;
  StepState after = AfterNap(states.back(), states.front());
  if (is_call) {  // the kernel leaves the others
    after = states.back();
    after.pc = states.front().pc;
    for (const size_t each : {0, 2, 11}) after.general[each] = states.front().general[each];
  }
  states.push_back(after);
  const LoopSlice slice =
      SliceLoop(states, begin, memory.stores(), thread.clock_code, true, memory.examiner());
  if (!slice.closes || !CollectCalls(trace, begin, &loop.calls)) return loop;
  TellRound(trace, begin, end, slice, thread.stack, memory, read, &loop);
  loop.found = HashOfParts(slice.polls, [&](uint64_t part) { return memory.Loaded(part); });
  return loop;
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

// Never returns. No signal but SIGKILL may end it while a thread has its trap flag on: nor may one
// that was meant for the group, or for all of this name.
[[noreturn]] void BeHelper(Clock& clock, int fd, const std::vector<SteppedThread>& threads,
                           const StepTimes& times) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  (void)setpgid(0, 0);
  prctl(PR_SET_NAME, "stepper");
  const std::vector<SteppedLoop> loops = times.nap
                                             ? std::vector{StepFromNap(clock, threads[0], times)}
                                             : StepHere(clock, threads, times);
  for (const SteppedLoop& loop : loops) Send(fd, loop);
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
    if (!TakeLoop(&bytes, &loops.emplace_back()))
      return Status::Io(fmt::format(
          "whether thread {} goes in circles was not seen: nothing came of its steps", thread.tid));
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
  const TimeNs longest =
      std::max(4 * times.usual * count, times.longest) + times.longest_nap + kLongestWaitForHelper;
  const std::string bytes = ReadUntil(clock, ends[0], clock.Monotonic() + longest);
  close(ends[0]);
  // It is never killed: it may have a thread in its hands. One that is late is left to init.
  for (int tries = 0; tries < 100 && waitpid(helper, nullptr, WNOHANG) == 0; ++tries)
    clock.Sleep(kMillisecond);
  return Understand(bytes, threads);
}

}  // namespace hangscope
