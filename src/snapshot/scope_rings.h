// The rings of a scope's cores in the form in which windows are found over them
// (window/find_window.h).
#ifndef HANGSCOPE_SNAPSHOT_SCOPE_RINGS_H
#define HANGSCOPE_SNAPSHOT_SCOPE_RINGS_H

#include <string>
#include <vector>

#include "model/manifest.h"
#include "scope/scope_view.h"
#include "snapshot/scope_clock.h"
#include "window/find_window.h"

namespace hangscope {

struct ScopeRings {
  std::vector<RingHistory> rings;
  std::vector<ScopeClockFit> clocks;  // of each of them
  TimeNs clock_error = 0;             // of the times in them, either way
  std::string left_out;               // one sentence: why cores are missing; empty: none is
};

// `view`: of an image that nobody writes to. `read_at`: monotonic; what was recorded before is in
// the image. Fails where it cannot be read.
Result<ScopeRings> ReadScopeRings(ScopeView& view, const ScopeClock& clock, TimeNs read_at);

}  // namespace hangscope

#endif
