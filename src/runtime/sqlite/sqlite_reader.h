// What a thread waits for that naps in a busy handler of SQLite: its connection, the databases of
// that, and when it gives up; read from the memory of its process.
//
// Nothing is known of where libsqlite3 keeps what, but how its objects point to each other: a
// connection to its list of databases, the first two of which are called "main" and "temp"; its
// busy handler right before the places for these; each database to a B-tree, that to the pager,
// that to the open file. What does not look so is not read.
#ifndef HANGSCOPE_RUNTIME_SQLITE_SQLITE_READER_H
#define HANGSCOPE_RUNTIME_SQLITE_SQLITE_READER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "proc/process_memory.h"

namespace hangscope {

// What a connection has of a database's lock, in its own file.
enum class SqliteLevel { kNone, kShared, kReserved, kPending, kExclusive };

struct SqliteFile {
  int fd = -1;
  SqliteLevel level = SqliteLevel::kNone;
  int readers = 0;  // connections of the whole process that have it, or more
};

struct SqliteNap {
  uint64_t connection = 0;
  // Of the program's own handler 0, else how long SQLite's tries at most.
  int limit_ms = 0;
  // Of the connection, with the one first that the thread was about, as far as its stack tells.
  std::vector<SqliteFile> files;
};

// Whether a function that begins at `begin` is the one that `pc` is in.
using IsInFunction = std::function<bool(uint64_t begin, uint64_t pc)>;

// `stack` is that of the thread, from its innermost word on, `pcs` are where its innermost frames
// are. Nothing: it is in no busy handler.
std::optional<SqliteNap> FindSqliteNap(std::string_view stack, const std::vector<uint64_t>& pcs,
                                       const IsInFunction& is_in, const ReadMemory& read);

}  // namespace hangscope

#endif
