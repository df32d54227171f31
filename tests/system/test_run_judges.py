"""When hangscope run acts: on which hangs, how sure of them, and what it writes when it learns better."""
import json
import os
import pathlib
import platform
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

from support import BUILD, HANGSCOPE, SANITIZED, Case, main, python

STALL = 0.5
BEGIN = "import ctypes,itertools,os,sys,threading,time\nnumber=itertools.count()\n" \
        "libc,lock=ctypes.CDLL(None),ctypes.create_string_buffer(64)\ntake=lambda: libc.pthread_mutex_lock(lock)\n"
SLEEPS = ["sh", "-c", "echo working; exec sleep 60"]
# A thread waits for itself, for certain; the first one prints on, for so many seconds, and then waits for that thread's lock.
TICKS_BESIDE = BEGIN + ("threading.Thread(target=lambda: take() or take(), daemon=True).start()\nend=time.time()+float(sys.argv[1])\n"
                        "while time.time()<end: print('tick', next(number)); time.sleep(0.05)\ntake()")
# The same beside one that computes, without a word.
COMPUTES_BESIDE = BEGIN + "threading.Thread(target=lambda: take() or take(), daemon=True).start()\nprint('working', flush=True)\nwhile True: next(number)"
# On a stack of its own, as green threads have: where it began cannot be seen.
ON_ANOTHER_STACK = BEGIN + """import mmap
code, stack = (mmap.mmap(-1, 1 << 16, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) for _ in range(2))
at = lambda memory: ctypes.addressof(ctypes.c_char.from_buffer(memory))
# push %rbx; push %rbp; mov %rsp, %rbx; mov %rdx, %rsp; xor %ebp, %ebp; call *%rsi; mov %rbx, %rsp; pop %rbp; pop %rbx; ret
code.write(bytes.fromhex("53 55 4889e3 4889d4 31ed ffd6 4889dc 5d 5b c3"))
call = ctypes.CFUNCTYPE(ctypes.c_int, *3 * [ctypes.c_void_p])(at(code))
take = lambda: call(ctypes.addressof(lock), ctypes.cast(libc.pthread_mutex_lock, ctypes.c_void_p), at(stack) + len(stack))
"""
SERVER = "import socket\nserver=socket.create_server(('127.0.0.1',0))\nprint('listening')\nserver.accept()"
SIGNAL_NEVER_COMES = "import threading\nprint('working')\nlock=threading.Lock()\nlock.acquire()\nlock.acquire()"  # likely


def until_gate(step):
    """Does `step` until a file is there, and then waits for itself."""
    return BEGIN + f"print('working', os.getpid())\nwhile not os.path.exists(sys.argv[1]): {step}\ntake()\ntake()"


class JudgesCase(Case):
    def setUp(self):
        super().setUp()
        self.junit, self.gate = self.folder / "hang.xml", self.folder / "gate"

    def watch(self, program, *options, stall=STALL):
        return self.recorder("run", "--stall", stall, "--heartbeat", 0.1, "--junit", self.junit, *options, "--", *program)

    def run_watched(self, program, *options, stall=STALL):
        return self.wait(self.watch(program, *options, stall=stall))

    def failure(self):
        found = xml.etree.ElementTree.parse(self.junit).getroot().find("testcase/failure")
        return None if found is None else found.attrib["message"]

    def manifest(self):
        folder, = self.snapshots()
        return json.loads((folder / "manifest.json").read_text())

    def beats(self, state):
        return [m for m in self.messages() if m["type"] == "heartbeat" and m["state"] == state]


