#include "target/hex_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/numbers.h"

namespace hangscope {
namespace {

constexpr size_t kMostInALine = 32;

// The next word, which it takes.
std::string_view NextWord(std::string_view* text) {
  const size_t begin = std::min(text->find_first_not_of(" \t\r"), text->size());
  const size_t end = std::min(text->find_first_of(" \t\r", begin), text->size());
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

std::optional<uint32_t> Hex(std::string_view word) {
  return word.size() == 8 && !HasHexPrefix(word) ? ParseHex<uint32_t>(word) : std::nullopt;
}

bool AppendBytes(std::string_view word, std::string* bytes) {
  if (word.size() % 2 != 0) return false;
  for (size_t i = 0; i < word.size(); i += 2) {
    const auto value = ParseHex<uint8_t>(word.substr(i, 2));
    if (!value) return false;
    bytes->push_back(static_cast<char>(*value));
  }
  return bytes->size() <= kMostInALine;
}

struct Line {
  uint32_t offset = 0;
  std::string bytes;
};

// Nothing: damaged.
std::optional<Line> ParseLine(std::string_view text) {
  const auto offset = Hex(NextWord(&text));
  if (!offset) return std::nullopt;
  std::vector<std::string_view> words;
  for (std::string_view word = NextWord(&text); !word.empty(); word = NextWord(&text)) {
    words.push_back(word);
    if (words.size() > kMostInALine + 1) return std::nullopt;
  }
  if (words.size() < 2) return std::nullopt;
  const auto check = Hex(words.back());
  words.pop_back();
  Line line{*offset, {}};
  for (const std::string_view word : words) {
    if (!AppendBytes(word, &line.bytes)) return std::nullopt;
  }
  std::string checked;
  for (int shift = 0; shift < 32; shift += 8)
    checked.push_back(static_cast<char>(*offset >> shift));
  if (!check || *check != Crc32(checked + line.bytes)) return std::nullopt;
  return line;
}

}  // namespace

// A dump begins with the scope's first bytes, or after the end of the one before.
Result<std::unique_ptr<HexDumpTarget>> HexDumpTarget::Parse(std::string name,
                                                            std::string_view text) {
  std::unique_ptr<HexDumpTarget> dump(new HexDumpTarget(name));
  std::unique_ptr<HexDumpTarget> last_ended;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t at = line.find("~hs ");
    if (at == std::string_view::npos) continue;
    std::string_view rest = line.substr(at + 4);
    std::string_view after = rest;
    if (NextWord(&after) == "end") {
      const auto count = Hex(NextWord(&after));
      if (!count) {
        ++dump->damaged_;
        continue;
      }
      dump->HandleEnd(*count);
      last_ended = std::move(dump);
      dump.reset(new HexDumpTarget(name));
    } else {
      dump->HandleLine(rest);
    }
  }
  if (last_ended != nullptr && last_ended->taken_ > 0) dump = std::move(last_ended);
  if (dump->taken_ == 0) {
    return Status::NotFound(name +
                            " is text without a dump of a scope: no sound line begins with '~hs '");
  }
  return dump;
}

void HexDumpTarget::CloseHole(uint64_t end) {
  if (hole_is_open_ && end > hole_begin_) holes_.push_back({hole_begin_, end - hole_begin_});
  hole_is_open_ = false;
}

void HexDumpTarget::HandleLine(std::string_view line) {
  auto parsed = ParseLine(line);
  if (!parsed || uint64_t{parsed->offset} + parsed->bytes.size() > kMostBytes) {
    ++damaged_;
    hole_is_open_ = true;
    return;
  }
  ++taken_;
  CloseHole(parsed->offset);
  hole_begin_ = uint64_t{parsed->offset} + parsed->bytes.size();
  lines_[parsed->offset] = std::move(parsed->bytes);
}

// A damaged line is one of those that did not come: it is counted once.
void HexDumpTarget::HandleEnd(uint64_t count) {
  ended_ = true;
  CloseHole(kMostBytes);
  const uint64_t came = taken_ + damaged_;
  missing_ = count - std::min(count, came);
}

Status HexDumpTarget::Read(uint64_t address, std::span<char> bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  std::fill(bytes.begin(), bytes.end(), '\0');
  const uint64_t first = address - std::min<uint64_t>(address, kMostInALine - 1);
  for (auto line = lines_.lower_bound(first);
       line != lines_.end() && line->first < address + bytes.size(); ++line) {
    const uint64_t begin = std::max(address, line->first);
    const uint64_t end = std::min(address + bytes.size(), line->first + line->second.size());
    if (begin < end)
      std::memcpy(bytes.data() + (begin - address), line->second.data() + (begin - line->first),
                  end - begin);
  }
  return {};
}

Status HexDumpTarget::Write(uint64_t, std::string_view) {
  return Status::Usage(name_ + " is text, and writing there changes no target");
}

bool HexDumpTarget::IsKnown(uint64_t address, uint64_t size_bytes) const {
  if (damaged_ == 0 && missing_ == 0 && ended_) return true;
  const uint64_t end = address + size_bytes;
  const uint64_t first = address - std::min<uint64_t>(address, kMostInALine - 1);
  for (auto line = lines_.lower_bound(first);
       line != lines_.end() && line->first <= address && address < end; ++line) {
    address = std::max(address, line->first + line->second.size());
  }
  if (address >= end) return true;
  if (missing_ != 0 || !ended_) return false;
  return std::none_of(holes_.begin(), holes_.end(), [&](const MemoryRange& hole) {
    return hole.begin < end && address < hole.begin + hole.size_bytes;
  });
}

std::string HexDumpTarget::warning() const {
  if (damaged_ == 0 && missing_ == 0 && ended_) return {};
  std::string text = fmt::format("the dump has {} sound lines, {} damaged", taken_, damaged_);
  text += ended_ ? fmt::format(" and {} missing", missing_) : " and no end";
  return text + "; what no sound line covers is not trusted";
}

}  // namespace hangscope
