// Where CPython 3.11 has what in its structures: offsets in bytes, of 64-bit machines, and flags.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_LAYOUT_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_LAYOUT_H

#include <cstddef>
#include <cstdint>

namespace hangscope::python_layout {

inline constexpr uint64_t kCodeUnitBytes = 2;
inline constexpr uint64_t kRuntimeInterpreters = 40;
inline constexpr uint64_t kRuntimeLastHolder = 368;  // of the interpreter's global lock
inline constexpr uint64_t kRuntimeIsHeld = 376;
inline constexpr uint64_t kRuntimeCondition = 392;
inline constexpr uint64_t kInterpreterNext = 0;
inline constexpr uint64_t kInterpreterThreads = 16;
inline constexpr size_t kThreadNext = 8;
inline constexpr size_t kThreadInterpreter = 16;
inline constexpr size_t kThreadCFrame = 56;
inline constexpr size_t kThreadIdent = 152;
inline constexpr size_t kThreadNativeId = 160;
inline constexpr size_t kThreadBytes = 168;
inline constexpr uint64_t kCFrameCurrent = 8;
inline constexpr size_t kFrameCode = 32;
inline constexpr size_t kFramePrevious = 48;
inline constexpr size_t kFrameInstruction = 56;
inline constexpr size_t kFrameIsEntry = 68;
inline constexpr size_t kFrameBytes = 72;
inline constexpr size_t kObjectType = 8;
inline constexpr size_t kCodeUnits = 16;  // how many it has
inline constexpr size_t kCodeConstants = 24;
inline constexpr size_t kCodeAttributes = 32;  // names of globals and attributes that it uses
inline constexpr size_t kCodeHandlers = 40;
inline constexpr size_t kCodeFirstLine = 72;
inline constexpr size_t kCodeVariables = 76;
inline constexpr size_t kCodeNames = 96;
inline constexpr size_t kCodePath = 112;
inline constexpr size_t kCodeQualifiedName = 128;
inline constexpr size_t kCodeLines = 136;
inline constexpr uint64_t kCodeInstructions = 184;
inline constexpr size_t kCodeBytes = 184;
inline constexpr size_t kBytesLength = 16;
inline constexpr uint64_t kBytesText = 32;
inline constexpr uint64_t kTypeName = 24;
inline constexpr size_t kRLockSemaphore = 16;
inline constexpr size_t kRLockOwner = 24;
inline constexpr size_t kRLockCount = 32;
inline constexpr size_t kRLockBytes = 40;
inline constexpr size_t kSize = 16;  // of what has a size
inline constexpr size_t kTextLength = 16;
inline constexpr size_t kTextState = 32;
inline constexpr size_t kTextHead = 40;
inline constexpr uint64_t kAsciiText = 48;
inline constexpr uint64_t kOtherText = 72;
inline constexpr size_t kTypeFlags = 168;
inline constexpr size_t kTypeMembers = 240;
inline constexpr size_t kTypeBase = 256;
inline constexpr uint64_t kTypeDict = 264;  // its methods
inline constexpr size_t kTypeDictOffset = 288;
inline constexpr size_t kTypeBytes = 296;
inline constexpr uint64_t kTypeCachedKeys = 872;
inline constexpr uint64_t kManagedDict = 1u << 4;
inline constexpr uint64_t kHeapType = 1u << 9;
inline constexpr uint64_t kIsLong = 1u << 24;
inline constexpr uint64_t kIsList = 1u << 25;
inline constexpr uint64_t kIsTuple = 1u << 26;
inline constexpr uint64_t kIsText = 1u << 28;
inline constexpr uint64_t kIsDict = 1u << 29;
inline constexpr uint64_t kValuesBefore = 32;  // before an object: its attributes' values, or else
inline constexpr uint64_t kDictBefore = 24;    // its dictionary
inline constexpr uint64_t kDictKeys = 32;
inline constexpr uint64_t kDictValues = 40;
inline constexpr size_t kKeysLogBytes = 9;
inline constexpr size_t kKeysKind = 10;
inline constexpr size_t kKeysCount = 24;
inline constexpr size_t kKeysHead = 32;
inline constexpr uint8_t kGeneralKeys = 0;
inline constexpr size_t kMemberBytes = 40;
inline constexpr size_t kMemberType = 8;
inline constexpr size_t kMemberOffset = 16;
inline constexpr int32_t kObjectMember = 16;
inline constexpr uint64_t kListItems = 24;
inline constexpr uint64_t kTupleItems = 24;
inline constexpr uint64_t kSetMask = 32;
inline constexpr uint64_t kSetTable = 40;
inline constexpr uint64_t kLongDigits = 24;
inline constexpr uint64_t kMethodFunction = 16;
inline constexpr uint64_t kMethodSelf = 24;
inline constexpr uint64_t kFunctionGlobals = 16;
inline constexpr uint64_t kBuiltinMethod = 16;  // of a builtin: what it is; first its name
inline constexpr uint64_t kFunctionName = 32;
inline constexpr uint64_t kFunctionCode = 48;
inline constexpr uint64_t kFunctionDefaults = 56;
inline constexpr uint64_t kFunctionClosure = 72;
inline constexpr uint64_t kPartialFunction = 16;
inline constexpr uint64_t kPartialArguments = 24;
inline constexpr uint64_t kPartialKeywords = 32;
inline constexpr uint64_t kReferent = 16;
inline constexpr uint64_t kFrameGlobals = 8;
inline constexpr uint64_t kFrameValues = 72;
inline constexpr uint64_t kCellContent = 16;
inline constexpr uint8_t kWithExceptStart = 49;     // it calls __exit__
inline constexpr uint64_t kSemaphoreOfObject = 16;  // of a lock, an RLock, a SimpleQueue, a SemLock
inline constexpr uint64_t kThreadEndLock =
    192;                                   // of a thread's state: a weak reference to its lock
inline constexpr uint64_t kFrameTop = 64;  // of a suspended frame: the index behind its values
inline constexpr uint64_t kWrapped = 16;   // what the iterator of a coroutine is of
inline constexpr uint64_t kGeneratorState = 75;
inline constexpr uint64_t kGeneratorFrame = 80;
inline constexpr int8_t kGeneratorSuspended = -1;
inline constexpr int8_t kGeneratorRuns = 0;
inline constexpr uint64_t kModuleDict = 16;
inline constexpr uint64_t kTaskLoop = 16;
inline constexpr uint64_t kTaskState = 88;    // 0: it has not ended
inline constexpr uint64_t kTaskWaiter = 128;  // the future that it awaits
inline constexpr uint64_t kTaskCoroutine = 136;
inline constexpr uint64_t kTaskName = 144;

}  // namespace hangscope::python_layout

#endif
