"""Programs of CPython 3.11, with the frames and the locks of Python (zoo/python/)."""
from zoo_cases import DEADLOCK, LOST, OWNER_DIED, SPIN, UNOWNED

PYTHON = "/usr/bin/python3.11"
DEFAULTS = {"needs": PYTHON}
HANG = PYTHON + " {programs}/python/hangs.py "
CONTROL = PYTHON + " {programs}/python/controls.py "
FILE_LOCKS = PYTHON + " {programs}/python/file_locks.py "
UNLOCKING = PYTHON + " {programs}/python/unlocking.py "
HANDLER = PYTHON + " {programs}/python/handlers.py "
HEARTBEAT = PYTHON + " {programs}/python/heartbeats.py "
SLOW = {"restless": True}
BESIDE = {"restless": True, "age": 2.5}
CPU = {"cpu": True, **SLOW}
# Beside who moves or serves it could be given, for all that memory tells: to say so is enough.
PERHAPS = {**BESIDE, "line": "(HANG: (partial: )?|perhaps )(deadlock|lost wakeup|no writer)", "status": None}

HANGS = [
    # Locks.
    ("locks crosswise", HANG + "locks-crossed", DEADLOCK + ", 2 ", "account_a account_b transfer"),
    ("locks crosswise beside a heartbeat", HANG + "locks-crossed beside heartbeat", DEADLOCK + ", 2 ", "account_a account_b transfer", BESIDE),
    ("locks crosswise beside a server", HANG + "locks-crossed beside server", DEADLOCK + ", 2 ", "account_a account_b transfer", BESIDE),
    ("locks crosswise beside a selector", HANG + "locks-crossed beside selector heartbeat", DEADLOCK + ", 2 ", "account_a account_b transfer", BESIDE),
    ("locks crosswise, acquired by hand", HANG + "locks-acquired", DEADLOCK + ", 2 ", "account_a account_b take_by_hand"),
    ("locks of objects crosswise", HANG + "attributes-crossed", DEADLOCK + ", 2 ", "balance_lock Account.receive"),
    ("locks of objects crosswise beside a server", HANG + "attributes-crossed beside server", DEADLOCK + ", 2 ", "balance_lock Account.receive", BESIDE),
    ("locks in slots crosswise", HANG + "slots-crossed", DEADLOCK + ", 2 ", "slot_lock Slotted.exchange"),
    ("philosophers", HANG + "philosophers", DEADLOCK + ", 5 ", "dine fork_locks"),
    ("RLocks crosswise", HANG + "rlocks-crossed", DEADLOCK + ", 2 .*certain", "registry journal register"),
    ("RLocks crosswise beside a server", HANG + "rlocks-crossed beside server heartbeat", DEADLOCK + ", 2 ", "registry journal register", BESIDE),
    ("RLock and Lock", HANG + "rlock-and-lock", DEADLOCK + ", 2 ", "registry account_a transfer"),
    ("lock twice", HANG + "lock-twice", DEADLOCK, "cache_lock evict"),
    ("lock twice beside a heartbeat", HANG + "lock-twice beside heartbeat", DEADLOCK, "cache_lock evict", BESIDE),
    ("lock twice in a thread", HANG + "lock-twice-in-thread beside server", DEADLOCK, "cache_lock evict", BESIDE),
    ("lock of a thread that ended", HANG + "holder-ended", "|".join((OWNER_DIED, UNOWNED)), "cache_lock refresh"),
    ("joins crosswise", HANG + "joins-crossed", DEADLOCK + ", 2 ", "join_other"),
    ("joins who wants its lock", HANG + "join-with-lock", DEADLOCK + ", 2 ", "cache_lock compute_totals join_with_lock"),
    ("lock in a handler", HANG + "lock-in-handler", DEADLOCK, "cache_lock on_alarm"),
    ("lock that fork copied", HANG + "lock-after-fork", "|".join(("copied lock", OWNER_DIED, UNOWNED)), "cache_lock child_work", {"ask": "copy"}),
    ("logging over its own pipe", HANG + "logging-and-pipe", DEADLOCK, "log_much read_log pipe"),
    ("import of a module that waits", HANG + "import-lock", UNOWNED, "load plugin"),
    ("interpreter and mutex", HANG + "gil-and-mutex", DEADLOCK + ", 2 ", "GIL mutex use_device poll_device", {"restless": True, "age": 1}),
    # What others should give.
    ("queue, get", HANG + "queue-get", LOST, "queue consume_jobs"),
    ("queue, get beside a heartbeat", HANG + "queue-get beside heartbeat", LOST, "queue consume_jobs", PERHAPS),
    ("queue, get in threads", HANG + "queue-get-in-threads", LOST, "queue consume_jobs"),
    ("queue, put", HANG + "queue-put", LOST, "queue produce_jobs"),
    ("queue, join", HANG + "queue-join", LOST, "queue drain"),
    ("simple queue", HANG + "simple-queue-get", LOST, "queue|Queue consume_simple"),
    ("queues crosswise", HANG + "queues-crossed", UNOWNED, "queue ask"),
    ("condition", HANG + "condition-wait", LOST, "condition|Condition await_work"),
    ("event", HANG + "event-wait", LOST, "stop_event|event|Event await_stop"),
    ("barrier", HANG + "barrier-of-three", LOST, "barrier|Barrier end_phase"),
    ("semaphore", HANG + "semaphore-twice", UNOWNED, "semaphore|Semaphore take_slot"),
    ("pool that waits for itself", HANG + "pool-into-itself", UNOWNED, "future|Future outer_task"),
    ("future", HANG + "future-never", LOST, "future|Future await_result"),
    ("futures crosswise", HANG + "futures-crossed", UNOWNED, "future|Future await_result"),
    # Processes.
    ("queue of processes", HANG + "process-queue", LOST + "|no writer", "read_answers"),
    ("pipe of processes", HANG + "process-pipe", DEADLOCK + ", 2 ", "answer"),
    ("lock of processes twice", HANG + "process-lock", "|".join((DEADLOCK, LOST)), "lock_twice_shared"),
    ("pool whose worker was killed", HANG + "pool-map-killed", UNOWNED + "|no writer", "map_all", {"age": 1}),
    ("output that nobody reads", HANG + "output-not-read", DEADLOCK + ", 2 ", "pipe wait_for_talker"),
    ("feeds and does not read", HANG + "feeds-and-does-not-read", DEADLOCK + ", 2 ", "pipe cat feed"),
    # asyncio.
    ("asyncio, future", HANG + "asyncio-future", LOST + "|no writer", "ask_reply"),
    ("asyncio, locks crosswise", HANG + "asyncio-locks-crossed", DEADLOCK, "take_both"),
    ("asyncio, locks crosswise in a server", HANG + "asyncio-locks-crossed-in-server", DEADLOCK, "take_both"),
    ("asyncio, tasks crosswise", HANG + "asyncio-tasks-crossed", DEADLOCK, "await_task"),
    ("asyncio, tasks crosswise in a server", HANG + "asyncio-tasks-crossed-in-server", DEADLOCK, "await_task"),
    ("asyncio, lock twice in a server", HANG + "asyncio-lock-twice", DEADLOCK, "lock_table_twice"),
    ("asyncio, queue", HANG + "asyncio-queue", LOST + "|no writer", "fetch_item"),
    ("asyncio, event", HANG + "asyncio-event", LOST + "|no writer", "await_event"),
    ("asyncio, blocked", HANG + "asyncio-blocked", LOST, "queue handle_request|consume_jobs"),
    ("asyncio, in an executor", HANG + "asyncio-executor", LOST + "|no writer", "call_in_thread|await_stop"),
    # Spins.
    ("flag", HANG + "spin-flag", SPIN, "wait_for_flag", {"cpu": True}),
    ("flag in a dictionary", HANG + "spin-dict", SPIN, "wait_for_end", {"cpu": True}),
    ("flock polled crosswise", FILE_LOCKS + "crossed", "deadlock|spin|livelock|retry", "flock a.lock b.lock lock_both", {"restless": True, "age": 1}),
    # Beside what could end others' waits.
    ("event, SIGINT of Python", HANDLER + "event-nobody-sets", LOST, "event|Event await_stop"),
    ("asyncio, event, SIGINT of its loop", HANDLER + "asyncio-event-nobody-sets", LOST + "|no writer", "await_event"),
    ("pipe of the only child, SIGCHLD handled", HANDLER + "child-drains-nobody", DEADLOCK + ", 2 ", "pipe wait_for_talker"),
    ("asyncio, locks crosswise beside fast heartbeats", HEARTBEAT + "locks", DEADLOCK, "take_both", SLOW),
    ("asyncio, tasks crosswise beside fast heartbeats", HEARTBEAT + "tasks", DEADLOCK, "await_other", SLOW),
    ("asyncio, locks crosswise beside a heartbeat", HANDLER + "crossed-beside-heartbeat", DEADLOCK, "take_both", BESIDE),
]

