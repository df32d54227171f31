"""What the tests of the real binary share.

HANGSCOPE, FIRMWARE, BUILD and CMAKE come from ctest: the binary, the folder of the example firmware,
the build folder and the command; run by hand they are those of the preset dev. Each test gets an empty folder and is run by name:

    python3 test_run.py TestClass.test_name
"""
import json
import os
import pathlib
import pty
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HANGSCOPE = os.environ.get("HANGSCOPE", str(ROOT / "build/dev/hangscope"))
FIRMWARE = pathlib.Path(os.environ.get("FIRMWARE", ROOT / "build/dev/examples"))
BUILD = os.environ.get("BUILD", str(ROOT / "build/dev"))
CMAKE = os.environ.get("CMAKE", shutil.which("cmake"))
DATA = ROOT / "tests/data"
LONG = os.environ.get("HANGSCOPE_LONG") == "1"
SEED = int(os.environ.get("HANGSCOPE_SEED", "0"))  # ./check takes another for each commit
SANITIZED = os.environ.get("SANITIZED") == "1"  # the binary takes several times as long, and is the same


class Outcome:
    """What one run of hangscope said and left behind."""

    def __init__(self, status, out, err, log):
        self.status = status
        self.out = out
        self.err = err
        self.messages = [json.loads(line) for line in log.splitlines()] if log else []

    def of_type(self, kind):
        return [m for m in self.messages if m["type"] == kind]

    @property
    def hangs(self):
        return [v for v in self.of_type("verdict") if v["hang"]]

    @property
    def last(self):
        return self.of_type("verdict")[-1]

    def states_seen(self):
        """Every overall state that a heartbeat or a verdict showed."""
        return {m["state"] for m in self.messages if m["type"] in ("heartbeat", "verdict")}


