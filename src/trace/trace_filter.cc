#include "trace/trace_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <variant>
#include <vector>

#include "base/near_name.h"
#include "base/numbers.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostNames = 12;  // told where one is asked for that there is not

// "sched:sched_switch" is "sched_switch", too.
bool IsKind(const TraceEventKind& kind, const std::string& wanted) {
  return kind.name == wanted || kind.name.ends_with(":" + wanted);
}

class Filter final : public TraceSource {
 public:
  explicit Filter(std::unique_ptr<TraceSource> source)
      : source_(std::move(source)), head_(source_->head()) {}

  Status Prepare(const TraceRequest& request) {
    request_ = request;
    task_ = ParseWhole<int64_t>(request.task);
    const TimeSpan held = head_.time;
    if (request.from) from_ = *request.from < 0 ? held.to + *request.from : *request.from;
    if (request.to) to_ = *request.to < 0 ? held.to + *request.to : *request.to;
    if (from_ > to_)
      return Status::Usage(
          "what is asked for ends before it begins: --from must not be later than --until");
    if (from_ > held.to || to_ < held.from) {
      return Status::Usage(
          fmt::format("nothing is held of the time that is asked for: the recording is from {:.6f} "
                      "s to {:.6f} s",
                      Seconds(held.from), Seconds(held.to)));
    }
    head_.time = {std::max(held.from, from_), std::min(held.to, to_)};
    if (Status status = ChooseTracks(); !status.ok()) return status;
    return CheckTask();
  }

  const TraceHead& head() const override { return head_; }
  const TraceEnd& end() const override { return end_; }
  double progress() const override { return source_->progress(); }

  Result<bool> Next(TraceItem* item) override {
    if (request_.most_events == 0) return Pull(item);
    if (!gathered_) {
      if (Status status = Gather(); !status.ok()) return status;
    }
    if (newest_.empty()) return false;
    *item = std::move(newest_.front());
    newest_.pop_front();
    return true;
  }

 private:
  Status ChooseTracks() {
    std::vector<TraceTrack> chosen;
    std::string names;
    const CoreChoice cores(request_.cores);
    for (size_t i = 0; i < head_.tracks.size(); ++i) {
      const TraceTrack& track = head_.tracks[i];
      const bool wanted = cores.Includes(track.ring.number, track.name);
      tracks_.push_back(wanted ? std::optional(chosen.size()) : std::nullopt);
      if (wanted) chosen.push_back(track);
      if (i < kMostNames) names += (i > 0 ? ", " : "") + Printable(track.name);
    }
    if (head_.tracks.size() > kMostNames)
      names += fmt::format(" and {} more", head_.tracks.size() - kMostNames);
    if (chosen.empty() && !head_.tracks.empty())
      return Status::Usage(
          fmt::format("--core '{}': there are {}", Printable(request_.cores), names));
    head_.tracks = std::move(chosen);
    return {};
  }

  Status CheckTask() {
    if (request_.task.empty() || task_) return {};
    std::vector<std::string> names;
    for (const auto& [task, name] : head_.tasks) {
      if (name == request_.task) tasks_named_.push_back(task);
      names.push_back(name);
    }
    if (!tasks_named_.empty()) return {};
    const std::vector<std::string> near = NearNames(request_.task, names, 3, 3);
    return Status::Usage(fmt::format(
        "--task '{}': no task is called so{}; its number does, too", Printable(request_.task),
        near.empty() ? "" : fmt::format(", but there is '{}'", Printable(near.front()))));
  }

  bool IsTask(const std::optional<int64_t>& task) const {
    if (!task) return false;
    return task_ ? *task == *task_
                 : std::find(tasks_named_.begin(), tasks_named_.end(), *task) != tasks_named_.end();
  }

  bool Wants(const TraceEvent& event) const {
    if (event.time < from_ || event.time > to_ || !tracks_[event.track]) return false;
    if (!request_.task.empty() && !IsTask(event.task) && !IsTask(event.from) && !IsTask(event.to))
      return false;
    return request_.event.empty() || IsKind(source_->head().kinds[event.kind], request_.event);
  }

  bool Wants(const TraceLoss& loss) const {
    return tracks_[loss.track] && loss.time.from <= to_ && loss.time.to >= from_;
  }

