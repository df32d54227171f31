#!/usr/bin/env python3
"""hangscope export: what was recorded, as one trace for other programs."""
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from scope_images import Scope, Watch
from support import *

IMAGES = DATA / "scope"
MARKED = pathlib.Path(BUILD) / "tests/marked_calls"
PRCTL = {"x86_64": 157, "aarch64": 167}.get(os.uname().machine)
MARK = 0x48530000


class ExportCase(Case):
    def export(self, *words):
        """The lines of JSON of an export that works, by type."""
        done = self.hangscope("export", "--to", "jsonl", *words)
        self.assertEqual(done.status, 0, done.err)
        lines = collections.defaultdict(list)
        for line in done.out.splitlines():
            line = json.loads(line)
            lines[line["type"]].append(line)
        self.assertEqual(len(lines["trace"]), 1)
        self.assertEqual(len(lines["trace_end"]), 1)
        end = lines["trace_end"][0]
        self.assertEqual((end["events"], end["losses"]), (len(lines["trace_event"]), len(lines["trace_loss"])))
        lines["warnings"] = done.err.decode().splitlines()[:-1]
        return lines

    def refused(self, status, *words):
        """The one line that says why."""
        done = self.hangscope("export", *words)
        self.assertEqual(done.status, status, done.err)
        self.assertEqual(done.err.count(b"\n"), 1, done.err)
        return done.err.decode()

    def check_order(self, lines):
        times = [event["ns"] for event in lines["trace_event"]]
        self.assertTrue(all(a <= b for a, b in zip(times, times[1:])), "the events are not in the order of time")
        newest = {}
        for event in lines["trace_event"]:
            before = newest.get(event["track"], -1)
            self.assertGreater(event["sequence"], before)
            newest[event["track"]] = event["sequence"]


