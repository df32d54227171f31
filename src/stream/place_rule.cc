#include "stream/place_rule.h"

#include "base/build_features.h"

#if HANGSCOPE_HAS_RE2

#include <fmt/format.h>
#include <re2/re2.h>

#include <array>
#include <map>

namespace hangscope {
namespace {

constexpr int kMostGroups = 16;

Status Bad(const std::string& pattern, const std::string& why) {
  constexpr std::string_view kExample = R"(--place-regex 'state=(?P<place>\w+)')";
  return Status::Usage(
      fmt::format("--place-regex '{}': {}; for example {}", pattern, why, kExample));
}

}  // namespace

PlaceRule::PlaceRule(std::unique_ptr<re2::RE2> regex) : regex_(std::move(regex)) {}

PlaceRule::~PlaceRule() = default;

Result<std::unique_ptr<PlaceRule>> PlaceRule::Compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_unique<RE2>(pattern, options);
  if (!regex->ok()) {
    std::string why = regex->error();  // "missing ): a(b"
    if (regex->error_code() == RE2::ErrorBadPerlOp ||
        regex->error_code() == RE2::ErrorBadNamedCapture) {
      why += "; a named group is written (?P<name>...)";
    }
    return Bad(pattern, why);
  }
  std::unique_ptr<PlaceRule> rule(new PlaceRule(std::move(regex)));
  if (Status status = rule->ChooseGroups(pattern); !status.ok()) return status;
  return rule;
}

Status PlaceRule::ChooseGroups(const std::string& pattern) {
  const int count = regex_->NumberOfCapturingGroups();
  if (count == 0)
    return Bad(pattern, "it has no group, so nothing says which part of the line is the place");
  if (count > kMostGroups) {
    return Bad(pattern, fmt::format("it has {} groups and may have {}; (?:...) does not count",
                                    count, kMostGroups));
  }
  for (const auto& [number, name] : regex_->CapturingGroupNames()) {
    if (name == "place") {
      place_ = number;
    } else if (name == "core") {
      core_ = number;
    } else {
      return Bad(pattern, fmt::format("the group '{}' is neither 'place' nor 'core'", name));
    }
  }
  const auto& names = regex_->CapturingGroupNames();
  for (int i = 1; place_ == 0 && i <= count; ++i) {
    if (names.find(i) == names.end()) place_ = i;
  }
  if (place_ == 0) return Bad(pattern, "it has a group for the core and none for the place");
  return {};
}

std::optional<PlaceRule::Match> PlaceRule::Find(std::string_view line) const {
  std::array<re2::StringPiece, kMostGroups + 1> groups;
  const re2::StringPiece text(line.data(), line.size());
  const int wanted = std::max(place_, core_) + 1;
  if (!regex_->Match(text, 0, text.size(), RE2::UNANCHORED, groups.data(), wanted))
    return std::nullopt;
  const auto view = [&](int i) { return std::string_view(groups[i].data(), groups[i].size()); };
  Match match;
  match.place = view(place_);
  if (core_ != 0) match.core = view(core_);
  if (match.place.empty()) return std::nullopt;
  return match;
}

}  // namespace hangscope

#else

namespace re2 {
class RE2 {};
}  // namespace re2

namespace hangscope {

PlaceRule::~PlaceRule() = default;

Result<std::unique_ptr<PlaceRule>> PlaceRule::Compile(const std::string&) {
  return Status::Usage(
      "--place-regex needs RE2, which this hangscope was built without (HANGSCOPE_WITH_RE2)");
}

std::optional<PlaceRule::Match> PlaceRule::Find(std::string_view) const { return std::nullopt; }

}  // namespace hangscope

#endif
