"""What lies in the folder already: nothing that hangscope did not make is removed, written over or written through."""
import os
import pathlib
import shutil
import stat
import subprocess

from support import DATA, HANGSCOPE, Case, main


class FilesCase(Case):
    def setUp(self):
        super().setUp()
        self.work = self.folder / "work"
        self.work.mkdir()

    def make(self, *names, text="mine"):
        for name in names:
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def contents(self):
        return {str(path.relative_to(self.work)): path.read_bytes() for path in self.work.rglob("*") if path.is_file()}

    def tee(self, prefix, *options, said=b"1\n2\n3\n"):
        return self.hangscope("tee", "--prefix", prefix, "--heartbeat", 0, "--size", "64K", "--keep", 1, *options,
                              stdin=said, cwd=self.work)


class WhatIsThereStays(FilesCase):
    def test_rotated_logs_with_the_name_of_the_prefix(self):
        self.make("app.log", "app.log.1", "app.log.2", "app.log.40", "app.log.snapshot")
        before = self.contents()
        done = self.tee("app.log")
        self.assertEqual(done.status, 3)
        self.assertIn(b"app.log.1'", done.err)
        self.assertIn(b"--prefix", done.err)
        self.assertEqual(self.contents(), before)

    def test_a_file_called_index(self):
        self.make("app.index", text="a list of books")
        done = self.tee("app")
        self.assertEqual(done.status, 3)
        self.assertIn(b"'app.index' is not the index of a ring", done.err)
        self.assertEqual(self.contents(), {"app.index": b"a list of books"})

    def test_a_run_refuses_before_its_program_starts(self):
        self.make("fw.stdout.3")
        done = self.hangscope("run", "--prefix", "fw", "--", "touch", "started", cwd=self.work)
        self.assertEqual(done.status, 125)
        self.assertIn(b"fw.stdout.3'", done.err)
        self.assertEqual(list(self.contents()), ["fw.stdout.3"])

    def test_what_an_earlier_run_left_goes(self):
        self.assertEqual(self.tee("fw", said=b"long ago\n" * 50000).status, 0)
        self.make("fw.77", "fw.txt", "fw.07")
        self.assertEqual(self.tee("fw", "--compress", "zstd").status, 0)
        self.assertEqual(self.cat(self.work / "fw"), b"1\n2\n3\n")
        names = set(self.contents())
        self.assertLessEqual({"fw.77", "fw.txt", "fw.07"}, names)
        self.assertNotIn("fw.9", names)

    def test_a_folder_with_the_name_of_a_snapshot(self):
        self.make("fw.snapshot-0001/notes.txt", "fw.snapshot-0002.partial/notes.txt")
        said = b"panic\n"
        done = self.tee("fw", "--trigger", "panic", "--max-snapshots", 1, said=said)
        self.assertEqual(done.status, 0, done.err)
        contents = self.contents()
        self.assertEqual(contents["fw.snapshot-0001/notes.txt"], b"mine")
        self.assertEqual(contents["fw.snapshot-0002.partial/notes.txt"], b"mine")
        self.assertIn("fw.snapshot-0002/manifest.json", contents)

    def test_rotated_logs_beside_the_log_of_watch(self):
        self.make("watch.log.1", text="of logrotate")
        done = self.hangscope("watch", "--log", "watch.log", "--for", "100ms", DATA / "scope/watched-little32.bin", cwd=self.work)
        self.assertEqual(done.status, 2)
        self.assertIn(b"'watch.log.1' is no log of hangscope watch", done.err)
        self.assertEqual(self.contents()["watch.log.1"], b"of logrotate")


class Exports(FilesCase):
    def export(self, to, path, *options):
        return self.hangscope("export", "--to", to, "-o", path, *options, DATA / "scope/quiet-little32.bin", cwd=self.work)

    def test_a_folder_with_a_file_called_metadata_is_not_replaced(self):
        self.make("proj/metadata", "proj/src/main.c")
        before = self.contents()
        done = self.export("ctf", "proj", "--force")
        self.assertEqual(done.status, 2)
        self.assertIn(b"'proj'", done.err)
        self.assertEqual(self.contents(), before)

    def test_a_trace_with_something_else_in_it_is_not_replaced(self):
        self.assertEqual(self.export("ctf", "trace").status, 0)
        self.assertEqual(self.export("ctf", "trace", "--force").status, 0)
        self.make("trace/notes.txt")
        before = self.contents()
        self.assertEqual(self.export("ctf", "trace", "--force").status, 2)
        self.assertEqual(self.contents(), before)

    def test_what_is_called_partial_is_the_users(self):
        self.make("proj.partial/main.c", "one.json.partial")
        before = self.contents()
        self.assertEqual(self.export("ctf", "proj").status, 0)
        self.assertEqual(self.export("chrome", "one.json").status, 0)
        after = self.contents()
        self.assertEqual({name: after[name] for name in before}, before)


