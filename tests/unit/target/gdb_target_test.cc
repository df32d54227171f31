// gdb: debug servers that do what they should, and hostile ones.
#include "target/gdb_target.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "fakes/fake_channel.h"

namespace hangscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr TimeNs kPatience = 300 * kMillisecond;
constexpr TimeNs kGenerous = 20 * kSecond;
const std::string kHello = "+" + FrameGdbPacket("PacketSize=48");  // 32 bytes of memory at once

Result<std::unique_ptr<Target>> Over(std::unique_ptr<ByteChannel> channel) {
  static SystemClock clock;
  return GdbTarget::Open("debug server 'x'", std::move(channel), kPatience, clock);
}

// What comes of reading so many bytes from a server that answers qSupported with turns[1], and so
// on.
Status Reading(std::vector<std::string> turns, size_t count, std::string* bytes,
               size_t piece = 4096) {
  turns.insert(turns.begin(), "");
  auto target = Over(std::make_unique<FakeChannel>(std::move(turns), piece));
  if (!target.ok()) return target.status();
  bytes->assign(count, '\0');
  const Status status = (*target)->Read(0x1000, *bytes);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  EXPECT_LT(status.message().size(), 300u);
  return status;
}

// "+$...#cc"
std::string Packet(const std::string& data) { return "+" + FrameGdbPacket(data); }

TEST(GdbTarget, ReadsHoweverTheAnswersAreCutAndPacked) {
  for (size_t piece = 1; piece < 20; ++piece) {
    std::string bytes;
    const Status status = Reading({kHello, Packet("6162"), Packet("6*\"")}, 5, &bytes, piece);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(bytes, "abfff");
  }
}

TEST(GdbTarget, UndoesEscapesAndRepetitions) {
  EXPECT_EQ(ExpandGdbPacket("0* "), "0000");
  EXPECT_EQ(ExpandGdbPacket("a}\x03z"), "a#z");
  EXPECT_EQ(ExpandGdbPacket("*x"), "*x");     // repeats nothing
  EXPECT_EQ(ExpandGdbPacket("0*"), "0*");     // without a count
  EXPECT_EQ(ExpandGdbPacket("0*\x01"), "0");  // a count below the least
  EXPECT_EQ(ExpandGdbPacket("0*\xff"), std::string(1 + 255 - 29, '0'));
  std::string bomb = "0";
  for (int i = 0; i < 20000; ++i) bomb += "*~";
  EXPECT_EQ(ExpandGdbPacket(bomb), std::nullopt);
}

TEST(GdbTarget, AsksAgainForWhatArrivedDamaged) {
  std::string bytes;
  const Status status = Reading({kHello, "+$61#00" + FrameGdbPacket("61")}, 1, &bytes);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(bytes, "a");
}

// QEMU stops a running guest for whoever connects, and says so unasked, at once or a little later.
TEST(GdbTarget, TakesNoNewsOfAStopForAnAnswer) {
  const std::string stopped = FrameGdbPacket("T02thread:01;");
  for (const std::vector<std::string>& turns :
       {std::vector{stopped + kHello, Packet("6162")}, {kHello, stopped + Packet("6162")}}) {
    std::string bytes;
    const Status status = Reading(turns, 2, &bytes);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(bytes, "ab");
  }
}

TEST(GdbTarget, SaysWhatIsWrongWithAServer) {
  struct Case {
    std::vector<std::string> turns;
    const char* said;
  };
  const Case cases[] = {
      {{""}, "has closed the connection"},
      {{"+$PacketS"}, "has closed the connection"},
      {{kHello, "+"}, "has closed the connection"},
      {{kHello, Packet("E14")}, "cannot read 4 bytes at 0x1000 (it says 'E14')"},
      {{kHello, Packet("")}, "cannot read 4 bytes"},
      {{kHello, Packet("616")}, "cannot read 4 bytes"},
      {{kHello, Packet("6162636465")}, "cannot read 4 bytes"},
      {{kHello, Packet("6162x\x1b")}, "something else than bytes: '6162x"},
      {{kHello, "+$61#00$61#01$61#02"}, "checksums are wrong"},
      {{kHello, "+$61#zz$61#zz$61#zz"}, "checksums are wrong"},
      {{std::string(3 << 20, '+')}, "is it a debug server?"},
      {{"$" + std::string(3 << 20, 'a')}, "a packet without an end"},
  };
  for (const Case& one : cases) {
    std::string bytes;
    const Status status = Reading(one.turns, 4, &bytes);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(one.said), Not(HasSubstr("\x1b"))))
        << one.turns[0].substr(0, 40);
  }
}

TEST(GdbTarget, OutOfStepIsAskedNothingMore) {
  auto channel = std::make_unique<FakeChannel>(std::vector<std::string>{
      "", kHello, "+$61#00$61#01$61#02", Packet("62"), Packet("63"), Packet("64")});
  FakeChannel& seen = *channel;
  auto target = Over(std::move(channel));
  ASSERT_TRUE(target.ok());
  char byte = 0;
  const Status first = (*target)->Read(0, {&byte, 1});
  ASSERT_FALSE(first.ok());
  const uint64_t sent = seen.sent_bytes;
  EXPECT_EQ((*target)->Read(0, {&byte, 1}).message(), first.message());
  EXPECT_EQ((*target)->Write(0, "x").message(), first.message());
  EXPECT_EQ(seen.sent_bytes, sent);
}

