"""The zoo: `hangscope why` asked about many small programs that hang, and about as many that only look so.

zoo_cases/ says what is right, zoo/so_far.txt what is not right yet. A case that is not right and does not stand there fails; one
that stands there and is right is named, so that the list gets shorter. HANGSCOPE_ZOO_WRITE=1 writes the list for all cases that
were asked.

Without HANGSCOPE_LONG=1 one hang and one control of each class are asked, chosen by HANGSCOPE_SEED. HANGSCOPE_ZOO has patterns of
CLASS/NAME, such as 'locks/*' or 'spins/circular*,partial/*', separated by commas. The matrix of the classes is printed, and written to
zoo.txt in the build folder.
"""
import collections
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import fnmatch
import itertools
import os
import pathlib
import pty
import random
import re
import select
import shlex
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import typing

from support import BUILD, HANGSCOPE, LONG, ROOT, SANITIZED, SEED, Case, main, until
from zoo_cases import CLASSES, LONG_ONLY, ZooCase, all_cases

PATTERNS = os.environ.get("HANGSCOPE_ZOO", "")
WRITES = os.environ.get("HANGSCOPE_ZOO_WRITE") == "1"
ZOO = pathlib.Path(BUILD) / "tests/zoo"
SOURCES = ROOT / "tests/system/zoo"
SO_FAR = SOURCES / "so_far.txt"
AT_ONCE = 4
HANG_ASKED = 3  # at most, until it is right: a machine that is busy makes threads move
CONTROL_ASKED = 5 if LONG else 1
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")
ONE_COMPUTES = threading.Lock()
HEADER = """# What `hangscope why` does not say right yet, of the cases in zoo_cases/: class/name, and what it says.
# Numbers of processes are N. HANGSCOPE_LONG=1 HANGSCOPE_ZOO_WRITE=1 python3 test_zoo.py writes it.
"""


# --- What is seen of a process from outside.

def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""


