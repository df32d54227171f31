#include "session/observer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/units.h"
#include "export/text.h"

namespace hangscope {
namespace {

constexpr TimeNs kLiveInterval = kSecond / 2;
constexpr TimeNs kLongestCatchUp = kSecond;

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Observer::Observer(const Environment& environment, const ObserverOptions& options,
                   const Recording& recording, TimeNs start, TimeNs start_wall)
    : files_(*environment.files), clock_(*environment.clock), options_(options), recording_(recording),
      start_(start), start_wall_(start_wall), narrator_(environment.narrator, start),
      analysis_(files_, clock_, recording, environment.elf, environment.place_rule, options.stall),
      snapshots_(files_, options.prefix, options.max_snapshots),
      beat_interval_(environment.narrator.live ? std::min(kLiveInterval, options.heartbeat) : options.heartbeat),
      next_beat_(start + beat_interval_), last_beat_(start) {}

bool Observer::Tick(const ChildView& child, int pid) {
  pid_ = pid;
  analysis_.SetChild(child);
  const Verdict verdict = analysis_.verdict();
  TellTroubles(false);
  TellLosses(false);
  if (clock_.Monotonic() >= next_beat_) Beat(child, verdict);
  if (!verdict.IsHang()) {
    if (hang_now_ && verdict.time != 0) {
      narrator_.Note(fmt::format("it goes on again: {} after {}", verdict.summary, FormatElapsed(verdict.time - start_)),
                     clock_.Wall());
    }
    hang_now_ = false;
    return false;
  }
  if (hang_now_) return false;
  hang_now_ = true;
  TellHang(verdict);
  return true;
}

void Observer::Beat(const ChildView& child, const Verdict& verdict) {
  Heartbeat beat;
  beat.now = clock_.Monotonic();
  beat.wall = clock_.Wall();
  beat.elapsed = beat.now - start_;
  const TimeNs interval = beat.now - last_beat_;
  beat.streams = recording_.Pulse(last_totals_, interval);
  if (child.known && interval > 0) {
    beat.child_cpu = static_cast<double>(std::max<TimeNs>(0, child.cpu_time - last_cpu_)) / static_cast<double>(interval);
  }
  beat.verdict = verdict;
  narrator_.Beat(beat);
  last_totals_.clear();
  for (const StreamPulse& pulse : beat.streams) last_totals_.push_back(pulse.total_bytes);
  last_cpu_ = child.cpu_time;
  last_beat_ = beat.now;
  next_beat_ += beat_interval_ * ((beat.now - next_beat_) / beat_interval_ + 1);
}

// What a stream has to put up with, told when it begins.
void Observer::TellTroubles(bool all) {
  const auto& streams = recording_.streams();
  troubles_.resize(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    const std::string& name = streams[i].ring->stream_name();
    const RingFill fill = streams[i].ring->fill();
    Troubles& told = troubles_[i];
    if (fill.failing != told.failing) {
      char buffer[128];
      narrator_.Note(fill.failing ? fmt::format("{}: cannot write '{}': {}; the newest is kept in memory", name, streams[i].ring->prefix(),
                                                strerror_r(streams[i].ring->last_error(), buffer, sizeof buffer))
                                  : fmt::format("{}: '{}' can be written again", name, streams[i].ring->prefix()),
                     clock_.Wall());
      told.failing = fill.failing;
    }
    if (fill.gave_up_compression && !told.plain) {
      narrator_.Note(fmt::format("{}: comes faster than it can be compressed; what is too fast is recorded plain", name), clock_.Wall());
      told.plain = true;
    }
    const uint64_t dropped = streams[i].drain->not_passed_on();
    const bool due = all || told.dropped == 0 || clock_.Monotonic() >= next_beat_;
    if (dropped != told.dropped && due) {
      narrator_.Note(fmt::format("{}: {} recorded but not passed on, whoever reads it is too slow (--lossless waits for it)", name,
                                 FormatSize(dropped - told.dropped)), clock_.Wall());
      told.dropped = dropped;
    }
  }
}

// Each stream's losses are told when they begin and then at most once a beat.
void Observer::TellLosses(bool all) {
  const auto& streams = recording_.streams();
  told_losses_.resize(streams.size(), 0);
  for (size_t i = 0; i < streams.size(); ++i) {
    const RingFill fill = streams[i].ring->fill();
    if (fill.lost_bytes == told_losses_[i]) continue;
    if (!all && told_losses_[i] != 0 && clock_.Monotonic() < next_beat_) continue;
    char buffer[128];
    const std::string why = fill.lost_errno == 0
                                ? fmt::format("the disk of '{}' is slower than the stream", streams[i].ring->prefix())
                                : fmt::format("cannot write '{}': {}", streams[i].ring->prefix(),
                                              strerror_r(fill.lost_errno, buffer, sizeof buffer));
    narrator_.TellLoss(streams[i].ring->stream_name(), fill.lost_bytes - told_losses_[i], why, clock_.Wall());
    told_losses_[i] = fill.lost_bytes;
  }
}

void Observer::TellHang(const Verdict& verdict) {
  last_hang_ = verdict;
  hang_told_ = true;
  std::string snapshot;
  if (options_.snapshot_on_hang) snapshot = TakeSnapshot("hang", verdict, false);
  narrator_.Tell(verdict, clock_.Wall(), snapshot, last_contents_);
}

std::string Observer::TakeSnapshot(const std::string& trigger, const Verdict& verdict, bool with_text) {
  Manifest manifest;
  manifest.run_id = recording_.run_id();
  manifest.trigger = trigger;
  manifest.command = options_.command;
  manifest.pid = pid_;
  manifest.elf = options_.elf_path;
  manifest.host = HostName();
  manifest.start_wall = start_wall_;
  manifest.start = start_;
  manifest.time = clock_.Monotonic();
  manifest.wall = clock_.Wall();
  manifest.verdict = verdict;
  if (manifest.verdict.time == 0) {
    manifest.verdict.time = manifest.time;
    manifest.verdict.since = start_;
    manifest.verdict.summary = "not judged yet";
  }
  std::vector<RingStore*> rings;
  for (const RecordedStream& stream : recording_.streams()) {
    stream.drain->CatchUp(kLongestCatchUp);  // the newest bytes are the ones that are wanted
    rings.push_back(stream.ring.get());
  }
  auto folder = snapshots_.Take(rings, &manifest);
  if (!folder.ok()) {
    narrator_.Note("cannot take a snapshot: " + folder.status().message(), clock_.Wall());
    return {};
  }
  last_snapshot_ = *folder;
  last_contents_ = ContentsText(manifest.streams);
  narrator_.TellSnapshot(manifest, *folder, with_text);
  return *folder;
}

Verdict Observer::Conclude(const ChildView& child) {
  analysis_.Stop();
  TellTroubles(true);
  TellLosses(true);
  return analysis_.Conclude(child);
}

}  // namespace hangscope
