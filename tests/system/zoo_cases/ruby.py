"""Programs of Ruby 3.1, with the frames and the locks of Ruby (zoo/ruby/). A long run asks them."""
from zoo_cases import DEADLOCK, LOST, SPIN, UNOWNED

RUBY = "/usr/bin/ruby3.1"
DEFAULTS = {"needs": RUBY, "restless": True, "age": 1}
HANG = RUBY + " {programs}/ruby/hangs.rb "
CONTROL = RUBY + " {programs}/ruby/controls.rb "
CPU = {"cpu": True}
READS = {"stdin": "pipe"}
# Beside who serves or naps it could be given, for all that memory tells: to say so is enough.
PERHAPS = {"line": "(HANG: (partial: )?|perhaps )(deadlock|lost wakeup|no writer)", "status": None}

HANGS = [
    ("mutexes crosswise beside a heartbeat", HANG + "mutexes heartbeat", DEADLOCK + ", 2 ", "transfer hangs.rb:37 Mutex"),
    ("mutexes crosswise beside a server", HANG + "mutexes server", DEADLOCK + ", 2 ", "transfer hangs.rb:37 Mutex"),
    ("mutexes crosswise, main is one", HANG + "main-is-one server", DEADLOCK + ", 2 ", "transfer hangs.rb:37 Mutex"),
    ("mutexes crosswise for an hour, until one is given an exception", HANG + "until-raise", DEADLOCK, "transfer hangs.rb:37 Mutex", PERHAPS),
    ("circle of three", HANG + "circle server", DEADLOCK + ", 3 ", "transfer Mutex"),
    ("mutex and queue", HANG + "mutex-and-queue server", UNOWNED, "take_job put_job|Mutex Queue", PERHAPS),
    ("monitors crosswise", HANG + "monitors server", DEADLOCK + ", 2 ", "register Monitor"),
    ("monitor and mutex", HANG + "monitor-and-mutex heartbeat", DEADLOCK + ", 2 ", "enter Monitor Mutex"),
    ("condition that nobody signals", HANG + "condition server", LOST, "await_letter ConditionVariable", PERHAPS),
    ("queue that nobody fills", HANG + "queue server", LOST, "consume_jobs Queue", PERHAPS),
    ("queue that nobody empties", HANG + "full-queue server", LOST, "produce_jobs SizedQueue", PERHAPS),
    ("queue that nobody fills, in the main thread", HANG + "queue-in-main server", LOST, "consume_jobs Queue", PERHAPS),
    ("queue that nobody fills, beside who reads its own pipe", HANG + "queue input", UNOWNED + "|no writer", "consume_jobs Queue"),
    ("joins crosswise", HANG + "joins server", DEADLOCK + ", 2 ", "join_other"),
    ("end of a thread that wants its mutex", HANG + "join-with-lock server", DEADLOCK + ", 2 ", "collect compute_totals Mutex"),
    ("flag that nobody sets", HANG + "spin", SPIN, "wait_for_ready hangs.rb", CPU),
    ("flag that nobody sets, in a thread", HANG + "spin-in-thread", SPIN, "wait_for_ready hangs.rb", CPU),
    ("flag that nobody sets, looked at after naps", HANG + "naps", SPIN, "nap_for_ready hangs.rb"),
    ("pipes to cat full both ways", HANG + "popen", DEADLOCK + ", 2 ", "feed_cat pipe cat"),
    ("child that reads what it has open itself", HANG + "wait-reader", DEADLOCK + ", 2 ", "wait_for_reader pipe cat"),
    ("child whose output nobody reads", HANG + "wait-talker", DEADLOCK + ", 2 ", "wait_for_talker pipe yes"),
    ("reads a command before its input ends", HANG + "open3", DEADLOCK + ", 2 ", "sort_by_command pipe sort"),
    ("FIFO that nobody writes", HANG + "fifo", "no writer|deadlock", "load_config config.fifo"),
]

CONTROLS = [
    ("sleeps for ever", CONTROL + "sleep"),
    ("sleeps for an hour", CONTROL + "long-sleep"),
    ("naps", CONTROL + "naps"),
    ("naps until a handler sets a flag", CONTROL + "naps-until-handler"),
    ("naps until a thread sets a flag", CONTROL + "naps-until-thread"),
    ("spins until a thread sets a flag", CONTROL + "spins-until-thread", CPU),
    ("spins until a client comes", CONTROL + "spins-until-client", CPU),
    ("spins until a handler sets a flag", CONTROL + "spins-until-handler", CPU),
    ("server", CONTROL + "server"),
    ("WEBrick", CONTROL + "webrick"),
    ("idle pool of a server", CONTROL + "pool-of-server"),
    ("idle pool that is fed slowly", CONTROL + "pool-of-queue"),
    ("idle pool that input feeds", CONTROL + "pool-of-input", READS),
    ("queue that a server in a thread feeds", CONTROL + "pool-of-server-in-thread"),
    ("queue that a handler fills", CONTROL + "queue-of-handler"),
    ("queue that a sleeper fills", CONTROL + "queue-of-sleeper"),
    ("queue with a timeout", CONTROL + "queue-with-timeout"),
    ("condition that a sleeper signals", CONTROL + "condition-of-sleeper"),
    ("condition with a limit", CONTROL + "condition-with-limit"),
    ("mutex that a sleeper has", CONTROL + "mutex-of-sleeper"),
    ("mutex held while it reads", CONTROL + "mutex-of-reader", READS),
    ("mutex held while it takes connections", CONTROL + "mutex-of-server"),
    ("monitor that a sleeper has", CONTROL + "monitor-of-sleeper"),
    ("mutexes in one order", CONTROL + "mutex-in-order"),
    ("mutexes crosswise with a timeout", CONTROL + "crosswise-with-timeout"),
    ("end of a sleeper", CONTROL + "join-of-sleeper"),
    ("end of a thread that computes", CONTROL + "join-of-computer", CPU),
    ("stopped until a sleeper wakes it", CONTROL + "stopped-until-wakeup"),
    ("stopped until a client comes", CONTROL + "wakeup-of-server"),
    ("primes", CONTROL + "primes", CPU),
    ("three compute", CONTROL + "three-compute", CPU),
    ("garbage", CONTROL + "garbage", CPU),
    ("expression that takes years", CONTROL + "regexp", CPU),
    ("fibers", CONTROL + "fibers", CPU),
    ("sleeps in a fiber", CONTROL + "fiber-sleeps"),
    ("lines of its input", CONTROL + "input", READS),
    ("prompt at a terminal", CONTROL + "input", {"stdin": "tty"}),
    ("selects its input", CONTROL + "select", READS),
    ("child sleeps", CONTROL + "child-sleeps"),
    ("reads a child that sleeps", CONTROL + "reads-child"),
    ("child reads its input", CONTROL + "child-reads-input", READS),
    ("sleeps until a handler comes", CONTROL + "handler"),
    ("ractor that waits for a message", CONTROL + "ractor"),
]
