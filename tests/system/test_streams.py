"""The streams of hangscope run: any descriptor, a pseudo terminal, line buffers."""
import os
import select
import signal
import subprocess
import sys
import threading
import time

from support import HANGSCOPE, SANITIZED, Case, main, python
from terminal import TerminalCase, set_size, state

# Prints through the C library, a block at a time if to a pipe, while its input goes on.
ECHO_LINES = ["grep", "."]


class Streams(Case):
    def assert_same(self, got, expected):
        """Of long ones unittest would search for the difference for minutes."""
        if got == expected:
            return
        at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
        self.fail(f"{len(got)} bytes, not {len(expected)}; from {at} on: {got[at:at + 40]}, not {expected[at:at + 40]}")


class Descriptors(Streams):
    def test_recorded_byte_for_byte(self):
        code = ("import os,sys\nsys.stdout.write('text\\n'); sys.stdout.flush()\n"
                "data=bytes(range(256))*12000\nwhile data: data=data[os.write(3, data):]")
        outcome = self.run_program(python(code), "--capture", "stdout,stderr,fd:3")
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, b"text\n", b""))
        self.assert_same(self.cat(self.prefix, "--stream", "fd3"), bytes(range(256)) * 12000)
        self.assertEqual(self.cat(self.prefix + ".stdout"), b"text\n")
        self.assertIn("fd3", [s["name"] for s in outcome.last["streams"]])

    def test_whatever_its_number_the_child_has_it_and_none_of_ours(self):
        # Among these numbers are those of hangscope's own ends of the pipes.
        code = ("import os,sys\nn=int(sys.argv[1])\nos.write(n, b'three')\n"
                "print({*map(int, os.listdir('/proc/self/fd'))} - {0, 1, 2, n})")
        for number in [*range(3, 40, 6 if SANITIZED else 1), 200]:
            outcome = self.run_program(python(code, number), "--capture", f"stdout,stderr,fd:{number}")
            self.assertEqual((outcome.status, outcome.err), (0, b""), number)
            self.assertEqual(self.cat(f"{self.prefix}.fd{number}"), b"three")
            self.assertRegex(outcome.out, rb"^\{\d+\}\n$")  # the listing's own

    def test_several_at_once(self):
        numbers = (3, 4, 5, 6, 7, 11, 200)
        code = "import os\nfor n in (1, 2, %s): os.write(n, b'to %%d' %% n)" % ",".join(map(str, numbers))
        outcome = self.run_program(python(code), "--capture", ",".join(["stdout", "stderr", *(f"fd:{n}" for n in numbers)]))
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, b"to 1", b"to 2"))
        for number in numbers:
            self.assertEqual(self.cat(f"{self.prefix}.fd{number}"), b"to %d" % number)

    def test_passed_on_to_the_descriptor_of_that_number_if_hangscope_has_it(self):
        words = ["--", "sh", "-c", "echo three >&3; echo four >&4"]
        reader, writer = os.pipe()

        def prepare():
            os.dup2(writer, 3)
            os.set_inheritable(3, True)
        process = self.recorder("run", "--capture", "fd:3,fd:4", *words, preexec_fn=prepare, close_fds=False)
        os.close(writer)
        outcome = self.wait(process)
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, b"", b""))
        with os.fdopen(reader, "rb") as passed_on:
            self.assertEqual(passed_on.read(), b"three\n")
        self.assertEqual(self.cat(self.prefix + ".fd3"), b"three\n")
        self.assertEqual(self.cat(self.prefix + ".fd4"), b"four\n")

    def test_one_that_the_program_closes_early(self):
        outcome = self.run_program(["sh", "-c", "echo a >&3; exec 3>&-; sleep 0.3; echo b; exit 5"], "--capture", "stdout,fd:3")
        self.assertEqual((outcome.status, outcome.out), (5, b"b\n"))
        self.assertEqual(self.cat(self.prefix + ".fd3"), b"a\n")

    def test_one_that_an_orphan_holds_is_waited_for(self):
        outcome = self.run_program(["sh", "-c", "(exec >&- 2>&-; sleep 0.7; echo late >&3) & exit 6"], "--capture", "stdout,fd:3")
        self.assertEqual(outcome.status, 6)
        self.assertEqual(self.cat(self.prefix + ".fd3"), b"late\n")

    def test_standard_descriptors_that_the_caller_closed(self):
        for options, ring in ((("--capture", "stdout,fd:3"), "fd3"), (("--pty", "--capture", "stdout,fd:3"), "fd3")):
            process = self.recorder("run", *options, "--", "sh", "-c", "echo out; echo three >&3",
                                    preexec_fn=lambda: os.closerange(0, 3))
            self.assertEqual(self.wait(process).status, 0)
            self.assertEqual(self.cat(self.prefix, "--stream", "stdout"), b"out\n")
            self.assertEqual(self.cat(self.prefix, "--stream", ring), b"three\n")

    def test_what_is_no_stream_is_told(self):
        for words, reason in ((("--capture", "fd:0"), b"from 3 on"), (("--capture", "fd:"), b"from 3 on"),
                              (("--capture", "fd:3x"), b"from 3 on"), (("--capture", "fd:99999999"), b"ulimit"),
                              (("--capture", "fd:99999999999"), b"from 3 on"),
                              (("--capture", "stdout,"), b"the streams are"), (("--pty", "--capture", "stderr"), b"recorded with"),
                              (("--pty", "--capture", "fd:3"), b"the terminal is stdout")):
            outcome = self.run_program(["true"], *words)
            self.assertEqual(outcome.status, 125, words)
            self.assertRegex(outcome.err, b"hangscope: error: .*" + reason)


