// The line that says what is wrong: "deadlock, 2 of 5 threads wait for each other".
#ifndef HANGSCOPE_PROCESS_PROCESS_SUMMARY_H
#define HANGSCOPE_PROCESS_PROCESS_SUMMARY_H

#include <string>

#include "process/process_draft.h"

namespace hangscope {

std::string SummaryOf(const FindingDraft& draft, const JudgedProcesses& judged);

}  // namespace hangscope

#endif
