"""A build without the libraries that it may be without (docs/install.md): it needs none of them, says what it lacks, and its unit
tests pass, but for those of what is not there."""
import pathlib
import shutil
import subprocess

from support import BUILD, CMAKE, DATA, ROOT, main, python
from terminal import TerminalCase

OPTIONS = ("OPENCSD", "LIBIPT", "CAPSTONE", "NCURSES", "RE2")
SPIN = "volatile int ready;\nint main(void) { while (!ready) {} return 0; }\n"


class SmallBuild(TerminalCase):
    def build(self, *targets):
        """The build folder, kept for the next time. Nothing is optimised: compiling is what takes the time."""
        build = pathlib.Path(BUILD) / "small"
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        for words in ([CMAKE, "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -g1",
                       "-DHANGSCOPE_COMPILE_BY_FOLDER=ON", "-DHANGSCOPE_WERROR=ON", "-DHANGSCOPE_BENCH=OFF", "-DHANGSCOPE_EXAMPLES=OFF",
                       *(f"-DHANGSCOPE_WITH_{option}=OFF" for option in OPTIONS), *launcher],
                      [CMAKE, "--build", build, "--target", *targets]):
            done = subprocess.run(words, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-3000:])
        return build

    def small(self, *words, **options):
        return subprocess.run([self.command, *map(str, words)], capture_output=True, text=True, timeout=60, **options)

    def test_needs_no_library_of_those_and_says_what_it_lacks(self):
        self.command = self.build("hangscope") / "hangscope"
        needed = subprocess.run(["readelf", "-d", self.command], capture_output=True, text=True, check=True).stdout
        self.assertIn("libdw", needed)
        self.assertNotRegex(needed, "opencsd|ipt|capstone|ncurses|tinfo|re2")
        _, *lines = self.small("--version", "-v").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["off"] * len(OPTIONS))

        for option in ("--trigger", "--place-regex"):
            done = self.small("run", option, "x(.)", "--", "true")
            self.assertEqual(done.returncode, 125)
            self.assertEqual(done.stderr, f"hangscope: error: {option} needs RE2, which this hangscope was built without (HANGSCOPE_WITH_RE2)\n")
        done = self.small("export", "--to", "text", DATA / "perf/etm.data")
        self.assertIn("this hangscope was built without libopencsd, which decodes CoreSight", done.stdout + done.stderr)

        spinner = self.folder / "spinner"
        subprocess.run(["cc", "-O0", "-x", "c", "-", "-o", spinner], input=SPIN, text=True, check=True)
        process = subprocess.Popen([spinner])
        self.addCleanup(self.end, process)
        said = self.small("why", process.pid).stdout
        self.assertIn(f"what thread {process.pid} (spinner) polls is not known: this hangscope was built without capstone", said)
        self.assertNotIn("certain)", said)

        self.start(self.command, "watch", "--for", "300ms", DATA / "scope/watched-little64.bin")
        self.wait_for_end()
        self.assertIn(b"there is no live view: this hangscope was built without ncurses", self.seen)
        self.assertIn(b"room for 6 cores", self.seen)

    def test_a_hang_is_told_all_the_same(self):
        self.command = self.build("hangscope") / "hangscope"
        code = "import threading\na, b = threading.Lock(), threading.Lock()\na.acquire(); a.acquire()"
        done = self.small("run", "--stall", "2", "--on-hang", "kill", "--prefix", self.prefix, "--", *python(code))
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertIn("HANG", done.stderr)

    def test_unit_tests_pass(self):
        unit_tests = self.build("unit_tests") / "tests/unit_tests"
        listed = [line.strip() for line in (ROOT / "tests/small-build/cannot-run").read_text().splitlines() if line.startswith(" ")]
        suite, known = "", set()
        for line in subprocess.run([unit_tests, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout.splitlines():
            suite = suite if line.startswith(" ") else line.split()[0]
            known.add(suite + line.split()[0])
        self.assertLessEqual(set(listed), known)
        done = subprocess.run([unit_tests, "--gtest_brief=1", f"--gtest_filter=*-{':'.join(listed)}"], capture_output=True, text=True,
                              cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        self.assertRegex(done.stdout, r"\[  PASSED  \] \d{4,} tests")


if __name__ == "__main__":
    main()
