// A ring or a snapshot's stream as text: oldest first, whole lines.
#ifndef HANGSCOPE_RING_HISTORY_H
#define HANGSCOPE_RING_HISTORY_H

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "ring/block_reader.h"

namespace hangscope {

// A stream that can be printed.
struct HistorySource {
  std::string stream;  // "stdout"
  std::string prefix;  // for BlockReader
};

// What `target` may mean: a ring's prefix, a run's prefix (one ring a stream), a
// file of either (its index, a segment), or a snapshot folder. Empty: none of
// these.
std::vector<HistorySource> FindHistory(FileSystem& files, const std::string& target);

// The last `lines` lines of the ring `prefix`, or what fits into `most_bytes` of them: what no loss
// parts from its end, without half a line before whole ones. Empty: there is none to be had.
std::string LastLines(FileSystem& files, const std::string& prefix, size_t lines,
                      uint64_t most_bytes);

// Prints what the reader holds from its position on. Half a line at the start of
// the window and around a loss is left out; one at the end is printed only when
// the stream has ended, as it belongs to the window then.
class HistoryPrinter {
 public:
  using Write = std::function<bool(std::string_view)>;  // false: stop
  using AnnounceLoss = std::function<void(const Loss&)>;

  HistoryPrinter(BlockReader* reader, Write write, AnnounceLoss tell_loss);

  // False once `write` said stop.
  bool PrintAvailable();
  // The end of a stream that no writer adds to.
  bool PrintRest();

 private:
  bool Emit(std::string_view bytes);

  BlockReader* reader_;
  Write write_;
  AnnounceLoss tell_loss_;
  std::string partial_;
  bool cut_;  // the line at the position began before it
};

}  // namespace hangscope

#endif
