"""Scripts of bash, with the lines of the scripts (zoo/shell/)."""
from zoo_cases import DEADLOCK

DEFAULTS = {"needs": "/bin/bash", "restless": True, "age": 1}
HANG = "/bin/bash {programs}/shell/hangs.sh "
CONTROL = "/bin/bash {programs}/shell/controls.sh "

HANGS = [
    ("named pipes opened crosswise", HANG + "crosswise", DEADLOCK + ", 2 ", "ask_first hangs.sh:11 serve_first hangs.sh:18 requests.fifo replies.fifo"),
    ("named pipes of commands, opened crosswise", HANG + "commands", DEADLOCK + ", 2 ", "sum_up hangs.sh:34 count_sums hangs.sh:38 numbers.fifo sums.fifo"),
    ("named pipes in a folder, opened crosswise", HANG + "folders", DEADLOCK + ", 2 ", "take_job hangs.sh:63 in_folders hangs.sh:55"),
    ("lock of the script that called it", HANG + "lock", DEADLOCK, "build.lock flock build_part|hangs.sh:70 call_itself|hangs.sh:78"),
    ("coprocess that waits for its input", HANG + "coproc", DEADLOCK, "pipe translate hangs.sh:86 cat"),
]

CONTROLS = [
    ("servers whose clients are of the same script", CONTROL + "server"),
    ("relays that a third begins", CONTROL + "third"),
    ("named pipe that is written late", CONTROL + "slow-writer"),
    ("naps until there is a file", CONTROL + "nap"),
    ("waits for a job that sleeps", CONTROL + "job"),
    ("waits for its input", CONTROL + "input", {"stdin": "pipe"}),
    ("pipeline with a slow beginning", CONTROL + "pipeline"),
]
