// What a process of a PostgreSQL server waits for: its client, work, or a lock of another session.
// ProcessLook's part.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "process/process_look.h"
#include "runtime/postgres/postgres_reader.h"

namespace hangscope {
namespace {

struct ServerLimit {
  std::optional<TimeNs> after;
  const char* setting;
};

// The one that ends first.
void GiveUp(std::initializer_list<ServerLimit> limits, ThreadWait* wait) {
  for (const ServerLimit& limit : limits) {
    if (!limit.after || (wait->given_up_after && *wait->given_up_after <= *limit.after)) continue;
    wait->given_up_after = limit.after;
    wait->given_up_by = limit.setting;
  }
}

}  // namespace

// Each process of a server stands in the folder of its data.
void ProcessLook::FindPostgres() {
  const auto program =
      std::find_if(mappings_.begin(), mappings_.end(), [](const MemoryMapping& mapping) {
        constexpr std::string_view kProgram = "/postgres";
        return mapping.executable && mapping.path.ends_with(kProgram);
      });
  if (program == mappings_.end() || context_.kept != nullptr) return;
  const auto text = context_.proc.Read(fmt::format("{}/cwd/PG_VERSION", living_));
  const std::string version = text ? text->substr(0, text->find('\n')) : "";
  if (version == kPostgresVersion) {
    postgres_ = program->begin;
  } else if (!version.empty() && facts_.command.ends_with(" waiting")) {
    Warn(
        fmt::format("process {} waits for a lock of PostgreSQL {}, whose locks are not read: "
                    "SELECT pg_blocking_pids({}) tells who has it",
                    pid_, version, pid_));
  }
}

// Whether it is told; else it waits as any other program does.
bool ProcessLook::ExplainPostgres(const Work& work, ThreadFacts* thread) {
  if (postgres_ == 0 || thread->tid != pid_ || work.meaning.epoll < 0 ||
      thread->state != ThreadState::kSleeping)
    return false;
  std::string warning;
  const auto session = ReadPostgresSession(
      work.raw.status.inner_id > 0 ? work.raw.status.inner_id : pid_,
      [&](std::string_view name) { return walker_->AddressOf(postgres_, name); }, read_memory_,
      &warning);
  if (!warning.empty()) Warn(fmt::format("process {} of PostgreSQL: {}", pid_, warning));
  if (!session) return false;
  if (session->socket >= 0 || session->lock)
    facts_.session = {"PostgreSQL",         session->user,  session->database,
                      session->application, session->state, session->statement};
  ThreadWait& wait = thread->wait;
  switch (session->wait) {
    case PostgresSession::Wait::kOther:
      return false;
    case PostgresSession::Wait::kWork:
      // It ends with the server, too, as all do.
      for (const int fd : context_.files.EpollFiles(living_, work.meaning.epoll)) {
        WaitFile file = context_.files.Describe(living_, fd, true);
        if (file.kind == FileKind::kSignals) wait.files = {std::move(file)};
      }
      return !wait.files.empty();
    case PostgresSession::Wait::kReadClient:
    case PostgresSession::Wait::kWriteClient: {
      const bool reads = session->wait == PostgresSession::Wait::kReadClient;
      WaitFile file = context_.files.Describe(living_, session->socket, reads);
      if (file.kind != FileKind::kSocket) return false;
      for (const auto& [process, fd] : file.others) leads_to_.insert(process);
      wait.kind = reads ? WaitKind::kRead : WaitKind::kWrite;
      wait.files = {std::move(file)};
      if (reads && session->state.starts_with("idle in transaction"))
        GiveUp({{session->idle_in_transaction_timeout, "idle_in_transaction_session_timeout"}},
               &wait);
      if (reads && session->state == "idle")
        GiveUp({{session->idle_timeout, "idle_session_timeout"}}, &wait);
      if (session->state == "active")
        GiveUp({{session->statement_timeout, "statement_timeout"}}, &wait);
      return true;
    }
    case PostgresSession::Wait::kLock:
      ExplainServerLock(*session->lock, &wait);
      GiveUp({{session->lock_timeout, "lock_timeout"},
              {session->statement_timeout, "statement_timeout"}},
             &wait);
      wait.circle_ends_after = session->deadlock_timeout;
      return true;
  }
  return false;
}

void ProcessLook::ExplainServerLock(const PostgresLock& lock, ThreadWait* wait) {
  WaitFile file;
  file.kind = FileKind::kServerLock;
  file.name = fmt::format("{} ({})", lock.name, lock.mode);
  file.outside = lock.has_prepared;  // whoever may connect may end such a transaction
  file.others_queue = lock.is_queued;
  file.others_unknown = lock.is_cut;
  for (const int inner : lock.holders) {
    const auto outer = ThreadOfOthers(inner);
    if (!outer) {
      file.others_unknown = true;
      continue;
    }
    file.others.emplace_back(*outer, -1);
    leads_to_.insert(*outer);
  }
  wait->kind = WaitKind::kServerLock;
  wait->address = lock.address;
  wait->files = {std::move(file)};
}

}  // namespace hangscope
