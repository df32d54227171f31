// The goroutines of a program of Go, read from outside: nothing runs in the program, and nobody is
// stopped for it. Of Go 1.19, on x86-64.
//
// All that is read may be anything: every list is bounded, and what cannot be made sense of is left
// out, with a sentence.
#ifndef HANGSCOPE_RUNTIME_GO_GO_READER_H
#define HANGSCOPE_RUNTIME_GO_GO_READER_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proc/process_memory.h"

namespace hangscope {

struct Goroutine {
  uint64_t id = 0;
  uint64_t address = 0;         // of its g
  bool waits = false;           // until somebody wakes it
  bool runs = false;            // in a thread, or in a system call
  bool in_system_call = false;  // or in C
  int tid = 0;                  // that thread, as the process calls it; 0: none, or not known
  std::string reason;           // why it waits: "chan receive"
  // Where it goes on; 0 where it runs, and is in no system call.
  uint64_t pc = 0;
  uint64_t stack_pointer = 0;
  uint64_t frame_pointer = 0;
  uint64_t stack_begin = 0;  // the lowest address, whatever of it is in use
  uint64_t stack_end = 0;
  uint64_t first_pc = 0;           // of the function that it began with
  uint64_t semaphore = 0;          // that it waits for; 0: for none
  std::vector<uint64_t> channels;  // that it waits for, as select may for several
  bool operator==(const Goroutine&) const = default;
};

// What a goroutine waits for, by the functions of `sync` that it is in.
struct GoObject {
  std::string type;      // "mutex", "rwmutex", "wait group"; empty: it is none of those
  uint64_t address = 0;  // where the object begins
  bool has_holder = false;
  bool operator==(const GoObject&) const = default;
};
// `functions`: innermost first, as Go calls them: "sync.(*Mutex).lockSlow".
GoObject ObjectOfSemaphore(uint64_t semaphore, const std::vector<std::string>& functions);

// Of one look at one process.
class GoReader {
 public:
  using FindSymbol = std::function<std::optional<uint64_t>(std::string_view name)>;

  // Whether the goroutines of a program of this version are known: "go1.19.8".
  static bool Knows(std::string_view version);
  // Fails where they are not, or the program has not what is needed; a sentence. `find` knows the
  // addresses of the program's variables.
  static Result<GoReader> Open(const std::string& version, const FindSymbol& find, ReadMemory read);

  // Those of the program that have not ended, in the order in which they were made; the runtime's
  // own, which begin in a function `is_of_runtime` says yes to, are left out. At most `most`;
  // that there are more is said in `warning`.
  std::vector<Goroutine> Goroutines(size_t most,
                                    const std::function<bool(uint64_t pc)>& is_of_runtime,
                                    std::string* warning) const;
  // Where the runtime keeps these; 0: not known.
  uint64_t heap() const { return heap_; }
  uint64_t module() const { return module_; }
  uint64_t semaphores() const { return semaphores_; }
  // It waits, or goes on, where it did when it was read.
  bool StandsAsBefore(const Goroutine& goroutine) const;

 private:
  GoReader(uint64_t all, uint64_t semaphores, ReadMemory read)
      : all_(all), semaphores_(semaphores), read_(std::move(read)) {}
  std::optional<Goroutine> ReadGoroutine(uint64_t address) const;
  std::map<uint64_t, uint64_t> Semaphores() const;  // by goroutine
  std::vector<uint64_t> Channels(uint64_t sudog) const;

  uint64_t all_, semaphores_;
  uint64_t heap_ = 0, module_ = 0;
  ReadMemory read_;
};

}  // namespace hangscope

#endif
