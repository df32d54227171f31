"""hangscope in gdb and gdb-multiarch: what a target's cores do, what they wait for, what led up to it.

    (gdb) source /usr/local/share/hangscope/gdb/hangscope.py
    (gdb) hangscope verdict

    hangscope status          each core and task: where it is, what it waits for
    hangscope waits           who waits for whom, and the cycles
    hangscope verdict         what kind of stop this is, as `hangscope why` says it
    hangscope events [N]      the last N events of all cores (20)
    hangscope ring [NODE]     the values of the nodes' debug rings, the newest first
    hangscope dump [all]      words that the program wants shown; all: also those that it wants dumped

Reads memory and nothing else: of a live process, a core dump, a debug server's target (QEMU, OpenOCD), whether
a watcher runs or not. The scope is where the symbols hangscope_mapped_scope or hangscope_scope say, or
where `set var $hangscope_at = ADDRESS` does. docs/format.md has the bytes. Needs gdb 12 or newer with
Python; what is read is never trusted: what cannot be right is said, in one sentence.

What hangs is not decided here: verdict and waits ask `hangscope why`, which reads the target through gdb. It is
the program of this script's installation, else that of $PATH, or what `set var $hangscope_program = "PATH"` says."""
import json
import os
import shutil
import struct
import subprocess
import tempfile

import gdb

FNV_SEED, FNV_PRIME = 0x811C9DC5, 0x01000193
CATALOG_MAGIC = 0x6C746163
EVENT, WAYPOINT, _, RESOURCE, NODE_RESOURCE, ROLE, KERNEL = range(1, 8)
TASK, ENUMERATION, WORD = 9, 13, 14
TIME, SUSPENDED = 3, 4
KINDS = ["", "exclusive", "channel", "time", "suspended", "outside"]
LAUNCHES = ["", "idle", "running", "done", "ended"]
MAILBOX_GUARD, NOT_KNOWN, NO_TASK = 0x686D6278, 0xFFFFFFFF, 0xFFFFFFFF
ANCHOR, BOOT, SWITCH = 1, 2, 18
DISORDER = 2**28
MOST_BYTES = 256 << 20  # of one ring, or one block
# id -> name, format; the fields are all 32 bits, signed where the format says %d
BUILT_IN = {1: ("anchor", "epoch %u, before %u"), 2: ("boot", "start %u, %u records of earlier ones"), 3: ("waypoint", "at %s"),
            4: ("wait_begin", "resource %x, kind %u"), 5: ("wait_end", "resource %x, began at %u"), 6: ("counter", "resource %x holds %u"), 12: ("bus_end", "address %x, %u bytes")}
BUILT_IN.update((7 + i, (f"bus_{kind}_begin", "address %x, %u bytes")) for i, kind in enumerate(("read", "write", "atomic", "multicast", "inline_write")))
BUILT_IN.update(enumerate([
    ("task_create", "task %u, priority %u"), ("task_destroy", "task %u, was in state %u"),
    ("task_switch", "from task %u to task %u"), ("task_suspend", "task %u"), ("task_resume", "task %u"),
    ("task_delay", "%u ticks"), ("task_yield", ""), ("semaphore_wait", "semaphore %x, count %d"),
    ("semaphore_post", "semaphore %x, count %d"), ("mutex_lock", "mutex %x, holder %u"), ("mutex_unlock", "mutex %x"),
    ("pipe_read", "pipe %x, %u bytes"), ("pipe_write", "pipe %x, %u bytes"), ("queue_send", "queue %x, %u waiting"),
    ("queue_receive", "queue %x, %u waiting"), ("isr_enter", "interrupt %u"), ("isr_exit", "interrupt %u"),
    ("exception", "cause %u at %x")], 16))


# Fields of these whose values have names, by what they are numbers of.
NUMBERED = {"task": TASK, "previous": TASK, "next": TASK, "holder": TASK, "semaphore": RESOURCE, "mutex": RESOURCE, "pipe": RESOURCE,
            "queue": RESOURCE, "interrupt": 10, "cause": 11, "previous_state": 12, "resource": RESOURCE, "kind": "resource_kind"}
RESOURCE_KINDS = ("none", "exclusive", "channel", "time", "suspended", "outside")


class Trouble(Exception):
    """One sentence on why something cannot be told."""


def fnv(data):
    value = FNV_SEED
    for byte in data:
        value = (value ^ byte) * FNV_PRIME % 2**32
    return value


def printable(text):
    """What comes from a target does not reach the terminal as it is."""
    return "".join(c if " " <= c != "\x7f" and not "\x80" <= c <= "\x9f" else "\\x%02x" % ord(c) for c in text)


def characters(word):
    return printable(word.to_bytes(4, "little").rstrip(b"\0").decode("latin-1"))


# Times: docs/format.md, "Times".

def of_epoch(epoch, low):
    """The time, and whether it is doubtful."""
    near = epoch << 30
    time_of_it = near + (low - near + 2**31) % 2**32 - 2**31
    return (time_of_it, False) if time_of_it >= 0 else (low, True)


def of_anchor(epoch, low):
    time_of_it, early = of_epoch(epoch, low)
    if not early and time_of_it >> 30 == epoch:
        return time_of_it, False
    time_of_it = (epoch << 30) - ((epoch << 30) - low) % 2**32  # it was renewed
    return (time_of_it if time_of_it >= 0 else low), True


