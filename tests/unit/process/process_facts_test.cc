// The texts of /proc, and what system calls and the words of futexes mean, without any process.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cstring>
#include <map>

#include "proc/proc_text.h"
#include "process/futex_kind.h"
#include "process/system_call.h"

namespace hangscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ProcText, ReadsNamesWithBracketsAndSpaces) {
  const auto stat = ParseTaskStat(
      "42 (a) S (b c)) T 7 40 40 34816 -1 4194304 1 0 0 0 5 6 0 0 20 0 2 0 100 1 1 1 0 0 0 0 0 0 0 "
      "6 0 1 0 0 17 3 0 0 0\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->id, 42);
  EXPECT_EQ(stat->name, "a) S (b c)");
  EXPECT_EQ(stat->state, ThreadState::kStopped);
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->group, 40);
  EXPECT_EQ(stat->cpu, 3);
  EXPECT_FALSE(stat->kernel_thread);
  EXPECT_EQ(stat->cpu_ticks, 11u) << "utime, stime, cutime, cstime";
  EXPECT_EQ(stat->wait_status, 0);
  const auto killed = ParseTaskStat(
      "42 (a) Z 7 40 40 34816 -1 4194304 1 0 0 0 1 2 4 8 20 0 2 0 100 1 1 1 0 0 0 0 0 0 0 6 0 1 0 "
      "0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 9\n");
  ASSERT_TRUE(killed.has_value());
  EXPECT_EQ(killed->cpu_ticks, 15u);
  EXPECT_EQ(killed->wait_status, 9) << "as wait(2) has it: by signal 9";
  const auto kernel = ParseTaskStat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0\n");
  ASSERT_TRUE(kernel.has_value());
  EXPECT_TRUE(kernel->kernel_thread);
  for (const char* text : {"", "42", "42 (x", "42 (x)", "42 (x) S", "x (x) S 1 1 1 1 1 1", ") 42 (",
                           "42 (x) SS 1 1 1 1 1 1"}) {
    EXPECT_FALSE(ParseTaskStat(text).has_value()) << text;
  }
}

TEST(ProcText, ReadsWhoTracesAndHowOftenItSwitched) {
  const auto status = ParseTaskStatus(
      "Name:\tTracerPid:\t99\nTgid:\t40\nTracerPid:\t7\nUid:\t1000\t1001\t1000\t1000\nNSpid:"
      "\t42\t3\nSigBlk:\tfffffffe7ffbfeff\nSigIgn:\t0000000000001010\nSigCgt:\t0000000180004002\n"
      "voluntary_ctxt_switches:\t31\nnonvoluntary_ctxt_switches:\t5\n");
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->tracer, 7);
  EXPECT_EQ(status->process, 40);
  EXPECT_EQ(status->user, 1001);
  EXPECT_EQ(status->inner_id, 3);
  EXPECT_EQ(status->blocked_signals, 0xfffffffe7ffbfeffu);
  EXPECT_EQ(status->ignored_signals, 0x1010u);
  EXPECT_EQ(status->caught_signals, 0x180004002u);
  EXPECT_EQ(status->voluntary_switches, 31u);
  EXPECT_EQ(status->involuntary_switches, 5u);
  EXPECT_FALSE(ParseTaskStatus("Name:\tx\n").has_value());
}

TEST(ProcText, ReadsSystemCallsInAllForms) {
  const auto call =
      ParseTaskSystemCall("202 0x55f1 0x80 0x2 0x0 0x0 0xffffffffffffffff 0x7ffe 0x7f29585f012b\n");
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->number, 202);
  EXPECT_THAT(call->arguments, ElementsAre(0x55f1, 0x80, 2, 0, 0, ~uint64_t{0}));
  EXPECT_EQ(call->stack_pointer, 0x7ffeu);
  EXPECT_EQ(call->pc, 0x7f29585f012bu);
  const auto none = ParseTaskSystemCall("-1 0x7ffe 0x401000\n");
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->number, -1);
  EXPECT_EQ(none->pc, 0x401000u);
  const auto running = ParseTaskSystemCall("running\n");
  ASSERT_TRUE(running.has_value());
  EXPECT_TRUE(running->running);
  for (const char* text : {"", "walking", "202 0x1", "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7",
                           "202 y 0x80 0x2 0x0 0x0 0x0 0x1 0x2"}) {
    EXPECT_FALSE(ParseTaskSystemCall(text).has_value()) << text;
  }
}

