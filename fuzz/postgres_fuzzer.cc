// The memory of a process of a PostgreSQL server, damaged in any way: bounded reads and lists.
#include <string>

#include "fakes/fake_postgres.h"
#include "fuzz.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostHoldersOfOne = 64;
constexpr size_t kLongestText = 1024;

}  // namespace

void FuzzPostgres(std::string_view input) {
  FakePostgres server;
  server.image() = std::string(input);
  std::string warning;
  const auto session = server.Read(&warning);
  FUZZ_REQUIRE(server.reads < 10'000);
  if (!session) return;
  FUZZ_REQUIRE(warning.empty());
  FUZZ_REQUIRE(session->statement.size() <= kLongestText && session->user.size() <= kLongestText);
  FUZZ_REQUIRE((session->wait == PostgresSession::Wait::kLock) == session->lock.has_value());
  if (!session->lock) return;
  FUZZ_REQUIRE(!session->lock->name.empty() && !session->lock->mode.empty());
  FUZZ_REQUIRE(session->lock->holders.size() <= kMostHoldersOfOne);
  for (const int pid : session->lock->holders) FUZZ_REQUIRE(pid > 0);
}

}  // namespace hangscope::fuzz
