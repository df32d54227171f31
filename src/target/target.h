// How the host reaches a target's memory: one interface for live processes, files, core dumps,
// debug servers and text. No target is ever stopped by it, except where the user said that it may
// be.
#ifndef HANGSCOPE_TARGET_TARGET_H
#define HANGSCOPE_TARGET_TARGET_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "code/core_registers.h"

namespace hangscope {

struct MemoryRange {
  uint64_t begin = 0;
  uint64_t size_bytes = 0;

  bool Contains(uint64_t address, uint64_t bytes) const {
    return address >= begin && address - begin <= size_bytes &&
           bytes <= size_bytes - (address - begin);
  }
};

enum class Life {
  kLive,     // may write while it is read
  kDead,     // nobody writes any more
  kUnknown,  // a file: perhaps somebody has it mapped
};

// One thread.
class Target {
 public:
  virtual ~Target() = default;
  // As messages call it: "file 'ram.bin'".
  virtual const std::string& name() const = 0;
  // All of it or a failure.
  virtual Status Read(uint64_t address, std::span<char> bytes) = 0;
  virtual Status Write(uint64_t address, std::string_view bytes) = 0;
  virtual Life life() = 0;
  // It stands still only as long as this is here: what it was before it may be again.
  virtual bool is_held() const { return false; }
  // What can be read, in ascending order.
  virtual const std::vector<MemoryRange>& ranges() const = 0;
  // The first address from `address` on that may hold anything but zeros: holes of a file cost its
  // writer nothing, and are not searched.
  virtual uint64_t NextData(uint64_t address) { return address; }
  // Where the scope begins, if the target itself tells.
  virtual std::optional<uint64_t> scope_address() const { return std::nullopt; }
  // What an ELF's address is here; nothing where the target has no addresses but a file's offsets.
  virtual std::optional<uint64_t> AddressOf(uint64_t elf_address) const {
    (void)elf_address;
    return std::nullopt;
  }
  // False: these bytes did not arrive (a damaged dump); what Read gives for them means nothing.
  virtual bool IsKnown(uint64_t address, uint64_t size_bytes) const {
    (void)address;
    (void)size_bytes;
    return true;
  }
  // Of hart `hart` of a target that stands still; `xlen`: 32 or 64. Nothing: they are not to be
  // had, or it is not known whose are whose.
  virtual std::optional<CoreRegisters> RegistersOf(uint32_t hart, int xlen) {
    (void)hart, (void)xlen;
    return std::nullopt;
  }
  // One sentence on what is wrong with the whole, for people; empty: nothing.
  virtual std::string warning() const { return {}; }
  // The program that runs there, where that is known without being told; else empty.
  virtual std::string elf_path() const { return {}; }

  // A process that does not run the ELF itself: it may simulate what does.
  virtual bool may_simulate() const { return false; }
  // Its scope is a guest's, in the memory of the simulator.
  bool is_guest() const { return !guest_spec().empty(); }
  // The text that means it again (target/target_spec.h); empty: its scope is none of a guest.
  virtual std::string guest_spec() const { return {}; }

  // Whether there are such bytes; fails with the sentence that all targets share.
  Status CheckRange(uint64_t address, uint64_t size_bytes) const;
};

struct TargetOptions {
  bool intrusive = false;          // it may be stopped for a moment
  std::optional<uint64_t> symbol;  // of the scope in the ELF, for pid:N
  std::string elf_path;            // where that is from
  uint64_t elf_first_address = 0;  // its lowest loaded address
  bool elf_moves = false;          // position-independent
};

// `text`: as ParseTargetSpec takes it.
Result<std::unique_ptr<Target>> OpenTarget(const std::string& text, const TargetOptions& options);

}  // namespace hangscope

#endif
