#!/usr/bin/env python3
"""The command line as people meet it: help, manual pages, completions, words of the environment, names of processes."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from support import DATA, HANGSCOPE, ROOT, Case, main
from terminal import TerminalCase

COMMANDS = ("why", "run", "watch", "tee", "report", "ls", "snap", "cat", "show", "export", "set", "cost", "doctor", "help")
IMAGE = str(DATA / "scope/watched-little32.bin")


class Help(Case):
    def help(self, *words):
        done = self.hangscope(*words)
        self.assertEqual((done.status, done.err), (0, b""), words)
        return done.out.decode()

    def test_is_eighty_columns_wide_and_the_short_one_fits_a_screen(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                short, whole = (self.help(command, option).splitlines() for option in ("-h", "--help"))
                self.assertLessEqual(max(map(len, whole)), 80)
                self.assertLessEqual(len(short), 52)
                self.assertTrue(short[0].startswith("usage: "))
                self.assertLessEqual(len(short), len(whole))

    def test_has_examples_before_the_options(self):
        for command in COMMANDS:
            if command in ("ls", "doctor"):  # there is nothing to say but the command
                continue
            with self.subTest(command=command):
                text = self.help(command, "--help")
                self.assertRegex(text, r"(?s)\nexamples?\n  .*\n\n.*\n  -")

    def test_of_a_command_is_asked_for_in_three_ways(self):
        for command in COMMANDS:
            self.assertEqual(self.help("help", command), self.help(command, "--help"))
        self.assertEqual(self.help("help"), self.help("--help"))

    def test_counts_what_the_short_one_leaves_out(self):
        left_out = int(re.search(r"run --help lists (\d+) more options", self.help("run", "-h"))[1])
        options = [len(re.findall(r"(?m)^  --", self.help("run", option))) for option in ("-h", "--help")]
        self.assertEqual(options[1] - options[0], left_out)
        self.assertGreater(left_out, 10)

    def test_lists_all_commands(self):
        listed = re.findall(r"(?m)^  (\w+) {2,}\w", self.help("--help"))
        self.assertEqual(listed, list(COMMANDS))

    def test_of_no_command_is_an_error_with_the_nearest(self):
        for words in (["help", "rn"], ["rn"]):
            done = self.hangscope(*words)
            self.assertEqual(done.status, 2)
            self.assertIn(b"did you mean 'run'? See hangscope --help", done.err)

    def test_version(self):
        for words in (["--version"], ["-V"], ["version"]):
            self.assertRegex(self.help(*words), r"^hangscope \d+\.\d+\.\d+\n")

    def test_version_with_v_lists_what_the_build_may_be_without(self):
        first, *libraries = self.help("--version", "-v").splitlines()
        self.assertEqual(first + "\n", self.help("--version"))
        self.assertEqual([line.split()[1] for line in libraries], ["libopencsd", "libipt", "capstone", "ncurses", "RE2"])
        for line in libraries:
            self.assertRegex(line, r"^  (on |off) \w+ +\S")
        self.assertEqual(self.hangscope("--version", "-x").status, 2)

    def test_newest_entry_of_the_changelog_is_this_version(self):
        newest = re.search(r"(?m)^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text())[1]
        self.assertEqual(f"hangscope {newest}\n", self.help("--version"))

    def test_without_a_word_is_an_error(self):
        done = self.hangscope()
        self.assertEqual((done.status, done.out), (2, b""))
        self.assertIn(b"usage: hangscope COMMAND", done.err)

    def test_an_empty_word_is_nothing_to_ask_about(self):
        done = self.hangscope("why", "")
        self.assertEqual((done.status, done.out), (2, b""))
        self.assertRegex(done.err, rb"^hangscope: error: an empty argument names nothing to ask about")


class Release(Case):
    """scripts/make-release in a small repository."""

    def setUp(self):
        super().setUp()
        if not shutil.which("git"):
            self.skipTest("there is no git here")
        self.tree = self.folder / "tree"
        self.write("scripts/make-release", (ROOT / "scripts/make-release").read_text())
        (self.tree / "scripts/make-release").chmod(0o755)
        self.write("include/hangscope/version.h", '#define HANGSCOPE_VERSION "1.2.0"\n')
        self.write("CHANGELOG.md", "# Changes\n\n## 1.2.0 (2026-11-27)\n\n* New: `this`.\n\n## 1.1.0 (2026-01-01)\n\n* Old.\n")
        self.git("init", "-q")
        self.commit()

    def write(self, name, text):
        (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / name).write_text(text)

    def git(self, *words):
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        return subprocess.run(["git", "-C", self.tree, *who, *words], capture_output=True, text=True, check=True).stdout

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "As it is")

    def release(self, *words):
        names = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER")
                 for part, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))}
        done = subprocess.run([self.tree / "scripts/make-release", *words], capture_output=True, text=True, env={**os.environ, **names})
        return done.returncode, done.stdout, done.stderr

    def refused(self):
        status, out, err = self.release()
        self.assertEqual((1, ""), (status, out))
        self.assertEqual("", self.git("tag"))
        self.assertEqual(1, err.count("\n"), err)
        return err.removeprefix("hangscope: error: ").rstrip("\n")

    def test_is_a_tag_with_the_newest_entry_of_the_changelog(self):
        self.assertEqual((0, "", ""), self.release("--check"))
        self.assertEqual("", self.git("tag"))
        self.assertEqual((0, "v1.2.0\n", ""), self.release())
        self.assertEqual("hangscope 1.2.0\n\n* New: `this`.", self.git("tag", "-l", "--format=%(contents)", "v1.2.0").strip())
        self.assertEqual(self.git("rev-parse", "HEAD"), self.git("rev-parse", "v1.2.0^{}"))
        status, _, err = self.release()
        self.assertEqual(1, status)
        self.assertIn("the tag v1.2.0 is there already", err)

    def test_wants_an_entry_of_this_version(self):
        self.write("include/hangscope/version.h", '#define HANGSCOPE_VERSION "1.3.0"\n')
        self.commit()
        self.assertEqual("the newest entry of CHANGELOG.md is of version '1.2.0'; include/hangscope/version.h says 1.3.0", self.refused())
        for heading in ("## 1.3.0", "## 1.3.0 (unreleased)"):
            self.write("CHANGELOG.md", f"# Changes\n\n{heading}\n\n* New.\n")
            self.commit()
            self.assertIn(f"the newest entry of CHANGELOG.md begins with '{heading}'; for example '## 1.3.0 (20", self.refused())
        self.write("CHANGELOG.md", "# Changes\n\n## 1.3.0 (2026-11-28)\n\n## 1.2.0 (2026-11-27)\n\n* New.\n")
        self.commit()
        self.assertEqual("CHANGELOG.md says nothing of 1.3.0", self.refused())

    def test_wants_everything_committed(self):
        self.write("more", "")
        self.assertEqual("something is not committed: git status lists it", self.refused())

    def test_of_this_tree_has_its_entry(self):
        for name in ("CHANGELOG.md", "include/hangscope/version.h"):
            self.write(name, (ROOT / name).read_text())
        self.commit()
        self.assertEqual((0, "", ""), self.release("--check"))


class Manual(Case):
    def page(self, *words):
        return self.hangscope("help", "--man", *words).out

    def test_has_all_that_the_help_has(self):
        for command in COMMANDS:
            page = self.page(command).decode().replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
            for option in re.findall(r"(?m)^  (--[\w-]+)", self.hangscope(command, "--help").out.decode()):
                self.assertIn(f"\n{option}", page)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"):
                self.assertIn(f".SH {section}\n", page)

    def test_is_set_without_a_warning(self):
        if not shutil.which("groff"):
            self.skipTest("there is no groff here (package groff-base)")
        for words in ([], *([command] for command in COMMANDS)):
            done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-rLL=78n"], input=self.page(*words), capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, b""), words)
            text = re.sub(r"\x1b\[\d*m|.\x08", "", done.stdout.decode())
            self.assertIn("NAME\n", text)
            self.assertNotIn("\\", text)
        self.assertIn("hangscope-run(1)", re.sub(r"\x1b\[\d*m|.\x08", "", subprocess.run(
            ["groff", "-man", "-Tascii"], input=self.page(), capture_output=True).stdout.decode()))


class Completions(Case):
    def script(self, shell):
        path = self.folder / f"completion.{shell}"
        path.write_bytes(self.hangscope("help", "--completion", shell).out)
        return path

    def of_bash(self, line):
        """What bash offers where the line ends."""
        words = line.split(" ")
        program = f"""PATH={pathlib.Path(HANGSCOPE).parent}:$PATH
            source {self.script('bash')}
            COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}
            _hangscope 2>&1; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")[:-1]

    def test_bash(self):
        (self.folder / "firmware.elf").touch()
        self.assertEqual(self.of_bash("hangscope wa"), ["watch"])
        self.assertIn("--on-hang", self.of_bash("hangscope run --on"))
        self.assertEqual(self.of_bash("hangscope run --on-hang k"), ["kill"])
        self.assertEqual(self.of_bash("hangscope run --elf firm"), ["firmware.elf"])
        self.assertEqual(self.of_bash("hangscope export -o firm"), ["firmware.elf"])
        self.assertEqual(self.of_bash("hangscope export --to perf"), ["perfetto"])
        self.assertIn("sleep", self.of_bash("hangscope run -- slee"))
        self.assertEqual(self.of_bash("hangscope run -- cat firm"), ["firmware.elf"])
        self.assertEqual(self.of_bash("hangscope help rep"), ["report"])
        self.assertIn(str(os.getpid()), self.of_bash(f"hangscope why {os.getpid()}"))

    def test_bash_knows_recorders(self):
        recorder = self.recorder("run", "--", "sleep", "60")
        self.until(lambda: str(recorder.pid) in self.of_bash("hangscope snap "), what="a recorder")
        self.assertIn(pathlib.Path(self.prefix).name, self.of_bash("hangscope snap "))

    def test_bash_offers_each_option_of_each_command(self):
        for command in COMMANDS:
            offered = self.of_bash(f"hangscope {command} --")
            for option in re.findall(r"(?m)^  (--[\w-]+)", self.hangscope(command, "--help").out.decode()):
                self.assertIn(option, offered)

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("there is no fish here (package fish)")
        script = self.script("fish")
        def offered(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C {line!r}"], capture_output=True, text=True,
                                  env={**os.environ, "HOME": str(self.folder)}, timeout=60)
            self.assertEqual(done.stderr, "")
            return [one.split("\t")[0] for one in done.stdout.splitlines()]
        self.assertEqual(offered("hangscope wat"), ["watch"])
        self.assertIn("--on-hang", offered("hangscope run --on-"))
        self.assertEqual(offered("hangscope run --on-hang ki"), ["kill"])
        self.assertIn("perfetto", offered("hangscope export --to "))


