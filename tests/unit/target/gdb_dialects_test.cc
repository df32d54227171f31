// gdb: what the servers that people use say, packet by packet: QEMU 7.2 and OpenOCD 0.12 as they
// were recorded, Black Magic's as its source has it. They differ in what they say unasked, in what
// they refuse, and in what lets the target go on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_gdb_stub.h"
#include "target/gdb_target.h"

namespace hangscope {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr TimeNs kServerPatience = 5 * kSecond;
const std::string kQemuFeatures =
    "PacketSize=1000;qXfer:features:read+;vContSupported+;multiprocess+";
const std::string kOpenOcdFeatures =
    "PacketSize=4000;qXfer:memory-map:read-;qXfer:features:read+;qXfer:threads:read+;"
    "QStartNoAckMode+;vContSupported+";
const std::string kBlackMagicFeatures =
    "PacketSize=400;qXfer:memory-map:read+;qXfer:features:read+";

std::string HexOf(std::string_view text) {
  std::string hex;
  for (const char byte : text) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return hex;
}

std::string Command(std::string_view command) { return "qRcmd," + HexOf(command); }

// At address N is the byte N modulo 251. Empty: the request is for none.
std::string MemoryFor(const std::string& request) {
  unsigned address = 0;
  unsigned count = 0;
  if (std::sscanf(request.c_str(), "m%x,%x", &address, &count) != 2) return {};
  std::string digits;
  for (unsigned i = 0; i < count; ++i) digits += fmt::format("{:02x}", (address + i) % 251);
  return digits;
}

struct Stub {
  std::string at_once = {};
  std::map<std::string, std::string> answers = {};  // framed; what is not here it does not know
  std::string before_memory = {};                   // framed
  size_t most_bytes = SIZE_MAX;                     // else "E02"
  TimeNs bytes_per_second = 0;

  std::function<void(const std::string& request)> on_request = {};
  FakeGdbStub* channel = nullptr;
  FakeClock clock = {};
  GdbRequests requests = std::make_shared<std::vector<std::string>>();

