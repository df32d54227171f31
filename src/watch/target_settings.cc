#include "watch/target_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/comma_list.h"
#include "base/near_name.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "hangscope/abi/watch.h"

namespace hangscope {
namespace {

constexpr uint32_t kMostRounds = 0x7fffffffu;
constexpr size_t kNearSetting = 2;
constexpr uint32_t kAllClasses = 0xffffffffu;
constexpr int kLastClass = 30;

struct Setting {
  std::string name;
  std::string value;
};

struct Feature {
  const char* name;
  uint32_t bit;
};
constexpr Feature kFeatures[] = {{"waypoints", HANGSCOPE_WATCH_WAYPOINTS},
                                 {"waits", HANGSCOPE_WATCH_WAITS},
                                 {"asserts", HANGSCOPE_WATCH_ASSERTS},
                                 {"pauses", HANGSCOPE_WATCH_PAUSES},
                                 {"debug", HANGSCOPE_WATCH_DEBUG},
                                 {"delays", HANGSCOPE_WATCH_DELAYS},
                                 {"bus", HANGSCOPE_WATCH_BUS},
                                 {"stacks", HANGSCOPE_WATCH_STACKS},
                                 {"guards", HANGSCOPE_WATCH_GUARDS}};
// As hangscope/config.h has them.
constexpr std::pair<const char*, uint32_t> kClasses[] = {{"task", 1u << 0}, {"sync", 1u << 1},
                                                         {"isr", 1u << 2},  {"meta", 1u << 3},
                                                         {"user", 1u << 4}, {"history", 1u << 31}};

// "a=1,b=2": two; "a=1,2": one whose value is a list.
std::vector<Setting> Split(const std::vector<std::string>& words) {
  std::vector<Setting> settings;
  for (const std::string& word : words) {
    bool is_first = true;
    for (const std::string& part : SplitAtCommas(word)) {
      const size_t equals = part.find('=');
      if (equals != std::string::npos)
        settings.push_back({part.substr(0, equals), part.substr(equals + 1)});
      else if (!settings.empty() && !is_first)
        settings.back().value += "," + part;
      else
        settings.push_back({part, ""});
      is_first = false;
    }
  }
  return settings;
}

Status Wrong(const Setting& setting, const std::string& why) {
  return Status::Usage(
      fmt::format("'{}={}': {}", Printable(setting.name), Printable(setting.value), why));
}

Status Unknown(const Setting& setting, const std::vector<std::string>& known) {
  const std::vector<std::string> near = NearNames(setting.name, known, kNearSetting, 1);
  if (!near.empty())
    return Status::Usage(
        fmt::format("unknown setting '{}', did you mean '{}'?", Printable(setting.name), near[0]));
  return Status::Usage(fmt::format("unknown setting '{}'; there are {}", Printable(setting.name),
                                   fmt::join(known, ", ")));
}

Result<uint32_t> ParseDelay(const Setting& setting) {
  if (setting.value == "off") return 0u;
  std::string_view text = setting.value;
  constexpr std::string_view kRandom = "random:";
  const bool random = text.starts_with(kRandom);
  if (random) text.remove_prefix(kRandom.size());
  const auto rounds = ParseDecimalOrHex<uint32_t>(text);
  if (!rounds || *rounds > kMostRounds)
    return Wrong(setting, "how many rounds of a loop, or random:500 for up to so many; 0 is off");
  return random && *rounds != 0 ? *rounds | HANGSCOPE_DELAY_RANDOM : *rounds;
}

Result<uint32_t> ParseClass(const Setting& setting, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [one, bit] : kClasses) {
    if (name == one) return bit;
    known.emplace_back(one);
  }
  const auto number = ParseDecimalOrHex<uint32_t>(name);
  if (number && *number <= kLastClass) return 1u << *number;
  const std::vector<std::string> near = NearNames(name, known, kNearSetting, 1);
  if (!near.empty())
    return Wrong(setting, fmt::format("there is no class '{}', did you mean '{}'?", Printable(name),
                                      near[0]));
  return Wrong(setting,
               "classes are task, sync, isr, meta, user, history, and 4 to 30 by their numbers");
}

std::optional<bool> OnOrOff(const std::string& value) {
  if (value == "1" || value == "on") return true;
  if (value == "0" || value == "off") return false;
  return std::nullopt;
}

}  // namespace

