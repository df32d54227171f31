// The frames of JavaScript on the stack of a thread: functions, files and lines, from V8's own
// objects, which are only read.
//
// A frame of JavaScript begins where the frame pointer points; below that lie its context and its
// function:
//
//     fp + 8   the address it returns to
//     fp       the caller's frame pointer
//     fp - 8   its context; or, of a frame of V8's own, which kind that is, as a small number
//     fp - 16  its function
//     fp - 32  of an interpreted one, its bytecode;  fp - 40  where it is in that
//
// as V8's frame-constants.h has it, with the distances from V8Layout.
#ifndef HANGSCOPE_RUNTIME_V8_V8_READER_H
#define HANGSCOPE_RUNTIME_V8_V8_READER_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/process.h"
#include "runtime/runtime_memory.h"
#include "runtime/v8/v8_layout.h"

namespace hangscope {

struct ScriptFrame {
  std::string function;  // "waitForReady"; empty: it has no name
  std::string file;      // "/srv/app.js", "node:internal/timers"; empty: not known
  int line = 0;          // where it is; 0: not known
  int first_line = 0;    // where its function begins; 0: not known
  bool operator==(const ScriptFrame&) const = default;
};

// Where a stack is in code of V8.
struct ScriptAnchor {
  uint64_t pc = 0;
  bool calls = false;  // what is at `pc` calls what is further in
  uint64_t stack_pointer = 0;
  std::optional<uint64_t> frame_pointer;
};

// One thread.
class V8Reader {
 public:
  // Fails where V8 does not say how its objects are laid out; a sentence.
  static Result<std::unique_ptr<V8Reader>> Open(const FindV8Symbol& find, ReadMemory read);

  // From `from` outward, to where native code called JavaScript; innermost first, at most `most`.
  // The stack ends at `end`. `is_interpreter` knows the addresses of V8's interpreter.
  std::vector<ScriptFrame> FramesFrom(const ScriptAnchor& from, uint64_t end, size_t most,
                                      const std::function<bool(uint64_t pc)>& is_interpreter);
  static StackFrame Name(const ScriptFrame& frame);

 private:
  // Of a script's source.
  struct ScriptLines {
    size_t length = 0;
    std::vector<uint32_t> ends;  // positions of the ends of lines
  };

  V8Reader(const V8Layout& layout, ReadMemory read) : layout_(layout), memory_(std::move(read)) {}
  uint64_t Slot(uint64_t fp, int64_t offset) const;
  uint64_t Field(uint64_t object, int64_t offset) const;
  std::optional<int64_t> Type(uint64_t object) const;
  bool IsOfType(uint64_t object, int64_t type) const { return Type(object) == type; }
  int32_t LengthOf(uint64_t string) const;
  size_t UnitOf(int64_t type) const;
  std::optional<std::string> Characters(uint64_t string, int64_t type, size_t count) const;
  std::string Text(uint64_t string, size_t depth = 0) const;
  std::optional<uint64_t> FindExit(uint64_t from, uint64_t end) const;
  std::optional<ScriptFrame> FrameAt(uint64_t fp, bool is_interpreted);
  std::string FunctionName(uint64_t shared) const;
  std::optional<uint64_t> BehindLocals(uint64_t scope) const;
  std::optional<uint32_t> BeginOf(uint64_t shared, const ScriptLines& lines) const;
  std::optional<uint32_t> PositionIn(uint64_t fp) const;
  const ScriptLines& LinesOf(uint64_t script);
  static int LineAt(const ScriptLines& lines, uint32_t position);

  const V8Layout layout_;
  RuntimeMemory memory_;
  std::map<uint64_t, ScriptLines> lines_;  // by script
};

}  // namespace hangscope

#endif
