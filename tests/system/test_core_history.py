#!/usr/bin/env python3
"""The history of a program built with HANGSCOPE_HISTORY: slices for waypoints, waits and transactions, counters for buffers."""
import array
import base64
import collections
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time

from ctf_case import read_ctf
from scope_ram import RAM_BASE, Elf
from support import BUILD, DATA, FIRMWARE, HANGSCOPE, ROOT, Case, main
from watched_targets import new_folder, start_device

PIPELINE = pathlib.Path(BUILD) / "examples/pipeline/pipeline-history"
# Of examples/device/device.h: struct private_memory begins with a block, then come the buffers.
BLOCK_BYTES, CB_BLOCKS, CB_BYTES = 64, 4, 4 * 64 + 16


class HistoryCase(Case):
    def export(self, form, *words):
        path = self.folder / f"export.{form}"
        done = self.hangscope("export", "--force", "--to", form, "-o", path, *words)
        self.assertEqual(done.status, 0, done.err)
        return path.read_text()

    def events(self, *words):
        lines = [json.loads(line) for line in self.export("jsonl", *words).splitlines()]
        self.tracks = [track["name"] for track in lines[0]["tracks"]]
        return [line for line in lines if line["type"] == "trace_event"]

    def rows(self, *words):
        """Name of a row -> its slices: name, begin, end, arguments, in the order of their begins."""
        names, rows, open_slices = {}, collections.defaultdict(list), collections.defaultdict(list)
        for event in json.loads(self.export("chrome", *words))["traceEvents"]:
            if event["ph"] == "M" and event["name"] == "thread_name":
                names[event["tid"]] = event["args"]["name"]
            elif event["ph"] == "B":
                one = [event["name"], event["ts"], None, event.get("args", {})]
                rows[names[event["tid"]]].append(one)
                open_slices[event["tid"]].append(one)
            elif event["ph"] == "E":
                open_slices[event["tid"]].pop()[2] = event["ts"]
        self.assertFalse(any(open_slices.values()), "a slice has no end")
        return rows


