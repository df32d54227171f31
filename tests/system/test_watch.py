"""Programs whose threads wait, hang, pause and die, and what hangscope watch, set and why say of them."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import termios
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree

import scope_images
import watched_targets
from support import BUILD, HANGSCOPE, Case, main, python

# Two threads that take two locks, with waits, holds and waypoints; a third waits for jobs from outside.
PROGRAM = pathlib.Path(BUILD) / "tests" / "copiers"


class Targets(Case):
    def start(self, how="healthy", scope=None, **popen):
        """The program, running; its scope file."""
        environment = dict(os.environ)
        if scope:
            environment["HANGSCOPE_SCOPE"] = str(scope)
        process = subprocess.Popen([str(PROGRAM), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, **popen)
        self.addCleanup(self.end, process)
        process.scope = pathlib.Path(process.stdout.readline().decode().strip())
        if how == "deadlock":
            self.until(lambda: self.asleep_for_good(process), what="the deadlock")
        return process

    @staticmethod
    def asleep_for_good(process):
        """Whether each thread sleeps, and none was switched for a while: they copy no blocks any more."""
        def switches():
            found = []
            for task in sorted(pathlib.Path(f"/proc/{process.pid}/task").iterdir()):
                status = (task / "status").read_text()
                found.append((re.search(r"State:\t(.)", status)[1], re.findall(r"ctxt_switches:\t(\d+)", status)))
            return found
        before = switches()
        time.sleep(0.02)
        return {state for state, _ in before} == {"S"} and before == switches()

    def watch(self, *words, **popen):
        """A watcher in the background, with --json unless told otherwise; self.found(watcher) when it has ended."""
        options = [] if popen.pop("text_only", False) else ["--json"]
        process = subprocess.Popen([HANGSCOPE, "watch", *options, *map(str, words)], stdin=popen.pop("stdin", subprocess.DEVNULL),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)
        self.addCleanup(self.end, process)
        return process

    def found(self, watcher, timeout=30):
        out, err = watcher.communicate(timeout=timeout)
        self.assertEqual(err, b"")
        return [json.loads(line) for line in out.splitlines()]

    def lines_until(self, watcher, wanted):
        """What a watcher says, up to the line that is wanted."""
        said = []
        while True:
            line = watcher.stdout.readline()
            self.assertTrue(line, f"it ended without the line that was waited for, after {said}")
            said.append(json.loads(line))
            if wanted(said[-1]):
                return said

    def why(self, *words):
        done = self.hangscope("why", *words)
        self.assertEqual(done.err, b"")
        return done.status, done.out.decode()

    def findings(self, messages):
        return [m for m in messages if m["type"] == "finding"] + [f for m in messages if m["type"] == "verdict" for f in m.get("findings", [])]

    def core_of(self, process, name):
        done = self.hangscope("why", "--json", "--stall", "50ms", f"pid:{process.pid}")
        return next(m for m in map(json.loads, done.out.splitlines()) if m.get("name") == f"thread {name}")


class Watch(Targets):
    def test_two_threads_that_wait_for_each_other_are_a_deadlock_and_said_once(self):
        target = self.start("deadlock")
        watcher = self.watch("--stall", "300ms", "--interval", "20ms", "--for", "1.5", f"pid:{target.pid}")
        messages = self.found(watcher)
        self.assertEqual(watcher.returncode, 1)
        finding, = self.findings(messages)
        self.assertEqual((finding["kind"], finding["confidence"], finding["hang"]), ("deadlock", "certain", True))
        self.assertEqual(sorted(s["name"] for s in finding["subjects"]), ["thread alpha", "thread beta"])
        for subject in finding["subjects"]:
            self.assertEqual(subject["at"], "LCKW")
            self.assertRegex(subject["where"], r"take a lock, copiers\.cc:\d+")
        self.assertEqual({s["waits_for"] for s in finding["subjects"]}, {"queue", "table"})
        self.assertEqual(finding["summary"], "deadlock, 2 of 3 cores wait for each other")
        self.assertGreaterEqual(finding["subjects"][0]["for_s"], 0.3)
        self.assertEqual(finding["last_events"][-1], "copied block 0")
        self.assertIn("b10c0000", finding["lines"][-1])
        end = messages[-1]
        self.assertEqual((end["type"], end["findings"], end["bad_findings"]), ("end", 1, 1))
        self.assertGreater(end["polls"], 20)

    def test_exit_on_hang_ends_at_the_first_bad_finding(self):
        target = self.start("deadlock")
        watcher = self.watch("--stall", "300ms", "--exit-on-hang", f"pid:{target.pid}")
        self.assertEqual(len(self.findings(self.found(watcher))), 1)
        self.assertEqual(watcher.returncode, 1)
        self.assertIsNone(target.poll())

    def test_a_program_that_works_raises_nothing_for_several_stall_times(self):
        target = self.start()
        watcher = self.watch("--stall", "200ms", "--interval", "10ms", "--for", "2", f"pid:{target.pid}")
        messages = self.found(watcher)
        self.assertEqual((watcher.returncode, self.findings(messages)), (0, []))
        end = messages[-1]
        self.assertLess(end["cpu"], 0.2)
        self.assertGreater(end["read_bytes"], 0)

    def test_its_text_begins_with_a_table_and_ends_with_the_cost(self):
        target = self.start("deadlock")
        watcher = self.watch("--stall", "300ms", "--for", "800ms", f"pid:{target.pid}", text_only=True)
        out = watcher.communicate(timeout=30)[0].decode()
        lines = out.splitlines()
        self.assertRegex(lines[0], rf"^hangscope: watching process {target.pid}: room for 64 cores, every 100 ms$")
        self.assertEqual(lines[1].split()[:4], ["core", "role", "activity", "at"])
        self.assertRegex(out, r"hangscope: HANG: deadlock, 2 of 3 cores wait for each other \(certain\)\n"
                              r"  thread (alpha|beta) +waits \d+\.\d s at LCKW for (queue|table) \(held by thread (alpha|beta)\)   copiers\.cc:\d+.*\n")
        self.assertRegex(out, r"  first to stop: thread (alpha|beta), after copied block 0\n")
        self.assertRegex(lines[-1], r"^hangscope: \d+ polls in \d\.\d s, [\d.]+ [KM]?i?B read, [\d.e-]+ % of a CPU, longest poll [\d.]+ ms$")

    def test_ending_by_itself_is_clean_and_being_killed_is_not(self):
        for word, status, event in ((b"x", 0, "ended with status 0"), (b"e", 0, "ended with status 3"), (b"a", 1, "killed by signal 6"), (None, 1, "killed by signal 9")):
            with self.subTest(event):
                target = self.start()
                watcher = self.watch("--interval", "20ms", f"pid:{target.pid}")
                self.lines_until(watcher, lambda m: m.get("event") == "watching")
                time.sleep(0.1)
                if word is None:
                    target.kill()
                else:
                    target.stdin.write(word)
                    target.stdin.flush()
                target.wait()
                messages = self.found(watcher)
                self.assertEqual(watcher.returncode, status)
                said = [m["summary"] for m in self.findings(messages)] + [m["text"] for m in messages if m.get("event") == "ended"]
                self.assertEqual(len(said), 1)
                self.assertIn(event, said[0])
                self.assertEqual([f["kind"] for f in self.findings(messages)], ["dead"] * status)

    def test_one_target_that_dies_does_not_end_the_watching_of_another(self):
        dies, hangs = self.start(), self.start("deadlock")
        watcher = self.watch("--stall", "1", "--interval", "20ms", "--for", "2", f"pid:{dies.pid}", hangs.scope)
        self.lines_until(watcher, lambda m: m.get("event") == "watching")
        dies.kill()
        findings = self.findings(self.found(watcher))
        self.assertEqual(sorted((f["kind"], f["target"]) for f in findings), [("dead", f"process {dies.pid}"), ("deadlock", str(hangs.scope))])

    def test_a_file_that_is_cut_off_is_gone_and_one_that_is_written_anew_restarted(self):
        target = self.start()
        image = self.folder / "ram"
        shutil.copyfile(target.scope, image)
        data = bytearray(image.read_bytes())
        watcher = self.watch("--interval", "20ms", "--stall", "500ms", self.nobodys(image, data))
        self.lines_until(watcher, lambda m: m.get("event") == "watching")
        os.truncate(image, 4096)
        time.sleep(0.1)
        image.write_bytes(self.restarted(data))
        self.lines_until(watcher, lambda m: m.get("event") == "restarted")
        os.truncate(image, 0)
        messages = self.found(watcher)
        dead, = [f for f in self.findings(messages) if f["kind"] == "dead"]
        self.assertIn("shorter", dead["summary"])
        self.assertEqual(watcher.returncode, 1)

    def why_while_it_starts_again(self, times):
        """Of a target that starts anew so many times, each 0.3 s, from the first look on."""
        target = self.start()
        target.kill()
        target.wait()
        data = bytearray(target.scope.read_bytes())
        image = self.nobodys(self.folder / "ram", data)
        asked = subprocess.Popen([HANGSCOPE, "why", "--stall", "0.6", image], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, asked)
        for count in range(times):
            time.sleep(0.3)
            with open(image, "r+b") as file:  # the memory of a target stays as long as it is
                file.write(self.restarted(data, 2 + count))
        out, _ = asked.communicate(timeout=30)
        return asked.returncode, out

    def test_why_of_a_target_that_starts_again_and_again_says_so(self):
        status, said = self.why_while_it_starts_again(8)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"^\w+: it starts again and again, in each of 2 looks of 0\.6 s \(likely\)")

    def test_why_of_one_that_starts_again_once_looks_at_the_new_run(self):
        status, said = self.why_while_it_starts_again(1)
        self.assertRegex(said, "it started again while it was looked at")
        self.assertNotIn("again and again", said)

    def test_harts_whose_counters_fall_back_were_started_again(self):
        target = self.start()
        target.kill()
        target.wait()
        data = bytearray(target.scope.read_bytes())
        data[20] &= ~8  # cores are harts, not threads
        waits = int.from_bytes(data[40:44], "little") + 8  # of the first mailbox
        data[waits:waits + 4] = (8).to_bytes(4, "little")
        image = self.nobodys(self.folder / "ram", data)
        watcher = self.watch("--interval", "20ms", image)
        self.lines_until(watcher, lambda m: m.get("event") == "watching")
        time.sleep(0.1)
        for count in (10, 2):  # on, and back
            with open(image, "r+b") as file:
                file.seek(waits)
                file.write(count.to_bytes(4, "little"))
            time.sleep(0.2)
        said = self.lines_until(watcher, lambda m: m.get("event") == "restarted")
        watcher.terminate()
        events = [m["event"] for m in said + self.found(watcher) if m["type"] == "note"]
        self.assertEqual(events, ["restarted"])

    def test_a_guest_whose_simulator_is_killed_is_dead(self):
        target = self.start()
        image = self.nobodys(self.folder / "ram", bytearray(target.scope.read_bytes()))
        code = "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); print('mapped'); sys.stdin.read()"
        simulator = subprocess.Popen(python(code, image), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end, simulator)
        self.assertEqual(simulator.stdout.readline(), b"mapped\n")
        watcher = self.watch("--interval", "20ms", "--stall", "30", f"file:{image}@0")
        self.lines_until(watcher, lambda m: m.get("event") == "watching")
        simulator.kill()
        dead, = self.findings(self.found(watcher))
        self.assertEqual((dead["kind"], dead["summary"]), ("dead", f"process {simulator.pid} was killed by signal 9 (Killed)"))

    def test_two_watchers_at_once_find_the_same(self):
        target = self.start("deadlock")
        watchers = [self.watch("--stall", "300ms", "--exit-on-hang", f"pid:{target.pid}") for _ in range(2)]
        kinds = [[f["kind"] for f in self.findings(self.found(w))] for w in watchers]
        self.assertEqual(kinds, [["deadlock"], ["deadlock"]])

    def test_a_watcher_that_was_stopped_for_a_while_invents_nothing(self):
        target = self.start()
        watcher = self.watch("--stall", "300ms", "--interval", "20ms", "--for", "2.5", f"pid:{target.pid}")
        self.lines_until(watcher, lambda m: m.get("event") == "watching")
        watcher.send_signal(signal.SIGSTOP)
        time.sleep(1)
        watcher.send_signal(signal.SIGCONT)
        self.assertEqual(self.findings(self.found(watcher)), [])
        self.assertEqual(watcher.returncode, 0)

    def test_a_watcher_that_is_killed_leaves_the_target_as_it_was(self):
        target = self.start()
        watcher = self.watch("--interval", "1ms", f"pid:{target.pid}")
        self.lines_until(watcher, lambda m: m.get("event") == "watching")
        before = self.core_of(target, "alpha")["heartbeat"]
        watcher.kill()
        watcher.wait()
        self.until(lambda: self.core_of(target, "alpha")["heartbeat"] > before + 10)
        self.assertIsNone(target.poll())

    def test_interrupted_without_findings_it_says_so(self):
        target = self.start()
        watcher = self.watch(f"pid:{target.pid}")
        self.lines_until(watcher, lambda m: m.get("event") == "watching")
        watcher.send_signal(signal.SIGINT)
        self.assertEqual(self.found(watcher)[-1]["type"], "end")
        self.assertEqual(watcher.returncode, 130)

    def test_a_budget_slows_its_polls_down_and_it_says_so(self):
        target = self.start()
        watcher = self.watch("--interval", "10ms", "--budget", "32K", "--for", "1", f"pid:{target.pid}")
        messages = self.found(watcher)
        self.assertEqual(len([m for m in messages if m.get("event") == "slowed"]), 1)
        end = messages[-1]
        self.assertGreater(end["longest_interval_s"], 0.1)
        self.assertLess(end["read_bytes"], 64 << 10)

    def test_usage_errors_name_what_is_wrong(self):
        target = self.start()
        for words, said in (([], "no target given"), (["--intervall", "1", "x"], "did you mean '--interval'?"),
                            (["--elf", "a", "--elf", "b", "x", "y", "z"], "3 targets and 2 times --elf"),
                            (["--log-keep", "0", "x"], "--log-keep '0'"), (["--interval", "0", "x"], "--interval"),
                            (["--metrics", "nowhere", f"pid:{target.pid}"], "--metrics 'nowhere': HOST:PORT"),
                            (["--cpu", "--interval", "1", f"pid:{target.pid}"], "--interval has no effect with --cpu"),
                            (["--log", "log", "--cpu", f"pid:{target.pid}"], "--log has no effect with --cpu"),
                            (["--metrics", "127.0.0.1:0", f"pid:{os.getpid()}"], "--metrics has no effect on a process that has no scope"),
                            (["--on-hang", "snap", f"pid:{target.pid}"], "--on-hang 'snap': snapshot, kill, exec:COMMAND or none"),
                            (["--act-on", "sure", f"pid:{target.pid}"], "--act-on 'sure'")):
            with self.subTest(said):
                done = self.hangscope("watch", *words)
                self.assertEqual(done.status, 2)
                self.assertIn(said, done.err.decode())
        done = self.hangscope("watch", f"pid:{os.getpid()}", f"pid:{target.pid}")
        self.assertEqual(done.status, 3)
        self.assertRegex(done.err.decode(), rf"has no file mapped .*; of a program that does not record, 'hangscope why pid:{os.getpid()}' says why it hangs")
        done = self.hangscope("watch", self.folder / "none")
        self.assertEqual(done.status, 3)
        self.assertIn("none", done.err.decode())

    def nobodys(self, image, data):
        image.write_bytes(self.with_check(data))
        return image

    def restarted(self, data, boots=2):
        again = bytearray(data)
        again[72:76] = boots.to_bytes(4, "little")
        return self.with_check(again)

    @staticmethod
    def with_check(data):
        """The scope as guest RAM has it: of no process."""
        check = 0x811c9dc5
        data[76:80] = bytes(4)  # pid
        for byte in data[:120]:
            check = (check ^ byte) * 0x01000193 & 0xffffffff
        data[188:192] = check.to_bytes(4, "little")
        return bytes(data)


class Acts(Targets):
    """What it does about a hang, as hangscope run does."""

    def snapshots(self, prefix=None):
        return sorted(p for p in pathlib.Path(prefix or self.prefix).parent.glob("*.snapshot-*") if not p.name.endswith(".partial"))

    def manifest(self, folder):
        return json.loads((folder / "manifest.json").read_text())

    def kept(self):
        """What lies where nobody named a place."""
        return sorted(p.name for p in pathlib.Path(os.environ["XDG_STATE_HOME"]).rglob("*"))

    def test_a_hang_takes_one_snapshot_that_says_the_same(self):
        target = self.start("deadlock")
        watcher = self.watch("--stall", "200ms", "--interval", "20ms", "--for", "1", "--prefix", self.prefix, f"pid:{target.pid}")
        messages = self.found(watcher)
        self.assertEqual(watcher.returncode, 1)
        taken, = [m for m in messages if m["type"] == "snapshot"]
        self.assertEqual((taken["path"], taken["trigger"]), (f"{self.prefix}.snapshot-0001", "hang"))
        folder, = self.snapshots()
        self.assertLessEqual({"manifest.json", "report.txt", "report.html", "scope.bin", "scope.catalog"}, {p.name for p in folder.iterdir()})
        manifest = self.manifest(folder)
        self.assertEqual((manifest["version"], manifest["pid"]), (2, target.pid))
        said, = self.findings(messages)
        kept, = manifest["verdict"]["findings"]
        self.assertEqual([s["name"] for s in kept["subjects"]], [s["name"] for s in said["subjects"]])
        self.assertEqual((manifest["verdict"]["state"], kept["summary"]), ("deadlock", said["summary"]))
        target.kill()
        target.wait()
        status, text = self.why(folder)
        self.assertEqual(status, 1)
        self.assertIn(said["summary"], text)

    def test_nothing_is_written_unless_it_is_asked_for_and_then_it_is_by_signal_or_snap(self):
        target = self.start("deadlock")
        watcher = self.watch("--stall", "200ms", "--interval", "20ms", f"pid:{target.pid}")
        self.lines_until(watcher, lambda m: m["type"] == "finding")
        watcher.send_signal(signal.SIGUSR1)
        self.assertEqual(self.kept(), [])
        done = self.until(lambda: (lambda snap: snap.status == 0 and snap)(self.hangscope("snap", watcher.pid)), what="snap")
        self.assertRegex(done.out.decode(), rf"/state/hangscope/pid-{target.pid}-{watcher.pid}/pid-{target.pid}\.snapshot-0001\n$")
        listed, = map(json.loads, self.hangscope("ls", "--json").out.splitlines())
        self.assertEqual((listed["pid"], listed["child_pid"], listed["hang"], listed["snapshots"]), (watcher.pid, target.pid, True, 1))
        watcher.send_signal(signal.SIGUSR2)
        self.lines_until(watcher, lambda m: m["type"] == "snapshot" and m["trigger"] == "SIGUSR2")
        watcher.send_signal(signal.SIGINT)
        self.found(watcher)
        self.assertIn(f"pid-{target.pid}.snapshot-0002", self.kept())

    def test_each_of_several_targets_has_snapshots_of_its_own(self):
        works, hangs = self.start(), self.start("deadlock")
        watcher = self.watch("--stall", "200ms", "--interval", "20ms", "--on-hang", "snapshot", "--exit-on-hang", f"pid:{works.pid}", f"pid:{hangs.pid}")
        taken, = [m for m in self.found(watcher) if m["type"] == "snapshot"]
        self.assertRegex(taken["path"], rf"/pid-{works.pid}-2\.snapshot-0001$")
        self.assertEqual(self.manifest(pathlib.Path(taken["path"]))["pid"], hangs.pid)
        self.assertEqual(self.hangscope("why").status, 1)  # the newest of this user

    def test_kill_ends_who_hangs_and_only_that(self):
        works, hangs = self.start(), self.start("deadlock")
        self.prefix = str(self.folder / "a new" / "folder" / "P")
        watcher = self.watch("--stall", "200ms", "--interval", "20ms", "--on-hang", "kill", "--exit-on-hang", "--prefix", self.prefix,
                             f"pid:{works.pid}", f"pid:{hangs.pid}")
        messages = self.found(watcher)
        self.assertEqual(watcher.returncode, 1)
        self.assertEqual(hangs.wait(10), -signal.SIGTERM)
        self.assertIsNone(works.poll())
        self.assertRegex(next(m["text"] for m in messages if m.get("event") == "ends"), rf"--on-hang kill: ends process {hangs.pid} \(copiers\)")
        self.assertEqual([f["kind"] for f in self.findings(messages)], ["deadlock"])  # that it was killed is no finding
        self.assertEqual(len(self.snapshots()), 1)

    def test_a_program_that_ignores_sigterm_is_killed_after_a_while(self):
        target = self.start("deadlock", preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
        watcher = self.watch("--stall", "100ms", "--interval", "20ms", "--on-hang", "kill", "--prefix", self.prefix, f"pid:{target.pid}")
        self.found(watcher)
        self.assertEqual((target.wait(10), watcher.returncode), (-signal.SIGKILL, 1))

    def test_kill_ends_the_simulator_of_a_file_only_where_it_is_certain_which(self):
        target = self.start("deadlock")
        ram = f"file:{target.scope}"
        other = subprocess.Popen(python("import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); print(flush=True); input()", target.scope),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end, other)
        other.stdout.readline()
        done = self.hangscope("watch", "--on-hang", "kill", ram)
        self.assertEqual((done.status, done.out), (2, b""))
        self.assertRegex(done.err.decode(), rf"processes \d+ and \d+ both write to .*not certain")
        self.end(other)
        watcher = self.watch("--stall", "200ms", "--interval", "20ms", "--on-hang", "kill", "--prefix", self.prefix, ram)
        self.found(watcher)
        self.assertEqual(target.wait(10), -signal.SIGTERM)

    def test_kill_without_anybody_to_end_is_refused_at_the_start(self):
        target = self.start("deadlock")
        dump = self.folder / "dump"
        dump.write_bytes(target.scope.read_bytes())
        for words, said in (([dump], "no process that may be looked into writes to"), ([f"core:{dump}"], "is a core dump"),
                            ([f"exec:cat {dump}"], "is no process of this machine")):
            with self.subTest(said):
                done = self.hangscope("watch", "--on-hang", "kill", *words)
                self.assertEqual((done.status, self.kept()), (2, []))
                self.assertIn(said, done.err.decode())

    def test_exec_is_told_who_hangs_and_once(self):
        target = self.start("deadlock")
        told = self.folder / "told"
        watcher = self.watch("--stall", "200ms", "--interval", "20ms", "--for", "1", "--prefix", self.prefix, "--on-hang",
                             f'exec:echo "$HANGSCOPE_PID|$HANGSCOPE_SNAPSHOT|$HANGSCOPE_VERDICT|$HANGSCOPE_TARGET" >> {told}', f"pid:{target.pid}")
        self.found(watcher)
        self.assertEqual(told.read_text(), f"{target.pid}|{self.prefix}.snapshot-0001|deadlock, 2 of 3 cores wait for each other|process {target.pid}\n")
        self.assertIsNone(target.poll())

    def test_junit_has_a_case_for_each_target(self):
        works, hangs, dies = self.start(), self.start("deadlock"), self.start()
        path = self.folder / "j.xml"
        watcher = self.watch("--stall", "200ms", "--interval", "20ms", "--for", "1", "--junit", path, *(f"pid:{each.pid}" for each in (works, hangs, dies)))
        self.lines_until(watcher, lambda m: m["type"] == "finding")
        dies.kill()
        self.found(watcher)
        suite = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual([suite.attrib[name] for name in ("tests", "failures", "errors")], ["3", "1", "1"])
        cases = {case.attrib["name"]: case for case in suite}
        self.assertEqual(len(cases[f"process {works.pid}"]), 0)
        failure = cases[f"process {hangs.pid}"].find("failure")
        self.assertRegex(failure.attrib["message"], r"^hang: deadlock, 2 of 3 cores wait for each other: thread (alpha|beta) +waits ")
        self.assertIn("first to stop: thread", failure.text)
        self.assertIn("killed by signal 9", cases[f"process {dies.pid}"].find("error").attrib["message"])

    def test_what_works_is_left_alone(self):
        target = self.start()
        watcher = self.watch("--stall", "100ms", "--interval", "10ms", "--for", "1.5", "--on-hang", "kill", f"pid:{target.pid}")
        self.assertEqual((self.findings(self.found(watcher)), watcher.returncode, self.kept()), ([], 0, ["hangscope"]))
        self.assertIsNone(target.poll())


LOCKS = """
import threading, time
first, second = threading.Lock(), threading.Lock()
def take(a, b):
    with a:
        time.sleep(0.1)
        with b: pass
