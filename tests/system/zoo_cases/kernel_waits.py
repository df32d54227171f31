"""Threads and processes that sleep in the kernel for what nobody will do (zoo/kernel_waits.cc)."""
from zoo_cases import DEADLOCK, LOST, UNOWNED

NO_WRITER = "no writer|lost wakeup"
NO_READER = "no reader|no writer|lost wakeup"
# Somebody who is not there yet may come by a name or a number: to say that nobody has, is enough.
NOBODY_YET = {"status": None}
STOPPED = {"line": "(HANG: )?.*(stopped|frozen)", "status": None}
SLOW = {"restless": True}

HANGS = [
    # Named pipes.
    ("FIFO without a name, opened for reading", "zoo_kernel_waits fifo-read-unlinked", "no writer|deadlock|lost wakeup", "lonely.fifo OpenForReading"),
    ("FIFO without a name, opened for writing", "zoo_kernel_waits fifo-write-unlinked", "no reader|deadlock|lost wakeup", "lonely.fifo OpenForWriting"),
    ("FIFO that nobody writes", "zoo_kernel_waits fifo-read", "no writer", "lonely.fifo OpenForReading", {"line": "(HANG: |perhaps )no writer", **NOBODY_YET}),
    ("FIFO that nobody reads", "zoo_kernel_waits fifo-write", "no reader", "lonely.fifo OpenForWriting", {"line": "(HANG: |perhaps )no reader", **NOBODY_YET}),
    ("two FIFOs, opened crosswise", "zoo_kernel_waits fifos-crossed", DEADLOCK, "requests.fifo replies.fifo first second"),
    # Locks of files.
    ("flock crosswise", "zoo_kernel_waits flock-crossed", DEADLOCK, "a.lock b.lock FlockBoth first second"),
    ("flock by two descriptors of one process", "zoo_kernel_waits flock-twice", DEADLOCK, "a.lock FlockTwice"),
    ("locks of open file descriptions crosswise", "zoo_kernel_waits ofd-crossed", DEADLOCK, "a.lock b.lock first second"),
    ("lock of an open file description, twice", "zoo_kernel_waits ofd-twice", DEADLOCK, "a.lock"),
    ("fcntl lock and pipe", "zoo_kernel_waits fcntl-pipe", DEADLOCK, "a.lock pipe HoldAndRead first second"),
    ("flock of who reads its own pipe", "zoo_kernel_waits flock-stuck", "deadlock|held|starved|no writer", "a.lock second"),
    # System V and POSIX.
    ("System V semaphores crosswise", "zoo_kernel_waits sysv-crossed", UNOWNED, "semaphore first second"),
    ("System V semaphore twice", "zoo_kernel_waits sysv-twice", UNOWNED, "semaphore", {"line": "(HANG: |perhaps )(deadlock|lost wakeup)", **NOBODY_YET}),
    ("System V queue, both receive", "zoo_kernel_waits sysv-queue", UNOWNED, "queue first second",
     {"line": "(HANG: |perhaps )(deadlock|lost wakeup|no writer)", **NOBODY_YET}),
    ("POSIX queues, both receive", "zoo_kernel_waits queues-crossed", DEADLOCK, "queue first second"),
    ("POSIX queue of its own, empty", "zoo_kernel_waits queue-own", NO_WRITER, "queue ReceiveFrom"),
    ("POSIX queue of its own, full", "zoo_kernel_waits queue-full", NO_READER, "queue SendTo"),
    # Children that are stopped, traced, frozen.
    ("vfork, and the child reads", "zoo_kernel_waits vfork-stuck", DEADLOCK + "|no writer", "job pipe"),
    ("waits for a stopped child", "zoo_kernel_waits wait-stopped", "stopped child", "job WaitForStopped"),
    ("reads from a stopped child", "zoo_kernel_waits read-stopped", "held|stopped child", "job pipe ReadFromStopped|ReadByte"),
    ("lock of a stopped child", "zoo_kernel_waits lock-stopped", "held|stopped child", "job LockOfStopped"),
    ("flock of a stopped child", "zoo_kernel_waits flock-stopped", "held|stopped child", "job a.lock FlockOfStopped"),
    ("in the background, reads its terminal", "zoo_kernel_waits tty-input", "stopped child|held", "job session"),
    ("in the background, sets its terminal", "zoo_kernel_waits tty-output", "stopped child|held", "job session"),
    ("stopped itself", "zoo_kernel_waits stop-itself", "stopped", "", STOPPED),
    ("tracer reads from whom it has stopped", "zoo_kernel_waits traced", DEADLOCK + "|held|stopped child", "traced pipe"),
    ("frozen", "zoo_kernel_waits frozen", "stopped", "freez|frozen", {**STOPPED, "ask": "frozen", "freeze": "frozen", "restless": True}),
    # Full.
    ("pipe full, its reader waits for the end", "zoo_kernel_waits full-pipe", DEADLOCK, "talker pipe FullPipe"),
    ("pipe full, its reader waits for a lock", "zoo_kernel_waits full-pipe-lock", DEADLOCK, "pipe mutex first second"),
    ("TCP, both write", "zoo_kernel_waits tcp-full", DEADLOCK, "tcp WriteMuch first second"),
    ("unix, both write", "zoo_kernel_waits unix-full", DEADLOCK, "unix WriteMuch first second"),
    ("unix datagrams, both write", "zoo_kernel_waits datagrams-full", DEADLOCK, "unix WriteMuch first second"),
    ("unix, both read", "zoo_kernel_waits unix-both-read", DEADLOCK, "unix first second"),
    ("TCP, both read", "zoo_kernel_waits tcp-both-read", DEADLOCK, "tcp first second"),
    ("TCP to itself, full", "zoo_kernel_waits tcp-own-full", "no reader|no writer|deadlock", "tcp WriteMuch"),
    ("splice into its own full pipe", "zoo_kernel_waits splice-own-full", "no reader|no writer|deadlock", "pipe SpliceOwnFull"),
    # Never ready.
    ("eventfds crosswise", "zoo_kernel_waits events-crossed", DEADLOCK, "eventfd first second WaitForEventfd"),
    ("timerfd never armed", "zoo_kernel_waits timer-never", NO_WRITER, "timer TimerNeverArmed"),
    ("epoll of nothing", "zoo_kernel_waits epoll-nothing", NO_WRITER, "epoll EpollOfNothing"),
    ("epoll of its own pipe", "zoo_kernel_waits epoll-own", NO_WRITER, "pipe EpollOfOwn"),
    ("pidfd of who reads from it", "zoo_kernel_waits pidfd-reader", DEADLOCK, "job pipe PidfdOfReader"),
    ("io_uring, nothing submitted", "zoo_kernel_waits ring-nothing", NO_WRITER + "|deadlock", "io_uring WaitForCompletion|RingOfNothing"),
    ("io_uring reads its own pipe", "zoo_kernel_waits ring-own-pipe", NO_WRITER + "|deadlock", "io_uring WaitForCompletion|RingReadsOwnPipe"),
    ("futexes in a file without a name, crosswise", "zoo_kernel_waits futex-file", UNOWNED, "WaitForWord first second"),
    ("page that nobody fills", "zoo_kernel_waits page-fault", UNOWNED, "lock_a TouchPage FillPage"),
    ("connects to its own full backlog", "zoo_kernel_waits connect-own", DEADLOCK, "own.socket ConnectToOwn"),
]

