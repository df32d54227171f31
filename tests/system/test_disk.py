"""Disks that are full, slow, read-only or gone: the program never notices, the newest is kept.

Each producer keeps its own ledger: every word of eight bytes holds its own offset.
"""
import contextlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time

from support import Case, main

OFFSETS = """
import struct, sys, time
total, rate = int(sys.argv[1]), float(sys.argv[2])
at = 0
start = time.monotonic()
while at < total:
    n = min(1 << 16, total - at)
    sys.stdout.buffer.write(struct.pack("<%dQ" % (n // 8), *range(at, at + n, 8)))
    sys.stdout.buffer.flush()
    at += n
    ahead = at / rate - (time.monotonic() - start)
    if ahead > 0:
        time.sleep(ahead)
"""
MIB = 1 << 20


class LoopDisk(Case):
    """A disk of 64 MB of its own."""

    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        image = self.folder / "image"
        with open(image, "wb") as file:
            file.truncate(64 * MIB)
        for command in (["mkfs.ext4", "-q", "-m", "0", str(image)], ["mount", "-o", "loop", str(image), str(self.disk)]):
            if shutil.which(command[0]) is None:
                self.skipTest(f"there is no {command[0]} here")
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest(f"{command[0]} is not allowed here: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.disk)])
        self.prefix = str(self.disk / "ring")

    def start(self, total, rate, *options):
        return self.recorder("run", "--capture", "stdout", "--no-passthrough", "--heartbeat", "0.2", *options, "--",
                             sys.executable, "-c", OFFSETS, str(total), str(rate))

    def check_window(self, data, end):
        """Every byte is at its place, up to the end; returns where the window begins."""
        begin = end - len(data)
        words = range(begin - begin % 8, end, 8)
        wanted = struct.pack("<%dQ" % len(words), *words)[begin % 8:]
        self.assertEqual(data == wanted, True, "the window is not what the ledger says")
        return begin

    def heartbeats(self):
        return [m for m in self.messages() if m["type"] == "heartbeat"]

    def fill_up(self, leave):
        space = os.statvfs(self.disk)
        left = space.f_bavail * space.f_frsize - leave
        try:
            with open(self.disk / "hog", "wb", buffering=0) as hog:
                while left > 0:
                    left -= hog.write(bytes(min(left, MIB)))
        except OSError:
            pass

    @contextlib.contextmanager
    def frozen(self):
        """The disk takes nothing; who writes to it waits."""
        done = subprocess.run(["fsfreeze", "-f", str(self.disk)], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"fsfreeze is not allowed here: {done.stderr.strip()}")
        try:
            yield
        finally:
            subprocess.run(["fsfreeze", "-u", str(self.disk)], check=True)

    def test_disk_that_is_too_small_keeps_the_newest(self):
        total = 160 * MIB
        # Memory for all of it: a disk that others keep busy loses none.
        outcome = self.wait(self.start(total, 1e9, "--size", "200M", "--keep", 1, "--compress", "none", "--memory", "200M"), timeout=120)
        self.assertEqual(outcome.status, 0, outcome.err)
        data = self.raw_history()
        self.check_window(data, total)
        self.assertGreater(len(data), 30 * MIB)
        self.assertEqual([m for m in outcome.messages if m["type"] == "loss"], [])
        self.account("a disk that is smaller than the ring", 1, f"the oldest: {len(data) // MIB} MiB stay")

    def test_disk_that_fills_and_is_freed_goes_on_with_everything(self):
        process = self.start(48 * MIB, 12 * MIB, "--size", "40M", "--keep", 1, "--compress", "none")
        self.until(lambda: pathlib.Path(self.prefix + ".stdout.1").exists())
        self.fill_up(0)
        time.sleep(1)
        (self.disk / "hog").unlink()
        outcome = self.wait(process, timeout=60)
        self.assertEqual(outcome.status, 0)
        data = self.raw_history()
        self.check_window(data, 48 * MIB)
        self.assertGreater(len(data), 15 * MIB)

    def test_disk_that_stands_still_for_a_moment_loses_nothing(self):
        process = self.start(30 * MIB, 10 * MIB, "--size", "40M", "--keep", 1, "--compress", "none")
        self.until(lambda: pathlib.Path(self.prefix + ".stdout.1").exists())
        with self.frozen():
            time.sleep(1)
        outcome = self.wait(process, timeout=60)
        self.assertEqual(outcome.status, 0)
        self.assertEqual(self.check_window(self.raw_history(), 30 * MIB), 0, "ten megabytes fit the memory")
        self.account("a disk that stands still for a second, 10 MiB meanwhile", 1, "nothing")

    def test_disk_that_stands_still_for_long_loses_the_oldest_and_says_where(self):
        process = self.start(40 * MIB, 10 * MIB, "--size", "100M", "--keep", 1, "--compress", "none", "--memory", "4M")
        self.until(lambda: pathlib.Path(self.prefix + ".stdout.1").exists())
        with self.frozen():
            before = self.heartbeats()
            # A heartbeat every 0.2 s goes on, until there is more than the memory holds.
            self.until(lambda: len(now := self.heartbeats()) >= len(before) + 5
                       and now[-1]["total_bytes"] - (before[-1]["total_bytes"] if before else 0) > 12 * MIB, what="more than the memory holds")
        outcome = self.wait(process, timeout=60)
        self.assertEqual(outcome.status, 0)
        done = self.hangscope("cat", self.prefix)
        gaps = [(int(a), int(b)) for a, b in re.findall(rb"bytes (\d+)\.\.(\d+) of the stream \(not written\)", done.err)]
        self.assertTrue(gaps, done.err)
        lost = sum(end - begin for begin, end in gaps)
        self.assertGreater(lost, 5 * MIB)
        wanted = bytearray()
        at = 0
        for begin, end in gaps + [(40 * MIB, 0)]:
            wanted += struct.pack("<%dQ" % ((begin - at) // 8), *range(at, begin, 8))
            at = end
        self.assertEqual(self.raw_history(whole=False) == bytes(wanted), True, "what is there is not what the ledger says")
        self.assertEqual(sum(m["bytes"] for m in outcome.of_type("loss")), lost)
        self.account("a disk that stands still for longer than the memory lasts", 1, f"{lost / MIB:.1f} MiB, counted and located")


class Vanished(Case):
    def test_folder_that_is_deleted_comes_back(self):
        process = self.recorder("run", "--capture", "stdout", "--no-passthrough", "--size", "1M", "--keep", 1, "--",
                                sys.executable, "-c", OFFSETS, str(20 * MIB), str(10 * MIB))
        self.prefix = str(self.folder / "ring")
        self.until(lambda: pathlib.Path(self.prefix + ".stdout.current").exists())
        time.sleep(0.2)
        for path in self.folder.glob("ring.stdout.*"):
            path.unlink()
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 0)
        done = self.hangscope("cat", self.prefix)
        self.assertGreater(len(done.out), MIB // 2)
        words = done.out[-(len(done.out) // 8 * 8):]
        self.assertTrue(words.endswith(struct.pack("<Q", 20 * MIB - 8)))


if __name__ == "__main__":
    main()
