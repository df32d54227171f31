"""hangscope show, against a second reader of the same page (docs/format.md), over golden images of both
byte orders and word sizes."""
import json
import struct
import subprocess

import scope_images
import scope_reader
from support import DATA, HANGSCOPE, Case, main

IMAGES = DATA / "scope"


def show_lines(out):
    """What show --json says, in the words of the second reader."""
    lines = []
    for text in out.splitlines():
        line = json.loads(text)
        del line["version"]
        if line["type"] == "scope":
            continue
        if line["type"] == "core":
            line = {key: line[key] for key in ("type", "core", "emitted", "returned", "overwritten", "torn", "refused")}
        elif line["type"] == "corruption":
            line = dict(type="corruption", where=line["where"], field=line["what"].split()[0].rstrip(":"))
        elif line["type"] == "event":
            for key in ("name", "fields", "text"):
                line.pop(key, None)
        lines.append(line)
    return lines


class Golden(Case):
    maxDiff = None

    def check(self, shape):
        """The image in the repository is what its builder writes, and both readers read the same in it."""
        for name, data in scope_images.images():
            if not name.startswith(shape):
                continue
            with self.subTest(name):
                self.assertEqual((IMAGES / name).read_bytes(), data, "make it anew: scope_images.py tests/data/scope")
                done = self.hangscope("show", "--json", IMAGES / name)
                self.assertEqual(done.status, 0, done.err)
                ours, theirs = show_lines(done.out), scope_reader.read(data)
                key = lambda line: (line["where"], line["field"])
                mine, other = ([line for line in lines if line["type"] == "corruption"] for lines in (ours, theirs))
                self.assertEqual(sorted(mine, key=key), sorted(other, key=key))
                rest = [[line for line in lines if line["type"] != "corruption"] for lines in (ours, theirs)]
                self.assertEqual(*rest)
                for core in (line for line in ours if line["type"] == "core"):
                    self.assertEqual(core["emitted"], core["returned"] + core["overwritten"] + core["torn"] + core["refused"])

    def test_quiet(self):
        self.check("quiet")

    def test_lossy(self):
        self.check("lossy")

    def test_silent(self):
        self.check("silent")

    def test_astray(self):
        self.check("astray")

    def test_wrapped(self):
        self.check("wrapped")

    def test_corrupt(self):
        self.check("corrupt")

    def test_watched(self):
        self.check("watched")

    def test_damaged(self):
        self.check("damaged")

    def test_what_the_other_reader_finds_in_mailboxes_is_what_the_unit_tests_compare_with(self):
        kept = 0
        for name, data in scope_images.images():
            lines = scope_reader.read_watch(data)
            text = (IMAGES / name).with_suffix(".txt")
            self.assertEqual(text.exists(), bool(lines), name)
            if lines:
                kept += 1
                self.assertEqual(text.read_text().splitlines(), lines, f"{name}: make it anew: scope_images.py tests/data/scope")
        self.assertEqual(kept, 8)


class Show(Case):
    def show(self, *words):
        return self.hangscope("show", *words)

    def test_text(self):
        done = self.show(IMAGES / "quiet-little32.bin")
        self.assertEqual(done.status, 0, done.err)
        text = done.out.decode()
        self.assertIn("core 0  hart 0  owner 0  emitted 4: returned 4, overwritten 0, torn 0, refused 0\n", text)
        self.assertIn("task 4  waits since 0.006600 for 0x20002000 (exclusive), held by task 3\n", text)
        self.assertIn("core 0  task 3    semaphore_wait  semaphore 20002000, count 0\n", text)
        self.assertIn("core 1  event 77 (1, 2)\n", text)

    def test_version(self):
        head = json.loads(self.show("--json", IMAGES / "quiet-big32.bin").out.splitlines()[0])
        self.assertEqual((head["type"], head["abi"], head["byte_order"], head["word_bytes"]), ("scope", "1.0", "big", 4))

    def test_the_newest(self):
        done = self.show("--last", 1, "--core", "hart 1", "--json", IMAGES / "quiet-big64.bin")
        events = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual([e["id"] for e in events if e["type"] == "event"], [77])

    def test_choices(self):
        image = IMAGES / "quiet-little64.bin"
        text = self.show("--event", "task_switch", image).out.decode()
        self.assertIn("task_switch", text)
        self.assertNotIn("task_create", text)
        text = self.show("--task", 3, image).out.decode()
        self.assertIn("semaphore_wait", text)
        self.assertNotIn("task_create", text)
        self.assertNotIn("hart 0", self.show("--core", "1-1", image).out.decode())

    def test_usage(self):
        image = IMAGES / "quiet-little64.bin"
        for words in (("--core", "9"), ("--event", "nothing_like_it"), ("--task", "x"), ("--last", "-3")):
            done = self.show(*words, image)
            self.assertEqual(done.status, 2, words)
            self.assertEqual(done.err.count(b"\n"), 1)
        self.assertEqual(self.show().status, 2)

    def test_no_scope(self):
        nothing = self.folder / "nothing"
        nothing.write_bytes(bytes(10_000) + b"hangscope is only named here")
        done = self.show(nothing)
        self.assertEqual(done.status, 3)
        self.assertIn(b"no scope", done.err)
        nothing.write_bytes(bytes(10_000) + b"hangscope is only named here" + bytes(range(256)))
        self.assertIn(b"is damaged", self.show(nothing).err)
        self.assertEqual(self.show(self.folder / "absent").status, 3)

    def test_anywhere_in_a_dump_of_memory(self):
        image = (IMAGES / "lossy-big32.bin").read_bytes()
        dump = self.folder / "ram.bin"
        at = (1 << 20) - 4  # across the search's step
        dump.write_bytes(bytes(at) + image + bytes(5000))
        found = self.show(dump)
        self.assertEqual(found.status, 0, found.err)
        self.assertEqual(found.out, self.show(IMAGES / "lossy-big32.bin").out)
        self.assertEqual(found.out, self.show(f"file:{dump}@{at}").out)
        self.assertEqual(self.show(f"file:{dump}@{at + 4}").status, 3)

    def test_snapshot(self):
        """Its catalog gives the names."""
        folder = self.folder / "fw.snapshot-0001"
        folder.mkdir()
        self.assertIn(b"is no snapshot: it has no manifest.json, and nothing else that hangscope wrote", self.show(folder).err)
        (folder / "manifest.json").write_text("{}")
        self.assertIn(b"no 'scope.bin' in it; if it is a snapshot, hangscope why", self.show(folder).err)
        (folder / "manifest.json").unlink()
        (folder / "scope.bin").write_bytes((IMAGES / "quiet-big64.bin").read_bytes())
        entry = struct.pack(">3I", 1, 77, 16) + b"packet_sent\0port %u, %u bytes\0u32 port,u32 bytes,\0"
        entry += bytes(-len(entry) % 4)
        (folder / "scope.catalog").write_bytes(struct.pack(">3I", 0x6C746163, 1, 12 + len(entry)) + entry)
        done = self.show(f"{folder}/")
        self.assertEqual(done.status, 0, done.err)
        self.assertIn(b"packet_sent  port 1, 2 bytes\n", done.out)

    def test_a_reader_that_goes_away(self):
        process = subprocess.Popen([HANGSCOPE, "show", IMAGES / "lossy-little32.bin"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        process.wait()


if __name__ == "__main__":
    main()