Result<DelaySettings> ParseDelaySettings(const std::vector<std::string>& words) {
  const std::vector<std::string> kinds = {"read", "write", "atomic"};
  DelaySettings delays;
  for (const Setting& setting : Split(words)) {
    if (setting.name == "seed") {
      delays.seed = ParseDecimalOrHex<uint32_t>(setting.value);
      if (!delays.seed) return Wrong(setting, "a number below 2^32; for example seed=7");
      continue;
    }
    const auto kind = std::find(kinds.begin(), kinds.end(), setting.name);
    if (kind == kinds.end()) return Unknown(setting, {"read", "write", "atomic", "seed"});
    auto delay = ParseDelay(setting);
    if (!delay.ok()) return delay.status();
    delays.delays[static_cast<size_t>(kind - kinds.begin())] = *delay;
  }
  const bool any = delays.seed || std::any_of(delays.delays.begin(), delays.delays.end(),
                                              [](const auto& d) { return d.has_value(); });
  if (!any) return Status::Usage("no delay is given; for example read=100,write=random:500 seed=7");
  return delays;
}

Result<uint32_t> ParseMaskSetting(const std::vector<std::string>& words) {
  const std::vector<Setting> settings = Split(words);
  if (settings.size() != 1 || settings[0].name != "classes") {
    for (const Setting& setting : settings) {
      if (setting.name != "classes") return Unknown(setting, {"classes"});
    }
    return Status::Usage(
        "which classes are recorded; for example classes=task,sync, classes=all, or classes=0 for "
        "none");
  }
  const Setting& setting = settings[0];
  if (setting.value == "all") return kAllClasses;
  if (setting.value == "0" || setting.value == "off") return 0u;
  // A number alone is the mask; in a list it is a class.
  if (setting.value.starts_with("0x")) {
    const auto mask = ParseDecimalOrHex<uint32_t>(setting.value);
    return mask && *mask <= kAllClasses ? Result<uint32_t>(*mask)
                                        : Wrong(setting, "a mask of classes, 0 to 0xffffffff");
  }
  uint32_t mask = 0;
  for (const std::string& word : SplitAtCommas(setting.value)) {
    auto one = ParseClass(setting, word);
    if (!one.ok()) return one.status();
    mask |= *one;
  }
  return mask;
}

Result<uint32_t> ParseFreezeSetting(const std::vector<std::string>& words) {
  uint32_t after = 0;
  for (const Setting& setting : Split(words)) {
    if (setting.name != "after") return Unknown(setting, {"after"});
    const auto records = ParseDecimalOrHex<uint32_t>(setting.value);
    if (!records || *records > kMostRounds)
      return Wrong(setting, "how many more records; for example after=100");
    after = *records;
  }
  return after;
}

Result<uint32_t> ParseFeatureSettings(const std::vector<std::string>& words, uint32_t built,
                                      uint32_t switches) {
  std::vector<std::string> names = {"all"};
  for (const Feature& feature : kFeatures) names.push_back(feature.name);
  for (const Setting& setting : Split(words)) {
    uint32_t bits = setting.name == "all" ? built : 0;
    for (const Feature& feature : kFeatures) {
      if (setting.name == feature.name) bits = feature.bit;
    }
    if (std::find(names.begin(), names.end(), setting.name) == names.end())
      return Unknown(setting, names);
    const auto on = OnOrOff(setting.value);
    if (!on) return Wrong(setting, "1 or on, 0 or off");
    if (*on && (bits & ~built) != 0) return Wrong(setting, "the target was built without it");
    switches = *on ? switches | bits : switches & ~bits;
  }
  return switches;
}

std::string FeaturesText(uint32_t built, uint32_t switches) {
  std::string text;
  for (const Feature& feature : kFeatures) {
    if ((built & feature.bit) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", feature.name,
                        (switches & feature.bit) != 0 ? "on" : "off");
  }
  return text.empty() ? "none" : text;
}

}  // namespace hangscope
