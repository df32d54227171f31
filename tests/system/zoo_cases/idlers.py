"""Waits for what nobody gives, beside threads that do nothing for it, and behind event loops (zoo/idlers.cc)."""
from zoo_cases import LOST

NO_WRITER = "no writer|deadlock"
BESIDE = {"restless": True, "age": 1}
# Both words are right of a worker and its loop.
BEHIND = "no writer|lost wakeup|deadlock"

HANGS = [
    # A main thread that only naps.
    ("semaphore beside a main thread that naps", "zoo_idlers sem-main", LOST, "free_slots AwaitSlot worker", BESIDE),
    ("condition beside a main thread that naps", "zoo_idlers cond-main", LOST, "not_empty AwaitWork worker", BESIDE),
    ("eventfd beside a main thread that naps", "zoo_idlers event-main", NO_WRITER, "eventfd AwaitAnswer worker", BESIDE),
    ("pipe beside a main thread that naps", "zoo_idlers pipe-main", NO_WRITER, "pipe AwaitByte worker", BESIDE),
    ("pipes crosswise beside a main thread that naps", "zoo_idlers pipes-main", NO_WRITER, "pipe AskFirst AskSecond first second", BESIDE),
    # An event loop.
    ("pipe behind an event loop", "zoo_idlers pipe-loop", BEHIND, "pipe AwaitByte RunLoop|loop"),
    ("eventfd behind an event loop", "zoo_idlers event-loop", BEHIND, "eventfd AwaitAnswer RunLoop|loop"),
    ("semaphore behind an event loop", "zoo_idlers sem-loop", BEHIND, "free_slots|pipe AwaitSlot|RunLoop worker|loop"),
    ("condition behind an event loop", "zoo_idlers cond-loop", BEHIND, "not_empty|socket AskAndWait|SignalWhenAsked worker|loop"),
    # What is gone.
    ("inotify of a folder that is gone", "zoo_idlers watch-gone", "no writer|lost wakeup", "inotify WatchesWhatIsGone"),
    ("inotify that watches nothing, in epoll", "zoo_idlers watch-none", "no writer|lost wakeup", "inotify WatchesNothingMore"),
    ("both sides of a terminal are read", "zoo_idlers pty-both", "no writer|deadlock", "ReadMaster ReadSlave terminal"),
    ("both sides of a terminal are read, by two", "zoo_idlers pty-two", "no writer|deadlock", "ReadMaster ReadSlave session"),
    # What has no name of its own.
    ("mutexes of a memfd crosswise", "zoo_idlers jobs-crossed", "deadlock, 2 ", "jobs TakeBothOfJobs"),
    ("mutexes of shared memory crosswise", "zoo_idlers jobs-crossed 1", "deadlock, 2 ", "jobs TakeBothOfJobs"),
]

CONTROLS = [
    ("semaphore that a main thread posts later", "zoo_idlers post-later", BESIDE),
    ("pool beside a main thread that naps", "zoo_idlers pool-main", BESIDE),
    ("pipe that a main thread closes later", "zoo_idlers close-later", BESIDE),
    ("semaphore posted over a pointer", "zoo_idlers call-later", BESIDE),
    ("main thread that ends later", "zoo_idlers end-later", BESIDE),
    ("pipe that is stderr", "zoo_idlers print-later", BESIDE),
    ("semaphore of a handler beside a main thread that naps", "zoo_idlers handler-posts", BESIDE),
    ("pipe behind an event loop with a timer", "zoo_idlers loop-timer"),
    ("pipe behind an event loop that serves", "zoo_idlers loop-serves"),
    ("pipe behind an event loop that a napper asks", "zoo_idlers loop-napper"),
    ("inotify of two folders, one is gone", "zoo_idlers watch-other"),
    ("inotify to which a folder is added later", "zoo_idlers watch-later"),
    ("terminal that a person has", "zoo_idlers pty-person", {"ask": "session"}),
    ("terminal at which a child naps", "zoo_idlers pty-child-naps"),
]
