"""All of a process waits, but for a thread that naps, wakes and naps again (zoo/naps.cc)."""
from zoo_cases import LOST, UNOWNED

DEFAULTS = {"restless": True, "age": 2.5}
# What it calls through a pointer, or is done when a thread ends, may be anything: to say "perhaps" is enough.
EITHER = {"line": "(HANG: (partial: )?|perhaps )(deadlock|lost wakeup)", "status": None, "age": 6}

HANGS = [
    ("semaphores beside who counts", "zoo_naps sem", UNOWNED, "answer_came|work_came AwaitAnswer|AnswerWork"),
    ("semaphores beside who prints", "zoo_naps sem-print", UNOWNED, "answer_came|work_came"),
    ("semaphores beside who counts until it is stopped", "zoo_naps sem-until-stopped", UNOWNED, "answer_came|work_came", EITHER),
    ("semaphores beside who waits with a timeout", "zoo_naps sem-timeout", UNOWNED, "answer_came|work_came"),
    ("semaphores beside who calls a pointer", "zoo_naps sem-pointer", UNOWNED, "answer_came|work_came", EITHER),
    ("pool beside who counts", "zoo_naps pool", LOST, "not_empty WaitInQueue"),
    ("condition beside who counts", "zoo_naps condition", LOST, "not_empty WaitInQueue"),
    ("future beside who counts", "zoo_naps future", LOST, "Future"),
    ("two helpers", "zoo_naps two-helpers", UNOWNED, "answer_came|work_came"),
]

CONTROLS = [
    ("posts every third time", "zoo_naps posts-third"),
    ("posts by a pointer", "zoo_naps posts-by-pointer"),
    ("posts by a virtual function", "zoo_naps posts-by-virtual"),
    ("posts from deep", "zoo_naps posts-deep"),
    ("posts at its end", "zoo_naps posts-at-end"),
    ("posts by what is destroyed at its end", "zoo_naps posts-by-destructor"),
    ("posts where a library calls it", "zoo_naps posts-from-library"),
    ("posts where it is called", "zoo_naps posts-in-caller"),
    ("posts by the handler of a fault", "zoo_naps posts-by-fault"),
    ("posts by a stream", "posts", {"build": ("naps_stream.cc", "g++", "-std=c++20")}),
    ("posts by a handler", "zoo_naps posts-by-handler"),
    ("posts by a pipe and another thread", "zoo_naps posts-by-pipe"),
    ("wakes a word", "zoo_naps wakes-word"),
    ("signals when its time is over", "zoo_naps signals-by-timeout"),
    ("the main thread gives", "zoo_naps main-gives"),
    ("the main thread naps", "zoo_naps main-naps"),
    ("promise that breaks at its end", "zoo_naps breaks-promise"),
    ("promise that is kept", "zoo_naps keeps-promise"),
    ("notifies by std::function", "zoo_naps notifies-by-function"),
]
