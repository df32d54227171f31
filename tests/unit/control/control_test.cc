// The control socket: what is said, by whom, and who is hung up on.
#include "control/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>

#include "control/control_client.h"
#include "control/recorder_table.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "snapshot/snapshot_syncer.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

TEST(ControlProtocol, RequestSurvivesTheWay) {
  ControlRequest request;
  request.command = ControlRequest::Command::kSnap;
  request.since_last = true;
  auto parsed = ParseRequest(RequestLine(request));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->command, ControlRequest::Command::kSnap);
  EXPECT_TRUE(parsed->since_last);
  EXPECT_FALSE(parsed->now);
  EXPECT_EQ(ParseRequest(RequestLine({}))->command, ControlRequest::Command::kStatus);
}

TEST(ControlProtocol, UnknownFieldsAreIgnoredAndWrongTypesAreAbsent) {
  EXPECT_TRUE(ParseRequest(R"({"version":1,"command":"status","colour":[1,{}]})").ok());
  auto request = ParseRequest(R"({"version":1,"command":"snap","now":"yes"})");
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(request->now);
}

TEST(ControlProtocol, RefusalsSayWhy) {
  for (const auto& [line, why] : std::map<std::string, std::string>{
           {"", "no JSON object"},
           {"snap", "no JSON object"},
           {"[1]", "no JSON object"},
           {"{", "no JSON object"},
           {"{}", "no version"},
           {R"({"version":2,"command":"snap"})", "version 2; this hangscope speaks 1"},
           {R"({"version":1})", "unknown command ''"},
           {R"({"version":1,"command":"stop"})", "unknown command 'stop'"},
           {std::string(2000, '['), "no JSON object"},
           {"\xff\xfe", "no JSON object"}}) {
    auto request = ParseRequest(line);
    ASSERT_FALSE(request.ok()) << line;
    EXPECT_NE(request.status().message().find(why), std::string::npos)
        << request.status().message();
  }
}

RecorderStatus SomeStatus() {
  RecorderStatus status;
  status.pid = 100;
  status.child_pid = 101;
  status.name = "fw";
  status.prefix = "/tmp/trace/fw";
  status.rings = {"/tmp/trace/fw.stdout", "/tmp/trace/fw.stderr"};
  status.command = {"qemu", "\xff"};
  status.age = 41200 * kMillisecond;
  status.total_bytes = 5 << 20;
  status.bytes_per_second = 56.1e6;
  status.state = "looping";
  status.confidence = "likely";
  status.hang = true;
  status.summary = "looping, 3 of 3 cores spin";
  status.snapshots = 2;
  return status;
}

TEST(ControlProtocol, StatusSurvivesTheWay) {
  auto status = ParseStatusReply(StatusReply(SomeStatus()));
  ASSERT_TRUE(status.ok()) << status.status().message();
  EXPECT_EQ(status->child_pid, 101);
  EXPECT_EQ(status->rings.size(), 2u);
  EXPECT_EQ(status->age, 41200 * kMillisecond);
  EXPECT_TRUE(status->hang);
  EXPECT_EQ(status->summary, "looping, 3 of 3 cores spin");
  EXPECT_TRUE(status->last_snapshot.empty());
}

TEST(ControlProtocol, FailureIsAStatus) {
  EXPECT_EQ(*ParseSnapReply(SnapReply("/a/b")), "/a/b");
  EXPECT_EQ(ParseSnapReply(FailedReply("no room")).status().message(), "no room");
  EXPECT_FALSE(ParseSnapReply(R"({"version":1,"ok":true})").ok());
  EXPECT_FALSE(ParseStatusReply("garbage").ok());
}

TEST(RecorderTable, AlignsAndFits) {
  RecorderStatus silent;
  silent.pid = 77777;
  silent.answered = false;
  EXPECT_EQ(RecorderTable({SomeStatus(), silent}, 0),
            "  PID  CHILD  NAME     AGE     BYTES       RATE  SNAPSHOTS  STATE\n"
            "  100    101  fw    41.2 s  5.00 MiB  56.1 MB/s          2  HANG: looping, 3 of 3 "
            "cores spin\n"
            "77777      -  -          -         -          -          -  does not answer\n");
  const std::string cut = RecorderTable({SomeStatus()}, 70);
  EXPECT_NE(cut.find("HANG: loopi…\n"), std::string::npos) << cut;
}

