// The instructions of a function of CPython 3.11: which variables those use that can still come.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_INSTRUCTIONS_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_INSTRUCTIONS_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace hangscope {

// What an instruction does with a name, by its index among those of globals and attributes, or of
// variables.
struct PythonNameUse {
  enum class Kind {
    kGlobal,     // loads it
    kCalled,     // likewise, to call it
    kAttribute,  // loads it from an object
    kMethod,     // likewise, to call it
    kVariable,   // loads it, for an attribute of it
    kUnknown,    // something of which no name tells what it does
  };
  Kind kind = Kind::kUnknown;
  uint64_t name = 0;
  // Of an attribute or a method: the use before it has loaded the object; else something else has.
  bool of_last = false;
};

class PythonInstructions {
 public:
  PythonInstructions() = default;
  // As they lie in memory, two bytes a unit, with the interpreter's own notes between them.
  explicit PythonInstructions(std::string_view code);

  // Whether the variable is read by an instruction at `unit` or behind it, or by one that a jump
  // back from there leads to. Without instructions it may be.
  bool MayUseFrom(uint64_t unit, uint32_t variable) const;
  // Of all that can come from `unit` on, in their order. What is called otherwise than by its name,
  // is imported or waits to be resumed is unknown, and so is code without instructions.
  std::vector<PythonNameUse> NamesFrom(uint64_t unit) const;
  // Whether any of these returns.
  bool MayReturnFrom(uint64_t unit) const;

 private:
  struct Instruction {
    uint64_t unit = 0;
    uint8_t opcode = 0;
    uint64_t argument = 0;
  };
  uint64_t BeginFrom(uint64_t unit) const;

  std::vector<Instruction> instructions_;
};

}  // namespace hangscope

#endif
