"""2 x 2 nodes with a scope in each node's memory and an ELF for each of five roles, in QEMU, as one target: live, as
dumps, and with a memory that cannot be read.

HANGSCOPE_LONG=1 takes three seeds instead of one; HANGSCOPE_SEED=N others.
"""
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
from xml.etree import ElementTree

from scope_ram import RAM_BASE, Elf
from support import BUILD, HANGSCOPE, LONG, ROOT, SEED, Case, main
from watched_targets import DEVICE_FAULTS, EVERY_CORE, ROLES, new_folder, start_device, start_tiles, tile_elf

STALL = "400ms"
NODES = [(0, 0), (1, 0), (0, 1), (1, 1)]
READER, WRITER = 0, 4
GUARD_WORD = re.search(r"GUARD_WORD (0x\w+?)u?\b", (ROOT / "examples/common/dataflow_names.h").read_text())[1]


class Grid(Case):
    def each_seed(self):
        for seed in range(SEED, SEED + (3 if LONG else 1)):
            with self.subTest(seed=seed):
                yield random.Random(seed)

    def start(self, **plan):
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        tiles = start_tiles(folder, **plan)
        self.addCleanup(tiles.kill)
        if plan.get("fault"):
            self.assertTrue(tiles.until_planted(), tiles.said())
        return tiles

    def json(self, command, file, *words):
        """Its status, its lines, and the findings in them."""
        done = self.hangscope(command, "--json", "--stall", STALL, *words, "--device", file)
        self.assertEqual(done.err, b"")
        lines = [json.loads(line) for line in done.out.splitlines()]
        verdicts = [line for line in lines if line["type"] == "verdict"]
        found = [line for line in lines if line["type"] == "finding"] + [f for v in verdicts for f in v.get("findings", [])]
        return done.status, lines, found

    def deadlock(self, found, cores, stacks=True):
        """The finding, a deadlock of these cores: (node, role). `stacks`: the memories have them, so callers are known."""
        bad = [finding for finding in found if finding["hang"]]
        self.assertEqual([finding["kind"] for finding in bad], ["deadlock"], found)
        subjects = bad[0]["subjects"]
        names = {f"core {role} {ROLES[role]} ({NODES[node][0]},{NODES[node][1]})" for node, role in cores}
        self.assertEqual({subject["name"] for subject in subjects}, names)
        for subject in subjects:
            self.assertEqual(subject["memory"], "({},{})".format(*subject["node"]))
            self.assertIn(f"core {subject['core']} ", subject["name"])
            if not stacks:
                self.assertRegex(subject["where"], r"lock, acquire, sync\.c:\d+ in lock_acquire")
                continue
            # Each tile's program lies where its memory does, which is not where the ELF says.
            self.assertRegex(subject["where"], r"^(maybe_fail|lock_in_turn)  faults\.c:\d+$")
            self.assertEqual([caller.split("  ")[0] for caller in subject["callers"][-2:]], ["hart_main", "_start"])
        return bad[0]


