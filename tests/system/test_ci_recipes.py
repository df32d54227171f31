"""ci/: the script, the action of GitHub and the job of GitLab, executed as those systems execute them."""
import gzip
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import unittest
import xml.etree.ElementTree

import debian_root
from support import HANGSCOPE, ROOT, Case, main

if importlib.util.find_spec("yaml"):
    import yaml

SCRIPT = ROOT / "ci/hangscope-ci"
HANGS = "import threading\nprint('the last words', flush=True)\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n"
PRINTED = "\n".join(("::error::no command", "##[error]neither", "<b> & ]]> ```", "    % 100", "tab\there", "bell\a and é and €", "last"))
# What a step of GitHub has in its environment, of what matters here.
OF_GITHUB = {"CI": "true", "GITHUB_ACTIONS": "true"}
OF_GITLAB = {"CI": "true", "GITLAB_CI": "true"}


class Recipe(Case):
    """A project's folder in which a job runs."""

    def setUp(self):
        super().setUp()
        self.project = self.folder / "a project"
        self.project.mkdir()
        self.temp = self.folder / "temp"
        self.temp.mkdir()
        (self.project / "hang.py").write_text(HANGS)
        (self.project / "printed.txt").write_text(PRINTED + "\n")
        self.artifacts = self.project / "hangscope-artifacts"

    def execute(self, words, environment=None, timeout=60, **popen):
        """Status and output of these words, where HANGSCOPE is in the PATH."""
        path = os.path.dirname(HANGSCOPE) + ":" + os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
        self.done = subprocess.run(words, cwd=self.project, capture_output=True, text=True, timeout=timeout, check=False,
                                   env={**os.environ, "PATH": path, "TMPDIR": str(self.temp), **(environment or {})}, **popen)
        return self.done.returncode

    def case(self):
        """The only test case there is."""
        suite = xml.etree.ElementTree.parse(self.artifacts / "hang.xml").getroot()
        self.assertEqual((suite.tag, suite.attrib["tests"]), ("testsuite", "1"))
        case, = suite
        self.assertEqual([suite.attrib["failures"], suite.attrib["errors"]],
                         [str(len(case.findall("failure"))), str(len(case.findall("error")))])
        return case

    def kept(self):
        return sorted(path.name for path in self.artifacts.iterdir())

    def outcome(self):
        """The outcome and the sentence behind it."""
        return (self.artifacts / "verdict.txt").read_text().split("\n")[0].split(": ", 1)


