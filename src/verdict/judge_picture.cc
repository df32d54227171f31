#include "verdict/judge_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "verdict/joined_graph.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

constexpr size_t kMostNamed = 2;  // in a clause
constexpr TimeNs kPipesTake = 4;  // one part in so many of the stall time, at most

// What a finding of a kind means for the verdict, the weightiest first.
struct Meaning {
  FindingKind kind;
  State state;
  // How much it says about the cause. 0: it is no cause of a hang, however sure it is: a program
  // that is stopped, or has ended, is what somebody wanted.
  int weight;
};
constexpr Meaning kMeanings[] = {
    {FindingKind::kFault, State::kFault, 6},       {FindingKind::kDeadlock, State::kDeadlock, 5},
    {FindingKind::kOwnerDied, State::kStarved, 4}, {FindingKind::kCopiedLock, State::kStarved, 4},
    {FindingKind::kStarved, State::kStarved, 3},   {FindingKind::kStoppedChild, State::kStarved, 3},
    {FindingKind::kHeld, State::kStarved, 3},      {FindingKind::kLostWakeup, State::kStarved, 3},
    {FindingKind::kNoWriter, State::kStarved, 3},  {FindingKind::kSpin, State::kLooping, 2},
    {FindingKind::kSilent, State::kSilent, 1},
};

Meaning MeaningOf(FindingKind kind) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.kind == kind) return meaning;
  }
  return {kind, State::kSilent, 0};
}

int Weight(FindingKind kind) { return MeaningOf(kind).weight; }

bool IsCause(const Finding& finding) { return finding.IsBad() && Weight(finding.kind) > 0; }

bool ComesBefore(const Finding& a, const Finding& b) {
  const auto order = [](const Finding& each) {
    return std::tuple(IsCause(each), each.confidence, Weight(each.kind));
  };
  return order(a) > order(b);
}

bool IsOfThreads(const Finding& finding) {
  return !finding.subjects.empty() &&
         std::all_of(finding.subjects.begin(), finding.subjects.end(),
                     [](const FindingSubject& subject) { return subject.thread != 0; });
}

// The same threads; or `other` is about some of them only.
bool IsAboutSome(const Finding& finding, const Finding& other) {
  return IsOfThreads(finding) && IsOfThreads(other) &&
         std::all_of(other.subjects.begin(), other.subjects.end(), [&](const FindingSubject& each) {
           return std::any_of(
               finding.subjects.begin(), finding.subjects.end(),
               [&](const FindingSubject& mine) { return mine.thread == each.thread; });
         });
}

bool Covers(const Finding& finding, const Finding& other) {
  return finding.source != other.source && IsAboutSome(finding, other);
}

// One hang with two witnesses: the scope knows what the subjects call what they wait for, so where
// both say the same its words are the headline, and what the kernel knows becomes evidence.
void Join(Finding* finding, const Finding& witness) {
  const bool is_same = finding->kind == witness.kind;
  finding->evidence.push_back(
      is_same ? kSecondWitness
              : fmt::format("the {}: {}", SourceName(witness.source), witness.summary));
  for (const std::string& line : witness.lines) finding->evidence.push_back("  " + line);
  if (is_same) finding->confidence = std::max(finding->confidence, witness.confidence);
}

// Of those who wait for each other each source sees a part, and what it says of them is evidence.
void AddJoinedCycles(const Picture& picture, std::vector<Finding>* all) {
  for (Finding& joined : FindJoinedCycles(picture.scope, picture.threads)) {
    std::erase_if(*all, [&](const Finding& each) {
      const bool is_part = each.confidence <= joined.confidence && IsAboutSome(joined, each);
      if (is_part) Join(&joined, each);
      return is_part;
    });
    all->push_back(std::move(joined));
  }
}

std::vector<Finding> AllFindings(const Picture& picture) {
  std::vector<Finding> all = picture.scope.findings;
  std::vector<Finding> others = picture.threads.findings;
  others.insert(others.end(), picture.cpus.findings.begin(), picture.cpus.findings.end());
  for (const Finding& finding : others) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Finding& known) {
      return known.kind == finding.kind && Covers(known, finding) && Covers(finding, known);
    });
    if (same == all.end())
      all.push_back(finding);
    else
      Join(&*same, finding);
  }
  AddJoinedCycles(picture, &all);
  std::stable_sort(all.begin(), all.end(), ComesBefore);
  // What another source says of some of the same threads is no hang of its own.
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t k = i + 1; k < all.size();) {
      if (!IsCause(all[i]) || !Covers(all[i], all[k])) {
        ++k;
        continue;
      }
      Join(&all[i], all[k]);
      all.erase(all.begin() + static_cast<ptrdiff_t>(k));
    }
  }
  return all;
}

