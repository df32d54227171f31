#include "process/futex_kind.h"

#include <linux/futex.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace hangscope {
namespace {

// glibc's objects on 64-bit Linux; of 32-bit programs mutexes and what the stack names. 2.25 and
// later (sysdeps/nptl/bits, nptl/internaltypes.h).
struct Mutex {
  uint32_t lock;
  uint32_t count;
  int32_t owner;
  uint32_t users;
  int32_t kind;
};
constexpr int32_t kMutexTypeMask = 3;
constexpr int32_t kMutexRobust = 16;
// type, robust, priority, shared, elision, priority ceiling
constexpr int32_t kMutexKnownBits = 0x7ff;
constexpr uint32_t kMostUsers = 1 << 20;
constexpr uint32_t kLockedWithWaiters = 2;
constexpr int32_t kShared = 128;  // with other processes: of semaphores, and of musl's mutexes

// musl's on 64-bit Linux (src/internal/pthread_impl.h): its waiters sleep on the second word.
struct MuslMutex {
  int32_t type;
  uint32_t lock;
  uint32_t waiters;
};
constexpr uint64_t kMuslLockAt = 4;
constexpr uint32_t kMuslWaiters = 0x80000000;
constexpr uint32_t kMuslLocked = 16;      // EBUSY: a plain one, whose owner nobody records
constexpr int32_t kMuslKnownBits = 0x8f;  // type, robust, priority, shared

// That of a FILE, and others that the C library takes again (sysdeps/nptl/stdio-lock.h).
struct RecursiveLock {
  uint32_t lock;
  uint32_t count;
  uint64_t owner;  // the thread's descriptor
};
// What begins a descriptor (sysdeps/x86_64/nptl/tls.h) says where it is, twice.
struct DescriptorHead {
  uint64_t thread_pointer;
  uint64_t vector;
  uint64_t self;
};
constexpr uint64_t kIdInDescriptorAt = 720;  // glibc 2.36, x86-64

struct RwLock {
  uint32_t readers;
  uint32_t writers;
  uint32_t phase_futex;
  uint32_t writers_futex;
  uint32_t padding[2];
  int32_t writer;
  int32_t shared;
};
constexpr uint64_t kRwLockAlignment = 8;  // only one of its two futexes fits a word's address
constexpr uint64_t kPhaseFutexAt = 8;
constexpr uint64_t kWritersFutexAt = 12;

struct Semaphore {
  uint32_t value;
  uint32_t waiters;
  int32_t shared;
};

constexpr uint64_t kConditionSignalsAt = 40;  // two words: [40] and [44] of an object aligned to 8
constexpr uint64_t kBarrierRoundAt = 4;
constexpr uint64_t kGlibRoundAt = 8;  // of a GCond
constexpr size_t kLibraryFrames = 8;  // from the innermost one

constexpr std::pair<std::string_view, WaitKind> kFunctions[] = {
    {"pthread_mutex", WaitKind::kMutex},     {"lll_lock_wait_private", WaitKind::kFutex},
    {"lll_lock_wait", WaitKind::kMutex},     {"pthread_cond_", WaitKind::kCondition},
    {"pthread_rwlock_", WaitKind::kRwLock},  {"pthread_barrier_", WaitKind::kBarrier},
    {"sem_wait", WaitKind::kSemaphore},      {"sem_timedwait", WaitKind::kSemaphore},
    {"sem_clockwait", WaitKind::kSemaphore}, {"pthread_join", WaitKind::kJoin},
    {"pthread_clockjoin", WaitKind::kJoin},  {"pthread_timedjoin", WaitKind::kJoin},
};

// The innermost function that is known says it.
WaitKind KindByNames(const std::vector<StackFrame>& stack) {
  for (size_t i = 0; i < stack.size() && i < kLibraryFrames; ++i) {
    for (const auto& [name, kind] : kFunctions) {
      if (stack[i].function.find(name) != std::string::npos) return kind;
    }
  }
  return WaitKind::kNone;
}

bool IsInJoin(const std::vector<StackFrame>& stack) {
  return std::any_of(stack.begin(), stack.end(), [](const StackFrame& frame) {
    return frame.function.find("pthread_") != std::string::npos &&
           frame.function.find("join") != std::string::npos;
  });
}

// GLib's own, on a futex that it asks the kernel for itself.
bool IsInGlibCondition(const std::vector<StackFrame>& stack) {
  return stack.size() > 1 && stack[0].function == "syscall" &&
         stack[1].function.starts_with("g_cond_wait");
}

bool IsInLibrary(const std::vector<StackFrame>& stack) {
  return !stack.empty() && stack[0].module.starts_with("libc.so") && stack[0].function != "syscall";
}

bool IsInMusl(const std::vector<StackFrame>& stack) {
  return !stack.empty() && (stack[0].module == "libc.so" || stack[0].module.starts_with("ld-musl"));
}

class FutexReader {
 public:
  FutexReader(const FutexWord& word, const ReadMemory& read,
              const std::function<bool(int)>& is_thread)
      : word_(word), read_(read), is_thread_(is_thread) {}

