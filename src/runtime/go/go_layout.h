// Where the runtime of Go keeps what is read of it, on 64-bit machines: of version 1.19.
//
// Source: the structures g, gobuf, sudog, semaRoot and hchan, and the reasons of waits, of Go's
// src/runtime/runtime2.go, sema.go and chan.go; sync.RWMutex and sync.WaitGroup of src/sync. For
// what its collector knows: mheap, mspan, heapArena and special of mheap.go, the bits of
// mbitmap.go, moduledata, _func, pcvalue, pcHeader and inlinedCall of symtab.go, stackmap and
// stackObjectRecord of stack.go.
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
constexpr uint64_t kStackBegin = 0;
constexpr uint64_t kStackEnd = 8;
constexpr uint64_t kDeferred = 40;
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

// Why a goroutine waits, as stacks that the runtime prints say it, by the number in g.
constexpr const char* kWaitReasons[] = {"",
                                        "GC assist marking",
                                        "IO wait",
                                        "chan receive (nil chan)",
                                        "chan send (nil chan)",
                                        "dumping heap",
                                        "garbage collection",
                                        "garbage collection scan",
                                        "panicwait",
                                        "select",
                                        "select (no cases)",
                                        "GC assist wait",
                                        "GC sweep wait",
                                        "GC scavenge wait",
                                        "chan receive",
                                        "chan send",
                                        "finalizer wait",
                                        "force gc (idle)",
                                        "semacquire",
                                        "sleep",
                                        "sync.Cond.Wait",
                                        "timer goroutine (idle)",
                                        "trace reader (blocked)",
                                        "wait for GC cycle",
                                        "GC worker (idle)",
                                        "preempted",
                                        "debug call"};

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

// Of the heap, the structure mheap.
constexpr uint64_t kAllSpans = 65'856;
constexpr uint64_t kArenas = 65'936;  // an array of arenas, by address
constexpr uint64_t kBytesOfArena = 64 << 20;
constexpr uint64_t kArenasOfAll = 1 << 22;
constexpr uint64_t kLowestArena = 0xffff'8000'0000'0000;
constexpr uint64_t kBytesOfPage = 8192;

// Of a run of pages, the structure mspan.
constexpr uint64_t kSpanBegin = 24;
constexpr uint64_t kSpanPages = 32;
constexpr uint64_t kSpanClass = 98;  // its lowest bit: no pointers in its objects
constexpr uint64_t kSpanState = 99;
constexpr uint64_t kSpanObjectBytes = 104;
constexpr uint64_t kSpanSpecials = 128;
constexpr size_t kBytesOfSpan = 136;
constexpr uint8_t kSpanInUse = 1;
constexpr uint8_t kSpanLast = 2;  // of its states

// The bits of an arena, from its beginning on: a byte for four words. Of each word, from the lowest
// bits on: whether it is a pointer, and four higher, whether there is any from it on.
constexpr uint64_t kWordsOfBitByte = 4;

// Of what is attached to an object, the structures special and specialfinalizer.
constexpr uint64_t kSpecialNext = 0;
constexpr uint64_t kSpecialOffset = 8;
constexpr uint64_t kSpecialKind = 10;
constexpr uint64_t kFinalizerFunction = 16;
constexpr size_t kBytesOfSpecial = 24;
constexpr uint8_t kFinalizer = 1;

// Of the code, the structure moduledata.
constexpr uint64_t kFunctionNames = 8;
constexpr uint64_t kUnits = 32;  // of each unit, where its files' names are
constexpr uint64_t kFileNames = 56;
constexpr uint64_t kPcTable = 80;
constexpr uint64_t kFunctionHeads = 104;
constexpr uint64_t kFunctionTable = 128;
constexpr uint64_t kText = 176;
constexpr uint64_t kTextEnd = 184;
constexpr uint64_t kPlainData = 192;  // without pointers
constexpr uint64_t kData = 208;
constexpr uint64_t kBss = 224;
constexpr uint64_t kModuleEnd = 256;
constexpr uint64_t kTypesBegin = 280;
constexpr uint64_t kTypesEnd = 288;
constexpr uint64_t kReadOnlyData = 296;
constexpr uint64_t kFunctionData = 304;
constexpr uint64_t kDataBits = 496;
constexpr uint64_t kBssBits = 512;
constexpr uint64_t kNextModule = 544;
constexpr size_t kBytesOfModule = 552;

// Of the tables of functions, the structure pcHeader.
constexpr uint32_t kHeadMagic = 0xffff'fff0;
constexpr uint64_t kHeadPointerBytes = 7;
constexpr uint64_t kHeadNames = 32;
constexpr size_t kBytesOfHead = 72;

// Of a function, the structure _func, behind which lie the offsets of its tables.
constexpr uint64_t kNameOfCode = 4;
constexpr uint64_t kFilesOfPcs = 20;
constexpr uint64_t kLinesOfPcs = 24;
constexpr uint64_t kUnitOfFunction = 32;
constexpr uint64_t kArguments = 8;
constexpr uint64_t kStackDeltas = 16;
constexpr uint64_t kPcTables = 28;
constexpr uint64_t kFlags = 37;
constexpr uint64_t kFunctionTables = 39;
constexpr size_t kBytesOfFunction = 40;
constexpr int32_t kUnknownArguments = INT32_MIN;
constexpr uint8_t kOutermost = 1;
constexpr uint8_t kSetsStackPointer = 2;
constexpr size_t kStackMapOfPc = 1;
constexpr size_t kMapsOfArguments = 0;
constexpr size_t kMapsOfLocals = 1;
constexpr size_t kStackObjects = 2;
constexpr size_t kInlinedCallOfPc = 2;
constexpr size_t kInlinedCalls = 3;

// Of a call that was inlined, the structure inlinedCall: where it stands, what is called, and an
// instruction of whoever calls.
constexpr uint64_t kInlinedFile = 4;
constexpr uint64_t kInlinedLine = 8;
constexpr uint64_t kInlinedName = 12;
constexpr uint64_t kInlinedIn = 16;
constexpr size_t kBytesOfInlined = 20;

// Of what a function has to do at its end, the structure _defer.
constexpr uint64_t kDeferredFunction = 24;
constexpr uint64_t kDeferredNext = 40;

}  // namespace hangscope::go_layout

#endif
