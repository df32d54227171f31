// Finds the scope of a program that `hangscope run` observes, where the user does not say where it
// is: the file that the program or one of its descendants has mapped, or, with an ELF that has a
// scope, the memory of whichever of them runs that, or simulates what does.
#ifndef HANGSCOPE_OBSERVE_SCOPE_FINDER_H
#define HANGSCOPE_OBSERVE_SCOPE_FINDER_H

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/background_queue.h"
#include "base/clock.h"
#include "base/file_system.h"
#include "proc/process_end.h"
#include "scope/scope_view.h"

namespace hangscope {

// One thread calls it; it searches in one of its own.
class ScopeFinder {
 public:
  struct Found {
    ScopeSource source;
    int pid = 0;
    uint32_t cores = 0;
  };

  // `elf`: its target is not used; its ELF may be none.
  ScopeFinder(FileSystem& files, ScopeSource elf);

  // To be called a few times a second until a scope is found. `processes`: all of the program that
  // live. `suspected_since`: monotonic, it looks like a hang since then; 0: it does not. Searches
  // less and less often, and at some time no more but on a new suspicion; takes 1 % of a processor
  // at most.
  void Search(TimeNs now, const std::vector<int>& processes, TimeNs suspected_since);
  // What was found since the last call, while its process lives.
  std::optional<Found> DrainFound();
  // The process of the latest one has ended: the next Search begins anew.
  bool HasEnded();
  // The ELF has a scope, and it may still be found.
  bool IsExpected();
  // Why the processes could not be searched although the ELF has a scope; once.
  std::optional<std::string> DrainWarning();

 private:
  void SearchAll(const std::vector<int>& processes);
  void SearchOne(int pid, bool elf_has_scope);

  FileSystem& files_;
  const ScopeSource elf_;
  int tries_ = 0;
  TimeNs began_ = 0;
  TimeNs next_try_ = 0;
  TimeNs asked_ = 0;  // the latest suspicion that was searched for
  std::unique_ptr<ProcessEnd> process_;
  std::mutex mutex_;  // guards what is below, but the queue
  bool busy_ = false;
  TimeNs spent_ = 0;  // of a processor
  bool elf_has_scope_ = false;
  std::optional<Found> found_;
  std::string warning_;
  bool warned_ = false;
  BackgroundQueue<std::vector<int>> queue_;  // the last: its thread uses the others
};

}  // namespace hangscope

#endif
