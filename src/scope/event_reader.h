// Reads one core's ring: events and losses in order of time, each record once. The ring may be
// written to meanwhile (abi/record.h has the protocol) or belong to a target long dead.
//
// docs/format.md has the rules for which records are whole, which are lost and why, and for the
// times; tests/system/scope_reader.py is a second implementation of the same page.
#ifndef HANGSCOPE_SCOPE_EVENT_READER_H
#define HANGSCOPE_SCOPE_EVENT_READER_H

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scope/event_list.h"
#include "scope/scope_reader.h"

namespace hangscope {

// One thread.
class EventReader {
 public:
  // `reader` outlives this.
  EventReader(const ScopeReader& reader, uint32_t core);

  // Looks at the ring and queues what is new. `last`: nobody writes any more, so a record
  // that is not finished never will be.
  Status Poll(bool last);
  // The next of what looks found; nothing: look again.
  std::optional<EventOrLoss> Next();
  // All that is left of that at once; it is queued no more.
  EventList DrainAll();

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
  struct Record {
    enum class Kind : uint8_t { kWhole, kLost, kPending };

    uint64_t sequence = 0;
    uint64_t time = 0;
    uint32_t low = 0;    // half of its time
    uint32_t start = 0;  // how many starts of the target lie before it
    // the first: all that hangscope's own events have
    uint32_t parameters[2] = {};
    std::optional<uint32_t> task;
    uint16_t id = 0;
    Kind kind = Kind::kLost;
    bool ambiguous = false;
    EventLossReason why = EventLossReason::kTorn;  // it is lost
  };
  using Records = std::vector<Record>;
  struct Copies;

  Result<Control> ReadControl() const;
  void CheckControl(Control* control);
  Status ReadSlots(uint64_t first, uint64_t count, std::string* bytes) const;
  void Restart(const Control& control);
  void Forget(uint64_t oldest);
  Status ReadCopies(uint64_t first, Copies* copies);
  Record ReadRecord(uint64_t sequence, const Copies& copies, const Control& now, bool last) const;
  ScopeEvent EventOf(const Record& found, const Copies& copies) const;
  void ReadPending(const Copies& copies, const Control& now, bool last);
  void CountStarts(const Control& control, Records* found) const;
  void Date(const Control& first, const Control& now, Records* found);
  void DateStart(const Control& control, bool epoch_is_steady, bool newest,
                 std::span<Record> found);
  static void DateAnchor(Record* found);
  static void DateBoot(const Record& anchor, Record* found);
  void DateRecord(const Epoch& before, const Epoch& after, std::optional<uint32_t> next_anchor,
                  bool looks_seldom, Record* found);
  void InferTasks(const Control& first, const Control& now, Records* found);
  std::optional<uint32_t> TaskOfAll(const Control& first, const Control& now,
                                    const Records& found) const;
  void Queue(const Records& found, const Copies& copies);
  void Count(EventLossReason why, uint64_t records);
  void Lose(uint64_t begin, uint64_t end, EventLossReason why);
  void Report(std::string why, const char* field = "", std::string value = "");

  const ScopeReader* reader_;
  const ScopeLayout& layout_;
  const uint32_t index_;
  bool looked_ = false;
  bool epoch_is_known_ = true;
  ScopeCore core_;
  uint64_t start_ = 0;                     // the first sequence number that counts
  uint64_t begun_ = 0;                     // at the latest look
  uint64_t next_ = 0;                      // the first that no look has seen
  std::map<uint64_t, Reference> pending_;  // and what is before them
  Reference reference_;
  std::optional<uint32_t> task_;
  uint64_t returned_ = 0;
  uint64_t lapped_ = 0;
  uint64_t torn_ = 0;
  uint64_t refused_seen_ = 0;
  uint64_t refused_total_ = 0;
  uint64_t unread_ = 0;
  EventList queue_;
  size_t queue_next_ = 0;  // the first of it that was not taken
  std::vector<Corruption> corruptions_;
};

}  // namespace hangscope

#endif
