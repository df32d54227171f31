#!/usr/bin/env python3
"""What hangscope does to the throughput of the program that it records, beside its peers.

usage: throughput.py [--hangscope PATH] [--tools FOLDER] [--dir FOLDER] [--bytes N] [--rounds N]
                     [--size S] [--keep N] [--trace-folder FOLDER] [--firmware ELF]
                     [--only PART,...] [--check] [--quick]

One producer writes trace lines through a pipe into each recorder in turn, round after round, so
that what else the machine does meets all of them; README.md tells what the rows mean. Prints
Markdown. --check names each target that is missed. --quick measures nothing: it checks within
seconds that everything runs and that the bytes arrive. Status: 0 fine; 1 a result is wrong, or
with --check a target is missed; 2 usage, or something is missing.
"""
import argparse
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from recorders import (BETWEEN_SNAPSHOTS_S, SNAPSHOTS, CompressedTee, Discard, MappedLoop, MultiLog, PacedTee,
                       RotateLogs, Tee, TeeNoTrace, Wrong, bytes_written, check, fast_place, measure,
                       measure_snapshots, say, thread_seconds, thread_shares)

HERE = pathlib.Path(__file__).resolve().parent
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
PARTS = ("plain", "stall", "compressed", "analysis", "qemu")

# What gvsoc (172), QEMU (122) and Spike (28) print together, in MB/s.
TOGETHER = 322


def parse_size(text):
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1] in UNITS else (text, 1)
    return int(number) * unit


class Settings:
    def __init__(self, words):
        self.hangscope = str(words.hangscope)
        self.producer = str(words.tools / "bench_producer")
        self.mapped_loop = str(words.tools / "bench_mapped_loop")
        self.rotatelogs = shutil.which("rotatelogs") or shutil.which("rotatelogs", path="/usr/sbin:/usr/local/sbin")
        self.multilog = shutil.which("multilog")
        self.bytes = parse_size(words.bytes)
        self.size_text, self.keep = words.size, words.keep
        self.size = parse_size(words.size)
        self.bound = self.size * self.keep
        self.rounds = words.rounds
        self.quick = words.quick
        self.firmware = words.firmware
        self.trace_folder = words.trace_folder
        self.places = {file_system_of(place): place for place in dict.fromkeys([fast_place(), words.dir])}


class Targets:
    """What hangscope promises, and whether it holds here."""

    def __init__(self):
        self.rows = []

    def at_least(self, what, value, limit, unit=""):
        self.rows.append((what, f"at least {limit:g}{unit}", f"{value:.3g}{unit}", value >= limit))

    def at_most(self, what, value, limit, unit=""):
        self.rows.append((what, f"at most {limit:g}{unit}", f"{value:.3g}{unit}", value <= limit))

    def missed(self):
        return [f"{what}: {value}, {limit} is the target" for what, limit, value, met in self.rows if not met]

    def show(self):
        print("### Targets\n")
        table([["", "target", "here", ""]] + [[what, limit, value, "met" if met else "**missed**"]
                                             for what, limit, value, met in self.rows])


def settle(place, settings):
    """Lets the kernel write out what earlier runs left, so that nobody pays for others."""
    if not settings.quick and place != pathlib.Path("/dev/shm"):
        os.sync()


def in_turn(items, number):
    """The order of a round: A B C, then C B A; each pair of rounds begins with another one."""
    first = number // 2 % len(items)
    order = items[first:] + items[:first]
    return order[::-1] if number % 2 else order


def run_rounds(recorders, place, settings, rounds):
    results = {recorder.name: [] for recorder in recorders}
    for number in range(rounds):
        for recorder in in_turn(recorders, number):
            settle(place, settings)
            result = measure(recorder, place, settings, number == rounds - 1)
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


def median_of(results, key):
    return median([result[key] for result in results])


def cpu_per_gb(results):
    return median([r["cpu_s"] / (r["bytes"] / 1e9) for r in results])


def lost_text(results):
    """The most of a round; nothing is the rule, and needs no number."""
    return f"{100 * max(r['lost'] / r['bytes'] for r in results):.2g} %" if "lost" in results[0] else ""


def ratios(results, above, below):
    return [a["rate"] / b["rate"] for a, b in zip(results[above], results[below])]


def ratio_row(results, what, above, below):
    rounds = ratios(results, above, below)
    return [what, f"{median_of(results[above], 'rate') / median_of(results[below], 'rate'):.2f}",
            f"{median(rounds):.2f}", f"{min(rounds):.2f} to {max(rounds):.2f}"]


