"""hangscope run in an interactive shell with job control: what a key, a job's command or the end of the terminal does to a
program, it does behind hangscope, too."""
import os
import pathlib
import select
import signal
import sys
import time

from support import HANGSCOPE, main
from terminal import TerminalCase, state

ASK = "sh -c 'stty -echo; stty echo; echo read''y; read x; echo got $x; exit 9'"


class Shell(TerminalCase):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "file"
        self.addCleanup(self.end_all)

    def end_all(self):
        for pid in self.ours():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended
        self.until(lambda: not self.ours(), what="all have ended")

    def open_shell(self):
        self.prompts = 0
        self.start("bash", "--norc", "--noprofile", "-i", columns=1000)
        self.expect_prompt()

    def expect_prompt(self):
        self.prompts += 1
        self.expect(b"shell> ", times=self.prompts)

    def drain(self, time_s=0.1):
        end = time.monotonic() + time_s
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.seen += os.read(self.terminal, 65536)

    def assert_not_shown(self, text):
        self.drain(0.3)
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

    def children(self):
        """Those of hangscope that are not its guards."""
        found = []
        for pid in self.ours():
            try:
                found += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
            except OSError:
                pass
        return set(found) - set(self.ours())

    def ticker(self):
        """A program that writes on and on, without children: a shell that has just begun one (vfork) does not stop."""
        script = self.folder / "ticker.py"
        script.write_text("import signal, sys, time\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nwhile True:\n    open(sys.argv[1], 'a').write('tick')\n    time.sleep(0.02)\n")
        return f"{sys.executable} -S {script} {self.file}"

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
        self.enter(self.run_line(ASK) + " | cat; echo result ${PIPESTATUS[0]}")
        self.expect(b"ready")
        self.enter("word")
        self.expect(b"got word")
        self.expect(b"result 9")

    def test_into_a_file(self):
        self.open_shell()
        self.enter(self.run_line(f"sh -c 'stty -echo; stty echo; read x; echo got $x; exit 9'") + f" > {self.file}; echo result $?")
        self.enter("word")
        self.expect(b"result 9")
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
        self.until(lambda: "T" in map(state, self.ours()), what="hangscope is stopped, as its program is")
        self.until(lambda: (self.enter("jobs"), self.drain(), b"Stopped" in self.seen)[-1], what="the shell knows")
        self.enter("fg; echo result $?")
        self.enter("word")
        self.expect(b"got word")
        self.expect(b"result 9")


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
        self.until(lambda: os.tcgetpgrp(self.terminal) != self.pid, what="fg")
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
        self.enter(self.run_line(f"sh -c 'trap \"\" TSTP; exec {self.ticker()}'") + f" > {self.folder}/out")
        self.until_ticks()
        self.press(b"\x1a")
        self.assert_not_shown(b"Stopped")
        self.until_ticks()
        self.press(b"\x03")
        self.expect_prompt()

    def test_ctrl_c_ends_a_loop_of_the_shell(self):
        """It gives up where what it waits for was ended by the key, and would go round otherwise."""
        self.open_shell()
        self.enter("for i in 1 2; do echo round-$i; " + self.run_line("sleep 30") + "; done; echo b''ehind")
        self.expect(b"round-1\r\n")
        self.until(lambda: self.children(), what="the program")
        time.sleep(0.1)
        self.press(b"\x03")
        self.expect_prompt()
        self.assert_not_shown(b"round-2\r\n")

    def test_ctrl_c_ends_a_script(self):
        script = self.folder / "script.sh"
        script.write_text(f"echo be''gun\n{self.run_line('sleep 30')}\necho be''hind\n")
        self.open_shell()
        self.enter(f"sh {script}")
        self.expect(b"begun")
        self.until(lambda: any("sleep" in pathlib.Path(f"/proc/{pid}/comm").read_text() for pid in self.children()), what="the program")
        self.press(b"\x03")
        self.expect_prompt()
        self.assert_not_shown(b"behind")

    def test_ctrl_c_ends_a_program_in_a_group_of_its_own(self):
        """As timeout makes one, where it is not the first of its group already."""
        self.open_shell()
        self.enter(self.run_line("timeout 30 sleep 30") + " | cat")
        self.until(lambda: len(self.children()) > 0, what="the program")
        time.sleep(0.2)
        self.press(b"\x03")
        self.expect_prompt()

    def test_a_stop_that_is_meant_for_the_program_alone_stops_nobody_else(self):
        self.open_shell()
        self.enter(self.run_line(self.ticker()) + "; echo en''ded")
        self.until_ticks()
        program = next(pid for pid in self.ours() if "ticker.py" in (words := pathlib.Path(f"/proc/{pid}/cmdline").read_text()) and "hangscope" not in words.split("\0")[0])
        os.kill(program, signal.SIGSTOP)
        self.assert_stands_still()
        os.kill(program, signal.SIGCONT)
        self.until_ticks()
        os.kill(program, signal.SIGSTOP)
        os.kill(program, signal.SIGKILL)
        self.expect(b"ended")

    def test_ctrl_c_comes_once(self):
        for tail in ("", " | cat"):
            self.open_shell()
            self.enter(self.run_line(f"sh -c 'trap \"echo caught >> {self.file}\" INT; echo read''y; sleep 0.3; sleep 0.3; echo end >> {self.file}'") +
                       tail)
            self.expect(b"ready")
            self.press(b"\x03")
            self.until(lambda: self.file.exists() and "end" in self.file.read_text(), what="the program's end")
            self.assertEqual(self.file.read_text(), "caught\nend\n")
            self.end_all()
            self.file.unlink()

    def test_ctrl_c_twice_ends_the_wait_for_a_descendant_at_once(self):
        # A shell without job control has its background commands ignore Ctrl-C.
        for tail in ("", " | cat"):
            self.open_shell()
            code = "import signal, sys; signal.signal(2, signal.SIG_IGN); open(sys.argv[1], \\\"w\\\"); signal.pause()"
            self.enter(self.run_line(f"sh -c '{sys.executable} -c \"{code}\" {self.file} & exit 3'") + tail)
            self.until(lambda: self.file.exists() and "Z" in map(state, self.children()), what="the program's end")
            self.assert_not_shown(b"finished after")
            self.press(b"\x03")
            self.assert_not_shown(b"finished after")
            self.press(b"\x03")
            self.expect(b"ended with status 3")
            self.expect_prompt()
            self.end_all()
            self.file.unlink()


