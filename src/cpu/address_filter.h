// Address filters of hardware tracers: which code is traced. From perf's form, which has names, to
// the kernel's (PERF_EVENT_IOC_SET_FILTER), which has numbers.
#ifndef HANGSCOPE_CPU_ADDRESS_FILTER_H
#define HANGSCOPE_CPU_ADDRESS_FILTER_H

#include <string>

#include "base/status.h"

namespace hangscope {

struct AddressFilters {
  std::string text;       // as the kernel takes it
  int count = 0;          // hardware has few
  bool of_files = false;  // some are of a program's file, which the kernel maps for threads alone
};

// `filter`, as perf record --filter takes it, several with commas between them:
//
//   filter main @ /bin/x              only this function
//   start f @ /bin/x, stop g @ /bin/x from one to the other
//   filter 0x4000/0x100 @ /bin/x      an offset in the file, and how many bytes
//   filter 0xffffffff81000000/0x1000  an address of the kernel
//
// Fails with a sentence: it is none of these, or a file has no such function.
Result<AddressFilters> ParseAddressFilters(const std::string& filter);

}  // namespace hangscope

#endif