TEST(RecorderTable, WhatARecorderSaysReachesNoTerminalAsItIs) {
  RecorderStatus evil = SomeStatus();
  evil.name = "fw\x1b]0;OWNED\a";
  evil.summary = "a\nline \x1b[2J";
  const std::string table = RecorderTable({evil}, 0);
  EXPECT_NE(table.find("fw\\x1b]0;OWNED"), std::string::npos) << table;
  EXPECT_NE(table.find("a\\nline \\x1b[2J"), std::string::npos) << table;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
}

TEST(RecorderJson, IsOneObject) {
  const Json json = Json::parse(RecorderJson(SomeStatus()));
  EXPECT_EQ(json["type"], "recorder");
  EXPECT_EQ(json["child_pid"], 101);
  EXPECT_EQ(json["elapsed_s"], 41.2);
  EXPECT_EQ(json["last_snapshot"], nullptr);
}

// A server in a folder of its own, and clients that do what a test says.
class ControlServerTest : public ::testing::Test {
 protected:
  ControlServerTest() {
    char name[] = "/tmp/hangscope-control-XXXXXX";  // mkdtemp(3) fills in what makes it unique
    parent_ = mkdtemp(name);
    folder_ = parent_ + "/hangscope";
  }
  ~ControlServerTest() override {
    server_.reset();
    for (const int fd : clients_) close(fd);
    std::filesystem::remove_all(parent_);
  }
  void Open() {
    auto server = ControlServer::Open(folder_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
  }
  int Connect() {
    auto folder = ControlFolderHandle::Open(folder_, false);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = folder->Address(SocketName(getpid()));
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    clients_.push_back(fd);
    return fd;
  }
  int Say(std::string_view text) {
    const int fd = Connect();
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return fd;
  }
  // "" where the server hung up without a word.
  static std::string Heard(int fd) {
    char buffer[4096];
    const ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    return got < 0 ? "nothing yet" : std::string(buffer, static_cast<size_t>(got));
  }
  bool HasSomethingToDo() {
    pollfd event{server_->event_fd(), POLLIN, 0};
    return poll(&event, 1, 0) == 1;
  }
  std::vector<ControlServer::Call> Poll() {
    auto calls = server_->Poll(clock_.Monotonic());  // accepts
    for (const auto& call : server_->Poll(clock_.Monotonic())) calls.push_back(call);
    return calls;
  }

  FakeClock clock_;
  std::string parent_;
  std::string folder_;
  std::unique_ptr<ControlServer> server_;
  std::vector<int> clients_;
};

TEST_F(ControlServerTest, RequestIsAnsweredWhenItsTimeComes) {
  Open();
  EXPECT_FALSE(HasSomethingToDo());
  const int client = Say(RequestLine({}) + "\n");
  EXPECT_TRUE(HasSomethingToDo());
  const auto calls = Poll();
  ASSERT_EQ(calls.size(), 1u);
  clock_.Advance(3600 * kSecond);
  EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(Heard(client), "nothing yet");
  server_->Answer(calls[0].client, "{}");
  EXPECT_EQ(Heard(client), "{}\n");
  EXPECT_EQ(Heard(client), "");
}

TEST_F(ControlServerTest, RequestMayComeInPieces) {
  Open();
  const int client = Say(R"({"version":1,"comm)");
  EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(write(client, "and\":\"snap\"}\n", 13), 13);
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(ControlServerTest, SlowAndSilentClientsAreHungUpOn) {
  Open();
  const int silent = Connect();
  const int slow = Say("{");
  Poll();
  clock_.Advance(1900 * kMillisecond);
  EXPECT_EQ(write(slow, "\"", 1), 1);
  Poll();
  EXPECT_EQ(Heard(silent), "nothing yet");
  clock_.Advance(200 * kMillisecond);
  Poll();
  EXPECT_EQ(Heard(silent), "");
  EXPECT_EQ(Heard(slow), "");
}

TEST_F(ControlServerTest, EndlessRequestIsRefused) {
  Open();
  const int client = Say(std::string(60000, 'x'));
  Poll();
  EXPECT_NE(Heard(client).find("too long"), std::string::npos);
}

TEST_F(ControlServerTest, ManyClientsDoNotKeepTheOthersOut) {
  Open();
  for (int i = 0; i < 40; ++i) {
    Connect();
    Poll();
  }
  EXPECT_NE(Heard(clients_.back()).find("too many"), std::string::npos);
  clock_.Advance(3 * kSecond);
  Poll();
  Say(RequestLine({}) + "\n");
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(ControlServerTest, ClientThatGoesAfterItsRequestLeavesNothingToDo) {
  Open();
  const int client = Say(RequestLine({}) + "\nand more");
  const auto calls = Poll();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(write(client, "and more", 8), 8);
  EXPECT_FALSE(HasSomethingToDo());  // else the recorder's loop would spin
  clients_.clear();
  close(client);
  Poll();
  EXPECT_FALSE(HasSomethingToDo());
  server_->Answer(calls[0].client, "{}");
}

TEST_F(ControlServerTest, ClientThatOnlyEndsItsSideIsStillAnswered) {
  Open();
  const int client = Say(RequestLine({}) + "\n");
  shutdown(client, SHUT_WR);
  const auto calls = Poll();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_FALSE(HasSomethingToDo());
  server_->Answer(calls[0].client, "{}");
  EXPECT_EQ(Heard(client), "{}\n");
}

TEST_F(ControlServerTest, FolderIsPrivateAndTheSocketGoesWithTheServer) {
  Open();
  struct stat info {};
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(ControlFolderHandle::Open(folder_, false)->Pids(), std::vector<int>{getpid()});
  server_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ControlServerTest, FolderThatOthersMayUseIsNotUsed) {
  ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0750), 0);
  auto server = ControlServer::Open(folder_);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.status().message().find("open to other users (mode 750)"), std::string::npos);
  const LiveRecorders recorders = FindRecorders(folder_, kSecond);
  EXPECT_NE(recorders.warning.find("open to other users"), std::string::npos);
}

