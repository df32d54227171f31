// What readers do not tell: refusals, full disks, legal names. tests/system/test_ctf.py has
// babeltrace2 read traces.
#include "export/ctf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "export/ctf_text.h"
#include "fakes/fake_file_system.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CtfWriterTest : public ::testing::Test {
 protected:
  CtfWriterTest() {
    head_.tracks = {{{RingKind::kCore, 0, ""}, "core 0"}, {{RingKind::kCore, 1, ""}, "core 1"}};
    TraceEventKind kind;
    kind.name = "step";
    kind.fields = {{"narrow", TraceFieldType::kUnsigned, 8, {}},
                   {"deep", TraceFieldType::kSigned, 16, {}}};
    head_.kinds.push_back(kind);
  }

  static TraceEvent Step(TimeNs time, uint64_t narrow, int64_t deep, size_t track = 0) {
    TraceEvent event;
    event.track = track;
    event.time = time;
    event.values = {{narrow}, {static_cast<uint64_t>(deep)}};
    return event;
  }
  // Until something fails.
  Status WriteSteps(int count) {
    CtfWriter writer(disk_, "out");
    Status status = writer.Begin(head_);
    for (int i = 0; status.ok() && i < count; ++i) status = writer.Write(Step(i, 1, 1));
    return status.ok() ? writer.End({}) : status;
  }
  std::string Metadata() { return disk_.BytesOf("out/metadata"); }

  FakeFileSystem disk_;
  TraceHead head_;
};

TEST_F(CtfWriterTest, RefusesAFolderThatHoldsSomething) {
  ASSERT_TRUE(WriteSteps(1).ok());
  const std::string before = Metadata();
  const Status again = WriteSteps(1);
  EXPECT_EQ(again.code(), Status::Code::kUsage);
  EXPECT_THAT(again.message(), HasSubstr("'out': it is not empty"));
  EXPECT_EQ(Metadata(), before);
}

TEST_F(CtfWriterTest, RefusesAFile) {
  disk_.Open("out", FileSystem::Mode::kCreate).value();
  const Status refused = WriteSteps(1);
  EXPECT_EQ(refused.code(), Status::Code::kUsage);
  EXPECT_THAT(refused.message(), HasSubstr("'out': it is a file"));
}

TEST_F(CtfWriterTest, TellsOfAFullDiskWhereverItIsMet) {
  ASSERT_TRUE(WriteSteps(10000).ok());
  const uint64_t needed = disk_.Used();
  for (const uint64_t capacity : {uint64_t{0}, uint64_t{50}, needed / 2, needed - 1}) {
    disk_.Clear();
    disk_.capacity = capacity;
    const Status status = WriteSteps(10000);
    EXPECT_EQ(status.error(), ENOSPC) << capacity << " of " << needed << " bytes";
    // A trace without metadata is none, not half of one.
    EXPECT_FALSE(disk_.Exists("out/metadata") && Metadata().ends_with("};\n\n")) << capacity;
  }
}

TEST_F(CtfWriterTest, StopsAtThePacketThatCannotBeWritten) {
  disk_.capacity = 50;
  CtfWriter writer(disk_, "out");
  ASSERT_TRUE(writer.Begin(head_).ok());
  int written = 0;
  while (written < 20000 && writer.Write(Step(written, 1, 1)).ok()) ++written;
  EXPECT_GT(written, 1000);
  EXPECT_LT(written, 10000) << "of which the first packets were lost";
}

TEST_F(CtfWriterTest, RefusesEventsAndLossesOfNoTrackOrKind) {
  CtfWriter writer(disk_, "out");
  ASSERT_TRUE(writer.Begin(head_).ok());
  EXPECT_THAT(writer.Write(Step(0, 0, 0, 2)).message(),
              HasSubstr("track 2 and kind 0 is of none of the trace's 2 tracks"));
  TraceEvent event = Step(0, 0, 0);
  event.kind = 1;
  EXPECT_EQ(writer.Write(event).code(), Status::Code::kCorrupt);
  TraceLoss loss;
  loss.track = 7;
  EXPECT_THAT(writer.Write(loss).message(), HasSubstr("a loss of track 7"));
}

