"""hangscope why pid:N of programs that know nothing of it: what hangs is named right, what works is left alone."""
import json
import os
import pathlib
import pwd
import re
import signal
import shutil
import subprocess
import sys
import time

import support

HUNG = support.FIRMWARE / "hung"
TOOLS = pathlib.Path(support.BUILD) / "tests"
MOST_S = 0.2  # that why may take, for a hundred threads


def states(pid):
    """The state of each thread, and how often it was switched; None: it ended meanwhile."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            status = (task / "status").read_text()
        except OSError:
            return None
        state = re.search(r"State:\t(.)", status)[1]
        switches = re.findall(r"ctxt_switches:\t(\d+)", status)
        found[int(task.name)] = (state, tuple(switches) if state != "R" else ())
    return found


def family(pid):
    """The states of a process's threads and of its descendants'; None: one of them ended meanwhile."""
    found = states(pid)
    try:
        children = [int(child) for task in found or () for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    except OSError:
        return None
    for child in children:
        found = None if found is None or (of_child := family(child)) is None else found | of_child
    return found


def spins(thread):
    """Whether it has run for long: one that runs may as well be on its way to where it waits, on a busy machine."""
    try:
        fields = pathlib.Path(f"/proc/{thread}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[11]) + int(fields[12]) >= 5  # hundredths of a second


def signals(pid):
    """What each thread of a process and of its children blocks, ignores, handles and has pending."""
    found = {}
    for thread in family(pid) or ():
        try:
            status = pathlib.Path(f"/proc/{thread}/status").read_text()
        except OSError:
            continue  # it ended
        found[thread] = re.findall(r"((?:Sig|Shd)(?:Pnd|Blk|Ign|Cgt)):\t(\w+)", status)
    return found


def begins_threads(pid):
    """Who starts a thread blocks all signals meanwhile, those of the C library, too, which nobody else can; so does the thread."""
    return any(name == "SigBlk" and int(mask, 16) >> 31 & 3 == 3 for thread in signals(pid).values() for name, mask in thread)


class WhyCase(support.Case):
    def start(self, program, *words, stdin=subprocess.DEVNULL, **popen):
        """Starts an example and waits for its first line."""
        process = subprocess.Popen([program, *words], stdin=stdin, stdout=subprocess.PIPE, **popen)
        self.addCleanup(self.finish, process)
        self.assertTrue(process.stdout.readline(), f"{program} said nothing")
        return process

    @staticmethod
    def finish(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()

    def settled(self, pid):
        """Waits until its threads and its children's stand still for 50 ms, or spin."""
        def stands_still():
            before = family(pid)
            time.sleep(0.05)
            return before is not None and before == family(pid) and all(state != "R" or spins(thread) for thread, (state, _) in before.items())
        self.until(stands_still, what=f"process {pid} came to rest")

    def hung(self, name):
        process = self.start(HUNG / name)
        self.settled(process.pid)
        return process

    def why(self, pid, *words, **popen):
        """The status, the note on how it was looked at, and the findings."""
        outcome = self.hangscope("why", f"pid:{pid}", "--json", *words, **popen)
        lines = [json.loads(line) for line in outcome.out.splitlines()]
        self.assertTrue(lines, outcome.err)
        return outcome.status, next((line for line in lines if line["type"] == "note"), None), lines[0].get("findings", []), lines

    def only_finding(self, pid, kind, confidence):
        status, _, findings, lines = self.why(pid)
        self.assertEqual(1, len(findings), lines)
        self.assertEqual((kind, confidence, 1), (findings[0]["kind"], findings[0]["confidence"], status), findings[0])
        return findings[0]

    @staticmethod
    def names(finding):
        return {thread["name"].split(maxsplit=1)[1] for thread in finding["subjects"]}

    def source_line(self, program, text):
        """Where `text` stands in the source of an example: "abba_locks.cc:20"."""
        lines = (support.ROOT / "examples/hung" / program).read_text().splitlines()
        return [f"{program}:{i + 1}" for i, line in enumerate(lines) if text in line]


