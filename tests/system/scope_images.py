#!/usr/bin/env python3
"""usage: scope_images.py FOLDER    writes the golden images of scopes, tests/data/scope/*.bin,
and what the second reader finds in those with mailboxes, *.txt

An image is built as a target's memory comes about: records one after the other, by the protocol of
abi/record.h, with whatever goes wrong on the way."""
import pathlib
import struct
import sys

import scope_reader
from scope_reader import fnv

ANCHOR, BOOT, CREATE, SWITCH, WAIT, USER = 1, 2, 16, 18, 23, 77


class Core:
    """A ring that records are written to; words are kept as numbers."""

    def __init__(self, scope, name, owner, first=0):
        self.scope, self.name, self.owner = scope, name, owner
        self.begun = first  # records that an earlier life of the memory began
        self.slots = [[0] * (scope.record // 4) for _ in range(scope.capacity)]
        self.control = dict(mask=0x7FFFFFFF, armed=0, remaining=0, refused=0, epoch=0, ticks=1, anchor=0, state=2,
                            base=0, boot=0, generation=1, last_task=0)
        self.tickets = [0] * 8
        self.open = {}  # tickets of unfinished records by slot

    def reserve(self):
        n = self.begun
        self.begun += 1
        return n

    def begin(self):
        """A writer that got as far as taking its slot; None: refused."""
        n = self.reserve()
        slot = n % self.scope.capacity
        if slot in self.open:
            self.tickets[self.control["refused"] % 8] = (n << 12) % 2**32 | 1
            self.control["refused"] += 1
            return None
        self.slots[slot][0] = self.slots[slot][0] | 0x800 if self.scope.word == 8 else 0x1000
        self.open[slot] = n
        return n

    def finish(self, n, event, time, *parameters):
        slot = n % self.scope.capacity
        del self.open[slot]
        words = [(n << 12) % 2**32 + event, time % 2**32, *parameters]
        self.slots[slot] = words + [0] * (self.scope.record // 4 - len(words))

    def write(self, event, time, *parameters):
        if time >> 30 != self.control["epoch"]:
            self.new_epoch(time)
        n = self.begin()
        if n is not None:
            self.finish(n, event, time, *parameters)
        return n

    def new_epoch(self, time):
        """An anchor; the newest record is renewed where it is one."""
        previous, self.control["epoch"] = self.control["epoch"], time >> 30
        newest = self.slots[(self.begun - 1) % self.scope.capacity]
        if self.begun and newest[0] == self.control["anchor"] != 0 and newest[0] >> 12 == (self.begun - 1) % 2**20:
            newest[2] = time >> 30
            return
        n = self.begin()
        self.control["anchor"] = 0
        if n is not None:
            self.finish(n, ANCHOR, time, time >> 30, previous)
            self.control["anchor"] = (n << 12) % 2**32 + ANCHOR

    def boot(self, boots, time):
        """The target starts again, and keeps what the memory holds."""
        self.control.update(boot=self.begun, epoch=0, anchor=0)
        self.finish(self.begin(), BOOT, time, boots, min(self.begun, self.scope.capacity))
        self.new_epoch(time)

    def bytes(self):
        scope, c = self.scope, self.control
        turns = -(-self.begun // scope.capacity)
        low = struct.pack(scope.order + "II", (self.begun << 12) % 2**32, turns % 2**32)
        head = struct.pack(scope.order + "Q", (self.begun << 12) % 2**64) if scope.word == 8 else low
        pair = lambda n: [n % 2**32, n >> 32]
        rest = [c["mask"], c["armed"], c["remaining"], c["refused"], *self.tickets, c["epoch"], c["ticks"], c["anchor"],
                c["state"], *pair(c["base"]), *pair(c["boot"]), self.owner, c["generation"], c["last_task"], 0, 0, 0]
        control = head + struct.pack(scope.order + "26I", *rest) + self.name.encode().ljust(16, b"\0")
        return control + b"".join(struct.pack(scope.order + f"{len(slot)}I", *slot) for slot in self.slots)


class Watch:
    """What a watcher looks at, behind the rings: one mailbox, row of claims and detail per core; 32-bit words."""

    def __init__(self, scope, nodes, holds=2, provides=2, debug=4):
        self.scope, self.holds, self.provides, self.debug = scope, holds, provides, debug
        self.nodes = [dict(x=x, y=y, first=0, order=0) for x, y in nodes]
        self.mailboxes, self.details = {}, {}  # by core, as far as they are not as at the start
        self.claims = {}  # by row: held, provided, how many were lost

    MAILBOX = ("waypoint", "heartbeat", "sequence", "resource", "kind", "since", "epoch", "kernel", "launch", "pause",
               "resumes", "paused", "fault", "stack_free")
    DETAIL = ("type", "reason", "line", "fault_kind", "pc", "pc_high", "address", "address_high", "local", "local_high",
              "length", "where", "value", "value_high", "time", "time_epoch", "faults", "delay_read", "delay_write",
              "delay_atomic", "seed", "done_read", "done_write", "done_atomic", "delay_state", "seeded", "stack_bytes",
              "stack_lowest", "stack_kernel", "debug_next", "reserved0", "reserved1")

    def mailbox(self, core, **words):
        self.mailboxes.setdefault(core, {}).update(words)

    def detail(self, core, debug=(), **words):
        self.details.setdefault(core, dict(debug=[])).update(words)
        self.details[core]["debug"] += debug

    def mailbox_bytes(self, core):
        words = dict(stack_free=2**32 - 1, guard=0x686D6278 ^ core, node=0, role=0)
        words.update(self.mailboxes.get(core, {}))
        return struct.pack(self.scope.order + "14IHHI", *[words.get(name, 0) for name in self.MAILBOX], words["node"],
                           words["role"], words["guard"])

    def detail_bytes(self, core):
        words = dict(stack_lowest=2**32 - 1, debug=[])
        words.update(self.details.get(core, {}))
        slots = [(0, 0)] * self.debug
        for slot, value in enumerate(words["debug"]):
            slots[slot % self.debug] = value
        pairs = [word for slot in slots for word in slot]
        return struct.pack(self.scope.order + f"32I{len(pairs)}I", *[words.get(name, 0) for name in self.DETAIL], *pairs)

    def claim_bytes(self, row):
        held, provided, lost = self.claims.get(row, ((), (), 0))
        words = [*held, *[0] * (self.holds - len(held)), *provided, *[0] * (self.provides - len(provided)), lost]
        words += [0] * (len(words) % 2)
        return struct.pack(self.scope.order + f"{len(words)}I", *words)

    def bytes(self, at):
        """All of it, from offset `at` on, and where its two parts are that the header names."""
        order, cores, rows = self.scope.order, len(self.scope.cores), len(self.scope.cores) + len(self.scope.tasks)
        mailboxes = b"".join(self.mailbox_bytes(core) for core in range(cores))
        nodes = b"".join(struct.pack(order + "HHII20x", n["x"], n["y"], n["first"], n["order"]) for n in self.nodes)
        claims = b"".join(self.claim_bytes(row) for row in range(rows))
        details = b"".join(self.detail_bytes(core) for core in range(cores))
        nodes_at = at + len(mailboxes) + 64
        claims_at, details_at = nodes_at + len(nodes), nodes_at + len(nodes) + len(claims)
        words = struct.pack(order + "9IHHIII", 64, 511, len(self.nodes), nodes_at, 32, details_at, len(details) // cores,
                            claims_at, len(claims) // rows, self.holds, self.provides, self.debug, 0x1000, 0x7F)
        check = struct.pack(order + "I", fnv(words))
        watch = check + words + struct.pack(order + "II", 509, 3)
        return mailboxes + watch + nodes + claims + details, at, at + len(mailboxes)


class Scope:
    def __init__(self, order, word, capacity=8, record=16, **header):
        self.watch = None
        self.order, self.word, self.capacity, self.record = order, word, capacity, record
        self.cores, self.tasks = [], []
        self.header = dict(major=1, minor=0, features=3, clock_kind=3, clock_hz=1_000_000, boots=1, pid=0,
                           sync=(0, 0, 0, 0), lost_threads=0)
        self.header.update(header)

    def core(self, name, owner, **options):
        self.cores.append(Core(self, name, owner, **options))
        return self.cores[-1]

    def task(self, *words):
        """sequence, task, state, resource, kind, holder, since, since_epoch"""
        self.tasks.append(words)

    def bytes(self):
        h = self.header
        tasks_at = 192 if self.tasks else 0
        rings_at = 192 + 32 * len(self.tasks)
        stride = 128 + self.capacity * self.record
        size = rings_at + stride * len(self.cores)
        watch, mailboxes_at, watch_at = self.watch.bytes(size) if self.watch else (b"", 0, 0)
        size += len(watch)
        magic = b"hangscop" if self.order == "<" else b"gnahpocs"
        head = magic + struct.pack(
            self.order + "HHHBB12IQII20sI4QI12I", h["major"], h["minor"], 192, self.word, self.record, size, h["features"],
            len(self.cores), self.capacity, rings_at, stride, mailboxes_at, 64 if mailboxes_at else 0, len(self.tasks), tasks_at, 32 if self.tasks else 0,
            h["clock_kind"], h["clock_hz"], h["boots"], h["pid"], bytes(range(20)), 0, *h["sync"], h["lost_threads"],
            0, watch_at, *[0] * 10)
        head += struct.pack(self.order + "I", fnv(head[:120]))
        tasks = b"".join(struct.pack(self.order + "8I", *words) for words in self.tasks)
        return head + tasks + b"".join(core.bytes() for core in self.cores) + watch


Q = 1 << 30  # a quarter of the low half of the clock


def quiet(order, word):
    """Two cores that never wrapped; tasks that wait for each other; no clock frequency but two looks."""
    scope = Scope(order, word, capacity=16, clock_hz=0, sync=(1000, 5_000_000, 501_000, 505_000_000))
    zero, one = scope.core("hart 0", 0), scope.core("hart 1", 1)
    for core in (zero, one):
        core.write(BOOT, 500, 1, 0)
    zero.write(CREATE, 1000, 3, 10)
    zero.write(SWITCH, 2000, 0, 3)
    one.write(WAIT, 1500, 0x20001000, 2**32 - 1)
    zero.write(WAIT, 2500, 0x20002000, 0)
    one.write(USER, 2500, 1, 2)
    scope.task(4, 3, 2, 0x20001000, 2, 2**32 - 1, 2500, 0)
    scope.task(2, 4, 2, 0x20002000, 1, 3, 2600, 0)
    scope.task(6, 5, 1, 0, 0, 2**32 - 1, 0, 0)
    scope.task(0, 0, 0, 0, 0, 0, 0, 0)
    return scope


def lossy(order, word):
    """Overwritten, torn and refused records, some of the refused ones overwritten since."""
    scope = Scope(order, word, capacity=8, record=24)
    zero, one = scope.core("worker", 71), scope.core("", 72)
    for i in range(20):
        zero.write(USER, 100 * i, i, i * i, 7, 8)
    outer = zero.begin()  # interrupted here by so many that its own slot comes round again
    for i in range(8):
        zero.write(USER + 1, 2000 + i, i)
    zero.finish(outer, USER, 1999, 99)
    for i in range(13):
        zero.write(USER, 3000 + i, i)
    second = zero.begin()
    for i in range(9):
        zero.write(USER, 4000 + i, i)
    zero.finish(second, USER, 3999, 98)
    for i in range(2):
        zero.write(SWITCH, 5000 + i, i, i + 1)
    zero.begin()  # never finished
    zero.write(USER, 5010)
    zero.reserve()  # died before it took its slot
    zero.write(USER, 5020)
    for i in range(3):
        one.write(USER, 4500 + 300 * i, i)
    one.control["mask"] = 0  # frozen
    return scope


def silent(order, word):
    """Silences of many turns of the clock, an anchor that was renewed over them, an earlier start."""
    scope = Scope(order, word, capacity=16, boots=2)
    zero, one = scope.core("hart 0", 0), scope.core("hart 1", 1)
    zero.write(USER, 7 * Q + 5, 1)
    zero.write(USER, 7 * Q + 9, 2)
    for epoch in (8, 9, 50, 4711):  # renewed
        zero.new_epoch(epoch * Q + 3)
    zero.write(USER, 4711 * Q + 77, 3)
    zero.write(USER, 99_001 * Q + 12, 4)
    zero.boot(2, 10)
    zero.write(USER, 20, 5)
    zero.write(USER, 3 * Q + 1, 6)
    zero.write(USER, 3 * Q, 7)  # its writer looked at the clock, and was interrupted
    for i in range(30):
        one.write(USER, (600 + i // 20) * Q + 1000 * i, i)
    for i in range(20):
        one.write(USER, 602 * Q + 1000 * i, i)  # the anchor is overwritten
    return scope


def astray(order, word):
    """An anchor that was refused: what it would have dated is dated by the next one, or by nothing."""
    scope = Scope(order, word, capacity=16)
    zero, one = scope.core("hart 0", 0), scope.core("hart 1", 1)
    zero.write(USER, 40 * Q + 5, 8)
    outer = zero.begin()  # while it is not finished, an anchor is refused in its place
    for i in range(15):
        zero.write(USER, 40 * Q + 6 + i, i)
    zero.write(USER, 4000 * Q, 9)
    zero.write(USER, 4001 * Q, 10)
    zero.finish(outer, USER, 40 * Q + 6, 11)
    one.write(USER, 5 * Q, 1)
    one.begin()  # never finished: it may have been an anchor, and was none
    one.write(USER, 5 * Q + 1, 2)
    return scope


def wrapped(order, word):
    """Sequence numbers beyond 20 bits, and a clock that nobody looked at between."""
    scope = Scope(order, word, capacity=8, clock_kind=1)
    zero, one = scope.core("a", 0, first=2**20 - 5), scope.core("b", 1, first=5 * 2**20 - 3)
    for i in range(9):
        zero.write(USER, 3 * Q + 100 * i, i)
    zero.control["ticks"] = 0
    one.control["ticks"] = 0
    for i in range(7):
        one.write(USER, Q * i // 2, i)
    one.control["base"] = 5 * 2**20 - 1  # cleared
    return scope


def corrupt(order, word):
    """What cannot be right in every place that leaves the rest readable."""
    scope = Scope(order, word, capacity=8, clock_kind=9)
    zero, one = scope.core("\u00e4\n", 0), scope.core("ok", 1)
    zero.write(USER, 10, 1)
    zero.write(USER, 20, 1)
    zero.control.update(base=77, boot=2**40, state=9, refused=5)
    one.write(USER, 15, 1)
    scope.task(3, 1, 2, 0, 1, 0, 0, 0)
    scope.task(2, 1, 77, 0, 1, 0, 0, 0)
    scope.task(2, 1, 2, 0, 0, 0, 0, 0)
    scope.task(2, 1, 2, 0, 1, 0, 2**32 - 1, 0)
    return scope


def watched(order, word):
    """Mailboxes in all states, claims, a fault of every width, debug rings, nodes; a task record or two."""
    scope = Scope(order, word, minor=1)
    for core in range(6):
        scope.core(f"c{core}", core)
    scope.task(4, 3, 2, 0x20001000, 5, 2**32 - 1, 2500, 0)
    scope.task(7, 4, 2, 9, 9, 9, 9, 9)  # in the middle of a change
    watch = scope.watch = Watch(scope, [(1, 2), (300, 4)])
    watch.mailbox(0, waypoint=0x57425243, heartbeat=2**32 - 1, sequence=7, resource=0x10003, kind=2, since=Q + 5,
                  epoch=9, kernel=3, launch=2, stack_free=63)
    watch.mailbox(1, waypoint=0x20, sequence=8, resource=5, kind=1, launch=1, pause=1, resumes=2, paused=2, node=1, role=4)
    watch.mailbox(2, heartbeat=1, sequence=2**32 - 1, resource=2**32 - 1, since=2**32 - 1, epoch=2**32 - 1, fault=5, node=1)
    watch.mailbox(3, launch=4, stack_free=0)
    watch.mailbox(4, heartbeat=1, guard=0x686D6278 ^ 4)
    watch.claims = {0: ((0x10003, 0x10004), (), 0), 1: ((), (7, 8), 3), 6: ((1,), (2,), 0)}
    watch.detail(0, stack_bytes=1024, stack_lowest=60, stack_kernel=2, debug=[(9, 0xA), (2, 0xB), (7, 2**32 - 1)])
    watch.detail(2, type=5, reason=12, line=88, fault_kind=4, pc=0x80001234, pc_high=1, address=0xF000, address_high=2,
                 local=0x100, local_high=3, length=64, where=0x04030201, value=6, value_high=7, time=2 * Q + 77,
                 time_epoch=6, faults=4, debug=[(1, 0x11), (0, 0xDEAD)])
    watch.detail(3, delay_read=10, delay_write=0x80000020, delay_atomic=30, seed=42, done_read=1, done_write=2,
                 done_atomic=3, stack_bytes=256, stack_lowest=0, debug=[(8, 3), (3, 4), (4, 5), (6, 6), (10, 7)])
    watch.nodes[0].update(first=0, order=10)
    watch.nodes[1].update(first=3, order=1)
    return scope


def damaged(order, word):
    """A word in each mailbox, or in its details, that cannot be right; and mailboxes that are being made."""
    scope = Scope(order, word, minor=1, capacity=8)
    watch = scope.watch = Watch(scope, [(0, 0)])
    wrong = [dict(waypoint=0x07000001), dict(waypoint=0x41004141), dict(kind=6), dict(launch=5), dict(pause=2),
             dict(paused=3), dict(fault=8), dict(node=1), dict(guard=0), dict(sequence=1),
             dict(sequence=1, resource=4, since=Q, epoch=8), dict(stack_free=101), dict(waypoint=0x7F), dict(waypoint=0xE4)]
    for core, words in enumerate(wrong):
        scope.core("", core)
        watch.mailbox(core, **{"heartbeat": 1, **words})
        watch.detail(core, stack_bytes=100)
    blank = len(wrong)
    for core in (blank, blank + 1):
        scope.core("", core)
        watch.mailbox(core, guard=0, stack_free=0 if core == blank else 2**32 - 1)
    for core, words in enumerate([dict(type=8), dict(type=5, reason=18, fault_kind=2), dict(type=5, reason=1, fault_kind=6),
                                  dict(type=1, time=Q, time_epoch=2), dict(stack_lowest=101)]):
        watch.detail(core, **words)
    watch.nodes[0].update(first=99)
    return scope


SHAPES = [quiet, lossy, silent, astray, wrapped, corrupt, watched, damaged]
ORDERS = {"little": "<", "big": ">"}


def images():
    for shape in SHAPES:
        for order, mark in ORDERS.items():
            for word in (4, 8):
                yield f"{shape.__name__}-{order}{8 * word}.bin", shape(mark, word).bytes()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in images():
        (folder / name).write_bytes(data)
        if lines := scope_reader.read_watch(data):
            (folder / name).with_suffix(".txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
