"""hangscope tee and cat, the real binary."""
import os
import pathlib
import signal
import struct
import subprocess
import time

from support import HANGSCOPE, Case, main, python

SPIN = b"".join(b"core   0: 0x%08x (0x%08x) %s\ncore   0: 3 0x%08x (0x%08x)%s\n" % (pc, bits, text, pc, bits, values)
                for pc, bits, text, values in ((0x80000108, 0x00072783, b"lw      a5, 0(a4)", b" x15 0x00000000 mem 0x8000b210"),
                                               (0x8000010c, 0xfe078ee3, b"beqz    a5, pc - 4", b"")))


class Tee(Case):
    def start(self, *words):
        return self.recorder("tee", *words, stdin=subprocess.PIPE)

    def test_records_passes_on_and_cats(self):
        process = self.start("--passthrough")
        out, _ = process.communicate(b"one\ntwo\n")
        self.assertEqual(out, b"one\ntwo\n")
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.cat(self.prefix), b"one\ntwo\n")

    def test_without_passthrough_it_prints_nothing_on_stdout(self):
        out, _ = self.start().communicate(b"one\n")
        self.assertEqual(out, b"")

    def test_usage_errors_are_2_and_failures_3(self):
        self.assertEqual(self.hangscope("tee", "--size", "0", stdin=b"").status, 2)
        self.assertEqual(self.hangscope("tee", "--nope", stdin=b"").status, 2)
        self.assertEqual(self.hangscope("tee", "--prefix", "/proc/nope/x", stdin=b"").status, 3)

    def test_sigterm_loses_no_tail(self):
        process = self.start()
        self.until(lambda: pathlib.Path(self.prefix + ".index").exists())
        process.stdin.write(b"x" * 999 + b"\n")
        process.stdin.flush()
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(len(self.cat(self.prefix)), 1000)

    def test_closed_standard_input_is_an_empty_one(self):
        process = self.recorder("tee", preexec_fn=lambda: os.close(0))
        self.assertEqual(self.wait(process, timeout=10).status, 0)
        self.assertEqual(self.cat(self.prefix), b"")

    def test_sigterm_ends_it_though_nobody_reads_the_passthrough(self):
        process = self.start("--passthrough")
        self.until(lambda: pathlib.Path(self.prefix + ".index").exists())
        process.stdin.write(b"x" * 60000)
        process.stdin.flush()
        feeder = subprocess.Popen(["head", "-c", "30000000", "/dev/zero"], stdout=process.stdin)
        self.addCleanup(self.end, feeder)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        self.assertEqual(process.returncode, 130)

    def test_one_recorder_to_a_ring(self):
        first = self.start()
        self.until(lambda: pathlib.Path(self.prefix + ".index").exists())
        second = self.hangscope("tee", "--prefix", self.prefix, stdin=b"")
        self.assertEqual(second.status, 3)
        self.assertIn(b"in use by a live recorder", second.err)
        first.communicate(b"")

    def test_spin_in_the_pipe_is_a_hang_without_an_elf(self):
        process = self.start("--stall", 1)
        end = time.monotonic() + 15
        while time.monotonic() < end and not [m for m in self.messages() if m["type"] == "verdict"]:
            process.stdin.write(SPIN * 200)
            process.stdin.flush()
            time.sleep(0.02)
        process.stdin.close()
        process.stdin = None
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 1)
        verdict = outcome.hangs[0]
        self.assertEqual((verdict["state"], verdict["confidence"]), ("looping", "likely"))
        core, = verdict["cores"]
        self.assertEqual([p["pc"] for p in core["loop"]["places"]], ["0x80000108", "0x8000010c"])
        self.assertEqual(core["loop"]["polls"], ["0x8000b210"])

    def test_spin_that_falls_silent_says_where_it_was(self):
        process = self.start("--stall", 1)
        process.stdin.write(SPIN * 2000)
        process.stdin.flush()
        self.until(lambda: [m for m in self.messages() if m["type"] == "verdict"])
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 1)
        self.assertEqual(outcome.hangs[0]["state"], "silent")
        self.assertIn(outcome.hangs[0]["cores"][0]["pc"], ("0x80000108", "0x8000010c"))


