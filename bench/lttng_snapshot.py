"""What a snapshot costs, hangscope's beside LTTng-UST's, of the same events of one program.

snapshot_load records each event twice, into hangscope's ring in its memory and to LTTng-UST (a session in snapshot mode, with room
for all of them). It runs under 'hangscope run --scope pid:', a new one in each round, and LTTng's buffers are cleared before. It
records N events, and then, to and fro, 'hangscope snap' and 'lttng snapshot record' are run; what each wrote is read back, and
has to have these N events and no others.

What is timed is the command, from its start to its end; the CPU time is its own and that of the recorder, or of LTTng's daemons.
They do not do the same: 'hangscope snap' comes back when the snapshot has reached the disk (fsync), with a report of what each
thread does and the program's output in it; 'lttng snapshot record' when its files are written. LTTng's kernel tracer, the peer of
'hangscope run --cpu', is not compared: where its modules are there, this says so.

options:
  --hangscope PATH  [build/release/hangscope]
  --tools FOLDER    with snapshot_load [build/release/bench]
  --rounds N        [21]
  --events N        in each round [60000]
  --quick           seconds: checks that all events are in both snapshots, and measures nothing
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from cpu_record import lttng_kernel_modules
from record_bench import Lttng, NoDaemon, why_no_daemon
from recorders import Wrong, check, fast_place, say
from throughput import in_turn, median, table

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
SUBBUFFER_BYTES = 4 << 20  # four of them a CPU: 32 bytes an event at most, and no round's are overwritten
EVENT = "hangscope_bench:event"


def cpu_ms(process):
    """That the threads of a process and its children had, and of commands that have ended."""
    used, found = 0, [process]
    for pid in found:
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                used += int((task / "schedstat").read_text().split()[0])
                found += map(int, (task / "children").read_text().split())
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used / 1e6 + (ended.ru_utime + ended.ru_stime) * 1e3


def size_of(folder):
    """What it takes of the disk: files may have holes."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


