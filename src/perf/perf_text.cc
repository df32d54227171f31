#include "perf/perf_text.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "base/utf8.h"
#include "process/system_call.h"

namespace hangscope {
namespace {

constexpr size_t kLeastLines = 3;  // of a table, however full the screen is
constexpr size_t kMostGapLines = 4;
constexpr size_t kMostTroubleLines = 4;
constexpr size_t kMostLine = 120;
constexpr size_t kMostSentence = 400;  // that says what to do
constexpr size_t kMostName = 15;

// As `perf script` prints it, to the nanosecond.
std::string AbsoluteTime(TimeNs time) {
  return fmt::format("{}.{:09}", time / kSecond, time % kSecond);
}

// How long before the window's end; some records come while a snapshot is taken.
std::string Before(TimeNs time, const PerfScene& scene) {
  const TimeNs before = scene.window->time.to - time;
  return fmt::format("{}{:.6f}", before >= 0 ? '-' : '+', Seconds(before >= 0 ? before : -before));
}

std::string BreaksText(const TraceSummary& summary) {
  std::string text = DiscontinuitiesText(summary, DiscontinuityReason::kNoSync);
  if (summary.more_discontinuities > 0)
    text += fmt::format(", {} more breaks", summary.more_discontinuities);
  return text;
}

std::string ThreadName(int tid, const PerfScene& scene) {
  const auto found = scene.activity->threads().find(tid);
  if (found == scene.activity->threads().end() || found->second.name.empty())
    return fmt::format("{}", tid);
  return fmt::format("{} {}", tid, Printable(found->second.name, kMostName));
}

std::string Amount(const Gap& gap) {
  if (gap.amount == 0 || gap.unit == AmountUnit::kUnknown) return "how much is not known";
  return gap.unit == AmountUnit::kBytes ? FormatSize(gap.amount)
                                        : fmt::format("{} records", FormatCount(gap.amount));
}

class Screen {
 public:
  Screen(const PerfScene& scene, size_t lines) : scene_(scene), most_(lines) {}

  std::string Make() {
    Verdict();
    WindowLine();
    Origin();
    Warnings();
    Gaps();
    Spans();
    Cpus();
    Threads();
    Branches();
    return std::move(text_);
  }

 private:
  void Add(const std::string& line, size_t most = kMostLine) {
    size_t end = std::min(line.size(), most);
    // not within a character
    while (end < line.size() && (static_cast<uint8_t>(line[end]) & 0xc0) == 0x80) --end;
    text_ += line.substr(0, end) + (end < line.size() ? "...\n" : "\n");
    ++used_;
  }
  // How many lines a table may have, head and rest included.
  size_t Room() const { return used_ + kLeastLines < most_ ? most_ - used_ : kLeastLines; }

  void Verdict() {
    const auto& findings = scene_.analysis->findings;
    for (size_t i = 0; i < std::min<size_t>(findings.size(), 3); ++i) {
      const PerfFinding& finding = findings[i];
      Add(fmt::format("{}: {} ({})", finding.IsBad() ? "HANG" : "perhaps a hang", finding.summary,
                      ConfidenceName(finding.confidence)));
      for (const std::string& doubt : finding.doubts) Add("  doubt: " + doubt);
    }
    const std::string& cannot_tell = scene_.analysis->cannot_tell;
    if (findings.empty() && !cannot_tell.empty())
      Add("no verdict: " + cannot_tell, kMostSentence);
    else if (findings.empty())
      Add("no hang found in the records");
    else if (findings.size() > 3)
      Add(fmt::format("and {} more: --json has all", findings.size() - 3));
  }

