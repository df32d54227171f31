// Whose lock of a database a thread wants that naps in SQLite's busy handler: ProcessLook's part.
#include <algorithm>
#include <string>

#include "process/process_look.h"
#include "runtime/sqlite/sqlite_reader.h"

namespace hangscope {
namespace {

constexpr size_t kMostInnermost = 8;  // frames, among which the handler is

// Bytes that SQLite locks: of the database's file ...
constexpr uint64_t kPendingByte = 0x40000000;
constexpr uint64_t kReservedByte = kPendingByte + 1;
constexpr uint64_t kFirstSharedByte = kPendingByte + 2;
constexpr uint64_t kLastSharedByte = kFirstSharedByte + 509;
// ... and of that beside it which the users of a log share.
constexpr uint64_t kLogWriteByte = 120;
constexpr uint64_t kCheckpointByte = 121;

bool Covers(const FileLockLine& lock, uint64_t first, uint64_t last) {
  return lock.first <= last && first <= lock.last;
}

// Processes whose locks keep a connection of `own`, which has `level`, from the next level. Where
// it is another connection of `own` itself, the kernel does not tell them apart, but SQLite does.
std::set<int> HoldersOfFile(const std::vector<FileLockLine>& locks, const SqliteFile& file,
                            int own) {
  std::set<int> of_readers, of_writer, of_reserved;
  for (const FileLockLine& lock : locks) {
    const bool is_shared = Covers(lock, kFirstSharedByte, kLastSharedByte);
    if (is_shared && lock.pid != own) of_readers.insert(lock.pid);
    if (!lock.write) continue;
    if (is_shared || Covers(lock, kPendingByte, kPendingByte)) of_writer.insert(lock.pid);
    if (Covers(lock, kReservedByte, kReservedByte)) of_reserved.insert(lock.pid);
  }
  if (file.level >= SqliteLevel::kReserved) {
    if (file.readers > 1) of_readers.insert(own);
    return of_readers;
  }
  return of_writer.empty() ? of_reserved : of_writer;
}

// A connection that checkpoints waits for whoever reads an old part of the log: who that is is not
// known.
std::set<int> HoldersOfLog(const std::vector<FileLockLine>& locks, int own) {
  std::set<int> holders;
  for (const FileLockLine& lock : locks) {
    if (!lock.write) continue;
    if (lock.pid == own && Covers(lock, kCheckpointByte, kCheckpointByte)) return {};
    if (Covers(lock, kLogWriteByte, kLogWriteByte)) holders.insert(lock.pid);
  }
  return holders;
}

}  // namespace

void ProcessLook::ExplainSqlite(const Work& work, ThreadWait* wait) {
  if (work.places.empty() || !work.raw.call) return;
  std::vector<uint64_t> pcs;
  for (size_t i = 0; i < std::min(work.places.size(), kMostInnermost); ++i)
    pcs.push_back(work.places[i].pc);
  const auto is_in = [&](uint64_t begin, uint64_t pc) {
    constexpr uint64_t kSmall = 256;  // SQLite's own handler has no name
    const auto function = walker_->FunctionAt(pc);
    return function && function->begin <= pc && pc < function->begin + function->bytes
               ? function->begin == begin
               : pc - begin < kSmall;
  };
  const auto nap =
      FindSqliteNap(StackBytes(work.raw.call->stack_pointer), pcs, is_in, read_memory_);
  if (!nap) return;
  for (const SqliteFile& file : nap->files) {
    WaitFile described = context_.files.Describe(living_, file.fd, true);
    if (described.kind != FileKind::kFile) continue;
    std::set<int> holders = HoldersOfFile(context_.files.LocksOn(living_, file.fd), file, pid_);
    const int log = context_.files.DescriptorOf(living_, described.name + "-shm");
    if (holders.empty() && log >= 0)
      holders = HoldersOfLog(context_.files.LocksOn(living_, log), pid_);
    if (holders.empty() || *holders.begin() <= 0) continue;
    for (const int holder : holders) {
      described.others.emplace_back(holder, -1);
      leads_to_.insert(holder);
    }
    wait->kind = WaitKind::kFileLock;
    wait->address = nap->connection;
    wait->object_type = "database";
    wait->files = {std::move(described)};
    wait->has_timeout = true;
    wait->timeout =
        nap->limit_ms > 0 ? std::optional<TimeNs>(nap->limit_ms * kMillisecond) : std::nullopt;
    return;
  }
}

}  // namespace hangscope