  // The kernel's own layout: the word holds the owner, and whether it died.
  FutexMeaning OwnerInWord(uint32_t value) const {
    FutexMeaning meaning = Named(WaitKind::kMutex, 0);
    const int owner = static_cast<int>(value & FUTEX_TID_MASK);
    if (owner != 0) meaning.owner = owner;
    meaning.owner_died = (value & FUTEX_OWNER_DIED) != 0 || (owner != 0 && !is_thread_(owner));
    return meaning;
  }

  std::optional<FutexMeaning> AsMutex(bool is_named) const {
    Mutex mutex = {};
    if (!read_(word_.address, &mutex, sizeof mutex)) return std::nullopt;
    // There the kind comes before the number of users.
    if (word_.is_32_bit) {
      const uint32_t users = static_cast<uint32_t>(mutex.kind);
      mutex.kind = static_cast<int32_t>(mutex.users);
      mutex.users = users;
    }
    const bool fits =
        (mutex.kind & ~kMutexKnownBits) == 0 && mutex.users <= kMostUsers && mutex.owner >= 0;
    if (!fits) return std::nullopt;
    const bool holds_owner =
        (mutex.kind & kMutexRobust) != 0 && (word_.expected & FUTEX_TID_MASK) > kLockedWithWaiters;
    if (holds_owner) {
      FutexMeaning meaning = OwnerInWord(mutex.lock);
      if (!is_named && meaning.owner_died) return std::nullopt;
      return meaning;
    }
    if (word_.expected != kLockedWithWaiters) return std::nullopt;
    const bool is_held = mutex.owner > 0 && mutex.users > 0 && mutex.lock != 0;
    // Any two numbers next to each other look like an owner that died. Nobody but a name says it
    // was a mutex.
    if (!is_named &&
        !(is_held && is_thread_(mutex.owner) && (mutex.kind & kMutexTypeMask) == mutex.kind))
      return std::nullopt;
    FutexMeaning meaning = Named(WaitKind::kMutex, 0);
    if (is_held) {
      meaning.owner = mutex.owner;
      meaning.owner_died = !is_thread_(mutex.owner);
    }
    return meaning;
  }

  std::optional<FutexMeaning> AsRecursiveLock() const {
    RecursiveLock lock = {};
    DescriptorHead head = {};
    int32_t owner = 0;
    if (word_.is_32_bit || word_.expected != kLockedWithWaiters ||
        !read_(word_.address, &lock, sizeof lock) || lock.lock != kLockedWithWaiters ||
        lock.count == 0 || lock.count > kMostUsers || !read_(lock.owner, &head, sizeof head) ||
        head.thread_pointer != lock.owner || head.self != lock.owner ||
        !read_(lock.owner + kIdInDescriptorAt, &owner, sizeof owner) || owner <= 0)
      return std::nullopt;
    FutexMeaning meaning = Named(WaitKind::kMutex, 0);
    meaning.owner = owner;
    meaning.owner_died = !is_thread_(owner);
    return meaning;
  }

