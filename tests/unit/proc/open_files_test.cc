#include "proc/open_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

namespace hangscope {
namespace {

// A /proc in which process 42 has connections to 10.0.0.2, each from a port of its own.
class ManyConnections : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ / "42/fd");
    std::filesystem::create_directories(root_ / "42/ns");
    std::filesystem::create_directories(root_ / "42/net");
    std::filesystem::create_symlink("net:[1]", root_ / "42/ns/net");
    std::ofstream table(root_ / "42/net/tcp");
    table << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";
    for (int i = 0; i < kConnections; ++i) {
      table << fmt::format("{}: 0100000A:{:04X} 0200000A:0050 01 0:0 00:0 0 0 0 {} 1 0\n", i,
                           1000 + i, 7000 + i);
      std::filesystem::create_symlink(fmt::format("socket:[{}]", 7000 + i),
                                      root_ / fmt::format("42/fd/{}", i));
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static constexpr int kConnections = 5;
  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / fmt::format("hangscope-open-files-{}", getpid());
};

TEST_F(ManyConnections, AreToldOfUpToALimitAndTheRestIsCounted) {
  const ProcFolder proc(root_.string());
  for (const size_t most : {size_t{0}, size_t{3}, size_t{5}, size_t{6}}) {
    OpenFiles files(proc);
    size_t left_out = 99;
    const auto ends = files.RemoteEndsOf({42}, most, &left_out);
    EXPECT_EQ(ends.size(), std::min<size_t>(most, kConnections));
    EXPECT_EQ(ends.size() + left_out, size_t{kConnections});
    if (!ends.empty()) {
      EXPECT_EQ(ends[0].remote, "10.0.0.2:80");
      EXPECT_EQ(ends[0].holders, (std::vector<std::pair<int, int>>{{42, 0}}));
    }
  }
}

// A /proc in which process 42 has both ends of a pipe.
class OpenFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ / "42/fd");
    std::filesystem::create_directories(root_ / "42/fdinfo");
    Open(3, "pipe:[9]", "flags:\t00\n");
    Open(4, "pipe:[9]", "flags:\t01\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Open(int fd, const std::string& what, const std::string& info) {
    std::filesystem::create_symlink(what, root_ / fmt::format("42/fd/{}", fd));
    std::ofstream(root_ / fmt::format("42/fdinfo/{}", fd)) << info;
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / fmt::format("hangscope-open-file-{}", getpid());
  const ProcFolder proc_{root_.string()};
};

// 42 listens with descriptor 5 at a port of all addresses, and connects to it with 6.
TEST_F(OpenFilesTest, WhoConnectsToAPortHereWaitsForThoseWhoListenThere) {
  Open(5, "socket:[50]", "");
  Open(6, "socket:[60]", "");
  std::filesystem::create_directories(root_ / "42/ns");
  std::filesystem::create_directories(root_ / "42/net");
  std::filesystem::create_symlink("net:[1]", root_ / "42/ns/net");
  const auto connects = [&](const char* remote, int not_accepted) {
    std::ofstream(root_ / "42/net/tcp")
        << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        << fmt::format("0: 00000000:0050 00000000:0000 0A 00000000:{:08X} 00:0 0 0 0 50 1 0\n",
                       not_accepted)
        << fmt::format("1: 0100007F:94FA {}:0050 02 00000001:00000000 01:0 0 0 0 60 1 0\n", remote);
    OpenFiles files(proc_);
    WaitFile file = files.Describe(42, 6, false);
    const sockaddr_in address = {AF_INET, 0, {}, {}};
    files.DescribeBacklog(42, {reinterpret_cast<const char*>(&address), sizeof address}, &file);
    return file;
  };
  const WaitFile full = connects("0100007F", 2);
  EXPECT_TRUE(full.backlog);
  EXPECT_EQ(full.name, "tcp 0.0.0.0:80");
  EXPECT_EQ(full.queued, 2u);
  EXPECT_FALSE(full.outside);
  EXPECT_EQ(full.others, (std::vector<std::pair<int, int>>{{42, 5}}));
  EXPECT_FALSE(connects("0100007F", 0).backlog) << "that it is full is not known";
  EXPECT_FALSE(connects("0200000A", 2).backlog) << "another machine";
  EXPECT_TRUE(connects("0200000A", 2).outside);
  EXPECT_FALSE(full.others_unknown);
  Open(7, "anon_inode:[io_uring]", "flags:\t02\n");
  EXPECT_TRUE(connects("0100007F", 2).others_unknown) << "the kernel accepts for a ring";
}

