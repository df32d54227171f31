// What `hangscope cost` makes of an ELF's marks, of its command line and of the plugin's counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/near_name.h"
#include "code/cost_marks.h"
#include "tools/cost_table.h"
#include "tools/count_cost.h"

namespace hangscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kBegin = 1;
constexpr uint32_t kEnd = 2;

// The section that HANGSCOPE_MARK_BEGIN and _END write.
class Marks {
 public:
  Marks(int xlen, bool big_endian) : xlen_(xlen), big_endian_(big_endian) {}

  Marks& Add(uint32_t kind, uint64_t address, const std::string& name) {
    Number(4, kind);
    Number(static_cast<size_t>(xlen_) / 8, address);
    bytes_ += name;
    do bytes_ += '\0';
    while (bytes_.size() % 4 != 0);
    return *this;
  }
  Result<std::map<std::string, MarkedCode>> Read(size_t cut = 0) const {
    return ReadCostMarks(std::string_view(bytes_).substr(0, bytes_.size() - cut), xlen_,
                         big_endian_);
  }

 private:
  void Number(size_t size, uint64_t value) {
    for (size_t i = 0; i < size; ++i)
      bytes_ += static_cast<char>(value >> 8 * (big_endian_ ? size - 1 - i : i));
  }

  const int xlen_;
  const bool big_endian_;
  std::string bytes_;
};

TEST(CostMarks, OfEachNameAndOfBothWordSizesAndByteOrders) {
  for (const int xlen : {32, 64}) {
    for (const bool big_endian : {false, true}) {
      Marks marks(xlen, big_endian);
      marks.Add(kBegin, 0x80000010, "push")
          .Add(kEnd, 0x80000020, "push")
          .Add(kBegin, 0x80000100, "pop")
          .Add(kEnd, 0x80000104, "pop");
      marks.Add(kBegin, 0x80000030, "push").Add(kEnd, 0x80000040, "push");
      auto read = marks.Read();
      ASSERT_TRUE(read.ok());
      ASSERT_EQ(read->size(), 2u);
      EXPECT_THAT(read->at("push").begins, ElementsAre(0x80000010, 0x80000030));
      EXPECT_THAT(read->at("push").ends, ElementsAre(0x80000020, 0x80000040));
      EXPECT_THAT(read->at("pop").begins, ElementsAre(0x80000100));
    }
  }
}

TEST(CostMarks, APairRoundNothingIsNone) {
  auto read = Marks(32, false)
                  .Add(kBegin, 16, "x")
                  .Add(kEnd, 16, "x")
                  .Add(kBegin, 32, "x")
                  .Add(kEnd, 48, "x")
                  .Read();
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->at("x").begins, ElementsAre(32));
  EXPECT_THAT(read->at("x").ends, ElementsAre(48));
}

TEST(CostMarks, WhereOneCopyEndsTheNextMayBegin) {
  auto read = Marks(32, false)
                  .Add(kBegin, 16, "x")
                  .Add(kEnd, 32, "x")
                  .Add(kBegin, 32, "x")
                  .Add(kEnd, 48, "x")
                  .Read();
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->at("x").begins, ElementsAre(16, 32));
  EXPECT_THAT(read->at("x").ends, ElementsAre(32, 48));
}

TEST(CostMarks, DamageIsSaidAndNoSectionIsNone) {
  const Marks marks = Marks(32, false).Add(kBegin, 16, "name");
  EXPECT_TRUE(ReadCostMarks("", 32, false)->empty());
  for (size_t cut = 1; cut < 12; ++cut) EXPECT_EQ(marks.Read(cut + 3).ok(), cut + 3 >= 16) << cut;
  EXPECT_FALSE(Marks(32, false).Add(7, 16, "x").Read().ok());
}

TEST(NearNames, TheNearestComesFirstAndTheFarDoNotCome) {
  EXPECT_THAT(NearNames("emti", {"omit", "emit", "emits", "hangscope_masked", "emit"}, 2, 3),
              ElementsAre("emit", "emits"));
  EXPECT_THAT(NearNames("emi", {"omit", "emit", "far"}, 2, 3), ElementsAre("emit", "omit"));
  EXPECT_TRUE(NearNames("x", {"symbols"}, 3, 3).empty());
  EXPECT_EQ(NameDistance("kitten", "sitting"), 3u);
}

CostSubject Function(const std::string& name, uint64_t begin, uint64_t end) {
  return {name, false, {{begin, end}}, {}, {}};
}

