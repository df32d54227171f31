#include "report/report_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "ring/block_reader.h"
#include "stream/log_line.h"
#include "stream/step_reader.h"

namespace hangscope {
namespace {

constexpr size_t kMostOfALine = 1000;
constexpr TimeNs kLatestTime = TimeNs{1} << 61;

// The newest lines of what it is fed.
class LastLines final : public LineReader {
 public:
  LastLines(size_t most, ReportStream* stream) : most_(most), stream_(*stream) {}

  void Lose(const Loss& loss) {
    DropPartial();
    stream_.lost.emplace_back(
        stream_.lines.size(),
        fmt::format("{} are missing: {}", FormatSize(loss.bytes()), LossReasonName(loss.reason)));
  }

  // What follows the last newline.
  void AddRest(std::string_view rest, uint64_t offset) {
    if (!rest.empty()) HandleLine(rest, offset);
  }

  void DropOldest() {
    auto& lines = stream_.lines;
    if (lines.size() <= most_) return;
    const size_t gone = lines.size() - most_;
    lines.erase(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(gone));
    std::erase_if(stream_.lost, [&](const auto& lost) { return lost.first < gone; });
    for (auto& lost : stream_.lost) lost.first -= gone;
  }

 private:
  void HandleLine(std::string_view line, uint64_t offset) override {
    ReportLine mine;
    mine.offset = offset;
    mine.core = CoreOf(line);
    mine.text = VisibleText(line.substr(0, kMostOfALine), nullptr);
    if (line.size() > kMostOfALine) mine.text += "...";
    stream_.lines.push_back(std::move(mine));
  }
  void HandleOverlongLine(uint64_t offset) override {
    stream_.lines.push_back({offset, std::nullopt, "", "(a line of more than 64 KiB)"});
  }

  std::string CoreOf(std::string_view line) {
    const TraceLine trace = ParseTraceLine(line);
    const bool of_a_core =
        trace.kind == TraceLine::Kind::kStep || trace.kind == TraceLine::Kind::kCommit;
    return of_a_core ? cores_.name(cores_.Number(trace)) : "";
  }

  const size_t most_;
  ReportStream& stream_;
  CoreNames cores_;
};

// Stamps are few: where both ends of a stretch arrived at once, all in between did.
void AddTimes(BlockReader& reader, TimeNs end, size_t first, size_t last,
              std::vector<ReportLine>* lines) {
  ReportTime& from = (*lines)[first].time;
  ReportTime& to = (*lines)[last].time;
  const auto time_of = [&](size_t i) -> ReportTime {
    const auto time = reader.TimeOf((*lines)[i].offset);
    const bool sane = time && *time > 0 && *time < kLatestTime;  // a stamp is a file's
    return sane ? ReportTime(*time - end) : std::nullopt;
  };
  if (!from) from = time_of(first);
  if (!to) to = time_of(last);
  if (last - first < 2) return;
  if (from && from == to) {
    for (size_t i = first + 1; i < last; ++i) (*lines)[i].time = from;
    return;
  }
  const size_t middle = first + (last - first) / 2;
  AddTimes(reader, end, first, middle, lines);
  AddTimes(reader, end, middle, last, lines);
}

}  // namespace

ReportTime MonotonicOf(FileSystem& files, const std::string& prefix, TimeNs wall) {
  auto reader = BlockReader::Open(files, prefix);
  if (!reader.ok()) return std::nullopt;
  const IndexHeader& header = reader->header();
  for (const TimeNs time : {header.start_monotonic, header.start_wall, wall}) {
    if (time <= 0 || time >= kLatestTime) return std::nullopt;
  }
  return header.start_monotonic + (wall - header.start_wall);
}

Status AddStreamLines(FileSystem& files, const std::string& prefix, const std::string& name,
                      ReportTime end, const StreamLimits& limits, Report* report) {
  auto reader = BlockReader::Open(files, prefix);
  if (!reader.ok()) return reader.status();
  ReportStream stream;
  stream.name = name;
  stream.bytes = reader->Window().bytes();
  LastLines lines(limits.lines, &stream);
  const uint64_t held = reader->end_offset() - reader->begin_offset();
  reader->Seek(reader->end_offset() - std::min(held, limits.bytes));
  std::string rest;
  uint64_t rest_offset = 0;
  for (auto event = reader->Next(); event != BlockReader::Event::kEnd; event = reader->Next()) {
    if (event == BlockReader::Event::kLoss) {
      lines.Lose(reader->loss());
      rest.clear();
      continue;
    }
    const std::string_view block = reader->block();
    lines.Feed(block, reader->block_offset());
    const size_t newline = block.rfind('\n');
    if (newline != std::string_view::npos) rest.clear();
    if (rest.empty())
      rest_offset = reader->block_offset() + (newline == std::string_view::npos ? 0 : newline + 1);
    if (rest.size() < kMostOfALine)
      rest +=
          block.substr(newline == std::string_view::npos ? 0 : newline + 1).substr(0, kMostOfALine);
  }
  lines.AddRest(rest, rest_offset);
  lines.DropOldest();
  if (reader->damaged_segments() > 0) {
    report->warnings.push_back(
        fmt::format("{}: the index of {} segments is damaged: what they hold is unknown", name,
                    reader->damaged_segments()));
  }
  if (end && !stream.lines.empty())
    AddTimes(*reader, *end, 0, stream.lines.size() - 1, &stream.lines);
  report->streams.push_back(std::move(stream));
  return {};
}

}  // namespace hangscope
