// Servers whose threads wait for answers of the server itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FindingKind;

// Process 20 serves, and may have a parent 10 which began it.
class AskingServer {
 public:
  // Reads from a connection that `holders` could accept.
  ThreadFacts& AsksUnaccepted(int pid, std::vector<int> holders) {
    ThreadFacts& thread = world_.Thread(pid, pid, WaitKind::kRead);
    WaitFile file = Connection();
    file.unaccepted = true;
    for (const int holder : holders) file.others.emplace_back(holder, 3);
    thread.wait.files = {file};
    return thread;
  }
  // Reads the answer to a request that lies unread in its own process.
  ThreadFacts& AsksUnread(int pid, int tid, const char* name = "worker-1") {
    ThreadFacts& thread = world_.Thread(pid, tid, WaitKind::kRead, name);
    WaitFile file = Connection();
    file.unread = true;
    file.others = {{pid, 12}};
    thread.wait.files = {file};
    thread.stack = In("Serve");
    return thread;
  }
  ThreadFacts& Accepts(int pid, int tid) {
    ThreadFacts& thread = world_.Thread(pid, tid, WaitKind::kAccept);
    WaitFile file;
    file.fd = 3, file.kind = FileKind::kSocket, file.name = "tcp 127.0.0.1:80";
    file.listening = file.outside = file.others_unknown = true;
    thread.wait.files = {file};
    return thread;
  }
  // Woke half a second ago, and sleeps again.
  ThreadFacts& Naps(int pid, int tid) {
    ThreadFacts& thread = world_.Thread(pid, tid, WaitKind::kTime);
    thread.wait.has_timeout = true;
    thread.since = world_.look().end - kSecond / 2;
    return thread;
  }
  static std::vector<StackFrame> In(const char* function) {
    StackFrame frame;
    frame.function = function, frame.source = "server.cc:7", frame.module = "server";
    return {frame};
  }
  World& world() { return world_; }

 private:
  static WaitFile Connection() {
    WaitFile file;
    file.fd = 11, file.kind = FileKind::kSocket, file.name = "tcp 127.0.0.1:9 - 127.0.0.1:80";
    return file;
  }
  World world_;
};

AskingServer WithParent() {
  AskingServer server;
  server.world().Process(20, "worker").parent = 10;
  server.AsksUnaccepted(20, {10, 20});
  server.world().Process(10, "parent");
  return server;
}

TEST(ProcessSelfCalls, AParentThatWokeAndDidNotAcceptLeavesThatToItsWorkers) {
  AskingServer server = WithParent();
  server.Naps(10, 10);
  const ProcessFinding finding = Only(server.world().Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(20));
  EXPECT_THAT(finding.doubts, Contains(HasSubstr("could be accepted by 10 (")));
}

TEST(ProcessSelfCalls, AParentThatAwaitsItsChildrenWaitsWithThem) {
  AskingServer server = WithParent();
  server.world().Thread(10, 10, WaitKind::kChild).wait.children = {20};
  EXPECT_EQ(Only(server.world().Judge()).kind, Kind::kDeadlock);
}

