#!/usr/bin/env python3
"""What reading a perf.data takes: `hangscope why FILE` beside `perf script -i FILE`, of the same file in the same run.

perf records a pipe between two processes, with switches and wake-ups, and one process that makes system calls, on all CPUs. Both
programs then read each file, in turn; perf writes its text to a file in memory. They do not do the same: perf decodes and prints each event,
hangscope finds the window that all rings cover, who ran last, and what is missing. CPU time is the kernel's account of the process;
the bytes read are those that it read by system calls (rchar of /proc/PID/io).

options:
  --hangscope PATH  [build/release/hangscope]
  --rounds N        [9]
  --quick           seconds: checks that everything runs, and that the file is read once; measures nothing
  --check           status 1 if why takes more than 1/12 of the CPU time of perf script, or reads more than 1.05 times the file
"""
import argparse
import datetime
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

from recorders import Wrong, check, fast_place, say
from throughput import in_turn, median, table

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
MOST_OF_PERF = 1 / 12
MOST_OF_FILE = 1.05
PIPE = "import os\nr,w=os.pipe(); r2,w2=os.pipe()\nn={}\nif os.fork()==0:\n for _ in range(n): os.read(r,1); os.write(w2,b'x')\n os._exit(0)\n" \
       "for _ in range(n): os.write(w,b'x'); os.read(r2,1)\n"
LOADS = {
    "switches and wake-ups": (["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup"],
                              lambda scale: [sys.executable, "-c", PIPE.format(200 * scale)]),
    "system calls": (["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"],
                     lambda scale: ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={500 * scale}", "status=none"]),
}


def record(place, load, scale):
    events, command = LOADS[load]
    file = place / (load.replace(" ", "-") + ".data")
    done = subprocess.run(["perf", "record", "-q", "-a", "-m", "2048", "-o", file, *sum((["-e", event] for event in events), []), "--",
                           *command(scale)], capture_output=True, text=True)
    return file if done.returncode == 0 and file.exists() else done.stderr.strip().split("\n")[0]


def run(words, place):
    """CPU seconds, bytes read, memory in KiB, and what it said first."""
    out, account = place / "out", place / "account"
    script = '"$@"; status=$?; sed -n "s/^rchar: //p" /proc/$$/io >"$0"; exit $status'
    with open(out, "wb") as file:
        process = subprocess.Popen(["sh", "-c", script, account, *map(str, words)], stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process.returncode in (0, 1), f"{words[0]} ended with status {process.returncode}")
    with open(out, errors="replace") as file:
        said = file.read(1000)
    return usage.ru_utime + usage.ru_stime, int(account.read_text()), usage.ru_maxrss, said


def measure(words, file):
    programs = {"hangscope why": [words.hangscope, "why", file], "perf script": ["perf", "script", "-i", file]}
    results = {name: [] for name in programs}
    for number in range(words.rounds):
        for name in in_turn(list(programs), number):
            cpu, read, memory, said = run(programs[name], file.parent)
            check(name != "hangscope why" or "window:" in said, f"why found no window: {said!r}")
            results[name].append({"cpu": cpu, "read": read, "memory": memory})
    return results


def parse_words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="read_perf.py [options]")
    parser.add_argument("--hangscope", type=pathlib.Path, default=HERE.parent / "build/release/hangscope")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    words = parser.parse_args()
    words.hangscope = words.hangscope.resolve()
    if words.quick:
        words.rounds = 1
    return words


def main():
    words = parse_words()
    if shutil.which("perf") is None:
        say("skipped: perf is not installed")
        sys.exit(SKIPPED)
    met = True
    rows = [["file", "MB", "why: CPU s", "perf script: CPU s", "perf script / why", "why reads, of the file", "memory, MB: why", "perf script"]]
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=fast_place(), prefix="read-perf-") as place:
        for load in LOADS:
            file = record(pathlib.Path(place), load, 10 if words.quick else 1000)
            if isinstance(file, str):
                say(f"skipped: perf cannot record here: {file}")
                sys.exit(SKIPPED)
            size = file.stat().st_size
            results = measure(words, file)
            why, perf = (results[name] for name in ("hangscope why", "perf script"))
            # The program's own libraries are read, too: some hundred kilobytes.
            read = (median([each["read"] for each in why]) - (2 << 20 if words.quick else 0)) / size
            ratio = median([each["cpu"] for each in why]) / median([each["cpu"] for each in perf])
            met = met and read <= MOST_OF_FILE and (words.quick or ratio <= MOST_OF_PERF)
            rows.append([load, f"{size / 1e6:.0f}", f"{median([each['cpu'] for each in why]):.2f}", f"{median([each['cpu'] for each in perf]):.2f}",
                         f"{1 / ratio:.1f}", f"{read:.4f}", f"{median([each['memory'] for each in why]) / 1e3:.0f}",
                         f"{median([each['memory'] for each in perf]) / 1e3:.0f}"])
    if words.quick:
        check(met, "hangscope why read the file more than once")
        print("All of it runs, and the file is read once; nothing was measured.")
        return
    print(f"{datetime.date.today()}; {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}; {words.rounds} rounds; "
          f"load average before: {load_before:.1f}, after: {os.getloadavg()[0]:.1f}\n")
    table(rows)
    if words.check and not met:
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"read_perf.py: error: {wrong}")