class ActOn(JudgesCase):
    def test_possible_ends_what_may_go_on(self):
        outcome = self.run_watched(SLEEPS, "--on-hang", "kill", "--act-on", "possible")
        self.assertEqual(outcome.status, 124)
        self.assertEqual((outcome.last["state"], outcome.last["confidence"], outcome.last["hang"]), ("silent", "possible", False))
        self.assertEqual(self.manifest()["trigger_kind"], "hang")
        self.assertRegex(self.failure(), "^hang: silent")

    def test_certain_reports_a_likely_hang_and_leaves_it_alone(self):
        outcome = self.run_watched(python(SIGNAL_NEVER_COMES), "--on-hang", "kill", "--act-on", "certain", "--timeout", 4)
        self.assertEqual((outcome.status, len(outcome.hangs)), (124, 1))
        self.assertEqual(outcome.last["confidence"], "likely")
        self.assertTrue([m for m in outcome.of_type("note") if "(--timeout)" in m["text"]], outcome.messages)
        self.assertRegex(self.failure(), "^hang: lost wakeup")

    def test_certain_ends_a_certain_hang(self):
        outcome = self.run_watched(python(until_gate("break"), self.gate), "--on-hang", "kill", "--act-on", "certain")
        self.assertEqual((outcome.status, outcome.last["state"], outcome.last["confidence"]), (124, "deadlock", "certain"))

    def test_partial_ends_what_goes_on_in_part(self):
        outcome = self.run_watched(python(TICKS_BESIDE, 60), "--on-hang", "kill", "--act-on", "likely,partial", stall=1)
        self.assertEqual((outcome.status, outcome.last["state"]), (124, "partial"))

    def test_without_partial_it_goes_on(self):
        outcome = self.run_watched(python(TICKS_BESIDE, 60), "--on-hang", "kill", "--timeout", 4, stall=1)
        verdict, = outcome.hangs
        self.assertEqual((verdict["state"], verdict["findings"][0]["kind"], verdict["findings"][0]["source"]), ("partial", "deadlock", "threads"))
        self.assertTrue([m for m in outcome.of_type("note") if "(--timeout)" in m["text"]], outcome.messages)

    def test_says_no_word_of_on_hang_that_was_not_given(self):
        outcome = self.run_watched(python(TICKS_BESIDE, 60), "--timeout", 2)
        self.assertEqual(outcome.hangs[0]["state"], "partial")
        self.assertEqual([line for line in outcome.hangs[0]["evidence"] if "--on-hang" in line], [])

    @unittest.skipIf(pathlib.Path(BUILD).name == "tsan", "ThreadSanitizer ends a side process that starts a thread")
    def test_partial_is_told_and_acted_on_once_however_often_it_is_looked_at_again(self):
        said = self.folder / "said"
        outcome = self.run_watched(python(COMPUTES_BESIDE), "--act-on", "likely,partial", "--on-hang", f"exec:echo acts >> {said}", "--timeout", 8 if SANITIZED else 3)
        self.assertEqual([verdict["state"] for verdict in outcome.hangs], ["partial"], outcome.messages)
        self.assertEqual([m for m in outcome.of_type("note") if "it goes on again" in m["text"]], [])
        self.assertEqual((outcome.status, said.read_text()), (124, "acts\n"))

    @unittest.skipIf(platform.machine() != "x86_64", "its machine code is x86-64's")
    @unittest.skipIf(pathlib.Path(BUILD).name == "tsan", "ThreadSanitizer ends a side process that starts a thread")
    def test_a_look_does_not_wake_who_waits(self):
        code = COMPUTES_BESIDE.replace(BEGIN, ON_ANOTHER_STACK)
        outcome = self.run_watched(python(code), "--act-on", "likely,partial", "--on-hang", "kill", "--timeout", 8 if SANITIZED else 4)
        self.assertEqual([verdict["state"] for verdict in outcome.hangs], ["partial"], outcome.messages)

    def test_other_words_are_refused_in_one_sentence(self):
        for option, word, reason in (("--act-on", "maybe", "possible, likely or certain, and partial"), ("--act-on", "", "possible, likely"),
                                     ("--act-on", "likely,", "possible, likely"), ("--act-on", "Certain", "possible, likely"),
                                     ("--timeout", "0", "the least is 1ms"), ("--timeout", "soon", "not a time"),
                                     ("--expect-output", "0", "the least is 1ms"), ("--expect-output", "-1", "not a time|negative")):
            with self.subTest(f"{option} {word}"):
                outcome = self.hangscope("run", option, word, "--", "true")
                self.assertEqual((outcome.status, outcome.err.count(b"\n")), (125, 1), outcome.err)
                self.assertRegex(outcome.err.decode(), f"^hangscope: error: {option} '{word}': .*({reason}).*; for example ")


