// Which processes a control group has frozen (cgroups(7); "docker pause" does): the kernel shows
// their threads asleep in the system calls in which it caught them, though what these wait for may
// have come long ago.
#ifndef HANGSCOPE_PROC_FREEZER_H
#define HANGSCOPE_PROC_FREEZER_H

#include <map>
#include <string>

#include "proc/proc_folder.h"

namespace hangscope {

// For one look: what it has found of a group, it does not read again.
class Freezer {
 public:
  // `groups`: where the groups are mounted; below it also as "unified" and, of the first version,
  // as "freezer". `proc` must outlive this.
  explicit Freezer(const ProcFolder& proc, std::string groups = "/sys/fs/cgroup")
      : proc_(proc), groups_(std::move(groups)) {}

  // Also where the group is just being frozen. False where nobody can tell.
  bool Holds(int pid);

 private:
  bool HasFrozen(const std::string& hierarchy, const std::string& group) const;

  const ProcFolder& proc_;
  const std::string groups_;
  std::map<std::string, bool> known_;  // by what /proc says of a process's groups
};

}  // namespace hangscope

#endif