// 42 listens with 5 at all addresses, and reads with 6 from a connection to that, whose other end
// no process has yet.
TEST_F(OpenFilesTest, AConnectionThatNobodyHasAcceptedIsOfThoseWhoListen) {
  Open(5, "socket:[50]", "");
  Open(6, "socket:[60]", "");
  std::filesystem::create_directories(root_ / "42/ns");
  std::filesystem::create_directories(root_ / "42/net");
  std::filesystem::create_symlink("net:[1]", root_ / "42/ns/net");
  const auto reads = [&](const char* other_end) {
    std::ofstream(root_ / "42/net/tcp")
        << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        << "0: 00000000:0050 00000000:0000 0A 00000000:00000001 00:0 0 0 0 50 1 0\n"
        << "1: 0100007F:94FA 0100007F:0050 01 00000000:00000000 00:0 0 0 0 60 1 0\n"
        << other_end;
    return OpenFiles(proc_).Describe(42, 6, true);
  };
  const WaitFile file =
      reads("2: 0100007F:0050 0100007F:94FA 01 00000000:00000000 00:0 0 0 0 0 1 0\n");
  EXPECT_TRUE(file.unaccepted);
  EXPECT_FALSE(file.outside);
  EXPECT_FALSE(file.others_unknown);
  EXPECT_EQ(file.others, (std::vector<std::pair<int, int>>{{42, 5}}));
  EXPECT_FALSE(reads("2: 0100007F:0050 0100007F:94FA 01 0:0 00:0 0 0 0 70 1 0\n").unaccepted);
  const WaitFile closed = reads("2: 0100007F:0050 0100007F:94FA 06 0:0 00:0 0 0 0 0 1 0\n");
  EXPECT_FALSE(closed.unaccepted);
  EXPECT_TRUE(reads("").outside) << "the other end is on another machine";
}

// 42 asks for a lock of the file with 5, and does not wait for it.
TEST_F(OpenFilesTest, WhoHasALockThatWasRefusedIsAskedForByItsFile) {
  const std::string path = (root_ / "data.lock").string();
  std::ofstream(path) << "x";
  Open(5, path, "flags:\t02\n");
  const auto identity = proc_.Identify("42/fd/5");
  ASSERT_TRUE(identity);
  const auto line = [&](const char* kind, int pid) {
    return fmt::format("1: {}  ADVISORY  WRITE {} {}:{} 0 EOF\n", kind, pid, identity->device,
                       identity->inode);
  };
  const auto refused = [&](const std::string& locks, bool of_flock) {
    std::ofstream(root_ / "locks") << locks;
    OpenFiles files(proc_);
    WaitFile file = files.Describe(42, 5, true);
    files.DescribeRefusedLock(42, of_flock, &file);
    return file;
  };
  using Others = std::vector<std::pair<int, int>>;
  EXPECT_EQ(refused("", true).others, Others{});
  EXPECT_EQ(refused(line("POSIX", 77), false).others, (Others{{77, -1}}));
  EXPECT_EQ(refused(line("POSIX", 77), true).others, Others{}) << "of another kind";
  EXPECT_EQ(refused(line("POSIX", 42), false).others, Others{}) << "it is its own";
  // Who took it has ended; another one has what that opened.
  const WaitFile lost = refused(line("FLOCK", 4711), true);
  EXPECT_EQ(lost.others, Others{});
  EXPECT_TRUE(lost.others_unknown);
  Open(6, path, "flags:\t02\nlock:\t" + line("FLOCK", 4711));
  const WaitFile heir = refused(line("FLOCK", 4711), true);
  EXPECT_EQ(heir.others, (Others{{42, 6}}));
  EXPECT_FALSE(heir.others_unknown);
}

TEST_F(OpenFilesTest, ARingThatWasGivenNothingUsesNoFile) {
  Open(5, "anon_inode:[io_uring]",
       "flags:\t02\nino:\t9\nSqMask:\t0x3\nSqHead:\t0\nSqTail:\t0\nCachedSqHead:\t0\n"
       "CachedCqTail:\t0\nSqThread:\t-1\nPollList:\n");
  EXPECT_FALSE(OpenFiles(proc_).Describe(42, 3, true).others_unknown);
  EXPECT_TRUE(OpenFiles(proc_).Describe(42, 5, true).is_idle);
}

TEST_F(OpenFilesTest, AnInotifyWhoseFilesAreGoneIsIdle) {
  Open(5, "anon_inode:inotify", "flags:\t00\ninotify wd:1 ino:a8214a sdev:fe00000 mask:100\n");
  const WaitFile watches = OpenFiles(proc_).Describe(42, 5, true);
  EXPECT_EQ(watches.kind, FileKind::kNotify);
  EXPECT_TRUE(watches.outside);
  EXPECT_FALSE(watches.is_idle);
  Open(6, "anon_inode:inotify", "flags:\t00\n");
  EXPECT_TRUE(OpenFiles(proc_).Describe(42, 6, true).is_idle);
  EXPECT_FALSE(OpenFiles(proc_).Describe(42, 6, true).outside);
}