def until(condition, timeout):
    """What `condition` gives once that is something; None if it is nothing for `timeout` seconds."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    return None


def processes_of(folder):
    """The processes, but this one, that have the folder in their environment or on their command line."""
    mark = os.fsencode(folder)

    def mentions(pid, part):
        try:
            return mark in pathlib.Path(f"/proc/{pid}/{part}").read_bytes()
        except OSError:
            return False

    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [pid for pid in pids if mentions(pid, "environ") or mentions(pid, "cmdline")]


def end_all_of(folder):
    """Ends whoever is left of a test: a recorder that is killed leaves its program and its guards running."""
    def is_over():
        left = processes_of(folder)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not left

    until(is_over, 10)


class Case(unittest.TestCase):
    """A test with an empty folder, where recorders do not see those of the tests beside it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hangscope-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(end_all_of, self.folder)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        # By hand: unittest.mock takes longer to import than many a test takes.
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ["XDG_RUNTIME_DIR"] = str(self.runtime)
        os.environ["XDG_STATE_HOME"] = str(self.folder / "state")
        self.prefix = str(self.folder / "ring")
        self.log = self.folder / "log.jsonl"

    def hangscope(self, *words, stdin=None, timeout=60, **popen):
        done = subprocess.run([HANGSCOPE, *map(str, words)], input=stdin, capture_output=True,
                              timeout=timeout, **popen)
        return Outcome(done.returncode, done.stdout, done.stderr, None)

    def recorder(self, command, *words, **popen):
        """Starts `hangscope run` or `tee` with a JSON log; finish() with self.wait."""
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(
            [HANGSCOPE, command, "--json", "--log", str(self.log), "--prefix", self.prefix,
             *map(str, words)], **popen)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        """A recorder that is asked ends its program, too."""
        for stop in (process.terminate, process.kill):
            if process.poll() is not None:
                break
            stop()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def wait(self, process, timeout=60):
        out, err = process.communicate(timeout=timeout)
        return Outcome(process.returncode, out, err, self.log.read_text() if self.log.exists() else "")

    def run_program(self, program, *options, timeout=60, **popen):
        return self.wait(self.recorder("run", *options, "--", *program, **popen), timeout)

    def messages(self):
        """What the log of a running recorder holds so far."""
        if not self.log.exists():
            return []
        lines = self.log.read_text().split("\n")
        return [json.loads(line) for line in lines[:-1]]

    def until(self, condition, timeout=20, what="the condition"):
        found = until(condition, timeout)
        if found:
            return found
        self.fail(f"{what} did not come true in {timeout} s; log: {self.messages()[-3:]}")

    def open_terminal(self):
        try:
            return pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo terminal to be had here ({error})")

    def account(self, fault, times, lost):
        """A row of the table of reliability (scripts/reliability): a fault that was injected, how often, and what was lost of the
        recording. Called when it is proven that nothing was lost beyond what is said to be."""
        self.account_for("", fault, times, lost)

    def account_for(self, part, fault, times, lost):
        """One row of several of a test."""
        folder = pathlib.Path(BUILD) / "reliability"
        folder.mkdir(exist_ok=True)
        row = {"fault": fault, "times": times, "lost": lost}
        (folder / f"{self.id().removeprefix('__main__.')}{part}.json").write_text(json.dumps(row) + "\n")

    def account_verdicts(self, sources, asked, hangs, controls, runs, told, right, wanted, seconds, since):
        """A row of the table of verdicts (scripts/verdicts). `told`: hangs that were told, of them so many `right` in kind, subjects,
        resource and confidence, of `wanted`; `seconds` from `since` to each verdict."""
        folder = pathlib.Path(BUILD) / "verdicts"
        folder.mkdir(exist_ok=True)
        row = dict(sources=sources, asked=asked, hangs=hangs, controls=controls, runs=runs, told=told, right=right, wanted=wanted,
                   seconds=sorted(seconds), since=since)
        (folder / f"{sources}.json").write_text(json.dumps(row) + "\n")

    def need_firmware(self):
        if shutil.which("qemu-system-riscv32") is None:
            self.skipTest("qemu-system-riscv32 is not installed (package qemu-system-misc)")
        if not FIRMWARE.is_dir() or not any(FIRMWARE.glob("*.elf")):
            self.skipTest("the example firmware was not built (package gcc-riscv64-unknown-elf)")

    def cat(self, target, *words):
        return self.hangscope("cat", *words, target).out

    def raw_history(self, whole=True):
        """The bytes that the plain ring of stdout holds, by an independent reader (docs/format.md)."""
        ring = self.prefix + ".stdout"
        index = pathlib.Path(ring + ".index").read_bytes()
        count, = struct.unpack_from("<I", index, 16)
        pieces = []
        for k in range(count):
            sequence, begin, length, touched, prev_begin, prev_length, _, _ = struct.unpack_from("<8Q", index, 192 + 64 * k)
            if sequence == 0:
                continue
            data = pathlib.Path(f"{ring}.{k}").read_bytes()
            pieces.append((begin, data[:length]))
            kept = max(length, touched)
            if prev_length > kept:
                pieces.append((prev_begin + kept, data[kept:prev_length]))
        pieces = sorted(p for p in pieces if p[1])
        self.assertTrue(pieces)
        if whole:
            for (begin, data), (following, _) in zip(pieces, pieces[1:]):
                self.assertEqual(begin + len(data), following)
        return b"".join(data for _, data in pieces)

    def snapshots(self):
        # One is written beside its place, and so is its page.
        return sorted(path for path in self.folder.glob("ring.snapshot-*") if not path.name.endswith(".partial"))


def python(code, *words):
    """A command that runs a piece of Python, unbuffered."""
    return [sys.executable, "-u", "-c", code, *map(str, words)]


def main():
    """Runs the named tests; status 77 when all that ran were skipped, with the reasons."""
    program = unittest.main(argv=sys.argv, exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    if len(result.skipped) == result.testsRun:
        for _, reason in result.skipped:
            print("SKIPPED:", reason)
        sys.exit(77)
