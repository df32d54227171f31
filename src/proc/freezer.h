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

  // The file of the group that has it frozen, or is just freezing it: cgroup.freeze or
  // freezer.state. Of its own group where the one above that does it is not in sight. Empty: none,
  // or nobody can tell.
  std::string WhatHolds(int pid);
  bool Holds(int pid) { return !WhatHolds(pid).empty(); }

 private:
  std::string WhatHasFrozen(const std::string& hierarchy, const std::string& group) const;

  const ProcFolder& proc_;
  const std::string groups_;
  std::map<std::string, std::string> known_;  // by what /proc says of a process's groups
};

}  // namespace hangscope

#endif