TEST(ProcText, ReadsWhenAThreadLastRanToTheNanosecond) {
  EXPECT_EQ(ParseLastRan("x (1, #threads: 1)\n---\nse.exec_start                :      "
                         "49066365.416201\nse.vruntime : 1.0\n"),
            49066365416201);
  EXPECT_EQ(ParseLastRan("se.exec_start : 0.000001\n"), 1);
  for (const char* text :
       {"", "se.exec_start : \n", "se.exec_start : 5\n", "se.exec_start : 5.1\n",
        "se.exec_start : -5.000001\n", "se.exec_start : 99999999999999999.000000\n"}) {
    EXPECT_FALSE(ParseLastRan(text).has_value()) << text;
  }
  const auto times = ParseTaskRunTime("7645 5670 1\n");
  ASSERT_TRUE(times.has_value());
  EXPECT_EQ(times->ran, 7645);
  EXPECT_EQ(times->wanted, 5670);
}

TEST(ProcText, ReadsMappings) {
  const auto mappings = ParseMemoryMappings(
      "1000-2000 r-xp 00001000 fe:00 42                   /usr/bin/a program (deleted)\n"
      "not a mapping\n"
      "2000-3000 rw-s 00000040 00:01 7                    /dev/shm/x\n"
      "2800-2900 rw-p 00000000 00:00 0 \n"
      "7000-9000 ---p 00000000 00:00 0                    [stack]\n");
  ASSERT_EQ(mappings.size(), 3u);  // what overlaps with the one before is none
  EXPECT_EQ(mappings[0].path, "/usr/bin/a program (deleted)");
  EXPECT_TRUE(mappings[0].executable);
  EXPECT_FALSE(mappings[0].shared);
  EXPECT_TRUE(mappings[1].shared);
  EXPECT_TRUE(mappings[1].writable);
  EXPECT_EQ(mappings[1].file_offset, 0x40u);
  EXPECT_EQ(mappings[1].inode, 7u);
  EXPECT_EQ(FindMapping(mappings, 0x1fff), &mappings[0]);
  EXPECT_EQ(FindMapping(mappings, 0x2000), &mappings[1]);
  EXPECT_EQ(FindMapping(mappings, 0x3000), nullptr);
  EXPECT_EQ(FindMapping(mappings, 0xfff), nullptr);
  EXPECT_EQ(FindMapping(mappings, ~uint64_t{0}), nullptr);
}

TEST(ProcText, ReadsDescriptors) {
  EXPECT_EQ(ParseDescriptorInfo("pos:\t0\nflags:\t0100001\nmnt_id:\t24\n").flags, 0100001u);
  const auto waited_for = ParseDescriptorInfo(
                              "flags:\t02\ntfd:       12 events:       19 data: 0 pos:0 ino:1f "
                              "sdev:c\ntfd: 5 events: 1\n")
                              .epoll_files;
  ASSERT_EQ(waited_for.size(), 2u);
  EXPECT_EQ(waited_for[0].fd, 12);
  EXPECT_EQ(waited_for[0].inode, 0x1fu);
  EXPECT_EQ(waited_for[1].fd, 5);
  EXPECT_EQ(waited_for[1].inode, 0u);
  EXPECT_EQ(ParseDescriptorInfo("flags:\t02\nPid:\t4711\nNSpid:\t4711\n").process, 4711);
  EXPECT_EQ(ParseDescriptorInfo("eventfd-count: 0\neventfd-id: 9\n").event, 9u);
  EXPECT_EQ(ParseDescriptorInfo("flags:\t02\nsigmask:\t0000000000010000\n").signals, 0x10000u);
  EXPECT_FALSE(ParseDescriptorInfo("").process.has_value());
  const auto is_unarmed = [](const char* ticks, const char* value) {
    return ParseDescriptorInfo(
               fmt::format("flags:\t02\nclockid: 1\nticks: {}\nsettime flags: 00\nit_value: {}\n"
                           "it_interval: (0, 0)\n",
                           ticks, value))
        .is_unarmed;
  };
  EXPECT_TRUE(is_unarmed("0", "(0, 0)"));
  EXPECT_FALSE(is_unarmed("1", "(0, 0)")) << "it has expired";
  EXPECT_FALSE(is_unarmed("0", "(29, 999942)"));
  EXPECT_FALSE(ParseDescriptorInfo("flags:\t02\n").is_unarmed);
  const DescriptorInfo locked = ParseDescriptorInfo(
      "flags:\t02\nlock:\t1: FLOCK  ADVISORY  WRITE 4711 fe:00:42 0 EOF\nlock:\t2: broken\n");
  ASSERT_EQ(locked.locks.size(), 1u);
  EXPECT_TRUE(locked.locks[0].of_description);
  EXPECT_EQ(locked.locks[0].inode, 42u);
}

