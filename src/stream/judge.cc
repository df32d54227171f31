#include "stream/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/signal_text.h"
#include "base/units.h"

namespace hangscope {
namespace {

constexpr double kSlowFraction = 0.1;  // of the run's own earlier rate
constexpr size_t kRateMemory = 64;
constexpr size_t kRatesNeeded = 3;
constexpr TimeNs kLongestPatience = 10;  // stall times that earlier gaps can buy
constexpr uint32_t kWaitsThatEnded = 3;  // in a loop, so that it is known for a wait
// Stall times until a core that fell silent awake counts as one that will say nothing more. Before
// that it may only have been given no processor: QEMU's harts share a lock to print, which is not
// fair, and some get it for seconds only now and then.
constexpr TimeNs kPatienceWithSilent = 3;
constexpr double kAsleep = 0.05;  // of a CPU: less is no work
// A program that says nothing more in longer rounds may mean them as a sign of life.
constexpr TimeNs kSignOfLife = kSecond / 2;

// "hart 2" before "hart 10".
bool NameBefore(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Lowers a verdict's confidence; the same doubt about several cores becomes one line.
class Doubts {
 public:
  explicit Doubts(Verdict* verdict) : verdict_(verdict) {}
  ~Doubts() {
    for (auto& [why, who] : by_core_) {
      std::sort(who.begin(), who.end(), NameBefore);
      verdict_->doubts.push_back(fmt::format("{}: {}", fmt::join(who, ", "), why));
    }
  }
  Doubts(const Doubts&) = delete;
  Doubts& operator=(const Doubts&) = delete;

  void AtMost(Confidence limit, std::string why) { verdict_->Lower(limit, std::move(why)); }
  void AtMost(Confidence limit, const std::string& core, std::string why) {
    verdict_->confidence = std::min(verdict_->confidence, limit);
    by_core_[std::move(why)].push_back(core);
  }
  void Lowered(std::string why) {
    const bool certain = verdict_->confidence == Confidence::kCertain;
    AtMost(certain ? Confidence::kLikely : Confidence::kPossible, std::move(why));
  }

 private:
  Verdict* verdict_;
  std::map<std::string, std::vector<std::string>> by_core_;
};

std::string Plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", FormatCount(count), noun, count == 1 ? "" : "s");
}

bool SleepsInLoop(const CoreFinding& finding, ProgramCode* code) {
  return std::any_of(finding.loop.begin(), finding.loop.end(), [&](uint64_t pc) {
    return code->EndOf({pc, 0, 0, false, finding.last.starts_block}).sleeps;
  });
}

Place PlaceAt(const StreamView& stream, uint64_t pc, ProgramCode* code) {
  if (stream.texts == nullptr) return code->PlaceOf(pc);
  Place place;
  place.text = stream.texts->Find(pc);
  return place;
}

Loop DescribeLoop(const StreamView& stream, const CoreFinding& finding, ProgramCode* code) {
  Loop loop;
  for (const uint64_t pc : finding.loop) loop.places.push_back(PlaceAt(stream, pc, code));
  loop.basis = finding.basis;
  loop.traps = finding.traps;
  loop.polls = finding.polls;
  loop.polls_known = finding.polls_known;
  loop.polls_memory_only =
      finding.polls_known && std::all_of(finding.polls.begin(), finding.polls.end(),
                                         [&](uint64_t address) { return code->InMemory(address); });
  return loop;
}

// The proof that a core loops; null where there is none.
const CoreProof* LoopProofOf(const StreamView& stream, size_t core) {
  if (stream.proof == nullptr || core >= stream.proof->cores.size()) return nullptr;
  const CoreProof& proof = stream.proof->cores[core];
  return proof.looping ? &proof : nullptr;
}

std::string SaysNothing(const CoreTrack& core, TimeNs now) {
  if (core.last_seen == 0) return "has printed nothing for long";
  return fmt::format("has printed nothing for {}", FormatElapsed(now - core.last_seen));
}

// Where the core has been elsewhere since, the way is another loop's.
CoreWay WayToLoop(const StreamView& stream, size_t core, const CoreProof& proof) {
  const bool is_it = core < stream.ways.size() && stream.ways[core].at == proof.entered_offset;
  return is_it ? stream.ways[core] : CoreWay();
}

CoreWay WayToLast(const StreamView& stream, size_t core) {
  const uint64_t last = stream.cores[core].finding.last.offset;
  const bool is_it = core < stream.ways.size() && stream.ways[core].at >= last;
  return is_it ? stream.ways[core] : CoreWay();
}

void TellWay(CoreWay way, CoreVerdict* core) {
  core->way = std::move(way.steps);
  core->since_cycle = way.cycle;
}

// What was not read back.
void DoubtProof(const Proof& proof, Doubts* doubts) {
  if (proof.only_sampled_before != 0) {
    doubts->AtMost(Confidence::kLikely,
                   fmt::format("the ring holds only the last {} of it; before that it was sampled",
                               FormatElapsed(proof.time - proof.only_sampled_before)));
  }
  if (proof.lost_bytes > 0) {
    doubts->Lowered(
        fmt::format("{} of what was read back are missing", FormatSize(proof.lost_bytes)));
  }
}

// What JudgeLogs has found, for the summary.
struct LogTally {
  std::vector<std::string> streams;
  size_t cores = 0;
  size_t looping = 0;
  size_t lines = 0;  // of the rounds
  bool changing = false;
};

std::string LogSummary(const LogTally& tally) {
  const char* verb = tally.streams.size() == 1 ? "repeats" : "repeat";
  const std::string who = fmt::format("{} {}", fmt::join(tally.streams, " and "), verb);
  // Most likely work: so do not call it a loop.
  if (tally.changing)
    return fmt::format("{} {} with changing values", who, Plural(tally.lines, "log line"));
  return tally.lines == 1 ? fmt::format("looping, {} the same log line", who)
                          : fmt::format("looping, {} the same {} log lines", who, tally.lines);
}

std::string RuleSummary(const LogTally& tally) {
  const std::string places = Plural(tally.lines, "place");
  if (tally.cores == 1) return fmt::format("looping, {} repeats {}", tally.streams.front(), places);
  return fmt::format("looping, {} of {} repeat their places", tally.looping,
                     Plural(tally.cores, "core"));
}

void DoubtLogCore(const StreamView& stream, size_t index, Doubts* doubts) {
  const CoreTrack& core = stream.cores[index];
  const CoreFinding& finding = core.finding;
  if (stream.by_rule) return;  // the user said what counts
  if (finding.motion == CoreFinding::Motion::kRepeating) {
    doubts->AtMost(Confidence::kPossible, core.name,
                   finding.basis == LoopBasis::kLines
                       ? "a round has so many different lines that it may be work"
                       : "a value in these lines changes from round to round: it may count work "
                         "that gets done");
  }
  if (finding.came_before) {
    doubts->AtMost(Confidence::kPossible, core.name,
                   "these lines came between others before: they may be its sign of life");
  }
  if (stream.proof == nullptr || index >= stream.proof->cores.size()) return;
  const CoreProof& proof = stream.proof->cores[index];
  if (proof.nothing_else) {
    doubts->AtMost(Confidence::kPossible, core.name,
                   "it has said nothing else since it began: perhaps that is all it does");
  }
  const TimeNs looped = stream.proof->time - proof.since;
  if (proof.rounds == 0 || looped <= 0) return;
  const TimeNs round = looped / static_cast<TimeNs>(proof.rounds);
  if (round >= kSignOfLife) {
    doubts->AtMost(Confidence::kPossible, core.name,
                   fmt::format("a round takes {}: it may be a sign of life beside other work",
                               FormatElapsed(round)));
  }
}

void DoubtLog(const StreamView& stream, TimeNs stall, Doubts* doubts, LogTally* tally,
              Verdict* verdict) {
  tally->streams.push_back(stream.name);
  for (size_t i = 0; i < stream.cores.size(); ++i) {
    const CoreTrack& core = stream.cores[i];
    ++tally->cores;
    if (core.last_seen == 0 || verdict->time - core.last_seen >= stall) {
      doubts->AtMost(Confidence::kLikely, core.name, SaysNothing(core, verdict->time));
      continue;
    }
    const CoreProof* proof = LoopProofOf(stream, i);
    ++tally->looping;
    tally->lines += core.finding.loop.size();
    const bool changing = core.finding.motion == CoreFinding::Motion::kRepeating &&
                          core.finding.basis == LoopBasis::kPlaces;
    tally->changing = tally->changing || changing;
    verdict->since = std::max(verdict->since, proof != nullptr ? proof->since : core.loop_since);
    DoubtLogCore(stream, i, doubts);
  }
  if (stream.proof == nullptr) return;
  const char* what =
      stream.by_rule ? "been at nothing but these places" : "said nothing but these lines";
  verdict->evidence.push_back(fmt::format("read back: {} has {} since", stream.name, what));
  DoubtProof(*stream.proof, doubts);
}

}  // namespace

bool StreamJudge::SuspectsLoop(const StreamView& stream, TimeNs now) const {
  bool any = false;
  for (const CoreTrack& core : stream.cores) {
    if (!Active(core, now)) continue;
    if (!core.finding.IsLoop() || now - core.loop_since < stall_) return false;
    any = true;
  }
  return any;
}

bool StreamJudge::SuspectsLongLoop(const StreamView& stream, TimeNs now) const {
  bool any = false;
  for (const CoreTrack& core : stream.cores) {
    if (!Active(core, now)) continue;
    if (now - core.places_since < stall_) return false;
    if (!core.finding.IsLoop()) any = true;
  }
  return any;
}

bool StreamJudge::GoesOn(const CoreTrack& core, TimeNs now) const {
  return Active(core, now) && !core.finding.IsLoop();
}

// A core that has left this very loop several times waits there for what the others do. One that
// has not may have nothing more to do.
std::optional<TimeNs> StreamJudge::PatienceBesideOthers(const CoreTrack& core) const {
  const CoreTrack::LeftLoop* const left = core.LeftBefore();
  if (left == nullptr || left->times < kWaitsThatEnded) return std::nullopt;
  return 3 * std::max(stall_, left->longest);
}

bool StreamJudge::MayBeLeftBehind(const CoreTrack& core, TimeNs now) const {
  const CoreFinding& finding = core.finding;
  const auto patience = PatienceBesideOthers(core);
  return Active(core, now) && finding.motion == CoreFinding::Motion::kSpinning &&
         finding.traps == 0 && patience && now - core.loop_since >= *patience;
}

bool StreamJudge::SuspectsPart(const StreamView& stream, TimeNs now) const {
  const auto& cores = stream.cores;
  return std::any_of(cores.begin(), cores.end(),
                     [&](const CoreTrack& core) { return GoesOn(core, now); }) &&
         std::any_of(cores.begin(), cores.end(),
                     [&](const CoreTrack& core) { return MayBeLeftBehind(core, now); });
}

void StreamJudge::NoteActivity(TimeNs now, const std::vector<StreamView>& streams,
                               const ChildView& child) {
  uint64_t total = 0;
  TimeNs last_byte = 0;
  for (const StreamView& stream : streams) {
    total += stream.total_bytes;
    last_byte = std::max(last_byte, stream.last_byte);
  }
  if (last_byte != last_byte_) {
    longest_gap_ = std::max(longest_gap_, pending_gap_);
    last_byte_ = last_byte;
    cpu_at_last_byte_ = child.cpu_time;
  }
  pending_gap_ = now - (last_byte == 0 ? start_ : last_byte);

  ticks_.push_back({now, total, child.cpu_time});
  while (ticks_.size() > 2 && now - ticks_[1].time >= stall_) ticks_.pop_front();
  if (rate_window_start_ == 0) {
    rate_window_start_ = now;
    rate_window_total_ = total;
  } else if (now - rate_window_start_ >= stall_) {
    rates_.push_back(static_cast<double>(total - rate_window_total_) /
                     Seconds(now - rate_window_start_));
    if (rates_.size() > kRateMemory) rates_.pop_front();
    rate_window_start_ = now;
    rate_window_total_ = total;
  }
}

Verdict StreamJudge::Assess(TimeNs now, const std::vector<StreamView>& streams,
                            const ChildView& child, ProgramCode* code) {
  NoteActivity(now, streams, child);
  Verdict verdict;
  verdict.time = now;
  verdict.since = start_;
  for (const StreamView& stream : streams) {
    StreamVerdict mine;
    mine.name = stream.name;
    mine.format = stream.format;
    mine.last_byte = stream.last_byte;
    mine.total_bytes = stream.total_bytes;
    if (stream.last_byte == 0 || now - stream.last_byte >= stall_) mine.state = State::kSilent;
    verdict.streams.push_back(mine);
    for (size_t i = 0; i < stream.cores.size(); ++i) {
      CoreVerdict core = DescribeCore(stream, i, now, child.ended, code);
      // Without a rule a log has no cores; that its lines repeat is all there is to tell.
      const bool mere_log = stream.texts != nullptr && !stream.by_rule;
      const bool matters = core.state == State::kLooping &&
                           !(child.ended && core.confidence == Confidence::kPossible);
      if (!mere_log || matters) verdict.cores.push_back(std::move(core));
    }
  }
  std::stable_sort(
      verdict.cores.begin(), verdict.cores.end(),
      [](const CoreVerdict& a, const CoreVerdict& b) { return NameBefore(a.name, b.name); });
  if (child.ended) {
    JudgeEnd(child, &verdict);
    return verdict;
  }
  if (child.stopped) Interrupted(now);
  if (JudgeSilence(streams, child, &verdict)) {
    DoubtIfInterrupted(&verdict);
    return verdict;
  }
  for (const StreamView& stream : streams) {
    if (!stream.is_trace || !JudgeLoops(stream, code, &verdict)) continue;
    DoubtIfInterrupted(&verdict);
    return verdict;
  }
  if (JudgeLogs(streams, &verdict)) {
    DoubtIfInterrupted(&verdict);
    return verdict;
  }
  for (const StreamView& stream : streams) {
    if (!stream.is_trace || !JudgePart(stream, code, &verdict)) continue;
    DoubtIfInterrupted(&verdict);
    return verdict;
  }
  JudgeRate(&verdict);
  return verdict;
}

CoreVerdict StreamJudge::DescribeCore(const StreamView& stream, size_t index, TimeNs now,
                                      bool ended, ProgramCode* code) const {
  const CoreTrack& track = stream.cores[index];
  const CoreFinding& finding = track.finding;
  CoreVerdict core;
  core.name = track.name;
  core.hart = track.hart;
  core.stream = stream.name;
  core.place = PlaceAt(stream, finding.IsLoop() ? finding.loop.front() : finding.last.pc, code);
  core.callers = track.callers;
  core.since = track.last_seen;
  if (!Active(track, now) || now - stream.last_byte >= stall_) {
    core.state = State::kSilent;
    core.asleep = finding.sleeps;
    TellWay(WayToLast(stream, index), &core);
    if (!ended) return core;
  }
  const CoreProof* proof = LoopProofOf(stream, index);
  if (!finding.IsLoop() || (proof == nullptr && now - track.loop_since < stall_)) return core;
  core.state = State::kLooping;
  core.since = track.loop_since;
  core.loop = DescribeLoop(stream, finding, code);
  core.confidence = Confidence::kPossible;
  if (proof != nullptr) {
    TellWay(WayToLoop(stream, index, *proof), &core);
    core.since = proof->since;
    core.since_at_least = core.loop->at_least = proof->at_least;
    core.loop->rounds = proof->rounds;
    core.loop->traps = proof->traps;
    if (finding.motion == CoreFinding::Motion::kSpinning) core.confidence = Confidence::kLikely;
  }
  return core;
}

void StreamJudge::JudgeEnd(const ChildView& child, Verdict* verdict) const {
  verdict->confidence = Confidence::kCertain;
  if (child.exit_signal != 0 && child.was_told_to) {
    verdict->state = State::kFinished;
    verdict->summary =
        fmt::format("ended by {}, which was passed on to it", SignalText(child.exit_signal));
    return;
  }
  if (child.exit_signal != 0) {
    verdict->state = State::kDead;
    verdict->summary = "killed by " + SignalText(child.exit_signal);
    return;
  }
  verdict->state = State::kFinished;
  verdict->summary =
      child.known ? fmt::format("ended with status {}", child.exit_status) : "the stream ended";
}

// Whether all cores of a trace are proven to spin.
bool StreamJudge::JudgeLoops(const StreamView& stream, ProgramCode* code, Verdict* verdict) const {
  const TimeNs now = verdict->time;
  if (stream.proof == nullptr || !SuspectsLoop(stream, now)) return false;
  verdict->confidence = Confidence::kCertain;
  Doubts doubts(verdict);
  size_t spinning = 0;
  size_t idle = 0;
  TimeNs since = 0;
  uint64_t traps = 0;
  for (size_t i = 0; i < stream.cores.size(); ++i) {
    const CoreTrack& core = stream.cores[i];
    const CoreFinding& finding = core.finding;
    if (!Active(core, now)) {
      if (!finding.sleeps && now - core.last_seen < kPatienceWithSilent * stall_) return false;
      doubts.AtMost(Confidence::kLikely, core.name,
                    finding.sleeps ? "asleep in a wfi, and an interrupt may wake it"
                                   : SaysNothing(core, now));
      continue;
    }
    const CoreProof* proof = LoopProofOf(stream, i);
    if (proof == nullptr || now - proof->since < stall_) return false;
    ++spinning;
    since = std::max(since, proof->since);
    traps += proof->traps;
    if (SleepsInLoop(finding, code)) {
      ++idle;
      doubts.AtMost(Confidence::kLikely, core.name, "waits for an interrupt in each round");
    }
    if (finding.handler_writes_polls) {
      doubts.AtMost(Confidence::kPossible, core.name,
                    "an interrupt handler writes what is polled: it may be counting");
    }
    if (finding.motion == CoreFinding::Motion::kRepeating) {
      doubts.AtMost(Confidence::kPossible, core.name,
                    code->has_elf()
                        ? "the code of the loop is not in the ELF or not understood"
                        : "the trace has places only, where a spin and a computation look alike; "
                          "--elf tells them apart");
    } else if (!finding.polls_known) {
      doubts.AtMost(Confidence::kLikely, core.name, "the address that is polled is not known");
    } else if (!DescribeLoop(stream, finding, code).polls_memory_only) {
      doubts.AtMost(Confidence::kLikely, core.name,
                    code->has_elf()
                        ? "what is polled is not the program's memory: a device may end the wait"
                        : "whether memory or a device is polled is not known without --elf");
    }
  }
  if (spinning == 0) return false;
  if (idle == spinning)
    doubts.AtMost(Confidence::kPossible, "every core that runs is idle: it may be meant");
  if (traps > 0) {
    doubts.AtMost(
        Confidence::kLikely,
        fmt::format("interrupts still arrive ({} seen) and may end the wait", FormatCount(traps)));
  }
  if (stream.chained) doubts.Lowered("QEMU printed only some of the steps: add nochain to -d exec");
  DoubtProof(*stream.proof, &doubts);
  verdict->state = State::kLooping;
  verdict->since = since;
  verdict->summary =
      spinning == 1 && stream.cores.size() == 1
          ? "looping, the only core seen spins"
          : fmt::format("looping, {} of {} spin", spinning, Plural(stream.cores.size(), "core"));
  verdict->evidence.push_back(fmt::format("read back: {} has been nothing but {} since",
                                          stream.name,
                                          spinning == 1 ? "this loop" : "these loops"));
  for (CoreVerdict& core : verdict->cores) {
    if (core.stream == stream.name && core.state == State::kLooping)
      core.confidence = verdict->confidence;
  }
  return true;
}

// Whether a core is proven to wait in a loop for much longer than it ever did, while others go on:
// these may end the wait, so it is never certain.
bool StreamJudge::JudgePart(const StreamView& stream, ProgramCode* code, Verdict* verdict) const {
  const TimeNs now = verdict->time;
  if (stream.part_proof == nullptr || !SuspectsPart(stream, now)) return false;
  std::vector<std::string> stuck, others;
  TimeNs since = 0;
  for (size_t i = 0; i < stream.cores.size(); ++i) {
    const CoreTrack& core = stream.cores[i];
    if (GoesOn(core, now)) others.push_back(core.name);
    if (!MayBeLeftBehind(core, now) || i >= stream.part_proof->cores.size()) continue;
    const CoreProof& proof = stream.part_proof->cores[i];
    const CoreFinding& finding = core.finding;
    // What polls nothing ended so by design.
    const bool waits =
        proof.looping && proof.traps == 0 && !finding.polls.empty() &&
        !finding.handler_writes_polls && now - proof.since >= *PatienceBesideOthers(core) &&
        !SleepsInLoop(finding, code) && DescribeLoop(stream, finding, code).polls_memory_only;
    if (!waits) continue;
    stuck.push_back(core.name);
    since = std::max(since, proof.since);
  }
  if (stuck.empty()) return false;
  std::sort(stuck.begin(), stuck.end(), NameBefore);
  std::sort(others.begin(), others.end(), NameBefore);
  verdict->state = State::kPartial;
  verdict->confidence = Confidence::kLikely;
  verdict->since = since;
  verdict->goes_on = fmt::format("{}", fmt::join(others, ", "));
  verdict->summary = fmt::format("{} spin{}, much longer than in earlier waits there",
                                 fmt::join(stuck, ", "), stuck.size() == 1 ? "s" : "");
  verdict->evidence.push_back(fmt::format("read back: {} {} been nowhere but in this loop since",
                                          fmt::join(stuck, ", "),
                                          stuck.size() == 1 ? "has" : "have"));
  Doubts doubts(verdict);
  doubts.AtMost(Confidence::kLikely, verdict->goes_on + " may still end the wait");
  if (stream.chained) doubts.Lowered("QEMU printed only some of the steps: add nochain to -d exec");
  DoubtProof(*stream.part_proof, &doubts);
  return true;
}

// Who got out of it by himself before is given longer.
TimeNs StreamJudge::Patience(TimeNs longest_earlier) const {
  return std::min(std::max(stall_, 3 * longest_earlier), kLongestPatience * stall_);
}

// Whether every core of a log that still says something repeats itself, and has
// for long enough.
bool StreamJudge::LogLoops(const StreamView& stream, TimeNs now) const {
  if (!SuspectsLoop(stream, now)) return false;
  for (size_t i = 0; i < stream.cores.size(); ++i) {
    const CoreTrack& core = stream.cores[i];
    if (!Active(core, now) || core.finding.motion == CoreFinding::Motion::kRepeating) continue;
    const CoreProof* proof = LoopProofOf(stream, i);
    if (proof == nullptr || now - proof->since < Patience(core.longest_loop)) return false;
  }
  return true;
}

// Whether nothing comes any more but log lines that repeat. Beside a trace, log
// lines say nothing, unless the user said which ones do.
bool StreamJudge::JudgeLogs(const std::vector<StreamView>& streams, Verdict* verdict) const {
  const TimeNs now = verdict->time;
  std::vector<const StreamView*> looping;
  for (const StreamView& stream : streams) {
    const bool speaks = stream.last_byte != 0 && now - stream.last_byte < stall_;
    if (stream.is_trace && !stream.by_rule) return false;
    if (!speaks || stream.is_trace || (stream.by_rule && stream.cores.empty())) continue;
    if (stream.texts == nullptr || !LogLoops(stream, now)) return false;
    looping.push_back(&stream);
  }
  if (looping.empty()) return false;
  verdict->state = State::kLooping;
  verdict->confidence = Confidence::kLikely;
  verdict->since = 0;
  Doubts doubts(verdict);
  LogTally tally;
  for (const StreamView* stream : looping) DoubtLog(*stream, stall_, &doubts, &tally, verdict);
  const bool by_rule = looping.front()->by_rule;
  doubts.AtMost(Confidence::kLikely,
                by_rule ? "these places are from log lines and not from an instruction trace"
                        : "these are log lines: a sign of life that is meant looks the same; "
                          "--place-regex says which lines count");
  verdict->summary = by_rule ? RuleSummary(tally) : LogSummary(tally);
  for (CoreVerdict& core : verdict->cores) {
    const bool mine = std::any_of(looping.begin(), looping.end(), [&](const StreamView* stream) {
      return stream->name == core.stream;
    });
    if (mine && core.state == State::kLooping) core.confidence = verdict->confidence;
  }
  return true;
}

bool StreamJudge::JudgeSilence(const std::vector<StreamView>& streams, const ChildView& child,
                               Verdict* verdict) const {
  const TimeNs now = verdict->time;
  const TimeNs silence = now - (last_byte_ == 0 ? start_ : last_byte_);
  if (silence < Patience(longest_gap_)) return false;

  const auto trace =
      std::find_if(streams.begin(), streams.end(), [](const StreamView& s) { return s.is_trace; });
  const bool is_trace = trace != streams.end();
  const TimeNs window = now - ticks_.front().time;
  const double load = window > 0 ? static_cast<double>(child.cpu_time - ticks_.front().cpu) /
                                       static_cast<double>(window)
                                 : 0;
  // A busy machine may leave a program that computes only a part of a CPU, or none for a while.
  const bool burning = child.known && (load >= kAsleep || child.runnable);
  const TimeNs given = child.cpu_time - cpu_at_last_byte_;
  verdict->state = State::kSilent;
  verdict->since = last_byte_ == 0 ? start_ : last_byte_;
  verdict->confidence = Confidence::kLikely;

  std::string how = !child.known ? ""
                    : burning    ? fmt::format(", child uses {:.0f} % of a CPU", load * 100)
                                 : ", child asleep";
  if (child.known && !burning && !child.waits_in.empty())
    how += fmt::format(" in {}", child.waits_in);
  verdict->summary = fmt::format("silent{}", how);
  const bool only_child_tells = !is_trace && child.is_looked_into;
  if (last_byte_ == 0) {
    verdict->Lower(Confidence::kPossible,
                   "it never printed anything: perhaps it is still starting, or quiet by nature");
  } else if (is_trace && trace->only_translations) {
    verdict->Lower(Confidence::kPossible,
                   "-d in_asm prints code once, when it is translated; add exec,nochain");
  } else if (is_trace && trace->chained && (burning || !child.known)) {
    verdict->Lower(Confidence::kPossible,
                   "QEMU prints nothing for blocks it has linked: add nochain to -d exec");
  } else if (!is_trace && burning && !only_child_tells) {
    verdict->Lower(Confidence::kPossible,
                   "it may be computing: its output is no instruction trace");
  } else if (is_trace && child.runnable && given < stall_ / 2) {
    verdict->Lower(Confidence::kPossible,
                   fmt::format("it would run, and was given a processor for only {} since",
                               FormatElapsed(given)));
  } else if (is_trace && !child.known && child.is_looked_into) {
    verdict->Lower(Confidence::kPossible,
                   "whether its processes run, sleep or are stopped is not seen");
  } else if (!is_trace && !child.known && !only_child_tells) {
    verdict->Lower(Confidence::kPossible,
                   "the writer is unknown and its output is no instruction trace");
  }
  if (child.waits_for_input && !is_trace && !only_child_tells)
    verdict->Lower(Confidence::kPossible, "it waits for its own input");
  if (std::any_of(streams.begin(), streams.end(), [](const StreamView& s) { return s.blocked; })) {
    verdict->Lower(Confidence::kPossible, "whoever reads its output does not read");
  }
  if (child.timed_sleep && !only_child_tells)
    verdict->Lower(Confidence::kPossible, "it sleeps for a set time and will wake");
  if (child.stopped)
    verdict->Lower(Confidence::kPossible,
                   "the child is stopped, by a signal, a debugger or a freezer");
  if (last_byte_ != 0)
    verdict->Lower(Confidence::kLikely,
                   "the newest lines may still sit in the program's output buffer");
  return true;
}

void StreamJudge::DoubtIfInterrupted(Verdict* verdict) const {
  if (verdict->time >= trusted_from_) return;
  verdict->Lower(Confidence::kPossible, "the recorder or the program was stopped a moment ago");
}

void StreamJudge::JudgeRate(Verdict* verdict) const {
  verdict->state = State::kProgressing;
  verdict->summary = "progressing";
  verdict->confidence = Confidence::kLikely;
  if (rates_.size() < kRatesNeeded || ticks_.size() < 2) return;
  std::vector<double> sorted(rates_.begin(), rates_.end());
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2),
                   sorted.end());
  const double usual = sorted[sorted.size() / 2];
  const Tick& first = ticks_.front();
  const Tick& last = ticks_.back();
  if (last.time - first.time < stall_ / 2) return;
  const double rate =
      static_cast<double>(last.total - first.total) / Seconds(last.time - first.time);
  if (rate >= usual * kSlowFraction) return;
  verdict->state = State::kSlow;
  verdict->summary = fmt::format("slow, {} where {} is usual", FormatRate(rate), FormatRate(usual));
}

}  // namespace hangscope
