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
#include "runtime/jvm/jvm_threads.h"
#include "runtime/runtime_memory.h"

namespace hangscope {

// Of one look at one process.
class JvmReader final : public JavaThreads {
 public:
  // Fails where the version is another, or has not what is needed; a sentence.
  static Result<std::unique_ptr<JvmReader>> Open(const FindJvmSymbol& find, ReadMemory read);

  std::vector<JavaThread> Threads(size_t most, size_t most_frames, std::string* warning) override;
  JavaWait WaitNow(const JavaThread& thread) override;
  bool HandlesSignals() override;

 private:
  JvmReader(const JvmLayout& layout, std::unique_ptr<RuntimeMemory> memory)
      : layout_(layout),
        memory_(std::move(memory)),
        objects_(layout_, memory_.get()),
        frames_(layout_, &objects_, memory_.get()) {}
  std::optional<JavaThread> ReadThread(uint64_t address, size_t most_frames);
  StackFrame Name(const JavaFrame& frame);
  JavaWait MonitorWait(uint64_t monitor);
  JavaWait NotifyWait(const JavaThread& thread, uint64_t monitor);
  JavaWait ParkWait(const JavaThread& thread, uint64_t blocker);
  int OnlyReaderOf(uint64_t lock);  // its number; 0: none, or there are several
  JavaWait InitializerWait(uint64_t lock);
  uint64_t ObjectOf(uint64_t monitor) const;
  int OwnerOf(uint64_t monitor) const;
  int ThreadOf(uint64_t thread_object);
  bool Calls(const JavaThread& thread, std::string_view class_name, std::string_view method) const;
  void NameLocks(std::vector<JavaThread>* threads);

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
