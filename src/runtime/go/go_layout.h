// Where the runtime of Go keeps what is read of it, on 64-bit machines: of version 1.19.
//
// Source: the structures g, gobuf, sudog, semaRoot and hchan of Go's src/runtime/runtime2.go,
// sema.go and chan.go; sync.RWMutex and sync.WaitGroup of src/sync.
#ifndef HANGSCOPE_RUNTIME_GO_GO_LAYOUT_H
#define HANGSCOPE_RUNTIME_GO_GO_LAYOUT_H

#include <cstddef>
#include <cstdint>

namespace hangscope::go_layout {

constexpr uint64_t kBytesOfPointer = 8;

// A slice, or a string: where it begins, how many it has.
struct Slice {
  uint64_t begin = 0;
  uint64_t count = 0;
};

// Of a goroutine, the structure g.
constexpr uint64_t kStackEnd = 8;
constexpr uint64_t kThread = 48;  // the m that runs it
constexpr uint64_t kSavedStackPointer = 56;
constexpr uint64_t kSavedPc = 64;
constexpr uint64_t kSavedFramePointer = 104;
constexpr uint64_t kStatus = 144;
constexpr uint64_t kId = 152;
constexpr uint64_t kWaitReason = 176;
constexpr uint64_t kFirstPc = 312;
constexpr uint64_t kQueues = 328;  // its sudogs, by waitlink
constexpr size_t kBytesOfG = 336;

enum class Status : uint32_t {
  kIdle = 0,
  kRunnable = 1,
  kRunning = 2,
  kInSystemCall = 3,
  kWaiting = 4,
  kDead = 6,
  kCopiesStack = 8,
  kPreempted = 9,
};
constexpr uint32_t kScanBit = 0x1000;  // the collector looks at it

// Of a thread, the structure m.
constexpr uint64_t kThreadId = 72;

// Of who waits in a queue, the structure sudog.
constexpr uint64_t kSudogGoroutine = 0;
constexpr uint64_t kSudogNext = 8;       // in the tree of semaphores: one side
constexpr uint64_t kSudogPrevious = 16;  // the other
constexpr uint64_t kSudogElement = 24;   // there: the semaphore
constexpr uint64_t kSudogWaitLink = 64;
constexpr uint64_t kSudogChannel = 80;
constexpr size_t kBytesOfSudog = 88;

// The table of who waits for semaphores: a tree in each line.
constexpr size_t kSemaphoreLines = 251;
constexpr size_t kBytesOfLine = 64;
constexpr uint64_t kTree = 8;  // of a line

// How far behind the beginning of an object of `sync` its semaphores lie.
constexpr uint64_t kSemaphoreOfMutex = 4;
constexpr uint64_t kWriterOfRwMutex = 8;
constexpr uint64_t kReaderOfRwMutex = 12;
constexpr uint64_t kSemaphoreOfWaitGroup = 8;

}  // namespace hangscope::go_layout

#endif
