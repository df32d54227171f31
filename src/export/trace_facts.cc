#include "export/trace_facts.h"

#include <fmt/format.h>

#include "base/units.h"

namespace hangscope {

std::string TimesText(const TraceHead& head) {
  if (!head.counts_clock) return "monotonic";
  if (head.counts_bytes)
    return "bytes of the stream, whose lines have no times, as if they were nanoseconds";
  return "counts of the target's clock, whose rate is not known, as if they were nanoseconds";
}

std::string TimesRemark(const TraceHead& head) {
  if (!head.counts_clock) return {};
  return head.counts_bytes ? " (times are bytes of the stream)"
                           : " (times are counts of the clock)";
}

std::string SinceText(const TraceSinceCycle& since) {
  return fmt::format("{}: {} since cycle {}", since.core, since.state, since.cycle);
}

std::string WaitWord(const TraceStanding& standing) {
  return standing.activity == Activity::kWaiting || standing.activity == Activity::kIdle
             ? " for "
             : ", waiting for ";
}

// The window numbers streams, and the tracks of a stream are numbered by their cores: the stream's
// name is what both have.
std::vector<size_t> TracksOf(const TraceHead& head, const RingName& ring) {
  std::vector<size_t> tracks;
  const bool of_stream = ring.kind == RingKind::kStream;
  for (size_t i = 0; i < head.tracks.size(); ++i) {
    const RingName& own = head.tracks[i].ring;
    if (of_stream ? own.kind == RingKind::kStream && own.what == ring.what : own == ring)
      tracks.push_back(i);
  }
  return tracks;
}

TraceFacts FactsOf(const TraceHead& head) {
  TraceFacts facts;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) facts.emplace_back(name, text);
  };
  add("recording", head.name);
  add("verdict", head.verdict);
  for (const TraceSinceCycle& since : head.since_cycles) add("since cycle", SinceText(since));
  add("program", head.program);
  add("build id", head.build_id);
  add("command", fmt::format("{}", fmt::join(head.command, " ")));
  add("host", head.host);
  add("release", head.release);
  add("architecture", head.architecture);
  add("recorded by", head.recorded_by);
  add("times", TimesText(head));
  if (head.wall_minus_monotonic != 0)
    add("begin", FormatWallTime(head.time.from + head.wall_minus_monotonic));
  if (head.window) {
    add("window", fmt::format("{} to {} ns", head.window->time.from, head.window->time.to));
    add("window policy", std::string(WindowPolicyName(head.window->policy)));
  }
  if (head.trigger) add("trigger", fmt::format("{} ns", *head.trigger));
  for (const std::string& warning : head.warnings) add("trouble", warning);
  return facts;
}

TraceFacts FactsOf(const TraceEnd& end, const std::vector<std::string>& contradictions) {
  TraceFacts facts = {{"events", std::to_string(end.events)},
                      {"losses", std::to_string(end.losses)}};
  for (const auto* warnings : {&end.warnings, &contradictions}) {
    for (const std::string& warning : *warnings) facts.emplace_back("trouble", warning);
  }
  return facts;
}

}  // namespace hangscope