std::string Clause(const std::vector<std::string>& who) {
  std::string text = who.front();
  for (size_t i = 1; i < std::min(who.size(), kMostNamed); ++i) text += ", " + who[i];
  if (who.size() > kMostNamed) text += fmt::format(" and {} more", who.size() - kMostNamed);
  return text;
}

std::string RanText(const Sightings& source) {
  return std::string(source.moving.size() == 1 ? " runs" : " run") +
         (source.of_one_instant ? "" : ", or ran in the meantime");
}

bool HasTrace(const Verdict& streams) {
  return std::any_of(streams.streams.begin(), streams.streams.end(),
                     [](const StreamVerdict& stream) { return !stream.format.empty(); });
}

bool HasStreams(const Verdict& streams) {
  return !streams.streams.empty() || !streams.cores.empty() || streams.state != State::kProgressing;
}

// Where nobody listens to streams, it depends on what the others saw.
Verdict StreamsOf(const Picture& picture) {
  Verdict verdict = picture.streams;
  const auto sources = {&picture.scope, &picture.threads, &picture.cpus};
  const bool any = std::any_of(sources.begin(), sources.end(),
                               [](const Sightings* source) { return source->attached; });
  if (HasStreams(verdict) || !any) return verdict;
  verdict.time = verdict.since = picture.now;
  // Of one source: two may see the same threads, by other names.
  const auto moving = std::find_if(sources.begin(), sources.end(),
                                   [](const Sightings* source) { return !source->moving.empty(); });
  if (moving != sources.end()) {
    // Whether that is progress, two looks do not tell.
    verdict.confidence = Confidence::kPossible;
    verdict.goes_on = Clause((*moving)->moving);
    verdict.summary = verdict.goes_on + RanText(**moving);
    return verdict;
  }
  verdict.state = State::kSilent;
  verdict.summary = "silent, nobody in it moves";
  return verdict;
}

TimeNs LastByte(const Verdict& streams) {
  TimeNs last = 0;
  for (const StreamVerdict& stream : streams.streams) last = std::max(last, stream.last_byte);
  return last;
}

// Who sleeps for a set time may do anything then; but a loop that only wakes to look for whom it
// waits for outside does not.
bool HasSleeper(const Sightings& threads) {
  return std::any_of(threads.timed.begin(), threads.timed.end(), [&](const std::string& who) {
    return std::none_of(threads.outside.begin(), threads.outside.end(),
                        [&](const std::string& clause) { return clause.starts_with(who + " "); });
  });
}

// What the processes of a silent program do, as far as nothing is found wrong with them.
void SayWhatTheyDo(const Sightings& threads, bool closed, Verdict* verdict) {
  const auto doubt = [&](const std::vector<std::string>& who, const std::string& why) {
    if (!who.empty()) verdict->Lower(Confidence::kPossible, Clause(who) + why);
    return !who.empty();
  };
  if (threads.as_of == 0)
    return verdict->Lower(Confidence::kPossible, "its processes have not been looked at yet");
  if (!threads.incomplete.empty()) verdict->Lower(Confidence::kPossible, threads.incomplete);
  bool may_go_on = doubt(threads.halted, "");
  const bool one_moves = threads.moving.size() == 1;
  const std::string computing = one_moves ? ": it may be computing" : ": they may be computing";
  may_go_on = doubt(threads.moving, RanText(threads) + computing) || may_go_on;
  may_go_on = doubt(threads.unknown, "") || may_go_on;
  const bool waits_outside = !threads.outside.empty() && !closed;
  if (!waits_outside || may_go_on || !threads.incomplete.empty()) {
    doubt(threads.timed, threads.timed.size() == 1 ? " sleeps for a set time and will wake"
                                                   : " sleep for a set time and will wake");
    const bool nobody_will =
        closed && !may_go_on && threads.incomplete.empty() && !HasSleeper(threads);
    if (nobody_will && !threads.outside.empty()) {
      verdict->confidence = Confidence::kLikely;
      verdict->evidence.push_back(Clause(threads.outside) + ", and nobody will come (--closed)");
    } else if (verdict->doubts.empty() || verdict->confidence > Confidence::kPossible) {
      verdict->Lower(Confidence::kPossible, kNothingKnown);
    }
    return;
  }
  verdict->state = State::kIdle;
  verdict->confidence = Confidence::kLikely;
  verdict->summary = "idle, " + Clause(threads.outside);
}

