// What the disk has refused to the writer of a ring, and whether it is worth asking again.
//
// One thread at a time.
#ifndef HANGSCOPE_RING_DISK_REFUSALS_H
#define HANGSCOPE_RING_DISK_REFUSALS_H

#include <cstddef>

#include "base/clock.h"
#include "base/status.h"

namespace hangscope {

class DiskRefusals {
 public:
  explicit DiskRefusals(Clock& clock) : clock_(clock) {}

  // An append begins and asks the disk anew.
  void BeginAppend() { failing_ = false; }
  void NoteWritten() { barren_ = 0; }
  // The append ends here: the rest of its bytes has no place.
  void Refuse(const Status& why);
  // Whether another of `segment_count` segments may take what this one refused. A full disk has no
  // room for a fresh segment, but the oldest segments need none. At most one turn of the ring.
  bool NextMayFit(const Status& refusal, size_t segment_count);
  // A disk that was full a while ago may have room by now.
  void ForgetFullDisk();

  bool failing() const { return failing_; }      // the latest append was refused
  bool disk_full() const { return disk_full_; }  // a new segment found no room: reuse the oldest
  int last_error() const { return last_error_; }

 private:
  Clock& clock_;
  bool failing_ = false;
  bool disk_full_ = false;
  TimeNs full_since_ = 0;
  size_t barren_ = 0;  // segments in a row that took no byte
  int last_error_ = 0;
};

}  // namespace hangscope

#endif
