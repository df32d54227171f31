#include "stream/last_output.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/log_line.h"
#include "stream/trace_line.h"

namespace hangscope {
namespace {

constexpr uint64_t kStretch = 256u << 10;      // that is read at once
constexpr uint64_t kMostOfATrace = 32u << 20;  // of a stream that carries one

// A line that no log has by chance.
bool IsStep(std::string_view line) {
  const TraceLine::Kind kind = ParseTraceLine(line).kind;
  return kind != TraceLine::Kind::kOther && kind != TraceLine::Kind::kDetail;
}

// From the last line to the first, until `take` returns false.
template <typename Take>
void ForEachLineBackwards(std::string_view text, Take take) {
  while (!text.empty()) {
    const size_t newline = text.rfind('\n');
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (!take(text.substr(begin), begin)) return;
    text = text.substr(0, newline == std::string_view::npos ? 0 : newline);
  }
}

std::string Shortened(std::string text) {
  if (text.size() <= kLongestLastLine) return text;
  size_t size = kLongestLastLine;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size) + "...";
}

class LastLinesReader {
 public:
  LastLinesReader(BlockReader& reader, LastOutput* output) : reader_(reader), output_(*output) {}

  void Read(uint64_t end, const std::function<bool()>& stop) {
    const uint64_t oldest = std::max(reader_.begin_offset(), end - std::min(end, kMostOfATrace));
    uint64_t to = end;
    do {
      to = ReadStretch(std::max(oldest, to - std::min(to, kStretch)), to);
    } while (output_.of_trace && output_.lines.empty() && !cut_ && to > oldest && !stop());
    std::reverse(output_.lines.begin(), output_.lines.end());
    // Where little is printed stamps are far apart.
    if (output_.of_trace && newest_offset_)
      output_.time = reader_.TimeOf(*newest_offset_).value_or(0);
  }

 private:
  // Adds the lines in [from, to), where a line begins or all ends. Returns where the oldest whole
  // one begins.
  uint64_t ReadStretch(uint64_t from, uint64_t to) {
    std::string text = BytesOf(&from, to);
    if (from > 0) {
      const size_t newline = text.find('\n');
      cut_ = cut_ || newline == std::string::npos;
      const size_t half = newline == std::string::npos ? text.size() : newline + 1;
      text.erase(0, half);
      from += half;
    }
    AddLines(text, from, to == reader_.end_offset());
    return from;
  }

  // What no loss parts from its end; `from` becomes where that begins.
  std::string BytesOf(uint64_t* from, uint64_t to) {
    std::string text;
    reader_.Seek(*from);
    while (reader_.position() < to) {
      const auto event = reader_.Next(to - reader_.position());
      if (event == BlockReader::Event::kEnd) break;
      if (event == BlockReader::Event::kLoss) {
        text.clear();
        *from = reader_.loss().end;
        cut_ = true;
      } else {
        text += reader_.block();
      }
    }
    return text;
  }

  void AddLines(std::string_view text, uint64_t offset, bool at_end) {
    const bool open = at_end && !text.empty() && !text.ends_with('\n');
    if (text.ends_with('\n')) text.remove_suffix(1);
    ForEachLineBackwards(text, [&](std::string_view line, size_t) {
      output_.of_trace = output_.of_trace || IsStep(line);
      return !output_.of_trace;
    });
    ForEachLineBackwards(text, [&](std::string_view line, size_t begin) {
      const bool half = open && begin + line.size() == text.size();
      // Half a line of a trace looks like anything.
      if (output_.of_trace && (half || ParseTraceLine(line).kind != TraceLine::Kind::kOther))
        return true;
      AddLine(line, offset + begin, half);
      return output_.lines.size() < kMostLastLines;
    });
  }

  void AddLine(std::string_view line, uint64_t offset, bool half) {
    std::string text = VisibleText(line, nullptr);
    if (text.find_first_not_of(' ') == std::string::npos) return;
    if (!newest_offset_) newest_offset_ = offset;
    output_.unfinished = output_.unfinished || half;
    output_.lines.push_back(Shortened(std::move(text)));
  }

  BlockReader& reader_;
  LastOutput& output_;  // its lines the newest first
  std::optional<uint64_t> newest_offset_;
  bool cut_ = false;  // what is before that which was read does not lead to it
};

}  // namespace

std::vector<std::string> ReadLinesBefore(BlockReader& reader, uint64_t before) {
  LastOutput output;
  LastLinesReader(reader, &output).Read(before, [] { return true; });
  return std::move(output.lines);
}

LastOutput ReadLastOutput(FileSystem& files, const std::string& prefix, const std::string& name,
                          const std::function<bool()>& stop) {
  LastOutput output;
  output.stream = name;
  if (auto reader = BlockReader::Open(files, prefix); reader.ok())
    LastLinesReader(*reader, &output).Read(reader->end_offset(), stop);
  return output;
}

}  // namespace hangscope
