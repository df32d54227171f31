"""What hangscope run knows from each of its sources: named cases that are missed, or told less well, without it; and what it
says when it cannot see.

A source is taken away as it is in the field: no scope; a stream that nobody captures; no /proc, or that of another PID
namespace; processes that may not be looked into.
"""
import concurrent.futures
import dataclasses
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

from said import Expected, read_messages, said_by_run
from support import BUILD, FIRMWARE, HANGSCOPE, Case, main
from test_hang_matrix import PYTHON, ZOO, all_cases, fill
from test_qemu import qemu

STALL_S = 1
ENOUGH_S = 3 * STALL_S  # for a hang to be found, if it can be
GIVE_UP_S = 40
WITHOUT_PROC = ["unshare", "-m", "sh", "-c", "mount --make-rprivate / && mount -t tmpfs none /proc && exec \"$@\"", "-"]
WITH_OUTER_PROC = ["unshare", "-p", "-f"]  # it shows the processes of the namespace before
PIPELINE = BUILD + "/examples/pipeline/pipeline"
LOOPS = FIRMWARE / "rv32-loops-loop7.elf"
STOPS_ITSELF = "import os,signal; print('working'); os.kill(os.getpid(), signal.SIGSTOP)"
# Nobody but root may look into it (prctl(2)).
HIDES = "import ctypes,threading; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); lock=threading.Lock(); lock.acquire(); print('working'); lock.acquire()"

# The matrix's cases that only the threads know.
OF_THREADS = ["two mutexes after a line", "signal lost", "pipe to itself", "two pipes", "owner is a process that ended", "child is stopped",
              "chatty beside a deadlock", "timeout, after a line", "while (!flag) after a line"]
OF_SCOPE = Expected("a circle of channels", PIPELINE + " --fault no-credit", "deadlock", [f'"thread {role}-0"' for role in ("reader", "unpack", "math", "pack", "writer")],
                    ["cb3", "credit"], "certain", options={"run": f"--scope pid: --elf {PIPELINE}"})
OF_STREAMS = ["log that says the same"]


def is_possible(command):
    return shutil.which(command[0]) is not None and subprocess.run([*command, "true"], capture_output=True).returncode == 0


@dataclasses.dataclass
class Try:
    case: Expected
    before: list  # what hangscope is started by
    options: list

    def said(self, where, enough):
        folder = pathlib.Path(tempfile.mkdtemp(dir=where))
        subprocess.run([*self.before, HANGSCOPE, "run", "--on-hang", "kill", "--stall", str(STALL_S), "--timeout", str(enough), "--json", "--log", folder / "log",
                        "--prefix", folder / "ring", "--size", "20M", *self.options, "--", *shlex.split(fill(self.case.command, folder))],
                       cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=2 * GIVE_UP_S)
        return said_by_run(read_messages(folder / "log"))


class NamedCases(Case):
    def assert_needed(self, cases, before=(), options=None):
        """As expected with all sources, and not without the one that is taken away by `before`, or by other options."""
        def differences(case):
            its = case.options.get("run", "").split()
            return [case.differences(Try(case, *way).said(self.folder, enough), by_run=True)
                    for way, enough in ((([], its), ENOUGH_S if case.options.get("partial") else GIVE_UP_S),
                                        ((list(before), its if options is None else options), ENOUGH_S))]
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            for case, (with_all, without) in zip(cases, pool.map(differences, cases)):
                with self.subTest(case.name):
                    self.assertEqual(with_all, [])
                    self.assertNotEqual(without, [])

    @staticmethod
    def of_matrix(names):
        found = [case for case in all_cases() if case.name in names]
        assert len(found) == len(names)
        return found

    def test_of_the_threads(self):
        if not is_possible(WITHOUT_PROC):
            self.skipTest("no file system can be mounted here")
        self.assert_needed(self.of_matrix(OF_THREADS), before=WITHOUT_PROC)

    def test_of_the_scope(self):
        self.assert_needed([OF_SCOPE], options=["--scope", "none"])

    def test_of_the_streams(self):
        self.assert_needed(self.of_matrix(OF_STREAMS), options=["--capture", "fd:3"])

    def test_of_an_instruction_trace(self):
        self.need_firmware()
        case = Expected("harts that spin", " ".join(map(str, qemu(32, LOOPS))), "looping", [], ["3 of 3 cores spin"], "certain",
                        options={"run": f"--elf {LOOPS}"})
        self.assert_needed([case], options=["--elf", str(LOOPS), "--capture", "fd:3"])


