"""A real simulator whose guest records: `hangscope run` sees its trace, its mailboxes and its threads, and must say each
time what the surest of them knows; `hangscope why` of the snapshot the same.

What is planted is drawn from a seed, as in test_matrix.py.
"""
import concurrent.futures
import dataclasses
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import typing

import test_matrix
from said import Expected, Said, read_messages, said_by_run, said_by_why
from support import BUILD, HANGSCOPE, LONG, SEED, Case, main
from watched_targets import ROLES, device_command, new_folder, start_device

STALL_S = 2.0
WITHIN_S, MARGIN_S = 1.0, 3.0  # a verdict, after the stall time; what a busy machine may add
CONTROL_S = 30 if LONG else 6
TIMES = 20 if LONG else 2  # of the deadlock
OTHERS = 3 if LONG else 1
AT_ONCE = 2  # a guest of five or ten harts that prints each of its steps
GIVE_UP_S = 60


def lock_of(core):
    return f"{ROLES[core % 5]}_lock"


def two_locks(place):
    return Expected("deadlock of 2", "", "deadlock", [f"core {place['core']} ", f"core {place['core'] // 5 * 5 + place['other']} "],
                    [lock_of(place["core"]), lock_of(place["other"])], "certain")


def circle(place):
    first = place["core"] // 5 * 5
    return Expected("deadlock of 5", "", "deadlock", [f"core {first + role} " for role in range(5)], ["cb3", "credit"], "certain")


def kept_lock(place):
    return Expected("kept lock", "", "starved", [f"core {place['core'] // 5 * 5 + place['other']} "], [lock_of(place["core"])], "likely")


def failed_assert(place):
    return Expected("assert", "", "fault", [f"core {place['core']} "], ["the block is in order"], "certain")


def nothing(place):
    return Expected("", "")


# Name, fault, how its place is drawn, what is expected, how often. "Found": without --scope and without a file for the guest's RAM.
CASES = [
    ("deadlock of 2", "DEADLOCK2", test_matrix.a_pair, two_locks, TIMES),
    ("deadlock of 5", "DEADLOCK5", lambda rng, place, node: test_matrix.any_role(rng, place, node, [test_matrix.WRITER]), circle, OTHERS),
    ("kept lock", "KEPT_LOCK", test_matrix.at_end(test_matrix.a_pair), kept_lock, OTHERS),
    ("assert", "ASSERT", test_matrix.any_role, failed_assert, OTHERS),
    ("deadlock of 2, found", "DEADLOCK2", test_matrix.a_pair, two_locks, OTHERS),
    ("healthy, found", "NONE", test_matrix.nothing, nothing, OTHERS),
    ("healthy", "NONE", test_matrix.nothing, nothing, OTHERS),
    ("slow stage", "SLOW", test_matrix.with_value(test_matrix.any_role, int(1500 * STALL_S)), nothing, OTHERS),
]


@dataclasses.dataclass
class Run:
    name: str
    seed: int
    expected: Expected
    by_run: Said = dataclasses.field(default_factory=Said)
    by_why: Said = dataclasses.field(default_factory=Said)
    elapsed_s: typing.Optional[float] = None  # from the plant to the verdict
    wrong: typing.List[str] = dataclasses.field(default_factory=list)

    def line(self):
        wanted = f"{self.expected.kind} {self.expected.confidence}" if self.expected.is_hang else "-"
        took = "" if self.elapsed_s is None else f"{self.elapsed_s - STALL_S:+.1f} s"
        return f"{self.name:<34} {self.seed % 1000:>3} {'QEMU':<6} {wanted:<21} {self.by_run.brief():<21} {self.by_why.brief():<21} {took:>6}  {'WRONG' if self.wrong else 'ok'}"


