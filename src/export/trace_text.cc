#include "export/trace_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "base/utf8.h"
#include "export/trace_facts.h"
#include "model/event_format.h"

namespace hangscope {
namespace {

constexpr size_t kWidestName = 24;  // longer ones push the rest of their line

std::string AmountText(uint64_t amount, AmountUnit unit) {
  if (amount == 0 || unit == AmountUnit::kUnknown) return {};
  if (unit == AmountUnit::kBytes) return fmt::format("{} bytes ", amount);
  return fmt::format("{} record{} ", amount, amount == 1 ? "" : "s");
}

// Spans of so few records that hardly any time lies between them would be a line each.
std::vector<StaleSpan> Joined(const std::vector<StaleSpan>& spans) {
  constexpr TimeNs kClose = 10 * kMillisecond;
  std::vector<StaleSpan> joined;
  for (const StaleSpan& span : spans) {
    if (joined.empty() || span.time.from - kClose > joined.back().time.to) {
      joined.push_back(span);
      continue;
    }
    joined.back().time.to = std::max(joined.back().time.to, span.time.to);
    joined.back().age = std::min(joined.back().age, span.age);
  }
  return joined;
}

bool IsAnchor(const TraceEventKind& kind) {
  return kind.category == "meta" && kind.name == "anchor";
}

}  // namespace

const char* CountsWord(const TraceHead& head) {
  return head.counts_bytes ? "bytes of the stream" : "ticks";
}

std::string TraceTextWriter::TimeText(TimeNs time, bool ambiguous) const {
  const std::string text = head_->counts_clock
                               ? fmt::format("{} {}", time, head_->counts_bytes ? "bytes" : "ticks")
                               : fmt::format("{:.6f}", Seconds(time));
  return (ambiguous ? "~" : "") + text;
}

std::string TraceTextWriter::Start(const std::string& time, const std::string& track) const {
  return fmt::format("{:>16}  {:<{}}  ", time, track, name_width_);
}

std::string TraceTextWriter::TrackName(size_t track) const {
  return track < head_->tracks.size() ? Printable(head_->tracks[track].name)
                                      : fmt::format("track {}", track);
}

// As its track is called, where it has one.
std::string TraceTextWriter::RingText(const RingName& ring) const {
  if (ring.kind == RingKind::kStream) return Printable(ring.what);
  for (const TraceTrack& track : head_->tracks) {
    if (track.ring == ring) return Printable(track.name);
  }
  return fmt::format("{} {}{}{}", RingKindName(ring.kind), ring.number,
                     ring.what.empty() ? "" : " ", Printable(ring.what));
}

std::string TraceTextWriter::SpanText(const TimeSpan& span) const {
  return fmt::format("{} to {}", TimeText(span.from, false), TimeText(span.to, false));
}

void TraceTextWriter::MakeNotes(const Window& window) {
  for (const Gap& gap : window.gaps) {
    if (gap.ring >= window.rings.size()) continue;
    const std::string whose = gap.task ? fmt::format(" of thread {}", *gap.task) : "";
    notes_.push_back({gap.time.from, Start("", RingText(window.rings[gap.ring].ring)) +
                                         fmt::format("gap: {}{}, {}({})\n", SpanText(gap.time),
                                                     whose, AmountText(gap.amount, gap.unit),
                                                     GapReasonName(gap.reason))});
  }
  for (const RingCoverage& ring : window.rings) {
    for (const StaleSpan& stale : Joined(ring.stale)) {
      notes_.push_back(
          {stale.time.from, Start("", RingText(ring.ring)) +
                                fmt::format("stale: {}, older than the window by {}\n",
                                            SpanText(stale.time), FormatElapsed(stale.age))});
    }
  }
  std::stable_sort(notes_.begin(), notes_.end(),
                   [](const Note& a, const Note& b) { return a.time < b.time; });
}

Status TraceTextWriter::Begin(const TraceHead& head) {
  head_ = &head;
  for (const TraceTrack& track : head.tracks)
    name_width_ = std::max(name_width_, std::min(kWidestName, Printable(track.name).size()));
  std::string text = fmt::format("{}: {} track{}, {}\n", Printable(head.name), head.tracks.size(),
                                 head.tracks.size() == 1 ? "" : "s", SpanText(head.time));
  std::string command;
  for (const std::string& word : head.command)
    command += (command.empty() ? "" : " ") + Printable(word);
  const std::string machine = Printable(head.host) +
                              (head.release.empty() ? "" : " " + Printable(head.release)) +
                              (head.architecture.empty() ? "" : " " + Printable(head.architecture));
  if (!command.empty()) text += fmt::format("command: {}\n", command);
  if (!machine.empty()) text += fmt::format("host: {}\n", machine);
  if (!head.verdict.empty()) text += fmt::format("verdict: {}\n", Printable(head.verdict));
  for (const TraceSinceCycle& since : head.since_cycles) text += Printable(SinceText(since)) + "\n";
  if (head.window) {
    text += fmt::format("window: {}\n", SpanText(head.window->time));
    MakeNotes(*head.window);
  }
  for (const std::string& warning : head.warnings)
    text += fmt::format("note: {}\n", Printable(warning));
  return output_.Add(text);
}

Status TraceTextWriter::AddNotesUntil(TimeNs time) {
  for (; next_note_ < notes_.size() && notes_[next_note_].time <= time; ++next_note_) {
    if (Status status = output_.Add(notes_[next_note_].line); !status.ok()) return status;
  }
  return {};
}

Status TraceTextWriter::Write(const TraceEvent& event) {
  if (Status status = AddNotesUntil(event.time); !status.ok()) return status;
  const TraceEventKind& kind = head_->kinds[event.kind];
  if (IsAnchor(kind)) return {};
  std::string text = Start(TimeText(event.time, event.ambiguous), TrackName(event.track));
  if (event.task) text += fmt::format("task {:<4} ", *event.task);
  text += Printable(kind.name);
  const std::string fields = FormatFields(kind.format, kind.fields, event.values);
  if (!fields.empty()) text += "  " + fields;
  return output_.Add(text + "\n");
}

Status TraceTextWriter::Write(const TraceLoss& loss) {
  if (Status status = AddNotesUntil(loss.time.from); !status.ok()) return status;
  const std::string when =
      loss.time.from == loss.time.to ? "" : fmt::format(", {}", SpanText(loss.time));
  return output_.Add(Start("", TrackName(loss.track)) +
                     fmt::format("missing: {}({}){}\n", AmountText(loss.amount, loss.unit),
                                 GapReasonName(loss.reason), when));
}

std::string TraceTextWriter::WhoText(const TraceWho& who, const TraceEnd& end) const {
  if (who.is_task) {
    const auto named = end.tasks.find(who.number);
    return named == end.tasks.end()
               ? fmt::format("task {}", who.number)
               : fmt::format("task {} {}", who.number, Printable(named->second));
  }
  for (const TraceTrack& track : head_->tracks) {
    if (track.ring.kind == RingKind::kCore && track.ring.number == who.number)
      return Printable(track.name);
  }
  return fmt::format("core {}", who.number);
}

std::string TraceTextWriter::StandingText(const TraceStanding& standing,
                                          const TraceEnd& end) const {
  std::string text =
      fmt::format("{}: {}", WhoText(standing.who, end), ActivityName(standing.activity));
  if (standing.since) text += fmt::format(" since {}", TimeText(*standing.since, false));
  if (!standing.waits_for.empty()) text += WaitWord(standing) + Printable(standing.waits_for);
  for (size_t i = 0; i < standing.by.size(); ++i)
    text += (i == 0 ? ", from " : ", ") + WhoText(standing.by[i], end);
  if (!standing.place.empty()) text += fmt::format("; at {}", Printable(standing.place));
  if (!standing.fault.empty()) text += fmt::format("; {}", Printable(standing.fault));
  return text + "\n";
}

Status TraceTextWriter::End(const TraceEnd& end) {
  if (Status status = AddNotesUntil(INT64_MAX); !status.ok()) return status;
  std::string text = fmt::format("at {}:\n", TimeText(end.time, false));
  if (end.standings.empty()) text.clear();
  for (const TraceStanding& standing : end.standings) text += StandingText(standing, end);
  for (const std::string& warning : end.warnings)
    text += fmt::format("note: {}\n", Printable(warning));
  if (Status status = output_.Add(text); !status.ok()) return status;
  return output_.Flush();
}

}  // namespace hangscope
