"""hangscope run, the real binary with real processes."""
import ctypes
import os
import pathlib
import pty
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest
import xml.etree.ElementTree

from support import HANGSCOPE, SANITIZED, Case, main, python

OFFSETS = "import sys,struct\nn=int(sys.argv[1]); c=int(sys.argv[2])\nb=bytearray()\n" \
          "o=sys.stdout.buffer\nfor i in range(0,n,8):\n b+=struct.pack('<Q',i)\n" \
          " if len(b)>=c: o.write(b); o.flush(); b=bytearray()\no.write(b)"


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Status(Case):
    def test_is_the_programs_own(self):
        for status in (0, 1, 7, 255):
            self.assertEqual(self.run_program(["sh", "-c", f"exit {status}"]).status, status)

    def test_is_128_plus_the_signal(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            outcome = self.run_program(["sh", "-c", f"kill -{int(number)} $$"])
            self.assertEqual(outcome.status, 128 + number)
            self.assertEqual(outcome.last["state"], "dead")

    def test_is_127_where_there_is_no_such_program(self):
        outcome = self.run_program(["/nonexistent/program"])
        self.assertEqual(outcome.status, 127)
        self.assertIn(b"cannot start '/nonexistent/program': No such file", outcome.err)

    def test_is_126_where_it_cannot_be_executed(self):
        outcome = self.run_program([str(self.folder)])
        self.assertEqual(outcome.status, 126)
        self.assertIn(b"Permission denied", outcome.err)

    def test_is_125_for_wrong_options_with_the_reason_and_an_example(self):
        for words, reason in ((("--size", "0"), b"holds nothing"), (("--size", "-1"), b"negative"),
                              (("--size", "0.5"), b"less than one byte"), (("--keep", "0"), b"at least one"),
                              (("--size", "9999999999T"), b"larger than"), (("--stall", "x"), b"not a time"),
                              (("--size", "1K", "--keep", "1"), b"smallest"), (("--capture", "fd9"), b"stdout, stderr and fd:N"),
                              (("--on-hang", "explode"), b"snapshot, kill"), (("--elf", "/etc/passwd"), b"not an ELF")):
            outcome = self.run_program(["true"], *words)
            self.assertEqual(outcome.status, 125, words)
            self.assertRegex(outcome.err, b"hangscope: error: .*" + reason)
            if words[0] != "--elf":
                self.assertIn(b"for example", outcome.err)

    def test_missing_values_are_told(self):
        outcome = self.run_program([], "--stall")
        self.assertIn(b"--stall", outcome.err)

    def test_program_that_cannot_start_costs_no_earlier_recording(self):
        self.run_program(["echo", "precious"])
        self.assertEqual(self.run_program(["no-such-program"]).status, 127)
        self.assertEqual(self.cat(self.prefix), b"precious\n")

    def test_unknown_option_gets_a_suggestion(self):
        outcome = self.run_program(["true"], "--stal", "5")
        self.assertEqual(outcome.status, 125)
        self.assertIn(b"did you mean '--stall'?", outcome.err)


class Output(Case):
    def test_passes_through_and_is_recorded_stream_by_stream(self):
        outcome = self.run_program(["sh", "-c", "echo out; echo err >&2"])
        self.assertEqual((outcome.out, outcome.err), (b"out\n", b"err\n"))
        self.assertEqual(self.cat(self.prefix, "--stream", "stdout"), b"out\n")
        self.assertEqual(self.cat(self.prefix, "--stream", "stderr"), b"err\n")

    def test_only_what_was_asked_for_is_captured(self):
        outcome = self.run_program(["sh", "-c", "echo out; echo err >&2"], "--capture", "stderr")
        self.assertEqual((outcome.out, outcome.err), (b"out\n", b"err\n"))
        self.assertEqual(self.cat(self.prefix), b"err\n")

    def test_command_reaches_the_program_without_a_shell(self):
        outcome = self.run_program(python("import sys; print(sys.argv[1:])", "a b", "$HOME", "--", "*"))
        self.assertEqual(outcome.out, b"['a b', '$HOME', '--', '*']\n")

    def test_standard_input_is_the_programs(self):
        process = self.recorder("run", "--", "cat", stdin=subprocess.PIPE)
        process.stdin.write(b"hello\n")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.wait(process).out, b"hello\n")

    def test_window_is_byte_exact_and_the_bound_holds_at_every_instant(self):
        for chunk in (8, 4096, 1 << 20):
            bound = 2 * 256 * 1024
            done = threading.Event()
            peak = [0]

            def watch():
                while not done.is_set():
                    size = 0
                    for path in self.folder.glob("ring.stdout.*"):
                        try:
                            size += path.lstat().st_size
                        except FileNotFoundError:
                            pass
                    peak[0] = max(peak[0], size)
            watcher = threading.Thread(target=watch)
            watcher.start()
            total = 200_000 if chunk == 8 else 6_000_000
            outcome = self.run_program(python(OFFSETS, total, chunk), "--size", "256K", "--keep", 2,
                                       "--no-passthrough", "--capture", "stdout", "--compress", "none")
            done.set()
            watcher.join()
            self.assertEqual(outcome.status, 0)
            self.assertLessEqual(peak[0], bound)
            segments = self.raw_history()
            begin = total - len(segments)
            expected = b"".join(struct.pack("<Q", i) for i in range(begin - begin % 8, total, 8))[begin % 8:]
            self.assertEqual(segments, expected)
            if total > bound:
                self.assertGreaterEqual(len(segments), bound * 95 // 100)

    def test_closed_passthrough_does_not_end_the_program(self):
        marker = self.folder / "finished"
        process = self.recorder("run", "--", *python(
            "import sys,pathlib\nfor i in range(200000): print('line', i)\npathlib.Path(sys.argv[1]).touch()", marker))
        process.stdout.read(100)
        process.stdout.close()
        process.stdout = None
        self.assertEqual(self.wait(process).status, 0)
        self.assertTrue(marker.exists())
        self.assertTrue(self.cat(self.prefix).endswith(b"line 199999\n"))

    def test_standard_descriptors_that_the_caller_closed(self):
        def close_all():
            for fd in (0, 1, 2):
                os.close(fd)
        process = self.recorder("run", "--", "sh", "-c", "echo out; echo err >&2", preexec_fn=close_all)
        self.assertEqual(self.wait(process).status, 0)
        self.assertEqual(self.cat(self.prefix, "--stream", "stdout"), b"out\n")
        self.assertEqual(self.cat(self.prefix, "--stream", "stderr"), b"err\n")

    def terminal(self, program, *options):
        """What a person sees: stdout of the program on a terminal of its own."""
        leader, follower = self.open_terminal()
        process = self.recorder("run", *options, "--", *program, stdout=follower)
        os.close(follower)
        seen = b""
        while True:
            ready, _, _ = select.select([leader], [], [], 0.1)
            if ready:
                try:
                    data = os.read(leader, 65536)
                except OSError:
                    break
                if not data:
                    break
                seen += data
            elif process.poll() is not None:
                break
        os.close(leader)
        self.wait(process)
        return seen.replace(b"\r\n", b"\n")

    def test_recognised_trace_is_withheld_from_a_terminal(self):
        program = ["sh", "-c", "echo booting; for i in 1 2 3 4 5 6 7 8 9; do "
                   "echo 'core   0: 0x80000036 (0x00028023) sb      zero, 0(t0)'; done; echo bye; printf 'prompt> '; sleep 0.3"]
        self.assertEqual(self.terminal(program), b"booting\nbye\nprompt> ")
        self.assertIn(b"0x80000036", self.cat(self.prefix))

    def test_recognised_trace_reaches_a_pipe(self):
        line = b"core   0: 0x80000036 (0x00028023) sb      zero, 0(t0)\n"
        outcome = self.run_program(["sh", "-c", f"for i in 1 2 3; do echo '{line.decode().strip()}'; done"])
        self.assertEqual(outcome.out, line * 3)


class Processes(Case):
    def test_signals_reach_the_whole_group(self):
        code = ("import os,signal,sys,time\nfrom pathlib import Path\nn=sys.argv[1]\n"
                "signal.signal(int(sys.argv[2]), lambda *a: (Path(n+str(os.fork()==0)).touch(), sys.exit(9)))\n"
                "print('ready')\ntime.sleep(30)")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.recorder("run", "--", *python(code, self.folder / f"got{int(number)}", int(number)))
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(number)
            self.assertEqual(self.wait(process).status, 9)
            self.assertTrue((self.folder / f"got{int(number)}True").exists())

    def test_default_action_of_a_forwarded_signal_shows_in_the_status(self):
        process = self.recorder("run", "--", *python("print('ready'); import time; time.sleep(30)"))
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.wait(process).status, 128 + signal.SIGTERM)

    def test_a_number_that_was_the_programs_is_sent_no_signal(self):
        # In a pid namespace one may say which number comes next: that of the program, which has ended.
        script = (
            "import pathlib, signal, subprocess, sys, time\n"
            "run = subprocess.Popen([*sys.argv[1:], '--', 'sh', '-c', 'setsid sleep 30 & echo $$; exit 0'], stdout=subprocess.PIPE)\n"
            "number = int(run.stdout.readline())\n"
            "stat = pathlib.Path(f'/proc/{number}/stat')\n"
            "while stat.exists() and ') Z ' not in stat.read_text(): time.sleep(0.01)\n"
            "time.sleep(0.2)\n"
            "pathlib.Path('/proc/sys/kernel/ns_last_pid').write_text(str(number - 1))\n"
            "other = subprocess.Popen(['sleep', '30'], start_new_session=True)\n"
            "print('the number was', 'taken' if other.pid == number else 'kept')\n"
            "run.send_signal(signal.SIGTERM)\n"
            "run.wait(20)\n"
            "time.sleep(0.1)\n"
            "print('the other process', 'lives' if other.poll() is None else f'ended with {other.poll()}')\n")
        unshare = ["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "-p", "-f", "--mount-proc", "--kill-child"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            self.skipTest("no pid namespace may be made here (unshare -p)")
        done = subprocess.run([*unshare, sys.executable, "-u", "-c", script, HANGSCOPE, "run", "--json", "--log", str(self.log),
                               "--prefix", self.prefix], capture_output=True, text=True, timeout=60)
        if "ns_last_pid" in done.stderr:
            self.skipTest("ns_last_pid may not be written here")
        self.assertEqual((done.stdout, done.stderr), ("the number was kept\nthe other process lives\n", ""))

    @unittest.skipIf(SANITIZED, "the sanitizer starts threads of its own")
    def test_a_thread_that_cannot_be_started_is_one_sentence(self):
        huge = lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 50, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        for status, words in ((125, ["run", "--prefix", self.prefix, "--", "true"]), (3, ["tee", "--prefix", self.prefix])):
            with self.subTest(words[0]):
                done = subprocess.run([HANGSCOPE, *words], preexec_fn=huge, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
                self.assertEqual((done.returncode, done.stderr.count(b"\n")), (status, 1), done.stderr)
                self.assertIn(b"hangscope: error: ", done.stderr)
                self.assertIn(b"ulimit -v", done.stderr)

    def test_orphans_are_adopted_recorded_and_waited_for(self):
        # The front end goes at once; its launcher still prints, as gvsoc's does.
        outcome = self.run_program(["sh", "-c", "(sleep 1; echo late) & echo early; exit 3"])
        self.assertEqual(outcome.status, 3)
        self.assertEqual(outcome.out, b"early\nlate\n")

    def test_inherited_mask_and_dispositions_are_the_childs(self):
        code = ("import signal\nprint(sorted(int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])),"
                " signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGHUP))")

        def prepare():
            signal.pthread_sigmask(signal.SIG_SETMASK, [signal.SIGUSR2, signal.SIGWINCH])
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        direct = subprocess.run(python(code), capture_output=True, preexec_fn=prepare, restore_signals=False)
        watched = self.run_program(python(code), preexec_fn=prepare, restore_signals=False)
        self.assertEqual(watched.out, direct.stdout)

    def test_ignored_signals_are_ignored_by_the_program(self):
        def prepare():
            for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGPIPE, signal.SIGTSTP, signal.SIGUSR1):
                signal.signal(number, signal.SIG_IGN)
        words = ["grep", "Sig[BI]", "/proc/self/status"]
        direct = subprocess.run(words, capture_output=True, preexec_fn=prepare, restore_signals=False)
        watched = self.run_program(words, preexec_fn=prepare, restore_signals=False)
        self.assertEqual((watched.status, watched.out), (0, direct.stdout))

    def test_nohup_is_respected(self):
        process = self.recorder("run", "--", *python("print('ready'); import time; time.sleep(1)"),
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        self.assertEqual(self.wait(process).status, 0)

    def test_signal_that_the_caller_blocked_stays_blocked(self):
        process = self.recorder("run", "--", *python("print('ready'); import time; time.sleep(1)"),
                                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]))
        process.stdout.readline()
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.wait(process).status, 0)
        self.assertEqual(self.snapshots(), [])


