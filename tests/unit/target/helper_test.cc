// exec: helpers that do what they should, and helpers that do not.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "fakes/fake_channel.h"
#include "target/exec_target.h"

namespace hangscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr TimeNs kHelperPatience = 300 * kMillisecond;
constexpr TimeNs kHelperGenerous = 20 * kSecond;
constexpr char kHelperHello[] = "hangscope-probe 1\nrange 0x1000 64\nready\n";

std::string Quoted(const std::string& text) {
  std::string quoted = "printf '";
  for (const char c : text) quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  return quoted + "'";
}

// Greets, then runs `rest`.
std::string Helper(const std::string& rest) { return Quoted(kHelperHello) + "; " + rest; }

Result<std::unique_ptr<Target>> Over(std::unique_ptr<FakeChannel> channel) {
  return ExecTarget::Open("helper 'x'", std::move(channel), kHelperPatience, [] { return ""; });
}
Result<std::unique_ptr<Target>> Scripted(std::vector<std::string> turns, size_t piece = 4096) {
  return Over(std::make_unique<FakeChannel>(std::move(turns), piece));
}

// Why eight bytes cannot be read, and that it took no longer than it may.
std::string ReadingFails(const std::string& command) {
  SystemClock clock;
  const TimeNs begin = clock.Monotonic();
  auto target = ExecTarget::Open(command, kHelperPatience);
  if (!target.ok()) return "opening: " + target.status().message();
  char bytes[8];
  const Status status = (*target)->Read(0x1000, bytes);
  EXPECT_LT(clock.Monotonic() - begin, kHelperGenerous);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status.message();
}

TEST(Helper, ServesMemoryHoweverItsAnswersAreCut) {
  for (size_t piece = 1; piece < 20; ++piece) {
    auto target =
        Scripted({"hangscope-probe 1\r\nrange 0x1000 64\nrange 0x2000 16\nscope 0x1004\nready\n",
                  "ok 5\na\ncde", "ok 0\n"},
                 piece);
    ASSERT_TRUE(target.ok()) << target.status().message();
    EXPECT_EQ((*target)->scope_address(), 0x1004u);
    ASSERT_EQ((*target)->ranges().size(), 2u);
    EXPECT_EQ((*target)->ranges()[1].begin, 0x2000u);
    char bytes[5];
    ASSERT_TRUE((*target)->Read(0x1000, bytes).ok());
    EXPECT_EQ(std::string(bytes, 5), "a\ncde");
    EXPECT_TRUE((*target)->Write(0x1000, "x").ok());
  }
}

TEST(Helper, IsAskedForNoMoreAtOnceThanItCan) {
  auto channel = std::make_unique<FakeChannel>(
      std::vector<std::string>{"hangscope-probe 1\nmost 4\nready\n", "ok 4\nabcd", "ok 2\nef",
                               "ok 0\n", "ok 0\n"},
      1);
  FakeChannel& seen = *channel;
  auto target = Over(std::move(channel));
  ASSERT_TRUE(target.ok());
  char bytes[6];
  ASSERT_TRUE((*target)->Read(0x10, bytes).ok());
  EXPECT_EQ(std::string(bytes, 6), "abcdef");
  EXPECT_EQ(seen.sent, "read 0x14 2\n");
  ASSERT_TRUE((*target)->Write(0x20, "uvwxyz").ok());
  EXPECT_EQ(seen.sent, "write 0x24 2\nyz");
}

TEST(Helper, SaysWhetherItsTargetLives) {
  const std::pair<const char*, Life> cases[] = {{"live\n", Life::kLive},
                                                {"dead\n", Life::kDead},
                                                {"unknown\n", Life::kUnknown},
                                                {"maybe\n", Life::kUnknown}};
  for (const auto& [said, life] : cases) {
    auto target = Scripted({kHelperHello, said}, 1);
    ASSERT_TRUE(target.ok());
    EXPECT_EQ((*target)->life(), life) << said;
  }
}

TEST(Helper, IsNotAskedForWhatItDoesNotHave) {
  auto channel = std::make_unique<FakeChannel>(std::vector<std::string>{kHelperHello});
  FakeChannel& seen = *channel;
  auto target = Over(std::move(channel));
  char bytes[8];
  EXPECT_THAT((*target)->Read(0x1000 + 60, bytes).message(), HasSubstr("has no 8 bytes at 0x103c"));
  EXPECT_EQ(seen.sent, "");
}

TEST(Helper, GoesOnAfterAnErrorThatItReports) {
  auto target = Scripted({kHelperHello, "error bus \x1b[31mfault\n", "ok 1\nx"}, 1);
  char byte = 0;
  const Status status = (*target)->Read(0x1000, {&byte, 1});
  EXPECT_THAT(status.message(), AllOf(HasSubstr("cannot read 0x1000 1: bus "), HasSubstr("fault"),
                                      Not(HasSubstr("\x1b"))));
  EXPECT_TRUE((*target)->Read(0x1000, {&byte, 1}).ok());
  EXPECT_EQ(byte, 'x');
}

TEST(Helper, WithAGreetingThatIsNoneIsRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "has ended its output"},
      {"hello\n", "begins with 'hello'"},
      {"hangscope-probe 2\nready\n", "version '2'"},
      {"hangscope-probe 1\nrange 5\nready\n", "greets with 'range 5'"},
      {"hangscope-probe 1\nrange 0x10 16\nrange 0x18 4\nready\n", "range of 4 bytes at 0x18"},
      {"hangscope-probe 1\nrange 0xffffffffffffffff 16\nready\n", "end below 2^64"},
      {"hangscope-probe 1\nrange 0x10 0\n", "range of 0 bytes"},
      {"hangscope-probe 1\nmost 0\nready\n", "greets with 'most 0'"},
      {"hangscope-probe 1\nlater 7\n", "greets with 'later 7'"},
      {std::string(100000, 'x'), "line without an end"},
  };
  for (const auto& [greeting, said] : cases) {
    const auto target = Scripted({greeting});
    ASSERT_FALSE(target.ok()) << greeting.substr(0, 60);
    EXPECT_THAT(target.status().message(), HasSubstr(said));
    EXPECT_LT(target.status().message().size(), 400u);
  }
}

