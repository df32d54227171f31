#include "perf/recorded_rings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"

namespace hangscope {
namespace {

constexpr std::string_view kRingsFormat = "hangscope-rings";
constexpr int kRingsVersion = 1;
constexpr size_t kMostRings = 16'384;  // Linux allows 8192 CPUs

std::optional<RecordedRing> RecordedRingOf(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto cpu = IntegerField(json, "cpu");
  const auto since = TimeField(json, "recording_since_ns");
  const auto complete = TimeField(json, "complete_since_ns");
  const auto until = TimeField(json, "until_ns");
  if (!cpu || !since || !complete || !until) return std::nullopt;
  const bool possible = *cpu >= 0 && *cpu < static_cast<int64_t>(kMostRings) && *since >= 0 &&
                        *since <= *complete && *complete <= *until;
  if (!possible) return std::nullopt;
  return RecordedRing{static_cast<int>(*cpu), *since, *complete, *until};
}

}  // namespace

std::string RecordedRingsText(const RecordedRings& rings) {
  nlohmann::ordered_json json{{"format", kRingsFormat},
                              {"version", kRingsVersion},
                              {"from_ns", rings.window.from},
                              {"to_ns", rings.window.to},
                              {"policy", WindowPolicyName(rings.policy)},
                              {"process", rings.process}};
  json["rings"] = nlohmann::ordered_json::array();
  for (const RecordedRing& ring : rings.rings) {
    json["rings"].push_back({{"cpu", ring.cpu},
                             {"recording_since_ns", ring.recording_since},
                             {"complete_since_ns", ring.complete_since},
                             {"until_ns", ring.until}});
  }
  return JsonText(json);
}

std::optional<RecordedRings> ParseRecordedRings(std::string_view text) {
  const nlohmann::json json = ParseForeignJson(text);
  if (!json.is_object() || TextField(json, "format") != kRingsFormat ||
      NumberField(json, "version").value_or(0) != kRingsVersion)
    return std::nullopt;
  RecordedRings recorded;
  const auto from = TimeField(json, "from_ns");
  const auto to = TimeField(json, "to_ns");
  const nlohmann::json& rings = ListField(json, "rings");
  if (!from || !to || *from < 0 || *from > *to || rings.size() > kMostRings) return std::nullopt;
  recorded.window = {*from, *to};
  for (int policy = 0; policy <= static_cast<int>(WindowPolicy::kSinceLast); ++policy) {
    if (TextField(json, "policy") == WindowPolicyName(static_cast<WindowPolicy>(policy)))
      recorded.policy = static_cast<WindowPolicy>(policy);
  }
  recorded.process = static_cast<int>(
      std::clamp<int64_t>(IntegerField(json, "process").value_or(0), 0, INT32_MAX));
  for (const nlohmann::json& each : rings) {
    const auto ring = RecordedRingOf(each);
    if (!ring) return std::nullopt;
    recorded.rings.push_back(*ring);
  }
  return recorded;
}

}  // namespace hangscope
