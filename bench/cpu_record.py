"""What it costs to be recorded by the kernel, by hangscope, perf and LTTng in the same run; docs/cpu-recording.md.

A program of system calls and one of switches (cpu_record_load.cc, which measures itself) run in rounds:

  plain      not recorded
  hangscope  hangscope run --cpu, as it is
  perf       perf record --overwrite: the same events, clock and rings, no call stacks, the same processes
  LTTng-UST  a session in snapshot mode with rings of the same size, and a tracepoint before and after each call. It
             records in user space only, and no switches: LTTng's kernel tracer needs modules that Debian's kernels
             get from lttng-modules-dkms; where they are there, this says so and still uses UST

Then snapshots of full rings of 16 MiB on each CPU, while the program goes on filling them: hangscope's from SIGUSR1 until
its folder is there under its name, perf's (--switch-output=signal) from SIGUSR2 until its file is.

A round goes through all on one CPU, to and fro, the next one on the next CPU. A number is the median of the rounds,
a ratio the median of the rounds' ratios.

options:
  --hangscope PATH  [build/release/hangscope]
  --tools FOLDER    with cpu_record_load and perf_ring_bench [build/release/bench]
  --rounds N        [16]
  --snapshots N     of each, in each of two orders [6]
  --check           status 1 if a target is missed
  --quick           seconds: checks that everything runs and records, and measures nothing; 77 where nothing can be recorded
"""
import argparse
import collections
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from record_bench import Lttng, NoDaemon, why_no_daemon
from recorders import Wrong, check, fast_place, say
from throughput import Targets, in_turn, median, table

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
END_STATUS = 3  # cpu_record_load's
# As kUsualEvents in src/cpu/perf_recorder.cc; its switch records are --switch-events, its period is 1.
EVENTS = ("sched:sched_switch", "sched:sched_waking", "sched:sched_migrate_task", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit",
          "signal:signal_generate", "signal:signal_deliver", "page-faults")
CALL_BYTES = 160  # at least, in a ring
LEAST_SHARE = 0.1  # of full rings in a snapshot
# perf beside itself gave 0.99 to 1.01 in the medians of 16 rounds, on two CPUs with a load of 3.
MOST_OF_PERF = 1.0
REFUSED = re.compile("perf_event_paranoid|[Pp]ermission|not permitted")
KIND = re.compile(r": +(PERF_RECORD_SWITCH|[\w-]+(?::\w+)?(?=: *$))")
LOADS = {"getppid": "`getppid`", "pipe": "a byte to another thread and back"}
RECORDERS = {"plain": "not recorded", "hangscope": "`hangscope run --cpu`", "perf": "`perf record --overwrite`", "lttng": "LTTng-UST, snapshot mode"}


class Skip(Exception):
    """Nothing can be recorded here."""


def hangscope_command(words, folder, ring_bytes, *options):
    # Streams that stay empty; its own report is not needed.
    return [words.hangscope, "run", "--cpu", "--cpu-size", str(ring_bytes), "--prefix", folder / "trace/load", "--size", "1M", "--heartbeat", "0",
            "--stall", "1h", "--max-snapshots", "20", "--log", folder / "log", *options, "--"]