TEST(Helper, OutOfStepIsAskedNothingMore) {
  const std::pair<const char*, const char*> cases[] = {
      {"ok 7\n1234567", "answers 'ok 7' to 'read 0x1000 8', where 'ok 8'"},
      {"ok 9\n123456789", "answers 'ok 9'"},
      {"ok -1\n", "answers 'ok -1'"},
      {"ok 99999999999999999999\n", "answers 'ok 9999"},
      {"ok 8\n1234", "has ended its output"},
      {"sure\n", "answers 'sure'"},
  };
  for (const auto& [answer, said] : cases) {
    auto channel = std::make_unique<FakeChannel>(std::vector<std::string>{kHelperHello, answer});
    FakeChannel& seen = *channel;
    auto target = Over(std::move(channel));
    char bytes[8];
    const Status first = (*target)->Read(0x1000, bytes);
    EXPECT_THAT(first.message(), HasSubstr(said));
    const uint64_t sent = seen.sent_bytes;
    EXPECT_EQ((*target)->Write(0x1000, "x").message(), first.message());
    EXPECT_EQ((*target)->life(), Life::kUnknown);
    EXPECT_EQ(seen.sent_bytes, sent);
  }
  auto target = Scripted({kHelperHello, "ok 1\nxok 1\ny"});
  char byte = 0;
  ASSERT_TRUE((*target)->Read(0x1000, {&byte, 1}).ok());
  EXPECT_THAT((*target)->Read(0x1000, {&byte, 1}).message(), HasSubstr("more than it was asked"));
}

TEST(Helper, ThatDoesNotAnswerIsNotWaitedForLongerThanThePatience) {
  EXPECT_THAT(ReadingFails("sleep 60"),
              AllOf(HasSubstr("opening"), HasSubstr("did not answer within 0.6 s")));
  EXPECT_THAT(ReadingFails(Helper("sleep 60")),
              AllOf(HasSubstr("did not answer within 0.3 s"), Not(HasSubstr("opening"))));
  // A byte now and then is no answer.
  EXPECT_THAT(ReadingFails(Helper("read request; while :; do printf o; sleep 0.02; done")),
              HasSubstr("did not answer within"));
}

TEST(Helper, ThatEndsIsNamedWithItsLastWords) {
  EXPECT_THAT(ReadingFails("echo one >&2; echo two >&2; exit 3"),
              HasSubstr("(it ended with status 3; it said 'two')"));
  EXPECT_THAT(ReadingFails(Helper("kill -9 $$")), HasSubstr("(signal 9 (Killed) ended it)"));
  EXPECT_THAT(ReadingFails("/nonexistent/helper"), HasSubstr("status 127"));
  EXPECT_THAT(ReadingFails("echo line1; exec sleep 60"), HasSubstr("begins with 'line1'"));
}

TEST(Helper, ThatSaysTooMuchIsCutOff) {
  EXPECT_THAT(ReadingFails("head -c 100000000 /dev/zero"), HasSubstr("line without an end"));
  // More on its standard error than a pipe holds, before it answers.
  EXPECT_THAT(ReadingFails(Helper(
                  "head -c 1000000 /dev/zero >&2; echo done >&2; read request; printf 'sorry\\n'")),
              HasSubstr("answers 'sorry'"));
}

TEST(Helper, ThatReadsNothingDoesNotBlockAWrite) {
  auto target =
      ExecTarget::Open("printf 'hangscope-probe 1\\nready\\n'; exec sleep 60", kHelperPatience);
  ASSERT_TRUE(target.ok()) << target.status().message();
  Status status;
  for (int i = 0; i < 64 && status.ok(); ++i)
    status = (*target)->Write(0, std::string(1 << 20, 'x'));
  EXPECT_THAT(status.message(), HasSubstr("did not answer within"));
}

// Which processes are children of this one.
int Children() {
  int children = 0;
  DIR* const proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    std::ifstream stat(std::string("/proc/") + entry->d_name + "/stat");
    std::string pid, name, state;
    int parent = 0;
    if (stat >> pid >> name >> state >> parent && parent == getpid()) ++children;
  }
  closedir(proc);
  return children;
}

// Whether it runs; one that nobody has reaped yet does not.
bool Runs(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return stat >> number >> name >> state && state != "Z";
}

TEST(Helper, LeavesNoProcessBehind) {
  const int before = Children();
  const std::string note = testing::TempDir() + "helper." + std::to_string(getpid());
  (void)ReadingFails(Helper("sleep 60 & echo $! > " + note + "; sleep 60"));
  int sleeper = 0;
  ASSERT_TRUE(std::ifstream(note) >> sleeper);
  std::remove(note.c_str());
  SystemClock clock;
  for (const TimeNs end = clock.Monotonic() + kHelperGenerous;
       Runs(sleeper) && clock.Monotonic() < end;)
    clock.Sleep(kMillisecond);
  EXPECT_FALSE(Runs(sleeper));
  (void)ReadingFails("exit 1");
  {
    auto target = ExecTarget::Open(Helper("exec cat"), kHelperPatience);
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(Children(), before + 1);
  }
  EXPECT_EQ(Children(), before);
}

}  // namespace
}  // namespace hangscope