class Cat(Case):
    def test_whole_lines_oldest_first_after_overwriting(self):
        lines = b"".join(b"line %07d\n" % i for i in range(40000))
        process = self.recorder("tee", "--size", "64K", "--keep", 2, stdin=subprocess.PIPE)
        process.communicate(lines)
        history = self.cat(self.prefix)
        self.assertTrue(lines.endswith(history))
        self.assertTrue(history.startswith(b"line "))
        self.assertGreater(len(history), 128 * 1024 * 94 // 100)

    def test_follow_goes_on_until_the_recorder_ends(self):
        recorder = self.recorder("tee", stdin=subprocess.PIPE)
        recorder.stdin.write(b"first\n")
        recorder.stdin.flush()
        self.until(lambda: self.cat(self.prefix) == b"first\n")
        follower = subprocess.Popen([HANGSCOPE, "cat", "--follow", self.prefix], stdout=subprocess.PIPE)
        self.addCleanup(self.end, follower)
        self.assertEqual(follower.stdout.readline(), b"first\n")
        recorder.stdin.write(b"second\nthi")
        recorder.stdin.flush()
        self.assertEqual(follower.stdout.readline(), b"second\n")
        recorder.communicate(b"rd\n")
        self.assertEqual(follower.communicate(timeout=10)[0], b"third\n")

    def test_follow_goes_on_when_the_recorder_is_killed(self):
        recorder = self.recorder("tee", stdin=subprocess.PIPE)
        recorder.stdin.write(b"first\n")
        recorder.stdin.flush()
        self.until(lambda: self.cat(self.prefix) == b"first\n")
        follower = subprocess.Popen([HANGSCOPE, "cat", "-f", self.prefix], stdout=subprocess.PIPE)
        self.addCleanup(self.end, follower)
        recorder.kill()
        recorder.wait()
        recorder.stdin.write(b"second\n")
        recorder.stdin.flush()
        self.until(lambda: self.cat(self.prefix) == b"first\nsecond\n")
        recorder.stdin.close()
        self.assertEqual(follower.communicate(timeout=10)[0], b"first\nsecond\n")

    def test_what_a_killed_recorder_left_is_read_without_repair(self):
        recorder = self.recorder("tee", "--size", "64K", "--keep", 1, stdin=subprocess.PIPE)
        data = b"".join(b"%07d\n" % i for i in range(30000))
        recorder.stdin.write(data)
        recorder.stdin.flush()
        self.until(lambda: self.cat(self.prefix).endswith(data[-8:]))
        recorder.kill()
        recorder.wait()
        history = self.cat(self.prefix)
        self.assertTrue(data.endswith(history))
        self.assertGreater(len(history), 60000)

    def test_damaged_segments_are_counted_on_stderr(self):
        lines = b"".join(b"line %05d\n" % i for i in range(4000))
        process = self.recorder("tee", "--size", "64K", "--keep", 1, stdin=subprocess.PIPE)
        process.communicate(lines)
        whole = self.hangscope("cat", self.prefix)
        self.assertEqual((whole.status, whole.err), (0, b""))
        index = pathlib.Path(self.prefix + ".index")
        for segments, told in (((3,), b"hangscope: 1 segment is damaged, and its bytes are left out\n"),
                               ((3, 7), b"hangscope: 2 segments are damaged, and their bytes are left out\n")):
            damaged = bytearray(index.read_bytes())
            damaged[192 + 64 * segments[-1]] ^= 1  # the slot's sequence number
            index.write_bytes(damaged)
            outcome = self.hangscope("cat", self.prefix)
            self.assertEqual(outcome.status, 0)
            self.assertIn(told, outcome.err)
            self.assertLess(len(outcome.out), len(whole.out))

    def test_a_closed_reader_is_no_error(self):
        self.recorder("tee", stdin=subprocess.PIPE).communicate(b"x\n" * 100000)
        process = subprocess.run(f"{HANGSCOPE} cat {self.prefix} | head -1", shell=True, capture_output=True)
        self.assertEqual((process.stdout, process.stderr), (b"x\n", b""))

    def test_what_is_no_ring_is_told(self):
        outcome = self.hangscope("cat", self.prefix)
        self.assertEqual(outcome.status, 3)
        self.assertIn(b"is no recording of output", outcome.err)


if __name__ == "__main__":
    main()