class HungPrograms(WhyCase):
    def test_two_mutexes_in_opposite_order_are_a_deadlock_with_names_and_lines(self):
        found = self.only_finding(self.hung("abba_locks").pid, "deadlock", "certain")
        self.assertEqual({"a-to-b", "b-to-a"}, self.names(found))
        self.assertEqual("deadlock, 2 of 3 threads wait for each other", found["summary"])
        first, other = found["subjects"]
        self.assertIn(f"held by {other['thread']}", first["does"])
        self.assertIn(f"held by {first['thread']}", other["does"])
        self.assertEqual({"lock_a", "lock_b"}, set(re.findall(r"mutex (lock_.)", first["does"] + other["does"])))
        for thread in found["subjects"]:
            self.assertIn("Transfer", thread["where"])
            self.assertIn(thread["where"].split()[-1], self.source_line("abba_locks.cc", "to.lock()"))
            self.assertRegex(thread["callers"][0], r"\S+  abba_locks\.cc:\d+$")
            self.assertNotRegex(" ".join(thread["callers"]), "std::|pthread|clone")

    def test_a_signal_that_came_too_early_is_lost(self):
        found = self.only_finding(self.hung("lost_signal").pid, "lost-wakeup", "likely")
        self.assertEqual({"consumer"}, self.names(found))
        self.assertIn("condition work_came", found["subjects"][0]["does"])
        self.assertIn(found["subjects"][0]["where"].split()[-1], self.source_line("lost_signal.cc", "pthread_cond_wait(&work"))

    def test_code_of_no_file_has_no_name(self):
        code = "b'\\xeb\\xfe'"  # x86-64: jumps to itself
        process = self.start(sys.executable, "-c",
                             "import ctypes, mmap\n"
                             "page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
                             f"page.write({code})\n"
                             "loop = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
                             "print('up', flush=True)\n"
                             "loop()")

        def frames_of_no_file():
            maps = [line.split() for line in pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()]
            anonymous = [[int(end, 16) for end in line[0].split("-")] for line in maps if len(line) == 5]
            lines = self.why(process.pid)[3]
            frames = [frame for line in lines if line.get("tid") == process.pid for frame in line.get("stack", []) if "pc" in frame]
            return [frame for frame in frames if any(begin <= int(frame["pc"], 16) < end for begin, end in anonymous)]
        frames = self.until(frames_of_no_file, what="the loop in the page")
        self.assertEqual([], [frame for frame in frames if frame.get("function") or frame.get("module")])

    def test_what_node_runs_has_the_names_of_javascript(self):
        if not shutil.which("node"):
            self.skipTest("no node here")
        program = self.folder / "spin.js"
        program.write_text("let isReady = false;\n\nfunction waitForReady() {\n  while (!isReady);\n}\n\n"
                           "setTimeout(() => { isReady = true; }, 100);\nconsole.log('up');\nwaitForReady();\n")
        process = self.start("node", program)

        def names():
            lines = self.why(process.pid)[3]
            frames = [frame for line in lines if line.get("tid") == process.pid for frame in line.get("stack", [])]
            return [(frame.get("function"), frame.get("source"), frame.get("module")) for frame in frames if frame.get("language") == "javascript"]
        # Of what V8 interprets it is the line of the call, of what it has compiled that of the function.
        self.assertEqual(("waitForReady", "spin.js:3", str(program)), self.until(names, what="frames of JavaScript")[0])
        self.assertEqual(("(anonymous)", "spin.js:9", str(program)), names()[1])

    def machine_without_tables(self, java):
        """A copy of a machine of Java whose tables for debuggers have another name: as one that is not known."""
        home = pathlib.Path(java).resolve().parent.parent
        copy = self.folder / "java"
        shutil.copytree(home, copy, copy_function=os.symlink, ignore_dangling_symlinks=True)
        for file in ("bin/java", "lib/libjli.so", "lib/server/libjvm.so"):  # these look where they lie
            (copy / file).unlink()
            shutil.copy(home / file, copy / file)
        machine = copy / "lib/server/libjvm.so"
        machine.write_bytes(machine.read_bytes().replace(b"gHotSpotVMStructs\0", b"gHotSpotVMStructX\0"))
        return copy / "bin/java"

    def test_a_machine_of_java_that_is_not_known_is_asked_where_that_is_wanted(self):
        java = shutil.which("java") and shutil.which("javac") and shutil.which("java")
        if not java:
            self.skipTest("no java and javac here")
        (self.folder / "Bank.java").write_text("""
  class Bank {
    static void transfer(Object from, Object to) throws Exception {
        synchronized (from) {
            Thread.sleep(300);
            synchronized (to) {
                System.out.println("never");
            }
        }
    }
    static Thread teller(String name, Object from, Object to) {
        return new Thread(() -> { try { transfer(from, to); } catch (Exception e) { } }, name);
    }
    public static void main(String[] words) {
        Object a = new Object(), b = new Object();
        teller("teller-1", a, b).start();
        teller("teller-2", b, a).start();
        System.out.println("up");
    }
}
""")
        subprocess.run(["javac", "-d", self.folder, self.folder / "Bank.java"], check=True)
        process = self.start(self.machine_without_tables(java), "-Xshare:auto", "-cp", self.folder, "Bank")

        def found(*options):
            return [f for f in self.why(process.pid, *options)[2] if f["kind"] == "deadlock"]
        time.sleep(0.5)
        text = self.hangscope("why", f"pid:{process.pid}").out.decode()
        self.assertIn(f"hangscope why --ask {process.pid} asks the machine for them", text)
        self.assertEqual([], found())
        deadlock = self.until(lambda: found("--ask"), what="the deadlock")[0]
        self.assertEqual({"teller-1", "teller-2"}, {who["name"].split()[-1] for who in deadlock["subjects"]})
        self.assertEqual({"Bank.transfer  Bank.java:7"}, {who["where"] for who in deadlock["subjects"]})
        self.assertIsNone(process.poll(), "it has ended by that")

    def test_threads_of_ruby_that_want_each_others_mutex(self):
        if not shutil.which("ruby3.1"):
            self.skipTest("no Ruby 3.1 here")
        program = self.folder / "bank.rb"
        program.write_text("def transfer(from, to)\n  from.synchronize do\n    sleep 0.2\n    to.synchronize { puts 'moved' }\n  end\nend\n\n"
                           "first, second = Mutex.new, Mutex.new\n"
                           "tellers = [[first, second], [second, first]].map { |pair| Thread.new { transfer(*pair) } }\n"
                           "tellers.each_with_index { |teller, i| teller.name = \"teller-#{i}\" }\n"
                           "Thread.new { loop { sleep 0.1 } }\n"  # else Ruby would end it
                           "$stdout.puts 'up'\n$stdout.flush\ntellers.each(&:join)\n")
        process = self.start("ruby3.1", program)
        found, = self.until(lambda: [each for each in self.why(process.pid)[2] if each["kind"] == "deadlock"], what="a deadlock")
        self.assertEqual("likely", found["confidence"], found)
        self.assertEqual({"teller-0", "teller-1"}, self.names(found))
        first, other = found["subjects"]
        self.assertRegex(first["does"], rf"for Mutex at 0x[0-9a-f]+, held by {other['thread']}$")
        self.assertRegex(other["does"], rf"for Mutex at 0x[0-9a-f]+, held by {first['thread']}$")
        self.assertEqual("block in transfer  bank.rb:4", first["where"])
        lines = self.why(process.pid)[3]
        frames = [frame for line in lines if line.get("tid") == first["thread"] for frame in line.get("stack", []) if frame.get("language") == "ruby"]
        self.assertEqual([("block in transfer", "bank.rb:4", str(program)), ("transfer", "bank.rb:2", str(program))],
                         [(frame["function"], frame["source"], frame["module"]) for frame in frames[:2]])

    def test_a_reader_of_a_pipe_that_it_could_only_write_itself(self):
        process = self.hung("silent_pipe")
        found = self.only_finding(process.pid, "no-writer", "certain")
        self.assertEqual([process.pid], [thread["thread"] for thread in found["subjects"]])
        self.assertIn("a pipe (fd 3) written by itself", found["subjects"][0]["does"])
        self.assertIn(found["subjects"][0]["where"].split()[-1], self.source_line("silent_pipe.cc", "while (read("))

    def test_a_mutex_whose_owner_ended(self):
        found = self.only_finding(self.hung("dead_owner").pid, "owner-died", "certain")
        self.assertRegex(found["summary"], r"mutex table_lock, held by \d+, which ended")
        self.assertEqual("look_up()", found["subjects"][0]["where"].split("  ")[0])

    def test_a_spin_for_a_flag_that_nobody_sets(self):
        process = self.hung("busy_spin")
        # On a busy machine the time for its steps may be over before the circle is closed.
        found = self.until(lambda: self.why(process.pid)[2], what="a circle")[0]
        self.assertEqual(("spin", "certain"), (found["kind"], found["confidence"]), found)
        self.assertIn("spins for table_ready", found["summary"])
        self.assertEqual("wait_for_table()", found["subjects"][0]["where"].split("  ")[0])

    def test_a_child_that_is_stopped(self):
        process = self.hung("stopped_child")
        found = self.only_finding(process.pid, "stopped-child", "certain")
        child, = (partner["process"] for partner in found["partners"])
        self.assertIn(f"process {child} (stopped_child), which is stopped", found["summary"])
        self.assertEqual("T", states(child)[child][0])
        self.assertEqual("wait_for_job(int)", found["subjects"][0]["where"].split("  ")[0])

    def test_two_processes_that_wait_for_each_other(self):
        found = self.only_finding(self.hung("two_processes").pid, "deadlock", "certain")
        self.assertEqual({"two_processes", "server"}, self.names(found))
        self.assertEqual("deadlock, 2 threads of 2 processes wait for each other", found["summary"])
        self.assertEqual({"ask()", "serve()"}, {thread["where"].split("  ")[0] for thread in found["subjects"]})

    def test_the_same_from_the_other_end(self):
        server, = self.only_finding(self.hung("two_processes").pid, "deadlock", "certain")["subjects"][1:]
        self.assertEqual(server["process"], self.only_finding(server["process"], "deadlock", "certain")["subjects"][0]["process"])

    def test_of_a_long_chain_of_processes_it_says_how_many_it_left_out(self):
        links = 70  # each reads what the one before it writes
        shell = self.start("sh", "-c", "(echo begun; sleep 1000) | " + "cat | " * links + "cat", start_new_session=True)
        self.addCleanup(os.killpg, shell.pid, signal.SIGKILL)
        self.settled(shell.pid)
        processes = [line for line in self.why(max(family(shell.pid)))[3] if line["type"] == "process"]
        self.assertEqual(len(processes), 64)
        self.assertRegex(" ".join(processes[0]["troubles"]), r"\d+ more process(es were| was) not looked at: a look takes at most \d+ processes")

    def test_without_stopping_anybody(self):
        process = self.hung("abba_locks")
        status, note, findings, _ = self.why(process.pid, "--no-stop")
        self.assertEqual((1, ["deadlock"], 0), (status, [f["kind"] for f in findings], note["longest_stop_s"]))

    def test_a_process_that_is_stopped_itself(self):
        process = self.start(HUNG / "controls", "sleep")
        process.send_signal(signal.SIGSTOP)
        self.until(lambda: states(process.pid)[process.pid][0] == "T", what="it is stopped")
        found = self.only_finding(process.pid, "stopped", "certain")
        self.assertIn(f"kill -CONT {process.pid} lets it go on", found["evidence"])
        self.assertEqual("T", states(process.pid)[process.pid][0], "looking at it let it go on")

    def test_on_a_screen_of_eighty_columns_the_verdict_is_first(self):
        process = self.hung("abba_locks")
        screen, terminal = self.open_terminal()
        os.set_blocking(screen, False)
        fcntl_size = "stty cols 80 rows 24 && exec " + support.HANGSCOPE + f" why {process.pid}"
        done = subprocess.run(["sh", "-c", fcntl_size], stdin=terminal, stdout=terminal, timeout=60)
        os.close(terminal)
        text = os.read(screen, 1 << 16).decode()
        os.close(screen)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
        self.assertEqual((1, "HANG: deadlock, 2 of 3 threads wait for each other (certain)"), (done.returncode, lines[0]))
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertLessEqual(len(lines), 22)


