#include "observe/triggers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/units.h"

namespace hangscope {
namespace {

constexpr TimeNs kInterrupted = 2 * kSecond;  // not looked for this long: we were stopped
constexpr TimeNs kPostSilence = 5 * kSecond;  // a post in bytes waits no longer for the next one
constexpr TimeNs kExitGrace = kSecond;        // for the last words in the pipe
constexpr TimeNs kSamplesPerWindow = 64;
constexpr size_t kMostWaiting = 64;
constexpr size_t kLeastWindows = 5;  // before there is a median worth the name
constexpr size_t kMostValues = 8192;

}  // namespace

Status ParseTriggerRate(std::string_view option, std::string_view text, TriggerOptions* options) {
  const Status bad = Status::Usage(
      fmt::format("{} '{}': a share from 1% to 99% of the usual rate, and perhaps the time "
                  "over which it is taken; for example {} 10% or {} 10%/2s",
                  option, text, option, option));
  const size_t percent = text.find('%');
  if (percent == std::string_view::npos) return bad;
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + percent, share);
  if (error != std::errc() || end != text.data() + percent || !(share >= 1 && share <= 99))
    return bad;
  options->rate_share = share / 100;
  const std::string_view rest = text.substr(percent + 1);
  if (rest.empty()) return {};
  if (!rest.starts_with('/')) return bad;
  auto window = ParseDuration(option, rest.substr(1));
  if (!window.ok()) return window.status();
  if (*window < kSecond / 2)
    return Status::Usage(fmt::format("{} '{}': the least time is 500ms; for example {} 10%/2s",
                                     option, text, option));
  options->rate_window = *window;
  return {};
}

void RateMeter::Add(TimeNs now, uint64_t total_bytes) {
  // So close to the one before the last that the last is not worth keeping.
  const size_t size = samples_.size();
  if (size >= 2 &&
      samples_[size - 1].first - samples_[size - 2].first < window_ / kSamplesPerWindow)
    samples_.pop_back();
  samples_.emplace_back(now, total_bytes);
  // The newest sample that is old enough is the window's start.
  while (samples_.size() > 2 && samples_[1].first <= now - window_) samples_.pop_front();
}

bool RateMeter::covers_window() const {
  return !samples_.empty() && samples_.back().first - samples_.front().first >= window_;
}

double RateMeter::bytes_per_second() const {
  if (samples_.size() < 2 || samples_.back().first <= samples_.front().first) return 0;
  return static_cast<double>(samples_.back().second - samples_.front().second) /
         Seconds(samples_.back().first - samples_.front().first);
}

void RunningMedian::Add(double value) {
  if (++skipped_ < stride_) return;
  skipped_ = 0;
  values_.push_back(value);
  if (values_.size() < kMostValues) return;
  for (size_t i = 0; i < values_.size() / 2; ++i) values_[i] = values_[2 * i + 1];
  values_.resize(values_.size() / 2);
  stride_ *= 2;
}

double RunningMedian::Median() const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

std::optional<std::string> RateWatch::Sample(TimeNs now, uint64_t total_bytes) {
  meter_.Add(now, total_bytes);
  if (!meter_.covers_window()) return std::nullopt;
  const double rate = meter_.bytes_per_second();
  std::optional<std::string> drop;
  if (median_.count() >= kLeastWindows) {
    const double usual = median_.Median();
    const bool low = rate < share_ * usual;
    if (low && !low_)
      drop = fmt::format("{} over {}, {} is usual", FormatRate(rate), FormatElapsed(window_),
                         FormatRate(usual));
    low_ = low;
  }
  if (now >= next_window_) {
    median_.Add(rate);
    next_window_ = now + window_;
  }
  return drop;
}

void RateWatch::Interrupted() { meter_.Forget(); }

Triggers::Triggers(const TriggerOptions& options, TimeNs start)
    : options_(options), now_(start), silent_since_(start) {
  if (options.rate_share > 0) rate_.emplace(options.rate_share, options.rate_window);
}

bool Triggers::Fire(const Trigger& trigger, uint64_t more) {
  History& history = histories_[trigger.name];
  if ((history.fired && trigger.time - history.last < options_.quiet) ||
      waiting_.size() >= kMostWaiting) {
    history.suppressed += 1 + more;
    return false;
  }
  Trigger counted = trigger;
  counted.suppressed = history.suppressed;
  history = {trigger.time, true, more};
  Enqueue(counted, options_.post, false, 0);
  return true;
}