class Tiles(Grid):
    def live_dead_and_lost(self, tiles, cores):
        status, _, found = self.json("watch", tiles.file, "--interval", "20ms", "--exit-on-hang")
        self.assertEqual(status, 1)
        finding = self.deadlock(found, cores)
        self.assertEqual(finding["confidence"], "certain")
        self.assertIn(finding["first"], {subject["name"] for subject in finding["subjects"]})
        _, _, found = self.json("why", tiles.file)
        self.deadlock(found, cores)
        for lost in range(4):
            file = tiles.write_file(f"lost{lost}.json", lost=[lost])
            status, lines, found = self.json("why", file)
            looked = next(line["text"] for line in lines if line.get("event") == "looked")
            self.assertIn("cannot be read: ({},{}): cannot open".format(*NODES[lost]), looked)
            if lost in {node for node, _ in cores}:
                # The circle cannot be seen, and whoever is not seen may yet deliver.
                self.assertEqual(status, 0, found)
                self.assertEqual({f["confidence"] for f in found}, {"possible"})
                self.assertTrue(any("cannot be read" in doubt for f in found for doubt in f["doubts"]), found)
            else:
                # A lock has one holder, and the locks of the circle have theirs.
                self.assertEqual(status, 1)
                self.assertEqual(self.deadlock(found, cores)["confidence"], "certain")
        dumps = tiles.dump()
        tiles.kill()
        status, lines, found = self.json("why", dumps)
        self.assertEqual(status, 1)
        self.assertEqual(self.deadlock(found, cores)["confidence"], "certain")
        self.assertIn("none of which changes any more", next(line["text"] for line in lines if line.get("event") == "looked"))

    def by_kernel(self, tiles):
        """What is found where the file names ELFs by the kernel that a core has loaded, and no other."""
        kernels = {"1": str(tile_elf("reader")), "2": str(tile_elf("math"))}
        _, _, found = self.json("why", tiles.write_file("kernels.json", elfs={"kernels": kernels}))
        self.assertEqual(found[0]["subjects"][0]["name"], "core 2 (1,0)")  # roles are nobody's to tell
        return found[0]

    def test_a_deadlock_across_nodes(self):
        for seed in self.each_seed():
            node = seed.randrange(3)
            tiles = self.start(fault="DEADLOCK_NODES", core=5 * node + WRITER, block=seed.randrange(5, 60))
            self.live_dead_and_lost(tiles, {(node, WRITER), (node + 1, READER)})

    def test_a_deadlock_within_a_node(self):
        for seed in self.each_seed():
            node, role = seed.randrange(4), seed.randrange(1, 4)
            tiles = self.start(fault="DEADLOCK2", core=5 * node + role, other=role - 1, block=seed.randrange(5, 60))
            self.live_dead_and_lost(tiles, {(node, role), (node, role - 1)})

    def test_what_works_is_no_hang_live_or_dead_or_in_part(self):
        tiles = self.start(pace_us=2000)
        tiles.until_recording()
        for file in (tiles.file, tiles.write_file("lost.json", lost=[1])):
            status, _, found = self.json("watch", file, "--interval", "20ms", "--for", "2")
            self.assertEqual((status, [f for f in found if f["hang"]]), (0, []))
        dumps = tiles.dump()
        tiles.kill()
        status, _, found = self.json("why", dumps)
        self.assertEqual((status, [f for f in found if f["hang"]]), (0, []))

    def test_a_core_that_stops_in_one_node_is_named_for_the_waits_of_all(self):
        tiles = self.start(fault="ASSERT", core=5 + 2, block=20)
        status, _, found = self.json("watch", tiles.file, "--interval", "20ms", "--for", "2")
        self.assertEqual(status, 1)
        self.assertEqual([(f["kind"], [s["name"] for s in f["subjects"]]) for f in found if f["hang"]],
                         [("fault", ["core 2 math (1,0)"])])
        _, _, found = self.json("why", tiles.file)
        self.assertEqual(found[0]["facts"]["text"], self.by_kernel(tiles)["facts"]["text"])
        # A word lies where the tile's program does; what it shares with others is in none of these memories.
        words = [(word["of"], word["memory"], word["name"], word["text"]) for word in found[0]["words"]]
        self.assertEqual(words, [("all (1,0)", "(1,0)", "tile", "1"),
                                 *(("node (1,0)", "(1,0)", name, "not in the memory that can be read") for name in ("cb0 pushed", "cb0 popped"))])
        victims = {tuple(victim["node"]) for victim in found[0]["victims"]}
        self.assertEqual(victims, set(NODES))
        self.assertRegex(found[0]["facts"]["text"], r"'the block is in order' tripped at faults\.c:\d+ in \w+")

