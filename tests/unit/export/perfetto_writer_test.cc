#include "export/perfetto_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "export/timeline.h"
#include "fakes/fake_file_system.h"
#include "fakes/random_trace.h"
#include "fakes/timeline_recorder.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A message as protoc prints it.
struct Message {
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<std::pair<std::string, Message>> messages;

  std::string Value(const std::string& name) const {
    for (const auto& [key, value] : values) {
      if (key == name) return value;
    }
    return "";
  }
  uint64_t Number(const std::string& name) const {
    return std::strtoull(Value(name).c_str(), nullptr, 10);
  }
  std::vector<Message> All(const std::string& name) const {
    std::vector<Message> all;
    for (const auto& [key, message] : messages) {
      if (key == name) all.push_back(message);
    }
    return all;
  }
  std::optional<Message> One(const std::string& name) const {
    const std::vector<Message> all = All(name);
    return all.empty() ? std::nullopt : std::optional(all.front());
  }
};

// "\"a\\303\"" as the bytes that it stands for.
std::string Unquoted(const std::string& text) {
  if (text.empty() || text[0] != '"') return text;
  std::string bytes;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (text[i + 1] >= '0' && text[i + 1] <= '7') {
      bytes += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      ++i;
      bytes += text[i] == 'n' ? '\n' : text[i];
    }
  }
  return bytes;
}

Message Parse(std::istream& text) {
  Message message;
  for (std::string line; std::getline(text, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line == "}") break;
    if (line.ends_with(" {")) {
      message.messages.emplace_back(line.substr(0, line.size() - 2), Parse(text));
    } else {
      const size_t colon = line.find(": ");
      message.values.emplace_back(line.substr(0, colon), Unquoted(line.substr(colon + 2)));
    }
  }
  return message;
}

class PerfettoWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("protoc --version >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "protoc is missing: apt install protobuf-compiler";
    char name[] = "/tmp/hangscope-perfetto-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  Message Decode(TraceStory& story) {
    const std::string path = folder_ + "/trace.pftrace";
    std::filesystem::remove(path);
    const auto file = PosixFileSystem().Open(path, FileSystem::Mode::kCreate);
    EXPECT_TRUE(file.ok());
    const auto writer = MakePerfettoWriter(*file.value());
    const Status status = story.AnnounceTo(*writer);
    EXPECT_TRUE(status.ok()) << status.message();
    const std::string command = "protoc --decode=hangscope.test.Trace --proto_path='" TEST_DATA
                                "' perfetto.proto <" +
                                path + " >" + folder_ + "/text 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    Result<std::string> text = ReadWholeFile(PosixFileSystem(), folder_ + "/text");
    std::istringstream lines(text.value_or(""));
    return Parse(lines);
  }

  std::string folder_;
};

// Of one: what each row tells, as TimelineRecorder does; and what of it no viewer could make sense
// of.
struct ReadPackets {
  std::map<uint64_t, std::vector<std::string>> rows;  // by TimelineTrack::id
  std::map<uint64_t, std::string> names;
  std::map<std::string, std::map<std::string, std::string>> arguments;  // of the last of each name
  std::vector<std::string> broken;
  size_t resets = 0;
  size_t longest_text = 0;  // that readers have to keep
};

class Reader {
 public:
  ReadPackets Read(const Message& trace) {
    CheckKnown(trace, "Trace");
    for (const Message& packet : trace.All("packet")) ReadPacket(packet);
    for (const auto& [id, ends] : flows_) {
      if (ends != 2) Break("a flow has one end");
    }
    for (const auto& [track, open] : open_) {
      if (open != 0) Break("a slice is not closed");
    }
    return std::move(read_);
  }

