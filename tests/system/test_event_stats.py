"""Numbers from events: hangscope show --stats of a kernel under QEMU and of images, beside a second computation from the
events that hangscope show --json has."""
import collections
import json
import statistics

from support import FIRMWARE, main
from test_target import Target as Firmware
from watched_targets import PLAN_AT, SCHED_FAULTS


class Numbers:
    """Of one core's events since the start, of which none is missing, in the order of records; a task that waits is woken
    by what names it, or by the record that names what it alone waits for."""

    def __init__(self, lines):
        events = [line for line in lines if line["type"] == "event" and line["age"] == 0]
        assert not any(line["type"] == "missing" for line in lines)
        self.ran, self.interrupts, self.held = collections.Counter(), {}, {}
        self.wakes, self.latencies, self.contended = collections.Counter(), collections.defaultdict(list), 0
        waiting, woken, locked, entered = {}, {}, {}, []
        task = next(event["parameters"][0] for event in events if event["name"] == "task_switch")
        since = int(events[0]["ticks"], 16)
        for event in events:
            name, time, (first, second, *_) = event["name"], int(event["ticks"], 16), event["parameters"]
            if name == "task_switch":
                if task:
                    self.ran[task] += time - since
                task, since = second, time
                if second in woken:
                    self.latencies[second].append(time - woken.pop(second))
                    self.wakes[second] += 1
                elif second in waiting:
                    self.wakes[second] += 1
                waiting.pop(second, None)
            elif name == "isr_enter":
                entered.append((first, time))
            elif name == "isr_exit":
                number, at = entered.pop()
                assert number == first
                self.interrupts.setdefault(number, []).append(time - at)
            elif name == "semaphore_wait" and second >= 1 << 31:
                waiting[task] = first
            elif name == "task_delay" or name == "task_suspend" and first == task:
                waiting[task] = name
            elif name == "task_suspend":
                woken.pop(first, None)
                waiting.setdefault(first, name)
            elif name == "task_resume" and waiting.get(first) == "task_suspend":
                woken[first] = time
                del waiting[first]
            elif name == "task_destroy":
                waiting.pop(first, None), woken.pop(first, None)
            elif name == "mutex_lock" and second == task:
                locked[first] = task, time
            elif name == "mutex_lock":
                waiting[task] = first
                self.contended += 1
            if name in ("semaphore_post", "mutex_unlock"):
                waiters = [each for each, what in waiting.items() if what == first]
                if name == "mutex_unlock":
                    holder, at = locked.pop(first)
                    assert holder == task
                    self.held.setdefault(first, []).append((time - at, task))
                if len(waiters) == 1:
                    woken[waiters[0]] = time
                    del waiting[waiters[0]]
                    if name == "mutex_unlock":
                        locked[first] = waiters[0], time
                assert len(waiters) < 2, "the firmware has none of these"
        self.end = int(events[-1]["ticks"], 16)
        self.ran[task] += self.end - since
        self.left = locked


