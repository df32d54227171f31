#include "scope/event_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string_view>

#include "hangscope/abi/kernel_events.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"

namespace hangscope {
namespace {

constexpr size_t kControlBytes = sizeof(hangscope_ring);
constexpr size_t kRefusedKept = 8;

#define RING_FIELD(field) offsetof(hangscope_ring, field)

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
  uint32_t last_task = 0;
  std::string name;

  // Nothing: none is, and which were before that is not known.
  std::optional<uint32_t> RecordedClasses(uint32_t features) const {
    if ((features & HANGSCOPE_FEATURE_MASK) == 0) return ~0u;
    if (mask != 0) return mask;
    return armed != 0 ? std::optional(armed) : std::nullopt;
  }
  bool Refused(uint64_t sequence) const {
    const uint32_t ticket = static_cast<uint32_t>(sequence << HANGSCOPE_TICKET_SHIFT) | 1u;
    return std::find(std::begin(refused_tickets), std::end(refused_tickets), ticket) !=
           std::end(refused_tickets);
  }
};

// What one look read of the ring: each copy after the one before, from record `first` on.
struct EventReader::Copies {
  uint64_t first = 0;
  uint32_t record_bytes = 0;
  bool known = false;  // all of the ring arrived
  std::string bytes[3];
  std::string_view copies[3];  // of `bytes`: of who does not write any more one is enough

