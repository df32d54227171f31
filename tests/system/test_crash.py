"""Whoever is killed, at whatever instant: the program lives on, and what was read is there.

The producer keeps its own ledger of what it wrote, so that loss is compared and not assumed.
"""
import os
import pathlib
import random
import signal
import struct
import subprocess
import time
import unittest

from support import HANGSCOPE, LONG, SEED, Case, main, processes_of

TOOLS = pathlib.Path(os.environ.get("TOOLS", str(pathlib.Path(HANGSCOPE).parent / "tests")))
PRODUCER = TOOLS / "ledger_producer"
INSTANTS = 1200 if LONG else 60  # some come before the start or after the end
WRITES_MS = 60
FINISHED = 1


def expected(end):
    return b"".join(struct.pack("<Q", offset) for offset in range(0, end, 8))


class Killed(Case):
    def guards_of(self, pid):
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return []
        return [int(child) for child in children if self.command_of(child)[1:2] == [b"guard"]]

    @staticmethod
    def command_of(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return []

    def anybody_at(self, folder):
        """Whether a process lives that has the folder on its command line."""
        return any(str(folder).encode() in word for pid in os.listdir("/proc") if pid.isdigit()
                   for word in self.command_of(pid))

    @staticmethod
    def kill(pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def finished(self, index):
        """Whether somebody brought the recording to its end."""
        data = index.read_bytes()
        return len(data) > 72 and struct.unpack_from("<Q", data, 64)[0] & FINISHED

    def one_round(self, seed, encoding, victims, words=("run",)):
        dice = random.Random(seed)
        folder = self.folder / f"round-{seed}"
        folder.mkdir()
        ledger = folder / "ledger"
        program = [str(PRODUCER), str(ledger), str(WRITES_MS), str(seed)]
        options = ["--compress", encoding, "--prefix", str(folder / "ring"), "--size", "64M", "--keep", "1", "--heartbeat", "0"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if words[0] == "run":
            index = folder / "ring.stdout.index"
            recorder = subprocess.Popen([HANGSCOPE, "run", *options, "--capture", "stdout", "--", *program], **quiet)
            writer = None
        else:
            index = folder / "ring.index"
            writer = subprocess.Popen(program, stdout=subprocess.PIPE)
            recorder = subprocess.Popen([HANGSCOPE, "tee", *options], stdin=writer.stdout, **quiet)
            writer.stdout.close()
        # Most while it records, on a busy machine too; some at any instant, that of its start included.
        begun = ledger if words[0] == "run" else index
        while seed % 4 != 0 and not begun.exists() and recorder.poll() is None:
            time.sleep(0.001)
        time.sleep(dice.random() * WRITES_MS / 1000)
        guards = self.guards_of(recorder.pid)
        doomed = {"drain": [recorder.pid], "guard": guards[:1], "both": [recorder.pid, *guards[:1]]}[victims]
        self.kill(doomed if dice.random() < 0.5 else reversed(doomed))
        recorder.wait()
        killed = recorder.returncode == -9
        early = killed and len(guards) < 2  # while it was still starting
        if writer is not None:
            status = writer.wait()
            self.assertTrue(status == 0 or early, f"seed {seed}: the producer died: {status}")
        self.until(lambda: not self.anybody_at(folder), what=f"seed {seed}: the end of whoever was left")
        if killed and (not ledger.exists() or (early and writer is not None)):
            return "before the start"
        self.assertTrue(ledger.read_text(), f"seed {seed}: the program died")
        self.assertTrue(self.finished(index), f"seed {seed}: the recording was not brought to its end")
        total = int(ledger.read_text())
        data = self.cat(str(folder / "ring"))
        if data != expected(total):
            same = os.path.commonprefix([data, expected(total)])
            self.fail(f"seed {seed}: {len(data)} bytes came back of {total}; they differ from byte {len(same)} on")
        for path in folder.iterdir():
            path.unlink()
        return "killed" if recorder.returncode == -9 else "not killed"

    def rounds(self, encoding, victims, count, words=("run",)):
        wanted = "not killed" if victims == "guard" else "killed"
        # On a busy machine many come before the start, or after the end: then there are more.
        outcomes = []
        while len(outcomes) < count or outcomes.count(wanted) < count // 4 and len(outcomes) < 4 * count:
            outcomes.append(self.one_round(SEED + len(outcomes), encoding, victims, words))
        print(f"{outcomes.count(wanted)} of {len(outcomes)} {wanted}")
        self.assertGreaterEqual(outcomes.count(wanted), count // 4, outcomes)
        killed = {"drain": "the recorder", "guard": "a guard", "both": "the recorder and a guard"}[victims]
        encoded = {"none": "plain", "zstd": "zstd"}[encoding]
        self.account(f"SIGKILL of {killed} at a random instant, {words[0]}, {encoded}", outcomes.count("killed" if victims != "guard" else wanted), "nothing")

    def test_recorder_killed_at_random_instants_plain(self):
        self.rounds("none", "drain", INSTANTS // 2)

    def test_recorder_killed_at_random_instants_zstd(self):
        self.rounds("zstd", "drain", INSTANTS // 2)

    def test_recorder_and_guard_killed_together_plain(self):
        self.rounds("none", "both", INSTANTS * 3 // 10)

    def test_recorder_and_guard_killed_together_zstd(self):
        self.rounds("zstd", "both", INSTANTS * 3 // 10)

    def test_guard_killed_plain(self):
        self.rounds("none", "guard", INSTANTS // 10)

    def test_guard_killed_zstd(self):
        self.rounds("zstd", "guard", INSTANTS // 10)

    def test_tee_killed_at_random_instants_plain(self):
        self.rounds("none", "drain", INSTANTS // 6, ("tee",))

    def test_tee_killed_at_random_instants_zstd(self):
        self.rounds("zstd", "both", INSTANTS // 6, ("tee",))


class Left(Case):
    def test_by_a_recorder_that_was_killed_ends_with_its_test(self):
        left = []

        class Inner(Case):
            def test(self):
                recorder = self.recorder("run", "--", "sleep", "600")
                self.until(lambda: len(processes_of(self.folder)) > 2, what="program and guard beside the recorder")
                recorder.kill()
                recorder.wait()
                left.extend([self.folder, *processes_of(self.folder)])

        result = unittest.TestResult()
        Inner("test").run(result)
        self.assertEqual("", "".join(text for _, text in result.errors + result.failures))
        folder, *pids = left
        self.assertGreater(len(pids), 1, "the program and its guard outlive the recorder")
        self.assertEqual([], processes_of(folder))


if __name__ == "__main__":
    main()
