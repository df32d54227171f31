// One process in a look: its threads are read, explained, where needed stopped, and checked once
// more.
#ifndef HANGSCOPE_PROCESS_PROCESS_LOOK_H
#define HANGSCOPE_PROCESS_PROCESS_LOOK_H

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/capabilities.h"
#include "proc/freezer.h"
#include "proc/open_files.h"
#include "proc/process_inspector.h"
#include "proc/process_memory.h"
#include "proc/thread_reader.h"
#include "proc/thread_stop.h"
#include "process/futex_kind.h"
#include "process/kept/kept_process.h"
#include "process/locks/harmless_code.h"
#include "process/locks/held_objects.h"
#include "process/spin_loop.h"
#include "process/stack_walker.h"
#include "process/step_helper.h"
#include "process/steps/memory_writers.h"
#include "process/system_call.h"
#include "runtime/bash/bash_reader.h"
#include "runtime/go/go_reader.h"
#include "runtime/jvm/jvm_threads.h"
#include "runtime/postgres/postgres_reader.h"
#include "runtime/python/python_reader.h"
#include "runtime/python/python_tasks.h"
#include "runtime/python/python_waits.h"
#include "runtime/ruby/ruby_reader.h"
#include "runtime/v8/v8_reader.h"

namespace hangscope {

// The end of a sentence on a process that may not be looked into: what this process, with these
// capabilities, lacks. `user`: whom the other one belongs to.
std::string WhatGrantsLooking(const Capabilities& own, bool is_root, int user);

// All processes by their parents; read once, when it is asked for first.
class ProcessTree {
 public:
  explicit ProcessTree(const ProcFolder& proc) : proc_(proc) {}
  const std::vector<TaskStat>& Children(int pid);
  // The others that have the very memory of `pid` without being threads of it, as clone(2) makes
  // them; none where this user may not compare them.
  std::vector<int> WhoSharesMemory(int pid, uint64_t stack_begin);
  // Those whose stack begins where that of `pid` does, as in copies that fork() made.
  std::vector<int> WhoBeganAlike(int pid, uint64_t stack_begin);
  // Its children, their children, and so on.
  std::vector<int> Descendants(int pid);

 private:
  void Read();

  const ProcFolder& proc_;
  bool read_ = false;
  std::map<int, std::vector<TaskStat>> children_;
  std::map<uint64_t, std::vector<int>> by_stack_;
};

// What all processes of a look share.
struct InspectionContext {
  Clock& clock;
  const ProcFolder& proc;
  const InspectOptions& options;
  std::string proc_root;
  const KeptProcess* kept = nullptr;  // null: live ones
  TimeNs deadline = 0;
  OpenFiles files;
  ProcessTree tree;
  SchedulerClock scheduler;
  Freezer freezer;
  WritingPrograms writing_programs;
  TimeNs longest_stop = 0;
  size_t stepped = 0;
  size_t followed = 0;      // from nap to nap
  TimeNs stepped_long = 0;  // of the time for long circles

  InspectionContext(Clock& its_clock, const ProcFolder& folder, const InspectOptions& its_options,
                    std::string root)
      : clock(its_clock),
        proc(folder),
        options(its_options),
        proc_root(std::move(root)),
        deadline(its_clock.Monotonic() + its_options.budget),
        files(folder),
        tree(folder),
        scheduler(its_clock, folder),
        freezer(folder) {}
  ProcessMemory MemoryOf(int pid) const {
    return kept != nullptr ? ProcessMemory(kept->read) : ProcessMemory(pid);
  }
  bool IsLate() { return clock.Monotonic() > deadline; }
};

// Walkers of processes that were looked at before, for as long as their code stays where it is.
class WalkerCache {
 public:
  Result<StackWalker*> Get(const InspectionContext& context, int pid,
                           const std::vector<MemoryMapping>& mappings);