// Of a simulator that falls silent its processes say little: its guest hangs while it waits itself,
// or computes.
void JudgeSilence(const Sightings& threads, bool closed, Verdict* verdict) {
  // What is known of the processes says more than what is known of the streams.
  std::vector<std::string> of_streams = std::exchange(verdict->doubts, {});
  SayWhatTheyDo(threads, closed, verdict);
  if (verdict->state != State::kIdle)
    verdict->doubts.insert(verdict->doubts.end(), of_streams.begin(), of_streams.end());
}

// Others that go on although somebody hangs for good: they still print, or a source saw them move.
std::string WhoGoesOn(const Picture& picture, const Finding& finding, TimeNs stall) {
  const Verdict& streams = picture.streams;
  const bool stream_goes_on =
      streams.state == State::kPartial || (streams.state != State::kSilent && !streams.IsHang());
  if (finding.source == Source::kThreads || finding.of_two_sources) {
    if (!picture.threads.moving.empty()) return Clause(picture.threads.moving);
  } else if (stream_goes_on && !picture.scope.moving.empty()) {
    return Clause(picture.scope.moving);
  }
  // What was printed just before may come a little later.
  const TimeNs since = finding.since != 0 ? finding.since : picture.now;
  const bool printed_since = LastByte(streams) - since > stall / kPipesTake;
  return finding.source == Source::kThreads && stream_goes_on && printed_since ? "its output" : "";
}

// A log that repeats is one of the program's: what its threads wait for says why. Its lines have no
// core of their own.
bool IsOfMereLog(const CoreVerdict& core) {
  return core.name == core.stream && core.loop && core.loop->basis == LoopBasis::kLines;
}

// A simulator's own threads say nothing about the cores that it simulates, unless they are stuck
// for certain; and a proven loop is surer than a likely cause.
bool StreamsKnowBetter(const Verdict& streams, const Finding& finding) {
  if (finding.source != Source::kThreads || finding.confidence == Confidence::kCertain)
    return false;
  const bool surer = streams.IsHang() && streams.confidence > finding.confidence;
  return surer || HasTrace(streams) ||
         !std::all_of(streams.cores.begin(), streams.cores.end(), IsOfMereLog);
}

// A core of the scope and a hart of a trace are the same by the hart's number, where there is but
// one of that number.
void AddTraceOfCores(Verdict* verdict) {
  Finding* const finding = &verdict->findings.front();
  if (finding->source != Source::kScope) return;
  for (size_t i = 0; i < finding->subjects.size(); ++i) {
    FindingSubject& subject = finding->subjects[i];
    const auto is_it = [&](const CoreVerdict& core) {
      return subject.hart && core.hart == subject.hart;
    };
    auto& cores = verdict->cores;
    if (std::count_if(cores.begin(), cores.end(), is_it) != 1) continue;
    CoreVerdict& core = *std::find_if(cores.begin(), cores.end(), is_it);
    core.is_evidence = true;
    if (subject.inside.empty() && core.state != State::kProgressing) {
      std::vector<Place> stack = {core.place};
      stack.insert(stack.end(), core.callers.begin(), core.callers.end());
      NameCaller(stack, &subject);
      if (!subject.inside.empty() && i < finding->lines.size())
        finding->lines[i] += " <- " + subject.where + CallersText(subject.callers);
    }
    finding->evidence.push_back("the trace: " + CoreText(core, verdict->time));
  }
}

void TakeHeadline(const Picture& picture, TimeNs stall, Verdict* verdict) {
  AddTraceOfCores(verdict);
  const Finding& finding = verdict->findings.front();
  verdict->doubts.clear();  // they were about why the streams alone say too little
  if (picture.streams.StandsStill())
    verdict->evidence.insert(verdict->evidence.begin(), "the streams: " + picture.streams.summary);
  verdict->by_finding = true;
  verdict->state = MeaningOf(finding.kind).state;
  verdict->confidence = finding.confidence;
  if (finding.since != 0) verdict->since = finding.since;
  verdict->time = std::max(verdict->time, picture.now);
  verdict->summary = finding.summary;
  verdict->evidence.insert(verdict->evidence.end(), finding.evidence.begin(),
                           finding.evidence.end());
  verdict->doubts = finding.doubts;
  const std::string goes_on =
      finding.kind == FindingKind::kFault ? "" : WhoGoesOn(picture, finding, stall);
  if (goes_on.empty()) return;
  verdict->state = State::kPartial;
  verdict->goes_on = goes_on;
}

