"""Logs that are no instruction trace: what repeats for ever is told, what works is left alone."""
import os
import subprocess

from support import DATA, HANGSCOPE, Case, main, python

# Prints a log at a pace, with the time stamps of now; then its last lines again and again.
REPLAY = r"""
import re, sys, time
lines = open(sys.argv[1]).read().splitlines()
last, pause = int(sys.argv[2]), float(sys.argv[3])
start = time.time()
number = 0
def say(line):
    global number
    number += 1
    line = re.sub(r'^\[ *[0-9.]+\]', lambda m: '[%12.6f]' % (time.time() - start + 1), line)
    print(re.sub(r'^\d{6} ', lambda m: '%06d ' % number, line), flush=True)
    time.sleep(pause)
for line in lines:
    say(line)
while last and time.time() < start + 30:
    for line in lines[-last:]:
        say(line)
"""
CORES = r"^\d+ (?P<core>pe\d+): state=(?P<place>\w+)"


class Logs(Case):
    def replay(self, name, last, pause=0.02):
        return python(REPLAY, DATA / name, last, pause)

    def hang(self, program, *options):
        outcome = self.run_program(program, "--stall", 1, "--on-hang", "kill", *options)
        self.assertEqual(outcome.status, 124, outcome.messages[-1:])
        verdict, = outcome.hangs
        self.assertEqual((verdict["state"], verdict["confidence"]), ("looping", "likely"))
        return verdict

    def texts(self, core):
        return [place["text"] for place in core["loop"]["places"]]


