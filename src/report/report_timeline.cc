#include "report/report_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/units.h"
#include "export/trace_facts.h"
#include "model/event_format.h"

namespace hangscope {
namespace {

constexpr size_t kLongestText = 300;
constexpr size_t kMostGaps = 2000;  // of a track
constexpr size_t kDeepest = 255;
constexpr size_t kMostCounters = 64;  // of a track
constexpr uint32_t kNoString = std::numeric_limits<uint32_t>::max();

std::string Cut(std::string text) {
  if (text.size() <= kLongestText) return text;
  text.resize(kLongestText);
  return text + "...";
}

// Of what is open to the begin or the end of time, as much as there is.
TimeNs Since(TimeNs time, TimeNs end) {
  TimeNs difference = 0;
  const bool overflowed = __builtin_sub_overflow(time, end, &difference);
  return overflowed
             ? (time < 0 ? std::numeric_limits<TimeNs>::min() : std::numeric_limits<TimeNs>::max())
             : difference;
}

std::vector<TimeSpan> Since(const std::vector<TimeSpan>& spans, TimeNs end) {
  std::vector<TimeSpan> since;
  for (const TimeSpan& span : spans) since.push_back({Since(span.from, end), Since(span.to, end)});
  return since;
}

// As docs/report-data.md has it; empty: not known.
std::string StateText(Activity activity) {
  return activity == Activity::kCorrupt ? "" : std::string(ActivityName(activity));
}

std::string BeforeTheEnd(TimeNs time) {
  if (time >= 0) return "";
  if (time > -kSecond)
    return fmt::format("{:.3g} ms before the end", -static_cast<double>(time) / kMillisecond);
  return FormatElapsed(-time) + " before the end";
}

}  // namespace

uint32_t ReportTimeline::Texts::Take(const std::string& text) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) {
    ++uses_[known->second];
    return known->second;
  }
  uint32_t number = static_cast<uint32_t>(texts_.size());
  if (free_.empty()) {
    texts_.push_back(text);
    uses_.push_back(1);
  } else {
    number = free_.back();
    free_.pop_back();
    texts_[number] = text;
    uses_[number] = 1;
  }
  numbers_.emplace(text, number);
  return number;
}

void ReportTimeline::Texts::Drop(uint32_t number) {
  if (--uses_[number] > 0) return;
  numbers_.erase(texts_[number]);
  texts_[number] = std::string();
  free_.push_back(number);
}

ReportTimeline::ReportTimeline(const TraceHead& head, TimeNs end, const TimelineLimits& limits)
    : head_(head), end_(end), limits_(limits) {
  cpus_ = std::any_of(head.tracks.begin(), head.tracks.end(),
                      [](const TraceTrack& track) { return track.ring.kind == RingKind::kCpu; });
}

ReportTimeline::Track* ReportTimeline::Find(TimelineTrackId id) {
  const auto at = numbers_.find(id);
  return at == numbers_.end() ? nullptr : &tracks_[at->second];
}

std::string ReportTimeline::KindOf(const TimelineTrack& track) const {
  if (track.row == TimelineRow::kTask) return cpus_ ? "thread" : "task";
  if (track.row == TimelineRow::kState) return "waypoints";
  if (!track.trace_track || *track.trace_track >= head_.tracks.size()) return "core";
  switch (head_.tracks[*track.trace_track].ring.kind) {
    case RingKind::kCpu:
      return "cpu";
    case RingKind::kThread:
      return "thread";
    default:
      return "core";  // of a simulator's trace, too
  }
}

// Of what the window says of the track's ring.
void ReportTimeline::AddCoverage(const TimelineTrack& defined, ReportTrack* track) const {
  if (!head_.window || !defined.trace_track || *defined.trace_track >= head_.tracks.size()) return;
  for (const RingCoverage& ring : head_.window->rings) {
    const std::vector<size_t> tracks = TracksOf(head_, ring.ring);
    if (std::find(tracks.begin(), tracks.end(), *defined.trace_track) == tracks.end()) continue;
    track->covered = Since(ring.covered, end_);
    track->idle = Since(ring.idle, end_);
    for (const StaleSpan& stale : ring.stale)
      track->stale.push_back({Since(stale.time.from, end_), Since(stale.time.to, end_)});
  }
}

