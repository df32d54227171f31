"""The live view of hangscope watch, in tmux: what is on the screen, and what is left of it afterwards."""
import mmap
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

from scope_images import SWITCH, USER, Scope, Watch
from support import BUILD, HANGSCOPE, Case, main

PROGRAM = pathlib.Path(BUILD) / "tests" / "copiers"


class Live(Case):
    def setUp(self):
        super().setUp()
        if shutil.which("tmux") is None:
            self.skipTest("there is no tmux here to draw into (package tmux)")
        self.servers = 0

    def tmux(self, *words):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", f"{self.folder}/tmux{self.servers}", *map(str, words)], capture_output=True, text=True, timeout=20)

    def start_shell(self, columns=80, rows=24, **environment):
        """An interactive shell, on a terminal of this size, of a tmux of its own."""
        self.servers += 1
        words = {"PS1": "ready> ", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": str(self.runtime), **environment}
        shell = " ".join(["exec env -u TMUX", *(f"{name}={shlex.quote(value)}" for name, value in words.items()), "bash --norc --noprofile -i"])
        done = self.tmux("new-session", "-d", "-x", columns, "-y", rows, shell)
        if done.returncode != 0:
            self.skipTest(f"tmux cannot start here: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["tmux", "-S", f"{self.folder}/tmux{self.servers}", "kill-server"], capture_output=True, timeout=20)
        self.until_screen("ready>")

    def type(self, *keys):
        self.assertEqual(self.tmux("send-keys", *keys).stderr, "")

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options).stdout

    def until_screen(self, *wanted, timeout=20):
        """The screen once all of these patterns are on it."""
        seen = []

        def shown():
            seen[:] = [self.screen()]
            return all(re.search(pattern, seen[0], re.MULTILINE) for pattern in wanted) and seen[0]
        try:
            return self.until(shown, timeout)
        except AssertionError:
            self.fail(f"not on the screen: {wanted}\n{seen[0]}")

    def in_view(self):
        """Whether a program draws on the whole screen, beside what the shell shows."""
        return self.tmux("display-message", "-p", "#{alternate_on}").stdout.strip() == "1"

    def watch(self, *words):
        """Started from the shell; the terminal's modes from before are kept in a file."""
        self.type("-l", f"clear; stty -g >{self.folder}/before; {HANGSCOPE} watch {' '.join(map(str, words))}; echo STATUS=$?.\n")

    def check_restored(self):
        self.until(lambda: not self.in_view(), what="the end of the view")
        self.type("-l", f"clear; stty -g >{self.folder}/after; echo back\n")
        self.until_screen("^back$")
        self.assertEqual((self.folder / "after").read_text(), (self.folder / "before").read_text())

    def target(self, how):
        process = subprocess.Popen([PROGRAM, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end, process)
        self.assertTrue(process.stdout.readline())
        return process

    def pid_of_watch(self, target):
        """Of the watcher of this target, by its words."""
        def found():
            for folder in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[:2] == [os.fsencode(HANGSCOPE), b"watch"] and os.fsencode(f"pid:{target.pid}") in words:
                    return int(folder.name)
            return None
        return self.until(found, what="the watcher")


class View(Live):
    def test_a_hang_is_seen_its_core_opened_and_the_finding_stays_behind(self):
        target = self.target("deadlock")
        self.start_shell()
        self.watch("--stall", "2", f"pid:{target.pid}")
        self.until_screen(r"^no hang found so far$", r"core +role +activity +at +waits for +since", r"^> +\d+ \w+")
        screen = self.until_screen(r"^HANG: deadlock, 2 of 3 cores wait for each other \(certain\)$", r"^3 cores +I 1 idle +W 2 waiting$")
        rows = re.findall(r"^ ! +\d+ (alpha|beta) +copier +waiting +LCKW +(queue|table) +\d+\.\d s$", screen, re.MULTILINE)
        self.assertEqual(sorted(name for name, _ in rows), ["alpha", "beta"])
        self.assertTrue(self.in_view())
        self.type("f")
        name = self.until_screen(r"^>! +\d+ (alpha|beta) ").split(">!")[1].split()[1]
        self.type("Enter")
        other = {"alpha": "beta", "beta": "alpha"}[name]
        self.until_screen(rf"^thread {name} of process {target.pid}$", rf"^held by    thread {other}$", r"^ring +\d+ emitted: \d+ there, 0 overwritten, 0 torn, 0 refused",
                          r"^ +\d+\.\d+  copied block 0$", "b10c0000", "ESC back")
        self.type("Escape")
        self.until_screen(r"^q quit")
        self.type("q")
        self.until_screen(r"STATUS=1\.$")
        left = self.screen("-S", "-100")
        self.assertRegex(left, r"hangscope: watching process \d+: room for 64 cores, every 100 ms\n(.*\n)*hangscope: HANG: deadlock, 2 of 3 cores wait for each other \(certain\)\n"
                               r"  thread (alpha|beta) +waits")
        self.assertRegex(left, r"hangscope: \d+ polls in")
        self.check_restored()

    def test_it_follows_the_size_of_its_window(self):
        target = self.target("deadlock")
        self.start_shell()
        self.watch("--stall", "100ms", f"pid:{target.pid}")
        self.until_screen("^HANG: deadlock", "^q quit")
        self.tmux("resize-window", "-x", 40, "-y", 10)
        screen = self.until_screen(r"^HANG: deadlock, 2 of 3 cores wait for\n  each other \(certain\)$", "^3 cores .*")
        self.assertEqual(len(screen.splitlines()), 10)
        self.assertRegex(screen, "no room for: ")
        self.tmux("resize-window", "-x", 15, "-y", 3)
        self.until_screen("^15x3 is too")
        self.tmux("resize-window", "-x", 120, "-y", 40)
        self.until_screen(r"^HANG: deadlock, 2 of 3 cores wait for each other \(certain\)$", "^hangscope watch, ", r"^q quit")
        self.type("C-c")
        self.until_screen(r"STATUS=1\.$")
        self.check_restored()

    def map(self, image):
        """As a simulator does: a file that nobody has mapped is a dump, and its view would close."""
        with open(image, "r+b") as file:
            self.addCleanup(mmap.mmap(file.fileno(), 0).close)

    def test_1024_cores_are_cells_that_scroll_and_are_found_by_number_and_by_what_is_wrong(self):
        scope = Scope("<", 8, minor=1)
        scope.watch = watch = Watch(scope, [(0, 0)])
        for core in range(1024):
            scope.core("", core)
            watch.mailbox(core, waypoint=int.from_bytes(b"MULR", "little"), heartbeat=1)
        for core, held, wanted in ((300, 71, 72), (900, 72, 71)):
            watch.mailbox(core, waypoint=int.from_bytes(b"LCKW", "little"), sequence=1, resource=wanted, kind=1)
            watch.claims[core] = ((held,), (), 0)
        image = self.folder / "ram"
        image.write_bytes(scope.bytes())
        self.map(image)
        self.start_shell()
        self.watch("--stall", "2", "--interval", "20ms", image)
        screen = self.until_screen(r"^1-\d+ of 1024  ", r"^>.R   0 MULR")
        self.assertGreater(len(re.findall(r"[RS] +\d+ MULR", screen)), 60)
        self.type("-l", "777")
        self.until_screen(r">.[RS] 777 MULR", r"^> core 777: ")
        self.type("End")
        self.until_screen(r">.[RS]1023 MULR", r"-1024 of 1024  ")
        self.until_screen("^(HANG|WARNING|perhaps)")
        self.type("-l", "s")
        self.until_screen("sorted: what is wrong first")
        self.type("Home")
        self.until_screen(r"^>!W 300 LCKW .* *!W 900 LCKW")
        self.tmux("resize-window", "-x", 200, "-y", 60)
        numbers = {str(number) for number in range(1024)}
        self.until_screen("^1024 cores")
        self.until(lambda: set(re.findall(r"[RSW] *(\d+)(?: |$)", self.screen(), re.MULTILINE)) >= numbers, timeout=5, what="all at once")
        self.type("q")
        self.until_screen(r"STATUS=1\.$")
        self.check_restored()

    def test_thousands_of_findings_at_once_leave_it_alive(self):
        """Each is told with what its task did last, which may be in the ring of any core."""
        scope = Scope("<", 8, minor=1, capacity=2048)
        scope.watch = watch = Watch(scope, [(0, 0)])
        for core in range(16):
            ring = scope.core("", core)
            for n in range(2000):
                ring.write(SWITCH if n % 2 == 0 else USER, 1000 + n, 1, n % 4000 + 1)
            watch.mailbox(core, waypoint=int.from_bytes(b"MULR", "little"), heartbeat=1)
        for task in range(1, 4001):
            scope.task(4, task, 2, 0x1000 + task, 2, 2**32 - 1, 2500, 0)
        image = self.folder / "ram"
        image.write_bytes(scope.bytes())
        self.map(image)
        self.start_shell()
        begin = time.monotonic()
        self.watch("--stall", "300ms", image)
        self.until_screen("^(perhaps|HANG)")
        self.type("q")
        self.until_screen(r"STATUS=[01]\.$")
        self.assertLess(time.monotonic() - begin, 15, "the rings were read for each of them")
        left = self.screen("-S", "-6000")
        self.assertGreater(len(re.findall(r"^hangscope: perhaps starved, task \d+ waits for ", left, re.MULTILINE)), 100)
        self.assertRegex(left, r"event 77")

    def test_without_colours_and_utf_8_marks_and_words_say_the_same(self):
        target = self.target("deadlock")
        for environment, coloured in (({"TERM": "vt100", "LC_ALL": "C"}, False), ({"NO_COLOR": "1"}, False), ({}, True)):
            with self.subTest(environment):
                self.start_shell(**environment)
                self.watch("--stall", "100ms", f"pid:{target.pid}")
                self.until_screen("^HANG: deadlock", r"^ ! +\d+ (alpha|beta) +copier +waiting")
                self.assertEqual(bool(re.search(r"\x1b\[(\d+;)*3[1-7]m", self.screen("-e"))), coloured)
                self.type("q")
                self.until_screen(r"STATUS=1\.$")


class Terminal(Live):
    def test_it_is_given_back_however_the_view_ends(self):
        target = self.target("healthy")
        self.start_shell()
        for how, status in ((signal.SIGTERM, 130), (signal.SIGSEGV, r"[1-9]\d*"), (signal.SIGABRT, r"[1-9]\d*")):
            with self.subTest(how):
                self.watch(f"pid:{target.pid}")
                self.until_screen("^no hang found so far$")
                self.assertTrue(self.in_view())
                os.kill(self.pid_of_watch(target), how)
                self.until_screen(rf"STATUS={status}\.$")
                self.check_restored()

    def test_ctrl_z_gives_it_to_the_shell_and_fg_takes_it_back(self):
        target = self.target("healthy")
        self.start_shell()
        self.watch(f"pid:{target.pid}")
        self.until_screen("^no hang found so far$")
        self.type("C-z")
        self.until_screen("Stopped", "ready>")
        self.check_restored()
        self.type("-l", "fg\n")
        self.until_screen("^no hang found so far$", r"^q quit")
        self.assertTrue(self.in_view())
        self.type("q")
        self.until_screen("^hangscope: .* polls in", "^ready>$")
        self.check_restored()

    def test_r_resumes_paused_cores_and_enter_does_not(self):
        target = self.target("healthy")
        self.start_shell()
        self.watch("--interval", "20ms", f"pid:{target.pid}")
        self.until_screen("^no hang found so far$")
        self.assertEqual(self.hangscope("set", "pause", f"pid:{target.pid}", "beta").status, 0)
        self.until_screen("^1 paused: r lets it go on$")
        self.type("Enter")
        self.until_screen("ESC back")
        self.type("Escape")
        self.until_screen("^1 paused: r lets it go on$")
        self.type("r")
        self.until_screen("P 1 paused|R [12] running")
        self.until(lambda: "P 1 paused" not in self.screen(), what="going on")
        self.type("q")
        self.until_screen(r"^hangscope: resumed thread beta$", r"STATUS=0\.$")

    def test_plain_on_a_terminal_says_who_is_paused_and_enter_lets_them_go_on(self):
        target = self.target("healthy")
        self.start_shell(columns=150)
        self.watch("--plain", "--interval", "20ms", f"pid:{target.pid}")
        self.until_screen("^hangscope: watching process")
        self.assertEqual(self.hangscope("set", "pause", f"pid:{target.pid}", "beta").status, 0)
        self.until_screen(r"thread beta is paused from outside.*; ENTER resumes paused cores$")
        self.type("Enter")
        self.until_screen(r"resumed thread beta$", r"thread beta goes on, paused for \d")
        self.assertFalse(self.in_view())
        self.type("C-c")
        self.until_screen(r"STATUS=130\.$")

    def test_into_a_pipe_with_plain_and_on_a_dumb_terminal_it_prints_as_ever(self):
        target = self.target("healthy")
        self.start_shell(columns=100)
        for before, options, after in (("", "", "| cat"), ("", "--plain", ""), ("TERM=dumb", "", "")):
            with self.subTest(before + options + after):
                self.type("-l", f"clear; {before} {HANGSCOPE} watch --for 200ms {options} pid:{target.pid} {after}; echo DONE.\n")
                screen = self.until_screen(r"^DONE\.$")
                self.assertRegex(screen, r"(?m)^hangscope: watching process \d+: room for 64 cores, every 100 ms; ENTER resumes paused cores\ncore +role +activity")
                self.assertRegex(screen, r"(?m)^hangscope: \d+ polls in \d+\.\d s")
                self.assertNotIn("no live view", screen)  # as if somebody had wanted one
                self.assertFalse(self.in_view())


if __name__ == "__main__":
    main()