class Words(Case):
    """Which words are whose."""

    def test_the_program_begins_with_the_first_word_that_is_no_option(self):
        for words in (["--stall", "5"], ["--stall=5"], ["-q"], ["-q", "--prefix", self.prefix], ["--trigger", "x", "--trigger", "y"]):
            done = self.hangscope("run", *words, "sh", "-c", 'echo "$@"', "-q", "--stall", "--", "x")
            self.assertEqual((done.status, done.out), (0, b"--stall -- x\n"), words)

    def test_two_dashes_end_the_options(self):
        done = self.hangscope("run", "-q", "--", "echo", "--", "-q")
        self.assertEqual(done.out, b"-- -q\n")

    def test_without_a_program_is_an_error(self):
        for words in ([], ["-q"], ["--stall", "5"], ["--stall", "5", "--"]):
            done = self.hangscope("run", *words)
            self.assertEqual(done.status, 125)
            self.assertIn(b"no program to run; for example hangscope run make test", done.err)

    def test_a_wrong_option_before_the_program_is_an_error(self):
        done = self.hangscope("run", "--stal", "5", "true")
        self.assertEqual(done.status, 125)
        self.assertIn(b"unknown option '--stal', did you mean '--stall'? See hangscope run --help", done.err)


class Environment(Case):
    def run_with(self, *words, **variables):
        return subprocess.run([HANGSCOPE, *map(str, words)], capture_output=True, timeout=60,
                              env={**os.environ, **{f"HANGSCOPE_OPT_{name}": value for name, value in variables.items()}})

    def test_sets_options(self):
        where = self.folder / "of-environment"
        done = self.run_with("run", "true", PREFIX=str(where), JSON="1", HEARTBEAT="0")
        self.assertTrue((self.folder / "of-environment.stdout.index").exists(), list(self.folder.iterdir()))
        json.loads(done.stderr.splitlines()[-1])

    def test_gives_way_to_words(self):
        done = self.run_with("run", "--prefix", self.prefix, "true", PREFIX=str(self.folder / "other"))
        self.assertEqual(done.returncode, 0)
        self.assertTrue(pathlib.Path(f"{self.prefix}.stdout.index").exists())
        self.assertFalse((self.folder / "other.stdout.index").exists())

    def test_is_not_the_programs(self):
        done = self.run_with("run", "--on-hang", "exec:true", "env", STALL="60", QUIET="yes")
        self.assertNotIn(b"HANGSCOPE_OPT", done.stdout)
        self.assertEqual(done.stderr, b"")

    def test_flags_can_be_switched_off(self):
        self.assertIn(b"finished after", self.run_with("run", "true", QUIET="0").stderr)

    def test_errors_name_the_variable(self):
        done = self.run_with("run", "true", STALL="soon")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"(HANGSCOPE_OPT_STALL sets it)", done.stderr)
        done = self.run_with("run", "--stall", "soon", "true", STALL="5")
        self.assertNotIn(b"sets it", done.stderr)
        done = self.run_with("run", "true", QUIET="soon")
        self.assertIn(b"HANGSCOPE_OPT_QUIET='soon': --quiet is a flag, 1 or 0", done.stderr)

    def test_an_option_that_no_command_has_is_said(self):
        done = self.run_with("run", "-q", "true", STAL="5")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"HANGSCOPE_OPT_STAL has no effect: no command has an option --stal; did you mean HANGSCOPE_OPT_STALL?", done.stderr)

    def test_of_another_command_is_left_alone(self):
        done = self.run_with("ls", STALL="5")
        self.assertNotIn(b"no effect", done.stderr)


