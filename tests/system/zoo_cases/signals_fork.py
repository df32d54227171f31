"""Handlers that need what they have interrupted, children that need what fork() did not copy, signals that cannot come
(zoo/signals_fork.cc)."""
from zoo_cases import DEADLOCK, LOST, SPIN, UNOWNED

COPIED = "copied lock"
SLOW = {"restless": True}
CHILD = {"ask": "copy"}

HANGS = [
    # Handlers.
    ("malloc in a handler, in malloc", "zoo_signals_fork handler-malloc", DEADLOCK, "AllocateInHandler malloc"),
    ("localtime_r in a handler, in localtime_r", "zoo_signals_fork handler-localtime", DEADLOCK, "TellTimeInHandler", {"age": 0.7}),
    ("mutex in a handler", "zoo_signals_fork handler-mutex", DEADLOCK, "lock_a LockInHandler"),
    ("mutex in a handler of a crash", "zoo_signals_fork crash-handler", DEADLOCK, "journal LogInHandler"),
    ("rwlock in a handler", "zoo_signals_fork handler-rwlock", DEADLOCK, "table_a WriteTableInHandler"),
    ("spin lock in a handler", "zoo_signals_fork handler-spin", SPIN, "spin_lock SpinLock|SpinInHandler", {"cpu": True}),
    ("flag in a handler", "zoo_signals_fork handler-flag", SPIN, "ready_flag WaitInHandler", {"cpu": True}),
    ("semaphore in a handler", "zoo_signals_fork handler-semaphore", UNOWNED, "sem_a DownInHandler"),
    ("circle through a handler", "zoo_signals_fork handler-circle", DEADLOCK + ", 2 ", "lock_a lock_b WaitForOtherInHandler TakeBothBackwards other"),
    ("handler that jumps out with a lock", "zoo_signals_fork handler-jumps", DEADLOCK, "lock_a UpdateAccount"),
    # Copies.
    ("mutex", "zoo_signals_fork copied-mutex", COPIED, "lock_a LockCopy", CHILD),
    ("mutex, its parent is asked", "zoo_signals_fork copied-mutex", COPIED, "lock_a copy LockCopy"),
    ("std::mutex", "zoo_signals_fork copied-std-mutex", COPIED, "journal LockStdCopy", CHILD),
    ("write lock", "zoo_signals_fork copied-write-lock", COPIED, "table_a WriteLockCopy", CHILD),
    ("semaphore", "zoo_signals_fork copied-semaphore", COPIED + "|lost wakeup", "sem_a DownCopy", CHILD),
    ("own futex lock", "zoo_signals_fork copied-arena", COPIED + "|" + UNOWNED, "arena_word LockArena|AllocateCopy", CHILD),
    ("spin lock", "zoo_signals_fork copied-spin-lock", COPIED + "|" + SPIN, "spin_lock SpinLock|SpinCopy", {**CHILD, "cpu": True}),
    ("condition of a thread of the parent", "zoo_signals_fork copied-condition", LOST, "not_empty ConsumeCopy", {**CHILD, "restless": True}),
    ("static under construction", "zoo_signals_fork copied-static", COPIED + "|" + UNOWNED, "TheRegistry|UseRegistryCopy", CHILD),
    ("handler of fork", "zoo_signals_fork prepare-crossed", DEADLOCK + ", 2 ", "lock_a lock_b LockInPrepare TakeBothBackwards other"),
    # Signals.
    ("pause, all blocked", "zoo_signals_fork pause-blocked", ".*", "PauseForNothing signal|pause"),
    ("sigsuspend, all blocked", "zoo_signals_fork suspend-blocked", ".*", "SuspendForNothing signal|sigsuspend"),
    ("poll of nothing, all blocked", "zoo_signals_fork poll-blocked", ".*", "PollForNothing"),
    ("sigwait for a child that reads from it", "zoo_signals_fork sigwait-child", DEADLOCK, "job pipe AwaitChildsSignal"),
    ("pause, all ignored or blocked", "zoo_signals_fork pause-ignored", ".*", "IgnoreAndPause signal|pause"),
]

CONTROLS = [
    ("pause with a handler", "zoo_signals_fork pause-handled"),
    ("pause until it is killed", "zoo_signals_fork pause-only"),
    ("sigsuspend with a handler", "zoo_signals_fork suspend-handled"),
    ("sigwait", "zoo_signals_fork sigwait"),
    ("lease whose end a timer's thread tells", "zoo_signals_fork timer-lease"),
    ("alarm that writes a pipe", "zoo_signals_fork alarm-pipe", SLOW),
    ("alarms and a computation", "zoo_signals_fork alarm-compute", {"cpu": True, **SLOW}),
    ("self-pipe of SIGCHLD", "zoo_signals_fork self-pipe-child", SLOW),
    ("sigwait for a sleeper's end", "zoo_signals_fork sigwait-sleeper", SLOW),
    ("signalfd of a sleeper's end", "zoo_signals_fork signalfd-sleeper", SLOW),
    ("all blocked, waits for a sleeper", "zoo_signals_fork blocked-sleeper", SLOW),
    ("prefork server", "zoo_signals_fork prefork", SLOW),
    ("child after child", "zoo_signals_fork fork-again", SLOW),
    ("fork with handlers", "zoo_signals_fork fork-handlers", SLOW),
    ("handlers of crashes", "zoo_signals_fork crash-handler-serves"),
    ("lock masked from a handler", "zoo_signals_fork masked-lock", {"cpu": True, **SLOW}),
    ("timer's thread", "zoo_signals_fork timer-thread", SLOW),
    ("ppoll that lets a signal in", "zoo_signals_fork poll-masked"),
    ("read that a handler ends", "zoo_signals_fork read-handler"),
    ("handler that naps", "zoo_signals_fork handler-naps"),
    ("copy of a held lock, not taken", "zoo_signals_fork copy-serves", SLOW),
    ("handlers, many", "zoo_signals_fork handlers-many", SLOW),
    ("pause, all blocked, beside sigwait", "zoo_signals_fork pause-beside-sigwait"),
    ("pause, all blocked but one", "zoo_signals_fork pause-blocked-but-one"),
    ("pause, all blocked, beside a worker", "zoo_signals_fork pause-beside-worker", SLOW),
    ("flag of another handler, in a handler", "zoo_signals_fork handler-flag-of-handler", {"cpu": True}),
    ("flag of a thread, in a handler", "zoo_signals_fork handler-flag-of-thread", {"cpu": True}),
]
