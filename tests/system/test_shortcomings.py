"""What falls short in a plain ring of trace files, one test for each; named after what users met."""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from support import Case, main, python

NUMBERED = """
import sys, time
count, pause = int(sys.argv[1]), float(sys.argv[2])
for i in range(count):
    sys.stdout.write("line %08d of the trace, which is as long as such lines are\\n" % i)
    if pause and i % 1000 == 0:
        sys.stdout.flush()
        time.sleep(pause)
"""


def line(i):
    return b"line %08d of the trace, which is as long as such lines are\n" % i


class Shortcomings(Case):
    def numbers(self, data, live=False):
        """The numbers of the lines in `data`, each of which must be whole; of a live ring, but the last."""
        lines = data.splitlines(keepends=True)
        if live and lines and not lines[-1].endswith(b"\n"):
            data = data[:len(data) - len(lines.pop())]
        numbers = [int(text[5:13]) for text in lines]
        self.assertEqual(b"".join(line(n) for n in numbers), data)
        return numbers

    def until_it_listens(self, process):
        """Before its first act the kernel would end it, whatever it is."""
        status = pathlib.Path(f"/proc/{process.pid}/status")
        self.until(lambda: int(status.read_text().split("SigBlk:")[1].split()[0], 16) & 1 << (signal.SIGUSR1 - 1))

    def tee(self, data, *options, **popen):
        process = self.recorder("tee", *options, stdin=subprocess.PIPE, **popen)
        out, err = process.communicate(data, timeout=60)
        self.assertEqual(process.returncode, 0, err)
        return out

    # The trace comes on stdout, and >(...) is lost when make's /bin/sh expands it: test_consumers.

    def test_silence_is_announced_though_no_chunk_arrives(self):
        process = self.recorder("tee", "--heartbeat", 0.2, stdin=subprocess.PIPE)
        process.stdin.write(b"the last word\n")
        process.stdin.flush()
        beats = self.until(lambda: [m for m in self.messages() if m["type"] == "heartbeat"][5:], what="heartbeats in silence")
        self.assertGreater(beats[-1]["last_byte_age_s"], 0.5)

    def test_silent_program_is_a_hang_and_triggers_by_itself(self):
        process = self.recorder("run", "--stall", 1, "--on-hang", "kill", "--",
                                *python("print('up'); import threading; l=threading.Lock(); l.acquire(); l.acquire()"))
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 124)
        self.assertEqual(len(self.snapshots()), 1)

    def test_bound_holds_with_a_size_below_a_read(self):
        data = b"".join(line(i) for i in range(20_000))
        self.tee(data, "--size", "32K", "--keep", 2)
        used = sum(path.lstat().st_size for path in self.folder.glob("ring.*"))
        self.assertLessEqual(used, 64 << 10)
        self.assertEqual(self.numbers(self.cat(self.prefix))[-1], 19_999)

    def everything(self):
        for folder, _, names in os.walk(self.folder):  # which may change meanwhile
            yield from (pathlib.Path(folder) / name for name in names)

    def test_snapshots_keep_within_their_bound(self):
        peak = [0]
        done = threading.Event()

        def used():
            total, seen = 0, set()
            for path in self.everything():
                try:
                    info = path.lstat()
                except FileNotFoundError:
                    continue
                if info.st_ino in seen or path.name == "log.jsonl" or path.suffix in (".json", ".txt", ".html") or ".report." in path.name:
                    continue
                seen.add(info.st_ino)
                total += info.st_size
            return total

        def watch():
            while not done.is_set():
                peak[0] = max(peak[0], used())
        process = self.recorder("tee", "--size", "256K", "--keep", 2, "--max-snapshots", 2, stdin=subprocess.PIPE)
        self.until_it_listens(process)
        watcher = threading.Thread(target=watch)
        watcher.start()
        for i in range(60):
            process.stdin.write(b"".join(line(n) for n in range(i * 1000, i * 1000 + 1000)))
            process.stdin.flush()
            if i % 7 == 6:
                process.send_signal(signal.SIGUSR1)
                time.sleep(0.05)
        process.communicate(timeout=30)
        done.set()
        watcher.join()
        self.assertGreater(peak[0], 512 << 10)
        self.assertLessEqual(peak[0], (512 << 10) * 3)

    def test_keep_1_keeps_its_history_at_every_turn(self):
        process = self.recorder("run", "--size", "1M", "--keep", 1, "--capture", "stdout", "--no-passthrough", "--compress", "none",
                                "--", *python(NUMBERED, 200_000, 0.002))
        least = None
        while process.poll() is None:
            done = self.hangscope("cat", self.prefix)
            held = done.out
            numbers = self.numbers(held, live=True)
            if numbers and numbers[0] > 40_000 and not done.err:  # the recorder may lap us, and says so
                self.assertEqual(numbers, list(range(numbers[0], numbers[-1] + 1)))
                least = min(least or len(held), len(held))
        self.wait(process)
        self.assertIsNotNone(least, "the ring was never looked at while it was full")
        self.assertGreater(least, (1 << 20) * 9 // 10)

    def test_keep_0_is_refused_in_a_sentence(self):
        done = self.hangscope("tee", "--keep", 0, "--prefix", self.prefix)
        self.assertEqual(done.status, 2)
        self.assertIn(b"at least one", done.err)

    def test_lines_are_whole_at_file_joins_and_at_the_windows_start(self):
        for encoding in ("none", "zstd"):
            self.tee(b"".join(line(i) for i in range(60_000)), "--size", "64K", "--keep", 1, "--compress", encoding)
            numbers = self.numbers(self.cat(self.prefix))
            self.assertGreater(numbers[0], 0)
            self.assertEqual(numbers, list(range(numbers[0], 60_000)))

    def test_sigterm_loses_no_tail(self):
        process = self.recorder("tee", stdin=subprocess.PIPE)
        self.until_it_listens(process)
        process.stdin.write(b"".join(line(i) for i in range(500)) + b"and half a line")
        process.stdin.flush()
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        self.assertTrue(self.cat(self.prefix).endswith(line(499) + b"and half a line"))

    def test_signal_before_the_handler_is_installed_kills_nobody(self):
        for _ in range(10):
            process = self.recorder("tee", stdin=subprocess.PIPE)
            self.until_it_listens(process)
            process.send_signal(signal.SIGUSR1)
            process.communicate(b"x\n", timeout=20)
            self.assertEqual(process.returncode, 0)

    def test_signal_during_a_write_has_the_newest_bytes_in_the_snapshot(self):
        process = self.recorder("tee", "--size", "4M", "--keep", 1, stdin=subprocess.PIPE)
        self.until_it_listens(process)
        for i in range(20):
            process.stdin.write(b"".join(line(n) for n in range(i * 5000, i * 5000 + 5000)))
            process.stdin.flush()
            process.send_signal(signal.SIGUSR1)
            self.until(lambda: len([m for m in self.messages() if m["type"] == "snapshot"]) > i)
            newest = self.numbers(self.cat(self.snapshots()[-1]))[-1]
            self.assertEqual(newest, i * 5000 + 4999)

    def test_full_disk_ends_neither_the_tool_nor_the_simulator(self):
        # /dev/full refuses as a full disk does; the ring is elsewhere. Real disks: test_disk.
        with open("/dev/full", "wb") as full:
            outcome = self.wait(self.recorder("run", "--capture", "stdout", "--", *python(NUMBERED, 5000, 0), stdout=full))
        self.assertEqual(outcome.status, 0)
        self.assertEqual(self.numbers(self.cat(self.prefix)), list(range(5000)))

    def test_closed_passthrough_ends_nothing_and_is_counted(self):
        process = self.recorder("run", "--capture", "stdout", "--", *python(NUMBERED, 50_000, 0))
        process.stdout.close()
        process.wait(30)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.numbers(self.cat(self.prefix)), list(range(50_000)))
        notes = [m["text"] for m in self.messages() if m["type"] == "note"]
        self.assertTrue([n for n in notes if "not passed on" in n], notes)

    def test_snapshots_have_names_of_their_own_and_say_what_they_are(self):
        process = self.recorder("tee", "--max-snapshots", 4, stdin=subprocess.PIPE)
        self.until_it_listens(process)
        for i in range(3):
            process.stdin.write(line(i))
            process.stdin.flush()
            process.send_signal(signal.SIGUSR2)
            self.until(lambda: len([m for m in self.messages() if m["type"] == "snapshot"]) > i)
        process.communicate(timeout=20)
        folders = self.snapshots()
        self.assertEqual([f.name for f in folders], ["ring.snapshot-0001", "ring.snapshot-0002", "ring.snapshot-0003"])
        for i, folder in enumerate(folders):
            manifest = json.loads((folder / "manifest.json").read_text())
            self.assertEqual(manifest["streams"][0]["end_offset"], len(line(0)) * (i + 1))

    def test_plain_snapshot_is_whole_or_absent(self):
        process = self.recorder("tee", "--size", "1M", "--keep", 2, stdin=subprocess.PIPE)
        self.until_it_listens(process)
        plain = pathlib.Path(self.prefix + ".snapshot")
        for i in range(30):
            process.stdin.write(b"".join(line(n) for n in range(i * 2000, i * 2000 + 2000)))
            process.stdin.flush()
            process.send_signal(signal.SIGUSR1)
            try:
                data = plain.read_bytes()
            except FileNotFoundError:
                continue
            if not data:
                continue  # of a moment before the first byte
            numbers = self.numbers(data, live=True)
            self.assertEqual(numbers, list(range(numbers[0], numbers[-1] + 1)))
        process.communicate(timeout=30)
        self.assertEqual(self.numbers(plain.read_bytes()[-10 * len(line(0)):])[-1], 59_999)

    def test_what_an_earlier_run_left_does_not_pass_for_this_ones(self):
        names = {"none": ("snapshot", "7", "31"), "zstd": ("snapshot", "tail", "0.zst")}
        for encoding, left in names.items():
            self.tee(b"".join(map(line, range(20000))), "--compress", encoding, "--trigger", "666", "--size", "64K", "--keep", "4")
            for name in left:
                self.assertTrue(pathlib.Path(f"{self.prefix}.{name}").exists(), name)
            self.tee(line(1))
            self.assertEqual(self.cat(self.prefix), line(1))
            for name in left:
                self.assertFalse(pathlib.Path(f"{self.prefix}.{name}").exists(), name)

    def test_recorder_is_found_by_name_and_the_exit_status_is_kept(self):
        process = self.recorder("run", "--", "sh", "-c", "echo up; read x; exit 41", stdin=subprocess.PIPE)
        process.stdout.readline()
        self.until(lambda: self.hangscope("ls").out)
        done = self.hangscope("snap", "ring")
        self.assertEqual(done.status, 0, done.err)
        self.assertTrue(pathlib.Path(done.out.decode().strip()).is_dir())
        process.stdin.write(b"\n")
        process.stdin.flush()
        self.assertEqual(self.wait(process).status, 41)


