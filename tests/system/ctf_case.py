"""What babeltrace2 reads of a CTF trace, for a test."""
import collections
import json
import pathlib
import shutil
import subprocess

DEBIAN_PYTHON = "/usr/bin/python3"


def read_ctf(case, folder):
    """(environment and clock, streams, events, discards), each but the first by track. Skips where there is no babeltrace2."""
    if shutil.which("babeltrace2") is None:
        case.skipTest("babeltrace2 is not installed (package babeltrace2)")
    if subprocess.run([DEBIAN_PYTHON, "-c", "import bt2"], capture_output=True).returncode != 0:
        case.skipTest(f"{DEBIAN_PYTHON} has no module bt2 (package python3-bt2)")
    done = subprocess.run([DEBIAN_PYTHON, pathlib.Path(__file__).parent / "ctf_reading.py", folder], capture_output=True, text=True, timeout=120)
    case.assertEqual(done.returncode, 0, done.stderr)
    first, *lines = map(json.loads, done.stdout.splitlines())
    streams, events, discards = [], collections.defaultdict(list), collections.defaultdict(list)
    for line in lines:
        if "stream" in line:
            streams.append(line["stream"])
        else:
            (discards if "discarded" in line else events)[line["track"]].append(line)
    return first, streams, events, discards