def perform(name, fault, draw, expect, seed, where):
    rng = random.Random(f"{name}/{seed}")
    place = dict(nodes=1, isa=rng.choice(["rv32", "rv64"]), block=rng.randint(20, 60))
    draw(rng, place, 0)
    run = Run(name, seed, expect(place))
    folder = new_folder(where)
    try:
        in_file = not name.endswith(", found")
        command, elf, ram = device_command(folder, fault, **place, options=["-d", "exec,nochain"], ram_in_file=in_file)
        watch(run, folder, command, elf, ram if in_file else None)
    except Exception as error:  # a table with a hole is better than none
        run.wrong.append(f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return run


def start(folder, command, *options):
    with open(folder / "console", "wb") as out:
        return subprocess.Popen([HANGSCOPE, "run", "--on-hang", "kill", "--stall", str(STALL_S), "--json", "--log", folder / "log.jsonl",
                                 "--prefix", folder / "ring", "--size", "20M", *options, "--", *command],
                                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)


def simulator_of(recorder):
    children = pathlib.Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()
    return next(int(child) for child in children if pathlib.Path(f"/proc/{child}/comm").read_text().startswith("qemu"))


def watch(run, folder, command, elf, ram):
    log, console = folder / "log.jsonl", folder / "console"
    recorder = start(folder, command, *(["--scope", f"file:{ram}"] if ram else []), "--elf", elf)
    begin, planted = time.monotonic(), None
    try:
        while recorder.poll() is None and time.monotonic() < begin + (GIVE_UP_S if run.expected.is_hang else CONTROL_S):
            if planted is None and b"planted:" in console.read_bytes():
                planted = time.time()
            time.sleep(0.05)
        ended = recorder.poll() is not None
        if not ended and not run.expected.is_hang:
            # What it says while it is looked at, too.
            target = f"file:{ram}" if ram else f"pid:{simulator_of(recorder)}"
            asked = subprocess.run([HANGSCOPE, "why", "--json", "--elf", elf, target], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            run.by_why = said_by_why([json.loads(line) for line in asked.stdout.splitlines()])
    finally:
        Case.end(recorder)
    run.by_run = said_by_run(read_messages(log))
    if run.expected.is_hang:
        snapshots = sorted(folder.glob("ring.snapshot-*"))
        asked = subprocess.run([HANGSCOPE, "why", "--json", "--elf", elf, snapshots[-1]], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        run.by_why = said_by_why([json.loads(line) for line in asked.stdout.splitlines()])
    run.wrong += [f"run: {text}" for text in run.expected.differences(run.by_run, by_run=True)]
    run.wrong += [f"why: {text}" for text in run.expected.differences(run.by_why, by_run=False)]
    status = recorder.returncode if ended else None
    if status != (124 if run.expected.is_hang else None):
        run.wrong.append(f"status {status}")
    if run.by_run.at and planted:
        run.elapsed_s = run.by_run.at - planted
        if run.elapsed_s > STALL_S + WITHIN_S + MARGIN_S:
            run.wrong.append(f"verdict {run.elapsed_s - STALL_S:.1f} s after the stall time")


class SimulatorMatrix(Case):
    def test_trace_mailboxes_and_threads_of_a_simulator_are_one_picture(self):
        self.need_firmware()
        begin = time.monotonic()
        work = [(name, fault, draw, expect, SEED + i) for name, fault, draw, expect, times in CASES for i in range(times)]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            runs = list(pool.map(lambda item: perform(*item, self.folder), work))
        told = [(run, said) for run in runs for said in (run.by_run, run.by_why) if said.hang]
        right = [run for run, _ in told if run.expected.is_hang and not run.wrong]
        precision = len(right) / len(told) if told else 1.0
        recall = len(right) / (2 * sum(run.expected.is_hang for run in runs))
        table = [run.line() for run in runs]
        table.append(f"simulator: {len(CASES)} cases, {len(runs)} runs, precision {precision:.3f}, recall {recall:.3f}, took {time.monotonic() - begin:.0f} s")
        text = "\n".join(table) + "\n"
        print("\n" + text)
        (pathlib.Path(BUILD) / "matrix-simulator.txt").write_text(text)
        names = {run.name: run.expected.is_hang for run in runs}
        self.account_verdicts("streams + scope + threads, QEMU", "run, why", sum(names.values()), sum(not hang for hang in names.values()), len(runs),
                              len(told), len(right), 2 * sum(run.expected.is_hang for run in runs),
                              [run.elapsed_s - STALL_S for run in runs if run.elapsed_s is not None], "the stall time")
        wrong = [f"{run.name}, seed {run.seed}:\n    " + "\n    ".join(run.wrong) for run in runs if run.wrong]
        if wrong:
            self.fail("\n" + "\n".join(wrong))
        self.account("a simulator's guest that hangs, known by its trace, its mailboxes and its threads", sum(run.expected.is_hang for run in runs),
                     "the surest says it, each time")

    def test_without_its_mailboxes_nobody_knows_of_the_deadlock_and_without_its_trace_they_do(self):
        """What the table rests on."""
        self.need_firmware()
        for with_scope, trace in (False, ["-d", "exec,nochain"]), (True, []):
            folder = self.folder / f"scope-{with_scope}"
            folder.mkdir()
            command, elf, ram = device_command(folder, "DEADLOCK2", core=2, other=1, block=30, options=trace)
            recorder = start(folder, command, "--scope", f"file:{ram}" if with_scope else "none", "--elf", elf)
            try:
                if with_scope:
                    self.until(lambda: said_by_run(read_messages(folder / "log.jsonl")).hang, GIVE_UP_S, "a verdict")
                else:
                    time.sleep(3 * STALL_S)
            finally:
                self.end(recorder)
            messages = read_messages(folder / "log.jsonl")
            said = said_by_run(messages)
            self.assertEqual(said.kind == "deadlock", with_scope, said)
            if with_scope:
                continue
            cores = {core["name"]: core for message in messages if message["type"] == "verdict" for core in message["cores"]}
            for hart in 1, 2:
                callers = [caller.split()[0] for caller in cores[f"hart {hart}"]["callers"]]
                self.assertEqual((cores[f"hart {hart}"]["function"], callers), ("lock_acquire", ["lock_in_turn", "maybe_fail", "compute_block", "hart_main"]))

    def test_a_copy_of_a_guests_memory_is_found_only_by_who_asks_for_it(self):
        """In a tool of C++ or Python it lies behind the header of some object, at no round address."""
        self.need_firmware()
        guest = start_device(self.folder, "DEADLOCK2", core=2, other=1, block=30)
        self.addCleanup(guest.kill)
        guest.until_planted()
        time.sleep(0.5)
        shutil.copy(self.folder / "ram", self.folder / "copy")
        guest.kill()
        tool = [sys.executable, "-c", f"import os, time; ram = open({str(self.folder / 'copy')!r}, 'rb').read(); print('pid', os.getpid(), flush=True); time.sleep(60)"]
        recorder = start(self.folder, tool, "--elf", guest.elf)
        try:
            said = self.until(lambda: re.search(r"pid (\d+)", (self.folder / "console").read_text()), GIVE_UP_S, "the tool has read it")
            asked = subprocess.run([HANGSCOPE, "why", f"pid:{said[1]}", "--elf", guest.elf], capture_output=True, text=True, timeout=60)
            self.assertEqual(asked.returncode, 1)
            self.assertRegex(asked.stdout, r"HANG: deadlock, 2 of 5 cores wait for each other \(certain\)")
            time.sleep(3 * STALL_S)
        finally:
            self.end(recorder)
        messages = read_messages(self.folder / "log.jsonl")
        self.assertFalse(said_by_run(messages).hang, messages)

    def test_a_hart_of_the_trace_is_its_core_of_the_scope(self):
        self.need_firmware()
        command, elf, ram = device_command(self.folder, "DEADLOCK2", core=2, other=1, block=30, options=["-d", "exec,nochain"])
        recorder = start(self.folder, command, "--scope", f"file:{ram}", "--elf", elf)
        try:
            hangs = self.until(lambda: [m for m in read_messages(self.folder / "log.jsonl") if m["type"] == "verdict" and m["hang"]], GIVE_UP_S, "a verdict")
        finally:
            self.end(recorder)
        evidence = "\n".join(hangs[-1]["evidence"])
        for core in 1, 2:
            self.assertIn(f"the trace: hart {core}  ", evidence)


if __name__ == "__main__":
    main()