class Buffers(Streams):
    """When does a line arrive that the program printed, while the program goes on?"""

    def appears(self, *options):
        """Feeds the program a line; whether it comes out before the program ends."""
        process = self.recorder("run", *options, "--", *ECHO_LINES, stdin=subprocess.PIPE)
        process.stdin.write(b"a line\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], 15 if options else 0.7)
        process.stdin.close()
        process.stdin = None
        outcome = self.wait(process)
        self.assertEqual((outcome.status, outcome.out), (0, b"a line\n"))
        self.assertEqual(self.cat(self.prefix), b"a line\n")
        return bool(ready)

    def test_at_the_end_where_the_c_library_has_a_pipe(self):
        self.assertFalse(self.appears())

    def test_at_once_on_a_pseudo_terminal(self):
        self.assertTrue(self.appears("--pty"))

    def test_at_once_with_line_buffers(self):
        self.assertTrue(self.appears("--line-buffered"))

    def test_line_buffered_program_is_the_child_itself(self):
        process = self.recorder("run", "--line-buffered", "--", "sh", "-c", "echo $PPID; exec sleep 5")
        self.assertEqual(int(process.stdout.readline()), process.pid)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.wait(process).status, 128 + signal.SIGTERM)

    def test_line_buffered_without_stdbuf_is_told(self):
        empty = self.folder / "empty"
        empty.mkdir()
        outcome = self.run_program(["/bin/true"], "--line-buffered", env={"PATH": str(empty)})
        self.assertEqual(outcome.status, 125)
        self.assertRegex(outcome.err, b"--line-buffered needs the command stdbuf .package coreutils.")

    def test_exit_statuses(self):
        for option in ("--pty", "--line-buffered"):
            for program, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137),
                                    (["/nonexistent/program"], 127), ([str(self.folder)], 126)):
                self.assertEqual(self.run_program(program, option).status, status, (option, program))


class Pty(Streams):
    """A pseudo terminal for the program; ours is none."""

    def test_output_comes_as_it_was_written(self):
        data = bytes(range(256)) * 400
        code = "import os\ndata=bytes(range(256))*400\nwhile data: data=data[os.write(1, data):]"
        outcome = self.run_program(python(code), "--pty")
        self.assertEqual(outcome.status, 0)
        self.assert_same(outcome.out, data)
        self.assert_same(self.cat(self.prefix), data)

    def test_stderr_is_on_it_too_and_stdin_stays(self):
        code = ("import os,sys\nprint([os.isatty(n) for n in (0,1,2)], os.get_terminal_size(1), flush=True)\n"
                "print('err', file=sys.stderr)\nprint(sys.stdin.read(), end='')")
        process = self.recorder("run", "--pty", "--", *python(code), stdin=subprocess.PIPE)
        process.stdin.write(b"input\n")
        process.stdin.close()
        process.stdin = None
        outcome = self.wait(process)
        expected = b"[False, True, True] os.terminal_size(columns=80, lines=24)\nerr\ninput\n"
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, expected, b""))
        self.assertEqual(self.cat(self.prefix), expected)
        self.assertEqual([p.name for p in self.folder.glob("ring.stderr*")], [])

    def test_program_that_closes_it_goes_on(self):
        outcome = self.run_program(["sh", "-c", "echo one; exec >&- 2>&-; sleep 0.5; exit 5"], "--pty")
        self.assertEqual((outcome.status, outcome.out), (5, b"one\n"))

    def test_orphans_are_waited_for(self):
        outcome = self.run_program(["sh", "-c", "(sleep 0.7; echo late) & echo early; exit 3"], "--pty")
        self.assertEqual((outcome.status, outcome.out), (3, b"early\nlate\n"))

    def test_hang_is_found_and_ended(self):
        code = "print('working'); import threading; l=threading.Lock(); l.acquire(); l.acquire()"
        outcome = self.run_program([sys.executable, "-c", code], "--pty", "--stall", 1, "--on-hang", "kill")
        self.assertEqual(outcome.status, 124)
        self.assertEqual(outcome.hangs[0]["state"], "starved")

    def test_reader_that_pauses_holds_the_program_up_and_is_no_hang(self):
        for options in (("--pty",), ("--capture", "stdout,fd:3")):
            process = self.recorder("run", *options, "--stall", 1, "--on-hang", "kill", "--",
                                    "sh", "-c", "seq 300000; echo end")
            time.sleep(2.5)
            self.assertIsNone(process.poll())
            outcome = self.wait(process)
            expected = b"".join(b"%d\n" % i for i in range(1, 300001)) + b"end\n"
            self.assertEqual((outcome.status, outcome.hangs), (0, []))
            self.assert_same(outcome.out, expected)
            self.assert_same(self.cat(self.prefix, "--stream", "stdout"), expected)


