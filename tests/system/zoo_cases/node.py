"""Programs of Node.js, with the frames of JavaScript (zoo/node/). A long run asks them."""
from zoo_cases import LOST, SPIN

DEFAULTS = {"needs": "node", "restless": True, "age": 1}
HANG = "node {programs}/node/hangs.js "
CONTROL = "node {programs}/node/controls.js "
COPROCESS = "node {programs}/node/coprocess.js "
CPU = {"cpu": True}
WRITER = "no writer|deadlock"

HANGS = [
    ("flag that a timer would set", HANG + "flag", SPIN, "waitForReady hangs.js:1[4567]", CPU),
    ("flag that a timer would set, in another", HANG + "flag-in-timer", SPIN, "waitForReady hangs.js:1[4567]", CPU),
    ("queue that a timer would fill", HANG + "queue", SPIN, "take hangs.js:(69|7[012])", CPU),
    ("promises that never let a timer run", HANG + "await", SPIN, "pollForReady", CPU),
    ("ticks that never let a timer run", HANG + "ticks", SPIN, "tickUntilReady", CPU),
    ("Atomics.wait that nobody ends", HANG + "atomics", LOST, "waitTurn hangs.js:3[345] Atomics"),
    ("Atomics.wait of two workers", HANG + "workers-wait", LOST, "waitTurn hangs.js:3[345] Atomics"),
    ("worker that spins beside a server", HANG + "worker-spins", SPIN, "waitForReady hangs.js:1[4567]", CPU),
    ("workers that spin for each other's word", HANG + "workers-spin", SPIN, "waitForWord hangs.js", CPU),
    ("FIFO that nobody writes", HANG + "fifo", WRITER, "loadConfig hangs.js:4 config.fifo"),
    ("command whose FIFO nobody writes", HANG + "command", WRITER, "command.fifo cat"),
    ("command whose FIFO nobody writes, beside a server", HANG + "server-and-command", WRITER, "command.fifo cat"),
    ("command that waits for its input", COPROCESS + "nobody", "deadlock", "node wc"),
]

CONTROLS = [
    ("server", CONTROL + "serve"),
    ("interval", CONTROL + "interval"),
    ("long timer", CONTROL + "long-timer"),
    ("primes", CONTROL + "primes", CPU),
    ("waits for a time, and spins", CONTROL + "wait-for-time", CPU),
    ("promises", CONTROL + "promises", CPU),
    ("parses", CONTROL + "parse", CPU),
    ("sorts", CONTROL + "sort", CPU),
    ("expression that takes years", CONTROL + "regexp", CPU),
    ("immediate", CONTROL + "immediate", CPU),
    ("workers without work", CONTROL + "worker-pool"),
    ("worker that a timer wakes", CONTROL + "worker-of-timer"),
    ("worker that a request wakes", CONTROL + "worker-of-server"),
    ("worker that a signal wakes", CONTROL + "worker-of-signal"),
    ("word that a timer sets", CONTROL + "spin-of-timer", CPU),
    ("word that a request sets", CONTROL + "spin-of-server", CPU),
    ("Atomics.wait with a limit", CONTROL + "wait-with-limit"),
    ("command that sleeps", CONTROL + "sleep"),
    ("lines of its input", CONTROL + "input", {"stdin": "pipe"}),
    ("reads its input", CONTROL + "read-input", {"stdin": "pipe"}),
    ("watches files", CONTROL + "watch"),
    ("command that reads its input", CONTROL + "command-reads-input", {"stdin": "pipe"}),
    ("command whose input a handler of SIGINT ends", COPROCESS + "interrupt"),
    ("command whose input a handler of SIGTERM ends", COPROCESS + "terminate"),
    ("command whose input a handler of SIGUSR2 ends", COPROCESS + "user"),
]