def first_after(near, low):
    time_of_it = near - DISORDER + (low - near + DISORDER) % 2**32
    return time_of_it if time_of_it >= 0 else low


def last_before(near, low):
    time_of_it = near + DISORDER - (near - low + DISORDER) % 2**32
    return time_of_it if time_of_it >= 0 else low


class Elf:
    """The catalog's section of an ELF file; nothing else of it is looked at."""

    def __init__(self, path):
        self.catalog = b""
        with open(path, "rb") as file:
            self.file = file
            ident = file.read(16)
            if len(ident) == 16 and ident[:4] == b"\x7fELF":
                self.order = ">" if ident[5] == 2 else "<"
                self.read_sections(wide=ident[4] == 2)

    def unpack(self, form, at):
        self.file.seek(at)
        return struct.unpack(self.order + form, self.file.read(struct.calcsize(self.order + form)))

    def read_sections(self, wide):
        at, = self.unpack("Q", 0x28) if wide else self.unpack("I", 0x20)
        size, count, names = self.unpack("HHH", 0x3A if wide else 0x2E)
        headers = [self.unpack("IIQQQQ" if wide else "IIIIII", at + i * size) for i in range(count)]
        for name, _, _, _, offset, length in headers:
            self.file.seek(headers[names][4] + name)
            if self.file.read(19).split(b"\0")[0] in (b".hangscope.catalog", b".hangscope.places"):
                self.file.seek(offset)
                self.catalog += self.file.read(length)


class Catalog:
    """Names of events, waypoints, resources ..., from the program's file."""

    def __init__(self):
        self.entries = {}  # (kind, id) -> name, format, fields
        self.words = []  # name, address of the first, type, per, when, bytes to the next
        self.values = {("resource_kind", kind): name for kind, name in enumerate(RESOURCE_KINDS)}  # (enumeration, value) -> name
        self.waypoints = {}  # characters -> [(long name, place)]
        for objfile in gdb.objfiles():
            try:
                elf = Elf(objfile.filename) if objfile.is_valid() and objfile.filename else None
            except (OSError, struct.error, IndexError):
                continue
            if elf is not None and elf.catalog:
                self.add(elf.catalog, elf.order)

    def add(self, data, order):
        """Takes all that is sound up to the first that is not."""
        at = 0
        while at + 12 <= len(data):
            magic, version, size = struct.unpack_from(order + "III", data, at)
            if magic == 0:  # padding
                at += 4
                continue
            if magic != CATALOG_MAGIC or version != 1 or not 12 <= size <= len(data) - at:
                return
            self.add_list(data[at + 12:at + size], order)
            at += (size + 3) // 4 * 4

    def add_list(self, data, order):
        at = 0
        while at + 12 <= len(data):
            kind, identity, classes = struct.unpack_from(order + "III", data, at)
            texts, at = [], at + 12
            for _ in range(3):
                end = data.find(b"\0", at)
                if end < 0:
                    return
                texts.append(data[at:end].decode("utf-8", "replace"))
                at = end + 1
            at = (at + 3) // 4 * 4
            if kind == WORD and len(texts[2].split()) == 3:
                self.words.append((printable(texts[0]), identity, *texts[2].split(), classes))
                continue
            if kind == ENUMERATION:
                self.values[texts[1], identity] = printable(texts[0])
                continue
            self.entries[kind, identity] = (*texts, classes)
            if kind == WAYPOINT:
                self.waypoints.setdefault(texts[0], []).append((texts[1], texts[2]))

    def name(self, kind, identity):
        return printable(self.entries[kind, identity][0]) if (kind, identity) in self.entries else ""

    def resource(self, number, coordinates):
        if self.name(RESOURCE, number):
            return self.name(RESOURCE, number)
        node, low = (number >> 16) - 1, number & 0xFFFF
        if self.name(NODE_RESOURCE, low) and node >= 0:
            x, y = coordinates[node] if node < len(coordinates) else (0, 0)
            return f"{self.name(NODE_RESOURCE, low)} of ({x},{y})" if node < len(coordinates) else f"{self.name(NODE_RESOURCE, low)} of node {node}"
        return f"{number:#x}"

    def event(self, identity, parameters, word_bytes):
        """Name and text of an event, as `hangscope show` prints it."""
        if (EVENT, identity) in self.entries:
            name, form, fields, _ = self.entries[EVENT, identity]
            fields = [field.split(" ", 1) for field in fields.split(",") if field]
            if identity in BUILT_IN and BUILT_IN[identity][0] == name:
                fields = [[NUMBERED.get(field, kind), field] for kind, field in fields]
        elif identity in BUILT_IN:
            name, form = BUILT_IN[identity]
            words = form.replace("from task", "task").replace("to task", "task").replace("was in state", "previous_state").split("%")
            fields = [[NUMBERED.get(before.split()[-1], {"d": "i32", "s": "char4"}.get(part[0], "u32")), ""] for before, part in zip(words, words[1:]) if part]
        else:
            return f"event {identity}", " (" + ", ".join(map(str, parameters)) + ")"
        values, left = [], list(parameters)
        for kind, field in fields:
            values.append((kind, field, self.value(kind, left, word_bytes)))
        text = printable(self.fill(form, values))
        return printable(name), "  " + text if text else ""

    @staticmethod
    def value(kind, left, word_bytes):
        wide = kind in ("u64", "i64") or (kind == "ptr" and word_bytes == 8)
        if len(left) < 1 + wide:
            left.clear()
            return None
        value = left.pop(0)
        if wide:
            value |= left.pop(0) << 32
        bits = {"u8": 8, "i8": 8, "u16": 16, "i16": 16, "bool": 1}.get(kind, 64 if wide else 32)
        value &= 2**bits - 1
        return value - 2**bits if kind in ("i8", "i16", "i32", "i64") and value >> (bits - 1) else value

    def fill(self, form, values):
        text, at, values = "", 0, list(values)
        while at < len(form):
            if form[at] != "%":
                text, at = text + form[at], at + 1
                continue
            end = at + 1
            while end < len(form) and form[end] in "0-#+ 123456789lhzjt":
                end += 1
            if end == len(form) or form[end] not in "udixXpcs%":
                text, at = text + form[at:end], end
                continue
            flags, letter, at = form[at + 1:end].rstrip("lhzjt"), form[end], end + 1
            if letter == "%":
                text += "%"
            elif not values:
                text += "?"
            else:
                text += self.pad(self.plain(letter, *values.pop(0)), flags)
        for kind, field, value in values:  # a field without a conversion is shown all the same
            text += f"{' ' if text else ''}{field}={self.plain('u', kind, field, value)}"
        return text

    @staticmethod
    def pad(text, flags):
        width = min(int(flags.lstrip("-+#0 ") or 0), 64)
        if "-" in flags:
            return text.ljust(width)
        return text.zfill(width) if "0" in flags[:len(flags) - len(flags.lstrip("-+#0 "))] else text.rjust(width)

    def label(self, kind, value):
        """What a value is called, as hangscope show has it; empty: it has no name."""
        name = self.values.get((kind, value), "") if isinstance(kind, str) else self.name(kind, value)
        if not name and kind == RESOURCE and value >> 16 and self.name(NODE_RESOURCE, value & 0xFFFF):
            return f"{self.name(NODE_RESOURCE, value & 0xFFFF)} of node {(value >> 16) - 1}"
        return f"{value} {name}" if name and kind in (TASK, 10, 11) else name

    def plain(self, letter, kind, _, value):
        if value is None:
            return "?"
        if letter != "c" and kind != "char4" and self.label(kind, value):
            return self.label(kind, value)
        bits = value % 2**32 if -2**31 <= value < 0 else value % 2**64
        if letter in "xX":
            return format(bits, letter)
        if letter == "c":
            return characters(value & 0xFF)
        if kind == "char4":
            return characters(value)
        return f"{bits:#x}" if letter == "p" or kind == "ptr" else str(value)