TEST_F(OpenFilesTest, WhatAnIoUringMayWriteIsNotKnown) {
  const WaitFile alone = OpenFiles(proc_).Describe(42, 3, true);
  EXPECT_EQ(alone.others, (std::vector<std::pair<int, int>>{{42, 4}}));
  EXPECT_FALSE(alone.others_unknown);
  Open(5, "anon_inode:[io_uring]", "flags:\t02\n");
  EXPECT_TRUE(OpenFiles(proc_).Describe(42, 3, true).others_unknown);
}

// As SCM_RIGHTS sends it: its sender may have closed it, and no process has it until it is taken.
TEST_F(OpenFilesTest, WhatIsOnItsWayThroughASocketMayBeTheOtherEnd) {
  const auto parent_of = [&](int pid, int parent) {
    std::filesystem::create_directories(root_ / fmt::format("{}", pid));
    std::ofstream(root_ / fmt::format("{}/stat", pid))
        << fmt::format("{} (x) S {} 1 1 0 0 0 0 0 0 0\n", pid, parent);
  };
  const auto is_unknown = [&] { return OpenFiles(proc_).Describe(42, 3, true).others_unknown; };
  std::filesystem::create_directories(root_ / "50/fd");
  std::filesystem::create_directories(root_ / "50/fdinfo");
  std::filesystem::create_symlink("socket:[10]", root_ / "50/fd/3");
  std::ofstream(root_ / "50/fdinfo/3") << "flags:\t02\nscm_fds: 1\n";
  parent_of(42, 40), parent_of(40, 1), parent_of(50, 41), parent_of(41, 40);
  EXPECT_FALSE(is_unknown()) << "another program's, that the same one started";
  parent_of(41, 42);
  EXPECT_TRUE(is_unknown()) << "of one that it started";
  parent_of(41, 40);
  std::filesystem::create_symlink("pipe:[9]", root_ / "50/fd/4");
  std::ofstream(root_ / "50/fdinfo/4") << "flags:\t01\n";
  EXPECT_TRUE(is_unknown()) << "of one who has the pipe";
  std::filesystem::remove(root_ / "50/fd/4");
  Open(5, "socket:[8]", "flags:\t02\nscm_fds: 0\n");
  EXPECT_FALSE(is_unknown());
  Open(6, "socket:[9]", "flags:\t02\nscm_fds: 1\n");
  EXPECT_TRUE(is_unknown()) << "its own";
}

TEST_F(OpenFilesTest, ANumberThatIsAnothersByNowIsNotWhatAnEpollWaitsFor) {
  std::ofstream(root_ / "file") << "x";
  const auto inode = proc_.Identify("file")->inode;
  Open(6, "../../file", "");
  Open(7, "anon_inode:[eventpoll]",
       fmt::format("flags:\t02\ntfd: 6 events: 19 data: 6 pos:0 ino:{:x} sdev:1\n"
                   "tfd: 6 events: 19 data: 6 pos:0 ino:{:x} sdev:1\ntfd: 3 events: 19\n",
                   inode, inode + 1));
  EXPECT_EQ(OpenFiles(proc_).EpollFiles(42, 7), (std::vector<int>{6, -1, 3}));
}

// Nobody but who has it open may come to a file without a name.
TEST_F(OpenFilesTest, AFileWithoutANameIsOfThoseWhoHaveItOpen) {
  char path[] = "/tmp/hangscope-open-file-XXXXXX";
  const int fd = mkstemp(path);
  std::filesystem::remove(path);
  const std::string name = std::string(path) + " (deleted)";
  const ProcFolder proc("/proc");
  OpenFiles files(proc);
  MemoryMapping mapping;
  mapping.path = name;
  mapping.inode = proc.Identify(fmt::format("self/fd/{}", fd))->inode;
  bool all_known = false;
  EXPECT_EQ(files.ProcessesWithOpen(getpid(), mapping, &all_known), std::vector<int>{getpid()});
  ++mapping.inode;
  EXPECT_TRUE(files.ProcessesWithOpen(getpid(), mapping, &all_known).empty());
  WaitFile end = files.Describe(getpid(), fd, true);
  files.DescribeEnd(getpid(), &end);
  EXPECT_FALSE(end.outside);
  EXPECT_TRUE(end.others.empty()) << "this process is none of the others";
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  OpenFiles later(proc);
  later.DescribeEnd(getpid(), &end);
  EXPECT_EQ(end.others, (std::vector<std::pair<int, int>>{{child, fd}}));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(fd);
}