def print_plain(title, results, settings, targets):
    print(f"### Plain, into {title}\n")
    rows = [["", "MB/s min", "median", "max", "CPU s/GB", "longest write(), ms", "history / bound", "lost",
             "stage, MB", "end, s"]]
    for name, rounds in results.items():
        rates = [r["rate"] for r in rounds]
        kept = [r["kept"] for r in rounds if r["kept"] is not None]
        rows.append([name, f"{min(rates):.0f}", f"{median(rates):.0f}", f"{max(rates):.0f}",
                     f"{cpu_per_gb(rounds):.2f}",
                     f"{median_of(rounds, 'worst_write_s') * 1e3:.1f} "
                     f"(worst {max(r['worst_write_s'] for r in rounds) * 1e3:.1f})",
                     f"{100 * kept[0] / settings.bound:.1f} %" if kept else "", lost_text(rounds),
                     f"{median_of(rounds, 'stage') / 1e6:.0f}" if "stage" in rounds[0] else "",
                     f"{median_of(rounds, 'end_s'):.2f}"])
    table(rows)
    peers = [name for name in results if name.startswith(("rotatelogs", "multilog"))]
    pairs = [(f"hangscope / {peer}", Tee.name, peer) for peer in peers]
    pairs += [("hangscope / bare mapped loop", Tee.name, MappedLoop.name),
              ("hangscope / read and discard", Tee.name, Discard.name),
              ("hangscope, a trace / no trace", Tee.name, TeeNoTrace.name)]
    table([["ratio of rates", "of the medians", "median of the rounds", "rounds"]]
          + [ratio_row(results, *pair) for pair in pairs])
    for peer in (peer for peer in peers if peer.startswith("rotatelogs")):
        targets.at_least(f"plain, {title}: times {peer}", median(ratios(results, Tee.name, peer)),
                         1.3 if title == "tmpfs" else 2)
    targets.at_least(f"plain, {title}: of the bare mapped loop",
                     100 * median(ratios(results, Tee.name, MappedLoop.name)), 85, " %")
    targets.at_most(f"plain, {title}: slower with a trace to analyse",
                    100 * (1 - median(ratios(results, Tee.name, TeeNoTrace.name))), 5, " %")


def part_plain(settings, targets):
    recorders = [Discard(settings), MappedLoop(settings), Tee(settings), TeeNoTrace(settings)]
    if settings.rotatelogs:
        recorders.append(RotateLogs(settings))
    else:
        print("rotatelogs is skipped: not installed (package apache2-utils).\n")
    if settings.multilog:
        recorders.append(MultiLog(settings))
    else:
        print("multilog is skipped: not installed (package daemontools).\n")
    by_place = {}
    for title, place in settings.places.items():
        say(title)
        by_place[title] = run_rounds(recorders, place, settings, settings.rounds)
        print_plain(title, by_place[title], settings, targets)
    print_threads(by_place, targets)


def thread_row(what, results):
    def share(name):
        return median([r["threads"][name] / r["seconds"] for r in results])

    judged = median([r["threads"]["judge"] / max(r["threads"]["record"] + r["threads"]["judge"], 1e-9)
                     for r in results])
    return [what, f"{median_of(results, 'rate'):.0f}", f"{100 * share('read'):.1f} %", f"{100 * share('write'):.1f} %",
            f"{100 * share('judge'):.2f} %", f"{100 * judged:.1f} %"], 100 * judged


THREAD_HEAD = ["input of `hangscope tee`", "MB/s", "reader, of one CPU", "writer, of one CPU",
               "analysis, of one CPU", "analysis, of all its CPU time"]


def print_threads(by_place, targets):
    print("### What the threads take at full speed\n")
    rows = [THREAD_HEAD]
    for title, results in by_place.items():
        row, judged = thread_row(f"{title}, a trace", results[Tee.name])
        rows += [row, thread_row(f"{title}, no trace", results[TeeNoTrace.name])[0]]
        targets.at_most(f"plain, {title}: analysis, of hangscope's CPU time", judged, 5, " %")
    table(rows)


def part_analysis(settings, targets):
    print("### What the threads take at the rate of a simulator\n")
    rows = [THREAD_HEAD]
    for rate, what in ((100, "as fast as a simulator prints"), (25, "a slow simulator")):
        recorder = PacedTee(settings, rate, 0.3 if settings.quick else 25)
        say(f"  {what}")
        result = measure(recorder, fast_place(), settings, False)
        rows.append(thread_row(f"{what}, default --stall", [result])[0])
    table(rows)