  std::string Answer(const std::string& request) {
    if (on_request) on_request(request);
    const std::string memory = MemoryFor(request);
    if (const auto known = answers.find(request); known != answers.end()) return known->second;
    if (memory.empty()) return FrameGdbPacket("");
    if (memory.size() / 2 > most_bytes) return FrameGdbPacket("E02");
    return before_memory + FrameGdbPacket(memory);
  }
  Result<std::unique_ptr<Target>> Open() {
    auto made = std::make_unique<FakeGdbStub>(
        clock, at_once, [this](const std::string& request) { return Answer(request); }, requests);
    channel = made.get();
    if (bytes_per_second > 0) channel->SetBytesPerSecond(bytes_per_second);
    return GdbTarget::Open("debug server 'x'", std::move(made), kServerPatience, clock);
  }
  // Looks once, and leaves.
  Status Look(size_t count) {
    auto target = Open();
    if (!target.ok()) return target.status();
    std::string bytes(count, '\0');
    const Status status = (*target)->Read(0x1000, bytes);
    for (size_t i = 0; status.ok() && i < count; ++i)
      EXPECT_EQ(static_cast<uint8_t>(bytes[i]), (0x1000 + i) % 251) << i;
    return status;
  }
};

TEST(GdbDialects, NewsIsNoAnswerWhereverItComes) {
  for (const char* news : {"T02thread:01;", "S05", "O48656c6c6f0a", "O", "W00", "X0b",
                           "Fwrite,1,80002000,5", "T05swbreak:;thread:p1.2;"}) {
    const std::string packet = news == std::string("O") ? "%Stop:T05#00" : FrameGdbPacket(news);
    Stub before{
        .at_once = packet,
        .answers = {{"qSupported", FrameGdbPacket("PacketSize=400")}, {"D", FrameGdbPacket("OK")}}};
    EXPECT_EQ(before.Look(300).message(), "") << news;
    Stub between{.answers = {{"qSupported", packet + packet + FrameGdbPacket("PacketSize=400")},
                             {"D", packet + FrameGdbPacket("OK")}},
                 .before_memory = packet};
    EXPECT_EQ(between.Look(300).message(), "") << news;
    EXPECT_EQ(between.requests->back(), "D") << news;
  }
}

TEST(GdbDialects, MemoryInCapitalDigitsIsNoErrorNorNews) {
  for (const char* memory : {"E0F14FC0", "F0F0F0F0", "EFEFEFEF", "DDDDDDDD"}) {
    Stub stub{.answers = {{"m1000,4", FrameGdbPacket(memory)}}};
    auto target = stub.Open();
    ASSERT_TRUE(target.ok());
    std::string bytes(4, '\0');
    EXPECT_EQ((*target)->Read(0x1000, bytes).message(), "") << memory;
    EXPECT_EQ(HexOf(bytes), [&] {
      std::string small = memory;
      for (char& digit : small) digit = static_cast<char>(std::tolower(digit));
      return small;
    }());
  }
}

TEST(GdbDialects, AGuestOfQemusThatRanGoesOn) {
  Stub qemu{
      .at_once = FrameGdbPacket("T02thread:01;"),
      .answers = {{"qSupported", FrameGdbPacket(kQemuFeatures)}, {"D", FrameGdbPacket("OK")}}};
  EXPECT_EQ(qemu.Look(4).message(), "");
  EXPECT_THAT(*qemu.requests, ElementsAre("qSupported", "m1000,4", "D"));
}

TEST(GdbDialects, AGuestOfQemusThatStoodStillDoesNotGoOn) {
  const auto look = [](const std::string& status, const std::string& version) {
    const auto prints = [](const std::string& text) {
      return FrameGdbPacket("O" + HexOf(text)) + FrameGdbPacket("OK");
    };
    Stub qemu{.answers = {{"qSupported", FrameGdbPacket(kQemuFeatures)},
                          {Command("info status"), prints(status)},
                          {Command("info version"), prints(version)},
                          {"D", FrameGdbPacket("OK")}}};
    EXPECT_EQ(qemu.Look(4).message(), "");
    return *qemu.requests;
  };
  const std::string old = "7.2.22Debian 1:7.2+dfsg-7+deb12u18+b3\r\n";
  EXPECT_THAT(look("VM status: paused (prelaunch)\r\n", old), Not(Contains("D")));
  EXPECT_THAT(look("VM status: paused (prelaunch)\r\n", "9.1.0\r\n"), Not(Contains("D")));
  EXPECT_THAT(look("VM status: paused\r\n", old), Not(Contains("D")));
  // From 8.1 on it does not say that it stopped its guest for us: it may have run.
  EXPECT_EQ(look("VM status: paused\r\n", "8.1.0\r\n").back(), "D");
  EXPECT_EQ(look("VM status: paused\r\n", "10.0.2\r\n").back(), "D");
  // gdbserver.
  EXPECT_EQ(look("Unknown monitor command.\n\n", "").back(), "D");
}

// Detaching resumes nothing with an OpenOCD: a target that it halted for us is to be resumed.
TEST(GdbDialects, ATargetOfOpenOcdsThatRanIsResumed) {
  const auto look = [](const char* stop) {
    Stub openocd{
        .at_once = "+",
        .answers = {
            {"qSupported", FrameGdbPacket(kOpenOcdFeatures)},
            {"?", FrameGdbPacket(stop)},
            {Command("version"),
             FrameGdbPacket("4f70656e204f6e2d4368697020446562756767657220302e31322e300a")},
            {Command("resume"), FrameGdbPacket("O69736120696e666f206e6f7420617661696c61626c650a") +
                                    FrameGdbPacket("OK")},
            {"D", FrameGdbPacket("OK")}}};
    EXPECT_EQ(openocd.Look(4).message(), "");
    return *openocd.requests;
  };
  EXPECT_THAT(look("S02"), ElementsAre("qSupported", "m1000,4", Command("version"), "?",
                                       Command("resume"), "D"));
  EXPECT_THAT(look("S05"), ElementsAre("qSupported", "m1000,4", Command("version"), "?", "D"));
  EXPECT_THAT(look("S00"), Not(Contains(Command("resume"))));
}

TEST(GdbDialects, ErrorsOfAnyLengthAreTold) {
  for (const char* error : {"E0E", "EFC", "E.memtype", "E14"}) {
    Stub stub{.answers = {{"m1000,4", FrameGdbPacket(error)}}};
    EXPECT_THAT(stub.Look(4).message(), HasSubstr(fmt::format("(it says '{}')", error)));
  }
}

TEST(GdbDialects, ABlackMagicProbeAttachesItsLastTargetAgain) {
  const std::string description = "qXfer:features:read:target.xml:0,40";
  for (const bool has_one : {true, false}) {
    Stub probe{.answers = {{"qSupported", FrameGdbPacket(kBlackMagicFeatures)},
                           {"m1000,4", FrameGdbPacket("EFF")},
                           {description, FrameGdbPacket("E01")},
                           {"D", FrameGdbPacket("OK")}}};
    probe.on_request = [&](const std::string& request) {
      if (!has_one || request != description) return;
      probe.answers[description] = FrameGdbPacket("m<?xml version=\"1.0\"?>");
      probe.answers.erase("m1000,4");
    };
    const std::string said = probe.Look(4).message();
    if (has_one)
      EXPECT_EQ(said, "");
    else
      EXPECT_THAT(said, HasSubstr("(it says 'EFF'; is a target attached to it?)"));
    EXPECT_EQ(std::ranges::count(*probe.requests, description), 1);
    EXPECT_EQ(probe.requests->back(), "D");
  }
}

TEST(GdbDialects, AServerThatRefusesWhatItSaysItTakesIsAskedForLess) {
  Stub stub{.answers = {{"qSupported", FrameGdbPacket("PacketSize=4000")}}, .most_bytes = 100};
  EXPECT_EQ(stub.Look(5000).message(), "");
  // Once refused it is not asked for so much again.
  EXPECT_LT(stub.requests->size(), 5000u / 64 + 10);
}

TEST(GdbDialects, ASlowServerIsWaitedForAsLongAsItGoesOn) {
  for (const TimeNs rate : {40, 800, 11520}) {
    Stub slow{
        .answers = {{"qSupported", FrameGdbPacket("PacketSize=1000")}, {"D", FrameGdbPacket("OK")}},
        .bytes_per_second = rate};
    const TimeNs begin = slow.clock.Monotonic();
    EXPECT_EQ(slow.Look(8000).message(), "") << rate;
    EXPECT_GT(slow.clock.Monotonic() - begin, 16000 * (kSecond / rate));
    // Asking costs little beside answering.
    EXPECT_LT(slow.clock.Monotonic() - begin, 2 * 16000 * (kSecond / rate)) << rate;
  }
}

// By so much that an answer that was asked for before would still be in time.
TEST(GdbDialects, AServerMayBecomeSlower) {
  Stub stub{.answers = {{"qSupported", FrameGdbPacket("PacketSize=1000")}},
            .bytes_per_second = 11520};
  stub.on_request = [&](const std::string&) {
    if (stub.requests->size() == 20) stub.channel->SetBytesPerSecond(3000);
  };
  EXPECT_EQ(stub.Look(60000).message(), "");
  EXPECT_EQ((*stub.requests)[1], "m1000,40");
}

}  // namespace
}  // namespace hangscope
