#!/usr/bin/env python3
"""What the report of a hang says of each thread's last steps, which `run` keeps where the kernel permits it."""
import json
import os
import pathlib
import subprocess
import sys

from support import BUILD, HANGSCOPE, Case, main

ZOO = pathlib.Path(BUILD) / "tests/hang_zoo"

# Two threads that the main thread wakes take two mutexes in opposite orders.
TWO_LOCKS = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
locks = [ctypes.create_string_buffer(64) for _ in range(2)]
starts = [threading.Semaphore(0) for _ in range(2)]
def work(me):
    libc.prctl(15, [b"left", b"right"][me])
    starts[me].acquire()
    libc.pthread_mutex_lock(locks[me])
    time.sleep(0.1)
    libc.pthread_mutex_lock(locks[1 - me])
threads = [threading.Thread(target=work, args=(me,)) for me in range(2)]
for thread in threads: thread.start()
def recorded():  # each thread has two events, and the recorder one more
    fds = f"/proc/{os.getppid()}/fd"
    return sum("perf_event" in os.path.realpath(f"{fds}/{fd}") for fd in os.listdir(fds)) >= 2 * 3 + 1
while "history" in sys.argv and not recorded(): time.sleep(0.05)
time.sleep(0.2)
for start in starts: start.release()
for thread in threads: thread.join()
"""


def permitted():
    """Why there is no history here; empty: there is."""
    if os.geteuid() != 0:
        return "not root: wake-ups may not be recorded"
    if not pathlib.Path("/sys/kernel/tracing/events/sched/sched_waking/id").exists():
        return "tracefs is not mounted, or the kernel has no sched_waking"
    tried = subprocess.run([sys.executable, "-c", TRY_TO_OPEN], capture_output=True, text=True, timeout=60)
    return tried.stdout.strip()


# perf_event_open of a counter that does nothing, with the kernel's side.
TRY_TO_OPEN = """
import ctypes, os, platform
number = {"x86_64": 298, "aarch64": 241, "riscv64": 241}.get(platform.machine())
attr = (ctypes.c_uint32 * 32)(1, 128, 9)
libc = ctypes.CDLL(None, use_errno=True)
if number is None: print("perf_event_open is not known here")
elif libc.syscall(number, attr, 0, -1, -1, 0) < 0: print("perf_event_open:", os.strerror(ctypes.get_errno()))
"""


class History(Case):
    def hang(self, *words, program=(sys.executable, "-c", TWO_LOCKS, "history"), before=(), **environment):
        done = subprocess.run([*before, HANGSCOPE, "run", "--prefix", self.prefix, "--stall", "1", "--on-hang", "kill", "--heartbeat", "0", *words, "--",
                               *program], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
        self.assertEqual(done.returncode, 124, done.stderr)
        return done.stderr

    def finding(self):
        manifest = json.loads(pathlib.Path(self.prefix + ".snapshot-0001/manifest.json").read_text())
        return manifest["verdict"]["findings"][0]

    def assert_says_who_woke_whom_last(self, *options):
        if why := permitted():
            self.skipTest(why)
        # CPUs are recorded from its first instruction on, and there is nothing to wait for.
        wait = () if "--cpu" in options else ("history",)
        said = self.hang(*options, program=(sys.executable, "-c", TWO_LOCKS, *wait))
        finding = self.finding()
        self.assertEqual(finding["kind"], "deadlock", finding)
        threads = {who["name"].split()[1]: who["name"] for who in finding["subjects"]}
        self.assertEqual(sorted(threads), ["left", "right"])
        for name in threads.values():
            # By the main thread, or by the other one, who gave the interpreter's lock up.
            woken = r"(; \d+ (python\S*|left|right) woke it \d+\.\d+ s ago|, woken by \d+ (python\S*|left|right))"
            self.assertRegex(said, rf"  {name}  ran last \d+\.\d+ s ago for [\d.]+ ms{woken}\n")
        self.assertIn(f"  first to stop: {finding['first']}\n", said)
        self.assertIn(finding["first"], threads.values())
        report = pathlib.Path(self.prefix + ".snapshot-0001/report.txt").read_text()
        self.assertIn("ran last", report)
        # The oldest first, and the wake-up of each before it left the CPU for good.
        steps = finding["last_events"]
        times = [float(step.split()[0]) for step in steps]
        self.assertEqual(times, sorted(times, reverse=True))
        for name in threads.values():
            woken = next(i for i, step in enumerate(steps) if step.endswith(f" wakes {name}"))
            left = [i for i, step in enumerate(steps) if f"{name} leaves the CPU" in step]
            self.assertTrue(left and left[-1] > woken, steps)

    def test_says_who_woke_whom_last_and_when_each_thread_ran_last(self):
        self.assert_says_who_woke_whom_last()

    def test_the_rings_of_the_cpus_tell_it_too(self):
        self.assert_says_who_woke_whom_last("--cpu")

    def test_is_left_out_on_demand(self):
        for options in ((), ("--cpu",)):
            self.prefix = str(self.folder / f"P{len(options)}")
            self.assertNotIn("ran last", self.hang("--history", "none", *options, program=(ZOO, "abba")))
            self.assertNotIn("last_events", self.finding())

    def test_is_left_out_without_a_word_where_it_is_not_permitted(self):
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        os.chmod(self.folder, 0o777)
        # An interpreter may lie where others must not look.
        said = self.hang(program=(ZOO, "abba", "line", "late"), before=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"), XDG_RUNTIME_DIR="")
        if pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip() == "-1":
            self.skipTest("everybody may record everything here (kernel.perf_event_paranoid)")
        self.assertIn("HANG after", said)
        for word in ("ran last", "perf", "history", "warning"):
            self.assertNotIn(word, said)

    def test_of_another_kind_is_refused(self):
        done = self.hangscope("run", "--history", "some", "--", "true")
        self.assertEqual(done.status, 125)
        self.assertIn(b"--history 'some': auto or none", done.err)


if __name__ == "__main__":
    main()
