"""CTF as babeltrace2 reads it: nothing more, nothing less and nothing else than was written (tools/ctf_zoo.cc)."""
import collections
import json
import pathlib
import resource
import shutil
import subprocess

from ctf_case import read_ctf
from support import BUILD, DATA, Case, main

ZOO = pathlib.Path(BUILD) / "tests/ctf_zoo"


class CtfCase(Case):
    def make(self, *words, **popen):
        what, *rest = map(str, words)
        done = subprocess.run([ZOO, what, self.folder, *rest], capture_output=True, text=True, timeout=60, **popen)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in (self.folder / "written").read_text().splitlines()]

    def read(self):
        return read_ctf(self, self.folder / "trace")

    def assert_same(self, what, wanted, found):
        for i, (a, b) in enumerate(zip(wanted, found)):
            if a != b:
                self.fail(f"{what} {i}: {str(b)[:2000]} was read, {str(a)[:2000]} was written")
        self.assertEqual(len(found), len(wanted), f"number of: {what}")

    def assert_events(self, written, events):
        by_track = collections.defaultdict(list)
        for event in written:
            if "name" in event:
                by_track[event["track"]].append(event)
        for track, wanted in by_track.items():
            found = [event for event in events[track] if not event["name"].startswith("hangscope:")]
            self.assert_same(f"event of track {track}", [comparable(event) for event in wanted], [comparable(event) for event in found])
            self.assert_same(f"context of track {track}", [(e["task"], e["ambiguous"]) for e in wanted], [context_of(e) for e in found])
        self.assertEqual(sum(map(len, by_track.values())), sum(e["name"].split(":")[0] != "hangscope" for of in events.values() for e in of))


def comparable(event):
    # A value without a name has none, whether others of its field do or not.
    return [event["time"], event["name"], event["values"], [sorted(set(labels)) if labels else None for labels in event["labels"]]]


def context_of(event):
    context = dict(zip(event["context"]["names"], event["context"]["values"]))
    return context.get("task"), context.get("ambiguous") == 1


class Fields(CtfCase):
    def test_all_types_names_and_texts_come_back(self):
        written = self.make("fields")
        self.assertGreater(len(written), 64 * 6 + 81)
        first, streams, events, discards = self.read()
        self.assert_events(written, events)
        self.assertEqual((streams, dict(discards)), ([0], {}))
        self.assertEqual({event["cpu"] for event in events[0]}, {3})
        self.assertEqual(first["clock"], {"name": "monotonic", "description": "Monotonic, of the machine that recorded", "frequency": 10**9, "precision": 0,
                                          "offset": 1_700_000_000 * 10**9 + 5, "absolute": True})
        self.assertEqual(first["environment"]["track_0"], 'core 3 "writer"')
        self.assertEqual(first["environment"]["standing_0"], "core 3 \"writer\": waiting since 12 ns for cb3 of (1,2), by task 5 a b; at CRBW, dataflow.c:88")
        self.assertNotIn("values_cut", first["environment"])

    def test_names_stay_readable(self):
        written = self.make("fields")
        events = self.read()[2][0]
        names = next(event["names"] for event in events if event["name"] == "all names")
        self.assertEqual(names[:8], ["struct", "int", "enum", "event", "_struct", "__x", "field_6", "1st"])
        self.assertEqual(len(set(names)), len(names))
        self.assertIn("n" * 255, names)
        metadata = (self.folder / "trace/metadata").read_text()
        self.assertIn("/* größe */", metadata)
        self.assertIn("/* \\x1b[31mred */", metadata)
        self.assertFalse([c for c in metadata if ord(c) < 32 and c not in "\n\t"])
        tasks = [event["context"]["labels"][0] for event in events if event["name"] == "of tasks"]
        self.assertEqual(tasks[0], ["struct"])
        self.assertEqual(tasks[16], ["\\x1b[31mred"])
        self.assertEqual(tasks[-2:], [[], []])
        self.assertEqual(len(tasks), sum(event["name"] == "of tasks" for event in written))