class ExpectedOutput(JudgesCase):
    def test_silence_is_a_hang_where_output_is_expected(self):
        outcome = self.run_watched(SLEEPS, "--on-hang", "kill", "--expect-output", 1.2)
        self.assertEqual((outcome.status, outcome.last["state"], outcome.last["confidence"]), (124, "silent", "likely"))
        self.assertEqual(outcome.last["summary"], "silent, where output is expected every 1.2 s")
        self.assertGreaterEqual(outcome.last["for_s"], 1.1)

    def test_what_prints_in_time_is_left_alone(self):
        outcome = self.run_watched(["sh", "-c", "for i in 1 2 3 4; do echo $i; sleep 0.7; done"], "--on-hang", "kill", "--expect-output", 1.5)
        self.assertEqual((outcome.status, outcome.hangs), (0, []))


class Server(JudgesCase):
    def test_that_waits_for_a_connection_is_idle(self):
        outcome = self.run_watched(python(SERVER), "--on-hang", "kill", "--timeout", 3)
        self.assertEqual((outcome.status, outcome.hangs, outcome.last["state"]), (124, [], "idle"))
        self.assertRegex(outcome.last["summary"], r"^idle, \d+ python3.* waits for a connection to tcp 127.0.0.1:\d+")
        self.assertEqual(self.manifest()["trigger_kind"], "timeout")

    def test_hangs_where_nobody_will_come(self):
        outcome = self.run_watched(python(SERVER), "--on-hang", "kill", "--closed")
        self.assertEqual((outcome.status, outcome.last["state"], outcome.last["confidence"]), (124, "silent", "likely"))
        self.assertRegex(outcome.last["evidence"][-1], r"waits for a connection to tcp .*, and nobody will come \(--closed\)$")


    def test_is_left_alone_while_another_thread_sleeps(self):
        code = SERVER.replace("server.accept()", "threading.Thread(target=lambda: (time.sleep(3), os._exit(7))).start()\nserver.accept()")
        outcome = self.run_watched(python(BEGIN + code), "--on-hang", "kill", "--closed")
        self.assertEqual((outcome.status, outcome.hangs), (7, []))


class Timeout(JudgesCase):
    def test_ends_the_program_with_all_that_is_known(self):
        outcome = self.run_watched(SLEEPS, "--timeout", 1.5)
        self.assertEqual((outcome.status, outcome.hangs), (124, []))
        manifest = self.manifest()
        self.assertEqual((manifest["trigger_kind"], manifest["verdict"]["state"]), ("timeout", "silent"))
        self.assertGreaterEqual(manifest["verdict"]["elapsed_s"], 1.2)
        self.assertIn("will wake", (self.snapshots()[0] / "report.txt").read_text())
        self.assertRegex(self.failure(), "^timed out: silent, ")

    def test_takes_no_snapshot_where_none_is_wanted(self):
        outcome = self.run_watched(SLEEPS, "--timeout", 1, "--on-hang", "none")
        self.assertEqual((outcome.status, self.snapshots()), (124, []))

    def test_kills_what_ignores_sigterm(self):
        outcome = self.run_watched(["sh", "-c", "trap '' TERM; echo working; while :; do sleep 1; done"], "--timeout", 1)
        self.assertEqual(outcome.status, 124)

    def test_means_nothing_to_what_ends_before(self):
        outcome = self.run_watched(["sh", "-c", "echo done; exit 3"], "--timeout", 20)
        self.assertEqual((outcome.status, outcome.last["state"], self.failure()), (3, "finished", None))
        self.assertEqual([m for m in outcome.of_type("note") if "timeout" in m["text"]], [])



class BetterVerdict(JudgesCase):
    """First one thread hangs while another prints, and later that one, too."""

    def assert_superseded(self, outcome):
        self.assertEqual([verdict["state"] for verdict in outcome.hangs], ["partial", "deadlock"], outcome.messages)
        self.assertTrue([line for line in outcome.hangs[1]["evidence"] if line.startswith("instead of: deadlock")], outcome.hangs[1])
        manifest = self.manifest()
        self.assertEqual((manifest["verdict"]["state"], manifest["trigger_kind"]), ("deadlock", "hang"))
        report = (self.snapshots()[0] / "report.txt").read_text()
        self.assertIn("instead of: deadlock", report)
        self.assertNotIn("partial", report)
        self.assertRegex(self.failure(), "^hang: deadlock, ")

    def test_ends_the_run_and_is_what_was_written(self):
        outcome = self.run_watched(python(TICKS_BESIDE, 3), "--on-hang", "kill", stall=1)
        self.assertEqual(outcome.status, 124)
        self.assert_superseded(outcome)
        self.assertGreater(outcome.hangs[1]["elapsed_s"], 3)

    def test_is_acted_on_once(self):
        said = self.folder / "said"
        outcome = self.run_watched(python(TICKS_BESIDE, 3), "--act-on", "likely,partial", "--on-hang", f"exec:echo acts >> {said}", "--timeout", 7, stall=1)
        self.assertEqual((outcome.status, said.read_text()), (124, "acts\n"))
        self.assert_superseded(outcome)


