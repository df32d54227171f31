// Programs that wait for the lock of a database of SQLite: for ever, as good as for ever, and not.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "zoo.h"

using namespace zoo;

namespace {

constexpr int kTenMinutes = 600 * 1000;

void Run(sqlite3* database, const char* statement) {
  char* error = nullptr;
  if (sqlite3_exec(database, statement, nullptr, nullptr, &error) == SQLITE_OK) return;
  fprintf(stderr, "%s: %s\n", statement, error);
  _exit(99);
}

bool Try(sqlite3* database, const char* statement) {
  return sqlite3_exec(database, statement, nullptr, nullptr, nullptr) == SQLITE_OK;
}

sqlite3* Open(const char* path, int timeout_ms = kTenMinutes) {
  sqlite3* database = nullptr;
  Must(sqlite3_open(path, &database) == SQLITE_OK, path);
  sqlite3_busy_timeout(database, timeout_ms);
  return database;
}

void Make(const char* path, bool with_log = false) {
  sqlite3* database = Open(path);
  if (with_log) Run(database, "PRAGMA journal_mode=WAL");
  Run(database, "CREATE TABLE account (name TEXT, balance INTEGER)");
  for (int i = 0; i < 10; ++i) Run(database, "INSERT INTO account VALUES ('x', 100)");
  sqlite3_close(database);
}

// Where processes meet.
std::atomic<int>* SharedCount() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Must(page != MAP_FAILED, "mmap");
  return new (page) std::atomic<int>(0);
}

void Await(const std::atomic<int>& count, int least) {
  while (count < least) Nap(0.001);
}

void BeginWrite(sqlite3* database) {
  Run(database, "BEGIN IMMEDIATE");
  Run(database, "UPDATE account SET balance = balance - 1");
}

// A statement that has read a row, and is not done.
sqlite3_stmt* BeginRead(sqlite3* database) {
  sqlite3_stmt* statement = nullptr;
  Must(
      sqlite3_prepare_v2(database, "SELECT * FROM account", -1, &statement, nullptr) == SQLITE_OK &&
          sqlite3_step(statement) == SQLITE_ROW,
      "SELECT");
  return statement;
}

void WriteOther(sqlite3* database) { BeginWrite(database); }

// --- Hangs.

void CrossFiles(bool with_log, int (*handler)(void*, int), int timeout_ms) {
  Make("a.db", with_log);
  Make("b.db", with_log);
  std::atomic<int>* const count = SharedCount();
  for (const bool is_first : {true, false}) {
    if (Fork() != 0) continue;
    Rename(is_first ? "first" : "second");
    sqlite3* own = Open(is_first ? "a.db" : "b.db", timeout_ms);
    sqlite3* other = Open(is_first ? "b.db" : "a.db", timeout_ms);
    if (handler != nullptr) sqlite3_busy_handler(other, handler, nullptr);
    BeginWrite(own);
    ++*count;
    Await(*count, 2);
    WriteOther(other);
    _exit(0);
  }
  Await(*count, 2);
  Nap(0.3);
  Ready();
  while (wait(nullptr) > 0) {
  }
}

void Crossed(long) { CrossFiles(false, nullptr, kTenMinutes); }
void LogsCrossed(long) { CrossFiles(true, nullptr, kTenMinutes); }

int NapAndRetry(void*, int) {
  Nap(0.02);
  return 1;
}

void HandlerCrossed(long) { CrossFiles(false, NapAndRetry, kTenMinutes); }

void AttachedCrossed(long) {
  Make("a.db");
  Make("b.db");
  std::atomic<int>* const count = SharedCount();
  for (const bool is_first : {true, false}) {
    if (Fork() != 0) continue;
    Rename(is_first ? "first" : "second");
    sqlite3* database = Open("main.db");
    Run(database, "ATTACH 'a.db' AS left_side; ATTACH 'b.db' AS right_side; BEGIN");
    Run(database, is_first ? "UPDATE left_side.account SET balance = 0"
                           : "UPDATE right_side.account SET balance = 0");
    ++*count;
    Await(*count, 2);
    Run(database, is_first ? "UPDATE right_side.account SET balance = 0"
                           : "UPDATE left_side.account SET balance = 0");
    _exit(0);
  }
  Await(*count, 2);
  Nap(0.3);
  Ready();
  while (wait(nullptr) > 0) {
  }
}

Meeting both;

void* HoldAndWant(void* argument) {
  const bool is_first = Number(argument) == 0;
  sqlite3* own = Open(is_first ? "a.db" : "b.db");
  sqlite3* other = Open(is_first ? "b.db" : "a.db");
  BeginWrite(own);
  both.Come(2);
  WriteOther(other);
  return nullptr;
}

void ThreadsCrossed(long) {
  Make("a.db");
  Make("b.db");
  const pthread_t threads[] = {Start("left", HoldAndWant, 0), Start("right", HoldAndWant, 1)};
  Nap(0.3);
  Ready();
  Join({threads[0], threads[1]});
}

