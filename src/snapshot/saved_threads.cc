#include "snapshot/saved_threads.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <sstream>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "snapshot/finding_reader.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLargestThreadsFile = 64u << 20;
constexpr size_t kMostSavedThreads = 4096;
constexpr uint64_t kLargestTid = INT32_MAX;
constexpr size_t kMostSavedFrames = 128;

ReportPlace FrameOf(const Json& json) {
  return {TextField(json, "function"), TextField(json, "source"), TextField(json, "module"),
          TextField(json, "pc"), ""};
}

std::vector<ReportPlace> StackIn(const Json& thread) {
  std::vector<ReportPlace> frames;
  for (const Json& frame : ListField(thread, "stack")) {
    if (frames.size() == kMostSavedFrames) break;
    frames.push_back(FrameOf(frame));
  }
  if (const std::string why = TextField(thread, "stack_trouble"); !why.empty())
    frames.push_back({"", "", "", "", why});
  return frames;
}

// The owner of a lock, the thread or the children that it waits for, the other ends of its files.
std::vector<uint64_t> WhomIn(const Json& wait) {
  std::set<uint64_t> whom;
  for (const char* field : {"owner", "thread"}) whom.insert(CountField(wait, field).value_or(0));
  for (const Json& child : ListField(wait, "children"))
    whom.insert(child.is_number_unsigned() ? child.get<uint64_t>() : 0);
  for (const Json& file : ListField(wait, "files")) {
    for (const Json& other : ListField(file, "others"))
      whom.insert(CountField(other, "pid").value_or(0));
  }
  whom.erase(0);
  return {whom.begin(), whom.end()};
}

class LineReader {
 public:
  void Read(const Json& line) {
    const std::string type = TextField(line, "type");
    if (type == "thread") AddThread(line);
    if (type == "process") {
      processes_[CountField(line, "pid").value_or(0)] =
          fmt::format("{}: {}", TextField(line, "name"), TextField(line, "command"));
    }
    if (type == "note" && TextField(line, "event") == "looked") {
      saved_.looked = TimeField(line, "monotonic_ns");
      saved_.looked_wall = TimeField(line, "wall_ns");
    }
    if (type != "verdict") return;
    for (const Json& finding : ListField(line, "findings"))
      saved_.findings.push_back(ReadFinding(finding));
  }
  void SkipDamaged() { ++saved_.damaged_lines; }

  SavedThreads Finish() {
    for (SavedThread& thread : saved_.threads) {
      const auto process = processes_.find(thread.pid);
      if (process != processes_.end())
        thread.process = fmt::format("{} {}", thread.pid, process->second);
    }
    return std::move(saved_);
  }

 private:
  void AddThread(const Json& json) {
    const auto tid = CountField(json, "tid");
    if (!tid || *tid > kLargestTid || saved_.threads.size() == kMostSavedThreads) return;
    const Json& wait = ObjectField(json, "waits_for");
    SavedThread thread;
    thread.tid = *tid;
    thread.pid = CountField(json, "pid").value_or(0);
    thread.name = TextField(json, "name");
    thread.state = TextField(json, "state");
    thread.stand = TextField(json, "stand");
    thread.does = TextField(json, "does");
    thread.lasts = SecondsField(json, "for_s");
    thread.waits_for = TextField(wait, "text");
    thread.by = WhomIn(wait);
    thread.where = FrameOf(ObjectField(json, "where"));
    thread.stack = StackIn(json);
    saved_.threads.push_back(std::move(thread));
  }

  SavedThreads saved_;
  std::map<uint64_t, std::string> processes_;  // name and command
};

}  // namespace

Result<SavedThreads> ReadSavedThreads(FileSystem& files, const std::string& path) {
  auto text = ReadWholeFile(files, path, kLargestThreadsFile);
  if (!text.ok()) return text.status();
  return ParseSavedThreads(*text);
}

SavedThreads ParseSavedThreads(const std::string& lines) {
  LineReader reader;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const Json json = ParseForeignJson(line);
    if (json.is_object())
      reader.Read(json);
    else
      reader.SkipDamaged();
  }
  return reader.Finish();
}

}  // namespace hangscope
