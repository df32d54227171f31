// How sure a finding is, and what speaks against it.
#ifndef HANGSCOPE_PROCESS_PROCESS_DOUBTS_H
#define HANGSCOPE_PROCESS_PROCESS_DOUBTS_H

#include <optional>
#include <string>

#include "model/process.h"
#include "process/process_draft.h"

namespace hangscope {

// Whether those whom `draft` is about were seen in looks of different times: of several hosts.
bool IsOfTwoLooks(const FindingDraft& draft, const JudgedProcesses& judged);

// Sets the confidence of `finding`, which `draft` becomes, and adds its doubts.
void JudgeConfidence(const FindingDraft& draft, const JudgedProcesses& judged,
                     ProcessFinding* finding);

// The threads of the process that wait for none of its others, and what they do: "4712 worker
// (waits 2.1 s for a signal to the process)". Each might do what others wait for.
// Whether ranks of an MPI job are among its members: these run while they wait.
bool HasRanks(const FindingDraft& draft, const JudgedProcesses& judged);

std::string WhoMayAct(int pid, const JudgedProcesses& judged);

// Of a spin: a process that may write to the memory that it polls, which is that of its own process
// alone; nothing: none is known. `is_copy`: it is known only to be a copy that fork() made, and it
// is no part of this finding.
struct OutsideWriter {
  int pid = 0;
  bool is_copy = false;
};
std::optional<OutsideWriter> WriterFromOutside(const FindingDraft& draft,
                                               const JudgedProcesses& judged);

// The process has stood still, by a signal or a debugger, for less than a second: whoever only
// looks at it lets it go on. One of which is not known since when has not.
bool IsShortStop(const ProcessFacts& process, TimeNs now);
constexpr const char* kShortStopDoubt =
    "it has stood still for less than a second: whoever only looks at it lets it go on";

}  // namespace hangscope

#endif
