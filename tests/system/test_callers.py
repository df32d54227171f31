#!/usr/bin/env python3
"""Who called the function in which a core of a firmware waits: of its stack, or of its trace."""
import json
import re
import shutil

from support import Case, main
from watched_targets import new_folder, start_device, device_command

# Cores 1 and 3 have a lock each and want the other's, in lock_acquire.
DEADLOCK = dict(fault="DEADLOCK2", core=3, other=1, block=20)


class Callers(Case):
    def setUp(self):
        super().setUp()
        if shutil.which("qemu-system-riscv32") is None:
            self.skipTest("qemu-system-riscv32 is not there")
        self.ram = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, self.ram, True)

    def check(self, verdict):
        finding = verdict["findings"][0]
        self.assertEqual([subject["core"] for subject in finding["subjects"]], [1, 3])
        for subject, line in zip(finding["subjects"], finding["lines"]):
            # rv64's compiler has lock_in_turn in its caller.
            self.assertRegex(subject["where"], r"^(lock_in_turn|maybe_fail)  faults.c:\d+$")
            self.assertIn("in lock_acquire", subject["inside"])
            functions = [caller.split("  ")[0] for caller in subject["callers"]]
            self.assertIn("compute_block", functions)
            self.assertIn("hart_main", functions)
            self.assertRegex(line, r"in lock_acquire <- (lock_in_turn|maybe_fail)  faults.c:\d+ .*<- compute_block <- hart_main")

    def test_of_a_stack_that_a_debug_server_shows(self):
        for isa in ("rv32", "rv64"):
            with self.subTest(isa):
                server = self.folder / f"gdb-{isa}"
                device = start_device(self.ram, isa=isa, options=["-gdb", f"unix:{server},server=on,wait=off"], **DEADLOCK)
                self.addCleanup(device.kill)
                self.assertTrue(device.until_planted())
                done = self.hangscope("why", f"gdb:{server}", "--intrusive", "--stall", "1", "--json", "--elf", device.elf)
                self.assertEqual(done.status, 1, done.err)
                self.check(json.loads(done.out.splitlines()[0]))
                device.kill()

    def test_of_its_trace(self):
        command, elf, _ = device_command(self.ram, options=["-d", "exec,nochain"], ram_in_file=False, **DEADLOCK)
        outcome = self.run_program(command, "--elf", elf, "--stall", "1.5", "--on-hang", "kill", "--no-passthrough")
        verdict = outcome.hangs[-1]
        traced = re.findall(r"the trace: hart (\d)  .*lock_acquire .*<- hart_main", "\n".join(verdict["evidence"]))
        self.assertIn("inside", str(verdict["findings"]))
        finding = verdict["findings"][0]
        for subject in finding["subjects"]:
            # Where the trace ends elsewhere, as one that is cut does, nothing is said of callers.
            self.assertEqual("inside" in subject, str(subject["core"]) in traced, (subject, verdict["evidence"]))


if __name__ == "__main__":
    main()
