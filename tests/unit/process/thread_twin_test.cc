// A thread's twin: steps of code that is written down by hand, in memory that only this test has.
#include "process/steps/thread_twin.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace hangscope {
namespace {

#if defined(__x86_64__)

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kCodeAt = 0x70000000, kDataAt = 0x70010000;
constexpr size_t kRaxRegister = 0;

class NoMemory final : public StepMemory {
 public:
  void Before(const StepState&) override {}
  uint64_t After() override { return 0; }
};

MemoryMapping Mapped(uint64_t begin, bool writable) {
  MemoryMapping mapping;
  mapping.begin = begin;
  mapping.end = begin + 4 * kMomentPageBytes;
  mapping.readable = true;
  mapping.writable = writable;
  mapping.executable = !writable;
  return mapping;
}

// Whatever they hold now.
std::string Vectors() {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  std::string bytes(16384, '\0');
  iovec part = {bytes.data(), bytes.size()};
  EXPECT_EQ(ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &part), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  bytes.resize(part.iov_len);
  return bytes;
}

std::string MapsOf(const std::string& process) {
  std::ifstream file("/proc/" + process + "/maps");
  return {std::istreambuf_iterator<char>(file), {}};
}

// A thread that has `code` before it, and words at kDataAt.
class TwinOfCode : public testing::Test {
 protected:
  void Begin(const std::string& code) {
    code_ = code;
    code_.resize(4 * kMomentPageBytes, '\x90');
    data_.assign(4 * kMomentPageBytes, '\0');
    auto made = ThreadTwin::Make(clock_, mappings_, source_);
    ASSERT_TRUE(made.ok()) << made.status().message();
    twin_ = std::move(*made);
    moment_.general.rip = kCodeAt;
    moment_.general.rdi = kDataAt;
    moment_.general.rsp = kDataAt + kMomentPageBytes;
    moment_.general.cs = 0x33;  // of 64 bits
    moment_.general.ss = 0x2b;
    moment_.general.eflags = 0x202;
    moment_.vectors = Vectors();
  }
  StepTrace Step(size_t most) {
    StepLimits limits;
    limits.most = most;
    limits.until = clock_.Monotonic() + 20 * kSecond;
    return twin_->Step(limits, memory_);
  }
  uint64_t WordAt(uint64_t address) {
    uint64_t word = 0;
    EXPECT_TRUE(twin_->Read(address, &word, sizeof word));
    return word;
  }

