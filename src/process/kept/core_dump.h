// The core dump of a process, as the kernel or gdb's gcore wrote it.
//
//   ELF header        e_type ET_CORE, of this machine
//   program headers   PT_NOTE  a list of notes
//                     PT_LOAD  a mapping: p_vaddr, p_memsz, p_flags; the first p_filesz bytes of
//                              it lie at p_offset, the rest is in the file that was mapped, or zero
//   notes             u32 bytes of the name, u32 bytes of the description, u32 type, name,
//                     description; each padded to 4 bytes
//     NT_PRSTATUS     struct elf_prstatus (sys/procfs.h): a thread's number and registers; once a
//                     thread, the one that got the signal first
//     NT_PRPSINFO     struct elf_prpsinfo: name, command, parent
//     NT_SIGINFO      siginfo_t: which signal
//     NT_FILE         u64 count, u64 bytes of a page; then for each mapping of a file u64 begin,
//                     u64 end, u64 offset in pages; then their paths, each ended by a zero
//
// elf(5), core(5); Linux, fs/binfmt_elf.c.
#ifndef HANGSCOPE_PROCESS_KEPT_CORE_DUMP_H
#define HANGSCOPE_PROCESS_KEPT_CORE_DUMP_H

#include <string>

#include "base/status.h"
#include "process/kept/kept_process.h"

namespace hangscope {

struct CoreDump {
  KeptProcess process;  // its functions own what they read
  int signal = 0;       // that ended it; 0: none, a debugger wrote it
  int signalled = 0;    // the thread that got it
};

// Fails with a sentence where it cannot be read, or is of another machine. Whatever is in it, no
// more is read than it has.
Result<CoreDump> OpenCoreDump(const std::string& path);

}  // namespace hangscope

#endif