Status ReportTimeline::Define(const TimelineTrack& track) {
  if (track.row == TimelineRow::kCounter) {
    DefineCounter(track);
    return {};
  }
  if (tracks_.size() == limits_.tracks) {
    ++tracks_left_out_;
    return {};
  }
  Track mine;
  mine.defined = track;
  mine.shown.kind = KindOf(track);
  mine.shown.name = Cut(track.name);
  if (const auto parent = numbers_.find(track.parent); parent != numbers_.end())
    mine.shown.parent = parent->second;
  AddCoverage(track, &mine.shown);
  if (track.row == TimelineRow::kTask && track.task) of_whom_[{true, *track.task}] = tracks_.size();
  const bool of_a_core = track.row == TimelineRow::kCore && track.trace_track &&
                         *track.trace_track < head_.tracks.size();
  if (of_a_core && head_.tracks[*track.trace_track].ring.kind == RingKind::kCore)
    of_whom_[{false, head_.tracks[*track.trace_track].ring.number}] = tracks_.size();
  numbers_[track.id] = tracks_.size();
  tracks_.push_back(std::move(mine));
  return {};
}

// In the row of its core.
void ReportTimeline::DefineCounter(const TimelineTrack& track) {
  const auto parent = numbers_.find(track.parent);
  if (parent == numbers_.end()) return;
  auto& counters = tracks_[parent->second].shown.counters;
  if (counters.size() == kMostCounters) {
    ++counters_left_out_;
    return;
  }
  counters_[track.id] = {static_cast<uint32_t>(parent->second),
                         static_cast<uint32_t>(counters.size()), std::nullopt};
  counters.push_back({Cut(track.name), {}, {}, 0});
}

Status ReportTimeline::Begin(TimelineTrackId track, TimeNs time, SliceState state,
                             const std::string& name, const TimelineArguments& arguments) {
  Track* const mine = Find(track);
  if (mine == nullptr) return {};
  std::string text = name;
  std::string more;
  for (const auto& [what, value] : arguments) {
    if (!value.empty() && value != name)
      more += fmt::format("{}{} {}", more.empty() ? "" : ", ", what, value);
  }
  if (!more.empty()) text += " (" + more + ")";
  mine->open.push_back({Since(time, end_), state, texts_.Take(Cut(std::move(text)))});
  return {};
}

Status ReportTimeline::End(TimelineTrackId track, TimeNs time) {
  Track* const mine = Find(track);
  if (mine == nullptr || mine->open.empty()) return {};
  const OpenSpan open = mine->open.back();
  mine->open.pop_back();
  const auto depth = static_cast<uint8_t>(std::min(mine->open.size(), kDeepest));
  spans_.push_back({static_cast<uint32_t>(mine - tracks_.data()), static_cast<uint8_t>(open.state),
                    depth, open.text, open.from, std::max(open.from, Since(time, end_))});
  if (spans_.size() <= limits_.spans) return {};
  texts_.Drop(spans_.front().text);
  spans_.pop_front();
  ++spans_left_out_;
  return {};
}

uint32_t ReportTimeline::KindNumber(size_t kind, const TraceEventKind& description) {
  const auto [at, fresh] = kind_numbers_.emplace(kind, static_cast<uint32_t>(kinds_.size()));
  if (fresh) kinds_.push_back({Cut(description.name), Cut(description.category)});
  return at->second;
}

Status ReportTimeline::Instant(TimelineTrackId track, TimeNs time, const TraceEvent& event,
                               const TraceEventKind& kind) {
  Track* const mine = Find(track);
  if (mine == nullptr || limits_.events == 0) return {};
  const uint32_t text = texts_.Take(Cut(FormatFields(kind.format, kind.fields, event.values)));
  events_.push_back({static_cast<uint32_t>(mine - tracks_.data()), KindNumber(event.kind, kind),
                     text, Since(time, end_)});
  if (events_.size() <= limits_.events) return {};
  ++tracks_[events_.front().track].shown.events.omitted;
  texts_.Drop(events_.front().text);
  events_.pop_front();
  return {};
}

