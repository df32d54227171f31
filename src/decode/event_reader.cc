#include "decode/event_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <tuple>

#include "hangscope/abi/kernel_events.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"

namespace hangscope {
namespace {

constexpr size_t kControlBytes = sizeof(hangscope_ring);
constexpr size_t kRefusedKept = 8;

#define FIELD(field) offsetof(hangscope_ring, field)

// Records of one core may be out of order by as much as one was interrupted for.
constexpr uint32_t kDisorder = 1u << 28;

// The first time with these low bits that is not before `near`, but for some disorder.
uint64_t Following(uint64_t near, uint32_t low) {
  const uint32_t distance = low - static_cast<uint32_t>(near) + kDisorder;
  return near + distance < kDisorder ? low : near + distance - kDisorder;
}

// The last one that is not after it, but for some disorder.
uint64_t Preceding(uint64_t near, uint32_t low) {
  const uint32_t distance = static_cast<uint32_t>(near) - low + kDisorder;
  return near + kDisorder < distance ? low : near + kDisorder - distance;
}

}  // namespace

// A ring's control at one instant.
struct EventReader::Control {
  uint64_t begun = 0;
  uint64_t base = 0;
  uint64_t boot = 0;
  uint32_t mask = 0;
  uint32_t armed = 0;
  uint32_t remaining = 0;
  uint32_t refused = 0;
  uint32_t refused_tickets[kRefusedKept] = {};
  uint32_t epoch = 0;
  uint32_t ticks = 0;
  uint32_t anchor = 0;
  uint32_t state = 0;
  uint32_t owner = 0;
  uint32_t generation = 0;
  std::string name;

