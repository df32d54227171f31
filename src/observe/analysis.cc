#include "observe/analysis.h"

#include <algorithm>

#include "base/thread_name.h"

namespace hangscope {
namespace {

constexpr TimeNs kShortestTick = 100 * kMillisecond;
constexpr TimeNs kLongestTick = kSecond;
constexpr int kTicksPerStall = 10;
constexpr TimeNs kLongestDeepPause = 8;  // stall times
constexpr TimeNs kLongPause = kSecond;   // a sleep this much too long: we were stopped
constexpr TimeNs kLongestProof = 60 * kSecond;
constexpr TimeNs kLongestLogProof = 5 * kSecond;  // lines cost more than steps, and prove less
constexpr TimeNs kFinalProof = kSecond / 4;       // nobody waits for the end of a run that is over

}  // namespace

Analysis::Analysis(FileSystem& files, Clock& clock, const Recording& recording, CodeSource* elf,
                   const PlaceRule* rule, TimeNs stall)
    : files_(files),
      clock_(clock),
      elf_(elf),
      rule_(rule),
      stall_(stall),
      tick_(std::clamp(stall / kTicksPerStall, kShortestTick, kLongestTick)),
      judge_(stall, clock.Monotonic()),
      no_code_(elf) {
  for (const RecordedStream& recorded : recording.streams()) {
    Stream stream;
    stream.recorded = &recorded;
    streams_.push_back(std::move(stream));
  }
}

Analysis::~Analysis() { Stop(); }

void Analysis::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Analysis::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Analysis::SetChild(const ChildView& child) {
  const std::lock_guard lock(mutex_);
  child_ = child;
}

Verdict Analysis::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

void Analysis::Run() {
  NameThread("hs-analysis");
  for (;;) {
    const TimeNs slept_from = clock_.Monotonic();
    {
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, std::chrono::nanoseconds(tick_), [this] { return stopping_; }))
        return;
    }
    const TimeNs now = clock_.Monotonic();
    if (now - slept_from > kLongPause + 2 * tick_) judge_.Interrupted(now);
    Sample(now, false);
  }
}

Verdict Analysis::Conclude(const ChildView& child) {
  SetChild(child);
  Sample(clock_.Monotonic(), true);
  return verdict();
}

void Analysis::Sample(TimeNs now, bool final_look) {
  const TimeNs cpu_before = ThreadCpuTime();
  std::vector<StreamView> views;
  ProgramCode* code = &no_code_;
  for (Stream& stream : streams_) {
    SampleStream(&stream, now, final_look);
    views.push_back(ViewOf(stream));
    if (stream.analyst != nullptr && stream.analyst->is_trace()) code = &stream.analyst->code();
  }
  ChildView child;
  {
    const std::lock_guard lock(mutex_);
    child = child_;
  }
  // A proof takes a while; what is true is true as of its end.
  const TimeNs judged = clock_.Monotonic();
  // Whoever was stopped meanwhile knows of nothing that has come since.
  const TimeNs away = judged - now - (ThreadCpuTime() - cpu_before);
  if (away > kLongPause && !final_look) judge_.Interrupted(judged);
  Verdict verdict = judge_.Assess(judged, views, child, code);
  const std::lock_guard lock(mutex_);
  verdict_ = std::move(verdict);
}