TEST(AddPlugin, ComesBehindTheNameOfQemuWhereverThatIs) {
  const CostSubject mark = {"mark", true, {}, {{0x40}, {0x50, 0x60}}, {}};
  auto command = AddPlugin({"timeout", "5", "/usr/bin/qemu-system-riscv32", "-nographic"},
                           "/a,b/count.so", 7, {Function("f", 0x10, 0x20), mark});
  ASSERT_TRUE(command.ok());
  EXPECT_THAT(
      *command,
      ElementsAre("timeout", "5", "/usr/bin/qemu-system-riscv32", "-plugin",
                  "/a,,b/count.so,fd=7,range=0:0x10:0x20,begin=1:0x40,end=1:0x50,end=1:0x60",
                  "-nographic"));
  EXPECT_THAT(AddPlugin({"make", "qemu"}, "p", 7, {mark}).status().message(),
              HasSubstr("'make qemu' is no QEMU"));
  // no harts, but a process
  EXPECT_FALSE(AddPlugin({"qemu-riscv32", "program"}, "p", 7, {mark}).ok());
}

constexpr char kCounts[] =
    "{\"type\":\"loaded\",\"target\":\"riscv32\",\"harts\":2,\"api\":[0,1]}\n"
    "{\"type\":\"count\",\"piece\":0,\"hart\":0,\"entered\":10,\"instructions\":150,\"loads\":0,"
    "\"stores\":50}\n"
    "{\"type\":\"count\",\"piece\":0,\"hart\":1,\"entered\":2000,\"instructions\":30001,\"loads\":"
    "7,\"stores\":10000}\n"
    "{\"type\":\"end\"}\n";

CostReport ReportOf(std::string_view text, Status* status) {
  CostReport report;
  report.subjects = {Function("emit", 0x10, 0x20)};
  *status = ReadCounts(text, &report);
  return report;
}

TEST(ReadCounts, GoToTheirHarts) {
  Status status;
  const CostReport report = ReportOf(kCounts, &status);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(report.target, "riscv32");
  ASSERT_EQ(report.subjects[0].harts.size(), 2u);
  EXPECT_EQ(report.subjects[0].harts[1].instructions, 30001u);
  EXPECT_EQ(report.subjects[0].Total().stores, 10050u);
}

TEST(ReadCounts, WhatIsCutOrOfAnotherPieceIsNoCount) {
  const std::string text = kCounts;
  Status status;
  for (size_t length = 0; length < text.size() - 2; ++length) {
    ReportOf(text.substr(0, length), &status);
    EXPECT_FALSE(status.ok()) << length;
  }
  for (const char* other :
       {"{\"type\":\"count\",\"piece\":1,\"hart\":0}\n",
        "{\"type\":\"count\",\"piece\":0,\"hart\":2}\n",
        "{\"type\":\"count\",\"piece\":\"0\",\"hart\":0}\n", "[]\n", "7\n", "{\"type\":3}\n"}) {
    ReportOf(text.substr(0, text.find('\n') + 1) + other + "{\"type\":\"end\"}\n", &status);
    EXPECT_FALSE(status.ok()) << other;
  }
}

TEST(CostTable, HasALineForEachHartThatEnteredAndOneForAll) {
  Status status;
  CostReport report = ReportOf(kCounts, &status);
  EXPECT_EQ(CostTable(report),
            "NAME  HART  ENTERED  INSTRUCTIONS  LOADS  STORES\n"
            "emit     0       10            15      0       5\n"
            "emit     1    2 000        15.001  0.004       5\n"
            "emit   all    2 010        15.000  0.003       5\n");
  report.events_per_entry = 5;
  report.subjects[0].harts[1] = {};
  EXPECT_EQ(CostTable(report),
            "NAME  HART  ENTERED  INSTRUCTIONS  LOADS  STORES\n"
            "emit     0       10             3      0       1\n");
  report.subjects[0].harts[0] = {};
  EXPECT_THAT(CostTable(report), HasSubstr("emit   all        0             -      -       -\n"));
}

TEST(CostJson, HasTheCountsAndWhatAnEventTakes) {
  Status status;
  const auto json = nlohmann::json::parse(CostJson(ReportOf(kCounts, &status)));
  EXPECT_EQ(json["type"], "cost");
  EXPECT_EQ(json["subjects"][0]["kind"], "symbol");
  EXPECT_EQ(json["subjects"][0]["harts"][0]["per_event"]["stores"], 5);
  EXPECT_EQ(json["subjects"][0]["all"]["entered"], 2010);
}

}  // namespace
}  // namespace hangscope
