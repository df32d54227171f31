"""That a watcher cannot hurt what it watches: killed, stopped, or two at once; and how little it is noticed."""
import re
import shutil
import signal
import subprocess
import time

from support import HANGSCOPE, Case, main
from watched_targets import new_folder, start_device, start_pipeline

# One thread runs all harts, and time is counted in instructions: each run is the same to the last one.
ICOUNT = ("-icount", "shift=0,sleep=off")
BLOCKS = 40000


class Harmless(Case):
    def watch(self, started, *options):
        """Returns when it is at work."""
        out = self.folder / f"watch{len(list(self.folder.glob('watch*')))}"
        changes = out.with_suffix(".log")
        with open(out, "wb") as file:
            watcher = subprocess.Popen([HANGSCOPE, "watch", "--json", "--interval", "10ms", "--log", changes, "--elf", started.elf, *options,
                                        started.target], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, watcher)
        try:
            self.until(lambda: changes.exists() and '"change"' in changes.read_text(), what="a watcher's first look")
        except self.failureException as error:
            self.fail(f"{error}; its status is {watcher.poll()}, and it said {out.read_text()[-500:]!r}")
        return watcher, out

    def begin(self, start, **words):
        folder = new_folder(self.folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        started = start(folder, **words)
        self.addCleanup(started.kill)
        started.until_recording()
        return started

    def result(self, started, timeout=120):
        started.process.wait(timeout)
        self.assertEqual(started.process.returncode, 0, started.said())
        return started.said()

    def disturb(self, started):
        """One is killed, one is stopped, one goes on."""
        killed, _ = self.watch(started)
        stopped, _ = self.watch(started)
        goes_on, log = self.watch(started)
        killed.kill()
        stopped.send_signal(signal.SIGSTOP)
        self.addCleanup(stopped.send_signal, signal.SIGCONT)  # so that it can be ended
        self.assertIsNone(started.process.poll(), "the target ended before anybody watched it")
        return goes_on, log

    def polls(self, watcher, log):
        watcher.send_signal(signal.SIGINT)
        watcher.wait(20)
        found = re.search(r'"polls":(\d+)', log.read_text())
        self.assertTrue(found, log.read_text()[-500:])
        return int(found[1])

    def run_device(self):
        return self.begin(start_device, nodes=2, blocks=BLOCKS, pace_us=0, power_off=True, options=ICOUNT)

    def test_a_guest_runs_the_same_instructions_with_watchers_and_without(self):
        self.need_firmware()
        alone = self.result(self.run_device())
        self.assertRegex(alone, rf"device: {BLOCKS} blocks, all right, \d+ instructions")
        watched = self.run_device()
        goes_on, log = self.disturb(watched)
        self.assertEqual(self.result(watched), alone)
        polls = self.polls(goes_on, log)
        self.assertGreater(polls, 10, "it was hardly watched")
        print(f"{alone.strip()}; the same while three watched, of which one was killed and one stopped ({polls} polls)")

    def test_a_process_comes_to_the_same_result_with_watchers_and_without(self):
        words = dict(nodes=2, blocks=3000, pace_us=1000)
        alone = self.result(self.begin(start_pipeline, **words))
        watched = self.begin(start_pipeline, **words)
        goes_on, log = self.disturb(watched)
        self.assertEqual(self.result(watched), alone)
        goes_on.wait(20)  # by itself: the process has ended
        self.assertEqual(goes_on.returncode, 0, log.read_text()[-500:])


if __name__ == "__main__":
    main()