class Snapshots(Case):
    def test_sigusr1_and_sigusr2_take_one(self):
        process = self.recorder("run", "--on-exit", "none", "--", *python("print('hello'); import time; time.sleep(30)"))
        process.stdout.readline()
        for count, number in enumerate((signal.SIGUSR1, signal.SIGUSR2), 1):
            process.send_signal(number)
            self.until(lambda: len([m for m in self.messages() if m["type"] == "snapshot"]) == count)
        process.send_signal(signal.SIGTERM)
        outcome = self.wait(process)
        self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["SIGUSR1", "SIGUSR2"])
        for folder in self.snapshots():
            self.assertEqual(self.cat(folder), b"hello\n")
            self.assertTrue((folder / "manifest.json").exists())

    def test_signal_from_mains_first_act_on_is_kept(self):
        # As soon as the kernel shows the signal blocked, which is that first act.
        for _ in range(5):
            process = self.recorder("run", "--max-snapshots", 99, "--", "sleep", "0.5")
            blocked = 0
            while not blocked & 1 << (signal.SIGUSR1 - 1):
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                blocked = int(status.split("SigBlk:")[1].split()[0], 16)
            process.send_signal(signal.SIGUSR1)
            outcome = self.wait(process)
            self.assertEqual(outcome.status, 0)
            self.assertEqual([m["trigger"] for m in outcome.of_type("snapshot")], ["SIGUSR1"])

    def test_the_first_and_the_newest_are_kept(self):
        process = self.recorder("run", "--max-snapshots", 3, "--on-exit", "none", "--", *python("print('x'); import time; time.sleep(30)"))
        process.stdout.readline()
        for count in range(1, 6):
            process.send_signal(signal.SIGUSR1)
            self.until(lambda: len([m for m in self.messages() if m["type"] == "snapshot"]) == count)
        process.send_signal(signal.SIGTERM)
        self.wait(process)
        self.assertEqual([p.name[-4:] for p in self.snapshots()], ["0001", "0004", "0005"])


