"""What the history of threads costs that `hangscope run` keeps by default; docs/performance.md.

Programs that are not ours run in rounds, each round to and fro through:

  plain      hangscope run --history none
  history    hangscope run, as it is: switches, and wake-ups from the second second on
  switches, wakes, calls
             perf record --overwrite of the same processes, rings of 64 KiB a CPU: --switch-events alone; with
             sched:sched_waking; with raw_syscalls, too. What the default could have been. They stand beside `alone`
  alone      the program by itself

CPU time is user and system time of the program with its processes, without the recorder's own, which is a row of its own.
A number is the median of the rounds, a ratio the median of the rounds' ratios.

options:
  --hangscope PATH  [build/release/hangscope]
  --rounds N        [9]
  --loads NAMES     of make, forks, python, threads, pingpong, redis, redis1 [all]
  --recorders NAMES [all]
  --check           status 1 if the history costs a program more than 2 % of CPU time
  --quick           seconds: checks that everything runs, and measures nothing
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from recorders import Wrong, check, fast_place, say
from throughput import Targets, in_turn, median, table

HERE = pathlib.Path(__file__).resolve()
RECORDERS = ("alone", "plain", "history", "switches", "wakes", "calls")
CONTROL = {"plain": "alone", "history": "plain", "switches": "alone", "wakes": "alone", "calls": "alone"}
NAMES = {"alone": "by itself", "plain": "`run --history none`", "history": "`run`", "switches": "perf: switches", "wakes": "perf: and wake-ups",
         "calls": "perf: and system calls"}
TOLERANCE = 1.02
UNIT = "".join(f"#include <{name}.h>\n" for name in ("math", "pthread", "regex", "stdio", "stdlib", "string", "sys/socket", "unistd")) + "".join(
    f"int work_{i}(char *text, int n) {{ for (int i = 0; i < n; ++i) text[i] = (char)(text[n - i] * {i} + sin(i)); return printf(\"%s\", text); }}\n" for i in range(60))
PYTHON = "import json; d = [dict(n=i, s=str(i)) for i in range(3000)]\nfor _ in range({}): json.loads(json.dumps(d))"
# Reads files in four threads and hands them on in a queue.
THREADS = """
import queue, sys, threading, zlib
q = queue.Queue(8)
def read():
    for _ in range({}): q.put(open(sys.executable, "rb").read(200000))
threads = [threading.Thread(target=read) for _ in range(4)]
for t in threads: t.start()
for _ in range(4 * {}): zlib.crc32(zlib.compress(q.get(), 1))
"""
# A byte to another thread and back: nothing but switches.
PINGPONG = """
import os, threading
(a, b), (c, d) = os.pipe(), os.pipe()
def answer():
    for _ in range({0}): os.write(d, os.read(a, 1))