class Script(Recipe):
    """The script by itself; the shells are Debian's dash and bash."""
    SHELLS = ("dash", "bash")
    ALWAYS = ["hang.xml", "hangscope.log", "verdict.txt"]
    FAILED = sorted([*ALWAYS, "report.html", "run.snapshot-0001", "stdout.txt.gz"])

    def run_script(self, shell, *words, environment=None, **popen):
        return self.execute([shell, SCRIPT, *map(str, words)], environment, **popen)

    def test_command_that_works_is_a_case_that_passes(self):
        for shell in self.SHELLS:
            with self.subTest(shell):
                self.assertEqual(self.run_script(shell, "--", "sh", "-c", "echo fine; echo beside >&2"), 0)
                self.assertEqual((self.done.stdout, self.done.stderr), ("fine\n", "beside\n"))
                case = self.case()
                self.assertEqual((list(case), case.attrib["name"]), ([], "sh -c echo fine; echo beside >&2"))
                self.assertEqual(self.kept(), self.ALWAYS)
                self.assertEqual(self.outcome(), ["passed", "ended with status 0"])
        self.assertEqual(list(self.temp.iterdir()), [])

    def test_command_that_hangs_is_ended_and_leaves_all_that_tells_why(self):
        for shell in self.SHELLS:
            with self.subTest(shell):
                self.assertEqual(self.run_script(shell, "--stall", 1, "--", "python3", "hang.py"), 124)
                self.assertRegex(self.done.stdout, "^the last words\nhangscope-ci: hang: ")
                self.assertRegex(self.done.stdout, r"\n  ended by hangscope \(--on-hang kill\)")
                failure = self.case().find("failure")
                self.assertRegex(failure.attrib["message"], "^hang: .*hang.py")
                self.assertEqual(self.case().find("system-out").text, "the last words\n")
                self.assertEqual(self.kept(), self.FAILED)
                self.assertEqual(self.outcome(), ["hung", failure.attrib["message"]])
                self.assertIn(failure.text, (self.artifacts / "verdict.txt").read_text())
                self.assertIn("HANG", (self.artifacts / "hangscope.log").read_text())
                snapshot, = re.findall("snapshot: (.*)", failure.text)
                self.assertEqual(self.cat(self.project / snapshot, "--stream", "stdout"), b"the last words\n")
                self.assertIn("<html", (self.artifacts / "report.html").read_text())

    def test_command_that_fails_or_crashes_keeps_its_status(self):
        for shell in self.SHELLS:
            for words, status, outcome in ((["sh", "-c", "cat printed.txt; exit 3"], 3, ["failed", "ended with status 3"]),
                                           (["sh", "-c", "cat printed.txt; kill -SEGV $$"], 128 + signal.SIGSEGV,
                                            ["crashed", "killed by signal 11 (Segmentation fault)"])):
                with self.subTest(shell=shell, status=status):
                    self.assertEqual(self.run_script(shell, "--", *words), status)
                    self.assertEqual(self.outcome(), outcome)
                    self.assertEqual(self.case().find("error").attrib["message"], outcome[1])
                    self.assertEqual(self.case().find("system-out").text, PRINTED.replace("\a", "\\x07") + "\n")
                    self.assertEqual(self.kept(), self.FAILED)
                    with gzip.open(self.artifacts / "stdout.txt.gz", "rt", encoding="utf-8") as text:
                        self.assertEqual(text.read(), PRINTED + "\n")

    def test_status_124_of_the_command_itself_is_no_hang(self):
        self.assertEqual(self.run_script("dash", "--", "sh", "-c", "exit 124"), 124)
        self.assertEqual(self.outcome(), ["failed", "ended with status 124"])

    def test_command_that_takes_too_long(self):
        status = self.run_script("dash", "--", "sh", "-c", "while :; do date; sleep 0.1; done", environment={"HANGSCOPE_OPT_TIMEOUT": "1"})
        self.assertEqual((status, self.outcome()[0]), (124, "timed-out"))
        self.assertRegex(self.case().find("failure").attrib["message"], "^timed out: ")

    def run_until_told(self, *words):
        """Runs a program that is silent until hangscope calls that a hang, and then prints until hangscope says `words`, if any."""
        (self.project / "slow.py").write_text(
            "import sys, time\n"
            "def told(what): return what in open('hangscope-artifacts/hangscope.log').read()\n"
            "while not told('HANG'): time.sleep(0.02)\n"
            "n = 0\n"
            "while sys.argv[1:] and not told(sys.argv[1]): n += 1; print(chr(97 + n % 26) * (n % 70), flush=True); time.sleep(0.02)\n")
        return self.run_script("dash", "--expect-output", 1, "--on-hang", "snapshot", "--", "python3", "slow.py", *words, environment=OF_GITHUB)

    def test_hang_that_is_over_is_told_though_the_command_passed(self):
        self.assertEqual(self.run_until_told("it goes on again"), 0)
        self.assertEqual(self.outcome(), ["passed-after-hang", "ended with status 0, after a hang was reported: see hangscope.log"])
        self.assertEqual(list(self.case()), [])
        self.assertIn("\n::warning title=hangscope%3A the command hung for a while::ended with status 0", self.done.stdout)
        self.assertIn("run.snapshot-0001", self.kept())

    def test_hang_that_is_on_at_the_end_is_told_though_the_status_is_0(self):
        self.assertEqual(self.run_until_told(), 0)
        self.assertEqual(self.outcome()[0], "hung")
        self.assertIsNotNone(self.case().find("failure"))
        self.assertIn("\n::warning title=hangscope%3A the command hung::hang: ", self.done.stdout)

    def test_what_hangscope_refuses_is_an_error_with_its_own_sentence(self):
        for shell in self.SHELLS:
            for words, status, outcome, reason in (
                    (["--stall", "soon", "--", "true"], 125, "hangscope-failed", "--stall 'soon': not a time"),
                    (["--stal", "1", "--", "true"], 125, "hangscope-failed", "unknown option '--stal'"),
                    (["--"], 125, "hangscope-failed", "no program to run"),
                    (["--", "no-such-program"], 127, "not-started", "No such file or directory"),
                    (["--", "./printed.txt"], 126, "not-started", "Permission denied")):
                with self.subTest(shell=shell, words=words):
                    self.assertEqual(self.run_script(shell, *words, environment={"HANGSCOPE_OPT_STALL": ""} if "soon" in words else None), status)
                    self.assertEqual(self.outcome()[0], outcome)
                    self.assertIn(reason, self.case().find("error").attrib["message"])
                    # Once from hangscope itself, once where a job that discards standard error still shows it.
                    self.assertRegex(self.done.stderr, "^hangscope: error: .*" + re.escape(reason))
                    self.assertIn(reason, self.done.stdout)
                    self.assertEqual(self.kept(), self.ALWAYS)

    def test_hangscope_that_is_missing_or_does_not_work(self):
        broken = self.folder / "broken"
        broken.write_text("#!/bin/sh\necho \"error while loading 'lib<x>.so'\" >&2\nexit 127\n")
        broken.chmod(0o755)
        killed = self.folder / "killed"
        killed.write_text("#!/bin/sh\n[ \"$1\" = --version ] || kill -KILL $$\n")
        killed.chmod(0o755)
        for shell in self.SHELLS:
            for hangscope, status, reason in (("/nowhere/hangscope", 125, "there is no command '/nowhere/hangscope'"),
                                              (broken, 125, "error while loading 'lib<x>.so'"),
                                              (killed, 137, "it ended with status 137 and wrote no hang.xml")):
                with self.subTest(shell=shell, hangscope=hangscope):
                    self.assertEqual(self.run_script(shell, "--", "echo", "<x> & \"y\"", environment={**OF_GITHUB, "HANGSCOPE": str(hangscope)}), status)
                    case = self.case()
                    self.assertEqual(case.attrib["name"], "echo <x> & \"y\"")
                    self.assertIn(reason, case.find("error").attrib["message"])
                    self.assertRegex(self.done.stdout, r"(?m)^hangscope-ci: hangscope failed: .*" + re.escape(reason))
                    self.assertRegex(self.done.stdout, r"(?m)^::error title=hangscope%3A hangscope failed::hangscope failed: .*" + re.escape(reason))
                    self.assertEqual(self.kept(), self.ALWAYS)

    def test_message_of_an_annotation_is_one_line_with_all_signs(self):
        self.assertEqual(self.run_script("dash", "--", "no%0Asuch: program, is\nthere", environment=OF_GITHUB), 127)
        annotation, = re.findall(r"(?m)^::error title=hangscope%3A the command could not be started::(.*)$", self.done.stdout)
        self.assertIn("not started: cannot start 'no%250Asuch: program, is", annotation)
        self.assertTrue(annotation.endswith("is there': No such file or directory"), annotation)
        self.assertEqual(unescaped(annotation), self.outcome()[1])

    def test_folder_that_cannot_be_made(self):
        status = self.run_script("dash", "--", "true", environment={**OF_GITHUB, "HANGSCOPE_ARTIFACTS": "printed.txt/x"})
        self.assertEqual(status, 125)
        self.assertIn("\n::error title=hangscope failed::cannot make the folder 'printed.txt/x' (HANGSCOPE_ARTIFACTS)\n", self.done.stdout)

    def test_second_run_leaves_nothing_of_the_first_and_all_that_is_not_its_own(self):
        self.run_script("dash", "--", "sh", "-c", "echo one; exit 1")
        (self.artifacts / "coverage.txt").write_text("kept")
        (self.artifacts / "run.snapshot-9000").mkdir()
        self.run_script("dash", "--", "true")
        self.assertEqual(self.kept(), ["coverage.txt", *self.ALWAYS[:2], "run.snapshot-9000", "verdict.txt"])

    def test_job_that_is_cancelled_keeps_the_snapshot(self):
        """A runner ends all processes of the job."""
        environment = {**os.environ, "PATH": os.path.dirname(HANGSCOPE) + ":" + os.environ["PATH"]}
        job = subprocess.Popen(["dash", SCRIPT, "--", "sh", "-c", "echo ready; exec sleep 100"], cwd=self.project, env=environment,
                               stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(self.end, job)
        self.assertEqual(job.stdout.readline(), "ready\n")
        os.killpg(job.pid, signal.SIGTERM)
        self.assertIn("ended by signal 15 (Terminated), which was passed on to it", job.communicate(timeout=30)[0])
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)
        self.assertEqual(self.kept(), self.FAILED)

    def test_signals_reach_a_command_as_without_the_script(self):
        """A test of Ctrl-C works in CI, too."""
        self.assertEqual(self.run_script("dash", "--", "sh", "-c", "trap 'echo got it; exit 5' INT; kill -INT $$; sleep 5"), 5)
        self.assertIn("got it\n", self.done.stdout)

    def test_command_reads_standard_input(self):
        self.assertEqual(self.run_script("dash", "--", "cat", input="from the pipe\n"), 0)
        self.assertEqual(self.done.stdout, "from the pipe\n")


