"""Every fault that can be planted in the three examples, at a place drawn from a seed: what hangscope says of it, and
that it says nothing else, nor anything at all of targets that only look as if they hung.

What is expected comes from what was planted, as the target itself says when it does it. A line of the table for each
run; in the end precision and recall, which must both be 1:

    case, seed, target, what was planted, what was found

HANGSCOPE_MATRIX_SEED=N takes other seeds, HANGSCOPE_MATRIX_CASES=PATTERN only some cases, HANGSCOPE_LONG=1 lets controls
run for 60 seconds and hand over a million times.
"""
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import typing

from support import BUILD, HANGSCOPE, LONG, SEED, Case, main
from watched_targets import (BUS_REASONS, MAILBOX_WORDS, MATH, PACK, READER, ROLES, UNPACK, WRITER, new_folder,
                             start_device, start_pipeline, start_porting, start_sched, start_tiles)

SEEDS = 3 if LONG else 1
WHY_EVERY = 3  # of these seeds hangscope why is asked, of the others hangscope watch
FIRST_SEED = int(os.environ.get("HANGSCOPE_MATRIX_SEED", SEED))
PATTERN = os.environ.get("HANGSCOPE_MATRIX_CASES", "*")
AT_ONCE = 10  # most of them sleep
STALL_S = 1.0
CONTROL_S = 60 if LONG else 5
FOUND_WITHIN_S = 40  # on a busy machine
MOST_LATE = 4
# After a finding, for others that would be wrong.
AFTERWARDS_S = 1.5 * STALL_S
HANDOVERS = 500000 if LONG else 10 ** 9  # rounds, two each; the end comes before, or the control's
WAITS = {"lock": ("LCKW", "lock_acquire"), "front": ("CWFW", "cb_wait_front"), "back": ("CRBW", "cb_reserve_back"),
         "semaphore": ("NSW", "semaphore_wait")}
NATIVE_WAITS = {"lock": ("LCKW", "Acquire"), "front": ("CWFW", "Pop"), "back": ("CRBW", "Push"),
                "semaphore": ("NSW", "Wait")}


@dataclasses.dataclass
class Expected:
    """A finding that must come. Cores are numbers, tasks are "t" and their id."""
    kind: str
    subjects: typing.List
    partners: typing.Optional[typing.List] = None  # None: it has none, or they are not told
    at: typing.Dict = dataclasses.field(default_factory=dict)  # subject -> (waypoint, function)
    waits_for: typing.Dict = dataclasses.field(default_factory=dict)  # subject -> how the resource's name begins
    fault: typing.Dict = dataclasses.field(default_factory=dict)  # words of the finding's fault -> what they contain
    corruption: typing.Optional[typing.Tuple[str, str]] = None
    hang: bool = True
    summary: str = ""  # what its summary contains
    any_subject: bool = False  # one or more findings, each of some of the subjects
    partner_owes_others: bool = False  # who waits for the same partner for something else may be found, too


@dataclasses.dataclass
class Scenario:
    """What to start, and from what it says it did, what is expected."""
    start: typing.Callable  # folder, how often nobody watched in time -> Started
    expect: typing.Callable = lambda planted: []  # of a control, nothing
    plants: bool = True  # it says so
    kills: bool = False  # by the test, in mid-flight


def name_of(subject):
    return f"t{subject['task']}" if "task" in subject else subject.get("core")


def names_of(subjects):
    return [name_of(subject) for subject in subjects]


def is_rotation(found, wanted):
    return len(found) == len(wanted) and any(found == wanted[i:] + wanted[:i] for i in range(len(wanted)))


