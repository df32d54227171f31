"""Real QEMU, real firmware: every shape of hang gets its name, every control is left alone."""
import subprocess
import unittest

from support import FIRMWARE, Case, main

STALL = 1
CONTROL_S = 5 * STALL


def qemu(bits, elf, harts=3, log="exec,nochain", extra=()):
    return [f"qemu-system-riscv{bits}", "-machine", "virt", "-m", "64M", "-bios", "none", "-kernel", str(elf),
            "-smp", str(harts), "-nographic", "-monitor", "none", "-serial", "none", "-d", log, *extra]


class Qemu(Case):
    def setUp(self):
        super().setUp()
        self.need_firmware()

    def watch(self, name, bits=32, seconds=60, options=(), **machine):
        """Runs a firmware until hangscope calls it a hang, or `seconds` have passed."""
        elf = FIRMWARE / f"rv{bits}-{name}.elf"
        command = ["timeout", "--signal=TERM", str(seconds), *qemu(bits, elf, **machine)]
        return self.run_program(command, "--elf", elf, "--stall", STALL, "--heartbeat", 0.25, "--on-hang", "kill",
                                "--size", "100M", "--no-passthrough", *options, timeout=seconds + 30)

    def assert_spins(self, outcome, expected, places=None):
        """`expected`: hart -> the function in which it spins."""
        self.assertEqual(outcome.status, 124, outcome.messages[-1:])
        self.assertEqual(len(outcome.hangs), 1)
        verdict = outcome.hangs[0]
        self.assertEqual(verdict["state"], "looping")
        self.assertIn(verdict["confidence"], ("likely", "certain"))
        cores = {core["name"]: core for core in verdict["cores"]}
        for hart, function in expected.items():
            core = cores[f"hart {hart}"]
            self.assertEqual((core["state"], core.get("function")), ("looping", function), core)
            self.assertRegex(core["source"], r"^\w+\.[cS]:\d+$")
            self.assertGreaterEqual(core["for_s"], STALL)
            self.assertGreater(core["loop"]["rounds"], 10)
            if places is not None:
                self.assertEqual(len(core["loop"]["places"]), places, core["loop"])
        return verdict, cores

    def assert_left_alone(self, outcome):
        self.assertEqual(outcome.hangs, [])
        # timeout(1) ends the emulator with a status that is not 0.
        self.assertEqual({m["trigger"] for m in outcome.of_type("snapshot")} - {"exit"}, set())
        self.assertGreater(len(outcome.of_type("heartbeat")), 5)


class Hangs(Qemu):
    def test_handshake_rv32(self):
        outcome = self.watch("handshake-hang", options=("--junit", self.folder / "junit.xml"))
        verdict, _ = self.assert_spins(
            outcome, {0: "cb_reserve_back", 1: "noc_semaphore_wait", 2: "cb_wait_front"}, places=1)
        self.assertGreater(verdict["for_s"], 0)
        (snapshot,) = self.snapshots()
        report = (snapshot / "report.txt").read_text()
        for function in ("cb_reserve_back", "noc_semaphore_wait", "cb_wait_front"):
            self.assertIn(function, report)
        self.assertIn("failure message=\"hang: looping", (self.folder / "junit.xml").read_text())
        self.assertIn(b"cb_wait_front", self.cat(snapshot)[-50_000_000:])

    def test_handshake_rv64(self):
        outcome = self.watch("handshake-hang", bits=64)
        self.assert_spins(outcome, {0: "cb_reserve_back", 1: "noc_semaphore_wait", 2: "cb_wait_front"}, places=1)

    def test_loop_of_1_place(self):
        self.assert_spins(self.watch("loops-loop1"), {h: "spin_on_word" for h in range(3)}, places=1)

    def test_loop_of_7_places(self):
        self.assert_spins(self.watch("loops-loop7", bits=64), {h: "poll_seven_words" for h in range(3)}, places=7)

    def test_loop_of_64_places(self):
        self.assert_spins(self.watch("loops-loop64"), {h: "poll_sixty_four_words" for h in range(3)}, places=64)

    def test_nested_loop(self):
        self.assert_spins(self.watch("loops-nested", seconds=20), {h: "poll_with_delay" for h in range(3)}, places=21)

    def test_loop_with_calls(self):
        _, cores = self.assert_spins(self.watch("loops-calls", bits=64), {h: "wait_for_device" for h in range(3)}, places=5)
        functions = {place["function"] for place in cores["hart 0"]["loop"]["places"]}
        self.assertEqual(functions, {"wait_for_device", "poll_device", "read_register"})

    def test_loop_with_a_timer_interrupt_inside(self):
        verdict, cores = self.assert_spins(self.watch("loops-timer"), {h: "spin_under_timer" for h in range(3)}, places=1)
        self.assertGreater(cores["hart 0"]["loop"]["interrupts"], 20)
        self.assertEqual(verdict["confidence"], "likely")
        self.assertTrue(any("interrupts still arrive" in doubt for doubt in verdict["doubts"]))

    def test_spinlocks_taken_in_opposite_order(self):
        self.assert_spins(self.watch("loops-lock"), {0: "lock_acquire", 1: "lock_acquire"})

    def test_round_longer_than_a_sample(self):
        self.assert_spins(self.watch("loops-backoff", seconds=110, harts=1), {0: "poll_with_backoff"})

    def test_one_hart_of_several(self):
        _, cores = self.assert_spins(self.watch("loops-onehart"), {2: "wait_for_partner"})
        for hart in ("hart 0", "hart 1"):
            self.assertEqual((cores[hart]["state"], cores[hart]["function"]), ("silent", "park"))

    def test_registers_in_the_trace_prove_a_spin_without_an_elf(self):
        elf = FIRMWARE / "rv32-loops-loop7.elf"
        outcome = self.run_program(
            ["timeout", "80", *qemu(32, elf, log="exec,nochain,cpu")], "--stall", STALL, "--on-hang", "kill",
            "--size", "400M", "--no-passthrough", timeout=100)
        self.assertEqual(outcome.status, 124)
        for core in outcome.hangs[0]["cores"]:
            self.assertEqual((core["function"], core["loop"]["basis"]), ("poll_seven_words", "values"))

    def test_translated_code_in_the_trace_replaces_the_elf(self):
        elf = FIRMWARE / "rv64-loops-loop7.elf"
        outcome = self.run_program(
            ["timeout", "60", *qemu(64, elf, log="exec,nochain,in_asm")], "--stall", STALL, "--on-hang", "kill",
            "--size", "400M", "--no-passthrough", timeout=90)
        self.assertEqual(outcome.status, 124)
        for core in outcome.hangs[0]["cores"]:
            self.assertEqual((core["function"], core["loop"]["basis"]), ("poll_seven_words", "body"))

    def test_all_harts_asleep_is_silence(self):
        outcome = self.watch("loops-wfi_all")
        self.assertEqual(outcome.status, 124)
        verdict = outcome.hangs[0]
        self.assertEqual(verdict["state"], "silent")
        for core in verdict["cores"]:
            self.assertEqual((core["function"], core["asleep"]), ("sleep_for_ever", True))


