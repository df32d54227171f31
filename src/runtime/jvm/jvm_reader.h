// The threads of a program of Java and what they wait for, read from outside: nothing runs in the
// program, and nobody is stopped for it. Of Java 17, on x86-64.
//
// All that is read may be anything: every list is bounded, and what cannot be made sense of is left
// out, with a sentence.
#ifndef HANGSCOPE_RUNTIME_JVM_JVM_READER_H
#define HANGSCOPE_RUNTIME_JVM_JVM_READER_H

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/process.h"
#include "runtime/jvm/jvm_frames.h"
#include "runtime/jvm/jvm_layout.h"
#include "runtime/jvm/jvm_objects.h"
#include "runtime/runtime_memory.h"

namespace hangscope {

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
  uint64_t address = 0;
  int tid = 0;  // as the process calls it
  std::string name;
  bool is_daemon = false;
  bool is_blocked = false;        // until somebody wakes it, as the machine sees it
  bool is_of_machine = false;     // it serves the machine: a compiler, a cleaner
  bool idles = false;             // in a pool, a timer: until the program gives it work
  std::vector<JavaFrame> frames;  // innermost first
  JavaWait wait;
};

// Of one look at one process.
class JvmReader {
 public:
  // Fails where the version is another, or has not what is needed; a sentence.
  static Result<std::unique_ptr<JvmReader>> Open(const FindJvmSymbol& find, ReadMemory read);

  // Those that have not ended. At most `most`, each with `most_frames`; that there are more is said
  // in `warning`.
  std::vector<JavaThread> Threads(size_t most, size_t most_frames, std::string* warning);
  StackFrame Name(const JavaFrame& frame);
  // What the thread waits for now, as far as others do not matter: its monitor or parked object.
  JavaWait WaitNow(const JavaThread& thread);
  // The program has threads that run when it is told to end, or handlers: a signal may make them
  // wake others.
  bool HandlesSignals();

 private:
  JvmReader(const JvmLayout& layout, std::unique_ptr<RuntimeMemory> memory)
      : layout_(layout),
        memory_(std::move(memory)),
        objects_(layout_, memory_.get()),
        frames_(layout_, &objects_, memory_.get()) {}
  std::optional<JavaThread> ReadThread(uint64_t address, size_t most_frames);
  JavaWait MonitorWait(uint64_t monitor);
  JavaWait NotifyWait(const JavaThread& thread, uint64_t monitor);
  JavaWait ParkWait(const JavaThread& thread, uint64_t blocker);
  JavaWait InitializerWait(uint64_t lock);
  uint64_t ObjectOf(uint64_t monitor) const;
  int OwnerOf(uint64_t monitor) const;
  int ThreadOf(uint64_t thread_object);
  bool Calls(const JavaThread& thread, std::string_view class_name, std::string_view method) const;
  void NameLocks(std::vector<JavaThread>* threads);
  std::string TypeOfParked(const JavaThread& thread, uint64_t blocker);

  const JvmLayout layout_;
  std::unique_ptr<RuntimeMemory> memory_;
  JvmObjects objects_;
  JvmFrames frames_;
  struct StackOf {
    uint64_t begin = 0, end = 0;
    int tid = 0;
  };
  std::map<uint64_t, StackOf> stacks_;  // by address of the thread
  // Classes that a thread initialises; nothing: they were not asked for yet.
  std::optional<std::vector<std::pair<const JavaClass*, uint64_t>>> initializers_;
};

}  // namespace hangscope

#endif
