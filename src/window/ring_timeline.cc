#include "window/ring_timeline.h"

#include <algorithm>

#include "window/ring_pieces.h"

namespace hangscope {
namespace {

// Goes through a ring's history from the begin to the end of time, and says of each instant what is
// known.
class TimelineMaker {
 public:
  TimelineMaker(const RingHistory& ring, const RunsOfRing& runs,
                const std::optional<SinkOfRing>& sink)
      : ring_(ring),
        runs_(runs),
        sink_(sink),
        losses_(OrderedLosses(ring)),
        told_(losses_.size(), false) {}

  RingTimeline Make() {
    RingPieces pieces = FindPieces(ring_, sink_ ? sink_->rest : std::vector<RingPiece>{});
    timeline_.pieces = std::move(pieces.good);
    until_ = pieces.until;
    contradicting_ = std::move(pieces.contradicting);
    for (const TimeSpan& span : contradicting_) Lose(span, GapReason::kUnreadable);
    GoThroughPieces();
    AfterReading();
    for (size_t i = 0; i < losses_.size(); ++i) {
      if (!told_[i]) Report(i);
    }
    Finish();
    return std::move(timeline_);
  }

 private:
  bool OnlyRuns() const { return !ring_.always_on || ring_.ring.kind == RingKind::kThread; }

  void GoThroughPieces() {
    const TimeNs since = RecordingSince();
    BeforeRecording({kBeginOfTime, since});
    TimeNs time = since;
    uint64_t offset = 0;
    for (const RingPiece& piece : timeline_.pieces) {
      const uint64_t begin = piece.in_ring ? piece.begin_offset : ring_.head;
      Between({time, std::max(time, piece.time.from)}, begin - offset,
              piece.in_ring ? piece.time.to : kEndOfTime);
      time = std::max(time, piece.time.to);
      offset = piece.in_ring ? piece.end_offset : ring_.head;
    }
    Between({time, std::max(time, until_)}, ring_.head - offset, kEndOfTime);
  }

  TimeNs RecordingSince() const {
    if (ring_.recording_since == 0) return kBeginOfTime;
    const TimeNs first = timeline_.pieces.empty() ? until_ : timeline_.pieces.front().time.from;
    return std::max(kBeginOfTime, std::min(ring_.recording_since, first));
  }

  // No piece is in `span`, and `missing` bytes that were written there are not held. The next of
  // the ring's data was drained from the sink at `drained`; kEndOfTime: none was.
  void Between(TimeSpan span, uint64_t missing, TimeNs drained) {
    missing -= std::min(missing, ReportCountedLossesIn(span));
    const std::vector<TimeSpan> holes = missing > 0 ? WhereMissing(span) : std::vector<TimeSpan>{};
    const std::optional<GapReason> reason = ReportOtherLossesIn(span, holes);
    LoseBytes(holes, reason.value_or(WhyMissing(span)), missing);
    const Spans quiet = Subtract(MakeSpans({span}), Union(MakeSpans(holes), TimesOfLossesIn(span)));
    for (const TimeSpan& part : quiet) Quiet(part, drained);
  }

  // Tells what the recorder says is missing there, and returns how many bytes of it.
  uint64_t ReportCountedLossesIn(TimeSpan span) {
    uint64_t bytes = 0;
    ForLossesIn(span, [&](size_t i) {
      if (told_[i] || losses_[i].amount == 0) return;
      if (losses_[i].unit == AmountUnit::kBytes)
        bytes += std::min(losses_[i].amount, UINT64_MAX - bytes);
      Report(i);
    });
    return bytes;
  }

  // Those without an amount are the reason of the bytes that are missing in `holes`, if they can
  // be.
  std::optional<GapReason> ReportOtherLossesIn(TimeSpan span, const std::vector<TimeSpan>& holes) {
    std::optional<GapReason> reason;
    ForLossesIn(span, [&](size_t i) {
      if (told_[i]) return;
      const KnownLoss& loss = losses_[i];
      const bool in_hole = std::any_of(holes.begin(), holes.end(), [&](const TimeSpan& hole) {
        return hole.from <= loss.time.from && loss.time.to <= hole.to;
      });
      // What was not even written has no offset that could be missing.
      if (!in_hole || loss.reason == GapReason::kBlind || loss.reason == GapReason::kNoRoom ||
          loss.reason == GapReason::kLastEvents)
        return Report(i);
      told_[i] = true;
      if (!reason) reason = loss.reason;
    });
    return reason;
  }

