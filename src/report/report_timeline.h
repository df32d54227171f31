// The picture of a trace as the tracks of a report.
#ifndef HANGSCOPE_REPORT_REPORT_TIMELINE_H
#define HANGSCOPE_REPORT_REPORT_TIMELINE_H

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "export/timeline.h"
#include "model/report.h"

namespace hangscope {

struct TimelineLimits {
  // of all tracks together, the newest; older ones are counted; likewise changes of counters
  size_t events = 200'000;
  size_t spans = 200'000;  // likewise; and flows
  size_t tracks = 2000;    // more are left out, and said
};

// Keeps the newest of what it is told, and each text once: memory is bounded by the limits.
class ReportTimeline final : public TimelineSink {
 public:
  // `end`: from which the report's times count. `head` outlives this.
  ReportTimeline(const TraceHead& head, TimeNs end, const TimelineLimits& limits);

  Status Define(const TimelineTrack& track) override;
  Status Begin(TimelineTrackId track, TimeNs time, SliceState state, const std::string& name,
               const TimelineArguments& arguments) override;
  Status End(TimelineTrackId track, TimeNs time) override;
  Status Instant(TimelineTrackId track, TimeNs time, const TraceEvent& event,
                 const TraceEventKind& kind) override;
  Status Count(TimelineTrackId track, TimeNs time, uint64_t value) override;
  Status Flow(uint64_t id, TimelineTrackId from, TimeNs from_time, TimelineTrackId to,
              TimeNs to_time, const std::string& name, bool wakes) override;
  Status Gap(TimelineTrackId track, const TimeSpan& time, const TimelineGap& gap) override;

  // Behind all the others, once: adds tracks, kinds and strings to `report`, and what was left out
  // to its `lost`. Who stands how is taken from `trace_end`, and of who is in the report's graph,
  // from there, too; there it gets its track's name. Who waits there for nobody that is known is
  // joined to the thread that woke it last.
  void Finish(const TraceEnd& trace_end, Report* report);

 private:
  // Texts by number; one that nobody uses any more gives its number away.
  class Texts {
   public:
    uint32_t Take(const std::string& text);
    void Drop(uint32_t number);
    const std::string& operator[](uint32_t number) const { return texts_[number]; }
    size_t size() const { return texts_.size(); }

   private:
    std::vector<std::string> texts_;
    std::vector<uint64_t> uses_;
    std::vector<uint32_t> free_;
    std::unordered_map<std::string, uint32_t> numbers_;
  };
  struct OpenSpan {
    TimeNs from = 0;
    SliceState state = SliceState::kOther;
    uint32_t text = 0;
  };
  struct Span {
    uint32_t track = 0;
    uint8_t state = 0;
    uint8_t depth = 0;
    uint32_t text = 0;
    TimeNs from = 0;
    TimeNs to = 0;
  };
  struct Event {
    uint32_t track = 0;
    uint32_t kind = 0;
    uint32_t text = 0;
    TimeNs time = 0;
  };
  struct Change {
    uint32_t track = 0;
    uint32_t counter = 0;  // of the track
    TimeNs time = 0;
    uint64_t value = 0;
  };
  struct Arrow {
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t text = 0;
    TimeNs from_time = 0;
    TimeNs to_time = 0;
  };
  // Where a counter belongs, and what it was last.
  struct Counter {
    uint32_t track = 0;
    uint32_t number = 0;
    std::optional<uint64_t> last;
  };
  struct Wake {
    uint32_t by = 0;  // track
    TimeNs time = 0;
  };
  struct Track {
    ReportTrack shown;
    TimelineTrack defined;
    std::vector<OpenSpan> open;
  };

  Track* Find(TimelineTrackId id);
  std::string KindOf(const TimelineTrack& track) const;
  uint32_t KindNumber(size_t kind, const TraceEventKind& description);
  void AddCoverage(const TimelineTrack& defined, ReportTrack* track) const;
  void AddStanding(const TraceStanding& standing, Report* report);
  void DefineCounter(const TimelineTrack& track);
  void AddWakes(Report* report) const;
  size_t NodeOf(uint32_t track, Report* report) const;
  void FinishCounters();
  void FinishFlows(std::vector<uint32_t>* string_numbers, Report* report) const;
  void FinishTracks(std::vector<uint32_t>* string_numbers, Report* report);
  uint32_t StringNumber(uint32_t text, std::vector<uint32_t>* numbers, Report* report) const;

  const TraceHead& head_;
  const TimeNs end_;
  const TimelineLimits limits_;
  bool cpus_ = false;  // the trace has rings of CPUs
  std::vector<Track> tracks_;
  std::unordered_map<TimelineTrackId, size_t> numbers_;
  std::map<std::pair<bool, int64_t>, size_t> of_whom_;  // cores and tasks
  std::map<size_t, uint32_t> kind_numbers_;
  std::vector<ReportEventKind> kinds_;
  Texts texts_;
  std::deque<Span> spans_;    // by their ends
  std::deque<Event> events_;  // by time
  std::unordered_map<TimelineTrackId, Counter> counters_;
  std::deque<Change> changes_;      // by time
  std::deque<Arrow> flows_;         // as they were told
  std::map<uint32_t, Wake> woken_;  // by track: the last time
  uint64_t flows_left_out_ = 0;
  uint64_t counters_left_out_ = 0;
  uint64_t spans_left_out_ = 0;
  uint64_t tracks_left_out_ = 0;
};

}  // namespace hangscope

#endif
