"""The page of hangs of the examples' firmware in QEMU, and what a healthy run of the same did next."""
import json
import re
import shutil
import subprocess

import chromium
from support import *
from watched_targets import new_folder, start_device, start_sched

HART = "qemu-system-riscv32"


class Examples(Case):
    def setUp(self):
        super().setUp()
        if shutil.which(HART) is None or not (FIRMWARE / "rv32-device.elf").exists():
            self.skipTest("QEMU or the firmware is missing (scripts/ensure-packages target)")

    def guest(self, start, until, **plan):
        """The RAM that a guest leaves when it has come so far."""
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        started = start(folder, **plan)
        self.addCleanup(started.kill)
        started.until_recording()
        self.until(lambda: until(started), timeout=60, what="the guest")
        started.kill()
        return started

    def look(self, guest):
        """What `hangscope why` says of it while it runs: it is as it will be once that finds something."""
        return self.hangscope("why", "--stall", "0.3", "--elf", guest.elf, guest.target).out

    def data(self, *words):
        outcome = self.hangscope("report", "--data", *words)
        self.assertEqual(outcome.status, 0, outcome.err)
        return json.loads(outcome.out)

    def open(self, page):
        if chromium.WHY_NOT:
            return None
        browser = chromium.Browser(self.folder / "profile")
        self.addCleanup(browser.close)
        opened = browser.open(page.as_uri())
        opened.wait("document.documentElement.dataset.ready === ''")
        return opened

    def test_a_fault_of_a_device_is_shown_with_its_source(self):
        guest = self.guest(start_device, lambda g: b"FAULT" in self.look(g), fault="ASSERT", core=2, block=5)
        words = ["--elf", guest.elf, guest.target]
        data = self.data(*words)
        fault, = data["faults"]
        self.assertIn("assert 'the block is in order' tripped at faults.c:", fault["text"])
        line = int(re.search(r"faults\.c:(\d+)", fault["text"])[1])
        source = (ROOT / "examples/device/faults.c").read_text().splitlines()
        excerpt = fault["source"]
        self.assertEqual((excerpt["line"], pathlib.Path(excerpt["file"]).name), (line, "faults.c"))
        shown = excerpt["lines"][line - excerpt["first"]]
        self.assertEqual(shown.strip(), source[line - 1].strip())
        self.assertIn("HANGSCOPE_ASSERT", shown)
        self.assertEqual(len([t for t in data["tracks"] if t["kind"] == "core"]), 5, "rings that no core has used are no rows")
        page = self.folder / "device.html"
        self.assertEqual(self.hangscope("report", "-o", page, *words).status, 0)
        opened = self.open(page)
        if opened is None:
            return
        self.assertIn("tripped at faults.c:", opened.text("h1"))
        self.assertIn("HANGSCOPE_ASSERT", opened.text("#faults"))
        self.assertEqual(opened.complaints(), [])

    def test_a_hang_of_tasks_is_compared_with_a_healthy_run(self):
        hung = self.guest(start_sched, lambda g: b"HANG" in self.look(g), fault="DEADLOCK2", task=2, other=1, round=20)
        well = self.guest(start_sched, lambda g: g.scope.exists() and self.events(g) > 400)
        outcome = self.hangscope("report", "--elf", hung.elf, "-o", self.folder / "page.html", hung.target, "--against", well.target)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("the healthy run went on with 'task_switch from task 7000", outcome.out.decode())
        core, = self.data("--elf", hung.elf, hung.target, "--against", well.target)["divergence"]["cores"]
        # The timer goes on, and its interrupts are all that the ring holds once the tasks stand for long.
        self.assertIn("goes round 1 step", core["verdict"])
        self.assertIn("isr_enter", core["common"][-1]["text"])
        self.assertIn("task_switch", core["healthy"][0]["text"])

    def events(self, guest):
        lines = [json.loads(line) for line in self.hangscope("show", "--json", "--elf", guest.elf, guest.target).out.splitlines()]
        return sum(line["emitted"] for line in lines if line["type"] == "core")

    def grants(self, stream):
        """What the hanging one forgets, so far; the rest of the stream is not waited for."""
        cat = subprocess.Popen([HANGSCOPE, "cat", stream], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with cat.stdout:
            found = subprocess.run(["grep", "-c", "-m", "20", "noc_semaphore_inc"], stdin=cat.stdout, capture_output=True, timeout=60)
        cat.wait()
        return int(found.stdout)

    def test_a_hang_of_harts_is_compared_with_a_healthy_run(self):
        for name in ("hang", "work"):
            elf = FIRMWARE / f"rv32-handshake-{name}.elf"
            self.prefix = f"{self.folder}/{name}"
            process = self.recorder("run", "--elf", elf, "--heartbeat", "0", "--stall", "0.3" if name == "hang" else "60", "--on-hang", "kill", "--no-passthrough",
                                    "--size", "64M", "--", HART, "-machine", "virt", "-m", "64M", "-bios", "none", "-kernel", elf, "-smp", "3", "-nographic",
                                    "-monitor", "none", "-serial", "none", "-d", "exec,nochain")
            if name == "work":
                self.until(lambda: self.grants(f"{self.prefix}.stderr") == 20, timeout=40, what="its blocks")
                self.hangscope("snap", process.pid)
                process.terminate()
            self.wait(process)
        data = self.data(self.folder / "hang.snapshot-0001", "--against", self.folder / "work.snapshot-0001")
        cores = {core["name"]: core for core in data["divergence"]["cores"]}
        self.assertEqual(sorted(cores), ["hart 0", "hart 1", "hart 2"])
        self.assertTrue(any(core.get("healthy") for core in cores.values()), cores)


if __name__ == "__main__":
    main()