def part_stall(settings, targets):
    print("### The longest write() of the producer while a full ring takes "
          f"{SNAPSHOTS} snapshots, one each {BETWEEN_SNAPSHOTS_S:g} s\n")
    rows = [["ring in", "MB/s", "with snapshots, ms", "without, ms", "difference, ms", "lost with", "lost without"]]
    for title, place in settings.places.items():
        with_them, without = [], []
        for number in range(settings.rounds):
            for results, signals in in_turn([(with_them, True), (without, False)], number):
                settle(place, settings)
                results.append(measure_snapshots(Tee(settings), place, settings, signals))
                say(f"  {title}, round {number + 1} {'with' if signals else 'without'} snapshots: "
                    f"{results[-1]['window_worst_s'] * 1e3:.1f} ms")
        worst = [[f"{r['window_worst_s'] * 1e3:.1f}" for r in results] for results in (with_them, without)]
        medians = [median_of(results, "window_worst_s") * 1e3 for results in (with_them, without)]
        rows.append([title, f"{median_of(with_them, 'rate'):.0f}", f"{medians[0]:.1f} ({', '.join(worst[0])})",
                     f"{medians[1]:.1f} ({', '.join(worst[1])})", f"{medians[0] - medians[1]:.1f}",
                     lost_text(with_them), lost_text(without)])
        targets.at_most(f"snapshots, {title}: longest write() above that without", medians[0] - medians[1], 10, " ms")
    table(rows)


class Texts:
    """What the compressed rings get: real traces, repeated, where there are any, else made-up ones."""
    FILES = {"gvsoc": "gvsoc-progress.log.zst", "qemu": "qemu-exec-3hart-progress.log.zst",
             "spike": "spike-3hart-progress.log.zst"}

    def __init__(self, settings):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hangscope-bench-", dir=fast_place()))
        self.source = "made-up text (bench/trace_text.cc)"
        self.words = {kind: kind for kind in self.FILES}
        traces = {kind: settings.trace_folder / name for kind, name in self.FILES.items()}
        if shutil.which("zstd") is None or not all(path.exists() for path in traces.values()):
            return
        for kind, path in traces.items():
            self.words[kind] = str(self.folder / kind)
            subprocess.run(["zstd", "-dqo", self.words[kind], str(path)], check=True)
        sizes = ", ".join(f"{kind} {os.stat(word).st_size / 1e6:.1f} MB" for kind, word in self.words.items())
        self.source = f"ends of real traces, repeated: {sizes}; a block of 256 KiB is compressed for itself"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


def compressed_rows(recorders, place, settings, rounds, rows, targets):
    results = run_rounds(recorders, place, settings, rounds)
    for recorder in recorders:
        found = results[recorder.name]
        last, rates = found[-1], [r["rate"] for r in found]
        history = last["kept"] / recorder.bound()
        rows.append([recorder.name, f"{min(rates):.0f}", f"{median(rates):.0f}", f"{max(rates):.0f}",
                     f"{cpu_per_gb(found):.2f}",
                     f"{median_of(found, 'worst_write_s') * 1e3:.1f}",
                     f"{'' if last['full'] else 'over '}{history:.1f}", lost_text(found)])
        if recorder.rate == 0:
            targets.at_least(f"compressed, {recorder.name}", median(rates), TOGETHER, " MB/s")
        else:
            targets.at_most(f"compressed, {recorder.name}: lost", 100 * max(r["lost"] / r["bytes"] for r in found),
                            0, " %")
        if "gvsoc" in recorder.name and (recorder.rate != 0 or "--lossless" in recorder.options):
            targets.at_least(f"compressed, {recorder.name}: history / bound", history, 20)


def part_compressed(settings, targets):
    print("### Compressed\n")
    with Texts(settings) as texts:
        print(f"Input: {texts.source}.\n")
        rows = [["", "MB/s min", "median", "max", "CPU s/GB", "longest write(), ms", "history / bound", "lost"]]
        rounds = min(settings.rounds, 2)
        paced_bytes = settings.bytes if settings.quick else TOGETHER * 10**6 * 10
        recorders = []
        for kind, text in list(texts.words.items())[:1 if settings.quick else None]:
            recorders += [
                CompressedTee(settings, f"{kind}, zstd, lossless", text, ("--compress", "zstd", "--lossless")),
                CompressedTee(settings, f"{kind}, auto", text, ("--compress", "auto"))]
        paced = [CompressedTee(settings, f"gvsoc, {how}, at {TOGETHER} MB/s", texts.words["gvsoc"],
                               ("--compress", how), TOGETHER, paced_bytes) for how in ("zstd", "auto")]
        place = list(settings.places.values())[-1]
        compressed_rows(recorders, place, settings, rounds, rows, targets)
        compressed_rows(paced, place, settings, 1, rows, targets)
        table(rows)