TEST(ProcText, ReadsFileLocks) {
  const auto locks = ParseFileLocks(
      "1: POSIX  ADVISORY  WRITE 4711 fe:00:42 0 EOF\n"
      "1: -> POSIX  ADVISORY  WRITE 4712 fe:00:42 0 EOF\n"
      "2: FLOCK  ADVISORY  READ 4713 00:1a:43 0 EOF\n"
      "3: broken\n"
      "4 POSIX  ADVISORY  WRITE 4714 fe:00:42 0 EOF\n");
  ASSERT_EQ(locks.size(), 3u);
  EXPECT_FALSE(locks[0].waits);
  EXPECT_EQ(locks[0].pid, 4711);
  EXPECT_EQ(locks[0].device, "fe:00");
  EXPECT_EQ(locks[0].inode, 42u);
  EXPECT_TRUE(locks[1].waits);
  EXPECT_EQ(locks[1].pid, 4712);
  EXPECT_EQ(locks[1].number, 1u);
  EXPECT_EQ(locks[2].number, 2u);
  EXPECT_TRUE(locks[2].flock);
  EXPECT_TRUE(locks[2].of_description);
  EXPECT_FALSE(locks[0].of_description);
  EXPECT_FALSE(locks[2].write);
}

TEST(ProcText, ReadsWhichBytesALockIsOf) {
  const auto locks = ParseFileLocks(
      "1: POSIX  ADVISORY  WRITE 4711 fe:00:42 1073741825 1073741825\n"
      "2: POSIX  ADVISORY  READ 4711 fe:00:42 7 EOF\n"
      "3: POSIX  ADVISORY  READ 4711 fe:00:42\n");
  ASSERT_EQ(locks.size(), 3u);
  EXPECT_EQ(locks[0].first, 1073741825u);
  EXPECT_EQ(locks[0].last, 1073741825u);
  EXPECT_EQ(locks[1].first, 7u);
  EXPECT_EQ(locks[1].last, UINT64_MAX);
  EXPECT_EQ(locks[2].first, 0u);
  EXPECT_EQ(locks[2].last, UINT64_MAX);
}

TEST(ProcText, NamesTcpAddresses) {
  EXPECT_EQ(TcpAddressName("0100007F:1F90"), "127.0.0.1:8080");
  EXPECT_EQ(TcpAddressName("00000000000000000000000001000000:0050"), "[::1]:80");
  EXPECT_EQ(TcpAddressName("0000000000000000FFFF00000100007F:0050"), "[127.0.0.1]:80");
  EXPECT_EQ(TcpAddressName("nonsense"), "nonsense");
  EXPECT_TRUE(IsLoopback("0100007F:1F90"));
  EXPECT_TRUE(IsLoopback("00000000000000000000000001000000:0050"));
  EXPECT_FALSE(IsLoopback("0101A8C0:1F90"));
  const auto lines = ParseTcpTable(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "4711 1 0 100 0 0 10 0\n");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].listening);
  EXPECT_EQ(lines[0].inode, 4711u);
}

TEST(ProcText, MountsAreListedWithTheirDevices) {
  const auto mounts = ParseMounts(
      "27 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
      "43 27 0:39 / /mnt/far rw,nosuid shared:1 - fuse.sshfs host:/ rw,user_id=0\n"
      "nonsense - of a line\n");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[0].device, "fe:00");
  EXPECT_EQ(mounts[1].device, "00:27");
  EXPECT_EQ(mounts[1].minor, 39u);
  EXPECT_EQ(mounts[1].point, "/mnt/far");
  EXPECT_EQ(mounts[1].type, "fuse.sshfs");
  EXPECT_EQ(ParseDescriptorInfo("flags:\t02\nfuse_connection:\t39\n").fuse, 39u);
  EXPECT_FALSE(ParseDescriptorInfo("flags:\t02\n").fuse.has_value());
}

TEST(ProcText, TheKernelsStackEndsWhereTheSystemCallBegins) {
  EXPECT_THAT(ParseKernelStack("[<0>] request_wait_answer+0x155/0x220 [fuse]\n"
                               "[<0>] vfs_statx+0x8a/0x160\n"
                               "nonsense\n"
                               "[<0>] do_syscall_64+0x71/0x290\n"
                               "[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n"),
              ElementsAre("request_wait_answer [fuse]", "vfs_statx"));
  EXPECT_THAT(ParseKernelStack(""), IsEmpty());
}

