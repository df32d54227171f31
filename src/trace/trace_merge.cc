#include "trace/trace_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace hangscope {
namespace {

// Before what is lost could have come, nobody knows of it.
TimeNs TimeOf(const TraceItem& item) {
  if (const auto* event = std::get_if<TraceEvent>(&item)) return event->time;
  return std::get<TraceLoss>(item).time.to;
}

class Merge final : public TraceSource {
 public:
  Merge(TraceHead head, std::vector<TracePart> parts) : head_(std::move(head)) {
    bool any = false;
    for (TracePart& part : parts) AddPart(std::move(part), &any);
    if (any) LastUntilWindow();
  }

  const TraceHead& head() const override { return head_; }
  const TraceEnd& end() const override { return end_; }

  Result<bool> Next(TraceItem* item) override {
    Part* const first = parts_.size() == 1 ? FillOnly(item) : PopFirst(item);
    if (first != nullptr) {
      Translate(first, item);
      return true;
    }
    const bool all_failed =
        !parts_.empty() && std::all_of(parts_.begin(), parts_.end(),
                                       [](const Part& part) { return !part.failure.ok(); });
    if (all_failed) return parts_.front().failure;
    Finish();
    return false;
  }

  double progress() const override {
    double sum = 0;
    for (const Part& part : parts_) sum += part.source->progress();
    return parts_.empty() ? 1 : sum / static_cast<double>(parts_.size());
  }

 private:
  struct Part {
    std::unique_ptr<TraceSource> source;
    int64_t task_shift = 0;
    bool is_of_device = false;
    size_t first_track = 0;
    std::vector<size_t> kinds;  // of the merged head, by the part's own number
    TraceItem item;
    bool waiting = false;  // `item` is its next
    bool ended = false;
    Status failure;
  };

  void AddPart(TracePart part, bool* any) {
    const TraceHead& its = part.source->head();
    Part added;
    added.task_shift = part.task_shift;
    added.is_of_device = part.is_of_device;
    added.first_track = head_.tracks.size();
    head_.tracks.insert(head_.tracks.end(), its.tracks.begin(), its.tracks.end());
    head_.warnings.insert(head_.warnings.end(), its.warnings.begin(), its.warnings.end());
    for (const auto& [task, name] : its.tasks) head_.tasks.emplace(task + part.task_shift, name);
    head_.counts_bytes = its.counts_bytes && (parts_.empty() || head_.counts_bytes);
    head_.counts_clock = head_.counts_clock || its.counts_clock;
    head_.tasks_are_threads = head_.tasks_are_threads || its.tasks_are_threads;
    if (head_.program.empty()) head_.program = its.program;
    if (head_.build_id.empty()) head_.build_id = its.build_id;
    if (head_.wall_minus_monotonic == 0) head_.wall_minus_monotonic = its.wall_minus_monotonic;
    if (head_.host.empty()) head_.host = its.host;
    if (head_.release.empty()) head_.release = its.release;
    if (head_.architecture.empty()) head_.architecture = its.architecture;
    if (head_.recorded_by.empty()) head_.recorded_by = its.recorded_by;
    if (head_.command.empty()) head_.command = its.command;
    if (its.time.to > its.time.from || its.time.to != 0) {
      head_.time.from = *any ? std::min(head_.time.from, its.time.from) : its.time.from;
      head_.time.to = *any ? std::max(head_.time.to, its.time.to) : its.time.to;
      *any = true;
    }
    added.source = std::move(part.source);
    parts_.push_back(std::move(added));
    AddKinds(&parts_.back());
  }

  // A hang records nothing: it lasts from the last event to where the window ends. Of a clock that
  // is not the window's nothing lies in it.
  void LastUntilWindow() {
    constexpr uint64_t kLongest = 366u * 86400 * uint64_t{kSecond};
    if (!head_.window || head_.counts_clock) return;
    const TimeSpan& window = head_.window->time;
    const bool ends_in_it = head_.time.to >= window.from && head_.time.to < window.to;
    if (ends_in_it &&
        static_cast<uint64_t>(window.to) - static_cast<uint64_t>(head_.time.to) < kLongest)
      head_.time.to = window.to;
  }