  bool Refused(uint64_t sequence) const {
    const uint32_t ticket = static_cast<uint32_t>(sequence << HANGSCOPE_TICKET_SHIFT) | 1u;
    return std::find(std::begin(refused_tickets), std::end(refused_tickets), ticket) != std::end(refused_tickets);
  }
};

EventReader::EventReader(const ScopeReader& reader, uint32_t core)
    : reader_(&reader), layout_(reader.layout()), index_(core) {
  core_.index = core;
}

std::optional<EventOrLoss> EventReader::Next() {
  if (queue_.empty()) return std::nullopt;
  EventOrLoss next = std::move(queue_.front());
  queue_.pop_front();
  return next;
}

Result<EventReader::Control> EventReader::ReadControl() const {
  char bytes[kControlBytes];
  if (Status status = reader_->target().Read(layout_.RingAddress(index_), bytes); !status.ok()) return status;
  const auto u32 = [&](size_t at) { return Load32(bytes + at, layout_.order); };
  const auto pair = [&](size_t at) { return u32(at) | uint64_t{u32(at + 4)} << 32; };
  Control control;
  control.begun = layout_.word_bytes == 8 ? Load64(bytes + FIELD(head), layout_.order) >> HANGSCOPE_TICKET_SHIFT
                                          : hangscope_begun(u32(FIELD(head)), u32(FIELD(head) + 4), layout_.ring_capacity);
  control.base = pair(FIELD(base));
  control.boot = pair(FIELD(boot));
  control.mask = u32(FIELD(mask));
  control.armed = u32(FIELD(armed));
  control.remaining = u32(FIELD(remaining));
  control.refused = u32(FIELD(refused));
  for (size_t i = 0; i < kRefusedKept; ++i) control.refused_tickets[i] = u32(FIELD(refused_tickets) + 4 * i);
  control.epoch = u32(FIELD(epoch));
  control.ticks = u32(FIELD(ticks));
  control.anchor = u32(FIELD(anchor));
  control.state = u32(FIELD(state));
  control.owner = u32(FIELD(owner));
  control.generation = u32(FIELD(generation));
  control.name.assign(bytes + FIELD(name), strnlen(bytes + FIELD(name), 16));
  return control;
}

void EventReader::Report(std::string what) { corruptions_.push_back({fmt::format("core {}", index_), std::move(what)}); }

// What cannot be right is not used.
void EventReader::CheckControl(Control* control) {
  if (control->base > control->begun) {
    Report(fmt::format("base {}: {} records were begun", control->base, control->begun));
    control->base = 0;
  }
  if (control->boot > control->begun) {
    Report(fmt::format("boot {}: {} records were begun", control->boot, control->begun));
    control->boot = 0;
  }
  if (control->state > HANGSCOPE_RING_LIVE) Report(fmt::format("state {}: 0 to 2 are states", control->state));
}

// The first `count` slots from that of record `first` on, in the order of records.
Status EventReader::ReadSlots(uint64_t first, uint64_t count, std::string* bytes) const {
  const uint64_t records = layout_.RingAddress(index_) + kControlBytes;
  const uint64_t slot = first % layout_.ring_capacity;
  const uint64_t straight = std::min<uint64_t>(count, layout_.ring_capacity - slot);
  bytes->resize(count * layout_.record_bytes);
  const std::span<char> all(*bytes);
  Status status = reader_->target().Read(records + slot * layout_.record_bytes, all.first(straight * layout_.record_bytes));
  if (status.ok() && straight < count) status = reader_->target().Read(records, all.subspan(straight * layout_.record_bytes));
  return status;
}

void EventReader::Restart(const Control& control) {
  start_ = next_ = control.base;
  pending_.clear();
  reference_ = {};
  task_.reset();
  returned_ = lapped_ = torn_ = refused_seen_ = unread_ = 0;
}

// What is older than the ring holds, and was not read before.
void EventReader::Forget(uint64_t oldest) {
  while (!pending_.empty() && pending_.begin()->first < oldest) {
    const uint64_t sequence = pending_.begin()->first;
    pending_.erase(pending_.begin());
    Lose(sequence, sequence + 1, EventLossReason::kOverwritten);
  }
  if (next_ >= oldest) return;
  Lose(next_, oldest, EventLossReason::kOverwritten);
  next_ = oldest;
  reference_ = {};
  task_.reset();
}

// The protocol of abi/record.h, with whole copies of the ring in place of loads: the marks of
// copy 0, the rest of copy 1, the marks of copy 2, then the head, each read after the one before.
Status EventReader::Look(bool last) {
  Target& target = reader_->target();
  const uint64_t ring = layout_.RingAddress(index_);
  // What no record can be told without. The part between is all zeros in many rings, and left out
  // of a dump then, so that its loss cannot be told from that.
  if (!target.IsKnown(ring, FIELD(mask)) || !target.IsKnown(ring + FIELD(state), FIELD(owner) - FIELD(state))) {
    if (!looked_) Report("its control did not arrive, and without it no record can be told");
    looked_ = true;
    return {};
  }
  if (!looked_ && !target.IsKnown(ring + FIELD(name), 16)) Report("its name did not arrive");
  epoch_is_known_ = target.IsKnown(ring + FIELD(epoch), 4);
  if (!looked_ && !target.IsKnown(ring + FIELD(refused), FIELD(anchor) - FIELD(refused))) Report("its refused_tickets, epoch and ticks did not arrive, or are zero");
  auto first = ReadControl();
  if (!first.ok()) return first.status();
  CheckControl(&*first);
  if (!looked_ || first->begun < begun_) Restart(*first);
  looked_ = true;
  begun_ = first->begun;
  refused_total_ = first->refused;
  core_.name = first->name;
  core_.owner = first->owner;
  core_.generation = first->generation;
  core_.in_use = first->state != HANGSCOPE_RING_FREE || begun_ != 0;
  core_.frozen = first->mask == 0 && first->armed == 0 && (layout_.features & HANGSCOPE_FEATURE_MASK) != 0;
  core_.records_until_frozen.reset();
  if (first->mask == 0 && first->armed != 0 && (layout_.features & HANGSCOPE_FEATURE_MASK) != 0) core_.records_until_frozen = static_cast<uint32_t>(std::max<int32_t>(0, static_cast<int32_t>(first->remaining)));

  Forget(std::max(first->base, begun_ - std::min<uint64_t>(begun_, layout_.ring_capacity)));
  uint64_t first_read = pending_.empty() ? next_ : pending_.begin()->first;
  const bool anchor_was_newest = reference_.anchor && *reference_.anchor + 1 == next_ && begun_ - *reference_.anchor <= layout_.ring_capacity;
  if (anchor_was_newest) first_read = std::min(first_read, *reference_.anchor);
  std::string copies[3];
  Control now = *first;
  if (first_read < begun_) {
    for (std::string& copy : copies) {
      if (&copy != &copies[0] && target.life() == Life::kDead) {
        copy = copies[0];
        continue;
      }
      if (Status status = ReadSlots(first_read, begun_ - first_read, &copy); !status.ok()) return status;
    }
    auto again = ReadControl();
    if (!again.ok()) return again.status();
    now = *again;
  }
  LookAtPending(first_read, copies, now, last);
  if (anchor_was_newest) {
    // It may have been renewed since: a silence has one anchor, however long it is.
    const Found anchor = Judge(*reference_.anchor, first_read, copies, now, last);
    if (anchor.kind == Found::Kind::kWhole && anchor.event.id == HANGSCOPE_ID_ANCHOR) reference_.epoch.number = anchor.event.parameters[0];
  }
  Founds found;
  for (; next_ < begun_; ++next_) found.push_back(Judge(next_, first_read, copies, now, last));
  CountStarts(*first, &found);
  Date(*first, now, &found);
  InferTasks(&found);
  Queue(found);
  return {};
}

void EventReader::CheckCounts() {
  const uint64_t missing = refused_seen_ + lapped_ + torn_ + unread_;
  // After a clear it has those from before, too.
  if (start_ == 0 && refused_total_ > missing) Report(fmt::format("refused {}: only {} records are missing", refused_total_, missing));
}

EventReader::Found EventReader::Judge(uint64_t sequence, uint64_t first_read, const std::string (&copies)[3],
                                      const Control& now, bool last) const {
  const uint64_t at = (sequence - first_read) * layout_.record_bytes;
  const auto mark = [&](int copy) { return Load32(copies[copy].data() + at, layout_.order); };
  const uint64_t slot = layout_.RingAddress(index_) + kControlBytes + sequence % layout_.ring_capacity * layout_.record_bytes;
  Found found;
  found.sequence = sequence;
  if (!reader_->target().IsKnown(slot, layout_.record_bytes)) {
    found.why = EventLossReason::kUnread;
  } else if (now.begun > sequence && now.begun - sequence > layout_.ring_capacity) {
    found.why = EventLossReason::kOverwritten;
  } else if (hangscope_is_committed(mark(0), sequence) != 0 && mark(0) == mark(2)) {
    found.kind = Found::Kind::kWhole;
    found.low = Load32(copies[1].data() + at + 4, layout_.order);
    found.event.core = index_;
    found.event.sequence = sequence;
    found.event.id = mark(0) & HANGSCOPE_ID_MASK;
    found.event.parameter_count = layout_.parameters();
    for (uint32_t i = 0; i < layout_.parameters(); ++i) {
      found.event.parameters[i] = Load32(copies[1].data() + at + 8 + 4 * i, layout_.order);
    }
  } else if (now.Refused(sequence)) {
    found.why = EventLossReason::kRefused;
  } else if (!last) {
    found.kind = Found::Kind::kPending;
  }
  return found;
}

// A record that was finished late comes late; its time says where it belongs.
void EventReader::LookAtPending(uint64_t first_read, const std::string (&copies)[3], const Control& now, bool last) {
  for (auto at = pending_.begin(); at != pending_.end();) {
    Found found = Judge(at->first, first_read, copies, now, last);
    if (found.kind == Found::Kind::kPending) {
      ++at;
      continue;
    }
    const Reference& before = at->second;
    if (found.kind == Found::Kind::kLost) {
      Lose(found.sequence, found.sequence + 1, found.why);
    } else {
      ScopeEvent& event = found.event;
      event.ambiguous = !before.epoch.known || before.epoch.lost_between;
      event.time = event.ambiguous ? Following(before.time, found.low) : TimeFromEpoch(before.epoch.number, found.low, &event.ambiguous);
      if (event.id == HANGSCOPE_ID_ANCHOR) DateAnchor(&found);
      ++returned_;
      queue_.emplace_back(event);
    }
    at = pending_.erase(at);
  }
}

// A start shows by its record, and by the control where that record is lost.
void EventReader::CountStarts(const Control& control, Founds* found) const {
  uint32_t starts = 0;
  for (Found& one : *found) {
    const bool boot = one.kind == Found::Kind::kWhole && one.event.id == HANGSCOPE_ID_BOOT;
    const bool marked = control.boot != 0 && one.sequence == control.boot;
    if ((boot || marked) && one.sequence != found->front().sequence) ++starts;
    one.start = starts;
  }
}

// An anchor that was renewed keeps its old time: only that it is before the new one is known.
void EventReader::DateAnchor(Found* found) {
  ScopeEvent& event = found->event;
  const uint32_t epoch = event.parameters[0];
  bool early = false;
  event.ambiguous = false;
  event.time = TimeFromEpoch(epoch, found->low, &early);
  if (event.time >> 30 == epoch && !early) return;
  const uint64_t reference = uint64_t{epoch} << 30;
  const uint32_t back = static_cast<uint32_t>(reference) - found->low;
  event.time = reference >= back ? reference - back : found->low;
  event.ambiguous = true;
}

// A start sets the epoch to 0 and looks at the clock right after its record. If the anchor of this
// look was renewed since, its epoch is a later one.
void EventReader::DateBoot(const ScopeEvent& anchor, Found* found) {
  found->event.time = Preceding(anchor.time, found->low);
  found->event.ambiguous = anchor.parameters[0] > 1;
}

void EventReader::Date(const Control& first, const Control& now, Founds* found) {
  if (found->empty()) return;
  // An epoch that changes while the ring is read belongs to records that the copies do not have.
  const bool steady = epoch_is_known_ && first.epoch == now.epoch && first.anchor == now.anchor;
  const std::span<Found> all(*found);
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    while (end < all.size() && all[end].start == all[begin].start) ++end;
    const bool boots = begin > 0 || (all[0].kind == Found::Kind::kWhole && all[0].event.id == HANGSCOPE_ID_BOOT);
    if (boots) reference_ = {};
    DateStart(first, steady, end == all.size(), all.subspan(begin, end - begin));
    begin = end;
  }
}