def unescaped(text):
    """As GitHub's runner takes a workflow command apart."""
    for code, sign in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, sign)
    return text


@unittest.skipUnless(importlib.util.find_spec("yaml"), "the module yaml is not installed (package python3-yaml)")
class Github(Recipe):
    """The action's steps, by the rules of composite actions."""

    def act(self, **given):
        """Runs the action with these inputs; returns its status. Then self.summary and self.outputs are there."""
        action = yaml.safe_load((ROOT / "ci/github/action.yml").read_text())
        self.assertEqual(action["runs"]["using"], "composite")
        inputs = {name: str(given.get(name.replace("-", "_"), declared.get("default", ""))) for name, declared in action["inputs"].items()}
        for name, declared in action["inputs"].items():
            self.assertTrue(not declared.get("required") or inputs[name], name)
        filled = lambda text: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], text)
        shell, upload = action["runs"]["steps"]
        summary, output, lines = (self.folder / name for name in ("summary", "output", "step.sh"))
        summary.write_text("")
        output.write_text("")
        self.assertEqual(shell["shell"], "sh")
        lines.write_text(filled(shell["run"]))
        self.project = self.project / filled(shell["working-directory"])
        status = self.execute(["sh", "-e", lines], {
            **OF_GITHUB, "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output), "GITHUB_ACTION_PATH": str(ROOT / "ci/github"),
            "RUNNER_TEMP": str(self.temp), **{name: filled(value) for name, value in shell["env"].items()}}, stdin=subprocess.DEVNULL)
        self.summary = summary.read_text()
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        self.outputs = {name: outputs[re.fullmatch(r"\$\{\{ steps\.run\.outputs\.(\w+) \}\}", declared["value"])[1]]
                        for name, declared in action["outputs"].items()}
        self.assertEqual(upload["if"], "${{ always() && inputs.artifact != '' }}")
        self.assertEqual(self.project.parent / filled(upload["with"]["path"]), self.project.parent / "./hangscope-artifacts")
        self.assertTrue(self.artifacts.is_dir())
        return status

    def commands(self):
        """The workflow commands that the runner would obey: (name, properties, message)."""
        found, stopped = [], None
        for line in self.done.stdout.splitlines():
            match = re.match(r"\s*::([\w-]+)(?: (.*?))?::(.*)$", line)
            if stopped:
                stopped = None if line.strip() == f"::{stopped}::" else stopped
            elif match and match[1] == "stop-commands":
                stopped = match[3]
            elif match:
                properties = dict(part.split("=", 1) for part in (match[2] or "").split(",") if part)
                found.append((match[1], {name: unescaped(value) for name, value in properties.items()}, unescaped(match[3])))
        self.assertIsNone(stopped)
        return found

    def shown(self):
        """The summary as GitHub shows it: what is in it that is not code."""
        return [line for line in self.summary.splitlines() if line and not line.startswith("    ")]

    def test_hang_is_an_annotation_and_a_summary(self):
        self.assertEqual(self.act(run="cat printed.txt >&2\npython3 hang.py\necho not reached", stall="1"), 124)
        failure = self.case().find("failure")
        (name, properties, message), = self.commands()
        self.assertEqual((name, properties), ("error", {"title": "hangscope: the command hung"}))
        self.assertEqual(message.split("\n")[0], failure.attrib["message"])
        self.assertEqual(message.split("\n")[1:5], failure.text.split("\n")[:4])
        self.assertEqual(self.outputs, {"status": "124", "outcome": "hung", "verdict": failure.attrib["message"]})
        self.assertEqual(self.shown(), ["### hangscope: the command hung", "Status 124:", "The report:",
                                        "The last lines of its standard output:", "The last lines of its standard error:"])
        for line in [failure.attrib["message"], *failure.text.rstrip("\n").split("\n"), "the last words", *PRINTED.replace("\a", "\\x07").split("\n")]:
            self.assertIn(f"\n    {line}\n", self.summary)
        self.assertEqual(self.case().attrib["name"], "cat printed.txt >&2 python3 hang.py echo not reached")

    def test_command_that_works(self):
        self.assertEqual(self.act(run="echo \"$CI\" | grep true\n"), 0)
        self.assertEqual((self.commands(), self.done.stdout), ([], "true\n"))
        self.assertEqual(self.outputs, {"status": "0", "outcome": "passed", "verdict": "ended with status 0"})
        self.assertEqual(self.shown(), ["### hangscope: no hang", "Status 0:"])

    def test_first_line_that_fails_ends_the_command(self):
        self.assertEqual(self.act(run="cat printed.txt\nfalse | cat\necho not reached"), 1)
        self.assertNotIn("not reached", self.done.stdout)
        self.assertEqual(self.outputs["outcome"], "failed")
        # The command's own lines are as they would be without; what quotes them is not taken for a command.
        self.assertEqual([command[0] for command in self.commands()], ["error", "error"])
        self.assertEqual([command[2].split("\n")[0] for command in self.commands()], ["no command", "ended with status 1"])

    def test_wrong_input_is_told(self):
        self.assertEqual(self.act(run="true", stall="soon"), 125)
        (name, properties, message), = self.commands()
        self.assertEqual((name, properties), ("error", {"title": "hangscope: hangscope failed"}))
        self.assertIn("--stall 'soon': not a time", message)
        self.assertIn("(HANGSCOPE_OPT_STALL sets it)", message)
        self.assertEqual(self.outputs["outcome"], "hangscope-failed")

    def test_options_and_timeout(self):
        self.assertEqual(self.act(run="while :; do date; sleep 0.1; done", timeout="1", options="--max-snapshots 1  --on-hang none"), 124)
        self.assertEqual(self.outputs["outcome"], "timed-out")
        self.assertNotIn("run.snapshot-0001", self.kept())  # as --on-hang none wants it

    def test_missing_hangscope_is_told(self):
        self.assertEqual(self.act(run="true", hangscope="/nowhere/hangscope"), 125)
        self.assertEqual(self.outputs["verdict"], "hangscope failed: there is no command '/nowhere/hangscope' (HANGSCOPE names another)")
        self.assertEqual(self.case().find("error").attrib["message"], self.outputs["verdict"])


