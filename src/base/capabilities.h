// What the kernel lets a process do besides its user's rights: capabilities(7), as /proc/PID/status
// has them.
#ifndef HANGSCOPE_BASE_CAPABILITIES_H
#define HANGSCOPE_BASE_CAPABILITIES_H

#include <cstdint>
#include <string_view>

namespace hangscope {

// By their numbers in linux/capability.h, of which Debian 12's may be too old.
enum class Capability {
  kDacReadSearch = 2,
  kIpcLock = 14,
  kSysPtrace = 19,
  kSysAdmin = 21,
  kPerfmon = 38
};

class Capabilities {
 public:
  Capabilities() = default;
  // The effective ones, of the text of /proc/PID/status; none where it does not say.
  explicit Capabilities(std::string_view status);

  bool Has(Capability capability) const { return (bits_ >> static_cast<int>(capability) & 1) != 0; }
  // Records everybody's events, whatever kernel.perf_event_paranoid is.
  bool MayTraceAll() const { return Has(Capability::kPerfmon) || Has(Capability::kSysAdmin); }

 private:
  uint64_t bits_ = 0;
};

// Of this process.
Capabilities OwnCapabilities();

}  // namespace hangscope

#endif
