"""An independent reader of the perf.data files in snapshots (tools/perf/Documentation/perf.data-file-format.txt)."""
import json
import struct

SAMPLE = 9
LOST = 2
SWITCHES = (14, 15)
RECORDED_RINGS = 224  # hangscope's own feature (docs/perf-data.md)
HEADER_FEATURES_AT = 72
WRITE_BACKWARD = 1 << 27  # of the attributes' bits
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
        self.overwriting = set()  # ids of events whose rings overwrite themselves
        for begin in range(at, at + size, self.attr_size):
            kind, _, config, _, sample_type, _, bits = struct.unpack_from("<IIQQQQQ", self.bytes, begin)
            ids_at, ids_size = struct.unpack_from("<QQ", self.bytes, begin + self.attr_size - 16)
            for n in range(ids_size // 8):
                number, = struct.unpack_from("<Q", self.bytes, ids_at + 8 * n)
                self.sample_types[number] = sample_type
                self.tracepoints[number] = config if kind == TRACEPOINT else None
                if bits & WRITE_BACKWARD:
                    self.overwriting.add(number)

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

    def feature(self, number):
        """Its bytes, or None. The table of places is behind the records, in the order of the bits."""
        bits = int.from_bytes(self.bytes[HEADER_FEATURES_AT:HEADER_FEATURES_AT + 32], "little")
        if not bits >> number & 1:
            return None
        before = bin(bits & (1 << number) - 1).count("1")
        at, size = struct.unpack_from("<QQ", self.bytes, self.data_at + self.data_size + 16 * before)
        return self.bytes[at:at + size]

    def without_feature(self, number):
        """The file's bytes where nothing says that it is there."""
        at = HEADER_FEATURES_AT + number // 8
        return self.bytes[:at] + bytes([self.bytes[at] & ~(1 << number % 8)]) + self.bytes[at + 1:]

    def ring_events(self):
        """(cpu, time) of what rings that overwrite themselves had, in the order of the file: samples and switches. The trailer of
        a switch is ids, time, CPU and event, as hangscope records them."""
        for kind, at, size in self.records():
            if kind == SAMPLE:
                number, = struct.unpack_from("<Q", self.bytes, at + 8)
                ip = 8 if self.sample_types[number] & IP else 0
                time, = struct.unpack_from("<Q", self.bytes, at + 24 + ip)
                more = self.sample_types[number] & (ADDR | ID | STREAM)
                cpu, = struct.unpack_from("<I", self.bytes, at + 32 + ip + 8 * bin(more).count("1"))
            elif kind in SWITCHES:
                _, time, cpu, _, number = struct.unpack_from("<QQIIQ", self.bytes, at + size - 32)
            else:
                continue
            if number in self.overwriting:
                yield cpu, time

    def newest(self):
        """The newest time of all: records of either kind have it as above."""
        times = [time for _, time in self.ring_events()]
        times += [struct.unpack_from("<Q", self.bytes, at + size - 24)[0] for kind, at, size in self.records()
                  if kind < 64 and kind not in (SAMPLE, *SWITCHES)]
        return max(times, default=0)

    def window(self):
        """(from, to) that all rings cover together, and the CPUs that limit it: of what the file says of its rings where it does,
        else as if each had had more before."""
        oldest, front = {}, {}
        for cpu, time in self.ring_events():
            front.setdefault(cpu, time)
            oldest[cpu] = min(time, oldest.get(cpu, time))
        told = self.feature(RECORDED_RINGS)
        if told is None:
            return max(oldest.values(), default=self.newest()), self.newest()
        told = json.loads(told)
        if told["policy"] != "coherent":
            return told["from_ns"], told["to_ns"]
        overwritten = [ring for ring in told["rings"] if ring["complete_since_ns"] > ring["recording_since_ns"]]
        begins = [min(front.get(ring["cpu"], ring["until_ns"]), told["to_ns"]) for ring in overwritten]
        return max(begins + [ring["recording_since_ns"] for ring in told["rings"]], default=told["to_ns"]), told["to_ns"]

    def calls(self, enter):
        """(time, cpu, number, first argument, second argument) of the begins of system calls; `enter` is their tracepoint."""
        ids = {number for number, config in self.tracepoints.items() if config == enter}
        for number, _, _, time, cpu, raw in self.samples():
            if number in ids:
                yield (time, cpu, *struct.unpack_from("<qQQ", self.bytes, raw + 8))
