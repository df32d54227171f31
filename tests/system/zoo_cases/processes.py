"""Processes that wait for each other, or for one that is stuck (zoo/processes.cc, and Debian's own)."""
from zoo_cases import DEADLOCK, LOST, OWNER_DIED, UNOWNED

SLOW = {"restless": True}
MAKE = "sh -c 'printf \"{}\" >Makefile; exec make -s {}'"
LEFT_RIGHT = "lock_a lock_b left right"

HANGS = [
    # Two of them.
    ("two pipes", "zoo_processes two-pipes", DEADLOCK, "pipe AwaitReply AwaitRequest first second"),
    ("socket pair", "zoo_processes socket-pair", DEADLOCK, "unix first second"),
    ("waits for a child that reads from it", "zoo_processes wait-reader", DEADLOCK, "reader pipe ReapReader"),
    ("sort whose input is not closed", "zoo_processes open-sort", DEADLOCK, "sort pipe ReadFromSort"),
    ("cat that is fed and not read", "zoo_processes cat-full", DEADLOCK, "cat pipe WriteMuch"),
    ("reads errors, and output is full", "zoo_processes output-first", DEADLOCK, "talker pipe ReadErrors"),
    ("shared mutexes", "zoo_processes shared-abba", DEADLOCK, "mutex LockFirst LockSecond first second"),
    ("shared mutex whose owner died", "zoo_processes shared-owner-died", OWNER_DIED, "mutex LockAfterDeath"),
    ("shared rwlock whose writer died", "zoo_processes shared-writer-died", OWNER_DIED, "rwlock ReadTableAfterDeath"),
    ("shared semaphores", "zoo_processes shared-semaphores", UNOWNED, "semaphore DownFirst DownSecond first second"),
    ("shared condition, both wait", "zoo_processes shared-condition", LOST, "condition ConsumeShared first second"),
    ("shared barrier, the other died", "zoo_processes shared-barrier", LOST, "barrier EndSharedPhase"),
    ("shared mutex and pipe", "zoo_processes mutex-pipe", DEADLOCK, "mutex pipe LockAndReadPipe LockAndWritePipe first second"),
    # More.
    ("ring of 3 over sockets", "zoo_processes ring 3", DEADLOCK + ", 3 ", "unix ReadFromPrevious"),
    ("ring of 5 over sockets", "zoo_processes ring 5", DEADLOCK + ", 5 ", "unix ReadFromPrevious"),
    ("siblings", "zoo_processes siblings", DEADLOCK, "pipe elder younger AwaitSibling AwaitOther"),
    ("token that waits for its waiter", "zoo_processes lost-token", DEADLOCK, "pipe linker compiler"),
    # Debian's own, and behind them.
    ("sh, a job's deadlock", "sh -c '{zoo}/zoo_processes abba; :'", DEADLOCK, LEFT_RIGHT),
    ("sh, a pipeline whose end hangs", "sh -c 'yes | {zoo}/zoo_processes abba'", DEADLOCK, LEFT_RIGHT),
    ("sh, the middle of a pipeline hangs", "sh -c 'sleep 0.1 | {zoo}/zoo_processes abba | cat'", DEADLOCK, LEFT_RIGHT, {"ask": "cat"}),
    ("sh, command substitution", "sh -c 'echo ready; x=$({zoo}/zoo_processes daemonise); echo \"$x\"'", DEADLOCK, "daemon lock_a"),
    ("make, a job takes all tokens and one more", MAKE.format("all:\\n\\t+@{zoo}/zoo_processes take-tokens 2\\n", "-j2"), DEADLOCK + "|no writer|lost wakeup", "tokens pipe"),
    ("make -j2, one job hangs", MAKE.format("all: a b\\na:\\n\\t@{zoo}/zoo_processes abba\\nb:\\n\\t@sleep 0.1\\n", "-j2"), DEADLOCK, LEFT_RIGHT),
    ("xargs, one of two hangs", "sh -c 'printf \"abba\\nsay-ready\\n\" | xargs -P2 -n1 {zoo}/zoo_processes'", DEADLOCK, LEFT_RIGHT, {"lines": 2}),
    ("timeout", "timeout 600 {zoo}/zoo_processes two-pipes", DEADLOCK, "pipe first second"),
    ("flock against flock", "sh -c 'echo ready; flock a.lock sh -c \"sleep 0.4; flock b.lock true\" & flock b.lock sh -c \"sleep 0.4; flock a.lock true\"; wait'",
     DEADLOCK, "a.lock b.lock", {"age": 1}),
    ("bash, coproc", "bash -c 'coproc sort; echo x >&${COPROC[1]}; echo ready; read x <&${COPROC[0]}'", DEADLOCK, "bash sort pipe"),
    ("in a PID namespace", "unshare -p -f --mount-proc {zoo}/zoo_processes shared-abba", DEADLOCK, "mutex LockFirst LockSecond", {"root": True}),
]

