// Reads what cores say of themselves: mailboxes, claims, faults, debug rings (abi/watch.h).
//
// A poll is one read of all mailboxes and, where an OS has tasks, one of all their records and
// one of each core's ring: which task runs, how many events there were. Nothing that comes from the
// target is an index or a length before it is checked; a word that cannot be right is reported,
// with core, field and value, and nothing is concluded from its mailbox.
#ifndef HANGSCOPE_SCOPE_WATCH_READER_H
#define HANGSCOPE_SCOPE_WATCH_READER_H

#include <span>
#include <string>
#include <vector>

#include "model/watch.h"
#include "scope/scope_reader.h"

namespace hangscope {

struct WatchLayout {
  uint64_t mailboxes_at = 0;  // address in the target
  uint32_t mailbox_stride = 0;
  uint32_t features = 0;  // enum hangscope_watch_feature
  uint32_t node_count = 0;
  uint64_t nodes_at = 0;
  uint32_t node_stride = 0;
  uint64_t details_at = 0;  // 0: none
  uint32_t detail_stride = 0;
  uint64_t claims_at = 0;  // 0: none
  uint32_t claim_stride = 0;
  uint32_t hold_slots = 0;
  uint32_t provide_slots = 0;
  uint32_t debug_slots = 0;
  uint64_t frames_at = 0;  // 0: none
  uint32_t frame_stride = 0;
  uint64_t program_at = 0;  // where the ELF's address 0 lies; 0: where it says
  uint64_t watch_at = 0;    // address of struct hangscope_watch
};

// The registers that a core or task left where its wait began.
struct WaitFrame {
  uint64_t pc = 0;
  uint64_t ra = 0;
  uint64_t sp = 0;
  uint64_t fp = 0;
};

// One thread.
class WatchReader {
 public:
  // Fails with kNotFound where the program was built without any of it, with kCorrupt where the
  // block contradicts itself. `scope` outlives this.
  static Result<WatchReader> Open(const ScopeReader& scope);

  const WatchLayout& layout() const { return layout_; }
  const ScopeReader& scope() const { return *scope_; }

  // Replaces `sample`, whose memory is used again. A task record with an odd sequence is in the
  // middle of a change: only its task's number is known.
  Status Poll(ScopeSample* sample);
  // Whether the mailboxes are still where they were: a guard word of one at least is right. Reads
  // them.
  Result<bool> IsThere();
  // Bytes read so far, and in how many reads: what polling costs the target's memory.
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t reads() const { return reads_; }

  // What changes rarely; each is a read of its own.
  Result<CoreDetail> ReadDetail(uint32_t core, std::vector<Corruption>* corruptions);
  Result<std::vector<NodeSample>> ReadNodes(std::vector<Corruption>* corruptions);
  Result<std::vector<ClaimRow>> ReadClaims();
  // Of core or, behind them, task record `row`. It is that of a wait which is the same before and
  // after (IsSameWait). kNotFound: the program leaves none.
  Result<WaitFrame> ReadFrame(uint32_t row);
  // Whether the core still is in the wait of this sequence.
  bool IsSameWait(uint32_t core, uint32_t wait_sequence);
  // Of a node, the newest first; only what was written.
  Result<std::vector<DebugValue>> ReadDebugRing(uint32_t node, const ScopeSample& sample);
  Result<uint32_t> ReadSwitches();
  // Records begun in the core's ring.
  Result<uint64_t> ReadBegun(uint32_t core);

 private:
  explicit WatchReader(const ScopeReader& scope) : scope_(&scope) {}
  Status ReadLayout();
  Status ReadInto(uint64_t address, std::span<char> bytes);
  Status PollCores(ScopeSample* sample);
  Status PollTasks(ScopeSample* sample);
  void SampleAgain(uint32_t core, const char* first, ScopeSample* sample);
  void ReadTask(uint32_t index, ScopeSample* sample);
  uint32_t StackBytes(uint32_t core);
  void FindFirstFaults(std::vector<NodeSample>* nodes);

  const ScopeReader* scope_;
  WatchLayout layout_;
  uint64_t bytes_read_ = 0;
  uint64_t reads_ = 0;
  std::string mailboxes_;  // of the latest poll, as they came
  std::string tasks_;
  std::vector<bool> suspect_;          // by core: corrupt in the latest poll
  std::vector<uint32_t> stack_bytes_;  // by core: of its stack; 0: not looked at yet
};

}  // namespace hangscope

#endif
