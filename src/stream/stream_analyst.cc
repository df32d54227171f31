#include "stream/stream_analyst.h"

#include <algorithm>

#include "stream/function_tracker.h"
#include "stream/last_output.h"
#include "stream/log_analysis.h"
#include "stream/log_reader.h"

namespace hangscope {
namespace {

constexpr uint64_t kTailBytes = 256 * 1024;
constexpr uint64_t kPieceBytes = 32 * 1024;
constexpr int kPieces = 8;
constexpr uint64_t kLogBytes = 128 * 1024;
constexpr uint64_t kDeepBytes = 32u << 20;
constexpr size_t kMostMarks = 512;
constexpr uint64_t kWayBytes = 4u << 20;
constexpr uint64_t kLongestStepBytes = 64 * 1024;  // a trace line with its register dump
constexpr size_t kMostWaySteps = 8;

// So that a loop is told from the line on with which it was entered.
void BeginAt(uint64_t place, std::vector<uint64_t>* loop) {
  const auto at = std::find(loop->begin(), loop->end(), place);
  if (at != loop->end()) std::rotate(loop->begin(), at, loop->end());
}

}  // namespace

void ArrivalLog::Note(uint64_t end_offset, TimeNs now) {
  marks_.push_back({end_offset, now});
  if (marks_.size() <= kMostMarks) return;
  // The older half gets coarser; what it tells only gets later.
  std::deque<Mark> kept;
  for (size_t i = 0; i < marks_.size(); ++i) {
    if (i % 2 == 1 || i > marks_.size() / 2) kept.push_back(marks_[i]);
  }
  marks_ = std::move(kept);
}

std::optional<TimeNs> ArrivalLog::ArrivedBy(uint64_t offset) const {
  const auto at =
      std::upper_bound(marks_.begin(), marks_.end(), offset,
                       [](uint64_t o, const Mark& mark) { return o < mark.end_offset; });
  if (at == marks_.end()) return std::nullopt;
  return at->time;
}

uint64_t ArrivalLog::OffsetBefore(TimeNs time) const {
  const auto at = std::upper_bound(marks_.begin(), marks_.end(), time,
                                   [](TimeNs t, const Mark& mark) { return t < mark.time; });
  return at == marks_.begin() ? 0 : std::prev(at)->end_offset;
}

StreamAnalyst::StreamAnalyst(BlockReader reader, CodeSource* elf, const PlaceRule* rule,
                             TimeNs stall)
    : reader_(std::move(reader)),
      name_(reader_.stream_name()),
      rule_(rule),
      stall_(stall),
      code_(elf) {}

// Only what is continuous can show a period: before a gap nothing is kept.
void StreamAnalyst::ReadInto(StepSource* source, uint64_t begin, uint64_t end, StepsByCore* steps) {
  reader_.Seek(begin);
  while (reader_.position() < end) {
    const auto event = reader_.Next(std::min<uint64_t>(1u << 20, end - reader_.position()));
    if (event == BlockReader::Event::kEnd) break;
    if (event == BlockReader::Event::kLoss) {
      for (auto& core : *steps) core.clear();
      continue;
    }
    source->Feed(reader_.block(), reader_.block_offset());
  }
  source->Flush();
}

StepSource::Sink StreamAnalyst::AppendTo(StepsByCore* steps) {
  return [steps](uint32_t core, const Step& step) {
    if (core >= steps->size()) steps->resize(core + 1);
    (*steps)[core].push_back(step);
  };
}

StreamAnalyst::StepsByCore StreamAnalyst::ReadTrace(uint64_t begin, uint64_t end) {
  StepsByCore steps;
  StepReader parser(&trace_.names, StepReader::Learn::kAll, AppendTo(&steps));
  ReadInto(&parser, begin, end, &steps);
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

StreamAnalyst::StepsByCore StreamAnalyst::ReadLog(uint64_t begin, uint64_t end) {
  StepsByCore steps;
  LogReader log(&log_.names, rule_, &texts_, name_, AppendTo(&steps));
  ReadInto(&log, begin, end, &steps);
  return steps;
}

void StreamAnalyst::Sample(TimeNs now) {
  const bool in_time = now - sampled_at_ < stall_ / 2;
  sampled_at_ = now;
  // A core that prints nothing is in no loop; samples may have missed where it went from there.
  for (CoreTrack& core : trace_.cores) {
    if (in_time && now - core.last_seen >= stall_) core.FallSilent();
  }
  if (!reader_.Refresh().ok()) return;
  const uint64_t end = reader_.end_offset();
  if (end == sampled_to_) return;
  arrivals_.Note(end, now);
  const uint64_t from = std::max(sampled_to_, reader_.begin_offset());
  const uint64_t tail = end - std::min(kTailBytes, end);
  // A core may say something at the start and never again.
  if (sampled_to_ == 0 && from < tail) {
    Absorb(ReadTrace(from, std::min(tail, from + kTailBytes)), from, now);
  }
  // A few pieces of what rushed by, then the tail: harts that share a host CPU
  // take turns longer than one sample.
  if (is_trace_ && tail > from + kPieces * kPieceBytes) {
    const uint64_t stride = (tail - from) / kPieces;
    for (int i = 0; i < kPieces; ++i) {
      const uint64_t at = from + stride * static_cast<uint64_t>(i);
      Absorb(ReadTrace(at, at + kPieceBytes), from, now);
    }
  }
  Absorb(ReadTrace(tail, end), from, now);
  if (!is_trace_) SampleLog(from, end, now);
  sampled_to_ = end;
}

// At the start, too: what a program said before it looped tells that it does
// something else.
void StreamAnalyst::SampleLog(uint64_t from, uint64_t end, TimeNs now) {
  const uint64_t tail = end - std::min(kLogBytes, end);
  if (sampled_to_ == 0 && from < tail)
    AbsorbLog(ReadLog(from, std::min(tail, from + kLogBytes)), from, now);
  AbsorbLog(ReadLog(tail, end), from, now);
}

CoreTrack* StreamAnalyst::TrackOf(Cores* cores, uint32_t core, const std::vector<Step>& steps,
                                  uint64_t new_from, TimeNs now) {
  if (core >= cores->cores.size()) cores->cores.resize(core + 1);
  CoreTrack& track = cores->cores[core];
  if (track.name.empty() && core < cores->names.size()) {
    track.name = cores->names.name(core);
    track.hart = cores->names.hart(core);
  }
  if (steps.empty() || steps.back().offset < new_from) return nullptr;
  track.last_seen = now;
  return &track;
}

void StreamAnalyst::Absorb(const StepsByCore& steps, uint64_t new_from, TimeNs now) {
  for (uint32_t core = 0; core < steps.size(); ++core) {
    CoreTrack* track = TrackOf(&trace_, core, steps[core], new_from, now);
    if (track != nullptr) track->Update(AnalyzeCore(steps[core], code_), now);
  }
}

void StreamAnalyst::AbsorbLog(const StepsByCore& steps, uint64_t new_from, TimeNs now) {
  const uint64_t old = arrivals_.OffsetBefore(now - stall_);
  for (uint32_t core = 0; core < steps.size(); ++core) {
    CoreTrack* track = TrackOf(&log_, core, steps[core], new_from, now);
    if (track != nullptr) UpdateLog(track, AnalyzeLog(steps[core], old), now);
  }
}

void StreamAnalyst::UpdateLog(CoreTrack* track, CoreFinding sample, TimeNs now) {
  const TimeNs began = arrivals_.ArrivedBy(sample.loop_begin).value_or(now);
  track->UpdateLog(std::move(sample), began, now);
}

// Of logs only those that have a rule are worth it: without one a round that does
// not fit a sample is no wait.
void StreamAnalyst::SampleDeeply(TimeNs now) {
  if (!reader_.Refresh().ok()) return;
  const uint64_t end = reader_.end_offset();
  const uint64_t from = end - std::min(kDeepBytes, end);
  if (!is_trace_) {
    if (rule_ != nullptr) SampleLogDeeply(from, end, now);
    return;
  }
  const StepsByCore steps = ReadTrace(from, end);
  std::vector<CoreTrack>& cores = trace_.cores;
  for (uint32_t core = 0; core < steps.size() && core < cores.size(); ++core) {
    if (steps[core].empty()) continue;
    CoreTrack& track = cores[core];
    const TimeNs since = track.places_since;
    const bool was_seen = track.finding.IsLoop();  // by samples, which then know since when
    track.Update(AnalyzeCore(steps[core], code_), now);
    // The places have not grown for longer than this sample is old.
    if (track.finding.IsLoop() && !was_seen)
      track.loop_since = track.found_at = std::min(track.loop_since, since);
  }
}

void StreamAnalyst::SampleLogDeeply(uint64_t from, uint64_t end, TimeNs now) {
  const StepsByCore steps = ReadLog(from, end);
  const uint64_t old = arrivals_.OffsetBefore(now - stall_);
  for (uint32_t core = 0; core < steps.size() && core < log_.cores.size(); ++core) {
    if (!steps[core].empty()) UpdateLog(&log_.cores[core], AnalyzeLog(steps[core], old), now);
  }
}

std::unique_ptr<StepSource> StreamAnalyst::MakeProofSource(StepSource::Sink sink) {
  if (is_trace_)
    return std::make_unique<StepReader>(&trace_.names, StepReader::Learn::kListings,
                                        std::move(sink));
  return std::make_unique<LogReader>(&log_.names, rule_, rule_ != nullptr ? &texts_ : nullptr,
                                     name_, std::move(sink));
}

std::vector<CoreProof> StreamAnalyst::Prove(uint64_t back_to, const std::function<bool()>& stop) {
  Cores& mine = is_trace_ ? trace_ : log_;
  std::vector<CoreTrack>& cores = mine.cores;
  if (!reader_.Refresh().ok()) return std::vector<CoreProof>(cores.size());
  std::vector<const CoreFinding*> findings;
  for (const CoreTrack& track : cores) findings.push_back(&track.finding);
  std::vector<CoreProof> proofs = ProveLoops(
      reader_, [this](StepSource::Sink sink) { return MakeProofSource(std::move(sink)); }, findings,
      code_, back_to, stop);
  // What no sample had caught: cores that nobody had heard of ...
  for (size_t core = cores.size(); core < proofs.size(); ++core) {
    CoreTrack track;
    track.name = mine.names.name(static_cast<uint32_t>(core));
    track.hart = mine.names.hart(static_cast<uint32_t>(core));
    if (proofs[core].last) track.last_seen = TimeOf(proofs[core].last->offset).value_or(0);
    cores.push_back(std::move(track));
  }
  for (size_t core = 0; core < cores.size(); ++core) {
    CoreFinding& finding = cores[core].finding;
    // ... and the latest steps of those that fell silent.
    const std::optional<Step>& last = proofs[core].last;
    const bool newer = last && (finding.steps == 0 || last->offset > finding.last.offset);
    if (!finding.IsLoop() && newer) {
      finding.last = *last;
      finding.sleeps = code_.EndOf(finding.last).sleeps;
      HearAgain(proofs[core], &cores[core]);
    }
    if (is_trace_) cores[core].FindCallers(proofs[core], code_);
    if (is_trace_) cores[core].FindPolls(proofs[core].lead_in, code_);
    if (!is_trace_ && proofs[core].entered_at) BeginAt(*proofs[core].entered_at, &finding.loop);
    proofs[core].lead_in = {};  // it has said what it can, and a proof may be kept for long
  }
  return proofs;
}

// Samples are pieces: they may all have missed a core that is given a processor only now and then.
void StreamAnalyst::HearAgain(const CoreProof& proof, CoreTrack* core) {
  const std::optional<TimeNs> heard = TimeOf(proof.last->offset);
  const bool was_silent = sampled_at_ - core->last_seen >= stall_;
  if (!is_trace_ || !was_silent || !heard || sampled_at_ - *heard >= stall_) return;
  core->last_seen = *heard;
  core->Update(AnalyzeCore(proof.lead_in, code_), *heard);
}

std::vector<CoreWay> StreamAnalyst::FindWays(const std::vector<CoreProof>& proofs,
                                             const std::function<bool()>& stop) {
  std::vector<CoreWay> ways(proofs.size());
  for (size_t core = 0; core < proofs.size() && !stop(); ++core) {
    const CoreProof& proof = proofs[core];
    if (proof.looping && proof.at_least) continue;
    if (!proof.looping && (!is_trace_ || !proof.last)) continue;
    const uint64_t at = proof.looping ? proof.entered_offset : proof.last->offset;
    if (is_trace_) {
      ways[core] = WayTo(core, at);
    } else {
      ways[core].at = at;
      for (std::string& line : ReadLinesBefore(reader_, at))
        ways[core].steps.push_back({Place{0, "", "", std::move(line)}});
    }
  }
  return ways;
}

CoreWay StreamAnalyst::WayTo(size_t core, uint64_t at) {
  CoreWay way;
  way.at = at;
  const uint64_t from = std::max(reader_.begin_offset(), at - std::min(at, kWayBytes));
  const StepsByCore all = ReadTrace(from, std::min(reader_.end_offset(), at + kLongestStepBytes));
  if (core >= all.size()) return way;
  std::span<const Step> steps = all[core];
  const auto end = std::partition_point(steps.begin(), steps.end(),
                                        [at](const Step& step) { return step.offset <= at; });
  way.steps = FindWay({steps.begin(), end}, code_, kMostWaySteps);
  if (end != steps.begin() && std::prev(end)->offset == at) way.cycle = std::prev(end)->cycle;
  return way;
}

std::optional<TimeNs> StreamAnalyst::TimeOf(uint64_t offset) {
  if (is_log()) return arrivals_.ArrivedBy(offset);
  const auto time = reader_.TimeOf(offset);
  return time ? time : reader_.OldestTime();
}

uint64_t StreamAnalyst::OffsetAt(TimeNs time) {
  if (is_log()) return arrivals_.OffsetBefore(time);
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
