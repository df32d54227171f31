// Traces that make no sense, for those who must not believe what they are told.
#ifndef HANGSCOPE_TESTS_FAKES_RANDOM_TRACE_H
#define HANGSCOPE_TESTS_FAKES_RANDOM_TRACE_H

#include <cstdint>
#include <optional>
#include <random>

#include "fakes/trace_story.h"

namespace hangscope {

// Over all of a story's rings, and without anything missing.
inline Window WindowOf(const TraceHead& head) {
  Window window;
  window.time = {100, 1000};
  for (const TraceTrack& track : head.tracks)
    window.rings.push_back(
        {.ring = track.ring, .held = {}, .covered = {}, .idle = {}, .stale = {}});
  return window;
}

// Any order of anything, true or not.
class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed) : story(3, seed % 2 == 0), random_(seed) {
    if (Chance(2)) AddWindow();
    TimeNs time = 0;
    for (int i = 0; i < 400; ++i) {
      time += static_cast<TimeNs>(Pick(10));
      AddItem(Chance(50) ? time - 20 : time);
    }
    story.end.time = time + static_cast<TimeNs>(Pick(20)) - 5;
    for (int64_t number = 0; number < 4; ++number) AddStanding(number);
  }

  TraceStory story;
  uint64_t plain = 0, wakes = 0, counts = 0, losses = 0;

 private:
  size_t Pick(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  bool Chance(size_t of) { return Pick(of) == 0; }
  std::optional<int64_t> Task() {
    return Chance(4) ? std::nullopt : std::optional<int64_t>(Pick(4));
  }

  void AddWindow() {
    story.head.window = WindowOf(story.head);
    for (size_t i = 0; i < 6; ++i) {
      const auto from = static_cast<TimeNs>(Pick(2000));
      const TimeSpan time{from, from + static_cast<TimeNs>(Pick(300))};
      if (Chance(2)) {
        story.head.window->rings[Pick(3)].stale.push_back({time, 1, 1});
      } else {
        story.head.window->gaps.push_back(
            {Pick(3), Task(), time, GapReason::kBlind, Pick(3), AmountUnit::kBytes});
      }
    }
  }
  void AddHistory(TimeNs time, size_t core) {
    const auto kind = static_cast<TraceStory::Kind>(TraceStory::kWaitBegin + Pick(5));
    if (kind == TraceStory::kWaypoint)
      story.AtWaypoint(time, core, Chance(5) ? "" : "CRBW");
    else
      story.OfCore(time, kind, core, Pick(3), Task());
  }
  void AddItem(TimeNs time) {
    const size_t core = Pick(3);
    if (Chance(4)) return AddHistory(time, core);
    switch (Pick(10)) {
      case 0:
        ++plain;
        story.Plain(time, core, Task());
        break;
      case 1:
      case 2:
        story.Switch(time, core, Task(), Task(), Chance(2));
        break;
      case 3:
        ++wakes;
        story.Wake(time, core, Task(), static_cast<int64_t>(Pick(4)));
        break;
      case 4:
        story.Enter(time, Chance(2) ? TraceStory::kCallEnter : TraceStory::kIrqEnter, core, Task(),
                    "x");
        break;
      case 5:
        story.Leave(time, Chance(2) ? TraceStory::kCallLeave : TraceStory::kIrqLeave, core, Task());
        break;
      case 6:
        story.Enter(time, TraceStory::kFunctionEnter, core, Task(), "f");
        break;
      case 7:
        story.Leave(time, TraceStory::kFunctionLeave, core, Task());
        break;
      case 8:
        ++counts;
        story.Fill(time, core, Pick(100));
        break;
      default:
        ++losses;
        story.Lose(time - 3, time + static_cast<TimeNs>(Pick(40)) - 5, core, Pick(3));
        break;
    }
  }
  void AddStanding(int64_t number) {
    TraceStanding standing;
    standing.who = {Chance(2), number};
    standing.activity = static_cast<Activity>(Pick(9));
    if (Chance(2)) standing.since = static_cast<TimeNs>(Pick(2500));
    if (Chance(2)) standing.by = {{Chance(2), static_cast<int64_t>(Pick(5))}};
    story.end.standings.push_back(standing);
  }

  std::mt19937 random_;
};

}  // namespace hangscope

#endif
