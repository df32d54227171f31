// What is missing from a stream, and why. Nothing is lost silently: every loss
// is counted here, located by stream offsets and shown.
#ifndef HANGSCOPE_MODEL_LOSS_H
#define HANGSCOPE_MODEL_LOSS_H

#include <cstdint>
#include <string_view>

namespace hangscope {

enum class LossReason {
  kOverwritten,  // older than the ring holds; what a ring is for
  kNotWritten,   // the disk refused it (full, failing, gone)
  kUnreadable,   // a segment or its index entry cannot be read back
};

constexpr std::string_view LossReasonName(LossReason reason) {
  switch (reason) {
    case LossReason::kOverwritten:
      return "overwritten";
    case LossReason::kNotWritten:
      return "not written";
    case LossReason::kUnreadable:
      return "unreadable";
  }
  return "unknown";
}

// The bytes [begin, end) of a stream, offsets counted from its first byte.
struct Loss {
  uint64_t begin = 0;
  uint64_t end = 0;
  LossReason reason = LossReason::kOverwritten;

  uint64_t bytes() const { return end - begin; }
};

}  // namespace hangscope

#endif