class Closing(Shell):
    """The terminal is closed: bash and the kernel send SIGHUP, and SIGCONT to who is stopped."""

    def close_terminal(self, tail, *options, stop=False):
        self.open_shell()
        self.enter(self.run_line(self.ticker(), "--heartbeat", "0", *options) + tail)
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

    def test_ends_a_program_that_has_its_own_terminal(self):
        self.close_terminal("", "--pty")

    def test_ends_a_stopped_program_that_has_its_own_terminal(self):
        self.close_terminal("", "--pty", stop=True)

    def test_ends_the_program_of_a_session_that_hangscope_leads(self):
        # As ssh -t does: the kernel tells the session's leader, and nobody else.
        self.start("sh", "-c", f"exec {self.run_line(self.ticker())} > {self.folder}/out")
        self.until_ticks()
        os.close(self.terminal)
        self.until(lambda: not self.ours(), what="all have ended")

    def test_ends_a_stopped_program(self):
        self.close_terminal("", stop=True)

    def test_ends_a_stopped_program_into_a_pipe(self):
        self.close_terminal(" | cat", stop=True)

    def test_a_stopped_program_hears_of_it_from_hangscope(self):
        """Without a terminal, too, SIGHUP and SIGTERM end a program that is stopped."""
        for number in (signal.SIGHUP, signal.SIGTERM):
            process = self.recorder("run", "--", "sh", "-c", f"echo $$; kill -STOP $$; : {self.folder}")
            child = int(process.stdout.readline())
            self.until(lambda: state(child) == "T", what="the program is stopped")
            process.send_signal(number)
            self.assertEqual(self.wait(process).status, 128 + number)


class Waiting(Shell):
    def test_the_live_line_says_who_is_waited_for(self):
        self.open_shell()
        self.enter(self.run_line("sh -c 'sleep 61 & exit 3'", "--heartbeat", "1") + "; echo result $?")
        self.expect(b"the program ended with status 3; waiting for sleep (process ")
        self.expect(b"), which still holds its output")
        self.press(b"\x03")
        self.assert_not_shown(b"result 3\r\n")
        self.press(b"\x03")
        self.expect(b"result 3\r\n")


if __name__ == "__main__":
    main()
