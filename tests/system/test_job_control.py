"""hangscope run in an interactive shell with job control: what a key, a job's command or the end of the terminal does to a
program, it does behind hangscope, too."""
import os
import pathlib
import select
import signal
import sys
import time

from support import HANGSCOPE, main
from terminal import TerminalCase

ASK = "sh -c 'stty -echo; stty echo; echo read''y; read x; echo got $x; exit 9'"


class Shell(TerminalCase):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "file"
        self.addCleanup(self.end_all)

    def end_all(self):
        for pid in self.ours():
            os.kill(pid, signal.SIGKILL)

    def open_shell(self):
        self.prompts = 0
        self.start("bash", "--norc", "--noprofile", "-i", columns=1000)
        self.expect_prompt()

    def expect_prompt(self):
        self.prompts += 1
        self.expect(b"shell> ", times=self.prompts)

    def assert_not_shown(self, text):
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.seen += os.read(self.terminal, 65536)
        self.assertNotIn(text, self.seen)

    def enter(self, line):
        self.press(line.encode() + b"\n")

    def run_line(self, program, *options):
        return f"{HANGSCOPE} run {' '.join(options or ('--heartbeat', '0'))} --prefix {self.prefix} -- {program}"

    def ours(self):
        """All processes that have this test's folder in their command: hangscope, its guards, programs that are told of a file."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.fsencode(str(self.folder)) in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def ticker(self):
        """A program that writes on and on."""
        return f"sh -c 'while :; do echo tick >> {self.file}; sleep 0.02; done'"

    def ticks(self):
        return self.file.stat().st_size if self.file.exists() else 0

    def until_ticks(self):
        before = self.ticks()
        self.until(lambda: self.ticks() > before, what="the program goes on")

    def assert_stands_still(self):
        self.until(lambda: (before := self.ticks(), time.sleep(0.2), self.ticks() == before)[-1], what="the program stands still")


class Reading(Shell):
    """A program that reads the terminal and sets its modes is not stopped for it."""

    def test_into_a_pipe(self):
        self.open_shell()
        self.enter(self.run_line(ASK) + " | cat; echo status ${PIPESTATUS[0]}")
        self.expect(b"ready")
        self.enter("word")
        self.expect(b"got word")
        self.expect(b"status 9")

    def test_into_a_file(self):
        self.open_shell()
        self.enter(self.run_line(f"sh -c 'stty -echo; stty echo; read x; echo got $x; exit 9'") + f" > {self.file}; echo status $?")
        self.enter("word")
        self.expect(b"status 9")
        self.assertEqual(self.file.read_text(), "got word\n")

    def test_in_a_pipeline_through_its_terminal(self):
        self.open_shell()
        self.enter("echo piped | " + self.run_line("sh -c 'cat; echo read''y; read x < /dev/tty; echo got $x'"))
        self.expect(b"ready")
        self.enter("word")
        self.expect(b"got word")

    def test_in_the_background_it_waits_for_fg(self):
        self.open_shell()
        self.enter(self.run_line("sh -c 'read x; echo got $x; exit 9'") + " &")
        self.until(lambda: self.ours(), what="hangscope runs")
        time.sleep(0.3)  # until the program has asked for its line, and was stopped for it
        self.enter("")
        self.expect(b"Stopped")
        self.enter("fg; echo status $?")
        self.enter("word")
        self.expect(b"got word")
        self.expect(b"status 9")


class Keys(Shell):
    def stop_and_go(self, tail, *options):
        self.open_shell()
        self.enter(self.run_line(self.ticker(), *options) + tail)
        self.until_ticks()
        self.press(b"\x1a")
        self.expect(b"Stopped")
        self.assert_stands_still()
        self.enter("bg")
        self.until_ticks()
        self.enter("fg")
        self.until_ticks()
        self.press(b"\x03")
        self.enter("echo the $((40+2)) shell")
        self.expect(b"the 42 shell")
        self.until(lambda: not self.ours(), what="all have ended")

    def test_ctrl_z_bg_fg_and_ctrl_c(self):
        self.stop_and_go("")

    def test_ctrl_z_bg_fg_and_ctrl_c_into_a_pipe(self):
        self.stop_and_go(" | cat")

    def test_ctrl_z_leaves_a_program_alone_that_does_not_want_it(self):
        self.open_shell()
        self.enter(self.run_line(f"sh -c 'trap \"\" TSTP; while :; do echo tick >> {self.file}; sleep 0.02; done'") + " | cat")
        self.until_ticks()
        self.press(b"\x1a")
        self.assert_not_shown(b"Stopped")
        self.until_ticks()
        self.press(b"\x03")
        self.expect_prompt()

    def test_ctrl_c_comes_once(self):
        for tail in ("", " | cat"):
            self.open_shell()
            self.enter(self.run_line(f"sh -c 'trap \"echo caught >> {self.file}\" INT; echo read''y; sleep 0.3; sleep 0.3; echo end >> {self.file}'") +
                       tail)
            self.expect(b"ready")
            self.press(b"\x03")
            self.until(lambda: self.file.exists() and "end" in self.file.read_text(), what="the program's end")
            self.assertEqual(self.file.read_text(), "caught\nend\n")
            self.file.unlink()

    def test_ctrl_c_twice_ends_the_wait_for_a_descendant_at_once(self):
        # A shell without job control has its background commands ignore Ctrl-C.
        for tail in ("", " | cat"):
            self.open_shell()
            code = f"import signal, sys; signal.signal(2, signal.SIG_IGN); open(sys.argv[1], \\\"w\\\"); signal.pause()"
            self.enter(self.run_line(f"sh -c '{sys.executable} -c \"{code}\" {self.file} & exit 3'") + tail + "; echo status ${PIPESTATUS[0]}")
            self.until(self.file.exists)
            self.assert_not_shown(b"status 3")
            self.press(b"\x03")
            self.assert_not_shown(b"status 3")
            self.press(b"\x03")
            self.expect(b"status 3")
            self.end_all()
            self.file.unlink()


class Closing(Shell):
    """The terminal is closed: bash and the kernel send SIGHUP, and SIGCONT to who is stopped."""

    def close_terminal(self, tail, stop=False):
        self.open_shell()
        self.enter(self.run_line(self.ticker()) + tail)
        self.until_ticks()
        if stop:
            self.press(b"\x1a")
            self.expect(b"Stopped")
            self.assert_stands_still()
        os.close(self.terminal)
        self.until(lambda: not self.ours(), what="all have ended")

    def test_ends_the_program(self):
        self.close_terminal("")

    def test_ends_the_program_into_a_pipe(self):
        self.close_terminal(" | cat")

    def test_ends_a_stopped_program(self):
        self.close_terminal("", stop=True)

    def test_ends_a_stopped_program_into_a_pipe(self):
        self.close_terminal(" | cat", stop=True)

    def test_a_stopped_program_hears_of_it_from_hangscope(self):
        """Without a terminal, too, SIGHUP and SIGTERM end a program that is stopped."""
        for number in (signal.SIGHUP, signal.SIGTERM):
            process = self.recorder("run", "--", "sh", "-c", f"echo $$; kill -STOP $$; : {self.folder}")
            child = int(process.stdout.readline())
            self.until(lambda: ") T " in pathlib.Path(f"/proc/{child}/stat").read_text())
            process.send_signal(number)
            self.assertEqual(self.wait(process).status, 128 + number)


class Waiting(Shell):
    def test_the_live_line_says_who_is_waited_for(self):
        self.open_shell()
        self.enter(self.run_line("sh -c 'sleep 61 & exit 3'", "--heartbeat", "1") + "; echo status $?")
        self.expect(b"the program ended with status 3; waiting for sleep (process ")
        self.expect(b"), which still holds its output")
        self.press(b"\x03")
        self.assert_not_shown(b"status 3\r\n")
        self.press(b"\x03")
        self.expect(b"status 3\r\n")


if __name__ == "__main__":
    main()
