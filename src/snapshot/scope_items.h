// What a loss in a scope's ring is among the gaps of a window.
#ifndef HANGSCOPE_SNAPSHOT_SCOPE_ITEMS_H
#define HANGSCOPE_SNAPSHOT_SCOPE_ITEMS_H

#include "model/scope.h"
#include "model/window.h"

namespace hangscope {

constexpr GapReason GapReasonOf(EventLossReason reason) {
  switch (reason) {
    case EventLossReason::kOverwritten:
      return GapReason::kOverwritten;
    case EventLossReason::kTorn:
      return GapReason::kTorn;
    case EventLossReason::kRefused:
      return GapReason::kRefused;
    case EventLossReason::kUnread:
      return GapReason::kUnreadable;
  }
  return GapReason::kUnreadable;
}

}  // namespace hangscope

#endif