  void WindowLine() {
    const Window& window = *scene_.window;
    if (!scene_.to_trigger && scene_.activity->last() < 0)
      return Add("window: none, since no record tells a time");
    size_t stale = 0;
    for (const RingCoverage& ring : window.rings) stale += ring.stale.size();
    std::string begin = window.from_the_start ? ", from the recording's start" : "";
    if (window.limited_by)
      begin = fmt::format(", limited by {}", PerfRingText(window.rings[*window.limited_by].ring));
    const size_t broken = static_cast<size_t>(
        std::count_if(window.tasks.begin(), window.tasks.end(),
                      [](const TaskCoverage& task) { return !task.continuous; }));
    Add(fmt::format("window: {:.6f} s up to {}, at {}, {}{}", Seconds(window.length()),
                    scene_.to_trigger ? "the trigger" : "the newest record",
                    AbsoluteTime(window.time.to), WindowPolicyName(window.policy), begin));
    Add(fmt::format("  {} gap{}, {} stale span{}, {} of {} threads covered without a break",
                    window.gaps.size(), window.gaps.size() == 1 ? "" : "s", stale,
                    stale == 1 ? "" : "s", window.tasks.size() - broken, window.tasks.size()));
  }

  void Origin() {
    const PerfFileFacts& facts = scene_.file->facts();
    std::string events;
    const auto& counts = scene_.activity->samples_of();
    for (size_t i = 0; i < scene_.file->events().size() && i < 8; ++i) {
      if (counts[i] > 0)
        events += fmt::format("{}{} {}", events.empty() ? "" : ", ", FormatCount(counts[i]),
                              Printable(scene_.file->events()[i].name, 40));
    }
    Add(fmt::format("{}: {} records{}{}{}, {} lost", Printable(scene_.path),
                    FormatCount(scene_.activity->records()),
                    events.empty() ? "" : " (" + events + ")", facts.pipe ? ", pipe form" : "",
                    facts.compressed ? ", compressed" : "",
                    FormatCount(scene_.activity->lost_records())));
    if (scene_.activity->side_band_lost() > 0)
      Add(fmt::format("{} names, forks and mappings lost: some threads may have wrong names",
                      FormatCount(scene_.activity->side_band_lost())));
    std::string origin;
    for (const std::string* part : {&facts.host, &facts.release, &facts.architecture}) {
      if (!part->empty()) origin += (origin.empty() ? "" : ", ") + Printable(*part, 60);
    }
    if (!facts.command.empty())
      origin += (origin.empty() ? "" : ": ") + Printable(facts.command, 200);
    if (!origin.empty()) Add("recorded on " + origin);
  }

  void Warnings() {
    const auto& warnings = scene_.file->facts().warnings;
    for (size_t i = 0; i < std::min(warnings.size(), kMostTroubleLines); ++i)
      Add("damaged: " + Printable(warnings[i]));
    if (warnings.size() > kMostTroubleLines)
      Add(fmt::format("and {} more troubles: --json has all", warnings.size() - kMostTroubleLines));
    if (scene_.activity->more_switches() > 0)
      Add(fmt::format("{} switches more than are kept: who ran when is not known of all",
                      FormatCount(scene_.activity->more_switches())));
    if (scene_.activity->left_out() > 0)
      Add(fmt::format("{} records tell of more threads than are shown",
                      FormatCount(scene_.activity->left_out())));
  }

  void Gaps() {
    const auto& gaps = scene_.window->gaps;
    for (size_t i = 0; i < std::min(gaps.size(), kMostGapLines); ++i) {
      const Gap& gap = gaps[gaps.size() - 1 - i];  // the newest first
      const std::string whose =
          gap.task ? ", thread " + ThreadName(static_cast<int>(*gap.task), scene_) : "";
      const std::string when =
          gap.time.from == gap.time.to
              ? "at " + Before(gap.time.from, scene_)
              : Before(gap.time.from, scene_) + " to " + Before(gap.time.to, scene_);
      Add(fmt::format("gap: {} {} s{}: {}, {}", PerfRingText(scene_.window->rings[gap.ring].ring),
                      when, whose, GapReasonName(gap.reason), Amount(gap)));
    }
    if (gaps.size() > kMostGapLines)
      Add(fmt::format("and {} older gaps: --json has all", gaps.size() - kMostGapLines));
    LostBefore();
  }