class Memory:
    """Bytes of the target at an address, in its byte order."""

    def __init__(self, at):
        self.at = at
        self.order = "<"

    def read(self, offset, size):
        if size > MOST_BYTES:
            raise Trouble(f"{size} bytes at {self.at + offset:#x} are more than a scope has")
        try:
            return bytes(gdb.selected_inferior().read_memory(self.at + offset, size)) if size else b""
        except gdb.error:
            raise Trouble(f"the memory at {self.at + offset:#x} cannot be read; does the program run, or does the dump have it?") from None

    def unpack(self, form, data, at=0):
        return struct.unpack_from(self.order + form, data, at)


def find_scope():
    """The scope's address: by its symbols, or as the user says."""
    told = gdb.convenience_variable("hangscope_at")
    if told is not None:
        return int(told)
    found = {}
    for symbol in ("hangscope_mapped_scope", "hangscope_scope"):
        try:
            found[symbol] = int(gdb.parse_and_eval(f"(unsigned long)&{symbol}"))
        except gdb.error:
            pass
    if not found:
        raise Trouble("no hangscope here: there is no symbol hangscope_scope; is the program's file loaded (file PROGRAM), and does it include hangscope/hangscope.h?")
    if "hangscope_mapped_scope" not in found:
        return found["hangscope_scope"]
    try:
        at = int(gdb.parse_and_eval("*(unsigned long *)&hangscope_mapped_scope"))
    except gdb.error:
        raise Trouble("hangscope_mapped_scope cannot be read; has the program started?") from None
    if at == 0:
        raise Trouble("this process has no scope: it has not come so far yet, or there was no file to be had for one")
    return at


def program_of_hangscope():
    told = gdb.convenience_variable("hangscope_program")
    if told is not None:
        return told.string()
    installed = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../bin/hangscope")
    found = installed if os.access(installed, os.X_OK) else shutil.which("hangscope")
    if found is None:
        raise Trouble('there is no program hangscope in $PATH to ask; where it is: set var $hangscope_program = "PATH"')
    return found


def file_of_program():
    """With the names in it; empty: none."""
    files = [objfile.filename for objfile in gdb.objfiles() if objfile.is_valid() and objfile.filename]
    for path in files:
        try:
            if Elf(path).catalog:
                return path
        except (OSError, struct.error, IndexError):
            pass
    return files[0] if files and os.path.isfile(files[0]) else ""


def answer(request):
    """Of the protocol in docs/probes.md."""
    word, *numbers = request.decode().split()
    if word == "alive":
        return b"dead\n"  # as far as why can tell: it stands still while gdb has it
    if word != "read":
        return b"error gdb only reads\n"
    address, size = (int(number, 0) for number in numbers)
    try:
        data = Memory(address).read(0, size)
    except Trouble as trouble:
        return f"error {trouble}\n".encode()
    return b"ok %d\n" % len(data) + data


