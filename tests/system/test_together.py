"""`hangscope run --scope` watches the program's mailboxes beside its streams: one verdict of both."""
import json
import time

from support import *

COPIERS = [BUILD + "/tests/copiers"]
# Polls for ever, and prints the same line all the time; with the other program beside it.
POLLING = """
import subprocess, sys, time
subprocess.Popen(sys.argv[1:], stdin=0)
for name in ("bus", "memory", "copiers", "screen"):
    print("found the", name)
    time.sleep(0.1)
while True:
    print("waiting for a copy")
    end = time.monotonic() + 0.005
    while time.monotonic() < end:
        pass
"""


class Together(Case):
    def watched(self, *words, **popen):
        scope = self.folder / "it.scope"
        environment = {**os.environ, "HANGSCOPE_SCOPE": str(scope)}
        end, self.end_of_program = os.pipe()  # a byte ends it, and so would its closing
        self.addCleanup(os.close, self.end_of_program)
        self.addCleanup(os.close, end)
        return self.recorder("run", "--scope", f"file:{scope}", "--elf", COPIERS[0], *words, stdin=end, env=environment, **popen)

    def test_a_deadlock_is_told_with_its_cycle(self):
        outcome = self.wait(self.watched("--stall", "1", "--on-hang", "kill", "--", *COPIERS, "deadlock"))
        self.assertEqual(outcome.status, 124)
        hang = outcome.hangs[0]
        self.assertEqual((hang["state"], hang["confidence"]), ("deadlock", "certain"))
        self.assertEqual(hang["findings"][0]["kind"], "deadlock")
        lines = "\n".join(hang["findings"][0]["lines"])
        for word in ("alpha", "beta", "queue", "table", "held by"):
            self.assertIn(word, lines)
        manifest = json.loads((self.snapshots()[0] / "manifest.json").read_text())
        self.assertEqual(manifest["verdict"]["state"], "deadlock")
        self.assertEqual(manifest["scope"]["image"], "scope.bin")
        report = (self.snapshots()[0] / "report.txt").read_text()
        self.assertIn("deadlock", report)
        self.assertIn("held by", report)
        # What the snapshot keeps says the same by itself.
        why = self.hangscope("why", str(self.snapshots()[0]))
        self.assertEqual(why.status, 1)
        self.assertIn(b"deadlock", why.out)

    def test_a_stream_that_loops_and_mailboxes_that_wait_are_one(self):
        outcome = self.wait(self.watched("--stall", "2", "--on-hang", "kill", "--", *python(POLLING, COPIERS[0], "deadlock")))
        self.assertEqual(outcome.status, 124)
        self.assertEqual(len(outcome.hangs), 1)
        self.assertEqual(outcome.hangs[0]["state"], "deadlock")

    def test_a_stream_that_repeats_is_no_hang_while_cores_go_on(self):
        process = self.watched("--stall", "1", "--on-hang", "kill", "--heartbeat", "0.2", "--", *python(POLLING, COPIERS[0], "well"))
        self.until(lambda: [m for m in self.messages() if m["type"] == "heartbeat" and (m["state"], m["confidence"]) == ("looping", "possible")],
                   what="a heartbeat that says so")
        time.sleep(1)
        process.terminate()
        outcome = self.wait(process)
        self.assertEqual(outcome.hangs, [])

    def test_without_mailboxes_the_streams_decide(self):
        outcome = self.run_program(python(POLLING, "true"), "--scope", "pid:", "--stall", "1", "--on-hang", "kill")
        self.assertEqual(outcome.status, 124)
        self.assertEqual(outcome.hangs[0]["state"], "looping")
        self.assertNotIn("findings", outcome.hangs[0])


if __name__ == "__main__":
    main()
