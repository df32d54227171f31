// What the ELF of a target says about its scope: where it is, and the catalog.
#ifndef HANGSCOPE_SCOPE_SCOPE_ELF_H
#define HANGSCOPE_SCOPE_SCOPE_ELF_H

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

constexpr size_t kMostCatalogBytes = 16u << 20;

struct ScopeElf {
  std::optional<uint64_t> symbol;  // address of hangscope_scope; none: it has no such symbol
  std::string catalog;             // bytes of the section; empty: none
  std::string build_id;            // empty: none
  uint64_t first_address = 0;      // the lowest that is loaded
  bool moves = false;              // position-independent: addresses count from where it is loaded

  // In a process of its own, but what was read before and has not changed since. Any thread.
  static Result<ScopeElf> Read(const std::string& path);
};

// By which an ELF is known again: its build id, hexadecimal; where it has none, "fnv1a:" and a
// checksum of the file. Empty: it cannot be read. Any thread.
std::string ProgramId(FileSystem& files, const std::string& elf);

}  // namespace hangscope

#endif