# Stops each thread of a process as a debugger does, twice, and lets it go again.
ATTACHES = """import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
for pause in (0, 0.7):
    threads = [int(thread) for thread in os.listdir(f"/proc/{os.environ['HANGSCOPE_PID']}/task")]
    for thread in threads:
        libc.ptrace(16, thread, None, None) and sys.exit(f"attach: {os.strerror(ctypes.get_errno())}")
        os.waitpid(thread, 0x40000000)
    time.sleep(pause)
    for thread in threads:
        libc.ptrace(17, thread, None, None)
    time.sleep(0.4)
print("attached", len(threads), flush=True)
"""


class Attach(JudgesCase):
    """A debugger that --on-hang starts wakes the threads, and they wait on."""

    def run_with(self, code, hook, *options):
        said = self.folder / "said"
        outcome = self.run_watched(python(code), *options, "--on-hang", f"exec:({hook}) >> {said} 2>&1", "--timeout", 15 if SANITIZED else 4)
        return outcome, said.read_text() if said.exists() else ""

    def assert_told_once(self, code, *options, state):
        script = self.folder / "attach.py"
        script.write_text(ATTACHES)
        outcome, said = self.run_with(code, f"exec python3 {script}", *options)
        if "not permitted" in said:
            self.skipTest("only a parent may attach here: " + said)
        self.assertRegex(said, r"\Aattached \d+\n\Z")
        self.assertEqual([verdict["state"] for verdict in outcome.hangs], [state], outcome.messages)
        self.assertEqual([m["text"] for m in outcome.of_type("note") if "it goes on again" in m["text"]], [])

    def test_a_deadlock_is_told_once(self):
        self.assert_told_once(BEGIN + "threading.Thread(target=lambda: take() or take()).start()\ntime.sleep(0.1)\ntake()", state="deadlock")

    def test_a_part_stays_a_part_while_the_rest_is_stopped(self):
        self.assert_told_once(TICKS_BESIDE.replace("sys.argv[1]", "60"), "--act-on", "likely,partial", state="partial")

    def test_missing_output_is_told_once(self):
        self.assert_told_once("import time\ntime.sleep(60)", "--expect-output", 1, state="silent")

    def test_a_stop_and_a_signal_to_go_on_end_no_hang(self):
        outcome, _ = self.run_with(SIGNAL_NEVER_COMES, "kill -STOP $HANGSCOPE_PID; sleep 0.7; kill -CONT $HANGSCOPE_PID")
        self.assertEqual([verdict["state"] for verdict in outcome.hangs], ["starved"], outcome.messages)

    def test_what_goes_on_meanwhile_is_told(self):
        at = repr(str(self.folder / "socket"))
        script = self.folder / "connect.py"
        script.write_text(f"import socket, time\nclient = socket.socket(socket.AF_UNIX)\nclient.connect({at})\ntime.sleep(1.5)")
        code = f"import socket, time\nserver = socket.socket(socket.AF_UNIX)\nserver.bind({at})\nserver.listen()\nserver.accept()\nwhile True: time.sleep(0.01)"
        outcome, _ = self.run_with(code, f"exec python3 {script}", "--closed")
        self.assertEqual([verdict["state"] for verdict in outcome.hangs], ["silent"], outcome.messages)
        self.assertTrue([m for m in outcome.of_type("note") if "it goes on again" in m["text"]], outcome.messages)


class SlowOutput(JudgesCase):
    def test_goes_on_beside_a_hang(self):
        code = TICKS_BESIDE.replace("sleep(0.05)", "sleep(0.6)").removesuffix("take()") + "os._exit(7)"
        stall, lasts = (3, 9) if SANITIZED else (1, 5)
        outcome = self.run_watched(python(code, lasts), "--on-hang", "kill", stall=stall)
        self.assertEqual((outcome.status, [verdict["state"] for verdict in outcome.hangs]), (7, ["partial"]))