class Controls(WhyCase):
    def assert_silent(self, pid, times=3):
        for _ in range(times):
            status, note, findings, lines = self.why(pid)
            self.assertEqual((0, []), (status, [f["summary"] for f in findings]), lines)
            self.assertNotIn(lines[0]["state"], ("deadlock", "starved", "looping", "fault", "partial"))

    def control(self, mode, **popen):
        return self.start(HUNG / "controls", mode, **popen)

    def test_a_server_with_an_idle_pool(self):
        process = self.control("server")
        self.settled(process.pid)
        self.assert_silent(process.pid)

    def test_a_slow_computation(self):
        self.assert_silent(self.control("compute").pid)

    def test_a_program_that_waits_for_its_terminal(self):
        screen, terminal = self.open_terminal()
        process = self.control("terminal", stdin=terminal)
        os.close(terminal)
        self.addCleanup(os.close, screen)
        self.settled(process.pid)
        self.assert_silent(process.pid)

    def test_threads_that_hand_a_ball_to_and_fro(self):
        self.assert_silent(self.control("busy").pid, times=5)

    def test_a_sleeper(self):
        self.assert_silent(self.control("sleep").pid)

    def test_a_parent_of_a_child_that_computes(self):
        process = self.control("job")
        self.settled(process.pid)
        self.assert_silent(process.pid)

    def test_a_wait_for_a_thread_that_naps(self):
        process = self.control("poll")
        self.settled(process.pid)
        self.assert_silent(process.pid)

    def test_a_shell_whose_command_sleeps(self):
        process = self.start("/bin/sh", "-c", "echo ready; sleep 1000; :")
        self.addCleanup(lambda: [os.kill(int(child), signal.SIGKILL) for child in children])
        children = self.until(lambda: pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        self.settled(process.pid)
        self.assert_silent(process.pid)


class Launchers(WhyCase):
    """Those who start others, and wait for them: they are idle while these work, and what hangs among these is named."""
    def launch(self, *words, **popen):
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, cwd=self.folder, **popen)
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        return process

    def makefile(self, name, text):
        path = pathlib.Path(self.folder, name)
        path.write_text(text.replace("    ", "\t"))
        return path.name

    def names(self, pid):
        return sorted(pathlib.Path(f"/proc/{thread}/comm").read_text().strip() for thread in family(pid) or ())

    def assert_idle(self, process, names):
        self.until(lambda: self.names(process.pid) == sorted(names), what=f"{names} run")
        self.settled(process.pid)
        status, _, findings, lines = self.why(process.pid)
        self.assertEqual((0, []), (status, findings), lines)

    def test_make_of_many_jobs(self):
        self.makefile("Makefile", "all: a b c d\na b c d:\n    sleep 1000\n")  # one of them has to wait
        self.assert_idle(self.launch("make", "-j3"), ["make", "sleep", "sleep", "sleep"])

    def test_make_of_make(self):
        self.makefile("inner", "all: a b c d\na b c d:\n    sleep 1000\n")
        outer = self.makefile("outer", "all:\n    +$(MAKE) -f inner\n")
        self.assert_idle(self.launch("make", "-j3", "-f", outer), ["make", "make", "sleep", "sleep", "sleep"])

    def test_a_loop_that_its_own_handlers_wake(self):
        script = ("import asyncio, signal\n"
                  "async def main():\n"
                  "    stop = asyncio.Event()\n"
                  "    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)\n"
                  "    await stop.wait()\n"
                  "asyncio.run(main())\n")
        process = self.launch("python3", "-c", script)
        self.until(lambda: self.handles_term(process.pid), what="it handles SIGTERM")
        self.settled(process.pid)
        self.assertEqual(0, self.why(process.pid)[0])

    @staticmethod
    def handles_term(pid):
        caught = [int(mask, 16) for name, mask in signals(pid).get(pid, ()) if name == "SigCgt"]
        return caught and caught[0] >> (signal.SIGTERM - 1) & 1

    def assert_leads_to_the_locks(self, process):
        self.until(lambda: any(name.startswith("b-to-a") for name in self.names(process.pid)), what="the locks are taken")
        self.settled(process.pid)
        status, _, findings, lines = self.why(process.pid)
        self.assertEqual((1, "certain"), (status, findings[0]["confidence"]), lines)
        self.assertRegex(findings[0]["summary"], r"^deadlock, 2 of 3 threads of process \d+ \(abba_locks\) wait for each other "
                                                 r"\(mutex lock_a, mutex lock_b\)$")

    def test_of_two_jobs_of_make_one_hangs(self):
        self.makefile("Makefile", f"all: a b\na:\n    sleep 1000\nb:\n    {HUNG / 'abba_locks'}\n")
        self.assert_leads_to_the_locks(self.launch("make", "-j2"))

    def test_of_the_commands_of_a_shell_one_hangs(self):
        self.assert_leads_to_the_locks(self.launch("sh", "-c", f"sleep 1000 & {HUNG / 'abba_locks'} & wait"))

    def test_a_command_with_a_time_limit_hangs(self):
        self.assert_leads_to_the_locks(self.launch("timeout", "1000", HUNG / "abba_locks"))

    def test_a_hang_that_is_only_likely_is_so_behind_a_launcher_too(self):
        for words in (("timeout", "1000", HUNG / "lost_signal"), ("sh", "-c", f"sleep 1000 & {HUNG / 'lost_signal'} & wait")):
            process = self.launch(*words)
            self.until(lambda: "consumer" in self.names(process.pid), what="it waits")
            self.settled(process.pid)
            status, _, findings, lines = self.why(process.pid)
            self.assertEqual((1, "lost-wakeup", "likely"), (status, findings[0]["kind"], findings[0]["confidence"]), lines)


