"""The file of the observed program: written to in place, searched for debug information, taken apart by libdw."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading

from support import HANGSCOPE, Case, main

SPIN = """
volatile int flag;
int first(void) { while (!flag) { } return 1; }
int second(void) { while (!flag) { } return 2; }
int main(void) { return first() + second(); }
"""
# A trace as Spike prints it: each argument two places and the seconds to go round between them.
TRACE = """
import sys, time
for words in sys.argv[1:]:
    first, last, seconds = words.split(",")
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        for _ in range(50):
            for pc in (first, last):
                print(f"core   0: 0x{int(pc, 16):016x} (0x0000a001) c.j")
        sys.stdout.flush()
        time.sleep(0.02)
"""


class ProgramsFile(Case):
    def build(self, *options):
        if shutil.which("gcc") is None:
            self.skipTest("gcc is not installed")
        source = self.folder / "spin.c"
        source.write_text(SPIN)
        elf = self.folder / "fw.elf"
        subprocess.run(["gcc", "-g", "-O1", "-no-pie", *options, "-o", elf, source], check=True, cwd=self.folder)
        symbols = subprocess.run(["nm", elf], capture_output=True, text=True, check=True).stdout
        self.places = {name: int(re.search(rf"^(\w+) T {name}$", symbols, re.M)[1], 16) for name in ("first", "second")}
        return elf

    def trace(self, *rounds):
        return [sys.executable, "-c", TRACE,
                *(f"{self.places[name]:x},{self.places[name] + 6:x},{seconds}" for name, seconds in rounds)]

    def start(self, elf, *rounds):
        process = self.recorder("run", "--elf", elf, "--stall", "0.4", "--heartbeat", "0.2", "--", *self.trace(*rounds))
        self.until(lambda: self.hangs(), what="the first hang")
        return process

    def hangs(self):
        return [m for m in self.messages() if m["type"] == "verdict" and m["hang"]]

    def notes(self, text):
        return [m for m in self.messages() if text in m.get("text", "")]

    def change_while_watched(self, change):
        elf = self.build()
        process = self.start(elf, ("first", 1.2), ("second", 1.6))
        change(elf)
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("first", str(outcome.hangs[0]))
        self.assertIn("second", str(outcome.hangs[1]))  # looked up after the change
        self.assertIn("spin.c", str(outcome.hangs[1]))
        changed = self.notes("was changed since the start")
        self.assertEqual(len(changed), 1, outcome.messages)

    def test_cut_short_in_place(self):
        self.change_while_watched(lambda elf: os.truncate(elf, 0))

    def test_overwritten_by_another_build(self):
        """Of the same size, as a rebuild may be: names stay those of the build that was started."""
        self.change_while_watched(lambda elf: elf.write_bytes(elf.read_bytes().replace(b"second\0", b"SECOND\0")))

    def test_removed_is_not_changed(self):
        elf = self.build()
        process = self.start(elf, ("first", 1.2))
        elf.unlink()
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(self.notes("was changed"), [])

    def test_its_reader_is_killed_and_the_recording_goes_on(self):
        elf = self.build()
        process = self.start(elf, ("first", 1.2), ("second", 3))
        readers = [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/comm")
                   if self.read(path) == "elf-reader\n" and f"PPid:\t{process.pid}\n" in self.read(path.parent / "status")]
        self.assertEqual(len(readers), 1, readers)
        os.kill(readers[0], signal.SIGSEGV)
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(len(outcome.hangs), 2, outcome.hangs)
        self.assertIn(f"{self.places['second']:x}", str(outcome.hangs[1]))  # without a name
        said = self.notes("cannot be read further")
        self.assertEqual(len(said), 1, outcome.messages)
        self.assertIn("its reader", said[0]["text"])

    @staticmethod
    def read(path):
        try:
            return path.read_text()
        except OSError:
            return ""

    def server(self):
        """A debuginfod that hangs up at once; the list of who asked."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        asked = []

        def accept():
            try:
                while True:
                    asked.append(listener.accept()[1])
            except OSError:
                return

        threading.Thread(target=accept, daemon=True).start()
        os.environ["DEBUGINFOD_URLS"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        os.environ["DEBUGINFOD_TIMEOUT"] = "2"
        os.environ["DEBUGINFOD_CACHE_PATH"] = str(self.folder / "cache")
        return asked

    def without_debug_information(self):
        elf = self.build("-Wl,--build-id")
        subprocess.run(["strip", elf], check=True)
        return elf

    def test_no_server_is_asked_and_no_descriptor_leaks(self):
        elf = self.without_debug_information()
        asked = self.server()
        outcome = self.run_program(["sh", "-c", "ls -l /proc/self/fd; exec " + " ".join(
            ["sleep", "0.8"])], "--elf", elf)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(asked, [])
        open_files = re.findall(rb" (\d+) -> (\S+)", outcome.out)
        self.assertEqual([name for number, name in open_files if int(number) > 3], [], outcome.out)
        # and of places that have no name
        process = self.start(elf, ("first", 1.0))
        self.assertEqual(self.wait(process).status, 0)
        self.assertEqual(asked, [])

    def test_why_asks_a_server_when_it_is_told_to(self):
        elf = self.without_debug_information()
        asked = self.server()
        process = subprocess.Popen([elf])
        self.addCleanup(self.end, process)
        for options in ([], ["--debuginfod"]):
            outcome = self.hangscope("why", *options, f"pid:{process.pid}")
            self.assertIn(b"1 thread", outcome.out)
            self.assertEqual(len(asked) > 0, bool(options), asked)

    def test_debug_information_beside_the_program_is_found_by_its_link(self):
        elf = self.build("-Wl,--build-id=none")
        subprocess.run(["objcopy", "--only-keep-debug", "fw.elf", "fw.debug"], check=True, cwd=self.folder)
        subprocess.run(["strip", "-g", "fw.elf"], check=True, cwd=self.folder)
        subprocess.run(["objcopy", "--add-gnu-debuglink=fw.debug", "fw.elf"], check=True, cwd=self.folder)
        outcome = self.wait(self.start(elf, ("first", 1.0)))
        self.assertIn("spin.c", str(outcome.hangs[0]))
        # Another build's, with another checksum, is not taken.
        with open(self.folder / "fw.debug", "ab") as file:
            file.write(b"\0")
        self.log.unlink()
        outcome = self.wait(self.start(elf, ("first", 1.0)))
        self.assertNotIn("spin.c", str(outcome.hangs[0]))

    def test_what_is_no_file_is_refused_at_once(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for path, word in ((pipe, "a pipe"), (self.folder, "a folder"), ("/dev/zero", "a device")):
            outcome = self.hangscope("run", "--prefix", self.prefix, "--elf", path, "--", "true", timeout=10)
            self.assertNotEqual(outcome.status, 0)
            self.assertIn(word.encode(), outcome.err)


if __name__ == "__main__":
    main()
