#include "control/recorder_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;

const Row kHeading = {"PID", "CHILD", "NAME", "AGE", "BYTES", "RATE", "SNAPSHOTS", "STATE"};
constexpr std::array<bool, kColumns> kIsNumber = {true, true, false, true, true, true, true, false};

// In a table a count of characters, not of bytes, makes columns.
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Cut(std::string text, size_t columns) {
  if (columns == 0 || Width(text) <= columns) return text;
  while (Width(text) >= columns) text.pop_back();
  return text + "…";
}

std::string StateText(const RecorderStatus& recorder) {
  const std::string word = recorder.hang ? "HANG: " : "";
  const std::string& summary = recorder.summary.empty() ? recorder.state : recorder.summary;
  const bool sure = recorder.confidence.empty() || recorder.confidence == "likely" ||
                    recorder.confidence == "certain";
  return Printable(word + summary + (sure ? "" : " (" + recorder.confidence + ")"));
}

Row RowOf(const RecorderStatus& recorder) {
  const std::string pid = std::to_string(recorder.pid);
  if (!recorder.answered) return {pid, "-", "-", "-", "-", "-", "-", "does not answer"};
  const std::string child = recorder.child_pid == 0 ? "-" : std::to_string(recorder.child_pid);
  return {pid,
          child,
          Printable(recorder.name),
          FormatElapsed(recorder.age),
          FormatSize(recorder.total_bytes),
          FormatRate(recorder.bytes_per_second),
          std::to_string(recorder.snapshots),
          StateText(recorder)};
}

}  // namespace

std::string RecorderTable(const std::vector<RecorderStatus>& recorders, size_t columns) {
  std::vector<Row> rows = {kHeading};
  for (const RecorderStatus& recorder : recorders) rows.push_back(RowOf(recorder));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string table;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") +
              (kIsNumber[i] ? padding + row[i] : row[i] + (i + 1 < kColumns ? padding : ""));
    }
    table += Cut(line, columns) + "\n";
  }
  return table;
}

}  // namespace hangscope
