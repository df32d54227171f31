"""hang_cases.py, each case under `hangscope run --on-hang kill`, and asked about with `hangscope why` while it stands:
both must say what is expected, and so the same.

A line of the table for each run; in the end precision and recall, which must both be 1. HANGSCOPE_MATRIX_CASES=PATTERN
takes only some cases, of those for the long run as well; HANGSCOPE_LONG=1 all, with three seeds, and lets controls stand
for 30 seconds once.
"""
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import fnmatch
import itertools
import json
import os
import pathlib
import pty
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import typing

from hang_cases import CONTROLS, FILES, HANGS, IDLE
from said import Expected, Said, read_messages, said_by_run, said_by_why
from support import BUILD, HANGSCOPE, LONG, SEED, Case, main, until

PATTERN = os.environ.get("HANGSCOPE_MATRIX_CASES", "*")
SEEDS = range(SEED, SEED + (3 if LONG else 1))
AT_ONCE = 10  # most of what they do is sleep
STALL_S = 2.0  # of a hang, so that hangscope why can be asked before
CONTROL_STALL_S = 1.0
CONTROL_S = 4
LONG_CONTROL_S = 30  # of the first seed, in the long run
WITHIN_S = 1.0  # after the stall time, a verdict
MARGIN_S = 4.0  # what a busy machine may add to that; the median must do with an eighth
SLOW_START_S = 30  # what a launcher like npm may take there until its program hangs
TOOLS = BUILD + "/tests"
ZOO = TOOLS + "/hang_zoo"
PYTHON = "/usr/bin/python3"
CPU_GROUPS = [pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")]


# --- The cases.

def all_cases():
    for name, command, kind, who, what, confidence, *options in HANGS:
        yield Expected(name, command, kind, who.split(), what.split(), confidence, options=options[0] if options else {})
    for cases in IDLE, CONTROLS:
        for name, command, status, *options in cases:
            yield Expected(name, command, status=status, idle=cases is IDLE, options=options[0] if options else {})


def is_wanted(case):
    return fnmatch.fnmatch(case.name, PATTERN) and (LONG or PATTERN != "*" or not case.options.get("long"))


def fill(text, folder=""):
    for name, path in ("zoo", ZOO), ("tests", TOOLS), ("python", PYTHON), ("folder", folder):
        text = text.replace("{" + name + "}", str(path))
    return text


def missing(case):
    """Why a case cannot run here; empty: it can."""
    needs = [shlex.split(fill(case.command))[0], *case.options.get("needs", "").split()]
    lacks = [command for command in needs if shutil.which(command) is None]
    if lacks:
        return f"no {' '.join(lacks)} here"
    if os.getuid() != 0 and (needs[0] in ("su", "sudo") or case.options.get("user") or case.options.get("root")):
        return "not root"
    user = case.options.get("user")
    if user and subprocess.run(["test", "-x", HANGSCOPE], user=user).returncode != 0:
        return f"{HANGSCOPE} may not be run by {user}"
    if needs[0] == "unshare":
        words = shlex.split(case.command)
        alone = ["unshare", *itertools.takewhile(lambda word: word.startswith("-"), words[1:]), "true"]
        if subprocess.run(alone, capture_output=True).returncode != 0:
            return f"{' '.join(alone)} fails"
    return ""


class NotHere(Exception):
    """What a case needs and this machine does not let it have."""



# --- A run.

ONE_COMPUTES = threading.Lock()

def descendants(pid):
    """Of a process: pid -> when it started, in seconds after the boot. Those that end meanwhile are left out."""
    found = {}
    with contextlib.suppress(OSError, IndexError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found[child] = started_at(child)
                found.update(descendants(child))
    return found


def started_at(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def is_same(pid, since):
    with contextlib.suppress(OSError, IndexError):
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return started_at(pid) == since and state not in "ZX"
    return False


def of_hangscope(pid):
    with contextlib.suppress(OSError):
        return os.path.samefile(f"/proc/{pid}/exe", HANGSCOPE)
    return False


@dataclasses.dataclass
class Run:
    expected: Expected
    seed: int
    skipped: str = ""
    by_run: Said = dataclasses.field(default_factory=Said)
    by_why: Said = dataclasses.field(default_factory=Said)
    status: typing.Optional[int] = None
    delay_s: typing.Optional[float] = None  # of the verdict, after it had stood still for the stall time
    wrong: typing.List[str] = dataclasses.field(default_factory=list)  # of neither or of both
    run_wrong: typing.List[str] = dataclasses.field(default_factory=list)
    why_wrong: typing.List[str] = dataclasses.field(default_factory=list)

    @property
    def ok(self):
        return not self.wrong and not self.run_wrong and not self.why_wrong

    def line(self):
        command = shlex.split(self.expected.command)
        source = "ours" if command[0].startswith(("{zoo}", "{tests}")) else "Debian"
        wanted = f"{self.expected.kind} {self.expected.confidence}" if self.expected.is_hang else "idle" if self.expected.idle else "-"
        took = "" if self.delay_s is None else f"{self.delay_s:+.1f} s"
        verdict = f"skipped: {self.skipped}" if self.skipped else "ok" if self.ok else "WRONG"
        return (f"{self.expected.name:<34.34} {self.seed % 1000:>3} {source:<6} {wanted:<21} {self.by_run.brief():<21} {self.by_why.brief():<21} {took:>6}  "
                f"{verdict}")


class Performance:
    """One case, from the start to the last process of it."""

    def __init__(self, case, seed, place, patience=1):
        self.case, self.run, self.patience = case, Run(case, seed), patience
        self.why_came_late = False
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="case-", dir=place))
        self.log, self.junit = self.folder / "log.jsonl", self.folder / "junit.xml"
        self.random = random.Random(f"{case.name}/{seed}")
        self.seen = {}  # every process of it that was seen, and when it started
        self.cleanup = contextlib.ExitStack()
        self.recorder = self.pid = self.cpu_group = None

    def perform(self):
        self.run.skipped = missing(self.case)
        if self.run.skipped:
            return self.run
        try:
            with self.cleanup:
                if self.case.options.get("cpu"):
                    self.cleanup.enter_context(ONE_COMPUTES)
                self.cleanup.callback(self.end)
                self.start()
                (self.hang if self.case.acts else self.stay)()
        except NotHere as reason:
            self.run.skipped = str(reason)
        except Exception as error:  # a table with a hole is better than none
            self.run.wrong.append(f"{type(error).__name__}: {error}")
        why_is_late = not self.run.run_wrong and (self.why_came_late or self.case.options.get("cpu"))
        run_is_late = self.run.run_wrong and all(wrong.startswith("verdict ") for wrong in self.run.run_wrong)
        if (self.run.why_wrong and why_is_late or run_is_late) and self.patience < 4:
            # A busy machine: hangscope run ended it before hangscope why had seen enough, or had no time itself.
            return Performance(self.case, self.run.seed, self.folder.parent, 2 * self.patience).perform()
        return self.run

    def start(self):
        home = self.folder / "home"  # of the program
        for name, text in FILES.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fill(text))
        user = self.case.options.get("user")
        if user:
            self.folder.chmod(0o755)
            for path in (self.folder, home):
                shutil.chown(path, user)
        command = fill(self.case.command, home).replace("{port}", str(self.outside(home)))
        if "cpu_percent" in self.case.options:
            command = command.replace("{cpu_group}", self.throttle(self.case.options["cpu_percent"]))
        stall = STALL_S * self.patience if self.case.is_hang else CONTROL_STALL_S
        if LONG:
            stall *= self.random.uniform(1, 1.5)
        self.stall_s = stall
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        if user:
            shutil.chown(runtime, user)
        environment = {name: value for name, value in os.environ.items() if name not in ("CI", "MAKEFLAGS", "MAKELEVEL")}
        environment.update(XDG_RUNTIME_DIR=str(runtime), XDG_STATE_HOME=str(self.folder / "state"), HOME=str(home), TERM="dumb")
        environment.update({name: fill(text, home) for name, text in self.case.options.get("env", {}).items()})
        errors = self.cleanup.enter_context(open(self.folder / "stderr", "wb"))
        self.recorder = subprocess.Popen(
            [HANGSCOPE, "run", "--on-hang", "kill", "--stall", f"{stall:.2f}", "--json", "--heartbeat", "0.5", "--log", str(self.log), "--junit", str(self.junit),
             "--prefix", str(self.folder / "ring"), "--size", "1M", *fill(self.case.options.get("run", ""), home).split(), "--", *shlex.split(command)],
            cwd=home, env=environment, user=user, stdin=self.stdin(), stdout=subprocess.DEVNULL, stderr=errors)
        self.pid = until(self.program, 10)
        if self.pid is None:
            raise TimeoutError("the program did not start in 10 s")

    def stdin(self):
        kind = self.case.options.get("stdin")
        if kind is None:
            return subprocess.DEVNULL
        ours, its = pty.openpty() if kind == "tty" else reversed(os.pipe())
        self.cleanup.callback(os.close, ours)
        self.cleanup.callback(os.close, its)
        if kind == "tty":  # somebody reads what is printed there
            threading.Thread(target=self.drain, args=(os.dup(ours),), daemon=True).start()
        os.set_inheritable(ours, False)
        return its

    @staticmethod
    def drain(screen):
        with contextlib.suppress(OSError):
            while os.read(screen, 4096):
                pass
        os.close(screen)

    def outside(self, home):
        """What there is besides the process tree; the port where somebody listens, who never says anything."""
        if "locks" in self.case.options:
            fcntl.flock(self.cleanup.enter_context(open(home / self.case.options["locks"], "w")), fcntl.LOCK_EX)
        peer = self.case.options.get("peer")
        if peer is None:
            return 0
        listening = self.cleanup.enter_context(socket.socket(socket.AF_UNIX if peer == "unix" else socket.AF_INET))
        listening.bind(str(home / "peer.socket") if peer == "unix" else ("127.0.0.1", 0))
        listening.listen()
        threading.Thread(target=self.listen, args=(listening,), daemon=True).start()
        return 0 if peer == "unix" else listening.getsockname()[1]

    @staticmethod
    def listen(listening):
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                connection.recv(1)

    def throttle(self, percent):
        """A group that gets so much of one CPU."""
        for parent in CPU_GROUPS:
            group = parent / f"hangscope-{self.folder.name}"
            with contextlib.suppress(OSError):
                group.mkdir()
                self.cpu_group = group
                if (group / "cpu.cfs_quota_us").exists():
                    (group / "cpu.cfs_quota_us").write_text(str(percent * 1000))
                else:
                    (group / "cpu.max").write_text(f"{percent * 1000} 100000")
                return str(group)
        raise NotHere("no control group of CPU time can be made")

    def program(self):
        """What hangscope run has started, as soon as it is no part of hangscope any more."""
        if self.recorder.poll() is not None:
            raise RuntimeError(f"hangscope run ended with {self.recorder.returncode}: {(self.folder / 'stderr').read_text()[-500:]}")
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{self.recorder.pid}/task").iterdir():
                for child in map(int, (task / "children").read_text().split()):
                    if not of_hangscope(child) and os.readlink(f"/proc/{child}/exe"):
                        return child
        return None

    def look(self):
        if self.pid is None:
            return {}
        tree = descendants(self.pid)
        with contextlib.suppress(OSError, IndexError):
            tree[self.pid] = started_at(self.pid)
        self.seen.update(tree)
        return tree

    def ask(self):
        done = subprocess.run([HANGSCOPE, "why", f"pid:{self.pid}", "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              user=self.case.options.get("user"))
        said = said_by_why([json.loads(line) for line in done.stdout.splitlines()])
        if not is_same(self.pid, self.seen.get(self.pid)):
            said.others = [other for other in said.others if not other.startswith("zombie")]
            if not said.hang or said.kind == "zombie":
                self.why_came_late = True
                return
        if done.returncode != int(said.hang):
            self.run.wrong.append(f"hangscope why ended with {done.returncode}: {done.stderr or done.stdout[:300]}")
        if not self.why_is_told():
            self.run.by_why = said

    def why_is_told(self):
        """It has said that it hangs, and not while its launcher was still at work."""
        said = self.run.by_why
        return said.hang and (said.state != "partial" or bool(self.case.options.get("partial")))

    def ended(self):
        return self.recorder.poll() is not None

    def hang(self):
        """Asks as soon as it stands, and then lets hangscope run end it."""
        begin = time.monotonic()
        time.sleep(0.8 + self.case.options.get("began", 0))
        tree = {}
        while not self.why_is_told() and not self.ended() and time.monotonic() < begin + self.stall_s:
            tree = self.look() or tree
            if not self.case.options.get("only_run"):
                self.ask()
            time.sleep(0.2)
        last = begin + self.stall_s + WITHIN_S + MARGIN_S + 2
        while not self.ended() and (time.monotonic() < last or said_by_run(read_messages(self.log)).hang and time.monotonic() < last + 20):
            before = set(tree)
            tree = self.look() or tree
            if set(tree) - before and time.monotonic() < begin + SLOW_START_S:  # a launcher is still at work
                last = max(last, time.monotonic() + self.stall_s + WITHIN_S + MARGIN_S + 2)
            if not self.why_is_told() and not self.case.options.get("only_run"):
                self.ask()  # a busy machine was late with it
            time.sleep(0.2)
        self.judge(ended=self.ended())
        if self.run.by_run.at is not None and tree:
            boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
            since = max(tree.values()) + self.case.options.get("began", 0)
            self.run.delay_s = self.run.by_run.at - boot - since - self.stall_s
            if self.run.delay_s > WITHIN_S + MARGIN_S:
                self.run.run_wrong.append(f"verdict {self.run.delay_s:.1f} s after the stall time")
        if self.ended():
            left = [pid for pid, since in self.seen.items() if is_same(pid, since)]
            if left:
                self.run.run_wrong.append(f"left processes {left} running")

    def stay(self):
        """Asks once or twice, and sees to it that it goes on."""
        ends = self.case.status is not None
        begin = time.monotonic()
        lasts = LONG_CONTROL_S if LONG and self.run.seed == SEEDS[0] else CONTROL_S
        if self.case.is_hang:
            lasts = max(lasts, self.stall_s + WITHIN_S + MARGIN_S)
        if "stops_recorder" in self.case.options:
            self.stop_for_a_while()
        for instant in (0.6 * lasts, lasts):
            while not self.ended() and time.monotonic() < begin + instant:
                self.look()
                time.sleep(0.2)
            if self.ended() or (instant == lasts and not LONG):
                break
            self.ask()
        if self.case.idle:  # which a busy machine comes to later
            until(lambda: self.ended() or said_by_run(read_messages(self.log)).state == "idle", 20)
        if ends:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.recorder.wait(60)
        self.judge(ended=self.ended())

    def stop_for_a_while(self):
        """The time in which nobody looked, or nobody could run, counts for nothing."""
        time.sleep(0.5)
        stopped = [self.recorder.pid] + [self.pid] * self.case.options.get("stops_program", False)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(self.case.options["stops_recorder"])
        for pid in reversed(stopped):
            os.kill(pid, signal.SIGCONT)

    def judge(self, ended):
        run, case = self.run, self.case
        messages = read_messages(self.log)
        run.by_run = said_by_run(messages)
        run.run_wrong += [f"run: {text}" for text in case.differences(run.by_run, by_run=True)]
        if not case.options.get("only_run"):
            run.why_wrong += [f"why: {text}" for text in case.differences(run.by_why, by_run=False)]
        run.status = self.recorder.returncode if ended else None
        wanted = 124 if case.acts else case.status
        if run.status != wanted:
            run.run_wrong.append(f"status {run.status} instead of {wanted}")
        if run.by_run.hang:
            self.judge_what_is_kept(ended)

    def judge_what_is_kept(self, ended):
        """Manifest and JUnit say what the verdict said, and so does hangscope why of the snapshot."""
        said = self.run.by_run
        for path in sorted(self.folder.glob("ring.snapshot-*/manifest.json"))[-1:]:
            kept = json.loads(path.read_text())["verdict"]
            if (kept["state"], kept["confidence"]) != (said.state, said.confidence):
                self.run.run_wrong.append(f"the manifest says {kept['state']} {kept['confidence']}")
            asked = subprocess.run([HANGSCOPE, "why", "--json", path.parent], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            again = said_by_run([json.loads(line) for line in asked.stdout.splitlines()])
            if (again.state, again.kind, again.confidence, asked.returncode) != (said.state, said.kind, said.confidence, 1):
                self.run.run_wrong.append(f"of the snapshot, hangscope why says {again.state}, {again.brief()} with status {asked.returncode}: {again.text}{asked.stderr}")
            break
        else:
            self.run.run_wrong.append("no snapshot")
        if ended and not re.search("<(failure|error)", self.junit.read_text()):
            self.run.run_wrong.append("JUnit tells of no failure")

    def end(self):
        self.look()
        if self.recorder:
            Case.end(self.recorder)
        for pid, since in self.seen.items():
            if is_same(pid, since):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        until(lambda: not any(is_same(pid, since) for pid, since in self.seen.items()), 2)
        if self.cpu_group:
            with contextlib.suppress(OSError):
                self.cpu_group.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)


# --- The table.

def ratio(part, whole):
    return 1.0 if whole == 0 else part / whole


def answers(runs):
    """Of both commands together: hangs that were told, told right, and there."""
    told = right = wanted = 0
    for run in runs:
        both = [(run.by_run, run.run_wrong)]
        if not run.expected.options.get("only_run"):
            both.append((run.by_why, run.why_wrong))
        for said, wrong in both:
            is_told = said.hang and not (said is run.by_why and said.kind == run.expected.options.get("why"))
            told += is_told
            wanted += run.expected.is_hang
            right += is_told and run.expected.is_hang and not wrong
    return told, right, wanted


def totals(runs):
    """Precision and recall."""
    told, right, wanted = answers(runs)
    return ratio(right, told), ratio(right, wanted)


def sources_of(case):
    return "scope + threads" if "--scope" in case.options.get("run", "") else "threads of process trees"


class Matrix(Case):
    def test_run_and_why_say_of_process_trees_what_is_so(self):
        self.folder.chmod(0o755)  # for cases of another user
        begin = time.monotonic()
        work = [(case, seed) for case in all_cases() for seed in SEEDS if is_wanted(case)]
        order = list(range(len(work)))
        random.Random(SEED).shuffle(order)
        order.sort(key=lambda i: not work[i][0].options.get("cpu"))  # they queue, so they begin first
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            done = list(pool.map(lambda i: (i, Performance(*work[i], self.folder).perform()), order))
        runs = [run for _, run in sorted(done, key=lambda item: item[0])]
        performed = [run for run in runs if not run.skipped]
        precision, recall = totals(performed)
        delays = sorted(run.delay_s for run in performed if run.delay_s is not None and run.expected.acts)
        names = {(run.expected.name, run.expected.command): run.expected.is_hang for run in performed}
        waits = f", verdict {delays[len(delays) // 2]:+.1f} s (median), {delays[-1]:+.1f} s (longest) after the stall time" if delays else ""
        summary = [f"processes: {len(names)} cases, {sum(not hang for hang in names.values())} of them controls, {len(performed)} runs, "
                   f"precision {precision:.3f}, recall {recall:.3f}{waits}",
                   f"took {time.monotonic() - begin:.0f} s, stall time {STALL_S:.0f} s, of controls {CONTROL_STALL_S:.0f} s; {len(runs) - len(performed)} skipped"]
        table = [f"{'case':<34} {'':>3} {'source':<6} {'expected':<21} {'run':<21} {'why':<21} {'after':>6}", *[run.line() for run in runs], *summary]
        text = "\n".join(table) + "\n"
        print("\n" + text)
        (pathlib.Path(BUILD) / "matrix-processes.txt").write_text(text)
        for sources in {sources_of(run.expected) for run in performed}:
            of = [run for run in performed if sources_of(run.expected) == sources]
            cases = {(run.expected.name, run.expected.command): run.expected.is_hang for run in of}
            self.account_verdicts(sources, "run, why", sum(cases.values()), sum(not hang for hang in cases.values()), len(of), *answers(of),
                                  [run.delay_s for run in of if run.delay_s is not None and run.expected.acts], "the stall time")
        wrong = [f"{run.expected.name} ({run.expected.command}), seed {run.seed}:\n    " + "\n    ".join(run.wrong + run.run_wrong + run.why_wrong)
                 for run in performed if not run.ok]
        if wrong:
            self.fail("\n" + "\n".join(wrong))
        self.assertEqual((1.0, 1.0), (precision, recall))
        if delays:
            self.assertLess(delays[len(delays) // 2], WITHIN_S + MARGIN_S / 8)
        self.account("a process tree that hangs, under hangscope run and asked by hangscope why", sum(run.expected.is_hang for run in performed),
                     "no hang missed, none called by another name, run and why agree")
        self.account_for("controls", "a process tree that looks hung", sum(not run.expected.is_hang for run in performed), "no alarm")


if __name__ == "__main__":
    main()
