#include "capture/perf_permission.h"

#include <linux/capability.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>

#include "base/file_system.h"

namespace hangscope {
namespace {

constexpr uint64_t kPerfmon = 38;  // CAP_PERFMON, of Linux 5.8

uint64_t EffectiveCapabilities() {
  auto status = ReadWholeFile(PosixFileSystem(), "/proc/self/status");
  if (!status.ok()) return 0;
  const size_t at = status->find("CapEff:");
  return at == std::string::npos ? 0 : std::strtoull(status->c_str() + at + 7, nullptr, 16);
}

std::string TooManyFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return "each event of a thread on a CPU takes a file descriptor, and " + std::to_string(limit.rlim_max) +
         " are all that a process may have; as root, 'prlimit --nofile=65536 --pid $$' in the shell allows more";
}

}  // namespace

PerfPermission ReadPerfPermission() {
  PerfPermission permission;
  if (auto text = ReadWholeFile(PosixFileSystem(), "/proc/sys/kernel/perf_event_paranoid"); text.ok()) permission.paranoid = std::atoi(text->c_str());
  const uint64_t capabilities = EffectiveCapabilities();
  permission.privileged = ((capabilities >> kPerfmon | capabilities >> CAP_SYS_ADMIN) & 1) != 0;
  return permission;
}

std::string WhyForbidden(const PerfPermission& permission) {
  return "kernel.perf_event_paranoid is " + std::to_string(permission.paranoid) +
         " and CAP_PERFMON is missing; as root, 'sysctl kernel.perf_event_paranoid=-1' or "
         "'setcap cap_perfmon,cap_ipc_lock+ep' on the hangscope binary grants it";
}

std::string WhyRefused(const PerfEvent& event, int error, const PerfPermission& permission) {
  switch (error) {
    case EACCES:
    case EPERM:
      if (!permission.privileged) return WhyForbidden(permission);
      return "the kernel refuses it though CAP_PERFMON is there: a security module or a container's seccomp filter; outside of it, it works";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP: return "this machine has no hardware for it";
    case EINVAL: return "this kernel does not take it so";
    case EBUSY: return "somebody else has the hardware";
    case ENOSPC: return "there are no more breakpoints";
    case EMFILE: return TooManyFiles();
    default: return (event.format.empty() ? "perf_event_open: " : "perf_event_open of the tracepoint: ") + ErrorText(error);
  }
}

std::vector<std::string> Refusals::Sentences() const {
  std::vector<std::string> sentences;
  for (const auto& [reason, events] : events_) {
    std::string sentence;
    for (const std::string& event : events) sentence += (sentence.empty() ? "'" : ", '") + event + "'";
    sentences.push_back(sentence + (events.size() == 1 ? " is" : " are") + " not recorded: " + reason);
  }
  return sentences;
}

}  // namespace hangscope
