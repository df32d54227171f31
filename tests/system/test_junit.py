"""hangscope run --junit: what a CI system shows of a run that failed."""
import os
import re
import textwrap
import xml.etree.ElementTree

from support import Case, main, python


class Junit(Case):
    def outcome(self, code, *options, expect):
        """The testcase of a run of this Python program."""
        path = self.folder / "j.xml"
        outcome = self.run_program(python(textwrap.dedent(code)), "--stall", 0.5, "--junit", path, *options)
        self.assertEqual(outcome.status, expect, outcome.err)
        self.run = outcome
        return xml.etree.ElementTree.parse(path).getroot().find("testcase")

    def text(self, case, tag):
        found = case.find(tag)
        return None if found is None else found.text

    def test_hang_tells_who_where_and_what_was_done(self):
        case = self.outcome("""
            import sys, threading
            a, b, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
            for n in range(300): print("line", n)
            print("\\x1b[1mbold & <tag> \\x01", end="", flush=True)
            sys.stderr.write("one\\ntwo\\n")
            def take(first, second):
                with first:
                    both.wait()
                    with second: pass
            other = threading.Thread(target=take, args=(b, a))
            other.start()
            take(a, b)""", "--on-hang", "kill", expect=124)
        failure = case.find("failure")
        summary, first, process = re.fullmatch(r"hang: ([^:]+): (.*)  \(process (\d+ python.*)\)", failure.attrib["message"]).groups()
        self.assertEqual(summary, self.run.hangs[-1]["summary"])
        self.assertRegex(first, r"^\d+ python3? .* waits? ")
        self.assertIn(first, failure.text)
        self.assertRegex(process, r"^\d+ python[\d.]*: \S*python[\d.]* .*-c ")
        self.assertRegex(failure.text, r"\n\nstack of \d+ python[\d.]*, of process " + re.escape(process[:20]) + r"(.*\n)+  .*PyThread_acquire_lock_timed")
        self.assertRegex(failure.text, r"^hangscope: HANG after .*\n")
        self.assertRegex(failure.text, r"\n  ended by hangscope \(--on-hang kill\): process \d+ python[\d.]*, which ended with signal 15 \(Terminated\)\n\n")
        self.assertEqual(self.text(case, "system-out"), "".join(f"line {n}\n" for n in range(201, 300)) + "\\x1b[1mbold & <tag> \\x01")
        self.assertEqual(self.text(case, "system-err"), "one\ntwo\n")

    def test_of_a_stream_with_a_trace_there_is_what_was_printed_between(self):
        case = self.outcome("""
            import time
            print("block 4711 sent")
            step = "core   0: 0x8000000%x (0x00000013) nop\\n"
            while True:
                print("".join(step % (4 * (n % 3)) for n in range(300)), end="", flush=True)
                time.sleep(0.05)""", "--on-hang", "kill", "--timeout", 3, expect=124)
        self.assertEqual(self.text(case, "system-out"), "block 4711 sent\n")
        self.assertIn('last output: "block 4711 sent"  (stdout, ', case.find("failure").text)

    def test_timeout(self):
        case = self.outcome("""
            import time
            print("ticks", flush=True)
            while True: time.sleep(0.05)""", "--timeout", 1, expect=124)
        failure = case.find("failure")
        self.assertRegex(failure.attrib["message"], "^timed out: ")
        self.assertRegex(failure.text, r"\n  ended by hangscope \(--timeout\): process \d+ python")
        self.assertEqual(self.text(case, "system-out"), "ticks\n")

    def test_timeout_of_what_the_program_left_behind(self):
        """Who holds the output is ended; the program had ended by itself."""
        case = self.outcome("import subprocess, sys; subprocess.Popen(['sleep', '30']); sys.exit(3)", "--timeout", 0.5, expect=3)
        self.assertIn("status 3", case.find("error").attrib["message"])
        self.assertIsNone(case.find("failure"))

    def test_end_with_another_status_than_0(self):
        case = self.outcome("""
            import sys
            print("x" * 200000)
            print("y" * 60000)
            print("the last words", file=sys.stderr)
            sys.exit(3)""", expect=3)
        self.assertIn("status 3", case.find("error").attrib["message"])
        self.assertEqual(self.text(case, "system-out"), "y" * 60000 + "\n")
        self.assertEqual(self.text(case, "system-err"), "the last words\n")

    def test_line_longer_than_what_is_kept(self):
        case = self.outcome("import sys; print('x' * 200000); sys.exit(1)", expect=1)
        self.assertEqual(self.text(case, "system-out"), "x" * 65535 + "\n")

    def test_success_is_short(self):
        case = self.outcome("print('fine')", expect=0)
        self.assertEqual(list(case), [])

    def refused(self, *words, expect, **environment):
        """The error of a run that cannot begin, and what was printed."""
        path = self.folder / "j.xml"
        path.unlink(missing_ok=True)
        os.environ.update(environment)
        done = self.hangscope("run", *words)
        for name in environment:
            del os.environ[name]
        self.assertEqual(done.status, expect, done.err)
        suite = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual((suite.attrib["tests"], suite.attrib["errors"]), ("1", "1"))
        case = suite.find("testcase")
        return case.attrib["name"], case.find("error").attrib["message"], done.err.decode()

    def test_run_that_cannot_begin_is_an_error_with_the_reason(self):
        file = ("--junit", self.folder / "j.xml")
        prefix = ("--prefix", self.prefix)
        name, message, said = self.refused(*file, *prefix, "--", "no-such-program", "<a>", expect=127)
        self.assertEqual(name, "no-such-program <a>")
        self.assertEqual((message, "hangscope: error: " + message[len("not started: "):] + "\n"),
                         ("not started: cannot start 'no-such-program': No such file or directory", said))
        self.assertRegex(self.refused(*file, *prefix, "--", "/dev/null", expect=126)[1], "^not started: .*'/dev/null'")
        for words, reason in (((*file, "--stall", "soon", "--", "true"), "--stall 'soon': not a time"),
                              ((*file, "--stal=1", "--", "true"), "unknown option '--stal', did you mean '--stall'?"),
                              (("--stall", "1", "--stall", "2", f"--junit={file[1]}", "--", "true"), "--stall is given more than once"),
                              ((*file, *prefix, "--elf", "/nowhere", "--", "true"), "cannot open '/nowhere'"),
                              (file, "no program to run")):
            with self.subTest(reason):
                name, message, said = self.refused(*words, expect=125)
                self.assertEqual(message[:18], "hangscope failed: ")
                self.assertIn(reason, message)
                self.assertEqual(said, f"hangscope: error: {message[18:]}\n")
                self.assertEqual(name, "hangscope run" if words == file else "true")

    def test_name_of_the_case(self):
        case = self.outcome("print('fine')", "--junit-name", "boot & <run>\n\tagain", expect=0)
        self.assertEqual(case.attrib["name"], "boot & <run>\n\tagain")
        name, _, _ = self.refused("--junit", self.folder / "j.xml", "--junit-name", "boot", "--stall", "soon", "true", expect=125)
        self.assertEqual(name, "boot")

    def test_reason_names_the_variable_that_is_wrong(self):
        _, message, said = self.refused("true", expect=125, HANGSCOPE_OPT_JUNIT=str(self.folder / "j.xml"), HANGSCOPE_OPT_STALL="soon")
        self.assertIn("(HANGSCOPE_OPT_STALL sets it)", message)
        self.assertEqual(said, f"hangscope: error: {message[18:]}\n")


if __name__ == "__main__":
    main()