@unittest.skipUnless(importlib.util.find_spec("yaml"), "the module yaml is not installed (package python3-yaml)")
class Gitlab(Recipe):
    """The job that ci/gitlab/hangscope.yml makes of its inputs."""
    FILE = ROOT / "ci/gitlab/hangscope.yml"

    def job(self, **given):
        spec, jobs = yaml.safe_load_all(self.FILE.read_text())
        inputs = {}
        for name, declared in spec["spec"]["inputs"].items():
            self.assertTrue("default" in (declared or {}) or name in given, f"{name} is not optional")
            inputs[name] = given.get(name, (declared or {}).get("default"))
        self.assertEqual(set(given) - set(inputs), set())

        def filled(node):
            if isinstance(node, dict):
                return {filled(key): filled(value) for key, value in node.items()}
            if isinstance(node, list):
                return [filled(value) for value in node]
            return re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda match: inputs[match[1]], node) if isinstance(node, str) else node
        (self.name, job), = filled(jobs).items()
        return job

    def run_job(self, shell, **given):
        job = self.job(**given)
        environment = dict(OF_GITLAB)
        for name, value in job["variables"].items():
            if isinstance(value, dict):
                self.assertIs(value["expand"], False)
                environment[name] = value["value"]
            else:
                environment[name] = value
        # As the runner's shell executor makes it.
        lines = "".join(f"{line}\n" for line in job["script"])
        options = "set -eo pipefail\nset +o noclobber\n" if shell == "bash" else "set -e\nset +o noclobber\n"
        status = self.execute([shell], environment, input=f"{options}: | eval {shlex.quote(lines)}\nexit 0\n")
        self.assertEqual(job["artifacts"]["when"], "always")
        for path in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
            self.assertTrue((self.project / path).exists(), path)
        self.assertEqual(self.project / job["artifacts"]["reports"]["junit"], self.artifacts / "hang.xml")
        return status

    def test_file_has_the_script(self):
        """UPDATE=1 python3 test_ci_recipes.py Gitlab.test_file_has_the_script puts it there."""
        begin, there, end = re.search(r"(.*<< 'END_OF_HANGSCOPE_CI'\n)(.*)(^ +END_OF_HANGSCOPE_CI\n.*)", self.FILE.read_text(), re.S | re.M).groups()
        script = textwrap.indent(SCRIPT.read_text(), " " * 6)
        if os.environ.get("UPDATE"):
            self.FILE.write_text(begin + script + end)
            there = script
        self.assertEqual(there, script)
        self.assertIn(SCRIPT.read_text() + "END_OF_HANGSCOPE_CI\n", self.job(command="true")["script"][0])

    def test_outcomes(self):
        for shell in ("bash", "dash"):
            for command, status, outcome in (("echo \"$CI\" '$x'", 0, "passed"), ("python3 hang.py", 124, "hung"), ("exit 3", 3, "failed"),
                                             ("kill -SEGV $$", 139, "crashed"), ("no-such-program", 127, "failed")):
                with self.subTest(shell=shell, command=command):
                    self.assertEqual(self.run_job(shell, command=command, stall="1"), status, self.done)
                    self.assertEqual(self.outcome()[0], outcome)
                    self.assertNotIn("::", self.done.stdout)
            with self.subTest(shell=shell, hangscope="missing"):
                self.assertEqual(self.run_job(shell, command="true", hangscope="/nowhere/hangscope"), 125)
                self.assertEqual(self.outcome()[0], "hangscope-failed")
        self.assertEqual(list(self.temp.iterdir()), [])

    def test_job_is_named_and_told_where(self):
        job = self.job(command="true", job="boot", stage="simulate", folder="out/boot")
        self.assertEqual((self.name, job["stage"], job["artifacts"]["paths"]), ("boot", "simulate", ["out/boot/"]))


