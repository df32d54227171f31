#include "cost_limits.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <string_view>

#include "base/resource_limits.h"
#include "options.h"

namespace hangscope::cli {
namespace {

// Any context, that of a signal included.
[[noreturn]] void EndWith(std::string_view sentence) {
  (void)!write(STDERR_FILENO, sentence.data(), sentence.size());
  _exit(kExitFailed);
}

void OutOfTime(int) {
  EndWith(
      "hangscope: error: this takes more CPU time than it may; the recording is damaged or very "
      "large, and HANGSCOPE_NO_LIMITS=1 lifts the limit\n");
}

void OutOfMemory() {
  EndWith(
      "hangscope: error: this takes more memory than it may; the recording is damaged or very "
      "large, and HANGSCOPE_NO_LIMITS=1 lifts the limit of 8 GiB\n");
}

}  // namespace

void LimitCost(unsigned cpu_seconds) {
  std::set_new_handler(OutOfMemory);
  signal(SIGXCPU, OutOfTime);
  const char* const none = std::getenv("HANGSCOPE_NO_LIMITS");
  if (none != nullptr && std::string_view(none) == "1") return;
  LowerLimit(RLIMIT_CPU, cpu_seconds);
  LimitAddresses();
}

}  // namespace hangscope::cli