// Under root's own name in /tmp, and anywhere else: whoever owns the folder may put another socket
// in the place of ours.
TEST_F(ControlServerTest, AnotherUsersFolderIsNotUsedByRootEither) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  auto server = ControlServer::Open(folder_);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.status().message().find("belongs to another user"), std::string::npos);
  EXPECT_NE(FindRecorders(folder_, kSecond).warning.find("belongs to another user"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ControlServerTest, RootTrustsInAnotherUsersFolderOnlyThatUserAndRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const std::string runtime = folder_ + "-runtime";  // as that user's XDG_RUNTIME_DIR
  ASSERT_EQ(mkdir(runtime.c_str(), 0700), 0);
  ASSERT_EQ(mkdir((runtime + "/hangscope").c_str(), 0700), 0);
  for (const std::string& path : {runtime, runtime + "/hangscope"})
    EXPECT_EQ(chown(path.c_str(), 65534, 65534), 0);
  const auto folder = ControlFolderHandle::Open(runtime + "/hangscope", false);
  EXPECT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_TRUE(folder.ok() && folder->owner() == 65534u);
  EXPECT_FALSE(ControlFolderHandle::Open(runtime + "/hangscope", true).ok());
  std::filesystem::remove_all(runtime);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_TRUE(PeerIsTrusted(ends[0], 65534)) << "the peer is root";
  close(ends[0]);
  close(ends[1]);
  // The peer of this pair is another user still.
  ASSERT_EQ(seteuid(65534), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_TRUE(PeerIsTrusted(ends[0], 65534));
  EXPECT_FALSE(PeerIsTrusted(ends[0], 0));
  EXPECT_FALSE(PeerIsTrusted(ends[0], 1));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ControlServerTest, SocketIsForThisUserWhateverTheUmask) {
  const mode_t before = umask(0);
  Open();
  umask(before);
  struct stat info {};
  ASSERT_EQ(stat((folder_ + "/" + SocketName(getpid())).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(ControlServerTest, LinkIsNoFolder) {
  ASSERT_EQ(symlink("/tmp", folder_.c_str()), 0);
  auto server = ControlServer::Open(folder_);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.status().message().find("is no folder"), std::string::npos);
}

TEST_F(ControlServerTest, PathOfAnyLengthWillDo) {
  for (int i = 0; i < 5; ++i) {
    folder_ =
        folder_.substr(0, folder_.rfind('/')) + "/" + std::string(60, static_cast<char>('a' + i));
    ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
    folder_ += "/hangscope";
  }
  Open();
  Say(RequestLine({}) + "\n");
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(ControlServerTest, SocketOfADeadRecorderIsRemovedOnceLookedAt) {
  ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
  {
    auto folder = ControlFolderHandle::Open(folder_, false);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // a process lives, but not this recorder
    const sockaddr_un address = folder->Address("1.sock");
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(fd);
  }
  EXPECT_TRUE(FindRecorders(folder_, kSecond).found.empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ControlServerTest, RecorderThatDoesNotAnswerIsListedAfterAWhile) {
  Open();
  const LiveRecorders recorders = FindRecorders(folder_, 100 * kMillisecond);
  ASSERT_EQ(recorders.found.size(), 1u);
  EXPECT_FALSE(recorders.found[0].status.answered);
  EXPECT_EQ(recorders.found[0].status.pid, getpid());
}

TEST_F(ControlServerTest, ClientAndServerUnderstandEachOther) {
  Open();
  auto asked =
      std::async(std::launch::async, [this] { return FindRecorders(folder_, 20 * kSecond); });
  std::vector<ControlServer::Call> calls;
  while (calls.empty()) calls = Poll();
  server_->Answer(calls[0].client, StatusReply(SomeStatus()));
  const LiveRecorders recorders = asked.get();
  ASSERT_EQ(recorders.found.size(), 1u);
  EXPECT_EQ(recorders.found[0].status.name, "fw");

  auto snap = std::async(std::launch::async,
                         [&] { return AskForSnapshot(recorders.found[0], true, false); });
  for (calls.clear(); calls.empty();) calls = Poll();
  EXPECT_TRUE(calls[0].request.now);
  server_->Answer(calls[0].client, SnapReply("/s"));
  EXPECT_EQ(*snap.get(), "/s");
}

LiveRecorder Recorder(int pid, int child, const std::string& prefix) {
  LiveRecorder recorder;
  recorder.status.pid = pid;
  recorder.status.child_pid = child;
  recorder.status.prefix = prefix;
  recorder.status.name = NameOf(prefix);
  recorder.status.rings = {prefix + ".stdout", prefix + ".stderr"};
  return recorder;
}

TEST(RecordersMatching, KnowsWhatPeopleCallARecorder) {
  const std::vector<LiveRecorder> all = {Recorder(10, 11, "/w/trace/fw"),
                                         Recorder(11, 12, "/w/trace/boot"),
                                         Recorder(13, 14, "/v/fw")};
  const auto pids = [&](const std::string& target) {
    std::vector<int> found;
    for (const LiveRecorder& recorder : RecordersMatching(all, target))
      found.push_back(recorder.status.pid);
    return found;
  };
  EXPECT_EQ(pids("10"), std::vector<int>{10});
  EXPECT_EQ(pids("11"), std::vector<int>{11});  // the recorder, before the other one's child
  EXPECT_EQ(pids("14"), std::vector<int>{13});
  EXPECT_EQ(pids("boot"), std::vector<int>{11});
  EXPECT_EQ(pids("fw"), (std::vector<int>{10, 13}));
  EXPECT_EQ(pids("/w/trace"), (std::vector<int>{10, 11}));
  EXPECT_EQ(pids("/w/trace/"), (std::vector<int>{10, 11}));
  EXPECT_EQ(pids("/w/../w/trace/fw"), std::vector<int>{10});
  EXPECT_EQ(pids("/w/trace/fw.stdout"), std::vector<int>{10});
  EXPECT_EQ(pids("/w/trace/fw.stdout.7"), std::vector<int>{10});
  EXPECT_EQ(pids("/v"), std::vector<int>{13});
  EXPECT_EQ(pids("nobody"), std::vector<int>{});
  EXPECT_EQ(pids(""), std::vector<int>{});
}

TEST(SnapshotSyncer, IsDurableOnceFilesAndFoldersAreSynced) {
  FakeFileSystem disk;
  ASSERT_TRUE(disk.MakeFolders("dir/s").ok());
  ASSERT_TRUE(WriteWholeFile(disk, "dir/s/manifest.json", "{}").ok());
  ASSERT_TRUE(WriteWholeFile(disk, "dir/s/stdout.0", "x").ok());
  SnapshotSyncer syncer(disk);
  syncer.Sync("dir/s", 7);
  syncer.Finish();
  const auto done = syncer.DrainDone();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].ticket, 7);
  EXPECT_TRUE(done[0].status.ok());
  EXPECT_EQ(disk.synced,
            (std::vector<std::string>{"dir/s/manifest.json", "dir/s/stdout.0", "dir/s", "dir"}));
}

}  // namespace
}  // namespace hangscope
