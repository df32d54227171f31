// Bounds for a process that reads bytes that nobody vouches for.
#ifndef HANGSCOPE_BASE_RESOURCE_LIMITS_H
#define HANGSCOPE_BASE_RESOURCE_LIMITS_H

#include <sys/resource.h>

#include <algorithm>

namespace hangscope {

// Unless the limit is lower already. `what`: RLIMIT_...
inline void LowerLimit(decltype(RLIMIT_AS) what, rlim_t most) {
  rlimit limit{};
  if (getrlimit(what, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  (void)setrlimit(what, &limit);
}

// To 8 GiB of addresses, and so of memory; not under sanitizers, whose shadow is larger than any
// limit.
inline void LimitAddresses() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  LowerLimit(RLIMIT_AS, rlim_t{8} << 30);
#endif
}

}  // namespace hangscope

#endif