class Tracks(CtfCase):
    def check_tracks(self, tracks, turns):
        written = self.make("tracks", tracks, turns)
        first, streams, events, discards = self.read()
        self.assertEqual(sorted(streams), list(range(tracks)))
        self.assert_events(written, events)
        losses = collections.defaultdict(list)
        for loss in written:
            if "discarded" in loss:
                losses[loss["track"]].append(loss)
        self.assertEqual(len(losses), (tracks + 2) // 3 * 2 - (1 if tracks % 3 == 1 else 0))
        for track in range(tracks):
            self.assert_same(f"loss of track {track}", [(loss["from"], loss["to"], loss["discarded"]) for loss in losses[track]],
                             [(d["from"], d["to"], d["discarded"]) for d in discards[track]])
            told = [dict(zip(e["names"], e["values"]), label=e["labels"][2]) for e in events[track] if e["name"] == "hangscope:lost"]
            self.assert_same(f"event of a loss of track {track}", [(loss["from"], loss["to"], loss["amount"], [loss["reason"]]) for loss in losses[track]],
                             [(e["from"], e["to"], e["amount"], e["label"]) for e in told])
            self.assertEqual([e["values"] for e in events[track] if e["name"] == "hangscope:stale"], [[60, 80, 640, 20]])
            gap, = [e for e in events[track] if e["name"] == "hangscope:gap"]
            self.assertEqual((gap["time"], gap["values"], gap["labels"][2], gap["context"]["values"]), (500 + track, [500 + track, 600, 1, 3, 2], ["torn"], [7]))
            times = [event["time"] for event in events[track]]
            self.assertEqual(times, sorted(times), f"times of track {track}")
        return first

    def test_one_track(self):
        self.check_tracks(1, 1500)

    def test_three_tracks_of_several_packets_and_losses_in_several_places(self):
        first = self.check_tracks(3, 4500)
        self.assertEqual(first["clock"]["absolute"], False)
        self.assertEqual(first["clock"]["precision"], 12)
        environment = first["environment"]
        self.assertEqual((environment["verdict"], environment["command"]), ("deadlock: core 1 and core 2 wait for each other", 'sh -c echo "x"'))
        self.assertEqual((environment["trigger"], environment["notes_of_other_rings"]), (99000, 1))
        self.assertEqual((environment["events"], environment["losses"], environment["losses_of_unknown_amount"], environment["bytes_lost"]), (9000, 8, 3, 8192))
        self.assertNotIn("times_moved", environment)

    def test_sixty_four_tracks(self):
        self.check_tracks(64, 45)

    def write_many(self, tracks, turns):
        """The most memory that it took, in KiB, with few files open."""
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

        shutil.rmtree(self.folder / "trace", ignore_errors=True)
        done = subprocess.run([ZOO, "many", self.folder, str(tracks), str(turns)], capture_output=True, text=True, timeout=60, preexec_fn=limit)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def test_a_thousand_tracks_take_little_memory(self):
        tracks, turns, event_bytes = 1024, 2500, 16
        little, much = self.write_many(1, turns), self.write_many(tracks, turns)
        self.assertLess(much, little + 32 * 1024)
        # Otherwise the buffers were never full.
        self.assertGreater((self.folder / "trace/stream_1023").stat().st_size, turns * event_bytes)

    def test_a_thousand_tracks_are_read(self):
        tracks, turns = 1024, 3
        self.write_many(tracks, turns)
        told = subprocess.run(["babeltrace2", self.folder / "trace", "--component=sink.utils.counter", "--params=step=+0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(told.returncode, 0, told.stderr)
        counts = {words[1]: int(words[0]) for words in (line.split(maxsplit=1) for line in told.stdout.splitlines()) if len(words) == 2}
        self.assertEqual((counts["Event messages"], counts["Stream beginning messages"]), (tracks * turns, tracks))


class Clocks(CtfCase):
    def test_counts_of_an_unknown_clock_are_no_times_of_day(self):
        written = self.make("counts")
        first, streams, events, _ = self.read()
        self.assertEqual(sorted(streams), [0, 1], "the second is empty, and there")
        self.assertEqual((first["clock"]["name"], first["clock"]["absolute"], first["clock"]["offset"]), ("counts", False, 0))
        self.assertIn("rate is not known", first["clock"]["description"])
        # What babeltrace2 could not read is put right, and counted.
        self.assertEqual([event["time"] for event in events[0]], [10, 2**63 - 2])
        self.assertEqual(first["environment"]["times_moved"], 1)
        self.assertEqual(len(written), 2)


def value_of(field):
    """A field as hangscope show --json has it, as the number or text that it is."""
    if isinstance(field, str) and field.startswith("0x"):
        return int(field, 16)
    return int(field) if isinstance(field, bool) else field


def shown_event(line):
    # Too many parameters for the catalog's fields are not shown; too few leave fields open.
    values = line["parameters"] if "fields" not in line else [value_of(field) for field in line["fields"].values() if field is not None]
    return [line["name"], values, line["task"], line["ambiguous"]]


class Exported(CtfCase):
    """Scopes of both byte orders and word sizes, with all that can go wrong in them."""

    def check_image(self, image):
        shutil.rmtree(self.folder / "trace", ignore_errors=True)
        shown = self.hangscope("show", "--json", image)
        self.assertEqual(shown.status, 0, shown.err)
        lines = [line for line in map(json.loads, shown.out.splitlines()) if line.get("age", 0) == 0]
        done = self.hangscope("export", "--to", "ctf", "-o", self.folder / "trace", image)
        self.assertEqual(done.status, 0, done.err)
        _, _, events, discards = self.read()
        wanted = collections.defaultdict(list)
        for line in lines:
            if line["type"] == "event":
                wanted[line["core"]].append(line)
        found = {of[0]["cpu"]: [event for event in of if not event["name"].startswith("hangscope:")] for of in events.values()}
        for core, of_core in wanted.items():
            of_core.sort(key=lambda line: line["sequence"])  # handlers that interrupt one another are shown by time
            self.assert_same(f"{image.name}, event of core {core}", [shown_event(line) for line in of_core],
                             [[event["name"], event["values"], *context_of(event)] for event in found[core]])
            self.assert_same(f"{image.name}, time of core {core}", in_order([line["ns"] for line in of_core]),
                             [event["time"] if of_core[0]["ns"] is not None else None for event in found[core]])
        self.assertEqual(sum(map(len, found.values())), sum(map(len, wanted.values())), image.name)
        missing = sum(line["end"] - line["begin"] for line in lines if line["type"] == "missing")
        self.assertEqual(sum(d["discarded"] for of in discards.values() for d in of), missing, image.name)
        return sum(map(len, wanted.values())), missing

    def check_images(self, pattern):
        seen = [self.check_image(image) for image in sorted((DATA / "scope").glob(pattern))]
        self.assertGreater(len(seen), 1)
        self.assertTrue(all(events for events, _ in seen), seen)
        return sum(missing for _, missing in seen)

    def test_events_are_those_that_are_shown(self):
        self.check_images("quiet-*.bin")

    def test_losses_are_those_that_are_shown(self):
        self.assertGreater(self.check_images("lossy-*.bin"), 0)
        self.assertGreater(self.check_images("wrapped-*.bin"), 0)

    def test_of_damaged_scopes_too(self):
        for image in sorted((DATA / "scope").glob("*-little32.bin")):
            with self.subTest(image.name):
                self.check_image(image)

    def test_what_is_there_already_stays(self):
        (self.folder / "trace").mkdir()
        (self.folder / "trace/mine").write_text("mine")
        done = self.hangscope("export", "--to", "ctf", "-o", self.folder / "trace", DATA / "scope/quiet-little32.bin")
        self.assertEqual(done.status, 2)
        self.assertEqual((self.folder / "trace/mine").read_text(), "mine")


def in_order(times):
    """Times as a trace has them, which never go back."""
    for i in range(1, len(times)):
        if times[i] is not None and times[i - 1] is not None:
            times[i] = max(times[i], times[i - 1])
    return times


if __name__ == "__main__":
    main()
