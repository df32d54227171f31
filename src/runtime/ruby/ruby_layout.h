// Where Ruby 3.1 keeps what, on x86-64 with glibc: facts of its headers (vm_core.h, ractor_core.h,
// thread_pthread.h, iseq.h, ruby/internal/core/) and of thread_sync.c, thread.c, process.c, iseq.c
// and monitor.c, and each seen in live programs of Debian's 3.1.2.
#ifndef HANGSCOPE_RUNTIME_RUBY_RUBY_LAYOUT_H
#define HANGSCOPE_RUNTIME_RUBY_RUBY_LAYOUT_H

#include <cstddef>
#include <cstdint>

namespace hangscope::ruby_layout {

constexpr int kMajor = 3, kMinor = 1;

// A list is {next, prev}; its head has the same form and is no member.

// rb_vm_t, to which ruby_current_vm_ptr points.
constexpr uint64_t kVmRactors = 8;       // a list of rb_ractor_t, by kRactorLink
constexpr uint64_t kVmMainThread = 40;   // rb_thread_t*
constexpr uint64_t kVmChildWaits = 272;  // a list of those who wait for a child
constexpr uint64_t kVmTraps = 456;       // VALUE cmd[65]: by signal, what trap() was given
constexpr int kSignals = 65;

// struct waitpid_state: list_node, rb_execution_context_t*, condition*, pid_t ret, pid.
constexpr uint64_t kChildWaitEc = 16;
constexpr uint64_t kChildWaitFor = 36;

// rb_ractor_t: threads that may run one at a time. Its lock (GVL) is {owner, pthread_mutex_t,
// waiters...}.
constexpr uint64_t kRactorThreads = 304;  // a list of rb_thread_t, which begin with their link
constexpr uint64_t kRactorLockOwner = 336;
constexpr uint64_t kRactorLockWaiters = 384;  // a list of rb_thread_t, by kThreadLockLink
constexpr uint64_t kRactorLink = 568;

// rb_thread_t.
constexpr uint64_t kThreadEc = 40;
constexpr uint64_t kThreadId = 88;      // of the kernel; of a copy that fork() made, the original's
constexpr uint64_t kThreadStatus = 92;  // in the lowest two bits
constexpr uint64_t kThreadLockLink = 104;
constexpr uint64_t kThreadRegion = 168;      // not 0: it has let go of the lock, for a system call
constexpr uint64_t kThreadWantsMutex = 264;  // VALUE
constexpr uint64_t kThreadHasMutexes = 272;  // rb_mutex_t*, the first of a chain
constexpr uint64_t kThreadName = 352;        // VALUE
enum class ThreadStatus : uint8_t { kRuns = 0, kSleeps = 1, kSleepsForever = 2, kKilled = 3 };

// rb_mutex_t: rb_fiber_t *fiber, rb_mutex_t *next_mutex, a list of waiters.
constexpr uint64_t kMutexNext = 8;
// struct rb_monitor: long count; VALUE owner, mutex.
constexpr uint64_t kMonitorMutex = 16;

// rb_execution_context_t: VALUE *vm_stack; size_t vm_stack_size, in words; the innermost frame.
// Frames grow towards the begin of the stack.
constexpr uint64_t kEcStack = 0;
constexpr uint64_t kEcStackWords = 8;
constexpr uint64_t kEcFrame = 16;

// rb_control_frame_t.
constexpr size_t kFrameBytes = 64;
constexpr size_t kFramePc = 0;
constexpr size_t kFrameIseq = 16;  // 0: of a function of C
constexpr size_t kFrameSelf = 24;
constexpr size_t kFrameEnv = 32;  // where that begins stands what kind of frame it is
constexpr uint64_t kFrameKindMask = 0x7fff0000;
constexpr uint64_t kFrameOfNothing = 0x79990000;  // VM_FRAME_MAGIC_DUMMY

// rb_iseq_t: flags, wrapper, body. The body: where in code the lines are is insns_info: entries
// {int line, node; uint32 events}, positions, their number, and the table that leads from a
// position to an entry.
constexpr uint64_t kIseqBody = 16;
constexpr uint64_t kBodySize = 4;  // in words
constexpr uint64_t kBodyCode = 8;
constexpr uint64_t kBodyPath = 64;   // VALUE: the path, or [path, real path]
constexpr uint64_t kBodyLabel = 80;  // VALUE
constexpr uint64_t kBodyFirstLine = 88;
constexpr uint64_t kBodyLines = 120;
constexpr uint64_t kBodyLineCount = 136;
constexpr uint64_t kBodyLineIndex = 144;
constexpr uint64_t kLineEntryBytes = 12;

// The table (struct succ_index_table) has for each of the first 54 positions the number of the
// entry, in 7 bits, nine of them a word; then for each 512 positions {uint32 rank; uint64 ranks of
// 64 positions each but the first, in 9 bits; uint64 bits[8]}, a bit for each position where an
// entry begins.
constexpr uint64_t kDirectPositions = 54;
constexpr uint64_t kDirectPerWord = 9;
constexpr unsigned kDirectBits = 7;
constexpr uint64_t kDirectBytes = 48;
constexpr uint64_t kIndexBlockPositions = 512;
constexpr uint64_t kIndexBlockBytes = 80;
constexpr uint64_t kIndexBlockRanks = 8;
constexpr uint64_t kIndexBlockBits = 16;
constexpr unsigned kRankBits = 9;

// A VALUE is an object's address unless one of its lowest three bits is set, or it is false, nil or
// another of the small ones. RBasic: flags, class.
constexpr uint64_t kNoObjectMask = 7;
constexpr uint64_t kNil = 8;
constexpr uint64_t kTypeMask = 0x1f;
constexpr uint64_t kString = 5, kArray = 7, kData = 12, kInternal = 26;
constexpr uint64_t kElsewhere = 1 << 13;  // of strings: not in the object; of arrays: in the object
// RString: in the object from here on, with its length in the flags; or {length, address}.
constexpr uint64_t kBody = 16;
constexpr unsigned kShortLengthShift = 14;
constexpr uint64_t kShortLengthMask = 0x1f;
constexpr uint64_t kStringBytes = 24;
constexpr uint64_t kArrayItems = 32;
// What is internal has its kind in four bits.
constexpr unsigned kInternalShift = 12;
constexpr uint64_t kInternalMask = 0xf;
constexpr uint64_t kInternalIseq = 7;
// RTypedData: rb_data_type_t*, which begins with the address of a name; 1; the C object.
constexpr uint64_t kDataType = 16;
constexpr uint64_t kDataIsTyped = 24;
constexpr uint64_t kDataObject = 32;

}  // namespace hangscope::ruby_layout

#endif
