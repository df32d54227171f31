// A sink that writes down what it is told, and what of it breaks the promises of export/timeline.h.
#ifndef HANGSCOPE_TESTS_FAKES_TIMELINE_RECORDER_H
#define HANGSCOPE_TESTS_FAKES_TIMELINE_RECORDER_H

#include <fmt/format.h>

#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "export/timeline.h"

namespace hangscope {

class TimelineRecorder final : public TimelineSink {
 public:
  struct Slice {
    std::string name;
    SliceState state = SliceState::kOther;
    TimeNs from = 0;
    TimeNs to = 0;
    size_t depth = 0;
    TimelineArguments arguments;
  };
  struct Row {
    TimelineTrack track;
    std::vector<size_t> open;   // of slices
    std::vector<Slice> slices;  // by their begin
    std::vector<std::pair<TimeNs, std::string>> instants, gaps;
    std::vector<std::pair<TimeNs, uint64_t>> counts;
    // all of it, as other formats of it are read back: "B 10 running", "E 20"
    std::vector<std::string> log;
    TimeNs last = std::numeric_limits<TimeNs>::min();
  };
  struct Arrow {
    std::string from, to, name;
    TimeNs from_time = 0, to_time = 0;
  };

  std::vector<std::string> broken;  // promises
  std::vector<Arrow> arrows;
  uint64_t instants = 0;
  Status fail;  // what each call says from now on

  Status Define(const TimelineTrack& track) override {
    if (track.id != rows_.size() + 1) Break("ids do not count up", track.id);
    if (track.parent > rows_.size()) Break("a parent is not defined", track.parent);
    rows_.emplace_back().track = track;
    return fail;
  }
  Status Begin(TimelineTrackId track, TimeNs time, SliceState state, const std::string& name,
               const TimelineArguments& arguments) override {
    Row& row = Advance(track, time);
    row.open.push_back(row.slices.size());
    row.slices.push_back({name, state, time, time, row.open.size() - 1, arguments});
    row.log.push_back(fmt::format("B {} {}", time, name));
    return fail;
  }
  Status End(TimelineTrackId track, TimeNs time) override {
    Row& row = Advance(track, time);
    row.log.push_back(fmt::format("E {}", time));
    if (row.open.empty()) {
      Break("an end without a begin", track);
      return fail;
    }
    row.slices[row.open.back()].to = time;
    row.open.pop_back();
    return fail;
  }
  Status Instant(TimelineTrackId track, TimeNs time, const TraceEvent& event,
                 const TraceEventKind& kind) override {
    if (event.values.size() != kind.fields.size()) Break("the kind is another's", track);
    Row& row = Advance(track, time);
    row.instants.emplace_back(time, kind.name);
    row.log.push_back(fmt::format("I {} {}", time, kind.name));
    ++instants;
    return fail;
  }
  Status Count(TimelineTrackId track, TimeNs time, uint64_t value) override {
    Row& row = Advance(track, time);
    if (row.track.row != TimelineRow::kCounter) Break("a count on a row of slices", track);
    row.counts.emplace_back(time, value);
    row.log.push_back(fmt::format("C {} {}", time, value));
    return fail;
  }
  Status Flow(uint64_t id, TimelineTrackId from, TimeNs from_time, TimelineTrackId to,
              TimeNs to_time, const std::string& name, bool /*wakes*/) override {
    if (!flows_.insert(id).second) Break("a flow's id is used twice", id);
    if (from_time > to_time) Break("a flow goes backwards", id);
    if (!LiesInSlice(from, from_time) || !LiesInSlice(to, to_time))
      Break("a flow does not lie in slices: " + name, id);
    Advance(from, from_time).log.push_back(fmt::format("F {} {}", from_time, name));
    Advance(to, to_time).log.push_back(fmt::format("F {} {}", to_time, name));
    arrows.push_back({NameOf(from), NameOf(to), name, from_time, to_time});
    return fail;
  }
  Status Gap(TimelineTrackId track, const TimeSpan& time, const TimelineGap& gap) override {
    Row& row = Advance(track, time.from);
    row.gaps.emplace_back(time.from, gap.Text());
    row.log.push_back(fmt::format("G {} {}", time.from, gap.Text()));
    return fail;
  }

  // Behind the end: all slices must be closed.
  void Finish() {
    for (const Row& row : rows_) {
      if (!row.open.empty()) Break("a slice is open at the end", row.track.id);
    }
  }
  const std::vector<Row>& rows() const { return rows_; }
  // The row so called; an empty one where there is none.
  const Row& RowOf(const std::string& name) const {
    for (const Row& row : rows_) {
      if (row.track.name == name) return row;
    }
    static const Row none;
    return none;
  }
  // "10..20 running; >12..15 read": a > for each level.
  std::string Picture(const std::string& name) const {
    std::string text;
    for (const Slice& slice : RowOf(name).slices) {
      text += fmt::format("{}{}{}..{} {}", text.empty() ? "" : "; ", std::string(slice.depth, '>'),
                          slice.from, slice.to, slice.name);
    }
    return text;
  }

 private:
  Row& Advance(TimelineTrackId track, TimeNs time) {
    if (track == 0 || track > rows_.size()) {
      Break("a row is not defined", track);
      if (rows_.empty()) rows_.emplace_back();
      return rows_.front();
    }
    Row& row = rows_[track - 1];
    if (time < row.last) Break("a row goes backwards", track);
    row.last = time;
    return row;
  }
  bool LiesInSlice(TimelineTrackId track, TimeNs time) const {
    if (track == 0 || track > rows_.size()) return false;
    const Row& row = rows_[track - 1];
    for (const size_t open : row.open) {
      if (row.slices[open].from <= time) return true;
    }
    for (auto slice = row.slices.rbegin(); slice != row.slices.rend() && slice->from >= time;
         ++slice) {
      if (slice->from == time) return true;  // and ends there, too
    }
    return false;
  }
  std::string NameOf(TimelineTrackId track) const {
    return track > 0 && track <= rows_.size() ? rows_[track - 1].track.name : "?";
  }
  void Break(const std::string& what, uint64_t which) {
    broken.push_back(fmt::format("{} ({})", what, which));
  }

  std::vector<Row> rows_;
  std::set<uint64_t> flows_;
};

}  // namespace hangscope

#endif
