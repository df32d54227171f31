"""Recordings that come through a pipe: read as the file that holds the same bytes."""
import gzip
import os
import signal
import subprocess
import time

from support import DATA, HANGSCOPE, Case, main

ETM = DATA / "perf/etm.data"


class Piped(Case):
    def test_why_reads_standard_input_as_the_file(self):
        of_file = self.hangscope("why", ETM)
        for name in ("-", "/dev/stdin"):
            piped = self.hangscope("why", name, stdin=ETM.read_bytes())
            self.assertEqual(piped.status, of_file.status, piped.err)
            self.assertEqual(piped.out.decode().replace(name + ": 70", f"{ETM}: 70"), of_file.out.decode())
            self.assertEqual(piped.err, b"")

    def test_a_file_as_standard_input_is_not_copied(self):
        with open(ETM, "rb") as file:
            done = subprocess.run([HANGSCOPE, "why", "-"], stdin=file, capture_output=True,
                                  env={**os.environ, "TMPDIR": "/none/such"}, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"-: 70 records", done.stdout)

    def test_a_process_substitution(self):
        done = subprocess.run(["bash", "-c", f'"$0" why <(cat "$1")', HANGSCOPE, str(ETM)], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b": 70 records", done.stdout)

    def test_export_and_report(self):
        text = self.hangscope("export", "--to", "jsonl", "-", stdin=ETM.read_bytes())
        self.assertEqual(text.status, 0, text.err)
        self.assertEqual(len(text.out.splitlines()), len(self.hangscope("export", "--to", "jsonl", ETM).out.splitlines()))
        page = self.hangscope("report", "-", stdin=ETM.read_bytes(), cwd=self.folder)
        self.assertEqual((page.status, page.out), (0, b"stdin.report.html\n"), page.err)
        self.assertTrue((self.folder / "stdin.report.html").stat().st_size > 10000)

    def test_no_room(self):
        done = subprocess.run([HANGSCOPE, "why", "-"], input=ETM.read_bytes(), capture_output=True, timeout=60,
                              env={**os.environ, "TMPDIR": "/none/such"})
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn(b"/none/such", done.stderr)

    def test_what_is_compressed_is_refused_with_the_command_that_helps(self):
        path = self.folder / "perf.data.gz"
        path.write_bytes(gzip.compress(ETM.read_bytes()))
        for words in (["why"], ["report"], ["export", "--to", "text"]):
            done = self.hangscope(*words, path)
            self.assertEqual(done.status, 2, done.err)
            self.assertEqual(len(done.err.splitlines()), 1)
            self.assertIn(f"gzip -dc {path} | hangscope why -", done.err.decode())
        self.assertIn(b"put 'gzip -d' before it", self.hangscope("why", "-", stdin=path.read_bytes()).err)

    def test_a_pipe_without_a_recording(self):
        for words in (["why"], ["report", "-o", "-"], ["export", "--to", "text"]):
            for text in (b"", b"text\n", bytes(3000)):
                with self.subTest(words=words, text=text[:5]):
                    done = self.hangscope(*words, "-", stdin=text)
                    self.assertEqual(done.status, 3, done.out)
                    self.assertEqual(done.err, b"hangscope: error: what came through '-' is no perf.data, or has no records; give anything else as a file\n")

    def test_ctrl_c_lets_the_writer_end(self):
        """The writer says all it has only when it is interrupted, as perf record does."""
        reader = subprocess.Popen(
            ["bash", "-c", """sh -c 'trap "cat $1; exit" INT; echo up >&2; while :; do sleep 0.05; done' x "$1" | exec "$0" why -""",
             HANGSCOPE, str(ETM)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(self.end, reader)
        self.assertEqual(reader.stderr.readline(), b"up\n")
        time.sleep(0.3)
        os.killpg(reader.pid, signal.SIGINT)
        out, err = reader.communicate(timeout=60)
        self.assertIn(b"-: 70 records", out, err)

    def test_the_second_ctrl_c_takes_what_came_so_far(self):
        reader = subprocess.Popen([HANGSCOPE, "why", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, reader)
        reader.stdin.write(ETM.read_bytes())
        reader.stdin.flush()
        time.sleep(0.5)
        for _ in range(2):
            reader.send_signal(signal.SIGINT)
            time.sleep(0.3)
        self.assertEqual(reader.wait(30), 0, reader.stderr.read())
        self.assertIn(b"-: 70 records", reader.stdout.read())


if __name__ == "__main__":
    main()