class Device(HistoryCase):
    """examples/device on QEMU, two cores of which wait for each other's lock."""

    @classmethod
    def setUpClass(cls):
        cls.guests = new_folder(BUILD)
        cls.addClassCleanup(shutil.rmtree, cls.guests, ignore_errors=True)
        cls.device = start_device(cls.guests, "DEADLOCK2", core=3, other=1, block=20, firmware="device-history")
        cls.addClassCleanup(cls.device.kill)
        assert cls.device.until_planted(), cls.device.said()
        cls.words = ["--elf", cls.device.elf, cls.device.target]

    def setUp(self):
        super().setUp()
        done = self.hangscope("why", "--json", "--stall", "0.3", *self.words)
        self.assertEqual(done.status, 1, done.err)
        verdict = next(line for line in map(json.loads, done.out.splitlines()) if line["type"] == "verdict")
        finding = verdict["findings"][0]
        self.waits = {who["name"]: who["waits_for"] for who in finding["subjects"] + finding["victims"]}

    def test_ends_with_the_waits_that_the_verdict_names(self):
        rows = self.rows(*self.words)
        self.assertEqual(len(self.waits), 5, self.waits)
        for core, resource in self.waits.items():
            with self.subTest(core=core):
                last = rows[core][-1]
                self.assertEqual(last[0], f"waiting for {resource}")
                self.assertIn("resource", last[3], "it is not from a record")
                self.assertEqual(last[2], max(one[2] for one in rows[core]), "it does not last to the end")
                self.assertEqual(sum(one[2] == last[2] for one in rows[core] if one[0].startswith("waiting")), 1, "it is drawn twice")
                ends = [(one[1], one[2]) for one in rows[core] if one[0].startswith("waiting")]
                self.assertTrue(all(a[1] <= b[0] for a, b in zip(ends, ends[1:])), "a core waits for two things at once")
        self.assertEqual({rows[f"{core}: waypoints"][-1][0] for core in ("core 1 unpack (0,0)", "core 3 pack (0,0)")}, {"LCKW"})
        self.assertIn("lock, acquire", rows["core 1 unpack (0,0): waypoints"][-1][3]["where"])

    def test_has_the_transactions_that_the_blocks_need(self):
        rows = self.rows(*self.words)
        _, blocks, *_ = self.buffer(0)
        reads = [one for one in rows["core 0 reader (0,0)"] if one[0] == "bus_read"]
        # The reader fetched one more than it pushed: it waits for room.
        self.assertEqual(len(reads), blocks + 1)
        self.assertEqual({one[3]["bytes"] for one in reads}, {str(BLOCK_BYTES)})
        elf = Elf(pathlib.Path(self.device.elf))
        first = elf.symbols["outside_input"]
        self.assertEqual([int(one[3]["address"], 16) for one in reads], [first + i * BLOCK_BYTES for i in range(blocks + 1)])

    def buffer(self, number):
        """How much the guest's own words say is in it, how much was put in and taken out."""
        at = Elf(pathlib.Path(self.device.elf)).symbols["node_memories"] - RAM_BASE + BLOCK_BYTES + number * CB_BYTES + CB_BLOCKS * BLOCK_BYTES
        with open(self.device.scope, "rb") as file:
            file.seek(at)
            pushed, popped = struct.unpack("<II", file.read(8))
        return pushed - popped, pushed, popped

    def test_counts_what_the_buffers_hold(self):
        counts = collections.defaultdict(list)
        for event in self.events(*self.words):
            if event["name"] == "counter":
                counts[event["what"]].append((event["track"], event["count"]))
        self.assertEqual(sorted(counts), [f"cb{i} of (0,0)" for i in range(4)])
        for number in range(4):
            with self.subTest(buffer=number):
                held, pushed, popped = self.buffer(number)
                told = counts[f"cb{number} of (0,0)"]
                # Two cores count it without a lock: the one that came last, by whichever record, knows.
                newest = dict(told)
                self.assertIn(held, (newest[number], newest[number + 1]))
                self.assertEqual([sum(track == core for track, _ in told) for core in (number, number + 1)], [pushed, popped])
                self.assertTrue(all(0 <= count <= CB_BLOCKS for _, count in told), told)
        self.assertEqual(self.buffer(0)[0], CB_BLOCKS, "the first one is full")

    def test_comes_back_from_ctf_with_its_words(self):
        trace = self.folder / "trace"
        self.assertEqual(self.hangscope("export", "--to", "ctf", "-o", trace, *self.words).status, 0)
        events = read_ctf(self, trace)[2]
        for core in range(5):
            with self.subTest(core=core):
                waits = [event for event in events[core] if event["name"] == "wait_begin"]
                last = dict(zip(waits[-1]["names"], zip(waits[-1]["values"], waits[-1]["labels"])))
                kind = "exclusive" if core in (1, 3) else "channel"
                self.assertEqual(last["kind"][1], [kind])
                points = [event["values"][0] for event in events[core] if event["name"] == "waypoint"]
                self.assertEqual(points[-1], {"exclusive": "LCKW"}.get(kind, points[-1]))
                self.assertTrue(all(point.strip() for point in points), points)

    def test_is_on_the_report_as_in_the_export(self):
        data = json.loads(self.hangscope("report", "--data", *self.words).out)
        rows = self.rows(*self.words)
        told = {track["name"]: track for track in data["tracks"]}
        for core, resource in self.waits.items():
            with self.subTest(core=core):
                spans = [data["strings"][at] for at in array.array("I", base64.b64decode(told[core]["spans"]["text"]))]
                self.assertTrue(spans[-1].startswith(f"waiting for {resource} (resource 0x"), spans[-1])
                self.assertEqual(sum(span.startswith("bus_read") for span in spans), sum(one[0] == "bus_read" for one in rows[core]))

    def test_says_in_the_verdict_what_the_first_to_stop_did_last(self):
        verdict = json.loads(self.hangscope("why", "--json", "--stall", "0.3", *self.words).out.splitlines()[0])
        last = verdict["findings"][0]["last_events"]
        self.assertRegex(last[-1], r"^wait_begin +resource \w+ of node 0, kind exclusive$")
        self.assertGreater(len(set(last)), 3)

    def test_names_resources_where_events_are_listed(self):
        shown = self.hangscope("show", *self.words).out.decode()
        self.assertRegex(shown, r"core 3  wait_begin  resource unpack_lock of node 0, kind exclusive\n")
        self.assertRegex(shown, r"core 0  counter  resource cb0 of node 0 holds 4\n")


