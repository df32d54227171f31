#include "runtime/postgres/postgres_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "runtime/postgres/postgres_layout.h"

namespace hangscope {
namespace {

using namespace postgres_layout;

constexpr uint32_t kMostProcs = 1 << 18;     // PostgreSQL's own limit
constexpr size_t kMostListed = 4096;         // of one list
constexpr size_t kMostPostgresHolders = 64;  // that are told
constexpr size_t kMostNameBytes = 64;
constexpr size_t kMostStatementBytes = 1024;

constexpr const char* kModes[] = {"",
                                  "AccessShareLock",
                                  "RowShareLock",
                                  "RowExclusiveLock",
                                  "ShareUpdateExclusiveLock",
                                  "ShareLock",
                                  "ShareRowExclusiveLock",
                                  "ExclusiveLock",
                                  "AccessExclusiveLock"};
constexpr int kHighestMode = 8;

constexpr uint32_t ModeMask(int first, int last) {
  uint32_t mask = 0;
  for (int mode = first; mode <= last; ++mode) mask |= 1u << mode;
  return mask;
}

// The modes that each excludes, as PostgreSQL's manual lists them.
constexpr uint32_t kExcludes[] = {0,
                                  ModeMask(8, 8),
                                  ModeMask(7, 8),
                                  ModeMask(5, 8),
                                  ModeMask(4, 8),
                                  ModeMask(3, 4) | ModeMask(6, 8),
                                  ModeMask(3, 8),
                                  ModeMask(2, 8),
                                  ModeMask(1, 8)};

class SessionReader {
 public:
  SessionReader(const FindServerVariable& find, const ReadMemory& read)
      : find_(find), read_(read) {}

  std::optional<PostgresSession> Read(int pid, std::string* warning);

 private:
  std::optional<std::string> ObjectAt(uint64_t address, size_t bytes) const;
  std::string TextAt(uint64_t address, size_t most) const;
  template <typename Number>
  std::optional<Number> Variable(std::string_view name) const {
    const auto address = find_(name);
    Number number = {};
    if (!address || !read_(*address, &number, sizeof number)) return std::nullopt;
    return number;
  }
  std::optional<TimeNs> Limit(std::string_view name) const;
  bool FindProcs();
  bool IsProc(uint64_t address) const;
  void ReadClient(int pid, PostgresSession* session) const;
  std::optional<PostgresLock> ReadLock(const PostgresSession& session) const;
  std::string NameOf(const std::string& lock, const PostgresSession& session) const;
  std::string DatabaseName(uint32_t database, const PostgresSession& session) const;
  void AddHolders(const std::string& lock, PostgresLock* found) const;
  void AddQueue(const std::string& lock, PostgresLock* found) const;
  void AddHolder(uint64_t proc, PostgresLock* found) const;

