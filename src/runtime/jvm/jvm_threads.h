// The threads of a program of Java: where they stand and what they wait for, however that was found
// out (jvm_reader.h reads its memory, jvm_print.h what it says of itself).
#ifndef HANGSCOPE_RUNTIME_JVM_JVM_THREADS_H
#define HANGSCOPE_RUNTIME_JVM_JVM_THREADS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/process.h"
#include "runtime/jvm/jvm_frames.h"

namespace hangscope {

inline constexpr size_t kMostJavaThreads = 1 << 16;  // of a list that makes sense
inline constexpr size_t kMostNameOfJavaThread = 128;
inline constexpr std::string_view kJavaConcurrent = "java/util/concurrent/";

enum class JavaWaitKind {
  kNone,         // it does not wait, or nobody knows for what
  kMonitor,      // to enter a monitor
  kNotify,       // in Object.wait
  kLock,         // for a lock of java.util.concurrent, which one thread at a time has
  kReaders,      // for such a one that readers have
  kParked,       // for anything else of java.util.concurrent
  kJoin,         // the end of a thread
  kInitializer,  // until another thread has initialised a class
};

struct JavaWait {
  JavaWaitKind kind = JavaWaitKind::kNone;
  uint64_t object = 0;  // that it waits for
  std::string type;     // "monitor", "ReentrantLock"
  std::string name;     // "Bank.accountA", "of a bank.Account"; empty: not known
  int owner = 0;        // the thread that has it, or whose end it is; 0: none, or not known
  bool operator==(const JavaWait&) const = default;
};

struct JavaThread {
  uint64_t address = 0;  // as its reader has it
  int tid = 0;           // as the process calls it
  std::string name;
  bool is_daemon = false;
  bool is_blocked = false;        // until somebody wakes it, as the machine sees it
  bool is_of_machine = false;     // it serves the machine: a compiler, a cleaner
  bool idles = false;             // in a pool, a timer: until the program gives it work
  std::vector<StackFrame> stack;  // of Java's methods, innermost first
  std::vector<JavaFrame> frames;  // as its reader has them
  JavaWait wait;
};

// Of one look at one process.
class JavaThreads {
 public:
  virtual ~JavaThreads() = default;
  // Those that have not ended. At most `most`, each with `most_frames`; that there are more is said
  // in `warning`.
  virtual std::vector<JavaThread> Threads(size_t most, size_t most_frames,
                                          std::string* warning) = 0;
  // What the thread waits for now, as far as others do not matter: its monitor or parked object.
  virtual JavaWait WaitNow(const JavaThread& thread) = 0;
  // The program has threads that run when it is told to end, or handlers: a signal may make them
  // wake others.
  virtual bool HandlesSignals() = 0;
};

// Whether a thread that is in this method is one of a pool, or a timer, until the program gives it
// work. Names of classes are as "java/util/TimerThread".
bool IsIdleInJava(std::string_view class_name, std::string_view method);

// lockInterruptibly(), or what it calls, is among them: Thread.interrupt() ends the wait.
bool LocksInterruptibly(const std::vector<StackFrame>& stack);

// "ReentrantLock" of its inner class that a thread is parked for; "LinkedBlockingQueue" of a
// condition that it is parked for in there: one of the classes whose methods it is in.
std::string TypeOfParked(const std::string& class_name, const std::vector<std::string>& callers);

}  // namespace hangscope

#endif