  // Names are unique in a trace, and need not be so over several.
  void AddKinds(Part* part) {
    const std::vector<TraceEventKind>& its = part->source->head().kinds;
    while (part->kinds.size() < its.size()) {
      TraceEventKind kind = its[part->kinds.size()];
      const auto twin = std::find(head_.kinds.begin(), head_.kinds.end(), kind);
      if (part->is_of_device && twin != head_.kinds.end()) {
        part->kinds.push_back(static_cast<size_t>(twin - head_.kinds.begin()));
        continue;
      }
      for (int number = 2; known_.count(kind.name) != 0; ++number) {
        kind.name = fmt::format("{} ({})", its[part->kinds.size()].name, number);
        kind.counter = fmt::format("{} ({})", its[part->kinds.size()].counter, number);
      }
      known_.insert(kind.name);
      part->kinds.push_back(head_.kinds.size());
      head_.kinds.push_back(std::move(kind));
    }
  }

  // Whether there is one more.
  bool Fill(Part* part, TraceItem* item) {
    if (part->ended) return false;
    auto next = part->source->Next(item);
    if (!next.ok()) part->failure = next.status();
    part->ended = !next.ok() || !*next;
    if (part->ended) return false;
    if (part->kinds.size() < part->source->head().kinds.size()) AddKinds(part);
    return true;
  }

  // Alone it need not wait for others.
  Part* FillOnly(TraceItem* item) {
    return Fill(&parts_.front(), item) ? &parts_.front() : nullptr;
  }

  // Null: there is none.
  Part* PopFirst(TraceItem* item) {
    Part* first = nullptr;
    for (Part& part : parts_) {
      if (!part.waiting) part.waiting = Fill(&part, &part.item);
      if (part.waiting && (first == nullptr || TimeOf(part.item) < TimeOf(first->item)))
        first = &part;
    }
    if (first == nullptr) return nullptr;
    std::swap(*item, first->item);
    first->waiting = false;
    return first;
  }

  void Translate(Part* part, TraceItem* item) {
    if (auto* loss = std::get_if<TraceLoss>(item)) {
      loss->track += part->first_track;
      ++end_.losses;
      return;
    }
    auto& event = std::get<TraceEvent>(*item);
    event.track += part->first_track;
    event.kind = part->kinds[event.kind];
    for (auto* task : {&event.task, &event.from, &event.to}) {
      if (*task) **task += part->task_shift;
    }
    ++end_.events;
  }

  void Finish() {
    if (finished_) return;
    finished_ = true;
    end_.time = head_.time.to;
    end_.tasks = head_.tasks;
    for (Part& part : parts_) {
      const TraceEnd& its = part.source->end();
      end_.time = std::max(end_.time, its.time);
      for (const auto& [task, name] : its.tasks)
        end_.tasks.insert_or_assign(task + part.task_shift, name);
      end_.warnings.insert(end_.warnings.end(), its.warnings.begin(), its.warnings.end());
      if (!part.failure.ok()) end_.warnings.push_back(part.failure.message());
      for (TraceStanding standing : its.standings) {
        if (standing.who.is_task) standing.who.number += part.task_shift;
        for (TraceWho& who : standing.by) who.number += who.is_task ? part.task_shift : 0;
        AddStanding(std::move(standing));
      }
    }
  }

  // Of a thread, the CPUs' rings say since when it waits, and a look at it for whom, unless it ran
  // since that look.
  void AddStanding(TraceStanding standing) {
    const auto [known, is_new] = standing_of_.try_emplace(standing.who, end_.standings.size());
    if (is_new) return end_.standings.push_back(std::move(standing));
    TraceStanding& first = end_.standings[known->second];
    const bool waits = first.activity == Activity::kWaiting || first.activity == Activity::kIdle;
    const bool ran_since = standing.seen && first.since && *first.since > *standing.seen;
    if (!waits || ran_since || standing.waits_for.empty()) return;
    first.activity = standing.activity;
    first.waits_for = std::move(standing.waits_for);
    first.by = std::move(standing.by);
    first.place = std::move(standing.place);
    if (!first.since) first.since = standing.since;
  }

  TraceHead head_;
  TraceEnd end_;
  std::vector<Part> parts_;
  std::set<std::string> known_;             // names of kinds
  std::map<TraceWho, size_t> standing_of_;  // of end_.standings
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<TraceSource> MergeTraces(TraceHead head, std::vector<TracePart> parts) {
  return std::make_unique<Merge>(std::move(head), std::move(parts));
}

}  // namespace hangscope
