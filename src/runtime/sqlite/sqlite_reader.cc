#include "runtime/sqlite/sqlite_reader.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/bytes.h"

namespace hangscope {
namespace {

constexpr size_t kWord = 8;
constexpr size_t kMostStack = 2048;        // bytes: the handler's caller is among the innermost
constexpr size_t kConnectionBytes = 1024;  // of a connection, that are looked through
constexpr size_t kDatabaseBytes = 32;      // of an entry of its list
constexpr int kMostDatabases = 127;        // SQLite's own limit, with "main" and "temp"
constexpr size_t kPagerBytes = 512;
constexpr int kHighestDescriptor = 1 << 20;

// An object as it is in memory.
std::string Bytes(const ReadMemory& read, uint64_t address, size_t bytes) {
  std::string object(bytes, '\0');
  if (address % kWord != 0 || address == 0 || !read(address, object.data(), bytes)) return {};
  return object;
}

bool IsText(const ReadMemory& read, uint64_t address, std::string_view text) {
  char found[8] = {};
  return address != 0 && text.size() < sizeof found && read(address, found, text.size() + 1) &&
         std::string_view(found) == text;
}

// sqlite3: pVfs, pVdbe, pDfltColl, mutex, aDb, nDb; BusyHandler {xBusyHandler, pBusyArg, nBusy};
// aDbStatic[2] of Db {zDbSName, pBt, ...}; pSavepoint, nAnalysisLimit, busyTimeout.
class Connection {
 public:
  static std::optional<Connection> At(uint64_t address, const ReadMemory& read) {
    Connection connection(address, read);
    const std::string begin = Bytes(read, address, kOfDatabaseCount + sizeof(int));
    if (begin.empty()) return std::nullopt;
    connection.databases_ = hangscope::NumberAt<uint64_t>(begin, kOfDatabases);
    connection.count_ = hangscope::NumberAt<int>(begin, kOfDatabaseCount);
    if (connection.count_ < 2 || connection.count_ > kMostDatabases || !connection.HasMainAndTemp())
      return std::nullopt;
    connection.bytes_ = Bytes(read, address, kConnectionBytes);
    connection.vfs_ = hangscope::NumberAt<uint64_t>(begin, 0);
    return connection;
  }

  uint64_t address() const { return address_; }
  uint64_t vfs() const { return vfs_; }

  // Where the two places are that it has for "main" and "temp".
  std::optional<size_t> Places() const {
    for (size_t at = kOfDatabaseCount + kWord; at + 2 * kDatabaseBytes < bytes_.size();
         at += kWord) {
      if (IsText(read_, hangscope::NumberAt<uint64_t>(bytes_, at), "main") &&
          IsText(read_, hangscope::NumberAt<uint64_t>(bytes_, at + kDatabaseBytes), "temp"))
        return at;
    }
    return std::nullopt;
  }
  uint64_t Word(size_t at) const { return hangscope::NumberAt<uint64_t>(bytes_, at); }
  int Number(size_t at) const { return hangscope::NumberAt<int>(bytes_, at); }

  std::vector<uint64_t> Trees() const {
    std::vector<uint64_t> trees;
    for (int i = 0; i < count_; ++i) {
      const std::string entry =
          Bytes(read_, databases_ + static_cast<uint64_t>(i) * kDatabaseBytes, kDatabaseBytes);
      if (const auto tree = hangscope::NumberAt<uint64_t>(entry, kWord); tree != 0)
        trees.push_back(tree);
    }
    return trees;
  }

 private:
  static constexpr size_t kOfDatabases = 4 * kWord;
  static constexpr size_t kOfDatabaseCount = 5 * kWord;

  Connection(uint64_t address, const ReadMemory& read) : address_(address), read_(read) {}
  bool HasMainAndTemp() const {
    const std::string entries = Bytes(read_, databases_, 2 * kDatabaseBytes);
    return !entries.empty() && IsText(read_, hangscope::NumberAt<uint64_t>(entries, 0), "main") &&
           IsText(read_, hangscope::NumberAt<uint64_t>(entries, kDatabaseBytes), "temp");
  }

