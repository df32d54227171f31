"""hangscope in other people's builds: the project in tests/consumers."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time

from support import BUILD, CMAKE, HANGSCOPE, ROOT, Case, main

GENERATORS = ("Ninja", "Unix Makefiles")
CONSUMERS = ROOT / "tests/consumers"
# What tests/consumers/CMakeLists.txt hands to the simulator.
AWKWARD = ["--status", "0", "two words", "it's", 'a "quote"', "$HOME", "$$", "${HOME}", "`id`", "a;b", ";", "",
           "[", "]", "]=]", "a]=", "back\\slash", "trailing\\", "*", "~", "#", "100%", "a&&b", "a|b", "<b", ">(cat)",
           "!", "-", "--", "ä", "generated", ""]


def install(prefix, **environment):
    """`cmake --install`; with DESTDIR in the environment the prefix is below that."""
    done = subprocess.run([CMAKE, "--install", BUILD, "--prefix", prefix], capture_output=True,
                          env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())


class Consumer(Case):
    """A project that finds an installed hangscope."""

    def setUp(self):
        super().setUp()
        self.installed = self.folder / "prefix"
        install(self.installed)
        self.report_path = self.folder / "report.json"

    def configure(self, generator, *definitions, expect=0):
        """Configures the consumer; returns its build folder, or what CMake said where it must fail."""
        self.build_folder = self.folder / ("build-" + generator.split()[0])
        self.build_folder.mkdir(exist_ok=True)
        done = subprocess.run([CMAKE, "-S", CONSUMERS, "-B", self.build_folder, "-G", generator,
                               f"-DCMAKE_PREFIX_PATH={self.installed}", *definitions], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return self.build_folder if expect == 0 else " ".join(done.stderr.split())

    def build(self, target):
        return subprocess.run([CMAKE, "--build", self.build_folder, "--target", target], capture_output=True, timeout=60,
                              env={**os.environ, "REPORT": str(self.report_path)}, check=False)

    def report(self):
        """What the simulator was given."""
        return json.loads(self.report_path.read_text())

    def command_of(self, target):
        """The command of a target as the generator wrote it."""
        if (self.build_folder / "build.ninja").exists():
            done = subprocess.run(["ninja", "-C", self.build_folder, "-t", "commands", target], capture_output=True,
                                  text=True, check=True)
            return done.stdout
        return (self.build_folder / f"CMakeFiles/{target}.dir/build.make").read_text().replace(target, "TARGET")


class Off(Consumer):
    def test_command_is_the_one_that_cmake_would_run(self):
        for generator in GENERATORS:
            with self.subTest(generator):
                self.configure(generator)
                self.assertEqual(self.command_of("simulation"), self.command_of("plain"))
                self.assertNotIn("hangscope run", self.command_of("simulation"))
                seen = {}
                for target in ("plain", "simulation"):
                    done = self.build(target)
                    self.assertEqual((done.returncode, done.stderr), (0, b"trace\n"))
                    seen[target] = (self.report(), done.stdout.replace(target.encode(), b"TARGET"))
                self.assertEqual(seen["simulation"], seen["plain"])
                self.assertEqual(self.report()["words"], AWKWARD)
                self.assertFalse((self.build_folder / "trace").exists())


class On(Consumer):
    def test_words_arrive_unchanged_and_the_output_is_kept(self):
        for generator in GENERATORS:
            with self.subTest(generator):
                self.configure(generator, "-DHANGSCOPE_RING_TRACE=ON")
                done = self.build("simulation")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual((self.report()["words"], self.report()["folder"]), (AWKWARD, str(self.build_folder)))
                said = f"{AWKWARD}\n".encode()
                self.assertIn(said, done.stdout)
                ring = self.build_folder / "trace/simulation"
                self.assertEqual(self.cat(ring, "--stream", "stdout"), said)
                self.assertEqual(self.cat(ring, "--stream", "stderr"), b"trace\n")
                self.build("keywords")
                self.assertEqual(self.report()["words"],
                                 ["--status", "0", "NAME", "DEPENDS", "COMMENT", "ARGS", "VERBATIM"])

    def test_failure_fails_the_build(self):
        for generator in GENERATORS:
            with self.subTest(generator):
                self.configure(generator, "-DHANGSCOPE_RING_TRACE=ON")
                done = self.build("fails")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(b"ended with status 7", done.stderr)
                if generator == "Unix Makefiles":
                    self.assertIn(b"Error 7", done.stderr)

    def test_hang_ends_the_build_with_a_snapshot(self):
        for generator in GENERATORS:
            with self.subTest(generator):
                self.configure(generator, "-DHANGSCOPE_RING_TRACE=ON")
                done = self.build("hangs")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(b"HANG", done.stderr)
                self.assertIn(b"status 124", done.stderr)
                self.assertTrue((self.build_folder / "trace/hangs.snapshot-0001/report.txt").exists())

    def test_all_options(self):
        for generator in GENERATORS:
            with self.subTest(generator):
                self.configure(generator, "-DHANGSCOPE_RING_TRACE=ON")
                done = self.build("options")
                self.assertEqual(done.returncode, 0, done.stderr)
                work = self.build_folder / "work"
                self.assertEqual((self.report()["words"], self.report()["folder"]), (["--status", "0", "image"], str(work)))
                self.assertEqual((self.build_folder / "image.bin").read_text(), "built\n")
                self.assertIn(b"Simulating", done.stdout)
                self.assertEqual(self.cat(self.build_folder / "my/ring"), b"trace\n")
                self.assertEqual(list(self.build_folder.glob("my/ring.stdout*")), [])
                self.assertIn("<testsuite", (work / "a junit;file.xml").read_text())
                command = self.command_of("options")
                for words in (f"--prefix {self.build_folder}/my/ring", "--size 1M --keep 2", "--capture stderr",
                              f"--elf {self.installed}/bin/hangscope", "--stall 30 --on-hang none"):
                    self.assertIn(words, command)

    def test_size_and_keep_are_cache_options(self):
        self.configure("Ninja", "-DHANGSCOPE_RING_TRACE=ON", "-DHANGSCOPE_RING_TRACE_SIZE=7M",
                       "-DHANGSCOPE_RING_TRACE_KEEP=5")
        self.assertIn("--size 7M --keep 5", self.command_of("simulation"))
        self.assertIn("--size 1M --keep 2", self.command_of("options"))

    def test_ctrl_c_reaches_the_simulation(self):
        for generator in GENERATORS:
            with self.subTest(generator):
                self.configure(generator, "-DHANGSCOPE_RING_TRACE=ON")
                self.report_path.unlink(missing_ok=True)
                self.assertNotEqual(self.build_on_terminal("waits", keys=b"\x03"), 0)
                self.assertEqual((self.report()["interrupted"], self.report()["terminal"]), (True, True))

    def build_on_terminal(self, target, keys):
        """Builds as if typed, and presses the keys once the simulator reported. Returns the status."""
        self.open_terminal()  # skips where there is none
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["REPORT"] = str(self.report_path)
            os.execv(CMAKE, [CMAKE, "--build", str(self.build_folder), "--target", target])
        self.addCleanup(os.close, terminal)
        seen, sent, end = b"", False, time.monotonic() + 40
        while time.monotonic() < end:
            ready, _, _ = select.select([terminal], [], [], 0.1)
            try:
                seen += os.read(terminal, 65536) if ready else b""
            except OSError:
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if not sent and self.report_path.exists():
                os.write(terminal, keys)
                sent = True
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.fail(f"the build did not end; terminal: {seen}")


class Package(Consumer):
    def test_version_that_is_wanted_is_checked(self):
        self.configure("Ninja", "-DHANGSCOPE_WANTED_VERSION=0.1")
        self.assertIn("requested version \"99\"", self.configure("Ninja", "-DHANGSCOPE_WANTED_VERSION=99", expect=1))

    def test_installation_can_be_staged_and_moved(self):
        stage = self.folder / "stage"
        install("/usr", DESTDIR=str(stage))
        # The package lies where a project that compiles for another machine finds it.
        self.assertEqual([path.name for path in (stage / "usr/lib").rglob("*") if path.is_file()], ["libhangscope_host.a"])
        self.installed = self.folder / "moved"
        (stage / "usr").rename(self.installed)
        self.configure("Ninja", "-DHANGSCOPE_RING_TRACE=ON")
        self.assertIn(f"{self.installed}/bin/hangscope run", self.command_of("simulation"))

    def test_installs_what_it_should_and_nothing_else(self):
        names = {str(path.relative_to(self.installed)) for path in self.installed.rglob("*") if path.is_file()}
        for name in ("bin/hangscope", "include/hangscope/version.h", "share/pkgconfig/hangscope.pc",
                     "share/cmake/hangscope/hangscopeConfig.cmake", "share/doc/hangscope/LICENSE",
                     "share/doc/hangscope/README.md", "share/doc/hangscope/docs/cmake.md",
                     "share/man/man1/hangscope.1.gz", "share/man/man1/hangscope-why.1.gz",
                     "share/bash-completion/completions/hangscope", "share/zsh/site-functions/_hangscope",
                     "share/fish/vendor_completions.d/hangscope.fish", "libexec/hangscope/hangscope_count.so"):
            self.assertIn(name, names)
        for name in names:
            self.assertRegex(name, r"^(bin/hangscope$|include/hangscope/|lib/.*libhangscope_host\.a$|libexec/hangscope/|"
                                   r"share/hangscope/gdb/hangscope\.py$|share/(cmake|doc)/hangscope/|share/pkgconfig/|"
                                   r"share/man/man1/hangscope(-\w+)?\.1\.gz$|"
                                   r"share/(bash-completion/completions|zsh/site-functions|fish/vendor_completions\.d)/_?hangscope)")
        for path in self.installed.rglob("share/**/*.[cp]*"):
            self.assertNotRegex(path.read_text(errors="replace"), re.escape(str(ROOT)) + "/(build|cmake|src|tests)/", path)

    def assert_records(self, program):
        done = subprocess.run([program], capture_output=True, text=True, check=True)
        path, result, *event = done.stdout.split()
        self.assertEqual((result, event), ("0", ["64", "99", "61626364"]))
        self.assertTrue(path.startswith(str(self.runtime)), path)
        self.assertEqual(pathlib.Path(path).read_bytes()[:8], b"hangscop")

    def test_an_instrumented_program_finds_its_headers(self):
        self.configure("Ninja", "-DINSTRUMENTED=ON")
        done = self.build("instrumented")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assert_records(self.build_folder / "instrumented")

    def test_pkg_config_serves_an_instrumented_program(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.installed / "share/pkgconfig")}
        subprocess.run(["make", "-s", "-f", CONSUMERS / "Makefile", "instrumented"], cwd=self.folder, env=environment,
                       capture_output=True, check=True)
        self.assert_records(self.folder / "instrumented")

    def test_pkg_config_serves_a_makefile(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.installed / "share/pkgconfig"),
                       "REPORT": str(self.report_path)}

        def make(target):
            return subprocess.run(["make", "-s", "-f", CONSUMERS / "Makefile", target], cwd=self.folder,
                                  env=environment, capture_output=True, check=True).stdout
        said = make("simulation")
        self.assertEqual(self.report()["words"], ["--status", "0", "two words"])
        self.assertEqual(self.cat(self.folder / "trace/simulation"), said)
        header = make("version").decode().strip().strip('"')
        version = subprocess.run(["pkg-config", "--modversion", "hangscope"], env=environment, capture_output=True,
                                 text=True, check=True).stdout.strip()
        self.assertEqual((header, version), (version, self.hangscope("--version").out.decode().split()[1]))


class Subdirectory(Consumer):
    def setUp(self):
        super().setUp()
        self.installed = "/nonexistent"

    def test_with_a_hangscope_that_is_built_already(self):
        for generator in GENERATORS:
            with self.subTest(generator):
                self.configure(generator, f"-DHANGSCOPE_SOURCE={ROOT}", f"-DHANGSCOPE_EXECUTABLE={HANGSCOPE}",
                               "-DHANGSCOPE_RING_TRACE=ON")
                self.assertIn(f"{HANGSCOPE} run", self.command_of("simulation"))
                self.assertEqual(self.build("simulation").returncode, 0)
                self.assertEqual(self.report()["words"], AWKWARD)

    def test_an_instrumented_program_finds_its_headers(self):
        self.configure("Ninja", f"-DHANGSCOPE_SOURCE={ROOT}", f"-DHANGSCOPE_EXECUTABLE={HANGSCOPE}", "-DINSTRUMENTED=ON")
        done = self.build("instrumented")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_host_library_alone_needs_nothing_of_the_command(self):
        """Neither its libraries are looked for nor its targets built."""
        build = self.folder / "host"
        hidden = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("CLI11", "GTest", "benchmark")]
        done = subprocess.run([CMAKE, "-S", ROOT, "-B", build, "-G", "Ninja", "-DHANGSCOPE_COMMAND=OFF", *hidden], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("re2", "zstd", "capstone", "opencsd", "ncursesw"):
            self.assertNotIn(f"'{name}'", done.stdout)
            self.assertNotIn(f"{name}_FOUND", (build / "CMakeCache.txt").read_text())
        targets = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
        self.assertIn("libhangscope_host.a", targets)
        self.assertNotIn("libhangscope_all.a", targets)

    def test_cross_compiling_project_is_told_what_to_do(self):
        said = self.configure("Ninja", f"-DHANGSCOPE_SOURCE={ROOT}", "-DCMAKE_SYSTEM_NAME=Generic",
                              f"-DCMAKE_CXX_COMPILER={os.environ.get('CXX', 'c++')}", expect=1)
        self.assertIn("set HANGSCOPE_EXECUTABLE", said)


class SubdirectoryLong(Consumer):
    def test_that_is_built_with_the_project_and_leaves_its_flags_alone(self):
        project = self.folder / "project"
        project.mkdir()
        (project / "own.cc").write_text("int main() {}\n")
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(own CXX)\nset(CMAKE_EXPORT_COMPILE_COMMANDS ON)\n"
            f"add_subdirectory({ROOT} hangscope)\nadd_executable(own own.cc)\nenable_testing()\n"
            "hangscope_add_simulation(NAME simulation COMMAND own)\n")
        self.build_folder = self.folder / "build-long"
        subprocess.run([CMAKE, "-S", project, "-B", self.build_folder, "-G", "Ninja", "-DHANGSCOPE_RING_TRACE=ON",
                        "-DCMAKE_CXX_FLAGS=-O0"], capture_output=True, check=True)
        commands = json.loads((self.build_folder / "compile_commands.json").read_text())
        own, = [entry["command"] for entry in commands if entry["file"].endswith("own.cc")]
        self.assertNotRegex(own, r"-std=|-W|-I")
        self.assertEqual([entry for entry in commands if re.search(r"/(tests|bench|examples)/", entry["file"])], [])
        listed = subprocess.run(["ctest", "-N"], cwd=self.build_folder, capture_output=True, text=True, check=True)
        self.assertIn("Total Tests: 0", listed.stdout)
        done = subprocess.run([CMAKE, "--build", self.build_folder, "--target", "simulation", "-j2"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        self.assertIn("hangscope: finished", done.stdout + done.stderr)
        self.assertTrue((self.build_folder / "trace/simulation.stdout.index").exists())
        subprocess.run([CMAKE, "--install", self.build_folder, "--prefix", self.folder / "own"], check=True,
                       capture_output=True)
        self.assertFalse((self.folder / "own").exists())  # the project installs nothing, so nothing is installed


if __name__ == "__main__":
    main()
