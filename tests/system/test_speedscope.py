"""The Chrome JSON of hangscope export, opened by speedscope in a headless Chromium.

speedscope comes from npm, in the version that tests/web/package.json names, and lies in the build folder then.
"""
import base64
import fcntl
import json
import pathlib
import shutil
import subprocess
import unittest

import chromium
from support import BUILD, DATA, ROOT, Case, main

MANIFEST = ROOT / "tests/web/package.json"


def speedscope():
    """The folder of its page; skips the test where it cannot be had."""
    if not shutil.which("npm"):
        raise unittest.SkipTest("npm is missing: it comes with Node.js, from Debian or from elsewhere")
    version = json.loads(MANIFEST.read_text())["devDependencies"]["speedscope"]
    folder = pathlib.Path(BUILD) / "web"
    folder.mkdir(parents=True, exist_ok=True)
    installed = folder / "node_modules/speedscope"
    with open(folder / "lock", "w") as lock:  # tests run beside each other
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (installed / "dist/release/index.html").exists() or json.loads((installed / "package.json").read_text())["version"] != version:
            shutil.copy(MANIFEST, folder)
            try:
                done = subprocess.run(["npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"],
                                      cwd=folder, capture_output=True, text=True, timeout=60)
            except subprocess.TimeoutExpired:
                raise unittest.SkipTest("npm did not install speedscope within a minute")
            if done.returncode != 0:
                raise unittest.SkipTest(f"npm cannot install speedscope: {done.stderr.strip().splitlines()[-1:]}")
    return installed / "dist/release"


class TestSpeedscope(Case):
    def setUp(self):
        super().setUp()
        if chromium.WHY_NOT:
            self.skipTest(chromium.WHY_NOT)
        self.page_folder = speedscope()

    def show(self, browser, trace):
        """Speedscope's page with a file in it; a page from disk takes one as a script."""
        script = self.folder / "profile.js"
        content = base64.b64encode(trace.read_bytes()).decode()
        script.write_text(f"speedscope.loadFileFromBase64({json.dumps(trace.name)}, {json.dumps(content)})")
        return browser.open(f"file://{self.page_folder}/index.html#localProfilePath={script}")

    def test_shows_each_core_by_its_name_and_takes_every_slice(self):
        trace = self.folder / "trace.json"
        done = self.hangscope("export", "--to", "chrome", "-o", trace, DATA / "scope/watched-little64.bin")
        self.assertEqual(done.status, 0, done.err)
        events = json.loads(trace.read_text())["traceEvents"]
        begun = {event["tid"] for event in events if event["ph"] == "B"}
        names = [event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "thread_name" and event["tid"] in begun]
        self.assertGreater(len(names), 1, "speedscope shows what has slices")
        with chromium.Browser(self.folder / "profile", "--allow-file-access-from-files") as browser:
            page = self.show(browser, trace)
            shown = set()
            for i in range(len(names)):
                shown.add(page.wait(f"(document.body.innerText.match(/.*\\({i + 1}\\/{len(names)}\\)/) ?? [''])[0]"))
                page.key("n")  # the next one
            for name in names:
                self.assertTrue(any(name in text for text in shown), f"{name} is not among {shown}")
            refused = [text for text in page.complaints() if "Doing nothing" in text or "still open" in text or "rror" in text]
            self.assertEqual(refused[:3], [])


if __name__ == "__main__":
    main()
