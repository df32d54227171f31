"""The recorders that throughput.py compares, and how one of them is measured once."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

NO_HANG = "3600"  # --stall: nothing repeats for an hour here
LOST_BYTES_AT = 72  # in the header of a ring's index, docs/format.md
MULTILOG_LARGEST = 16777215  # of a file; it refuses more


class Wrong(Exception):
    """A result that cannot be: something does not work."""


def check(condition, what):
    if not condition:
        raise Wrong(what)


def say(text):
    print(text, file=sys.stderr, flush=True)


def fast_place():
    return pathlib.Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else pathlib.Path(tempfile.gettempdir())


# What the kernel knows of a process.

def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def thread_seconds(pid):
    """CPU seconds of the threads by their names; those of one name are added up."""
    seconds = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        task = pathlib.Path(f"/proc/{pid}/task/{thread}")
        try:
            name = (task / "comm").read_text().strip()
            ran = int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue  # it ended meanwhile
        seconds[name] = seconds.get(name, 0) + ran
    return seconds


def thread_shares(before, after):
    """CPU seconds since: of each thread that records, and of the one that judges."""
    since = {name: ran - before.get(name, 0) for name, ran in after.items()}
    check("hs-read" in since and "hs-write" in since, f"hangscope's threads have other names: {sorted(since)}")
    return {"read": since["hs-read"], "write": since["hs-write"], "judge": since.get("hs-analysis", 0),
            "record": sum(since.get(name, 0) for name in ("hs-read", "hs-write", "hs-pass"))}


def bytes_written(pid):
    for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    return 0


def stage_bytes(pid):
    """Memory that hangscope's stages take; they never give any back."""
    files = {}
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if "hangscope-stage" in os.readlink(descriptor):
                info = os.stat(descriptor)
                files[info.st_ino] = info.st_blocks * 512
        except OSError:
            continue
    return sum(files.values())


class Recorder:
    """One way to take the producer's bytes."""
    name = ""
    text = "qemu"  # what the producer writes: a kind, or a file
    is_hangscope = False
    rate = 0       # MB/s of the producer; 0: as fast as it can

    def __init__(self, settings):
        self.settings = settings
        self.bytes = settings.bytes

    def command(self, folder):
        raise NotImplementedError

    def kept(self, folder, output):
        """Bytes of history that can be read afterwards; raises Wrong if the count is wrong."""
        raise NotImplementedError

    def bound(self):
        return self.settings.bound


class Discard(Recorder):
    name = "read and discard"

    def command(self, folder):
        return [self.settings.mapped_loop, "--discard"]

    def kept(self, folder, output):
        check(int(output) == self.bytes, f"{self.name}: {output} bytes arrived")
        return None


class MappedLoop(Recorder):
    name = "bare mapped loop"

    def command(self, folder):
        return [self.settings.mapped_loop, f"{folder}/ring", str(self.settings.size), str(self.settings.keep)]

    def kept(self, folder, output):
        check(int(output) == self.bytes, f"{self.name}: {output} bytes arrived")
        return min(self.bytes, self.settings.bound)