// The records between two starts of the target, or what is left of them. Each lies between an anchor
// that tells the epoch after it and one that tells the epoch before it; at the ring's end the control
// takes the place of the latter.
void EventReader::DateStart(const Control& control, bool epoch_is_steady, bool newest, std::span<Found> found) {
  const auto is_anchor = [](const Found& f) { return f.kind == Found::Kind::kWhole && f.event.id == HANGSCOPE_ID_ANCHOR; };
  const bool looks_seldom = layout_.word_bytes == 4 && control.ticks == 0;
  for (size_t i = 0; i < found.size();) {
    size_t next = i;
    while (next < found.size() && !is_anchor(found[next])) ++next;
    Epoch after;
    std::optional<uint32_t> next_anchor;
    if (next < found.size()) {
      DateAnchor(&found[next]);
      next_anchor = found[next].event.parameters[0];
      after = {true, found[next].event.parameters[1], false};
    } else if (newest && epoch_is_steady) {
      after = {true, control.epoch, false};
    }
    const size_t last_lost = [&] {
      size_t at = next;
      while (at > i && found[at - 1].kind == Found::Kind::kWhole) --at;
      return at;  // the first behind it
    }();
    for (; i < next; ++i) {
      Found& one = found[i];
      if (one.kind == Found::Kind::kPending) pending_.emplace(one.sequence, reference_);
      if (one.kind != Found::Kind::kWhole) {
        // What was overtaken while it was copied may have been anything.
        if (one.kind == Found::Kind::kLost && one.why == EventLossReason::kOverwritten) reference_ = {};
        reference_.epoch.lost_between = true;
        continue;
      }
      // Epochs only rise: before one of 0 there was no other.
      after.lost_between = i < last_lost && after.number != 0;
      if (one.event.id == HANGSCOPE_ID_BOOT && i == 0 && next == 1 && next < found.size()) DateBoot(found[next].event, &one);
      else DateRecord(reference_.epoch, after, next_anchor, looks_seldom, &one);
      reference_.time = one.event.time;
    }
    if (next == found.size()) break;
    const Found& anchor = found[next];
    reference_ = {{true, anchor.event.parameters[0], false}, anchor.sequence, anchor.event.time};
    i = next + 1;
  }
}