def ask_why(*options):
    """What `hangscope why` prints of the target, whose memory it reads through gdb.

    Its helper is two cats between it and our pipes, as gdb may be asked by its own thread only. No answer is
    longer than fits into the pipe, so none waits for a reader that has ended; what why prints may be longer, and
    goes to files."""
    scope, program, file = find_scope(), program_of_hangscope(), file_of_program()
    requests, to_requests = os.pipe()
    from_answers, answers = os.pipe()
    theirs = (to_requests, from_answers)
    helper = f"cat /dev/fd/{from_answers} & cat >/dev/fd/{to_requests}; kill $!"
    words = [program, "why", *options, *(["--elf", file] if file else []), "exec:" + helper]
    with open(requests, "rb") as asked, open(answers, "wb", buffering=0) as told, \
            tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            told.write(f"hangscope-probe 1\nscope {scope:#x}\nmost 32768\nready\n".encode())
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=theirs, start_new_session=True)
            os.close(to_requests)
            to_requests = -1
            with process:
                try:
                    for request in iter(asked.readline, b""):
                        told.write(answer(request))
                    process.wait()
                finally:
                    process.kill()
        except OSError as error:
            raise Trouble(f"{program} cannot be started: {error.strerror}") from None
        finally:
            for fd in (to_requests, from_answers):
                if fd >= 0:
                    os.close(fd)
        printed, said = (file.seek(0) or file.read().replace(f"helper '{helper}'", "gdb").replace("exec:" + helper, "gdb") for file in (out, err))
    if process.returncode not in (0, 1) or not printed:
        raise Trouble(said.strip().removeprefix("hangscope: error: ") or f"{program} ended with status {process.returncode}")
    return printed


class Scope:
    """What the scope says, checked."""

    def __init__(self):
        self.memory = memory = Memory(find_scope())
        self.catalog = Catalog()
        self.corrupt = []
        header = memory.read(0, 192)
        if header[:8] == b"gnahpocs":
            memory.order = ">"
        elif header[:8] != b"hangscop":
            raise Trouble(f"there is no scope at {memory.at:#x}: its magic is missing; has the program started, or was it overwritten?")
        check, = memory.unpack("I", header, 188)
        major, minor = memory.unpack("HH", header, 8)
        if check != fnv(header[:120]):
            raise Trouble(f"the header of the scope at {memory.at:#x} cannot be right: its check is {check:#010x} and should be {fnv(header[:120]):#010x}"
                          if check else f"the scope at {memory.at:#x} is not ready: the program is still making it")
        if major != 1:
            raise Trouble(f"the scope has version {major}.{minor}, and this script reads 1")
        self.word, self.record = header[14], header[15]
        self.size, self.features, self.core_count, self.capacity, self.rings_at, self.ring_stride = memory.unpack("6I", header, 16)
        self.mailboxes_at, self.mailbox_stride, self.task_count, self.tasks_at, self.task_stride, self.clock = memory.unpack("6I", header, 40)
        self.hz, self.boots = memory.unpack("QI", header, 64)
        self.sync = memory.unpack("4Q", header, 104)
        self.sync_is_steady = memory.unpack("I", header, 140)[0] % 2 == 0
        self.watch_at, = memory.unpack("I", header, 144)
        if self.word not in (4, 8):
            raise Trouble(f"the scope at {memory.at:#x} contradicts itself: words of {self.word} bytes")
        if self.record % 8 or not 16 <= self.record <= 64 or not 8 <= self.capacity <= 65536:
            raise Trouble(f"the scope at {memory.at:#x} contradicts itself: rings of {self.capacity} records of {self.record} bytes")
        self.expect("rings", self.rings_at, self.core_count, self.ring_stride, 128 + self.capacity * self.record)
        self.expect("task records", self.tasks_at, self.task_count, self.task_stride, 32)
        self.nodes, self.cores, self.claims = [], [], []
        self.debug_slots = self.details_at = 0
        self.read_names(header)
        self.rings = self.read_rings()
        if self.watch_at and self.mailboxes_at:
            self.read_watch()
        self.tasks = self.read_tasks()

    def expect(self, what, at, count, stride, size):
        if count and (at < 64 or stride < size or at + (count - 1) * stride + size > self.size or self.size > 2**31):
            raise Trouble(f"the scope at {self.memory.at:#x} contradicts itself: {count} {what} of {stride} bytes at {at} in {self.size} bytes")

    def read_names(self, header):
        """What the program gave a name while it ran comes before what the catalog says."""
        at, count, changes = self.memory.unpack("III", header, 160)
        if not at or changes % 2:
            return
        self.expect("names", at, count, 32, 32)
        data = self.memory.read(at, 32 * count)
        for i in range(count):
            kind, identity = self.memory.unpack("II", data, 32 * i)
            text = data[32 * i + 8:32 * i + 32].split(b"\0")[0].decode("utf-8", "replace")
            if kind and text:
                self.catalog.entries[kind & 0x7FFFFFFF, identity] = (text, "", "", 0)

    def task(self, identity):
        """task 3 motor"""
        return f"task {identity} {self.catalog.name(TASK, identity)}".rstrip()

    def read_rings(self):
        rings = []
        for core in range(self.core_count):
            data = self.memory.read(self.rings_at + core * self.ring_stride, 128)
            rings.append(Ring(self, core, data))
        return rings

    def read_watch(self):
        data = self.memory.read(self.watch_at, 64)
        u = self.memory.unpack
        check, size, _, node_count, nodes_at, node_stride, self.details_at, self.detail_stride = u("8I", data)
        claims_at, claim_stride, self.hold_slots, self.provide_slots, self.debug_slots = u("IIHHI", data, 32)
        if size < 64 or check != fnv(data[4:56]):
            self.corrupt.append(f"watch: its check is {check:#010x} and should be {fnv(data[4:56]):#010x}; what cores do now is not known")
            self.details_at = self.debug_slots = 0
            return
        self.expect("nodes", nodes_at, node_count, node_stride, 32)
        self.expect("mailboxes", self.mailboxes_at, self.core_count, self.mailbox_stride, 64)
        if self.details_at:
            self.expect("details", self.details_at, self.core_count, self.detail_stride, 128 + 8 * self.debug_slots)
        nodes = self.memory.read(nodes_at, node_count * node_stride)
        self.nodes = [u("HHII", nodes, i * node_stride) for i in range(node_count)]
        boxes = self.memory.read(self.mailboxes_at, self.core_count * self.mailbox_stride)
        self.cores = [Core(self, i, boxes[i * self.mailbox_stride:i * self.mailbox_stride + 64]) for i in range(self.core_count)]
        if claims_at:
            self.read_claims(claims_at, claim_stride)

    def read_claims(self, at, stride):
        slots, rows = self.hold_slots + self.provide_slots, self.core_count + self.task_count
        self.expect("rows of claims", at, rows, stride, 4 * slots + 4)
        data = self.memory.read(at, rows * stride)
        for row in range(rows):
            words = self.memory.unpack(f"{slots}I", data, row * stride)
            self.claims.append((set(words[:self.hold_slots]) - {0}, set(words[self.hold_slots:]) - {0}))

    def read_tasks(self):
        tasks = []
        for i in range(self.task_count):
            task = Task(self, i, self.memory.read(self.tasks_at + i * self.task_stride, 32))
            if task.in_use:
                tasks.append(task)
        return tasks

    def coordinates(self):
        return [(x, y) for x, y, _, _ in self.nodes]

    def nanoseconds(self, ticks):
        if self.hz:
            return ticks * 10**9 // self.hz
        sync_time, sync_ns, last_time, last_ns = self.sync
        if not self.sync_is_steady or last_time <= sync_time or last_ns <= sync_ns:
            return None
        return sync_ns + (ticks - sync_time) * (last_ns - sync_ns) // (last_time - sync_time)

    def when(self, ticks, doubtful=False):
        ns = self.nanoseconds(ticks)
        return ("~" if doubtful else "") + (f"{ns / 1e9:.6f}" if ns is not None else f"{ticks} ticks")


