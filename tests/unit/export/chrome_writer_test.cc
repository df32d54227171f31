#include "export/chrome_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "export/timeline.h"
#include "fakes/fake_file_system.h"
#include "fakes/random_trace.h"
#include "fakes/timeline_recorder.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

std::string Written(TraceStory& story, FakeFileSystem& files) {
  const auto file = files.Open("trace.json", FileSystem::Mode::kCreate);
  EXPECT_TRUE(file.ok());
  const auto writer = MakeChromeWriter(*file.value());
  const Status status = story.AnnounceTo(*writer);
  EXPECT_TRUE(status.ok()) << status.message();
  return files.Save()["trace.json"];
}

// What the file says of each row, as TimelineRecorder does; and what of it no viewer could make
// sense of.
struct ReadBack {
  std::map<uint64_t, std::vector<std::string>> rows;
  std::map<uint64_t, std::string> names;
  std::map<uint64_t, std::vector<std::string>> open;
  std::map<std::string, Json> instants;  // the last of each name
  std::vector<std::string> broken;
};

void AddEvent(const Json& event, ReadBack* read, std::map<uint64_t, int>* flows) {
  const std::string phase = event.at("ph");
  const uint64_t row = event.at("tid");
  if (phase == "M") {
    if (event.at("name") == "thread_name") read->names[row] = event["args"]["name"];
    return;
  }
  const TimeNs time = std::llround(event.at("ts").get<double>() * 1000);
  if (row == 0) return;  // the trigger
  if (phase != "C" && !read->names.contains(row)) read->broken.push_back("a row without a name");
  const std::string name = event.value("name", "");
  std::string sort = phase == "i" ? "I" : phase;
  if (phase == "i") read->instants[name] = event;
  if (phase == "i" && event.at("cat") == "missing") sort = "G";
  if (phase == "s" || phase == "f") {
    sort = "F";
    int& ends = (*flows)[event.at("id")];
    if (ends++ != (phase == "s" ? 0 : 1))
      read->broken.push_back("a flow's ends are not two, one behind the other");
  }
  if (phase == "B") read->open[row].push_back(name + event.value("args", Json()).dump());
  if (phase == "E") {
    if (read->open[row].empty() ||
        read->open[row].back() != name + event.value("args", Json()).dump())
      return read->broken.push_back("an end is called otherwise than its begin");
    read->open[row].pop_back();
    return read->rows[row].push_back(fmt::format("E {}", time));
  }
  if (phase == "C")
    return read->rows[row].push_back(
        fmt::format("C {} {}", time, event.at("args").at("value").get<uint64_t>()));
  read->rows[row].push_back(fmt::format("{} {}{}{}", sort, time, name.empty() ? "" : " ", name));
}

ReadBack Read(const std::string& text) {
  ReadBack read;
  std::map<uint64_t, int> flows;
  const Json json = Json::parse(text);  // throws where it is not JSON, or not UTF-8
  EXPECT_EQ(json.at("displayTimeUnit"), "ns");
  for (const Json& event : json.at("traceEvents")) AddEvent(event, &read, &flows);
  for (const auto& [row, open] : read.open) {
    if (!open.empty()) read.broken.push_back("a slice is not closed");
  }
  for (const auto& [id, ends] : flows) {
    if (ends != 2) read.broken.push_back("a flow has one end");
  }
  return read;
}

TEST(ChromeWriterTest, TellsOfEachRowWhatThePictureShows) {
#ifdef __SANITIZE_THREAD__
  constexpr uint32_t kSeeds = 15;
#else
  constexpr uint32_t kSeeds = 60;
#endif
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    RandomTrace trace(seed);
    TimelineRecorder picture;
    TimelineBuilder builder(picture);
    ASSERT_TRUE(trace.story.AnnounceTo(builder).ok());
    FakeFileSystem files;
    const ReadBack read = Read(Written(trace.story, files));
    ASSERT_THAT(read.broken, IsEmpty());
    for (const TimelineRecorder::Row& row : picture.rows()) {
      const auto told = read.rows.find(row.track.id);
      ASSERT_EQ(told == read.rows.end() ? 0 : told->second.size(), row.log.size())
          << row.track.name;
      for (size_t i = 0; i < row.log.size(); ++i)
        ASSERT_EQ(told->second[i], row.log[i]) << row.track.name << ", " << i;
    }
  }
}

