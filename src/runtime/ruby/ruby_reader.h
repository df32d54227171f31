// The threads of a program of Ruby: where each of them is in Ruby, what it waits for, and who has
// that; read from the memory of its process. Of Ruby 3.1.
//
// Each thread of Ruby is one of the system's, and those of a ractor run one at a time, with its
// lock (GVL). All that is read may be anything: what does not fit together is left out, and each
// list and chain is bounded.
#ifndef HANGSCOPE_RUNTIME_RUBY_RUBY_READER_H
#define HANGSCOPE_RUNTIME_RUBY_RUBY_READER_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/process.h"
#include "runtime/runtime_memory.h"

namespace hangscope {

// The address of a variable of Ruby's library; nothing: there is none of that name.
using FindRubySymbol = std::function<std::optional<uint64_t>(std::string_view name)>;

struct RubyFrame {
  std::string function;  // "transfer", "block in transfer"
  std::string file;      // "/srv/bank.rb", "<internal:kernel>"; empty: not known
  int line = 0;          // where it is; 0: not known
  int first_line = 0;    // where its function begins; 0: not known, or that of a whole file
  bool operator==(const RubyFrame&) const = default;
};

// A frame as it lies on Ruby's stack.
struct RubySite {
  uint64_t pc = 0, iseq = 0, self = 0, env = 0;
};

enum class RubyWaitKind {
  kNone,         // it waits for nothing of Ruby's: it runs, or is in a system call
  kMutex,        // a Mutex, or a Monitor, which a thread has
  kObject,       // for what others put into or take from a Queue, or signal a ConditionVariable
  kJoin,         // the end of a thread
  kChildEnd,     // the end of a child
  kWakeup,       // Thread#wakeup: it has stopped itself
  kSleep,        // sleep(), with or without a time
  kInterpreter,  // until it may run
};

struct RubyWait {
  RubyWaitKind kind = RubyWaitKind::kNone;
  uint64_t object = 0;  // that it waits for
  std::string type;     // "Mutex", "SizedQueue"
  uint64_t thread = 0;  // that has it, or whose end it is; 0: none, or not known
  int child = 0;        // of kChildEnd: as of waitpid(2)
  bool operator==(const RubyWait&) const = default;
};

struct RubyThread {
  uint64_t address = 0;
  int tid = 0;  // as the process calls it; of the first one after fork() that of another process
  bool is_main = false;
  std::string name;  // that the program gave it; empty: none
  RubyWait wait;
};

// Of one look at one process.
class RubyReader {
 public:
  // Fails where the version is another, or has not what is needed; a sentence.
  static Result<std::unique_ptr<RubyReader>> Open(const FindRubySymbol& find, ReadMemory read);

  // At most `most`; that there are more, or that they could not all be read, is said in `warning`.
  std::vector<RubyThread> Threads(size_t most, std::string* warning);
  // Innermost first, functions of C included. Reads no more than a few pieces of memory.
  std::vector<RubySite> SitesOf(uint64_t thread) const;
  // Those of Ruby, at most `most`.
  std::vector<RubyFrame> FramesOf(const std::vector<RubySite>& sites, size_t most);
  // Around what the thread does, Timeout.timeout() has another thread raise an exception in this
  // one once the time is up.
  bool HasTimeLimit(const std::vector<RubySite>& sites);
  // Those for which the program has handlers in Ruby; bit N-1 is signal N.
  uint64_t HandledSignals() const;
  static StackFrame Name(const RubyFrame& frame);

 private:
  RubyReader(uint64_t vm, ReadMemory read) : vm_(vm), memory_(std::move(read)) {}
  uint64_t Word(uint64_t address) const { return memory_.Now<uint64_t>(address); }
  bool Members(uint64_t head, size_t most, std::vector<uint64_t>* members) const;
  bool HasType(uint64_t value, uint64_t type) const;
  std::string TypeOfData(uint64_t value);
  std::string Text(uint64_t string);
  RubyThread ReadThread(uint64_t address);
  RubyWait WaitOf(uint64_t thread);
  RubyWait MutexWait(uint64_t mutex, const std::vector<RubySite>& sites);
  RubyWait ObjectWait(const std::vector<RubySite>& sites);
  std::optional<RubyFrame> FrameAt(const RubySite& site);
  std::string PathOf(uint64_t body);
  int LineAt(uint64_t body, uint64_t pc);
  uint64_t EntryAt(uint64_t table, uint64_t position);

  const uint64_t vm_;
  RuntimeMemory memory_;
  std::map<uint64_t, uint64_t> owners_;             // by rb_mutex_t: the thread that has it
  std::map<uint64_t, uint64_t> interpreter_waits_;  // by thread: who has what it needs to run
  std::map<uint64_t, int> child_waits_;             // by execution context
};

}  // namespace hangscope

#endif