void Triggers::Request(const Trigger& trigger, bool at_once, bool since_last, int ticket) {
  Enqueue(trigger, at_once ? Post() : options_.post, since_last, ticket);
}

void Triggers::Enqueue(const Trigger& trigger, const Post& post, bool since_last, int ticket) {
  DueSnapshot snapshot{trigger, post, since_last, ticket, 0};
  snapshot.fired_at_bytes =
      trigger.kind == TriggerKind::kRegex ? trigger.end_offset : BytesOf(trigger.stream);
  if (!IsDue(snapshot)) put_off_.push_back(snapshot);
  waiting_.push_back(std::move(snapshot));
}

std::vector<DueSnapshot> Triggers::DrainPutOff() { return std::exchange(put_off_, {}); }

void Triggers::Sample(TimeNs now, const std::vector<StreamProgress>& streams) {
  if (now - now_ > kInterrupted) {
    silent_since_ = now;
    if (rate_) rate_->Interrupted();
  }
  now_ = now;
  streams_ = streams;
  WatchSilence();
  WatchRate();
}

void Triggers::WatchSilence() {
  if (options_.silence == 0) return;
  const bool blocked =
      std::any_of(streams_.begin(), streams_.end(), [](const auto& s) { return s.blocked; });
  const TimeNs last = blocked ? now_ : LastByteOf("");
  if (last > silent_since_) {
    silent_since_ = last;
    silence_told_ = false;
  }
  if (silence_told_ || now_ - silent_since_ < options_.silence) return;
  silence_told_ = true;
  Trigger trigger;
  trigger.kind = TriggerKind::kSilence;
  trigger.name = "silence: " + FormatElapsed(options_.silence);
  trigger.time = now_;
  (void)Fire(trigger);
}

void Triggers::WatchRate() {
  if (!rate_) return;
  const auto drop = rate_->Sample(now_, BytesOf(""));
  if (!drop) return;
  Trigger trigger;
  trigger.kind = TriggerKind::kRate;
  trigger.name = fmt::format("rate: {:.3g}%", options_.rate_share * 100);
  trigger.detail = *drop;
  trigger.time = now_;
  (void)Fire(trigger);
}

uint64_t Triggers::BytesOf(const std::string& stream) const {
  uint64_t total = 0;
  for (const StreamProgress& progress : streams_) {
    if (stream.empty() || progress.name == stream) total += progress.total_bytes;
  }
  return total;
}

TimeNs Triggers::LastByteOf(const std::string& stream) const {
  TimeNs last = 0;
  for (const StreamProgress& progress : streams_) {
    if (stream.empty() || progress.name == stream) last = std::max(last, progress.last_byte);
  }
  return last;
}

bool Triggers::IsDue(const DueSnapshot& snapshot) const {
  const Trigger& trigger = snapshot.trigger;
  const TimeNs since = now_ - trigger.time;
  if (trigger.kind == TriggerKind::kExit) return since >= std::max(kExitGrace, snapshot.post.time);
  if (snapshot.post.none()) return true;
  if (snapshot.post.time != 0) return since >= snapshot.post.time;
  if (BytesOf(trigger.stream) >= snapshot.fired_at_bytes + snapshot.post.bytes) return true;
  return since >= kPostSilence && now_ - LastByteOf(trigger.stream) >= kPostSilence;
}

std::vector<DueSnapshot> Triggers::DrainDue() {
  std::vector<DueSnapshot> due;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (IsDue(*at)) {
      due.push_back(std::move(*at));
      at = waiting_.erase(at);
    } else {
      ++at;
    }
  }
  return due;
}

std::vector<DueSnapshot> Triggers::DrainAll() {
  std::vector<DueSnapshot> all(waiting_.begin(), waiting_.end());
  waiting_.clear();
  return all;
}

std::map<std::string, uint64_t> Triggers::Suppressed() const {
  std::map<std::string, uint64_t> suppressed;
  for (const auto& [name, history] : histories_) {
    if (history.suppressed > 0) suppressed[name] = history.suppressed;
  }
  return suppressed;
}

}  // namespace hangscope
