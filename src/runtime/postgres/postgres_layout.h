// Where PostgreSQL 15 keeps what, on 64-bit machines.
#ifndef HANGSCOPE_RUNTIME_POSTGRES_POSTGRES_LAYOUT_H
#define HANGSCOPE_RUNTIME_POSTGRES_POSTGRES_LAYOUT_H

#include <cstddef>
#include <cstdint>

namespace hangscope::postgres_layout {

// PROC_HDR, to which ProcGlobal points: PGPROC *allProcs, ..., uint32 allProcCount.
constexpr size_t kAllProcs = 0;
constexpr size_t kProcCount = 32;
constexpr size_t kServerHeaderBytes = 40;  // that are read

// PGPROC, to which MyProc points: a process of the server. It begins with {prev, next} of the queue
// that it waits in.
constexpr size_t kProcBytes = 880;
constexpr size_t kProcNext = 8;
constexpr size_t kWaitStatus = 32;  // 1: it waits for a lock
constexpr size_t kProcPid = 64;     // 0: that of a prepared transaction
constexpr size_t kProcNumber = 72;
constexpr size_t kProcDatabase = 80;
constexpr size_t kWaitLock = 112;
constexpr size_t kWaitProcLock = 120;
constexpr size_t kWaitMode = 128;
constexpr size_t kWaitEvent = 712;
constexpr size_t kGroupLeader = 840;
constexpr uint32_t kIsWaiting = 1;

// LOCK: LOCKTAG {uint32 field1, field2, field3; uint16 field4; uint8 type, method}; {prev, next} of
// its PROCLOCKs; {prev, next} and count of the PGPROCs that wait.
constexpr size_t kLockHolders = 24;
constexpr size_t kLockWaiters = 40;
constexpr size_t kLockBytes = 64;  // that are read

// PROCLOCK: LOCK*, PGPROC*, PGPROC *groupLeader, int holdMask, releaseMask; lockLink {prev, next}.
constexpr size_t kHolderProc = 8;
constexpr size_t kHolderGroup = 16;
constexpr size_t kHoldMask = 24;
constexpr size_t kHolderLink = 32;
constexpr size_t kHolderBytes = 64;

// PgBackendStatus, to which MyBEEntry points.
constexpr size_t kStatusPid = 4;
constexpr size_t kStatusState = 232;
constexpr size_t kStatusApplication = 240;
constexpr size_t kStatusStatement = 248;
constexpr size_t kStatusBytes = 256;  // that are read

// Port, to which MyProcPort points.
constexpr size_t kPortSocket = 0;
constexpr size_t kPortDatabase = 328;
constexpr size_t kPortUser = 336;
constexpr size_t kPortBytes = 344;  // that are read

// Wait events: a class in the highest byte.
constexpr uint32_t kEventClass = 0xff000000;
constexpr uint32_t kLockEvents = 0x03000000;
constexpr uint32_t kActivityEvents = 0x05000000;
constexpr uint32_t kClientRead = 0x06000000;
constexpr uint32_t kClientWrite = 0x06000001;

}  // namespace hangscope::postgres_layout

#endif
