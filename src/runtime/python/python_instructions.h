// The instructions of a function of CPython 3.11: which variables those use that can still come.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_INSTRUCTIONS_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_INSTRUCTIONS_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace hangscope {

class PythonInstructions {
 public:
  PythonInstructions() = default;
  // As they lie in memory, two bytes a unit, with the interpreter's own notes between them.
  explicit PythonInstructions(std::string_view code);

  // Whether the variable is read by an instruction at `unit` or behind it, or by one that a jump
  // back from there leads to. Without instructions it may be.
  bool MayUseFrom(uint64_t unit, uint32_t variable) const;

 private:
  struct Instruction {
    uint64_t unit = 0;
    uint8_t opcode = 0;
    uint64_t argument = 0;
  };
  std::vector<Instruction> instructions_;
};

}  // namespace hangscope

#endif