void Analysis::SampleStream(Stream* stream, TimeNs now, bool final_look) {
  if (stream->analyst == nullptr) {
    if (stream->recorded->drain->total_bytes() == 0) return;
    auto reader = BlockReader::Open(files_, stream->recorded->ring->prefix());
    if (!reader.ok()) return;
    stream->analyst = std::make_unique<StreamAnalyst>(std::move(*reader), elf_, rule_, stall_);
  }
  stream->analyst->Sample(now);
  const bool trace = stream->analyst->is_trace();
  const bool ruled_log = rule_ != nullptr && stream->analyst->is_log();
  if (!trace && !stream->analyst->is_log()) return;
  if (final_look) {
    if (!trace && !ruled_log) return;  // without a rule a log has no last places
    // Short runs never raised a suspicion; where they ended is known all the same.
    if (!stream->proven || !StillProven(*stream)) MakeProof(stream, now, kFinalProof);
    if (!stream->proven && EndedBadly())
      stream->ways = stream->analyst->FindWays(stream->proof.cores, StopAfter(kFinalProof));
    stream->proven = true;
    return;
  }
  if (trace || ruled_log) ReadLastSteps(stream, now);
  if (trace) ReadListings(stream, now);
  const StreamView view = ViewOf(*stream);
  if ((trace || ruled_log) && now >= stream->next_deep_sample &&
      judge_.SuspectsLongLoop(view, now)) {
    // Again soon after the program came to a new part, else ever more rarely.
    TimeNs newest_place = 0;  // before this sample, which may bring one to light
    for (const CoreTrack& core : view.cores)
      newest_place = std::max(newest_place, core.places_since);
    stream->analyst->SampleDeeply(now);
    if (newest_place > stream->last_deep_sample) stream->deep_pause = 0;
    stream->last_deep_sample = now;
    stream->deep_pause = std::clamp(2 * stream->deep_pause, stall_, kLongestDeepPause * stall_);
    stream->next_deep_sample = now + stream->deep_pause;
  }
  if (stream->proven && !StillProven(*stream)) stream->proven = false;
  if (!stream->proven && now >= stream->next_proof && WorthProving(*stream, now)) {
    MakeProof(stream, now, trace ? kLongestProof : kLongestLogProof);
  }
  if (trace) ProvePart(stream, now);
}

// The others go on, and print all the time: reading back what lasted long is read seldom.
void Analysis::ProvePart(Stream* stream, TimeNs now) {
  const auto& cores = stream->analyst->cores();
  const auto is_another = [&](size_t i) {
    return i < cores.size() &&
           std::max(cores[i].loop_since, cores[i].found_at) > stream->part_proof.time;
  };
  for (size_t i = 0; i < stream->part_proof.cores.size(); ++i) {
    if (is_another(i)) stream->part_proof.cores[i].looping = false;
  }
  if (now < stream->next_part_proof || !judge_.SuspectsPart(ViewOf(*stream), now)) return;
  stream->part_proof = ProofOf(stream, now, kLongestProof);
  stream->next_part_proof = clock_.Monotonic() + kLongestDeepPause * stall_;
}

// Lines whose values change trigger nothing, however long they have come.
bool Analysis::WorthProving(const Stream& stream, TimeNs now) const {
  if (!judge_.SuspectsLoop(ViewOf(stream), now)) return false;
  const auto& cores = stream.analyst->cores();
  return stream.analyst->is_trace() ||
         std::any_of(cores.begin(), cores.end(), [](const CoreTrack& core) {
           return core.finding.motion == CoreFinding::Motion::kSpinning;
         });
}

// When a trace falls silent, samples may have missed the last word of a core.
void Analysis::ReadLastSteps(Stream* stream, TimeNs now) {
  const uint64_t total = stream->recorded->drain->total_bytes();
  const bool silent = now - stream->recorded->drain->last_byte() >= stall_ * 9 / 10;
  if (!silent || stream->read_to_the_end_at == total) return;
  stream->read_to_the_end_at = total;
  const auto last = stream->analyst->Prove(stream->analyst->end_offset(), StopAfter(kFinalProof));
  stream->ways = stream->analyst->FindWays(last, StopAfter(kFinalProof));
}

// QEMU lists a block once, before it first runs: a loop whose code no sample
// caught is looked up before the ring forgets it.
void Analysis::ReadListings(Stream* stream, TimeNs now) {
  StreamAnalyst& analyst = *stream->analyst;
  const bool wanted =
      analyst.translated_pc() != 0 &&
      std::any_of(analyst.cores().begin(), analyst.cores().end(), [](const CoreTrack& track) {
        return track.finding.motion == CoreFinding::Motion::kRepeating;
      });
  if (!wanted || now < stream->next_listing_read) return;
  stream->next_listing_read = now + stall_;
  (void)analyst.Prove(0, StopAfter(kFinalProof));
}

bool Analysis::EndedBadly() const {
  const std::lock_guard lock(mutex_);
  return child_.exit_signal != 0 || child_.exit_status != 0;
}