class Hangs(Logs):
    def test_boot_log_in_a_retry_loop(self):
        verdict = self.hang(self.replay("boot-retry-hang.log", 2), "--heartbeat", 0.2)
        self.assertEqual(verdict["summary"], "looping, stdout repeats the same 2 log lines")
        core, = verdict["cores"]
        self.assertEqual((core["name"], core["stream"], core["state"]), ("stdout", "stdout", "looping"))
        self.assertEqual(self.texts(core), ["[ <time>] eth0: waiting for link",
                                            "[ <time>] eth0: no link after <n> s, retry"])
        self.assertEqual(core["loop"]["basis"], "lines")
        self.assertNotIn("pc", core)
        self.assertGreater(core["loop"]["rounds"], 5)
        self.assertFalse(core["loop"]["at_least"])
        self.assertGreaterEqual(core["for_s"], 1)
        self.assertTrue(any("these are log lines" in doubt for doubt in verdict["doubts"]), verdict["doubts"])
        report = (self.snapshots()[0] / "report.txt").read_text()
        self.assertIn("the loop of stdout, in order:\n  [ <time>] eth0: waiting for link\n", report)

    def test_fast_loop(self):
        code = "print('begin')\nwhile True: print('waiting for link eth0... retry')"
        verdict = self.hang(["timeout", "20", *python(code)], "--no-passthrough", "--size", "4M", "--keep", 1)
        self.assertEqual(self.texts(verdict["cores"][0]), ["waiting for link eth0... retry"])

    def test_test_runner_that_waits_for_a_lock(self):
        verdict = self.hang(self.replay("runner-hang.log", 2))
        self.assertEqual(self.texts(verdict["cores"][0]),
                         ["server not reachable on port <n>", "still holding lock db-main, trying again"])

    def test_cores_by_a_rule(self):
        verdict = self.hang(self.replay("cores-hang.log", 5), "--place-regex", CORES)
        self.assertEqual(verdict["summary"], "looping, 3 of 3 cores repeat their places")
        cores = {core["name"]: core for core in verdict["cores"]}
        self.assertEqual(sorted(cores), ["pe0", "pe1", "pe2"])
        self.assertEqual(self.texts(cores["pe1"]), ["NOC_POLL", "NOC_YIELD"])
        self.assertEqual(self.texts(cores["pe2"]), ["CB_WAIT"])
        self.assertEqual(cores["pe0"]["loop"]["basis"], "places")

    RETRIES = "import time\nprint('begin')\nfor i in range(9999): print('link down, retry', i); time.sleep(0.03)"

    def test_retries_that_count_are_a_hang_only_where_a_rule_says_what_counts(self):
        self.hang(python(self.RETRIES), "--place-regex", "^(?P<place>link down)")

    def test_tee_tells_it_too(self):
        program = subprocess.Popen(self.replay("boot-retry-hang.log", 2), stdout=subprocess.PIPE)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        process = self.recorder("tee", "--stall", 1, stdin=program.stdout)
        self.until(lambda: any(m["type"] == "verdict" and m["hang"] for m in self.messages()))
        program.kill()
        outcome = self.wait(process)
        self.assertEqual(outcome.status, 1)
        self.assertEqual(outcome.hangs[0]["summary"], "looping, stdin repeats the same 2 log lines")

    def test_text_of_the_target_is_escaped(self):
        code = "import time\nprint('begin')\nwhile True: print('wait \\x9b2J\\u202e \\x1b[31mhere'); time.sleep(0.03)"
        done = subprocess.run([HANGSCOPE, "run", "--prefix", self.prefix, "--stall", "1", "--on-hang", "kill", "--no-passthrough",
                               "--heartbeat", "0.2", "--junit", self.folder / "j.xml", "--", *python(code)],
                              capture_output=True, timeout=30, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
        self.assertEqual(done.returncode, 124)
        self.assertIn(b'"wait \\xc2\\x9b2J\\xe2\\x80\\xae', done.stderr)
        for text in (done.stderr, (self.folder / "j.xml").read_bytes()):
            self.assertNotIn(b"\xc2\x9b", text)
            self.assertNotIn(b"\x1b", text)


class Rules(Case):
    def test_wrong_ones_are_told_with_the_reason_and_an_example(self):
        for rule, reason in (("a(b", b"missing \\)"), ("abc", b"has no group"), ("(?P<plaec>x)", b"'plaec' is neither")):
            for command, words, status in (("run", ["--", "true"], 125), ("tee", [], 2)):
                outcome = self.hangscope(command, "--prefix", self.prefix, "--place-regex", rule, *words, stdin=b"")
                self.assertEqual(outcome.status, status)
                self.assertRegex(outcome.err, b"hangscope: error: --place-regex '.*" + reason + b".*; for example --place-regex")
                self.assertEqual(outcome.err.count(b"\n"), 1)


class Controls(Logs):
    """Several stall times of what is no hang raise nothing."""

    def assert_left_alone(self, program, *options):
        outcome = self.run_program(program, "--stall", 0.5, "--on-hang", "kill", "--heartbeat", 0.1, *options)
        self.assertEqual(outcome.status, 0, outcome.messages[-2:])
        self.assertEqual(outcome.hangs, [])
        self.assertEqual(self.snapshots(), [])
        return outcome

    def loops_seen(self, outcome):
        return [m for m in outcome.of_type("heartbeat") if m["state"] == "looping"]

    def test_boot_log_that_goes_on(self):
        outcome = self.assert_left_alone(self.replay("boot-retry-progress.log", 0, 0.1))
        self.assertEqual(self.loops_seen(outcome), [])

    def test_test_runner_that_goes_on(self):
        outcome = self.assert_left_alone(self.replay("runner-progress.log", 0, 0.1))
        self.assertEqual(self.loops_seen(outcome), [])

    def test_numbered_tests(self):
        self.assert_left_alone(python("import time\nfor i in range(60): print('test', i, '... ok'); time.sleep(0.05)"))

    def test_compile_log(self):
        self.assert_left_alone(python(
            "import time\nfor i in range(60): print('[%3d%%] Building CXX object src/part%s.o' % (i, 'abcdefg'[i % 7])); time.sleep(0.05)"))

    def test_retries_that_count(self):
        code = "import time\nprint('begin')\nfor i in range(100): print('link down, retry', i); time.sleep(0.03)"
        outcome = self.assert_left_alone(python(code))
        self.assertEqual({m["confidence"] for m in self.loops_seen(outcome)}, {"possible"})

    def test_progress_bar(self):
        # Also one that shows the same for long, and one whose frames end as lines.
        for frame in ("'\\r%3d%%' % i", "'\\r|/-\\\\'[i % 5]", "'\\rloading |\\rloading /\\n'", "'.'"):
            self.assert_left_alone(python(
                f"import sys,time\nprint('begin')\nfor i in range(80): sys.stdout.write({frame}); sys.stdout.flush(); time.sleep(0.03)"))

    def test_line_that_repeats_while_others_come(self):
        code = ("import time\nfor i in range(80):\n print('alive')\n"
                " if i % 7 == 0: print('work', chr(97 + i // 7))\n time.sleep(0.03)")
        self.assert_left_alone(python(code))

    def test_sign_of_life_that_came_before_and_goes_on(self):
        code = ("import time\nfor i in range(40):\n print('alive')\n if i % 5 == 0: print('work', chr(97 + i // 5))\n time.sleep(0.02)\n"
                "for i in range(60): print('alive'); time.sleep(0.05)")
        outcome = self.assert_left_alone(python(code))
        self.assertEqual({m["confidence"] for m in self.loops_seen(outcome)}, {"possible"})

    def test_program_that_never_says_anything_else(self):
        outcome = self.assert_left_alone(python("import time\nfor i in range(60): print('tick'); time.sleep(0.05)"))
        self.assertEqual({m["confidence"] for m in self.loops_seen(outcome)}, {"possible"})

    def test_listing_of_folders(self):
        self.assert_left_alone(["sh", "-c", "ls -R /usr/lib /usr/share; ls -R /usr/lib; sleep 1"], "--no-passthrough")

    def test_other_stream_that_works(self):
        code = ("import sys,time\nprint('begin')\nfor i in range(80):\n print('waiting')\n"
                " sys.stderr.write('word' + chr(97 + i % 26) + chr(97 + i // 26) + '\\n')\n time.sleep(0.03)")
        self.assert_left_alone(python(code))

    def test_core_that_works(self):
        code = ("import time\nfor i in range(80):\n print('000001 pe0: state=WAIT')\n"
                " print('000001 pe1: state=s%d' % i)\n time.sleep(0.03)")
        outcome = self.assert_left_alone(python(code), "--place-regex", CORES)
        states = {core["name"]: core["state"] for core in outcome.of_type("heartbeat")[-1]["cores"]}
        self.assertEqual(states, {"pe0": "looping", "pe1": "progressing"})

    def test_pause_that_was_got_over_before(self):
        # It waited for 0.8 s twice and went on; then 1.6 s are not yet too long.
        code = ("import time\nfor n in (16, 16, 32):\n print('connecting', chr(97 + n))\n"
                " for i in range(n): print('waiting for peer'); time.sleep(0.05)\n print('connected')")
        outcome = self.run_program(python(code), "--stall", 1, "--on-hang", "kill", "--heartbeat", 0.1)
        self.assertEqual((outcome.status, outcome.hangs), (0, []))

    def test_huge_lines_and_binary_output(self):
        code = ("import os,sys,time\no=sys.stdout.buffer\nfor i in range(8):\n o.write(b'x' * 10_000_000 + b'\\n')\n"
                " o.write(os.urandom(3_000_000)); o.flush(); time.sleep(0.2)")
        self.assert_left_alone(python(code), "--no-passthrough", "--size", "8M", "--keep", 1)


if __name__ == "__main__":
    main()
