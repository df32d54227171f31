#!/usr/bin/env python3
"""What `hangscope export` takes, beside babeltrace2 copying the same CTF and perf converting the same file to CTF.

Two recordings are made: a scope of 16 cores with full rings, by tests/system/scope_images.py; and what `perf record`
says of a program of system calls and switches (cpu_record_load.cc). In rounds, to and fro:

  hangscope    hangscope export --to FORMAT, each format that it has
  babeltrace2  babeltrace2 --output-format=ctf of the CTF that hangscope wrote: reads and writes the same events
  perf         perf data convert --to-ctf of the same perf.data

A rate is of the recording's events, in CPU time (user and system), which other work on the machine disturbs less than it
does the clock; the clock's is beside it. Memory is the most that was resident at a time, as time(1) says. A number is the median of the
rounds, a ratio the median of the rounds' ratios. Where other work on the machine makes these differ, --instructions counts what
they execute instead, which it does not: of two small recordings each, so that what begins and ends a program is not in it.

options:
  --hangscope PATH  [build/release/hangscope]
  --tools FOLDER    with cpu_record_load [bench/ beside hangscope]
  --rounds N        [7]
  --events N        about so many in each recording [1000000]
  --check           status 1 if a target is missed
  --instructions    counts instructions with valgrind, and takes no times; half a minute
  --quick           seconds: checks that everything runs and that all have the same events, and measures nothing
"""
import argparse
import collections
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/system"))

import scope_images
from recorders import Wrong, check, fast_place, say
from throughput import Targets, in_turn, median, table

FORMATS = ("ctf", "jsonl", "text", "perfetto", "chrome")
COUNTED = (30_000, 120_000)  # events, about
PERF_EVENTS = ("sched:sched_switch", "sched:sched_waking", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit")
SKIPPED = 77


def measure(command, out):
    """{"s", "cpu_s", "mib", "said"} of a run that writes `out`."""
    for old in (out, pathlib.Path(f"{out}.partial")):
        shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    # What a process was before it became another program counts as its memory: Python's, without time(1) between.
    memory = pathlib.Path(f"{out}.memory")
    wrapper = ["time", "-q", "-f", "%M", "-o", memory] if shutil.which("time") else []
    with tempfile.TemporaryFile() as said:
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in [*wrapper, *command]], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        lasted = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    check(process.returncode == 0, f"{' '.join(map(str, command))}: status {process.returncode}: {text[-2000:]}")
    return {"s": lasted, "cpu_s": used.ru_utime + used.ru_stime, "mib": int(memory.read_text()) / 1024 if wrapper else None, "said": text}


def bytes_in(path):
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size


