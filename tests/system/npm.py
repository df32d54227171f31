"""Packages of npm's that tests need: the versions that tests/web/package.json names, installed into the build folder."""
import fcntl
import json
import pathlib
import shutil
import subprocess
import unittest

from support import BUILD, ROOT

MANIFEST = ROOT / "tests/web/package.json"
INSTALL = ["npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0"]
PATIENCE_S = 45  # twice that, since another test may wait before this one, is less than what a test has


def installed_version(folder, name):
    """npm lists there what it has installed, once all of it is whole."""
    try:
        return json.loads((folder / "node_modules/.package-lock.json").read_text())["packages"][f"node_modules/{name}"]["version"]
    except (FileNotFoundError, KeyError):
        return None


def package(name):
    """The folder of a package; skips the test where it cannot be had."""
    if not shutil.which("npm"):
        raise unittest.SkipTest("npm is missing: it comes with Node.js, from Debian or from elsewhere")
    version = json.loads(MANIFEST.read_text())["devDependencies"][name]
    folder = pathlib.Path(BUILD) / "web"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:  # tests run beside each other
        fcntl.flock(lock, fcntl.LOCK_EX)
        if installed_version(folder, name) != version:
            shutil.copy(MANIFEST, folder)
            try:
                done = subprocess.run(INSTALL, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                raise unittest.SkipTest(f"npm did not install {name} within {PATIENCE_S} s")
            if done.returncode != 0:
                raise unittest.SkipTest(f"npm cannot install {name}: {done.stderr.strip().splitlines()[-1:]}")
    return folder / "node_modules" / name