class Scopes(ExportCase):
    def test_have_the_events_and_losses_that_show_prints(self):
        for shape in ("quiet", "lossy", "wrapped", "damaged", "astray"):
            for kind in ("little32", "little64", "big32", "big64"):
                image = IMAGES / f"{shape}-{kind}.bin"
                shown = [json.loads(line) for line in self.hangscope("show", "--json", image).out.splitlines()]
                lines = self.export(image)
                self.check_order(lines)
                tracks = {n: track["number"] for n, track in enumerate(lines["trace"][0]["tracks"])}
                expected = sorted((e["core"], e["sequence"], e["name"]) for e in shown if e["type"] == "event" and e["age"] == 0)
                got = sorted((tracks[e["track"]], e["sequence"], e["name"]) for e in lines["trace_event"])
                self.assertTrue(got == expected, f"{image.name}: {len(got)} events, {len(expected)} expected")
                expected = sorted((e["core"], e["end"] - e["begin"], e["reason"]) for e in shown if e["type"] == "missing" and e["age"] == 0)
                words = {"unreadable": "unread"}
                got = sorted((tracks[l["track"]], l["lost_records"], words.get(l["why"], l["why"])) for l in lines["trace_loss"])
                self.assertTrue(got == expected, f"{image.name}: {got} {expected}")
                earlier = sum(e["type"] == "event" and e["age"] > 0 for e in shown)
                self.assertEqual(any(f"{earlier} events of earlier starts" in w for w in lines["warnings"]), earlier > 0, lines["warnings"])

    def test_as_text(self):
        done = self.hangscope("export", "--to", "text", IMAGES / "quiet-little32.bin")
        self.assertEqual(done.status, 0, done.err)
        text = done.out.decode()
        self.assertIn("0.006500  core 0 hart 0  task 3    semaphore_wait  semaphore 20002000, count 0\n", text)
        self.assertIn("task 4: waiting since 0.006600 for 0x20002000, from task 3\n", text)
        self.assertIn("7 events, 0 losses, 0.002100 s, 3 tasks as they stood (2 waiting)\n", done.err.decode())

    def test_of_a_hang_without_events_says_that_its_threads_are_there(self):
        hung = [pathlib.Path(BUILD) / "tests/hang_zoo", "abba", "line"]
        done = self.hangscope("run", "-q", "--history", "none", "--stall", "0.5", "--on-hang", "kill", "--prefix", self.prefix, *hung)
        self.assertEqual(124, done.status, done.err)
        done = self.hangscope("export", "--to", "text", self.snapshots()[0])
        self.assertEqual(3, done.out.decode().count(": waiting since"), done.out)
        self.assertEqual("hangscope: 0 events, 0 losses, 3 threads as they stood (3 waiting)\n", done.err.decode())

    def test_of_a_program_that_runs(self):
        scope = self.folder / "it.scope"
        program = subprocess.Popen([MARKED], stdout=subprocess.DEVNULL, env={**os.environ, "HANGSCOPE_SCOPE": str(scope)})
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        lines = self.until(lambda: scope.exists() and scope.stat().st_size > 0 and (lambda l: len(l["trace_event"]) > 10 and l)(self.export(f"pid:{program.pid}")), what="events")
        self.check_order(lines)
        self.assertIn("calls", {event["name"] for event in lines["trace_event"]})

    def test_choices(self):
        image = IMAGES / "quiet-little64.bin"
        self.assertEqual({e["name"] for e in self.export("--event", "task_switch", image)["trace_event"]}, {"task_switch"})
        self.assertEqual(len(self.export("--last", 2, image)["trace_event"]), 2)
        one = self.export("--core", "hart 1", image)
        self.assertEqual([t["number"] for t in one["trace"][0]["tracks"]], [1])
        late = self.export("--from=-0.0001s", image)["trace_event"]
        self.assertTrue(late and all(e["ns"] >= 6_400_000 for e in late), late)
        self.assertTrue(all(e["ns"] <= 5_000_000 for e in self.export("--until", "0.005", image)["trace_event"]))

    def test_usage(self):
        image = IMAGES / "quiet-little64.bin"
        self.assertIn("there are", self.refused(2, "--to", "pdf", image))
        self.assertIn("no format given", self.refused(2, image))
        self.assertIn("nothing to export given", self.refused(2, "--to", "text"))
        self.assertIn("hart 0, core 1 hart 1", self.refused(2, "--to", "text", "--core", "9", image))
        self.assertIn("--last '-3'", self.refused(2, "--to", "text", "--last=-3", image))
        self.assertIn("--from", self.refused(2, "--to", "text", "--from", "noon", image))
        self.assertIn("later than --until", self.refused(2, "--to", "text", "--from", "0.006", "--until", "0.005", image))
        self.assertIn("absent", self.refused(3, "--to", "text", self.folder / "absent"))


    def test_what_somebody_waits_for_is_a_word_where_it_has_no_name(self):
        text = self.hangscope("export", "--to", "text", IMAGES / "watched-little64.bin").out.decode()
        self.assertIn("task 3: idle since 0.002500 for what comes from outside\n", text)
        self.assertRegex(text, r"core 2 c2: halted since \d+\.\d+, waiting for what it does not name; multicast of 64 bytes")
        self.assertNotIn("0xffffffff", text)

    def test_begins_without_events_with_the_oldest_wait(self):
        scope = Scope("<", 8, minor=1)
        scope.watch = watch = Watch(scope, [(0, 0)])
        for core, since in enumerate((3_000_000, 5_000_000)):
            scope.core("", core)
            watch.mailbox(core, sequence=1, resource=0x10003, kind=2, since=since)
        scope.core("", 2)  # for a core that there is not
        image = self.folder / "scope.bin"
        image.write_bytes(scope.bytes())
        head = self.export(image)["trace"][0]
        self.assertEqual((head["from_ns"], head["to_ns"]), (3_000_000_000, 5_000_000_000))
        self.assertEqual([track["number"] for track in head["tracks"]], [0, 1])


