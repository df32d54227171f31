// Which lines of a stream match a set of regular expressions, block by block.
//
// A block is searched as a whole, in time linear in its length and, where nothing
// matches, in one pass for all expressions; lines are looked for only around a hit.
#ifndef HANGSCOPE_STREAM_LINE_MATCHER_H
#define HANGSCOPE_STREAM_LINE_MATCHER_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hangscope {

// The expressions, compiled; any number of streams share them. Any thread.
class LinePatterns {
 public:
  // Fails, naming the option, where an expression is none.
  static Result<std::shared_ptr<const LinePatterns>> Compile(
      std::string_view option, const std::vector<std::string>& patterns);
  ~LinePatterns();

  // Calls `hit(pattern, line begin, line end)` for each pattern and line of `text`
  // that match, line by line. `text` ends with a newline, or with its last line.
  void Search(std::string_view text, const std::function<void(size_t, size_t, size_t)>& hit) const;

 private:
  struct Library;
  LinePatterns();
  std::unique_ptr<Library> library_;
};

struct LineHit {
  size_t pattern = 0;
  uint64_t begin_offset = 0;  // of the line in the stream
  uint64_t end_offset = 0;    // behind its newline
  std::string line;           // without it
};

// One stream. One thread.
class LineMatcher {
 public:
  using Hit = std::function<void(const LineHit&)>;

  LineMatcher(std::shared_ptr<const LinePatterns> patterns, Hit hit)
      : patterns_(std::move(patterns)), hit_(std::move(hit)) {}

  // The next bytes. Lines that are still open wait for their end.
  void Add(std::string_view bytes, uint64_t offset);
  // Nothing more came for a while: looks at the open line as it is. Whatever of
  // it matches now does not match again when it ends.
  void MatchOpenLine();
  // What comes next does not follow on what came before.
  void Cut();

 private:
  void Search(std::string_view text, uint64_t offset);
  void Keep(std::string_view open, uint64_t offset);

  const std::shared_ptr<const LinePatterns> patterns_;
  const Hit hit_;
  std::string open_;  // the line without an end
  uint64_t open_offset_ = 0;
  std::vector<size_t> told_;  // patterns that matched it already
  uint64_t told_offset_ = 0;  // ... where it began
};

}  // namespace hangscope

#endif
