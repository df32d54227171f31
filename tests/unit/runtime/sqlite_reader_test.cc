#include "runtime/sqlite/sqlite_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace hangscope {
namespace {

constexpr uint64_t kImage = 0x10000;
constexpr uint64_t kHandler = 0x7f00'0000'1000;
constexpr uint64_t kVfs = 0x7f00'0010'0000;

// A connection to two databases as SQLite 3.40 has it in memory, in the midst of a nap.
class FakeSqlite {
 public:
  FakeSqlite() {
    connection_ = Block(1024);
    databases_ = Block(3 * 32);
    Put(connection_, kVfs), Put(connection_ + 32, databases_), Put<int>(connection_ + 40, 3);
    const uint64_t names[] = {Text("main"), Text("temp"), Text("other")};
    for (size_t i = 0; i < 3; ++i) Put(databases_ + 32 * i, names[i]);
    Put(Places(), names[0]), Put(Places() + 32, names[1]);
    Handle(kHandler, connection_, 5000);
    Tree(0, 3, 0, 1);
    Tree(2, 5, 2, 1);
  }

  void Handle(uint64_t handler, uint64_t argument, int limit_ms) {
    Put(Places() - 24, handler), Put(Places() - 16, argument);
    Put<int>(Places() + 64 + 12, limit_ms);
  }
  // A database with its open file.
  void Tree(size_t index, int fd, uint8_t level, int readers) {
    const uint64_t tree = Block(32), shared = Block(32), pager = Block(512), file = Block(32),
                   inode = Block(32);
    Put(databases_ + 32 * index + 8, tree);
    Put(tree, connection_), Put(tree + 8, shared), Put(shared, pager);
    Put(pager, kVfs), Put(pager + 64, file);
    Put(file, kVfs + 64), Put(file + 8, kVfs), Put(file + 16, inode);
    Put<int>(file + 24, fd), Put<uint8_t>(file + 28, level), Put<int>(inode + 24, readers);
    trees_.push_back(tree);
  }
  template <typename Number>
  void Put(uint64_t at, Number number) {
    std::memcpy(image_.data() + (at - kImage), &number, sizeof number);
  }
  uint64_t connection() const { return connection_; }
  uint64_t databases() const { return databases_; }
  uint64_t tree(size_t index) const { return trees_[index]; }

  std::optional<SqliteNap> Find(std::vector<uint64_t> words, uint64_t pc = kHandler + 0x27) const {
    std::string stack(words.size() * 8, '\0');
    std::memcpy(stack.data(), words.data(), stack.size());
    return FindSqliteNap(
        stack, {0x7f00'0020'0000, pc},
        [](uint64_t begin, uint64_t at) { return at - begin < 0x100; },
        [this](uint64_t address, void* into, size_t bytes) {
          if (address < kImage || address + bytes > kImage + image_.size()) return false;
          std::memcpy(into, image_.data() + (address - kImage), bytes);
          return true;
        });
  }

 private:
  uint64_t Places() const { return connection_ + 0x2b0; }
  uint64_t Block(size_t bytes) {
    const uint64_t at = kImage + image_.size();
    image_.resize(image_.size() + bytes);
    return at;
  }
  uint64_t Text(const std::string& text) {
    const uint64_t at = Block(8);
    image_.replace(at - kImage, text.size(), text);
    return at;
  }

  std::string image_;
  uint64_t connection_ = 0, databases_ = 0;
  std::vector<uint64_t> trees_;
};

TEST(SqliteReader, ReadsTheDatabasesOfWhoNapsAndWhenItGivesUp) {
  const FakeSqlite sqlite;
  const auto nap = sqlite.Find({1, sqlite.connection()});
  ASSERT_TRUE(nap);
  EXPECT_EQ(nap->connection, sqlite.connection());
  EXPECT_EQ(nap->limit_ms, 5000);
  ASSERT_EQ(nap->files.size(), 2u);
  EXPECT_EQ(nap->files[0].fd, 3);
  EXPECT_EQ(nap->files[0].level, SqliteLevel::kNone);
  EXPECT_EQ(nap->files[1].fd, 5);
  EXPECT_EQ(nap->files[1].level, SqliteLevel::kReserved);
}

TEST(SqliteReader, TheDatabaseThatTheStackNamesComesFirst) {
  const FakeSqlite sqlite;
  const auto nap = sqlite.Find({sqlite.tree(1), sqlite.connection(), sqlite.tree(0)});
  ASSERT_TRUE(nap);
  ASSERT_EQ(nap->files.size(), 2u);
  EXPECT_EQ(nap->files[0].fd, 5);
}

TEST(SqliteReader, OfAHandlerOfTheProgramTheLimitIsNotKnown) {
  FakeSqlite sqlite;
  sqlite.Handle(kHandler, 0, 5000);
  const auto nap = sqlite.Find({sqlite.connection()});
  ASSERT_TRUE(nap);
  EXPECT_EQ(nap->limit_ms, 0);
}

TEST(SqliteReader, BeforeAnalysisHadALimitTheOtherOneStoodInItsPlace) {
  FakeSqlite sqlite;
  sqlite.Handle(kHandler, sqlite.connection(), 0);
  sqlite.Put<int>(sqlite.connection() + 0x2b0 + 64 + 8, 7000);
  EXPECT_EQ(sqlite.Find({sqlite.connection()})->limit_ms, 7000);
}

// As one that sleeps in a function of SQL, or by sqlite3_sleep.
TEST(SqliteReader, WhoIsNotInItsHandlerWaitsForNoLock) {
  FakeSqlite sqlite;
  EXPECT_FALSE(sqlite.Find({sqlite.connection()}, kHandler + 0x200));
  EXPECT_FALSE(sqlite.Find({sqlite.connection()}, kHandler - 1));
  sqlite.Handle(0, sqlite.connection(), 5000);
  EXPECT_FALSE(sqlite.Find({sqlite.connection()}));
}

TEST(SqliteReader, WhatDoesNotLookLikeAConnectionIsNone) {
  FakeSqlite sqlite;
  EXPECT_FALSE(sqlite.Find({0, 1, 2, kImage - 8, sqlite.tree(0), ~uint64_t{0}}));
  sqlite.Put<int>(sqlite.connection() + 40, 1000);
  EXPECT_FALSE(sqlite.Find({sqlite.connection()}));
  sqlite.Put<int>(sqlite.connection() + 40, 3);
  sqlite.Put<uint64_t>(sqlite.databases(), 5);
  EXPECT_FALSE(sqlite.Find({sqlite.connection()}));
}

TEST(SqliteReader, AFileThatIsNotOpenIsLeftOut) {
  FakeSqlite sqlite;
  sqlite.Tree(1, -1, 0, 0);
  EXPECT_EQ(sqlite.Find({sqlite.connection()})->files.size(), 2u);
}

}  // namespace
}  // namespace hangscope
