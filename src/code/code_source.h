// Where the code of the observed program can be read: an ELF, or the trace.
#ifndef HANGSCOPE_CODE_CODE_SOURCE_H
#define HANGSCOPE_CODE_CODE_SOURCE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "code/core_registers.h"

namespace hangscope {

struct Location {
  std::string function;         // empty: unknown
  uint64_t function_begin = 0;  // its first address; 0: unknown
  std::string file;             // as the compiler recorded it, folder stripped; empty: unknown
  uint32_t line = 0;
  // of the file with its folder, on the machine that compiled it; empty: unknown
  std::string path = {};

  std::string source() const {
    return file.empty() ? std::string() : file + ":" + std::to_string(line);
  }
};

// One thread at a time.
class CodeSource {
 public:
  virtual ~CodeSource() = default;
  // The 16 or 32 instruction bits at `pc`; nothing where there is no code.
  virtual std::optional<uint32_t> InsnAt(uint64_t pc) = 0;
  virtual Location Locate(uint64_t pc) = 0;
  // Whether `address` is memory of the program, as opposed to a device.
  virtual bool InMemory(uint64_t address) = 0;
  // "queue_lock", "locks+8": the variable at `address`; empty: none is known there.
  virtual std::string Variable(uint64_t address) {
    (void)address;
    return {};
  }
  // Of a core with these registers: its pc, then where each of its callers made the call, the
  // innermost first, as far as the call frame information and the stack tell. `stack`: the bytes
  // from the stack pointer on. As the ELF counts addresses. Empty: not known.
  virtual std::vector<uint64_t> Unwind(const CoreRegisters& registers, std::string_view stack) {
    (void)registers, (void)stack;
    return {};
  }
  // Whether the program's file is another by now than the one that is read here.
  virtual bool HasChangedOnDisk() const { return false; }
  // Why nothing is known any more; ok: what can be known is.
  virtual Status status() const { return {}; }
  // Register width in bits: 32 or 64.
  virtual int xlen() const = 0;
};

}  // namespace hangscope

#endif