def perf_command(folder, ring_bytes, *options):
    events = [word for event in EVENTS for word in ("-e", event)]
    # No build ids: looking for them at the end is not recording.
    return ["perf", "record", "--overwrite", "--switch-events", "-c", "1", "-k", "CLOCK_MONOTONIC", "-m", str(ring_bytes // os.sysconf("SC_PAGESIZE")),
            "-N", "-B", *events, "-o", folder / "perf.data", *options, "--"]


def size_of(folder, pattern):
    return sum(file.stat().st_size for file in folder.glob(pattern))


class Bench:
    def __init__(self, words, place, lttng):
        self.words, self.place, self.lttng = words, place, lttng
        self.recorders = [name for name in RECORDERS if name != "lttng" or lttng]

    @contextlib.contextmanager
    def folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=self.place))
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def command(self, recorder, folder):
        if recorder == "hangscope":
            return hangscope_command(self.words, folder, self.words.ring_bytes)
        return perf_command(folder, self.words.ring_bytes) if recorder == "perf" else []

    def run(self, load, recorder, cpu):
        """{"ns", "cpu_ns"} of a call, once."""
        with self.folder() as folder:
            program = self.words.tools / ("cpu_record_load_lttng" if recorder == "lttng" else "cpu_record_load")
            command = [*self.command(recorder, folder), program, load, cpu, self.words.batches, self.words.calls[load], folder / "result"]
            done = subprocess.run([str(word) for word in command], env=self.lttng.environment if recorder == "lttng" else None,
                                  capture_output=True, text=True, timeout=120)
            check(done.returncode == END_STATUS, f"{recorder}: status {done.returncode}: {done.stdout}{done.stderr}")
            # The ring of the CPU that the program ran on is full.
            recorded = {"hangscope": "trace/*/cpu.perf.data", "perf": "perf.data"}.get(recorder)
            if recorded:
                check(size_of(folder, recorded) > 0.8 * self.words.ring_bytes, f"{recorder} recorded {size_of(folder, recorded)} bytes: {done.stderr}")
            return json.loads((folder / "result").read_text())

    def kinds(self, recorder):
        """What there is in the file of a short run, as perf counts it: {kind: records}."""
        with self.folder() as folder:
            command = [*self.command(recorder, folder), self.words.tools / "cpu_record_load", "pipe", 0, 10, 20, folder / "result"]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)
            if recorder == "perf" and REFUSED.search(done.stderr):
                raise Skip(f"perf record: {done.stderr.strip()}")
            check(done.returncode == END_STATUS, f"{recorder}: status {done.returncode}: {done.stdout}{done.stderr}")
            files = [*folder.glob("trace/*/cpu.perf.data"), *folder.glob("perf.data")]
            check(len(files) == 1, f"{recorder} recorded nothing: {done.stderr}")
            text = subprocess.run(["perf", "script", "--show-switch-events", "-F", "event,tid,time", "-i", files[0]], capture_output=True, text=True, timeout=60).stdout
        return collections.Counter(found[1] for line in text.splitlines() if (found := KIND.search(line)))

    def check_same_events(self):
        """Else costs are not compared but amounts. System calls and faults are the program's own; how often others take its CPU is not."""
        counts = {recorder: self.kinds(recorder) for recorder in ("hangscope", "perf")}
        for kind in ("raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "page-faults", "sched:sched_switch", "sched:sched_waking", "PERF_RECORD_SWITCH"):
            ours, theirs = counts["hangscope"][kind], counts["perf"][kind]
            is_own = not kind.startswith(("sched:", "PERF"))
            check(ours > 0 and theirs > 0 and (not is_own or abs(ours - theirs) < 0.25 * theirs), f"not the same events: {kind}: {ours} by hangscope, {theirs} by perf")
        alone = (counts["hangscope"].keys() ^ counts["perf"].keys()) - {"sched:sched_migrate_task", "signal:signal_generate", "signal:signal_deliver"}
        check(not alone, f"recorded by one of them only: {sorted(alone)}")

    def overhead(self):
        """{(load, recorder): results by round}."""
        results = {(load, recorder): [] for load in self.words.loads for recorder in self.recorders}
        cpus = sorted(os.sched_getaffinity(0))
        for number in range(self.words.rounds):
            for load in self.words.loads:
                for recorder in in_turn(self.recorders, number):
                    results[load, recorder].append(self.run(load, recorder, cpus[number // 2 % len(cpus)]))
            say(f"  round {number + 1}: " + ", ".join(f"{load} {recorder} {result[-1]['ns']:.0f} ns" for (load, recorder), result in results.items()))
        if self.lttng:
            self.lttng.check_it_recorded()
        return results


class Filled:
    """A recorder whose rings a program fills, on all CPUs."""

    def __init__(self, words, recorder, folder):
        self.recorder, self.folder, self.ring_bytes = recorder, folder, words.snapshot_ring_bytes
        if recorder == "hangscope":
            command, self.signal, self.pattern = hangscope_command(words, folder, self.ring_bytes), signal.SIGUSR1, "trace/*.snapshot-[0-9][0-9][0-9][0-9]"
        else:
            command, self.signal, self.pattern = perf_command(folder, self.ring_bytes, "--switch-output=signal"), signal.SIGUSR2, "perf.data.[0-9]*"
        self.counts = folder / "counts"
        self.process = subprocess.Popen([str(word) for word in [*command, words.tools / "cpu_record_load", "fill", 60, self.counts]],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The program first: then both recorders end by themselves.
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for child in children.read_text().split() if self.process.poll() is None else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def calls(self):
        """Of each CPU."""
        data = self.counts.read_bytes() if self.counts.exists() else b""
        return [count for count, in struct.iter_unpack("<Q", data)]

    def wait_until_full(self):
        begun, needed, limit = self.calls(), self.ring_bytes // CALL_BYTES, time.monotonic() + 50
        while not (now := self.calls()) or any(count - (begun[cpu] if begun else 0) < needed for cpu, count in enumerate(now)):
            check(self.process.poll() is None and time.monotonic() < limit, f"{self.recorder}: the rings do not become full")
            time.sleep(0.01)

    def cpu_ns(self):
        """That the recorder's threads had; of those that are there."""
        return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir())

    def snapshot(self):
        """{"ms", "cpu_ms", "bytes"}."""
        there, cpu_before, begun = set(self.folder.glob(self.pattern)), self.cpu_ns(), time.monotonic()
        self.process.send_signal(self.signal)
        while not (new := {path for path in self.folder.glob(self.pattern) if path.suffix != ".partial"} - there):
            check(self.process.poll() is None and time.monotonic() < begun + 30, f"{self.recorder}: no snapshot")
            time.sleep(0.0005)
        took, cpu = time.monotonic() - begun, self.cpu_ns() - cpu_before
        snapshot, = new
        data = snapshot / "cpu.perf.data" if snapshot.is_dir() else snapshot
        size = data.stat().st_size
        # What the program overwrites while hangscope reads is not in it: much of small rings, where others take the CPU just then.
        check(size > LEAST_SHARE * len(self.calls()) * self.ring_bytes, f"{self.recorder}: a snapshot of {size} bytes")
        # A snapshot's page may be put into it just now.
        shutil.rmtree(snapshot, ignore_errors=True) if snapshot.is_dir() else snapshot.unlink()
        return {"ms": took * 1e3, "cpu_ms": cpu / 1e6, "bytes": size}


def snapshots(bench):
    results = {"hangscope": [], "perf": []}
    for number in range(1 if bench.words.quick else 2):
        for recorder in in_turn(list(results), number):
            with bench.folder() as folder, Filled(bench.words, recorder, folder) as filled:
                for _ in range(bench.words.snapshots):
                    filled.wait_until_full()
                    results[recorder].append(filled.snapshot())
        say(f"  snapshots: " + ", ".join(f"{name} {median([r['ms'] for r in each]):.0f} ms" for name, each in results.items()))
    return results


def take_alone(words):
    """Milliseconds that CpuRecorder::Take reads two full rings in, and of CPU time; or None."""
    program = words.tools / "perf_ring_bench"
    if not program.exists():
        say("perf_ring_bench is left out: it was not built (package libbenchmark-dev)")
        return None
    done = subprocess.run([program, "--benchmark_filter=ReadToNew/records:0", "--benchmark_format=json"], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"perf_ring_bench: {done.stderr}")
    result = json.loads(done.stdout)["benchmarks"][0]
    return result["real_time"], result["cpu_time"]


def ratio(above, below, key):
    return median([a[key] / b[key] for a, b in zip(above, below)])


def show_overhead(results, bench):
    for load, what in LOADS.items():
        plain = results[load, "plain"]
        rows = [[what, "ns, median", "of plain", "CPU ns", "of plain"]]
        for recorder in bench.recorders:
            each = results[load, recorder]
            rows.append([RECORDERS[recorder], f"{median([r['ns'] for r in each]):.0f}", f"{ratio(each, plain, 'ns'):.2f}",
                         f"{median([r['cpu_ns'] for r in each]):.0f}", f"{ratio(each, plain, 'cpu_ns'):.2f}"])
        table(rows)


def show_snapshots(results, alone):
    rows = [["a snapshot of 16 MiB a CPU", "ms, median", "least", "most", "CPU ms", "MB"]]
    for recorder, each in results.items():
        times = [r["ms"] for r in each]
        rows.append([RECORDERS[recorder], f"{median(times):.1f}", f"{min(times):.1f}", f"{max(times):.1f}", f"{median([r['cpu_ms'] for r in each]):.1f}",
                     f"{median([r['bytes'] for r in each]) / 1e6:.1f}"])
    if alone:
        rows.append(["hangscope's reading of two rings alone", f"{alone[0]:.1f}", "", "", f"{alone[1]:.1f}", ""])
    table(rows)


def judge(overheads, snapshot_times):
    targets = Targets()
    for load in LOADS:
        for key, what in (("ns", "time"), ("cpu_ns", "CPU time")):
            targets.at_most(f"{load}: {what} recorded by hangscope / by perf", ratio(overheads[load, "hangscope"], overheads[load, "perf"], key), MOST_OF_PERF)
    medians = {recorder: median([r["ms"] for r in each]) for recorder, each in snapshot_times.items()}
    targets.at_most("snapshot: hangscope / perf", medians["hangscope"] / medians["perf"], MOST_OF_PERF)
    return targets


def must_record(words):
    """Raises Skip where the kernel or the machine does not let anybody."""
    if shutil.which("perf") is None:
        raise Skip("perf is not installed (package linux-perf)")
    doctor = subprocess.run([words.hangscope, "doctor", "--json"], capture_output=True, text=True, timeout=60)
    for each in json.loads(doctor.stdout)["checks"]:
        if each["name"] in ("own-processes", "kernel-events") and each["state"] != "works":
            raise Skip(f"{each['what']}: {each['why']}")


@contextlib.contextmanager
def lttng_session(words, folder):
    """The session, or None where there can be none."""
    missing = why_no_daemon()
    if not (words.tools / "cpu_record_load_lttng").exists():
        missing = "cpu_record_load_lttng was not built (package liblttng-ust-dev)"
    with contextlib.ExitStack() as stack:
        session = None
        if missing is None:
            try:
                session = stack.enter_context(Lttng(folder, subbuffer_bytes=words.ring_bytes // 4))
            except NoDaemon as daemon:
                missing = daemon
        if missing is not None:
            say(f"LTTng-UST is left out: {missing}")
        yield session


def lttng_kernel_modules():
    return any(pathlib.Path("/lib/modules", platform.release()).rglob("lttng-tracer.ko*"))


def parse_words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="cpu_record.py [options]")
    parser.add_argument("--hangscope", type=pathlib.Path, default=HERE.parent / "build/release/hangscope")
    parser.add_argument("--tools", type=pathlib.Path, default=HERE.parent / "build/release/bench")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--snapshots", type=int, default=6)
    for flag in ("--check", "--quick"):
        parser.add_argument(flag, action="store_true")
    words = parser.parse_args()
    words.hangscope, words.tools = words.hangscope.resolve(), words.tools.resolve()
    words.loads, words.batches, words.calls = list(LOADS), 400, {"getppid": 200, "pipe": 25}
    words.ring_bytes, words.snapshot_ring_bytes = 4 << 20, 16 << 20
    if words.quick:
        words.loads = ["getppid"]  # check_same_events has run the other one
        words.rounds, words.snapshots, words.batches = 1, 1, 100
        words.ring_bytes, words.snapshot_ring_bytes = 1 << 20, 4 << 20
    return words


def measure(words, place):
    lttng_folder = place / "lttng"
    lttng_folder.mkdir()
    with lttng_session(words, lttng_folder) as lttng:
        bench = Bench(words, place, lttng)
        bench.check_same_events()
        overheads = bench.overhead()
    return bench, overheads, snapshots(bench)


def main():
    words = parse_words()
    must_record(words)
    # Where files are memory: what is compared is the recorders and not a disk.
    with tempfile.TemporaryDirectory(dir=fast_place(), prefix="cpu-record-") as place:
        load_before = os.getloadavg()[0]
        bench, overheads, snapshot_times = measure(words, pathlib.Path(place))
    if words.quick:
        print(f"All of it runs ({', '.join(bench.recorders)}; snapshots); nothing was measured.")
        return
    print(f"{datetime.date.today()}; {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}; {words.rounds} rounds of {words.batches} batches; "
          f"load average before: {load_before:.1f}, after: {os.getloadavg()[0]:.1f}; LTTng's kernel modules are "
          f"{'there, and not used' if lttng_kernel_modules() else 'not there'}\n")
    show_overhead(overheads, bench)
    show_snapshots(snapshot_times, take_alone(words))
    targets = judge(overheads, snapshot_times)
    targets.show()
    if words.check and targets.missed():
        sys.exit("cpu_record.py: targets missed:\n  " + "\n  ".join(targets.missed()))


if __name__ == "__main__":
    try:
        main()
    except Skip as skip:
        print(f"skipped: {skip}")
        sys.exit(SKIPPED)
    except Wrong as wrong:
        sys.exit(f"cpu_record.py: error: {wrong}")
