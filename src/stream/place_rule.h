// What a user calls a place: a regular expression over log lines.
#ifndef HANGSCOPE_STREAM_PLACE_RULE_H
#define HANGSCOPE_STREAM_PLACE_RULE_H

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace re2 {
class RE2;
}

namespace hangscope {

// Thread-safe.
class PlaceRule {
 public:
  // The group (?P<place>...), or else the first unnamed one, is the place; the
  // group (?P<core>...), if any, says whose. Errors name the option --place-regex.
  static Result<std::unique_ptr<PlaceRule>> Compile(const std::string& pattern);
  ~PlaceRule();

  struct Match {
    std::string_view place;  // not empty; points into the line
    std::string_view core;   // empty: the rule has no such group, or it did not take part
  };
  // `line` has no colours: see VisibleText.
  std::optional<Match> Find(std::string_view line) const;

 private:
  explicit PlaceRule(std::unique_ptr<re2::RE2> regex);
  Status ChooseGroups(const std::string& pattern);

  std::unique_ptr<re2::RE2> regex_;
  int place_ = 0;
  int core_ = 0;  // 0: none
};

}  // namespace hangscope

#endif
