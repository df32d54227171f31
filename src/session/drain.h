// Empties one descriptor into one ring, and passes the bytes on.
//
// The drain waits for nothing but its input, save that a passthrough reader that
// does not read holds it up just as it would hold up the program without
// hangscope. Nothing it does can end the program: a closed or failing passthrough
// is given up, and recording goes on.
#ifndef HANGSCOPE_SESSION_DRAIN_H
#define HANGSCOPE_SESSION_DRAIN_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "capture/ring_store.h"

namespace hangscope {

struct PassthroughOptions {
  int fd = -1;                // -1: none
  bool hide_traces = false;   // lines of an instruction trace are withheld
  // Whether a live line stands on the same terminal: it is taken away first.
  std::shared_ptr<std::atomic<bool>> live_line;
};

class Drain {
 public:
  // Reads `input_fd` until its end and closes it if `owns_input`; then adds one
  // to the eventfd `done_event`. `ring` and `clock` outlive the drain.
  Drain(int input_fd, bool owns_input, RingStore* ring, Clock* clock, const PassthroughOptions& out,
        int done_event);
  ~Drain();  // stops and joins
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  void Start();
  // Takes what is there already, then ends without waiting for more. Any thread.
  void Stop();

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  uint64_t total_bytes() const { return total_.load(std::memory_order_relaxed); }
  TimeNs last_byte() const { return last_byte_.load(std::memory_order_relaxed); }  // 0: none
  // Whether the reader of the passthrough holds everything up right now.
  bool blocked() const { return blocked_.load(std::memory_order_relaxed); }

 private:
  void Run();
  bool WaitForInput();
  void PassOn(std::string_view bytes);
  void PassOnWithoutTraces(std::string_view bytes);
  void WriteOut(std::string_view bytes);
  bool WaitForReader();

  const int input_;
  const bool owns_input_;
  RingStore* const ring_;
  Clock* const clock_;
  const PassthroughOptions out_;
  const int done_event_;
  int stop_event_ = -1;
  size_t piece_bytes_ = 0;  // that a reader who is ready takes without blocking us
  std::thread thread_;
  std::string partial_line_;  // of a passthrough that is filtered
  // ended_ is stored after the ring was finished (release) and pairs with ended().
  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> total_{0};
  std::atomic<TimeNs> last_byte_{0};
  std::atomic<bool> passthrough_closed_{false};
  std::atomic<bool> blocked_{false};
  std::atomic<bool> hid_trace_{false};
};

}  // namespace hangscope

#endif