class Page(Recipe):
    """What docs/ci.md tells its readers to write."""
    PAGE = (ROOT / "docs/ci.md").read_text()
    SIMULATOR = "#!/bin/sh\necho one\ncase $1 in *dma*) exec python3 hang.py ;; esac\n"

    def blocks(self, language):
        return re.findall(rf"^```{language}\n(.*?)^```", self.PAGE, re.S | re.M)

    def test_shell_lines(self):
        (self.project / "ci").symlink_to(ROOT / "ci")
        (self.project / "build").mkdir()
        (self.project / "build/simulator").write_text(self.SIMULATOR)
        (self.project / "build/simulator").chmod(0o755)
        one, several = (block.replace("--stall 60", "--stall 1") for block in self.blocks("sh"))
        self.assertEqual(self.execute(["sh", "-e", "-c", one]), 0)
        self.assertEqual(self.outcome()[0], "passed")
        self.assertEqual(self.execute(["sh", "-e", "-c", several]), 1)
        self.assertEqual(self.done.stdout.splitlines()[-1], "failed: dma")
        for test, outcome in (("boot", "passed"), ("dma", "hung")):
            self.artifacts = self.project / "artifacts" / test
            self.assertEqual(self.outcome()[0], outcome)

    @unittest.skipUnless(importlib.util.find_spec("yaml"), "the module yaml is not installed (package python3-yaml)")
    def test_jobs_name_inputs_that_there_are(self):
        github, gitlab = (yaml.safe_load(block) for block in self.blocks("yaml"))
        action = yaml.safe_load((ROOT / "ci/github/action.yml").read_text())
        step = github["jobs"]["test"]["steps"][-1]
        self.assertEqual(step["uses"], "./hangscope/ci/github")
        self.assertLessEqual(set(step["with"]), set(action["inputs"]))
        table = self.PAGE[self.PAGE.index("## GitHub"):self.PAGE.index("## GitLab")]
        self.assertEqual(set(action["inputs"]), set(re.findall(r"^\| `([\w-]+)` \|", table, re.M)))
        spec = next(yaml.safe_load_all(Gitlab.FILE.read_text()))["spec"]
        self.assertLessEqual(set(gitlab["include"][0]["inputs"]), set(spec["inputs"]))
        # GitLab refuses a number where the default is a text.
        self.assertEqual({type(value) for value in (*gitlab["include"][0]["inputs"].values(), *(each.get("default", "") for each in spec["inputs"].values()))}, {str})
        self.assertIn("hangscope", gitlab)
        self.assertEqual(spec["inputs"]["job"]["default"], "hangscope")

    def test_containers_name_what_there_is_and_that_they_are_untested(self):
        container = (ROOT / ".devcontainer/devcontainer.json").read_text()
        dockerfile = BareRootLong.DOCKERFILE.read_text()
        for text in (container, dockerfile, (ROOT / ".devcontainer/Dockerfile").read_text()):
            self.assertRegex(text.split("\n")[0], "^(//|#) Untested: ")
        settings = json.loads("\n".join(line for line in container.split("\n") if not line.strip().startswith("//")))
        for path in (*re.findall(r"^COPY (?!--from)(\S+)", dockerfile, re.M), ".devcontainer/" + settings["build"]["dockerfile"]):
            self.assertTrue((ROOT / path).exists(), path)
        groups = re.search(r'^groups="(.*)"', (ROOT / "scripts/packages").read_text(), re.M)[1].split()
        for line in re.findall(r"scripts/ensure-packages ([a-z ]+?) &&", dockerfile + settings["postCreateCommand"]):
            self.assertLessEqual(set(line.split()), set(groups))

    def test_outcomes_are_those_of_the_script(self):
        told = set(re.findall(r"outcome=([a-z-]+)", SCRIPT.read_text()))
        listed = re.search(r"`outcome` is ((?:`[a-z-]+`,?\s+(?:or )?)*`[a-z-]+`)", self.PAGE)[1]
        self.assertEqual(set(re.findall(r"`([a-z-]+)`", listed)), told)


