"""An independent reader of the perf.data files in snapshots (tools/perf/Documentation/perf.data-file-format.txt)."""
import struct

SAMPLE = 9
LOST = 2
TRACEPOINT = 2

# PERF_SAMPLE_* bits that come before the raw bytes, and the bytes that each takes.
IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM, CPU, PERIOD, READ, CALLCHAIN, RAW = (
    1 << 16, 1, 2, 4, 8, 64, 512, 128, 256, 16, 32, 1024)


class PerfData:
    def __init__(self, path):
        self.bytes = path.read_bytes()
        magic, _, self.attr_size, at, size, self.data_at, self.data_size = struct.unpack_from("<8s6Q", self.bytes)
        assert magic == b"PERFILE2", magic
        self.sample_types = {}   # by id
        self.tracepoints = {}    # id: number
        for begin in range(at, at + size, self.attr_size):
            kind, _, config, _, sample_type = struct.unpack_from("<IIQQQ", self.bytes, begin)
            ids_at, ids_size = struct.unpack_from("<QQ", self.bytes, begin + self.attr_size - 16)
            for n in range(ids_size // 8):
                number, = struct.unpack_from("<Q", self.bytes, ids_at + 8 * n)
                self.sample_types[number] = sample_type
                self.tracepoints[number] = config if kind == TRACEPOINT else None

    def records(self):
        """(type, offset, size) of each."""
        at = self.data_at
        end = at + self.data_size
        while at < end:
            kind, _, size = struct.unpack_from("<IHH", self.bytes, at)
            assert size >= 8 and at + size <= end, f"record of {size} bytes at {at}"
            yield kind, at, size
            at += size

    def samples(self):
        """(event id, pid, tid, time, cpu, offset of the raw bytes or None)."""
        for kind, at, _ in self.records():
            if kind != SAMPLE:
                continue
            at += 8
            number, = struct.unpack_from("<Q", self.bytes, at)
            bits = self.sample_types[number]
            at += 8 + (8 if bits & IP else 0)
            pid, tid, time = struct.unpack_from("<iiQ", self.bytes, at)
            at += 16 + 8 * bool(bits & ADDR) + 8 * bool(bits & ID) + 8 * bool(bits & STREAM)
            cpu, = struct.unpack_from("<I", self.bytes, at)
            at += 8 + 8 * bool(bits & PERIOD)
            if bits & CALLCHAIN:
                frames, = struct.unpack_from("<Q", self.bytes, at)
                at += 8 + 8 * frames
            yield number, pid, tid, time, cpu, (at + 4 if bits & RAW else None)

    def calls(self, enter):
        """(time, cpu, number, first argument, second argument) of the begins of system calls; `enter` is their tracepoint."""
        ids = {number for number, config in self.tracepoints.items() if config == enter}
        for number, _, _, time, cpu, raw in self.samples():
            if number in ids:
                yield (time, cpu, *struct.unpack_from("<qQQ", self.bytes, raw + 8))