class Program:
    """snapshot_load under hangscope."""

    def __init__(self, words, place, lttng):
        self.words, self.place, self.lttng = words, place, lttng
        self.environment = {**lttng.environment, "HANGSCOPE_SCOPE": str(place / "load.scope"), "XDG_RUNTIME_DIR": str(place / "runtime"),
                            "XDG_STATE_HOME": str(place / "state")}
        (place / "runtime").mkdir(mode=0o700)
        command = [words.hangscope, "run", "--scope", "pid:", "--prefix", place / "load", "--max-snapshots", "2000", "--heartbeat", "0",
                   "--history", "none", "--on-exit", "none", "--on-hang", "none", "--", words.tools / "snapshot_load"]
        self.log = open(place / "hangscope.log", "w")
        self.process = subprocess.Popen([str(word) for word in command], env=self.environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log)

    def record(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        check(line == "done\n", f"snapshot_load said {line!r}: {(self.place / 'hangscope.log').read_text()}")

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.log.close()

    def command(self, *words):
        """(milliseconds, stdout)"""
        begun = time.monotonic()
        done = subprocess.run([str(word) for word in words], env=self.environment, capture_output=True, text=True, timeout=60)
        took = (time.monotonic() - begun) * 1e3
        check(done.returncode == 0, f"{words}: status {done.returncode}: {done.stdout}{done.stderr}")
        return took, done.stdout

    def hangscope(self, count):
        cpu = cpu_ms(self.process.pid)
        took, said = self.command(self.words.hangscope, "snap", "load")
        cpu = cpu_ms(self.process.pid) - cpu
        folder = pathlib.Path(said.strip())
        lines = self.command(self.words.hangscope, "show", "--json", folder)[1].splitlines()
        found = sum(event["type"] == "event" and event["name"] == "bench" for event in map(json.loads, lines))
        result = {"ms": took, "cpu_ms": cpu, "bytes": size_of(folder), "trace_bytes": (folder / "scope.bin").stat().st_size}
        self.check_events("hangscope", found, count)
        shutil.rmtree(folder)
        return result

    def lttng_ust(self, count):
        before = set(self.snapshots())
        cpu = cpu_ms(self.lttng.daemon.pid)
        took, _ = self.command("lttng", "--no-sessiond", "snapshot", "record")
        cpu = cpu_ms(self.lttng.daemon.pid) - cpu
        folder, = set(self.snapshots()) - before
        result = {"ms": took, "cpu_ms": cpu, "bytes": size_of(folder), "trace_bytes": sum(file.stat().st_size for file in folder.rglob("events_*") if file.is_file())}
        text = self.command("babeltrace2", folder)[1]
        self.check_events("LTTng-UST", text.count(f" {EVENT}: "), count)
        shutil.rmtree(folder)
        return result

    def snapshots(self):
        folder = self.lttng.folder / "snapshots"
        return folder.iterdir() if folder.exists() else ()

    def check_events(self, whose, found, count):
        check(found == count, f"{whose}'s snapshot has {found} of {count} events")


RECORDERS = {"hangscope": ("`hangscope snap`", Program.hangscope), "lttng": ("`lttng snapshot record`", Program.lttng_ust)}


def measure(words, place):
    folder = place / "lttng"
    folder.mkdir()
    results = {name: [] for name in RECORDERS}
    with Lttng(folder, subbuffer_bytes=SUBBUFFER_BYTES) as lttng:
        for number in range(words.rounds):
            (place / "round").mkdir()
            program = Program(words, place / "round", lttng)
            try:
                program.command("lttng", "--no-sessiond", "clear")
                program.record(words.events)
                for name in in_turn(list(RECORDERS), number):
                    results[name].append(RECORDERS[name][1](program, words.events))
            finally:
                program.end()
            shutil.rmtree(place / "round")
    return results


def parse_words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="lttng_snapshot.py [options]")
    parser.add_argument("--hangscope", type=pathlib.Path, default=HERE.parent / "build/release/hangscope")
    parser.add_argument("--tools", type=pathlib.Path, default=HERE.parent / "build/release/bench")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    words.hangscope, words.tools = words.hangscope.resolve(), words.tools.resolve()
    if words.quick:
        words.rounds, words.events = 2, 5000
    return words


def show(results, words, load_before):
    print(f"{datetime.date.today()}; {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}; {words.rounds} rounds of {words.events} events; "
          f"load average before: {load_before:.1f}, after: {os.getloadavg()[0]:.1f}; LTTng's kernel modules are "
          f"{'there, and not used' if lttng_kernel_modules() else 'not there'}\n")
    rows = [[f"a snapshot of {words.events} events", "ms, median", "least", "most", "CPU ms", "KB, all files", "KB, the events' files"]]
    for name, each in results.items():
        times = [result["ms"] for result in each]
        rows.append([RECORDERS[name][0], f"{median(times):.1f}", f"{min(times):.1f}", f"{max(times):.1f}", f"{median([result['cpu_ms'] for result in each]):.1f}",
                     *(f"{median([result[key] for result in each]) / 1e3:.0f}" for key in ("bytes", "trace_bytes"))])
    table(rows)


def why_not(words):
    for tool in ("babeltrace2",):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if not (words.tools / "snapshot_load").exists():
        return "snapshot_load was not built (package liblttng-ust-dev)"
    return why_no_daemon()


def main():
    words = parse_words()
    missing = why_not(words)
    if missing is None:
        # Where files are memory: what is compared is the recorders and not a disk.
        with tempfile.TemporaryDirectory(dir=fast_place(), prefix="lttng-snapshot-") as place:
            load_before = os.getloadavg()[0]
            try:
                results = measure(words, pathlib.Path(place))
            except NoDaemon as daemon:
                missing = daemon
    if missing is not None:
        say(f"skipped: {missing}")
        sys.exit(SKIPPED)
    if words.quick:
        print("All of it runs, and both snapshots have all events; nothing was measured.")
        return
    show(results, words, load_before)


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"lttng_snapshot.py: error: {wrong}")
