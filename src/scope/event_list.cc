#include "scope/event_list.h"

#include <tuple>

namespace hangscope {

ScopeEvent EventList::event(size_t place) const {
  const Item& item = items_[place];
  ScopeEvent event;
  event.core = core_;
  event.sequence = item.record;
  event.age = item.age;
  event.time = item.time;
  event.ambiguous = item.ambiguous;
  event.id = item.id;
  event.parameter_count = parameters_;
  std::copy_n(words_.begin() + static_cast<ptrdiff_t>(item.more), parameters_,
              event.parameters.begin());
  if (item.has_task) event.task = item.task;
  return event;
}

EventLoss EventList::loss(size_t place) const {
  const Item& item = items_[place];
  return {core_,    item.record, ends_[item.more], static_cast<EventLossReason>(item.id),
          item.age, item.time};
}

void EventList::Reserve(size_t more) {
  items_.reserve(items_.size() + more);
  words_.reserve(words_.size() + more * parameters_);
}

void EventList::Add(const ScopeEvent& event) {
  Item item;
  item.record = event.sequence;
  item.time = event.time;
  item.age = event.age;
  item.task = event.task.value_or(0);
  item.more = static_cast<uint32_t>(words_.size());
  item.id = static_cast<uint16_t>(event.id);
  item.has_task = event.task.has_value();
  item.ambiguous = event.ambiguous;
  items_.push_back(item);
  words_.insert(words_.end(), event.parameters.begin(), event.parameters.begin() + parameters_);
}

void EventList::Add(const EventLoss& loss) {
  Item item;
  item.record = loss.begin;
  item.time = loss.time;
  item.age = loss.age;
  item.more = static_cast<uint32_t>(ends_.size());
  item.id = static_cast<uint16_t>(loss.reason);
  item.is_loss = true;
  items_.push_back(item);
  ends_.push_back(loss.end);
}

void EventList::SortByTime(size_t begin) {
  SortFrom(begin, [](const Item& a, const Item& b) {
    return std::tuple(~a.age, a.time, a.record) < std::tuple(~b.age, b.time, b.record);
  });
}

void EventList::SortByRecord() {
  SortFrom(0, [](const Item& a, const Item& b) { return a.record < b.record; });
}

uint64_t EventList::RemoveEarlier() {
  const auto is_earlier = [](const Item& item) { return item.age > 0; };
  const auto events = std::count_if(items_.begin(), items_.end(), [&](const Item& item) {
    return is_earlier(item) && !item.is_loss;
  });
  std::erase_if(items_, is_earlier);
  return static_cast<uint64_t>(events);
}

void EventList::clear() {
  items_.clear();
  words_.clear();
  ends_.clear();
}

}  // namespace hangscope
