#include "proc/ipc/system_v.h"

#include <fmt/format.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace hangscope {
namespace {

// The numbers are those of a namespace, and only one's own can be asked.
bool IsInOwnNamespace(const ProcFolder& proc, int pid) {
  const auto own = proc.Link("self/ns/ipc");
  return own && proc.Link(fmt::format("{}/ns/ipc", pid)) == own;
}

void NameUser(const ProcFolder& proc, int pid, int user, WaitFile* file) {
  const auto stat = user > 0 && user != pid ? proc.Stat(user) : std::nullopt;
  if (!stat || stat->state == ThreadState::kZombie || stat->state == ThreadState::kDead) return;
  file->others.emplace_back(user, -1);
  file->others_unknown = false;
}

}  // namespace

std::vector<MessageQueueLine> ParseMessageQueues(std::string_view text) {
  std::vector<MessageQueueLine> queues;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    // key, number, permissions, bytes, messages, last sender, last receiver; a title comes first
    std::istringstream words(line);
    MessageQueueLine queue;
    std::string permissions;
    uint64_t bytes = 0;
    uint64_t messages = 0;
    if (words >> queue.key >> queue.id >> permissions >> bytes >> messages >> queue.last_sender >>
        queue.last_receiver)
      queues.push_back(queue);
  }
  return queues;
}

WaitFile DescribeSemaphores(const ProcFolder& proc, int pid, int id,
                            const std::vector<SemaphoreWish>& wishes) {
  WaitFile file;
  file.kind = FileKind::kSemaphore;
  file.name = fmt::format("System V semaphore set {}", id);
  file.is_public = file.others_unknown = true;
  if (!IsInOwnNamespace(proc, pid)) return file;
  for (const SemaphoreWish& wish : wishes) {
    const int value = semctl(id, wish.number, GETVAL);
    if (value < 0 || value >= wish.amount) continue;
    file.name = fmt::format("System V semaphore {} of set {}", wish.number, id);
    // Who left less than none is there to take: who used it last took it.
    if (value == 0) NameUser(proc, pid, semctl(id, wish.number, GETPID), &file);
    return file;
  }
  return file;
}

WaitFile DescribeMessageQueue(const ProcFolder& proc, int pid, int id, bool wants_read) {
  WaitFile file;
  file.kind = FileKind::kQueue;
  file.name = fmt::format("System V message queue {}", id);
  file.wants_read = wants_read;
  file.is_public = file.others_unknown = true;
  if (!IsInOwnNamespace(proc, pid)) return file;
  const auto queues = ParseMessageQueues(proc.Read("sysvipc/msg").value_or(""));
  const auto queue = std::find_if(queues.begin(), queues.end(),
                                  [&](const MessageQueueLine& each) { return each.id == id; });
  if (queue == queues.end()) return file;
  if (queue->key != 0) file.name += fmt::format(" (key {:#x})", static_cast<unsigned>(queue->key));
  file.others_unsure = queue->key != 0;
  NameUser(proc, pid, wants_read ? queue->last_sender : queue->last_receiver, &file);
  return file;
}

}  // namespace hangscope