class LeftAlone(JudgesCase):
    """What does not move because it cannot, or moves out of sight, is left alone, and its hang is found afterwards."""

    def start(self, step):
        process = self.watch(python(until_gate(step), self.gate), "--on-hang", "kill")
        return process, int(process.stdout.readline().split()[1])

    def assert_only_then_hangs(self, process, states=("deadlock",)):
        self.assertIsNone(process.poll(), self.messages()[-2:])
        self.assertEqual([m for m in self.messages() if m["type"] == "verdict"], [])
        self.gate.touch()
        outcome = self.wait(process)
        self.assertEqual((outcome.status, len(outcome.hangs)), (124, 1))
        self.assertIn(outcome.hangs[0]["state"], states)

    def test_program_that_computes(self):
        process, _ = self.start("sum(range(9999))")
        self.until(lambda: self.beats("silent"), what="it is seen to be silent")
        time.sleep(3 * STALL)
        self.assert_only_then_hangs(process)

    def test_program_that_is_stopped(self):
        process, child = self.start("print('tick', next(number)); time.sleep(0.05)")
        os.kill(child, signal.SIGSTOP)
        self.until(lambda: self.beats("silent"), what="it is seen to be silent")
        time.sleep(3 * STALL)
        self.assertEqual({beat["confidence"] for beat in self.beats("silent")}, {"possible"})
        os.kill(child, signal.SIGCONT)
        self.assert_only_then_hangs(process)

    def stop_recorder(self, step):
        # What it sees at first is as old as the stall time several times over.
        process, _ = self.start(step)
        self.until(lambda: self.beats("progressing"), what="a heartbeat")
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(4 * STALL)
        before = len(self.messages())
        os.kill(process.pid, signal.SIGCONT)
        self.until(lambda: len(self.messages()) > before + 5, what="five heartbeats")
        self.assert_only_then_hangs(process)

    def test_recorder_that_was_stopped_beside_a_talker(self):
        self.stop_recorder("print('tick', next(number)); time.sleep(0.05)")

    def test_recorder_that_was_stopped_beside_one_who_computes(self):
        self.stop_recorder("sum(range(9999))")


    def test_recorder_that_was_stopped_where_output_is_expected(self):
        process = self.watch(python(until_gate("print('tick', next(number)); time.sleep(0.05)"), self.gate), "--on-hang", "kill", "--expect-output", 2)
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(1)
        # Where the sanitizers make looks slow, the output may be missed first.
        self.assert_only_then_hangs(process, ("deadlock", "silent") if SANITIZED else ("deadlock",))

    def test_recorder_that_was_stopped_in_a_look(self):
        process, _ = self.start("sum(range(9999))")

        def children():
            return {child for task in os.listdir(f"/proc/{process.pid}/task") for child in
                    open(f"/proc/{process.pid}/task/{task}/children").read().split()}
        guards = children()
        self.until(lambda: children() - guards, what="a look")
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(process.pid, signal.SIGCONT)
        self.gate.touch()
        self.assertEqual((self.wait(process, timeout=40).status), 124)


class Heartbeat(Case):
    def test_says_why_nothing_is_done(self):
        done = subprocess.run([HANGSCOPE, "run", "--stall", str(STALL), "--on-hang", "kill", "--heartbeat", "0.2", "--timeout", "2", "--prefix", self.prefix,
                               "--", *SLEEPS], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 124)
        self.assertRegex(done.stderr, r"(?m)^hangscope: \d.*  possible: silent, child asleep in \w+: \d+ sleep sleeps for a set time and will wake; no action$")

    def test_says_why_nothing_is_done_about_a_part(self):
        done = subprocess.run([HANGSCOPE, "run", "--stall", "1", "--on-hang", "kill", "--heartbeat", "0.3", "--timeout", "3", "--prefix", self.prefix,
                               "--", *python(TICKS_BESIDE, 60)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertRegex(done.stderr, r"(?m)^hangscope: \d.*  partial: deadlock, a thread waits for itself.*; no action")
        self.assertIn("\n  others go on, so --on-hang does nothing without --act-on partial\n", done.stderr)


if __name__ == "__main__":
    main()