std::function<bool()> Analysis::StopAfter(TimeNs longest) {
  return [this, deadline = clock_.Monotonic() + longest] {
    if (clock_.Monotonic() > deadline) return true;
    const std::lock_guard lock(mutex_);
    return stopping_ && thread_.get_id() == std::this_thread::get_id();
  };
}

// `longest`: the time it may take; what is not read back by then is "at least".
Proof Analysis::ProofOf(Stream* stream, TimeNs now, TimeNs longest) {
  StreamAnalyst& analyst = *stream->analyst;
  const uint64_t back_to = analyst.OffsetAt(now - stall_);
  Proof proof;
  proof.time = now;
  proof.cores = analyst.Prove(back_to, StopAfter(longest));
  proof.lost_bytes = analyst.LostSince(back_to);
  for (size_t i = 0; i < proof.cores.size(); ++i) {
    CoreProof& core = proof.cores[i];
    const CoreTrack& track = analyst.cores()[i];
    core.looping = track.finding.IsLoop() && core.rounds > 0;
    const uint64_t at = core.looping ? core.entered_offset : core.last ? core.last->offset : 0;
    const std::optional<TimeNs> time = analyst.TimeOf(at);
    core.since = time.value_or(track.loop_since);
    if (core.looping && core.at_least && (!time || *time > track.loop_since)) {
      // The ring is shorter than the stall time: what it holds is proven, and
      // before that each sample showed the same loop.
      proof.only_sampled_before = std::max(proof.only_sampled_before, time.value_or(now));
      core.since = track.loop_since;
    }
    core.nothing_else = core.entered_offset == 0 ||
                        (core.at_least && track.places.size() <= track.finding.loop_places.size());
  }
  return proof;
}

void Analysis::MakeProof(Stream* stream, TimeNs now, TimeNs longest) {
  StreamAnalyst& analyst = *stream->analyst;
  stream->proof = ProofOf(stream, now, longest);
  TimeNs newest_entry = 0;
  bool all_old_enough = true;
  for (const CoreProof& core : stream->proof.cores) {
    if (core.looping) {
      newest_entry = std::max(newest_entry, core.since);
    } else if (core.last && core.since > now - stall_) {
      all_old_enough = false;  // another core did something meanwhile
    }
  }
  stream->proven = all_old_enough && newest_entry != 0 && now - newest_entry >= stall_;
  if (stream->proven) stream->ways = analyst.FindWays(stream->proof.cores, StopAfter(kFinalProof));
  // Disproved: the youngest loop must last for the whole stall time first.
  stream->next_proof = std::max(now + stall_ / 2, newest_entry + stall_);
}

// The proof holds while the samples show every proven core in its loop still.
bool Analysis::StillProven(const Stream& stream) const {
  const auto& cores = stream.analyst->cores();
  for (size_t i = 0; i < cores.size(); ++i) {
    if (i >= stream.proof.cores.size()) return false;
    const bool another = std::max(cores[i].loop_since, cores[i].found_at) > stream.proof.time;
    // Of one that fell silent since, the ring may know what samples missed.
    const bool silent = !cores[i].finding.IsLoop();
    if (stream.proof.cores[i].looping && (another || silent)) return false;
    if (!stream.proof.cores[i].looping && cores[i].last_seen > stream.proof.time) return false;
  }
  return true;
}

StreamView Analysis::ViewOf(const Stream& stream) const {
  StreamView view;
  view.name = stream.recorded->ring->stream_name();
  view.total_bytes = stream.recorded->drain->total_bytes();
  view.last_byte = stream.recorded->drain->last_byte();
  view.blocked = stream.recorded->drain->blocked();
  view.by_rule = rule_ != nullptr;
  if (stream.analyst == nullptr) return view;
  const StreamAnalyst& analyst = *stream.analyst;
  if (analyst.is_trace()) {
    view.is_trace = true;
    view.only_translations = analyst.only_translations();
    view.chained = chained_ || analyst.chained();
    view.format = TraceFormatName(analyst.format());
  } else if (analyst.is_log()) {
    view.texts = &analyst.texts();
  } else {
    return view;
  }
  view.cores = analyst.cores();
  view.ways = stream.ways;
  if (stream.proven) view.proof = &stream.proof;
  if (!stream.part_proof.cores.empty()) view.part_proof = &stream.part_proof;
  return view;
}

}  // namespace hangscope
