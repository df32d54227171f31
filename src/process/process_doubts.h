// How sure a finding is, and what speaks against it.
#ifndef HANGSCOPE_PROCESS_PROCESS_DOUBTS_H
#define HANGSCOPE_PROCESS_PROCESS_DOUBTS_H

#include "model/process.h"
#include "process/process_draft.h"

namespace hangscope {

// Whether those whom `draft` is about were seen in looks of different times: of several hosts.
bool IsOfTwoLooks(const FindingDraft& draft, const JudgedProcesses& judged);

// Sets the confidence of `finding`, which `draft` becomes, and adds its doubts.
void JudgeConfidence(const FindingDraft& draft, const JudgedProcesses& judged,
                     ProcessFinding* finding);

}  // namespace hangscope

#endif
