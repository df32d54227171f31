#!/usr/bin/env python3
"""usage: scope_reader.py IMAGE    what a scope in a file holds, as JSON Lines; mailboxes as text

A second reader of the scope, written from docs/format.md alone: it shares nothing with hangscope."""
import json
import struct
import sys

PERIOD = 1 << 20  # of the sequence numbers in marks and 32-bit heads
ANCHOR, BOOT, SWITCH = 1, 2, 18
NOBODY = (0, 2**32 - 1)  # tasks
DISORDER = 2**28


def fnv(data):
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 % 2**32
    return value


def signed(value):
    value %= 2**32
    return value - 2**32 if value >= 2**31 else value


def following(near, low):
    """The first time with these low bits that is not before, but for 2^28 of disorder."""
    time = near - DISORDER + (low - near + DISORDER) % 2**32
    return time if time >= 0 else low


def preceding(near, low):
    time = near + DISORDER - (near - low + DISORDER) % 2**32
    return time if time >= 0 else low


def from_epoch(epoch, low):
    """The time, and whether it lies before the clock began."""
    time = (epoch << 30) + signed(low - (epoch << 30))
    return (time, False) if time >= 0 else (low, True)


def anchor_time(epoch, low):
    time, early = from_epoch(epoch, low)
    if not early and time >> 30 == epoch:
        return time, False
    time = (epoch << 30) - ((epoch << 30) - low) % 2**32  # renewed: the time before, at the latest
    return (time if time >= 0 else low), True


class Scope:
    def __init__(self, data):
        self.data = data
        self.at, self.order = self.find()
        u16, u32, u64 = self.u16, self.u32, self.u64
        self.word, self.record = data[self.at + 14], data[self.at + 15]
        self.cores, self.capacity, self.rings, self.stride = (u32(at) for at in (24, 28, 32, 36))
        self.tasks, self.tasks_at, self.task_stride, self.clock = (u32(at) for at in (48, 52, 56, 60))
        self.features = u32(20)
        self.hz, self.boots, self.pid = u64(64), u32(72), u32(76)
        self.sync = [u64(at) for at in (104, 112, 120, 128)]
        self.corrupt = []
        if u16(8) != 1:
            raise SystemExit(f"version {u16(8)}.{u16(10)} is not known")
        if self.u32(140) % 2:
            self.corrupt.append(("header", "last_sequence"))
        if not 1 <= self.clock <= 3:
            self.corrupt.append(("header", "clock_kind"))

    def find(self):
        for at in range(0, len(self.data) - 191, 4):
            for order, magic in (("<", b"hangscop"), (">", b"gnahpocs")):
                if self.data[at:at + 8] == magic:
                    check, = struct.unpack_from(order + "I", self.data, at + 188)
                    if check == fnv(self.data[at:at + 120]):
                        return at, order
        raise SystemExit("no scope")

    def number(self, kind, at):
        return struct.unpack_from(self.order + kind, self.data, self.at + at)[0]

    def u16(self, at):
        return self.number("H", at)

    def u32(self, at):
        return self.number("I", at)

    def u64(self, at):
        return self.number("Q", at)

    def ns(self, time):
        if self.hz:
            return time * 10**9 // self.hz
        sync_time, sync_ns, last_time, last_ns = self.sync
        if self.u32(140) % 2:
            return None
        if last_time <= sync_time or last_ns <= sync_ns:
            return None
        return sync_ns + (time - sync_time) * (last_ns - sync_ns) // (last_time - sync_time)

    def wait_records(self):
        for i in range(self.tasks):
            at = self.tasks_at + i * self.task_stride
            sequence, task, state, resource, kind, holder, since, epoch = (self.u32(at + 4 * k) for k in range(8))
            name = f"task record {i}"
            if sequence % 2:
                self.corrupt.append((name, "sequence"))
            elif state > 2:
                self.corrupt.append((name, "state"))
            elif state == 2 and not 1 <= kind <= 5:
                self.corrupt.append((name, "kind"))
            elif state == 2 and from_epoch(epoch, since)[1]:
                self.corrupt.append((name, "since"))
            elif state:
                wait = dict(type="task", record=i, sequence=sequence, task=task, state="ready")
                if state == 2:
                    time = from_epoch(epoch, since)[0]
                    wait.update(state="waiting", resource=hex(resource), since_ticks=hex(time), since_ns=self.ns(time),
                                kind=["exclusive", "channel", "time", "suspended", "outside"][kind - 1],
                                holder=None if holder == 2**32 - 1 else holder)
                yield wait