  void LostBefore() {
    const auto& lost = scene_.window->lost_before;
    for (size_t i = 0; i < std::min(lost.size(), kMostGapLines); ++i) {
      const Gap& gap = lost[lost.size() - 1 - i];
      const std::string whose =
          gap.task ? ", thread " + ThreadName(static_cast<int>(*gap.task), scene_) : "";
      Add(fmt::format("lost before the window: {} {} to {} s{}: {}",
                      PerfRingText(scene_.window->rings[gap.ring].ring),
                      Before(gap.time.from, scene_), Before(gap.time.to, scene_), whose,
                      GapReasonName(gap.reason)));
    }
    if (lost.size() > kMostGapLines)
      Add(fmt::format("and {} older losses: --json has all", lost.size() - kMostGapLines));
  }

  const PerfSpanTrace* TraceOf(size_t ring, size_t span) const {
    for (const PerfSpanTrace& trace : *scene_.traces) {
      if (trace.ring == ring && trace.span == span) return &trace;
    }
    return nullptr;
  }

  // As the window has it: of a snapshot it names the ring otherwise.
  bool IsStale(const RingName& name, const PerfAuxSpan& span) const {
    for (const RingCoverage& ring : scene_.window->rings) {
      if (ring.ring.kind != name.kind || ring.ring.number != name.number ||
          ring.ring.what == "events")
        continue;
      for (const StaleSpan& stale : ring.stale) {
        if (stale.time.from <= span.time.to && span.time.to <= stale.time.to) return true;
      }
    }
    return false;
  }

  void SpanLine(size_t ring, size_t number) {
    const PerfAuxRing& of = (*scene_.aux)[ring];
    const PerfAuxSpan& span = of.spans[number];
    std::string line =
        fmt::format("{:<16} {:<22} {:>12} {:>12} {:>9}", PerfRingText(of.name),
                    span.tid < 0 ? "-" : ThreadName(span.tid, scene_),
                    span.begin_known ? Before(span.time.from, scene_) : "?",
                    Before(span.time.to, scene_), FormatSize(span.end_offset - span.begin_offset));
    if (span.sink_overwritten)
      line += span.shares.empty() ? "  sink overwritten" : "  shared sink overwritten";
    if (const PerfSpanTrace* trace = TraceOf(ring, number)) {
      const TraceSummary& summary = trace->summary;
      // Without the programs' code there were none to follow.
      line += summary.instructions_known && summary.instructions > 0
                  ? fmt::format("  {} insns, {} branches", summary.instructions, summary.branches)
                  : fmt::format("  {} atoms", summary.atoms);
      line += ", " + BreaksText(summary);
    }
    if (const std::string flags = PerfAuxFlagsText(span.flags); !flags.empty())
      line += "  " + flags;
    if (span.held_bytes < span.end_offset - span.begin_offset)
      line += fmt::format("  {} not in the file",
                          FormatSize(span.end_offset - span.begin_offset - span.held_bytes));
    if (span.sampled) line += "  of a sample";
    if (IsStale(of.name, span)) line += "  stale";
    Add(line);
    for (const PerfTraceShare& share : span.shares) ShareLine(share, span);
  }

  // Whose bytes of a shared sink, and whose are lost.
  void ShareLine(const PerfTraceShare& share, const PerfAuxSpan& span) {
    std::string whose = "-";
    if (share.threads.size() == 1) whose = ThreadName(share.threads.front(), scene_);
    if (share.threads.size() > 1) whose = fmt::format("{} threads", share.threads.size());
    const std::string of = share.cpu >= 0        ? fmt::format("of CPU {}", share.cpu)
                           : share.trace_id != 0 ? fmt::format("of id {:#x}", share.trace_id)
                                                 : "of no id";
    const bool ran = !share.threads.empty();
    Add(fmt::format("{:<16} {:<22} {:>12} {:>12} {:>9}{}", "  " + of, whose,
                    ran ? Before(share.ran.from, scene_) : "?",
                    ran ? Before(share.ran.to, scene_) : "?", FormatSize(share.bytes),
                    !span.sink_overwritten ? ""
                    : share.bytes == 0     ? "  all lost"
                                           : "  newest"));
  }

