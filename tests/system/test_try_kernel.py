"""scripts/try-kernel: each of its lines, right and wrong, with the kernel of examples/trace_sched."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from support import FIRMWARE, HANGSCOPE, Case, main
from watched_targets import PLAN_AT, SCHED_FAULTS

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/try-kernel"
IMAGE = os.path.join(FIRMWARE, "rv32-trace_sched{}.elf")


class TryKernel(Case):
    def run_script(self, image, *options):
        done = subprocess.run([sys.executable, SCRIPT, "--hangscope", HANGSCOPE, "--ram", "64M", *options, IMAGE.format(image)],
                              capture_output=True, text=True, timeout=80)
        lines = [re.match(r"(\w+) +(right|WRONG)  (.*)", line).groups() for line in done.stdout.splitlines()]
        return done.returncode, lines

    def of(self, lines, what):
        return [(verdict, text) for name, verdict, text in lines if name == what]

    def test_a_deadlock_and_two_images_that_differ(self):
        plan = [SCHED_FAULTS["DEADLOCK2"], 2, 1, 0, 5, 0, 2]  # tasks 2 and 1, in round 5, of 2 ms
        qemu = ["qemu-system-riscv32 -M virt -bios none",
                *(f"-device loader,addr={PLAN_AT + 4 * at:#x},data={word},data-len=4" for at, word in enumerate(plan) if word != 0)]
        status, lines = self.run_script("-faults", "--qemu", " ".join(qemu), "--for", "3", "--stall", "500ms", "--expect", "deadlock",
                                        "--symbol", "hangscope_init", "--off", IMAGE.format("-off"), IMAGE.format("-hook-off"))
        self.assertEqual(status, 1, lines)
        self.assertEqual([line[:2] for line in lines if line[1] == "WRONG"], [("off", "WRONG")], lines)
        verdicts = self.of(lines, "verdict")
        self.assertEqual([re.match(r"--interval (\S+): status 1, deadlock, 2 of ", text)[1] for _, text in verdicts],
                         ["(default)", "37ms", "100ms", "250ms"])
        (_, names), = self.of(lines, "names")
        self.assertRegex(names, r"^\d\d+ events, 0 of them without a name$")
        (_, cost), = self.of(lines, "cost")
        self.assertRegex(cost, r"^hangscope_init: \d{3,} instructions, \d+ loads, \d+ stores each of 1 times$")
        (_, identity), = self.of(lines, "off")
        self.assertTrue(identity.endswith(" bytes are loaded, not the same"), identity)

    def test_equal_images_and_a_qemu_that_ended(self):
        strip = shutil.which("riscv64-unknown-elf-strip") or self.skipTest("no strip for RISC-V")
        stripped = self.folder / "stripped.elf"
        subprocess.run([strip, "-o", stripped, IMAGE.format("-off")], check=True)
        status, lines = self.run_script("", "--for", "1", "--symbol", "no_such_function", "--off",
                                        IMAGE.format("-off"), str(stripped))
        self.assertEqual(status, 1, lines)
        (identity,) = self.of(lines, "off")
        self.assertEqual((identity[0], identity[1].endswith(" bytes are loaded, the same")), ("right", True), identity)
        self.assertEqual(self.of(lines, "machine"), [("WRONG", "QEMU ended, with status 0")])
        (cost,) = self.of(lines, "cost")
        self.assertEqual(cost[0], "WRONG")
        self.assertIn("no_such_function", cost[1])


if __name__ == "__main__":
    main()
