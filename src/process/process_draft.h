// Which threads hang together, and by what kind of cause: findings without words. Pure;
// docs/verdicts.md has the rules.
#ifndef HANGSCOPE_PROCESS_PROCESS_DRAFT_H
#define HANGSCOPE_PROCESS_PROCESS_DRAFT_H

#include <vector>

#include "model/finding.h"
#include "process/judged_processes.h"

namespace hangscope {

// A finding in the making; of nodes rather than threads.
struct FindingDraft {
  FindingKind kind = FindingKind::kHeld;
  std::vector<uint32_t> members;
  std::vector<uint32_t> victims;
  std::vector<int> partners;
  int about = 0;         // kHeld, kStoppedChild: the process that stands still
  bool unowned = false;  // kDeadlock: of locks whose holders nobody records, beside who moves
  // kDeadlock: those that could end the members' waits want locks that these hold; `partners`
  bool holds_what_they_want = false;
  // kDeadlock: tasks of the one member's event loop, by index, in the order of their waits
  std::vector<size_t> tasks;
  // kLostWakeup: a loop of the process idles, too, that runs what the program does on signals
  bool beside_loops = false;
  // kLostWakeup: there are others, which only sleep for a time, again and again
  bool beside_tickers = false;
  // kDeadlock: others of the process move, and may do what the first member waits for; it holds
  // what the other members want
  bool beside_others = false;
  // kDeadlock: they wait for answers of their own process, whose other threads do something else,
  // or are `may_serve`
  bool asks_itself = false;
  std::vector<uint32_t> may_serve;
};

// Tasks each of which waits for the next, the last for the first; those with a time limit end their
// waits themselves. Empty: there are no such.
std::vector<size_t> CircleOf(const std::vector<TaskFacts>& tasks);

// Of Go: nobody else knows what it waits for, and that may be meant so.
bool MayBeMeantToStay(const TaskFacts& task);

// Whether the thread is in a function that takes a lock and does nothing else, by its name.
bool IsInLockFunction(const ThreadFacts& thread);

// All of these wait for signals, and let none in.
bool NoSignalComes(const FindingDraft& draft, const JudgedProcesses& judged);

// What is wrong among the processes of `judged`.
std::vector<FindingDraft> DraftFindings(const JudgedProcesses& judged);

}  // namespace hangscope

#endif
