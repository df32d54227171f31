"""The Chrome JSON of hangscope export, opened by speedscope in a headless Chromium."""
import base64
import json

import chromium
import npm
from support import DATA, Case, main


class TestSpeedscope(Case):
    def setUp(self):
        super().setUp()
        if chromium.WHY_NOT:
            self.skipTest(chromium.WHY_NOT)
        self.page_folder = npm.package("speedscope") / "dist/release"

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