 private:
  struct Entry {
    std::string code;  // its mappings
    std::unique_ptr<StackWalker> walker;
  };
  std::map<int, Entry> entries_;
};

class ProcessLook {
 public:
  ProcessLook(InspectionContext& context, WalkerCache& walkers, int pid);

  // These in this order; other processes' steps of the same name before the next.
  bool Read();     // false: there is no such process
  void Explain();  // what the threads wait for, and where they are; nothing is stopped
  void Stop();     // those that it takes; on the thread that will let go of them
  // Those that go in circles, each for itself; and what each did while all of them were held.
  std::vector<SteppedThread> Spinners() const;
  void StoreTogether(int tid, const SteppedLoop& loop);
  void FindHolders();                    // of locks that do not record it
  void FindOpeners(ProcessLook& other);  // of named pipes, by its code
  void FindFeeders(const std::vector<std::unique_ptr<ProcessLook>>& all);  // of Python's queues
  // Whether all whose naps were followed are asleep there at one time, and what they look at is as
  // it was then, and those have the locks who refused them: `Begin` and `End` of all processes, one
  // after the other. Else `ForgetNaps`.
  bool BeginOfNaps();
  bool EndOfNaps();
  void ForgetNaps();
  void NameObjects();  // that are waited for, by what the source calls them
  void Verify();  // takes back what is said of threads that have moved meanwhile, or are frozen

  int pid() const { return pid_; }
  // Processes that the waits lead to, and, once it has been stopped, the spins.
  std::set<int> LeadsTo() const;
  ProcessFacts ReleaseFacts() { return std::move(facts_); }

 private:
  // A thread whose nap was followed to the next.
  struct Napper {
    int tid = 0;
    NapPlace place;
    std::vector<uint64_t> polls;
    uint64_t found = 0;
    uint64_t switches = 0;
  };
  std::optional<uint64_t> SwitchesInNap(const Napper& napper) const;
  bool IsStillRefused(int tid);

  struct Work {
    RawThread raw;
    TaskSystemCall call;  // as a program of this machine's own width would make it
    CallMeaning meaning;
    bool was_stopped = false;
    std::vector<StackPlace> places;  // innermost first
    PythonFrames python;
    std::vector<RubySite> ruby;    // until AddRubyTo
    bool wants_registers = false;  // as StackWalk has it
  };