class Switched(HistoryCase):
    def test_off_and_on_by_its_class(self):
        guests = new_folder(BUILD)
        self.addCleanup(shutil.rmtree, guests, ignore_errors=True)
        device = start_device(guests, firmware="device-history")
        self.addCleanup(device.kill)
        device.until_recording()
        words = ["--elf", device.elf, device.target]

        def recorded():
            newest = -1
            for event in self.events(*words):
                newest = max(newest, event["sequence"])
            return newest

        def grows():
            before, end = recorded(), time.monotonic() + 20
            while time.monotonic() < end:
                if recorded() > before:
                    return True
                if stopped:
                    return False
            return False

        stopped = False
        self.assertTrue(grows())
        done = self.hangscope("set", "mask", *words, "all", "classes=task")
        self.assertEqual(done.status, 0, done.err)
        time.sleep(0.1)
        stopped = True
        self.assertFalse(grows())
        stopped = False
        done = self.hangscope("set", "mask", *words, "all", "classes=history")
        self.assertEqual(done.status, 0, done.err)
        self.assertTrue(grows())


class Others(HistoryCase):
    def test_a_process(self):
        """All blocks have passed: each buffer got and gave each of them, and is empty."""
        scope, blocks = self.folder / "pipeline.scope", 20
        environment = dict(os.environ, HANGSCOPE_SCOPE=str(scope))
        subprocess.run([PIPELINE, "--nodes", "1", "--blocks", str(blocks)], env=environment, timeout=30, check=True, capture_output=True)
        counts, waits = collections.defaultdict(list), 0
        for event in self.events("--elf", PIPELINE, scope):
            if event["name"] == "counter":
                counts[event["what"]].append(event["count"])
            waits += event["name"] == "wait_begin"
        self.assertEqual({name: (len(told), told[-1]) for name, told in counts.items()},
                         {f"cb{i} of (0,0)": (2 * blocks, 0) for i in range(4)})
        self.assertGreater(waits, blocks)

    def test_the_queues_of_an_operating_system_have_their_fill(self):
        """Without anything but the events of its kernel."""
        elf = FIRMWARE / "rv32-trace_sched.elf"
        log = self.folder / "console"
        with open(log, "wb") as file:
            subprocess.run(["qemu-system-riscv32", "-machine", "virt", "-m", "64M", "-bios", "none", "-kernel", elf, "-nographic",
                            "-monitor", "none", "-serial", "stdio"], stdin=subprocess.DEVNULL, stdout=file, timeout=60, check=True)
        held, told = 0, []
        for event in self.events("--elf", elf, log):
            if event["name"] in ("queue_send", "queue_receive"):
                held += 1 if event["name"] == "queue_send" else -1
                self.assertEqual((event["what"], event["count"]), ("queue queue", held))
                told.append(held)
        self.assertEqual(told, [1, 0])
        drawn = [event["args"]["value"] for event in json.loads(self.export("chrome", "--elf", elf, log))["traceEvents"] if event["ph"] == "C"]
        self.assertEqual(drawn, told)


if __name__ == "__main__":
    main()