class Controls(Qemu):
    def test_harts_that_work_on(self):
        self.assert_left_alone(self.watch("handshake-work", seconds=CONTROL_S))

    def test_hot_crc_loop_for_three_stall_times(self):
        outcome = self.watch("handshake-crc", extra=("-device", f"loader,addr=0x83f00000,data={4000 * STALL},data-len=4"))
        self.assert_left_alone(outcome)
        self.assertEqual((outcome.status, outcome.last["state"]), (0, "finished"))

    def test_long_initialisation(self):
        outcome = self.watch("loops-longinit", seconds=CONTROL_S,
                             extra=("-device", f"loader,addr=0x83f00000,data={4000 * STALL},data-len=4"))
        self.assert_left_alone(outcome)

    def test_wfi_by_design_while_another_hart_works(self):
        self.assert_left_alone(self.watch("loops-wfi_design", seconds=CONTROL_S))

    def test_waiting_for_the_clock(self):
        self.assert_left_alone(self.watch("loops-delay", seconds=CONTROL_S))

    def test_one_hart_spins_while_another_works(self):
        outcome = self.watch("loops-onehart_busy", seconds=CONTROL_S)
        self.assert_left_alone(outcome)
        cores = {core["name"]: core for core in outcome.of_type("heartbeat")[-1]["cores"]}
        self.assertEqual((cores["hart 1"]["state"], cores["hart 1"]["function"]), ("looping", "wait_for_result"))
        self.assertEqual(cores["hart 0"]["state"], "progressing")

    def test_a_wait_that_used_to_end_while_another_hart_works_is_partial(self):
        outcome = self.watch("loops-forgotten", seconds=40, options=("--act-on", "likely,partial"), harts=2)
        self.assertEqual(outcome.status, 124, outcome.messages[-1:])
        (verdict,) = outcome.hangs
        self.assertEqual((verdict["state"], verdict["confidence"], verdict["goes_on"]), ("partial", "likely", "hart 0"))
        self.assertIn("hart 1 spins", verdict["summary"])
        cores = {core["name"]: core for core in verdict["cores"]}
        self.assertEqual((cores["hart 1"]["state"], cores["hart 1"]["function"]), ("looping", "wait_for_job"))

    def test_without_an_elf_a_spin_is_only_possible(self):
        elf = FIRMWARE / "rv32-loops-loop7.elf"
        outcome = self.run_program(["timeout", str(CONTROL_S), *qemu(32, elf)], "--stall", STALL, "--heartbeat", 0.25,
                                   "--on-hang", "kill", "--no-passthrough", timeout=60)
        self.assert_left_alone(outcome)
        possible = [b for b in outcome.of_type("heartbeat") if b["state"] == "looping"]
        self.assertTrue(possible)
        self.assertEqual({b["confidence"] for b in possible}, {"possible"})

    def test_without_nochain_it_warns_and_triggers_nothing(self):
        elf = FIRMWARE / "rv32-loops-loop7.elf"
        outcome = self.run_program(["timeout", str(CONTROL_S), *qemu(32, elf, log="exec")], "--elf", elf, "--stall", STALL,
                                   "--heartbeat", 0.25, "--on-hang", "kill", "--no-passthrough", timeout=60)
        self.assert_left_alone(outcome)
        self.assertTrue(any("nochain" in note["text"] for note in outcome.of_type("note")))

    def test_translations_alone_trigger_nothing(self):
        elf = FIRMWARE / "rv32-loops-loop7.elf"
        outcome = self.run_program(["timeout", str(CONTROL_S), *qemu(32, elf, log="in_asm")], "--elf", elf, "--stall", STALL,
                                   "--heartbeat", 0.25, "--on-hang", "kill", "--no-passthrough", timeout=60)
        self.assert_left_alone(outcome)
        self.assertIn("silent", outcome.states_seen())


if __name__ == "__main__":
    main()