CONTROLS = [
    # Signals, input, the network.
    ("event that a handler sets", CONTROL + "event-signal"),
    ("queue that a handler fills", CONTROL + "queue-signal"),
    ("signal.pause", CONTROL + "pause"),
    ("reads its input", CONTROL + "reads-input", {"stdin": "pipe"}),
    ("reads its terminal", CONTROL + "reads-input", {"stdin": "tty"}),
    ("idle pool and input", CONTROL + "input-beside-pool", {"stdin": "pipe"}),
    ("queue fed by input", CONTROL + "queue-fed-by-input", {"stdin": "tty"}),
    ("server of HTTP", CONTROL + "http-server", SLOW),
    ("server of TCP", CONTROL + "tcp-server", SLOW),
    ("queue fed by a server", CONTROL + "queue-fed-by-server"),
    ("lock held by a server", CONTROL + "lock-held-by-server"),
    ("locks held by a server", CONTROL + "locks-held-by-server"),
    ("select", CONTROL + "select-on-socket"),
    ("interactive", PYTHON + " -i -c 'print(\"ready\", flush=True)'", {"stdin": "tty"}),
    # Time.
    ("sleeps", CONTROL + "sleeps", SLOW),
    ("scheduler", CONTROL + "scheduler", SLOW),
    ("timer", CONTROL + "timer"),
    ("queue with a timeout", CONTROL + "queue-with-timeout", SLOW),
    ("condition with a timeout", CONTROL + "condition-with-timeout", SLOW),
    ("queue whose producer sleeps", CONTROL + "queue-with-producer"),
    ("queue whose producer is slow", CONTROL + "queue-with-slow-producer", SLOW),
    ("full queue whose consumer is slow", CONTROL + "queue-full-with-slow-consumer", SLOW),
    ("lock held by a sleeper", CONTROL + "lock-held-by-sleeper"),
    ("locks in order", CONTROL + "locks-in-order", SLOW),
    ("RLocks, contended", CONTROL + "rlocks-contended", SLOW),
    ("lock that another thread gives back", CONTROL + "lock-given-on", SLOW),
    ("barrier of a slow one", CONTROL + "barrier-of-a-slow-one"),
    ("future of a sleeper", CONTROL + "future-of-a-sleeper"),
    ("join of a sleeper", CONTROL + "join-of-a-sleeper"),
    # Computing.
    ("computes", CONTROL + "computes", CPU),
    ("three compute", CONTROL + "computes-three", CPU),
    ("regular expression", CONTROL + "regex", CPU),
    ("lock held by who computes", CONTROL + "lock-held-by-computer", CPU),
    ("queue of who computes", CONTROL + "queue-with-computing-producer", CPU),
    ("flag that is set", CONTROL + "flag-that-is-set", CPU),
    # Processes.
    ("idle pool of processes", CONTROL + "process-pool-idle", SLOW),
    ("idle pool of processes, input", CONTROL + "process-pool-idle-input", {"stdin": "pipe", **SLOW}),
    ("pool of processes that sleep", CONTROL + "process-pool-works", SLOW),
    ("executor of processes that sleep", CONTROL + "process-executor-works", SLOW),
    ("queue of a process that sleeps", CONTROL + "process-queue", SLOW),
    ("child sleeps", CONTROL + "child-sleeps", SLOW),
    ("reads a child that sleeps", CONTROL + "reads-child-that-sleeps", SLOW),
    ("fork and wait", CONTROL + "fork-and-wait", SLOW),
    # asyncio.
    ("asyncio, server", CONTROL + "asyncio-server"),
    ("asyncio, sleep", CONTROL + "asyncio-sleep"),
    ("asyncio, signal", CONTROL + "asyncio-signal"),
    ("asyncio, queue with a producer", CONTROL + "asyncio-queue-with-producer", SLOW),
    ("asyncio, queue of a server", CONTROL + "asyncio-queue-of-a-server"),
    ("asyncio, lock held by a sleeper", CONTROL + "asyncio-lock-held-by-a-sleeper"),
    ("asyncio, locks of a client", CONTROL + "asyncio-locks-of-a-client", SLOW),
    ("asyncio, thread that sleeps", CONTROL + "asyncio-thread-sleeps"),
    ("asyncio, future of a thread", CONTROL + "asyncio-future-of-a-thread"),
    ("asyncio, child", CONTROL + "asyncio-child", SLOW),
    ("asyncio, tasks in a row", CONTROL + "asyncio-tasks-in-a-row"),
    ("asyncio, in a thread", CONTROL + "asyncio-in-a-thread"),
    ("asyncio, locks in one order beside fast heartbeats", HEARTBEAT + "locks-in-one-order", SLOW),
    ("asyncio, tasks in turns beside fast heartbeats", HEARTBEAT + "tasks-in-turns", SLOW),
    ("asyncio, cancelled later", CONTROL + "asyncio-cancelled-later", SLOW),
    # Blocks that give back inside what they began with.
    ("lock released inside of its block", UNLOCKING + "released", SLOW),
    ("lock unlocked by an inner block", UNLOCKING + "unlocked", SLOW),
    ("asyncio, group with a time limit", UNLOCKING + "group", SLOW),
    ("asyncio, gather with a time limit", UNLOCKING + "gather", SLOW),
    ("flock polled crosswise, given up after a while", FILE_LOCKS + "gives-up", SLOW),
    ("flock polled crosswise until a time", FILE_LOCKS + "gives-up-in-time", SLOW),
    ("flock of who sleeps, polled", FILE_LOCKS + "of-a-sleeper", SLOW),
    # What a handler, a timer or another task ends.
    ("event that a handler of SIGINT sets", HANDLER + "interrupt-event"),
    ("worker that a handler of SIGINT ends", HANDLER + "interrupt-worker"),
    ("asyncio, SIGINT", HANDLER + "interrupt-asyncio"),
    ("asyncio, queue that a handler of SIGINT fills", HANDLER + "interrupt-asyncio-queue"),
    ("condition that the end of a child signals", HANDLER + "child-condition", SLOW),
    ("pipe that the end of another child empties", HANDLER + "child-drains", SLOW),
    ("idle pool of processes, signal", HANDLER + "pool-of-handler", SLOW),
    ("idle executor of processes, signal", HANDLER + "executor-of-handler", SLOW),
    ("queue of processes that a handler fills", HANDLER + "queue-of-handler", SLOW),
    ("queue of processes that a handler of SIGINT fills", HANDLER + "queue-of-interrupt", SLOW),
    ("asyncio, locks crosswise until a timer", HANDLER + "cancelled-by-timer", SLOW),
    ("asyncio, locks crosswise until a function", HANDLER + "cancelled-by-function", SLOW),
    ("asyncio, locks crosswise until all are cancelled", HANDLER + "cancelled-by-name", SLOW),
    ("asyncio, locks crosswise until a task", HANDLER + "cancelled-by-task", SLOW),
    ("asyncio, locks crosswise until a task of a list", HANDLER + "cancelled-by-task-of-list", SLOW),
    ("asyncio, locks crosswise until a task of a module", HANDLER + "cancelled-by-task-of-module", SLOW),
]