t = threading.Thread(target=answer); t.start()
for _ in range({0}): os.write(b, b"x"); os.read(c, 1)
t.join()
"""


def measure(out, command):
    """Below a recorder: runs the program and says what it took."""
    begun = time.monotonic()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    pathlib.Path(out).write_text(f"{used.ru_utime + used.ru_stime} {time.monotonic() - begun} {status}")


class Bench:
    def __init__(self, words, place):
        self.words, self.place = words, place
        self.scale = 0.05 if words.quick else 1
        build = place / "build"
        build.mkdir()
        for i in range(self.times(24)):
            (build / f"unit{i}.c").write_text(UNIT)
        (build / "Makefile").write_text("all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\t@gcc -O2 -c -o $@ $<\n")

    def times(self, count):
        return max(1, int(count * self.scale))

    def command(self, load):
        python = ["python3", "-c"]
        return {"make": ["make", "-s", "-B", "-j4", "-C", self.place / "build"],
                "forks": ["sh", "-c", f"i=0; while [ $i -lt {self.times(2500)} ]; do /bin/true; i=$((i+1)); done"],
                "python": [*python, PYTHON.format(self.times(250))],
                "threads": [*python, THREADS.format(self.times(120), self.times(120))],
                "pingpong": [*python, PINGPONG.format(self.times(200000))],
                "redis": [sys.executable, HERE, "--redis", self.place, 50, self.times(300000)],
                "redis1": [sys.executable, HERE, "--redis", self.place, 1, self.times(60000)]}[load]

    def recorded(self, recorder, folder):
        perf = ["perf", "record", "--overwrite", "-N", "-B", "-m", "16", "-c", "1", "-k", "CLOCK_MONOTONIC", "--switch-events", "-o", folder / "perf.data"]
        ours = [self.words.hangscope, "run", "--prefix", folder / "run", "--heartbeat", "0", "--stall", "1h", "--log", folder / "log"]
        return {"alone": [], "plain": [*ours, "--history", "none", "--"], "history": [*ours, "--"], "switches": [*perf, "-e", "dummy", "--"],
                "wakes": [*perf, "-e", "sched:sched_waking", "--"],
                "calls": [*perf, "-e", "sched:sched_waking,raw_syscalls:sys_enter,raw_syscalls:sys_exit", "--"]}[recorder]

    def run(self, load, recorder):
        """{"cpu", "wall", "own": the recorder's own CPU time}, in seconds."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=self.place))
        command = [*self.recorded(recorder, folder), sys.executable, HERE, "--measure", folder / "out", *self.command(load)]
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        check((folder / "out").exists(), f"{load} {recorder}: nothing was measured; status {status}")
        cpu, wall, status = (float(word) for word in (folder / "out").read_text().split())
        check(status == 0, f"{load} {recorder}: status {status}")
        shutil.rmtree(folder)
        return {"cpu": cpu, "wall": wall, "own": used.ru_utime + used.ru_stime - cpu}

    def results(self):
        results = {(load, recorder): [] for load in self.words.loads for recorder in self.words.recorders}
        for number in range(self.words.rounds):
            for load in self.words.loads:
                for recorder in in_turn(list(self.words.recorders), number):
                    results[load, recorder].append(self.run(load, recorder))
            say(f"  round {number + 1} of {self.words.rounds}")
        return results


def redis(place, clients, requests):
    """A server that ends when it has answered so many: its clients' time does not count."""
    socket = pathlib.Path(place) / f"redis-{os.getpid()}.sock"
    if os.fork() == 0:
        # No child of the server: the double fork leaves it to init, and nobody's wait4 counts it.
        if os.fork() == 0:
            while not socket.exists():
                time.sleep(0.01)
            to = ["-s", socket]
            subprocess.run([str(word) for word in ["redis-benchmark", *to, "-c", clients, "-n", requests, "-t", "set,get", "-q"]], stdout=subprocess.DEVNULL)
            subprocess.run([str(word) for word in ["redis-cli", *to, "shutdown", "nosave"]], stdout=subprocess.DEVNULL)
        os._exit(0)
    os.wait()
    os.execvp("redis-server", [str(word) for word in ["redis-server", "--port", 0, "--unixsocket", socket, "--save", "", "--appendonly", "no",
                                                      "--dir", place]])


def ratio(results, load, recorder, key):
    control = results[load, CONTROL[recorder]]
    return median([each[key] / base[key] for each, base in zip(results[load, recorder], control)])


def show(results, words):
    for load in words.loads:
        rows = [[load, "CPU s", "of its control", "wall s", "of its control", "recorder's own CPU s"]]
        for recorder in words.recorders:
            each = results[load, recorder]
            ratios = [f"{ratio(results, load, recorder, key):.3f}" if CONTROL.get(recorder) in words.recorders else "" for key in ("cpu", "wall")]
            rows.append([NAMES[recorder], f"{median([r['cpu'] for r in each]):.3f}", ratios[0], f"{median([r['wall'] for r in each]):.3f}", ratios[1],
                         f"{median([r['own'] for r in each]):.3f}"])
        table(rows)


def parse_words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="history.py [options]")
    parser.add_argument("--hangscope", type=pathlib.Path, default=HERE.parent.parent / "build/release/hangscope")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--loads", default="make,forks,python,threads,pingpong,redis,redis1")
    parser.add_argument("--recorders", default=",".join(RECORDERS))
    for flag in ("--check", "--quick"):
        parser.add_argument(flag, action="store_true")
    words = parser.parse_args()
    words.hangscope = words.hangscope.resolve()
    words.loads, words.recorders = words.loads.split(","), words.recorders.split(",")
    if words.quick:
        words.rounds = 1
    if shutil.which("perf") is None:
        words.recorders = [each for each in words.recorders if each in ("alone", "plain", "history")]
        say("perf is left out: it is not installed (package linux-perf)")
    for program, loads in (("make", {"make"}), ("redis-server", {"redis", "redis1"})):
        if shutil.which(program) is None and loads & set(words.loads):
            say(f"{', '.join(sorted(loads))} left out: {program} is not installed")
            words.loads = [load for load in words.loads if load not in loads]
    return words


def main():
    words = parse_words()
    with tempfile.TemporaryDirectory(dir=fast_place(), prefix="history-") as place:
        load_before = os.getloadavg()[0]
        results = Bench(words, pathlib.Path(place)).results()
    if words.quick:
        print(f"All of it runs ({', '.join(words.loads)}; {', '.join(words.recorders)}); nothing was measured.")
        return
    print(f"{os.cpu_count()} CPUs; {words.rounds} rounds; load average before: {load_before:.1f}, after: {os.getloadavg()[0]:.1f}\n")
    show(results, words)
    targets = Targets()
    if {"plain", "history"} <= set(words.recorders):
        for load in words.loads:
            targets.at_most(f"{load}: CPU time with the history / without", ratio(results, load, "history", "cpu"), TOLERANCE)
    targets.show()
    if words.check and targets.missed():
        sys.exit("history.py: targets missed:\n  " + "\n  ".join(targets.missed()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:2] == ["--redis"]:
        redis(*sys.argv[2:5])
    else:
        try:
            main()
        except Wrong as wrong:
            sys.exit(f"history.py: error: {wrong}")