class Terminal(TerminalCase):
    """A person at a terminal: what they type reaches the program, and what it does to the terminal ends with it."""

    def run_on_pty(self, *program, **size):
        self.start(HANGSCOPE, "run", "--pty", "--heartbeat", "0", "--prefix", self.prefix, "--", *program, **size)

    def test_window_has_the_size_of_ours_and_follows_it(self):
        self.run_on_pty(*python("import os,signal\nsize=lambda *a: print(*os.get_terminal_size(1))\n"
                                "signal.signal(signal.SIGWINCH, size); size()\nwhile True: signal.pause()"), rows=33, columns=101)
        self.expect(b"101 33")
        set_size(self.terminal, 50, 132)
        self.expect(b"132 50")
        self.press(b"\x03")
        self.assertEqual(self.wait_for_end(), -signal.SIGINT)  # as the program was

    def test_what_is_typed_reaches_the_program_by_lines(self):
        self.run_on_pty(sys.executable, "-c", "import sys\nprint('ready')\nfor line in sys.stdin: print('got', repr(line))\nprint('end')")
        self.expect(b"ready")
        self.press(b"helo\x7flo\n")  # with a correction: the line editor is the terminal's
        self.expect(b"got 'hello\\n'")
        self.press(b"\x04")
        self.assertEqual(self.wait_for_end(), 0)
        self.assertIn(b"end", self.seen)
        self.assertIn(b"got 'hello\\n'\n", self.cat(self.prefix))

    def test_ctrl_c_reaches_the_program_and_the_modes_come_back(self):
        self.start("sh", "-c", f"stty -a; {HANGSCOPE} run --pty --heartbeat 0 --prefix {self.prefix} -- sh -c "
                   "'trap \"echo caught; exit 9\" INT; echo ready; while :; do sleep 0.1; done'; echo status $?; stty -a; echo done")
        self.expect(b"ready\r\n")
        self.press(b"\x03")
        self.expect(b"done\r\n")
        self.assertEqual(self.wait_for_end(), 0)
        self.assertIn(b"caught\r\n", self.seen)
        self.assertIn(b"status 9\r\n", self.seen)
        before, after = [part[:part.index(b"-extproc")] for part in self.seen.split(b"speed ")[1:]]
        self.assertEqual(before, after)

    def stop_and_continue(self, *options, background=False):
        """Ctrl-Z and fg in a shell with job control; the shell runs a script, the script runs hangscope."""
        script, number = self.folder / "script", self.folder / "number"
        script.write_text(f"#!/bin/sh\n{HANGSCOPE} run {' '.join(options)} --heartbeat 0 --prefix {self.prefix} -- "
                          f"sh -c 'echo $$ > {number}; echo ready; read x; echo read $x; exit 9'\necho status $?\n")
        script.chmod(0o755)
        self.start("sh", "-i")
        self.expect(b"shell> ")
        self.press(f"{script}\n".encode())
        self.expect(b"ready")
        self.press(b"\x1a")
        self.expect(b"shell> ", times=2)
        # The shell waits for its own child alone: who reads behind that may still get the next key, with hangscope or without.
        self.until(lambda: state(int(number.read_text())) == "T", what="the program is stopped")
        self.press(b"echo the $((40+2)) shell\n")
        self.expect(b"the 42 shell")
        if background:
            self.press(b"bg\n")
            self.press(b"echo still the $((40+2)) shell\n")
            self.expect(b"still the 42 shell")
        self.press(b"fg\n")
        self.press(b"word\n")
        self.expect(b"read word")
        self.expect(b"status 9")
        self.press(b"exit\n")
        self.wait_for_end()

    def test_ctrl_z_gives_the_shell_back_and_fg_continues(self):
        self.stop_and_continue()

    def test_ctrl_z_with_a_pseudo_terminal(self):
        # In the background it reads no key; without its own terminal the program would be stopped for that.
        self.stop_and_continue("--pty", background=True)

    def test_in_the_background_it_leaves_the_terminal_alone(self):
        for option in ("", "--pty"):
            self.start("sh", "-i")
            self.expect(b"shell> ")
            self.press(f"{HANGSCOPE} run {option} --heartbeat 0 --prefix {self.prefix} -- "
                       "sh -c 'sleep 0.5; echo background' &\n".encode())
            self.press(b"echo the $((40+2)) shell\n")
            self.expect(b"the 42 shell")
            while b"background\r\n" not in self.seen:
                self.assertEqual(os.tcgetpgrp(self.terminal), self.pid)
                if select.select([self.terminal], [], [], 0.02)[0]:
                    self.seen += os.read(self.terminal, 65536)
            self.press(b"wait; echo waited $((40+2))\n")
            self.expect(b"waited 42")
            self.press(b"exit\n")
            self.wait_for_end()


if __name__ == "__main__":
    main()