  const FindServerVariable& find_;
  const ReadMemory& read_;
  uint64_t procs_ = 0;
  uint64_t most_procs_ = 0;
  uint64_t own_ = 0;  // the process's own PGPROC, and its bytes
  std::string proc_;
  uint64_t group_ = 0;  // whoever leads those that run one query with it
  uint32_t excluded_ = 0;
};

std::optional<std::string> SessionReader::ObjectAt(uint64_t address, size_t bytes) const {
  std::string object(bytes, '\0');
  constexpr uint64_t kAligned = 8;
  if (address == 0 || address % kAligned != 0 || !read_(address, object.data(), bytes))
    return std::nullopt;
  return object;
}

// As far as it can be read; what lies behind it may not.
std::string SessionReader::TextAt(uint64_t address, size_t most) const {
  constexpr size_t kPiece = 64;
  std::string text;
  while (address != 0 && text.size() < most) {
    char piece[kPiece] = {};
    const size_t wanted = std::min(kPiece - (address + text.size()) % kPiece, most - text.size());
    if (!read_(address + text.size(), piece, wanted)) break;
    const size_t length = strnlen(piece, wanted);
    text.append(piece, length);
    if (length < wanted) break;
  }
  return text;
}

// Of a setting in milliseconds; nothing: it is off.
std::optional<TimeNs> SessionReader::Limit(std::string_view name) const {
  const auto limit = Variable<int32_t>(name);
  return limit && *limit > 0 ? std::optional(*limit * kMillisecond) : std::nullopt;
}

bool SessionReader::FindProcs() {
  const auto header = ObjectAt(Variable<uint64_t>("ProcGlobal").value_or(0), kServerHeaderBytes);
  if (!header) return false;
  procs_ = NumberAt<uint64_t>(*header, kAllProcs);
  const auto count = NumberAt<uint32_t>(*header, kProcCount);
  const auto prepared = Variable<int32_t>("max_prepared_xacts").value_or(0);
  if (procs_ == 0 || count == 0 || count > kMostProcs) return false;
  most_procs_ = count + static_cast<uint32_t>(
                            std::clamp<int32_t>(prepared, 0, static_cast<int32_t>(kMostProcs)));
  return IsProc(own_);
}

bool SessionReader::IsProc(uint64_t address) const {
  return address >= procs_ && (address - procs_) % kProcBytes == 0 &&
         (address - procs_) / kProcBytes < most_procs_;
}

void SessionReader::ReadClient(int pid, PostgresSession* session) const {
  if (const auto port = ObjectAt(Variable<uint64_t>("MyProcPort").value_or(0), kPortBytes)) {
    session->socket = NumberAt<int32_t>(*port, kPortSocket);
    session->database = TextAt(NumberAt<uint64_t>(*port, kPortDatabase), kMostNameBytes);
    session->user = TextAt(NumberAt<uint64_t>(*port, kPortUser), kMostNameBytes);
  }
  const auto status = ObjectAt(Variable<uint64_t>("MyBEEntry").value_or(0), kStatusBytes);
  if (!status || NumberAt<int32_t>(*status, kStatusPid) != pid) return;
  constexpr const char* kStates[] = {"",
                                     "idle",
                                     "active",
                                     "idle in transaction",
                                     "in a fast-path call",
                                     "idle in transaction (aborted)"};
  const auto state = NumberAt<uint32_t>(*status, kStatusState);
  if (state < std::size(kStates)) session->state = kStates[state];
  session->application = TextAt(NumberAt<uint64_t>(*status, kStatusApplication), kMostNameBytes);
  session->statement = TextAt(NumberAt<uint64_t>(*status, kStatusStatement), kMostStatementBytes);
}

// "postgres" where it is the session's own, else its number.
std::string SessionReader::DatabaseName(uint32_t database, const PostgresSession& session) const {
  const bool is_own = database == NumberAt<uint32_t>(proc_, kProcDatabase);
  return is_own && !session.database.empty() ? session.database : std::to_string(database);
}

std::string SessionReader::NameOf(const std::string& lock, const PostgresSession& session) const {
  const auto a = NumberAt<uint32_t>(lock, 0), b = NumberAt<uint32_t>(lock, 4),
             c = NumberAt<uint32_t>(lock, 8);
  const auto d = NumberAt<uint16_t>(lock, 12);
  const std::string of_database =
      a == 0 ? std::string(" of all databases") : " of database " + DatabaseName(a, session);
  switch (NumberAt<uint8_t>(lock, 14)) {
    case 0:
      return fmt::format("lock of relation {}{}", b, of_database);
    case 1:
      return fmt::format("lock to extend relation {}{}", b, of_database);
    case 2:
      return "lock of frozen ids" + of_database;
    case 3:
      return fmt::format("lock of page {} of relation {}{}", c, b, of_database);
    case 4:
      return fmt::format("lock of row ({},{}) of relation {}{}", c, d, b, of_database);
    case 5:
      return fmt::format("lock of transaction {}", a);
    case 6:
      return fmt::format("lock of virtual transaction {}/{}", a, b);
    case 7:
      return fmt::format("lock of token {} of transaction {}", b, a);
    case 8:
      return fmt::format("lock of object {} of class {}{}", c, b, of_database);
    case 9:
    case 10:
      // Of one number of 64 bits, or of two of 32.
      if (d == 1)
        return fmt::format("advisory lock {}{}",
                           static_cast<int64_t>((static_cast<uint64_t>(b) << 32) | c), of_database);
      return fmt::format("advisory lock ({}, {}){}", static_cast<int32_t>(b),
                         static_cast<int32_t>(c), of_database);
    default:
      return "";
  }
}

void SessionReader::AddHolder(uint64_t proc, PostgresLock* found) const {
  const auto bytes = IsProc(proc) ? ObjectAt(proc, kProcBytes) : std::nullopt;
  const int pid = bytes ? NumberAt<int32_t>(*bytes, kProcPid) : -1;
  if (pid < 0 || found->holders.size() == kMostPostgresHolders) {
    found->is_cut = true;
  } else if (pid == 0) {
    found->has_prepared = true;
  } else if (std::find(found->holders.begin(), found->holders.end(), pid) == found->holders.end()) {
    found->holders.push_back(pid);
  }
}

// Who has it in a mode that excludes the wanted one, and is not of the same group.
void SessionReader::AddHolders(const std::string& lock, PostgresLock* found) const {
  const uint64_t head = found->address + kLockHolders;
  uint64_t link = NumberAt<uint64_t>(lock, kLockHolders + 8);
  for (size_t i = 0; link != head; ++i) {
    const auto holder =
        i == kMostListed ? std::nullopt : ObjectAt(link - kHolderLink, kHolderBytes);
    if (!holder || NumberAt<uint64_t>(*holder, 0) != found->address) {
      found->is_cut = true;
      return;
    }
    const bool excludes = (NumberAt<uint32_t>(*holder, kHoldMask) & excluded_) != 0;
    if (excludes && NumberAt<uint64_t>(*holder, kHolderGroup) != group_)
      AddHolder(NumberAt<uint64_t>(*holder, kHolderProc), found);
    link = NumberAt<uint64_t>(*holder, kHolderLink + 8);
  }
}

// Who stands before it in the queue, and wants a mode that excludes the wanted one.
void SessionReader::AddQueue(const std::string& lock, PostgresLock* found) const {
  const uint64_t head = found->address + kLockWaiters;
  uint64_t link = NumberAt<uint64_t>(lock, kLockWaiters + 8);
  for (size_t i = 0; link != own_; ++i) {
    const auto waiter =
        i == kMostListed || !IsProc(link) ? std::nullopt : ObjectAt(link, kProcBytes);
    if (link == head || !waiter || NumberAt<uint64_t>(*waiter, kWaitLock) != found->address) {
      found->is_cut = true;  // it does not stand there
      return;
    }
    const auto mode = NumberAt<int32_t>(*waiter, kWaitMode);
    const uint64_t leader = NumberAt<uint64_t>(*waiter, kGroupLeader);
    const bool excludes =
        mode >= 1 && mode <= kHighestMode && (excluded_ & ModeMask(mode, mode)) != 0;
    if (excludes && (leader == 0 ? link : leader) != group_) AddHolder(link, found);
    link = NumberAt<uint64_t>(*waiter, kProcNext);
  }
}

std::optional<PostgresLock> SessionReader::ReadLock(const PostgresSession& session) const {
  PostgresLock found;
  found.address = NumberAt<uint64_t>(proc_, kWaitLock);
  const auto mode = NumberAt<int32_t>(proc_, kWaitMode);
  const auto lock = ObjectAt(found.address, kLockBytes);
  const auto own = ObjectAt(NumberAt<uint64_t>(proc_, kWaitProcLock), kHolderBytes);
  if (!lock || !own || mode < 1 || mode > kHighestMode ||
      NumberAt<uint64_t>(*own, 0) != found.address || NumberAt<uint64_t>(*own, kHolderProc) != own_)
    return std::nullopt;
  found.name = NameOf(*lock, session);
  if (found.name.empty()) return std::nullopt;
  found.mode = kModes[mode];
  AddHolders(*lock, &found);
  if (found.holders.empty() && !found.has_prepared && !found.is_cut) {
    found.is_queued = true;
    AddQueue(*lock, &found);
  }
  return found;
}

std::optional<PostgresSession> SessionReader::Read(int pid, std::string* warning) {
  const auto own = Variable<uint64_t>("MyProc");
  own_ = own.value_or(0);
  if (own && own_ == 0) return std::nullopt;  // it is the one that begins the others
  const auto bytes = ObjectAt(own_, kProcBytes);
  if (!bytes || !FindProcs() || NumberAt<int32_t>(*bytes, kProcPid) != pid ||
      NumberAt<uint32_t>(*bytes, kProcNumber) != (own_ - procs_) / kProcBytes) {
    *warning = fmt::format("its memory does not look as PostgreSQL {} has it", kPostgresVersion);
    return std::nullopt;
  }
  proc_ = *bytes;
  const uint64_t leader = NumberAt<uint64_t>(proc_, kGroupLeader);
  group_ = leader == 0 ? own_ : leader;
  PostgresSession session;
  ReadClient(pid, &session);
  session.lock_timeout = Limit("LockTimeout");
  session.statement_timeout = Limit("StatementTimeout");
  session.idle_timeout = Limit("IdleSessionTimeout");
  session.idle_in_transaction_timeout = Limit("IdleInTransactionSessionTimeout");
  session.deadlock_timeout = Limit("DeadlockTimeout");
  const auto event = NumberAt<uint32_t>(proc_, kWaitEvent);
  const bool waits_for_lock = (event & kEventClass) == kLockEvents &&
                              NumberAt<uint32_t>(proc_, kWaitStatus) == kIsWaiting &&
                              NumberAt<uint64_t>(proc_, kWaitLock) != 0;
  if (event == kClientRead || event == kClientWrite) {
    session.wait = event == kClientRead ? PostgresSession::Wait::kReadClient
                                        : PostgresSession::Wait::kWriteClient;
  } else if ((event & kEventClass) == kActivityEvents) {
    session.wait = PostgresSession::Wait::kWork;
  } else if (waits_for_lock) {
    const auto mode = NumberAt<int32_t>(proc_, kWaitMode);
    if (mode >= 1 && mode <= kHighestMode) excluded_ = kExcludes[mode];
    session.lock = ReadLock(session);
    if (session.lock) session.wait = PostgresSession::Wait::kLock;
  }
  return session;
}

}  // namespace

std::optional<PostgresSession> ReadPostgresSession(int pid, const FindServerVariable& find,
                                                   const ReadMemory& read, std::string* warning) {
  return SessionReader(find, read).Read(pid, warning);
}

}  // namespace hangscope