  void StoreThread(RawThread raw);
  void FindLivingThread();
  void FindPython();
  void FindGo();
  void OpenGo(const MemoryMapping& data, const std::string& version);
  void TellOfGo(const MemoryMapping& data);
  bool IsOfGoRuntime(uint64_t pc);
  StackWalk WalkGoroutine(const Goroutine& goroutine, std::string* stack);
  std::vector<uint64_t> HeldByGoroutine(const std::vector<StackPlace>& places, uint64_t stack_begin,
                                        const std::string& stack, size_t* calls);
  LockCall GivesOfOthersAt(uint64_t target, int depth);
  std::vector<Goroutine> ReadGoroutines(std::string* warning);
  void AddGoroutines();
  void VerifyGoroutines();
  void AddStranded(const std::vector<Goroutine>& all);
  void FindJava();
  void AddJava();
  void AddJavaThread(const JavaThread& java, size_t i);
  std::vector<StackFrame> MergeJava(const JavaThread& java, const ThreadFacts& thread) const;
  bool WaitsAgainInJava(const Work& work, size_t i);
  void FindNode();
  void AddScripts(const Work& work, ThreadFacts* thread);
  void FindRuby();
  void AddRuby();
  std::vector<RubySite> RubySitesOf(int tid) const;
  void AddRubyTo(Work* work, ThreadFacts* thread);
  void ExplainRubyWait(const RubyThread& ruby, const Work& work, ThreadFacts* thread);
  void ExplainInterpreterOfRuby(uint64_t holder, ThreadWait* wait) const;
  std::optional<int> ThreadOfRuby(uint64_t address) const;
  void FindShell();
  void AddShellTo(ThreadFacts* thread) const;
  bool ScriptOpensLater(const WaitFile& wanted) const;
  void AddLanguages(Work* work, ThreadFacts* thread);
  void SayWhatCannotBeSeen();
  void ExplainThread(size_t i);
  void FollowKept(Work* work, ThreadFacts* thread);
  TaskSystemCall ExplainCall(Work* work, ThreadFacts* thread) const;
  ThreadImage ImageOf(const RawThread& raw) const;
  ThreadImage ImageOf(int tid, const ThreadRegisters& registers) const;
  std::string StackBytes(uint64_t from) const;
  void StoreWalk(StackWalk walk, Work* work, ThreadFacts* thread);
  PythonFrames PythonFramesOf(const RawThread& raw, uint64_t stack_pointer);
  void AddPython(Work* work, ThreadFacts* thread);
  void FollowNapOfPython(const Work& work, ThreadFacts* thread);
  void ExplainWait(const Work& work, ThreadFacts* thread);
  void ExplainOpen(int tid, const TaskSystemCall& call, ThreadWait* wait);
  bool OpensLater(const WaitFile& wanted);
  bool CallsAnOpen(uint64_t begin);
  void ExplainTransfer(const Work& work, ThreadWait* wait);
  void ExplainFault(const Work& work, ThreadWait* wait);
  void ExplainRing(int ring, ThreadWait* wait);
  bool WaitsForMount(const Work& work) const;
  void ExplainMount(const Work& work, ThreadFacts* thread);
  bool MayBeOfElsewhere(const MemoryMapping& mapping);
  void ExplainFutexWait(const Work& work, ThreadFacts* thread);
  void ExplainPythonLock(const Work& work, ThreadWait* wait);
  void ExplainInterpreterLock(ThreadWait* wait);
  void ExplainSharedWord(const FutexWord& word, ThreadWait* wait);
  void ExplainChildWait(const CallMeaning& meaning, ThreadWait* wait);
  void AddChildrenThatEnd(ThreadWait* wait);
  void ExplainSqlite(const Work& work, ThreadWait* wait);
  void FindPostgres();
  bool ExplainPostgres(const Work& work, ThreadFacts* thread);
  void ExplainServerLock(const PostgresLock& lock, ThreadWait* wait);
  void FindRank();
  std::optional<uint64_t> MessagesPassed() const;
  bool TalksInOtherWays(const RankFacts& rank);
  bool ExplainRanks(const Work& work, ThreadFacts* thread, std::string_view only = {});
  void ExplainLastCall(const Work& work, ThreadFacts* thread);
  void ExplainOwnCall(ThreadFacts* thread);
  void ExplainTransferOfCurl(ThreadFacts* thread) const;
  void ExplainFiles(const CallMeaning& meaning, ThreadWait* wait);
  std::optional<int> OuterThread(int inner, bool shared) const;
  std::optional<int> ThreadOfOthers(int inner) const;
  void LeadToProcessOf(int thread);
  void FindOwnerElsewhere(int inner, ThreadWait* wait);
  std::vector<uint64_t> HeldByThread(const Work& work, size_t* calls);
  void FindObjectOfCall(const Work& work, ThreadFacts* thread);
  void FindRefusedMutex(uint64_t mutex, ThreadWait* wait);
  bool MayHaveStreamsOfItsOwn() const;
  void FindWhoWakesNobody();
  CodeEffect EffectOnOthers(const Work& work, UsedFiles* files);
  bool FollowNapOfCode(const Work& work, ThreadFacts* thread);
  std::optional<std::set<int>> DescriptorsOfStreams();
  LockCall LockCallAt(uint64_t target);
  LockCall LockCallByCodeAt(uint64_t target, int depth);
  bool RunsOnce(const Work& work, size_t at) const;
  std::optional<uint64_t> FlagOfOnce(const StackPlace& place) const;
  bool WantsStop(const Work& work) const;
  void StopThread(Work* work, ThreadFacts* thread);
  void StepThread(bool was_in_call, uint64_t stack_pointer, ThreadFacts* thread);
  void FollowNap(const Work& work, ThreadFacts* thread);
  std::optional<NapPlace> NapPlaceOf(const Work& work, const ThreadFacts& thread) const;
  SteppedThread ToStep(int tid, uint64_t stack_pointer) const;
  void StoreSpin(const SteppedLoop& loop, ThreadFacts* thread);
  bool IsOfDataFile(const MemoryMapping& mapping) const;
  void CollectPolls(const LoopAccess& access, uint64_t stack_pointer, ThreadFacts::Spin* spin);
  void NamePolls(ThreadFacts::Spin* spin);
  void CollectWriters(ThreadFacts::Spin* spin);
  bool HasWhatOthersWant(int tid) const;
  bool RunsAWritingProgram(int pid);
  void CollectFlickers(const SteppedLoop& loop, ThreadFacts::Spin* spin);
  void CollectCall(const StepCall& call, ThreadFacts::Spin* spin);
  void ExplainRefusedLock(const CallMeaning& meaning, bool of_flock, ThreadWait* wait);
  void ExplainEnd(ThreadWait* wait);
  WaitFile EndOfProcess(int pid);
  std::vector<int> ReadyOfEpoll(const StepCall& call, int epoll) const;
  bool NapsAgain(const Work& work, ThreadFacts* thread);
  std::string VariableName(uint64_t address);
  std::vector<std::string> SourceNamesOf(uint64_t address, const std::vector<StackPlace>& places);
  std::optional<int> ThreadWithStackAt(uint64_t address) const;
  void FindJoinedOfMusl(ThreadFacts* thread) const;
  bool IsAnsweredByASupervisor(const RawThread& raw) const;
  std::string KernelFunctionOf(int tid) const;
  void Warn(std::string sentence);

