// What processes and threads do, in words: for texts, and for findings. Names come from targets and
// are escaped.
#ifndef HANGSCOPE_PROCESS_PROCESS_WORDS_H
#define HANGSCOPE_PROCESS_PROCESS_WORDS_H

#include <optional>
#include <string>
#include <vector>

#include "model/picture.h"
#include "model/process.h"
#include "process/process_verdict.h"

namespace hangscope {

// Null: `look` has no such thread, process.
const ThreadFacts* FindThread(const SystemSample& look, int tid);
const ProcessFacts* FindProcess(const SystemSample& look, int pid);

// "4712 worker-a"; "4712" where it has no name.
std::string ThreadLabel(const ThreadFacts& thread);
// "process 4712 (server)".
std::string ProcessLabel(const SystemSample& look, int pid);

// Of what a library waits for: "std::futures"; and "set it", as in "nobody is left to set it".
struct LibraryWords {
  std::string all;  // empty: it is none, or has no such word
  std::string end = "signal it";
};
LibraryWords LibraryWordsOf(const ThreadFacts& thread);
// It waits at a barrier: others are to come there.
bool IsAtBarrier(const ThreadFacts& thread);

// "mutex lock_b, held by 4713"; "time to pass". Of threads that wait; empty: not known for what.
std::string WaitedFor(const ThreadFacts& thread, const SystemSample& look);
// "waits 41.0 s for mutex lock_b, held by 4713", "spins for table_ready", "runs", "is stopped".
std::string DoesWhat(const ThreadFacts& thread, const SystemSample& look);
// What travels of a finding. `look`: the newest of those it was made from.
Finding ToldFinding(const ProcessFinding& finding, const SystemSample& look);
// What one look says to the judge of all sources.
Sightings ToldSightings(const ProcessJudgement& judgement, const SystemSample& look);
// "process 4711": of whom the look is.
std::string TargetName(const SystemSample& look);
// How long it had done that when it was seen last; nothing: not known.
std::optional<TimeNs> HasLasted(const ThreadFacts& thread, const SystemSample& look);
// The same in words; empty: not known.
std::string ForHowLong(const ThreadFacts& thread, const SystemSample& look);

// The innermost frame of the program itself, or of a library that is none of the system's: what
// those do below it is how one waits, not where. Of a program that is little more than a call of
// such a library, the innermost one of that. Where Python runs in the thread, that of Python. Null:
// the stack has no frame.
const StackFrame* OwnFrame(const ThreadFacts& thread);
// Of the functions of the program that called the one of OwnFrame, the innermost `most`; those of
// libraries and of what starts the program are left out.
std::vector<const StackFrame*> CallingFrames(const ThreadFacts& thread, size_t most);
// "transfer  abba.c:31" of a frame; empty where it is null.
// "is stopped by SIGSTOP", "is held by 4711 gdb, which traces it": of one whose threads are.
std::string StandsStill(const ProcessFacts& process, ThreadState state);

// "4712 postgres of PostgreSQL: user shop, database shop, idle in transaction, ran last UPDATE ..."
// of one that has a session.
std::string SessionText(const ProcessFacts& process);

// "task Task-2 waits for lock index_lock, held by Task-3   take_both  bank.py:31".
std::string TaskText(const TaskFacts& task);
// "ask" of "main.<locals>.ask", a function inside of a function of Python; others as they are.
std::string InnermostName(const std::string& function);
std::string FrameText(const StackFrame* frame);

}  // namespace hangscope

#endif