def differences(finding, wanted):
    """Why a finding is not the one that is expected; empty: it is."""
    wrong = []

    def check(what, right, found):
        if not right:
            wrong.append(f"{what}: {found}")

    subjects = names_of(finding["subjects"])
    check("kind", finding["kind"] == wanted.kind, finding["kind"])
    check("hang", finding["hang"] == wanted.hang, f"{finding['confidence']}, doubts {finding['doubts']}")
    check("summary", wanted.summary in finding["summary"], finding["summary"])
    if wanted.kind == "dead":
        pass  # all of it is
    elif wanted.any_subject:
        check("subjects", subjects and set(subjects) <= set(wanted.subjects), subjects)
    elif wanted.kind == "deadlock":
        check("cycle", is_rotation(subjects, wanted.subjects), subjects)
    else:
        check("subjects", sorted(map(str, subjects)) == sorted(map(str, wanted.subjects)), subjects)
    if wanted.partners is not None:
        check("partners", sorted(map(str, names_of(finding["partners"]))) == sorted(map(str, wanted.partners)), names_of(finding["partners"]))
    by_name = {name_of(subject): subject for subject in finding["subjects"]}
    for subject, (waypoint, function) in wanted.at.items():
        found = by_name.get(subject, {})
        check("waypoint", found.get("at") == waypoint, found.get("at"))
        place = found.get("inside", found.get("where", ""))  # where its caller is known, that is `where`
        check("place", function in place, found)
    for subject, name in wanted.waits_for.items():
        found = by_name.get(subject, {}).get("waits_for", "")
        check("resource", found.startswith(name), found)
    for word, text in wanted.fault.items():
        found = finding.get("facts", {}).get(word, "")
        check(f"fault {word}", text == found if word in ("fault", "reason") else text in found, found)
    if wanted.corruption:
        found = finding.get("facts", {})
        where, field = wanted.corruption
        check("corruption", found.get("where") == where and found.get("what", "").startswith(field), found)
    return wrong


# The device: cores are numbers of harts.

NODES = ["(0,0)", "(1,0)", "(0,1)", "(1,1)"]


def draw_device(rng):
    """Where and when; kept small, since each core of a busy machine has many harts to run."""
    nodes = rng.choice([1, 2, 2])
    return dict(nodes=nodes, isa=rng.choice(["rv32", "rv64"]), block=rng.randint(20, 120)), rng.randrange(nodes)


def device(fault, draw, expect=None, plants=True):
    """`draw`(rng, place, node) adds to the place; `expect`(place) says what then must be found."""
    def scenario(rng):
        place, node = draw_device(rng)
        draw(rng, place, node)

        def expected(planted):
            if not plants:
                return []
            told = tuple(int(planted[word]) for word in ("core", "other", "value"))
            # What was asked for is what was done.
            assert told == (place.get("core", 0), place.get("other", 0), place.get("value", 0)), planted
            return [expect(place)] if expect else []
        return Scenario(lambda folder, late: start_device(folder, fault=fault, **place), expected, plants)
    return scenario


def any_role(rng, place, node, roles=range(5)):
    place["core"] = 5 * node + rng.choice(list(roles))


def a_pair(rng, place, node):
    role = rng.randint(UNPACK, WRITER)
    place.update(core=5 * node + role, other=rng.randrange(role))


def who_pushes(rng, place, node):
    last = node + 1 == place["nodes"]
    place["core"] = 5 * node + rng.choice(ROLES_THAT_PUSH if last else range(5))


ROLES_THAT_PUSH = [READER, UNPACK, MATH, PACK]


def finite(draw, after=20):
    def drawn(rng, place, node):
        draw(rng, place, node)
        place["blocks"] = place["block"] + rng.randint(5, after)
    return drawn


def at_end(draw):
    def drawn(rng, place, node):
        draw(rng, place, node)
        place["blocks"] = place["block"] - 1
    return drawn


def with_value(draw, value):
    def drawn(rng, place, node):
        draw(rng, place, node)
        place["value"] = value(rng) if callable(value) else value
    return drawn


def a_word(name, value):
    def drawn(rng, place, node):
        any_role(rng, place, node)
        place.update(other=MAILBOX_WORDS[name], value=value(rng, place["core"]) & 0xffffffff)
    return drawn


def on(node, name):
    return f"{name} of {NODES[node]}"


def expect_two_locks(place, waits=WAITS):
    node, role = divmod(place["core"], 5)
    other = 5 * node + place["other"]
    return Expected("deadlock", [place["core"], other], at={place["core"]: waits["lock"], other: waits["lock"]},
                    waits_for={place["core"]: on(node, ROLES[place["other"]] + "_lock"), other: on(node, ROLES[role] + "_lock")})