class Streams(ExportCase):
    """An instruction trace as a simulator prints it: one core's lines for as long as it likes."""

    def setUp(self):
        super().setUp()
        self.trace = self.folder / "trace.log"
        places = {"alpha": 0x80000000, "beta": 0x80000100}
        line = "Trace {}: 0x7f0000000000 [00000000/{:08x}/00109003/ff080200] {}\n"
        turn = lambda hart: "".join(line.format(hart, at, name) for name, at in places.items())
        self.trace.write_text(turn(1) * 4000 + turn(10) + turn(0) + turn(2) + turn(1) * 4000)

    def test_have_each_core_by_its_number_wherever_it_comes(self):
        lines = self.export(self.trace)
        tracks = lines["trace"][0]["tracks"]
        self.assertEqual([(track["number"], track["name"]) for track in tracks], [(n, f"hart {n}") for n in (0, 1, 2, 10)])
        self.assertNotIn("left out", str(lines["warnings"] + lines["trace_end"][0]["troubles"]))
        for hart in ("2", "10", "hart 10"):
            only = self.export("--core", hart, self.trace)
            self.assertEqual([track["name"] for track in only["trace"][0]["tracks"]], [f"hart {hart.split()[-1]}"])
            self.assertEqual([e["fields"]["function"] for e in only["trace_event"] if "fields" in e and "function" in e["fields"]], ["alpha", "beta"])

    def test_whose_lines_have_no_times_say_so_where_a_viewer_shows_it(self):
        seen = {}
        for form in ("text", "jsonl", "chrome", "perfetto", "ctf"):
            out = self.folder / form
            done = self.hangscope("export", "--to", form, "-o", out, self.trace)
            self.assertEqual(done.status, 0, done.err)
            self.assertIn("the times of its functions are offsets in its bytes", done.err.decode())
            self.assertIn("bytes of the stream, ", done.err.decode().splitlines()[-1])
            seen[form] = b"".join(path.read_bytes() for path in sorted(out.glob("*"))) if out.is_dir() else out.read_bytes()
        self.assertTrue(re.search(r"\n +\d+ bytes  hart 1 ", seen["text"].decode()), "text")
        self.assertTrue(json.loads(seen["jsonl"].splitlines()[0])["times"].startswith("bytes of the stream"))
        self.assertTrue(b'"name":"cores (times are bytes of the stream)"' in seen["chrome"], "chrome")
        self.assertTrue(b"cores (times are bytes of the stream)" in seen["perfetto"], "perfetto")
        self.assertTrue(b"hart 10 (times are bytes of the stream)" in seen["ctf"], "ctf")
        self.assertTrue(b'times = "bytes of the stream' in seen["ctf"], "ctf")


    def test_whose_trace_counts_cycles_have_them(self):
        subprocess.run(["zstd", "-qdf", DATA / "gvsoc-hang.log.zst", "-o", self.trace], check=True)
        enter = [e["fields"] for e in self.export(self.trace)["trace_event"] if e["name"] == "function_enter"][-1]
        line = next(l for l in self.trace.read_text().splitlines() if f": {enter['cycle']}: " in l)
        self.assertIn(enter["function"], line)
        self.assertIn(f" {int(enter['pc'], 16):016x} ", line)
        slices = json.loads(self.hangscope("export", "--to", "chrome", self.trace).out)["traceEvents"]
        self.assertEqual([s["args"]["cycle"] for s in slices if s.get("name") == enter["function"] and s["ph"] == "B"][-1], str(enter["cycle"]))
        self.assertTrue(f"cycle {enter['cycle']}\n" in self.hangscope("export", "--to", "text", self.trace).out.decode(), "text")