void EventReader::DateRecord(const Epoch& before, const Epoch& after, std::optional<uint32_t> next_anchor, bool looks_seldom, Found* found) {
  const bool by_before = before.known && !before.lost_between;
  const bool by_after = after.known && !after.lost_between;
  const bool agree = before.known && after.known && before.number == after.number;
  const uint32_t epoch = by_before || (agree && !by_after) ? before.number : after.number;
  bool certain = by_before || by_after || agree;
  // Who looks at the clock once in a turn of the ring may have missed a turn of the clock, unless the
  // next look found no more than one quarter gone.
  if (looks_seldom) certain = certain && next_anchor && *next_anchor - epoch <= 1;
  bool early = false;
  if (certain) found->event.time = TimeFromEpoch(epoch, found->low, &early);
  else found->event.time = Following(before.known || reference_.time != 0 ? reference_.time : uint64_t{after.number} << 30, found->low);
  found->event.ambiguous = !certain || early;
}

// In the order of records: a switch that is missing leaves the task unknown.
void EventReader::InferTasks(Founds* found) {
  uint32_t start = 0;
  for (Found& one : *found) {
    if (one.kind != Found::Kind::kWhole || one.start != start || one.event.id == HANGSCOPE_ID_BOOT) task_.reset();
    start = one.start;
    if (one.kind != Found::Kind::kWhole) continue;
    if (one.event.id == HANGSCOPE_ID_TASK_SWITCH) {
      one.event.task = one.event.parameters[0];
      task_ = one.event.parameters[1];
    } else {
      one.event.task = task_;
    }
  }
}