  uint64_t address_;
  const ReadMemory& read_;
  std::string bytes_;
  uint64_t vfs_ = 0;
  uint64_t databases_ = 0;
  int count_ = 0;
};

// Btree {db, pBt}, BtShared {pPager, db}, and of its pager the open file of the database: unixFile
// {pMethod, pVfs, pInode, h, eFileLock}, whose inode has {file, mutex, nShared}.
struct Tree {
  std::set<uint64_t> objects;  // by which a stack may name it
  SqliteFile file;
};

std::optional<Tree> TreeAt(uint64_t address, const Connection& connection, const ReadMemory& read) {
  const std::string tree = Bytes(read, address, 2 * kWord);
  if (tree.empty() || NumberAt<uint64_t>(tree, 0) != connection.address()) return std::nullopt;
  const auto shared = NumberAt<uint64_t>(tree, kWord);
  const auto pager = NumberAt<uint64_t>(Bytes(read, shared, kWord), 0);
  const std::string fields = Bytes(read, pager, kPagerBytes);
  if (NumberAt<uint64_t>(fields, 0) != connection.vfs()) return std::nullopt;
  Tree found;
  found.objects = {address, shared, pager};
  for (size_t at = kWord; at + kWord <= fields.size(); at += kWord) {
    constexpr size_t kOfInode = 2 * kWord, kOfDescriptor = 3 * kWord, kOfLevel = 28;
    const std::string file = Bytes(read, NumberAt<uint64_t>(fields, at), kOfLevel + 4);
    if (file.empty() || NumberAt<uint64_t>(file, kWord) != connection.vfs()) continue;
    found.file.fd = NumberAt<int>(file, kOfDescriptor);
    const auto level = NumberAt<uint8_t>(file, kOfLevel);
    if (NumberAt<uint64_t>(file, 0) == 0 || found.file.fd < 0 ||
        found.file.fd > kHighestDescriptor || level > static_cast<uint8_t>(SqliteLevel::kExclusive))
      return std::nullopt;  // not open, as that of "temp" usually is
    found.file.level = static_cast<SqliteLevel>(level);
    const std::string inode = Bytes(read, NumberAt<uint64_t>(file, kOfInode), 4 * kWord);
    found.file.readers = std::max(NumberAt<int>(inode, 3 * kWord), 0);
    return found;
  }
  return std::nullopt;
}

// Before SQLite 3.32 it stood where another number does now, which is 0 as a rule.
int LimitOf(const Connection& connection, size_t places) {
  const size_t at = places + 2 * kDatabaseBytes + kWord;
  const int limit = connection.Number(at + sizeof(int));
  return std::max(limit > 0 ? limit : connection.Number(at), 0);
}

std::optional<SqliteNap> NapOf(const Connection& connection, std::string_view stack,
                               const std::vector<uint64_t>& pcs, const IsInFunction& is_in,
                               const ReadMemory& read) {
  constexpr size_t kOfHandler = 3 * kWord;  // before the places
  const auto places = connection.Places();
  if (!places || *places < kOfHandler) return std::nullopt;
  const uint64_t handler = connection.Word(*places - kOfHandler);
  const bool is_in_it = handler != 0 && std::any_of(pcs.begin(), pcs.end(), [&](uint64_t pc) {
                          return pc >= handler && is_in(handler, pc);
                        });
  if (!is_in_it) return std::nullopt;
  SqliteNap nap;
  nap.connection = connection.address();
  if (connection.Word(*places - kOfHandler + kWord) == connection.address())
    nap.limit_ms = LimitOf(connection, *places);
  std::vector<Tree> trees;
  for (const uint64_t address : connection.Trees()) {
    if (auto tree = TreeAt(address, connection, read)) trees.push_back(std::move(*tree));
  }
  std::stable_sort(trees.begin(), trees.end(), [&](const Tree& a, const Tree& b) {
    const auto where = [&](const Tree& tree) {
      for (size_t at = 0; at + kWord <= stack.size(); at += kWord) {
        if (tree.objects.count(NumberAt<uint64_t>(stack, at)) != 0) return at;
      }
      return stack.size();
    };
    return where(a) < where(b);
  });
  for (const Tree& tree : trees) nap.files.push_back(tree.file);
  return nap;
}

}  // namespace

std::optional<SqliteNap> FindSqliteNap(std::string_view stack, const std::vector<uint64_t>& pcs,
                                       const IsInFunction& is_in, const ReadMemory& read) {
  stack = stack.substr(0, kMostStack);
  std::set<uint64_t> seen;
  for (size_t at = 0; at + kWord <= stack.size(); at += kWord) {
    const auto word = NumberAt<uint64_t>(stack, at);
    if (word % kWord != 0 || !seen.insert(word).second) continue;
    const auto connection = Connection::At(word, read);
    if (!connection) continue;
    if (auto nap = NapOf(*connection, stack, pcs, is_in, read)) return nap;
  }
  return std::nullopt;
}

}  // namespace hangscope