  void Spans() {
    if (scene_.aux->empty()) return;
    std::vector<std::pair<size_t, size_t>> spans;
    uint64_t held = 0, twice = 0, restarts = 0;
    for (size_t ring = 0; ring < scene_.aux->size(); ++ring) {
      const PerfAuxRing& of = (*scene_.aux)[ring];
      held += of.bytes_held;
      twice += of.bytes_twice;
      restarts += of.restarts;
      for (size_t i = 0; i < of.spans.size(); ++i) spans.emplace_back(ring, i);
    }
    const auto time = [this](const auto& at) {
      return (*scene_.aux)[at.first].spans[at.second].time.to;
    };
    std::stable_sort(spans.begin(), spans.end(),
                     [&](const auto& a, const auto& b) { return time(a) > time(b); });
    const size_t most = std::max(kLeastLines, Room() / 2);
    Add(fmt::format("{} spans of traces in {} rings, {} held; {} twice, {} restarts{}",
                    spans.size(), scene_.aux->size(), FormatSize(held), FormatSize(twice), restarts,
                    scene_.trace_trouble.empty() ? "" : "; " + Printable(scene_.trace_trouble)));
    Add(fmt::format("{:<16} {:<22} {:>12} {:>12} {:>9}", "ring", "thread", "from", "to", "bytes"));
    size_t shown = 0, lines = 0;
    for (; shown < spans.size() && lines < most; ++shown) {
      const auto [ring, span] = spans[shown];
      SpanLine(ring, span);
      lines += 1 + (*scene_.aux)[ring].spans[span].shares.size();
    }
    if (shown < spans.size())
      Add(fmt::format("and {} older ones: --json has all", spans.size() - shown));
  }

  void Cpus() {
    const auto& cpus = scene_.activity->cpus();
    const size_t most = std::max(kLeastLines, Room() / 3);
    size_t shown = 0;
    for (const auto& [number, cpu] : cpus) {
      if (number < 0 || cpu.last < 0) continue;
      if (++shown > most) continue;
      const std::string lost =
          cpu.lost_records > 0 ? fmt::format(", {} lost", FormatCount(cpu.lost_records)) : "";
      Add(fmt::format("CPU {}: {} records, {} to {} s{}, last {}", number, FormatCount(cpu.records),
                      Before(cpu.first, scene_), Before(cpu.last, scene_), lost,
                      cpu.last_tid == 0 ? "idle" : ThreadName(cpu.last_tid, scene_)));
    }
    if (shown > most) Add(fmt::format("and {} more CPUs: --json has all", shown - most));
  }

  void ThreadLine(const PerfThreadView& view) {
    const PerfThreadActivity& thread = *view.thread;
    std::string state(PerfThreadStateName(view.state));
    if (view.letter != ' ' && view.letter != '?') state += fmt::format(" ({})", view.letter);
    std::string what;
    if (const std::string call = PerfCallText(thread, scene_); !call.empty())
      what = "in " + call;
    else if (thread.last_sample >= 0)
      what = fmt::format("last {} {}", Printable(scene_.file->events()[thread.last_event].name),
                         scene_.activity->Describe(thread));
    Add(fmt::format("{:<22} {:<15} {:>12} {:>4}  {}", ThreadName(thread.tid, scene_), state,
                    view.since < 0 ? "?" : Before(view.since, scene_), thread.ran.cpu, what));
  }

  void Threads() {
    std::vector<const PerfThreadView*> alive;
    for (const PerfThreadView& view : scene_.analysis->threads) {
      if (view.state != PerfThreadState::kEnded && view.since >= 0) alive.push_back(&view);
    }
    if (alive.empty()) return;
    const size_t most = std::max(kLeastLines, Room() - 2);
    Add(fmt::format("{:<22} {:<15} {:>12} {:>4}  {}", "thread",
                    scene_.to_trigger ? "state then" : "state at the end", "since (s)", "CPU",
                    "what it did last"));
    for (size_t i = 0; i < std::min(alive.size(), most); ++i) ThreadLine(*alive[i]);
    if (alive.size() > most)
      Add(fmt::format("and {} more threads: --json has all", alive.size() - most));
  }

