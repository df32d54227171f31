// A trace that a test makes item by item.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_TRACE_H
#define HANGSCOPE_TESTS_FAKES_FAKE_TRACE_H

#include <string>
#include <utility>
#include <vector>

#include "trace/trace_source.h"

namespace hangscope {

class FakeTrace final : public TraceSource {
 public:
  TraceHead its_head;
  TraceEnd its_end;
  std::vector<TraceItem> items;
  Status failure;  // behind the items

  size_t Track(RingKind kind, int64_t number, const std::string& name) {
    its_head.tracks.push_back({{kind, number, ""}, name});
    return its_head.tracks.size() - 1;
  }
  size_t Kind(const std::string& name, std::vector<TraceField> fields = {}) {
    TraceEventKind kind;
    kind.name = name;
    kind.fields = std::move(fields);
    its_head.kinds.push_back(std::move(kind));
    return its_head.kinds.size() - 1;
  }
  TraceEvent& Event(size_t track, size_t kind, TimeNs time) {
    TraceEvent event;
    event.track = track;
    event.kind = kind;
    event.time = time;
    its_head.time = items.empty() ? TimeSpan{time, time}
                                  : TimeSpan{its_head.time.from, std::max(its_head.time.to, time)};
    items.emplace_back(std::move(event));
    return std::get<TraceEvent>(items.back());
  }
  void Loss(size_t track, TimeNs from, TimeNs to, uint64_t amount) {
    items.emplace_back(
        TraceLoss{track, {from, to}, GapReason::kOverwritten, amount, AmountUnit::kRecords});
  }

  const TraceHead& head() const override { return its_head; }
  const TraceEnd& end() const override { return its_end; }
  double progress() const override {
    return items.empty() ? 1 : static_cast<double>(next_) / static_cast<double>(items.size());
  }
  Result<bool> Next(TraceItem* item) override {
    if (next_ == items.size()) return failure.ok() ? Result<bool>(false) : failure;
    *item = items[next_++];
    return true;
  }

 private:
  size_t next_ = 0;
};

// All of a trace, as "time track kind" and "time track lost N"; a failure is its last line.
inline std::vector<std::string> LinesOf(TraceSource& source) {
  std::vector<std::string> lines;
  TraceItem item;
  for (;;) {
    auto next = source.Next(&item);
    if (!next.ok()) lines.push_back(next.status().message());
    if (!next.ok() || !*next) return lines;
    const TraceHead& head = source.head();
    if (const auto* event = std::get_if<TraceEvent>(&item)) {
      lines.push_back(std::to_string(event->time) + " " + head.tracks.at(event->track).name + " " +
                      head.kinds.at(event->kind).name);
    } else {
      const auto& loss = std::get<TraceLoss>(item);
      lines.push_back(std::to_string(loss.time.to) + " " + head.tracks.at(loss.track).name +
                      " lost " + std::to_string(loss.amount));
    }
  }
}

}  // namespace hangscope

#endif
