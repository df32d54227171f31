"""A browser for the tests of the report's page, one for each file of tests; and the pages that they look at."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import chromium
from support import BUILD

MAKER = pathlib.Path(BUILD) / "tests/report_page"


@unittest.skipIf(chromium.WHY_NOT, chromium.WHY_NOT)
class ReportCase(unittest.TestCase):
    """A page that was opened once stays open for the tests behind."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hangscope-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = chromium.Browser(cls.folder / "profile")
        cls.addClassCleanup(cls.browser.close)
        cls.pages, cls.addresses = {}, {}

    def address(self, make):
        if make.__name__ not in self.addresses:
            file = self.folder / f"{make.__name__}.html"
            made = subprocess.run(
                [MAKER], input=json.dumps(make()).encode(), capture_output=True, timeout=60, check=True
            )
            file.write_bytes(made.stdout)
            self.addresses[make.__name__] = file.as_uri()
        return self.addresses[make.__name__]

    def open(self, make, **size):
        page = self.browser.open(self.address(make), **size)
        page.wait("document.documentElement.dataset.ready === ''")
        return page

    def page(self, make):
        """The page of this data, as it was opened or left behind by another test."""
        if make.__name__ not in self.pages:
            self.pages[make.__name__] = self.open(make)
        page = self.pages[make.__name__]
        page.browser.call("Target.activateTarget", targetId=page.target)
        return page

    def forget(self, make):
        """Its page is opened anew next time."""
        page = self.pages.pop(make.__name__, None)
        if page:
            page.close()