// A target's memory that a test writes down; what was not written cannot be read.
class WrittenMemory {
 public:
  template <typename Value>
  void Put(uint64_t address, const Value& value) {
    const char* bytes = reinterpret_cast<const char*>(&value);
    for (size_t i = 0; i < sizeof value; ++i) bytes_[address + i] = bytes[i];
  }
  ReadMemory reader() const {
    return [this](uint64_t address, void* into, size_t count) {
      for (size_t i = 0; i < count; ++i) {
        const auto byte = bytes_.find(address + i);
        if (byte == bytes_.end()) return false;
        static_cast<char*>(into)[i] = byte->second;
      }
      return true;
    };
  }

 private:
  std::map<uint64_t, char> bytes_;
};

TaskSystemCall Call(int number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                    uint64_t e = 0) {
  TaskSystemCall call;
  call.number = number;
  call.arguments = {a, b, c, d, e, 0};
  return call;
}

TEST(SystemCalls, MeanWaitsForCompletionsOfARing) {
  constexpr int kEnterRing = 426;
  WrittenMemory memory;
  const int64_t time[2] = {3, 0};
  memory.Put(0x1000, time);
  memory.Put(0x2010, uint64_t{0x1000});
  memory.Put(0x3010, uint64_t{0});
  const ReadMemory read = memory.reader();
  const CallMeaning ring = ExplainSystemCall(Call(kEnterRing, 5, 0, 1, 1), read);
  EXPECT_EQ(ring.kind, WaitKind::kRead);
  EXPECT_EQ(ring.files.at(0).fd, 5);
  EXPECT_FALSE(ring.has_timeout);
  EXPECT_EQ(ExplainSystemCall(Call(kEnterRing, 5, 0, 1, 9, 0x2000), read).timeout, 3 * kSecond);
  EXPECT_FALSE(ExplainSystemCall(Call(kEnterRing, 5, 0, 1, 9, 0x3000), read).has_timeout);
  EXPECT_EQ(ExplainSystemCall(Call(kEnterRing, 5, 0, 1, 17), read).kind, WaitKind::kOther)
      << "a registered one has another number";
  EXPECT_EQ(ExplainSystemCall(Call(kEnterRing, 5, 1, 0, 0), read).kind, WaitKind::kOther);
}

TEST(SystemCalls, MeanWaitsForSemaphoresAndQueues) {
  WrittenMemory memory;
  const int16_t operations[6] = {1, 2, 0, 3, -4, 0};  // number, change, flags
  memory.Put(0x1000, operations);
  const int16_t until_zero[3] = {3, 0, 0};
  memory.Put(0x2000, until_zero);
  const ReadMemory read = memory.reader();
  const CallMeaning take = ExplainSystemCall(Call(SYS_semtimedop, 7, 0x1000, 2), read);
  EXPECT_EQ(take.kind, WaitKind::kRead);
  ASSERT_TRUE(take.system_v && take.system_v->semaphores.size() == 1);
  EXPECT_EQ(take.system_v->id, 7);
  EXPECT_EQ(take.system_v->semaphores[0].number, 3);
  EXPECT_EQ(take.system_v->semaphores[0].amount, 4);
  EXPECT_FALSE(take.has_timeout);
  EXPECT_EQ(ExplainSystemCall(Call(SYS_semop, 7, 0x2000, 1), read).kind, WaitKind::kOther);
  EXPECT_EQ(ExplainSystemCall(Call(SYS_semop, 7, 0x3000, 1), read).kind, WaitKind::kOther);
  const CallMeaning send = ExplainSystemCall(Call(SYS_msgsnd, 9), read);
  EXPECT_EQ(send.kind, WaitKind::kWrite);
  EXPECT_TRUE(send.system_v && send.system_v->is_queue);
  const CallMeaning receive = ExplainSystemCall(Call(SYS_mq_timedreceive, 4), read);
  EXPECT_TRUE(receive.is_queue && !receive.has_timeout);
  EXPECT_TRUE(ExplainSystemCall(Call(SYS_mq_timedsend, 4, 0, 0, 0, 0x1000), read).has_timeout);
}