TEST(ChromeWriterTest, KeepsTextsOfTargetsTextsAndValidUtf8) {
  TraceStory story(1);
  const std::string evil = "\"}]</script>\\ \x1b[31m\n\xff\xed\xa0\x80 caf\xc3\xa9";
  story.head.tracks[0].name = evil;
  story.head.verdict = evil;
  story.head.kinds[0].fields.push_back({.name = "t\"", .type = TraceFieldType::kText, .bits = 0});
  TraceEvent event = story.At(10, TraceStory::kPlain);
  event.values[1].text = evil;
  story.Add(event);
  FakeFileSystem files;
  const std::string text = Written(story, files);
  const ReadBack read = Read(text);
  const std::string kept =
      "\"}]</script>\\ \x1b[31m\n\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd caf\xc3\xa9";
  EXPECT_EQ(read.names.at(1), kept);
  EXPECT_EQ(read.instants.at("mutex_lock")["args"]["t\""], kept);
  EXPECT_EQ(Json::parse(text)["otherData"]["verdict"], kept);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(ChromeWriterTest, WritesValuesByTheirTypes) {
  TraceStory story(1);
  auto& fields = story.head.kinds[0].fields;
  fields = {{.name = "small", .bits = 32},
            {.name = "large", .bits = 64},
            {.name = "minus", .type = TraceFieldType::kSigned},
            {.name = "named", .names = {{1, "one"}}},
            {.name = "small"}};
  TraceEvent event = story.At(1'234'567'890'123'456'789, TraceStory::kPlain, 0, 5);
  event.values = {{.bits = 7},
                  {.bits = UINT64_MAX},
                  {.bits = static_cast<uint64_t>(-3)},
                  {.bits = 1},
                  {.bits = 0, .text = {}, .known = false}};
  story.Add(event);
  story.end.time = event.time;
  FakeFileSystem files;
  const std::string text = Written(story, files);
  const Json args = Read(text).instants.at("mutex_lock")["args"];
  EXPECT_EQ(args, (Json{{"small", 7},
                        {"large", "18446744073709551615"},
                        {"minus", -3},
                        {"named", "one"},
                        {"small 2", "?"},
                        {"task", 5}}));
  EXPECT_THAT(text, HasSubstr(R"("ts":1234567890123456.789)"));
}

TEST(ChromeWriterTest, SaysWhatIsKnownOfTheRecordingAndWhatIsNot) {
  TraceStory story(1);
  story.head.host = "box";
  story.head.warnings = {"CPU 3 cannot be read"};
  story.head.trigger = 500;
  story.Leave(10, TraceStory::kCallLeave, 0, 5);
  story.end.losses = 4;
  FakeFileSystem files;
  const Json json = Json::parse(Written(story, files));
  EXPECT_EQ(json["otherData"]["host"], "box");
  EXPECT_EQ(json["otherData"]["losses"], "4");
  EXPECT_EQ(json["otherData"]["trouble"], "CPU 3 cannot be read");
  EXPECT_THAT(json["otherData"].dump(), HasSubstr("1 end of something"));
  EXPECT_THAT(json["traceEvents"].dump(), HasSubstr(R"("name":"trigger")"));
}

TEST(ChromeWriterTest, TellsCountersOfSeveralCoresApart) {
  TraceStory story(2);
  story.Fill(10, 0, 1).Fill(20, 1, 2);
  FakeFileSystem files;
  const Json json = Json::parse(Written(story, files));
  std::set<std::string> names;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "C") names.insert(event["name"]);
  }
  EXPECT_EQ(names, (std::set<std::string>{"core 0: fill of cb3", "core 1: fill of cb3"}));
}

TEST(ChromeWriterTest, FailsWhereTheDiskIsFull) {
  TraceStory story(1);
  for (TimeNs time = 1; time < 20000; ++time) story.Plain(time);
  story.end.time = 20000;
  FakeFileSystem files;
  EXPECT_EQ(Read(Written(story, files)).rows.at(1).size(), 19999u);
  files.capacity = 1'000'000;
  const auto file = files.Open("full.json", FileSystem::Mode::kCreate);
  const auto writer = MakeChromeWriter(*file.value());
  EXPECT_THAT(story.AnnounceTo(*writer).message(), HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace hangscope
