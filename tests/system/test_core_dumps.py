#!/usr/bin/env python3
"""`hangscope why` of core dumps: as the kernel writes them, and gdb's gcore."""
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys

import support

ZOO = pathlib.Path(support.BUILD) / "tests/zoo"
PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
TWO_LOCKS = r"HANG: deadlock, 2 of 3 threads wait for each other \(certain\)\n.*mutex lock_b, held by \d+  TakeLeft  locks\.cc:\d+\n"


class CoreDumps(support.Case):
    def start(self, *words):
        """Starts what says "ready" when it hangs, in a folder where it may leave a core dump."""
        process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
        self.addCleanup(end)
        self.assertEqual(b"ready\n", process.stdout.readline())
        return process

    def kernel_core(self, *words):
        if PATTERN.startswith(("|", "/")) or "%" in PATTERN.replace("%p", ""):
            self.skipTest(f"the kernel writes core dumps elsewhere here: {PATTERN}")
        process = self.start(*words)
        self.wait_for_standstill(process.pid)
        process.send_signal(signal.SIGABRT)
        process.wait()
        cores = [path for path in self.folder.iterdir() if "core" in path.name]
        self.assertEqual(1, len(cores), cores)
        return cores[0]

    def gdb_core(self, *words):
        if shutil.which("gcore") is None:
            self.skipTest("gcore is not installed (package gdb)")
        process = self.start(*words)
        self.wait_for_standstill(process.pid)
        done = subprocess.run(["gcore", "-o", "dump", str(process.pid)], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        path = self.folder / f"dump.{process.pid}"
        self.assertTrue(path.exists(), done.stdout + done.stderr)
        return path

    def wait_for_standstill(self, pid):
        def stands():
            tasks = pathlib.Path(f"/proc/{pid}/task")
            return all(re.search(r"State:\tS", (task / "status").read_text()) for task in tasks.iterdir())
        self.assertTrue(support.until(lambda: stands() and stands(), 10))

    def why(self, core, *options):
        return subprocess.run([support.HANGSCOPE, "why", core, *options], cwd=self.folder, capture_output=True, text=True, timeout=60)

    def test_of_the_kernel_names_locks_and_lines(self):
        done = self.why(self.kernel_core(ZOO / "zoo_locks", "abba"))
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertRegex(done.stdout, TWO_LOCKS)
        self.assertRegex(done.stdout, r"as its core dump has it, after signal 6 \(Aborted\)")
        self.assertIn("a core dump does not tell what a process's files are, nor which signals it handles", done.stdout)

    def test_of_gdb_names_locks_and_lines(self):
        done = self.why(self.gdb_core(ZOO / "zoo_locks", "abba"))
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertRegex(done.stdout, TWO_LOCKS)
        self.assertRegex(done.stdout, "as its core dump has it\n")

    def test_who_ran_is_not_said_to_hang(self):
        done = self.why(self.gdb_core_of_running())
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^no hang found: \d+ zoo_spins runs\n")
        self.assertRegex(done.stdout, r"WaitForFlag  spins\.cc:\d+")
        self.assertNotIn("in the meantime", self.why(next(self.folder.glob("dump.*")), "--json").stdout)

    def gdb_core_of_running(self):
        self.wait_for_standstill = lambda pid: None
        return self.gdb_core(ZOO / "zoo_spins", "flag")

    def test_of_python_has_its_lines(self):
        if shutil.which("gcore") is None or not re.search(r"3\.11", sys.version):
            self.skipTest("needs gcore (package gdb) and Python 3.11")
        program = self.folder / "bank.py"
        program.write_text("import threading, time\na, b = threading.RLock(), threading.RLock()\n"
                           "def left():\n  with a:\n    time.sleep(0.1)\n    with b: pass\n"
                           "def right():\n  with b:\n    time.sleep(0.1)\n    with a: pass\n"
                           "for each in left, right: threading.Thread(target=each).start()\n"
                           "time.sleep(0.3)\nprint('ready', flush=True)\n")
        done = self.why(self.gdb_core(sys.executable, program))
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertRegex(done.stdout, r"left  bank\.py:6")
        self.assertRegex(done.stdout, r"right  bank\.py:10")

    def test_another_program_of_the_name_gives_no_names(self):
        program = self.folder / "program"
        shutil.copy(ZOO / "zoo_locks", program)
        core = self.gdb_core(program, "abba")
        program.unlink()
        shutil.copy(ZOO / "zoo_spins", program)
        done = self.why(core)
        self.assertNotIn("locks.cc", done.stdout)
        self.assertNotIn("spins.cc", done.stdout)
        self.assertRegex(done.stdout, r"(?s)not known to be the ones that ran, by their\s+build IDs: \S*/program")

    def test_what_is_cut_short_is_said(self):
        core = self.gdb_core(ZOO / "zoo_locks", "abba")
        size = core.stat().st_size
        kernel_like = self.folder / "cut"
        shutil.copy(core, kernel_like)
        os.truncate(kernel_like, size // 2)
        done = self.why(kernel_like)
        self.assertIn(done.returncode, (0, 1, 3))
        self.assertRegex(done.stdout + done.stderr, "cut short")

    def test_a_holder_that_the_dump_does_not_have_is_not_said_to_have_ended(self):
        """A lock that is shared may be another process's; one that fork() copied was a thread's of the parent."""
        if shutil.which("gcore") is None:
            self.skipTest("gcore is not installed (package gdb)")
        for program, words in (("zoo_processes", ["shared-held-nap"]), ("zoo_processes", ["shared-abba"])):
            process = self.start(ZOO / program, *words)
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for pid in [process.pid, *map(int, children)]:
                subprocess.run(["gcore", "-o", "dump", str(pid)], cwd=self.folder, capture_output=True, stdin=subprocess.DEVNULL)
                done = self.why(self.folder / f"dump.{pid}")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertNotIn("which ended", done.stdout)
                self.assertNotIn("owner died", done.stdout)

    def test_json(self):
        done = self.why(self.gdb_core(ZOO / "zoo_locks", "abba"), "--json")
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn('"kind":"deadlock"', done.stdout)


if __name__ == "__main__":
    support.main()
