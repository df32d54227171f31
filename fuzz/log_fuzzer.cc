// Logs, as lines without their numbers or by a rule, and what of them reaches a
// terminal.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/utf8.h"
#include "fuzz.h"
#include "stream/log_line.h"
#include "stream/log_reader.h"
#include "stream/place_rule.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kLongestPattern = 64;

bool HasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

void CheckLine(std::string_view line) {
  bool redrawn = false;
  const std::string visible = VisibleText(line, &redrawn);
  FUZZ_REQUIRE(visible.size() <= line.size() && !HasControls(visible));
  std::string text;
  const LogLine normalized = NormalizeLogLine(line, &text);
  FUZZ_REQUIRE(text.size() <= kLongestPlaceText);
  FUZZ_REQUIRE(normalized.redrawn == redrawn);
  FUZZ_REQUIRE(!HasControls(Printable(line)));
  constexpr size_t kMost = 20;
  FUZZ_REQUIRE(!HasControls(Printable(line, kMost)));
}

using SeenStep = std::tuple<uint32_t, uint64_t, uint64_t, uint64_t>;

std::vector<SeenStep> Read(std::string_view text, const PlaceRule* rule, size_t piece) {
  std::vector<SeenStep> steps;
  CoreNames cores;
  PlaceTexts texts;
  LogReader reader(&cores, rule, &texts, "log", [&](uint32_t core, const Step& step) {
    FUZZ_REQUIRE(core < cores.size() && step.offset < text.size() && step.is_text);
    FUZZ_REQUIRE(texts.Find(step.pc).size() <= kLongestPlaceText);
    steps.emplace_back(core, step.pc, step.offset, step.values);
  });
  for (size_t at = 0; at < text.size(); at += piece) reader.Feed(text.substr(at, piece), at);
  reader.Flush();
  return steps;
}

void CheckRule(const PlaceRule& rule, std::string_view text) {
  for (Choices lines(text); !lines.empty();) {
    const std::string line(lines.ScanUntil('\n'));
    const auto match = rule.Find(line);
    FUZZ_REQUIRE(!match || (!match->place.empty() && match->place.size() <= line.size()));
  }
}

}  // namespace

// One byte chooses; if it is odd, the first line is a rule; the rest is the log.
void FuzzLog(std::string_view input) {
  Choices choices(input);
  const auto choice = choices.Take<uint8_t>();
  std::unique_ptr<PlaceRule> rule;
  if ((choice & 1) != 0) {
    auto compiled =
        PlaceRule::Compile(std::string(choices.ScanUntil('\n').substr(0, kLongestPattern)));
    FUZZ_REQUIRE(compiled.ok() || !compiled.status().message().empty());
    if (compiled.ok()) rule = std::move(*compiled);
  }
  const std::string_view text = choices.rest();
  for (Choices lines(text); !lines.empty();) CheckLine(lines.ScanUntil('\n'));
  if (rule != nullptr) CheckRule(*rule, text);
  FUZZ_REQUIRE(Read(text, rule.get(), text.size() + 1) ==
               Read(text, rule.get(), 1 + (choice >> 1)));
}

}  // namespace hangscope::fuzz