class Acts(Grid):
    """What is done about a hang of a device: as for one target, over all memories."""

    def across(self):
        """Nodes 1 and 2 in a deadlock: what runs, and the cores."""
        return self.start(fault="DEADLOCK_NODES", core=5 + WRITER, block=20), {(1, WRITER), (2, READER)}

    def watch(self, file, *words, status=1):
        done = self.hangscope("watch", "--json", "--stall", STALL, "--interval", "20ms", *words, "--device", file)
        self.assertEqual((done.err, done.status), (b"", status))
        return [json.loads(line) for line in done.out.splitlines()]

    def snapshot(self, number=1):
        return pathlib.Path(f"{self.prefix}.snapshot-{number:04}")

    def why(self, snapshot):
        """Status, the verdict that it was taken with, the findings of what its memories say, and the text of `looked`."""
        done = self.hangscope("why", "--json", snapshot)
        lines = [json.loads(line) for line in done.out.splitlines()]
        verdict, = [line for line in lines if line["type"] == "verdict"]
        looked = [line["text"] for line in lines if line.get("event") == "looked"]
        return done.status, verdict, [line for line in lines if line["type"] == "finding"], looked

    def test_a_snapshot_says_of_all_memories_what_was_seen_live(self):
        tiles, cores = self.across()
        report = self.folder / "j.xml"
        self.watch(tiles.write_file("lost.json", lost=[3]), "--prefix", self.prefix, "--exit-on-hang", "--junit", report)
        tiles.kill()
        tiles.ram.unlink()
        snapshot = self.snapshot()
        status, verdict, found, looked = self.why(snapshot)
        self.assertEqual((status, verdict["state"], verdict["confidence"]), (1, "deadlock", "certain"))
        live = self.deadlock(verdict["findings"], cores)
        again = self.deadlock(found, cores, stacks=False)
        self.assertEqual((again["summary"], again["confidence"]), (live["summary"], "certain"))
        self.assertIn("4 memories, none of which changes any more; cannot be read: (1,1): cannot open", looked[0])
        manifest = json.loads((snapshot / "manifest.json").read_text())
        memories = manifest["device"]["memories"]
        self.assertEqual([memory["name"] for memory in memories], ["(0,0)", "(1,0)", "(0,1)", "(1,1)"])
        self.assertEqual(["unread" in memory for memory in memories], [False, False, False, True])
        self.assertNotIn("scope", manifest)
        text = (snapshot / "report.txt").read_text()
        self.assertIn("core 4 writer (1,0)", text)
        self.assertRegex(text, r"memory \(1,1\): could not be read: cannot open .*nothing")
        case, = ElementTree.parse(report).getroot().iter("testcase")
        self.assertEqual(case.get("name"), "grid")
        self.assertIn("deadlock, 2 of 15 cores", case.find("failure").get("message"))
        self.others_read(snapshot, cores)
        self.names_no_functions_of_other_elfs(snapshot)
        self.runs_no_command(snapshot)

    def others_read(self, snapshot, cores):
        """What show, export and report make of it."""
        done = self.hangscope("show", "--json", snapshot)
        lines = [json.loads(line) for line in done.out.splitlines()]
        memories = [(line["name"], "unread" in line) for line in lines if line["type"] == "memory"]
        self.assertEqual(memories, [("(0,0)", False), ("(1,0)", False), ("(0,1)", False), ("(1,1)", True)])
        done = self.hangscope("export", "--to", "jsonl", "-o", "-", snapshot)
        lines = [json.loads(line) for line in done.out.splitlines()]
        trace = next(line for line in lines if line["type"] == "trace")
        names = {track["name"] for track in trace["tracks"]}
        self.assertEqual(len(trace["tracks"]), 15)
        self.assertLessEqual({f"core {role} {ROLES[role]} ({NODES[node][0]},{NODES[node][1]})" for node, role in cores}, names)
        standings = [each for each in lines[-1]["standings"] if each["activity"] == "waiting" and each["by"]]
        self.assertLessEqual({5 * node + role for node, role in cores}, {each["core"] for each in standings})
        done = self.hangscope("report", "-o", "-", snapshot)
        self.assertEqual((done.status, done.err), (0, b""))
        self.assertIn(b"core 4 writer (1,0)", done.out)

    def names_no_functions_of_other_elfs(self, snapshot):
        """Nor of those that are gone: the catalogs in the snapshot name the rest."""
        listed = (snapshot / "device.json").read_text()
        other = self.folder / "other"
        other.mkdir()
        for role in ROLES:  # a byte more, in no section of it
            (other / tile_elf(role).name).write_bytes(tile_elf(role).read_bytes() + b"0")
        for folder in (other, self.folder / "nowhere"):
            (snapshot / "device.json").write_text(listed.replace(str(tile_elf("math").parent), str(folder)))
            _, _, found, _ = self.why(snapshot)
            self.assertRegex(found[0]["subjects"][0]["where"], r"^lock, acquire, sync\.c:\d+$")
        (snapshot / "device.json").write_text(listed)

    def runs_no_command(self, snapshot):
        """Somebody else's snapshot may name what it likes."""
        ran = self.folder / "ran"
        device = json.loads((snapshot / "device.json").read_text())
        device["memories"][0]["memory"] = f"exec:touch {ran}"
        (snapshot / "device.json").write_text(json.dumps(device))
        for command in (["why"], ["show"], ["report", "-o", "-"], ["export", "--to", "jsonl", "-o", "-"]):
            done = self.hangscope(*command, snapshot)
            self.assertIn("which is no part of the snapshot", (done.out + done.err).decode(), command)
        self.assertFalse(ran.exists())

    def test_a_lost_memory_of_the_circle_makes_the_snapshot_possible_at_most(self):
        tiles, _ = self.across()
        told = self.folder / "told"
        self.watch(tiles.write_file("lost.json", lost=[2]), "--prefix", self.prefix, "--for", "1.5", "--act-on", "possible",
                   "--on-hang", f'exec:echo "$HANGSCOPE_PID|$HANGSCOPE_SNAPSHOT|$HANGSCOPE_TARGET" >> {told}', status=0)
        self.assertEqual(told.read_text(), f"{tiles.process.pid}|{self.snapshot()}|grid\n")
        status, verdict, found, looked = self.why(self.snapshot())
        self.assertEqual((status, verdict["hang"], verdict["confidence"]), (0, False, "possible"))
        self.assertIn("cannot be read: (0,1): cannot open", looked[0])
        self.assertEqual({finding["confidence"] for finding in found}, {"possible"})
        self.assertTrue(any("(0,1)" in doubt and "cannot be read" in doubt for f in found for doubt in f["doubts"]), found)

    def test_kill_ends_the_simulator_that_has_all_memories(self):
        tiles, cores = self.across()
        done = self.hangscope("watch", "--on-hang", "kill", "--device", tiles.dump())
        self.assertEqual((done.status, done.out), (2, b""))
        self.assertIn("no process that may be looked into writes to", done.err.decode())
        lines = self.watch(tiles.file, "--on-hang", "kill", "--prefix", self.prefix, "--exit-on-hang")
        tiles.process.wait(10)  # which QEMU does with status 0
        self.assertEqual([line["text"] for line in lines if line.get("event") == "ends"],
                         [f"--on-hang kill: ends process {tiles.process.pid} (qemu-system-ris)"])
        self.assertEqual([line["kind"] for line in lines if line["type"] == "finding"], ["deadlock"])
        self.deadlock(self.why(self.snapshot())[1]["findings"], cores)

    def test_hangscope_snap_takes_one_of_a_device_that_works(self):
        tiles = self.start(pace_us=2000)
        tiles.until_recording()
        watcher = subprocess.Popen([HANGSCOPE, "watch", "--json", "--stall", STALL, "--interval", "20ms", "--prefix", self.prefix, "--device", tiles.file],
                                   stdout=subprocess.PIPE)
        self.addCleanup(self.end, watcher)
        self.assertIn(b'"watching"', watcher.stdout.readline())
        done = self.hangscope("snap", watcher.pid)
        self.assertEqual(done.status, 0, done.err)
        status, verdict, found, _ = self.why(self.snapshot())
        self.assertEqual((status, verdict["hang"], [f for f in found if f["hang"]]), (0, False, []))
        self.assertIn(f"{watcher.pid} ", self.hangscope("ls").out.decode())
        for _ in range(2):
            self.assertEqual(self.hangscope("snap", watcher.pid).status, 0)
        kept = sorted(path.name[-4:] for path in pathlib.Path(self.prefix).parent.glob("*.snapshot-*"))
        self.assertEqual(kept, ["0001", "0003"])



