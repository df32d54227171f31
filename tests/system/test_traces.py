"""Real traces replayed: the hangs go on in their loops, the others come to an end."""
import re
import shutil
import subprocess

from support import DATA, Case, main, python

REPLAY = """
import sys, time
lines = open(sys.argv[1], 'rb').read()
rounds = open(sys.argv[2], 'rb').read()
out = sys.stdout.buffer
out.write(lines)
while True:
    out.write(rounds * 20)
    out.flush()
    time.sleep(0.01)
"""


class Replay(Case):
    def setUp(self):
        super().setUp()
        if shutil.which("zstd") is None:
            self.skipTest("zstd is not installed (package zstd)")

    def sample(self, name):
        return subprocess.run(["zstd", "-dc", DATA / f"{name}.log.zst"], capture_output=True, check=True).stdout

    def replay(self, lines, rounds, *options):
        (self.folder / "lines").write_bytes(lines)
        (self.folder / "rounds").write_bytes(rounds)
        command = ["timeout", "20", *python(REPLAY, self.folder / "lines", self.folder / "rounds")]
        outcome = self.run_program(command, "--stall", 1, "--on-hang", "kill", "--no-passthrough", *options)
        self.assertEqual(outcome.status, 124, outcome.messages[-1:])
        return outcome.hangs[0], {core["name"]: core for core in outcome.hangs[0]["cores"]}

    def test_gvsoc_hang(self):
        lines = self.sample("gvsoc-hang")
        last = b"".join(lines.splitlines(keepends=True)[-2:])
        verdict, cores = self.replay(lines, last)
        core = cores["/soc/host"]
        self.assertEqual((verdict["state"], core["state"], core["function"]), ("looping", "looping", "cb_wait_front"))
        self.assertEqual({p["pc"] for p in core["loop"]["places"]}, {"0x80000108", "0x8000010a"})

    def test_gvsoc_short_form_hang(self):
        short = (b"20300000ps 203 M 0000000080000036 0000000000072783 lw x15,0(x14)   x15=0000000000000000 x14:0000000080000135  PA:0000000080000135\n"
                 b"20400000ps 204 M 000000008000003a 00000000fe078ee3 beq x15,x0,-4   x15:0000000000000000\n")
        verdict, cores = self.replay(short * 100, short)
        (core,) = cores.values()
        self.assertEqual((core["state"], core["loop"]["basis"]), ("looping", "values"))
        self.assertEqual([p["pc"] for p in core["loop"]["places"]], ["0x80000036", "0x8000003a"])

    def test_gvsoc_several_cores_by_their_paths(self):
        def line(core, pc):
            return b"720264540: 103619: [/chip/cluster/%s/insn] wait_%s:65 M %08x c.lw a4, 16(a5) a4=00000001 a5:1a109000 PA:1a109010\n" % (core, core, pc)
        both = line(b"pe0", 0x1c011400) + line(b"pe1", 0x1c011500) + line(b"pe0", 0x1c011402) + line(b"pe1", 0x1c011502)
        _, cores = self.replay(both * 50, both)
        self.assertEqual(cores["/chip/cluster/pe0"]["function"], "wait_pe0")
        self.assertEqual(cores["/chip/cluster/pe1"]["function"], "wait_pe1")

    def test_spike_hang_of_three_harts(self):
        lines = self.sample("spike-3hart-hang")
        loops = {0: (0x80000104, 0x80000106), 1: (0x8000011C, 0x8000011E, 0x80000120), 2: (0x8000011C, 0x8000011E, 0x80000120)}
        rounds = b""
        for hart, pcs in loops.items():
            own = [l for l in lines.splitlines(keepends=True) if l.startswith(b"core   %d:" % hart)]
            # One round: from the announcement of its first place to the commit of its last.
            end = max(i for i, l in enumerate(own) if re.match(rb"core   %d: 3 0x%08x " % (hart, pcs[-1]), l)) + 1
            rounds += b"".join(own[end - 2 * len(pcs):end])
        whole = lines[:lines.rindex(b"core   0: 3 0x80000106") + 30]
        whole = whole[:whole.rindex(b"\n") + 1]
        verdict, cores = self.replay(whole, rounds)
        self.assertEqual(verdict["confidence"], "likely")
        for hart, pcs in loops.items():
            places = [int(p["pc"], 16) for p in cores[f"hart {hart}"]["loop"]["places"]]
            self.assertEqual(tuple(places), pcs)
            self.assertEqual(cores[f"hart {hart}"]["loop"]["basis"], "values")

    def test_progress_ends_as_finished(self):
        for name in ("gvsoc-progress", "qemu-exec-3hart-progress", "spike-3hart-progress"):
            (self.folder / "lines").write_bytes(self.sample(name))
            outcome = self.run_program(["cat", str(self.folder / "lines")], "--stall", 1, "--on-hang", "kill", "--no-passthrough")
            self.assertEqual((outcome.status, outcome.hangs), (0, []))
            self.assertTrue(all(core["state"] == "progressing" for core in outcome.last["cores"]), outcome.last)


if __name__ == "__main__":
    main()
