#!/usr/bin/env python3
"""Who called the function in which a core or task of a firmware waits: of its stack, or of its trace."""
import json
import re
import shutil

import scope_reader
from scope_ram import RAM_BASE
from support import Case, main
from watched_targets import device_command, new_folder, start_device, start_sched

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

    def why(self, target, device, *options):
        """Its verdict; and of each core in the finding where it is and who called that."""
        done = self.hangscope("why", target, *options, "--stall", "0.3", "--json", "--elf", device.elf)
        self.assertEqual(done.status, 1, done.err)
        verdict = json.loads(done.out.splitlines()[0])
        return verdict, [(subject.get("where"), subject.get("callers")) for subject in verdict["findings"][0]["subjects"]]

    def test_of_a_stack(self):
        """The same, whether a debug server shows it, the guest's memory, or what is left of that."""
        for isa in ("rv32", "rv64"):
            with self.subTest(isa):
                server = self.folder / f"gdb-{isa}"
                device = start_device(self.ram, isa=isa, options=["-gdb", f"unix:{server},server=on,wait=off"], **DEADLOCK)
                self.addCleanup(device.kill)
                self.assertTrue(device.until_planted())
                verdict, callers = self.why(f"gdb:{server}", device, "--intrusive")
                self.check(verdict)
                self.assertEqual(self.why(device.target, device)[1], callers)
                if isa == "rv64":
                    self.assertEqual(self.why(f"pid:{device.process.pid}", device)[1], callers)
                device.kill()
                self.assertEqual(self.why(device.target, device)[1], callers)
                if isa == "rv32":
                    self.lose_a_stack(device, core=1)
                    left = self.why(device.target, device)[1]
                    self.assertEqual(left[1], callers[1])
                    self.assertIsNone(left[0][1], "its stack is full of another's words")

    def lose_a_stack(self, device, core):
        """As if the function in which the wait of the core began had returned, and others had used its stack."""
        with open(device.scope, "r+b") as ram:
            watch = scope_reader.Watch(scope_reader.Scope(ram.read()))
            _, behind_a_call, _, _ = watch.frame(0)
            _, _, sp, _ = watch.frame(core)
            ram.seek(sp - RAM_BASE)
            ram.write(behind_a_call.to_bytes(watch.scope.word, "little") * 32)

    def test_of_the_stack_of_a_task(self):
        """Which is on no core while it waits."""
        sched = start_sched(self.ram, fault="DEADLOCK2", task=2, other=1, round=20)
        self.addCleanup(sched.kill)
        self.assertTrue(sched.until_planted())
        callers = self.why(sched.target, sched)[1]
        self.assertEqual(len(callers), 2)
        for where, called_by in callers:
            self.assertRegex(where, r"^kernel_block  kernel.c:\d+$")
            self.assertRegex(called_by[0], r"^mutex_lock  sync.c:\d+$")
            self.assertGreater(len(called_by), 1)

    def test_of_its_trace(self):
        # A program that leaves no frames of its waits.
        command, elf, _ = device_command(self.ram, firmware="device-without-frames", options=["-d", "exec,nochain"], ram_in_file=False,
                                         **DEADLOCK)
        # On a busy machine the mailboxes may tell before a hart has printed its loop for the stall time.
        for _ in range(3):
            outcome = self.run_program(command, "--elf", elf, "--stall", "1.5", "--on-hang", "kill", "--no-passthrough")
            verdict = outcome.hangs[-1]
            if "inside" in str(verdict["findings"]):
                break
        traced = re.findall(r"the trace: hart (\d)  .*lock_acquire .*<- hart_main", "\n".join(verdict["evidence"]))
        self.assertIn("inside", str(verdict["findings"]))
        finding = verdict["findings"][0]
        for subject in finding["subjects"]:
            # Where the trace ends elsewhere, as one that is cut does, nothing is said of callers.
            self.assertEqual("inside" in subject, str(subject["core"]) in traced, (subject, verdict["evidence"]))


if __name__ == "__main__":
    main()