TEST(ProcessSelfCalls, AParentThatAwaitsSignalsLeavesThatToItsWorkers) {
  AskingServer server = WithParent();
  server.world().Thread(10, 10, WaitKind::kSignal).wait.signals = kTerm;
  EXPECT_EQ(Only(server.world().Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessSelfCalls, AParentThatReadsItsTerminalMayTakeItLater) {
  AskingServer server = WithParent();
  WaitFile terminal;
  terminal.fd = 0, terminal.kind = FileKind::kTerminal, terminal.outside = true;
  ThreadFacts& parent = server.Naps(10, 10);
  parent.wait.kind = WaitKind::kPoll, parent.wait.files = {terminal};
  EXPECT_TRUE(IsSilent(server.world().Judge()));
  server.world().Of(10).threads[0].wait.has_timeout = false;
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

TEST(ProcessSelfCalls, SystemdLeavesConnectionsToAServiceThatItBegan) {
  for (const int fd : {7, 3}) {
    AskingServer server;
    server.world().Process(20, "worker").parent = 1;
    server.AsksUnaccepted(20, {1, 20});
    server.world().Process(1, "systemd");
    server.Accepts(1, 1).wait.kind = WaitKind::kPoll;
    server.world().Of(1).threads[0].wait.files[0].fd = fd;
    const ProcessJudgement judgement = server.world().Judge();
    EXPECT_EQ(judgement.findings.empty(), fd == 3) << "it listens there itself";
  }
}

TEST(ProcessSelfCalls, SignalsGiveNoAnswer) {
  AskingServer server = WithParent();
  server.Naps(10, 10);
  server.world().Of(20).caught_signals = kTerm | SignalBit(SIGUSR1);
  EXPECT_EQ(Only(server.world().Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessSelfCalls, AParentThatTakesConnectionsWillTakeThisOne) {
  AskingServer server = WithParent();
  server.Accepts(10, 10);
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

TEST(ProcessSelfCalls, AParentThatHasNotWokenSinceMayTakeIt) {
  AskingServer server = WithParent();
  server.Naps(10, 10).since = server.world().look().end - 50 * kSecond;
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

TEST(ProcessSelfCalls, AParentThatRunsMayTakeIt) {
  AskingServer server = WithParent();
  server.world().Thread(10, 10, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

TEST(ProcessSelfCalls, AConnectionOfTwoSecondsMayBeAcceptedInAMoment) {
  AskingServer server = WithParent();
  server.Naps(10, 10);
  server.world().Of(20).threads[0].since = server.world().look().end - 2 * kSecond;
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

TEST(ProcessSelfCalls, WhoIsNoParentAndNapsMayTakeItAsAnotherWorker) {
  AskingServer server = WithParent();
  server.world().Of(20).parent = 1;
  server.world().Thread(10, 10, WaitKind::kChild).wait.children = {30};
  server.world().Thread(30, 30, WaitKind::kTime);
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

TEST(ProcessSelfCalls, TwoWorkersThatAskWaitForEachOther) {
  AskingServer server = WithParent();
  server.world().Of(20).threads[0].wait.files[0].others.emplace_back(21, 3);
  server.Naps(10, 10);
  server.world().Process(21, "worker").parent = 10;
  server.AsksUnaccepted(21, {10, 20, 21});
  const ProcessFinding finding = Only(server.world().Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  server.world().Of(21).threads[0].wait = {};
  server.world().Of(21).threads[0].wait.kind = WaitKind::kTime;
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

// Threads 21 and 22 handle requests; 20 takes the connections.
AskingServer WithPool() {
  AskingServer server;
  server.Accepts(20, 20);
  server.AsksUnread(20, 21, "worker-1");
  server.AsksUnread(20, 22, "worker-2");
  return server;
}

TEST(ProcessSelfCalls, APoolWhoseWorkersAllAskItself) {
  AskingServer server = WithPool();
  const ProcessFinding finding = Only(server.world().Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(21, 22));
  EXPECT_EQ(finding.summary,
            "deadlock, 2 of 3 threads wait for answers of their own process, and no other is left "
            "that reads requests");
  EXPECT_THAT(LinesOf(server.world()),
              Contains(HasSubstr("written by itself, which has not read the request")));
}

TEST(ProcessSelfCalls, AWorkerWithoutWorkMayReadTheRequests) {
  AskingServer server = WithPool();
  server.world().Thread(20, 23, WaitKind::kCondition).stack = AskingServer::In("Serve");
  const ProcessFinding finding = Only(server.world().Judge());
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.doubts, Contains(HasSubstr("may read them")));
}

TEST(ProcessSelfCalls, AWorkerThatDoesSomethingElseWillReadTheRequests) {
  for (const WaitKind kind : {WaitKind::kTime, WaitKind::kRead, WaitKind::kNone}) {
    AskingServer server = WithPool();
    ThreadFacts& thread = server.world().Thread(20, 23, kind);
    thread.stack = AskingServer::In("Serve");
    WaitFile file;
    file.fd = 0, file.kind = FileKind::kTerminal, file.outside = true;
    if (kind == WaitKind::kRead) thread.wait.files = {file};
    if (kind == WaitKind::kNone) thread.state = ThreadState::kRunning;
    EXPECT_TRUE(IsSilent(server.world().Judge()));
  }
}

TEST(ProcessSelfCalls, AHandlerThatNapsAgainAndAgainIsNotFreeYet) {
  AskingServer server = WithPool();
  server.Naps(20, 23).stack = AskingServer::In("Serve");
  EXPECT_TRUE(IsSilent(server.world().Judge()));
  server.world().Of(20).threads.back().stack = AskingServer::In("Heartbeat");
  EXPECT_EQ(Only(server.world().Judge()).confidence, Confidence::kLikely);
}

// As "process reaper" of Java does.
TEST(ProcessSelfCalls, ADaemonThatAwaitsAChildReadsNoRequests) {
  AskingServer server = WithPool();
  ThreadFacts& reaper = server.world().Thread(20, 23, WaitKind::kChild);
  reaper.stands_by = true, reaper.wait.children = {30};
  server.world().Thread(30, 30, WaitKind::kTime);
  EXPECT_EQ(Only(server.world().Judge()).confidence, Confidence::kLikely);
  server.world().Of(20).threads.back().stands_by = false;
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

TEST(ProcessSelfCalls, ARequestOfTwoSecondsMayBeReadInAMoment) {
  AskingServer server = WithPool();
  server.world().Of(20).threads[1].since = server.world().look().end - 2 * kSecond;
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

TEST(ProcessSelfCalls, ARequestThatWasReadIsBeingHandled) {
  AskingServer server = WithPool();
  for (ThreadFacts& thread : server.world().Of(20).threads) thread.wait.files[0].unread = false;
  EXPECT_TRUE(IsSilent(server.world().Judge()));
}

// 20 reads the output of curl, 30, which wakes each second.
TEST(ProcessSelfCalls, ACommandThatAsksTheServerWaitsWithIt) {
  AskingServer server;
  server.world().Reads(20, 20, {30});
  ThreadFacts& curl = server.AsksUnaccepted(30, {20});
  StackFrame frame;
  frame.function = "curl_easy_perform";
  curl.wait.kind = WaitKind::kPoll, curl.wait.rechecks = true, curl.since.reset();
  curl.stack = {frame};
  const auto woke = [](SystemSample* first) {
    ThreadFacts& then = first->processes[1].threads[0];
    then.voluntary_switches -= 1;
    then.wait.rechecks = false, then.wait.has_timeout = true;
  };
  const ProcessFinding finding = Only(server.world().Judge(woke));
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, Contains("libcurl may have been given a time limit"));
  ThreadFacts& now = server.world().Of(30).threads[0];
  now.wait.rechecks = false, now.wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(server.world().Judge(woke)));
}

}  // namespace
}  // namespace hangscope
