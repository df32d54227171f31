"""What befalls programs in the field, and is no hang: frozen, starved of CPU, in a child's hands. Each works, and must be left
alone; what hangs there must be found all the same.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import time

from support import HANGSCOPE, Case, main
from test_hang_matrix import PYTHON, ZOO

STALL_S = 1
# Of either version, where they are mounted: the folder, the file, what freezes, what thaws.
FREEZERS = [("/sys/fs/cgroup", "cgroup.freeze", "1", "0"), ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
            ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED")]
# Two processes that hand a byte to each other until a file is there; caught at any instant, both are in a read.
PING_PONG = """import os,sys
a,b=os.pipe(),os.pipe()
print('working')
if os.fork()==0:
    os.close(a[1]); os.close(b[0])
    while os.read(a[0],1): os.write(b[1],b'x')
    os._exit(0)
os.close(a[0]); os.close(b[1])
while not os.path.exists(sys.argv[1]): os.write(a[1],b'x'); os.read(b[0],1)
os._exit(7)"""


# The child, which has the other end, lets nobody but root look into it (prctl(2)), and will write.
HIDDEN_WRITER = """import ctypes,os,time
here,there=os.pipe()
print('working')
if os.fork()==0:
    ctypes.CDLL(None).prctl(4,0,0,0,0)
    os.close(here); time.sleep(3.5); os.write(there,b'x'); os._exit(0)
os.close(there)
os.read(here,1)
os._exit(7)"""


class FieldCase(Case):
    def start(self, command, *options):
        self.gate = self.folder / "gate"
        return self.recorder("run", "--stall", STALL_S, "--on-hang", "kill", "--heartbeat", 0.2, *options, "--", *map(str, command), stdin=subprocess.DEVNULL)

    def verdicts(self):
        return [m for m in self.messages() if m["type"] == "verdict"]

    def assert_left_alone(self, process, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertIsNone(process.poll(), self.messages()[-1:])
            time.sleep(0.1)
        self.assertEqual(self.verdicts(), [])

    def ask(self, pid):
        done = subprocess.run([HANGSCOPE, "why", f"pid:{pid}"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        return done.returncode, done.stdout + done.stderr


class Frozen(FieldCase):
    def groups(self):
        """One that can be frozen in each hierarchy: its folder, how to freeze and thaw it."""
        for root, file, freeze, thaw in FREEZERS:
            group = pathlib.Path(root) / f"hangscope-{self.folder.name}"
            try:
                group.mkdir()
            except OSError:
                continue
            if not (group / file).exists():
                group.rmdir()
            else:
                self.addCleanup(self.remove, group)
                yield group, lambda path=group / file: path.write_text(freeze), lambda path=group / file: path.write_text(thaw)

    @staticmethod
    def remove(group):
        for _ in range(50):
            for pid in (group / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            try:
                return group.rmdir()
            except OSError:
                time.sleep(0.05)

    def hold(self, group, program, before="exec", after=""):
        """The program in the group; without `before` its shell waits for it, outside."""
        inner = f"echo $$ >{group}/cgroup.procs; exec {shlex.join(map(str, program))}"
        return ["sh", "-c", f"{before} sh -c {shlex.quote(inner)}{after}"]

    def check(self, *options, **shell):
        any_group = False
        for group, freeze, thaw in self.groups():
            any_group = True
            with self.subTest(str(group.parent)):
                self.log.unlink(missing_ok=True)
                process = self.start(self.hold(group, [PYTHON, "-uc", PING_PONG, self.folder / "gate"], **shell), *options)
                self.assertEqual(process.stdout.readline(), b"working\n")
                pid = (group / "cgroup.procs").read_text().split()[0]
                time.sleep(0.3)
                freeze()
                try:
                    self.assert_left_alone(process, 3.5 * STALL_S)
                    self.assertEqual((self.messages()[-1]["state"], self.messages()[-1]["confidence"]), ("silent", "possible"))
                    status, said = self.ask(pid)
                    self.assertNotIn("deadlock", said)
                    self.assertIn("frozen by its control group", said)
                finally:
                    thaw()
                time.sleep(0.5)
                self.gate.touch()
                outcome = self.wait(process)
                self.assertEqual((outcome.status, outcome.hangs), (7, []))
                self.gate.unlink()
        if not any_group:
            self.skipTest("no control group can be made here")

    def test_in_the_middle_of_its_work(self):
        self.check()

    def test_while_another_waits_for_its_end(self):
        self.check(before="", after="; exit $?")

    def test_where_output_is_expected(self):
        self.check("--expect-output", 1.5)


class Unprivileged(FieldCase):
    def test_who_waits_for_one_who_may_not_be_looked_into_is_left_alone(self):
        if os.getuid() != 0:
            self.skipTest("not root")
        if subprocess.run(["test", "-x", HANGSCOPE], user="nobody").returncode != 0:
            self.skipTest(f"{HANGSCOPE} may not be run by nobody")
        for folder in self.folder, self.runtime:
            shutil.chown(folder, "nobody")
        outcome = self.run_program([PYTHON, "-uc", HIDDEN_WRITER], "--stall", STALL_S, "--on-hang", "kill", "--act-on", "likely", user="nobody")
        self.assertEqual((outcome.status, outcome.hangs), (7, []))


class Busy(FieldCase):
    def test_machine_leaves_a_program_little_time(self):
        for _ in range(20):
            busy = subprocess.Popen(["nice", "-n", "19", PYTHON, "-c", "while True: pass"])
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            def run(case):
                prefix, log = self.folder / case, self.folder / f"{case}.jsonl"
                subprocess.run(["nice", "-n", "19", HANGSCOPE, "run", "--stall", str(STALL_S), "--on-hang", "kill", "--timeout", "4", "--json", "--log", log,
                                "--prefix", prefix, "--", ZOO, case, "line"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60)
                return [m for m in map(json.loads, log.read_text().splitlines()) if m["type"] == "verdict" and m["hang"]]
            self.assertEqual(list(pool.map(run, ["hand-over", "slow-hand-over", "compute"])), [[], [], []])


class Time(FieldCase):
    def test_in_a_namespace_of_its_own_tells_how_long_a_wait_lasts(self):
        before = ["unshare", "-T", "--boottime", "100000", "--monotonic", "50000", "--fork"]
        if shutil.which("unshare") is None or subprocess.run([*before, "true"], capture_output=True).returncode != 0:
            self.skipTest("no time namespace can be made here")
        done = subprocess.run([*before, HANGSCOPE, "run", "--stall", str(STALL_S), "--on-hang", "kill", "--heartbeat", "0", "--prefix", self.prefix, "--",
                               ZOO, "abba", "line"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 124)
        self.assertRegex(done.stderr, r"left +waits \d\.\d s for mutex lock_b")


if __name__ == "__main__":
    main()
