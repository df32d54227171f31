// Processes told in a line, so that a test reads as a story: looks at them that are written down by
// hand.
#ifndef HANGSCOPE_TESTS_UNIT_PROCESS_PROCESS_STORY_H
#define HANGSCOPE_TESTS_UNIT_PROCESS_PROCESS_STORY_H

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "process/process_verdict.h"
#include "process/process_words.h"
#include "process/signal_sets.h"

namespace hangscope {

constexpr int kFutex = 202;
constexpr int kReadCall = 0;
constexpr uint64_t kTerm = SignalBit(SIGTERM);
constexpr uint64_t kChild = SignalBit(SIGCHLD);

// One process or more; threads are made asleep in the same wait in both looks.
// What is handed out stays where it is until the next process or thread of its kind is added.
class World {
 public:
  World() { look_.begin = 100 * kSecond, look_.end = look_.begin + kMillisecond; }

  ProcessFacts& Process(int pid, const char* name = "program") {
    look_.processes.push_back({});
    ProcessFacts& process = look_.processes.back();
    process.pid = pid, process.parent = 1, process.name = name,
    process.state = ThreadState::kSleeping;
    return process;
  }
  ThreadFacts& Thread(int pid, int tid, WaitKind kind, const char* name = "") {
    ProcessFacts& process = Of(pid);
    process.threads.push_back({});
    ThreadFacts& thread = process.threads.back();
    thread.pid = pid, thread.tid = tid, thread.name = name, thread.state = ThreadState::kSleeping;
    thread.system_call = kind == WaitKind::kRead ? kReadCall : kFutex;
    thread.wait.kind = kind, thread.wait.address = 0x1000, thread.voluntary_switches = 7;
    thread.since = look_.end - 41 * kSecond;
    return thread;
  }
  ThreadFacts& Locks(int pid, int tid, const char* lock, int owner) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kMutex);
    thread.wait.variable = lock, thread.wait.owner = owner;
    return thread;
  }
  ThreadFacts& Joins(int pid, int tid, int whom) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kJoin);
    thread.wait.thread = whom;
    return thread;
  }
  ThreadFacts& Reads(int pid, int tid, std::vector<int> writers) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kRead);
    WaitFile file;
    file.fd = 3, file.kind = FileKind::kPipe, file.name = "pipe:[1]";
    for (const int writer : writers) file.others.emplace_back(writer, 4);
    thread.wait.files.push_back(file);
    return thread;
  }
  ThreadFacts& Signals(int pid, int tid, const char* condition) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kCondition);
    thread.wait.variable = condition;
    return thread;
  }
  ThreadFacts& Spins(int pid, int tid) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kNone);
    thread.state = ThreadState::kRunning, thread.system_call = -1;
    thread.spin = ThreadFacts::Spin{};
    thread.spin->steps = 5000, thread.spin->period = 2, thread.spin->polls = {0x4010},
    thread.spin->polled_variable = "ready", thread.spin->held_with_others = true;
    return thread;
  }
  ThreadFacts& Stopped(int pid, int tid, ThreadState state = ThreadState::kStopped) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kNone);
    thread.state = state;
    return thread;
  }

  // Two looks, the first of which was `otherwise`.
  ProcessJudgement Judge(const std::function<void(SystemSample*)>& otherwise = nullptr) const {
    SystemSample first = look_;
    first.begin -= 50 * kMillisecond, first.end -= 50 * kMillisecond;
    if (otherwise) otherwise(&first);
    return JudgeProcess({first, look_});
  }
  ProcessJudgement JudgeOnce() const { return JudgeProcess({look_}); }
  const SystemSample& look() const { return look_; }
  void Ask(std::vector<int> pids) { look_.asked = std::move(pids); }
  ProcessFacts& Of(int pid) {
    for (ProcessFacts& process : look_.processes) {
      if (process.pid == pid) return process;
    }
    return Process(pid);
  }

 private:
  SystemSample look_;
};

inline World Abba() {
  World world;
  world.Joins(10, 10, 11);
  world.Locks(10, 11, "lock_b", 12);
  world.Locks(10, 12, "lock_a", 11);
  return world;
}

inline ::testing::AssertionResult IsSilent(const ProcessJudgement& judgement) {
  if (judgement.findings.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << judgement.findings[0].summary << " ("
                                       << ConfidenceName(judgement.findings[0].confidence) << ")";
}

// The only finding.
inline ProcessFinding Only(const ProcessJudgement& judgement) {
  EXPECT_EQ(judgement.findings.size(), 1u);
  for (const ProcessFinding& finding : judgement.findings) SCOPED_TRACE(finding.summary);
  return judgement.findings.empty() ? ProcessFinding{} : judgement.findings[0];
}

// What the only finding says of those it is about.
inline std::vector<std::string> LinesOf(const World& world) {
  return ToldFinding(Only(world.Judge()), world.look()).lines;
}

}  // namespace hangscope

#endif
