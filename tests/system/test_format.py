"""docs/format.md suffices for a second reader: the one at its end reads what hangscope wrote."""
import pathlib
import shutil
import signal
import subprocess
import sys

from support import ROOT, Case, main


class SecondReader(Case):
    def setUp(self):
        super().setUp()
        if shutil.which("zstd") is None:
            self.skipTest("there is no zstd here")
        text = (ROOT / "docs/format.md").read_text()
        self.reader = self.folder / "ring.py"
        self.reader.write_text(text.split("```python\n", 1)[1].split("```", 1)[0])

    def read(self, prefix):
        done = subprocess.run([sys.executable, str(self.reader), str(prefix)], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def data(self, lines):
        return b"".join(b"line %07d of a stream that is recorded\n" % i for i in range(lines))

    def check(self, encoding, size, lines):
        data = self.data(lines)
        process = self.recorder("tee", "--compress", encoding, "--size", size, "--keep", 1, stdin=subprocess.PIPE)
        process.stdin.write(data)
        process.stdin.flush()
        self.until(lambda: self.cat(self.prefix).endswith(data[-40:]))
        for _ in range(2):  # live, then finished
            window = self.read(self.prefix)
            self.assertTrue(data.endswith(window))
            self.assertTrue(window.endswith(self.cat(self.prefix)))
            self.assertLess(len(window) - len(self.cat(self.prefix)), 100)
            if process.poll() is None:
                process.send_signal(signal.SIGUSR1)
                self.until(self.snapshots)
                process.communicate(timeout=20)
        self.assertEqual(self.read(self.snapshots()[0] / "stdin"), window)
        return window

    def test_plain(self):
        self.assertGreater(len(self.check("none", "64K", 4000)), 60_000)

    def test_compressed(self):
        self.assertGreater(len(self.check("zstd", "64K", 40_000)), 100_000)

    def test_compressed_and_short(self):
        self.assertEqual(self.check("zstd", "16M", 40_000), self.data(40_000))


if __name__ == "__main__":
    main()