TEST_F(CtfWriterTest, CountsWhatDoesNotFit) {
  CtfWriter writer(disk_, "out");
  ASSERT_TRUE(writer.Begin(head_).ok());
  for (const int64_t deep : {-32768, -1, 32767, 32768, -32769})
    ASSERT_TRUE(writer.Write(Step(5, 255, deep)).ok());
  ASSERT_TRUE(writer.Write(Step(5, 256, 0)).ok());
  ASSERT_TRUE(writer.Write(Step(4, 0, 0)).ok());
  ASSERT_TRUE(writer.Write(Step(-1, 0, 0, 1)).ok());
  ASSERT_TRUE(writer.End({}).ok());
  EXPECT_THAT(Metadata(), HasSubstr("\tvalues_cut = 3;\n"));
  EXPECT_THAT(Metadata(), HasSubstr("\ttimes_moved = 2;\n"));
}

TEST_F(CtfWriterTest, CountsNothingWhereAllFits) {
  ASSERT_TRUE(WriteSteps(3).ok());
  EXPECT_THAT(Metadata(), HasSubstr("\tevents = 3;\n"));
  EXPECT_THAT(Metadata(), Not(HasSubstr("values_cut")));
  EXPECT_THAT(Metadata(), Not(HasSubstr("times_moved")));
}

TEST_F(CtfWriterTest, KeepsTroublesAndTheVerdict) {
  head_.verdict = "deadlock";
  head_.since_cycles = {{"/soc/host", "looping", 284'564}};
  head_.warnings = {"ring 3 could not be read"};
  TraceEnd end;
  end.warnings = {"ring 3 could not be read", "the end is torn"};
  CtfWriter writer(disk_, "out");
  ASSERT_TRUE(writer.Begin(head_).ok());
  ASSERT_TRUE(writer.End(end).ok());
  EXPECT_THAT(Metadata(), HasSubstr("\tverdict = \"deadlock\";\n"));
  EXPECT_THAT(Metadata(),
              HasSubstr("\tsince_cycle_0 = \"/soc/host: looping since cycle 284564\";\n"));
  EXPECT_THAT(
      Metadata(),
      HasSubstr(
          "\ttrouble_0 = \"ring 3 could not be read\";\n\ttrouble_1 = \"the end is torn\";\n};"));
}

TEST(CtfTextTest, LiteralsHoldOnlyWhatCanBeRead) {
  EXPECT_EQ(CtfLiteral("plain: µ"), "\"plain: µ\"");
  EXPECT_EQ(CtfLiteral("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(CtfLiteral("\x1b[2J\n\xff"), R"("\\x1b[2J\\n\\xff")");
}

TEST(CtfTextTest, NothingEndsACommentButItsEnd) {
  EXPECT_EQ(CtfComment("a*/b"), "/* a* /b */");
  EXPECT_EQ(CtfComment("/*/"), "/* / * / */");
  EXPECT_EQ(CtfComment("/"), "/* / */");
}

TEST(CtfTextTest, NamesAreLegalAndDiffer) {
  CtfFieldNames names;
  EXPECT_EQ(names.Add("struct", 0), "_struct");
  EXPECT_EQ(names.Add("a b", 1), "_a_b");
  EXPECT_EQ(names.Add("a_b", 2), "_a_b_2");
  EXPECT_EQ(names.Add("", 3), "_field_3");
  EXPECT_EQ(names.Add("_x", 4), "__x");
  EXPECT_EQ(names.Add("x", 5), "_x_2");  // "_x" is what a reader shows of the one before
  EXPECT_EQ(names.Add(std::string(300, 'n'), 6).size(), 256u);
}

TEST(CtfTextTest, StringsEndNowhereElse) {
  std::string made;
  EXPECT_EQ(CtfString("größe\x1b\n", &made), "größe\x1b\n");
  EXPECT_EQ(CtfString(std::string_view("a\0b", 3), &made), "a\\x00b");
  EXPECT_EQ(CtfString("\xff!", &made), "\\xff!");
  // Wherever it stands in a text of several words.
  for (size_t at = 0; at < 19; ++at) {
    std::string text =
        "\x01"
        "bcdefghijklmnopq\x7f"
        "r";
    EXPECT_EQ(CtfString(text, &made).data(), text.data());  // as it is
    text[at] = '\0';
    EXPECT_THAT(std::string(CtfString(text, &made)), HasSubstr("\\x00")) << at;
    text[at] = '\x80';
    EXPECT_THAT(std::string(CtfString(text, &made)), HasSubstr("\\x80")) << at;
  }
}

}  // namespace
}  // namespace hangscope
