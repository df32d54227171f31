// Who holds the locks that do not record it: ProcessLook's part.
#include <map>
#include <set>

#include "process/locks/held_objects.h"
#include "process/process_look.h"

namespace hangscope {
namespace {

constexpr size_t kMostCalls = 128;  // that are looked at, of all threads
constexpr size_t kMostOfThread = 12;

bool LacksHolder(const ThreadWait& wait) {
  return !wait.owner && !wait.shared && wait.address != 0 &&
         (wait.kind == WaitKind::kRwLock || wait.kind == WaitKind::kFutex ||
          wait.kind == WaitKind::kMutex || wait.kind == WaitKind::kSemaphore);
}

// Nothing: it is no call, or where its stack is is not known.
std::optional<CallPlace> CallOf(const StackPlace& place, const StackWalker::Function& function) {
  if (!place.calls || !place.stack_pointer) return std::nullopt;
  return CallPlace{function.begin, function.bytes, place.pc + 1, *place.stack_pointer,
                   place.registers};
}

}  // namespace

void ProcessLook::FindHolders() {
  if (walker_ == nullptr || facts_.is_32_bit) return;
  for (size_t i = 0; i < work_.size(); ++i) FindRefusedMutex(work_[i], &facts_.threads[i]);
  std::map<uint64_t, std::vector<size_t>> waiters;  // by object
  for (size_t i = 0; i < facts_.threads.size(); ++i) {
    const ThreadWait& wait = facts_.threads[i].wait;
    if (LacksHolder(wait)) waiters[wait.address].push_back(i);
  }
  if (waiters.empty()) return;
  std::map<uint64_t, std::set<int>> holders;
  size_t calls = 0;
  for (size_t i = 0; i < work_.size(); ++i) {
    if (calls > kMostCalls || context_.IsLate()) return;  // others may hold them, too
    for (const uint64_t object : HeldByThread(work_[i], &calls)) {
      if (waiters.count(object) != 0) holders[object].insert(facts_.threads[i].tid);
    }
  }
  for (const auto& [object, who] : holders) {
    if (who.size() != 1) continue;  // several read, and all of them would have to give it back
    for (const size_t waiter : waiters[object]) {
      facts_.threads[waiter].wait.owner = *who.begin();
      facts_.threads[waiter].wait.owner_by_code = true;
    }
  }
}

// The kernel refuses a mutex with priority inheritance whose owner waits for who wants it; glibc
// then waits for a word of its own stack, for ever. What was wanted is the argument of the call.
void ProcessLook::FindRefusedMutex(const Work& work, ThreadFacts* thread) {
  ThreadWait& wait = thread->wait;
  if (wait.kind != WaitKind::kFutex || wait.owner || walker_ == nullptr) return;
  for (size_t i = 1; i < std::min(work.places.size(), kMostOfThread); ++i) {
    const auto inner = walker_->FunctionAt(work.places[i - 1].pc);
    if (!inner || inner->name.find("pthread_mutex_lock") == std::string::npos) continue;
    const auto function = walker_->FunctionAt(work.places[i].pc);
    if (!function || function->name.find("pthread_mutex_lock") != std::string::npos) continue;
    const auto call = CallOf(work.places[i], *function);
    const auto argument = call ? FirstArgument(*call, read_memory_) : std::nullopt;
    if (!argument) return;
    const auto owner = OwnerOfPriorityMutex(*argument, read_memory_);
    const auto outer = owner ? OuterThread(*owner, false) : std::nullopt;
    if (!outer) return;
    wait.kind = WaitKind::kMutex;
    wait.address = *argument;
    wait.variable = VariableName(*argument);
    wait.owner = outer;
    return;
  }
}

std::vector<uint64_t> ProcessLook::HeldByThread(const Work& work, size_t* calls) {
  std::vector<uint64_t> held;
  for (size_t i = 1; i < std::min(work.places.size(), kMostOfThread); ++i) {
    const auto function = walker_->FunctionAt(work.places[i].pc);
    if (!function || LockCallOf(function->name) != LockCall::kNone ||
        function->name.starts_with("_"))
      continue;
    const auto call = CallOf(work.places[i], *function);
    if (!call) continue;
    ++*calls;
    const auto found =
        HeldObjects(*call, read_memory_, [this](uint64_t target) { return LockCallAt(target); });
    held.insert(held.end(), found.begin(), found.end());
  }
  return held;
}

LockCall ProcessLook::LockCallAt(uint64_t target) {
  const auto known = lock_calls_.find(target);
  if (known != lock_calls_.end()) return known->second;
  const auto function = walker_->FunctionAt(target);
  const bool is_its_begin = function && function->begin == target;
  return lock_calls_[target] = is_its_begin ? LockCallOf(function->name) : LockCall::kNone;
}

}  // namespace hangscope