TEST(SystemCalls, MeanWaitsForFilesTimeAndChildren) {
  WrittenMemory memory;
  const int64_t time[2] = {2, 500'000'000};
  memory.Put(0x1000, time);
  const pollfd files[2] = {{5, POLLIN, 0}, {6, POLLOUT, 0}};
  memory.Put(0x2000, files);
  memory.Put(0x3000, uint64_t{1} << 9);
  const ReadMemory read = memory.reader();

  const CallMeaning poll = ExplainSystemCall(Call(SYS_ppoll, 0x2000, 2, 0x1000), read);
  EXPECT_EQ(poll.kind, WaitKind::kPoll);
  ASSERT_EQ(poll.files.size(), 2u);
  EXPECT_EQ(poll.files[0].fd, 5);
  EXPECT_TRUE(poll.files[0].wants_read);
  EXPECT_FALSE(poll.files[1].wants_read);
  EXPECT_EQ(poll.timeout, 2 * kSecond + 500 * kMillisecond);

  const CallMeaning select = ExplainSystemCall(Call(SYS_pselect6, 10, 0x3000, 0, 0, 0), read);
  ASSERT_EQ(select.files.size(), 1u);
  EXPECT_EQ(select.files[0].fd, 9);
  EXPECT_FALSE(select.has_timeout);
  // The highest descriptor is no longer one of them.
  EXPECT_EQ(ExplainSystemCall(Call(SYS_pselect6, 9, 0x3000), read).kind, WaitKind::kSignal);
  EXPECT_EQ(ExplainSystemCall(Call(SYS_ppoll, 0, 0, 0x1000), read).kind, WaitKind::kTime);

  EXPECT_EQ(ExplainSystemCall(Call(SYS_nanosleep, 0x1000), read).timeout,
            2 * kSecond + 500 * kMillisecond);
  const CallMeaning until = ExplainSystemCall(Call(SYS_clock_nanosleep, 0, 1, 0x1000), read);
  EXPECT_TRUE(until.has_timeout);
  EXPECT_FALSE(until.timeout.has_value());

  EXPECT_EQ(ExplainSystemCall(Call(SYS_wait4, static_cast<uint64_t>(-1)), read).children,
            ChildChoice::kAny);
  EXPECT_EQ(ExplainSystemCall(Call(SYS_wait4, 42), read).child, 42);
  const CallMeaning group = ExplainSystemCall(Call(SYS_wait4, static_cast<uint64_t>(-42)), read);
  EXPECT_EQ(group.children, ChildChoice::kGroup);
  EXPECT_EQ(group.child, 42);
  EXPECT_EQ(ExplainSystemCall(Call(SYS_wait4, static_cast<uint64_t>(INT32_MIN)), read).children,
            ChildChoice::kGroup);

  const sockaddr_un local = {AF_UNIX, "/run/x"};
  const sockaddr_in network = {AF_INET, 80, {}, {}};
  memory.Put(0x4000, local);
  memory.Put(0x5000, network);
  const CallMeaning connect = ExplainSystemCall(Call(SYS_connect, 3, 0x4000, 8), read);
  EXPECT_EQ(connect.kind, WaitKind::kConnect);
  ASSERT_EQ(connect.files.size(), 1u);
  EXPECT_EQ(connect.files[0].fd, 3);
  EXPECT_EQ(connect.address.substr(2), "/run/x");
  EXPECT_FALSE(connect.has_timeout);
  const CallMeaning far = ExplainSystemCall(Call(SYS_connect, 3, 0x5000, sizeof network), read);
  EXPECT_TRUE(far.has_timeout) << "the kernel gives up";

  EXPECT_EQ(ExplainSystemCall(Call(SYS_fcntl, 3, 7), read).kind, WaitKind::kFileLock);
  EXPECT_EQ(ExplainSystemCall(Call(SYS_fcntl, 3, 1), read).kind, WaitKind::kOther);
  EXPECT_EQ(ExplainSystemCall(Call(-1), read).kind, WaitKind::kNone);
  EXPECT_EQ(ExplainSystemCall(Call(999), read).kind, WaitKind::kOther);
  EXPECT_EQ(SystemCallName(999), "system call 999");
}

TEST(SystemCalls, TakeHugeAndUnreadableArgumentsAsTheyAre) {
  const WrittenMemory unwritten{};
  const ReadMemory nothing = unwritten.reader();
  const uint64_t most = ~uint64_t{0};
  for (int number = 0; number < 500; ++number) {
    const CallMeaning meaning =
        ExplainSystemCall(Call(number, most, most, most, most, most), nothing);
    EXPECT_LE(meaning.files.size(), 64u) << number;
    EXPECT_LE(meaning.futexes.size(), 128u) << number;
  }
  WrittenMemory many;
  for (uint64_t i = 0; i < 16; ++i) many.Put(0x9000 + i * 8, ~uint64_t{0});
  const CallMeaning select = ExplainSystemCall(Call(SYS_pselect6, 1024, 0x9000), many.reader());
  EXPECT_EQ(select.files.size(), 64u);
  EXPECT_TRUE(select.files_cut);
  for (uint64_t i = 0; i < 100; ++i)
    many.Put(0x1000 + i * sizeof(pollfd), pollfd{static_cast<int>(i), POLLIN, 0});
  const CallMeaning poll = ExplainSystemCall(Call(SYS_ppoll, 0x1000, 100), many.reader());
  EXPECT_EQ(poll.files.size(), 64u);
  EXPECT_TRUE(poll.files_cut);
}

