// What a process of a PostgreSQL server does for its client: its session, the lock that it waits
// for and who has that; read from the memory of the process, part of which all of the server share.
// Of PostgreSQL 15, 64-bit machines.
//
// The layouts are those of PostgreSQL's headers (storage/proc.h, storage/lock.h, storage/shmem.h,
// utils/backend_status.h, libpq/libpq-be.h); its program exports the variables that lead there. All
// that is read may be anything: what does not fit together is not told, and each list is bounded.
#ifndef HANGSCOPE_RUNTIME_POSTGRES_POSTGRES_READER_H
#define HANGSCOPE_RUNTIME_POSTGRES_POSTGRES_READER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "proc/process_memory.h"

namespace hangscope {

// The major version whose memory is understood.
constexpr std::string_view kPostgresVersion = "15";

// The address of a variable of the server's program.
using FindServerVariable = std::function<std::optional<uint64_t>(std::string_view name)>;

// A heavyweight lock, for which a session waits.
struct PostgresLock {
  uint64_t address = 0;
  std::string name;          // "lock of transaction 735", "advisory lock (1, 2)"
  std::string mode;          // "ShareLock": how it is wanted
  std::vector<int> holders;  // processes that have it in such a way, as the server counts them
  // Nobody has it so. `holders` want it in a way that excludes this one, and stand before it.
  bool is_queued = false;
  bool has_prepared = false;  // a transaction has it, too, that no process runs any more
  bool is_cut = false;        // there are more holders, or they could not all be read
};

struct PostgresSession {
  enum class Wait { kOther, kWork, kReadClient, kWriteClient, kLock };
  Wait wait = Wait::kOther;
  int socket = -1;  // of its client; -1: it has none
  std::string user, database, application;
  std::string state;      // "active", "idle in transaction"; empty: not known
  std::string statement;  // the one that it runs, or ran last
  std::optional<PostgresLock> lock;
  // Limits that it keeps, where they are set.
  std::optional<TimeNs> lock_timeout, statement_timeout, idle_timeout, idle_in_transaction_timeout;
  std::optional<TimeNs> deadlock_timeout;
};

// Of the process that the server calls `pid`. Nothing: it is none that has a place among the
// server's processes, or its memory does not look as that of version 15 does; then `warning` says
// so.
std::optional<PostgresSession> ReadPostgresSession(int pid, const FindServerVariable& find,
                                                   const ReadMemory& read, std::string* warning);

}  // namespace hangscope

#endif
