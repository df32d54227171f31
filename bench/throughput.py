#!/usr/bin/env python3
"""What hangscope does to the throughput of the program that it records, beside its peers.

usage: throughput.py [--hangscope PATH] [--tools FOLDER] [--dir FOLDER] [--bytes N] [--rounds N]
                     [--size S] [--keep N] [--firmware ELF] [--quick]

One producer writes made-up trace lines through a pipe into each recorder in turn, round after
round, so that what else the machine does meets all of them; README.md tells what the rows mean.
Prints Markdown. --quick measures nothing: it checks within seconds that everything runs and that
the bytes arrive. Status: 0 fine; 1 a result is wrong; 2 usage, or something is missing.
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
NO_HANG = "3600"  # --stall: nothing repeats for an hour here


class Wrong(Exception):
    """A result that cannot be: something does not work."""


def check(condition, what):
    if not condition:
        raise Wrong(what)


def parse_size(text):
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1] in UNITS else (text, 1)
    return int(number) * unit


def say(text):
    print(text, file=sys.stderr, flush=True)


# What the kernel knows of a process.

def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def thread_seconds(pid):
    """CPU seconds of each thread, oldest first."""
    threads = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    seconds = []
    for thread in threads:
        task = pathlib.Path(f"/proc/{pid}/task/{thread}")
        try:
            seconds.append(int((task / "schedstat").read_text().split()[0]) / 1e9)
        except OSError:
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            seconds.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    return seconds


def bytes_written(pid):
    for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    return 0


class Settings:
    def __init__(self, words):
        self.hangscope = str(words.hangscope)
        self.producer = str(words.tools / "bench_producer")
        self.mapped_loop = str(words.tools / "bench_mapped_loop")
        self.rotatelogs = shutil.which("rotatelogs") or shutil.which("rotatelogs", path="/usr/sbin:/usr/local/sbin")
        self.bytes = parse_size(words.bytes)
        self.size_text, self.keep = words.size, words.keep
        self.size = parse_size(words.size)
        self.bound = self.size * self.keep
        self.rounds = words.rounds
        self.quick = words.quick
        self.firmware = words.firmware
        self.disk = words.dir

    def tee(self, folder, stall=NO_HANG):
        return [self.hangscope, "tee", "--prefix", f"{folder}/ring", "--size", self.size_text, "--keep",
                str(self.keep), "--stall", stall, "--json", "--log", f"{folder}/log"]


class Recorder:
    """One way to take the producer's bytes."""
    name = ""
    kind = "qemu"  # what the producer writes
    is_hangscope = False

    def __init__(self, settings):
        self.settings = settings

    def command(self, folder):
        raise NotImplementedError

    def kept(self, folder, output):
        """Bytes of history that can be read afterwards; raises Wrong if the count is wrong."""
        raise NotImplementedError


class Discard(Recorder):
    name = "read and discard"

    def command(self, folder):
        return [self.settings.mapped_loop, "--discard"]

    def kept(self, folder, output):
        check(int(output) == self.settings.bytes, f"{self.name}: {output} bytes arrived")
        return None


class MappedLoop(Recorder):
    name = "bare mapped loop"

    def command(self, folder):
        return [self.settings.mapped_loop, f"{folder}/ring", str(self.settings.size), str(self.settings.keep)]

    def kept(self, folder, output):
        check(int(output) == self.settings.bytes, f"{self.name}: {output} bytes arrived")
        return min(self.settings.bytes, self.settings.bound)


class Tee(Recorder):
    name = "hangscope tee, a trace"
    is_hangscope = True

    def command(self, folder):
        return self.settings.tee(folder)

    def kept(self, folder, output):
        last = [json.loads(line) for line in (folder / "log").read_text().splitlines()][-1]
        check(last["type"] == "verdict" and not last["hang"], f"{self.name}: {last}")
        stream = last["streams"][0]
        check(stream["total_bytes"] == self.settings.bytes, f"{self.name}: {stream}")
        check(("trace" in stream) == (self.kind == "qemu"), f"{self.name}: recognised wrongly: {stream}")
        cat = subprocess.Popen([self.settings.hangscope, "cat", f"{folder}/ring"], stdout=subprocess.PIPE)
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
        check(kept <= self.settings.bound, f"{self.name}: {kept} bytes kept")
        check(kept >= 0.95 * min(self.settings.bytes, self.settings.bound), f"{self.name}: only {kept} bytes kept")
        used = sum(file.lstat().st_size for file in folder.glob("ring.*"))
        check(used <= self.settings.bound, f"{self.name}: {used} bytes on disk")
        return kept

    def expected(self):
        return subprocess.run([self.settings.producer, self.kind, str(self.settings.bytes)], check=True,
                              stdin=subprocess.DEVNULL, capture_output=True).stdout


