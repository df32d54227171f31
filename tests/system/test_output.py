"""Standard output that cannot be written, or that nobody reads any more."""
import os
import pathlib
import resource
import signal
import subprocess
import time

from support import BUILD, DATA, HANGSCOPE, Case, main

IMAGE = str(DATA / "scope/watched-little32.bin")


class Output(Case):
    def setUp(self):
        super().setUp()
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        self.assertEqual(self.hangscope("tee", "--prefix", self.prefix, "--heartbeat", "0", stdin=b"line\n" * 100000).status, 0)

    def commands(self):
        """One of each that prints on standard output, with what it prints nothing else for."""
        return (["--help"], ["--version"], ["run", "--help"], ["why", "--help"], ["doctor"], ["cat", self.prefix], ["show", IMAGE],
                ["show", "--json", IMAGE], ["why", "--stall", "0.05", IMAGE], ["report", "-o", "-", IMAGE],
                ["report", "--data", IMAGE], ["export", "--to", "text", IMAGE])

    def test_that_cannot_be_written_is_an_error_of_one_sentence(self):
        for words in (*self.commands(), ["watch", "--json", IMAGE]):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                done = subprocess.run([HANGSCOPE, *words], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertEqual(done.stderr.count(b"error: cannot write 'standard output': No space left"), 1, done.stderr)

    def test_into_a_device_goes_into_it_and_does_not_replace_it(self):
        """A pipe stands for /dev/null, which a failing test would break for the whole machine."""
        for words in (["export", "--to", "text"], ["report"]):
            for force in ([], ["--force"]):
                with self.subTest(words=words, force=force):
                    pipe = self.folder / "pipe"
                    os.mkfifo(pipe)
                    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
                    self.addCleanup(self.end, reader)
                    done = self.hangscope(*words, *force, "-o", pipe, IMAGE, timeout=10)
                    self.assertEqual(done.status, 0, done.err)
                    self.assertTrue(pipe.is_fifo(), "it was replaced")
                    self.assertGreater(len(reader.communicate(timeout=10)[0]), 100)
                    self.assertEqual([path.name for path in self.folder.iterdir() if "partial" in path.name or "~" in path.name], [])
                    pipe.unlink()

    def test_of_the_program_that_cannot_be_passed_on_is_said(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([HANGSCOPE, "run", "--heartbeat", "0", "--prefix", self.folder / "seq", "--", "seq", "5"], stdout=full,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"stdout: 10 B recorded but not passed on, it cannot be written: No space left", done.stderr)

    def test_a_log_that_cannot_be_written_goes_to_standard_error(self):
        done = self.hangscope("run", "--prefix", self.folder / "sh", "--log", "/dev/full", "--", "sh", "-c", "exit 3")
        self.assertEqual(done.status, 3)
        self.assertEqual(done.err.count(b"cannot write '/dev/full': No space left"), 1, done.err)
        self.assertIn(b"ended with status 3", done.err)

    def test_a_limit_of_file_sizes_is_said_before_the_program_starts(self):
        done = self.hangscope("run", "--prefix", self.folder / "sh", "--", "sh", "-c", "echo out",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertEqual((done.status, done.out), (125, b""), done.err)
        self.assertIn(b"File too large", done.err)

    def test_the_program_has_what_it_had_for_a_file_that_is_too_large(self):
        self.assertEqual(self.hangscope("run", "--prefix", self.folder / "sh", "--", "sh", "-c", "kill -XFSZ $$").status, 128 + signal.SIGXFSZ)

    def test_of_live_recorders(self):
        recorder = self.recorder("run", "--", "sleep", "30")
        self.until(lambda: b"sleep" in self.hangscope("ls").out, what="ls to list it")
        with open("/dev/full", "wb") as full:
            for command in (["ls"], ["snap", str(recorder.pid)]):
                done = subprocess.run([HANGSCOPE, *command], stdout=full, stderr=subprocess.PIPE, timeout=60)
                self.assertEqual(done.returncode, 3, done.stderr)

    def test_that_nobody_reads_leaves_the_status_as_it_is(self):
        for words in self.commands():
            with self.subTest(words=words):
                expected = self.hangscope(*words).status
                reading, writing = os.pipe()
                os.close(reading)
                with os.fdopen(writing, "wb") as gone:
                    done = subprocess.run([HANGSCOPE, *words], stdout=gone, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60)
                self.assertEqual(done.returncode, expected, done.stderr)
                self.assertNotIn(b"error", done.stderr)

    def test_a_watch_ends_when_nobody_listens(self):
        abba = subprocess.Popen([pathlib.Path(BUILD) / "tests/abba"], stdout=subprocess.PIPE)
        self.addCleanup(self.end, abba)
        abba.stdout.readline()
        watch = subprocess.Popen([HANGSCOPE, "watch", "--json", f"pid:{abba.pid}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, watch)
        watch.stdout.readline()
        watch.stdout.close()
        watch.send_signal(signal.SIGUSR1)
        end = time.monotonic() + 10
        while watch.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        self.assertIsNotNone(watch.poll(), "it goes on for nobody")
        self.assertNotIn(b"error", watch.stderr.read())


if __name__ == "__main__":
    main()
