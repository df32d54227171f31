"""Reads a scope in the RAM of a QEMU guest while it runs, or after: by include/hangscope/abi/ alone.

QEMU keeps the RAM in a file (memory-backend-file, share=on), which is mapped here; the scope lies at
the ELF's symbol hangscope_scope. The guest is not stopped and does not notice.
"""
import mmap
import struct

RAM_BASE = 0x80000000
TICKET_SHIFT = 12
ID_MASK = 2047
BUSY = 2048
TAKEN = 4096
NOINIT = 4


class Elf:
    """Symbols and sections of a little-endian ELF."""

    def __init__(self, path):
        self.path = path
        self.data = data = path.read_bytes()
        wide = data[4] == 2
        at, = struct.unpack_from("<Q", data, 0x28) if wide else struct.unpack_from("<I", data, 0x20)
        size, count, names = struct.unpack_from("<HHH", data, 0x3a if wide else 0x2e)
        form = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
        headers = [struct.unpack_from(form, data, at + i * size) for i in range(count)]
        self.sections = {self.text(headers[names][4] + h[0]): h for h in headers}
        self.symbols = {}
        _, _, _, _, where, length, link, _, _, entry = self.sections[".symtab"]
        for i in range(where, where + length, entry):
            name, value = struct.unpack_from("<I4xQ" if wide else "<II", data, i)
            self.symbols[self.text(headers[link][4] + name)] = value

    def text(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def loaded(self):
        """Address and bytes of each piece that is loaded, of a 32-bit ELF."""
        at, = struct.unpack_from("<I", self.data, 0x1c)
        size, count = struct.unpack_from("<HH", self.data, 0x2a)
        for i in range(count):
            kind, where, _, address, length = struct.unpack_from("<IIIII", self.data, at + i * size)
            if kind == 1 and length:
                yield address, self.data[where:where + length]

    def catalog(self):
        """Id -> name, how many parameters."""
        words = {"u64": 2, "i64": 2, "ptr": 2 if self.data[4] == 2 else 1}
        _, _, _, _, at, length, *_ = self.sections[".hangscope.catalog"]
        events, end = {}, at + length
        while at < end:
            magic, _, size = struct.unpack_from("<III", self.data, at)
            assert magic == 0x6c746163, hex(magic)
            entry, at = at + 12, at + size
            while entry < at:
                _, identity, _ = struct.unpack_from("<III", self.data, entry)
                entry, strings = entry + 12, []
                for _ in range(3):
                    strings.append(self.text(entry))
                    entry += len(strings[-1]) + 1
                entry = (entry + 3) // 4 * 4
                types = [field.split()[0] for field in strings[2].split(",") if field]
                events[identity] = strings[0], sum(words.get(t, 1) for t in types)
        return events


class Ram:
    """Words of the guest's memory, each read with one load."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.words = memoryview(self.map).cast("I")

    def word(self, address):
        return self.words[(address - RAM_BASE) // 4]

    def set_word(self, address, value):
        self.words[(address - RAM_BASE) // 4] = value

    def bytes(self, address, count):
        return self.map[address - RAM_BASE:address - RAM_BASE + count]


class Record:
    def __init__(self, sequence, mark, time, parameters):
        self.sequence, self.id, self.time, self.parameters = sequence, mark & ID_MASK, time, tuple(parameters)


class Core:
    def __init__(self, ram, ring, records, capacity, record_words, wide):
        self.ram, self.ring, self.records = ram, ring, records
        self.capacity, self.record_words, self.wide = capacity, record_words, wide

    def word(self, offset):
        return self.ram.word(self.ring + offset)

    def begun(self):
        """How many records were begun: abi/record.h, hangscope_begun."""
        if self.wide:
            while True:
                high, low = self.word(4), self.word(0)
                if self.word(4) == high:
                    return (high << 32 | low) >> TICKET_SHIFT
        turns, position = self.word(4), self.word(0) >> TICKET_SHIFT
        period = (1 << 20) // self.capacity
        off = (-(-position // self.capacity) - turns) % period
        real = turns + (off if off < period // 2 else off - period)
        in_turn = position % self.capacity
        before = real if in_turn == 0 else real - 1
        return position if before < 0 else before * self.capacity + in_turn

    def base(self):
        return self.word(76) << 32 | self.word(72)

    def boot(self):
        return self.word(84) << 32 | self.word(80)

    def refused(self):
        return self.word(20)

    def refused_sequences(self):
        """Low 20 bits of the latest ones."""
        return {self.word(24 + 4 * i) >> TICKET_SHIFT for i in range(8) if self.word(24 + 4 * i)}

    def read(self, sequence):
        """The record, or why there is none: "busy", "other" (mark) or "changed" (meanwhile)."""
        words, at = self.ram.words, (self.records - RAM_BASE) // 4 + sequence % self.capacity * self.record_words
        mark = words[at]
        if mark & BUSY or mark == TAKEN:
            return "busy"
        if mark & ID_MASK == 0 or mark >> TICKET_SHIFT != sequence & 0xfffff:
            return "other"
        record = Record(sequence, mark, words[at + 1], words[at + 2:at + self.record_words])
        if words[at] != mark or self.begun() > sequence + self.capacity:
            return "changed"
        return record

    def committed_in(self, slot):
        """The mark's record, whichever it is, of a ring that nobody writes to; None if it is of none."""
        words, at = self.ram.words, (self.records - RAM_BASE) // 4 + slot * self.record_words
        mark = words[at]
        if mark & BUSY or mark & ID_MASK == 0:
            return None
        return Record(mark >> TICKET_SHIFT, mark, words[at + 1], words[at + 2:at + self.record_words])

    def window(self):
        """All that the ring still holds, oldest first: (sequence, record or why there is none)."""
        end = self.begun()
        return [(n, self.read(n)) for n in range(max(self.base(), end - self.capacity, 0), end)]


class Task:
    def __init__(self, words):
        (self.sequence, self.task, self.state, self.resource, self.kind, self.holder, self.since,
         self.since_epoch) = words


class Scope:
    """`ram`: a Ram, or anything with its word(); None is not a scope."""

    def __init__(self, ram, at):
        self.ram, self.at = ram, at
        head = b"".join(struct.pack("<I", ram.word(at + 4 * i)) for i in range(48))
        if head[:8] != b"hangscop":
            raise ValueError("no magic")
        check = 0x811c9dc5
        for byte in head[:120]:
            check = (check ^ byte) * 0x01000193 & 0xffffffff
        if check != struct.unpack_from("<I", head, 188)[0]:
            raise ValueError("the header's check is wrong")
        self.major, self.minor, self.header_bytes, self.word_bytes, self.record_bytes = struct.unpack_from("<HHHBB", head, 8)
        (self.bytes, self.features, self.core_count, self.capacity, rings, stride, _, _, self.task_count, self.tasks_at,
         self.task_stride, self.clock) = struct.unpack_from("<12I", head, 16)
        self.hz, self.boots = struct.unpack_from("<QI", head, 64)
        self.cores = [Core(ram, at + rings + i * stride, at + rings + i * stride + 128, self.capacity,
                           self.record_bytes // 4, self.word_bytes == 8) for i in range(self.core_count)]

    def tasks(self):
        first = self.at + self.tasks_at
        return [Task([self.ram.word(first + i * self.task_stride + 4 * j) for j in range(8)]) for i in range(self.task_count)]
