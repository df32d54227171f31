// Events and losses of one core, one behind the other, in little memory: 32 bytes each, and those
// of an event's parameters.
#ifndef HANGSCOPE_SCOPE_EVENT_LIST_H
#define HANGSCOPE_SCOPE_EVENT_LIST_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "model/scope.h"

namespace hangscope {

// What one look found, in order: an event or a loss.
using EventOrLoss = std::variant<ScopeEvent, EventLoss>;

// One thread. Places count from 0 to size().
class EventList {
 public:
  EventList() = default;
  // `parameters`: of each event, up to ScopeEvent::kMostParameters.
  EventList(uint32_t core, uint32_t parameters) : core_(core), parameters_(parameters) {}

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  bool is_event(size_t place) const { return !items_[place].is_loss; }
  // The record that it is, or the first that is lost.
  uint64_t first_record(size_t place) const { return items_[place].record; }
  uint64_t time(size_t place) const { return items_[place].time; }
  uint32_t age(size_t place) const { return items_[place].age; }
  bool ambiguous(size_t place) const { return items_[place].ambiguous; }
  // Of an event, of a loss.
  ScopeEvent event(size_t place) const;
  EventLoss loss(size_t place) const;
  EventOrLoss At(size_t place) const {
    return is_event(place) ? EventOrLoss(event(place)) : EventOrLoss(loss(place));
  }

  // Room for so many more.
  void Reserve(size_t more);
  // Its core and number of parameters are the list's.
  void Add(const ScopeEvent& event);
  void Add(const EventLoss& loss);
  void SetTime(size_t place, uint64_t time) { items_[place].time = time; }
  void SetAge(size_t place, uint32_t age) { items_[place].age = age; }
  // Whether the last is a loss for that reason which ends before `record`; it may have that one,
  // too.
  bool GoesOn(EventLossReason reason, uint64_t record, uint32_t age) const {
    const Item& last = items_.back();
    return last.is_loss && last.id == static_cast<uint16_t>(reason) && ends_[last.more] == record &&
           last.age == age;
  }
  void LengthenLast() { ++ends_[items_.back().more]; }
  // From `begin` on: by starts of the target, the oldest first, by time, by record.
  void SortByTime(size_t begin);
  void SortByRecord();
  // Those of earlier starts of the target. Returns how many events they were.
  uint64_t RemoveEarlier();
  void RemoveFirst(size_t count) {
    items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(count));
  }
  void clear();

 private:
  struct Item {
    uint64_t record = 0;
    uint64_t time = 0;
    uint32_t age = 0;
    uint32_t task = 0;
    uint32_t more = 0;  // an event's parameters in words_, a loss's end in ends_
    uint16_t id = 0;    // of an event; of a loss its reason
    bool is_loss : 1 = false;
    bool has_task : 1 = false;
    bool ambiguous : 1 = false;
  };
  static_assert(sizeof(Item) == 32);

  template <typename Less>
  void SortFrom(size_t begin, const Less& less) {
    const auto from = items_.begin() + static_cast<ptrdiff_t>(begin);
    if (!std::is_sorted(from, items_.end(), less)) std::stable_sort(from, items_.end(), less);
  }

  uint32_t core_ = 0;
  uint32_t parameters_ = 0;
  std::vector<Item> items_;
  std::vector<uint32_t> words_;  // parameters_ of each event
  std::vector<uint64_t> ends_;   // of losses
};

}  // namespace hangscope

#endif
