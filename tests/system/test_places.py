"""Where a recording lies that was given no place with --prefix."""
import os
import pathlib
import stat
import subprocess
import time

from support import HANGSCOPE, Case, main


class Places(Case):
    def setUp(self):
        super().setUp()
        self.work = self.folder / "work"
        self.work.mkdir()
        self.places = self.folder / "state/hangscope"

    def record(self, *words, command="run", **popen):
        return self.hangscope(command, "--heartbeat", 0, *words, cwd=self.work, **popen)

    def kept(self):
        return sorted(self.places.iterdir()) if self.places.exists() else []

    def fail_once(self):
        done = self.record("--", "sh", "-c", "echo $$; exit 3")
        self.assertEqual(done.status, 3, done.err)
        return done.out

    def test_a_run_that_ends_well_leaves_nothing(self):
        done = self.record("--", "echo", "one")
        self.assertEqual((done.status, done.out), (0, b"one\n"), done.err)
        self.assertEqual(self.kept(), [])
        self.assertEqual(self.record(command="tee", stdin=b"one\n").status, 0)
        self.assertEqual(self.kept(), [])
        self.assertEqual(self.record("--", "/not/there").status, 127)
        self.assertEqual(self.kept(), [])
        self.assertEqual(list(self.work.iterdir()), [])

    def test_the_rings_stay_where_that_is_asked_for(self):
        for command, words, name in (("run", ["--", "echo", "one"], "echo"), ("tee", [], "stdin")):
            with self.subTest(command):
                done = self.record("--keep-rings", *words, command=command, stdin=b"one\n")
                self.assertEqual(done.status, 0, done.err)
                folder, = [path for path in self.kept() if path.name.startswith(name + "-")]
                self.assertIn(f"recording: {folder}/".encode(), done.err)
                self.assertEqual(self.cat(folder / name), b"one\n")

    def test_two_runs_of_one_program_in_one_folder_at_once(self):
        words = [HANGSCOPE, "run", "--keep-rings", "--heartbeat", "0", "--", "cat"]
        runs = [subprocess.Popen(words, cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for _ in range(4)]
        for run in runs:  # all of them are there before the first ends
            run.stdin.write(b"up\n")
            run.stdin.flush()
            self.assertEqual(run.stdout.readline(), b"up\n")
        for i, run in enumerate(runs):
            out, err = run.communicate(f"{i}\n".encode(), timeout=30)
            self.assertEqual((run.returncode, out), (0, f"{i}\n".encode()), err)
        self.assertEqual(sorted(self.cat(path / "cat") for path in self.kept()), [f"up\n{i}\n".encode() for i in range(4)])
        self.assertEqual(list(self.work.iterdir()), [])

    def test_a_failure_is_kept_and_found_without_its_name(self):
        done = self.record("--", "sh", "-c", "echo one; exit 3")
        self.assertEqual(done.status, 3)
        folder, = self.kept()
        self.assertIn(f"recording: {folder}/".encode(), done.err)
        self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(self.places.stat().st_mode), 0o700)
        cat = self.hangscope("cat")
        self.assertEqual((cat.status, cat.out), (0, b"one\n"), cat.err)
        snapshot = folder / "sh.snapshot-0001"
        self.assertIn(f"snapshot: {snapshot}/".encode(), done.err)
        why = self.hangscope("why")
        self.assertIn(str(snapshot).encode(), why.err)
        self.assertIn(b"ended with status 3", why.out)
        report = self.hangscope("report")
        self.assertEqual(report.out.decode().strip(), f"{snapshot}/report.html")

    def test_a_hang_is_kept(self):
        done = self.record("--stall", "0.3", "--on-hang", "kill", "--", "python3", "-c",
                           "import threading; print(1, flush=True); lock = threading.Lock(); lock.acquire(); lock.acquire()")
        self.assertEqual(done.status, 124, done.err)
        folder, = self.kept()
        self.assertTrue((folder / "python3.snapshot-0001/manifest.json").exists())

    def test_the_newest_five_stay_and_what_is_not_hangscopes_does(self):
        mine = self.places / "mine-1"
        self.fail_once()
        notes = self.kept()[0] / "notes.txt"
        notes.write_text("mine")
        mine.mkdir()
        (mine / "file").write_text("mine")
        os.utime(mine, (1, 1))
        os.utime(notes.parent, (2, 2))
        said = []
        for _ in range(7):
            said.append(self.fail_once())
            time.sleep(0.01)
        self.assertEqual((mine / "file").read_text(), "mine")
        self.assertEqual(notes.read_text(), "mine")
        left = [path for path in self.kept() if path not in (mine, notes.parent)]
        self.assertEqual(sorted(self.cat(path / "sh") for path in left), sorted(said[-5:]))
        self.assertEqual(self.hangscope("cat").out, said[-1])

    def test_what_is_recorded_into_stays_however_old_it_is(self):
        run = subprocess.Popen([HANGSCOPE, "run", "--heartbeat", "0", "--", "sh", "-c", "echo up; read x; exit 1"], cwd=self.work,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b"up\n")
        folder, = self.kept()
        os.utime(folder, (1, 1))
        for _ in range(6):
            self.fail_once()
        self.assertTrue((folder / "sh.stdout.index").exists())
        run.communicate(b"\n", timeout=30)
        self.assertEqual(self.cat(folder / "sh"), b"up\n")

    def test_what_a_guard_records_into_stays_too(self):
        run = subprocess.Popen([HANGSCOPE, "run", "--heartbeat", "0", "--", "sh", "-c", "echo up; read x; echo on; read x; echo end"],
                               cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b"up\n")
        folder, = self.kept()
        run.kill()
        run.wait()
        run.stdin.write(b"\n")
        run.stdin.flush()
        self.until(lambda: self.cat(folder / "sh") == b"up\non\n", what="a guard that records")
        os.utime(folder, (1, 1))
        for _ in range(6):
            self.fail_once()
        self.assertTrue((folder / "sh.stdout.index").exists())
        run.communicate(b"\n", timeout=30)
        self.until(lambda: self.cat(folder / "sh") == b"up\non\nend\n", what="the end")

    def test_without_a_home(self):
        environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_STATE_HOME")}
        for home in ({}, {"HOME": "/proc"}, {"XDG_STATE_HOME": "/proc/1"}):
            done = self.record("--", "sh", "-c", f"ls -d /tmp/hangscope-{os.geteuid()}/recordings/sh-$PPID*", env={**environment, **home})
            self.assertEqual(done.status, 0, done.err)
            self.assertFalse(pathlib.Path(done.out.decode().strip()).exists())

    def test_in_a_home_of_another_user_nothing_is_made(self):
        if os.geteuid() != 0:
            self.skipTest("only root may give a folder away")
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        environment = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
        done = self.record("--", "true", env={**environment, "HOME": str(home)})
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(list(home.iterdir()), [])

    def test_without_a_recording_it_is_said_how_to_keep_one(self):
        for command in ("cat", "why", "report"):
            done = self.hangscope(command)
            self.assertEqual(done.status, 2)
            self.assertIn(b"--keep-rings", done.err)


if __name__ == "__main__":
    main()
