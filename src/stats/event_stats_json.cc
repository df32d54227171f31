#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "stats/event_tables.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

class StatsJsonMaker {
 public:
  StatsJsonMaker(const EventStats& stats, const ScopeLayout& layout)
      : stats_(stats), layout_(layout) {}

  Json Make() const {
    Json json{{"type", "stats"}, {"version", kJsonVersion}};
    json["ns_per_tick"] = NsPerTick();
    json["cores"] = List(stats_.cores, [&](const CoreNumbers& c) { return Core(c); });
    json["tasks"] = List(stats_.tasks, [&](const TaskNumbers& t) { return Task(t); });
    json["interrupts"] = List(stats_.interrupts, [&](const InterruptNumbers& each) {
      return Merged({{"interrupt", each.interrupt}}, LengthsJson(each.lengths));
    });
    json["mutexes"] = List(stats_.mutexes, [&](const MutexNumbers& each) {
      return Merged({{"mutex", fmt::format("{:#x}", each.mutex)}}, LengthsJson(each.held));
    });
    json["inversions"] = List(stats_.inversions, [&](const Inversion& each) {
      return Json{{"mutex", fmt::format("{:#x}", each.mutex)},
                  {"waiter", each.waiter},
                  {"holder", each.holder},
                  {"runner", each.runner},
                  {"waits", each.waits},
                  {"total_ticks", each.total},
                  {"longest", OneJson(each.longest)}};
    });
    json["idle"] = {{"known", stats_.idle.known()},
                    {"tasks", stats_.idle.tasks},
                    {"nobody", stats_.idle.nobody},
                    {"why", stats_.idle.why}};
    json["earlier_events"] = stats_.earlier;
    json["ambiguous_events"] = stats_.doubtful;
    json["mutex_waits"] = stats_.contended;
    json["mutex_waits_not_judged"] = stats_.not_judged;
    json["clocks_are_apart"] = stats_.clocks_are_apart;
    return json;
  }

 private:
  Json NsPerTick() const {
    constexpr uint64_t kMany = 1'000'000'000;
    const auto from = layout_.Nanoseconds(0), to = layout_.Nanoseconds(kMany);
    if (!from || !to) return nullptr;
    return static_cast<double>(*to - *from) / static_cast<double>(kMany);
  }
  template <typename T, typename MakeOne>
  static Json List(const std::vector<T>& list, const MakeOne& make) {
    Json json = Json::array();
    for (const T& each : list) json.push_back(make(each));
    return json;
  }
  static Json Merged(Json first, const Json& second) {
    first.update(second);
    return first;
  }
  static Json OneJson(const Lengths::One& one) {
    Json json{{"ticks", one.length}, {"at_ticks", one.at}, {"core", one.core}};
    json["task"] = one.task ? Json(*one.task) : Json(nullptr);
    return json;
  }
  static Json OneOrNull(const std::optional<Lengths::One>& one) {
    return one ? OneJson(*one) : Json(nullptr);
  }
  static Json LengthsJson(const Lengths& lengths) {
    return {{"measured", lengths.measured},
            {"longest", OneOrNull(lengths.longest)},
            {"cut", lengths.cut},
            {"longest_cut", OneOrNull(lengths.longest_cut)}};
  }
  Json Core(const CoreNumbers& core) const {
    Json json{{"core", core.core},
              {"name", core.name},
              {"from_ticks", core.from},
              {"to_ticks", core.to},
              {"unknown_ticks", core.unknown},
              {"nobody_ticks", core.nobody}};
    json["idle_ticks"] = stats_.idle.known() ? Json(core.idle) : Json(nullptr);
    json["lost_before"] = core.overwritten;
    json["lost_within"] = core.lost;
    json["classes"] = core.classes ? Json(*core.classes) : Json(nullptr);
    return json;
  }
  static Json Task(const TaskNumbers& task) {
    Json json{{"task", task.task}};
    json["priority"] = task.priority ? Json(*task.priority) : Json(nullptr);
    json.update(Json{{"ran_ticks", task.ran},
                     {"switches", task.switches},
                     {"wakes", task.wakes},
                     {"measured", task.measured}});
    if (task.measured > 0)
      json.update(Json{{"shortest_ticks", task.shortest},
                       {"median_ticks", task.median},
                       {"longest", OneJson(task.longest)}});
    if (task.not_run) json["not_run"] = OneJson(*task.not_run);
    return json;
  }

  const EventStats& stats_;
  const ScopeLayout& layout_;
};

}  // namespace

std::string EventStatsJson(const EventStats& stats, const ScopeLayout& layout) {
  return JsonLine(StatsJsonMaker(stats, layout).Make());
}

}  // namespace hangscope