class TeeNoTrace(Tee):
    name = "hangscope tee, no trace"
    kind = "plain"


class RotateLogs(Recorder):
    def __init__(self, settings):
        super().__init__(settings)
        self.name = f"rotatelogs -n {settings.keep}"

    def command(self, folder):
        return [self.settings.rotatelogs, "-n", str(self.settings.keep), f"{folder}/ring", self.settings.size_text]

    def kept(self, folder, output):
        kept = sum(file.stat().st_size for file in folder.glob("ring*"))
        if self.settings.bytes <= self.settings.size:
            check(kept == self.settings.bytes, f"{self.name}: {kept} bytes kept")
        check(kept > 0, f"{self.name}: nothing was kept")
        return kept


def measure(recorder, place, settings, count_history, rate=0, total=None):
    """One recorder, once. All times end when the pipe is empty, before the recorder is told so."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hangscope-bench-", dir=place))
    reader, writer = os.pipe()
    processes = []
    try:
        command = recorder.command(folder)
        recorded = subprocess.Popen(command, stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)
        processes.append(recorded)
        words = [settings.producer, recorder.kind, str(total or settings.bytes)] + ([str(rate)] if rate else [])
        producer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE, text=True)
        processes.append(producer)
        os.close(reader)
        os.close(writer)
        reader = writer = -1
        time.sleep(0.15)  # for both to start
        cpu_before, threads_before = cpu_seconds(recorded.pid), thread_seconds(recorded.pid)
        producer.stdin.write("g")
        producer.stdin.flush()
        line = producer.stderr.readline()
        check(line.startswith("{"), f"{recorder.name}: the producer said {line!r}")
        result = json.loads(line)
        result["cpu_s"] = cpu_seconds(recorded.pid) - cpu_before
        threads = thread_seconds(recorded.pid)
        result["threads"] = [now - then for now, then in
                             zip(threads, threads_before + [0] * (len(threads) - len(threads_before)))]
        began = time.monotonic()
        producer.stdin.close()
        check(producer.wait() == 0, f"{recorder.name}: the producer failed")
        output, errors = recorded.communicate(timeout=300)
        result["end_s"] = time.monotonic() - began
        check(recorded.returncode == 0, f"{recorder.name}: status {recorded.returncode}: {errors}")
        result["rate"] = result["bytes"] / result["seconds"] / 1e6
        result["kept"] = recorder.kept(folder, output) if count_history else None
        return result
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for end in (reader, writer):
            if end >= 0:
                os.close(end)
        shutil.rmtree(folder, ignore_errors=True)


def settle(place, settings):
    """Lets the kernel write out what earlier runs left, so that nobody pays for others."""
    if not settings.quick and place != pathlib.Path("/dev/shm"):
        os.sync()


def run_rounds(recorders, place, settings):
    results = {recorder.name: [] for recorder in recorders}
    for number in range(settings.rounds):
        # Each round begins with another one: nobody always follows the same neighbour's writing.
        first = number % len(recorders)
        for recorder in recorders[first:] + recorders[:first]:
            settle(place, settings)
            result = measure(recorder, place, settings, number == settings.rounds - 1)
            results[recorder.name].append(result)
            say(f"  round {number + 1} {recorder.name}: {result['rate']:.0f} MB/s")
    return results


def table(rows):
    """Markdown; the first row is the head, numbers are set right."""
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "|".join(["---"] + ["---:"] * (len(rows[0]) - 1)) + "|")
    for row in rows[1:]:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def median(values):
    return statistics.median(values)


def rates_of(results, name):
    return [result["rate"] for result in results[name]]


def ratio_row(results, what, above, below):
    above, below = rates_of(results, above), rates_of(results, below)
    rounds = [a / b for a, b in zip(above, below)]
    return [what, f"{median(above) / median(below):.2f}", f"{median(rounds):.2f}",
            f"{min(rounds):.2f} to {max(rounds):.2f}"]


def print_results(title, results, settings):
    print(f"### {title}\n")
    rows = [["", "MB/s min", "median", "max", "CPU s/GB", "longest write(), ms", "history / bound", "end, s"]]
    for name, rounds in results.items():
        rates = rates_of(results, name)
        kept = rounds[-1]["kept"]
        rows.append([name, f"{min(rates):.0f}", f"{median(rates):.0f}", f"{max(rates):.0f}",
                     f"{median([r['cpu_s'] / (r['bytes'] / 1e9) for r in rounds]):.2f}",
                     f"{median([r['worst_write_s'] for r in rounds]) * 1e3:.1f} "
                     f"(worst {max(r['worst_write_s'] for r in rounds) * 1e3:.1f})",
                     f"{100 * kept / settings.bound:.1f} %" if kept is not None else "",
                     f"{median([r['end_s'] for r in rounds]):.2f}"])
    table(rows)
    pairs = [("hangscope / bare mapped loop", Tee.name, MappedLoop.name),
             ("hangscope / read and discard", Tee.name, Discard.name),
             ("hangscope, a trace / no trace", Tee.name, TeeNoTrace.name)]
    rotatelogs = [name for name in results if name.startswith("rotatelogs")]
    if rotatelogs:
        pairs.insert(0, (f"hangscope / {rotatelogs[0]}", Tee.name, rotatelogs[0]))
    table([["ratio of rates", "of the medians", "median of the rounds", "rounds"]]
          + [ratio_row(results, *pair) for pair in pairs])


def analysis_row(what, results):
    """Threads in order of their start: main, drain, analysis."""
    for result in results:
        check(len(result["threads"]) == 3, f"tee has {len(result['threads'])} threads; this counts on three")
    drain = median([r["threads"][1] / r["seconds"] for r in results])
    analysis = median([r["threads"][2] / r["seconds"] for r in results])
    share = median([r["threads"][2] / max(r["threads"][1], 1e-9) for r in results])
    return [what, f"{median([r['rate'] for r in results]):.0f}", f"{100 * drain:.1f} %", f"{100 * analysis:.2f} %",
            f"{100 * share:.1f} %"]


def print_analysis(by_place, settings):
    print("### What the analysis costs\n")
    rows = [["input of `hangscope tee`", "MB/s", "drain, of one CPU", "analysis, of one CPU", "analysis / drain"]]
    for title, results in by_place.items():
        rows.append(analysis_row(f"{title}, a trace", results[Tee.name]))
        rows.append(analysis_row(f"{title}, no trace", results[TeeNoTrace.name]))
    place = fast_place()
    for rate, what in ((100, "as fast as a simulator prints"), (25, "a slow simulator")):
        seconds = 0.3 if settings.quick else 25
        recorder = PacedTee(settings)
        say(f"  {what}: {seconds} s")
        result = measure(recorder, place, settings, False, rate, int(rate * 1e6 * seconds))
        rows.append(analysis_row(f"{what}, default --stall", [result]))
    table(rows)


class PacedTee(Tee):
    """With hangscope's own --stall, so that what it does on a mere suspicion counts."""
    name = "hangscope tee, paced"

    def command(self, folder):
        return self.settings.tee(folder, "10")


