// The memory of a process of a PostgreSQL 15 server, as little of it as its lock needs, written
// down as the server lays it out. Any byte of it may be changed then.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_POSTGRES_H
#define HANGSCOPE_TESTS_FAKES_FAKE_POSTGRES_H

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/fake_memory.h"
#include "runtime/postgres/postgres_layout.h"
#include "runtime/postgres/postgres_reader.h"

namespace hangscope {

class FakePostgres : public FakeMemory {
 public:
  static constexpr uint64_t kBegin = 0x100000;
  static constexpr int kProcs = 8;
  static constexpr int kShare = 5, kExclusive = 7, kAccessExclusive = 8;

  // Of the process 100, which is the first of the server's; the others are 101, ...
  FakePostgres() : FakeMemory(kBegin) {
    using namespace postgres_layout;
    for (const char* name :
         {"MyProc", "ProcGlobal", "MyProcPort", "MyBEEntry", "max_prepared_xacts", "LockTimeout",
          "StatementTimeout", "IdleSessionTimeout", "IdleInTransactionSessionTimeout",
          "DeadlockTimeout"})
      variables_[name] = Block(8);
    procs_ = Block((kProcs + 1) * kProcBytes);  // the last is that of a prepared transaction
    for (int i = 0; i <= kProcs; ++i) {
      Put<int32_t>(Proc(i) + kProcPid, i == kProcs ? 0 : 100 + i);
      Put<int32_t>(Proc(i) + kProcNumber, i);
      Put<uint32_t>(Proc(i) + kProcDatabase, 5);
    }
    const uint64_t header = Block(kServerHeaderBytes);
    Put(header + kAllProcs, procs_);
    Put<uint32_t>(header + kProcCount, kProcs);
    Set<uint64_t>("ProcGlobal", header);
    Set<uint64_t>("MyProc", procs_);
    Set<int32_t>("max_prepared_xacts", 1);
    Set<int32_t>("DeadlockTimeout", 1000);
    const uint64_t port = Block(kPortBytes);
    Put<int32_t>(port + kPortSocket, 9);
    Put(port + kPortDatabase, Text("shop"));
    Put(port + kPortUser, Text("app"));
    Set<uint64_t>("MyProcPort", port);
    status_ = Block(kStatusBytes);
    Put<int32_t>(status_ + kStatusPid, 100);
    SetState(2, "UPDATE account SET balance = 0");
    Put(status_ + kStatusApplication, Text("till"));
    Set<uint64_t>("MyBEEntry", status_);
    lock_ = Block(kLockBytes);
    Close(lock_ + kLockHolders);
    Close(lock_ + kLockWaiters);
  }

  template <typename Number>
  void Set(const std::string& variable, Number number) {
    Put(variables_.at(variable), number);
  }
  void Forget(const std::string& variable) { variables_.erase(variable); }
  uint64_t Proc(int i) const {
    return procs_ + static_cast<uint64_t>(i) * postgres_layout::kProcBytes;
  }
  uint64_t lock() const { return lock_; }
  void SetEvent(uint32_t event) { Put(procs_ + postgres_layout::kWaitEvent, event); }
  void SetState(uint32_t state, const std::string& statement) {
    Put(status_ + postgres_layout::kStatusState, state);
    Put(status_ + postgres_layout::kStatusStatement, Text(statement));
  }
  void SetTag(uint8_t type, uint32_t a, uint32_t b = 0, uint32_t c = 0, uint16_t d = 0) {
    Put(lock_, a), Put(lock_ + 4, b), Put(lock_ + 8, c), Put(lock_ + 12, d), Put(lock_ + 14, type);
  }
  // Process `i` has the lock in the modes of `mask`, or is about to.
  uint64_t Hold(int i, uint32_t mask, int leader = -1) {
    using namespace postgres_layout;
    const uint64_t holder = Block(kHolderBytes);
    Put(holder, lock_);
    Put(holder + kHolderProc, Proc(i));
    Put(holder + kHolderGroup, Proc(leader < 0 ? i : leader));
    Put(holder + kHoldMask, mask);
    Append(lock_ + kLockHolders, holder + kHolderLink);
    return holder;
  }
  // It wants it, behind those that do so already.
  void Want(int i, int mode, int leader = -1) {
    using namespace postgres_layout;
    const uint64_t proc = Proc(i);
    Put(proc + kWaitProcLock, Hold(i, 0, leader));
    Put(proc + kWaitLock, lock_);
    Put<int32_t>(proc + kWaitMode, mode);
    Put(proc + kWaitStatus, kIsWaiting);
    Put<uint32_t>(proc + kWaitEvent, kLockEvents + 4);
    if (leader >= 0) Put(proc + kGroupLeader, Proc(leader));
    Append(lock_ + kLockWaiters, proc);
  }

  std::optional<PostgresSession> Read(std::string* warning, int pid = 100) const {
    const FindServerVariable find = [this](std::string_view name) -> std::optional<uint64_t> {
      const auto at = variables_.find(std::string(name));
      return at == variables_.end() ? std::nullopt : std::optional(at->second);
    };
    const ReadMemory read = [this](uint64_t address, void* into, size_t bytes) {
      ++reads;
      return FakeMemory::Read(address, into, bytes);
    };
    return ReadPostgresSession(pid, find, read, warning);
  }
  mutable size_t reads = 0;

 private:
  uint64_t Text(const std::string& text) {
    const uint64_t at = Block(text.size() + 1);
    PutText(at, text);
    return at;
  }
  // A list without members.
  void Close(uint64_t head) { Put(head, head), Put(head + 8, head); }
  void Append(uint64_t head, uint64_t link) {
    const uint64_t last = Get<uint64_t>(head);
    Put(link, last), Put(link + 8, head), Put(last + 8, link), Put(head, link);
  }

  std::map<std::string, uint64_t> variables_;
  uint64_t procs_ = 0;
  uint64_t status_ = 0;
  uint64_t lock_ = 0;
};

}  // namespace hangscope

#endif