class OneMemory(Grid):
    def test_each_of_many_faults_says_which_of_its_node_was_the_first(self):
        """All cores of a node fail, the writer first; the other node waits for its link."""
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        device = start_device(folder, fault="ASSERT", core=EVERY_CORE, block=20, nodes=2)
        self.addCleanup(device.kill)
        self.until(lambda: device.said().count("planted: fault ") == 5)
        verdict = json.loads(self.hangscope("why", "--json", "--stall", STALL, "--elf", device.elf, device.target).out.splitlines()[0])
        said = {found["subjects"][0]["core"]: [line for line in found["evidence"] if "first of its node" in line] for found in verdict["findings"]}
        node = min(said) // 5
        writer = 5 * node + WRITER
        others = [f"the first of its node's 5 faults was that of core {writer} writer ({node},0)"]
        self.assertEqual(said, {core: ["the first of its node's 5 faults"] if core == writer else others for core in range(5 * node, 5 * node + 5)})

    def test_lines_are_known_of_an_image_without_what_nobody_calls(self):
        """RISC-V's linker leaves a hole in .debug_aranges for each function that --gc-sections drops."""
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        device = start_device(folder, fault="DEADLOCK2", core=3, other=1, block=20, firmware="gc-device.elf")
        self.addCleanup(device.kill)
        self.assertTrue(device.until_planted(), device.said())
        done = self.hangscope("why", "--stall", STALL, "--elf", device.elf, device.target)
        self.assertEqual(done.status, 1, done.out)
        self.assertEqual(len(re.findall(r"sync\.c:\d+ in lock_acquire <- lock_in_turn  faults\.c:\d+ ", done.out.decode())), 2, done.out)

    def test_why_says_when_what_runs_the_target_was_not_let_run(self):
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        device = start_device(folder)
        self.addCleanup(device.kill)
        device.until_recording()
        words = ["--stall", "0.3", "--elf", device.elf, device.target]
        self.assertRegex(self.hangscope("why", *words).out.decode(), r"ram: looked at for (0\.3 s: |\d\.\d s, of which)")  # a busy machine
        os.kill(device.process.pid, signal.SIGSTOP)
        done = self.hangscope("why", *words)
        self.assertEqual(done.status, 0, done.out)
        self.assertRegex(done.out.decode(), r"ram: looked at for [12]\.\d s, of which \d\.\d s do not count: the process that runs it had no processor or was stopped: ")

    def test_whoever_waits_behind_a_fault_is_named(self):
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        device = start_device(folder, fault="ASSERT", core=2, block=20)
        self.addCleanup(device.kill)
        self.assertTrue(device.until_planted(), device.said())
        with open(device.scope, "r+b") as ram:
            ram.seek(Elf(pathlib.Path(device.elf)).symbols["host_mode"] - RAM_BASE)
            ram.write(struct.pack("<I", 1))
        words = ["--json", "--stall", STALL, "--elf", device.elf, device.target]
        found = json.loads(self.hangscope("why", *words).out.splitlines()[0])["findings"]
        done = self.hangscope("watch", "--interval", "20ms", "--for", "2", "--prefix", self.prefix, *words)
        self.assertEqual(done.status, 1, done.err)
        kept = json.loads(pathlib.Path(f"{self.prefix}.snapshot-0001/manifest.json").read_text())["verdict"]["findings"]
        for findings in (found, kept):
            self.assertEqual([(f["kind"], f["subjects"][0]["name"]) for f in findings], [("fault", "core 2 math (0,0)")])
            self.assertEqual({victim["core"] for victim in findings[0]["victims"]}, {0, 1, 3, 4})
            # What the host wrote stands beside what the core says.
            self.assertEqual([(w["of"], w["name"]) for w in findings[0]["words"]],
                             [("all", "dispatch mode"), ("all", "planted"), ("node (0,0)", "cb0 pushed"), ("node (0,0)", "cb0 popped")])
            self.assertEqual([(w["value"], w["text"]) for w in findings[0]["words"][:2]],
                             [(1, "host"), (DEVICE_FAULTS["ASSERT"], str(DEVICE_FAULTS["ASSERT"]))])
        snapshot = json.loads(self.hangscope("report", "--data", f"{self.prefix}.snapshot-0001", "--elf", device.elf).out)
        self.assertEqual((snapshot["words"], snapshot["words_of"]), (kept[0]["words"], "findings"))
        memory = json.loads(self.hangscope("report", "--data", device.target, "--elf", device.elf).out)
        read = {w["name"]: w["text"] for w in memory["words"]}
        self.assertEqual(set(read), {"cores done", "cb0 pushed", "cb0 popped", "credits", "dispatch mode", "guarded", "planted"})
        self.assertEqual(read["guarded"], GUARD_WORD)
        self.assertNotIn("words_of", memory)