  InspectionContext& context_;
  WalkerCache& walkers_;
  const int pid_;
  // the thread through which its memory, mappings and descriptors are reached
  int living_;
  ProcessMemory memory_;
  ReadMemory read_memory_;
  ProcessFacts facts_;
  std::vector<Work> work_;  // by the index of facts_.threads
  // thread ids as the process counts them, to this machine's
  std::map<int, int> outer_ids_;
  uint64_t blocked_by_all_ = ~uint64_t{0};  // signals that each of its threads blocks
  bool has_own_ids_ = false;                // they differ: it is in a pid namespace of its own
  std::vector<MemoryMapping> mappings_;
  StackWalker* walker_ = nullptr;
  std::string walker_trouble_;
  std::map<int, SteppedThread> stepped_;        // by thread: those that ran
  std::map<uint64_t, LockCall> lock_calls_;     // by address of a function: as its name tells
  std::map<uint64_t, LockCall> calls_by_code_;  // likewise: as its code tells
  std::unique_ptr<PythonReader> python_;
  std::unique_ptr<PythonWaits> python_waits_;
  std::unique_ptr<PythonTasks> python_tasks_;
  std::unique_ptr<GoReader> go_;
  std::vector<Goroutine> goroutines_;  // by the index of the main thread's tasks
  std::map<int, std::vector<uint64_t>> stopped_registers_;  // of those that run, by thread
  std::unique_ptr<JavaThreads> java_;
  std::unique_ptr<V8Reader> v8_;
  std::unique_ptr<RubyReader> ruby_;
  std::string ruby_module_;                    // the file that the interpreter is in
  std::map<int, RubyThread> ruby_threads_;     // by thread
  std::vector<BashFrame> shell_frames_;        // of the script that it runs
  bool is_java_ = false;                       // whatever could be read of it
  std::map<size_t, JavaThread> java_threads_;  // by the index of facts_.threads
  std::string python_module_;                  // the file that the interpreter is in
  uint64_t postgres_ = 0;  // where its program is; 0: it is no server that is understood
  std::set<int> leads_to_;
  std::vector<Napper> nappers_;
};

}  // namespace hangscope

#endif