Status ReportTimeline::Count(TimelineTrackId track, TimeNs time, uint64_t value) {
  const auto at = counters_.find(track);
  if (at == counters_.end() || limits_.events == 0 || at->second.last == value) return {};
  Counter& counter = at->second;
  counter.last = value;
  changes_.push_back({counter.track, counter.number, Since(time, end_), value});
  if (changes_.size() <= limits_.events) return {};
  ++tracks_[changes_.front().track].shown.counters[changes_.front().counter].omitted;
  changes_.pop_front();
  return {};
}

Status ReportTimeline::Flow(uint64_t, TimelineTrackId from, TimeNs from_time, TimelineTrackId to,
                            TimeNs to_time, const std::string& name, bool wakes) {
  const Track* const begin = Find(from);
  const Track* const end = Find(to);
  if (begin == nullptr || end == nullptr || limits_.spans == 0) return {};
  const auto from_track = static_cast<uint32_t>(begin - tracks_.data());
  const auto to_track = static_cast<uint32_t>(end - tracks_.data());
  if (wakes) woken_[to_track] = {from_track, Since(from_time, end_)};
  flows_.push_back(
      {from_track, to_track, texts_.Take(Cut(name)), Since(from_time, end_), Since(to_time, end_)});
  if (flows_.size() <= limits_.spans) return {};
  texts_.Drop(flows_.front().text);
  flows_.pop_front();
  ++flows_left_out_;
  return {};
}

Status ReportTimeline::Gap(TimelineTrackId track, const TimeSpan& time, const TimelineGap& gap) {
  Track* const mine = Find(track);
  if (mine == nullptr) return {};
  auto& gaps = mine->shown.gaps;
  // The newest are next to the hang.
  if (gaps.size() == kMostGaps) gaps.erase(gaps.begin());
  gaps.push_back({{Since(time.from, end_), Since(time.to, end_)}, gap.why, gap.amount});
  return {};
}

void ReportTimeline::AddStanding(const TraceStanding& standing, Report* report) {
  const auto at = of_whom_.find({standing.who.is_task, standing.who.number});
  if (at == of_whom_.end()) return;
  ReportTrack& track = tracks_[at->second].shown;
  track.state = StateText(standing.activity);
  if (!standing.fault.empty())
    track.what = standing.fault;
  else if (!standing.waits_for.empty())
    track.what = "waits for " + standing.waits_for;
  else if (standing.activity == Activity::kCorrupt)
    track.what = "its mailbox cannot be right";
  if (standing.since) track.since = Since(*standing.since, end_);
  track.place = standing.place;
  for (ReportNode& node : report->graph.nodes) {
    if (!node.who || *node.who != standing.who) continue;
    node.name = track.name;  // one name on one page
    track.first = node.first;
    if (track.place.empty()) track.place = node.place;
    if (!track.since) track.since = node.since;
  }
}

uint32_t ReportTimeline::StringNumber(uint32_t text, std::vector<uint32_t>* numbers,
                                      Report* report) const {
  uint32_t& number = (*numbers)[text];
  if (number != kNoString) return number;
  number = static_cast<uint32_t>(report->strings.size());
  report->strings.push_back(texts_[text]);
  return number;
}

void ReportTimeline::FinishTracks(std::vector<uint32_t>* string_numbers, Report* report) {
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) {
    return std::tie(a.track, a.from, a.depth, a.to) < std::tie(b.track, b.from, b.depth, b.to);
  });
  for (const Span& span : spans_) {
    ReportSpans& columns = tracks_[span.track].shown.spans;
    columns.from.push_back(static_cast<double>(span.from));
    columns.to.push_back(static_cast<double>(span.to));
    columns.state.push_back(span.state);
    columns.depth.push_back(span.depth);
    columns.text.push_back(StringNumber(span.text, string_numbers, report));
  }
  std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return std::tie(a.track, a.time) < std::tie(b.track, b.time);
  });
  for (const Event& event : events_) {
    ReportEvents& columns = tracks_[event.track].shown.events;
    columns.time.push_back(static_cast<double>(event.time));
    columns.kind.push_back(event.kind);
    columns.text.push_back(StringNumber(event.text, string_numbers, report));
  }
}

