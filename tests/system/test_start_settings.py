"""What a program begins with, written into a copy of its ELF: `hangscope set --start`."""
import pathlib
import shutil

from support import FIRMWARE, Case, main
from watched_targets import new_folder, start_device

PROGRAM = pathlib.Path(FIRMWARE) / "rv32-device-start.elf"
BLOCKS = 7


class Start(Case):
    def setUp(self):
        super().setUp()
        self.copy = self.folder / "slow.elf"

    def set(self, *words):
        done = self.hangscope("set", *words)
        return done.status, (done.out + done.err).decode()

    def run_device(self, elf):
        """All blocks of the device's work; its RAM, and the simulator idles on."""
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        device = start_device(folder, blocks=BLOCKS, firmware="device-start", options=["-kernel", str(elf)])
        self.addCleanup(device.kill)
        self.until(lambda: f"{BLOCKS} blocks, all right" in device.said())
        return device.target

    def test_delays_run_from_the_first_access_on(self):
        run = self.run_device(PROGRAM)
        self.assertEqual(self.set("delay", "--elf", PROGRAM, run, "4"), (0, f"{run.removeprefix('file:')}: no delay is set, and none ran: core 4 writer (0,0)\n"))
        status, said = self.set("delay", "--start", self.copy, "--cores-of", run, PROGRAM, "writer@(0,0)", "write=50")
        self.assertEqual((status, said), (0, f"{self.copy}: core 4 writer (0,0) begins with delays of writes 50\n"))
        status, said = self.set("delay", "--start", self.folder / "slower.elf", self.copy, "0", "read=random:30")
        self.assertEqual((status, len(said.splitlines())), (0, 2))

        run = self.run_device(self.folder / "slower.elf")
        status, said = self.set("delay", "--elf", PROGRAM, run, "0", "4")
        self.assertEqual(status, 0)
        # Each block is read once and written once.
        self.assertRegex(said, rf"core 0 reader \(0,0\): {BLOCKS} reads delayed \(reads up to 30[^)]*\)")
        self.assertRegex(said, rf"core 4 writer \(0,0\): {BLOCKS} writes delayed \(writes 50\)")

    def test_features_are_off_from_the_start(self):
        status, said = self.set("features", "--start", self.copy, PROGRAM, "waits=off", "bus=off")
        self.assertEqual(status, 0, said)
        self.assertIn("waits off", said)
        run = self.run_device(self.copy)
        self.assertIn("waits off", self.set("features", run)[1])
        self.assertNotIn(b"waiting", self.hangscope("why", "--stall", "0.2", "--elf", PROGRAM, run).out)

    def test_what_cannot_be_is_told_and_nothing_written(self):
        for words, why in ((("delay", "--start", self.copy, PROGRAM, "writer", "write=5"), "cores have numbers alone"),
                           (("delay", "--start", PROGRAM, PROGRAM, "4", "write=5"), "is the program itself"),
                           (("delay", "--start", self.copy, PROGRAM, "20", "write=5"), "20"),
                           (("delay", "--start", self.copy, PROGRAM, "4"), "no delay is given"),
                           (("pause", "--start", self.copy, PROGRAM, "4"), "is for a target that runs"),
                           (("delay", "--cores-of", "x", PROGRAM, "4", "write=5"), "--cores-of is for --start")):
            status, said = self.set(*words)
            self.assertEqual(status, 2, said)
            self.assertIn(why, said)
        plain = pathlib.Path(FIRMWARE) / "rv32-device-without-frames.elf"
        status, said = self.set("delay", "--start", self.copy, plain, "4", "write=5")
        self.assertEqual(status, 3)
        self.assertIn("HANGSCOPE_START_SETTINGS=1", said)
        self.assertFalse(self.copy.exists())


if __name__ == "__main__":
    main()