class Links(FilesCase):
    """In a folder where others may write, who knows the prefix may put links there first."""

    def check(self, name, **options):
        target = self.folder / "precious"
        target.write_text("precious")
        os.symlink(target, self.work / name)
        done = self.tee("fw", "--compress", options.get("compress", "none"), "--trigger", "3")
        self.assertEqual(target.read_bytes(), b"precious")
        self.assertTrue((self.work / name).is_symlink())
        return done

    def test_an_index_that_is_a_link(self):
        done = self.check("fw.index")
        self.assertNotEqual(done.status, 0)
        self.assertIn(b"fw.index' is a link", done.err)

    def test_a_segment_that_is_a_link(self):
        self.assertEqual(self.check("fw.0").status, 3)

    def test_a_tail_that_is_a_link(self):
        self.assertEqual(self.check("fw.tail", compress="zstd").status, 3)

    def test_a_link_to_nothing(self):
        os.symlink(self.folder / "not-there", self.work / "fw.index")
        self.assertNotEqual(self.tee("fw").status, 0)
        self.assertFalse((self.folder / "not-there").exists())

    def test_an_index_with_a_second_name(self):
        self.assertEqual(self.tee("fw").status, 0)
        os.link(self.work / "fw.index", self.folder / "second")
        before = (self.folder / "second").read_bytes()
        done = self.tee("fw")
        self.assertEqual(done.status, 3)
        self.assertIn(b"fw.index'", done.err)
        self.assertEqual((self.folder / "second").read_bytes(), before)

    def test_an_index_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file to another user")
        self.assertEqual(self.tee("fw").status, 0)
        os.chown(self.work / "fw.index", 65534, 65534)
        before = self.contents()
        done = self.tee("fw")
        self.assertEqual(done.status, 3)
        self.assertIn(b"fw.index'", done.err)
        self.assertEqual(self.contents(), before)


class Private(FilesCase):
    """As perf's: what was recorded is for who recorded it. What was asked for by name is as the umask says."""

    def modes(self, folder):
        return {path.name: stat.S_IMODE(path.lstat().st_mode)
                for path in [folder, *folder.rglob("*")] if not path.is_symlink()}

    def test_a_recording_is_for_its_user_alone(self):
        for compress in ("none", "zstd"):
            with self.subTest(compress):
                prefix = self.work / compress / "fw"
                done = subprocess.run(
                    [HANGSCOPE, "run", "--prefix", prefix, "--compress", compress, "--heartbeat", "0", "--", "sh", "-c",
                     "echo one; exit 1"], capture_output=True, umask=0)
                self.assertEqual(done.returncode, 1, done.stderr)
                modes = self.modes(prefix.parent)
                self.assertIn("report.html", modes)
                self.assertEqual(modes.pop(compress), 0o700)
                self.assertEqual(modes.pop("fw.snapshot-0001"), 0o700)
                self.assertEqual(set(modes.values()), {0o600}, modes)

    def test_of_a_scope_too(self):
        shutil.copy(DATA / "scope/quiet-little32.bin", self.work / "ram")
        done = subprocess.run(
            [HANGSCOPE, "run", "--prefix", self.work / "fw", "--scope", f"file:{self.work}/ram", "--heartbeat", "0", "--", "false"],
            capture_output=True, umask=0)
        self.assertEqual(done.returncode, 1, done.stderr)
        modes = self.modes(self.work / "fw.snapshot-0001")
        self.assertEqual(modes["scope.bin"], 0o600, done.stderr)

    def test_what_is_asked_for_by_name_is_as_the_umask_says(self):
        image = DATA / "scope/quiet-little32.bin"
        for words in (["export", "--to", "ctf", "-o", "ctf"], ["export", "--to", "text", "-o", "text"],
                      ["report", "-o", "page.html"]):
            done = subprocess.run([HANGSCOPE, *words, image], capture_output=True, umask=0o022, cwd=self.work)
            self.assertEqual(done.returncode, 0, done.stderr)
        modes = self.modes(self.work)
        self.assertEqual([modes[name] for name in ("ctf", "metadata", "text", "page.html")],
                         [0o755, 0o644, 0o644, 0o644])


if __name__ == "__main__":
    main()