class Ring:
    def __init__(self, scope, core):
        self.scope, self.core = scope, core
        self.at = scope.rings + core * scope.stride
        at, u32 = self.at, scope.u32
        if scope.word == 8:
            self.begun = scope.u64(at) >> 12
        else:
            self.begun = self.begun32(u32(at) >> 12, u32(at + 4))
        self.refused, self.tickets = u32(at + 20), [u32(at + 24 + 4 * i) for i in range(8)]
        self.epoch, self.ticks = u32(at + 56), u32(at + 60)
        self.mask, self.armed, self.last_task = u32(at + 8), u32(at + 12), u32(at + 96)
        self.base, self.boot = (u32(at + k) | u32(at + k + 4) << 32 for k in (72, 80))
        for name in ("base", "boot"):
            if getattr(self, name) > self.begun:
                scope.corrupt.append((f"core {core}", name))
                setattr(self, name, 0)
        if u32(at + 68) > 2:
            scope.corrupt.append((f"core {core}", "state"))

    def begun32(self, low, turns):
        """The number near turns x capacity whose low 20 bits are the head's."""
        capacity = self.scope.capacity
        seen = -(-low // capacity)  # turns begun, modulo the period
        period = PERIOD // capacity
        off = (seen - turns) % period
        turns += off if off < period // 2 else off - period
        before = turns if low % capacity == 0 else turns - 1
        return low if before < 0 else before * capacity + low % capacity

    def slot(self, n):
        at = self.at + 128 + n % self.scope.capacity * self.scope.record
        return [self.scope.u32(at + 4 * i) for i in range(self.scope.record // 4)]

    def judge(self, n):
        mark, low, *parameters = self.slot(n)
        if mark & 0x7FF and not mark & 0x800 and mark >> 12 == n % PERIOD:
            return dict(n=n, whole=True, id=mark & 0x7FF, low=low, parameters=parameters)
        refused = ((n << 12) % 2**32 | 1) in self.tickets
        return dict(n=n, whole=False, id=0, reason="refused" if refused else "torn")

    def read(self):
        """The records in order of time, and the counts."""
        first = max(self.base, self.begun - self.scope.capacity, 0)
        found = [self.judge(n) for n in range(first, self.begun)]
        starts = [[]]
        for i, record in enumerate(found):
            if i and (record["id"] == BOOT or self.boot and record["n"] == self.boot):
                starts.append([])
            starts[-1].append(record)
        for i, start in enumerate(starts):
            self.date(start, newest=i == len(starts) - 1)
            self.name_tasks(start, newest=i == len(starts) - 1)
        if starts == [found]:
            self.name_all(found)
        items = []
        before = next((r["time"] for r in found if r["whole"]), 0)
        if first > self.base:
            items.append(((-(len(starts) - 1), before, self.base), dict(
                type="missing", core=self.core, begin=self.base, end=first, age=len(starts) - 1, reason="overwritten")))
        for i, start in enumerate(starts):
            age = len(starts) - 1 - i
            for record in start:
                if record["whole"]:
                    before = record["time"]
                    items.append(((-age, before, record["n"]), dict(
                        type="event", core=self.core, sequence=record["n"], age=age, ticks=hex(before),
                        ns=self.scope.ns(before), ambiguous=record["ambiguous"], task=record["task"], id=record["id"],
                        parameters=record["parameters"])))
                    continue
                last = items[-1][1] if items else {}
                if (last.get("reason"), last.get("end"), last.get("age")) == (record["reason"], record["n"], age):
                    last["end"] += 1
                else:
                    items.append(((-age, before, record["n"]), dict(
                        type="missing", core=self.core, begin=record["n"], end=record["n"] + 1, age=age,
                        reason=record["reason"])))
        items.sort(key=lambda item: item[0])
        return items, self.count(found, first)

    def count(self, found, first):
        returned = sum(r["whole"] for r in found)
        refused = sum(r.get("reason") == "refused" for r in found)
        torn = len(found) - returned - refused
        lapped = first - self.base
        unseen = max(0, self.refused - refused)
        of_lapped = min(lapped, unseen)
        of_torn = min(torn, unseen - of_lapped)
        if self.base == 0 and self.refused > refused + lapped + torn:
            self.scope.corrupt.append((f"core {self.core}", "refused"))
        return dict(type="core", core=self.core, emitted=self.begun - self.base, returned=returned,
                    overwritten=lapped - of_lapped, torn=torn - of_torn, refused=refused + of_lapped + of_torn)

    def date(self, start, newest):
        """Gives each whole record of one start of the target a time, and says whether it is ambiguous."""
        is_anchor = lambda r: r["whole"] and r["id"] == ANCHOR
        seldom = self.scope.word == 4 and self.ticks == 0
        before = after = None  # epochs; what is lost between makes them unsafe
        before_lost, near = False, 0
        for i, record in enumerate(start):
            if not record["whole"]:
                before_lost = True
                continue
            if is_anchor(record):
                before, before_lost = record["parameters"][0], False
                near, record["ambiguous"] = anchor_time(before, record["low"])
                record["time"] = near
                continue
            rest = start[i + 1:]
            next_at = next((k for k, r in enumerate(rest) if is_anchor(r)), None)
            if next_at is not None:
                next_epoch, after = rest[next_at]["parameters"][:2]
                rest = rest[:next_at]
            else:
                next_epoch, after = None, self.epoch if newest else None
            after_lost = after != 0 and any(not r["whole"] for r in rest)
            if record["id"] == BOOT and i == 0 and next_at == 0:
                anchor = start[1]
                record["time"] = preceding(anchor_time(next_epoch, anchor["low"])[0], record["low"])
                record["ambiguous"] = next_epoch > 1
                near = record["time"]
                continue
            choices = [e for e, lost in ((before, before_lost), (after, after_lost)) if e is not None and not lost]
            if not choices and before is not None and before == after:
                choices = [before]
            if seldom and choices and (next_epoch is None or (next_epoch - choices[0]) % 2**32 > 1):
                choices = []
            if choices:
                near, early = from_epoch(choices[0], record["low"])
            else:
                if before is None and near == 0:
                    near = (after or 0) << 30
                near, early = following(near, record["low"]), True
            record["time"], record["ambiguous"] = near, early

    def records_switches(self):
        """Now, or nothing where no class is recorded."""
        mask = self.mask or self.armed if self.scope.features & 2 else 1
        return None if mask == 0 else mask & 1 != 0

    def name_tasks(self, start, newest):
        task, since = None, []
        for record in start:
            if not record["whole"] or record["id"] == BOOT:
                task, since = None, []
            record["task"] = task
            if record["id"] == SWITCH:
                record["task"], following = record["parameters"][:2]
                for other in since:
                    if task is not None and task != record["task"]:
                        other["task"] = None
                    elif record["task"] not in NOBODY:
                        other["task"] = record["task"]
                task, since = following, []
            elif record["whole"] and record["id"] != BOOT:
                since.append(record)
        if newest and task is not None and self.records_switches() is False:
            for record in since:
                record["task"] = None

    def name_all(self, found):
        """Of a ring whose switches were all overwritten."""
        known = self.last_task not in NOBODY and self.scope.boots <= 1 and self.records_switches()
        if known and found and found[0]["n"] > 0 and all(r["whole"] and r["id"] not in (SWITCH, BOOT) for r in found):
            for record in found:
                record["task"] = self.last_task


class Watch:
    """Mailboxes and what belongs to them, as lines of text; words in hex."""

    def __init__(self, scope):
        self.scope, u32 = scope, scope.u32
        self.mailboxes, self.stride, self.at = u32(40), u32(44), u32(144)
        at = self.at
        _, self.features, self.nodes, self.nodes_at, self.node_stride, self.details_at, self.detail_stride, self.claims_at, \
            self.claim_stride = (u32(at + 4 + 4 * i) for i in range(9))
        self.holds, self.provides, self.debug = scope.u16(at + 40), scope.u16(at + 42), u32(at + 44)
        if u32(at) != fnv(scope.data[scope.at + at + 4:scope.at + at + 56]):
            raise SystemExit("the watch is damaged")
        self.frames_at, self.frame_stride = (u32(at + 64), u32(at + 68)) if u32(at + 4) >= 72 else (0, 0)
        self.corrupt = []

    def frame(self, row):
        """pc, ra, sp and fp of core or, behind them, task record `row`; only where there are frames."""
        return tuple(self.scope.u64(self.frames_at + row * self.frame_stride + 8 * i) for i in range(4))

    def words(self, at, count):
        return [self.scope.u32(at + 4 * i) for i in range(count)]

    def wrong_word(self, core, words, node):
        """The first word of a mailbox that cannot be right."""
        waypoint, _, sequence, resource, kind, since, epoch, _, launch, pause, _, paused, fault, stack_free = words[:14]
        text = waypoint.to_bytes(4, "little").rstrip(b"\0")
        stack_bytes = self.scope.u32(self.details_at + core * self.detail_stride + 104)
        checks = [("guard", words[15] == 0x686D6278 ^ core), ("waypoint", all(0x20 <= c < 0x7F for c in text)),
                  ("wait_kind", kind <= 5), ("launch", launch <= 4), ("pause", pause <= 1), ("paused", paused <= 2),
                  ("fault", fault <= 7), ("node", node < self.nodes), ("wait_resource", sequence % 2 == 0 or resource),
                  ("wait_epoch", sequence % 2 == 0 or since >> 30 == epoch % 4),
                  ("stack_free", stack_free == 2**32 - 1 or not stack_bytes or stack_free <= stack_bytes)]
        return next((name for name, right in checks if not right), None)

    def mailbox(self, core):
        at = self.mailboxes + core * self.stride
        words = self.words(at, 16)
        node, role = self.scope.u16(at + 56), self.scope.u16(at + 58)
        if not any(words[:13] + words[14:]) and words[13] in (0, 2**32 - 1):
            return "unused"
        wrong = self.wrong_word(core, words, node)
        if wrong:
            self.corrupt.append(f"corrupt core {core} {wrong}")
            return "corrupt"
        waypoint, heartbeat, sequence, resource, kind, since, epoch, kernel, launch, pause, _, paused, fault, free = words[:14]
        if not any((waypoint, heartbeat, sequence, kernel, launch, paused, fault)) and free == 2**32 - 1:
            return "unused"
        line = (f"waypoint={waypoint:x} heartbeat={heartbeat:x} sequence={sequence:x} kernel={kernel:x} launch={launch} "
                f"asked={pause} paused={paused} fault={fault} node={node} role={role}")
        if free != 2**32 - 1:
            line += f" stack={free:x}"
        if sequence % 2:
            line += f" wait={resource:x}:{kind}:{from_epoch(epoch, since)[0]:x}"
        return line

    def detail(self, core):
        w = self.words(self.details_at + core * self.detail_stride, 32)
        wrong = lambda name: self.corrupt.append(f"corrupt core {core} {name}")
        wide = lambda i: w[i] | w[i + 1] << 32
        kind, reason, fault_kind = w[0], w[1], w[3]
        if kind > 7:
            kind = wrong("fault.type") or 0
        if kind == 5 and not 1 <= reason <= 17:
            reason = wrong("fault.reason") or 0
        if kind == 5 and not 1 <= fault_kind <= 5:
            fault_kind = wrong("fault.kind") or 0
        time = from_epoch(w[15], w[14])[0]
        if kind and w[14] >> 30 != w[15] % 4:
            time = wrong("fault.epoch") or 0
        lowest = "none" if w[27] == 2**32 - 1 or not w[26] else f"{w[27]:x}"
        if lowest != "none" and w[27] > w[26]:
            lowest = wrong("stack_lowest") or "none"
        fault = [kind, reason, w[2], fault_kind, wide(4), wide(6), wide(8), w[10], w[11], wide(12), time, w[16]]
        return (f"fault={':'.join(f'{n:x}' for n in fault)} delays={w[17]:x},{w[18]:x},{w[19]:x} seed={w[20]:x} "
                f"done={w[21]:x},{w[22]:x},{w[23]:x} stack={w[26]:x}:{lowest}:{w[28]:x}")

    def claims(self, row):
        words = self.words(self.claims_at + row * self.claim_stride, self.holds + self.provides + 1)
        held, provided = words[:self.holds], words[self.holds:-1]
        text = lambda some: ",".join(f"{n:x}" for n in some if n)
        return f"holds={text(held)} provides={text(provided)} lost={words[-1]}"

    def node(self, i):
        at = self.nodes_at + i * self.node_stride
        first, order = self.scope.u32(at + 4), self.scope.u32(at + 8)
        if first > self.scope.cores:
            self.corrupt.append(f"corrupt node {i} first_fault")
            first = 0
        return f"{self.scope.u16(at)},{self.scope.u16(at + 2)} first={first - 1 if first else 'none'} values={order:x}"

    def debug_ring(self, node, sound):
        """Order, core and value, the newest first; of cores whose mailbox is sound."""
        newest = self.scope.u32(self.nodes_at + node * self.node_stride + 8)
        values = []
        for core in sound:
            if self.scope.u16(self.mailboxes + core * self.stride + 56) != node:
                continue
            for slot in range(self.debug):
                order, value = self.words(self.details_at + core * self.detail_stride + 128 + 8 * slot, 2)
                if order:
                    values.append(((newest - order) % 2**32, order, core, value))
        return " ".join(f"{order:x}:{core}:{value:x}" for _, order, core, value in sorted(values))

    def lines(self):
        cores = [self.mailbox(core) for core in range(self.scope.cores)]
        lines = [f"core {core} {line}" for core, line in enumerate(cores)]
        sound = [core for core, line in enumerate(cores) if line != "corrupt"]
        lines += [f"claims {row} {self.claims(row)}" for row in range(self.scope.cores + self.scope.tasks)]
        lines += [f"node {i} {self.node(i)}" for i in range(self.nodes)]
        lines += [f"detail {core} {self.detail(core)}" for core in range(self.scope.cores)]
        lines += [f"debug {i} {self.debug_ring(i, sound)}".rstrip() for i in range(self.nodes)]
        return lines + self.corrupt


def read_watch(data):
    """What a scope with mailboxes says of its cores; nothing: it has none."""
    scope = Scope(data)
    return Watch(scope).lines() if scope.u32(40) and scope.u32(144) else []


def read(data):
    scope = Scope(data)
    rings = [Ring(scope, core).read() for core in range(scope.cores)]
    tasks = list(scope.wait_records())
    items = [item for ring, _ in rings for item in ring]
    if scope.clock in (2, 3) or scope.cores == 1:
        items.sort(key=lambda item: item[0][:2])
    corrupt = [dict(type="corruption", where=where, field=field) for where, field in scope.corrupt]
    return [counts for _, counts in rings] + tasks + corrupt + [item for _, item in items]


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as image:
        data = image.read()
    for line in read(data):
        print(json.dumps(line))
    for line in read_watch(data):
        print(line)