  const char* At(int copy, uint64_t sequence) const {
    return copies[copy].data() + (sequence - first) * record_bytes;
  }
};

EventReader::EventReader(const ScopeReader& reader, uint32_t core)
    : reader_(&reader),
      layout_(reader.layout()),
      index_(core),
      queue_(core, reader.layout().parameters()) {
  core_.index = core;
}

std::optional<EventOrLoss> EventReader::Next() {
  if (queue_next_ < queue_.size()) return queue_.At(queue_next_++);
  queue_.clear();
  queue_next_ = 0;
  return std::nullopt;
}

EventList EventReader::DrainAll() {
  queue_.RemoveFirst(queue_next_);
  queue_next_ = 0;
  return std::exchange(queue_, EventList(index_, layout_.parameters()));
}

Result<EventReader::Control> EventReader::ReadControl() const {
  char bytes[kControlBytes];
  if (Status status = reader_->target().Read(layout_.RingAddress(index_), bytes); !status.ok())
    return status;
  const auto u32 = [&](size_t at) { return Load32(bytes + at, layout_.order); };
  const auto pair = [&](size_t at) { return u32(at) | uint64_t{u32(at + 4)} << 32; };
  Control control;
  control.begun = RecordsBegun(bytes + RING_FIELD(head), layout_);
  control.base = pair(RING_FIELD(base));
  control.boot = pair(RING_FIELD(boot));
  control.mask = u32(RING_FIELD(mask));
  control.armed = u32(RING_FIELD(armed));
  control.remaining = u32(RING_FIELD(remaining));
  control.refused = u32(RING_FIELD(refused));
  for (size_t i = 0; i < kRefusedKept; ++i)
    control.refused_tickets[i] = u32(RING_FIELD(refused_tickets) + 4 * i);
  control.epoch = u32(RING_FIELD(epoch));
  control.ticks = u32(RING_FIELD(ticks));
  control.anchor = u32(RING_FIELD(anchor));
  control.state = u32(RING_FIELD(state));
  control.owner = u32(RING_FIELD(owner));
  control.generation = u32(RING_FIELD(generation));
  control.last_task = u32(RING_FIELD(last_task));
  control.name.assign(bytes + RING_FIELD(name), strnlen(bytes + RING_FIELD(name), 16));
  return control;
}

void EventReader::Report(std::string why, const char* field, std::string value) {
  corruptions_.push_back(
      {Corruption::Part::kCore, index_, std::move(why), field, std::move(value)});
}

// What cannot be right is not used.
void EventReader::CheckControl(Control* control) {
  if (control->base > control->begun) {
    Report(fmt::format("{} records were begun", control->begun), "base",
           std::to_string(control->base));
    control->base = 0;
  }
  if (control->boot > control->begun) {
    Report(fmt::format("{} records were begun", control->begun), "boot",
           std::to_string(control->boot));
    control->boot = 0;
  }
  if (control->state > HANGSCOPE_RING_LIVE)
    Report("0 to 2 are states", "state", std::to_string(control->state));
}

// The first `count` slots from that of record `first` on, in the order of records.
Status EventReader::ReadSlots(uint64_t first, uint64_t count, std::string* bytes) const {
  const uint64_t records = layout_.RingAddress(index_) + kControlBytes;
  const uint64_t slot = first % layout_.ring_capacity;
  const uint64_t straight = std::min<uint64_t>(count, layout_.ring_capacity - slot);
  bytes->resize(count * layout_.record_bytes);
  const std::span<char> all(*bytes);
  Status status = reader_->target().Read(records + slot * layout_.record_bytes,
                                         all.first(straight * layout_.record_bytes));
  if (status.ok() && straight < count)
    status = reader_->target().Read(records, all.subspan(straight * layout_.record_bytes));
  return status;
}

Status EventReader::ReadCopies(uint64_t first, Copies* copies) {
  Target& target = reader_->target();
  copies->first = first;
  copies->record_bytes = layout_.record_bytes;
  copies->known = target.IsKnown(layout_.RingAddress(index_) + kControlBytes,
                                 uint64_t{layout_.ring_capacity} * layout_.record_bytes);
  for (int copy = 0; copy < 3; ++copy) {
    const bool same = copy > 0 && target.life() == Life::kDead;
    if (!same) {
      if (Status status = ReadSlots(first, begun_ - first, &copies->bytes[copy]); !status.ok())
        return status;
    }
    copies->copies[copy] = same ? copies->copies[0] : std::string_view(copies->bytes[copy]);
  }
  return {};
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
Status EventReader::Poll(bool last) {
  Target& target = reader_->target();
  const uint64_t ring = layout_.RingAddress(index_);
  // What no record can be told without. The part between is all zeros in many rings, and left out
  // of a dump then, so that its loss cannot be told from that.
  if (!target.IsKnown(ring, RING_FIELD(mask)) ||
      !target.IsKnown(ring + RING_FIELD(state), RING_FIELD(owner) - RING_FIELD(state))) {
    if (!looked_) Report("its control did not arrive, and without it no record can be told");
    looked_ = true;
    return {};
  }
  if (!looked_ && !target.IsKnown(ring + RING_FIELD(name), 16)) Report("its name did not arrive");
  epoch_is_known_ = target.IsKnown(ring + RING_FIELD(epoch), 4);
  if (!looked_ &&
      !target.IsKnown(ring + RING_FIELD(refused), RING_FIELD(anchor) - RING_FIELD(refused)))
    Report("its refused_tickets, epoch and ticks did not arrive, or are zero");
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
  core_.frozen =
      first->mask == 0 && first->armed == 0 && (layout_.features & HANGSCOPE_FEATURE_MASK) != 0;
  core_.classes = first->RecordedClasses(layout_.features);
  core_.records_until_frozen.reset();
  if (first->mask == 0 && first->armed != 0 && (layout_.features & HANGSCOPE_FEATURE_MASK) != 0)
    core_.records_until_frozen =
        static_cast<uint32_t>(std::max<int32_t>(0, static_cast<int32_t>(first->remaining)));

  Forget(std::max(first->base, begun_ - std::min<uint64_t>(begun_, layout_.ring_capacity)));
  uint64_t first_read = pending_.empty() ? next_ : pending_.begin()->first;
  const bool anchor_was_newest = reference_.anchor && *reference_.anchor + 1 == next_ &&
                                 begun_ - *reference_.anchor <= layout_.ring_capacity;
  if (anchor_was_newest) first_read = std::min(first_read, *reference_.anchor);
  Copies copies;
  Control now = *first;
  if (first_read < begun_) {
    if (Status status = ReadCopies(first_read, &copies); !status.ok()) return status;
    auto again = ReadControl();
    if (!again.ok()) return again.status();
    now = *again;
  }
  ReadPending(copies, now, last);
  if (anchor_was_newest) {
    // It may have been renewed since: a silence has one anchor, however long it is.
    const Record anchor = ReadRecord(*reference_.anchor, copies, now, last);
    if (anchor.kind == Record::Kind::kWhole && anchor.id == HANGSCOPE_ID_ANCHOR)
      reference_.epoch.number = anchor.parameters[0];
  }
  Records found;
  found.reserve(begun_ - next_);
  for (; next_ < begun_; ++next_) found.push_back(ReadRecord(next_, copies, now, last));
  CountStarts(*first, &found);
  Date(*first, now, &found);
  InferTasks(*first, now, &found);
  Queue(found, copies);
  return {};
}

void EventReader::CheckCounts() {
  const uint64_t missing = refused_seen_ + lapped_ + torn_ + unread_;
  // After a clear it has those from before, too.
  if (start_ == 0 && refused_total_ > missing)
    Report(fmt::format("only {} records are missing", missing), "refused",
           std::to_string(refused_total_));
}

EventReader::Record EventReader::ReadRecord(uint64_t sequence, const Copies& copies,
                                            const Control& now, bool last) const {
  const auto mark = [&](int copy) { return Load32(copies.At(copy, sequence), layout_.order); };
  const auto slot = [&] {
    return layout_.RingAddress(index_) + kControlBytes +
           sequence % layout_.ring_capacity * layout_.record_bytes;
  };
  Record found;
  found.sequence = sequence;
  if (!copies.known && !reader_->target().IsKnown(slot(), layout_.record_bytes)) {
    found.why = EventLossReason::kUnread;
  } else if (now.begun > sequence && now.begun - sequence > layout_.ring_capacity) {
    found.why = EventLossReason::kOverwritten;
  } else if (hangscope_is_committed(mark(0), sequence) != 0 && mark(0) == mark(2)) {
    found.kind = Record::Kind::kWhole;
    const char* const record = copies.At(1, sequence);
    found.low = Load32(record + 4, layout_.order);
    found.id = static_cast<uint16_t>(mark(0) & HANGSCOPE_ID_MASK);
    for (uint32_t i = 0; i < 2; ++i)
      found.parameters[i] = Load32(record + 8 + 4 * i, layout_.order);
  } else if (now.Refused(sequence)) {
    found.why = EventLossReason::kRefused;
  } else if (!last) {
    found.kind = Record::Kind::kPending;
  }
  return found;
}

ScopeEvent EventReader::EventOf(const Record& found, const Copies& copies) const {
  ScopeEvent event;
  event.core = index_;
  event.sequence = found.sequence;
  event.time = found.time;
  event.ambiguous = found.ambiguous;
  event.id = found.id;
  event.parameter_count = layout_.parameters();
  const char* const parameters = copies.At(1, found.sequence) + 8;
  for (uint32_t i = 0; i < event.parameter_count; ++i)
    event.parameters[i] = Load32(parameters + 4 * i, layout_.order);
  event.task = found.task;
  return event;
}

// A record that was finished late comes late; its time says where it belongs.
void EventReader::ReadPending(const Copies& copies, const Control& now, bool last) {
  for (auto at = pending_.begin(); at != pending_.end();) {
    Record found = ReadRecord(at->first, copies, now, last);
    if (found.kind == Record::Kind::kPending) {
      ++at;
      continue;
    }
    const Reference& before = at->second;
    if (found.kind == Record::Kind::kLost) {
      Lose(found.sequence, found.sequence + 1, found.why);
    } else {
      found.ambiguous = !before.epoch.known || before.epoch.lost_between;
      found.time = found.ambiguous
                       ? Following(before.time, found.low)
                       : TimeFromEpoch(before.epoch.number, found.low, &found.ambiguous);
      if (found.id == HANGSCOPE_ID_ANCHOR) DateAnchor(&found);
      ++returned_;
      queue_.Add(EventOf(found, copies));
    }
    at = pending_.erase(at);
  }
}

// A start shows by its record, and by the control where that record is lost.
void EventReader::CountStarts(const Control& control, Records* found) const {
  uint32_t starts = 0;
  for (Record& one : *found) {
    const bool boot = one.kind == Record::Kind::kWhole && one.id == HANGSCOPE_ID_BOOT;
    const bool marked = control.boot != 0 && one.sequence == control.boot;
    if ((boot || marked) && one.sequence != found->front().sequence) ++starts;
    one.start = starts;
  }
}

// An anchor that was renewed keeps its old time: only that it is before the new one is known.
void EventReader::DateAnchor(Record* found) {
  const uint32_t epoch = found->parameters[0];
  bool early = false;
  found->ambiguous = false;
  found->time = TimeFromEpoch(epoch, found->low, &early);
  if (found->time >> 30 == epoch && !early) return;
  const uint64_t reference = uint64_t{epoch} << 30;
  const uint32_t back = static_cast<uint32_t>(reference) - found->low;
  found->time = reference >= back ? reference - back : found->low;
  found->ambiguous = true;
}

// A start sets the epoch to 0 and looks at the clock right after its record. If the anchor of this
// look was renewed since, its epoch is a later one.
void EventReader::DateBoot(const Record& anchor, Record* found) {
  found->time = Preceding(anchor.time, found->low);
  found->ambiguous = anchor.parameters[0] > 1;
}

void EventReader::Date(const Control& first, const Control& now, Records* found) {
  if (found->empty()) return;
  // An epoch that changes while the ring is read belongs to records that the copies do not have.
  const bool steady = epoch_is_known_ && first.epoch == now.epoch && first.anchor == now.anchor;
  const std::span<Record> all(*found);
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    while (end < all.size() && all[end].start == all[begin].start) ++end;
    const bool boots =
        begin > 0 || (all[0].kind == Record::Kind::kWhole && all[0].id == HANGSCOPE_ID_BOOT);
    if (boots) reference_ = {};
    DateStart(first, steady, end == all.size(), all.subspan(begin, end - begin));
    begin = end;
  }
}

// The records between two starts of the target, or what is left of them. Each lies between an
// anchor that tells the epoch after it and one that tells the epoch before it; at the ring's end
// the control takes the place of the latter.
void EventReader::DateStart(const Control& control, bool epoch_is_steady, bool newest,
                            std::span<Record> found) {
  const auto is_anchor = [](const Record& f) {
    return f.kind == Record::Kind::kWhole && f.id == HANGSCOPE_ID_ANCHOR;
  };
  const bool looks_seldom = layout_.word_bytes == 4 && control.ticks == 0;
  for (size_t i = 0; i < found.size();) {
    size_t next = i;
    while (next < found.size() && !is_anchor(found[next])) ++next;
    Epoch after;
    std::optional<uint32_t> next_anchor;
    if (next < found.size()) {
      DateAnchor(&found[next]);
      next_anchor = found[next].parameters[0];
      after = {true, found[next].parameters[1], false};
    } else if (newest && epoch_is_steady) {
      after = {true, control.epoch, false};
    }
    const size_t last_lost = [&] {
      size_t at = next;
      while (at > i && found[at - 1].kind == Record::Kind::kWhole) --at;
      return at;  // the first behind it
    }();
    for (; i < next; ++i) {
      Record& one = found[i];
      if (one.kind == Record::Kind::kPending) pending_.emplace(one.sequence, reference_);
      if (one.kind != Record::Kind::kWhole) {
        // What was overtaken while it was copied may have been anything.
        if (one.kind == Record::Kind::kLost && one.why == EventLossReason::kOverwritten)
          reference_ = {};
        reference_.epoch.lost_between = true;
        continue;
      }
      // Epochs only rise: before one of 0 there was no other.
      after.lost_between = i < last_lost && after.number != 0;
      if (one.id == HANGSCOPE_ID_BOOT && i == 0 && next == 1 && next < found.size())
        DateBoot(found[next], &one);
      else
        DateRecord(reference_.epoch, after, next_anchor, looks_seldom, &one);
      reference_.time = one.time;
    }
    if (next == found.size()) break;
    const Record& anchor = found[next];
    reference_ = {{true, anchor.parameters[0], false}, anchor.sequence, anchor.time};
    i = next + 1;
  }
}

void EventReader::DateRecord(const Epoch& before, const Epoch& after,
                             std::optional<uint32_t> next_anchor, bool looks_seldom,
                             Record* found) {
  const bool by_before = before.known && !before.lost_between;
  const bool by_after = after.known && !after.lost_between;
  const bool agree = before.known && after.known && before.number == after.number;
  const uint32_t epoch = by_before || (agree && !by_after) ? before.number : after.number;
  bool certain = by_before || by_after || agree;
  // Who looks at the clock once in a turn of the ring may have missed a turn of the clock, unless
  // the next look found no more than one quarter gone.
  if (looks_seldom) certain = certain && next_anchor && *next_anchor - epoch <= 1;
  bool early = false;
  if (certain)
    found->time = TimeFromEpoch(epoch, found->low, &early);
  else
    found->time = Following(
        before.known || reference_.time != 0 ? reference_.time : uint64_t{after.number} << 30,
        found->low);
  found->ambiguous = !certain || early;
}

// In the order of records. A switch tells the task of the records before it, as far as none is
// missing, and of those behind it. Two that contradict each other have another between them, which
// was not recorded.
void EventReader::InferTasks(const Control& first, const Control& now, Records* found) {
  const auto name_task = [&](size_t begin, size_t end, std::optional<uint32_t> task) {
    for (size_t i = begin; i < end; ++i) (*found)[i].task = task;
  };
  uint32_t start = 0;
  size_t begin = 0;  // of the records since the latest switch, or since something is missing
  for (size_t i = 0; i < found->size(); ++i) {
    Record& one = (*found)[i];
    if (one.kind != Record::Kind::kWhole || one.start != start || one.id == HANGSCOPE_ID_BOOT) {
      task_.reset();
      begin = one.kind == Record::Kind::kWhole && one.id != HANGSCOPE_ID_BOOT ? i : i + 1;
    }
    start = one.start;
    if (one.kind != Record::Kind::kWhole) continue;
    one.task = task_;
    if (one.id != HANGSCOPE_ID_TASK_SWITCH) continue;
    const uint32_t previous = one.parameters[0];
    one.task = previous;
    if (task_ && *task_ != previous)
      name_task(begin, i, std::nullopt);
    else if (previous != 0 && previous != HANGSCOPE_NO_TASK)
      name_task(begin, i, previous);
    task_ = one.parameters[1];
    begin = i + 1;
  }
  if (task_ && core_.classes && (*core_.classes & kTaskClass) == 0) {
    // Switches go unrecorded now, and since when is not known.
    task_.reset();
    name_task(begin, found->size(), std::nullopt);
  } else if (const auto task = TaskOfAll(first, now, *found)) {
    task_ = task;
    name_task(0, found->size(), task);
  }
}

// Where no record is a switch: who has run since the one that was overwritten or cleared. A ring
// that begins with the first record holds all switches that there were: whoever says there which
// task runs does not record them.
std::optional<uint32_t> EventReader::TaskOfAll(const Control& first, const Control& now,
                                               const Records& found) const {
  const bool steady = first.begun == now.begun && first.last_task == now.last_task;
  if (!steady || found.empty() || found.front().sequence == 0 || layout_.boots > 1 || task_ ||
      !pending_.empty() || first.last_task == 0 || first.last_task == HANGSCOPE_NO_TASK ||
      !core_.classes || (*core_.classes & kTaskClass) == 0)
    return std::nullopt;
  const bool all = std::all_of(found.begin(), found.end(), [](const Record& one) {
    return one.kind == Record::Kind::kWhole && one.start == 0 &&
           one.id != HANGSCOPE_ID_TASK_SWITCH && one.id != HANGSCOPE_ID_BOOT;
  });
  return all ? std::optional(first.last_task) : std::nullopt;
}

// In order of time, ties by record. A loss stands behind the record before it.
void EventReader::Queue(const Records& found, const Copies& copies) {
  if (found.empty()) return;
  const uint32_t starts = found.back().start;
  const auto first_whole = std::find_if(
      found.begin(), found.end(), [](const Record& f) { return f.kind == Record::Kind::kWhole; });
  const uint64_t first_time = first_whole == found.end() ? 0 : first_whole->time;
  // What was overwritten before this look comes before all of it.
  for (size_t place = queue_next_; place < queue_.size(); ++place) {
    if (queue_.is_event(place) || queue_.time(place) != 0) continue;
    queue_.SetAge(place, starts);
    queue_.SetTime(place, first_time);
  }
  const size_t begin = queue_.size();
  queue_.Reserve(found.size());
  uint64_t time = first_time;
  for (const Record& one : found) {
    if (one.kind == Record::Kind::kPending) continue;
    const uint32_t age = starts - one.start;
    if (one.kind == Record::Kind::kWhole) {
      ScopeEvent event = EventOf(one, copies);
      event.age = age;
      time = event.time;
      ++returned_;
      queue_.Add(event);
      continue;
    }
    Count(one.why, 1);
    if (queue_.size() > begin && queue_.GoesOn(one.why, one.sequence, age))
      queue_.LengthenLast();
    else
      queue_.Add(EventLoss{index_, one.sequence, one.sequence + 1, one.why, age, time});
  }
  queue_.SortByTime(begin);
}

void EventReader::Count(EventLossReason why, uint64_t records) {
  switch (why) {
    case EventLossReason::kOverwritten:
      lapped_ += records;
      break;
    case EventLossReason::kTorn:
      torn_ += records;
      break;
    case EventLossReason::kRefused:
      refused_seen_ += records;
      break;
    case EventLossReason::kUnread:
      unread_ += records;
      break;
  }
}

void EventReader::Lose(uint64_t begin, uint64_t end, EventLossReason why) {
  Count(why, end - begin);
  queue_.Add(EventLoss{index_, begin, end, why, 0, 0});
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
