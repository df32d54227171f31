"""A host program that watches with the library: examples/host_watcher, in this build and with the installed package."""
import os
import pathlib
import shutil
import subprocess
import unittest.mock

from support import BUILD, CMAKE, ROOT, Case, main

EXAMPLE = ROOT / "examples/host_watcher"
HELPER = ROOT / "examples/probes/file_helper.py"


class HostWatcher(Case):
    program = pathlib.Path(BUILD) / "examples/host_watcher/host_watcher"

    def watch(self, *words):
        environment = {**os.environ, "HANGSCOPE_SCOPE": str(self.folder / "device.scope")}
        done = subprocess.run([self.program, *words], capture_output=True, text=True, timeout=60, check=False, env=environment)
        (self.folder / "device.scope").unlink(missing_ok=True)
        return done

    def check_hang(self, done):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout.count("found: "), 1)
        self.assertIn("deadlock, 3 of 3 cores wait for each other", done.stdout)
        self.assertRegex(done.stdout, r"thread writer +waits .* at COOW for cooked \(provided by thread compute\)")

    def test_device_that_hangs_is_found_through_the_programs_own_probe(self):
        self.check_hang(self.watch("hang"))

    def test_device_that_works_raises_nothing(self):
        done = self.watch()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("found", done.stdout)
        self.assertIn("thread compute", done.stdout)

    def test_target_behind_a_helper(self):
        scope = self.folder / "abba.scope"
        with unittest.mock.patch.dict(os.environ, HANGSCOPE_SCOPE=str(scope)):
            abba = subprocess.Popen([pathlib.Path(BUILD) / "tests/abba"], stdout=subprocess.PIPE)
        self.addCleanup(self.end, abba)
        self.assertEqual(abba.stdout.readline(), b"stuck\n")
        done = self.watch(f"exec:python3 {HELPER} {scope} 0x80000000")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("deadlock, 2 of 3 cores wait for each other", done.stdout)

    def test_target_that_is_none(self):
        done = self.watch("exec:echo no device >&2; exit 1")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("'no device'", done.stderr)
        self.assertEqual(self.watch("pid:x").returncode, 2)

    def few_packages(self):
        """A folder for pkg-config on a machine that has libdw and libelf, and not what the command needs besides."""
        folder = self.folder / "pkgconfig"
        folder.mkdir()
        for package in ("libdw", "libelf", "zlib", "liblzma"):
            where = subprocess.run(["pkg-config", "--variable=pcfiledir", package], capture_output=True, text=True, check=True).stdout.strip()
            shutil.copy(pathlib.Path(where) / f"{package}.pc", folder)
        return str(folder)

    def test_program_of_somebody_else_with_the_installed_package(self):
        prefix, build = self.folder / "prefix", self.folder / "build"
        environment = {**os.environ, "PKG_CONFIG_PATH": "", "PKG_CONFIG_LIBDIR": self.few_packages()}
        steps = ([CMAKE, "--install", BUILD, "--prefix", prefix],
                 [CMAKE, "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"],
                 [CMAKE, "--build", build])
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, timeout=100, check=False, env=environment)
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        # Nothing of the libraries behind it is to be seen.
        header = (prefix / "include/hangscope/host/hangscope.hpp").read_text()
        self.assertEqual([line for line in header.splitlines() if line.startswith("#include \"")], [])
        self.program = build / "host_watcher"
        needed = subprocess.run(["readelf", "--dynamic", "--wide", self.program], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(needed, "NEEDED.*(re2|zstd|capstone|opencsd)")
        self.check_hang(self.watch("hang"))


if __name__ == "__main__":
    main()
