#include "stream/log_reader.h"

#include <algorithm>

#include "base/hash.h"
#include "stream/log_line.h"

namespace hangscope {
namespace {

constexpr size_t kLongestCoreName = 64;
constexpr std::string_view kOverlong = "a line of more than 64 KiB";

}  // namespace

LogReader::LogReader(CoreNames* cores, const PlaceRule* rule, PlaceTexts* texts, std::string nobody,
                     Sink sink)
    : cores_(cores),
      rule_(rule),
      texts_(texts),
      nobody_(std::move(nobody)),
      sink_(std::move(sink)) {}

void LogReader::HandleLine(std::string_view line, uint64_t offset) {
  if (rule_ != nullptr) {
    HandleMatch(line, offset);
  } else {
    HandleNormalized(line, offset);
  }
}

// Nobody knows what is in it, so it is never the same as another.
void LogReader::HandleOverlongLine(uint64_t offset) {
  if (rule_ != nullptr) return;
  const uint64_t place = HashBytes(kOverlong);
  if (texts_ != nullptr) texts_->Note(place, kOverlong);
  sink_(cores_->Number(nobody_), {place, offset, offset, true, false, true});
}

void LogReader::HandleMatch(std::string_view line, uint64_t offset) {
  text_ = VisibleText(line, nullptr);
  const auto match = rule_->Find(text_);
  if (!match) return;
  const uint64_t place = HashBytes(match->place);
  if (texts_ != nullptr) texts_->Note(place, match->place.substr(0, kLongestPlaceText));
  sink_(CoreOf(match->core), {place, offset, 0, false, false, true});
}

void LogReader::HandleNormalized(std::string_view line, uint64_t offset) {
  const LogLine normalized = NormalizeLogLine(line, &text_);
  if (!normalized.has_place) return;
  if (texts_ != nullptr) texts_->Note(normalized.place, text_);
  // A bar that is drawn anew moves, whatever it shows.
  const uint64_t values = normalized.redrawn ? HashWord(offset) : normalized.values;
  sink_(cores_->Number(nobody_), {normalized.place, offset, values, true, false, true});
}

uint32_t LogReader::CoreOf(std::string_view name) {
  if (name.empty() || cores_->size() >= kMostCores) return cores_->Number(nobody_);
  name = name.substr(0, kLongestCoreName);
  const bool number =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number ? cores_->Number("core " + std::string(name)) : cores_->Number(name);
}

}  // namespace hangscope