  SystemClock clock_;
  NoMemory memory_;
  std::string code_, data_;
  const std::vector<MemoryMapping> mappings_ = {Mapped(kCodeAt, false), Mapped(kDataAt, true)};
  const ReadMemory source_ = [this](uint64_t address, void* into, size_t bytes) {
    const bool is_code = address >= kCodeAt && address + bytes <= kCodeAt + code_.size();
    const bool is_data = address >= kDataAt && address + bytes <= kDataAt + data_.size();
    if (is_code) std::memcpy(into, code_.data() + (address - kCodeAt), bytes);
    if (is_data) std::memcpy(into, data_.data() + (address - kDataAt), bytes);
    return is_code || is_data;
  };
  std::unique_ptr<ThreadTwin> twin_;
  ThreadMoment moment_;
};

TEST_F(TwinOfCode, GoesTheWayOfTheThread) {
  Begin("\x48\xff\xc0\xeb\xfb");  // inc %rax; jmp back
  moment_.general.rax = 41;
  ASSERT_TRUE(twin_->BeAt(moment_));
  const StepTrace trace = Step(5);
  ASSERT_THAT(trace.states, SizeIs(6));
  EXPECT_EQ(trace.period, 0u);
  EXPECT_EQ(trace.states[0].general[kRaxRegister], 41u);
  EXPECT_EQ(trace.states[5].general[kRaxRegister], 44u);
  EXPECT_EQ(trace.states[4].pc, kCodeAt);
  // Again from there, as often as one likes.
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_EQ(Step(5).states, trace.states);
}

TEST_F(TwinOfCode, ComesBackToWhereItWas) {
  Begin("\x90\x90\xeb\xfc");  // nop; nop; jmp back
  ASSERT_TRUE(twin_->BeAt(moment_));
  const StepTrace trace = Step(100);
  EXPECT_EQ(trace.period, 3u);
  EXPECT_TRUE(twin_->StepsBackInto(trace, clock_.Monotonic() + 20 * kSecond, memory_));
}

// What only vectors hold is no part of a state, but of the second way round.
TEST_F(TwinOfCode, IsNotBackWhereAVectorIsAnother) {
  Begin("\x66\x0f\xd4\xc1\xeb\xfa");  // paddq %xmm1, %xmm0; jmp back
  constexpr size_t kXmm1 = 176;       // in the legacy area of XSAVE
  constexpr size_t kInUse = 512;
  moment_.vectors[kXmm1] = 1;
  moment_.vectors[kInUse] = 3;  // the state of x87 and of SSE
  ASSERT_TRUE(twin_->BeAt(moment_));
  const StepTrace trace = Step(100);
  EXPECT_EQ(trace.period, 2u);
  EXPECT_FALSE(twin_->StepsBackInto(trace, clock_.Monotonic() + 20 * kSecond, memory_));
}

TEST_F(TwinOfCode, WritesToItsOwnMemoryOnly) {
  Begin("\x48\xff\x07\xeb\xfb");  // incq (%rdi); jmp back
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_EQ(Step(4).period, 2u) << "its registers are the same again";
  EXPECT_EQ(WordAt(kDataAt), 1u);
  EXPECT_EQ(data_, std::string(data_.size(), '\0'));
  EXPECT_THAT(twin_->late_pages(), ElementsAre(kDataAt));
}

TEST_F(TwinOfCode, HasThePagesOfTheMoment) {
  // mov (%rdi), %rax; mov 4096(%rdi), %rax
  Begin(std::string("\x48\x8b\x07\x48\x8b\x87\x00\x10\x00\x00", 10));
  moment_.pages[kDataAt] = std::string(kMomentPageBytes, '\x11');
  data_[kMomentPageBytes] = '\x22';
  ASSERT_TRUE(twin_->BeAt(moment_));
  const StepTrace trace = Step(2);
  ASSERT_THAT(trace.states, SizeIs(3));
  EXPECT_EQ(trace.states[1].general[kRaxRegister], 0x1111111111111111u);
  EXPECT_EQ(trace.states[2].general[kRaxRegister], 0x22u);
  EXPECT_THAT(twin_->late_pages(), ElementsAre(kDataAt + kMomentPageBytes))
      << "code is the same for ever";
  // Those of another moment are others.
  moment_.pages[kDataAt] = std::string(kMomentPageBytes, '\x33');
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_EQ(Step(1).states[1].general[kRaxRegister], 0x3333333333333333u);
}

TEST_F(TwinOfCode, EndsWhereThereIsNoMemory) {
  Begin("\x48\x8b\x07");
  moment_.general.rdi = 0x12345678;
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_THAT(Step(5).states, SizeIs(1));
  moment_.general.rdi = 0x8000000000000000;
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_THAT(Step(5).states, SizeIs(1));
  moment_.general.rdi = kDataAt;  // and is as good as new
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_THAT(Step(1).states, SizeIs(2));
}

TEST_F(TwinOfCode, MayNotWriteWhereTheThreadMayNot) {
  Begin("\x48\x89\x07");  // mov %rax, (%rdi)
  moment_.general.rdi = kCodeAt;
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_THAT(Step(5).states, SizeIs(1));
}

TEST_F(TwinOfCode, IsToldWhatTheKernelToldTheThread) {
  Begin("\x0f\x05\x48\x31\xc0\xeb\xf9");  // syscall; xor %rax, %rax (read); jmp back
  moment_.general.rdi = 3;
  moment_.general.rsi = kDataAt;
  moment_.general.rdx = 8;
  ASSERT_TRUE(twin_->BeAt(moment_));
  StepTrace trace = Step(10);
  EXPECT_THAT(trace.states, SizeIs(1));
  EXPECT_TRUE(trace.wants_kernel);
  EXPECT_TRUE(twin_->wants_calls());
  NotedCall noted;
  noted.call = {SYS_read, {3, kDataAt, 8, 0, 0, 0}, -EAGAIN};
  noted.memory = {{kDataAt, std::string(8, '\x44')}};
  moment_.calls = {noted};
  ASSERT_TRUE(twin_->BeAt(moment_));
  trace = Step(10);
  EXPECT_GT(trace.calls.size(), 1u) << "it tells the same of it each time";
  EXPECT_THAT(trace.calls, Each(Field(&StepCall::result, -EAGAIN)));
  EXPECT_EQ(trace.states[1].general[kRaxRegister], static_cast<uint64_t>(-EAGAIN));
  EXPECT_EQ(WordAt(kDataAt), 0x4444444444444444u);
  EXPECT_GT(trace.period, 0u);
  // Of another descriptor nothing is known.
  moment_.general.rdi = 4;
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_THAT(Step(10).calls, IsEmpty());
}

// With a prefix that does not matter, it is not known for one.
TEST_F(TwinOfCode, MakesNoSystemCall) {
  Begin("\x2e\x0f\x05");
  moment_.general.rax = SYS_getpid;
  ASSERT_TRUE(twin_->BeAt(moment_));
  EXPECT_THAT(Step(5).states, SizeIs(1));
  EXPECT_FALSE(twin_->BeAt(moment_)) << "the kernel has ended it";
}

TEST_F(TwinOfCode, HasNothingOfThisProcess) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Begin("\xeb\xfe");
  std::ifstream file("/proc/self/task/" + std::to_string(gettid()) + "/children");
  const std::string children((std::istreambuf_iterator<char>(file)), {});
  const std::string pid = children.substr(0, children.find(' '));
  const std::string text = MapsOf(pid);
  for (const MemoryMapping& mapping : ParseMemoryMappings(text))
    EXPECT_TRUE(mapping.path.empty() || mapping.path.starts_with("[v")) << text;
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "it holds no file of this process's";
  close(ends[0]);
}

