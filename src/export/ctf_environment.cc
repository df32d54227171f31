#include "export/ctf_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>

#include "export/trace_facts.h"
#include "hangscope/version.h"

namespace hangscope {
namespace {

// What is empty or nothing is left out.
class Environment {
 public:
  void Add(std::string name, const std::string& text) {
    if (!text.empty()) entries_.emplace_back(std::move(name), text);
  }
  void AddNumber(std::string name, int64_t number) {
    entries_.emplace_back(std::move(name), number);
  }
  void AddCount(std::string name, int64_t count) {
    if (count != 0) AddNumber(std::move(name), count);
  }
  CtfEnvironment Take() { return std::move(entries_); }

 private:
  CtfEnvironment entries_;
};

std::string Subject(const TraceHead& head, const std::map<int64_t, std::string>& tasks,
                    const TraceWho& who) {
  if (who.is_task) {
    const auto name = tasks.find(who.number);
    return name == tasks.end() || name->second.empty()
               ? fmt::format("task {}", who.number)
               : fmt::format("task {} {}", who.number, name->second);
  }
  for (const TraceTrack& track : head.tracks) {
    if (track.ring.kind == RingKind::kCore && track.ring.number == who.number &&
        !track.name.empty())
      return track.name;
  }
  return fmt::format("core {}", who.number);
}

// "core 3 writer: waiting since 12 ns for cb3 of (1,2), by core 5; at CRBW, dataflow.c:88"
std::string StandingText(const TraceHead& head, const TraceEnd& end,
                         const TraceStanding& standing) {
  std::string text = fmt::format("{}: {}", Subject(head, end.tasks, standing.who),
                                 ActivityName(standing.activity));
  if (standing.since)
    text += fmt::format(" since {}{}", *standing.since, head.counts_clock ? "" : " ns");
  if (!standing.waits_for.empty()) text += WaitWord(standing) + standing.waits_for;
  for (size_t i = 0; i < standing.by.size(); ++i)
    text += (i == 0 ? ", by " : " and ") + Subject(head, end.tasks, standing.by[i]);
  if (!standing.place.empty()) text += "; at " + standing.place;
  if (!standing.fault.empty()) text += "; " + standing.fault;
  return text;
}

void AddTroubles(const TraceHead& head, const TraceEnd& end, Environment* environment) {
  std::vector<std::string> warnings = head.warnings;
  for (const std::string& warning : end.warnings) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
      warnings.push_back(warning);
  }
  for (size_t i = 0; i < warnings.size(); ++i)
    environment->Add(fmt::format("trouble_{}", i), warnings[i]);
}

void AddWindow(const TraceHead& head, Environment* environment) {
  environment->AddNumber("from", head.time.from);
  environment->AddNumber("to", head.time.to);
  if (head.trigger) environment->AddNumber("trigger", *head.trigger);
  if (!head.window) return;
  environment->Add("window_policy", std::string(WindowPolicyName(head.window->policy)));
  environment->AddNumber("window_from", head.window->time.from);
  environment->AddNumber("window_to", head.window->time.to);
}

}  // namespace

CtfEnvironment EnvironmentOf(const TraceHead& head, const TraceEnd& end, const CtfTally& tally) {
  Environment environment;
  environment.Add("trace_name", head.name);
  environment.Add("hostname", head.host);
  environment.Add("release", head.release);
  environment.Add("architecture", head.architecture);
  environment.Add("tracer_name", "hangscope");
  environment.Add("tracer_version", HANGSCOPE_VERSION);
  environment.Add("recorded_by", head.recorded_by);
  environment.Add("program", head.program);
  environment.Add("build_id", head.build_id);
  environment.Add("command", fmt::format("{}", fmt::join(head.command, " ")));
  environment.Add("times", TimesText(head));
  environment.Add("verdict", head.verdict);
  for (size_t i = 0; i < head.since_cycles.size(); ++i)
    environment.Add(fmt::format("since_cycle_{}", i), SinceText(head.since_cycles[i]));
  AddWindow(head, &environment);
  for (size_t i = 0; i < head.tracks.size(); ++i)
    environment.Add(fmt::format("track_{}", i), head.tracks[i].name);
  for (size_t i = 0; i < end.standings.size(); ++i)
    environment.Add(fmt::format("standing_{}", i), StandingText(head, end, end.standings[i]));
  environment.AddNumber("events", tally.events);
  environment.AddNumber("losses", tally.losses);
  environment.AddCount("losses_of_unknown_amount", tally.losses_of_unknown_amount);
  environment.AddCount("bytes_lost", static_cast<int64_t>(std::min<uint64_t>(
                                         tally.bytes_lost, std::numeric_limits<int64_t>::max())));
  environment.AddCount("notes_of_other_rings", tally.notes_elsewhere);
  environment.AddCount("times_moved", tally.times_moved);
  environment.AddCount("values_cut", tally.values_cut);
  AddTroubles(head, end, &environment);
  return environment.Take();
}

}  // namespace hangscope
