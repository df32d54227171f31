// The threads of a program of Java as its machine itself prints them, asked to (as jstack -l
// asks): of any version of HotSpot from 8 on, in the form of its source,
// src/hotspot/share/runtime/vframe.cpp (print_lock_info_on) and threads.cpp.
//
//   "teller-1" #14 prio=5 os_prio=0 cpu=1.83ms ... tid=0x00007f32 nid=0x7b7e waiting for monitor ...
//      java.lang.Thread.State: BLOCKED (on object monitor)
//   \tat Bank.transfer(Bank.java:31)
//   \t- waiting to lock <0x000000069ed480d0> (a Account)
//   \t- locked <0x000000069ed480b8> (a Account)
//
//      Locked ownable synchronizers:
//   \t- <0x000000069ed47fb0> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
//
// `nid` is the number of the thread in the process's own namespace, decimal from 21 on. All of it
// is of one instant. What a line says that is none of these is passed over.
#ifndef HANGSCOPE_RUNTIME_JVM_JVM_PRINT_H
#define HANGSCOPE_RUNTIME_JVM_JVM_PRINT_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jvm/jvm_threads.h"

namespace hangscope {

class PrintedJavaThreads final : public JavaThreads {
 public:
  explicit PrintedJavaThreads(std::string_view text);

  std::vector<JavaThread> Threads(size_t most, size_t most_frames, std::string* warning) override;
  // As it was printed: nothing newer is known.
  JavaWait WaitNow(const JavaThread& thread) override { return thread.wait; }
  // What is not printed may be so.
  bool HandlesSignals() override { return true; }

 private:
  // Of one thread, and what it says of the objects of others.
  struct Printed {
    JavaThread thread;
    std::vector<uint64_t> locked;   // monitors that it has entered
    std::vector<uint64_t> ownable;  // locks of java.util.concurrent that it has
    std::vector<std::string> callers;
    std::vector<std::string> initializes;  // classes
    std::string object_class;              // of what it waits for
    bool is_timed = false;
    uint64_t waits_on = 0;
  };
  void ReadHead(std::string_view line);
  void ReadState(std::string_view line);
  void ReadFrame(std::string_view text);
  void ReadInitializer(std::string_view class_name);
  void ReadObject(std::string_view text);
  void Judge(Printed* printed) const;
  static void NameWait(const Printed& printed, JavaWait* wait);

  std::vector<Printed> printed_;
  bool in_thread_ = false;
  bool in_ownable_ = false;
};

}  // namespace hangscope

#endif