// One thread that opened a database twice.
void WantsItsOwn(long) {
  Make("app.db");
  sqlite3* first = Open("app.db");
  sqlite3* second = Open("app.db");
  BeginWrite(first);
  Ready();
  WriteOther(second);
}

void CommitWhileRead(sqlite3* database) { Run(database, "COMMIT"); }

// The reader, in the midst of its rows, waits for what comes after the commit.
void ReaderAwaitsCommit(long) {
  Make("app.db");
  int ends[2];
  MakePipe(ends);
  std::atomic<int>* const count = SharedCount();
  const pid_t reader = Fork();
  if (reader == 0) {
    Rename("reader");
    close(ends[1]);
    BeginRead(Open("app.db"));
    ++*count;
    ReadByte(ends[0]);
    _exit(0);
  }
  close(ends[0]);
  sqlite3* database = Open("app.db");
  Await(*count, 1);
  BeginWrite(database);
  Ready();
  CommitWhileRead(database);
  WriteByte(ends[1]);
}

void ReapWriter(pid_t child) { waitpid(child, nullptr, 0); }

// Inside of a transaction it waits for a child that writes to the same database.
void WaitsForWriter(long) {
  Make("app.db");
  sqlite3* database = Open("app.db");
  BeginWrite(database);
  const pid_t child = Fork();
  if (child == 0) {
    Rename("child");
    WriteOther(Open("app.db"));
    _exit(0);
  }
  Nap(0.2);
  Ready();
  ReapWriter(child);
}

void StoppedHolder(long) {
  Make("app.db");
  std::atomic<int>* const count = SharedCount();
  const pid_t holder = Fork();
  if (holder == 0) {
    Rename("holder");
    BeginWrite(Open("app.db"));
    ++*count;
    Nap(600);
    _exit(0);
  }
  Await(*count, 1);
  kill(holder, SIGSTOP);
  Ready();
  WriteOther(Open("app.db"));
}

pthread_mutex_t cache_mutex = PTHREAD_MUTEX_INITIALIZER;

void LockCache() { pthread_mutex_lock(&cache_mutex); }

void* LockInTransaction(void*) {
  BeginWrite(Open("app.db"));
  both.Come(2);
  LockCache();
  return nullptr;
}

void* WriteUnderLock(void*) {
  sqlite3* database = Open("app.db");
  pthread_mutex_lock(&cache_mutex);
  both.Come(2);
  WriteOther(database);
  return nullptr;
}

void MutexAndDatabase(long) {
  Make("app.db");
  const pthread_t threads[] = {Start("cacher", LockInTransaction), Start("writer", WriteUnderLock)};
  Nap(0.3);
  Ready();
  Join({threads[0], threads[1]});
}

// --- Not.

// Each holds what the other wants, gives up after a while, and begins anew.
void CrossedGivesUp(long) {
  Make("a.db");
  Make("b.db");
  std::atomic<int>* const count = SharedCount();
  for (const bool is_first : {true, false}) {
    if (Fork() != 0) continue;
    Rename(is_first ? "first" : "second");
    sqlite3* own = Open(is_first ? "a.db" : "b.db", 1500);
    sqlite3* other = Open(is_first ? "b.db" : "a.db", 1500);
    ++*count;
    for (;;) {
      if (!Try(own, "BEGIN IMMEDIATE")) continue;
      Nap(0.01);
      if (Try(other, "BEGIN IMMEDIATE")) Try(other, "COMMIT");
      Try(own, "ROLLBACK");
      Nap(is_first ? 0.05 : 0.2);
    }
  }
  Await(*count, 2);
  Ready();
  while (wait(nullptr) > 0) {
  }
}

void HolderNaps(long) {
  Make("app.db");
  std::atomic<int>* const count = SharedCount();
  if (Fork() == 0) {
    Rename("holder");
    sqlite3* database = Open("app.db");
    for (;;) {
      BeginWrite(database);
      ++*count;
      Nap(3);
      Run(database, "COMMIT");
      Nap(0.3);
    }
  }
  sqlite3* database = Open("app.db");
  Await(*count, 1);
  Ready();
  for (;;) {
    BeginWrite(database);
    Run(database, "COMMIT");
  }
}

void HolderSleepsLong(long) {
  Make("app.db");
  std::atomic<int>* const count = SharedCount();
  if (Fork() == 0) {
    Rename("holder");
    BeginWrite(Open("app.db"));
    ++*count;
    NapForLong();
  }
  Await(*count, 1);
  Ready();
  WriteOther(Open("app.db"));
}

// As a shell in which somebody has begun a transaction.
void HolderReadsInput(long) {
  Make("app.db");
  std::atomic<int>* const count = SharedCount();
  if (Fork() == 0) {
    Rename("holder");
    BeginWrite(Open("app.db"));
    ++*count;
    ReadByte(0);
    NapForLong();
  }
  Await(*count, 1);
  Ready();
  WriteOther(Open("app.db"));
}