class Tee(Recorder):
    name = "hangscope tee, a trace"
    is_hangscope = True
    is_trace = True
    stall = NO_HANG
    options = ()

    def ring(self):
        return self.settings.size, self.settings.keep

    def bound(self):
        size, keep = self.ring()
        return size * keep

    def command(self, folder):
        size, keep = self.ring()
        # No loss, however busy the machine is, where bytes are compared.
        lossless = ["--lossless"] if self.settings.quick and "--lossless" not in self.options else []
        return [self.settings.hangscope, "tee", "--prefix", f"{folder}/ring", "--size", str(size), "--keep",
                str(keep), "--stall", self.stall, "--json", "--log", f"{folder}/log", *self.options, *lossless]

    def kept(self, folder, output):
        last = [json.loads(line) for line in (folder / "log").read_text().splitlines()][-1]
        check(last["type"] == "verdict" and not last["hang"], f"{self.name}: {last}")
        stream = last["streams"][0]
        check(stream["total_bytes"] == self.bytes, f"{self.name}: {stream}")
        check(("trace" in stream) == self.is_trace, f"{self.name}: recognised wrongly: {stream}")
        cat = subprocess.Popen([self.settings.hangscope, "cat", f"{folder}/ring"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)  # it tells what was lost
        if self.settings.quick:
            history = cat.stdout.read()
            kept = len(history)
            check(self.expected().endswith(history), f"{self.name}: the history is not the stream's end")
        else:
            count = subprocess.run([self.settings.mapped_loop, "--discard"], stdin=cat.stdout, check=True,
                                   capture_output=True)
            kept = int(count.stdout)
        cat.stdout.close()
        check(cat.wait() == 0, "hangscope cat failed")
        # A segment ends where bytes were lost, full or not.
        whole = self.lost(folder) == 0
        check(kept >= 0.95 * min(self.bytes, self.bound()) or not whole, f"{self.name}: only {kept} bytes kept")
        used = sum(file.lstat().st_size for file in folder.glob("ring.*"))
        check(used <= self.bound(), f"{self.name}: {used} bytes on disk")
        return kept

    @staticmethod
    def lost(folder):
        """Bytes that came and were never written."""
        return struct.unpack_from("<Q", (folder / "ring.index").read_bytes(), LOST_BYTES_AT)[0]

    @staticmethod
    def is_full(folder):
        """Whether the ring has come round."""
        index = (folder / "ring.index").read_bytes()
        count = struct.unpack_from("<I", index, 16)[0]
        return all(struct.unpack_from("<Q", index, 192 + 64 * slot)[0] for slot in range(count))

    def expected(self):
        return subprocess.run([self.settings.producer, self.text, str(self.bytes)], check=True,
                              stdin=subprocess.DEVNULL, capture_output=True).stdout


class TeeNoTrace(Tee):
    name = "hangscope tee, no trace"
    text = "plain"
    is_trace = False


class PacedTee(Tee):
    """With hangscope's own --stall, so that what it does on a mere suspicion counts."""
    stall = "10"

    def __init__(self, settings, rate, seconds):
        super().__init__(settings)
        self.name = f"hangscope tee at {rate} MB/s"
        self.rate, self.bytes = rate, int(rate * 1e6 * seconds)


class CompressedTee(Tee):
    """Into a ring so small that it comes round although the stream gets so much smaller."""
    SHARE = 64  # of the stream that the ring takes

    def __init__(self, settings, title, text, options, rate=0, total=None):
        super().__init__(settings)
        self.name = title
        self.text, self.options, self.rate = text, options, rate
        self.bytes = total or settings.bytes

    def ring(self):
        return max(self.bytes // self.SHARE // 3, 1 << 16), 3


class RotateLogs(Recorder):
    def __init__(self, settings):
        super().__init__(settings)
        self.name = f"rotatelogs -n {settings.keep}"

    def command(self, folder):
        return [self.settings.rotatelogs, "-n", str(self.settings.keep), f"{folder}/ring", self.settings.size_text]

    def kept(self, folder, output):
        kept = sum(file.stat().st_size for file in folder.glob("ring*"))
        if self.bytes <= self.settings.size:
            check(kept == self.bytes, f"{self.name}: {kept} bytes kept")
        check(kept > 0, f"{self.name}: nothing was kept")
        return kept


class MultiLog(Recorder):
    """Much slower than the others: it gets a quarter of the bytes, else all would wait for it."""
    name = "multilog"
    SHARE = 4

    def __init__(self, settings):
        super().__init__(settings)
        self.bytes = settings.bytes // self.SHARE

    def command(self, folder):
        size = min(self.settings.size, MULTILOG_LARGEST)
        return [self.settings.multilog, f"s{size}", f"n{max(2, self.settings.bound // size)}", f"{folder}/ring"]

    def kept(self, folder, output):
        kept = sum(file.stat().st_size for file in (folder / "ring").iterdir())
        check(kept > 0, f"{self.name}: nothing was kept")
        return None  # the ring is not full after a quarter


class Run:
    """A producer, a pipe and a recorder, in a folder of its own that is removed at the end."""

    def __init__(self, recorder, place, settings):
        self.recorder, self.settings = recorder, settings
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hangscope-bench-", dir=place))
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, total=None):
        recorder = self.recorder
        reader, writer = os.pipe()
        try:
            self.recorded = subprocess.Popen(recorder.command(self.folder), stdin=reader, stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE, text=True)
            self.processes.append(self.recorded)
            words = [self.settings.producer, recorder.text, str(total or recorder.bytes)]
            self.producer = subprocess.Popen(words + ([str(recorder.rate)] if recorder.rate else []),
                                             stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE, text=True)
            self.processes.append(self.producer)
        finally:
            os.close(reader)
            os.close(writer)
        time.sleep(0.15)  # for both to start
        self.cpu_before = cpu_seconds(self.recorded.pid)
        self.threads_before = thread_seconds(self.recorded.pid)
        self.producer.stdin.write("g")
        self.producer.stdin.flush()

    def finish(self, count_history):
        """All times end when the pipe is empty, before the recorder is told so."""
        name, pid = self.recorder.name, self.recorded.pid
        line = self.producer.stderr.readline()
        check(line.startswith("{"), f"{name}: the producer said {line!r}")
        result = json.loads(line)
        result["cpu_s"] = cpu_seconds(pid) - self.cpu_before
        if self.recorder.is_hangscope:
            result["threads"] = thread_shares(self.threads_before, thread_seconds(pid))
            result["stage"] = stage_bytes(pid)
        began = time.monotonic()
        self.producer.stdin.close()
        check(self.producer.wait() == 0, f"{name}: the producer failed")
        output, errors = self.recorded.communicate(timeout=300)
        result["end_s"] = time.monotonic() - began
        check(self.recorded.returncode == 0, f"{name}: status {self.recorded.returncode}: {errors}")
        result["kept"] = self.recorder.kept(self.folder, output) if count_history else None
        lost = self.recorder.lost(self.folder) if self.recorder.is_hangscope else 0
        result["rate"] = (result["bytes"] - lost) / result["seconds"] / 1e6  # what is lost is not recorded
        if self.recorder.is_hangscope:
            result["lost"] = lost
            result["full"] = self.recorder.is_full(self.folder)
        return result


def measure(recorder, place, settings, count_history):
    """One recorder, once."""
    with Run(recorder, place, settings) as run:
        run.start()
        return run.finish(count_history)


SNAPSHOTS = 10
BETWEEN_SNAPSHOTS_S = 0.25
AFTER_SNAPSHOT_S = 0.25  # what a snapshot makes slow happens by then


def snapshots_told(folder):
    return (folder / "log").read_text().count('"type":"snapshot"')


def measure_snapshots(recorder, place, settings, signals):
    """The longest write() while a full ring takes ten snapshots; without `signals` at the same times."""
    with Run(recorder, place, settings) as run:
        run.start(total=1 << 50)
        while bytes_written(run.producer.pid) < 1.05 * recorder.bound():
            check(run.producer.poll() is None, "the producer ended")
            time.sleep(0.01)
        begin = time.monotonic()
        pause = 0.02 if settings.quick else BETWEEN_SNAPSHOTS_S
        for number in range(SNAPSHOTS):
            due = time.monotonic() + pause
            if signals:
                run.recorded.send_signal(signal.SIGUSR1)
                while snapshots_told(run.folder) <= number:
                    check(time.monotonic() < due + 30, f"{recorder.name}: no snapshot after SIGUSR1")
                    time.sleep(0.005)
            time.sleep(max(0, due - time.monotonic()))
        time.sleep(AFTER_SNAPSHOT_S)
        end = time.monotonic()
        run.producer.terminate()
        result = run.finish(False)
        result["window_worst_s"] = max([took for at, took in result["slow_writes"] if at + took > begin and at < end],
                                       default=0.0)
        return result
