#include "observe/recording.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "stream/last_output.h"

namespace hangscope {

namespace {

constexpr TimeNs kLongestLook = kSecond / 10;  // back in a trace, for what was printed between

uint64_t RandomId() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

Recording::Recording(FileSystem& files, Clock& clock, const StagingOptions& stages)
    : files_(files),
      clock_(clock),
      stages_(stages),
      run_id_(RandomId()),
      done_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Recording::~Recording() {
  streams_.clear();  // joins the drains, which use the event
  close(done_event_);
}

Status Recording::AddRing(const std::string& name, const std::string& prefix,
                          const RingGeometry& geometry, bool passthrough) {
  auto stage = StagingBuffer::Create(stages_.memory_bytes, passthrough);
  if (!stage.ok()) return stage.status();
  auto ring = RingStore::Create(files_, clock_, prefix, name, geometry, run_id_);
  if (!ring.ok()) return ring.status();
  RecordedStream stream;
  stream.ring = std::move(*ring);
  stream.stage = std::move(*stage);
  stream.stage_fd = stream.stage->fd();
  streams_.push_back(std::move(stream));
  return {};
}

StandbyStream Recording::Guarded(size_t index, int fd,
                                 const PassthroughOptions& passthrough) const {
  const RecordedStream& stream = streams_[index];
  return {fd,
          stream.stage_fd,
          passthrough.fd,
          passthrough.hide_traces,
          stages_.lossless,
          stream.ring->prefix()};
}

void Recording::Drain(size_t index, int fd, bool owns_fd, const PassthroughOptions& passthrough) {
  RecordedStream& stream = streams_[index];
  stream.drain =
      std::make_unique<hangscope::Drain>(fd, owns_fd, stream.ring.get(), std::move(stream.stage),
                                         &clock_, passthrough, stages_.lossless, done_event_);
  stream.drain->Start();
}

std::vector<LastOutput> Recording::ReadLastOutput() const {
  std::vector<LastOutput> outputs;
  for (const RecordedStream& stream : streams_) {
    const TimeNs deadline = clock_.Monotonic() + kLongestLook;
    LastOutput output =
        hangscope::ReadLastOutput(files_, stream.ring->prefix(), stream.ring->stream_name(),
                                  [&] { return clock_.Monotonic() > deadline; });
    if (!output.of_trace) output.time = stream.drain->last_byte();
    outputs.push_back(std::move(output));
  }
  return outputs;
}

bool Recording::ended() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const RecordedStream& s) { return s.drain->ended(); });
}

bool Recording::blocked() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const RecordedStream& s) {
    return s.drain->ended() || s.drain->blocked();
  });
}

void Recording::Stop() {
  for (const RecordedStream& stream : streams_) {
    if (stream.drain != nullptr) stream.drain->Stop();
  }
}

uint64_t Recording::total_bytes() const {
  uint64_t total = 0;
  for (const RecordedStream& stream : streams_) total += stream.drain->total_bytes();
  return total;
}

std::vector<StreamPulse> Recording::Pulse(const std::vector<uint64_t>& previous,
                                          TimeNs interval) const {
  std::vector<StreamPulse> pulses;
  const TimeNs now = clock_.Monotonic();
  for (size_t i = 0; i < streams_.size(); ++i) {
    const RecordedStream& stream = streams_[i];
    const RingFill fill = stream.ring->fill();
    StreamPulse pulse;
    pulse.name = stream.ring->stream_name();
    pulse.total_bytes = stream.drain->total_bytes();
    const uint64_t before = i < previous.size() ? previous[i] : 0;
    if (interval > 0)
      pulse.bytes_per_second = static_cast<double>(pulse.total_bytes - before) / Seconds(interval);
    if (stream.drain->last_byte() != 0)
      pulse.last_byte_age = std::max<TimeNs>(0, now - stream.drain->last_byte());
    pulse.history_bytes = fill.history_bytes;
    pulse.disk_bytes = fill.disk_bytes;
    pulse.bound_bytes = fill.bound_bytes;
    pulse.lost_bytes = fill.lost_bytes;
    pulses.push_back(pulse);
  }
  return pulses;
}

}  // namespace hangscope