class Core:
    """A mailbox."""

    def __init__(self, scope, index, data):
        self.scope, self.index, self.kind = scope, index, "core"
        (self.waypoint, self.heartbeat, self.sequence, resource, wait_kind, since, epoch, self.kernel, self.launch, pause, _, self.paused,
         self.fault, self.stack_free) = scope.memory.unpack("14I", data)
        self.node, self.role = scope.memory.unpack("HH", data, 56)
        guard, = scope.memory.unpack("I", data, 60)
        self.waits = self.sequence % 2 == 1
        self.resource, self.wait_kind = (resource, wait_kind) if self.waits else (0, 0)
        self.since = of_epoch(epoch, since)[0] if self.waits else 0
        self.holder = None
        stack = self.stack_free not in (0, NOT_KNOWN)
        self.in_use = any((self.waypoint, self.heartbeat, self.sequence, self.kernel, self.launch, self.paused, self.fault, stack))
        blank = not any(data[:52]) and not any(data[56:])
        self.corrupt = not blank and self.check(guard, pause, since, epoch)
        self.in_use |= self.corrupt

    def check(self, guard, pause, since, epoch):
        """Names what cannot be right, once; nothing is concluded from such a mailbox."""
        node_count = len(self.scope.nodes)
        text = self.waypoint.to_bytes(4, "little").rstrip(b"\0")
        for field, value, sound in (("guard", guard, guard == MAILBOX_GUARD ^ self.index),
                                    ("waypoint", self.waypoint, all(32 <= c < 127 for c in text)),
                                    ("wait_kind", self.wait_kind, self.wait_kind <= 5), ("launch", self.launch, self.launch <= 4),
                                    ("pause", pause, pause <= 1), ("paused", self.paused, self.paused <= 2),
                                    ("fault", self.fault, self.fault <= 7), ("node", self.node, self.node < node_count),
                                    ("wait_resource", self.resource, not self.waits or self.resource != 0),
                                    ("wait_epoch", epoch, not self.waits or since >> 30 == epoch & 3)):
            if not sound:
                self.scope.corrupt.append(f"core {self.index}: {field} {value:#x} cannot be right; nothing is concluded from its mailbox")
                self.waits = False
                return True
        return False

    def name(self):
        text = f"core {self.index}"
        ring = self.scope.rings[self.index]
        role = "" if self.corrupt else self.scope.catalog.name(ROLE, self.role)
        if self.scope.features & 8 and ring.name:
            text += f" {ring.name}"
        elif role:
            text += f" {role}"
        if len(self.scope.nodes) > 1 and not self.corrupt:
            text += " (%u,%u)" % self.scope.coordinates()[self.node]
        return text

    def place(self):
        """ at CRBW, reserve back, cb.c:88"""
        if self.waypoint == 0 or self.corrupt:
            return ""
        text = characters(self.waypoint)
        known = self.scope.catalog.waypoints.get(text, [])
        if len(known) == 1:
            return " at " + ", ".join([text, *(printable(part) for part in known[0] if part)])
        return f" at {text}"

    def stopped(self):
        """Why it does nothing more by itself; empty: it may."""
        if self.fault:
            return "halted by a fault"
        return {1: "paused by its code", 2: "paused by the host"}.get(self.paused, "ended" if self.launch == 4 else "")

    def does(self):
        if self.corrupt:
            return "corrupt"
        if self.stopped():
            return self.stopped()
        if self.waits:
            return "waits"
        return LAUNCHES[self.launch] or "runs"


