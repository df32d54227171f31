#include "tools/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_text.h"
#include "base/units.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

const Row kHeading = {"NAME", "HART", "ENTERED", "INSTRUCTIONS", "LOADS", "STORES"};

double PerEvent(uint64_t count, const CostCount& of, uint64_t events_per_entry) {
  return static_cast<double>(count) /
         (static_cast<double>(of.entered) * static_cast<double>(events_per_entry));
}

// A count that is the same for each event is a whole number.
std::string Number(double value) {
  return value == static_cast<double>(static_cast<uint64_t>(value)) ? fmt::format("{:.0f}", value)
                                                                    : fmt::format("{:.3f}", value);
}

Row RowOf(const std::string& name, const std::string& hart, const CostCount& count,
          uint64_t events) {
  return {name,
          hart,
          FormatCount(count.entered),
          Number(PerEvent(count.instructions, count, events)),
          Number(PerEvent(count.loads, count, events)),
          Number(PerEvent(count.stores, count, events))};
}

void AddRows(const CostSubject& subject, uint64_t events, std::vector<Row>* rows) {
  size_t lines = 0;
  for (size_t hart = 0; hart < subject.harts.size(); ++hart) {
    if (subject.harts[hart].entered == 0) continue;
    rows->push_back(RowOf(subject.name, std::to_string(hart), subject.harts[hart], events));
    ++lines;
  }
  if (lines > 1) rows->push_back(RowOf(subject.name, "all", subject.Total(), events));
  if (lines == 0) rows->push_back({subject.name, "all", "0", "-", "-", "-"});
}

Json JsonOf(const CostCount& count, uint64_t events) {
  Json json = {{"entered", count.entered},
               {"instructions", count.instructions},
               {"loads", count.loads},
               {"stores", count.stores}};
  if (count.entered != 0) {
    json["per_event"] = {{"instructions", PerEvent(count.instructions, count, events)},
                         {"loads", PerEvent(count.loads, count, events)},
                         {"stores", PerEvent(count.stores, count, events)}};
  }
  return json;
}

}  // namespace

std::string CostTable(const CostReport& report) {
  std::vector<Row> rows = {kHeading};
  for (const CostSubject& subject : report.subjects)
    AddRows(subject, report.events_per_entry, &rows);
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const Row& row : rows) {
    table += fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < kColumns; ++i) table += fmt::format("  {:>{}}", row[i], widths[i]);
    table += "\n";
  }
  return table;
}

std::string CostJson(const CostReport& report) {
  Json json = {{"type", "cost"},
               {"version", 1},
               {"target", report.target},
               {"complete", report.complete},
               {"events_per_entry", report.events_per_entry},
               {"subjects", Json::array()}};
  for (const CostSubject& subject : report.subjects) {
    Json one = {{"name", subject.name},
                {"kind", subject.is_mark ? "mark" : "symbol"},
                {"harts", Json::array()}};
    for (size_t hart = 0; hart < subject.harts.size(); ++hart) {
      Json line = {{"hart", hart}};
      line.update(JsonOf(subject.harts[hart], report.events_per_entry));
      one["harts"].push_back(line);
    }
    one["all"] = JsonOf(subject.Total(), report.events_per_entry);
    json["subjects"].push_back(one);
  }
  return JsonLine(json);
}

}  // namespace hangscope