class Plain(Grid):
    """What the users of a watcher without a screen see of a device whose cores pause and are delayed."""

    def test_pauses_dumps_and_delays(self):
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        device = start_device(folder)
        self.addCleanup(device.kill)
        device.until_recording()
        log, out = folder / "watch.log", folder / "out"
        with open(out, "wb") as said:
            watcher = subprocess.Popen([HANGSCOPE, "watch", "--interval", "20ms", "--log", log, "--dump-all", "--elf", device.elf, device.target],
                                       stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, watcher)
        self.until(lambda: "watching" in out.read_text())
        done = self.hangscope("set", "delay", "--elf", device.elf, device.target, "writer@(0,0)", "write=random:50", "seed=7")
        self.assertRegex(done.out.decode(), r"delay set for 1 core: core 4 writer \(0,0\)\n.*: delayed in \S+ s: core 4 writer \(0,0\) \d+ writes\n$")
        done = self.hangscope("set", "delay", "--elf", device.elf, device.target, "math", "read=5")
        self.assertRegex(done.out.decode(), r"nothing delayed in 1\.\d s: core 2 math \(0,0\)\n$")  # it has no bus
        self.assertEqual(self.hangscope("set", "pause", "--elf", device.elf, device.target, "math").status, 0)
        self.until(lambda: "; to resume: " in out.read_text())
        announced = next(line for line in out.read_text().splitlines() if "; to resume: " in line)
        self.assertRegex(announced, r"core 2 math \(0,0\) is paused from outside, kernel 2 compute, last waypoint \w+")
        command = announced.partition("; to resume: hangscope ")[2]
        self.assertEqual(self.hangscope(*shlex.split(command)).status, 0)
        self.until(lambda: re.search(r"core 2 math \(0,0\) goes on, paused for \d", out.read_text()))
        watcher.send_signal(signal.SIGINT)
        self.assertEqual(watcher.wait(20), 130)
        self.assertRegex(out.read_text(), r"core 4 writer \(0,0\): \d+ writes delayed \(writes up to 50, seed 7\)")
        text = log.read_text()
        self.assertRegex(text, r"dump 1 of .*, at the beginning\n  in each node: reader,unpack,math,pack,writer\n  node +cores")
        self.assertRegex(text, r"dump 2 of .*, at the end\n.*\n.*\n  \(0,0\)  0-4 +(\w+,){4}\w+ +([A-Z],){4}[A-Z]  1,2,2,2,1 ")
        self.assertRegex(text, r"core 2 math \(0,0\): debug ring, the newest first, \d+ older ones dropped\n(   ( [0-9a-f]{8}){8}\n){4}")
        self.assertIn("  kernel 2 compute (examples/device/compute.c)\n", text)
        pushed = [int(n) for n in re.findall(rf"words:\n    all +cores done 0, dispatch mode development, planted 0\n    node \(0,0\) +cb0 pushed (\d+), cb0 popped \d+, credits \d+, guarded {GUARD_WORD}\n", text)]
        # A register of each core there is; the guest's RAM does not have it.
        self.assertEqual(re.findall(r"\n    core (\d) (\w+) \(0,0\) +mtimecmp \(not in the memory that can be read\)", text),
                         2 * [(str(i), role) for i, role in enumerate(ROLES)])
        self.assertEqual(len(pushed), 2, "a line of each dump")
        self.assertLess(pushed[0], pushed[1])