CONTROLS = [
    ("FIFO opened later", "zoo_kernel_waits fifo-later", {"later": "echo >{folder}/later.fifo", **SLOW}),
    ("flock by turns", "zoo_kernel_waits flock-turns", SLOW),
    ("flock of a sleeper", "zoo_kernel_waits flock-sleeper", SLOW),
    ("fcntl lock of a sleeper", "zoo_kernel_waits fcntl-sleeper", SLOW),
    ("lock of an open file description of a server", "zoo_kernel_waits ofd-server", SLOW),
    ("System V semaphores by turns", "zoo_kernel_waits sysv-turns", SLOW),
    ("System V semaphore of a sleeper", "zoo_kernel_waits sysv-sleeper", SLOW),
    ("POSIX queue of a server", "zoo_kernel_waits queue-server"),
    ("POSIX queues by turns", "zoo_kernel_waits queue-turns", SLOW),
    ("vfork and exec of a sleep", "zoo_kernel_waits vfork-sleeps", SLOW),
    ("server with a stopped child", "zoo_kernel_waits stopped-serves"),
    ("tracer at work", "zoo_kernel_waits tracer", SLOW),
    ("pipe, slow reader", "zoo_kernel_waits slow-reader", SLOW),
    ("TCP by turns", "zoo_kernel_waits tcp-turns", SLOW),
    ("unix, slow reader", "zoo_kernel_waits unix-slow-reader", SLOW),
    ("signalfd", "zoo_kernel_waits signalfd"),
    ("timerfd, once", "zoo_kernel_waits timerfd"),
    ("timerfd, again and again", "zoo_kernel_waits timerfd 1"),
    ("eventfds by turns", "zoo_kernel_waits event-turns", SLOW),
    ("inotify", "zoo_kernel_waits inotify"),
    ("io_uring, a time", "zoo_kernel_waits ring-timeout"),
    ("io_uring accepts", "zoo_kernel_waits ring-accepts"),
    ("futexes of shared memory by turns", "zoo_kernel_waits futex-turns", SLOW),
    ("pidfd of a sleeper", "zoo_kernel_waits pidfd-sleeper", SLOW),
    ("epoll of a server", "zoo_kernel_waits epoll-server"),
    ("netlink", "zoo_kernel_waits netlink"),
    ("poll of /proc/self/mounts", "zoo_kernel_waits mounts"),
    ("unix datagrams of a server", "zoo_kernel_waits datagram-server"),
    ("select with a time", "zoo_kernel_waits select-timed"),
    ("recv with a time", "zoo_kernel_waits receive-timed"),
    ("its terminal", "zoo_kernel_waits tty", {"stdin": "tty"}),
    ("its input", "zoo_kernel_waits tty", {"stdin": "pipe"}),
]
