"""2 x 2 nodes with a scope in each node's memory and an ELF for each of five roles, in QEMU, as one target: live, as
dumps, and with a memory that cannot be read.

HANGSCOPE_LONG=1 takes three seeds instead of one; HANGSCOPE_SEED=N others.
"""
import json
import pathlib
import random
import shutil
import subprocess

from support import BUILD, LONG, SEED, Case, main
from watched_targets import ROLES, new_folder, start_tiles, tile_elf

STALL = "400ms"
NODES = [(0, 0), (1, 0), (0, 1), (1, 1)]
READER, WRITER = 0, 4


class Tiles(Case):
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

    def deadlock(self, found, cores):
        """The finding, a deadlock of these cores: (node, role)."""
        bad = [finding for finding in found if finding["hang"]]
        self.assertEqual([finding["kind"] for finding in bad], ["deadlock"], found)
        subjects = bad[0]["subjects"]
        names = {f"core {role} {ROLES[role]} ({NODES[node][0]},{NODES[node][1]})" for node, role in cores}
        self.assertEqual({subject["name"] for subject in subjects}, names)
        for subject in subjects:
            self.assertEqual(subject["memory"], "({},{})".format(*subject["node"]))
            self.assertRegex(subject["where"], r"lock, acquire, sync\.c:\d+ in lock_acquire")
            self.assertIn(f"core {subject['core']} ", subject["name"])
        return bad[0]

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
        victims = {tuple(victim["node"]) for victim in found[0]["victims"]}
        self.assertEqual(victims, set(NODES))
        self.assertRegex(found[0]["facts"]["text"], r"'the block is in order' tripped at faults\.c:\d+ in \w+")


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
