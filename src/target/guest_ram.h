// Finds the scope of a guest in the memory of the simulator that runs it: the guest's RAM is one of
// the simulator's largest mappings, and where in it the scope stands the program's ELF tells.
//
// Reads only, and only pages that are there: to read a page that nobody has touched would make it.
#ifndef HANGSCOPE_TARGET_GUEST_RAM_H
#define HANGSCOPE_TARGET_GUEST_RAM_H

#include <cstdint>
#include <functional>
#include <optional>

#include "base/file_system.h"
#include "base/status.h"
#include "target/paged_guest.h"

namespace hangscope {

struct GuestSearch {
  uint64_t symbol = 0;         // the scope's address, by the ELF
  uint64_t first_address = 0;  // the lowest that the ELF loads
  // Whether the scope may be anywhere; else only where a page of the guest's begins with one of the
  // simulator's, or behind the header of a block of malloc's.
  bool everywhere = false;
};

// Says whether a scope begins there. The magic does.
using IsScopeAt = std::function<bool(uint64_t address)>;

// Fails with EPERM where the memory of a process may not be read.
Status CheckMayRead(int pid);

// The first address that `is_scope` accepts. Nothing: there is none in what could be searched,
// which costs half a second of a processor at most, and a tenth for FindPagedGuestRam, whatever the
// size of the process. Fails where it may not be looked into.
Result<std::optional<uint64_t>> FindInGuestRam(FileSystem& files, int pid,
                                               const GuestSearch& search,
                                               const IsScopeAt& is_scope);

// Likewise of a simulator that has the guest's RAM in single pages: the first map of pages that
// `is_ram` accepts, of those in which the page of the scope begins with the magic.
Result<std::optional<PagedRam>> FindPagedGuestRam(
    FileSystem& files, int pid, const GuestSearch& search,
    const std::function<bool(const PagedRam& ram)>& is_ram);

}  // namespace hangscope

#endif