class Processes(Case):
    def named(self, name):
        program = self.folder / name
        if not program.exists():
            shutil.copy(shutil.which("sleep"), program)
        process = subprocess.Popen([program, "60"])
        self.addCleanup(self.end, process)
        self.until(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith(name), what="the program")
        return process

    def test_are_asked_by_number_and_by_name(self):
        process = self.named("hs-one-name")
        for word in (str(process.pid), "hs-one-name"):
            done = self.hangscope(word)
            self.assertIn(f"process {process.pid} (hs-one-name)".encode(), done.out)

    def test_of_one_name_are_listed(self):
        two = [self.named("hs-two-names") for _ in range(2)]
        done = self.hangscope("hs-two-names")
        self.assertEqual((done.status, done.out), (2, b""))
        self.assertIn(b"2 processes are called 'hs-two-names'; choose one by its number:", done.err)
        for process in two:
            self.assertIn(f"\n  {process.pid} ".encode(), done.err)

    def test_that_are_not_there(self):
        done = self.hangscope("hs-no-such-name")
        self.assertEqual(done.status, 2)
        self.assertIn(b"there is no command 'hs-no-such-name', and no process of that name; see hangscope --help", done.err)


class Quiet(Case):
    def test_says_nothing_of_what_ends_well(self):
        self.assertEqual(self.hangscope("run", "-q", "true").err, b"")
        self.assertEqual(self.hangscope("tee", "-q", stdin=b"one\n").err, b"")
        done = self.hangscope("export", "-q", "--to", "text", IMAGE)
        self.assertNotIn(b"events", done.err)

    def test_of_report_is_without_notes_and_keeps_the_path(self):
        page = self.folder / "page.html"
        for words, notes in ((["-o", page, IMAGE], False), (["-o", page, IMAGE], True), (["-q", "-o", page, IMAGE], False)):
            done = self.hangscope("report", *words)
            self.assertEqual((0, f"{page}\n"), (done.status, done.out.decode()))
            self.assertEqual(notes, b"is there already" in done.err, done.err)
        self.assertEqual(b"", self.hangscope("report", "-q", "-o", page, IMAGE).err)
        self.assertIn(b"error: ", self.hangscope("report", "-q", self.folder / "absent").err)

    def test_says_what_ends_badly(self):
        done = self.hangscope("run", "-q", "sh", "-c", "exit 3")
        self.assertEqual(done.status, 3)
        self.assertIn(b"ended with status 3", done.err)

    def test_says_a_hang(self):
        done = self.hangscope("run", "-q", "--stall", "0.5", "--on-hang", "kill", "--expect-output", "0.5", "sleep", "60", timeout=60)
        self.assertEqual(done.status, 124)
        self.assertIn(b"HANG after", done.err)
        self.assertNotIn(b"last byte", done.err)