# A real simulator.

def child_named(pid, begin):
    """hangscope has other children, too."""
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split():
            if pathlib.Path(f"/proc/{child}/comm").read_text().startswith(begin):
                return int(child)
    raise Wrong(f"process {pid} has no child {begin}")


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
        pid = child_named(first.pid, "qemu") if under_hangscope else first.pid
        began, bytes_before = time.monotonic(), bytes_written(pid)
        threads_before = thread_seconds(first.pid) if under_hangscope else {}
        time.sleep(seconds)
        lasted, written = time.monotonic() - began, bytes_written(pid) - bytes_before
        threads = thread_shares(threads_before, thread_seconds(first.pid)) if under_hangscope else {}
        check(written > 0, "QEMU printed nothing")
        first.terminate()
        for process in processes:
            process.wait(timeout=60)
        return {"rate": written / lasted / 1e6, "seconds": lasted, "threads": threads}
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def part_qemu(settings, targets):
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
    recorders = median([r["threads"]["record"] / r["seconds"] for r in recorded])
    analysis = median([r["threads"]["judge"] / r["seconds"] for r in recorded])
    print(f"Under hangscope / alone: {median([r['rate'] for r in recorded]) / median([r['rate'] for r in alone]):.2f}"
          f" of the medians, {min(rounds):.2f} to {max(rounds):.2f} in the rounds. hangscope's drains take "
          f"{100 * recorders:.1f} % of one CPU, its analysis {100 * analysis:.2f} %.\n")


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
    words.add_argument("--bytes", help="for each run [4200M; --quick: 8M]")
    words.add_argument("--rounds", type=int, help="[4; --quick: 1]")
    words.add_argument("--size", help="of a file of the ring [500M; --quick: 1M]")
    words.add_argument("--keep", type=int, default=3, help="files of the ring")
    words.add_argument("--trace-folder", type=pathlib.Path, default=HERE.parent / "tests" / "data",
                       help="real traces for the compressed rings")
    words.add_argument("--firmware", type=pathlib.Path, help="ELF for QEMU; else an example's beside hangscope")
    words.add_argument("--only", default=",".join(PARTS), help="some of these parts")
    words.add_argument("--check", action="store_true", help="status 1 where a target is missed")
    words.add_argument("--quick", action="store_true", help="check that everything runs; measures nothing")
    found = words.parse_args()
    found.bytes = found.bytes or ("8M" if found.quick else "4200M")
    found.size = found.size or ("1M" if found.quick else "500M")
    found.rounds = found.rounds or (1 if found.quick else 4)
    found.only = found.only.split(",")
    for part in found.only:
        if part not in PARTS:
            words.error(f"--only {part}: there are {', '.join(PARTS)}")
    if found.check and found.quick:
        words.error("--check needs measurements, and --quick has none")
    found.hangscope = found.hangscope.resolve()
    found.tools = (found.tools or found.hangscope.parent / "bench").resolve()
    found.dir = (found.dir or found.tools).resolve()
    found.firmware = found.firmware or found.hangscope.parent / "examples" / "rv32-handshake-work.elf"
    for program in (found.hangscope, found.tools / "bench_producer", found.tools / "bench_mapped_loop"):
        if not os.access(program, os.X_OK):
            words.error(f"there is no program {program}; build it first")
    return found


def main():
    words = parse_words()
    settings, targets = Settings(words), Targets()
    print(f"{os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}; {settings.bytes / 1e9:.2f} GB a run, "
          f"ring {settings.size_text} x {settings.keep}, rounds: {settings.rounds}; "
          f"load before: {os.getloadavg()[0]:.1f}\n")
    for part in words.only:
        say(part)
        globals()[f"part_{part}"](settings, targets)
    if settings.quick:
        print("All of it runs; nothing above is a measurement.")
        return
    targets.show()
    if words.check and targets.missed():
        sys.exit("throughput.py: targets missed:\n  " + "\n  ".join(targets.missed()))


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"throughput.py: error: {wrong}")
