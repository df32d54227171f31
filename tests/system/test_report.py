"""`hangscope report`: the page of a hang, and its data, of snapshots of real hangs, whole and damaged."""
import base64
import json
import re
import shutil

from support import *

COPIERS = [BUILD + "/tests/copiers"]
# A thread takes one of two things from a queue, and waits for the other.
WAITING = """
import queue, threading, time
things = queue.SimpleQueue()
taker = threading.Thread(target=lambda: [things.get() for _ in range(2)])
taker.start()
time.sleep(0.2)
things.put(1)
time.sleep(0.01)
print("one is there", flush=True)
taker.join()
"""
ABBA = [BUILD + "/examples/hung/abba_locks"]
WORDS_OF_DOCUMENT = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", (ROOT / "docs/report-data.md").read_text()))))
COLUMN_BYTES = {"from": 8, "to": 8, "state": 1, "depth": 1, "text": 4, "time": 8, "kind": 4}
# Prints a round of a real instruction trace for ever.
TURNING = """
import sys, time
lines = sys.stdin.buffer.read()
while True:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()
    time.sleep(0.02)
"""


class Report(Case):
    def data(self, target, *words):
        outcome = self.hangscope("report", "--data", target, *words)
        self.assertEqual(outcome.status, 0, outcome.err)
        data = json.loads(outcome.out)
        self.assert_as_documented(data)
        return data

    def assert_as_documented(self, data):
        """No field that docs/report-data.md does not name; columns of the length that they say; numbers that refer to something."""
        def names(value):
            if isinstance(value, dict):
                yield from value
                for item in value.values():
                    yield from names(item)
            elif isinstance(value, list):
                for item in value:
                    yield from names(item)
        self.assertEqual(set(names(data)) - WORDS_OF_DOCUMENT, set())
        self.assertEqual(data["version"], 1)
        strings, tracks = len(data.get("strings", [])), data.get("tracks", [])
        for i, track in enumerate(tracks):
            self.assertEqual(track["id"], i)
            self.assertLess(track.get("parent", -1), i)
            for columns in ("spans", "events"):
                for name, text in track.get(columns, {}).items():
                    if name in ("n", "omitted"):
                        continue
                    column = base64.b64decode(text, validate=True)
                    self.assertEqual(len(column), track[columns]["n"] * COLUMN_BYTES[name], (track["name"], columns, name))
                    if name == "text":
                        self.assertTrue(all(n < strings for n in struct.unpack(f"<{len(column) // 4}I", column)))
                    if name == "time" or columns == "spans" and name == "from":
                        times = struct.unpack(f"<{len(column) // 8}d", column)
                        self.assertTrue(all(a <= b for a, b in zip(times, times[1:])), (track["name"], columns))
            for counter in track.get("counters", []):
                times, values = (base64.b64decode(counter[name], validate=True) for name in ("time", "value"))
                self.assertEqual((len(times), len(values)), (8 * counter["n"], 8 * counter["n"]))
        flows = data.get("flows", {"n": 0})
        for name in ("to_track", "from_track", "text", "to_time", "from_time"):
            column = base64.b64decode(flows.get(name, ""), validate=True)
            self.assertEqual(len(column), flows["n"] * (8 if name.endswith("time") else 4), name)
            most = strings if name == "text" else len(tracks)
            if not name.endswith("time"):
                self.assertTrue(all(n < most for n in struct.unpack(f"<{flows['n']}I", column)), name)
        ids = [node["id"] for node in data.get("graph", {}).get("nodes", [])]
        for edge in data.get("graph", {}).get("edges", []):
            self.assertIn(edge["from"], ids)
            self.assertIn(edge["to"], ids)

    def cycle_names(self, data):
        names = {node["id"]: node["name"] for node in data["graph"]["nodes"]}
        return [names[i] for i in data["graph"]["cycle"]]

    def hang(self, *words, **popen):
        """The snapshot that is taken of a hang; the run is over."""
        outcome = self.wait(self.recorder("run", "--stall", "0.5", "--on-hang", "kill", "--heartbeat", "0", *words, **popen))
        self.assertEqual(outcome.status, 124, outcome.err)
        return self.snapshots()[0]

    def copiers(self, start=None, what="deadlock"):
        scope = self.folder / f"{what}.scope"
        end, held = os.pipe()  # a byte ends it, and so would its closing
        self.addCleanup(os.close, held)
        self.addCleanup(os.close, end)
        environment = {**os.environ, "HANGSCOPE_SCOPE": str(scope)}
        return (start or self.hang)("--scope", f"file:{scope}", "--elf", COPIERS[0], "--", *COPIERS, what, stdin=end, env=environment)

    def blocks_of(self, scope, name):
        """How many blocks the core of that name has copied."""
        lines = [json.loads(line) for line in self.hangscope("show", "--json", f"file:{scope}").out.splitlines()]
        return sum(line["emitted"] for line in lines if line["type"] == "core" and line["name"] == name)

    def test_a_deadlock_of_cores_has_its_page_with_who_waits_for_whom(self):
        snapshot = self.copiers()
        page = (snapshot / "report.html").read_text()
        self.assertIn('id="hangscope-data"', page)
        self.assertNotRegex(page, r"(src|href)=[\"']?https?:", "nothing comes from the network")
        self.assertEqual([str(p) for p in self.folder.glob("*.partial")], [])
        data = self.data(snapshot)
        self.assertEqual((data["state"], data["confidence"], data["hang"]), ("deadlock", "certain", True))
        self.assertEqual(len(self.cycle_names(data)), 2)
        waits = {(edge["from"], edge["to"]): edge["label"] for edge in data["graph"]["edges"]}
        a, b = data["graph"]["cycle"]
        self.assertEqual({waits[a, b], waits[b, a]}, {"queue", "table"})
        for node in data["graph"]["nodes"][:2]:
            self.assertIn(".cc:", node["place"])
            self.assertLess(node["since"], -0.3e9)
        self.assertEqual([t["state"] for t in data["tracks"] if t["kind"] == "core"].count("waiting"), 2)
        self.assertIn(["program", COPIERS[0]], data["run"])
        # Its threads were looked at, too, and tell of the same hang: it is told once, with both witnesses.
        self.assertTrue((snapshot / "threads.jsonl").exists())
        self.assertEqual([f["kind"] for f in data["findings"]], ["deadlock"])
        for evidence in (data["evidence"], data["findings"][0]["evidence"]):
            self.assertEqual(sum("the threads' own waits say the same" in text for text in evidence), 1, evidence)
            self.assertEqual(sum("for mutex" in text for text in evidence), 2, evidence)
        tids = {thread["name"]: thread["id"] for thread in data["threads"]}
        self.assertEqual(len(data["graph"]["edges"]), 2)
        for node in data["graph"]["nodes"]:
            self.assertEqual(node["also"], f"thread {tids[node['name'].split()[-1]]} {node['name'].split()[-1]}")
            self.assertRegex(node["waits_for"], r"^(queue|table); mutex locks(\+\d+)?, held by \d+$")
        # What is in the page is what --data prints.
        inside = re.search(r'<script[^>]*id="hangscope-data"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
        self.assertEqual(json.loads(inside)["graph"], data["graph"])

    def test_of_a_damaged_snapshot_each_part_that_is_left_is_shown_and_the_rest_named(self):
        whole = self.copiers()
        expected = self.data(whole)
        copy = self.folder / "copy"

        def damaged(change):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(whole, copy)
            change()
            return self.data(copy)

        def manifest(**fields):
            known = json.loads((copy / "manifest.json").read_text())
            (copy / "manifest.json").write_text(json.dumps({**known, **fields}))

        with self.subTest("no manifest"):
            data = damaged(lambda: (copy / "manifest.json").unlink())
            self.assertEqual(self.cycle_names(data), self.cycle_names(expected))
            self.assertIn("deadlock", data["headline"])
            self.assertIn("manifest.json", " ".join(data["troubles"]))
        with self.subTest("half a manifest"):
            data = damaged(lambda: os.truncate(copy / "manifest.json", 500))
            self.assertEqual(self.cycle_names(data), self.cycle_names(expected))
            self.assertIn("manifest.json' is no JSON object", " ".join(data["troubles"]))
        with self.subTest("a newer one"):
            data = damaged(lambda: manifest(version=9, verdict={"state": "sleepwalking", "summary": "walks", "hang": True}, novelty=[1]))
            self.assertEqual((data["headline"], data["state"]), ("walks", "sleepwalking"))
            self.assertIn("version 9", " ".join(data["troubles"]))
            self.assertEqual(self.cycle_names(data), self.cycle_names(expected))
        with self.subTest("no scope"):
            data = damaged(lambda: (copy / "scope.bin").unlink())
            self.assertEqual(data["headline"], expected["headline"])
            self.assertEqual(sorted(name.split()[1] for name in self.cycle_names(data)), ["alpha", "beta"], "the threads say it, too")
            self.assertEqual([f["kind"] for f in data["findings"]], ["deadlock"])
            self.assertEqual([s["name"] for s in data["streams"]], ["stdout", "stderr"])
        with self.subTest("no threads"):
            data = damaged(lambda: (copy / "threads.jsonl").unlink())
            self.assertEqual([node["name"] for node in data["graph"]["nodes"]], [node["name"] for node in expected["graph"]["nodes"]])
            self.assertNotIn("also", data["graph"]["nodes"][0])
        with self.subTest("neither"):
            data = damaged(lambda: [(copy / name).unlink() for name in ("scope.bin", "threads.jsonl")])
            self.assertNotIn("graph", data)
        with self.subTest("half a scope"):
            data = damaged(lambda: os.truncate(copy / "scope.bin", 300))
            self.assertEqual(data["headline"], expected["headline"])
            self.assertIn("scope", " ".join(data["troubles"]))
        with self.subTest("a corrupted mailbox"):
            def corrupt():
                image = bytearray((copy / "scope.bin").read_bytes())
                at, stride = struct.unpack_from("<II", image, 40)
                image[at + stride + 4 + 4:at + stride + 4 + 8] = b"\xff" * 4  # of the first core that waits
                (copy / "scope.bin").write_bytes(image)
            data = damaged(corrupt)
            self.assertEqual(data["headline"], expected["headline"])
        with self.subTest("no names"):
            data = damaged(lambda: (copy / "scope.catalog").unlink())
            self.assertEqual(len(data["graph"]["cycle"]), 2)
        with self.subTest("a stream without its index"):
            data = damaged(lambda: (copy / "stdout.index").write_bytes(b"no index"))
            self.assertIn("stdout.index", " ".join(data["troubles"]))
            self.assertEqual([s["name"] for s in data["streams"]], ["stderr"])
        with self.subTest("nothing"):
            shutil.rmtree(copy)
            copy.mkdir()
            outcome = self.hangscope("report", copy)
            self.assertEqual(outcome.status, 3)
            self.assertIn(b"manifest.json", outcome.err)

    def test_threads_that_wait_for_each_other_are_shown_with_their_stacks(self):
        snapshot = self.hang("--", *ABBA)
        data = self.data(snapshot)
        if not data.get("threads"):
            self.skipTest("the threads of a process cannot be looked at here")
        self.assertEqual(data["state"], "deadlock")
        cycle = self.cycle_names(data)
        self.assertEqual(len(cycle), 2)
        stacks = {thread["id"]: [frame.get("function", "") for frame in thread["frames"]] for thread in data["threads"]}
        for name in cycle:
            self.assertTrue(any("lock" in function for function in stacks[name.split()[0]]), (name, stacks))
        self.assertTrue(all(edge["label"] for edge in data["graph"]["edges"]))

    def test_a_simulator_that_turns_has_its_loop_and_its_last_lines_with_their_cores(self):
        trace = subprocess.run(["zstd", "-dc", DATA / "gvsoc-hang.log.zst"], capture_output=True, check=True).stdout
        lines = self.folder / "lines"
        lines.write_bytes(b"".join(trace.splitlines(True)[-400:]))
        with open(lines, "rb") as stdin:
            data = self.data(self.hang("--", *python(TURNING), stdin=stdin))
        self.assertEqual((data["state"], data["hang"]), ("looping", True))
        loop = data["loops"][0]
        self.assertEqual(loop["name"], "/soc/host")
        self.assertEqual(loop["places"][0]["function"], "cb_wait_front")
        exported = self.hangscope("export", "--to", "text", self.snapshots()[0]).out.decode()
        self.assertIn(f"\n/soc/host: looping since cycle {loop['since_cycle']}\n", exported)
        last = data["streams"][0]["lines"]
        self.assertIn("cb_wait_front", last[-1]["text"])
        self.assertNotIn("\x1b", "".join(line["text"] for line in last))
        # The newest came while the snapshot was taken, after its time.
        self.assertTrue(all(line["time"] < 1e9 for line in last if "time" in line))
        self.assertTrue(any(line["time"] <= 0 for line in last if "time" in line))

    def test_what_the_kernel_recorded_of_cpus_is_drawn(self):
        if self.hangscope("run", "--cpu", "--heartbeat", "0", "--prefix", self.folder / "try", "--", "true").err.find(b"warning: --cpu") >= 0:
            self.skipTest("CPUs cannot be recorded here (hangscope doctor says why)")
        snapshot = self.hang("--cpu", "--", *ABBA)
        data = self.data(snapshot)
        kinds = {track["kind"] for track in data["tracks"]}
        self.assertLessEqual({"cpu", "thread"}, kinds)
        self.assertGreater(sum(track.get("spans", {}).get("n", 0) for track in data["tracks"]), 0)
        self.assertIn("window", data)
        self.assertEqual(data.get("troubles", []), [], "nothing is wrong with it")
        self.assertIn("in the trace", " ".join(data["notes"]))

    def test_who_waits_for_nobody_known_is_joined_to_who_woke_it_last(self):
        if self.hangscope("run", "--cpu", "--heartbeat", "0", "--prefix", self.folder / "try", "--", "true").err.find(b"warning: --cpu") >= 0:
            self.skipTest("CPUs cannot be recorded here (hangscope doctor says why)")
        data = self.data(self.hang("--cpu", "--", *python(WAITING)))
        strings = [data["strings"][n] for n in struct.unpack(f"<{data['flows']['n']}I", base64.b64decode(data["flows"]["text"]))]
        self.assertTrue(any(text.startswith("wakes thread") for text in strings), strings[:20])
        graph = data["graph"]
        process = data["run"][[name for name, _ in data["run"]].index("process")][1]
        main, = (node["id"] for node in graph["nodes"] if f"thread {process} " in node["name"])
        wakes = [edge for edge in graph["edges"] if edge["kind"] == "wakes" and edge["to"] == main]
        self.assertEqual(len(wakes), 1, graph)
        self.assertRegex(wakes[0]["label"], r"^[\d.]+ m?s before the end$")

    def test_the_command_writes_where_it_is_told_and_takes_nothing_away(self):
        self.run_program(python("import sys; print('<b>stuck</b>'); sys.exit(3)"))
        snapshot = self.snapshots()[0]
        page = snapshot / "report.html"
        page.write_text("mine")
        outcome = self.hangscope("report", snapshot)
        self.assertEqual((outcome.status, outcome.out.decode()), (0, f"{page}\n"))
        self.assertIn(b"is there already; --force writes it anew", outcome.err)
        self.assertEqual(page.read_text(), "mine")
        self.assertEqual(self.hangscope("report", "--force", snapshot).status, 0)
        self.assertIn("hangscope-data", page.read_text())
        self.assertNotIn("<b>stuck", page.read_text())
        other = self.folder / "other.html"
        self.assertEqual(self.hangscope("report", snapshot, "-o", other).out.decode(), f"{other}\n")
        self.assertEqual(self.hangscope("report", snapshot, "-o", "-").out, other.read_bytes())
        self.assertEqual(self.hangscope("report", snapshot, "-o", self.folder / "no" / "x.html").status, 3)
        self.assertEqual(self.hangscope("report").status, 2)
        self.assertEqual(self.hangscope("report", snapshot, "--events", "none").status, 2)
        self.assertEqual(self.hangscope("report", self.folder / "nowhere").status, 3)

    def test_against_a_healthy_run_it_says_what_that_one_did_next(self):
        hung = self.copiers().rename(self.folder / "hung")
        healthy = self.copiers(lambda *words, **popen: self.recorder("run", "--heartbeat", "0", *words, **popen), "well")
        self.until(lambda: (self.folder / "well.scope").exists(), what="the healthy run's scope")
        for name in ("alpha", "beta"):  # which of them is which core is chance
            self.until(lambda: self.blocks_of(self.folder / "well.scope", name) >= 50, what=f"fifty blocks of {name}")
        self.until(lambda: self.hangscope("snap", healthy.pid).status == 0, what="a snapshot of the healthy run")
        self.end(healthy)
        well = self.snapshots()[0]
        outcome = self.hangscope("report", hung, "--against", well)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn(b"the healthy run went on with 'copied", outcome.out)
        self.assertEqual(outcome.out.decode().splitlines()[-1], str(hung / "report.against.html"))
        divergence = self.data(hung, "--against", well)["divergence"]
        self.assertEqual(divergence["healthy"], well.name)
        for core in divergence["cores"][:2]:
            self.assertRegex(core["name"], "alpha|beta")
            self.assertGreaterEqual(core["matched"], 1)
            self.assertIn("copied", core["healthy"][0]["text"])
            self.assertNotIn("hung", core, "it did nothing more")
            self.assertRegex(core["note"], "waits for (queue|table)")

    def test_against_a_healthy_log_the_loop_is_left(self):
        lines = [f"step {word}" for word in "load parse link place route check sign pack ship".split()]
        polls = ["asking the printer", "the printer is busy"]
        for name, text in {"healthy": lines + polls * 2 + ["printed", "done"], "hung": lines + polls * 40}.items():
            self.hangscope("run", "--heartbeat", "0", "--prefix", self.folder / name, "--", *python("import sys; print(sys.argv[1]); sys.exit(3)", "\n".join(text)))
        hung, healthy = (self.folder / f"{name}.snapshot-0001" for name in ("hung", "healthy"))
        core, = self.data(hung, "--against", healthy)["divergence"]["cores"]
        self.assertEqual((core["name"], core["matched"]), ("stdout", 11))
        self.assertEqual([step["text"] for step in core["healthy"]], ["printed", "done"])
        self.assertIn("this one goes round 2 steps 40 times", core["verdict"])
        self.assertEqual(core["common"][-1]["text"], "the printer is busy")
        core, = self.data(healthy, "--against", healthy)["divergence"]["cores"]
        self.assertIn("no divergence seen", core["verdict"])
        outcome = self.hangscope("report", hung, "--against", self.folder / "nowhere")
        self.assertEqual(outcome.status, 3)


if __name__ == "__main__":
    main()
