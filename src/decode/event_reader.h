// Reads one core's ring: events and losses in order of time, each record once. The ring may be
// written to meanwhile (abi/record.h has the protocol) or belong to a target long dead.
//
// docs/format.md has the rules for which records are whole, which are lost and why, and for the
// times; tests/system/scope_reader.py is a second implementation of the same page.
#ifndef HANGSCOPE_DECODE_EVENT_READER_H
#define HANGSCOPE_DECODE_EVENT_READER_H

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "decode/scope_reader.h"

namespace hangscope {

// What one look found, in order: an event or a loss.
using EventOrLoss = std::variant<ScopeEvent, EventLoss>;

// One thread.
class EventReader {
 public:
  // `reader` outlives this.
  EventReader(const ScopeReader& reader, uint32_t core);

  // Looks at the ring and queues what is new. `last`: nobody writes any more, so a record
  // that is not finished never will be.
  Status Look(bool last);
  // The next of what looks found; nothing: look again.
  std::optional<EventOrLoss> Next();

  // Of a target that does not write any more, after a look: reports counts that cannot be.
  void CheckCounts();

  // After at least one look; what is queued counts as returned.
  ScopeCore core() const;
  const std::vector<Corruption>& corruptions() const { return corruptions_; }
  bool has_pending() const { return !pending_.empty(); }

 private:
  struct Control;
  // The epoch that an anchor, or the ring's control, gives to the records beside it.
  struct Epoch {
    bool known = false;
    uint32_t number = 0;
    bool lost_between = false;  // a record that is missing there may have been an anchor
  };
  // What goes on from one record to the next.
  struct Reference {
    Epoch epoch;                     // of the anchor before
    std::optional<uint64_t> anchor;  // that record
    uint64_t time = 0;               // of the record before
  };
  struct Found {
    uint64_t sequence = 0;
    enum class Kind { kWhole, kLost, kPending } kind = Kind::kLost;
    EventLossReason why = EventLossReason::kTorn;  // it is lost
    uint32_t low = 0;                              // half of its time
    uint32_t start = 0;                            // how many starts of the target lie before it
    ScopeEvent event;                              // where it is whole
  };
  using Founds = std::vector<Found>;

  Result<Control> ReadControl() const;
  void CheckControl(Control* control);
  Status ReadSlots(uint64_t first, uint64_t count, std::string* bytes) const;
  void Restart(const Control& control);
  void Forget(uint64_t oldest);
  Found Judge(uint64_t sequence, uint64_t first_read, const std::string (&copies)[3], const Control& now, bool last) const;
  void LookAtPending(uint64_t first_read, const std::string (&copies)[3], const Control& now, bool last);
  void CountStarts(const Control& control, Founds* found) const;
  void Date(const Control& first, const Control& now, Founds* found);
  void DateStart(const Control& control, bool epoch_is_steady, bool newest, std::span<Found> found);
  static void DateAnchor(Found* found);
  static void DateBoot(const ScopeEvent& anchor, Found* found);
  void DateRecord(const Epoch& before, const Epoch& after, std::optional<uint32_t> next_anchor, bool looks_seldom, Found* found);
  void InferTasks(Founds* found);
  void Queue(const Founds& found);
  void Count(EventLossReason why, uint64_t records);
  void Lose(uint64_t begin, uint64_t end, EventLossReason why);
  void Report(std::string what);

  const ScopeReader* reader_;
  const ScopeLayout& layout_;
  const uint32_t index_;
  bool looked_ = false;
  bool epoch_is_known_ = true;
  ScopeCore core_;
  uint64_t start_ = 0;   // the first sequence number that counts
  uint64_t begun_ = 0;   // at the latest look
  uint64_t next_ = 0;    // the first that no look has seen
  std::map<uint64_t, Reference> pending_;  // and what is before them
  Reference reference_;
  std::optional<uint32_t> task_;
  uint64_t returned_ = 0;
  uint64_t lapped_ = 0;
  uint64_t torn_ = 0;
  uint64_t refused_seen_ = 0;
  uint64_t refused_total_ = 0;
  uint64_t unread_ = 0;
  std::deque<EventOrLoss> queue_;
  std::vector<Corruption> corruptions_;
};

}  // namespace hangscope

#endif