class BareRootLong(Recipe):
    """In a root of Debian that has nothing but what is essential and the packages of the image."""
    DOCKERFILE = ROOT / "ci/docker/Dockerfile"

    def test_script_needs_nothing_else(self):
        root = self.folder / "root"
        packages = re.search(r"--no-install-recommends \\\n((?:.*\\\n)*?.*?) &&", self.DOCKERFILE.read_text())[1].replace("\\\n", " ").split()
        try:
            debian_root.must_be_possible()
            debian_root.make(root, self.folder / "made", packages)
        except debian_root.Cannot as why:
            self.skipTest(str(why))
        shutil.copy(HANGSCOPE, root / "usr/bin/hangscope")
        shutil.copy(SCRIPT, root / "usr/bin/hangscope-ci")
        self.assertFalse((root / "usr/bin/python3").exists())
        entered = debian_root.Root(root)
        self.artifacts = root / "root/hangscope-artifacts"
        for shell in ("dash", "bash"):
            for lines, wanted, outcome in (("echo fine", 0, "passed"), ("exit 3", 3, "failed"), ("kill -SEGV $$", 139, "crashed"),
                                           ("echo waits; sleep 100 & kill -STOP $!; wait", 124, "hung")):
                with self.subTest(shell=shell, lines=lines):
                    job = f"cd /root && exec {shell} /usr/bin/hangscope-ci --stall 1 -- sh -c {shlex.quote(lines)}"
                    status, said = entered.run(["sh", "-c", job], 60, **OF_GITHUB, GITHUB_STEP_SUMMARY="summary")
                    self.assertEqual(status, wanted, said)
                    self.assertEqual(self.outcome()[0], outcome)
                    self.case()
                    self.assertNotIn("not found", said)
                    self.assertIn("hangscope", (root / "root/summary").read_text())


if __name__ == "__main__":
    main()