// What nobody has touched is not fetched for us.
TEST(PagesInMemory, AreThoseThatWereTouched) {
  void* const memory = mmap(nullptr, 2 * kMomentPageBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto begin = reinterpret_cast<uint64_t>(memory);
  *static_cast<volatile char*>(memory) = 1;
  const PagesInMemory pages(getpid());
  EXPECT_TRUE(pages.Has(begin));
  EXPECT_FALSE(pages.Has(begin + kMomentPageBytes));
  EXPECT_FALSE(PagesInMemory(-1).Has(begin));
  munmap(memory, 2 * kMomentPageBytes);
}

// The clock of the thread is the twin's as well.
TEST(ThreadTwin, TellsTheTime) {
  std::vector<uint64_t> stack(4096);
  timespec time = {};
  const std::vector<MemoryMapping> mappings = ParseMemoryMappings(MapsOf("self"));
  const ReadMemory source = [&](uint64_t address, void* into, size_t bytes) {
    const MemoryMapping* const mapping = FindMapping(mappings, address);
    if (mapping == nullptr || !mapping->readable || mapping->path.starts_with("[vvar"))
      return false;
    return ProcessMemory(getpid()).ReadInto(address, into, bytes);
  };
  SystemClock clock;
  auto twin = ThreadTwin::Make(clock, mappings, source);
  ASSERT_TRUE(twin.ok()) << twin.status().message();
  ThreadMoment moment;
  moment.general.rip = reinterpret_cast<uint64_t>(&clock_gettime);
  moment.general.rdi = CLOCK_MONOTONIC;
  moment.general.rsi = reinterpret_cast<uint64_t>(&time);
  moment.general.rsp = reinterpret_cast<uint64_t>(&stack[4000]) / 16 * 16 + 8;
  moment.general.fs_base = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  moment.general.cs = 0x33;
  moment.general.ss = 0x2b;
  moment.general.eflags = 0x202;
  moment.vectors = Vectors();
  ASSERT_TRUE((*twin)->BeAt(moment));
  NoMemory memory;
  StepLimits limits;
  limits.most = 100'000;  // the kernel changes what is read now and then, and it is read again
  limits.until = clock.Monotonic() + 20 * kSecond;
  const TimeNs before = clock.Monotonic();
  const StepTrace trace = (*twin)->Step(limits, memory);
  const TimeNs after = clock.Monotonic();
  const uint64_t pc = trace.states.back().pc;
  const MemoryMapping* const where = FindMapping(mappings, pc);
  EXPECT_EQ(pc, 0u) << "it came back to where the stack says, not to "
                    << (where != nullptr ? where->path : "nowhere") << " after "
                    << trace.states.size();
  timespec told = {};
  ASSERT_TRUE((*twin)->Read(moment.general.rsi, &told, sizeof told));
  const TimeNs at = told.tv_sec * kSecond + told.tv_nsec;
  EXPECT_GE(at, before);
  EXPECT_LE(at, after);
  EXPECT_EQ(time.tv_sec, 0);
}

#endif

}  // namespace
}  // namespace hangscope