// The other source of the same threads may be about to say what they wait for, in better words.
bool AwaitsWitness(const Picture& picture, const Finding& finding) {
  const Sightings& own = finding.source == Source::kThreads ? picture.threads : picture.scope;
  if (own.found_at == 0) return false;
  const TimeNs waited = picture.now - own.found_at;
  const Sightings& scope = picture.scope;
  if (finding.source == Source::kThreads && scope.as_of != 0 && scope.before_that < own.found_at &&
      waited < kLongestWaitForSlowScope)
    return scope.attached && scope.findings.empty();
  if (waited >= kLongestWaitForSources) return false;
  const bool has_two =
      finding.of_two_sources || std::find(finding.evidence.begin(), finding.evidence.end(),
                                          kSecondWitness) != finding.evidence.end();
  if (finding.source == Source::kThreads) return scope.attached && scope.findings.empty();
  return IsOfThreads(finding) && picture.threads.attached && !has_two;
}

bool AwaitsSources(const Picture& picture) {
  if (picture.suspected_since == 0) return false;
  const bool in_time = picture.now - picture.suspected_since < kLongestWaitForSources;
  const bool threads_asked =
      !picture.threads.attached || picture.threads.as_of >= picture.suspected_since;
  return in_time && (picture.scope.attached || !threads_asked);
}

}  // namespace

Verdict JudgePicture(const Picture& picture, const JudgeRules& rules) {
  Verdict verdict = StreamsOf(picture);
  verdict.findings = AllFindings(picture);
  if (verdict.state == State::kFinished || verdict.state == State::kDead) return verdict;
  const bool is_silent = verdict.state == State::kSilent;
  const bool only_scope = !HasStreams(picture.streams) && !picture.threads.attached;
  const Sightings& witness = only_scope ? picture.scope : picture.threads;
  if (is_silent && witness.attached && !HasTrace(verdict))
    JudgeSilence(witness, rules.closed, &verdict);
  if (!verdict.findings.empty() && IsCause(verdict.findings.front()) &&
      !StreamsKnowBetter(verdict, verdict.findings.front())) {
    TakeHeadline(picture, rules.stall, &verdict);
    verdict.undecided =
        picture.threads.undecided || AwaitsWitness(picture, verdict.findings.front());
    return verdict;
  }
  if (verdict.StandsStill() && !picture.scope.moving.empty())
    verdict.Lower(Confidence::kPossible, fmt::format("the scope says who makes progress: {}",
                                                     Clause(picture.scope.moving)));
  const TimeNs last_byte = LastByte(picture.streams);
  const TimeNs since = std::max(last_byte != 0 ? last_byte : picture.start, picture.counts_from);
  // What came since the streams were judged, nobody has seen.
  const TimeNs seen = picture.streams.time;
  const TimeNs silence = std::min(picture.now, seen != 0 ? seen : picture.now) - since;
  if (rules.expect_output != 0 && silence >= rules.expect_output) {
    verdict.evidence.insert(verdict.evidence.begin(), verdict.summary);
    verdict.state = State::kSilent;
    verdict.confidence = Confidence::kLikely;
    verdict.since = since;
    verdict.summary = fmt::format("silent, where output is expected every {}",
                                  FormatElapsed(rules.expect_output));
  }
  // Where nobody knows the program but by its scope, that tells that it is dead.
  const auto is_dead = [](const Finding& finding) {
    return finding.kind == FindingKind::kDead && finding.IsBad();
  };
  const auto dead = std::find_if(verdict.findings.begin(), verdict.findings.end(), is_dead);
  if (!HasStreams(picture.streams) && dead != verdict.findings.end()) {
    verdict.state = State::kDead;
    verdict.confidence = dead->confidence;
    verdict.summary = dead->summary;
    verdict.goes_on.clear();
  }
  verdict.undecided = AwaitsSources(picture);
  return verdict;
}

bool IsToldBy(const std::vector<Finding>& others, const Finding& finding) {
  return std::any_of(others.begin(), others.end(), [&](const Finding& other) {
    return other.kind == finding.kind && Covers(other, finding);
  });
}

bool Supersedes(const Verdict& verdict, const Verdict& before) {
  if (!verdict.StandsStill() || verdict.undecided || verdict.confidence < before.confidence)
    return false;
  const auto weight = [](const Verdict& each) {
    return each.by_finding ? Weight(each.findings.front().kind) : 0;
  };
  const bool is_whole_now = before.state == State::kPartial && verdict.state != State::kPartial;
  return verdict.confidence > before.confidence || weight(verdict) > weight(before) ||
         (is_whole_now && weight(verdict) == weight(before));
}

}  // namespace hangscope
