"""Hung programs of Python: each thread's frames, with the lines of its program, whatever reads them out: why, its JSON, run and
JUnit."""
import os
import pathlib
import re
import signal

from support import main
from test_why_process import WhyCase

DEBIANS = "/usr/bin/python3"

BANK = """
import queue, threading, time

account_a, account_b = threading.Lock(), threading.Lock()
both = threading.Barrier(2)
empty = queue.Queue()

def transfer(first, second):
    with first:
        both.wait()
        with second:
            print("never")

class Pool:
    def take(self):
        return empty.get()

def rows():
    for row in range(3):
        yield empty.get()

def spin():
    while True:
        pass

for name, function, *words in (
        ("a-to-b", transfer, account_a, account_b), ("b-to-a", transfer, account_b, account_a), ("taker", lambda: Pool().take()),
        ("generator", lambda: list(rows())), ("sorter", lambda: sorted([2, 1], key=lambda _: time.sleep(1000))), SPINNER):
    threading.Thread(target=function, args=words, name=name).start()
print("started", flush=True)
"""
WAIT = ["Condition.wait threading.py", "Queue.get queue.py"]
RUN = "Thread.run threading.py"
EXPECTED = [["transfer FILE:11", RUN], ["transfer FILE:11", RUN], [*WAIT, "Pool.take FILE:16", "<lambda> FILE:27", RUN],
            [*WAIT, "rows FILE:20", "<lambda> FILE:28", RUN], ["<lambda>.<locals>.<lambda> FILE:28", "<lambda> FILE:28", RUN]]


class Frames(WhyCase):
    def run_python(self, name, text, python=DEBIANS):
        path = self.folder / name if isinstance(name, str) else os.path.join(os.fsencode(self.folder), name)
        with open(path, "w") as file:
            file.write(text)
        process = self.start(python, path, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.settled(process.pid)
        return process

    def threads(self, pid, *words):
        """The Python frames of each thread, "take bank.py:17", and where it is."""
        _, _, _, lines = self.why(pid, *words)
        found = []
        for line in lines:
            if line["type"] == "thread":
                told = [f"{frame['function']} {frame['source']}" for frame in line["stack"] if frame.get("language") == "python"]
                found.append((told, line.get("where", {}), line))
        return found, lines

    def assert_bank(self, process, name):
        found, lines = self.threads(process.pid)
        self.assertEqual(len(found), 6, lines)
        for expected, (told, where, line) in zip(EXPECTED, found[1:]):
            expected = [text.replace("FILE", name) for text in expected]
            self.assertTrue(all(text.startswith(begin) for text, begin in zip(told, expected)) and len(told) >= len(expected), (told, expected))
            self.assertEqual(f"{where['function']} {where['source']}", next(text for text in expected if name in text))
            self.assertFalse([frame for frame in line["stack"] if frame.get("function", "").startswith("_PyEval_EvalFrame")], line["stack"])
            self.assertNotIn("stack_trouble", line)

    def test_threads_that_wait(self):
        process = self.run_python("bank.py", BANK.replace(", SPINNER", ""))
        self.assert_bank(process, "bank.py")
        text = self.hangscope("why", process.pid, "--stacks").out.decode()
        self.assertRegex(text, r"\n  #\d+ +Pool\.take  bank\.py:16\n  #\d+ +<lambda>  bank\.py:27\n")

    def test_a_verdict_names_the_line(self):
        process = self.run_python("bank.py", BANK.replace("time.sleep(1000)", "empty.get()").replace(", SPINNER", ""))
        text = self.hangscope("why", process.pid).out.decode()
        self.assertRegex(text, r"^HANG: deadlock, 2 of .*\n  \d+ python3  waits .* for lock account_b, held by \d+  transfer  bank\.py:11\n")

    def test_the_same_as_python_says_itself(self):
        """By faulthandler, which knows functions by their short names, and escapes what is not ASCII."""
        process = self.run_python("bank.py", BANK.replace(", SPINNER", "") + "time.sleep(0.3)\nimport faulthandler, sys\n"
                                  "faulthandler.dump_traceback(sys.stdout)\nprint('end', flush=True)\n")
        said = "".join(iter(lambda: process.stdout.readline().decode(), "end\n"))
        pythons = sorted(re.findall(r'File ".*?([^/"]*)", line (\d+) in (\S+)', block) for block in said.split("\n\n") if "Current thread" not in block)
        self.settled(process.pid)
        found, _ = self.threads(process.pid)
        own = sorted([(*text.split()[-1].split(":"), text.split()[0].split(".")[-1]) for text in told] for told, *_ in found[1:])
        self.assertEqual(own, pythons)

    def test_names_in_any_alphabet(self):
        for name in ("größe.py", "банк.py", "銀行🏦.py"):
            with self.subTest(name):
                process = self.run_python(name, BANK.replace(", SPINNER", ""))
                self.assert_bank(process, name)
        process = self.run_python(b"\xff.py", BANK.replace(", SPINNER", ""))
        self.assertIn(r"transfer  \xff.py:11", self.hangscope("why", process.pid, "--stacks").out.decode())
        self.assert_bank(process, "\N{REPLACEMENT CHARACTER}.py")

    def test_one_that_runs(self):
        process = self.run_python("bank.py", BANK.replace("SPINNER", '("spinner", spin)'))
        found, _ = self.threads(process.pid)
        self.assertIn("spin", [where["function"] for told, where, _ in found if told], found)

    def test_a_child_of_fork(self):
        for fork in "os.fork()", "ctypes.PyDLL(None).fork()":  # the second Python does not know of
            with self.subTest(fork):
                self.assert_child_of(fork)

    def assert_child_of(self, fork):
        process = self.run_python("forks.py", f"import ctypes, os, queue, threading\n\ndef work():\n    if {fork} == 0:\n        queue.Queue().get()\n    else:\n"
                                              "        os.wait()\n\nthreading.Thread(target=work).start()\nprint('started', flush=True)\n")
        child, = [int(child) for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir() for child in (task / "children").read_text().split()]
        self.addCleanup(os.kill, child, signal.SIGKILL)
        (told, where, _), = self.threads(child)[0]
        self.assertEqual(where.get("source"), "forks.py:5", told)

    def test_other_versions_are_named(self):
        """Those that are there beside Debian's."""
        pythons = sorted((pathlib.Path.home() / ".pyenv/versions").glob("3.*/bin/python3"))
        if not pythons:
            self.skipTest("no other Python is here")
        for python in pythons:
            version = ".".join(python.parts[-3].split(".")[:2])
            with self.subTest(python):
                process = self.run_python("bank.py", BANK.replace(", SPINNER", ""), str(python))
                if version == "3.11":
                    self.assert_bank(process, "bank.py")
                    continue
                found, lines = self.threads(process.pid)
                troubles = [text for line in lines if line["type"] == "process" for text in line["troubles"]]
                self.assertEqual(troubles, [f"python frames: Python {version} is not read yet"])
                self.assertFalse(any(told for told, *_ in found))
                self.assertTrue(all(line["stack"] for *_, line in found))


if __name__ == "__main__":
    main()