  void Branches() {
    if (scene_.branches->empty()) return;
    const auto& branches = *scene_.branches;
    const bool ordered = std::all_of(branches.begin(), branches.end(),
                                     [](const PerfBranch& one) { return one.order_known; });
    Add(fmt::format("the last {} branches, the newest last, and between which times:{}",
                    branches.size(),
                    ordered ? "" : " (~: of another trace's it is not known which came first)"));
    const auto time = [this](const std::optional<TimeNs>& at) {
      return at ? Before(*at, scene_) : std::string("?");
    };
    for (const PerfBranch& branch : branches) {
      const auto side = [](uint64_t address, const std::string& name) {
        return address == 0   ? std::string("?")
               : name.empty() ? fmt::format("{:#x}", address)
                              : fmt::format("{:#x} {}", address, name);
      };
      Add(fmt::format("{} CPU {:<3} {:>12} {:>12} {} -> {}", branch.order_known ? ' ' : '~',
                      branch.branch.cpu, time(branch.time.from), time(branch.time.to),
                      side(branch.branch.from, branch.from), side(branch.branch.to, branch.to)));
    }
  }

  const PerfScene& scene_;
  const size_t most_;
  size_t used_ = 0;
  std::string text_;
};

}  // namespace

std::string PerfAuxFlagsText(uint64_t flags) {
  constexpr std::pair<uint64_t, std::string_view> kNames[] = {
      {PERF_AUX_FLAG_TRUNCATED, "truncated"},
      {PERF_AUX_FLAG_OVERWRITE, "snapshot"},
      {PERF_AUX_FLAG_PARTIAL, "partial"},
      {PERF_AUX_FLAG_COLLISION, "collision"}};
  std::string text;
  for (const auto& [flag, name] : kNames) {
    if ((flags & flag) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text;
}

std::string PerfRingText(const RingName& ring) {
  const std::string text = fmt::format("{} {}", RingKindName(ring.kind), ring.number);
  return ring.what.empty() ? text : text + " " + Printable(ring.what);
}

// The numbers of system calls are those of the recorded machine.
std::string PerfCallText(const PerfThreadActivity& thread, const PerfScene& scene) {
  if (!scene.activity->IsInSystemCall(thread)) return {};
  utsname here{};
  uname(&here);
  const PerfCall call = scene.activity->CallOf(thread);
  std::string text = Printable(call.name);
  if (text.empty() && scene.file->facts().architecture == here.machine && call.number >= 0 &&
      call.number < 100'000)
    text = SystemCallName(static_cast<int>(call.number));
  if (text.empty()) text = fmt::format("system call {}", call.number);
  if (!call.has_arguments) return text;
  const auto& arguments = call.arguments;
  return text + fmt::format("({:#x}, {:#x}, {:#x}, {:#x}, {:#x}, {:#x})", arguments[0],
                            arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

std::string_view PerfThreadStateName(PerfThreadState state) {
  switch (state) {
    case PerfThreadState::kRunning:
      return "running";
    case PerfThreadState::kWaitsForCpu:
      return "wants a CPU";
    case PerfThreadState::kBlocked:
      return "blocked";
    case PerfThreadState::kEnded:
      return "ended";
    case PerfThreadState::kUnknown:
      return "seen";
  }
  return "seen";
}

std::string PerfText(const PerfScene& scene, size_t lines) { return Screen(scene, lines).Make(); }

Sightings ToldSightings(const PerfScene& scene) {
  Sightings told;
  if (scene.analysis->findings.empty()) told.incomplete = scene.analysis->cannot_tell;
  told.attached = told.incomplete.empty();
  for (const PerfThreadView& view : scene.analysis->threads) {
    if (view.state == PerfThreadState::kRunning && !view.is_other)
      told.moving.push_back(fmt::format("{} {}", view.thread->tid, view.thread->name));
  }
  for (const PerfFinding& finding : scene.analysis->findings) {
    Finding& mine = told.findings.emplace_back(Finding(finding));
    const auto& threads = scene.activity->threads();
    const auto thread = threads.find(finding.tid);
    if (thread == threads.end()) continue;
    FindingSubject subject{fmt::format("{} {}", finding.tid, thread->second.name)};
    subject.process = std::max(0, thread->second.pid);
    subject.thread = finding.tid;
    mine.subjects.push_back(std::move(subject));
  }
  return told;
}

}  // namespace hangscope
