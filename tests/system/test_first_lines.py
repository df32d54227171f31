"""What the report of a hang answers on its first screen: who, since when, where, called from where, what came before, and what
was printed last. Each over a real run."""
import pathlib
import re
import resource
import shutil
import unittest

from support import BUILD, FIRMWARE, LONG, Case, main, python
from watched_targets import device_command, guest_command, new_folder, SCHED_FAULTS

HUNG = f"{BUILD}/examples/hung"
SECONDS = r"\d+\.\d s"


class Reports(Case):
    def report(self, program, *options, stall=1, expect=124):
        outcome = self.run_program([str(word) for word in program], "--stall", stall, "--on-hang", "kill", "--heartbeat", 0, "--no-passthrough", *options)
        self.assertEqual(outcome.status, expect, outcome.messages[-1:] or outcome.err)
        snapshot = self.snapshots()[0]
        return (snapshot / "report.txt").read_text()

    def assert_answers(self, report, *answers):
        """Each stands in a line of the first 20, in this order."""
        lines = report.splitlines()[:20]
        at = 0
        for answer in answers:
            found = next((i for i in range(at, len(lines)) if re.search(answer, lines[i])), None)
            self.assertIsNotNone(found, f"no {answer!r} from line {at + 1} on in:\n" + "\n".join(lines))
            at = found