class Files(ExportCase):
    IMAGE = IMAGES / "quiet-little64.bin"

    def test_are_replaced_only_by_force(self):
        out = self.folder / "trace.txt"
        out.write_text("mine")
        self.assertIn("--force", self.refused(2, "--to", "text", "-o", out, self.IMAGE))
        self.assertEqual(out.read_text(), "mine")
        done = self.hangscope("export", "--to", "text", "-o", out, "--force", self.IMAGE)
        self.assertEqual(done.status, 0, done.err)
        self.assertIn("task_switch", out.read_text())
        self.assertIn(f"in {out}", done.err.decode())
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["runtime", "trace.txt"])

    def test_that_cannot_be_written_leave_nothing(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([HANGSCOPE, "export", "--to", "text", self.IMAGE], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"No space left", done.stderr)
        self.assertIn("No such file", self.refused(3, "--to", "text", "-o", self.folder / "no/folder/x", self.IMAGE))

    def test_whose_reader_goes_away_end_silently(self):
        process = subprocess.Popen([HANGSCOPE, "export", "--to", "text", self.IMAGE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertIn(process.wait(), (0, -signal.SIGPIPE))


class Snapshots(ExportCase):
    """Of a program with a scope, while the kernel's events are recorded: one trace of all."""

    def setUp(self):
        super().setUp()
        checks = {c["name"]: c for c in json.loads(self.hangscope("doctor", "--json").out)["checks"]}
        for name in ("own-processes", "kernel-events"):
            if checks[name]["state"] != "works":
                self.skipTest(f"{checks[name]['what']}: {checks[name]['why']}")

    def snapshot(self, process):
        process.send_signal(signal.SIGUSR1)
        return self.until(self.snapshots, what="a snapshot")[0]

    def take(self):
        process = self.recorder("run", "--scope", "pid:", "--cpu", "--", MARKED)
        while process.stdout.readline() != b"500 calls\n":
            self.assertIsNone(process.poll())
        folder = self.snapshot(process)
        process.terminate()
        self.wait(process)
        return folder

    def test_have_scope_and_cpus_on_one_time_line_and_lose_no_part_silently(self):
        folder = self.take()
        lines = self.export(folder)
        self.check_order(lines)
        head = lines["trace"][0]
        self.assertEqual({track["kind"] for track in head["tracks"]}, {"core", "CPU"})
        self.assertEqual(head["command"], [str(MARKED)])
        self.assertEqual(lines["warnings"], [])
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(head["window"], manifest["window"])
        self.check_calls(lines, manifest)
        self.check_against_perf(lines, folder)
        self.check_parts(folder)

    def check_calls(self, lines, manifest):
        """Each marked call lies between the program's own events before and behind it."""
        if PRCTL is None:
            return
        error = manifest["window"]["clock_error_ns"]
        own, calls = {}, {}
        for event in lines["trace_event"]:
            if event["name"] in ("calls", "called"):
                own[event["name"], next(iter(event["fields"].values()))] = event
            elif event["name"] == "raw_syscalls:sys_enter" and event["fields"]["id"] == PRCTL and int(event["fields"]["args[0]"], 16) == MARK:
                calls[int(event["fields"]["args[1]"], 16)] = event
        checked = 0
        for serial, call in calls.items():
            before, behind = own.get(("calls", serial)), own.get(("called", serial))
            if before and behind:
                checked += 1
                self.assertTrue(before["ns"] - error <= call["ns"] <= behind["ns"] + error, (before, call, behind))
                self.assertEqual(call["task"], before["task"])
                self.assertEqual(call["what"], "prctl")
        self.assertGreater(checked, 100)

    def check_against_perf(self, lines, folder):
        """perf script says the same of the same file: as many events, of the same times and CPUs."""
        if shutil.which("perf") is None:
            return
        done = subprocess.run(["perf", "script", "--ns", "-F", "cpu,time,event", "-i", folder / "cpu.perf.data"], capture_output=True, text=True, timeout=60)
        said = collections.Counter()
        for line in done.stdout.splitlines():
            words = line.split()
            if len(words) == 3 and words[0].startswith("["):
                seconds, fraction = words[1].rstrip(":").split(".")
                said[int(words[0][1:-1]), int(seconds) * 10**9 + int(fraction), words[2].rstrip(":")] += 1
        tracks = lines["trace"][0]["tracks"]
        got = collections.Counter((tracks[e["track"]]["number"], e["ns"], e["name"]) for e in lines["trace_event"] if tracks[e["track"]]["kind"] == "CPU")
        self.assertGreater(len(said), 100)
        self.assertEqual((len(got - said), len(said - got)), (0, 0), f"{list((got - said).items())[:3]} {list((said - got).items())[:3]}")

    def check_parts(self, folder):
        """What of it is damaged, cut or missing is said, and the rest exported."""
        whole = len(self.export(folder)["trace_event"])
        manifest = (folder / "manifest.json").read_text()
        copy = self.folder / "copy"
        shutil.copytree(folder, copy)
        (copy / "manifest.json").write_text("{")
        lines = self.export(copy)
        self.assertEqual(len(lines["trace_event"]), whole)
        self.assertTrue(any("manifest.json" in w for w in lines["warnings"]), lines["warnings"])
        self.assertTrue(any("clocks" in w for w in lines["warnings"]), lines["warnings"])
        (copy / "manifest.json").write_text(json.dumps({**json.loads(manifest), "version": 7}))
        self.assertIn("version 7", "".join(self.export(copy)["warnings"]))
        (copy / "manifest.json").write_text(manifest)
        with open(copy / "cpu.perf.data", "r+b") as file:
            file.truncate((copy / "cpu.perf.data").stat().st_size // 2)
        lines = self.export(copy)
        self.assertTrue(0 < len(lines["trace_event"]) < whole)
        self.assertTrue(any("cut" in w for w in lines["warnings"]), lines["warnings"])
        (copy / "scope.bin").write_bytes(b"nothing")
        lines = self.export(copy)
        self.assertEqual({track["kind"] for track in lines["trace"][0]["tracks"]}, {"CPU"})
        self.assertTrue(any("scope" in w for w in lines["warnings"]), lines["warnings"])
        (copy / "cpu.perf.data").unlink()
        self.refused(3, "--to", "jsonl", copy)
        (copy / "scope.bin").unlink()
        self.refused(3, "--to", "jsonl", copy)

    def test_of_what_perf_itself_recorded(self):
        if shutil.which("perf") is None:
            self.skipTest("perf is not installed")
        data = self.folder / "p.data"
        for options in ([], ["-z"], ["--overwrite"]):
            done = subprocess.run(["perf", "record", "-q", *options, "-e", "sched:sched_switch,raw_syscalls:sys_enter", "-o", data, "--", "sh", "-c", "/bin/true; /bin/echo; sleep 0.01"], capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                self.skipTest(f"perf record {options} fails here: {done.stderr[-200:]}")
            lines = self.export(data)
            self.check_order(lines)
            done = subprocess.run(["perf", "script", "-F", "time,event", "-i", data], capture_output=True, text=True, timeout=60)
            self.assertEqual(len(lines["trace_event"]), len([line for line in done.stdout.splitlines() if ":" in line]), options)
            self.assertTrue(any(e["name"] == "raw_syscalls:sys_enter" and e.get("what") == "execve" for e in lines["trace_event"]))


if __name__ == "__main__":
    main()
