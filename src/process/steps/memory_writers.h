// Programs that write to the memory of other processes.
#ifndef HANGSCOPE_PROCESS_STEPS_MEMORY_WRITERS_H
#define HANGSCOPE_PROCESS_STEPS_MEMORY_WRITERS_H

#include <map>
#include <string>

namespace hangscope {

// Whether the file of a program or a library calls what writes to others' memory, as its symbols
// tell: process_vm_writev or ptrace, of the C library or of its own. False where they do not tell.
bool CallsWhatWritesElsewhere(const std::string& path);

// The same, of files that were asked about before, too.
class WritingPrograms {
 public:
  // `path` is where this process can open the file; `identity` is the same for the same file.
  bool Has(const std::string& path, const std::string& identity);

 private:
  std::map<std::string, bool> known_;
};

}  // namespace hangscope

#endif
