#!/usr/bin/env python3
"""What the kernel does with a program, in snapshots: complete against a log that the program writes itself."""
import contextlib
import json
import mmap
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from perf_data import PerfData
from support import BUILD, HANGSCOPE, Case, main

HOPPING = pathlib.Path(BUILD) / "tests/hopping_threads"
MARKED = pathlib.Path(BUILD) / "tests/marked_calls"
ZOO = pathlib.Path(BUILD) / "tests/hang_zoo"
FORK, EXIT = 7, 4
PRCTL = {"x86_64": 157, "aarch64": 167}.get(os.uname().machine)
MARK = 0x48530000
CALLS_PER_HOP = 3


def tracefs():
    return next((p for p in map(pathlib.Path, ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")) if (p / "events").is_dir()), None)


class Truth:
    """The log of hopping_threads."""

    def __init__(self, path, threads, entries):
        self.threads, self.entries = threads, entries
        self.map = mmap.mmap(os.open(path, os.O_RDONLY), threads * entries * 16, prot=mmap.PROT_READ)
        self.cpus = os.sysconf("SC_NPROCESSORS_ONLN")

    def entry(self, thread, index):
        return struct.unpack_from("<QQ", self.map, (thread * self.entries + index) * 16)

    def inside(self, begin, end):
        """(thread, serial, cpu, before, after) of the calls that began and returned in [begin, end]."""
        for thread in range(self.threads):
            low, high = 0, self.entries
            while low < high:  # the first entry that is not before `begin`; unwritten ones are 0
                middle = (low + high) // 2
                before, _ = self.entry(thread, middle)
                if before != 0 and before < begin:
                    low = middle + 1
                else:
                    high = middle
            for index in range(low, self.entries):
                before, after = self.entry(thread, index)
                if before == 0 or after == 0 or after > end:
                    break
                yield thread, index + 1, (index // CALLS_PER_HOP + thread) % self.cpus, before, after


class CpuCase(Case):
    def setUp(self):
        super().setUp()
        checks = {c["name"]: c for c in json.loads(self.hangscope("doctor", "--json").out)["checks"]}
        for name in ("own-processes", "kernel-events"):
            if checks[name]["state"] != "works":
                self.skipTest(f"{checks[name]['what']}: {checks[name]['why']}")

    def manifest(self, folder):
        return json.loads((folder / "manifest.json").read_text())

    def perf_data(self, folder):
        return PerfData(folder / "cpu.perf.data")

    def enter_number(self):
        return int((tracefs() / "events/raw_syscalls/sys_enter/id").read_text())

    def marks(self, folder):
        """{(thread, serial): (time, cpu)} of the marked calls in a snapshot."""
        return {(first - MARK, second): (time, cpu) for time, cpu, number, first, second in self.perf_data(folder).calls(self.enter_number())
                if number == PRCTL and MARK <= first < MARK + 64}

    def hop(self, *options, threads=4, entries=300_000, spinners=2):
        if PRCTL is None:
            self.skipTest(f"no number of prctl known for {os.uname().machine}")
        log = self.folder / "truth"
        process = self.recorder("run", "--cpu", *options, "--", HOPPING, log, threads, entries, spinners, stdout=subprocess.DEVNULL)
        self.until(lambda: log.exists() and log.stat().st_size == threads * entries * 16, what="the log")
        return process, Truth(log, threads, entries)

    def snapshot(self, process):
        """The folder of one that is asked for now."""
        before = set(self.snapshots())
        process.send_signal(signal.SIGUSR1)
        return self.until(lambda: [s for s in self.snapshots() if s not in before], what="a snapshot")[0]

    def when_a_ring_limits(self, process):
        """The first snapshot whose window is as long as the shortest ring: on a busy machine it takes a while until one is full."""
        def full():
            time.sleep(0.7)
            folder = self.snapshot(process)
            return folder if self.manifest(folder)["window"]["limited_by"] else None
        return self.until(full, timeout=40, what="the ring to be full")

    def check(self, folder, truth):
        """That each call of the window is in the file or in a declared gap of its CPU. How many were, and were not."""
        window = self.manifest(folder)["window"]
        marks = self.marks(folder)
        gaps = {}
        for gap in window["gaps"]:
            if gap["ring"]["kind"] == "CPU":
                gaps.setdefault(gap["ring"]["number"], []).append((gap["from_ns"], gap["to_ns"]))
        there, missing, undeclared = 0, 0, []
        for thread, serial, cpu, before, after in truth.inside(window["from_ns"], window["to_ns"]):
            if (thread, serial) in marks:
                there += 1
                at, on = marks[thread, serial]
                self.assertTrue(before <= at <= after, f"serial {serial} of thread {thread}: {before} {at} {after}")
                self.assertEqual(on, cpu)
                continue
            missing += 1
            if not any(begin <= after and before <= end for begin, end in gaps.get(cpu, [])):
                undeclared.append((thread, serial, cpu, before, after))
        self.assertEqual(len(undeclared), 0, f"{len(undeclared)} undeclared of {there + missing}; first {undeclared[:3]}; window {window['from_ns']}..{window['to_ns']}")
        return there, missing

    def check_length(self, folder, seconds):
        """Of the window as declared; that what was called in it is in the file has been looked at."""
        window = self.manifest(folder)["window"]
        self.assertAlmostEqual((window["to_ns"] - window["from_ns"]) / 1e9, seconds, delta=seconds / 10)

    def take_and_check(self, count, seconds, **truth_of):
        process, truth = self.hop("--window", f"{seconds}s", "--cpu-size", "32M", "--max-snapshots", count, **truth_of)
        time.sleep(seconds + 0.2)
        calls = 0
        for _ in range(count):
            folder = self.snapshot(process)
            there, missing = self.check(folder, truth)
            self.assertEqual(missing, 0)
            self.assertEqual(self.manifest(folder)["window"]["gaps"], [])
            self.check_length(folder, seconds)
            calls += there
        self.assertGreater(calls, 100 * count * seconds)
        print(f"{count} windows of {seconds} s: {calls} calls, all there")


class Windows(CpuCase):
    def test_of_threads_that_hop_between_cpus_are_as_long_as_asked_and_complete(self):
        self.take_and_check(4, 0.3)

    def test_of_rings_that_are_too_small_say_what_is_missing(self):
        process, truth = self.hop("--window", "1s", "--cpu-size", "128K", "--max-snapshots", 4)
        time.sleep(1.2)
        all_there = all_missing = 0
        for _ in range(3):
            folder = self.snapshot(process)
            there, missing = self.check(folder, truth)
            all_there += there
            all_missing += missing
            gaps = self.manifest(folder)["window"]["gaps"]
            self.assertTrue(any(gap["why"] == "overwritten" for gap in gaps), gaps)
        # Of a single one, on a busy machine, all may be there or none.
        self.assertGreater(all_missing, 0)
        self.assertGreater(all_there, 0)

    def test_that_are_coherent_have_no_gap_and_begin_where_the_shortest_ring_does(self):
        process, truth = self.hop("--cpu-size", "256K", "--max-snapshots", 99)
        calls = 0
        for _ in range(8):  # while a busy machine reads it, a ring may be overwritten to its newest events
            folder = self.when_a_ring_limits(process)
            there, missing = self.check(folder, truth)
            window = self.manifest(folder)["window"]
            self.assertEqual(missing, 0)
            self.assertEqual(window["policy"], "coherent")
            self.assertEqual(window["limited_by"]["kind"], "CPU")
            calls += there
            if calls > 20:
                return
        self.fail(f"{calls} calls in eight windows")

    def test_since_the_last_snapshot_share_no_call_and_touch(self):
        began = time.monotonic_ns()
        process, truth = self.hop("--window", "since-last", "--cpu-size", "8M", "--max-snapshots", 5)
        seen, end = set(), None
        for _ in range(4):
            time.sleep(0.2)
            folder = self.snapshot(process)
            window = self.manifest(folder)["window"]
            # The first begins with the recording.
            self.assertEqual(window["from_ns"], end or max(began, window["from_ns"]))
            self.assertEqual([gap for gap in window["gaps"] if gap["why"] != "overwritten"], [])
            end = window["to_ns"]
            self.check(folder, truth)
            marks = self.marks(folder)
            self.assertGreater(len(marks), 0)
            self.assertEqual(len(seen & marks.keys()), 0)
            # Those of interrupts stand before what they interrupted.
            late = [at for at, _ in marks.values() if not window["from_ns"] - 1_000_000 < at <= window["to_ns"]]
            self.assertEqual(late, [])
            seen |= marks.keys()


class WindowsLong(CpuCase):
    def test_of_two_seconds_thirty_times(self):
        self.take_and_check(30, 2, entries=1_500_000)


class Programs(CpuCase):
    def test_are_recorded_from_their_first_instruction_and_followed_over_fork_and_exec(self):
        outcome = self.run_program(["sh", "-c", "/bin/true; /bin/echo; exit 3"], "--cpu")
        self.assertEqual(outcome.status, 3)
        folder, = self.snapshots()
        names = [self.perf_data(folder).bytes[at + 16:at + size] for kind, at, size in self.perf_data(folder).records() if kind == 3]
        names = {name.split(b"\0")[0].decode() for name in names}
        self.assertLessEqual({"sh", "true", "echo"}, names)
        window = self.manifest(folder)["window"]
        self.assertTrue(window["from_the_start"], window)
        if shutil.which("perf"):
            done = subprocess.run(["perf", "script", "-i", folder / "cpu.perf.data"], capture_output=True, text=True, timeout=60)
            samples = sum(1 for _ in self.perf_data(folder).samples())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len([line for line in done.stdout.splitlines() if line and not line.startswith("\t") and ": " in line]), samples, done.stderr)

    def test_that_may_not_be_recorded_run_with_a_warning_and_their_status(self):
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        os.chmod(self.folder, 0o777)
        # Without room for a single page and without capabilities nothing can be recorded.
        outcome = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", HANGSCOPE, "run", "--cpu", "--cpu-size", "1G", "--prefix",
             str(self.folder / "nobody"), "--", "sh", "-c", "echo works; exit 5"],
            capture_output=True, text=True, timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": ""}, preexec_fn=no_locked_memory)
        self.assertEqual(outcome.returncode, 5, outcome.stderr)
        self.assertEqual(outcome.stdout, "works\n")
        self.assertIn("warning: --cpu: ", outcome.stderr)

    def test_that_are_recorded_outside_of_the_kernel_only_have_one_warning(self):
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        if int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) != 2:
            self.skipTest("kernel.perf_event_paranoid is not 2")
        os.chmod(self.folder, 0o777)
        outcome = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", HANGSCOPE, "run", "--cpu", "--cpu-size", "256K", "-e", "cs", "-e", "migrations",
             "--prefix", str(self.folder / "nobody"), "--", "true"],
            capture_output=True, text=True, timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": ""})
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        said = [line for line in outcome.stderr.splitlines() if "outside of the kernel only" in line]
        self.assertEqual(len(said), 1, outcome.stderr)
        self.assertIn("'page-faults', 'cs', 'migrations' are recorded outside of the kernel only: kernel.perf_event_paranoid is 2", said[0])

    def test_that_run_already_are_watched_without_a_scope_until_they_end(self):
        program = subprocess.Popen([HOPPING, self.folder / "truth", "1", "100000", "0"], stdout=subprocess.PIPE)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), b"hopping\n")
        watch = subprocess.Popen([HANGSCOPE, "watch", f"pid:{program.pid}", "--cpu", "--prefix", self.prefix], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, watch)
        self.assertIn("recording process", watch.stdout.readline())
        done = self.until(lambda: (lambda snap: snap.status == 0 and snap)(self.hangscope("snap", watch.pid)), what="snap")
        self.assertIn(b"ring.snapshot-0001", done.out)
        time.sleep(0.2)
        folder = self.snapshot(watch)
        self.assertGreater(len(self.marks(folder)), 10)
        self.assertEqual(self.manifest(folder)["pid"], program.pid)
        program.kill()  # nobody collects it yet: it has ended nevertheless
        self.assertEqual(watch.wait(20), 1)  # that a signal kills what is watched is nothing clean

    def test_functions_of_theirs_are_probed(self):
        # It makes a thread, its parent a process: neither fails for the probe.
        process = self.recorder("run", "--cpu", "-e", f"probe:main@{HOPPING}", "--", "timeout", 60, HOPPING, self.folder / "truth", 1, 9, 0)
        self.assertEqual(process.stdout.readline(), b"hopping\n")
        process.terminate()
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 143, outcome.err)
        folder = self.snapshots()[-1]
        events = self.manifest(folder)["cpu"]["events"]
        probe, = [name for name in events if "main" in name]
        if shutil.which("perf"):
            done = subprocess.run(["perf", "script", "-i", folder / "cpu.perf.data"], capture_output=True, text=True, timeout=60)
            self.assertEqual(len([line for line in done.stdout.splitlines() if probe in line]), 1, done.stdout[-2000:] + done.stderr)


