// What the items that readers of a scope's rings return have in common.
#ifndef HANGSCOPE_SESSION_SCOPE_ITEMS_H
#define HANGSCOPE_SESSION_SCOPE_ITEMS_H

#include <cstdint>
#include <variant>

#include "decode/event_reader.h"
#include "model/rings_window.h"

namespace hangscope {

// The record that it is, or the first that is lost.
inline uint64_t FirstRecordOf(const EventOrLoss& item) {
  if (const auto* event = std::get_if<ScopeEvent>(&item)) return event->sequence;
  return std::get<EventLoss>(item).begin;
}

constexpr GapReason GapReasonOf(EventLossReason reason) {
  switch (reason) {
    case EventLossReason::kOverwritten: return GapReason::kOverwritten;
    case EventLossReason::kTorn: return GapReason::kTorn;
    case EventLossReason::kRefused: return GapReason::kRefused;
    case EventLossReason::kUnread: return GapReason::kUnreadable;
  }
  return GapReason::kUnreadable;
}

}  // namespace hangscope

#endif