  Spans TimesOfLossesIn(TimeSpan span) {
    std::vector<TimeSpan> times;
    ForLossesIn(span, [&](size_t i) { times.push_back(losses_[i].time); });
    return MakeSpans(std::move(times));
  }

  template <typename Function>
  void ForLossesIn(TimeSpan span, Function function) {
    auto loss =
        std::lower_bound(losses_.begin(), losses_.end(), span.from,
                         [](const KnownLoss& l, TimeNs from) { return l.time.from < from; });
    for (; loss != losses_.end() && loss->time.from <= span.to; ++loss) {
      if (loss->time.to <= span.to) function(static_cast<size_t>(loss - losses_.begin()));
    }
  }

  // Bytes that are missing were written while somebody ran, if it is known for certain who did.
  std::vector<TimeSpan> WhereMissing(TimeSpan span) const {
    if (!OnlyRuns() || !runs_.trusted) return {span};
    const Spans possible = MayHaveRun(span);
    return possible.empty() && !ring_.counts_sink ? std::vector<TimeSpan>{span} : possible;
  }

  // Of several places nobody knows how many bytes are missing from each.
  void LoseBytes(const std::vector<TimeSpan>& holes, GapReason reason, uint64_t bytes) {
    if (holes.size() == 1 && !ring_.counts_sink)
      return Lose(holes.front(), reason, bytes, AmountUnit::kBytes);
    for (const TimeSpan& hole : holes) Lose(hole, reason);
  }

  GapReason WhyMissing(TimeSpan span) const {
    return Intersect(contradicting_, span).empty() ? GapReason::kOverwritten
                                                   : GapReason::kUnreadable;
  }

  // The parts of `span` of which it is not known that nobody ran.
  Spans MayHaveRun(TimeSpan span) const {
    if (!runs_.known_since) return MakeSpans({span});
    const Spans unknown = MakeSpans({Clip(span, {kBeginOfTime, *runs_.known_since})});
    return Union(unknown, Intersect(runs_.ran, span));
  }

  // No byte is missing from the ring there.
  void Quiet(TimeSpan span, TimeNs drained) {
    if (sink_) {
      // Data that never came out of the sink is missing from no ring.
      const TimeNs kept =
          drained == kEndOfTime ? std::clamp(sink_->complete_since, span.from, span.to) : span.to;
      LostInSink({span.from, kept}, drained);
      span.from = kept;
    }
    if (ring_.always_on) {
      Idle({span});
    } else {
      IdleOutsideRuns(span, true, GapReason::kNotRecorded);
    }
  }

  // A ring's own newer data may have gone over it, or that of another which was written before the
  // next drain.
  void LostInSink(TimeSpan span, TimeNs drained) {
    const Spans all = MakeSpans({span});
    const Spans lost = OnlyRuns() ? MayHaveRun(span) : all;
    for (const TimeSpan& part : lost) {
      const bool shared = !Intersect(sink_->others, {part.from, drained}).empty();
      Lose(part, shared ? GapReason::kSharedSink : GapReason::kOverwritten);
    }
    Idle(Subtract(all, lost));
  }

  void BeforeRecording(TimeSpan span) {
    const size_t first = timeline_.losses.size();
    IdleOutsideRuns(span, OnlyRuns(), GapReason::kNotRecorded);
    for (size_t i = first; i < timeline_.losses.size(); ++i) timeline_.losses[i].not_yet = true;
  }

  void AfterReading() {
    IdleOutsideRuns({until_, kEndOfTime}, OnlyRuns() && runs_.trusted, GapReason::kNotRecorded);
  }

