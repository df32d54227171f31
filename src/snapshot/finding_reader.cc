#include "snapshot/finding_reader.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostFindingTexts = 1000;
constexpr size_t kMostSubjects = 4096;
constexpr size_t kMostWordsRead = 4096;

std::optional<uint32_t> Small(const Json& json, const char* name) {
  const auto number = CountField(json, name);
  if (!number || *number > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

// Of a process or thread.
int Id(const Json& json, const char* name) {
  const auto number = Small(json, name);
  return number && *number <= std::numeric_limits<int>::max() ? static_cast<int>(*number) : 0;
}

// x, y; nothing: there is none, or it is damaged.
std::optional<std::pair<uint32_t, uint32_t>> Node(const Json& json) {
  const Json& list = ListField(json, "node");
  const auto is_coordinate = [](const Json& value) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= UINT16_MAX;
  };
  if (list.size() != 2 || !is_coordinate(list[0]) || !is_coordinate(list[1])) return std::nullopt;
  return std::pair(list[0].get<uint32_t>(), list[1].get<uint32_t>());
}

std::vector<FindingSubject> Subjects(const Json& finding, const char* name) {
  std::vector<FindingSubject> subjects;
  for (const Json& json : ListField(finding, name)) {
    if (subjects.size() == kMostSubjects) break;
    FindingSubject subject{TextField(json, "name")};
    subject.core = Small(json, "core");
    subject.task = Small(json, "task");
    subject.process = Id(json, "process");
    subject.thread = Id(json, "thread");
    subject.host = TextField(json, "host");
    subject.memory = TextField(json, "memory");
    subject.node = Node(json);
    subject.does = TextField(json, "does");
    subject.at = TextField(json, "at");
    subject.where = TextField(json, "where");
    subject.inside = TextField(json, "inside");
    subject.callers = TextsField(json, "callers", kMostCallers);
    subject.waits_for = TextField(json, "waits_for");
    subject.lasts = SecondsField(json, "for_s");
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

}  // namespace

ReportFinding ReadFinding(const Json& json) {
  ReportFinding finding;
  finding.kind = TextField(json, "kind");
  static_cast<Finding&>(finding).kind =
      ByName(finding.kind, FindingKind::kZombie, FindingKindName, FindingKind::kHeld);
  finding.source = ByName(TextField(json, "source"), Source::kPerf, SourceName, Source::kThreads);
  finding.confidence = ConfidenceFromName(TextField(json, "confidence"));
  finding.is_warning = finding.kind == FindingKindName(FindingKind::kStackLow);
  finding.summary = TextField(json, "summary");
  finding.subjects = Subjects(json, "subjects");
  finding.partners = Subjects(json, "partners");
  finding.victims = Subjects(json, "victims");
  finding.resource = TextField(json, "resource");
  finding.first = TextField(json, "first");
  finding.lines = TextsField(json, "lines", kMostFindingTexts);
  finding.evidence = TextsField(json, "evidence", kMostFindingTexts);
  finding.doubts = TextsField(json, "doubts", kMostFindingTexts);
  finding.history = TextsField(json, "last_events", kMostFindingTexts);
  for (const Json& word : ListField(json, "words")) {
    if (finding.words.size() == kMostWordsRead) break;
    finding.words.push_back({TextField(word, "of"), TextField(word, "memory"),
                             TextField(word, "name"), IntegerField(word, "value"),
                             TextField(word, "text")});
  }
  return finding;
}

}  // namespace hangscope
