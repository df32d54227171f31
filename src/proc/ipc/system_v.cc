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

bool IsOf(const WaitFile& file, int user) {
  return std::any_of(file.others.begin(), file.others.end(),
                     [user](const auto& other) { return other.first == user; });
}

// Whoever sent to it last, and whoever received from it last, is one of those who were told its
// number by their parents: then nobody else is known to have been told.
bool IsUsedWithin(const WaitFile& file, const MessageQueueLine& queue) {
  return queue.last_sender != 0 && IsOf(file, queue.last_sender) &&
         (queue.last_receiver == 0 || IsOf(file, queue.last_receiver));
}

}  // namespace

std::optional<SemaphoreSetLine> FindSemaphoreSet(std::string_view text, int id) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    // key, number, permissions, semaphores, four owners, when it was used last; a title comes first
    std::istringstream words(line);
    SemaphoreSetLine set;
    int number = 0;
    std::string skipped;
    if (!(words >> set.key >> number) || number != id) continue;
    for (int i = 0; i < 6; ++i) words >> skipped;
    words >> set.last_used;
    return set;
  }
  return std::nullopt;
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
    const int user = semctl(id, wish.number, GETPID);
    if (value == 0 && NameUser(proc, pid, user, &file)) return file;
    const auto set = FindSemaphoreSet(proc.Read("sysvipc/sem").value_or(""), id);
    if (!set || set->key != 0) return file;
    NameFamily(proc, pid, &file);
    if (set->last_used != 0 && value == 0 && user > 0 && !Lives(proc.Stat(user))) {
      file.others_unsure = false;
      file.name += fmt::format(", taken by {}, which ended", user);
    }
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
  const int user = wants_read ? queue->last_sender : queue->last_receiver;
  if (NameUser(proc, pid, user, &file) || queue->key != 0) return file;
  NameFamily(proc, pid, &file);
  file.others_unsure = !IsUsedWithin(file, *queue);
  return file;
}

}  // namespace hangscope