class Kernel(Firmware):
    """examples/trace_sched, of which nothing is lost since its ring was cleared, or since the start."""

    def check(self, isa, image="trace_sched", wakes=2, **start):
        self.finish(self.start(image, isa, **start))
        elf = ("--elf", FIRMWARE / f"{isa}-{image}.elf")
        lines = [json.loads(line) for line in self.hangscope("show", "--json", *elf, self.ram_file).out.splitlines()]
        done = self.hangscope("show", "--stats", "--json", *elf, self.ram_file)
        self.assertEqual(done.status, 0, done.err)
        (stats,) = [line for line in map(json.loads, done.out.splitlines()) if line["type"] == "stats"]
        mine = Numbers(lines)
        tasks = {task["task"]: task for task in stats["tasks"]}
        self.assertEqual({number: task["ran_ticks"] for number, task in tasks.items() if task["ran_ticks"]},
                         {number: ran for number, ran in mine.ran.items() if ran})
        self.assertEqual(stats["ns_per_tick"], 100)
        self.assertEqual({number: task["wakes"] for number, task in tasks.items() if task["wakes"]}, dict(mine.wakes))
        self.assertGreaterEqual(sum(map(len, mine.latencies.values())), wakes)
        for number, latencies in mine.latencies.items():
            task = tasks[number]
            self.assertEqual((task["measured"], task["shortest_ticks"], task["median_ticks"], task["longest"]["ticks"]),
                             (len(latencies), min(latencies), statistics.median_low(latencies), max(latencies)), number)
        self.assertEqual({each["interrupt"]: (each["measured"], each["longest"]["ticks"], each["cut"]) for each in stats["interrupts"]},
                         {number: (len(lengths), max(lengths), 0) for number, lengths in mine.interrupts.items()})
        measured = {int(each["mutex"], 16): (each["measured"], each["longest"]["ticks"]) for each in stats["mutexes"] if each["measured"]}
        self.assertEqual(measured, {mutex: (len(held), max(held)[0]) for mutex, held in mine.held.items()})
        self.assertEqual(stats["mutex_waits"], mine.contended)
        (core,) = stats["cores"]
        self.assertEqual(core["to_ticks"], mine.end)
        if stats["idle"]["known"]:
            self.assertEqual(core["idle_ticks"], mine.ran[stats["idle"]["tasks"][0]])
        self.assertEqual(core["unknown_ticks"], core["to_ticks"] - core["from_ticks"] - sum(mine.ran.values()))
        return stats, mine

    def test_rv32(self):
        stats, _ = self.check("rv32")
        self.assertFalse(stats["idle"]["known"], "its task_create is not in the ring any more")
        self.assertIn("task_create", stats["idle"]["why"])

    def test_rv64(self):
        self.check("rv64")

    def test_load(self):
        """Five tasks pass three rounds on, 2 ms apart; what is left of the time is the idle task's."""
        plan = [option for at, value in ((0x14, 3), (0x18, 2))
                for option in ("-device", f"loader,addr={0x83f00000 + at:#x},data={value},data-len=4")]
        stats, mine = self.check("rv32", "trace_sched-faults", options=plan)
        self.assertEqual(stats["idle"]["tasks"], [70006], stats["idle"])
        self.assertGreater(mine.ran[70006], 0)
        text = self.hangscope("show", "--stats", "--elf", FIRMWARE / "rv32-trace_sched-faults.elf", self.ram_file).out.decode()
        data = json.loads(self.hangscope("report", "--data", "--elf", FIRMWARE / "rv32-trace_sched-faults.elf", self.ram_file).out)
        tables = {table["title"]: table for table in data["numbers"]}
        self.assertEqual(list(tables), ["Cores", "Run time of tasks", "From wake-up to switch", "Interrupts", "Mutexes held"])
        for table in tables.values():
            for row in [table["columns"], *table["rows"]]:
                self.assertIn("  ".join(row).replace(" ", ""), text.replace(" ", ""), "report and show say the same")
        self.assertIn("Taken for idle: task 70006, it alone has the lowest priority, 0", text)
        self.assertRegex(text, r"core 0 +0\.0\d+ +0\.0\d+ +\d+\.\d %")

    def test_inversion(self):
        """Task 70002 has the mutex that the urgent task 70004 wants, while task 70001 computes for 30 ms."""
        plan = [option for at, value in enumerate((SCHED_FAULTS["INVERSION"], 1, 3, 30)) for option in ("-device", f"loader,addr={PLAN_AT + 4 * at:#x},data={value},data-len=4")]
        stats, _ = self.check("rv32", "trace_sched-faults", wakes=1, options=plan)
        # Those that are as urgent as 70001 and only end may come meanwhile, too.
        self.assertLessEqual({each["runner"] for each in stats["inversions"]}, {70001, 70003, 70005})
        found, = [each for each in stats["inversions"] if each["runner"] == 70001]
        self.assertEqual([found[who] for who in ("waiter", "holder", "waits")], [70004, 70002, 1])
        self.assertEqual(found["mutex"], stats["mutexes"][0]["mutex"])
        self.assertGreater(found["total_ticks"], 250_000)  # of 100 ns; a tick may have taken some of it
        text = self.hangscope("show", "--stats", "--elf", FIRMWARE / "rv32-trace_sched-faults.elf", self.ram_file).out.decode()
        self.assertRegex(text, r"0x\w+ +task 70004 +task 70002 +task 70001 +1 +\d+\.\d+ ms")

    def test_other_choices_are_refused(self):
        done = self.hangscope("show", "--stats", "--last", "3", self.ram_file)
        self.assertEqual(done.status, 2)
        self.assertIn("--stats counts all events: not with --core", done.err.decode())


if __name__ == "__main__":
    main()
