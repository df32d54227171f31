#!/usr/bin/env python3
"""hangscope export of instruction traces: functions per core, as the simulator itself names each step."""
import collections
import itertools
import json
import re
import subprocess

from support import *

# Trace 0: 0x7f1c… [00000000/80000032/00109003/ff000200] symbol
STEP = re.compile(rb"Trace (\d+): (\S+) \[\w+/\w+/\w+/\w+\] ?(\S*)$")
# Stopped execution of TB chain before 0x7f1c… [80000032] symbol: the block that was announced did not run
STOPPED = re.compile(rb"Stopped execution of TB chain before (\S+) ")


class Functions(Case):
    def trace(self, example, steps):
        """The first steps of an example, one line an instruction."""
        self.need_firmware()
        elf = FIRMWARE / f"rv32-{example}.elf"
        log = self.folder / "steps.log"
        qemu = subprocess.Popen(["qemu-system-riscv32", "-machine", "virt", "-bios", "none", "-nographic", "-monitor", "none", "-serial", "null",
                                 "-kernel", elf, "-singlestep", "-d", "exec,nochain", "-D", "/dev/stdout"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(qemu.wait)
        self.addCleanup(qemu.kill)
        lines = [line for line in (qemu.stdout.readline() for _ in range(steps)) if line]
        qemu.kill()
        qemu.stdout.close()
        log.write_bytes(b"".join(lines))
        return elf, log, lines

    def named_by_qemu(self, lines):
        """By hart: the functions that it is in, one after the other."""
        steps = collections.defaultdict(list)
        for at, line in enumerate(lines):
            step, stopped = STEP.match(line.strip()), STOPPED.match(line)
            if step:
                steps[int(step[1])].append((at, step[2], step[3].decode()))
            announced = [its for its in steps.values() if its and stopped and its[-1][1] == stopped[1]]
            if announced:
                max(announced, key=lambda its: its[-1]).pop()
        return {hart: [name for name, _ in itertools.groupby(name for _, _, name in its if name)] for hart, its in steps.items()}

    def named_by_export(self, *words):
        """The same from the events: who is innermost behind each step; and how deep it goes."""
        done = self.hangscope("export", "--to", "jsonl", *words)
        self.assertEqual(done.status, 0, done.err)
        found, open_now, deepest, times = collections.defaultdict(list), collections.defaultdict(list), 0, {}
        tracks = []

        def settle(hart):
            if open_now[hart] and found[hart][-1:] != open_now[hart][-1:]:
                found[hart].append(open_now[hart][-1])

        for line in done.out.splitlines():
            event = json.loads(line)
            if event["type"] == "trace":
                tracks = [int(track["name"].split()[-1]) for track in event["tracks"]]
            if event["type"] != "trace_event":
                continue
            hart = tracks[event["track"]]
            if times.get(hart) != event["ns"]:
                settle(hart)
            self.assertGreaterEqual(event["ns"], times.get(hart, 0))
            times[hart] = event["ns"]
            if event["name"] == "function_enter":
                open_now[hart].append(event["what"])
                deepest = max(deepest, len(open_now[hart]))
            else:
                open_now[hart].pop()  # each leave has its enter
        for hart in list(open_now):
            settle(hart)
        return found, deepest

    def check(self, example, least_depth, steps, function):
        elf, log, lines = self.trace(example, steps)
        truth = self.named_by_qemu(lines)
        changes = sum(len(names) for names in truth.values())
        self.assertGreater(changes, 20)
        self.assertTrue([hart for hart, names in truth.items() if function in names], function)
        print(f"{example}: {changes} changes of functions in {len(lines)} steps")
        for words in (("--elf", elf, log), (log,)):
            with self.subTest(words=words):
                found, deepest = self.named_by_export(*words)
                self.assertEqual(sorted(found), sorted(truth))
                for hart, names in truth.items():
                    self.assertEqual(len(found[hart]), len(names), (hart, found[hart][:20], names[:20]))
                    wrong = [i for i, pair in enumerate(zip(found[hart], names)) if pair[0] != pair[1]]
                    self.assertEqual(wrong[:3], [], f"hart {hart}")
                self.assertTrue(least_depth <= deepest <= 12, deepest)

    def test_of_calls_are_those_that_the_simulator_names(self):
        self.check("loops-calls", 3, 60_000, "next_random")

    def test_of_interrupts_are_those_that_the_simulator_names(self):
        self.check("loops-timer", 3, 120_000, "timer_interrupt")


if __name__ == "__main__":
    main()
