// Semaphores and message queues of System V: which one a call waits for, and who used it last. Who
// else may use it nobody records: whoever knows its number or its key may.
#ifndef HANGSCOPE_PROC_IPC_SYSTEM_V_H
#define HANGSCOPE_PROC_IPC_SYSTEM_V_H

#include <optional>
#include <string_view>
#include <vector>

#include "model/process.h"
#include "proc/proc_folder.h"

namespace hangscope {

struct SemaphoreWish {
  int number = 0;  // in its set
  int amount = 0;  // that it wants to take
};

// A line of /proc/sysvipc/msg.
struct MessageQueueLine {
  int id = 0;
  int key = 0;            // 0: IPC_PRIVATE
  int last_sender = 0;    // process; 0: none yet
  int last_receiver = 0;  // likewise
};
std::vector<MessageQueueLine> ParseMessageQueues(std::string_view text);

// A line of /proc/sysvipc/sem.
struct SemaphoreSetLine {
  int key = 0;            // 0: IPC_PRIVATE
  int64_t last_used = 0;  // seconds of the wall clock; 0: its semaphores have been set up only
};
std::optional<SemaphoreSetLine> FindSemaphoreSet(std::string_view text, int id);

// Of a process that waits to take from these semaphores of set `id`: the first of them that has too
// little, with the process that took from it last, where that is another one that lives; else, of a
// set without a key, with the processes of its family.
WaitFile DescribeSemaphores(const ProcFolder& proc, int pid, int id,
                            const std::vector<SemaphoreWish>& wishes);

// Of a process that waits for a message of queue `id`, or for room in it: with who sent one last,
// or received one; as above.
WaitFile DescribeMessageQueue(const ProcFolder& proc, int pid, int id, bool wants_read);

}  // namespace hangscope

#endif
