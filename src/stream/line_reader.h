// Cuts the bytes of a stream into lines.
#ifndef HANGSCOPE_STREAM_LINE_READER_H
#define HANGSCOPE_STREAM_LINE_READER_H

#include <cstdint>
#include <string>
#include <string_view>

namespace hangscope {

// Not thread-safe. Feed it a stream's bytes in order, cut anywhere.
class LineReader {
 public:
  // A longer line is nobody's trace or log line; its text is not kept.
  static constexpr size_t kLongestLine = 64 * 1024;

  virtual ~LineReader() = default;
  // `offset` is the stream offset of bytes[0]. The first line is taken as whole
  // only if `offset` is 0 or follows what was fed before.
  void Feed(std::string_view bytes, uint64_t offset);

 protected:
  LineReader() = default;
  // `line` has no newline and begins at stream offset `offset`.
  virtual void HandleLine(std::string_view line, uint64_t offset) = 0;
  virtual void HandleOverlongLine(uint64_t offset) = 0;
  // Half a line at the end is dropped.
  void DropPartial() { partial_.clear(); }

 private:
  void Take(std::string_view line, uint64_t offset);

  std::string partial_;
  uint64_t partial_offset_ = 0;
  uint64_t next_offset_ = 0;
  bool skip_to_newline_ = false;
};

}  // namespace hangscope

#endif