class Unseen(WhyCase):
    """Who may have the other end of a pipe, and cannot be seen."""
    def test_others_of_another_user(self):
        if os.getuid() != 0:
            self.skipTest("only root can be another user here")
        nobody = pwd.getpwnam("nobody").pw_uid
        if subprocess.run(["test", "-x", support.HANGSCOPE], user=nobody).returncode != 0:
            self.skipTest(f"{support.HANGSCOPE} may not be run by nobody here")
        process = self.start(HUNG / "silent_pipe", user=nobody)
        self.settled(process.pid)
        self.only_finding(process.pid, "no-writer", "certain")
        status, _, findings, _ = self.why(process.pid, user=nobody)
        self.assertEqual((0, ["possible"]), (status, [f["confidence"] for f in findings]))

    def test_others_outside_of_a_container(self):
        if os.getuid() != 0 or shutil.which("nsenter") is None:
            self.skipTest("only root can make a process namespace here, and nsenter enter it (package util-linux)")
        unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            self.skipTest("no pid namespace may be made here (unshare -p)")
        ends = os.pipe()
        self.addCleanup(lambda: [os.close(end) for end in ends])
        outer = subprocess.Popen([*unshare, "cat"], stdin=ends[0],
                                 pass_fds=[ends[1]], stdout=subprocess.DEVNULL)
        self.addCleanup(outer.wait)
        self.addCleanup(outer.kill)
        inner = self.until(lambda: [pid for pid in family(outer.pid) or () if pathlib.Path(f"/proc/{pid}/comm").read_text() == "cat\n"],
                           what="cat runs")[0]
        self.settled(inner)
        done = subprocess.run(["nsenter", "-t", str(inner), "-p", "-m", support.HANGSCOPE, "why", "pid:1"], capture_output=True, timeout=60)
        self.assertRegex(done.stdout.decode(), r"^perhaps no writer(.|\n)*outside of this\s+container")
        self.assertEqual(0, done.returncode)