class FirstLines(Reports):
    def test_stream(self):
        self.need_firmware()
        elf = FIRMWARE / "rv32-handshake-hang.elf"
        report = self.report(["qemu-system-riscv32", "-machine", "virt", "-m", "64M", "-bios", "none", "-kernel", elf, "-smp", 3, "-nographic", "-monitor",
                              "none", "-serial", "none", "-d", "exec,nochain"], "--elf", elf, "--size", "256M")
        self.assert_answers(report, rf"^hangscope: HANG after {SECONDS}: looping, 3 of 3 cores spin",
                            rf"^  hart 0  spins {SECONDS}, .* cb_reserve_back  cb\.c:\d+  <- reader_kernel$",
                            r"^  how hart \d got there, the oldest first:$", r"^    \w+  \w+\.c:\d+  <- \w+_kernel$")

    def test_threads(self):
        report = self.report([f"{HUNG}/abba_locks"])
        self.assert_answers(report, rf"^hangscope: HANG after {SECONDS}: deadlock, 2 of 3 threads wait for each other \(certain\)$",
                            rf"^  \d+ a-to-b  waits {SECONDS} for mutex lock_b, held by \d+   Transfer\(.*\)  abba_locks\.cc:\d+",
                            rf"^  \d+ b-to-a  waits {SECONDS} for mutex lock_a, held by \d+ ",
                            rf'^  last output: "two transfers have begun"  \(stdout, {SECONDS} ago\)$',
                            r"^stack of \d+ a-to-b, of process \d+ abba_locks: .*/abba_locks$", r"^  Transfer\(.*  abba_locks\.cc:\d+$",
                            r"^  main::<lambda>  abba_locks\.cc:29$")

    def test_process_tree(self):
        """The 17th of its tests hangs: its name, the line, the lock."""
        test = self.folder / "test_017"
        shutil.copy(f"{HUNG}/abba_locks", test)
        tests = "".join(f'add_test(test_{n:03} "true")\n' for n in range(1, 17)) + f'add_test(test_017 "{test}" "--fast")\n'
        (self.folder / "CTestTestfile.cmake").write_text(tests)
        junit = self.folder / "hang.xml"
        report = self.report(["ctest", "--test-dir", self.folder], "--junit", junit)
        self.assert_answers(report, r"HANG after .*: deadlock, 2 of 3 threads of process \d+ \(test_017\) wait for each other",
                            rf"^  \d+ a-to-b  waits {SECONDS} for mutex lock_b, held by \d+ .*  abba_locks\.cc:\d+",
                            r'^  last output: ".*Start 17: test_017"  \(stdout, ', r"^stack of \d+ a-to-b, of process \d+ test_017: .*/test_017 --fast$")
        message = re.search('<failure message="([^"]*)"', junit.read_text())[1]
        self.assertRegex(message, r"a-to-b  waits .* for mutex lock_b, .*  abba_locks\.cc:\d+  &lt;- main::&lt;lambda&gt;  \(process \d+ test_017: .*/test_017 --fast\)$")

    def test_python_suite(self):
        """The 17th of its tests hangs: its name, the line."""
        tests = "".join(f"    def test_{n:03}(self):\n        pass\n\n" for n in range(1, 17))
        (self.folder / "test_cache.py").write_text(
            f"import threading, unittest\n\nclass CacheTest(unittest.TestCase):\n{tests}    def test_017(self):\n        self.put()\n\n"
            "    def put(self):\n        lock = threading.Lock()\n        with lock:\n            with lock:\n                pass\n")
        junit = self.folder / "hang.xml"
        report = self.report(["/usr/bin/python3", "-m", "unittest", "discover", "-v", "-s", self.folder], "--junit", junit)
        self.assert_answers(report, "HANG after .*: deadlock, a thread waits for itself ",
                            rf"^  \d+ python3  waits {SECONDS} for lock lock at \w+, which it holds itself   CacheTest\.put  test_cache\.py:58  <- CacheTest\.test_017",
                            r'^  last output: "test_017 ', r"^stack of \d+ python3, of process \d+ python3: .* -m unittest ")
        # Where the scheduler was busy, what came before has the lines above it.
        self.assertRegex(report, r"\n  CacheTest\.put  test_cache\.py:58\n  CacheTest\.test_017  test_cache\.py:53\n")
        message = re.search('<failure message="([^"]*)"', junit.read_text())[1]
        self.assertRegex(message, r"CacheTest\.put  test_cache\.py:58  &lt;- CacheTest\.test_017")

    def test_crash(self):
        report = self.report(["sh", "-c", "echo block 4711 sent; kill -SEGV $$"], expect=139)
        self.assert_answers(report, rf"^hangscope: DEAD after {SECONDS}: killed by signal 11 \(Segmentation fault\)$",
                            rf'^  last output: "block 4711 sent"  \(stdout, {SECONDS} ago\)$')

    def test_crash_with_a_core_dump(self):
        """The stack of the thread that got the signal, where the kernel leaves a dump; else how to get one."""
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
        if pattern != "core" or resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
            self.skipTest("the kernel writes no core dumps in the program's folder")
        crash = f"ulimit -c $1; (sleep 0.3; kill -SEGV $$) & exec {HUNG}/abba_locks"
        for limit in ("unlimited", "0"):
            self.prefix = f"{self.folder}/{limit}"
            outcome = self.run_program(["sh", "-c", crash, "sh", limit], "--stall", 5, "--junit", self.folder / "crash.xml", cwd=self.folder)
            self.assertEqual(outcome.status, 139)
            snapshot, = self.folder.glob(f"{limit}.snapshot-*")
            report = (snapshot / "report.txt").read_text()
            junit = (self.folder / "crash.xml").read_text()
            if limit == "0":
                self.assert_answers(report, r"no stack of the crash: ")
                self.assertNotIn("crashed in", report)
                continue
            self.assert_answers(report, r"DEAD after .*: killed by signal 11 \(Segmentation fault\)$", 'last output: "two transfers have begun"',
                                r"^  thread \d+ crashed in .* <- main  abba_locks\.cc:\d+", "^  core dump: core", r"^stack of \d+, of process \d+ sh: ",
                                r"^  main  abba_locks\.cc:\d+$")
            self.assertRegex(junit, r"<error .*\n(.*\n)*  main  abba_locks\.cc:\d+\n")
            for dump in self.folder.glob("core*"):
                dump.unlink()
            # ... and one that dies before it is looked at.
            self.prefix = f"{self.folder}/short"
            outcome = self.run_program(["sh", "-c", "ulimit -c unlimited; kill -SEGV $$"], cwd=self.folder)
            self.assertTrue([text for text in outcome.last["evidence"] if re.match(r"thread \d+ crashed in ", text)], outcome.last)

    def test_log(self):
        report = self.report(python("import time\nprint('boot')\nprint('eth0: found', flush=True)\nwhile True:\n"
                                    "    print('eth0: no link, retry', flush=True)\n    time.sleep(0.02)"))
        self.assert_answers(report, rf"^hangscope: HANG after {SECONDS}: looping, stdout repeats the same log line",
                            rf'^  stdout  repeats {SECONDS}, \d+ times round 1 line  "eth0: no link, retry"$',
                            "^  how stdout got there, the oldest first:$", '^    "boot"$', '^    "eth0: found"$',
                            r'^  last output: "eth0: no link, retry"  \(stdout, ')

    @unittest.skipUnless(LONG, "only in the long run")
    def test_cpu_rings(self):
        doctor = self.hangscope("doctor").out.decode()
        report = self.report([f"{HUNG}/abba_locks"], "--cpu")
        self.assert_answers(report, "deadlock, 2 of 3 threads", "a-to-b  waits", 'last output: "two transfers have begun"')
        self.assertIn("CPU", report, doctor)


class FirstLinesOfGuests(Reports):
    """With a scope in the memory of QEMU's guest."""

    def setUp(self):
        super().setUp()
        self.need_firmware()
        self.ram = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, self.ram, ignore_errors=True)

    def guest(self, command):
        words, elf, ram = command
        return self.report(words, "--elf", elf, "--scope", f"file:{ram}")

    def test_device(self):
        report = self.guest(device_command(self.ram, "DEADLOCK2", core=2, other=1, block=30))
        self.assert_answers(report, r"HANG after .*: deadlock, \d of 5 cores wait for each other", r"core \d \w+ .* waits")

    @unittest.skipUnless(LONG, "only in the long run")
    def test_tasks(self):
        report = self.guest(guest_command(self.ram, "trace_sched-faults", "rv32", 1, [SCHED_FAULTS["DEADLOCK2"], 2, 1, 0, 20, 0, 2, 0]))
        self.assert_answers(report, "deadlock", "task .* waits")


if __name__ == "__main__":
    main()
