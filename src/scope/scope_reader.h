// Finds the scope in a target's memory and reads what its header says (abi/scope.h).
//
// Nothing that comes from a target is an index or a length before it is checked here: who has a
// ScopeReader may rely on every offset of its layout. What cannot be right is refused in one
// sentence where the rest depends on it, and reported as a corruption where it does not.
#ifndef HANGSCOPE_SCOPE_SCOPE_READER_H
#define HANGSCOPE_SCOPE_SCOPE_READER_H

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "model/scope.h"
#include "target/target.h"

namespace hangscope {

// The header, in this machine's byte order; checked.
struct ScopeLayout {
  uint64_t address = 0;  // of the scope in the target
  ByteOrder order = ByteOrder::kLittle;
  uint16_t major = 0;
  uint16_t minor = 0;
  uint32_t word_bytes = 0;
  uint32_t record_bytes = 0;
  uint32_t scope_bytes = 0;
  uint32_t features = 0;
  uint32_t core_count = 0;
  uint32_t ring_capacity = 0;
  uint32_t rings_at = 0;
  uint32_t ring_stride = 0;
  uint32_t task_count = 0;
  uint32_t tasks_at = 0;
  uint32_t task_stride = 0;
  uint32_t clock_kind = 0;
  uint64_t clock_hz = 0;
  uint32_t boots = 0;
  uint32_t pid = 0;
  std::string build_id;  // 20 bytes; empty: not known
  uint64_t sync_time = 0;
  uint64_t sync_ns = 0;
  uint64_t last_time = 0;
  uint64_t last_ns = 0;
  uint32_t lost_threads = 0;
  uint32_t lost_tasks = 0;  // that found no task record
  uint32_t names_at = 0;    // 0: none
  uint32_t name_count = 0;
  uint32_t unknown_settings = 0;  // words of $HANGSCOPE_FEATURES that mean nothing

  uint32_t parameters() const { return record_bytes / 4 - 2; }
  uint64_t RingAddress(uint32_t core) const {
    return address + rings_at + uint64_t{core} * ring_stride;
  }
  // Whether times of different cores can be compared.
  bool shared_clock() const;
  // Nanoseconds of a time; nothing where no frequency is known.
  std::optional<int64_t> Nanoseconds(uint64_t time) const;
};

// A task record. With neither `wait` nor `wrong` nobody uses it.
struct TaskRecord {
  std::optional<TaskWait> wait = {};
  std::optional<Corruption> wrong = {};  // what cannot be right in it
  bool is_changing = false;              // all the time; then that is what is wrong
};

// What the target gave a name while it ran: a task, a queue.
struct GivenName {
  uint32_t kind = 0;  // as in the catalog (abi/catalog.h)
  uint32_t id = 0;
  std::string text;      // as it came
  bool is_gone = false;  // what it names
};

struct GivenNames {
  std::vector<GivenName> names = {};
  uint32_t changes = 0;  // the same in another reading: so are the names
  uint32_t lost = 0;     // that found no place
};

class ScopeReader {
 public:
  // `symbol`: the scope's address in the target, from its ELF. Without it the target may know, or
  // its memory is searched. The target outlives the reader.
  static Result<ScopeReader> Open(Target& target, std::optional<uint64_t> symbol);

  const ScopeLayout& layout() const { return layout_; }
  Target& target() const { return *target_; }
  const std::vector<Corruption>& corruptions() const { return corruptions_; }

  // The whole block as it is in memory.
  Result<std::string> ReadImage() const;
  // Whether the process says that it ends by itself, now. What is not 0 or 1 is no.
  bool ReadExiting() const;
  // kCorrupt where they never come to rest.
  Result<GivenNames> ReadNames() const;
  // Tasks that have a record in use. What is wrong with others is added to `corruptions`.
  Result<std::vector<TaskWait>> ReadTasks(std::vector<Corruption>* corruptions) const;
  // Task record `index`, below task_count.
  Result<TaskRecord> ReadTask(uint32_t index) const;
  // The bytes of a record in use that nobody changes.
  TaskRecord DecodeTask(uint32_t index, const char* bytes) const;

 private:
  explicit ScopeReader(Target& target) : target_(&target) {}
  static Result<uint64_t> Find(Target& target);
  Status ReadHeader(uint64_t address);
  Status CheckVersion(const char* header) const;
  Status CheckSizes() const;
  void ReadLastClocks();
  void CheckRest();
  std::string Where(uint64_t address) const;

  Target* target_;
  ScopeLayout layout_;
  std::vector<Corruption> corruptions_;
};

// Whether a header's check is that of its words. `header`: all of its bytes.
bool HeaderChecks(const char* header, ByteOrder order);
// The first word that is another one in `now` than in `before`, headers of which only the second is
// sound.
Corruption WrongHeaderWord(const char* before, const char* now, ByteOrder order);

// How many records were begun in a ring, by the first 8 bytes of its control.
uint64_t RecordsBegun(const char* ring, const ScopeLayout& layout);

// `time` in full width: the one nearest to the beginning of quarter-wrap `epoch` with these low
// bits. *ambiguous is set where there is none.
uint64_t TimeFromEpoch(uint32_t epoch, uint32_t low, bool* ambiguous);

}  // namespace hangscope

#endif
