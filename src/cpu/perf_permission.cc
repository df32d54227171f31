#include "cpu/perf_permission.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/capabilities.h"
#include "base/file_system.h"

namespace hangscope {
namespace {

std::string TooManyFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return "each event of a thread on a CPU takes a file descriptor, and " +
         std::to_string(limit.rlim_max) +
         " are all that a process may have; as root, 'prlimit --nofile=65536 --pid $$' in the "
         "shell allows more";
}

}  // namespace

PerfPermission ReadPerfPermission() {
  PerfPermission permission;
  if (auto text = ReadWholeFile(PosixFileSystem(), "/proc/sys/kernel/perf_event_paranoid");
      text.ok())
    permission.paranoid = std::atoi(text->c_str());
  permission.privileged = OwnCapabilities().MayTraceAll();
  permission.root = geteuid() == 0;
  return permission;
}

std::string WhyForbidden(const PerfPermission& permission) {
  const std::string level = "kernel.perf_event_paranoid is " + std::to_string(permission.paranoid);
  if (permission.root)
    return level +
           " and CAP_PERFMON is missing, though this is root: a container or a sandbox keeps it; "
           "'docker run --cap-add PERFMON' grants it";
  return level +
         " and CAP_PERFMON is missing; as root, 'sysctl kernel.perf_event_paranoid=-1' or "
         "'setcap cap_perfmon,cap_ipc_lock+ep' on the hangscope binary grants it";
}

std::string WhyRefused(const PerfEvent& event, int error, const PerfPermission& permission) {
  switch (error) {
    case EACCES:
    case EPERM:
      if (!permission.privileged) return WhyForbidden(permission);
      return "the kernel refuses it though CAP_PERFMON is there: a security module or a "
             "container's seccomp filter; outside of it, it works";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return "this machine has no hardware for it";
    case EINVAL:
      return "this kernel does not take it so";
    case EBUSY:
      return "somebody else has the hardware";
    case ENOSPC:
      return "there are no more breakpoints";
    case EMFILE:
      return TooManyFiles();
    default:
      return (event.format.empty() ? "perf_event_open: " : "perf_event_open of the tracepoint: ") +
             ErrorText(error);
  }
}

std::vector<std::string> Refusals::Sentences(std::string_view one, std::string_view several) const {
  std::vector<std::string> sentences;
  for (const auto& [reason, events] : events_) {
    std::string sentence;
    for (const std::string& event : events)
      sentence += (sentence.empty() ? "'" : ", '") + event + "'";
    sentence += " ";
    sentence += events.size() == 1 ? one : several;
    sentences.push_back(sentence + ": " + reason);
  }
  return sentences;
}

}  // namespace hangscope
