#!/usr/bin/env python3
"""What people give for a target: numbers and names of processes, and what is no target at all, which says what to do."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

from support import BUILD, HANGSCOPE, Case, main

ABBA = pathlib.Path(BUILD) / "examples/hung/abba_locks"
READERS = {"why": [], "report": [], "export": ["--to", "text"], "show": []}


class Words(Case):
    def refused(self, *words, status=3, **popen):
        done = self.hangscope(*words, **popen)
        self.assertEqual((done.status, done.out), (status, b""), words)
        text = done.err.decode()
        self.assertTrue(text.startswith("hangscope: error: ") and text.count("\n") == 1, text)
        return text.removeprefix("hangscope: error: ").rstrip("\n")

    def started(self, name, *words):
        program = self.folder / name
        shutil.copy(shutil.which("sleep"), program)
        process = subprocess.Popen([program, *(words or ["60"])])
        self.addCleanup(self.end, process)
        self.until(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith(name), what="the program")
        return process


class Folders(Words):
    def test_that_are_no_snapshots_say_what_is_in_them(self):
        empty = self.folder / "empty"
        empty.mkdir()
        recordings = self.folder / "recordings"
        self.hangscope("run", "-q", "--prefix", recordings / "job", "--", "seq", "5")
        both = self.folder / "both"
        self.hangscope("run", "-q", "--prefix", both / "job", "--", "sh", "-c", "echo one; exit 1")
        said = {
            empty: ", and nothing else that hangscope wrote",
            recordings: f"; there are recordings of output in it: hangscope cat {recordings}/job prints one",
            both: f"; there are snapshots in it, for example '{both}/job.snapshot-0001'",
        }
        for folder, clause in said.items():
            for command, words in {**READERS, "cat": []}.items():
                if command == "cat" and folder != empty:
                    continue
                self.assertEqual(f"the folder '{folder}' is no snapshot: it has no manifest.json{clause}", self.refused(command, *words, folder))
        self.assertEqual([], list(pathlib.Path(self.folder).glob("*.html")), "a page was written of nothing")

    def test_what_is_left_of_a_snapshot_is_read(self):
        self.hangscope("run", "-q", "--prefix", self.folder / "job", "--", "sh", "-c", "echo one; exit 1")
        snapshot = self.folder / "job.snapshot-0001"
        (snapshot / "manifest.json").unlink()
        done = self.hangscope("report", "--data", snapshot)
        self.assertEqual(0, done.status, done.err)
        self.assertIn("one", json.dumps(json.loads(done.out)))


class Files(Words):
    def test_of_output_are_for_cat(self):
        prefix = self.folder / "job"
        self.hangscope("run", "-q", "--prefix", prefix, "--", "seq", "5")
        for command in ("why", "show"):
            self.assertIn(f"; '{prefix}' is a recording of what a program printed: hangscope cat {prefix} prints it",
                          self.refused(command, prefix))
        for command in ("report", "export"):
            self.assertTrue(self.refused(command, *READERS[command], prefix).startswith(
                f"'{prefix}' has no trace: what a program printed is not exported, hangscope cat prints it"))

    def test_of_two_streams_are_stdout_for_cat(self):
        prefix = self.folder / "both"
        self.hangscope("run", "-q", "--prefix", prefix, "--", "sh", "-c", "echo one; echo two >&2")
        done = self.hangscope("cat", prefix)
        self.assertEqual((0, b"one\n", b"hangscope: this is stdout; --stream stderr prints what came there\n"),
                         (done.status, done.out, done.err))
        self.assertEqual(b"two\n", self.hangscope("cat", "--stream", "stderr", prefix).out)

    def test_that_are_programs_say_how_to_look_at_one(self):
        for command, words in READERS.items():
            said = self.refused(command, *words, "/bin/true")
            self.assertIn("; to see why a program hangs: hangscope run /bin/true, or, where it runs already, hangscope why PID", said)

    def test_that_are_logs_say_how_to_watch_one(self):
        log = self.folder / "server.log"
        log.write_text("ready\n" * 9)
        for command, words in READERS.items():
            self.assertEqual(f"'{log}' is a text file without a dump of a scope in it; a log is watched as it grows: "
                             f"tail -f {log} | hangscope tee", self.refused(command, *words, log, status=2))

    def test_that_are_traces_say_who_reads_one(self):
        log = self.folder / "spike.log"
        log.write_text("booting\n" + "".join(
            f"core   0: 0x{0x80000100 + 4 * (n % 2):016x} (0x00000297) auipc   t0, 0x0\n" for n in range(99)))
        for word in (log, f"file:{log}"):
            said = self.refused("why", word, status=2)
            self.assertEqual(f"'{log}' is a Spike trace, which is no recording: hangscope tee --elf FIRMWARE < {log} says where its "
                             "cores stood at its end", said)
        done = self.hangscope("tee", "--prefix", self.folder / "t/log", stdin=log.read_bytes())
        self.assertRegex(done.err.decode(), r"\n  hart 0  \w+ .*0x8000010")

    def test_that_are_not_there(self):
        absent = self.folder / "absent"
        self.assertEqual(f"cannot open '{absent}': No such file or directory", self.refused("why", absent))
        self.assertEqual("cannot open 'hs-no-such': No such file or directory; nor is there a process of that name",
                         self.refused("why", "hs-no-such"))


class Processes(Words):
    def test_have_names_for_why_too(self):
        process = self.started("hs-by-name")
        for word in ("hs-by-name", str(process.pid), f"pid:{process.pid}"):
            self.assertIn(f"process {process.pid} (hs-by-name)".encode(), self.hangscope("why", word).out)

    def test_that_do_not_record_are_for_why_and_report(self):
        process = self.started("hs-plain")
        for command in ("show", "export"):
            for word in ("hs-plain", str(process.pid), f"pid:{process.pid}"):
                said = self.refused(command, *READERS[command], word)
                self.assertIn(f"process {process.pid} has no file mapped", said)
                self.assertIn(f"; hangscope why {process.pid} says what its threads wait for without that", said)

    def test_come_before_files_where_no_command_is_named(self):
        process = self.started("hs-both")  # the file lies in the folder, too
        done = self.hangscope("hs-both", cwd=self.folder)
        self.assertIn(f"process {process.pid} (hs-both)".encode(), done.out)
        self.assertEqual(f"hangscope: 'hs-both' is taken as pid:{process.pid}; hangscope why hs-both reads the file of that name\n",
                         done.err.decode())

    def test_come_behind_files_where_a_command_is_named_and_that_is_said(self):
        process = self.started("hs-file-too")
        for command, words in READERS.items():
            done = self.hangscope(command, *words, "hs-file-too", cwd=self.folder)
            note, *rest = done.err.decode().splitlines()
            self.assertEqual(f"hangscope: 'hs-file-too' is taken as the file of that name; pid:{process.pid} is the process", note)
            self.assertRegex(rest[0], "^hangscope: error: .*'hs-file-too' has no ")
        os.mkdir(self.folder / "where")
        os.mkdir(self.folder / "where/hs-file-too")
        note = self.hangscope("why", "hs-file-too", cwd=self.folder / "where").err.decode().splitlines()[0]
        self.assertEqual(f"hangscope: 'hs-file-too' is taken as the folder of that name; pid:{process.pid} is the process", note)
        (self.folder / str(process.pid)).touch()
        self.assertIn(f"'{process.pid}' is taken as the file of that name; pid:{process.pid} is the process",
                      self.hangscope("why", str(process.pid), cwd=self.folder).err.decode())
        self.assertNotIn("is taken", self.hangscope("why", "./hs-file-too", cwd=self.folder).err.decode())

    def test_of_one_name_are_listed(self):
        program = self.folder / "hs-same"
        shutil.copy(shutil.which("sleep"), program)
        two = [subprocess.Popen([program, "60"]) for _ in range(2)]
        for process in two:
            self.addCleanup(self.end, process)
        self.until(lambda: all(os.readlink(f"/proc/{p.pid}/exe").endswith("hs-same") for p in two), what="the programs")
        done = self.hangscope("why", "hs-same")
        self.assertEqual(2, done.status)
        for process in two:
            self.assertIn(f"\n  {process.pid} ", done.err.decode())

    def test_have_a_page(self):
        process = subprocess.Popen([ABBA], stdout=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        self.until(lambda: self.hangscope("why", str(process.pid)).status == 1, what="the deadlock")
        done = self.hangscope("report", "--data", str(process.pid))
        data = json.loads(done.out)
        self.assertEqual("deadlock, 2 of 3 threads wait for each other", data["headline"])
        self.assertTrue(data["hang"])
        self.assertEqual(3, len(data["threads"]))
        self.assertEqual(2, len(data["graph"]["cycle"]))
        done = self.hangscope("report", str(process.pid), cwd=self.folder)
        self.assertEqual((0, f"pid-{process.pid}.report.html\n"), (done.status, done.out.decode()))
        self.assertIn("lock_b", (self.folder / f"pid-{process.pid}.report.html").read_text())
        calm = self.started("hs-calm")
        data = json.loads(self.hangscope("report", "--data", str(calm.pid)).out)
        self.assertEqual(("no hang and no fault is found", False), (data["headline"], data.get("hang", False)))


class Ends(Words):
    def ended(self, *words, send=None):
        recorder = subprocess.Popen([HANGSCOPE, "run", "--prefix", self.prefix, *words],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, recorder)
        self.assertEqual(b"up\n", recorder.stdout.readline())
        if send is not None:
            recorder.send_signal(send)
        _, err = recorder.communicate(timeout=60)
        return recorder.returncode, err.decode()

    def test_by_a_signal_that_was_passed_on_is_no_death(self):
        for number, name in ((signal.SIGINT, "Interrupt"), (signal.SIGTERM, "Terminated")):
            status, said = self.ended("--", "sh", "-c", "echo up; exec sleep 60", send=number)
            self.assertEqual(128 + number, status)
            self.assertRegex(said, rf"finished after \S+ s: ended by signal {int(number)} \({name}\), which was passed on to it\n")
            self.assertNotIn("DEAD", said)

    def test_by_a_signal_of_its_own_is_a_fault_for_why_too(self):
        status, said = self.ended("--", "sh", "-c", "echo up; kill -SEGV $$")
        self.assertEqual(128 + signal.SIGSEGV, status)
        self.assertIn("killed by signal 11 (Segmentation fault)", said)
        done = self.hangscope("why", self.snapshots()[0])
        self.assertIn(b"killed by signal 11 (Segmentation fault)", done.out)
        self.assertEqual(1, done.status)


if __name__ == "__main__":
    main()