class Hangs(Case):
    SILENT = "print('working'); import threading; threading.Lock().acquire() or 0; l=threading.Lock(); l.acquire(); l.acquire()"

    def test_child_asleep_after_output_is_silent(self):
        outcome = self.run_program(python(self.SILENT), "--stall", 1, "--on-hang", "kill", "--junit", self.folder / "j.xml")
        self.assertEqual(outcome.status, 124)
        verdict, = outcome.hangs
        self.assertEqual(verdict["state"], "starved")
        self.assertRegex(verdict["summary"], "lost wakeup, its only thread waits for lock l,")
        self.assertIn("this wait is the same in 2 looks", verdict["evidence"][-1])
        suite = xml.etree.ElementTree.parse(self.folder / "j.xml").getroot()
        self.assertEqual(suite.attrib["failures"], "1")
        self.assertIn("lost wakeup", suite.find("testcase/failure").attrib["message"])

    def test_by_default_it_takes_a_snapshot_and_goes_on(self):
        process = self.recorder("run", "--stall", 1, "--", *python(self.SILENT))
        self.until(lambda: self.snapshots())
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.wait(process).status, 128 + signal.SIGTERM)

    def test_exec_runs_a_command_that_knows_the_snapshot(self):
        out = self.folder / "said"
        outcome = self.run_program(python(self.SILENT), "--stall", 1, "--on-hang",
                                   f"exec:echo $HANGSCOPE_SNAPSHOT $HANGSCOPE_VERDICT > {out}; kill $HANGSCOPE_PID")
        self.assertEqual(outcome.status, 128 + signal.SIGTERM)
        self.assertRegex(out.read_text(), r"ring.snapshot-0001 lost wakeup")

    def test_exec_watches_the_program_and_not_its_own_command(self):
        # What the command leaves behind sleeps for a set time, which in a program is no hang.
        said = self.folder / "said"
        process = self.recorder("run", "--stall", 0.5, "--on-hang",
                                f"exec:echo begins >> {said}; grep SigIgn /proc/self/status >> {said}; (sleep 1.2; echo ends >> {said}) &",
                                "--", *python(self.SILENT))
        self.until(lambda: said.exists() and "ends" in said.read_text(), what="the command ended")
        time.sleep(1)  # a second hang would come after half of that
        process.send_signal(signal.SIGTERM)
        outcome = self.wait(process)
        self.assertEqual(len(outcome.hangs), 1, outcome.messages)
        # Of signal 13, SIGPIPE, the bit is not set.
        self.assertRegex(said.read_text(), r"\Abegins\nSigIgn:\t[0-9a-f]{12}[02468ace][0-9a-f]{3}\nends\n\Z")

    def test_exec_starts_no_second_command_beside_the_first(self):
        said, gate, done = (self.folder / name for name in ("said", "gate", "done"))
        os.mkfifo(gate)
        process = self.recorder("run", "--stall", 0.5, "--expect-output", 2 if SANITIZED else 0.5, "--on-hang", f"exec:echo begins >> {said}; while ! test -e {done}; do sleep 0.02; done",
                                "--", *python("import os,sys\ngate=os.open(sys.argv[1], os.O_RDWR)\nwhile True: print('working'); os.read(gate, 1)", gate))

        def hang(number):
            self.until(lambda: len([m for m in self.messages() if m["type"] == "verdict" and m["hang"]]) == number, what=f"hang {number}")
        hang(1)
        self.until(said.exists)
        gate.write_bytes(b"x")
        hang(2)
        self.until(lambda: [m for m in self.messages() if "--on-hang command" in m.get("text", "")], what="it is said")
        self.assertEqual(said.read_text(), "begins\n")
        done.touch()
        time.sleep(0.5)  # until it is known that the command ended
        gate.write_bytes(b"x")
        hang(3)
        self.until(lambda: said.read_text() == "begins\nbegins\n", what="the command of the third hang")
        process.send_signal(signal.SIGTERM)
        self.wait(process)

    def test_none_tells_and_leaves_alone(self):
        process = self.recorder("run", "--stall", 1, "--on-hang", "none", "--", *python(self.SILENT))
        self.until(lambda: [m for m in self.messages() if m["type"] == "verdict"])
        self.assertEqual(self.snapshots(), [])
        process.send_signal(signal.SIGTERM)
        self.wait(process)

    def test_kill_reaches_a_child_that_ignores_sigterm(self):
        code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + self.SILENT
        outcome = self.run_program(python(code), "--stall", 1, "--on-hang", "kill")
        self.assertEqual(outcome.status, 124)

    def test_heartbeat_comes_when_nothing_arrives(self):
        process = self.recorder("run", "--heartbeat", 0.2, "--", "sleep", "60")
        beats = self.until(lambda: [m for m in self.messages() if m["type"] == "heartbeat"][3:], what="four heartbeats")
        process.terminate()
        self.wait(process)
        self.assertEqual(beats[-1]["total_bytes"], 0)
        self.assertIsNone(beats[-1]["last_byte_age_s"])
        for key in ("elapsed_s", "bytes_per_s", "child_cpu", "state", "cores", "streams", "version", "time"):
            self.assertIn(key, beats[-1])

    def test_heartbeat_on_a_terminal_is_one_live_line(self):
        leader, follower = self.open_terminal()
        process = subprocess.Popen([HANGSCOPE, "run", "--prefix", self.prefix, "--", "sleep", "60"], stderr=follower,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        seen = b""
        while seen.count(b"\r\x1b[K") < 3:
            self.assertTrue(select.select([leader], [], [], 30)[0], f"no three heartbeats in {seen}")
            seen += os.read(leader, 65536)
        process.terminate()
        process.wait()
        os.close(follower)
        seen += os.read(leader, 65536)
        os.close(leader)
        self.assertEqual(seen.count(b"\n"), seen[seen.rindex(b"\x1b[K"):].count(b"\n"))


@unittest.skipIf(os.getuid() != 0 or os.readlink("/proc/self/ns/pid") != "pid:[4026531836]", "the kernel tells crashes to root outside of containers")
class CrashBelow(Case):
    DIES = 'sh -c "kill -%s \\$\\$; :";'

    def crashes(self, signals, status=0):
        outcome = self.run_program(["sh", "-c", "".join(self.DIES % each for each in signals) + f"exit {status}"], "--heartbeat", 0)
        self.assertEqual((outcome.status, outcome.hangs), (status, []), outcome.messages)
        told = [m["text"] for m in outcome.of_type("note") if "killed by" in m["text"]]
        self.assertEqual([line for line in outcome.last["evidence"] if "killed by" in line], told)
        return told, outcome

    def test_is_told_with_its_signal_and_why_there_is_no_stack(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_CORE, (soft, hard))
        told, _ = self.crashes(["SEGV"], status=3)
        line, = told
        self.assertRegex(line, r"^\d+( sh)? was killed by signal 11 \(Segmentation fault\) after \d.* s; no stack of the crash: ")

    def test_three_are_told_and_the_others_counted(self):
        told, outcome = self.crashes(5 * ["ABRT"])
        self.assertEqual(len(told), 3, told)
        self.assertIn("2 more processes crashed", outcome.last["evidence"])

    def test_neither_an_end_by_another_signal_nor_a_crash_elsewhere_is_one(self):
        elsewhere = subprocess.Popen(["sh", "-c", "sleep 0.3; kill -SEGV $$; :"])
        self.addCleanup(elsewhere.wait)
        told, _ = self.crashes(["KILL", "TERM", "0; sleep 0.6; kill -0 "])
        self.assertEqual((told, elsewhere.wait()), ([], -signal.SIGSEGV))


class Short(Case):
    LOOP = ("import sys,time\nline='core   0: 3 0x%08x (0x%08x)%s'\n"
            "r='\\n'.join([line%(0x80000108,0x72783,' x15 0x00000000 mem 0x8000b210'),line%(0x8000010c,0xfe078ee3,'')])+'\\n'\n"
            "while True: sys.stdout.write(r*400); sys.stdout.flush(); time.sleep(0.005)")

    def test_ring_shorter_than_the_stall_time_delays_no_verdict(self):
        outcome = self.run_program(["timeout", "20", *python(self.LOOP)], "--size", "512K", "--keep", 1, "--stall", 2,
                                   "--on-hang", "kill", "--no-passthrough")
        verdict, = outcome.hangs
        self.assertEqual(verdict["state"], "looping")
        self.assertLess(verdict["elapsed_s"], 14)  # 4 on a quiet machine
        self.assertTrue(any("the ring holds only the last" in doubt for doubt in verdict["doubts"]), verdict["doubts"])
        self.assertTrue(verdict["cores"][0]["loop"]["at_least"])


class Controls(Case):
    """What is no hang raises nothing."""

    def assert_left_alone(self, program, *options):
        outcome = self.run_program(program, "--stall", 1, "--on-hang", "kill", "--heartbeat", 0.2, *options)
        self.assertEqual(outcome.status, 0, outcome.messages[-2:])
        self.assertEqual(outcome.hangs, [])
        self.assertEqual(self.snapshots(), [])
        return outcome

    def test_slow_output(self):
        self.assert_left_alone(python("import time\nfor i in range(6): print(i); time.sleep(0.7)"))

    def test_output_slower_than_the_stall_time_by_a_timed_sleep(self):
        self.assert_left_alone(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 1.6; done"])

    def test_long_initialisation_before_the_first_byte(self):
        self.assert_left_alone(python("import time\nend=time.time()+3\nwhile time.time()<end: pass\nprint('up')"))

    def test_computing_without_output(self):
        self.assert_left_alone(python("import time\nprint('start')\nend=time.time()+3.5\nwhile time.time()<end: pass\nprint('done')"))

    def test_waiting_for_input_on_a_pipe(self):
        process = self.recorder("run", "--stall", 1, "--on-hang", "kill", "--", "cat", stdin=subprocess.PIPE)
        process.stdin.write(b"one\n")
        process.stdin.flush()
        time.sleep(2.5)
        outcome = self.wait_with_input(process, b"two\n")
        self.assertEqual((outcome.status, outcome.out, outcome.hangs), (0, b"one\ntwo\n", []))

    def wait_with_input(self, process, data):
        out, err = process.communicate(data, timeout=30)
        from support import Outcome
        return Outcome(process.returncode, out, err, self.log.read_text())

    def test_reader_of_the_passthrough_that_pauses(self):
        process = self.recorder("run", "--stall", 1, "--on-hang", "kill", "--heartbeat", 0.2, "--",
                                "sh", "-c", "head -c 8000000 /dev/zero; echo end")
        time.sleep(3)
        outcome = self.wait(process)
        self.assertEqual((outcome.status, len(outcome.out), outcome.hangs), (0, 8000004, []))

    def test_thread_that_sleeps_for_a_set_time(self):
        self.assert_left_alone(python("import threading,time\nprint('x')\nt=threading.Thread(target=time.sleep,args=(3,))\n"
                                      "t.start(); t.join(); print('y')"))

    def test_time_spent_stopped_is_no_silence(self):
        process = self.recorder("run", "--stall", 1, "--on-hang", "kill", "--", *python(
            "import time,select\nfor i in range(40): print(i); select.select([],[],[],0.1)"))
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        child = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        os.kill(child, signal.SIGSTOP)
        time.sleep(3)
        os.kill(process.pid, signal.SIGCONT)
        os.kill(child, signal.SIGCONT)
        outcome = self.wait(process)
        self.assertEqual((outcome.status, outcome.hangs), (0, []))

    def test_slow_is_a_state_and_no_hang(self):
        code = ("import time,sys\nend=time.time()+5\nwhile time.time()<end: print('x'*1000); time.sleep(0.002)\n"
                "for i in range(12): print('y'); time.sleep(0.3)")
        outcome = self.assert_left_alone(python(code), "--no-passthrough")
        self.assertIn("slow", outcome.states_seen())


if __name__ == "__main__":
    main()