class Blind(Case):
    """Nothing is acted on that the processes have not confirmed, and what was not seen is said."""

    def watch(self, before, program, *options, timeout=ENOUGH_S, name="ring", **popen):
        done = subprocess.run([*before, HANGSCOPE, "run", "--stall", str(STALL_S), "--on-hang", "kill", "--heartbeat", "0.5", "--timeout", str(timeout),
                               "--prefix", self.folder / name, *options, "--", *program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **popen)
        self.assertEqual((done.returncode, "HANG" in done.stderr), (124, False), done.stderr)
        return done.stderr

    def watch_blind(self, before, why, programs):
        with concurrent.futures.ThreadPoolExecutor(len(programs)) as pool:
            for said in pool.map(lambda i: self.watch(before, programs[i], name=f"ring{i}"), range(len(programs))):
                self.assert_blind(said, why)

    def assert_blind(self, said, why):
        self.assertIn(f"hangscope: warning: the program's threads were not looked at: {why}\n", said)
        self.assertEqual(said.count("were not looked at"), 1, said)
        self.assertRegex(said, f"(?m)  possible: silent: {why}; no action$")
        self.assertNotRegex(said, "asleep|CPU|nobody knows|is unknown")

    def test_without_proc(self):
        if not is_possible(WITHOUT_PROC):
            self.skipTest("no file system can be mounted here")
        self.watch_blind(WITHOUT_PROC, "/proc shows no processes: mount it",
                         [[ZOO, "abba", "line"], [ZOO, "spin", "line"], [ZOO, "accept", "line"], [PYTHON, "-uc", STOPS_ITSELF]])

    def test_it_still_ends_what_shares_its_terminal(self):
        if not is_possible(WITHOUT_PROC) or shutil.which("script") is None:
            self.skipTest("no file system can be mounted here, or script is not installed")
        command = [*WITHOUT_PROC, HANGSCOPE, "run", "--timeout", "0.5", "--prefix", self.prefix, "--", "sleep", "30"]
        done = subprocess.run(["script", "-qec", shlex.join(command), "/dev/null"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=25)
        self.assertIn("ended it after", done.stdout)

    def test_with_proc_of_another_namespace(self):
        if not is_possible(WITH_OUTER_PROC):
            self.skipTest("no PID namespace can be made here")
        self.watch_blind(WITH_OUTER_PROC, "/proc shows the processes of another PID namespace: mount one of this",
                         [[ZOO, "abba", "line"], [ZOO, "accept", "line"]])

    def test_simulator_that_may_be_stopped(self):
        """Its silence is a hang where somebody sees that it runs, or sleeps."""
        if not is_possible(WITHOUT_PROC):
            self.skipTest("no file system can be mounted here")
        self.need_firmware()
        log = f"timeout 2 {' '.join(qemu(32, LOOPS))} 2>&1 | head -n 2000; kill -STOP $$"
        said = self.watch(WITHOUT_PROC, ["sh", "-c", log], "--elf", LOOPS, "--no-passthrough", timeout=8)
        self.assertIn("whether its processes run, sleep or are stopped is not seen", said)

    def test_why_without_proc(self):
        for before, why in ((WITHOUT_PROC, "/proc shows no processes: mount it"),
                            (WITH_OUTER_PROC, "/proc shows the processes of another PID namespace: mount one of this")):
            if not is_possible(before):
                self.skipTest(f"{before[0]} is not allowed here")
            done = subprocess.run([*before, HANGSCOPE, "why", "pid:1"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (3, f"hangscope: error: process 1 cannot be looked at: {why}\n"))

    def test_process_that_may_not_be_looked_into(self):
        if os.getuid() != 0:
            self.skipTest("not root")
        for folder in self.folder, self.runtime:
            shutil.chown(folder, "nobody")
        if subprocess.run(["test", "-x", HANGSCOPE], user="nobody").returncode != 0:
            self.skipTest(f"{HANGSCOPE} may not be run by nobody")
        said = self.watch([], [PYTHON, "-uc", HIDES], user="nobody")
        self.assertRegex(said, r"(?m)  possible: silent, child asleep: what the threads of process \d+ wait for may not be looked at: Permission denied; "
                               r"run hangscope as root; no action$")


if __name__ == "__main__":
    main()
