// A folder of perf record --threads is one recording; the file in it that has the header is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_file_system.h"
#include "fakes/tick_image.h"
#include "perf/perf_file.h"
#include "perf/perf_sorter.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PerfThreadsFolderTest : public ::testing::Test {
 protected:
  PerfThreadsFolderTest() {
    image_.features[kPerfFeatureDirectory] = PerfWord(1);
    image_.records = {PerfRecordOf(kPerfFinishedInit, "")};
    files_.MakeFolders("rec").ok();
  }
  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(WriteWholeFile(files_, "rec/" + name, bytes).ok());
  }
  static std::string All(const std::vector<std::string>& records) {
    std::string bytes;
    for (const std::string& record : records) bytes += record;
    return bytes;
  }
  std::vector<int> Ticks(const std::string& path) {
    auto file = PerfFile::Open(files_, path);
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok()) return {};
    file_ = std::move(*file);
    return TickImage::TicksOf(*file_);
  }
  const std::vector<std::string>& Warnings() { return file_->facts().warnings; }

  TickImage image_;
  FakeFileSystem files_;
  std::unique_ptr<PerfFile> file_;
};

TEST_F(PerfThreadsFolderTest, ReadsAllFilesOfAFolder) {
  image_.records = {TickImage::Tick(0)};
  Write("data", image_.File());
  Write("data.10", TickImage::Tick(4));
  Write("data.2", TickImage::Tick(2) + TickImage::Tick(3));
  Write("data.0", TickImage::Tick(1));
  Write("data.1", "");
  Write("data.old", "of somebody else");
  EXPECT_TRUE(IsPerfData(files_, "rec"));
  EXPECT_THAT(Ticks("rec"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Warnings(), IsEmpty());
  EXPECT_EQ(file_->bytes(), image_.File().size() + 4 * TickImage::Tick(0).size());
}

TEST_F(PerfThreadsFolderTest, BringsTheRecordsOfAllFilesIntoTheOrderOfTime) {
  Write("data", image_.File());
  std::vector<std::string> each(3);
  for (int i = 0; i < 300; ++i) each[static_cast<size_t>(i) % 3] += TickImage::Tick(i);
  for (size_t i = 0; i < each.size(); ++i) Write("data." + std::to_string(i), each[i]);
  auto file = PerfFile::Open(files_, "rec");
  ASSERT_TRUE(file.ok());
  PerfSorter sorter(**file);
  ASSERT_TRUE((*file)
                  ->ForEachPlaced(
                      [&](const PerfRecord& record, const PerfRecordPlace& place,
                          std::string_view bytes) { return sorter.Add(record, place, bytes).ok(); })
                  .ok());
  PerfRecord record;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(sorter.Next(&record).value_or(false)) << i;
    ASSERT_EQ(record.time, 1000 + i);
  }
  EXPECT_FALSE(sorter.Next(&record).value_or(true));
}

TEST_F(PerfThreadsFolderTest, InflatesTheStreamOfEachFile) {
  Write("data", image_.File());
  Write("data.0", All(PerfCompressed({TickImage::Tick(0), TickImage::Tick(1)}, 40)));
  Write("data.1", All(PerfCompressed({TickImage::Tick(2), TickImage::Tick(3)}, 40)));
  EXPECT_THAT(Ticks("rec"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(PerfThreadsFolderTest, SaysInWhichFileItIsDamaged) {
  Write("data", image_.File());
  Write("data.0", TickImage::Tick(0));
  Write("data.1", TickImage::Tick(1) + TickImage::Tick(2).substr(0, 20));
  EXPECT_THAT(Ticks("rec"), ElementsAre(0, 1));
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("the record at offset 56 of 'data.1'")));
}

TEST_F(PerfThreadsFolderTest, SaysThatMostOfItLiesInTheOtherFiles) {
  image_.records = {TickImage::Tick(0)};
  Write("data", image_.File());
  Write("data.0", TickImage::Tick(1));
  Write("data.1", TickImage::Tick(2));
  EXPECT_THAT(Ticks("rec/data"), ElementsAre(0));
  EXPECT_THAT(Warnings(), ElementsAre(AllOf(HasSubstr("2 other files"), HasSubstr("'data.0'"),
                                            HasSubstr("name the folder, 'rec'"))));
}

TEST_F(PerfThreadsFolderTest, SaysThatTheOtherFilesAreNotThere) {
  image_.records = {TickImage::Tick(0)};
  Write("data", image_.File());
  for (const char* path : {"rec", "rec/data"}) {
    EXPECT_THAT(Ticks(path), ElementsAre(0));
    EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("none of which is in 'rec'"))) << path;
  }
  image_.features.erase(kPerfFeatureDirectory);  // as of perf record --kcore
  Write("data", image_.File());
  EXPECT_THAT(Ticks("rec"), ElementsAre(0));
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(PerfThreadsFolderTest, RefusesOtherFolders) {
  EXPECT_FALSE(IsPerfData(files_, "rec"));
  EXPECT_THAT(PerfFile::Open(files_, "rec").status().message(), HasSubstr("no file 'data'"));
  Write("data", "something else");
  EXPECT_FALSE(IsPerfData(files_, "rec"));
}

}  // namespace
}  // namespace hangscope