def make_scope(path, events):
    """Sixteen cores that do the same: task switches and waits of a catalog that hangscope knows."""
    cores = 16
    capacity = max(256, 1 << (events // cores).bit_length() - 1)
    scope = scope_images.Scope("<", 4, capacity=capacity, clock_hz=1_000_000_000)
    core = scope.core("core", 0)
    core.write(scope_images.BOOT, 100, 1, 0)
    for i in range(capacity + 100):
        if i % 2:
            core.write(scope_images.SWITCH, 200 + 10 * i, i // 2 % 7, i // 2 % 7 + 1)
        else:
            core.write(scope_images.WAIT, 200 + 10 * i, 0x20001000 + i % 5, 2**32 - 1)
    scope.cores = [core] * cores
    path.write_bytes(scope.bytes())


def make_perf(path, events, tools):
    """None, or why there is none."""
    if shutil.which("perf") is None:
        return "perf is not installed (package linux-perf)"
    rounds = max(events // 12, 100)
    words = [word for event in PERF_EVENTS for word in ("-e", event)]
    done = subprocess.run(["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-m", "4096", "-c", "1", "-N", "-B", *words, "-o", str(path), "--",
                           str(tools / "cpu_record_load"), "pipe", "0", "10", str(rounds // 10), str(path) + ".result"],
                          capture_output=True, text=True, timeout=300)
    if not path.exists() or path.stat().st_size < 1000:
        return "perf record: " + " ".join(done.stderr.split())[:200]
    return None


def why_no_perf_ctf():
    done = subprocess.run(["perf", "data", "convert", "--to-ctf", "/nonexistent/x", "-i", "/dev/null"], capture_output=True, text=True)
    said = done.stderr + done.stdout
    return "perf was built without libbabeltrace" if "No conversion support compiled in" in said or "libbabeltrace" in said else None


class Bench:
    def __init__(self, words, folder):
        self.words, self.folder = words, folder

    def formats(self):
        """Those that this hangscope has."""
        done = subprocess.run([self.words.hangscope, "export", "--to", "none-such", "-o", self.folder / "x", "/dev/null"], capture_output=True, text=True)
        known = done.stderr.partition("there are ")[2].strip().split(", ")
        return [name for name in FORMATS if name in known]

    def commands(self, recording):
        """[(name, output, command)]; who copies hangscope's CTF comes behind who writes it."""
        rows = []
        for name in self.formats():
            out = self.folder / f"out.{name}"
            rows.append((f"hangscope, {name}", out, [self.words.hangscope, "export", "--to", name, "-o", out, recording]))
        copy = self.folder / "copy"
        rows.append(("babeltrace2, CTF to CTF", copy, ["babeltrace2", self.folder / "out.ctf", "--output-format=ctf", "--output", copy]))
        if recording.suffix == ".data" and why_no_perf_ctf() is None:
            out = self.folder / "perf.ctf"
            rows.append(("perf data convert --to-ctf", out, ["perf", "data", "convert", "--all", "--to-ctf", out, "-i", recording]))
        return rows

    def count(self, trace):
        """Events in a CTF trace, by kind of name, as babeltrace2 prints them."""
        done = subprocess.run(["babeltrace2", "--names=none", str(trace)], capture_output=True, text=True, timeout=600)
        check(done.returncode == 0, f"babeltrace2 {trace}: {done.stderr[-500:]}")
        lines = done.stdout.splitlines()
        own = sum(re.search(r"\bhangscope:\w+", line) is not None for line in lines)
        return collections.Counter(own=own, recorded=len(lines) - own)

    def check_same_events(self, results):
        ours = self.count(self.folder / "out.ctf")
        said = int(re.search(r"(\d+) events", results["hangscope, ctf"][-1]["said"])[1])
        check(ours["recorded"] == said, f"hangscope says {said} events, babeltrace2 reads {ours['recorded']}")
        copied = self.count(self.folder / "copy")
        check(copied == ours, f"babeltrace2's copy has {copied}, hangscope's CTF {ours}")
        return said

    def run(self, recording):
        rows = self.commands(recording)
        results = collections.defaultdict(list)
        for number in range(self.words.rounds):
            order = rows if number == 0 else in_turn(rows, number)  # the copy needs what it copies
            for name, out, command in order:
                results[name].append(measure(command, out))
                results[name][-1]["bytes"] = bytes_in(out)
                say(f"  round {number + 1} {name}: {results[name][-1]['cpu_s']:.2f} s of CPU time")
        return results, self.check_same_events(results)


def instructions(command, folder):
    """That a run executes."""
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind.out'}", *command]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr[-500:]}")
    return int(re.search(r"refs:\s+([\d,]+)", done.stderr)[1].replace(",", "")), done.stdout + done.stderr


def instructions_of_event(bench, recordings):
    """(hangscope's, babeltrace2's) of an event: what the larger of two recordings takes more, by what it has more."""
    events, ours, theirs = [], [], []
    for recording in recordings:
        trace, copy = bench.folder / "counted.ctf", bench.folder / "counted.copy"
        for old in (trace, copy):
            shutil.rmtree(old, ignore_errors=True)
        count, said = instructions([bench.words.hangscope, "export", "--to", "ctf", "-o", trace, recording], bench.folder)
        events.append(int(re.search(r"(\d+) events", said)[1]))
        ours.append(count)
        theirs.append(instructions(["babeltrace2", trace, "--output-format=ctf", "--output", copy], bench.folder)[0])
    more = events[1] - events[0]
    return (ours[1] - ours[0]) / more, (theirs[1] - theirs[0]) / more


def count_all(bench, targets):
    rows = [["instructions of an event", "hangscope, ctf", "babeltrace2, CTF to CTF", "ratio of rates"]]
    for title, suffix, make in (("a scope of 16 cores", "bin", make_scope), ("perf.data", "data", lambda path, events: make_perf(path, events, bench.words.tools))):
        recordings = [bench.folder / f"counted{events}.{suffix}" for events in COUNTED]
        why_not = [make(path, events) for path, events in zip(recordings, COUNTED)][0]
        if why_not:
            print(f"{title} is skipped: {why_not}\n")
            continue
        ours, theirs = instructions_of_event(bench, recordings)
        rows.append([title, f"{ours:.0f}", f"{theirs:.0f}", f"{theirs / ours:.2f}"])
        targets.at_least(f"{title}: CTF export / babeltrace2's copy, instructions", theirs / ours, 1)
    table(rows)


def ratios(results, above, below, key):
    return [b[key] / a[key] for a, b in zip(results[above], results[below])]


def show(title, recording, results, events, targets):
    print(f"### {title}: {events} events, {bytes_in(recording) / 1e6:.1f} MB\n")
    rows = [["", "million events/s of CPU time", "by the clock", "MB/s read", "MB/s written", "MB written", "MiB of memory"]]
    for name, runs in results.items():
        cpu, wall = (median([run[key] for run in runs]) for key in ("cpu_s", "s"))
        written = median([run["bytes"] for run in runs]) / 1e6
        read = bytes_in(recording) / 1e6 if not name.startswith("babeltrace2") else median([run["bytes"] for run in results["hangscope, ctf"]]) / 1e6
        rows.append([name, f"{events / cpu / 1e6:.2f}", f"{events / wall / 1e6:.2f}", f"{read / cpu:.0f}", f"{written / cpu:.0f}", f"{written:.1f}",
                     f"{max(run['mib'] for run in runs):.0f}" if runs[0]["mib"] is not None else ""])
    table(rows)
    peers = [name for name in results if not name.startswith("hangscope")]
    rows = [["ratio of rates", "CPU time", "rounds", "by the clock"]]
    for peer in peers:
        of_cpu, of_clock = (ratios(results, "hangscope, ctf", peer, key) for key in ("cpu_s", "s"))
        rows.append([f"hangscope, ctf / {peer}", f"{median(of_cpu):.2f}", f"{min(of_cpu):.2f} to {max(of_cpu):.2f}", f"{median(of_clock):.2f}"])
        if peer.startswith("babeltrace2"):
            targets.at_least(f"{title}: CTF export / babeltrace2's copy", median(of_cpu), 1)
    table(rows)


def parse_words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="export.py [options]")
    parser.add_argument("--hangscope", type=pathlib.Path, default=HERE.parent / "build/release/hangscope")
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--events", type=int)
    for flag in ("--check", "--instructions", "--quick"):
        parser.add_argument(flag, action="store_true")
    words = parser.parse_args()
    words.hangscope = words.hangscope.resolve()
    words.tools = (words.tools or words.hangscope.parent / "bench").resolve()
    words.rounds = words.rounds or (1 if words.quick else 7)
    words.events = words.events or (5000 if words.quick else 1_000_000)
    return words


def main():
    words = parse_words()
    if shutil.which("babeltrace2") is None:
        print("SKIPPED: babeltrace2 is not installed (package babeltrace2)")
        sys.exit(SKIPPED)
    if words.instructions and shutil.which("valgrind") is None:
        print("SKIPPED: valgrind is not installed (package valgrind)")
        sys.exit(SKIPPED)
    targets = Targets()
    with tempfile.TemporaryDirectory(prefix="hangscope-bench-", dir=fast_place()) as name:
        folder = pathlib.Path(name)
        bench = Bench(words, folder)
        if words.instructions:
            count_all(bench, targets)
            return finish(words, targets)
        print(f"{os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}; rounds: {words.rounds}; load before: {os.getloadavg()[0]:.1f}\n")
        make_scope(folder / "scope.bin", words.events)
        results, events = bench.run(folder / "scope.bin")
        show("A scope of 16 cores", folder / "scope.bin", results, events, targets)
        why_not = make_perf(folder / "cpu.data", words.events, words.tools)
        if why_not:
            print(f"The events of a CPU are skipped: {why_not}\n")
        else:
            results, events = bench.run(folder / "cpu.data")
            show("perf.data", folder / "cpu.data", results, events, targets)
            if why_no_perf_ctf():
                print(f"perf data convert --to-ctf is skipped: {why_no_perf_ctf()}\n")
    if words.quick:
        print("All of it runs; nothing above is a measurement.")
        return
    finish(words, targets)


def finish(words, targets):
    targets.show()
    if words.check and targets.missed():
        sys.exit("export.py: targets missed:\n  " + "\n  ".join(targets.missed()))


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"export.py: error: {wrong}")