class Hosts(WhyCase):
    """Two network namespaces for two hosts: either sees of a connection its own end."""
    SPACES = tuple(f"hangscope{os.getpid()}{end}" for end in "ab")
    SPEAKS = ("import socket, sys\n"
              "if sys.argv[1] == 'a':\n"
              "    listening = socket.create_server(('10.99.0.1', 7000))\n"
              "    print('listening', flush=True)\n"
              "    end = listening.accept()[0]\n"
              "    listening.close()\n"
              "else:\n"
              "    end = socket.create_connection(('10.99.0.1', 7000), 10)\n"
              "    end.settimeout(None)\n"
              "print('connected', flush=True)\n"
              "end.recv(1)")

    def setUp(self):
        super().setUp()
        if shutil.which("ip") is None or os.getuid() != 0:
            self.skipTest("only root, with ip, makes network namespaces")
        ends = [f"hs{os.getpid() % 100000}{end}" for end in "ab"]
        steps = [f"netns add {space}" for space in self.SPACES]
        steps.append(f"link add {ends[0]} netns {self.SPACES[0]} type veth peer name {ends[1]} netns {self.SPACES[1]}")
        for number, (space, end) in enumerate(zip(self.SPACES, ends), 1):
            steps += [f"-n {space} addr add 10.99.0.{number}/24 dev {end}", f"-n {space} link set {end} up"]
        for space in self.SPACES:
            self.addCleanup(subprocess.run, ["ip", "netns", "del", space], stderr=subprocess.DEVNULL)
        for step in steps:
            made = subprocess.run(["ip", *step.split()], capture_output=True, text=True)
            if made.returncode != 0:
                self.skipTest(f"no network namespaces here: {made.stderr.strip()}")

    def speaker(self, number, *launcher):
        words = ["ip", "netns", "exec", self.SPACES[number], *launcher, *support.python(self.SPEAKS, "ab"[number])]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(self.finish, process)
        return process

    def speakers(self, *launcher):
        a = self.speaker(0)
        self.assertEqual(a.stdout.readline(), b"listening\n")
        b = self.speaker(1, *launcher)
        for process in (a, b):
            self.assertEqual(process.stdout.readline(), b"connected\n")
        return a, b

    def looked_at(self, pid):
        path = pathlib.Path(self.folder, f"{pid}.jsonl")
        path.write_bytes(self.hangscope("why", f"pid:{pid}", "--json").out)
        return path

    def test_a_connection_whose_ends_are_both_waited_for(self):
        a, b = self.speakers()
        time.sleep(1.3)  # what two clocks show is sure to within a second
        self.assertEqual((0, []), self.why(a.pid)[::2])
        far = self.looked_at(b.pid)
        status, _, findings, lines = self.why(a.pid, "--with", far)
        self.assertEqual((1, [("deadlock", "likely")]), (status, [(finding["kind"], finding["confidence"]) for finding in findings]), lines)
        self.assertEqual([a.pid, b.pid], [subject["process"] for subject in findings[0]["subjects"]])
        other = far.read_text().replace(lines[1]["boot_id"], "another").replace(json.dumps(lines[1]["host"]), '"far"')
        far.write_text(other)
        subjects = self.why(a.pid, "--with", far)[2][0]["subjects"]
        self.assertEqual([(a.pid, None), (b.pid, "far")], [(subject["process"], subject.get("host")) for subject in subjects])
        self.assertIn(f"written by {b.pid} python3 on far", subjects[0]["does"])
        b.kill()
        self.until(lambda: a.poll() is not None, what="the end of the one ends the other")

    def test_with_a_snapshot_of_the_other_host(self):
        self.speakers(support.HANGSCOPE, "run", "--stall", "1", "--timeout", "3", "--heartbeat", "0", "--prefix", pathlib.Path(self.folder, "far"), "--")
        snapshot = pathlib.Path(self.folder, "far.snapshot-0001")
        self.until((snapshot / "threads.jsonl").exists, what="there is a snapshot")
        self.assertIn("connection", {json.loads(line)["type"] for line in (snapshot / "threads.jsonl").read_text().splitlines()})

    def test_what_is_no_look_is_refused(self):
        process = self.start(HUNG / "controls", "sleep")
        path = pathlib.Path(self.folder, "notes.txt")
        for text, reason in (("", "has no look at processes in it"), ("hello\n", "line 1: this is no object of JSON")):
            path.write_text(text)
            outcome = self.hangscope("why", f"pid:{process.pid}", "--with", path)
            self.assertEqual(outcome.status, 3)
            self.assertIn(reason, outcome.err.decode())