  void IdleOutsideRuns(TimeSpan span, bool runs_tell, GapReason reason) {
    const Spans all = MakeSpans({span});
    const Spans lost = runs_tell ? MayHaveRun(span) : all;
    for (const TimeSpan& part : lost) Lose(part, reason);
    Idle(Subtract(all, lost));
  }

  void Idle(const Spans& spans) { idle_.insert(idle_.end(), spans.begin(), spans.end()); }

  void Report(size_t i) {
    told_[i] = true;
    const KnownLoss& loss = losses_[i];
    Lose(loss.time, loss.reason, loss.amount, loss.amount == 0 ? AmountUnit::kUnknown : loss.unit,
         loss.task);
  }

  void Lose(TimeSpan time, GapReason reason, uint64_t amount = 0,
            AmountUnit unit = AmountUnit::kUnknown, std::optional<int64_t> task = {}) {
    timeline_.losses.push_back({time, reason, amount, unit, task});
  }

  void Finish() {
    std::stable_sort(
        timeline_.losses.begin(), timeline_.losses.end(),
        [](const RingLoss& a, const RingLoss& b) { return a.time.from < b.time.from; });
    std::vector<TimeSpan> lost;
    std::vector<TimeNs> instants;
    for (RingLoss& loss : timeline_.losses) {
      MarkLimit(loss);
      if (loss.time.from == loss.time.to) instants.push_back(loss.time.from);
      lost.push_back(loss.time);
    }
    std::vector<TimeSpan> held;
    for (const RingPiece& piece : timeline_.pieces) held.push_back(piece.time);
    const Spans lost_spans = MakeSpans(std::move(lost));
    const Spans covered = Subtract(MakeSpans(std::move(held)), lost_spans);
    timeline_.covered = SplitAt(covered, instants);
    timeline_.idle = Subtract(Subtract(MakeSpans(std::move(idle_)), lost_spans), covered);
  }

  // What a ring had before the oldest that it still has limits a coherent window; where it dropped
  // something later, that is a gap in it.
  void MarkLimit(RingLoss& loss) const {
    const bool before_all =
        timeline_.pieces.empty() || loss.time.to <= timeline_.pieces.front().time.from;
    // Who ran at first is not known, so whether it had anything to record is not, either.
    const bool runs_unknown = !runs_.known_since || loss.time.to <= *runs_.known_since;
    if (loss.reason == GapReason::kNotRecorded && before_all && runs_unknown &&
        loss.time.to <= until_) {
      loss.not_yet = true;
    }
    loss.limits = loss.not_yet || loss.reason == GapReason::kOverwritten ||
                  (loss.reason == GapReason::kSharedSink && before_all);
  }

  const RingHistory& ring_;
  const RunsOfRing& runs_;
  const std::optional<SinkOfRing>& sink_;
  const std::vector<KnownLoss> losses_;  // by their begin
  std::vector<bool> told_;
  TimeNs until_ = 0;
  Spans contradicting_;
  std::vector<TimeSpan> idle_;
  RingTimeline timeline_;
};

}  // namespace

RingTimeline MakeTimeline(const RingHistory& ring, const RunsOfRing& runs,
                          const std::optional<SinkOfRing>& sink) {
  return TimelineMaker(ring, runs, sink).Make();
}

RingTimeline MakeTimelineSince(const RingHistory& ring, const RunsOfRing& runs,
                               const std::optional<SinkOfRing>& sink, uint64_t last_head,
                               TimeNs last_trigger) {
  CutRing cut = CutAt(ring, last_head, last_trigger);
  RingTimeline timeline = MakeTimeline(cut.ring, runs, sink);
  // What came before is in that snapshot, and no loss.
  for (RingLoss& loss : timeline.losses) {
    if (loss.not_yet) loss.time.from = std::max(loss.time.from, cut.begin);
  }
  std::erase_if(timeline.losses, [](const RingLoss& loss) {
    return loss.not_yet && loss.time.from >= loss.time.to;
  });
  timeline.before = std::move(cut.before);
  return timeline;
}

}  // namespace hangscope