threads = [threading.Thread(target=take, args=pair) for pair in ((first, second), (second, first))]
for each in threads: each.start()
print("started")
for each in threads: each.join()
"""


class WithoutScope(Targets):
    """Processes that record nothing: their threads are watched."""

    def start_python(self, code):
        process = subprocess.Popen(python(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), b"started\n")
        return process

    def test_a_hang_is_found_and_its_process_ended(self):
        target = self.start_python(LOCKS)
        self.prefix = str(self.folder / "a new" / "folder" / "P")
        watcher = self.watch("--stall", "500ms", "--on-hang", "kill", "--prefix", self.prefix, f"pid:{target.pid}", "--junit", self.folder / "j.xml")
        messages = self.found(watcher)
        self.assertEqual(watcher.returncode, 1)
        verdict, = [m for m in messages if m["type"] == "verdict"]
        self.assertEqual((verdict["hang"], verdict["state"]), (True, "deadlock"))
        self.assertEqual(target.wait(10), -signal.SIGTERM)
        folder = pathlib.Path(f"{self.prefix}.snapshot-0001")
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual((manifest["pid"], manifest["verdict"]["summary"]), (target.pid, verdict["summary"]))
        self.assertIn(str(target.pid), (folder / "threads.jsonl").read_text())
        failure = xml.etree.ElementTree.parse(self.folder / "j.xml").getroot().find("testcase/failure")
        self.assertIn(verdict["summary"], failure.attrib["message"])
        self.assertIn("ended by hangscope (--on-hang kill)", failure.text)

    def test_who_waits_for_the_outside_or_works_is_left_alone(self):
        idle = self.start_python("print('started'); input()")
        works = self.start_python("import time; print('started')\nwhile True: time.sleep(0.01)")
        watchers = [self.watch("--stall", "300ms", "--for", "1.5", "--on-hang", "kill", f"pid:{each.pid}") for each in (idle, works)]
        for watcher in watchers:
            messages = self.found(watcher)
            self.assertEqual(([m for m in messages if m["type"] == "verdict"], watcher.returncode), ([], 0))
        self.assertEqual((idle.poll(), works.poll()), (None, None))
        self.assertEqual([p.name for p in pathlib.Path(os.environ["XDG_STATE_HOME"]).rglob("*")], ["hangscope"])

    def test_what_merely_may_hang_is_not_acted_on_before_the_stall_time(self):
        target = self.start_python("import time; print('started'); time.sleep(100)")
        words = ("--act-on", "possible", "--on-hang", "kill", "--prefix", self.prefix, f"pid:{target.pid}")
        messages = self.found(self.watch("--stall", "5", "--for", "1", *words))
        self.assertEqual(([m for m in messages if m["type"] == "verdict"], target.poll()), ([], None))
        verdict = next(m for m in self.found(self.watch("--stall", "300ms", *words)) if m["type"] == "verdict")
        self.assertEqual((verdict["confidence"], verdict["hang"], target.wait(10)), ("possible", False, -signal.SIGTERM))

    def test_one_that_may_not_be_looked_into_is_refused_and_says_why(self):
        if os.geteuid() != 0:
            self.skipTest("only root becomes another user")
        target = self.start_python("print('started'); input()")
        done = self.hangscope("watch", f"pid:{target.pid}", "--for", "1", user=65534, group=65534, extra_groups=[],
                              env={**os.environ, "HOME": "/nonexistent", "XDG_STATE_HOME": "", "XDG_RUNTIME_DIR": ""})
        self.assertEqual((done.status, done.out), (3, b""))
        self.assertRegex(done.err.decode(), rf"threads of process {target.pid} .*may not be looked at: Permission denied")

    def test_its_end_is_told(self):
        target = self.start_python("print('started'); input()")
        watcher = self.watch(f"pid:{target.pid}")
        self.lines_until(watcher, lambda m: m["text"].startswith("watching"))
        target.communicate(b"\n")
        self.assertIn(f"process {target.pid} ended", self.found(watcher)[-1]["text"])
        self.assertEqual(watcher.returncode, 0)


class Log(Targets):
    def test_it_has_the_legend_on_top_and_lines_for_changes_only(self):
        target = self.start("deadlock")
        log = self.folder / "watch.log"
        watcher = self.watch("--log", log, "--interval", "10ms", "--stall", "300ms", "--for", "1", f"pid:{target.pid}", text_only=True)
        watcher.communicate(timeout=30)
        lines = log.read_text().splitlines()
        self.assertTrue(lines[0].startswith("hangscope watch, log of 20"))
        head = next(i for i, line in enumerate(lines) if line.startswith("time"))
        at = lines[head].index("activity")
        rows = [line for line in lines[head + 1:] if re.match(r"^\S+Z +\d+ (alpha|beta|copiers) ", line)]
        self.assertEqual({row[at:].split()[0] for row in rows}, {"waiting", "idle"})
        # Nothing moves: the first look, and what it took the watcher to see that.
        self.assertLess(len(rows), 10)
        self.assertEqual(sum("HANG: deadlock" in line for line in lines), 1)
        self.assertIn("polls in", lines[-1])

    def test_it_is_rotated_within_its_bound_and_each_file_has_the_legend(self):
        target = self.start()
        log = self.folder / "watch.log"
        watcher = self.watch("--log", log, "--log-size", "64K", "--log-keep", "2", "--interval", "1ms", f"pid:{target.pid}", text_only=True)
        old = pathlib.Path(f"{log}.1")
        size = lambda file: file.stat().st_size if file.exists() else 0  # for a moment there is none
        self.until(lambda: size(old) > 32 << 10 and size(log) > 16 << 10)
        watcher.terminate()
        watcher.communicate(timeout=30)
        for file in (log, old):
            self.assertLessEqual(file.stat().st_size, 64 << 10)
            self.assertTrue(file.read_text().startswith("hangscope watch, log of 20"))
            self.assertIn("\nactivity  running, idle", file.read_text())
        self.assertFalse(pathlib.Path(f"{log}.2").exists())

    def test_dumps_come_as_often_as_is_said(self):
        target = self.start()
        log = self.folder / "watch.log"
        watcher = self.watch("--log", log, "--dump-every", "150ms", "--interval", "10ms", "--for", "1", f"pid:{target.pid}", text_only=True)
        watcher.communicate(timeout=30)
        dumps = re.findall(r"dump (\d+) of [^,]*, (.*)$", log.read_text(), re.MULTILINE)
        self.assertEqual([int(number) for number, _ in dumps], list(range(1, len(dumps) + 1)))
        self.assertEqual((dumps[0][1], dumps[-1][1]), ("at the beginning", "at the end"))
        self.assertTrue(4 <= len(dumps) <= 8, dumps)

    def test_append_goes_on_and_json_is_json(self):
        target = self.start("deadlock")
        log = self.folder / "watch.jsonl"
        for _ in range(2):
            self.watch("--log", log, "--append", "--interval", "20ms", "--stall", "100ms", "--exit-on-hang", f"pid:{target.pid}").communicate(timeout=30)
        messages = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([m["type"] for m in messages if m["type"] in ("finding", "end")], ["finding", "end"] * 2)
        self.assertIn("change", {m["type"] for m in messages})


class Set(Targets):
    def test_pause_and_resume_reach_one_core_and_watching_goes_on(self):
        target = self.start()
        done = self.hangscope("set", "pause", f"pid:{target.pid}", "beta")
        self.assertEqual(done.status, 0, done.err)
        self.assertIn(b"pause set for 1 core: thread beta", done.out)
        self.until(lambda: self.core_of(target, "beta")["activity"] == "paused")
        self.assertEqual(self.core_of(target, "alpha")["activity"], "running")
        done = self.hangscope("set", "resume", f"pid:{target.pid}", "copier")  # by the role
        self.assertRegex(done.out, rb"resume set for 2 cores: thread (alpha|beta), thread (alpha|beta)\n")
        self.until(lambda: self.core_of(target, "beta")["activity"] == "running")

    def test_enter_resumes_paused_cores_and_polls_never_wait_for_it(self):
        target = self.start()
        terminal, far = self.open_terminal()
        watcher = self.watch("--interval", "20ms", f"pid:{target.pid}", stdin=far, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(far)
        said = self.lines_until(watcher, lambda m: m.get("event") == "watching")
        self.assertIn("ENTER resumes", said[-1]["text"])
        self.hangscope("set", "pause", f"pid:{target.pid}", "beta")
        said = self.lines_until(watcher, lambda m: m.get("event") == "paused")
        self.assertRegex(said[-1]["text"], r"^thread beta is paused from outside.*; ENTER resumes paused cores$")
        os.write(terminal, b"\n")
        said = self.lines_until(watcher, lambda m: m.get("event") == "resumed")
        self.assertIn("thread beta", said[-1]["text"])
        self.until(lambda: self.core_of(target, "beta")["activity"] == "running")
        watcher.terminate()
        self.assertGreater(self.found(watcher)[-1]["polls"], 5)
        os.close(terminal)

    def test_delays_masks_freezes_and_features_reach_the_scope(self):
        target = self.start()
        where = f"pid:{target.pid}"
        self.assertEqual(self.hangscope("set", "delay", where, "alpha", "read=100,write=random:500", "seed=7").status, 0)
        self.assertEqual(self.hangscope("set", "freeze", where, "beta").status, 0)
        shown = [json.loads(line) for line in self.hangscope("show", "--json", where).out.splitlines()]
        frozen = {m["name"]: m["frozen"] for m in shown if m["type"] == "core" and m["in_use"]}
        self.assertEqual((frozen["alpha"], frozen["beta"]), (False, True))
        self.assertEqual(self.hangscope("set", "mask", where, "beta", "classes=all").status, 0)
        out = self.hangscope("set", "features", where, "waits=off").out.decode()
        self.assertIn("waypoints on, waits off", out)
        out = self.hangscope("set", "features", where).out.decode()
        self.assertIn("waypoints on, waits off", out)

    def test_what_is_unknown_is_an_error_with_a_suggestion_and_changes_nothing(self):
        target = self.start()
        where = f"pid:{target.pid}"
        for words, said in ((["paus", where, "0"], "did you mean 'pause'?"), (["pause", where, "bta"], "did you mean beta?"),
                            (["delay", where, "all", "reed=1"], "did you mean 'read'?"), (["pause", where, "0", "seed=1"], "pause takes no settings"),
                            (["pause", where], "no cores are named"), (["pause", where, "64"], "there are cores 0 to 63"),
                            (["features", where, "wait=0"], "did you mean 'waits'?"), (["features", where, "0"], "features are of the whole target"),
                            (["pause"], "no target given"), ([], "nothing to set")):
            with self.subTest(said):
                before = target.scope.read_bytes()[:120]
                done = self.hangscope("set", *words)
                self.assertEqual(done.status, 2, done.out)
                self.assertIn(said, done.err.decode())
                self.assertEqual(target.scope.read_bytes()[:120], before)


class Metrics(Targets):
    def test_they_are_served_between_polls_and_nobody_holds_the_watcher_up(self):
        target = self.start("deadlock")
        watcher = self.watch("--metrics", "127.0.0.1:0", "--interval", "10ms", "--stall", "200ms", f"pid:{target.pid}")
        said = self.lines_until(watcher, lambda m: m.get("event") == "metrics")
        address = said[-1]["text"].removeprefix("metrics at ")
        port = int(address.split(":")[2].split("/")[0])
        # Clients that never read, never ask, ask for anything else.
        stuck = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        for client in stuck:
            self.addCleanup(client.close)
        stuck[0].sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        stuck[1].sendall(b"GET /met")
        self.lines_until(watcher, lambda m: m["type"] == "finding")
        text = urllib.request.urlopen(address, timeout=10).read().decode()
        label = f'target="process {target.pid}"'
        self.assertIn(f"hangscope_up{{{label}}} 1\n", text)
        self.assertIn(f'hangscope_findings_total{{{label},kind="deadlock"}} 1\n', text)
        self.assertRegex(text, rf'hangscope_activity{{{label},core="\d+",name="thread beta",activity="waiting"}} 1\n')
        with self.assertRaises(urllib.error.HTTPError) as no_page:
            urllib.request.urlopen(address.replace("/metrics", "/other"), timeout=10)
        self.assertEqual(no_page.exception.code, 404)
        no_page.exception.close()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"POST /metrics HTTP/1.1\r\n\r\n")
            self.assertTrue(client.makefile("rb").read().startswith(b"HTTP/1.1 400 "))

        def polls():
            return int(re.search(r"^hangscope_polls_total (\d+)", urllib.request.urlopen(address, timeout=10).read().decode(), re.M)[1])
        before = polls()
        self.assertGreater(before, 1)
        self.until(lambda: polls() > before + 5, what="more polls")

    def test_idle_connections_keep_nobody_out(self):
        target = self.start()
        path = self.folder / "metrics.sock"
        watcher = self.watch("--metrics", path, "--interval", "10ms", f"pid:{target.pid}")
        self.lines_until(watcher, lambda m: m.get("event") == "metrics")
        for _ in range(30):
            idle = socket.socket(socket.AF_UNIX)
            idle.connect(str(path))
            self.addCleanup(idle.close)
        time.sleep(0.2)  # they are in
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(3)
            client.connect(str(path))
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            self.assertIn(b"200 OK", client.recv(100))

    def test_they_are_served_on_a_socket_that_is_removed_in_the_end(self):
        target = self.start()
        path = self.folder / "metrics.sock"
        watcher = self.watch("--metrics", path, f"pid:{target.pid}")
        self.lines_until(watcher, lambda m: m.get("event") == "metrics")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = client.makefile("rb").read().decode()
        self.assertTrue(answer.startswith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"))
        self.promtool(answer.split("\r\n\r\n", 1)[1])
        watcher.terminate()
        watcher.communicate(timeout=30)
        self.assertFalse(path.exists())

    def promtool(self, text):
        """Prometheus's own opinion, where it is installed (package prometheus)."""
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), capture_output=True, timeout=30)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))


