// What the heartbeat shows: a sign of life, also when nothing arrives.
#ifndef HANGSCOPE_MODEL_HEARTBEAT_H
#define HANGSCOPE_MODEL_HEARTBEAT_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/verdict.h"

namespace hangscope {

struct StreamPulse {
  std::string name;
  uint64_t total_bytes = 0;
  double bytes_per_second = 0;  // since the heartbeat before
  TimeNs last_byte_age = -1;    // -1: nothing yet
  uint64_t history_bytes = 0;   // of the stream that the ring holds
  uint64_t disk_bytes = 0;      // that they take there
  uint64_t bound_bytes = 0;
  uint64_t lost_bytes = 0;

  double fill() const {
    return bound_bytes == 0 ? 0
                            : static_cast<double>(disk_bytes) / static_cast<double>(bound_bytes);
  }
};

struct Heartbeat {
  TimeNs wall = 0;
  TimeNs elapsed = 0;
  TimeNs now = 0;         // monotonic, as the times in the verdict
  double child_cpu = -1;  // CPUs in use since the heartbeat before; -1: unknown
  std::vector<StreamPulse> streams;
  Verdict verdict;
  // The program has ended, and its output has not: with what status, and who is waited for; else
  // empty.
  std::string waits_for_output;
};

}  // namespace hangscope

#endif