void ReportTimeline::FinishCounters() {
  for (const Change& change : changes_) {
    ReportCounter& counter = tracks_[change.track].shown.counters[change.counter];
    counter.time.push_back(static_cast<double>(change.time));
    counter.value.push_back(static_cast<double>(change.value));
  }
}

void ReportTimeline::FinishFlows(std::vector<uint32_t>* string_numbers, Report* report) const {
  std::vector<Arrow> arrows(flows_.begin(), flows_.end());
  std::stable_sort(arrows.begin(), arrows.end(),
                   [](const Arrow& a, const Arrow& b) { return a.to_time < b.to_time; });
  ReportFlows& columns = report->flows;
  for (const Arrow& arrow : arrows) {
    columns.to_time.push_back(static_cast<double>(arrow.to_time));
    columns.from_time.push_back(static_cast<double>(arrow.from_time));
    columns.to_track.push_back(arrow.to);
    columns.from_track.push_back(arrow.from);
    columns.text.push_back(StringNumber(arrow.text, string_numbers, report));
  }
  columns.omitted = flows_left_out_;
}

// The node of a task's track, which may have to be made.
size_t ReportTimeline::NodeOf(uint32_t track, Report* report) const {
  const int64_t task = *tracks_[track].defined.task;
  for (const ReportNode& node : report->graph.nodes) {
    if (node.who == TraceWho{true, task} || (node.thread != 0 && node.thread == task))
      return node.id;
  }
  const ReportTrack& shown = tracks_[track].shown;
  ReportNode node;
  node.id = report->graph.nodes.size();
  node.name = shown.name;
  node.state = shown.state;
  node.place = shown.place;
  node.since = shown.since;
  node.who = TraceWho{true, task};
  report->graph.nodes.push_back(std::move(node));
  return report->graph.nodes.back().id;
}

// Who waits for what nobody owns, as a condition, may wait for whoever woke it last.
void ReportTimeline::AddWakes(Report* report) const {
  const size_t nodes = report->graph.nodes.size();
  for (size_t i = 0; i < nodes; ++i) {
    const ReportNode& node = report->graph.nodes[i];
    if (node.state != ActivityName(Activity::kWaiting) || !node.who || !node.who->is_task) continue;
    const auto& edges = report->graph.edges;
    if (std::any_of(edges.begin(), edges.end(),
                    [&](const ReportEdge& edge) { return edge.from == node.id; }))
      continue;
    const auto track = of_whom_.find({true, node.who->number});
    const auto wake =
        track == of_whom_.end() ? woken_.end() : woken_.find(static_cast<uint32_t>(track->second));
    if (wake == woken_.end() || !tracks_[wake->second.by].defined.task ||
        wake->second.by == track->second)
      continue;
    const size_t from = node.id;
    const size_t by = NodeOf(wake->second.by, report);
    report->graph.edges.push_back({from, by, BeforeTheEnd(wake->second.time), true});
  }
}

void ReportTimeline::Finish(const TraceEnd& trace_end, Report* report) {
  for (Track& track : tracks_) {  // what its writer left open
    while (!track.open.empty()) (void)End(track.defined.id, trace_end.time).ok();
  }
  for (const TraceStanding& standing : trace_end.standings) AddStanding(standing, report);
  AddWakes(report);
  std::vector<uint32_t> string_numbers(texts_.size(), kNoString);
  FinishTracks(&string_numbers, report);
  FinishCounters();
  FinishFlows(&string_numbers, report);
  uint64_t events_left_out = 0;
  for (Track& track : tracks_) {
    events_left_out += track.shown.events.omitted;
    report->tracks.push_back(std::move(track.shown));
  }
  report->kinds = std::move(kinds_);
  const auto leave_out = [&](uint64_t count, const char* what) {
    if (count > 0)
      report->lost.push_back(fmt::format("this page leaves out {} {}", FormatCount(count), what));
  };
  leave_out(events_left_out, "older events, which the recording has");
  leave_out(spans_left_out_, "older spans of the timeline, which the recording has");
  leave_out(tracks_left_out_, "tracks, which the recording has");
  leave_out(counters_left_out_, "counters, which the recording has");
}

}  // namespace hangscope