// In order of time, ties by record. A loss stands behind the record before it.
void EventReader::Queue(const Founds& found) {
  if (found.empty()) return;
  const uint32_t starts = found.back().start;
  std::vector<EventOrLoss> sorted;
  const auto first_whole = std::find_if(found.begin(), found.end(), [](const Found& f) { return f.kind == Found::Kind::kWhole; });
  uint64_t time = first_whole == found.end() ? 0 : first_whole->event.time;
  for (const Found& one : found) {
    if (one.kind == Found::Kind::kPending) continue;
    const uint32_t age = starts - one.start;
    if (one.kind == Found::Kind::kWhole) {
      ScopeEvent event = one.event;
      event.age = age;
      time = event.time;
      ++returned_;
      sorted.emplace_back(event);
      continue;
    }
    Count(one.why, 1);
    EventLoss* before = sorted.empty() ? nullptr : std::get_if<EventLoss>(&sorted.back());
    if (before != nullptr && before->reason == one.why && before->end == one.sequence && before->age == age) ++before->end;
    else sorted.emplace_back(EventLoss{index_, one.sequence, one.sequence + 1, one.why, age, time});
  }
  const auto key = [](const EventOrLoss& item) {
    if (const auto* event = std::get_if<ScopeEvent>(&item)) return std::tuple(~event->age, event->time, event->sequence);
    const EventLoss& loss = std::get<EventLoss>(item);
    return std::tuple(~loss.age, loss.time, loss.begin);
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const EventOrLoss& a, const EventOrLoss& b) { return key(a) < key(b); });
  // What was overwritten before this look comes before all of it.
  if (!queue_.empty()) {
    for (EventOrLoss& item : queue_) {
      if (auto* loss = std::get_if<EventLoss>(&item); loss != nullptr && loss->time == 0) {
        loss->age = starts;
        loss->time = first_whole == found.end() ? 0 : first_whole->event.time;
      }
    }
  }
  std::move(sorted.begin(), sorted.end(), std::back_inserter(queue_));
}

void EventReader::Count(EventLossReason why, uint64_t records) {
  switch (why) {
    case EventLossReason::kOverwritten: lapped_ += records; break;
    case EventLossReason::kTorn: torn_ += records; break;
    case EventLossReason::kRefused: refused_seen_ += records; break;
    case EventLossReason::kUnread: unread_ += records; break;
  }
}

void EventReader::Lose(uint64_t begin, uint64_t end, EventLossReason why) {
  Count(why, end - begin);
  queue_.emplace_back(EventLoss{index_, begin, end, why, 0, 0});
}

// Refused records that no look saw as such were overwritten since; where the list of tickets
// was too short for them they look like torn ones.
ScopeCore EventReader::core() const {
  ScopeCore core = core_;
  const uint64_t unseen = refused_total_ - std::min(refused_total_, refused_seen_);
  const uint64_t of_lapped = std::min(lapped_, unseen);
  const uint64_t of_torn = std::min(torn_, unseen - of_lapped);
  core.counts.emitted = begun_ - start_;
  core.counts.returned = returned_;
  core.counts.overwritten = lapped_ - of_lapped;
  core.counts.torn = torn_ - of_torn;
  core.counts.refused = refused_seen_ + of_lapped + of_torn;
  core.counts.pending = pending_.size();
  core.counts.unread = unread_;
  return core;
}

}  // namespace hangscope
