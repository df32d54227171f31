#include "verdict/stream_analyst.h"

#include <algorithm>

#include "verdict/loop_body.h"

namespace hangscope {
namespace {

constexpr uint64_t kTailBytes = 256 * 1024;
constexpr uint64_t kPieceBytes = 32 * 1024;
constexpr int kPieces = 8;
constexpr uint64_t kDeepBytes = 32u << 20;
constexpr size_t kMostPlaces = 50'000;

bool SameLoop(const CoreFinding& a, const CoreFinding& b) {
  return a.IsLoop() && b.IsLoop() && a.loop_places == b.loop_places;
}

bool IsWithin(const std::unordered_set<uint64_t>& inner, const std::unordered_set<uint64_t>& outer,
              const std::unordered_set<uint64_t>& also = {}) {
  return std::all_of(inner.begin(), inner.end(),
                     [&](uint64_t item) { return outer.count(item) != 0 || also.count(item) != 0; });
}

// Whether a sample in which no loop was found shows nothing but the known one:
// it was too short for a round, or a line of it was out of place.
bool StaysInside(const CoreFinding& known, const CoreFinding& sample) {
  if (!known.IsLoop() || sample.motion == CoreFinding::Motion::kComputing) return false;
  if (sample.IsLoop() && sample.loop.size() >= known.loop.size()) return false;
  if (!IsWithin(sample.seen_places, known.loop_places, known.trap_places)) return false;
  const bool in_handler = !IsWithin(sample.seen_places, known.loop_places);
  return known.loop_states.empty() || in_handler || IsWithin(sample.seen_states, known.loop_states);
}

}  // namespace

StreamAnalyst::StreamAnalyst(BlockReader reader, CodeSource* elf)
    : reader_(std::move(reader)), name_(reader_.stream_name()), code_(elf) {}

StreamAnalyst::StepsByCore StreamAnalyst::ReadSteps(uint64_t begin, uint64_t end) {
  StepsByCore steps;
  StepReader parser(&names_, StepReader::Learn::kAll, [&](uint32_t core, const Step& step) {
    if (core >= steps.size()) steps.resize(core + 1);
    steps[core].push_back(step);
  });
  reader_.Seek(begin);
  while (reader_.position() < end) {
    const auto event = reader_.Next(std::min<uint64_t>(1u << 20, end - reader_.position()));
    if (event == BlockReader::Event::kEnd) break;
    if (event == BlockReader::Event::kLoss) {
      for (auto& core : steps) core.clear();  // only what is continuous can show a period
      continue;
    }
    parser.Feed(reader_.block(), reader_.block_offset());
  }
  parser.Flush();
  if (parser.IsTrace()) {
    is_trace_ = true;
    only_translations_ = parser.only_translations();
    if (parser.format() != TraceFormat::kNone) format_ = parser.format();
    if (only_translations_) format_ = TraceFormat::kQemuInAsm;
  }
  if (parser.chained()) chained_ = true;
  if (parser.wide()) code_.SetWide();
  if (parser.translated_pc() != 0) translated_pc_ = parser.translated_pc();
  code_.Learn(parser.code());
  return steps;
}

void StreamAnalyst::Sample(TimeNs now) {
  if (!reader_.Refresh().ok()) return;
  const uint64_t end = reader_.end_offset();
  if (end == sampled_to_) return;
  const uint64_t from = std::max(sampled_to_, reader_.begin_offset());
  const uint64_t tail = end - std::min(kTailBytes, end);
  // A core may say something at the start and never again.
  if (sampled_to_ == 0 && from < tail) {
    Absorb(ReadSteps(from, std::min(tail, from + kTailBytes)), from, now);
  }
  // A few pieces of what rushed by, then the tail: harts that share a host CPU
  // take turns longer than one sample.
  if (is_trace_ && tail > from + kPieces * kPieceBytes) {
    const uint64_t stride = (tail - from) / kPieces;
    for (int i = 0; i < kPieces; ++i) {
      const uint64_t at = from + stride * static_cast<uint64_t>(i);
      Absorb(ReadSteps(at, at + kPieceBytes), from, now);
    }
  }
  Absorb(ReadSteps(tail, end), from, now);
  sampled_to_ = end;
}

void StreamAnalyst::Absorb(const StepsByCore& steps, uint64_t new_from, TimeNs now) {
  for (uint32_t core = 0; core < steps.size(); ++core) {
    if (core >= cores_.size()) cores_.resize(core + 1);
    if (steps[core].empty() || steps[core].back().offset < new_from) continue;
    CoreTrack& track = cores_[core];
    if (track.name.empty()) track.name = names_.name(core);
    track.last_seen = now;
    Update(&track, AnalyzeCore(steps[core], code_), now);
  }
}

void StreamAnalyst::Update(CoreTrack* track, CoreFinding finding, TimeNs now) {
  const size_t before = track->places.size();
  track->places.insert(finding.seen_places.begin(), finding.seen_places.end());
  if (track->places.size() > kMostPlaces) track->places = finding.seen_places;
  if (track->places.size() != before) track->places_since = now;

  if (finding.IsLoop() && finding.loop_places == track->computing_loop) {
    finding.motion = CoreFinding::Motion::kComputing;
  }
  if (StaysInside(track->finding, finding)) {
    track->finding.last = finding.last;
    return;
  }
  if (SameLoop(track->finding, finding)) {
    finding.trap_places.insert(track->finding.trap_places.begin(), track->finding.trap_places.end());
    finding.loop_states.insert(track->finding.loop_states.begin(), track->finding.loop_states.end());
    finding.traps += track->finding.traps;
    if (track->finding.polls_known && !finding.polls_known) {
      finding.polls = track->finding.polls;
      finding.polls_known = true;
    }
    finding.handler_writes_polls = track->finding.handler_writes_polls;
  } else {
    track->loop_since = now;
  }
  track->finding = std::move(finding);
}

void StreamAnalyst::SampleDeeply(TimeNs now) {
  if (!reader_.Refresh().ok()) return;
  const uint64_t end = reader_.end_offset();
  const StepsByCore steps = ReadSteps(end - std::min(kDeepBytes, end), end);
  for (uint32_t core = 0; core < steps.size() && core < cores_.size(); ++core) {
    if (steps[core].empty()) continue;
    const TimeNs since = cores_[core].places_since;
    Update(&cores_[core], AnalyzeCore(steps[core], code_), now);
    // The places have not grown for longer than this sample is old.
    if (cores_[core].finding.IsLoop()) {
      cores_[core].loop_since = std::min(cores_[core].loop_since, since);
    }
  }
}

std::vector<CoreProof> StreamAnalyst::Prove(uint64_t back_to, const std::function<bool()>& stop) {
  if (!reader_.Refresh().ok()) return std::vector<CoreProof>(cores_.size());
  std::vector<const CoreFinding*> findings;
  for (const CoreTrack& track : cores_) findings.push_back(&track.finding);
  std::vector<CoreProof> proofs = ProveLoops(reader_, &names_, findings, code_, back_to, stop);
  // What no sample had caught: cores that nobody had heard of ...
  for (size_t core = cores_.size(); core < proofs.size(); ++core) {
    CoreTrack track;
    track.name = names_.name(static_cast<uint32_t>(core));
    if (proofs[core].last) track.last_seen = TimeOf(proofs[core].last->offset).value_or(0);
    cores_.push_back(std::move(track));
  }
  for (size_t core = 0; core < cores_.size(); ++core) {
    CoreFinding& finding = cores_[core].finding;
    // ... and the latest steps of those that fell silent.
    const std::optional<Step>& last = proofs[core].last;
    const bool newer = last && (finding.steps == 0 || last->offset > finding.last.offset);
    if (!finding.IsLoop() && newer) {
      finding.last = *last;
      finding.sleeps = code_.EndOf(finding.last).sleeps;
    }
    FindPolls(proofs[core].lead_in, &cores_[core]);
  }
  return proofs;
}

// What led into the loop tells what its registers point at.
void StreamAnalyst::FindPolls(const std::vector<Step>& lead_in, CoreTrack* track) {
  CoreFinding& finding = track->finding;
  if (finding.motion != CoreFinding::Motion::kSpinning || finding.basis != LoopBasis::kBody) return;
  std::vector<Step> round;
  for (const uint64_t pc : finding.loop) round.push_back({pc, 0, 0, false, finding.last.starts_block});
  const LoopBody body = ExamineLoopBody(round, code_, lead_in);
  if (body.kind == LoopBody::Kind::kComputes) {
    finding.motion = CoreFinding::Motion::kComputing;
    track->computing_loop = finding.loop_places;
    return;
  }
  if (body.kind != LoopBody::Kind::kSpins) return;
  if (body.polls_known) {
    finding.polls = body.polls;
    finding.polls_known = true;
  }
  std::vector<Step> handlers;
  for (const uint64_t pc : finding.trap_places) handlers.push_back({pc, 0, 0, false, true});
  for (const uint64_t stored : StoredAddresses(handlers, code_)) {
    if (std::find(finding.polls.begin(), finding.polls.end(), stored) != finding.polls.end()) {
      finding.handler_writes_polls = true;
    }
  }
}

std::optional<TimeNs> StreamAnalyst::TimeOf(uint64_t offset) {
  const auto time = reader_.TimeOf(offset);
  return time ? time : reader_.OldestTime();
}

uint64_t StreamAnalyst::OffsetAt(TimeNs time) {
  uint64_t low = reader_.begin_offset();
  uint64_t high = reader_.end_offset();
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const auto arrived = reader_.TimeOf(middle);
    if (arrived && *arrived >= time) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

uint64_t StreamAnalyst::LostSince(uint64_t from) {
  uint64_t lost = 0;
  for (const Loss& loss : reader_.Window().losses) {
    if (loss.end > from) lost += loss.end - std::max(from, loss.begin);
  }
  return lost;
}

}  // namespace hangscope
