// What the tables of a program of Go say of its code: which words of a goroutine's stack, and of
// the program's variables, are pointers that may still be used. Its collector goes by the same. Of
// Go 1.19 on x86-64.
#ifndef HANGSCOPE_RUNTIME_GO_GO_CODE_H
#define HANGSCOPE_RUNTIME_GO_GO_CODE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/go/go_heap.h"
#include "runtime/go/go_layout.h"

namespace hangscope {

// A copy of a stack, from the stack pointer to its end.
struct GoStack {
  uint64_t begin = 0;
  std::string bytes;

  uint64_t end() const { return begin + bytes.size(); }
  std::optional<uint64_t> WordAt(uint64_t address) const;
};

class GoCode {
 public:
  // `module`: the address of runtime.firstmoduledata. A sentence where the program has several, or
  // what is there makes no sense.
  static Result<GoCode> Read(uint64_t module, std::shared_ptr<GoMemory> memory);

  // Where its code lies, all that it reads, and the descriptions of its types.
  struct Extent {
    uint64_t text_begin = 0, text_end = 0;
    uint64_t data_begin = 0, end = 0;
    uint64_t variables_begin = 0;
    uint64_t types_begin = 0, types_end = 0;
  };
  const Extent& extent() const { return extent_; }
  // Of all functions: where they begin with where their heads are, these heads, and their names.
  struct Tables {
    go_layout::Slice places, functions, names;
  };
  Tables tables() const { return {function_table_, functions_, names_}; }
  // Of the function that `pc` is in; nothing: there is none.
  std::optional<uint64_t> FunctionBeginAt(uint64_t pc) const;
  std::optional<uint64_t> FunctionEndAt(uint64_t pc) const;

  // A function that `pc` is in, and where in its source; the path and the line may be missing.
  struct Place {
    std::string function;
    std::string path;
    int line = 0;
  };
  // The innermost first: all but the last were inlined there.
  std::vector<Place> PlacesAt(uint64_t pc) const;

  struct Variable {
    uint64_t address = 0;
    uint64_t pointer = 0;  // its value
  };
  // The program's variables, and their parts, that are pointers, but those in [begin, end).
  bool PointersOfVariables(uint64_t begin, uint64_t end, std::vector<Variable>* variables) const;
  // Where the functions that it is in go on, innermost first; what is not known of their callers
  // counts as one of these by each word that may be an address of code.
  std::vector<uint64_t> FramesOf(uint64_t pc, const GoStack& stack) const;
  // Those on the stack of a goroutine that waits at `pc`. What is not known of a frame, and of all
  // that are further out then, counts as pointers. `deferred`: the first of what it has to do at
  // the end of its functions.
  std::vector<uint64_t> PointersOfStack(uint64_t pc, const GoStack& stack, uint64_t deferred) const;
  // Of these, what its innermost frames have, with which the runtime waits.
  std::vector<uint64_t> PointersOfWait(uint64_t pc, const GoStack& stack) const;
  // All words of it, as of one that runs.
  static std::vector<uint64_t> WordsOf(const GoStack& stack);

 private:
  struct Function {
    uint64_t begin = 0;
    uint64_t at = 0;  // of its _func
    int32_t arguments = 0;
    uint32_t stack_deltas = 0;
    uint32_t pc_tables = 0;
    uint32_t name = 0;
    uint32_t file_table = 0, line_table = 0;
    uint32_t unit = 0;
    uint8_t flags = 0;
    uint8_t tables = 0;
  };
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
  struct Frames {
    std::vector<uint64_t> pointers;
    Ranges objects;  // that the frames have, and to which pointers may lead
  };

  explicit GoCode(std::shared_ptr<GoMemory> memory) : memory_(std::move(memory)) {}
  std::optional<uint64_t> FunctionIndexAt(uint64_t pc) const;
  std::optional<Function> FunctionAt(uint64_t pc) const;
  std::optional<int32_t> ValueAt(uint32_t table, uint64_t begin, uint64_t pc) const;
  // Of the table of that number of the function.
  std::optional<int32_t> ValueIn(const Function& function, size_t which, uint64_t pc) const;
  std::string TextAt(const go_layout::Slice& texts, uint64_t at) const;
  std::string FileOf(const Function& function, int32_t number) const;
  std::optional<int32_t> StackMapAt(const Function& function, uint64_t pc) const;
  std::optional<uint64_t> Table(const Function& function, size_t which) const;
  bool AddMapped(uint64_t maps, int32_t which, uint64_t end, bool from_end, const GoStack& stack,
                 std::vector<uint64_t>* pointers) const;
  bool AddObjects(const Function& function, uint64_t locals_end, uint64_t arguments,
                  Ranges* objects) const;
  // Where its caller goes on, and with what stack pointer; nothing: it is not known, or there is
  // none. `whole` is whether the frame was understood.
  std::optional<std::pair<uint64_t, uint64_t>> AddFrame(uint64_t pc, uint64_t stack_pointer,
                                                        const GoStack& stack, Frames* frames,
                                                        bool* whole) const;
  std::optional<uint64_t> Walk(uint64_t pc, const GoStack& stack, size_t most, Frames* frames,
                               std::vector<uint64_t>* pcs) const;
  bool AddVariables(uint64_t begin, uint64_t bits, uint64_t without_begin, uint64_t without_end,
                    std::vector<Variable>* variables) const;

  std::shared_ptr<GoMemory> memory_;
  Extent extent_;
  uint64_t text_ = 0, function_data_ = 0;
  uint64_t data_ = 0, bss_ = 0, data_bits_ = 0, bss_bits_ = 0;
  go_layout::Slice pc_table_, functions_, function_table_;
  go_layout::Slice names_, units_, files_;
};

}  // namespace hangscope

#endif