class Formats(Case):
    def test_are_chosen_by_the_name_of_the_output(self):
        for name, begin in (("a.json", b"{"), ("a.jsonl", b'{"type"'), ("a.pftrace", b"\n"), ("a.txt", b"")):
            done = self.hangscope("export", "-o", self.folder / name, IMAGE)
            self.assertEqual(done.status, 0, done.err)
            chosen = (self.folder / name).read_bytes()
            self.assertTrue(chosen.startswith(begin), chosen[:40])
        self.assertEqual(self.hangscope("export", "-o", self.folder / "a.ctf", IMAGE).status, 0)
        self.assertTrue((self.folder / "a.ctf/metadata").exists())
        other = self.hangscope("export", "--to", "text", "-o", self.folder / "b.json", IMAGE)
        self.assertEqual(other.status, 0)
        self.assertFalse((self.folder / "b.json").read_bytes().startswith(b"{"))
        done = self.hangscope("export", "-o", self.folder / "a.pdf", IMAGE)
        self.assertEqual(done.status, 2)
        self.assertIn(b"the name of -o says none", done.err)


class OnATerminal(TerminalCase):
    def on_terminal(self, *command, columns=80):
        self.start(*map(str, command), columns=columns)
        self.wait_for_end()
        return self.seen.decode()

    def test_zsh_completes(self):
        if not shutil.which("zsh"):
            self.skipTest("there is no zsh here (package zsh)")
        (self.folder / "_hangscope").write_bytes(self.hangscope("help", "--completion", "zsh").out)
        self.start("zsh", "-f", "-i", columns=120)
        self.press(f"fpath=({self.folder} $fpath); autoload -Uz compinit; compinit -u -d {self.folder}/dump; print REA''DY\n".encode())
        self.expect(b"READY")
        # The editor draws only what changes; what the line has become, the shell itself prints.
        for keys, completed in ((b"hangscope wat\t", b"hangscope watch"), (b"hangscope run --on-h\tki\t", b"hangscope run --on-hang kill"),
                                (b"hangscope help rep\t", b"hangscope help report")):
            self.press(keys + b"\x01print -r -- \n")
            self.expect(b"\n" + completed + b"\r\n")
        self.assertNotIn(b"_hangscope:", self.seen)

    def test_binary_formats_are_refused(self):
        shown = self.on_terminal(HANGSCOPE, "export", "--to", "perfetto", IMAGE, columns=200)
        self.assertIn("--to perfetto is binary, and standard output a terminal; for example -o hang.pftrace", shown)

    def test_hangs_are_in_colour_and_wrapped_between_words(self):
        words = [HANGSCOPE, "run", "--stall", "0.5", "--on-hang", "kill", "--expect-output", "0.5", "--", "sleep", "60"]
        shown = self.on_terminal(*words, columns=60)
        self.assertIn("\x1b[1;31mhangscope: HANG", shown)
        lines = re.sub(r"\x1b\[[\d;]*\w", "", shown).replace("\r\n", "\n").split("\n")
        last = [line for line in lines if "\r" not in line]
        self.assertLessEqual(max(len(line) for line in last if "/" not in line), 60, last)  # a path is one word

    def test_shows_the_snapshot_that_is_taken(self):
        shown = self.on_terminal(HANGSCOPE, "run", "--prefix", self.prefix, "--", "sh", "-c", "echo up; exit 3", columns=200)
        self.assertIn("\r\x1b[Khangscope: taking a snapshot: waiting for the streams ...", shown)
        self.assertIn("\r\x1b[Khangscope: taking a snapshot: writing it ...", shown)
        self.assertRegex(shown.rsplit(" ...", 1)[1], r"\A\r\x1b\[Khangscope: finished after ")  # which takes the line's place
        self.assertNotIn("taking", self.on_terminal(HANGSCOPE, "run", "-q", "--prefix", self.prefix, "--", "false", columns=200))
        self.assertNotIn(b"taking", self.hangscope("run", "--prefix", self.prefix, "--", "false").err)

    def test_shows_that_a_scope_is_looked_for(self):
        words = ["watch", "--plain", "--for", "0.2", IMAGE]
        shown = self.on_terminal(HANGSCOPE, *words, columns=200)
        self.assertTrue(shown.startswith(f"\r\x1b[Khangscope: looking for the scope of {IMAGE} ...\r\x1b[K"), shown[:300])
        for other in (["watch", "--json", "--for", "0.2", IMAGE], ["watch", "--plain", "--for", "0.2", self.folder / "absent"]):
            shown = self.on_terminal(HANGSCOPE, *other, columns=200)
            self.assertEqual("--json" not in other, "looking for" in shown, shown)
        self.assertRegex(shown, r"\.\.\.\r\x1b\[Khangscope: error: ")
        self.assertNotIn(b"looking", self.hangscope(*words).err)

    def test_colours_can_be_refused(self):
        os.environ["NO_COLOR"] = "1"
        shown = self.on_terminal(HANGSCOPE, "why", "--stall", "0.05", DATA / "scope/watched-little64.bin")
        self.assertNotIn("\x1b[", shown)
        del os.environ["NO_COLOR"]


if __name__ == "__main__":
    main()