void HolderComputes(long) {
  Make("app.db");
  std::atomic<int>* const count = SharedCount();
  if (Fork() == 0) {
    Rename("holder");
    sqlite3* database = Open("app.db");
    BeginWrite(database);
    ++*count;
    for (;;)
      Run(database,
          "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n LIMIT 100000) "
          "UPDATE account SET balance = (SELECT sum(x * x % 7) FROM n)");
  }
  Await(*count, 1);
  Ready();
  WriteOther(Open("app.db"));
}

void WriteForEver(const char* path) {
  sqlite3* database = Open(path);
  for (;;) {
    BeginWrite(database);
    Run(database, "COMMIT");
  }
}

void Contend(long number, bool with_log) {
  Make("app.db", with_log);
  for (long i = 0; i < number; ++i) {
    if (Fork() != 0) continue;
    Rename("writer");
    WriteForEver("app.db");
  }
  Nap(0.2);
  Ready();
  while (wait(nullptr) > 0) {
  }
}

void Contended(long number) { Contend(number, false); }
void LogContended(long number) { Contend(number, true); }

void* WriteInThread(void*) {
  WriteForEver("app.db");
  return nullptr;
}

void ThreadsContended(long number) {
  Make("app.db");
  pthread_t last = {};
  for (long i = 0; i < number; ++i) last = Start("writer", WriteInThread);
  Nap(0.2);
  Ready();
  Join(last);
}

// In one process beside a thread that will commit.
void* HoldForAWhile(void*) {
  sqlite3* database = Open("app.db");
  for (;;) {
    BeginWrite(database);
    both.Come(2);
    Nap(3);
    Run(database, "COMMIT");
    Nap(0.3);
  }
}

void ThreadHolderNaps(long) {
  Make("app.db");
  Start("holder", HoldForAWhile);
  both.Come(2);
  Ready();
  WriteForEver("app.db");
}

void CheckpointAwaitsReader(long) {
  Make("app.db", true);
  std::atomic<int>* const count = SharedCount();
  sqlite3* database = Open("app.db");
  if (Fork() == 0) {
    Rename("reader");
    sqlite3* own = Open("app.db");
    for (;;) {
      sqlite3_stmt* statement = BeginRead(own);
      ++*count;
      Nap(2);
      sqlite3_finalize(statement);
      Nap(0.2);
    }
  }
  Await(*count, 1);
  Ready();
  for (;;) {
    BeginWrite(database);
    Run(database, "COMMIT");
    sqlite3_wal_checkpoint_v2(database, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
    Nap(0.01);
  }
}

void SleepsInside(sqlite3_context* context, int, sqlite3_value**) {
  Nap(600);
  sqlite3_result_int(context, 1);
}

void FunctionSleeps(long) {
  Make("app.db");
  sqlite3* database = Open("app.db");
  sqlite3_create_function(database, "rest", 0, SQLITE_UTF8, nullptr, SleepsInside, nullptr,
                          nullptr);
  Run(database, "BEGIN IMMEDIATE");
  Ready();
  Run(database, "SELECT rest()");
}

void SleepsByLibrary(long) {
  Make("app.db");
  BeginWrite(Open("app.db"));
  Ready();
  for (;;) sqlite3_sleep(50);
}

// What it asks for comes, after the busy handler has napped.
void TurnsOverPipes(long) {
  Make("app.db");
  int there[2], back[2];
  MakePipe(there);
  MakePipe(back);
  sqlite3* database = nullptr;
  if (Fork() == 0) {
    Rename("second");
    database = Open("app.db");
    for (;;) {
      ReadByte(there[0]);
      BeginWrite(database);
      Run(database, "COMMIT");
      WriteByte(back[1]);
    }
  }
  database = Open("app.db");
  Ready();
  for (;;) {
    BeginWrite(database);
    WriteByte(there[1]);
    Nap(0.3);
    Run(database, "COMMIT");
    ReadByte(back[0]);
  }
}

constexpr Program kPrograms[] = {
    {"crossed", Crossed},
    {"logs-crossed", LogsCrossed},
    {"handler-crossed", HandlerCrossed},
    {"attached-crossed", AttachedCrossed},
    {"threads-crossed", ThreadsCrossed},
    {"wants-its-own", WantsItsOwn},
    {"reader-awaits-commit", ReaderAwaitsCommit},
    {"waits-for-writer", WaitsForWriter},
    {"stopped-holder", StoppedHolder},
    {"mutex-and-database", MutexAndDatabase},
    {"crossed-gives-up", CrossedGivesUp},
    {"holder-naps", HolderNaps},
    {"holder-sleeps-long", HolderSleepsLong},
    {"holder-reads-input", HolderReadsInput},
    {"holder-computes", HolderComputes},
    {"contended", Contended},
    {"log-contended", LogContended},
    {"threads-contended", ThreadsContended},
    {"thread-holder-naps", ThreadHolderNaps},
    {"checkpoint-awaits-reader", CheckpointAwaitsReader},
    {"function-sleeps", FunctionSleeps},
    {"sleeps-by-library", SleepsByLibrary},
    {"turns-over-pipes", TurnsOverPipes},
};

}  // namespace

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }
