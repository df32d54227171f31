"""What recording an event costs in time, beside a floor and LTTng-UST: runs record_bench and judges.

The names that record_bench.cc lists, in rounds that go through them to and fro; a name's number is the
median of its rounds, a ratio the median of the rounds' ratios. LTTng-UST records into a session of its
own in snapshot mode (overwriting), with a session daemon in a folder of its own, which is ended after.

options:
  --bench PATH      record_bench [bench/record_bench of build/release]
  --rounds N        [21]
  --batches N       of 2000 events in each round [300]
  --no-lttng        without LTTng-UST
  --check           status 1 if a target is missed
  --quick           seconds: checks that everything runs, and measures nothing
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

from recorders import Wrong, check, fast_place, say
from throughput import Targets, median, table

HERE = pathlib.Path(__file__).resolve().parent
ROWS = {
    "clock": "`rdtsc` alone",
    "floor": "floor: `rdtsc`, four stores, a published head",
    "hangscope": "hangscope: signal-safe, mask, mapped file",
    "private": "the same into private memory",
    "two": "hangscope, two threads at once",
    "two_floor": "the floor, two threads at once",
    "masked_out": "hangscope, the class switched off",
    "lttng": "LTTng-UST, snapshot mode",
}
SYSTEM_DAEMON = pathlib.Path("/var/run/lttng/lttng-sessiond.pid")


class NoDaemon(Exception):
    """No session daemon of our own can be had."""


class Lttng:
    """A session daemon of our own, with one session in snapshot mode."""

    def __init__(self, folder, subbuffer_bytes=65536):
        self.folder, self.subbuffer_bytes = folder, subbuffer_bytes
        self.environment = dict(os.environ, LTTNG_HOME=str(folder), LTTNG_UST_REGISTER_TIMEOUT="-1")
        self.daemon = None

    def lttng(self, *words):
        done = subprocess.run(["lttng", "--no-sessiond", *map(str, words)], env=self.environment, capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, f"lttng {words[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def __enter__(self):
        self.log = open(self.folder / "sessiond.log", "w")
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.environment, stdout=self.log, stderr=self.log)
        try:
            self.wait_until_it_answers()
            self.lttng("create", "hangscope-bench", "--snapshot", f"--output={self.folder / 'snapshots'}")
            self.lttng("enable-channel", "--userspace", "--overwrite", f"--subbuf-size={self.subbuffer_bytes}", "--num-subbuf=4", "events")
            self.lttng("enable-event", "--userspace", "--channel=events", "hangscope_bench:event")
            self.lttng("start")
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_it_answers(self):
        for _ in range(100):
            if self.daemon.poll() is not None:
                raise NoDaemon(f"lttng-sessiond ended: {(self.folder / 'sessiond.log').read_text()}")
            with contextlib.suppress(Wrong):
                self.lttng("list")
                return
            time.sleep(0.1)
        raise Wrong("lttng-sessiond does not answer")

    def check_it_recorded(self):
        self.lttng("snapshot", "record")
        recorded = sum(file.stat().st_size for file in (self.folder / "snapshots").rglob("events_*") if file.is_file())
        check(recorded >= 65536, f"LTTng-UST recorded {recorded} bytes: the event is not in the session")

    def __exit__(self, *_):
        if self.daemon.poll() is None:
            self.daemon.terminate()
            try:
                self.daemon.wait(30)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
        self.log.close()


def why_no_lttng(words, names):
    if words.no_lttng:
        return "--no-lttng"
    if "lttng" not in names:
        return "record_bench was built without it (package liblttng-ust-dev)"
    return why_no_daemon()


def why_no_daemon():
    for tool in ("lttng", "lttng-sessiond"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (package lttng-tools)"
    # The superuser's daemon has one place for all of the machine.
    with contextlib.suppress(OSError, ValueError):
        if os.geteuid() == 0 and pathlib.Path(f"/proc/{int(SYSTEM_DAEMON.read_text())}").exists():
            return "a session daemon runs already"
    return None


def parse_words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="record_bench.py [options]")
    parser.add_argument("--bench", type=pathlib.Path, default=HERE.parent / "build/release/bench/record_bench")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--batches", type=int, default=300)
    for flag in ("--no-lttng", "--check", "--quick"):
        parser.add_argument(flag, action="store_true")
    words = parser.parse_args()
    words.bench = words.bench.resolve()
    if words.quick:
        words.rounds, words.batches = 3, 10
    return words


def run(words, names, environment):
    done = subprocess.run([words.bench, str(words.rounds), str(words.batches), *names], env=environment, capture_output=True, text=True, timeout=600)
    check(done.returncode == 0, f"record_bench: {done.stderr}")
    return json.loads(done.stdout)


def measure(words, folder):
    names = subprocess.run([words.bench, "--list"], capture_output=True, text=True, check=True).stdout.split()
    own = {"HANGSCOPE_SCOPE": str(folder / "bench.scope")}
    missing = why_no_lttng(words, names)
    if missing is None:
        try:
            with Lttng(folder) as lttng:
                rounds = run(words, names, {**lttng.environment, **own})
                lttng.check_it_recorded()
            return rounds
        except NoDaemon as daemon:
            missing = daemon
    say(f"LTTng-UST is left out: {missing}")
    return run(words, [name for name in names if name != "lttng"], {**os.environ, **own})


def ratio(rounds, above, below):
    return median([a / b for a, b in zip(rounds[above], rounds[below])])


def show(rounds, words):
    print(f"{datetime.date.today()}; {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}; rounds: {words.rounds}, "
          f"{words.batches} batches of 2000 events each; load: {os.getloadavg()[0]:.1f}\n")
    table([["ns an event", "min", "median", "max", "of the floor"]] +
          [[what, f"{min(rounds[name]):.2f}", f"{median(rounds[name]):.2f}", f"{max(rounds[name]):.2f}", f"{ratio(rounds, name, 'floor'):.3f}"]
           for name, what in ROWS.items() if name in rounds])


def judge(rounds):
    targets = Targets()
    targets.at_most("hangscope / floor", ratio(rounds, "hangscope", "floor"), 1.05)
    targets.at_most("two threads at once / one", ratio(rounds, "two", "hangscope"), 1.05)
    targets.at_most("mapped file / private memory", ratio(rounds, "hangscope", "private"), 1.05)
    if "lttng" in rounds:
        targets.at_least("LTTng-UST / hangscope", ratio(rounds, "lttng", "hangscope"), 9)
    return targets


def main():
    words = parse_words()
    # The scope lies where files are memory; that one on a disk costs the same until the kernel writes it.
    with tempfile.TemporaryDirectory(dir=fast_place(), prefix="record-bench-") as folder:
        rounds = measure(words, pathlib.Path(folder))
    if words.quick:
        print(f"All of it runs ({', '.join(rounds)}); nothing was measured.")
        return
    show(rounds, words)
    targets = judge(rounds)
    targets.show()
    if words.check and targets.missed():
        sys.exit("record_bench.py: targets missed:\n  " + "\n  ".join(targets.missed()))


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"record_bench.py: error: {wrong}")