class Odd(Case):
    """Inputs that no trace should be, and readers that no user should have."""

    def test_lines_of_ten_megabytes(self):
        data = (b"x" * (10 << 20) + b"\n") * 3 + b"end\n"
        for encoding in ("none", "zstd"):
            process = self.recorder("tee", "--compress", encoding, stdin=subprocess.PIPE)
            process.communicate(data, timeout=60)
            self.assertEqual(process.returncode, 0)
            self.assertEqual(self.cat(self.prefix) == data, True)

    def test_binary_input(self):
        data = os.urandom(3_000_000) + b"\n"
        for encoding in ("none", "zstd"):
            process = self.recorder("tee", "--compress", encoding, "--passthrough", stdin=subprocess.PIPE)
            out, _ = process.communicate(data, timeout=60)
            self.assertEqual(process.returncode, 0)
            self.assertEqual(out == data, True)
            self.assertEqual(self.cat(self.prefix) == data, True)

    def test_stopped_reader_loses_only_the_passthrough_and_that_is_counted(self):
        lines = 400_000
        process = self.recorder("run", "--memory", "1M", "--capture", "stdout", "--", *python(NUMBERED, lines, 0))
        self.until(lambda: self.finished_program(lines))
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        total = lines * len(line(0))
        held = self.cat(self.prefix)
        self.assertEqual(len(held), total)
        notes = " ".join(m["text"] for m in self.messages() if m["type"] == "note")
        self.assertIn("recorded but not passed on", notes)
        self.assertLess(len(out), total)

    def finished_program(self, lines):
        return self.cat(self.prefix).endswith(b"line %08d of the trace, which is as long as such lines are\n" % (lines - 1))

    def test_lossless_waits_for_a_stopped_reader(self):
        lines = 200_000
        process = self.recorder("run", "--memory", "1M", "--lossless", "--capture", "stdout", "--", *python(NUMBERED, lines, 0))
        time.sleep(2)
        self.assertFalse(self.finished_program(lines), "it did not wait")
        out, err = process.communicate(timeout=60)
        self.assertEqual(len(out), lines * len(line(0)))
        self.assertEqual(len(self.cat(self.prefix)), lines * len(line(0)))

    def test_lossless_waits_for_its_reader_and_for_no_other_process(self):
        process = self.recorder("run", "--memory", "1M", "--lossless", "--timeout", 1, "--heartbeat", 0.2, "--capture", "stdout", "--", "yes")
        waits = self.until(lambda: [m["waits_for_output"] for m in self.messages() if m.get("waits_for_output")], what="a heartbeat after the end")
        process.communicate(timeout=60)
        self.assertEqual(set(waits), {"the program was killed by signal 15 (Terminated); the rest of its output waits to be recorded and passed on"})
        notes = " ".join(m["text"] for m in self.messages() if m["type"] == "note")
        self.assertNotIn("--lossless", notes)


if __name__ == "__main__":
    main()