class Files(Case):
    def test_the_scope_may_be_made_by_any_of_several_elfs(self):
        tests = pathlib.Path(BUILD) / "tests"
        process = subprocess.Popen([tests / "copiers", "healthy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end, process)
        process.stdout.readline()
        file = self.folder / "host.json"
        file.write_text(json.dumps({"memories": [{"name": "host", "memory": f"pid:{process.pid}", "elfs": {
            "0": str(tests / "abba"), "copier": str(tests / "copiers")}}]}))
        done = self.hangscope("watch", "--json", "--for", "0.3", "--device", file)
        notes = [line for line in map(json.loads, done.out.splitlines()) if line["type"] == "note"]
        self.assertEqual([note["event"] for note in notes], ["watching"], notes)

    def test_a_file_that_is_wrong_is_status_2_and_says_where(self):
        file = self.folder / "grid.json"
        for text, said in [('{"memories": [{"memory": "a", "nod": [0, 0]}]}',
                            "memories[0]: unknown key 'nod', did you mean 'node'?"),
                           ('{"memories": [{"memory": "a",}]}', "line 1: it is no JSON")]:
            file.write_text(text)
            for command in ("watch", "why"):
                done = self.hangscope(command, "--device", file)
                self.assertEqual((done.status, done.out), (2, b""))
                self.assertIn(said, done.err.decode())

    def test_memories_none_of_which_can_be_read_are_status_3(self):
        file = self.folder / "grid.json"
        file.write_text('{"memories": [{"memory": "file:nowhere"}, {"memory": "core:neither"}]}')
        done = self.hangscope("why", "--device", file)
        self.assertEqual(done.status, 3)
        self.assertIn(f"cannot open '{self.folder}/nowhere'", done.err.decode())


if __name__ == "__main__":
    main()
