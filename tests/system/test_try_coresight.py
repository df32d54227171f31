"""scripts/try-coresight: what it says where there is no CoreSight, and of a recorded file beside perf and beside a perf that errs."""
import os
import shutil
import subprocess
import sys

from support import DATA, HANGSCOPE, ROOT, Case, main

SCRIPT = ROOT / "scripts/try-coresight"
FILE = DATA / "perf/etm.data"


class TryCoresight(Case):
    def run_script(self, *options, **environment):
        done = subprocess.run([sys.executable, SCRIPT, "--hangscope", HANGSCOPE, *map(str, options)], capture_output=True, text=True,
                              env={**os.environ, **environment}, timeout=50)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def perf_that_prints(self, *lines):
        """The PATH with it before all others."""
        perf = self.folder / "bin/perf"
        perf.parent.mkdir()
        perf.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
        perf.chmod(0o755)
        return f"{perf.parent}:{os.environ['PATH']}"

    def test_says_what_is_missing_without_trace_units(self):
        status, said = self.run_script("--pmus", self.folder)
        self.assertEqual(status, 77, said)
        self.assertIn(f"missing  trace units: '{self.folder}' has no cs_etm\n", said)
        if os.uname().machine == "x86_64":
            self.assertIn("missing  an Arm processor: this is x86_64\n", said)
        self.assertRegex(said, r"\nIt cannot be tried here: [12] missing\. ")
        self.assertNotIn("WRONG", said)

    def test_says_that_there_is_no_hangscope(self):
        status, said = self.run_script("--hangscope", self.folder / "none")
        self.assertEqual(status, 77, said)
        self.assertRegex(said, "^missing  hangscope: ")

    def test_tells_the_trace_units_and_that_nothing_came_of_them(self):
        pmu = self.folder / "cs_etm"
        for path, text in (("cpu1/trcidr/trcidr0", "0x28000ea1"), ("cpu0/trcidr/trcidr0", "0x28000ea1"), ("sinks/tmc_etr0", "0x51"),
                           ("format/sinkid", "config2:0-31")):
            (pmu / path).parent.mkdir(parents=True, exist_ok=True)
            (pmu / path).write_text(text + "\n")
        status, said = self.run_script("--pmus", self.folder, "--after", 0.3, "--keep", self.folder / "kept", "--", "sleep", 0.6)
        self.assertIn("trace units of cpu0, cpu1\n", said)
        self.assertIn("cpu0: trcidr0 0x28000ea1\n", said)
        self.assertIn("sinks: tmc_etr0 0x51\n", said)
        self.assertIn("recorded by: run --cpu -e cs_etm//u --cpu-size 1M", said)
        self.assertEqual(status, 1, said)
        self.assertIn("\nWRONG    ", said)

    def test_compares_a_file_with_perf(self):
        if shutil.which("perf") is None:
            self.skipTest("no perf: package linux-perf")
        status, said = self.run_script("--file", FILE)
        if "missing  a perf that decodes CoreSight" in said:
            self.skipTest("this perf was built without libopencsd")
        self.assertEqual(status, 0, said)
        self.assertIn("read by hangscope: 27 packets, 208 atoms; 384 bytes in 4 spans of 1 rings, 1 trace off\n", said)
        self.assertIn("read by perf: 27 packets, 208 atoms; of trace ids 1e: 27\n", said)
        self.assertIn("right    the file: packets and atoms are the same\n", said)

    def test_finds_a_difference(self):
        path = self.perf_that_prints("\tIdx:0; ID:1e;\tI_ASYNC : Alignment Synchronisation.", "\tIdx:12; ID:1e;\tI_ATOM_F3 : Atom format 3.; EEN",
                                     "\tIdx:13; ID:1e;\tI_NOT_SYNC : I Stream not synchronised")
        status, said = self.run_script("--file", FILE, PATH=path)
        self.assertEqual(status, 1, said)
        self.assertIn("read by perf: 3 packets, 3 atoms; ", said)
        self.assertIn("WRONG    the file: packets and atoms are not the same\n", said)

    def test_says_that_perf_does_not_decode(self):
        status, said = self.run_script("--file", FILE, PATH=self.perf_that_prints("no decoder"))
        self.assertEqual(status, 0, said)
        self.assertIn("missing  a perf that decodes CoreSight (built with libopencsd)", said)


if __name__ == "__main__":
    main()
