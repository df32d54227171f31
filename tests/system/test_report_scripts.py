"""The scripts of the report's page: node reads each, since what does not parse would leave the page empty."""
import re
import shutil
import subprocess
import unittest

import npm
from support import ROOT, main

NODE = shutil.which("node")
SCRIPTS = sorted((ROOT / "src/report/page").glob("*.js"))


class Scripts(unittest.TestCase):
    def run_on_all(self, *program):
        done = subprocess.run([NODE, *program, *SCRIPTS], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipUnless(NODE, "node is missing: Debian 12 has it in nodejs")
    def test_each_is_whole_for_itself(self):
        check = "for (const file of process.argv.slice(1)) new vm.Script(fs.readFileSync(file), {filename: file})"
        self.run_on_all("-e", check)

    @unittest.skipUnless(NODE, "node is missing: Debian 12 has it in nodejs")
    def test_no_two_use_one_name(self):
        """In the page they are one script."""
        check = "new vm.Script('{' + process.argv.slice(1).map(file => fs.readFileSync(file)).join('\\n') + '}')"
        self.run_on_all("-e", check)

    def test_no_line_is_longer_than_100_columns(self):
        """Prettier leaves texts and comments as they are."""
        long = [f"{script.name}: {line}" for script in SCRIPTS for line in script.read_text().splitlines() if len(line) > 100]
        self.assertEqual(long, [])

    def test_names_are_in_camel_case_but_for_fields_of_the_data(self):
        fields = set(re.findall(r"\w+", (ROOT / "docs/report-data.md").read_text()))
        for script in SCRIPTS:
            code = re.sub("//.*", "", script.read_text())
            snakes = set(re.findall(r"[a-z0-9]+(?:_[a-z0-9]+)+", code))
            self.assertEqual(snakes - fields, set(), script.name)

    def test_states_have_the_numbers_of_the_data(self):
        row = next(line for line in (ROOT / "docs/report-data.md").read_text().splitlines() if "`state` | uint8 |" in line)
        names = re.findall(r"`([^`]+)`", row.split("index into")[1])
        script = (ROOT / "src/report/page/columns.js").read_text()
        lines = re.search(r"const kState = {\n(.*?)\n};", script, re.DOTALL)[1].splitlines()
        self.assertEqual([line.strip().replace('"', "") for line in lines], [f"{name}: {i}," for i, name in enumerate(names)])

    @unittest.skipUnless(NODE, "node is missing: Debian 12 has it in nodejs")
    def test_prettier_has_nothing_to_change(self):
        """It finds its options in src/report/page/.prettierrc; --write instead of --check changes the scripts."""
        self.run_on_all(npm.package("prettier") / "bin/prettier.cjs", "--check")


if __name__ == "__main__":
    main()