TEST(SystemCalls, AreStillWhatTheyWereAfterAnInterruption) {
  WrittenMemory memory;
#if defined(__x86_64__)
  const uint8_t code[7] = {0xb8, 7, 0, 0, 0, 0x0f, 0x05};  // mov $7, %eax; syscall
  const int asked = SYS_poll;
#else
  const uint32_t code[2] = {0xd2800008 | 73 << 5, 0xd4000001};  // mov x8, #73; svc #0
  const int asked = SYS_ppoll;
#endif
  memory.Put(0x400000, code);
  const uint64_t behind = 0x400000 + sizeof code;
  EXPECT_EQ(SystemCallAskedFor(SYS_restart_syscall, behind, memory.reader()), asked);
  EXPECT_EQ(SystemCallAskedFor(SYS_futex, behind, memory.reader()), SYS_futex);
  EXPECT_EQ(SystemCallAskedFor(SYS_restart_syscall, behind - 1, memory.reader()),
            SYS_restart_syscall);
}

// The table is made of the header's names, which belong to the machine it was compiled for.
TEST(SystemCalls, HaveTheNumbersOfThisMachine) {
#if defined(__x86_64__)
  const std::map<int, std::string> expected = {
      {0, "read"},         {1, "write"},      {3, "close"},
      {7, "poll"},         {35, "nanosleep"}, {56, "clone"},
      {61, "wait4"},       {202, "futex"},    {230, "clock_nanosleep"},
      {232, "epoll_wait"}, {257, "openat"},   {281, "epoll_pwait"}};
#else
  const std::map<int, std::string> expected = {
      {63, "read"},        {64, "write"},      {57, "close"},
      {73, "ppoll"},       {101, "nanosleep"}, {220, "clone"},
      {260, "wait4"},      {98, "futex"},      {115, "clock_nanosleep"},
      {22, "epoll_pwait"}, {56, "openat"},     {72, "pselect6"}};
#endif
  for (const auto& [number, name] : expected) EXPECT_EQ(SystemCallName(number), name) << number;
  EXPECT_EQ(SystemCallName(449), "futex_waitv");  // the same everywhere
}

struct WrittenMutex {
  uint32_t lock = 2;
  uint32_t count = 0;
  int32_t owner = 0;
  uint32_t users = 1;
  int32_t kind = 0;
};

constexpr uint64_t kWord = 0x5000;
const auto kOnlyThread42 = [](int thread) { return thread == 42; };

std::vector<StackFrame> StackIn(const char* function) {
  StackFrame frame;
  frame.function = function;
  frame.module = "libc.so.6";
  return {frame};
}

FutexMeaning Explain(const WrittenMemory& memory, uint32_t expected, bool is_private,
                     const char* function, FutexUse use = FutexUse::kWait) {
  return ExplainFutexWord({kWord, expected, is_private}, use, StackIn(function), memory.reader(),
                          kOnlyThread42);
}

TEST(Futexes, HaveAnOwnerWhereTheMutexNamesAThreadThatIsThere) {
  WrittenMemory memory;
  memory.Put(kWord, WrittenMutex{2, 0, 42, 1, 0});
  const FutexMeaning named = Explain(memory, 2, true, "pthread_mutex_lock");
  EXPECT_EQ(named.kind, WaitKind::kMutex);
  EXPECT_EQ(named.owner, 42);
  EXPECT_FALSE(named.owner_died);
  // Without a name the layout is enough, because it names a thread of the process.
  EXPECT_EQ(Explain(memory, 2, true, "").kind, WaitKind::kMutex);
}

TEST(Futexes, HaveNoOwnerWhereNothingSaysSo) {
  WrittenMemory other;
  other.Put(kWord, WrittenMutex{2, 0, 43, 1, 0});
  EXPECT_TRUE(Explain(other, 2, true, "pthread_mutex_lock").owner_died);
  // A lock of somebody's own that looks a little like it.
  const FutexMeaning unnamed = Explain(other, 2, true, "");
  EXPECT_EQ(unnamed.kind, WaitKind::kFutex);
  EXPECT_FALSE(unnamed.owner.has_value());
  EXPECT_FALSE(unnamed.owner_died);
  WrittenMemory free_meanwhile;
  free_meanwhile.Put(kWord, WrittenMutex{0, 0, 0, 0, 0});
  const FutexMeaning released = Explain(free_meanwhile, 2, true, "pthread_mutex_lock");
  EXPECT_EQ(released.kind, WaitKind::kMutex);
  EXPECT_FALSE(released.owner.has_value());
  WrittenMemory nonsense;
  nonsense.Put(kWord, WrittenMutex{2, 0, 42, 1, 0x7fff0000});
  EXPECT_FALSE(Explain(nonsense, 2, true, "pthread_mutex_lock").owner.has_value());
  EXPECT_FALSE(Explain(WrittenMemory(), 2, true, "pthread_mutex_lock").owner.has_value());
}