TEST_F(OpenFilesTest, AFileWithANameMayBeWrittenByAnybodyAndNoDevNull) {
  WaitFile file;
  file.kind = FileKind::kFile, file.name = "/etc/passwd";
  OpenFiles files(proc_);
  files.DescribeEnd(42, &file);
  EXPECT_TRUE(file.outside);
  WaitFile null;
  null.kind = FileKind::kDevice, null.name = "/dev/null", null.outside = true;
  files.DescribeEnd(42, &null);
  EXPECT_FALSE(null.outside);
}

TEST_F(OpenFilesTest, TheMemoryOfAProcessIsOpenToThoseWhoMayWriteIt) {
  Open(5, "/proc/77/mem", "flags:\t02\n");
  EXPECT_EQ(OpenFiles(proc_).ProcessesWithMemoryOpen(77), std::vector<int>{42});
  EXPECT_TRUE(OpenFiles(proc_).ProcessesWithMemoryOpen(7).empty());
  Open(6, "/proc/78/task/79/mem", "flags:\t00\n");
  EXPECT_TRUE(OpenFiles(proc_).ProcessesWithMemoryOpen(78).empty()) << "it only reads there";
}

// Its two sides are those of a process that polls one of them, and of one that reads the other.
class PolledTerminal {
 public:
  enum Poller {
    kAlone,       // it has started the reader
    kWithSocket,  // which somebody may talk to it over
    kAStranger,   // that has not started the reader
    kElsewhere,   // it polls something else
    kAtWork,      // another thread of it waits for something else
  };
  explicit PolledTerminal(Poller kind) {
    const bool is_family = kind != kAStranger;
    int own = -1, theirs = -1;
    int said[2];
    if (openpty(&own, &theirs, nullptr, nullptr, nullptr) != 0 || pipe(said) != 0) return;
    fd_ = theirs;
    const auto start_reader = [&] {
      return Child({theirs}, [&] {
        char byte;
        if (read(theirs, &byte, 1) < 0) _exit(1);
      });
    };
    poller_ = Child({own, theirs, said[1]}, [&] {
      const pid_t reader = is_family ? start_reader() : 0;
      if (write(said[1], &reader, sizeof reader) != sizeof reader) _exit(1);
      close(said[1]), close(theirs);
      int ends[2];
      if (kind == kWithSocket && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) _exit(1);
      if (kind == kElsewhere && pipe(ends) != 0) _exit(1);
      if (kind == kAtWork) std::thread([] { pause(); }).detach();
      pollfd file = {kind == kElsewhere ? ends[0] : own, POLLIN, 0};
      poll(&file, 1, -1);
    });
    if (read(said[0], &reader_, sizeof reader_) != sizeof reader_) reader_ = -1;
    if (!is_family) reader_ = start_reader();
    for (const int fd : {own, theirs, said[0], said[1]}) close(fd);
  }
  ~PolledTerminal() {
    for (const pid_t child : {poller_, reader_}) {
      if (child > 0) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    }
  }
  // What the reader waits for, once both wait.
  WaitFile Describe() const {
    const ProcFolder proc("/proc");
    WaitFile file;
    for (int tries = 0; tries < 100; ++tries) {
      usleep(10'000);
      file = OpenFiles(proc).Describe(reader_, fd_, true);
      if (!file.outside) break;
    }
    return file;
  }
  pid_t poller() const { return poller_; }

 private:
  template <typename Action>
  static pid_t Child(std::vector<int> files, Action act) {
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; fd < 1024; ++fd) {
      if (std::count(files.begin(), files.end(), fd) == 0) close(fd);
    }
    act();
    _exit(0);
  }

  pid_t poller_ = -1;
  pid_t reader_ = -1;
  int fd_ = -1;
};

TEST(OpenFilesOfTerminals, WhoReadsWaitsForWhoPollsTheOtherSideInNobodysReach) {
  if (geteuid() != 0) GTEST_SKIP() << "others' descriptors are not all to be seen";
  const PolledTerminal alone(PolledTerminal::kAlone);
  const WaitFile file = alone.Describe();
  EXPECT_FALSE(file.outside);
  ASSERT_EQ(file.others.size(), 1u);
  EXPECT_EQ(file.others[0].first, alone.poller());
  const PolledTerminal window(PolledTerminal::kWithSocket);
  EXPECT_TRUE(window.Describe().outside) << "somebody types there";
  const PolledTerminal link(PolledTerminal::kAStranger);
  EXPECT_TRUE(link.Describe().outside) << "it is there to be opened by its name";
  const PolledTerminal elsewhere(PolledTerminal::kElsewhere);
  EXPECT_TRUE(elsewhere.Describe().outside) << "it writes when it has what it waits for";
  const PolledTerminal at_work(PolledTerminal::kAtWork);
  EXPECT_TRUE(at_work.Describe().outside) << "its other thread writes when it goes on";
}

}  // namespace
}  // namespace hangscope