  // musl's functions have no unwind tables, and what it calls inside has no name.
  std::optional<FutexMeaning> AsMuslMutex(bool is_named) const {
    MuslMutex mutex = {};
    if ((word_.expected & kMuslWaiters) == 0 || word_.address < kMuslLockAt ||
        !read_(word_.address - kMuslLockAt, &mutex, sizeof mutex) ||
        (mutex.type & ~kMuslKnownBits) != 0 || mutex.lock != word_.expected || mutex.waiters == 0 ||
        mutex.waiters > kMostUsers)
      return std::nullopt;
    const bool is_plain = (mutex.type & ~kShared) == 0;
    if (is_plain != (mutex.lock == (kMuslWaiters | kMuslLocked))) return std::nullopt;
    FutexMeaning meaning = is_plain ? FutexMeaning() : OwnerInWord(mutex.lock);
    if (!is_named && meaning.owner_died) return std::nullopt;
    meaning.kind = WaitKind::kMutex;
    meaning.object = word_.address - kMuslLockAt;
    return meaning;
  }

  // glibc waits for the thread's id in its descriptor to become 0; the kernel clears it and wakes
  // as for shared ones.
  std::optional<FutexMeaning> AsJoin(bool is_named) const {
    const int thread = static_cast<int>(word_.expected);
    // The lowest ids, which threads of containers have, are states of locks, too.
    const int least = is_named ? 1 : static_cast<int>(kLockedWithWaiters) + 1;
    if (word_.is_private || thread < least || Word() != word_.expected || !is_thread_(thread))
      return std::nullopt;
    FutexMeaning meaning = Named(WaitKind::kJoin, 0);
    meaning.joined = thread;
    return meaning;
  }

  std::optional<FutexMeaning> AsSemaphore() const {
    Semaphore semaphore = {};
    if (word_.expected != 0 || word_.is_32_bit ||
        !read_(word_.address, &semaphore, sizeof semaphore))
      return std::nullopt;
    const bool fits =
        semaphore.value == 0 && semaphore.waiters > 0 && semaphore.waiters <= kMostUsers;
    if (!fits || semaphore.shared != (word_.is_private ? 0 : kShared)) return std::nullopt;
    return Named(WaitKind::kSemaphore, 0);
  }

  FutexMeaning AsRwLock() const {
    for (const uint64_t at : {kPhaseFutexAt, kWritersFutexAt}) {
      RwLock lock = {};
      if ((word_.address - at) % kRwLockAlignment != 0 ||
          !read_(word_.address - at, &lock, sizeof lock))
        continue;
      const bool fits = lock.phase_futex <= 3 && lock.writers_futex <= 3 &&
                        (lock.shared == 0 || lock.shared == 1) && lock.writer >= 0 &&
                        (lock.readers | lock.writers) != 0;
      if (!fits) continue;
      FutexMeaning meaning = Named(WaitKind::kRwLock, at);
      // Readers that hold it leave no name.
      if (lock.writer > 0) {
        meaning.owner = lock.writer;
        meaning.owner_died = !is_thread_(lock.writer);
      }
      return meaning;
    }
    return Named(WaitKind::kRwLock, 0);
  }

  FutexMeaning AsCondition() const {
    return Named(WaitKind::kCondition, kConditionSignalsAt + word_.address % 8);
  }
  FutexMeaning AsGlibCondition() const { return Named(WaitKind::kCondition, kGlibRoundAt); }
  FutexMeaning AsBarrier() const { return Named(WaitKind::kBarrier, kBarrierRoundAt); }
  FutexMeaning AsNothingKnown() const { return Named(WaitKind::kFutex, 0); }