  Result<bool> Pull(TraceItem* item) {
    for (;;) {
      auto next = source_->Next(item);
      if (!next.ok()) return next;
      for (size_t i = head_.kinds.size(); i < source_->head().kinds.size(); ++i)
        head_.kinds.push_back(source_->head().kinds[i]);
      if (!*next) {
        Finish();
        return next;
      }
      const bool wanted = std::visit([this](const auto& one) { return Wants(one); }, *item);
      // Later ones may still be wanted: losses of long ago.
      if (!wanted) continue;
      std::visit([this](auto& one) { one.track = *tracks_[one.track]; }, *item);
      Count(*item, 1);
      return next;
    }
  }

  void Count(const TraceItem& item, int by) {
    if (std::holds_alternative<TraceEvent>(item))
      events_ += static_cast<uint64_t>(by);
    else
      losses_ += static_cast<uint64_t>(by);
  }

  // All of it passes by; the newest stay.
  Status Gather() {
    gathered_ = true;
    size_t events = 0;
    for (;;) {
      TraceItem item;
      auto next = Pull(&item);
      if (!next.ok()) return next.status();
      if (!*next) break;
      events += std::holds_alternative<TraceEvent>(item);
      newest_.push_back(std::move(item));
      while (events > request_.most_events) {
        events -= std::holds_alternative<TraceEvent>(newest_.front());
        Count(newest_.front(), -1);
        newest_.pop_front();
      }
    }
    end_.events = events_;
    end_.losses = losses_;
    return {};
  }

  void Finish() {
    end_ = source_->end();
    end_.events = events_;
    end_.losses = losses_;
    end_.time = std::min(end_.time, std::max(to_, head_.time.to));
    // How it stood later is no part of a time before.
    if (to_ < source_->head().time.to) end_.standings.clear();
    std::erase_if(end_.standings,
                  [this](const TraceStanding& standing) { return !IsShown(standing.who); });
    if (request_.event.empty() || events_ > 0) return;
    std::vector<std::string> names;
    for (const TraceEventKind& kind : head_.kinds) names.push_back(kind.name);
    const std::vector<std::string> near = NearNames(request_.event, names, 5, 3);
    end_.warnings.push_back(
        fmt::format("there is no event '{}'{}", Printable(request_.event),
                    near.empty() ? "" : fmt::format("; there is '{}'", Printable(near.front()))));
  }

  bool IsShown(const TraceWho& who) const {
    if (who.is_task) return request_.task.empty() || IsTask(who.number);
    if (request_.cores.empty()) return true;
    const auto is_it = [&](const TraceTrack& track) {
      return track.ring.kind == RingKind::kCore && track.ring.number == who.number;
    };
    return std::any_of(head_.tracks.begin(), head_.tracks.end(), is_it);
  }

  std::unique_ptr<TraceSource> source_;
  TraceHead head_;
  TraceEnd end_;
  TraceRequest request_;
  TimeNs from_ = INT64_MIN;
  TimeNs to_ = INT64_MAX;
  std::optional<int64_t> task_;
  std::vector<int64_t> tasks_named_;
  std::vector<std::optional<size_t>> tracks_;  // by the source's number
  uint64_t events_ = 0;
  uint64_t losses_ = 0;
  bool gathered_ = false;
  std::deque<TraceItem> newest_;
};

}  // namespace

CoreChoice::CoreChoice(std::string text)
    : text_(std::move(text)), numbers_(ParseRange<int64_t>(text_)) {}

bool CoreChoice::Includes(int64_t number, std::string_view name) const {
  if (numbers_) return number >= numbers_->first && number <= numbers_->second;
  return text_.empty() || name == text_ || name.ends_with(" " + text_);
}

Result<std::unique_ptr<TraceSource>> FilterTrace(std::unique_ptr<TraceSource> source,
                                                 const TraceRequest& request) {
  if (!request.from && !request.to && request.cores.empty() && request.task.empty() &&
      request.event.empty() && request.most_events == 0)
    return source;
  auto filter = std::make_unique<Filter>(std::move(source));
  if (Status status = filter->Prepare(request); !status.ok()) return status;
  return std::unique_ptr<TraceSource>(std::move(filter));
}

}  // namespace hangscope
