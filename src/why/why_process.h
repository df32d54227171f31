// hangscope why pid:N: why a process hangs, with or without a scope of its own.
#ifndef HANGSCOPE_WHY_WHY_PROCESS_H
#define HANGSCOPE_WHY_WHY_PROCESS_H

#include <functional>
#include <string>
#include <vector>

#include "proc/process_inspector.h"
#include "process/host_look.h"
#include "process/process_verdict.h"
#include "why/why.h"

namespace hangscope {

struct WhyProcessOptions {
  int pid = 0;
  TimeNs apart = 50 * kMillisecond;  // the looks; who runs in between is not stuck
  bool stop = true;                  // its threads may be stopped for a moment
  bool all_threads = false;
  bool all_stacks = false;
  bool json = false;
  // Takes a second more where threads wait for locks with time limits again and again.
  bool observes_retries = true;
  // Told what is still being observed, once that has taken kQuietFor.
  static constexpr TimeNs kQuietFor = 300 * kMillisecond;
  std::function<void(const std::string&)> observing = [](const std::string&) {};
  // What the machine of Java in a process prints of its threads, which it halts for that; empty:
  // none is asked.
  std::function<Result<std::string>(int pid)> ask_java;
  std::vector<HostLook> others;  // on other hosts, made at about the same time
  size_t columns = 80;
  size_t lines = 22;
};

// Looks at the same processes, the newest last, and what they show.
struct TwoLooks {
  std::vector<SystemSample> looks;
  ProcessJudgement judgement;
};
// What people, or programs (options.json), are told of them. `kept`: as ProcessScene has it.
WhyReport ReportLooks(Clock& clock, const TwoLooks& two, const WhyProcessOptions& options,
                      std::string kept = {});
// As `why --json` says it: the verdict, then all that was seen, in lines.
std::string LooksJson(Clock& clock, const TwoLooks& two, const WhyProcessOptions& options);

// Whom a recorder asks about.
struct HangQuestion {
  int pid = 0;
  bool descendants = false;  // all processes that descend from it, too,
  std::vector<int> also;     // and from these, as its orphans are
  // What runs may be stopped for a moment, to be seen going in circles; else nobody is.
  bool step = false;
  // Takes a second more where they poll, or try again and again.
  bool is_patient = false;

  // Of one process alone.
  HangQuestion(int its_pid) : pid(its_pid) {}
};

// Why these processes stand still, the surest first; empty: nothing is known to be wrong, or they
// cannot be looked at.
struct ProcessHangs {
  std::vector<Finding> findings;
  ProcessStanding standing;
  std::vector<Wait> waits;         // as in Sightings
  std::vector<int> still_threads;  // likewise
  // all that was seen, with stacks, as of hangscope why --json; empty: it cannot be looked at
  std::string threads;
};
ProcessHangs FindProcessHangs(Clock& clock, ProcessInspector& inspector,
                              const HangQuestion& question);
// The same, in a process of its own (base/side_process.h): for who records the program, whose ELF
// and DWARF may bring libdw down. Where the kernel lets only a parent look (Yama), in this one.
// Fails where that process broke off.
Result<ProcessHangs> FindProcessHangsBeside(Clock& clock, ProcessInspector& inspector,
                                            const HangQuestion& question);

// What `hangscope why pid:N --json` wrote into the file `path`, or hangscope run into the snapshot
// of that name.
Result<HostLook> OpenHostLook(FileSystem& files, const std::string& path);

// Looks twice. Fails where there is no such process, or it ends meanwhile, or nothing of it may be
// looked at.
Result<WhyReport> AskWhyProcess(Clock& clock, ProcessInspector& inspector,
                                const WhyProcessOptions& options);

// The same; of a process that records, what its scope says comes first. `scope`: its target is
// pid:N.
Result<WhyReport> AskWhyPid(FileSystem& files, Clock& clock, ProcessInspector& inspector,
                            const WhyOptions& scope, const WhyProcessOptions& options);

}  // namespace hangscope

#endif
