#!/usr/bin/env python3
"""The window that hangscope why tells of cpu.perf.data: beside its manifest, of a copy, and of a file that says nothing of its rings;
against an independent reader of the file's records (perf_data.py). HANGSCOPE_SEED=N takes other snapshots."""
import json
import pathlib
import signal
import subprocess
import time

from perf_data import RECORDED_RINGS, PerfData
from support import BUILD, SEED, Case, main
from test_cpu import CpuCase

RANDOM_SNAPSHOTS = pathlib.Path(BUILD) / "tests/random_snapshots"


def gaps_of_cpus(window):
    return sorted((gap["ring"]["number"], gap["from_ns"], gap["to_ns"], gap["why"]) for gap in window["gaps"] if gap["ring"]["kind"] == "CPU")


class WindowCase(Case):
    def told(self, path):
        """The window of `hangscope why`; of the text, too."""
        lines = [json.loads(line) for line in self.hangscope("why", "--json", path).out.splitlines()]
        window, = (line for line in lines if line["type"] == "window")
        return window

    def check_text(self, path, window):
        text = self.hangscope("why", path).out.decode()
        length = (window["to_ns"] - window["from_ns"]) / 1e9
        end = {"trigger": "the trigger", "newest record": "the newest record"}[window["ends_with"]]
        at = f"{window['to_ns'] // 10**9}.{window['to_ns'] % 10**9:09}"
        self.assertIn(f"window: {length:.6f} s up to {end}, at {at}, {window['policy']}", text)

    def check_snapshot(self, snapshot):
        """Of one snapshot. The length of its window."""
        file = snapshot / "cpu.perf.data"
        reader = PerfData(file)
        manifest = json.loads((snapshot / "manifest.json").read_text())["window"]
        beside = self.told(file)
        self.assertEqual((beside["from_ns"], beside["to_ns"]), (manifest["from_ns"], manifest["to_ns"]), snapshot)
        self.assertEqual(beside["gaps"], manifest["gaps"], snapshot)

        copy = self.folder / "copy.data"
        copy.write_bytes(reader.bytes)
        alone = self.told(copy)
        self.check_span(alone, reader, snapshot)
        self.assertEqual(alone["policy"], manifest["policy"], snapshot)
        self.assertEqual(gaps_of_cpus(alone), gaps_of_cpus(manifest), snapshot)

        copy.write_bytes(reader.without_feature(RECORDED_RINGS))
        self.check_span(self.told(copy), PerfData(copy), f"{snapshot}, of which nothing is told")
        return alone["to_ns"] - alone["from_ns"]

    def check_span(self, window, reader, what):
        """Never wider than the records bear out, and hardly narrower."""
        begin, end = reader.window()
        self.assertEqual(window["to_ns"], end, what)
        self.assertGreaterEqual(window["from_ns"], begin, what)
        self.assertGreaterEqual(window["to_ns"] - window["from_ns"], 0.99 * (end - begin), what)

    def check_page_and_export(self, snapshot):
        """Of the folder, and of the file in it. The page counts its times from the window's end, though some records are newer."""
        window = json.loads((snapshot / "manifest.json").read_text())["window"]
        of_folder, of_file = (json.loads(self.hangscope("report", "--data", path).out) for path in (snapshot, snapshot / "cpu.perf.data"))
        for data in (of_folder, of_file):
            self.assertEqual((data["window"]["from"], data["window"]["to"]), (window["from_ns"] - window["to_ns"], 0), snapshot)
        self.assertEqual(of_file.get("tracks"), of_folder.get("tracks"), snapshot)
        for path in (snapshot, snapshot / "cpu.perf.data"):
            head = json.loads(self.hangscope("export", "--to", "jsonl", path).out.splitlines()[0])
            self.assertEqual((head["window"]["from_ns"], head["window"]["to_ns"]), (window["from_ns"], window["to_ns"]), snapshot)

    def make_random(self, count):
        subprocess.run([RANDOM_SNAPSHOTS, self.folder / "random", str(SEED), str(count)], check=True)
        return self.folder / "random"

    def check_random(self, count):
        folder = self.make_random(count)
        lengths = [self.check_snapshot(folder / str(i)) for i in range(count)]
        self.assertGreater(sum(length > 0 for length in lengths), count / 2)
        self.check_text(folder / "0/cpu.perf.data", self.told(folder / "0/cpu.perf.data"))
        print(f"{count} random snapshots, {count * 3} windows, from {min(lengths) / 1e9:.6f} to {max(lengths) / 1e9:.6f} s")


class OfRandomSnapshots(WindowCase):
    def test_is_that_of_the_manifest_and_that_of_the_records(self):
        self.check_random(10)

    def test_is_that_of_the_manifest_in_reports_and_exports(self):
        folder = self.make_random(5)
        for i in range(5):
            self.check_page_and_export(folder / str(i))


class OfRandomSnapshotsLong(WindowCase):
    def test_is_that_of_the_manifest_and_that_of_the_records(self):
        self.check_random(1000)


class OfRealSnapshots(CpuCase, WindowCase):
    def take(self, seconds, *options, program=("dd", "if=/dev/zero", "of=/dev/null", "bs=1")):
        process = self.recorder("run", "--cpu", "--heartbeat", "0.2", *options, "--", *program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: self.messages(), what="the recording")
        time.sleep(seconds)
        process.send_signal(signal.SIGUSR2)
        folder = self.until(self.snapshots, what="a snapshot")[0]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        return folder

    def test_is_that_of_the_manifest_and_that_of_the_records(self):
        folder = self.take(0.6, "--cpu-size", "256K")
        length = self.check_snapshot(folder)
        # A second of dd does not fit: the window begins where a ring was overwritten.
        self.assertLess(length, 0.5e9)
        self.check_text(folder / "cpu.perf.data", self.told(folder / "cpu.perf.data"))
        self.check_text(self.folder / "copy.data", self.told(self.folder / "copy.data"))

    def test_of_a_program_that_overwrote_nothing_is_from_the_start(self):
        folder = self.take(0.2, program=("sleep", "30"))
        self.check_snapshot(folder)
        copy = self.folder / "copy.data"
        copy.write_bytes((folder / "cpu.perf.data").read_bytes())
        self.assertTrue(self.told(copy)["from_the_start"])
        self.assertGreater(self.told(copy)["to_ns"] - self.told(copy)["from_ns"], 0.2e9)

    def test_is_as_long_as_asked(self):
        folder = self.take(0.5, "--window", "300ms", program=("sh", "-c", "while :; do sleep 0.02; done"))
        self.assertEqual(self.check_snapshot(folder), 300_000_000)


if __name__ == "__main__":
    main()
