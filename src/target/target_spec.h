// What the name of a target means: pid:4711, pid:4711@0x7f0000001000,
// pid:4711@0x80003000/0x80000000/0x55d000001038, file:ram.bin@0x1000,
// core:FILE, gdb:localhost:1234, exec:./jtag_helper --port 3, or the path of a file. The one place
// that knows these forms.
#ifndef HANGSCOPE_TARGET_TARGET_SPEC_H
#define HANGSCOPE_TARGET_TARGET_SPEC_H

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

// A guest's RAM of which its simulator has the pages by themselves (target/paged_guest.h).
struct PagedRam {
  uint64_t base = 0;    // of the RAM, as the guest counts addresses
  uint64_t header = 0;  // of the map of pages, in the simulator's memory
};

struct TargetSpec {
  enum class Kind { kFile, kProcess, kCore, kServer, kHelper };

  Kind kind = Kind::kFile;
  // The path of a file or a core dump, the address of a debug server, the command of a helper.
  std::string where;
  // Where the scope begins: in a file; of a simulator's guest, in the simulator's memory, or, where
  // that has it in pages, in the guest's.
  std::optional<uint64_t> offset;
  std::optional<PagedRam> pages;
  int pid = 0;  // of a process
  // As people call it: "process 4711"; of a file what stands behind file: with the offset; else
  // the whole text.
  std::string name;
  Status status;  // kUsage: pid, offset or command makes no sense
};

// A file whose name has an @ is found by its name.
TargetSpec ParseTargetSpec(FileSystem& files, const std::string& text);

// The texts that mean a process, or a file whatever its name looks like.
std::string ProcessSpec(int pid);
std::string GuestSpec(int pid, uint64_t address);
std::string GuestSpec(int pid, uint64_t address, const PagedRam& pages);
std::string FileSpec(const std::string& path);
// `word`; the process of that number where it is one, and no file has that name.
std::string SpecOfWord(FileSystem& files, const std::string& word);

// Where the scope of a program is that hangscope observes.
struct ScopePlace {
  bool is_own = false;       // in the program's own memory, or the file that it made for it
  std::string target;        // else: as for ParseTargetSpec; empty: nowhere
  bool is_searched = false;  // nobody says where: in the program and its descendants

  bool none() const { return !is_own && target.empty(); }
  std::string TargetOf(int pid) const { return is_own ? ProcessSpec(pid) : target; }
};
// pid and pid: are the program's own, none is nowhere; what is empty is searched for.
ScopePlace ParseScopePlace(const std::string& text);

}  // namespace hangscope

#endif
