// What a thread was at one moment, when it was held, and which system calls it made after that.
#ifndef HANGSCOPE_PROC_STEPS_THREAD_MOMENT_H
#define HANGSCOPE_PROC_STEPS_THREAD_MOMENT_H

#include <sys/user.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proc/steps/step_trace.h"

namespace hangscope {

constexpr uint64_t kMomentPageBytes =
    4096;  // where a kernel has larger ones, these are parts of them

// Which pages a process has in memory now. To read another one would be a fault of the process: it
// may have to be fetched from wherever, and a program that serves its own faults would see one that
// it never made.
class PagesInMemory {
 public:
  explicit PagesInMemory(int pid);
  ~PagesInMemory();
  PagesInMemory(const PagesInMemory&) = delete;
  PagesInMemory& operator=(const PagesInMemory&) = delete;
  // False also where that is not known.
  bool Has(uint64_t address) const;

 private:
  int file_;
};

struct NotedCall {
  StepCall call;
  // What is in the memory that the kernel reads or writes for it, after it: from which address.
  std::vector<std::pair<uint64_t, std::string>> memory;
};

struct ThreadMoment {
  user_regs_struct general = {};
  uint64_t thread_pointer = 0;  // aarch64; among the others elsewhere
  std::string vectors;          // floating point, too, as ptrace gives them
  StepRange kernel_words;       // that the kernel writes whenever the thread gets to another CPU
  std::map<uint64_t, std::string> pages;  // kMomentPageBytes of memory each, by address
  std::vector<NotedCall> calls;           // in their order
  // The call after these is none that can be made in steps, or it sleeps.
  bool ends_in_call = false;

  StepState State() const;
  // At the begin of a system call, or at its end: the call, without its result.
  StepCall AskedCall() const;
  // Adds those of `addresses` that can be read in thread `tid`'s memory, as it is now.
  void CopyPages(int tid, const std::vector<uint64_t>& addresses);
};

}  // namespace hangscope

#endif
