// Empties one descriptor into one ring, and passes the bytes on.
//
// Three threads and a stage (ring/staging_buffer.h) between them: the reader waits for
// nothing but its input; the writer may wait for the disk; the passthrough may wait
// for whoever reads it. Where one of those is too slow for too long, what is oldest
// is dropped, counted and located. Nothing that happens here can end the program.
#ifndef HANGSCOPE_OBSERVE_DRAIN_H
#define HANGSCOPE_OBSERVE_DRAIN_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "ring/ring_store.h"
#include "ring/staging_buffer.h"

namespace hangscope {

struct PassthroughOptions {
  int fd = -1;               // -1: none
  bool hide_traces = false;  // lines of an instruction trace are withheld
  // Whether a live line stands on the same terminal: it is taken away first.
  std::shared_ptr<std::atomic<bool>> live_line;
};

class Drain {
 public:
  // Reads `input_fd` until its end and closes it if `owns_input`; then adds one to
  // the eventfd `done_event`. `lossless`: the stream waits for its readers instead of
  // losing bytes. `ring` and `clock` outlive the drain.
  Drain(int input_fd, bool owns_input, RingStore* ring, std::unique_ptr<StagingBuffer> stage,
        Clock* clock, const PassthroughOptions& out, bool lossless, int done_event);
  ~Drain();  // stops and joins
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  void Start();
  // Takes what is there already, then ends without waiting for more. Any thread.
  void Stop();

  // Waits until the ring has what the program had written by now, at most `longest`.
  void CatchUp(TimeNs longest) const;

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  uint64_t total_bytes() const { return total_.load(std::memory_order_relaxed); }
  TimeNs last_byte() const { return last_byte_.load(std::memory_order_relaxed); }  // 0: none
  // Whether a reader that does not read holds up the program, or its end.
  bool blocked() const { return blocked_.load(std::memory_order_relaxed); }
  // Bytes that were not passed on, their reader being too slow or gone.
  uint64_t not_passed_on() const;
  // errno of the write that ended it; 0: none has
  int passthrough_error() const { return passthrough_error_.load(std::memory_order_relaxed); }

 private:
  void Read();
  bool WaitForInput();
  bool DiskFails() const { return disk_fails_.load(std::memory_order_relaxed); }
  bool MakeRoom();
  void KeepClose(ssize_t got);
  void Pause(ssize_t got, TimeNs now);
  void WriteRing();
  void GiveUpOnDisk();
  void PassAllOn();
  void PassOn(std::string_view bytes);
  void PassOnWithoutTraces(std::string_view bytes);
  void WriteOut(std::string_view bytes);
  bool WaitForReader();

  const int input_;
  const bool owns_input_;
  RingStore* const ring_;
  const std::unique_ptr<StagingBuffer> stage_;
  Clock* const clock_;
  const PassthroughOptions out_;
  const bool lossless_;
  const int done_event_;
  int stop_event_ = -1;
  size_t piece_bytes_ = 0;   // that a reader who is ready takes without blocking us
  size_t little_bytes_ = 0;  // so much of the pipe may fill during a pause
  TimeNs previous_read_ = 0;
  TimeNs patience_ = 0;  // with the writer
  std::thread reader_;
  std::thread writer_;
  std::thread passer_;
  // The passer's alone.
  std::string partial_line_;  // of a passthrough that is filtered
  bool hid_trace_ = false;
  bool passthrough_closed_ = false;
  // The writer's last store, after the ring is finished and the other threads have ended (release):
  // pairs with the acquire in ended(), behind which the ring and all that follows here are final.
  std::atomic<bool> ended_{false};
  // Each of these has one writing thread, and whoever loads one learns its value and nothing else:
  // no store before it is relied upon. So nothing pairs with them, and all accesses are relaxed.
  std::atomic<uint64_t> total_{0};             // the reader's
  std::atomic<TimeNs> last_byte_{0};           // the reader's
  std::atomic<bool> blocked_{false};           // the reader's
  std::atomic<bool> disk_fails_{false};        // the writer's
  std::atomic<int> passthrough_error_{0};      // likewise
  std::atomic<uint64_t> not_passed_on_{0};     // the passer's
  std::atomic<uint64_t> gone_at_{UINT64_MAX};  // the passer's: where it gave the passthrough up
};

}  // namespace hangscope

#endif