TEST(GdbTarget, WhateverPacketSizeIsClaimedAsksForAReasonableNumberOfBytes) {
  const std::pair<const char*, const char*> cases[] = {
      {"PacketSize=48", "$m0,20#"},
      {"PacketSize=ffffffffffffffff", "$m0,40#"},
      {"PacketSize=0", "$m0,8#"},
      {"PacketSize=", "$m0,40#"},
      {"PacketSize=99999999999999999999", "$m0,40#"},
      {"nothing", "$m0,40#"}};
  for (const auto& [claim, request] : cases) {
    auto channel =
        std::make_unique<FakeChannel>(std::vector<std::string>{"", Packet(claim), "", ""});
    FakeChannel& seen = *channel;
    auto target = Over(std::move(channel));
    ASSERT_TRUE(target.ok());
    char bytes[100];
    (void)(*target)->Read(0, bytes).ok();
    EXPECT_THAT(seen.sent, HasSubstr(request)) << claim;
  }
}

// A server in a thread, over a real socket: it does as it likes until the other side has closed.
Status ReadingFrom(const std::function<void(int)>& server) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  std::thread thread([&] {
    server(ends[1]);
    close(ends[1]);
  });
  SystemClock clock;
  const TimeNs begin = clock.Monotonic();
  Status status;
  {
    auto target = Over(std::make_unique<DescriptorChannel>(ends[0], ends[0]));
    status = target.status();
  }
  EXPECT_LT(clock.Monotonic() - begin, kGenerous);
  thread.join();
  return status;
}

bool Say(int fd, std::string_view text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

uint64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

TEST(GdbTarget, HostileServersAreLeftWithinThePatience) {
  const uint64_t before = PeakBytes();
  // Silence.
  EXPECT_THAT(ReadingFrom([](int fd) {
                char byte;
                while (read(fd, &byte, 1) > 0) {
                }
              }).message(),
              HasSubstr("does not answer"));
  // A byte now and then, for ever.
  EXPECT_THAT(ReadingFrom([](int fd) {
                for (SystemClock clock; Say(fd, "$"); Say(fd, "a")) clock.Sleep(10 * kMillisecond);
              }).message(),
              HasSubstr("does not answer"));
  // Acknowledgements, garbage, a packet, all without an end and as fast as they go.
  EXPECT_THAT(ReadingFrom([](int fd) {
                while (Say(fd, std::string(4096, '+'))) {
                }
              }).message(),
              HasSubstr("is it"));
  EXPECT_THAT(ReadingFrom([](int fd) {
                while (Say(fd, std::string(4096, '\x80'))) {
                }
              }).message(),
              HasSubstr("is it"));
  EXPECT_THAT(ReadingFrom([](int fd) {
                Say(fd, "$");
                while (Say(fd, std::string(4096, 'a'))) {
                }
              }).message(),
              HasSubstr("without an end"));
  EXPECT_THAT(ReadingFrom([](int fd) {
                Say(fd, "$a");
                const std::string bomb(4096, '*');
                while (Say(fd, bomb)) {
                }
              }).message(),
              HasSubstr("without an end"));
  // It goes at once; in the middle.
  EXPECT_THAT(
      ReadingFrom([](int) {}).message(),
      testing::AnyOf(HasSubstr("has closed the connection"), HasSubstr("takes no requests")));
  EXPECT_THAT(
      ReadingFrom([](int fd) { Say(fd, "+$Pack"); }).message(),
      testing::AnyOf(HasSubstr("has closed the connection"), HasSubstr("takes no requests")));
  EXPECT_LT(PeakBytes() - before, 64u << 20);
}

TEST(GdbTarget, GivesTheRegistersOfAHartThatTheServerNames) {
  std::string values;  // x0 to x31 and pc, little-endian
  for (int i = 0; i < 33; ++i) values += fmt::format("{:02x}000080", i);
  const auto registers = [&](const std::string& second) {
    auto target = Over(std::make_unique<FakeChannel>(
        std::vector<std::string>{"", kHello, Packet("m1,2"), Packet("l"),
                                 Packet("4350552330205b72756e6e696e675d"),  // CPU#0 [running]
                                 Packet(second), Packet("OK"), Packet(values), Packet("OK")},
        4096));
    EXPECT_TRUE(target.ok());
    return (*target)->RegistersOf(1, 32);
  };
  const auto found = registers("4350552331205b72756e6e696e675d");  // CPU#1 [running]
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pc, 0x80000020u);
  EXPECT_EQ(found->x[CoreRegisters::kStackPointer], 0x80000002u);
  EXPECT_FALSE(registers("776f726b6572")) << "which hart a thread is called worker is nobody knows";
  values = "xxxxxxxx" + values.substr(8);  // one of them is not to be had
  EXPECT_FALSE(registers("4350552331205b72756e6e696e675d"));
}

}  // namespace
}  // namespace hangscope
