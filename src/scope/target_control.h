// Acts on a target from outside: writes the words that a host may write, those marked (h) in
// abi/watch.h and abi/scope.h, each whole, and no others. The target goes on meanwhile. One thread.
#ifndef HANGSCOPE_SCOPE_TARGET_CONTROL_H
#define HANGSCOPE_SCOPE_TARGET_CONTROL_H

#include <array>
#include <cstdint>
#include <optional>

#include "scope/watch_reader.h"

namespace hangscope {

// Before reads, writes, atomics: rounds of a loop, with HANGSCOPE_DELAY_RANDOM up to so many; 0:
// none. What is not given stays as it is.
struct DelaySettings {
  std::array<std::optional<uint32_t>, 3> delays;
  std::optional<uint32_t> seed;
};

class TargetControl {
 public:
  // `reader` outlives this.
  explicit TargetControl(const WatchReader& reader)
      : reader_(reader), scope_(reader.scope().layout()) {}

  // All fail where the target cannot be written, or was built without the feature. `core` is one of
  // it.
  Status Pause(uint32_t core);   // at its next pause point
  Status Resume(uint32_t core);  // also one that paused by itself
  Status SetDelays(uint32_t core, const DelaySettings& settings);
  Status SetMask(uint32_t core, uint32_t classes);
  // It records `records` more of the classes it records now, and stops: 0 to 2^31-1.
  Status FreezeAfter(uint32_t core, uint32_t records);
  // enum hangscope_watch_feature.
  Status SetSwitches(uint32_t switches);

 private:
  uint64_t Mailbox(uint32_t core) const;
  Status NeedFeature(uint32_t feature, const char* what) const;
  Result<uint32_t> Load(uint64_t address) const;
  Status Store(uint64_t address, uint32_t value);
  Status CountChange();

  const WatchReader& reader_;
  const ScopeLayout& scope_;
};

}  // namespace hangscope

#endif
