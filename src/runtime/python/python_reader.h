// The Python frames of a process's threads, read from outside: nothing runs in the process, and
// nobody is stopped for it. Of CPython 3.11.
//
// The layouts are those of CPython's headers (Include/internal/pycore_runtime.h, pycore_interp.h,
// pycore_frame.h, Include/cpython/pystate.h, code.h, unicodeobject.h), of 64-bit machines. All that
// is read may be anything: each object's type is checked, every list is bounded, and what cannot be
// made sense of ends the stack with a sentence.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_READER_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_READER_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/process.h"
#include "proc/process_memory.h"
#include "runtime/python/python_instructions.h"
#include "runtime/python/python_objects.h"

namespace hangscope {

// The address of a symbol of the file that the interpreter is in.
using FindSymbol = std::function<std::optional<uint64_t>(std::string_view name)>;

// A frame as its thread has it; what it is called is found out later.
struct PythonFrame {
  uint64_t code = 0;
  uint64_t instruction = 0;
  // The C function that evaluates it began with it, so that the next is of another call of that.
  bool is_entry = false;
  uint64_t address = 0;
};

// What a code object says of its frames.
struct PythonCode {
  std::string function, path, lines;
  int first_line = 0;
  uint64_t begin = 0;       // of its instructions
  uint64_t variables = 0;   // how many of them a frame has, before the values it computes with
  uint64_t names = 0;       // the tuple of the variables' names
  uint64_t attributes = 0;  // the tuple of the names of globals and attributes that it uses
  uint64_t constants = 0;   // the tuple of its constants
  uint64_t handlers = 0;    // of exceptions: the bytes object
  uint64_t units = 0;       // of its instructions, each of two bytes
};

struct PythonFrames {
  std::vector<PythonFrame> frames;  // innermost first
  std::string warning;              // why there are none, or no more; a sentence
};

// The standard library and what is installed beside it, in lib/python3.11 or lib/python3.
bool IsPythonLibrary(std::string_view path);

// A thread as the interpreter knows it.
struct PythonThread {
  uint64_t state;
  uint64_t ident;  // as Python's locks know it
  uint64_t tid;
  uint64_t c_frame;  // while Python runs in it, on its stack
};

// Of one look at one process.
class PythonReader {
 public:
  // Fails where the version is another. `file` is that of the interpreter: "libpython3.11.so.1.0".
  static Result<PythonReader> Open(const std::string& file, const FindSymbol& find,
                                   ReadMemory read);

  // Of the thread that the process calls `tid`, whose stack lies in [stack_begin, stack_end). No
  // frames: Python does not know it, or it is in none of them.
  PythonFrames FramesOf(int tid, uint64_t stack_begin, uint64_t stack_end, size_t most);
  // Stops at the first whose names cannot be read, and then sets `warning`.
  std::vector<StackFrame> Name(const std::vector<PythonFrame>& frames, std::string* warning);
  // The thread that holds the RLock with the semaphore at `semaphore`, as the process calls it.
  // `stack` is that of a thread that waits for it, from its innermost word on: the C function that
  // waits has the lock's object there. Nothing: it is no RLock, or nobody has it.
  std::optional<int> RLockOwner(uint64_t semaphore, std::string_view stack);

  // All that could be read.
  const std::vector<PythonThread>& Threads();
  PythonFrames FramesOf(const PythonThread& thread, size_t most) const;
  // Those of the frame at `address` and of its callers.
  PythonFrames FramesFrom(uint64_t address, size_t most) const;
  Result<const PythonCode*> CodeAt(uint64_t address);  // valid as long as this
  // None where they cannot be read; likewise.
  const PythonInstructions& InstructionsOf(const PythonCode& code);
  // The thread that Python's locks know by this number; nothing: none has it.
  std::optional<int> ThreadOf(uint64_t ident);
  std::optional<int> GlobalLockOwner();  // the thread that has the interpreter; nothing: none
  uint64_t GlobalLock() const;           // the condition variable that those wait on who want it
  PythonObjects& objects() { return objects_; }
  uint64_t runtime() const { return runtime_; }
  const ReadMemory& memory() const { return read_; }

 private:
  PythonReader(uint64_t runtime, uint64_t code_type, uint64_t text_type, uint64_t bytes_type,
               ReadMemory read)
      : runtime_(runtime),
        code_type_(code_type),
        bytes_type_(bytes_type),
        objects_(text_type, read),
        read_(std::move(read)) {}
  Status ReadThreads();
  Status ReadThreadsOf(uint64_t interpreter);
  const PythonThread* FindThread(int tid, uint64_t stack_begin, uint64_t stack_end) const;
  std::optional<uint64_t> IdentOfOwner(uint64_t object, uint64_t semaphore) const;
  Result<PythonCode> ReadCode(uint64_t address) const;
  Result<std::string> ReadBytes(uint64_t address) const;

  uint64_t runtime_, code_type_, bytes_type_;
  PythonObjects objects_;
  ReadMemory read_;
  std::optional<Status> threads_read_;
  std::vector<PythonThread> threads_;
  std::map<uint64_t, PythonCode> codes_;
  std::map<uint64_t, PythonInstructions> instructions_;  // by where they begin
};

// One stack of both: those of Python in the place of the C function that evaluates them, and
// without what else of the interpreter lies between; `module` is its file. The function that it
// calls the C library from stays: it tells for what it waits.
std::vector<StackFrame> MergeStacks(const std::vector<StackFrame>& native,
                                    const std::vector<PythonFrame>& python,
                                    const std::vector<StackFrame>& named,
                                    const std::string& module);

}  // namespace hangscope

#endif