ENDING = """
import os, threading, time
for _ in range(30):
    thread = threading.Thread(target=time.sleep, args=(0.001,))
    thread.start(); thread.join()
    child = os.fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
"""


class Ends(CpuCase):
    """Of threads and processes: the kernel takes their events away before it tells their parent and lets them go."""

    FTRACED = re.compile(r"-(\d+) +\[(\d+)\] [^ ]+ +(\d+)\.(\d{6}): (sched_switch|signal_generate): (.*)")

    @contextlib.contextmanager
    def ftrace(self):
        """A second witness: a buffer of its own, with the clock of ours."""
        buffer = tracefs() / "instances" / f"hangscope-{os.getpid()}"
        try:
            buffer.mkdir()
        except OSError as error:
            self.skipTest(f"no ftrace beside perf: {error}")
        try:
            (buffer / "trace_clock").write_text("mono")
            (buffer / "events/sched/sched_switch/filter").write_text("prev_state & 48")
            (buffer / "events/signal/signal_generate/filter").write_text("sig == 17")
            for event in ("sched/sched_switch", "signal/signal_generate"):
                (buffer / "events" / event / "enable").write_text("1")
            yield buffer
        finally:
            buffer.rmdir()

    def last_events(self, buffer):
        """(event, thread, ns) of what tasks did at their end, as ftrace has it."""
        for thread, _, seconds, microseconds, event, _ in self.FTRACED.findall((buffer / "trace").read_text()):
            yield event, int(thread), int(seconds) * 10**9 + int(microseconds) * 1000

    def recorded(self, data):
        """{(event, thread): [ns]} of the switches and signals in a file."""
        numbers = {int((tracefs() / "events" / path / "id").read_text()): path.split("/")[1] for path in ("sched/sched_switch", "signal/signal_generate")}
        found = {}
        for number, _, tid, at, _, _ in data.samples():
            if event := numbers.get(data.tracepoints[number]):
                found.setdefault((event, tid), []).append(at)
        return found

    def tasks(self, data):
        """Threads that the file says were made, and those of them that ended."""
        made, ended = set(), set()
        for kind, at, _ in data.records():
            if kind in (FORK, EXIT):
                (made if kind == FORK else ended).add(struct.unpack_from("<i", data.bytes, at + 16)[0])
        return made, ended

    def test_are_recorded_as_ftrace_sees_them_and_no_others(self):
        if os.geteuid() != 0:
            self.skipTest("what everybody does is recorded by root")
        with self.ftrace() as buffer:
            stranger = subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"])
            self.addCleanup(stranger.wait)
            self.addCleanup(stranger.kill)
            self.assertEqual(self.run_program([sys.executable, "-c", ENDING], "--cpu", "--on-exit", "always").status, 0)
            seen = list(self.last_events(buffer))
        folder, = self.snapshots()
        window, data = self.manifest(folder)["window"], self.perf_data(folder)
        recorded = self.recorded(data)
        made, ended = self.tasks(data)
        self.assertGreaterEqual(len(ended & made), 60)
        ours = [(event, thread, at) for event, thread, at in seen if thread in made and window["from_ns"] <= at <= window["to_ns"]]
        self.assertGreaterEqual(len(ours), 90)  # a switch each, and of each process a signal
        missing = [each for each in ours if not any(abs(at - each[2]) < 1_000_000 for at in recorded.get(each[:2], []))]
        self.assertEqual(missing, [])
        strangers = {thread for _, thread, _ in seen} - made - ended
        self.assertGreater(len(strangers), 0)
        self.assertEqual({thread for _, thread in recorded} & strangers, set())
        threads = {thread["thread"]: thread for thread in window["threads"]}
        self.assertTrue(all(threads[thread]["ended"] for thread in ended & threads.keys()))
        self.assertIn(f"and by the {len([t for t in threads.values() if t['ended']])} tasks that ended, too", (folder / "report.txt").read_text())
        self.assertEqual(window["gaps"], [])

    def check_gaps(self, *before, size, program, lost_records):
        """That all ends are gaps where hangscope runs behind `before`."""
        os.chmod(self.folder, 0o777)
        outcome = subprocess.run(
            [*before, HANGSCOPE, "run", "--cpu", "--cpu-size", size, "--on-exit", "always", "--prefix", self.prefix, "--", *program],
            capture_output=True, text=True, timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": ""})
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        folder, = self.snapshots()
        window = self.manifest(folder)["window"]
        made, ended = self.tasks(self.perf_data(folder))
        gaps = [gap for gap in window["gaps"] if gap["why"] == "last events not recorded"]
        inside = ended & made & {thread["thread"] for thread in window["threads"]}
        self.assertGreater(len(inside), 20)
        self.assertLessEqual(inside, {gap["thread"] for gap in gaps})
        self.assertLessEqual({gap["thread"] for gap in gaps} & made, ended)
        self.assertEqual({gap["lost_records"] for gap in gaps}, lost_records)
        self.assertFalse(any(thread["continuous"] for thread in window["threads"] if thread["thread"] in ended))
        self.assertIn("last events not recorded", (folder / "report.txt").read_text())

    def test_are_gaps_where_everybody_may_not_be_recorded(self):
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        if int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) != 2:
            self.skipTest("kernel.perf_event_paranoid is not 2")
        # All that is recorded of a task's end is its switch.
        ending = "i=0; while [ $i -lt 30 ]; do sleep 0; i=$((i + 1)); done"
        self.check_gaps("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", size="256K", program=("sh", "-c", ending), lost_records={1})

    def test_are_gaps_where_the_kernel_has_other_numbers_for_them(self):
        unshare = ["unshare", "-p", "-f", "--mount-proc"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            self.skipTest("no PID namespace may be made here")
        # Of a thread two switches; what a process tells its parent depends on the parent.
        self.check_gaps(*unshare, size="8M", program=(sys.executable, "-c", ENDING), lost_records={2, None})


class Hangs(CpuCase):
    def test_are_found_by_watch_that_records_and_the_snapshot_has_the_cpus(self):
        # A thread of its own for each of two locks, made while the kernel records already.
        program = subprocess.Popen(["sh", "-c", 'read now; exec "$0" abba', ZOO], stdin=subprocess.PIPE)
        self.addCleanup(program.stdin.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        watch = subprocess.Popen([HANGSCOPE, "watch", f"pid:{program.pid}", "--cpu", "--stall", "1", "--exit-on-hang", "--prefix", self.prefix],
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(self.end, watch)
        self.assertIn(f"recording process {program.pid}: its threads", watch.stdout.readline())
        program.stdin.write(b"now\n")
        program.stdin.flush()
        self.assertIn("deadlock", watch.stdout.read())
        self.assertEqual(watch.wait(20), 1)
        folder, = self.snapshots()
        manifest = self.manifest(folder)
        self.assertEqual(manifest["trigger"], "hang")
        self.assertIn("deadlock", manifest["verdict"]["summary"])
        # What they did until they hung is in it: each waits in a call that it entered and has not left.
        calls = {}
        enter = int((tracefs() / "events/raw_syscalls/sys_enter/id").read_text())
        leave = int((tracefs() / "events/raw_syscalls/sys_exit/id").read_text())
        data = self.perf_data(folder)
        for number, _, tid, _, _, _ in data.samples():
            if data.tracepoints[number] in (enter, leave):
                calls[tid] = data.tracepoints[number]
        threads = os.listdir(f"/proc/{program.pid}/task")
        self.assertGreater(len(threads), 2)
        self.assertEqual([calls.get(int(name)) for name in threads], [enter] * len(threads))


class BusyLong(CpuCase):
    """All CPUs have more to do than they can, and each fills its ring in a few hundredths of a second."""

    def test_rings_keep_most_of_what_they_had(self):
        if subprocess.run(["chrt", "-f", "1", "true"], capture_output=True).returncode != 0:
            self.skipTest("no real-time priority")
        callers = "for i in $(seq $(($(nproc) * 2))); do timeout 60 dd if=/dev/zero of=/dev/null bs=1 2> /dev/null & done; wait"
        process = self.recorder("run", "--cpu", "--cpu-size", "4M", "--max-snapshots", 20, "--", "sh", "-c", callers, stdout=subprocess.DEVNULL)
        self.when_a_ring_limits(process)
        shares = []
        for _ in range(6):
            time.sleep(0.1)
            for ring in self.manifest(self.snapshot(process))["window"]["rings"]:
                if ring["kind"] == "CPU" and ring["lost_any"]:
                    shares.append(ring["held_bytes"] / 2**22)
        self.assertGreaterEqual(len(shares), 6)
        # One that would be overwritten before it is copied is switched off meanwhile.
        self.assertGreater(min(shares), 0.5, shares)


class OneWindow(CpuCase):
    """Streams, a scope's cores and CPUs on one time line."""

    def record(self, *options):
        """The recorder, once its program has made some hundred calls."""
        process = self.recorder("run", "--scope", "pid:", *options, "--", MARKED)
        while process.stdout.readline() != b"500 calls\n":
            self.assertIsNone(process.poll())
        return process

    def events(self, folder, clock):
        """{(name, serial): time} of the program's events, on the host's clock."""
        found = {}
        for line in self.hangscope("show", "--json", folder).out.splitlines():
            event = json.loads(line)
            if event["type"] == "event" and event["name"].startswith("call"):
                counts = int(event["ticks"], 16) - clock["count"]
                found[event["name"], event["parameters"][0]] = clock["at_ns"] + counts * clock["ns_per_count"]
        return found

    def test_has_rings_of_all_three_kinds_and_a_call_lies_between_its_events(self):
        if PRCTL is None:
            self.skipTest(f"no number of prctl known for {os.uname().machine}")
        process = self.record("--cpu")
        folder = self.snapshot(process)
        manifest = self.manifest(folder)
        window = manifest["window"]
        self.assertEqual({ring["kind"] for ring in window["rings"]}, {"CPU", "stream", "core"})
        core, = [ring for ring in window["rings"] if ring["kind"] == "core"]
        self.assertGreater(core["inside_bytes"], 0)
        error = window["clock_error_ns"]
        self.assertTrue(0 < error < 10_000_000, error)
        events = self.events(folder, manifest["scope"]["cores"][0]["clock"])
        times = {serial: at for (_, serial), (at, _) in self.marks(folder).items()}
        checked, wrong = 0, []
        for serial, at in times.items():
            before, after = events.get(("calls", serial)), events.get(("called", serial))
            if before is None or after is None:
                continue
            checked += 1
            if not before - error <= at <= after + error:
                wrong.append((serial, before - at, after - at))
        self.assertGreater(checked, 100)
        self.assertEqual(len(wrong), 0, f"{len(wrong)} of {checked}, at an error of {error} ns; first {wrong[:3]}")
        # Nothing of it is missing where the window says that it is covered.
        inside = [serial for serial, at in times.items() if window["from_ns"] + error < at < window["to_ns"] - error]
        self.assertEqual(sum(("calls", serial) not in events for serial in inside), 0)
        self.assertGreater(len(inside), 100)
        print(f"{checked} calls between their events, clocks aligned to {error} ns")

    def test_is_declared_without_recording_cpus(self):
        process = self.record("--max-snapshots", 99)
        folder = self.when_a_ring_limits(process)
        window = self.manifest(folder)["window"]
        self.assertEqual({ring["kind"] for ring in window["rings"]}, {"stream", "core"})
        self.assertEqual(window["limited_by"]["kind"], "core")
        self.assertIn("core 0 scope", (folder / "report.txt").read_text())


def no_locked_memory():
    import resource
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))


if __name__ == "__main__":
    main()
