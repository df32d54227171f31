#include "proc/ipc/system_v.h"

#include <fmt/format.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

namespace hangscope {
namespace {

// The numbers are those of a namespace, and only one's own can be asked.
bool IsInOwnNamespace(const ProcFolder& proc, int pid) {
  const auto own = proc.Link("self/ns/ipc");
  return own && proc.Link(fmt::format("{}/ns/ipc", pid)) == own;
}

bool Lives(const std::optional<TaskStat>& stat) {
  return stat && stat->state != ThreadState::kZombie && stat->state != ThreadState::kDead;
}

bool NameUser(const ProcFolder& proc, int pid, int user, WaitFile* file) {
  if (user <= 0 || user == pid || !Lives(proc.Stat(user))) return false;
  file->others.emplace_back(user, -1);
  file->others_unknown = false;
  return true;
}

// What has no key is known to who made it, and to those who were told its number: the process, the
// one that began its program, and all whom that started.
void NameFamily(const ProcFolder& proc, int pid, WaitFile* file) {
  const auto program = proc.Link(fmt::format("{}/exe", pid));
  std::map<int, int> parents;
  for (const int each : proc.Processes()) {
    if (const auto stat = proc.Stat(each); Lives(stat)) parents[each] = stat->parent;
  }
  if (!program || parents.count(pid) == 0) return;
  int first = pid;
  while (parents.count(parents[first]) != 0 &&
         proc.Link(fmt::format("{}/exe", parents[first])) == program)
    first = parents[first];
  for (const auto& [each, parent] : parents) {
    int from = each;
    while (from != first && parents.count(from) != 0) from = parents[from];
    if (from == first) file->others.emplace_back(each, -1);
  }
  file->is_public = file->others_unknown = false;
  file->others_unsure = true;
}

// Whoever sent to it last, and whoever received from it last, is one of those who were told its
// number by their parents: then nobody else is known to have been told.
bool IsUsedWithin(const WaitFile& file, const MessageQueueLine& queue) {
  const auto is_told = [&](int user) {
    return std::any_of(file.others.begin(), file.others.end(),
                       [user](const auto& other) { return other.first == user; });
  };
  return queue.last_sender != 0 && is_told(queue.last_sender) &&
         (queue.last_receiver == 0 || is_told(queue.last_receiver));
}

}  // namespace

bool IsPrivate(std::string_view text, int id) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    int key = 0;
    int number = 0;
    if (words >> key >> number && number == id) return key == 0;
  }
  return false;
}

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
    const bool is_named = value == 0 && NameUser(proc, pid, semctl(id, wish.number, GETPID), &file);
    if (!is_named && IsPrivate(proc.Read("sysvipc/sem").value_or(""), id))
      NameFamily(proc, pid, &file);
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
  file.others_unsure = true;
  if (queue->key == 0) {
    NameFamily(proc, pid, &file);
    file.others_unsure = !IsUsedWithin(file, *queue);
    if (!file.others_unknown) return file;
  }
  NameUser(proc, pid, wants_read ? queue->last_sender : queue->last_receiver, &file);
  return file;
}

}  // namespace hangscope