def fast_place():
    return pathlib.Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else pathlib.Path(tempfile.gettempdir())


# A real simulator.

def children_of(pid):
    return [int(word) for task in os.listdir(f"/proc/{pid}/task")
            for word in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()]


def qemu_rate(settings, seconds, under_hangscope):
    """Bytes per second that QEMU prints, as the kernel counts them, and hangscope's threads."""
    qemu = ["qemu-system-riscv32", "-machine", "virt", "-m", "64M", "-bios", "none", "-kernel",
            str(settings.firmware), "-smp", "3", "-nographic", "-monitor", "none", "-serial", "none", "-d",
            "exec,nochain"]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hangscope-bench-", dir=fast_place()))
    processes = []
    try:
        if under_hangscope:
            first = subprocess.Popen([settings.hangscope, "run", "--prefix", f"{folder}/ring", "--size",
                                      settings.size_text, "--keep", str(settings.keep), "--on-hang", "none",
                                      "--log", f"{folder}/log", "--json", "--", *qemu],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            processes.append(first)
        else:
            first = subprocess.Popen(qemu, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
            processes.append(first)
            processes.append(subprocess.Popen([settings.mapped_loop, "--discard"], stdin=first.stderr,
                                              stdout=subprocess.DEVNULL))
            first.stderr.close()
        time.sleep(0.3 if settings.quick else 1)
        check(first.poll() is None, "QEMU ended at once")
        pid = children_of(first.pid)[0] if under_hangscope else first.pid
        began, bytes_before = time.monotonic(), bytes_written(pid)
        threads_before = thread_seconds(first.pid) if under_hangscope else []
        time.sleep(seconds)
        lasted, written = time.monotonic() - began, bytes_written(pid) - bytes_before
        threads = thread_seconds(first.pid) if under_hangscope else []
        check(written > 0, "QEMU printed nothing")
        first.terminate()
        for process in processes:
            process.wait(timeout=60)
        return {"rate": written / lasted / 1e6, "seconds": lasted,
                "threads": [now - then for now, then in zip(threads, threads_before)]}
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def print_qemu(settings):
    print("### A real simulator: QEMU, three harts, `-d exec,nochain`\n")
    if shutil.which("qemu-system-riscv32") is None:
        print("Skipped: qemu-system-riscv32 is not installed (package qemu-system-misc).\n")
        return
    if settings.firmware is None or not settings.firmware.exists():
        print(f"Skipped: the example firmware was not built ({settings.firmware}).\n")
        return
    alone, recorded = [], []
    for number in range(settings.rounds):
        for results, under_hangscope in ((alone, False), (recorded, True)):
            results.append(qemu_rate(settings, 0.4 if settings.quick else 8, under_hangscope))
            say(f"  round {number + 1} QEMU {'under hangscope run' if under_hangscope else 'alone'}: "
                f"{results[-1]['rate']:.0f} MB/s")
    rows = [["", "MB/s min", "median", "max"]]
    for name, results in (("into read and discard", alone), ("under `hangscope run`", recorded)):
        rates = [r["rate"] for r in results]
        rows.append([name, f"{min(rates):.1f}", f"{median(rates):.1f}", f"{max(rates):.1f}"])
    table(rows)
    rounds = [b["rate"] / a["rate"] for a, b in zip(alone, recorded)]
    # Threads in order of their start: main, one drain a stream, analysis.
    drain = median([sum(r["threads"][1:-1]) / r["seconds"] for r in recorded])
    analysis = median([r["threads"][-1] / r["seconds"] for r in recorded])
    print(f"Under hangscope / alone: {median([r['rate'] for r in recorded]) / median([r['rate'] for r in alone]):.2f}"
          f" of the medians, {min(rounds):.2f} to {max(rounds):.2f} in the rounds. hangscope's drains take "
          f"{100 * drain:.1f} % of one CPU, its analysis {100 * analysis:.2f} %.\n")


def file_system_of(path):
    best, kind = "", "unknown"
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        mount, mounted_as = line.split()[1:3]
        inside = str(path) == mount or str(path).startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, mounted_as
    return kind


def parse_words():
    words = argparse.ArgumentParser(description="hangscope's throughput beside its peers; README.md explains.",
                                    formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    build = HERE.parent / "build" / "release"
    words.add_argument("--hangscope", type=pathlib.Path, default=build / "hangscope", help="the program")
    words.add_argument("--tools", type=pathlib.Path, help="folder of bench_producer; else bench/ beside hangscope")
    words.add_argument("--dir", type=pathlib.Path, help="folder on a disk; else that of the tools")
    words.add_argument("--bytes", help="for each run [4200M; --quick: 64M]")
    words.add_argument("--rounds", type=int, help="[5; --quick: 1]")
    words.add_argument("--size", help="of a file of the ring [500M; --quick: 8M]")
    words.add_argument("--keep", type=int, default=3, help="files of the ring")
    words.add_argument("--firmware", type=pathlib.Path, help="ELF for QEMU; else an example's beside hangscope")
    words.add_argument("--quick", action="store_true", help="check that everything runs; measures nothing")
    found = words.parse_args()
    found.bytes = found.bytes or ("64M" if found.quick else "4200M")
    found.size = found.size or ("8M" if found.quick else "500M")
    found.rounds = found.rounds or (1 if found.quick else 5)
    found.hangscope = found.hangscope.resolve()
    found.tools = (found.tools or found.hangscope.parent / "bench").resolve()
    found.dir = (found.dir or found.tools).resolve()
    found.firmware = found.firmware or found.hangscope.parent / "examples" / "rv32-handshake-work.elf"
    for program in (found.hangscope, found.tools / "bench_producer", found.tools / "bench_mapped_loop"):
        if not os.access(program, os.X_OK):
            sys.exit(f"throughput.py: error: there is no program {program}; build it first")
    return found


def main():
    settings = Settings(parse_words())
    recorders = [Discard(settings), MappedLoop(settings), Tee(settings), TeeNoTrace(settings)]
    print(f"{os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}; {settings.bytes / 1e9:.2f} GB a run, "
          f"ring {settings.size_text} x {settings.keep}, rounds: {settings.rounds}; "
          f"load before: {os.getloadavg()[0]:.1f}\n")
    if settings.rotatelogs:
        recorders.append(RotateLogs(settings))
    else:
        print("rotatelogs is skipped: not installed (package apache2-utils).\n")
    by_place = {}
    for place in dict.fromkeys([fast_place(), settings.disk]):
        title = file_system_of(place)
        say(title)
        results = run_rounds(recorders, place, settings)
        by_place[title] = results
        print_results(f"Into {title}", results, settings)
    print_analysis(by_place, settings)
    print_qemu(settings)
    if settings.quick:
        print("All of it runs; nothing above is a measurement.")


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"throughput.py: error: {wrong}")