 private:
  void CheckKnown(const Message& message, const std::string& where) {
    for (const auto& [name, value] : message.values) {
      if (name.find_first_not_of("0123456789") == std::string::npos)
        Break("an unknown field in " + where);
    }
    for (const auto& [name, inner] : message.messages) {
      if (name.find_first_not_of("0123456789") == std::string::npos)
        Break("an unknown message in " + where);
      CheckKnown(inner, name);
    }
  }
  void ReadPacket(const Message& packet) {
    if (packet.Number("trusted_packet_sequence_id") != 1) Break("a packet of no sequence");
    if ((packet.Number("sequence_flags") & 1) != 0) {
      ++read_.resets;
      texts_.clear();
    }
    if (const auto data = packet.One("interned_data")) {
      for (const auto& [sort, text] : data->messages) {
        if (!numbers_.insert({sort, text.Number("iid")}).second)
          Break("a number of a text is used twice");
        texts_[{sort, text.Number("iid")}] = text.Value("name");
        read_.longest_text = std::max(read_.longest_text, text.Value("name").size());
      }
    }
    if (const auto track = packet.One("track_descriptor")) ReadTrack(*track);
    if (const auto event = packet.One("track_event"))
      ReadEvent(*event, static_cast<TimeNs>(packet.Number("timestamp")), packet);
  }
  void ReadTrack(const Message& track) {
    const uint64_t id = track.Number("uuid");
    if (!tracks_.emplace(id, track.One("counter").has_value()).second)
      Break("a track is defined twice");
    if (!track.Value("parent_uuid").empty() && !tracks_.contains(track.Number("parent_uuid")))
      Break("an orphan track");
    if (id > 16) read_.names[id - 16] = track.Value("name");
  }
  std::string Text(const std::string& sort, uint64_t number) {
    const auto at = texts_.find({sort, number});
    if (at != texts_.end()) return at->second;
    Break("a number of a text that was not told");
    return "";
  }
  void ReadEvent(const Message& event, TimeNs time, const Message& packet) {
    const uint64_t track = event.Number("track_uuid");
    const std::string type = event.Value("type");
    if (!tracks_.contains(track)) return Break("an event of no track");
    if (tracks_[track] != (type == "TYPE_COUNTER"))
      Break("a counter's track with slices, or the other way round");
    if (packet.Number("timestamp_clock_id") != 3 || packet.Number("sequence_flags") < 2)
      Break("a packet without its clock or flags");
    if (track > 16) {
      if (time < last_[track]) Break("a track goes backwards");
      last_[track] = time;
    }
    if (type == "TYPE_SLICE_BEGIN") ++open_[track];
    if (type == "TYPE_SLICE_END" && open_[track]-- == 0) Break("an end without a begin");
    ReadFlows(event);
    const std::string category = event.Value("category_iids").empty()
                                     ? ""
                                     : Text("event_categories", event.Number("category_iids"));
    const std::string name = event.Value("name_iid").empty()
                                 ? event.Value("name")
                                 : Text("event_names", event.Number("name_iid"));
    ReadArguments(event, name);
    if (track <= 16) return;
    const std::map<std::string, std::string> sorts = {{"TYPE_SLICE_BEGIN", "B"},
                                                      {"TYPE_SLICE_END", "E"},
                                                      {"TYPE_INSTANT", "I"},
                                                      {"TYPE_COUNTER", "C"}};
    const std::string sort = category == "flow"      ? "F"
                             : category == "missing" ? "G"
                                                     : sorts.at(type);
    const std::string rest = type == "TYPE_COUNTER" ? event.Value("counter_value") : name;
    read_.rows[track - 16].push_back(
        fmt::format("{} {}{}{}", sort, time, rest.empty() ? "" : " ", rest));
  }
  void ReadFlows(const Message& event) {
    for (const auto& [key, value] : event.values) {
      if (key != "flow_ids" && key != "terminating_flow_ids") continue;
      if (flows_[value]++ != (key == "flow_ids" ? 0 : 1))
        Break("a flow's ends are not two, one behind the other");
    }
  }
  void ReadArguments(const Message& event, const std::string& name) {
    auto& arguments = read_.arguments[name];
    arguments.clear();
    for (const Message& argument : event.All("debug_annotations")) {
      std::string key = argument.Value("name");
      if (!argument.Value("name_iid").empty())
        key = Text("debug_annotation_names", argument.Number("name_iid"));
      for (const auto& [type, value] : argument.values) {
        if (type.ends_with("_value"))
          arguments[key] = type.substr(0, type.size() - 6) + " " + value;
      }
    }
  }
  void Break(const std::string& what) { read_.broken.push_back(what); }

  ReadPackets read_;
  std::map<uint64_t, bool> tracks_;  // whether it counts
  std::map<std::pair<std::string, uint64_t>, std::string> texts_;
  std::set<std::pair<std::string, uint64_t>> numbers_;
  std::map<uint64_t, TimeNs> last_;
  std::map<uint64_t, int64_t> open_;
  std::map<std::string, int> flows_;
};

TEST_F(PerfettoWriterTest, TellsOfEachTrackWhatThePictureShows) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    RandomTrace trace(seed);
    for (TraceItem& item : trace.story.items) {  // times of Perfetto have no sign
      if (auto* event = std::get_if<TraceEvent>(&item))
        event->time = std::max<TimeNs>(event->time, 0);
      if (auto* loss = std::get_if<TraceLoss>(&item))
        loss->time.from = std::max<TimeNs>(loss->time.from, 0);
    }
    TimelineRecorder picture;
    TimelineBuilder builder(picture);
    ASSERT_TRUE(trace.story.AnnounceTo(builder).ok());
    const ReadPackets read = Reader().Read(Decode(trace.story));
    ASSERT_THAT(read.broken, IsEmpty());
    for (const TimelineRecorder::Row& row : picture.rows()) {
      ASSERT_EQ(read.names.at(row.track.id), row.track.name);
      const auto told = read.rows.find(row.track.id);
      ASSERT_EQ(told == read.rows.end() ? 0 : told->second.size(), row.log.size())
          << row.track.name;
      for (size_t i = 0; i < row.log.size(); ++i)
        ASSERT_EQ(told->second[i], row.log[i]) << row.track.name << ", " << i;
    }
  }
}

