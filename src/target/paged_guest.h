// A guest's RAM of which its simulator has each page in a block of its own, allocated when the
// guest first touches it, as Spike does: a std::map<uint64_t, char*> from the page's number in the
// RAM.
//
// A node of that map as libstdc++ lays it out on machines of 64 bits (bits/stl_tree.h):
//
//    0  colour | 8  parent | 16  left | 24  right | 32  key: number of the page | 40  value: its bytes
//
// The tree's header is a node without key and value: its parent is the root, whose parent it is.
#ifndef HANGSCOPE_TARGET_PAGED_GUEST_H
#define HANGSCOPE_TARGET_PAGED_GUEST_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "proc/process_memory.h"
#include "target/target.h"
#include "target/target_spec.h"

namespace hangscope {

// The map that has the entry at `entry`, a page's number and where its bytes are; nothing: it is no
// such entry.
std::optional<uint64_t> HeaderOfMap(const ProcessMemory& memory, uint64_t entry);

// Its addresses are the guest's. One thread.
class PagedGuest final : public Target {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  PagedGuest(int pid, const PagedRam& ram, uint64_t scope);
  // Fails where there is no such process, or it may not be looked into.
  static Result<std::unique_ptr<Target>> Open(int pid, const PagedRam& ram, uint64_t scope);

  const std::string& name() const override { return name_; }
  // A page that the guest has not touched yet cannot be read.
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override;
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> scope_address() const override { return scope_; }
  std::optional<uint64_t> AddressOf(uint64_t elf_address) const override { return elf_address; }
  std::string guest_spec() const override { return GuestSpec(pid_, scope_, ram_); }

 private:
  Status ForEachPiece(uint64_t address, uint64_t bytes,
                      const std::function<Status(uint64_t at, size_t from, size_t count)>& piece);
  std::optional<uint64_t> PageOf(uint64_t number);
  std::optional<uint64_t> LookUp(uint64_t number) const;

  const int pid_;
  const std::string name_;
  const ProcessMemory memory_;
  const PagedRam ram_;
  const uint64_t scope_;
  const std::vector<MemoryRange> ranges_;
  std::unordered_map<uint64_t, uint64_t> pages_;  // that are known: where the simulator has them
};

}  // namespace hangscope

#endif
