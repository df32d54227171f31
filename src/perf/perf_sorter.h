// A perf.data's records in the order of time, whatever order the file has them in: ring after ring,
// as hangscope writes them; round after round, as perf does; the newest first, as rings that are
// written backwards are.
//
// The file is cut into blocks of which only the times and places are kept. A block is read, and its
// records sorted, when the first of them comes; so only those blocks are in memory whose times lie
// across one another.
#ifndef HANGSCOPE_PERF_PERF_SORTER_H
#define HANGSCOPE_PERF_PERF_SORTER_H

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/merge_heap.h"
#include "perf/perf_file.h"

namespace hangscope {

struct PerfSorterOptions {
  uint64_t block_bytes = 128u << 10;  // of a block, about
  uint64_t most_bytes = 256u << 20;   // of all blocks that are open at once
};

// One thread.
class PerfSorter {
 public:
  // `file` outlives it.
  explicit PerfSorter(PerfFile& file, PerfSorterOptions options = PerfSorterOptions());
  ~PerfSorter();
  PerfSorter(const PerfSorter&) = delete;
  PerfSorter& operator=(const PerfSorter&) = delete;

  // Every record, in the order of the file, as PerfFile::ForEachPlaced gives it; those without a
  // time are left out. What was compressed goes into a temporary file. Fails where that cannot be
  // written.
  Status Add(const PerfRecord& record, const PerfRecordPlace& place, std::string_view bytes);
  // Nothing is added any more. The oldest that was not returned yet; false: that was all. Its views
  // are valid until the next call. Records of one time come in the order of the file.
  Result<bool> Next(PerfRecord* record);

  uint64_t added() const { return added_; }
  uint64_t returned() const { return returned_; }
  // Records that came later than their time says: too many blocks lay across one another.
  uint64_t late() const { return late_; }

 private:
  // A piece of the file, or of what was inflated of it.
  struct Block {
    uint64_t begin = 0;
    uint64_t end = 0;
    TimeNs first = 0;
    TimeNs last = 0;
    bool spilled = false;
  };
  struct Entry {
    TimeNs time = 0;
    uint32_t at = 0;  // of the block's bytes
    uint32_t bytes = 0;
  };
  struct OpenBlock {
    std::string bytes;
    std::vector<Entry> entries;  // by time
    size_t next = 0;
  };
  struct Head {  // of an open block: its next record
    TimeNs time = 0;
    size_t block = 0;

    bool operator>(const Head& other) const {
      return time != other.time ? time > other.time : block > other.block;
    }
  };

  Status Spill(std::string_view bytes, uint64_t* at);
  Result<std::string> BytesOf(const Block& block);
  void Begin();
  Status OpenUntil(TimeNs time);
  Status OpenOne(size_t number);
  std::string_view Take(size_t number);

  PerfFile& file_;
  const PerfSorterOptions options_;
  PerfRecordParser parser_;
  // while records are added: in the order of the file; then by their first time
  std::vector<Block> blocks_;
  std::vector<size_t> order_;  // of blocks_, by first time
  std::vector<std::optional<OpenBlock>> open_;
  size_t next_block_ = 0;  // of order_
  uint64_t open_bytes_ = 0;
  MergeHeap<Head> heads_;
  std::optional<size_t> used_up_;  // a block whose last record Next returned
  TimeNs newest_ = 0;              // of those
  uint64_t file_end_ = 0;          // of the record added last that is in the file itself
  bool broken_ = true;             // something else lies behind the last that was wanted
  std::FILE* spill_ = nullptr;
  uint64_t spilled_ = 0;
  bool sorted_ = false;
  uint64_t added_ = 0;
  uint64_t returned_ = 0;
  uint64_t late_ = 0;
};

}  // namespace hangscope

#endif