class Task:
    """A task record."""

    def __init__(self, scope, index, data):
        self.scope, self.index, self.kind = scope, index, "task"
        self.sequence, self.id, state, self.resource, self.wait_kind, holder, since, epoch = scope.memory.unpack("8I", data)
        self.in_use = state != 0 or self.sequence % 2 == 1
        self.waits = state == 2
        self.holder = None if holder == NO_TASK else holder
        self.since = of_epoch(epoch, since)[0]
        wrong = next((name for name, bad in (("sequence", self.sequence % 2 == 1), ("state", state > 2),
                                             ("kind", state == 2 and not 1 <= self.wait_kind <= 5)) if bad), None)
        self.corrupt = wrong is not None
        if self.corrupt:
            self.waits = False
            if wrong == "sequence":
                scope.corrupt.append(f"task record {index}: it was being changed when the target stopped")
            else:
                scope.corrupt.append(f"task record {index}: {wrong} cannot be right")

    def name(self):
        return self.scope.task(self.id)

    def place(self):
        return ""

    def does(self):
        return "corrupt" if self.corrupt else "waits" if self.waits else "ready"


class Ring:
    """The events of a core."""

    def __init__(self, scope, core, data):
        self.scope, self.core = scope, core
        u = scope.memory.unpack
        low, turns = u("II", data)
        self.begun = u("Q", data)[0] >> 12 if scope.word == 8 else self.begun_of(low >> 12, turns)
        self.mask, self.armed = u("II", data, 8)
        self.epoch, self.ticks = u("II", data, 56)
        self.last_task, = u("I", data, 96)
        base_low, base_high, boot_low, boot_high = u("4I", data, 72)
        self.base, self.boot = base_low | base_high << 32, boot_low | boot_high << 32
        self.name = printable(data[112:128].split(b"\0")[0].decode("utf-8", "replace"))
        for field in ("base", "boot"):
            if getattr(self, field) > self.begun:
                scope.corrupt.append(f"core {core}: {field} {getattr(self, field)}: only {self.begun} records were begun")
                setattr(self, field, 0)

    def begun_of(self, low, turns):
        """The number whose low 20 bits are the head's and whose turns are nearest to those counted."""
        period = 2**20 // self.scope.capacity
        off = (-(-low // self.scope.capacity) - turns) % period
        turns += off if off < period // 2 else off - period
        before = turns - (low % self.scope.capacity != 0)
        return low if before < 0 else before * self.scope.capacity + low % self.scope.capacity

    def events(self):
        """(sort key, event) of what the ring holds, dated."""
        scope = self.scope
        first = max(self.base, self.begun - scope.capacity, 0)
        if first == self.begun:
            return []
        data = scope.memory.read(self.rings_offset() + 128, scope.capacity * scope.record)
        found = [self.record(data, n) for n in range(first, self.begun)]
        starts = [[]]
        for record in found:
            if starts[-1] and (record["id"] == BOOT or (self.boot and record["n"] == self.boot)):
                starts.append([])
            starts[-1].append(record)
        for i, start in enumerate(starts):
            self.date(start, newest=i == len(starts) - 1)
            self.name_tasks(start, newest=i == len(starts) - 1)
            for record in start:
                record["age"] = len(starts) - 1 - i
        if len(starts) == 1:
            self.name_all(found)
        return [((-r["age"], r["time"], r["n"]), r) for r in found if r["id"]]

    def rings_offset(self):
        return self.scope.rings_at + self.core * self.scope.ring_stride

    def record(self, data, n):
        """Of id 0: it is not whole."""
        words = self.scope.memory.unpack(f"{self.scope.record // 4}I", data, n % self.scope.capacity * self.scope.record)
        mark = words[0]
        whole = mark & 0x7FF and not mark & 0x800 and mark >> 12 == n % 2**20
        return dict(core=self.core, n=n, id=mark & 0x7FF if whole else 0, low=words[1], parameters=words[2:])

    def date(self, start, newest):
        seldom = self.scope.word == 4 and self.ticks == 0
        before, before_lost, near = None, False, 0
        for i, record in enumerate(start):
            if not record["id"]:
                before_lost = True
                continue
            if record["id"] == ANCHOR:
                before, before_lost = record["parameters"][0], False
                near, record["doubtful"] = of_anchor(before, record["low"])
                record["time"] = near
                continue
            ahead = next((k for k in range(i + 1, len(start)) if start[k]["id"] == ANCHOR), None)
            if record["id"] == BOOT and i == 0 and ahead == 1:
                epoch = start[1]["parameters"][0]
                near = last_before(of_anchor(epoch, start[1]["low"])[0], record["low"])
                record["time"], record["doubtful"] = near, epoch > 1
                continue
            following = start[ahead]["parameters"][:2] if ahead is not None else (None, self.epoch if newest else None)
            lost = any(not r["id"] for r in start[i + 1:ahead])
            record["time"], record["doubtful"] = self.date_one(record["low"], before, before_lost, following, lost, seldom, near)
            near = record["time"]

    @staticmethod
    def date_one(low, before, before_lost, following, after_lost, seldom, near):
        next_epoch, after = following
        epoch = None
        if before is not None and (not before_lost or before == after):
            epoch = before
        elif after is not None and (not after_lost or after == 0):
            epoch = after
        if seldom and epoch is not None and (next_epoch is None or (next_epoch - epoch) % 2**32 > 1):
            epoch = None
        if epoch is not None:
            return of_epoch(epoch, low)
        if before is None and near == 0:
            near = (after or 0) << 30
        return first_after(near, low), True

    def records_switches(self):
        """Now, or nothing where no class is recorded."""
        mask = self.mask or self.armed if self.scope.features & 2 else 1
        return None if mask == 0 else mask & 1 != 0

    def name_tasks(self, start, newest):
        """A switch tells the task of the records before it, as far as none is missing, and of those behind it."""
        task, since = None, []
        for record in start:
            if not record["id"] or record["id"] == BOOT:
                task, since = None, []
            record["task"] = task
            if record["id"] == SWITCH:
                record["task"], following = record["parameters"][:2]
                contradicts = task is not None and task != record["task"]
                for other in since:
                    if contradicts or record["task"] not in (0, NO_TASK):
                        other["task"] = None if contradicts else record["task"]
                task, since = following, []
            elif record["id"] and record["id"] != BOOT:
                since.append(record)
        if newest and task is not None and self.records_switches() is False:
            for record in since:
                record["task"] = None

    def name_all(self, found):
        """Of a ring whose switches were all overwritten."""
        known = self.last_task not in (0, NO_TASK) and self.scope.boots <= 1 and self.records_switches()
        if known and found[0]["n"] > 0 and all(r["id"] not in (0, SWITCH, BOOT) for r in found):
            for record in found:
                record["task"] = self.last_task


def resource(scope, subject):
    """lock_b (exclusive)"""
    if subject.wait_kind == TIME:
        return "time to pass"
    if subject.wait_kind == SUSPENDED:
        return "somebody to resume it"
    name = scope.catalog.resource(subject.resource, scope.coordinates())
    kind = KINDS[subject.wait_kind] if subject.wait_kind < len(KINDS) else ""
    return f"{name} ({kind})" if kind else name


def wait_sentence(scope, subject):
    """core 1 reader waits for cb3 (channel) at CRBW since 1.25"""
    return f"{subject.name()} waits for {resource(scope, subject)}{subject.place()} since {scope.when(subject.since)}"


def claims_sentence(scope, subject):
    """, which core 2 provides: what they say themselves"""
    said = [f"{scope.task(subject.holder)} holds"] if subject.holder is not None else []
    for other in scope.cores + scope.tasks:
        row = other.index + (scope.core_count if other.kind == "task" else 0)
        if row < len(scope.claims) and not other.corrupt:
            said += [f"{other.name()} {verb}" for verb, claimed in zip(("holds", "provides"), scope.claims[row]) if subject.resource in claimed]
    return ", which " + ", ".join(dict.fromkeys(said)) if said and subject.resource else ""


def status(scope, _):
    by_index = {core.index: core for core in scope.cores}
    for ring in scope.rings:
        core = by_index.get(ring.core)
        emitted = ring.begun - ring.base
        if not emitted and (core is None or not core.in_use):
            continue
        if core is None or not core.in_use:
            yield f"core {ring.core}{' ' + ring.name if ring.name else ''}: {emitted} events; it says nothing of what it does"
            continue
        text = wait_sentence(scope, core) if core.waits and not core.stopped() else f"{core.name()} {core.does()}{core.place()}"
        kernel = f", kernel {scope.catalog.name(KERNEL, core.kernel) or core.kernel}" if core.kernel else ""
        beats = f", heartbeat {core.heartbeat}" if core.heartbeat else ""
        stack = f", {core.stack_free} bytes of stack never used" if core.stack_free not in (0, NOT_KNOWN) and not core.corrupt else ""
        yield f"{text}{kernel}{beats}, {emitted} events{stack}"
    for task in scope.tasks:
        yield wait_sentence(scope, task) if task.waits else f"{task.name()} {task.does()}"


def waits(scope, _):
    waiting = [s for s in scope.cores + scope.tasks if s.waits]
    for subject in waiting:
        yield wait_sentence(scope, subject) + claims_sentence(scope, subject)
    if not waiting:
        yield "nobody waits"
        return
    verdict = json.loads(ask_why("--json").splitlines()[0])
    for finding in verdict.get("findings", []):
        if finding["kind"] == "deadlock":
            names = [subject_name(scope, subject) for subject in finding["subjects"]]
            yield "cycle: " + " -> ".join(names + names[:1])


def subject_name(scope, subject):
    """Of what a finding names."""
    if "core" in subject:
        return scope.cores[subject["core"]].name()
    return scope.task(subject["task"])


def verdict(_, __):
    yield from ask_why().splitlines()


def events(scope, words):
    count = 20
    if words:
        try:
            count = int(words[0], 0)
        except ValueError:
            raise Trouble(f"'{words[0]}': how many events; for example hangscope events 100") from None
    found = []
    for ring in scope.rings:
        found += ring.events()
    if scope.clock in (2, 3) or scope.core_count == 1:
        found.sort(key=lambda pair: pair[0][:2])
    shown = [record for _, record in found if record["id"] != ANCHOR]
    if not shown:
        yield "no events"
    for record in shown[max(0, len(shown) - count):] if count > 0 else []:
        name, text = scope.catalog.event(record["id"], record["parameters"], scope.word)
        task = f"task {record['task']:<4} " if record["task"] is not None else ""
        age = f"(start -{record['age']}) " if record["age"] else ""
        yield f"{scope.when(record['time'], record['doubtful']):>16}  core {record['core']}  {task}{age}{name}{text}"


def ring(scope, words):
    """Each value with its core; 8 a row, the newest first."""
    if not scope.debug_slots:
        raise Trouble("this program has no debug rings: it was built without them (HANGSCOPE_DEBUG_RING)")
    wanted = range(len(scope.nodes))
    if words:
        if not words[0].isdigit() or int(words[0]) >= len(scope.nodes):
            raise Trouble(f"'{words[0]}': there are nodes 0 to {len(scope.nodes) - 1}")
        wanted = [int(words[0])]
    for node in wanted:
        values = []
        for core in scope.cores:
            if core.node == node and not core.corrupt:
                at = scope.details_at + core.index * scope.detail_stride + 128
                pairs = scope.memory.unpack(f"{2 * scope.debug_slots}I", scope.memory.read(at, 8 * scope.debug_slots))
                values += [(order, core.index, value) for order, value in zip(pairs[::2], pairs[1::2]) if order]
        values.sort(reverse=True)
        x, y, _, written = scope.nodes[node]
        yield f"node {node} ({x},{y}): {len(values)} of {written} values, the newest first, as core:value"
        for at in range(0, len(values), 8):
            yield "  " + " ".join(f"{core}:{value:08x}" for _, core, value in values[at:at + 8])


def word_text(scope, kind, address):
    size = {"8": 1, "16": 2}.get(kind[1:], 4) if kind[0] in "uix" else 4
    try:
        data = bytes(gdb.selected_inferior().read_memory(address, size))
    except gdb.error:
        return f"(cannot be read at {address:#x})"
    value = int.from_bytes(data, "big" if scope.memory.order == ">" else "little", signed=kind[0] == "i" and kind[1:].isdigit())
    if kind == "char4":
        return printable(data.rstrip(b"\0").decode("latin-1"))
    if kind == "bool":
        return "true" if value else "false"
    return f"{value:#x}" if kind[0] == "x" and kind[1:].isdigit() else scope.catalog.values.get((kind, value), str(value))


def dump(scope, words):
    """A line for all, one for each node and each core."""
    if words not in ([], ["all"]):
        raise Trouble(f"'{words[0]}': hangscope dump, or hangscope dump all")
    lines = {}
    for name, first, kind, per, when, stride in scope.catalog.words:
        if when != "shown" and not words:
            continue
        owners = {"all": ["all"], "node": [f"node {i} ({x},{y})" for i, (x, y, _, _) in enumerate(scope.nodes)],
                  "core": [core.name() for core in scope.cores]}.get(per, [])
        for i, owner in enumerate(owners):
            address = (scope.memory.at & ~0xFFFFFFFF) + first + i * stride
            lines.setdefault((("all", "node", "core").index(per), i, owner), []).append(f"{name} {word_text(scope, kind, address)}")
    for (_, _, owner), said in sorted(lines.items(), key=lambda line: line[0][:2]):
        yield f"{owner}  {', '.join(said)}"
    if not lines:
        yield "the program registers no words to be shown" + ("" if words else "; hangscope dump all: those to be dumped")


SUBCOMMANDS = {"status": status, "events": events, "ring": ring, "waits": waits, "verdict": verdict, "dump": dump}


class Hangscope(gdb.Command):
    __doc__ = __doc__

    def __init__(self):
        super().__init__("hangscope", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not words or words[0] not in SUBCOMMANDS:
            raise gdb.GdbError(f"hangscope {' '.join(words[:1]) or '?'}: there are {', '.join(SUBCOMMANDS)}; see help hangscope")
        try:
            scope = Scope() if words[0] != "verdict" else None
            for line in SUBCOMMANDS[words[0]](scope, words[1:]):
                gdb.write(line + "\n")
            for line in scope.corrupt if scope else ():
                gdb.write(f"corrupt: {line}\n")
        except Trouble as trouble:
            raise gdb.GdbError(f"hangscope: {trouble}") from None

    def complete(self, text, word):
        return [name for name in SUBCOMMANDS if name.startswith(word)]


Hangscope()
