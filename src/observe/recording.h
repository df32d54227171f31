// The streams of a run: a ring and a drain each.
#ifndef HANGSCOPE_OBSERVE_RECORDING_H
#define HANGSCOPE_OBSERVE_RECORDING_H

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "model/heartbeat.h"
#include "model/verdict.h"
#include "observe/drain.h"
#include "observe/standby.h"
#include "ring/ring_store.h"

namespace hangscope {

struct RecordedStream {
  std::unique_ptr<RingStore> ring;
  std::unique_ptr<StagingBuffer> stage;  // until the drain has it
  int stage_fd = -1;                     // as long as the drain lives
  std::unique_ptr<Drain> drain;
};

struct StagingOptions {
  uint64_t memory_bytes = 64u << 20;  // that may wait for a slow disk or reader, a stream
  bool lossless = false;              // the program waits for its readers instead
};

class Recording {
 public:
  // gives the run a random id
  Recording(FileSystem& files, Clock& clock, const StagingOptions& stages = {});
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Prepares a ring; called before the program starts, so that what cannot be
  // recorded is never started.
  // `passthrough`: whether Drain will be told to pass the stream on.
  Status AddRing(const std::string& name, const std::string& prefix, const RingGeometry& geometry,
                 bool passthrough);
  // What a guard needs to drain `fd` into the ring added i-th.
  StandbyStream Guarded(size_t index, int fd, const PassthroughOptions& passthrough) const;
  // Starts draining `fd` into the ring added i-th.
  void Drain(size_t index, int fd, bool owns_fd, const PassthroughOptions& passthrough);

  bool ended() const;  // every stream came to its end
  // Each stream that did not waits for its reader, or for the disk, and for no program.
  bool blocked() const;
  bool lossless() const { return stages_.lossless; }
  int done_event() const { return done_event_; }  // an eventfd: counts streams that ended
  void Stop();                                    // take what is there, then end

  const std::vector<RecordedStream>& streams() const { return streams_; }
  uint64_t total_bytes() const;
  // What each stream printed last, as far as its ring has it by now. Takes 0.1 s at most for a
  // stream that carries a trace, else about a millisecond.
  std::vector<LastOutput> ReadLastOutput() const;
  uint64_t run_id() const { return run_id_; }
  // `previous` are the totals at the heartbeat before, `interval` the time since.
  std::vector<StreamPulse> Pulse(const std::vector<uint64_t>& previous, TimeNs interval) const;

 private:
  FileSystem& files_;
  Clock& clock_;
  const StagingOptions stages_;
  const uint64_t run_id_;
  const int done_event_;
  std::vector<RecordedStream> streams_;
};

}  // namespace hangscope

#endif
