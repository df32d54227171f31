#include "watch/target_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/units.h"
#include "base/utf8.h"
#include "scope/delay_text.h"
#include "scope/watch_json.h"
#include "scope/words/target_words.h"
#include "watch/core_set.h"
#include "watch/live_items.h"

namespace hangscope {
namespace {

using Kind = SubjectId::Kind;

constexpr size_t kMostCoresInRow = 8;
constexpr size_t kMostDelayed = 8;  // told of in one line
constexpr const char* kNothing = "-";

std::string Cell(const SubjectState& subject, const WatchScene& scene, WatchColumn column) {
  const std::string cell = WatchCells(subject, scene)[static_cast<size_t>(column)];
  return cell.empty() ? kNothing : cell;
}

// Some of a node's cores.
struct NodeRow {
  std::vector<const SubjectState*> cores;
};

std::vector<NodeRow> RowsOf(const WatchScene& scene) {
  std::map<uint32_t, std::vector<NodeRow>> by_node;
  for (const SubjectState& subject : *scene.subjects) {
    if (subject.subject.kind != Kind::kCore || subject.activity == Activity::kUnused) continue;
    std::vector<NodeRow>& rows = by_node[subject.sample.node];
    if (rows.empty() || rows.back().cores.size() == kMostCoresInRow) rows.emplace_back();
    rows.back().cores.push_back(&subject);
  }
  std::vector<NodeRow> all;
  for (auto& [node, rows] : by_node) std::ranges::move(rows, std::back_inserter(all));
  return all;
}

// What all cores of a row have to say in one column.
template <typename Say>
std::string JoinRow(const NodeRow& row, Say say) {
  std::string text;
  for (const SubjectState* const core : row.cores) text += (text.empty() ? "" : ",") + say(*core);
  return text;
}

std::vector<std::string> NodeCells(const NodeRow& row, const WatchScene& scene) {
  std::vector<uint32_t> numbers;
  for (const SubjectState* const core : row.cores) numbers.push_back(scene.NumberOf(*core));
  const auto column = [&](WatchColumn which) {
    return JoinRow(row, [&](const SubjectState& core) { return Cell(core, scene, which); });
  };
  return {Cell(*row.cores[0], scene, WatchColumn::kNode),
          CoreNumbersText(numbers),
          column(WatchColumn::kAt),
          JoinRow(row,
                  [](const SubjectState& c) { return std::string(1, ActivityLetter(c.activity)); }),
          JoinRow(row,
                  [](const SubjectState& c) {
                    return c.sample.kernel == 0 ? kNothing : std::to_string(c.sample.kernel);
                  }),
          column(WatchColumn::kStack),
          column(WatchColumn::kRole)};
}

// A line for each node; the roles, which hardly ever differ from node to node, above them then.
std::string NodesText(const WatchScene& scene) {
  std::vector<std::vector<std::string>> table = {
      {"node", "cores", "waypoints", "activity", "kernels", "stack", "roles"}};
  for (const NodeRow& row : RowsOf(scene)) table.push_back(NodeCells(row, scene));
  if (table.size() == 1) return "";
  std::string text;
  const bool same_roles = std::all_of(table.begin() + 1, table.end(), [&](const auto& cells) {
    return cells.back() == table[1].back();
  });
  if (same_roles) {
    if (table[1].back().find_first_not_of("-,") != std::string::npos)
      text += fmt::format("  in each node: {}\n", table[1].back());
    for (auto& cells : table) cells.pop_back();
  }
  std::vector<size_t> widths(table[0].size());
  for (const auto& cells : table) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  for (const auto& cells : table) {
    std::string line = " ";
    for (size_t i = 0; i < cells.size(); ++i) line += fmt::format(" {:<{}} ", cells[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

// Ids, names and paths of those that cores run.
std::string KernelsText(const WatchScene& scene) {
  std::set<std::pair<uint32_t, std::string>> kernels;
  for (const SubjectState& subject : *scene.subjects) {
    if (subject.subject.kind != Kind::kCore || subject.sample.kernel == 0) continue;
    kernels.emplace(subject.sample.kernel,
                    scene.NamesOf(subject.subject).Kernel(subject.sample.kernel));
  }
  std::string text;
  for (const auto& [id, name] : kernels) text += fmt::format("  kernel {}\n", name);
  return text;
}

using DebugRings = std::map<std::pair<const LiveScope*, uint32_t>, std::vector<DebugValue>>;

// By the scope and its number in it: what each core wrote, the newest first.
DebugRings ReadDebugRings(Watchable& target) {
  DebugRings rings;
  for (LiveScope* const scope : target.Scopes()) {
    for (uint32_t node = 0; node < scope->reader().layout().node_count; ++node) {
      auto values = scope->reader().ReadDebugRing(node, scope->sample());
      if (!values.ok()) continue;
      for (const DebugValue& value : *values) rings[{scope, value.core}].push_back(value);
    }
  }
  return rings;
}

// What of a core is in its details.
struct CoreRecords {
  std::vector<DebugValue> debug;
  std::optional<CoreDetail> detail;
};

CoreRecords RecordsOf(const SubjectId& core, Watchable& target, const DebugRings& rings) {
  CoreRecords records;
  if (auto detail = target.source().Detail(core.index); detail.ok()) records.detail = *detail;
  const auto [scope, there] = target.HomeOf(core);
  if (const auto at = rings.find({scope, there.index}); at != rings.end())
    records.debug = at->second;
  return records;
}

std::string DebugText(const std::string& name, const CoreRecords& records) {
  if (records.debug.empty()) return "";
  const uint64_t shown = records.debug.size();
  const uint64_t written = records.detail ? records.detail->debug_written : shown;
  std::string text = fmt::format("  {}: debug ring, the newest first", name);
  if (written > shown) text += fmt::format(", {} older ones dropped", written - shown);
  text += "\n";
  for (size_t i = 0; i < records.debug.size(); ++i) {
    text += i % kMostCoresInRow == 0 ? (i == 0 ? "   " : "\n   ") : "";
    text += fmt::format(" {:08x}", records.debug[i].value);
  }
  return text + "\n";
}

bool IsShown(const SubjectState& subject) {
  return subject.subject.kind == Kind::kCore && subject.activity != Activity::kUnused;
}

}  // namespace

TargetLog::Said TargetLog::SaidBy(const SubjectState& subject) {
  return {subject.activity, subject.sample.waypoint, subject.wait ? subject.wait->resource : 0,
          subject.wait.has_value(), subject.sample.kernel};
}

std::string TargetLog::Head(const WatchScene& scene, TimeNs wall, size_t most_bytes) {
  table_.emplace(scene, true);
  said_.clear();
  life_ = target_.life();
  std::string text;
  size_t left_out = 0;
  for (const SubjectState& subject : *scene.subjects) {
    said_.push_back(SaidBy(subject));
    if (subject.activity == Activity::kUnused) continue;
    if (text.size() < most_bytes)
      text += fmt::format("{}  {}", FormatWallTime(wall), table_->Line(subject, scene));
    else
      ++left_out;
  }
  if (left_out > 0)
    text += fmt::format("and {} more, for which a file of the log has no room\n", left_out);
  return fmt::format("\n{}\n{:<24}  {}{}{}", target_.name(), "time", table_->Head(), text,
                     KernelsText(scene));
}

std::string TargetLog::Changes(const WatchScene& scene, TimeNs wall) {
  const auto& subjects = *scene.subjects;
  if (life_ != target_.life()) said_.clear();
  life_ = target_.life();
  said_.resize(subjects.size());
  std::string lines;
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Said says = SaidBy(subjects[i]);
    if (says == said_[i]) continue;
    said_[i] = says;
    if (!table_) table_.emplace(scene, true);
    lines += json_ ? SubjectJson(subjects[i], scene, wall)
                   : fmt::format("{}  {}", FormatWallTime(wall), table_->Line(subjects[i], scene));
  }
  return lines;
}

std::vector<std::string> TargetLog::Dump(const WatchScene& scene, const std::string& why,
                                         TimeNs wall) {
  ++dumps_;
  if (json_) return DumpJson(scene, why, wall);
  std::vector<std::string> texts = {fmt::format("{}  dump {} of {}, {}\n{}", FormatWallTime(wall),
                                                dumps_, Printable(target_.name()), why,
                                                NodesText(scene))};
  const DebugRings rings = ReadDebugRings(target_);
  for (const SubjectState& subject : *scene.subjects) {
    if (subject.subject.kind == Kind::kTask && subject.activity != Activity::kUnused)
      texts.push_back(fmt::format("  {}  {}\n", SubjectName(subject.subject, scene),
                                  SubjectDoing(subject, scene)));
    if (!IsShown(subject)) continue;
    const std::string name = SubjectName(subject.subject, scene);
    const CoreRecords records = RecordsOf(subject.subject, target_, rings);
    std::string text = DebugText(name, records);
    const std::string delays = records.detail ? DelaysText(*records.detail) : "";
    if (!delays.empty()) text += fmt::format("  {}: {}\n", name, delays);
    if (!text.empty()) texts.push_back(std::move(text));
  }
  std::string words;
  for (const std::string& line : WordLines(target_.Words(all_words_)))
    words += "    " + line + "\n";
  if (!words.empty()) texts.push_back("  words:\n" + words);
  texts.push_back(KernelsText(scene));
  return texts;
}

std::vector<std::string> TargetLog::DumpJson(const WatchScene& scene, const std::string& why,
                                             TimeNs wall) {
  std::vector<std::string> texts;
  const DebugRings rings = ReadDebugRings(target_);
  for (const SubjectState& subject : *scene.subjects) {
    if (!IsShown(subject)) continue;
    const CoreRecords records = RecordsOf(subject.subject, target_, rings);
    texts.push_back(
        DumpJsonLine(subject, scene, {dumps_, why}, records.detail, records.debug, wall));
  }
  if (const auto words = target_.Words(all_words_); !words.empty())
    texts.push_back(DumpWordsJson(scene.target, {dumps_, why}, words, wall));
  return texts;
}

std::vector<std::pair<SubjectId, CoreDetail>> DelayedCores(Watchable& target) {
  std::vector<std::pair<SubjectId, CoreDetail>> cores;
  for (const SubjectState& subject : target.watcher().subjects()) {
    if (!IsShown(subject)) continue;
    auto detail = target.source().Detail(subject.subject.index);
    if (detail.ok() && !DelaysText(*detail).empty()) cores.emplace_back(subject.subject, *detail);
  }
  return cores;
}

std::string DelayedCoresText(const std::vector<std::pair<SubjectId, CoreDetail>>& cores,
                             const WatchScene& scene) {
  std::string text;
  for (size_t i = 0; i < std::min(cores.size(), kMostDelayed); ++i)
    text += fmt::format("{}{}: {}", i == 0 ? "" : "; ", SubjectName(cores[i].first, scene),
                        DelaysText(cores[i].second));
  if (cores.size() > kMostDelayed)
    text += fmt::format("; and {} more", cores.size() - kMostDelayed);
  return text;
}

}  // namespace hangscope