def expect_circle(place):
    first = place["core"] - WRITER
    cycle = [first] + [first + role for role in (WRITER, PACK, MATH, UNPACK)]
    at = {first + role: WAITS["front"] for role in range(1, 5)} | {first: WAITS["semaphore"]}
    return Expected("deadlock", cycle, at=at, waits_for={first: on(first // 5, "credit")})


def consumer_of(core):
    """Who takes what a core pushes: (core, how it waits, what for)."""
    node, role = divmod(core, 5)
    if role == WRITER:
        return core + 1, WAITS["semaphore"], on(node + 1, "link")
    return core + 1, WAITS["front"], on(node, f"cb{role}")


def expect_missing_push(place):
    consumer, at, resource = consumer_of(place["core"])
    return Expected("starved", [consumer], [place["core"]], {consumer: at}, {consumer: resource})


def expect_lost_wakeup(place):
    """The one that is not woken waits for the other, who soon waits for room."""
    producer = place["core"]
    consumer, at, resource = consumer_of(producer)
    node, role = divmod(producer, 5)
    room = (WAITS["semaphore"], on(node + 1, "room in link")) if role == WRITER else (WAITS["back"], on(node, f"room in cb{role}"))
    return Expected("deadlock", [consumer, producer], at={consumer: at, producer: room[0]}, waits_for={consumer: resource, producer: room[1]})


def expect_kept_lock(place):
    node, role = divmod(place["core"], 5)
    other = 5 * node + place["other"]
    return Expected("starved", [other], [place["core"]], {other: WAITS["lock"]}, {other: on(node, ROLES[role] + "_lock")})


def expect_fault(kind, **words):
    return lambda place: Expected("fault", [place["core"]], fault={"fault": kind, **words})


def expect_silent(place):
    role = place["core"] % 5
    waypoint = {READER: "RDR", WRITER: "WRTR"}.get(role, "CMPR")
    function = {READER: "read_block", WRITER: "write_block"}.get(role, "compute_block")
    return Expected("silent", [place["core"]], at={place["core"]: (waypoint, function)})


def expect_corrupt(field):
    return lambda place: Expected("corrupt", [place["core"]], corruption=(f"core {place['core']}", field + " "))


def expect_low_stack(place):
    return Expected("stack", [place["core"]], hang=False)


def expect_guard(place):
    """The one core that looks after them says which."""
    return Expected("fault", [WRITER], fault={"fault": "guard", "text": f"guard of node {place['core'] // 5}"})


def nothing(rng, place, node):
    pass


def all_done(rng, place, node):
    place["blocks"] = place["block"]


BUS_TEXTS = {"INLINE_UNSUPPORTED": "inline write unsupported"}


def device_cases():
    cases = {
        "healthy": device("NONE", nothing, plants=False),
        "all done": device("NONE", all_done, plants=False),
        "slow stage": device("SLOW", with_value(any_role, int(2500 * STALL_S))),
        "hand-overs": device("HANDOVER", with_value(a_pair, HANDOVERS & 0x3fffffff)),
        "deadlock of 2": device("DEADLOCK2", a_pair, expect_two_locks),
        "deadlock of 5": device("DEADLOCK5", lambda rng, place, node: any_role(rng, place, node, [WRITER]), expect_circle),
        "missing push": device("MISSING_PUSH", finite(who_pushes), expect_missing_push),
        "lost wake-up": device("LOST_WAKEUP", who_pushes, expect_lost_wakeup),
        "kept lock": device("KEPT_LOCK", at_end(a_pair), expect_kept_lock),
        "stack 0 left": device("STACK", any_role, expect_fault("stack")),
        "stack 16 left": device("STACK", with_value(any_role, 16), expect_low_stack),
        "address 0": device("NULL_WRITE", any_role, expect_fault("hardware", reason="cause 0x7", where="write_to_null")),
        "guard word": device("GUARD", with_value(any_role, lambda rng: rng.getrandbits(31)), expect_guard),
        "argument": device("ARGUMENT", with_value(any_role, lambda rng: rng.randint(4, 99)),
                           expect_fault("argument", text="there is such a buffer", where="faults.c")),
        "pending": device("PENDING", with_value(any_role, lambda rng: rng.randint(1, 9)), expect_fault("pending", text="posted write")),
        "endless loop": device("ENDLESS", any_role, expect_silent),
    }
    for role, name in enumerate(ROLES):
        draw = lambda rng, place, node, role=role: any_role(rng, place, node, [role])
        cases[f"assert, {name}"] = device("ASSERT", draw, expect_fault("assert", text="the block is in order", where="faults.c"))
    for reason, number in BUS_REASONS.items():
        if reason in ("READ", "WRITE", "ATOMIC", "MULTICAST", "INLINE_WRITE", "FINE", "REASONS"):
            continue
        text = BUS_TEXTS.get(reason, reason.lower().replace("_", " "))
        cases[f"bus, {text}"] = device("BUS", with_value(any_role, number), expect_fault("bus", reason=text, where="spoil_bus"))
    garbage = {
        "launch": lambda rng, core: rng.randint(5, 1 << 31),
        "paused": lambda rng, core: rng.randint(3, 1 << 31),
        "pause": lambda rng, core: rng.randint(2, 1 << 31),
        "fault": lambda rng, core: rng.randint(8, 1 << 31),
        "node": lambda rng, core: rng.randint(4, 0xffff) | core % 5 << 16,
        "guard": lambda rng, core: rng.getrandbits(31),
    }
    for word, value in garbage.items():
        cases[f"corrupt {word}"] = device("CORRUPT", a_word(word, value), expect_corrupt(word))
    # What the core would overwrite: when it is done.
    garbage_at_end = {
        "waypoint": lambda rng, core: 0x07000041 | rng.getrandbits(3) << 8,
        "wait_kind": lambda rng, core: rng.randint(6, 1 << 31),
        "stack_free": lambda rng, core: rng.randint(8193, 1 << 30),
    }
    for word, value in garbage_at_end.items():
        cases[f"corrupt {word}"] = device("CORRUPT", at_end(a_word(word, value)), expect_corrupt(word))
    return cases


# The pipeline: draws its place itself, from the seed, and says which cores its threads are.

class Threads:
    def __init__(self, planted):
        self.node, self.role, self.other = int(planted["node"]), ROLES.index(planted["role"]), ROLES.index(planted["other"])
        self.cores = planted["cores"]  # of the node, by role
        self.core = self.cores[self.role]


def pipeline(fault, expect=None, plants=True, kills=False, **options):
    def scenario(rng):
        words = dict(fault=fault, seed=rng.getrandbits(30), nodes=1 + rng.getrandbits(1), **{k: v(rng) if callable(v) else v for k, v in options.items()})
        expected = lambda planted: [expect(Threads(planted) if plants else None)] if expect else []
        # One that ends of its fault does so later where a busy machine let nobody watch in time.
        later = lambda late: {"block": 100 * 3 ** late} if late and "block" not in words else {}
        return Scenario(lambda folder, late: start_pipeline(folder, **words, **later(late)), expected, plants, kills)
    return scenario


def threads_two_locks(t):
    other = t.cores[t.other]
    return Expected("deadlock", [t.core, other], at={t.core: NATIVE_WAITS["lock"], other: NATIVE_WAITS["lock"]},
                    waits_for={t.core: on(t.node, ROLES[t.other] + "_lock"), other: on(t.node, ROLES[t.role] + "_lock")})


def threads_five_locks(t):
    return Expected("deadlock", t.cores, at={core: NATIVE_WAITS["lock"] for core in t.cores},
                    waits_for={t.cores[i]: on(t.node, ROLES[(i + 1) % 5] + "_lock") for i in range(5)})


def threads_circle(t):
    reader, *others = t.cores
    return Expected("deadlock", [reader, *reversed(others)], at={core: NATIVE_WAITS["front"] for core in others} | {reader: NATIVE_WAITS["semaphore"]},
                    waits_for={reader: on(t.node, "credit")})


def threads_missing_push(t):
    consumer = t.cores[t.role + 1]
    return Expected("starved", [consumer], [t.core], {consumer: NATIVE_WAITS["front"]}, {consumer: on(t.node, f"cb{t.role}")})


def thread_gone(t):
    """Behind it somebody waits for what it pushed, and before it, on another node, perhaps somebody for room that it made."""
    return dataclasses.replace(threads_missing_push(t), partner_owes_others=True)


def threads_lost_wakeup(t):
    consumer = t.cores[t.role + 1]
    return Expected("deadlock", [consumer, t.core], at={consumer: NATIVE_WAITS["front"], t.core: NATIVE_WAITS["back"]},
                    waits_for={consumer: on(t.node, f"cb{t.role}"), t.core: on(t.node, f"room in cb{t.role}")})


def threads_kept_lock(t):
    other = t.cores[t.other]
    return Expected("starved", [other], [t.core], {other: NATIVE_WAITS["lock"]}, {other: on(t.node, ROLES[t.role] + "_lock")})


def thread_fault(kind, **words):
    return lambda t: Expected("fault", [t.core], fault={"fault": kind, **words})


def pipeline_cases():
    push_roles = lambda rng: rng.choice(ROLES[:WRITER])
    any_of_five = lambda rng: rng.choice(ROLES)
    block = lambda rng: 40 + rng.randrange(60)
    def dead(number):
        return lambda t: Expected("dead", ["all"], summary=f"signal {number} ")
    return {
        "healthy": pipeline("none", plants=False),
        "slow stage": pipeline("slow", value=int(2500 * STALL_S), role=any_of_five),
        "hand-overs": pipeline("handover", value=HANDOVERS),
        "deadlock of 2": pipeline("deadlock2", threads_two_locks),
        "deadlock of 5": pipeline("deadlock5", threads_five_locks),
        "no credit": pipeline("no-credit", threads_circle),
        "missing push": pipeline("missing-push", threads_missing_push, role=push_roles, blocks=110),
        "lost wake-up": pipeline("lost-wakeup", threads_lost_wakeup, role=push_roles),
        "kept lock": pipeline("kept-lock", threads_kept_lock, blocks=60, block=61),
        "thread gone": pipeline("gone", thread_gone, role="reader"),
        "assert": pipeline("assert", thread_fault("assert", text="the block is in order", where="faults.cc"), role=any_of_five),
        "argument": pipeline("argument", thread_fault("argument", text="there is such a channel", where="faults.cc"), value=9, role=any_of_five),
        "pending": pipeline("pending", thread_fault("pending"), value=3, role=any_of_five),
        "endless loop": pipeline("endless", lambda t: Expected("silent", [t.core], at={t.core: ("CMPR", "RunRole")}), role=any_of_five),
        "corrupt launch": pipeline("corrupt", lambda t: Expected("corrupt", [t.core], corruption=(f"core {t.core}", "launch ")), role=any_of_five,
                                   word=MAILBOX_WORDS["launch"], value=lambda rng: rng.randint(5, 1 << 31)),
        "crash": pipeline("crash", dead(11), role=any_of_five),
        "abort": pipeline("abort", dead(6), role=any_of_five),
        "SIGKILL": pipeline("none", dead(9), plants=False, kills=True),
    }


# The scheduler's tasks.

def sched(fault, draw, expect=None, plants=True):
    def scenario(rng):
        plan = dict(isa=rng.choice(["rv32", "rv64"]), round=rng.randint(20, 80))
        draw(rng, plan)
        expected = lambda planted: [expect(plan, f"t{planted['task']}", f"t{planted['other']}")] if expect else []
        return Scenario(lambda folder, late: start_sched(folder, fault=fault, **plan), expected, plants)
    return scenario


def a_task(rng, plan):
    plan["task"] = rng.randrange(5)


def two_tasks(rng, plan):
    plan["task"] = rng.randint(1, 4)
    plan["other"] = rng.randrange(plan["task"])


def tasks_circle(plan, task, other):
    ids = [f"t{70001 + i}" for i in (0, 4, 3, 2, 1)]
    return Expected("deadlock", ids)


def next_task(task):
    return f"t{int(task[1:]) + 1}"


def sched_cases():
    def with_words(draw, **words):
        def drawn(rng, plan):
            draw(rng, plan)
            plan.update({name: value(rng, plan) if callable(value) else value for name, value in words.items()})
        return drawn
    at_the_end = dict(rounds=lambda rng, plan: plan["round"] - 1)
    return {
        "healthy": sched("NONE", a_task, plants=False),
        "slow task": sched("SLOW", with_words(a_task, value=int(2500 * STALL_S))),
        "sleeping task": sched("SLEEPS", with_words(a_task, value=int(2500 * STALL_S))),
        "hand-overs": sched("HANDOVER", with_words(two_tasks, value=HANDOVERS & 0x3fffffff)),
        "ABBA": sched("DEADLOCK2", two_tasks, lambda plan, task, other: Expected("deadlock", [task, other])),
        "circle of 5": sched("DEADLOCK5", with_words(a_task, task=4), tasks_circle),
        "lost post": sched("LOST_POST", with_words(a_task, task=lambda rng, plan: rng.randrange(4), rounds=lambda rng, plan: plan["round"] + rng.randint(5, 20)),
                           lambda plan, task, other: Expected("starved", [next_task(task)], [task])),
        "priority starvation": sched("STARVATION", with_words(a_task, task=lambda rng, plan: rng.randint(1, 4)),
                                     lambda plan, task, other: Expected("starved", [f"t{70001 + i}" for i in range(5)], [task], any_subject=True)),
        "kept mutex": sched("KEPT_MUTEX", with_words(two_tasks, **at_the_end), lambda plan, task, other: Expected("starved", [other], [task])),
        "suspended with mutex": sched("SUSPENDED", with_words(two_tasks, **at_the_end), lambda plan, task, other: Expected("starved", [other], [task])),
        "assert": sched("ASSERT", a_task, lambda plan, task, other: Expected("fault", [0], fault={"fault": "assert", "text": "the round is in order", "where": "faults.c"})),
    }


# The stand-ins for other kernels, with our hooks.

def porting(kernel, mode, expect=None):
    expected = lambda planted: [expect(f"t{planted['task']}", f"t{planted['other']}")] if expect else []
    return lambda rng: Scenario(lambda folder, late: start_porting(folder, kernel, mode), expected, plants=expect is not None)


def porting_cases(kernel):
    return {
        "healthy": porting(kernel, "kHealthy"),
        "ABBA": porting(kernel, "kCrosswise", lambda task, other: Expected("deadlock", [task, other])),
    }


# The tiles, whose cores have memory at address 0.


def expect_null_guard(place):
    """By the node's core that looks: number and role in its own memory."""
    return Expected("fault", [WRITER], fault={"fault": "guard", "text": "the word at address 0, where a null pointer leads, changed: 0x0"})


def tiles(fault, draw, expect):
    def scenario(rng):
        place = dict(block=rng.randint(20, 120))
        draw(rng, place, rng.randrange(len(NODES)))
        return Scenario(lambda folder, late: start_tiles(folder, fault=fault, **place), lambda planted: [expect(place)])
    return scenario


def tiles_cases():
    return {"store through null": tiles("NULL_WRITE", any_role, expect_null_guard)}


TARGETS = {"device": device_cases, "tiles": tiles_cases, "pipeline": pipeline_cases, "scheduler": sched_cases,
           "FreeRTOS": lambda: porting_cases("freertos"), "Zephyr": lambda: porting_cases("zephyr")}


@dataclasses.dataclass
class Run:
    target: str
    case: str
    seed: int
    how: str = ""
    planted: str = ""
    expected: typing.List = dataclasses.field(default_factory=list)
    findings: typing.List = dataclasses.field(default_factory=list)
    problem: str = ""
    wrong: typing.List = dataclasses.field(default_factory=list)
    hits: int = 0  # findings that are right
    misses: int = 0  # expected ones that did not come
    verdict_s: typing.Optional[float] = None

    def judge(self):
        alarms = [finding for finding in self.findings if finding["hang"] or any(not wanted.hang and wanted.kind == finding["kind"] for wanted in self.expected)]
        left = list(alarms)
        for wanted in self.expected:
            right = [finding for finding in left if not differences(finding, wanted)]
            if right:
                self.hits += len(right) if wanted.any_subject else 1
                left = [finding for finding in left if finding not in (right if wanted.any_subject else right[:1])]
                continue
            self.misses += 1
            self.wrong += [f"expected {wanted}"] + [f"found instead: {'; '.join(differences(finding, wanted))}: {finding['summary']}" for finding in self.findings]
        left = [finding for finding in left if not any(wanted.partner_owes_others and finding["kind"] == wanted.kind
                                                       and names_of(finding.get("partners", [])) == wanted.partners for wanted in self.expected)]
        self.false_alarms = len(left)
        self.wrong += [f"false alarm: {finding['summary']}" for finding in left if not self.expected or self.hits]

    @property
    def ok(self):
        return not self.problem and not self.misses and not self.false_alarms

    def line(self):
        found = ", ".join(f"{f['kind']} {' '.join(map(str, names_of(f['subjects'])))}" for f in self.findings if f["hang"] or f["kind"] == "stack") or "-"
        wanted = ", ".join(f"{w.kind} {' '.join(map(str, w.subjects))}" for w in self.expected) or "-"
        took = "" if self.verdict_s is None else f"{self.verdict_s:.1f} s"
        return f"{self.target:<10} {self.case:<29} {self.seed:>4} {self.how:<6} {wanted:<28.28} {found:<28.28} {took:>6}  {'ok' if self.ok else 'WRONG'}"


def read_findings(text):
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["type"] == "finding"] + [
        finding for line in lines if line["type"] == "verdict" for finding in line.get("findings", [])]


class TooLate(Exception):
    """The target had ended before anybody watched it, which a busy machine does to those that end by themselves."""


def watch(run, scenario, started, folder):
    """Watches until it has found something and a little longer; controls for their time."""
    log = folder / "watch"
    with open(log, "wb") as out:
        watcher = subprocess.Popen([HANGSCOPE, "watch", "--json", "--stall", str(STALL_S), *started.words()],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        follow(run, scenario, started, watcher, log)
    finally:
        if watcher.poll() is None:
            watcher.send_signal(signal.SIGINT)
        try:
            status = watcher.wait(20)
        except subprocess.TimeoutExpired:
            watcher.kill()
            status = watcher.wait()
    text = log.read_text(errors="replace")
    if status == 3 and '"watching"' not in text and started.process.poll() is not None:
        raise TooLate(text[-500:])
    run.findings = read_findings(text)
    bad = any(finding["hang"] for finding in run.findings)
    if status not in ((1,) if bad else (0, 130)):
        run.problem = f"hangscope watch ended with {status}: {text[-500:]}"


def follow(run, scenario, started, watcher, log):
    planted = started.until_planted() if scenario.plants else {}
    if planted is None:
        run.problem = f"nothing was planted: {started.said()!r}"
        return
    if scenario.kills:
        end = time.monotonic() + FOUND_WITHIN_S
        while '"watching"' not in log.read_text(errors="replace") and watcher.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.3)
        started.kill()
    begin = time.monotonic()
    run.planted = planted
    run.expected = scenario.expect(planted)
    if not run.expected:
        time.sleep(CONTROL_S)
        return
    wanted_hang = any(wanted.hang for wanted in run.expected)
    ended = False
    while time.monotonic() < begin + FOUND_WITHIN_S and not ended:
        ended = watcher.poll() is not None  # and then one look more
        found = read_findings(log.read_text(errors="replace").rpartition("\n")[0])
        if any(finding["hang"] or not wanted_hang for finding in found):
            run.verdict_s = time.monotonic() - begin
            time.sleep(AFTERWARDS_S)
            return
        time.sleep(0.05)


def ask_why(run, scenario, started, folder):
    """Kills the target when it hangs, and asks about what it left behind."""
    planted = started.until_planted()
    if planted is None:
        run.problem = f"nothing was planted: {started.said()!r}"
        return
    run.planted = planted
    run.expected = scenario.expect(planted)
    time.sleep(2 * STALL_S)
    target = started.target if started.target.startswith("file:") else f"file:{started.scope}"
    started.kill()
    begin = time.monotonic()
    asked = subprocess.run([HANGSCOPE, "why", "--json", "--stall", str(STALL_S), "--elf", started.elf, target],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    run.verdict_s = time.monotonic() - begin
    run.findings = read_findings(asked.stdout)
    if asked.returncode != (1 if any(finding["hang"] for finding in run.findings) else 0):
        run.problem = f"hangscope why ended with {asked.returncode}: {asked.stderr}"


# What is left behind does not tell these: a loop is known by watching it. And where all goes on but for one core,
# the others are in the middle of hand-overs when the target is killed, which a wait for a channel does not show.
NOT_BY_WHY = ("endless loop", "priority starvation", "crash", "abort", "SIGKILL", "corrupt*", "stack*", "guard word", "store through null")


def perform(target, case, make, seed, place, late=0):
    run = Run(target, case, seed)
    scenario = make(random.Random(f"{target}/{case}/{seed}"))
    folder = new_folder(place)
    try:
        started = scenario.start(folder, late)
        try:
            started.until_recording()
            is_hang = scenario.plants and not any(fnmatch.fnmatch(case, pattern) for pattern in NOT_BY_WHY) and case not in CONTROLS
            run.how = "why" if is_hang and seed % WHY_EVERY == 0 else "watch"
            (ask_why if run.how == "why" else watch)(run, scenario, started, folder)
        finally:
            started.kill()
    except TooLate as error:
        if late < MOST_LATE:
            return perform(target, case, make, seed, place, late + 1)
        run.problem = str(error)
    except Exception as error:  # a table with a hole is better than none
        run.problem = f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    run.judge()
    return run


CONTROLS = ("healthy", "all done", "slow stage", "slow task", "sleeping task", "hand-overs")


def ratio(part, whole):
    return 1.0 if whole == 0 else part / whole


def totals(runs):
    hits = sum(run.hits for run in runs)
    false_alarms = sum(run.false_alarms for run in runs)
    misses = sum(run.misses for run in runs)
    return ratio(hits, hits + false_alarms), ratio(hits, hits + misses)


def by_case(runs):
    lines = [f"{'target':<10} {'case':<29} {'planted':<10} {'right':>6} {'longest':>8}"]
    for target, case in sorted({(run.target, run.case) for run in runs}):
        of = [run for run in runs if (run.target, run.case) == (target, case)]
        kinds = " ".join(sorted({wanted.kind for run in of for wanted in run.expected})) or "-"
        longest = max((run.verdict_s for run in of if run.verdict_s is not None), default=None)
        took = "" if longest is None else f"{longest:.1f} s"
        lines.append(f"{target:<10} {case:<29} {kinds:<10} {sum(run.ok for run in of):>2} / {len(of)} {took:>8}")
    return lines


class Matrix(Case):
    def test_every_planted_fault_is_found_and_nothing_else(self):
        self.need_firmware()
        begin = time.monotonic()
        work = [(target, case, make, seed) for target, cases in TARGETS.items() for case, make in cases().items()
                for seed in range(FIRST_SEED, FIRST_SEED + SEEDS) if fnmatch.fnmatch(f"{target}/{case}", PATTERN)]
        # The longest first, and neighbours of different targets.
        work.sort(key=lambda item: (item[1] not in CONTROLS, item[3], item[1]))
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            runs = list(pool.map(lambda item: perform(*item, self.folder), work))
        runs.sort(key=lambda run: (run.target, run.case, run.seed))
        table = [f"{'target':<10} {'case':<29} {'seed':>4} {'asked':<6} {'planted':<28} {'found':<28} {'after':>6}"]
        table += [run.line() for run in runs]
        totals_from = len(table)
        for target in [*TARGETS, "all"]:
            of = [run for run in runs if target in (run.target, "all")]
            precision, recall = totals(of)
            cases = len({(run.target, run.case) for run in of})
            times = sorted(run.verdict_s for run in of if run.verdict_s is not None and run.how == "watch")
            verdict = f", verdict after {times[len(times) // 2]:.1f} s (median), {times[-1]:.1f} s (longest)" if times else ""
            table.append(f"{target}: {cases} cases, {len(of)} runs, precision {precision:.3f}, recall {recall:.3f}{verdict}")
        table.append(f"took {time.monotonic() - begin:.0f} s, stall time {STALL_S} s, seeds {FIRST_SEED} to {FIRST_SEED + SEEDS - 1}")
        text = "\n".join(table) + "\n"
        print("\n" + text)
        # For ./check to print: a line for each case.
        brief = "\n".join([*by_case(runs), *table[totals_from:]]) + "\n"
        (pathlib.Path(BUILD) / "matrix.txt").write_text(brief)
        of_cases = {(run.target, run.case): bool(run.expected) for run in runs}
        self.account_verdicts("scope", "watch, why", sum(of_cases.values()), sum(not hang for hang in of_cases.values()), len(runs),
                              sum(run.hits + run.false_alarms for run in runs), sum(run.hits for run in runs), sum(run.hits + run.misses for run in runs),
                              [run.verdict_s for run in runs if run.verdict_s is not None and run.how == "watch"], "the watcher's start")
        wrong = [f"{run.target}, {run.case}, seed {run.seed}: {'; '.join([run.problem] * bool(run.problem) + run.wrong)}" for run in runs if not run.ok]
        self.assertFalse(wrong, "\n" + "\n".join(wrong))
        controls = sum(run.case in CONTROLS for run in runs)
        self.account("a fault planted in an example: a lock held, a wait unanswered, an assert, a bus fault, ...", len(runs) - controls,
                     "no fault missed, none called by another name")
        self.account_for("controls", f"an example at work, watched for {CONTROL_S} s", controls, "no alarm")


if __name__ == "__main__":
    main()