TEST(Futexes, OfMuslHoldTheirOwnerUnlessTheyArePlain) {
  struct {
    int32_t type;
    uint32_t lock;
    int32_t waiters;
  } written = {0, 0x80000010, 1};
  const auto explain = [&] {
    WrittenMemory memory;
    memory.Put(kWord - 4, written);
    return Explain(memory, written.lock, true, "pthread_mutex_timedlock");
  };
  const FutexMeaning plain = explain();
  EXPECT_EQ(plain.kind, WaitKind::kMutex);
  EXPECT_EQ(plain.object, kWord - 4);
  EXPECT_FALSE(plain.owner.has_value());
  written = {1, 0x80000000 | 42, 1};  // recursive
  EXPECT_EQ(explain().owner, 42);
  EXPECT_FALSE(explain().owner_died);
  written.lock = 0x80000000 | 43;
  EXPECT_TRUE(explain().owner_died);
  written.type = 0x7fff0000;
  EXPECT_EQ(explain().kind, WaitKind::kFutex);
  // Its functions have no names inside.
  written = {0, 0x80000010, 1};
  WrittenMemory memory;
  memory.Put(kWord - 4, written);
  const auto in = [&](const char* module) {
    return ExplainFutexWord({kWord, written.lock, true}, FutexUse::kWait, {{1, "", "", module}},
                            memory.reader(), kOnlyThread42)
        .kind;
  };
  EXPECT_EQ(in("libc.so"), WaitKind::kMutex);
  EXPECT_EQ(in("ld-musl-x86_64.so.1"), WaitKind::kMutex);
  EXPECT_EQ(in("libc.so.6"), WaitKind::kFutex);
}

TEST(Futexes, OfPriorityAndRobustMutexesHoldTheirOwner) {
  WrittenMemory memory;
  memory.Put(kWord, WrittenMutex{FUTEX_WAITERS | 42, 0, 42, 1, 16});
  EXPECT_EQ(Explain(memory, FUTEX_WAITERS | 42, true, "__pthread_mutex_lock_full").owner, 42);
  EXPECT_EQ(Explain(memory, 0, true, "", FutexUse::kPriority).owner, 42);
  memory.Put(kWord, WrittenMutex{FUTEX_WAITERS | FUTEX_OWNER_DIED | 42, 0, 42, 1, 16});
  EXPECT_TRUE(Explain(memory, 0, true, "", FutexUse::kPriority).owner_died);
}

// A thread of Rust that is parked waits while a word of its own is -1.
TEST(Futexes, AWordThatOnlyLooksLikeARobustMutexIsNone) {
  WrittenMemory memory;
  memory.Put(kWord, WrittenMutex{~0u, 0, 0, 0, 16});
  const FutexMeaning meaning = Explain(memory, ~0u, true, "");
  EXPECT_EQ(meaning.kind, WaitKind::kFutex);
  EXPECT_FALSE(meaning.owner_died);
}

TEST(Futexes, AMutexWithInheritanceSaysWhoHasIt) {
  constexpr uint64_t kMutex = 0x9000;
  constexpr int32_t kPriority = 32;
  const auto owner = [&](const WrittenMutex& mutex) {
    WrittenMemory memory;
    memory.Put(kMutex, mutex);
    return OwnerOfPriorityMutex(kMutex, memory.reader());
  };
  EXPECT_EQ(owner({FUTEX_WAITERS | 42, 0, 42, 1, kPriority}), 42);
  EXPECT_FALSE(owner({FUTEX_WAITERS | 42, 0, 41, 1, kPriority}));
  EXPECT_FALSE(owner({FUTEX_WAITERS | 42, 0, 42, 1, 0}));
}

TEST(Futexes, OfConditionsOfGlibLieInside) {
  WrittenMemory memory;
  memory.Put(kWord, uint32_t{3});
  const auto of = [&](const char* caller) {
    return ExplainFutexWord({kWord, 3, true}, FutexUse::kWait,
                            {{1, "syscall", "", "libc.so.6"}, {2, caller, "", "libglib-2.0.so.0"}},
                            memory.reader(), [](int) { return false; });
  };
  EXPECT_EQ(of("g_cond_wait").kind, WaitKind::kCondition);
  EXPECT_EQ(of("g_cond_wait").object, kWord - 8);
  EXPECT_EQ(of("g_mutex_lock").kind, WaitKind::kFutex);
}