class Kernel(Targets):
    """A kernel of five tasks on one hart of QEMU, examples/trace_sched."""

    def start_kernel(self, **plan):
        folder = watched_targets.new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder)
        guest = watched_targets.start_sched(folder, **plan)
        self.addCleanup(guest.kill)
        guest.until_recording()
        return guest

    def test_a_core_that_loops_with_interrupts_off_is_silent_and_why_says_the_same(self):
        guest = self.start_kernel(fault="STUCK", task=2, round=5, pace_ms=100)
        options = ("--stall", "1", "--elf", guest.elf)
        watcher = self.watch(*options, "--for", "20", "--exit-on-hang", guest.target)
        finding, = [f for f in self.findings(self.found(watcher)) if f["hang"]]
        guest.until_planted()
        said = [json.loads(line) for line in self.hangscope("why", "--json", *options, guest.target).out.splitlines()]
        for found in (finding, *[f for f in self.findings(said) if f["hang"]]):
            self.assertEqual((found["kind"], found["confidence"]), ("silent", "likely"))
            self.assertEqual([s["name"] for s in found["subjects"]], ["core 0"])
        self.assertEqual(len([f for f in self.findings(said) if f["hang"]]), 1)

    def test_a_kernel_that_works_and_one_that_sleeps_for_longer_are_none(self):
        for plan in ({"pace_ms": 20}, {"fault": "SLEEPS", "task": 0, "round": 2, "value": 4000, "pace_ms": 20}):
            guest = self.start_kernel(**plan)
            watcher = self.watch("--stall", "500ms", "--elf", guest.elf, "--for", "2.5", guest.target)
            self.assertEqual([f for f in self.findings(self.found(watcher)) if f["hang"]], [])
            self.assertEqual(watcher.returncode, 0)

    def test_a_word_of_the_header_that_is_written_over_is_corrupt_and_the_guest_is_watched_on(self):
        guest = self.start_kernel(pace_ms=20)
        watcher = self.watch("--stall", "300ms", "--elf", guest.elf, "--for", "2", guest.target)
        self.lines_until(watcher, lambda m: m.get("event") == "watching")
        with open(guest.scope, "r+b") as file:
            file.seek(guest.scope_at + 26)  # in the count of cores
            file.write(b"\x55")
        messages = self.found(watcher)
        finding, = self.findings(messages)
        self.assertEqual(finding["kind"], "corrupt")
        self.assertIn("core_count 0x00550001", finding["summary"])
        self.assertEqual([m for m in messages if m["type"] == "note"], [])

    def test_what_its_end_interrupted_is_no_hang(self):
        guest = self.start_kernel(rounds=40, pace_ms=5)
        guest.process.wait(timeout=30)
        why = self.hangscope("why", "--stall", "500ms", "--elf", guest.elf, guest.target)
        watcher = self.watch("--stall", "500ms", "--elf", guest.elf, "--for", "20", guest.target)
        messages = self.found(watcher)
        self.assertEqual((why.status, watcher.returncode, self.findings(messages)), (0, 0, []))
        self.assertIn("taken for a dump", next(m["text"] for m in messages if m.get("event") == "dump"))