def family_of(mark):
    """The processes that carry a mark in their environment, as all have that a case has started."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                # Of a process whose first thread has ended, that of another one.
                if any(mark in pathlib.Path(f"/proc/{entry}/task/{task}/environ").read_bytes() for task in os.listdir(f"/proc/{entry}/task")[:2]):
                    found.append(int(entry))
    return found


def threads_of(pids):
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                status = read(f"/proc/{pid}/task/{task}/status")
                if status:
                    found[int(task)] = status
    return found


def motion_of(pids):
    """The state of each thread, and how often it was switched unless it runs."""
    found = {}
    for thread, status in threads_of(pids).items():
        state = re.search(r"State:\t(.)", status)[1]
        found[thread] = (state, () if state == "R" else tuple(re.findall(r"ctxt_switches:\t(\d+)", status)))
    return found


def has_run(thread):
    """Whether it has used a processor for long enough to be in its loop."""
    fields = read(f"/proc/{thread}/stat").rpartition(")")[2].split()
    return len(fields) > 12 and int(fields[11]) + int(fields[12]) >= 5  # hundredths of a second


@dataclasses.dataclass
class Picture:
    """What must be the same after hangscope has looked."""
    signals: typing.Dict[int, typing.Tuple[str, ...]]
    threads: typing.Dict[int, int]
    files: typing.Dict[int, int]

    @classmethod
    def of(cls, pids):
        signals = {thread: tuple(re.findall(r"(?:Sig|Shd)(?:Ign|Cgt|Blk|Pnd):\t\w+", status)) for thread, status in threads_of(pids).items()}
        threads, files = {}, {}
        for pid in pids:
            with contextlib.suppress(OSError):
                threads[pid] = len(os.listdir(f"/proc/{pid}/task"))
                files[pid] = len(os.listdir(f"/proc/{pid}/fd"))
        return cls(signals, threads, files)

    def differences(self, after, restless):
        def kept(signals):  # of who goes on, what comes to it and what it blocks for a while changes
            return [text for text in signals if not restless or text.startswith(("SigIgn", "SigCgt"))]
        wrong = [f"signals of {thread}: {was} became {after.signals[thread]}"
                 for thread, was in self.signals.items() if thread in after.signals and kept(after.signals[thread]) != kept(was)]
        for what, before, now in ("threads", self.threads, after.threads), ("files", self.files, after.files):
            if not restless and before != now:
                wrong.append(f"{what}: {before} became {now}")
        return wrong


# --- What hangscope said.

@dataclasses.dataclass
class Answer:
    status: int
    text: str
    seconds: float
    stop_ms: float

    @property
    def verdict(self):
        """The lines above the process that was looked at."""
        return re.split(r"^process \d+ \(", self.text, maxsplit=1, flags=re.MULTILINE)[0]

    @property
    def line(self):
        return self.text.partition("\n")[0]

    @property
    def brief(self):
        return re.sub(r"\d+\.\d+ s\b", "T s", re.sub(r"0x[0-9a-f]+|\b\d{3,}\b", "N", self.line))[:150]

    def wrong_for(self, case):
        if not case.is_hang:
            return [f"false alarm: {self.brief}"] if self.status == 1 or re.search("^HANG", self.text, re.MULTILINE) else []
        wrong = []
        if not re.match(case.options.get("line") or f"HANG: (?:partial: )?(?:{case.kind})", self.line):
            wrong.append("kind")
        if self.status != (case.options.get("status", 1) if case.options.get("status", 1) is not None else self.status):
            wrong.append(f"status {self.status}")
        wrong += [f"no {name}" for name in case.names if not re.search(name, self.verdict)]
        return [f"{', '.join(wrong)}: {self.brief}"] if wrong else []


def ask(pid):
    begin = time.monotonic()
    done = subprocess.run([HANGSCOPE, "why", f"pid:{pid}"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60)
    seconds = time.monotonic() - begin
    stops = [float(number) * {"µs": 0.001, "us": 0.001, "ms": 1, "s": 1000}[unit]
             for number, unit in re.findall(r"stopped for ([\d.]+) (µs|us|ms|s)\b", done.stdout)]
    return Answer(done.returncode, done.stdout + done.stderr, seconds, max(stops, default=0))


# --- A case.

def build(source, compiler, *options):
    """A program that another compiler makes of one of the zoo's sources, made when it is needed for the first time."""
    name = re.sub(r"\W+", "_", " ".join([source, compiler, *options]))
    path = ZOO / "late" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max((SOURCES / source).stat().st_mtime, (SOURCES / "zoo.h").stat().st_mtime)
        if not path.exists() or path.stat().st_mtime < newest:
            words = [compiler, *options] if compiler == "go" else [compiler, "-g", *options]
            into = "-d" if compiler == "javac" else "-o"
            done = subprocess.run([*words, into, str(path), str(SOURCES / source)], capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{compiler} of {source}: {done.stderr[:500]}")
    return path


def missing(case):
    """Why a case cannot run here; empty: it can."""
    needs = case.options.get("needs", "").split() + list(case.options.get("build", ("", ""))[1:2])
    lacks = [command for command in needs if command and shutil.which(command) is None]
    if lacks:
        return f"no {' '.join(lacks)} here"
    if case.options.get("root") and os.getuid() != 0:
        return "not root"
    if case.options.get("freeze") and not os.access(FREEZER, os.W_OK):
        return "no freezer of control groups"
    words = shlex.split(case.command)
    programs = re.findall(r"\bzoo_\w+", case.command)
    if "build" not in case.options and programs and not (ZOO / programs[0]).exists():
        return f"{programs[0]} was not built: its library's headers were not here"
    if words[0] == "unshare":
        alone = ["unshare", *itertools.takewhile(lambda word: word.startswith("-"), words[1:]), "true"]
        if subprocess.run(alone, capture_output=True).returncode != 0:
            return f"{' '.join(alone)} fails"
    return ""


class NotHere(Exception):
    """What a program needs and this machine does not let it have."""


@dataclasses.dataclass
class Result:
    case: ZooCase
    skipped: str = ""
    wrong: typing.List[str] = dataclasses.field(default_factory=list)  # of what it said
    broken: typing.List[str] = dataclasses.field(default_factory=list)  # the program was changed, or the case itself is not right
    note: str = ""  # of a control
    answers: typing.List[Answer] = dataclasses.field(default_factory=list)

    @property
    def state(self):
        return f"skipped: {self.skipped}" if self.skipped else "; ".join(self.broken + self.wrong) or self.note or "ok"


class Performance:
    """One case, from the start of its program to the end of all it has started."""
    numbers = itertools.count()

    def __init__(self, case, place):
        self.case, self.place, self.result = case, place, Result(case)
        self.mark = f"HANGSCOPE_ZOO_CASE={os.getpid()}-{next(self.numbers)}."
        self.random = random.Random(f"{SEED}/{case.path}")
        self.process = None
        self.cleanup = contextlib.ExitStack()

    def perform(self):
        self.result.skipped = missing(self.case)
        if self.result.skipped:
            return self.result
        try:
            with self.cleanup:
                if self.case.options.get("cpu"):
                    self.cleanup.enter_context(ONE_COMPUTES)
                self.folder = pathlib.Path(tempfile.mkdtemp(prefix="case-", dir=self.place))
                self.cleanup.callback(self.end)
                self.start()
                (self.hang if self.case.is_hang else self.control)()
        except NotHere as reason:
            self.result.skipped = str(reason)
        except Exception as error:  # the other cases go on
            self.result.broken.append(f"{type(error).__name__}: {error}")
        if LONG or PATTERNS:  # which take a while
            print(f"{time.strftime('%H:%M:%S')} {self.case.path}: {self.result.state}", flush=True)
        return self.result

    def start(self):
        options = self.case.options
        words = shlex.split(self.case.command.replace("{zoo}", str(ZOO)).replace("{programs}", str(SOURCES)).replace("{folder}", str(self.folder)))
        if "build" in options:
            program = str(build(*options["build"]))
            is_java = options["build"][1] == "javac"  # which makes a folder of classes
            words = [*(["java", *options.get("java", "").split(), "-cp", program, pathlib.Path(options["build"][0]).stem] if is_java else [program]), *words]
        elif words[0].startswith("zoo_"):
            words[0] = str(ZOO / words[0])
        name, _, value = self.mark.partition("=")
        environment = {key: text for key, text in os.environ.items() if key not in ("CI", "MAKEFLAGS", "MAKELEVEL")}
        environment.update({name: value, "TERM": "dumb"})
        self.process = subprocess.Popen(words, cwd=self.folder, env=environment, stdin=self.stdin(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.cleanup.callback(self.process.stdout.close)
        for _ in range(options.get("lines", 1)):
            line = self.line()
            if line.startswith(b"skip: "):
                raise NotHere(line.decode()[6:].strip())
            if line != b"ready\n":
                raise RuntimeError(f"said {line!r} instead of ready")
        if "freeze" in options:
            self.freeze(options["freeze"])

    def line(self):
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], 20)[0]:
                raise RuntimeError(f"said nothing for 20 s after {line!r}")
            byte = os.read(self.process.stdout.fileno(), 1)
            if not byte:
                raise RuntimeError(f"ended after {line!r}")
            line += byte
        return line

    def stdin(self):
        kind = self.case.options.get("stdin")
        if kind is None:
            return subprocess.DEVNULL
        ours, its = pty.openpty() if kind == "tty" else reversed(os.pipe())
        self.cleanup.callback(os.close, ours)
        self.cleanup.callback(os.close, its)
        os.set_inheritable(ours, False)
        return its

    def named(self, name):
        return until(lambda: next((pid for pid in self.family() if read(f"/proc/{pid}/comm").strip() == name), None), 5)

    def freeze(self, name):
        group = FREEZER / f"hangscope-{self.mark.partition('=')[2]}"
        group.mkdir()
        self.cleanup.callback(group.rmdir)
        (group / "cgroup.procs").write_text(str(self.named(name)))
        (group / "freezer.state").write_text("FROZEN")

        def thaw():
            (group / "freezer.state").write_text("THAWED")
            for pid in (group / "cgroup.procs").read_text().split():
                (FREEZER / "cgroup.procs").write_text(pid)
        self.cleanup.callback(thaw)
        if not until(lambda: (group / "freezer.state").read_text() == "FROZEN\n", 5):
            raise RuntimeError("it was not frozen")

    def family(self):
        return family_of(self.mark.encode())

    def asked_pid(self):
        name = self.case.options.get("ask")
        if name is None:
            return self.process.pid
        pid = self.named(name)
        if pid is None:
            raise RuntimeError(f"no process {name}")
        return pid

    def settle(self):
        """Waits until nothing of it moves for 50 ms, but what spins; of several processes, one may be a short sleep."""
        def stands():
            family = self.family()
            before = motion_of(family)
            time.sleep(0.05 if len(family) == 1 else 0.25)
            after = motion_of(self.family())
            return before == after and all(state != "R" or has_run(thread) for thread, (state, _) in after.items())
        if self.case.options.get("restless"):
            time.sleep(0.3)
        elif not until(stands, 15):
            self.result.broken.append("does not come to rest")

    def ask(self):
        pid, restless = self.asked_pid(), self.case.options.get("restless")
        before = Picture.of(self.family())
        answer = ask(pid)
        wrong = before.differences(Picture.of(self.family()), restless)
        if wrong and not self.case.is_hang:  # those go on, and may have changed it themselves
            answer = ask(pid)
            wrong = [text for text in before.differences(Picture.of(self.family()), restless) if text in wrong]
        self.result.broken += wrong
        self.result.answers.append(answer)
        return answer

    def hang(self):
        self.settle()
        time.sleep(self.case.options.get("age", 0))
        for _ in range(HANG_ASKED):
            self.result.wrong = self.ask().wrong_for(self.case)
            if not self.result.wrong:
                break
            time.sleep(0.3)
        self.stay_alive()

    def control(self):
        later = self.case.options.get("later")
        if later:
            name, _, value = self.mark.partition("=")
            subprocess.Popen(["sh", "-c", f"sleep 1; {later.replace('{folder}', str(self.folder))}"], cwd=self.folder, env={**os.environ, name: value},
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        for _ in range(CONTROL_ASKED):
            time.sleep(self.random.uniform(0.02, 0.5))
            answer = self.ask()
            self.result.wrong += answer.wrong_for(self.case)
            if answer.text.startswith("perhaps") or "(possible)" in answer.verdict:
                self.result.note = f"possible: {answer.brief}"
            elif answer.status != 0:
                self.result.note = f"status {answer.status}: {answer.brief}"
        self.stay_alive()

    def stay_alive(self):
        """It still stands, and nobody was harmed."""
        if self.process.poll() is not None and not self.case.options.get("ends"):
            self.result.broken.append(f"ended with {self.process.returncode}")

    def end(self):
        def kill():
            left = [pid for pid in self.family() if re.search(r"State:\t[^ZX]|Threads:\t(?!1\n)", read(f"/proc/{pid}/status"))]
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return not left
        until(kill, 5)
        if self.process:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


# --- The list of what is not right yet, and the matrix.

def read_so_far():
    lines = [line for line in read(SO_FAR).splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def write_so_far(results):
    listed = read_so_far()
    for result in results:
        text = "; ".join(dict.fromkeys(result.wrong)) or result.note
        listed.pop(result.case.path, None)
        if text:
            listed[result.case.path] = text
    order = {case.path: i for i, case in enumerate(all_cases())}
    lines = [f"{path}: {text}" for path, text in sorted(listed.items(), key=lambda item: order.get(item[0], 0)) if path in order]
    SO_FAR.write_text(HEADER + "\n".join(lines) + "\n")


def matrix(results):
    """A line for each class, and one for all."""
    rows = [("class", "hangs", "right", "controls", "quiet", "possible", "alarms", "median", "longest", "stopped", "skipped")]
    for name in [*CLASSES, "all"]:
        of = [result for result in results if name in (result.case.kind_of, "all")]
        done = [result for result in of if not result.skipped]
        hangs, controls = ([result for result in done if result.case.is_hang == is_hang] for is_hang in (True, False))
        seconds = [answer.seconds for result in done for answer in result.answers]
        stops = [answer.stop_ms for result in done for answer in result.answers]
        if of:
            rows.append((name, len(hangs), sum(not result.wrong for result in hangs), len(controls),
                         sum(not result.wrong and not result.note for result in controls), sum(not result.wrong and bool(result.note) for result in controls),
                         sum(bool(result.wrong) for result in controls), f"{statistics.median(seconds or [0]):.2f} s", f"{max(seconds, default=0):.2f} s",
                         f"{max(stops, default=0):.1f} ms", len(of) - len(done)))
    return [f"{row[0]:<14}" + "".join(f"{cell!s:>10}" for cell in row[1:]) for row in rows]


def chosen():
    """Those that HANGSCOPE_ZOO names; all in a long run; else a hang and a control of each class but the LONG ones."""
    cases = list(all_cases())
    if PATTERNS:
        return [case for case in cases if any(fnmatch.fnmatchcase(case.path, pattern) for pattern in PATTERNS.split(","))]
    if LONG or WRITES:
        return cases
    groups = collections.defaultdict(list)
    for case in cases:
        if case.kind_of not in LONG_ONLY and not missing(case):
            groups[case.kind_of, case.is_hang].append(case)
    return [random.Random(f"{SEED}/{key}").choice(group) for key, group in groups.items()]


class Zoo(Case):
    def test_each_case_has_a_name_of_its_own(self):
        paths = [case.path for case in all_cases()]
        self.assertEqual([], [path for path, count in collections.Counter(paths).items() if count > 1 or ": " in path])
        for name in CLASSES:
            for is_hang in (True, False):
                self.assertTrue([case for case in all_cases() if (case.kind_of, case.is_hang) == (name, is_hang)], name)
        self.assertEqual([], sorted(set(read_so_far()) - set(paths)), "these are in so_far.txt only")

    def test_hangs_are_named_and_others_left_alone(self):
        if SANITIZED:
            self.skipTest("the programs are the same, and hangscope is slower")
        cases = chosen()
        self.assertTrue(cases, f"no case is called {PATTERNS}")
        begin = time.monotonic()
        order = sorted(range(len(cases)), key=lambda i: not cases[i].options.get("cpu"))  # they queue, so they begin first
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            done = list(pool.map(lambda i: (i, Performance(cases[i], self.folder).perform()), order))
        results = [result for _, result in sorted(done, key=lambda item: item[0])]
        listed = read_so_far()
        lines = []
        for result in results:
            of = "hang   " if result.case.is_hang else "control"
            seconds, stop_ms = (max((getattr(answer, what) for answer in result.answers), default=0) for what in ("seconds", "stop_ms"))
            lines.append(f"{of}  {result.case.path:<58} {seconds:6.2f} s {stop_ms:6.1f} ms  {result.state}")
        performed = [result for result in results if not result.skipped]
        better = [] if WRITES else [result.case.path for result in performed if result.case.path in listed and not result.wrong and not result.note and not result.broken]
        text = "\n".join([*lines, "", *matrix(results), *[f"right now, and still listed in so_far.txt: {path}" for path in better],
                          f"took {time.monotonic() - begin:.0f} s"]) + "\n"
        print("\n" + text)
        (pathlib.Path(BUILD) / "zoo.txt").write_text(text)
        if WRITES:
            write_so_far(performed)
            listed = read_so_far()
        wrong = [f"{result.case.path} ({result.case.command}): {'; '.join(result.broken + result.wrong)}\n"
                 + "".join(answer.text for answer in result.answers[-1:])
                 for result in performed if result.broken or (result.wrong and result.case.path not in listed)]
        if wrong:
            self.fail("\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
