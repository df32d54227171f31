#include "cost_limits.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string_view>

#include "options.h"

namespace hangscope::cli {
namespace {

constexpr rlim_t kMostAddresses = rlim_t{8} << 30;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsAddresses = false;  // the shadow is larger than any limit
#else
constexpr bool kLimitsAddresses = true;
#endif

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

void Lower(decltype(RLIMIT_CPU) what, rlim_t most) {
  rlimit limit{};
  if (getrlimit(what, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  (void)setrlimit(what, &limit);
}

}  // namespace

void LimitCost(unsigned cpu_seconds) {
  std::set_new_handler(OutOfMemory);
  signal(SIGXCPU, OutOfTime);
  const char* const none = std::getenv("HANGSCOPE_NO_LIMITS");
  if (none != nullptr && std::string_view(none) == "1") return;
  Lower(RLIMIT_CPU, cpu_seconds);
  if (kLimitsAddresses) Lower(RLIMIT_AS, kMostAddresses);
}

}  // namespace hangscope::cli
