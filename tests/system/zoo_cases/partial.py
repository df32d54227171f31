"""Some of many threads hang for good, and others go on (zoo/partial.cc)."""
from zoo_cases import DEADLOCK, OWNER_DIED, SPIN

DEFAULTS = {"restless": True, "age": 1.5}
CPU = {"cpu": True}
# Who moves beside it could give back what has no owner, for all that memory tells: to say so is enough.
EITHER = {"line": "(HANG: (partial: )?|perhaps )(deadlock|lost wakeup)", "status": None}

HANGS = [
    ("mutexes", "zoo_partial abba", DEADLOCK + ", 2 ", "lock_a lock_b TakeBoth left right", CPU),
    ("mutexes beside a pool", "zoo_partial abba-pool", DEADLOCK + ", 2 ", "lock_a lock_b TakeBoth left right"),
    ("two deadlocks at once", "zoo_partial two-abbas", DEADLOCK, "lock_a lock_b lock_c lock_d left up"),
    ("mutexes with inheritance", "zoo_partial abba-inherit", DEADLOCK + ", 2 ", "ring_locks TakeBoth left right"),
    ("mutexes, and five more wait", "zoo_partial abba-victims", DEADLOCK + ", 2 ", "lock_a lock_b left right victim"),
    ("mutexes among workers", "zoo_partial abba-workers", DEADLOCK + ", 2 ", "lock_a lock_b left right"),
    ("mutex twice", "zoo_partial self-lock", DEADLOCK, "lock_a LockTwice worker", CPU),
    ("read lock and mutex", "zoo_partial rwlock-mutex", DEADLOCK, "table_a lock_a report refresh", EITHER),
    ("read lock upgraded", "zoo_partial shared-upgrade", DEADLOCK, "config_lock UpgradeConfig reloader", EITHER),
    ("semaphores crosswise", "zoo_partial sem-crossed", DEADLOCK, "sem_a sem_b left right", EITHER),
    ("own futex locks crosswise", "zoo_partial words-crossed", DEADLOCK, "word_a word_b UpdateIndex CompactStore", EITHER),
    ("std::call_once crosswise", "zoo_partial once-crossed", DEADLOCK, "InitialiseConfig InitialiseLog", EITHER),
    ("circular list", "zoo_partial circular-list", SPIN, "FindInCircle searcher",
     {"cpu": True, "line": "(HANG: (partial: )?|perhaps )(spin|livelock)", "status": None}),
    ("two that join each other", "zoo_partial join-ring", DEADLOCK + ", 2 ", "JoinOther one other"),
    ("owner ended", "zoo_partial owner-ended", OWNER_DIED, "lock_a LockAfterEnd worker", CPU),
    ("pipe and mutex", "zoo_partial pipe-mutex", DEADLOCK, "lock_a pipe ReadWithLock LockBeforeWrite"),
    ("child of a server", "zoo_partial child", DEADLOCK, "lock_a lock_b left right"),
]

CONTROLS = [
    ("pool beside all", "zoo_partial pool", CPU),
    ("held by who computes", "zoo_partial held-computer", CPU),
    ("held by who serves", "zoo_partial held-server"),
    ("held by who sleeps", "zoo_partial held-sleeper"),
    ("read lock of a server", "zoo_partial read-held-server"),
    ("semaphores that are posted", "zoo_partial sem-posted"),
    ("own futex lock of who computes", "zoo_partial word-computer", CPU),
    ("own futex lock of who serves", "zoo_partial word-server"),
    ("std::call_once that serves", "zoo_partial once-serves"),
    ("future of a server", "zoo_partial future-server"),
    ("flag of a heartbeat", "zoo_partial flag-heartbeat", CPU),
    ("pipe of a heartbeat", "zoo_partial pipe-heartbeat"),
    ("slow turns", "zoo_partial slow-turns", CPU),
    ("child of a server sleeps", "zoo_partial child-sleeps"),
    ("workers in order", "zoo_partial workers-in-order"),
    ("condition of a server", "zoo_partial cond-server"),
]
