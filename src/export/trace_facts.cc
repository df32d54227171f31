#include "export/trace_facts.h"

#include <fmt/format.h>

#include "base/units.h"

namespace hangscope {

TraceFacts FactsOf(const TraceHead& head) {
  TraceFacts facts;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) facts.emplace_back(name, text);
  };
  add("recording", head.name);
  add("verdict", head.verdict);
  add("program", head.program);
  add("build id", head.build_id);
  add("command", fmt::format("{}", fmt::join(head.command, " ")));
  add("host", head.host);
  add("release", head.release);
  add("architecture", head.architecture);
  add("recorded by", head.recorded_by);
  add("times", head.counts_clock ? "counts of the target's clock, whose rate is not known, as if they were nanoseconds" : "monotonic");
  if (head.wall_minus_monotonic != 0) add("begin", FormatWallTime(head.time.from + head.wall_minus_monotonic));
  if (head.window) {
    add("window", fmt::format("{} to {} ns", head.window->time.from, head.window->time.to));
    add("window policy", std::string(WindowPolicyName(head.window->policy)));
  }
  if (head.trigger) add("trigger", fmt::format("{} ns", *head.trigger));
  for (const std::string& trouble : head.troubles) add("trouble", trouble);
  return facts;
}

TraceFacts FactsOf(const TraceEnd& end, const std::vector<std::string>& contradictions) {
  TraceFacts facts = {{"events", std::to_string(end.events)}, {"losses", std::to_string(end.losses)}};
  for (const auto* troubles : {&end.troubles, &contradictions}) {
    for (const std::string& trouble : *troubles) facts.emplace_back("trouble", trouble);
  }
  return facts;
}

}  // namespace hangscope