TEST_F(PerfettoWriterTest, WritesValuesByTheirTypes) {
  TraceStory story(1);
  const std::string evil = "\"<b>\xff";
  auto& fields = story.head.kinds[0].fields;
  fields = {{.name = "large", .bits = 64},
            {.name = "minus", .type = TraceFieldType::kSigned},
            {.name = "named", .names = {{1, "one"}}},
            {.name = "lost"},
            {.name = "text", .type = TraceFieldType::kText},
            {.name = "yes", .type = TraceFieldType::kBool},
            {.name = "at", .type = TraceFieldType::kPointer}};
  TraceEvent event = story.At(10, TraceStory::kPlain, 0, 5);
  event.values = {{.bits = UINT64_MAX},
                  {.bits = static_cast<uint64_t>(-3)},
                  {.bits = 1},
                  {.bits = 0, .text = {}, .known = false},
                  {.bits = 0, .text = evil},
                  {.bits = 1},
                  {.bits = 0x80}};
  story.Add(event);
  const ReadPackets read = Reader().Read(Decode(story));
  EXPECT_THAT(read.broken, IsEmpty());
  const std::map<std::string, std::string> expected = {{"large", "uint 18446744073709551615"},
                                                       {"minus", "int -3"},
                                                       {"named", "string one"},
                                                       {"lost", "string ?"},
                                                       {"text", "string \"<b>\xef\xbf\xbd"},
                                                       {"yes", "bool true"},
                                                       {"at", "pointer 128"},
                                                       {"task", "int 5"}};
  EXPECT_EQ(read.arguments.at("mutex_lock"), expected);
}

TEST_F(PerfettoWriterTest, SaysWhichWallTimeItWas) {
  TraceStory story(1);
  story.head.time = {100, 1000};
  story.head.wall_minus_monotonic = 5000;
  story.head.host = "box";
  story.Plain(100);
  story.end.warnings = {"the last block is torn"};
  const Message trace = Decode(story);
  const auto clocks = trace.All("packet").front().One("clock_snapshot");
  ASSERT_TRUE(clocks);
  EXPECT_EQ(clocks->Number("primary_trace_clock"), 3u);
  ASSERT_EQ(clocks->All("clocks").size(), 2u);
  EXPECT_EQ(clocks->All("clocks")[0].Number("timestamp"), 100u);
  EXPECT_EQ(clocks->All("clocks")[1].Number("timestamp"), 5100u);
  const ReadPackets read = Reader().Read(trace);
  EXPECT_EQ(read.arguments.at("recording").at("host"), "string box");
  EXPECT_EQ(read.arguments.at("end of the recording").at("trouble"),
            "string the last block is torn");
}

// What was told has to be kept by who writes and by who reads: both forget it from time to time.
TEST_F(PerfettoWriterTest, KeepsNoMoreTextsThanItCanHold) {
  TraceStory story(1);
  for (int i = 0; i < 10000; ++i)
    story.Enter(i, TraceStory::kFunctionEnter, 0, {}, "f" + std::to_string(i))
        .Leave(i, TraceStory::kFunctionLeave, 0, {});
  story.Enter(10000, TraceStory::kFunctionEnter, 0, {}, std::string(5000, 'x'));
  story.end.time = 50000;
  const ReadPackets read = Reader().Read(Decode(story));
  EXPECT_THAT(read.broken, IsEmpty());
  EXPECT_LT(read.longest_text, 2000u);
  EXPECT_EQ(read.resets, 2u) << "at the begin, and once where there were too many";
  EXPECT_EQ(read.rows.at(1).size(), 20002u);
  EXPECT_EQ(read.rows.at(1)[19998], "B 9999 f9999");
  EXPECT_EQ(read.rows.at(1)[20000], "B 10000 " + std::string(5000, 'x'));
}

TEST(PerfettoWriterFailureTest, FailsWhereTheDiskIsFull) {
  TraceStory story(1);
  for (TimeNs time = 1; time < 20000; ++time) story.Plain(time);
  story.end.time = 20000;
  FakeFileSystem files;
  files.capacity = 100'000;
  const auto file = files.Open("full.pftrace", FileSystem::Mode::kCreate);
  const auto writer = MakePerfettoWriter(*file.value());
  EXPECT_THAT(story.AnnounceTo(*writer).message(), HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace hangscope
