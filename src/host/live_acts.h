// What Target and Watcher of the public API do with a scope beside looking at it.
#ifndef HANGSCOPE_HOST_LIVE_ACTS_H
#define HANGSCOPE_HOST_LIVE_ACTS_H

#include <string>

#include "hangscope/host/hangscope.hpp"
#include "scope/live_scope.h"

namespace hangscope {

// One thread. The scope outlives this.
class LiveActs {
 public:
  explicit LiveActs(LiveScope& scope) : scope_(scope) {}

  host::Status Pause(uint32_t core);
  host::Status Resume(uint32_t core);
  host::Status SetDelays(uint32_t core, const host::Delays& delays);
  host::Status SetMask(uint32_t core, uint32_t classes);
  host::Status FreezeAfter(uint32_t core, uint32_t records);
  host::Result<host::Features> ReadFeatures();
  host::Status SetFeatures(uint32_t on);
  host::Result<host::Events> ReadEvents(Clock& clock);
  host::Status TakeSnapshot(FileSystem& files, const std::string& folder);

 private:
  template <typename Act>
  host::Status OnCore(uint32_t core, Act act);

  LiveScope& scope_;
};

}  // namespace hangscope

#endif