class Why(Targets):
    def check_deadlock(self, out):
        self.assertRegex(out, r"\AHANG: deadlock, 2 of 3 cores wait for each other \((certain|likely)\)\n")
        self.assertRegex(out, r"thread (alpha|beta) +waits.* at LCKW for (queue|table|0x6[56]) \(held by thread (alpha|beta)\)")
        self.assertRegex(out, r"first to stop: thread (alpha|beta), after (copied block 0|event 64)")
        self.assertLessEqual(len(out.splitlines()), 24)

    def test_a_live_process_and_a_dead_ones_scope_file_say_the_same(self):
        target = self.start("deadlock")
        status, out = self.why("--stall", "300ms", f"pid:{target.pid}")
        self.assertEqual(status, 1)
        self.check_deadlock(out)
        target.kill()
        target.wait()
        for where in ([target.scope], ["--elf", PROGRAM, target.scope]):
            with self.subTest(where):
                status, out = self.why(*where)
                self.assertEqual(status, 1)
                self.check_deadlock(out)
        self.assertRegex(out, r"at LCKW for queue \(held by thread (alpha|beta)\)   copiers\.cc:\d+")

    def test_a_core_dump_says_the_same(self):
        if shutil.which("gcore") is None:
            self.skipTest("there is no gcore here (package gdb)")
        target = self.start("deadlock")
        pathlib.Path(f"/proc/{target.pid}/coredump_filter").write_text("0x3f")  # mapped files, too
        made = subprocess.run(["gcore", "-o", str(self.folder / "core"), str(target.pid)], capture_output=True, timeout=60)
        if made.returncode != 0:
            self.skipTest(f"gcore may not look into processes here: {made.stderr.decode()[-200:]}")
        status, out = self.why("--elf", PROGRAM, f"core:{self.folder}/core.{target.pid}")
        self.assertEqual(status, 1)
        self.check_deadlock(out)

    def test_what_works_is_no_hang_whether_alive_or_dead(self):
        target = self.start()
        status, out = self.why("--stall", "300ms", f"pid:{target.pid}")
        self.assertEqual((status, out.splitlines()[0].split(":")[0]), (0, "no hang found"))
        target.stdin.write(b"x")
        target.stdin.flush()
        target.wait()
        status, out = self.why(target.scope)
        self.assertEqual((status, out.splitlines()[0].split(":")[0]), (0, "no hang found"))

    def test_json_has_the_finding_and_every_core(self):
        target = self.start("deadlock")
        done = self.hangscope("why", "--json", "--stall", "200ms", f"pid:{target.pid}")
        messages = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual((done.status, messages[0]["type"], messages[0]["state"]), (1, "verdict", "deadlock"))
        finding, = messages[0]["findings"]  # what its threads wait for is the same hang
        self.assertEqual((finding["kind"], len(finding["subjects"])), ("deadlock", 2))
        self.assertEqual(sorted(m["name"] for m in messages if m["type"] == "change"), ["thread alpha", "thread beta", "thread copiers"])

    def test_a_scope_that_comes_within_a_second_is_watched(self):
        """A target that was just reset has none until it begins anew."""
        scope = scope_images.Scope("<", 8, minor=1)
        scope.watch = scope_images.Watch(scope, [(0, 0)])
        scope.core("", 0)
        scope.watch.mailbox(0, waypoint=int.from_bytes(b"MULR", "little"), heartbeat=1)
        whole, image = self.folder / "ram", scope.bytes()
        whole.write_bytes(bytes(len(image)))
        watcher = subprocess.Popen([HANGSCOPE, "watch", "--json", "--for", "300ms", whole], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, watcher)
        time.sleep(0.3)
        self.assertIsNone(watcher.poll())
        with open(whole, "r+b") as file:
            file.write(image)
        out, err = watcher.communicate(timeout=20)
        self.assertEqual((watcher.returncode, err), (0, b""))
        self.assertIn(b'"event":"watching"', out)
        whole.write_bytes(bytes(len(image)))
        done = self.hangscope("watch", "--for", "300ms", whole)
        self.assertEqual(done.status, 3)
        self.assertIn(b"has no scope", done.err)

    def test_what_cannot_be_read_is_status_3(self):
        empty = self.folder / "empty"
        empty.write_bytes(bytes(8192))
        for where, said in ((self.folder / "none", "none"), (empty, "has no scope"), ("pid:999999999", "there is no process 999999999")):
            done = self.hangscope("why", where)
            self.assertIn(done.status, (2, 3))
            self.assertIn(said, done.err.decode())


if __name__ == "__main__":
    main()