CONTROLS = [
    ("pipes by turns", "zoo_processes pipes-turns", SLOW),
    ("ring that passes on", "zoo_processes ring-passes 4", SLOW),
    ("shared mutex, contended", "zoo_processes shared-contended", {"cpu": True, **SLOW}),
    ("shared mutex held in a nap", "zoo_processes shared-held-nap", SLOW),
    ("shared robust mutex recovered", "zoo_processes shared-robust"),
    ("shared condition, signalled", "zoo_processes shared-condition-ticks", SLOW),
    ("shared semaphore of who computes", "zoo_processes shared-semaphore-computer", {"cpu": True, **SLOW}),
    ("waits for who computes", "zoo_processes wait-computer", {"cpu": True, **SLOW}),
    ("waits for who serves", "zoo_processes wait-server", SLOW),
    ("sort of slow input", "zoo_processes sort-slow", SLOW),
    ("reads from who serves", "zoo_processes read-server", SLOW),
    ("waits for two sleepers", "zoo_processes two-sleepers", SLOW),
    ("sh waits for a sleep", "sh -c 'echo ready; sleep 600; :'", SLOW),
    ("sh, pipeline of a ticker", "sh -c 'echo ready; while sleep 0.2; do echo x; done | cat >/dev/null'", SLOW),
    ("sh, yes and a slow reader", "sh -c 'echo ready; yes | while read line; do sleep 0.1; done'", SLOW),
    ("sh, command substitution of a sleep", "sh -c 'echo ready; x=$(sleep 600)'", SLOW),
    ("sh, command substitution, daemon serves", "sh -c 'echo ready; x=$({zoo}/zoo_processes daemonise 1)'", SLOW),
    ("sh, wait of two jobs", "sh -c 'echo ready; sleep 600 & sleep 600 & wait'", SLOW),
    ("make -j2 of sleeps", MAKE.format("all: a b\\na:\\n\\t@echo ready; sleep 600\\nb:\\n\\t@sleep 600\\n", "-j2"), SLOW),
    ("make -j4 of more jobs", MAKE.format("all: a b c d e f\\na:\\n\\t@echo ready; sleep 600\\nb c d e f:\\n\\t@sleep 600\\n", "-j4"), SLOW),
    ("make, recursive", MAKE.format("all:\\n\\t+@$$MAKE -s a b\\na:\\n\\t@echo ready; sleep 600\\nb:\\n\\t@sleep 600\\n", "-j3").replace("$$MAKE", "make"), SLOW),
    ("make, one job serves", MAKE.format("all: a b\\na:\\n\\t@{zoo}/zoo_processes wait-server\\nb:\\n\\t@sleep 600\\n", "-j2"), SLOW),
    ("xargs of sleeps", "sh -c 'echo ready; printf \"600\\n600\\n600\\n\" | xargs -P2 -n1 sleep'", SLOW),
    ("timeout of a sleep", "timeout 600 {zoo}/zoo_processes sleeper"),
    ("flock of a sleep", "sh -c 'echo ready; flock x.lock sleep 600'", SLOW),
    ("flock waits for a sleep", "sh -c 'echo ready; flock x.lock sleep 600 & sleep 0.2; flock x.lock true'", SLOW),
    ("cat of its input", "sh -c 'echo ready; exec cat'", {"stdin": "pipe", **SLOW}),
    ("bash reads its terminal", "bash -c 'echo ready; read line'", {"stdin": "tty", **SLOW}),
    ("bash, coproc that answers late", "bash -c 'coproc { sleep 600; echo x; }; echo ready; read x <&${COPROC[0]}'", SLOW),
    ("tail -f", "sh -c 'echo x >log; echo ready; exec tail -f log >/dev/null'", SLOW),
    ("FIFO that a script writes later", "sh -c 'mkfifo fifo; echo ready; read x <fifo; sleep 600'", {"later": "echo x >{folder}/fifo", **SLOW}),
    ("sleep in a PID namespace", "unshare -p -f --mount-proc {zoo}/zoo_processes sleeper", {"root": True, **SLOW}),
    ("compresses for ever", "sh -c 'echo ready; yes | gzip | cat >/dev/null'", {"cpu": True, **SLOW}),
    ("inotifywait", "sh -c 'echo ready; exec inotifywait -qq -e create .'", {"needs": "inotifywait", **SLOW}),
]