  uint32_t Word() const {
    uint32_t value = 0;
    return read_(word_.address, &value, sizeof value) ? value : 0;
  }

 private:
  FutexMeaning Named(WaitKind kind, uint64_t word_at) const {
    FutexMeaning meaning;
    meaning.kind = kind;
    meaning.object = word_.address - word_at;
    return meaning;
  }

  const FutexWord& word_;
  const ReadMemory& read_;
  const std::function<bool(int)>& is_thread_;
};

}  // namespace

std::optional<int> OwnerOfPriorityMutex(uint64_t address, const ReadMemory& read) {
  constexpr int32_t kMutexPriority = 32;
  Mutex mutex = {};
  if (!read(address, &mutex, sizeof mutex)) return std::nullopt;
  const int owner = static_cast<int>(mutex.lock & FUTEX_TID_MASK);
  const bool fits = (mutex.kind & ~kMutexKnownBits) == 0 && (mutex.kind & kMutexPriority) != 0 &&
                    owner != 0 && mutex.owner == owner && mutex.users > 0 &&
                    mutex.users <= kMostUsers;
  return fits ? std::optional(owner) : std::nullopt;
}

bool InterruptedItself(const std::vector<StackFrame>& stack) {
  const auto is_library = [](const StackFrame& frame) {
    return frame.module.starts_with("libc.so");
  };
  const auto handler = std::find_if(stack.begin(), stack.end(), [](const StackFrame& frame) {
    return frame.function == "__restore_rt";
  });
  if (handler == stack.end() || stack[0].function.find("lll_lock_wait") == std::string::npos)
    return false;
  const auto inner_end = std::find_if_not(stack.begin(), handler, is_library);
  const auto outer_end = std::find_if_not(handler + 1, stack.end(), is_library);
  return std::any_of(stack.begin() + 1, inner_end, [&](const StackFrame& inner) {
    return std::any_of(handler + 1, outer_end,
                       [&](const StackFrame& outer) { return outer.function == inner.function; });
  });
}

FutexMeaning ExplainFutexWord(const FutexWord& word, FutexUse use,
                              const std::vector<StackFrame>& stack, const ReadMemory& read,
                              const std::function<bool(int)>& is_thread) {
  const FutexReader futex(word, read, is_thread);
  if (use == FutexUse::kPriority) return futex.OwnerInWord(futex.Word());
  if (IsInGlibCondition(stack)) return futex.AsGlibCondition();
  WaitKind named = KindByNames(stack);
  // A woken waiter takes its mutex again inside of pthread_cond_wait.
  if (named == WaitKind::kCondition && word.expected == kLockedWithWaiters)
    named = WaitKind::kMutex;
  switch (named) {
    case WaitKind::kMutex:
      if (auto mutex = futex.AsMutex(true)) return *mutex;
      if (auto mutex = futex.AsMuslMutex(true)) return *mutex;
      break;
    case WaitKind::kCondition:
      return futex.AsCondition();
    case WaitKind::kBarrier:
      return futex.AsBarrier();
    case WaitKind::kRwLock:
      return futex.AsRwLock();
    case WaitKind::kSemaphore: {
      FutexMeaning meaning = futex.AsNothingKnown();
      meaning.kind = WaitKind::kSemaphore;
      return meaning;
    }
    default:
      break;
  }
  if (auto join = futex.AsJoin(IsInJoin(stack))) return *join;
  if (named == WaitKind::kFutex) {
    const auto lock = futex.AsRecursiveLock();
    return lock ? *lock : futex.AsNothingKnown();
  }
  if (auto mutex = futex.AsMutex(false)) return *mutex;
  if (IsInMusl(stack)) {
    if (auto mutex = futex.AsMuslMutex(false)) return *mutex;
  }
  if (IsInLibrary(stack)) {
    if (auto semaphore = futex.AsSemaphore()) return *semaphore;
  }
  return futex.AsNothingKnown();
}

}  // namespace hangscope