class Harmless(WhyCase):
    def quickest(self, times, *command):
        best = None
        for _ in range(times):
            begin = time.monotonic()
            subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
            took = time.monotonic() - begin
            best = took if best is None else min(best, took)
        return best

    def test_a_hundred_threads_take_a_fifth_of_a_second(self):
        process = self.start(HUNG / "controls", "pool")
        self.settled(process.pid)
        self.assertEqual(101, len(states(process.pid)))
        took = self.quickest(5, support.HANGSCOPE, "why", f"pid:{process.pid}", "--all", "--stacks")
        print(f"hangscope why: {took * 1e3:.0f} ms for 101 threads")
        if took <= MOST_S:
            return
        # On a machine that is busy with other things: no more than a fifth of what the usual way takes.
        if shutil.which("gdb") is None:
            self.skipTest(f"this machine is too busy to tell ({took:.3f} s), and has no gdb to compare with (package gdb)")
        peer = self.quickest(1, "gdb", "-p", process.pid, "-batch", "-ex", "thread apply all bt")
        print(f"gdb: {peer * 1e3:.0f} ms")
        self.assertLess(took, peer / 5)

    def test_the_program_sees_no_interrupted_call_and_no_long_pause(self):
        process = self.start(TOOLS / "unshaken", stdin=subprocess.PIPE)

        def since_before():
            process.stdin.write(b"\n")
            process.stdin.flush()
            return map(int, process.stdout.readline().split())

        for last_try in (False, False, True):
            since_before()
            time.sleep(0.5)
            usual_us, _ = since_before()
            stops_us = []
            for _ in range(5):
                _, note, _, _ = self.why(process.pid)
                stops_us.append(note["longest_stop_s"] * 1e6)
            pause_us, interrupted = since_before()
            print(f"longest pause {pause_us} us, without looking {usual_us} us, stops said to be at most {max(stops_us):.0f} us")
            self.assertEqual(0, interrupted)
            # Whatever else runs on this machine takes its turns meanwhile, but not each time.
            if last_try or pause_us < max(stops_us) + 3 * usual_us + 100_000:
                break
        self.assertLess(pause_us, max(stops_us) + 3 * usual_us + 100_000)

    def test_the_program_survives_hangscope_being_killed_in_the_middle(self):
        # One is stopped where it waits and works, the other is carried step by step.
        for mode, last_signal in (("busy", signal.SIGKILL), ("compute", signal.SIGKILL), ("compute", signal.SIGINT)):
            process = self.start(HUNG / "controls", mode)
            for i in range(10):
                looker = subprocess.Popen([support.HANGSCOPE, "why", f"pid:{process.pid}"], stdout=subprocess.DEVNULL)
                time.sleep(0.03 + 0.008 * i)
                looker.send_signal(last_signal)
                looker.wait()
            self.until(lambda: "t" not in {state for state, _ in states(process.pid).values()}, what="nobody holds it any more")
            used = self.cpu_ticks(process.pid)
            self.until(lambda: self.cpu_ticks(process.pid) > used + 2, what=f"'{mode}' goes on")
            self.assertIsNone(process.poll())

    def leaves_signals_alone(self, zoo):
        """Had it been carried in steps itself, the kernel's traps would have unblocked SIGTRAP, and taken away that it is ignored, for good."""
        seen = 0
        for words in zoo:
            process = self.start(*words, stdin=subprocess.PIPE)
            self.until(lambda: (signals(process.pid), time.sleep(0.02))[0] == signals(process.pid) and not begins_threads(process.pid),
                       what="its threads have begun")
            before = signals(process.pid)
            outcome = self.hangscope("why", f"pid:{process.pid}")
            after = signals(process.pid)
            self.assertIsNone(process.poll(), words)
            for thread in before.keys() & after.keys():
                self.assertEqual(before[thread], after[thread], f"{words}, thread {thread}: {outcome.out.decode()}")
                seen += 1
            yield process, words[-1], outcome.out.decode()
            self.finish(process)
        print(f"{seen} threads of {len(zoo)} programs")
        self.assertGreaterEqual(seen, len(zoo))

    def test_what_hung_programs_do_with_signals_stays_as_it_was(self):
        names = ("abba_locks", "busy_spin", "dead_owner", "lost_signal", "silent_pipe", "stopped_child", "two_processes")
        for _ in self.leaves_signals_alone([(HUNG / name,) for name in names]):
            pass

    def test_what_working_programs_do_with_signals_stays_as_it_was(self):
        modes = ("server", "compute", "busy", "sleep", "job", "poll")
        for _ in self.leaves_signals_alone([*((HUNG / "controls", mode) for mode in modes), (TOOLS / "wait_zoo",), (TOOLS / "wait_zoo_fast",),
                                            (TOOLS / "unshaken",)]):
            pass

    def test_what_spinning_programs_do_with_signals_stays_as_it_was(self):
        ways = ("flag", "yield", "lock", "compute", "count", "float", "nothing")
        for _ in self.leaves_signals_alone([(TOOLS / "spinner", way) for way in ways]):
            pass

    def test_who_blocks_ignores_or_handles_sigtrap_still_does_so(self):
        for process, how, said in self.leaves_signals_alone([(TOOLS / "spinner", "flag", how) for how in ("blocks", "ignores", "handles")]):
            again = lambda: self.hangscope("why", f"pid:{process.pid}").out.decode().startswith("perhaps spin")
            self.assertTrue(said.startswith("perhaps spin") or support.until(again, 20), f"{how}: {said}")
            process.send_signal(signal.SIGTRAP)
            time.sleep(0.05)
            self.assertIsNone(process.poll(), f"it died of a SIGTRAP that it {how}")

    @staticmethod
    def cpu_ticks(pid):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def test_without_privileges_ones_own_processes_can_be_looked_at(self):
        if os.getuid() != 0:
            self.skipTest("everything here is done without privileges already")
        nobody = pwd.getpwnam("nobody").pw_uid
        if subprocess.run(["test", "-x", support.HANGSCOPE], user=nobody).returncode != 0:
            self.skipTest(f"{support.HANGSCOPE} may not be run by nobody here")
        process = self.start(HUNG / "abba_locks", user=nobody)
        self.settled(process.pid)
        status, _, findings, _ = self.why(process.pid, user=nobody)
        self.assertEqual((1, ["deadlock"]), (status, [f["kind"] for f in findings]))
        self.assertIn("lock_", findings[0]["lines"][0])

    def test_what_belongs_to_somebody_else_is_refused_with_what_to_grant(self):
        if os.getuid() != 0:
            self.skipTest("only root can be another user here")
        nobody = pwd.getpwnam("nobody").pw_uid
        if subprocess.run(["test", "-x", support.HANGSCOPE], user=nobody).returncode != 0:
            self.skipTest(f"{support.HANGSCOPE} may not be run by nobody here")
        process = self.hung("abba_locks")
        outcome = self.hangscope("why", f"pid:{process.pid}", user=nobody)
        self.assertEqual((3, b""), (outcome.status, outcome.out))
        self.assertRegex(outcome.err.decode(), f"process {process.pid} .* as root")

    def test_a_thread_of_the_kernel_is_told_from_a_program(self):
        # The oldest: others come and go.
        kernel = min((int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and self.is_of_kernel(p)), default=None)
        if kernel is None:
            self.skipTest("no thread of the kernel can be seen here: this is a container")
        outcome = self.hangscope("why", f"pid:{kernel}")
        self.assertEqual(3, outcome.status, outcome.out)
        self.assertIn(b"is a thread of the kernel", outcome.err)

    @staticmethod
    def is_of_kernel(folder):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        return int(fields[6]) & 0x00200000 != 0 and fields[0] != "R"  # PF_KTHREAD

    def test_processes_that_are_no_more_or_never_were(self):
        outcome = self.hangscope("why", "pid:999999999")
        self.assertEqual(3, outcome.status)
        self.assertIn(b"999999999", outcome.err)
        child = subprocess.Popen(["true"])
        self.until(lambda: states(child.pid)[child.pid][0] == "Z", what="it ended")
        found = self.only_finding(child.pid, "zombie", "certain")
        self.assertEqual([os.getpid()], [partner["thread"] for partner in found["partners"]])
        child.wait()
        self.assertEqual(3, self.hangscope("why", f"pid:{child.pid}").status)

    def test_a_process_that_records_says_so_first_and_its_threads_after_that(self):
        process = self.start(TOOLS / "abba", cwd=self.folder)
        outcome = self.hangscope("why", f"pid:{process.pid}", cwd=self.folder)
        self.assertEqual(1, outcome.status, outcome.err)
        self.assertRegex(outcome.out.decode().splitlines()[0], "HANG: deadlock, .*wait for each other")


if __name__ == "__main__":
    support.main()