TEST(Futexes, OfLibcAreTheThreadsOwnWhereItsHandlerCallsWhatItInterrupted) {
  const auto stack = [](std::vector<const char*> functions) {
    std::vector<StackFrame> frames;
    for (const char* function : functions)
      frames.push_back({0, function, "", *function == 'O' ? "program" : "libc.so.6"});
    return frames;
  };
  EXPECT_TRUE(InterruptedItself(stack({"__lll_lock_wait_private", "malloc", "OnAlarm",
                                       "__restore_rt", "_int_malloc", "malloc", "Own"})));
  EXPECT_FALSE(InterruptedItself(stack({"__lll_lock_wait_private", "malloc", "OnAlarm",
                                        "__restore_rt", "printf", "Own", "malloc"})));
  EXPECT_FALSE(InterruptedItself(
      stack({"__lll_lock_wait_private", "malloc", "OnAlarm", "Own", "_int_malloc", "malloc"})));
  EXPECT_FALSE(InterruptedItself(
      stack({"pthread_cond_wait", "malloc", "OnAlarm", "__restore_rt", "_int_malloc", "malloc"})));
  EXPECT_FALSE(InterruptedItself({}));
}

TEST(Futexes, OfJoinsNameTheThread) {
  WrittenMemory memory;
  memory.Put(kWord, uint32_t{42});
  const FutexMeaning join = Explain(memory, 42, false, "");
  EXPECT_EQ(join.kind, WaitKind::kJoin);
  EXPECT_EQ(join.joined, 42);
  memory.Put(kWord, uint32_t{43});
  EXPECT_EQ(Explain(memory, 43, false, "").kind, WaitKind::kFutex);
}

TEST(Futexes, OfJoinsNameTheFirstThreadsOfAContainer) {
  const auto is_thread = [](int id) { return id <= 2; };
  for (const uint32_t id : {1u, 2u}) {
    WrittenMemory memory;
    memory.Put(kWord, id);
    const auto explain = [&](const char* function) {
      return ExplainFutexWord({kWord, id, false}, FutexUse::kWait, {{0, function, "", "libc.so.6"}},
                              memory.reader(), is_thread);
    };
    EXPECT_EQ(explain("__pthread_clockjoin_ex").joined, static_cast<int>(id));
    EXPECT_NE(explain("").kind, WaitKind::kJoin);
  }
}

TEST(Futexes, OfConditionsBarriersAndLocksAreInsideTheirObject) {
  WrittenMemory memory;
  memory.Put(kWord, uint32_t{0});
  EXPECT_EQ(Explain(memory, 0, true, "pthread_cond_wait").object, kWord - 40);
  EXPECT_EQ(Explain(memory, 0, true, "pthread_barrier_wait").object, kWord - 4);
  // Inside of pthread_cond_wait the mutex is taken again.
  memory.Put(kWord, WrittenMutex{2, 0, 42, 1, 0});
  EXPECT_EQ(Explain(memory, 2, true, "pthread_cond_wait").kind, WaitKind::kMutex);
  const uint32_t lock[8] = {8, 0, 1, 0, 0, 0, 42, 0};
  memory.Put(kWord - 8, lock);
  const FutexMeaning written = Explain(memory, 1, true, "pthread_rwlock_rdlock");
  EXPECT_EQ(written.kind, WaitKind::kRwLock);
  EXPECT_EQ(written.object, kWord - 8);
  EXPECT_EQ(written.owner, 42);
}

// The words of a lock look like those of another one that begins four bytes later.
TEST(Futexes, OfWritersNameTheWriterAndTheLockByItsBeginning) {
  WrittenMemory memory;
  const uint64_t begin = kWord - 16;
  const uint32_t lock[14] = {10, 1, 3, 3, 0, 0, 42, 0};
  memory.Put(begin, lock);
  const FutexMeaning written = ExplainFutexWord({begin + 12, 3, true}, FutexUse::kWait,
                                                {{0, "pthread_rwlock_wrlock", "", "libc.so.6"}},
                                                memory.reader(), [](int id) { return id == 42; });
  EXPECT_EQ(written.kind, WaitKind::kRwLock);
  EXPECT_EQ(written.object, begin);
  EXPECT_EQ(written.owner, 42);
  EXPECT_FALSE(written.owner_died);
}

}  // namespace
}  // namespace hangscope
