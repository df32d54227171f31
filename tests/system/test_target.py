"""Firmware that records, run by QEMU: what it says of itself, and what is read of it from outside."""
import os
import pathlib
import struct
import subprocess
import tempfile
import time
import unittest
import zlib

import scope_reader
from scope_ram import Elf, Ram, Record, Scope
from support import FIRMWARE, Case, main

LEVELS = 4


class Target(Case):
    def setUp(self):
        super().setUp()
        self.need_firmware()
        # RAM in memory, where there is a file system for it: a disk would have to write all of it.
        where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        ram = tempfile.NamedTemporaryFile(prefix="hangscope-test-ram-", dir=where)
        self.addCleanup(ram.close)
        self.ram_file = ram.name

    def start(self, name, isa="rv32", harts=1, options=(), parameter=0):
        """Starts a firmware; its console is stdout, its RAM lies in self.ram, its names in self.elf."""
        elf = FIRMWARE / f"{isa}-{name}.elf"
        os.truncate(self.ram_file, 0)
        os.truncate(self.ram_file, 64 << 20)
        self.elf, self.ram = Elf(elf), Ram(self.ram_file)
        qemu = subprocess.Popen(
            [f"qemu-system-riscv{isa[2:4]}", "-machine", "virt,memory-backend=ram", "-m", "64M", "-object",
             f"memory-backend-file,id=ram,size=64M,mem-path={self.ram_file},share=on", "-bios", "none", "-kernel", str(elf),
             "-smp", str(harts), "-nographic", "-monitor", "none", "-serial", "stdio",
             "-device", f"loader,addr=0x83f00000,data={parameter},data-len=4", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.end, qemu)
        return qemu

    def finish(self, qemu, timeout=60):
        out, _ = qemu.communicate(timeout=timeout)
        self.assertEqual(qemu.returncode, 0, out)
        return out

    def scope(self):
        return Scope(self.ram, self.elf.symbols["hangscope_scope"])

    def scope_if_there(self):
        """None before the target has written its header, and while it does."""
        try:
            return self.scope()
        except ValueError:
            return None


def nested_hash(x):
    x = (x ^ x >> 16) * 0x7feb352d & 0xffffffff
    x = (x ^ x >> 15) * 0x846ca68b & 0xffffffff
    return x ^ x >> 16


class Nested(Target):
    """tests/target/firmware/nested.c: handlers record while those whom they interrupt do."""

    # Each interrupt comes at an instruction of its own: by the clock that counts them, for one hart alone;
    # or because each instruction is a block, at whose end QEMU looks for interrupts.
    ICOUNT = ("-icount", "shift=3,sleep=off")
    EVERY_INSTRUCTION = ("-singlestep",)

    def who(self, core, record):
        """(level, number) of a record that must be whole."""
        who, hashed = record.parameters
        self.assertEqual(hashed, nested_hash(who), f"core {core}, record {record.sequence} is a mix of two: {who:#x}")
        self.assertEqual(who >> 29, core)
        return who >> 27 & 3, who & 0x7ffffff

    def ledger(self, core, word):
        return self.elf.symbols["ledger"] + 32 * core + 4 * word

    def look(self, number, core):
        """At the newest records, while they are written."""
        end = core.begun()
        for sequence in range(max(end - 3, 0), end):
            self.looks += 1
            record = core.read(sequence)
            if isinstance(record, Record):
                was = self.got[number].setdefault(sequence, self.who(number, record))
                self.assertEqual(was, self.who(number, record), "a record changed")

    def account(self, number, core):
        """The hart stands still. Every record that it counted is there, or it is known why not."""
        counts = [self.ram.word(self.ledger(number, level)) for level in range(LEVELS)]
        level = self.ram.word(self.ledger(number, 6))
        begun, capacity = core.begun(), core.capacity
        # Of each level that was interrupted, one may be begun and not counted.
        uncounted = begun - sum(counts)
        self.assertIn(uncounted, range(level + 1), f"core {number} counted {counts} and began {begun}")
        whole = {}
        for slot in range(capacity):
            record = core.committed_in(slot)
            if record:
                self.who(number, record)
                whole[slot] = record.sequence
        refused, causes, seen = core.refused_sequences(), dict.fromkeys(("returned", "refused", "unfinished", "late"), 0), []
        window = core.window()
        self.assertEqual(len(window), min(begun, capacity))
        for sequence, record in window:
            if isinstance(record, Record):
                cause = "returned"
                seen.append(self.who(number, record))
            elif sequence & 0xfffff in refused:
                cause = "refused"
            elif uncounted and whole.get(sequence % capacity) is None:
                cause = "unfinished" # it is busy, or was never used
            elif (sequence - whole.get(sequence % capacity, sequence) & 0xfffff) in range(capacity, begun + 1, capacity):
                cause = "late" # its slot was reserved before, by one who was interrupted and wrote afterwards; or not yet taken
            else:
                self.fail(f"core {number}: {sequence} is missing without a cause ({record}); refused: {sorted(refused)}")
            causes[cause] += 1
        self.assertLessEqual(causes["unfinished"], uncounted)
        # Who has reserved a slot and not yet taken it leaves in it what was there, which looks as if that were late.
        causes["unfinished"], taken = min(uncounted, causes["unfinished"] + causes["late"]), causes["unfinished"]
        causes["late"] -= causes["unfinished"] - taken
        self.assertLessEqual(causes["refused"], core.refused())
        # Of each level, those behind its first in the window are there, or among the missing.
        behind = 0
        for one in range(LEVELS):
            numbers = [n for l, n in seen if l == one]
            self.assertEqual(numbers, sorted(set(numbers)))
            if numbers:
                behind += max(counts[one], numbers[-1] + 1) - numbers[0] - len(numbers)
        self.assertLessEqual(behind, len(window) - causes["returned"])
        for cause, count in causes.items():
            self.causes[cause] += count
        self.stops += 1

    def run_nested(self, name, isa, harts=1, options=(), parameter=20000):
        """Returns what became of the records that were in the rings whenever a hart stood still."""
        qemu = self.start(name, isa, harts, options, parameter)
        scope = self.until(self.scope_if_there, what="a scope")
        self.got = [{} for _ in scope.cores]
        self.looks = self.stops = 0
        self.causes = dict.fromkeys(("returned", "refused", "unfinished", "late"), 0)
        end = time.monotonic() + 80
        while qemu.poll() is None:
            self.assertLess(time.monotonic(), end, "the firmware does not end")
            for number, core in enumerate(scope.cores):
                self.look(number, core)
                stops = self.ram.word(self.ledger(number, 4))
                if stops != self.ram.word(self.ledger(number, 5)):
                    self.account(number, core)
                    self.ram.set_word(self.ledger(number, 5), stops)
        self.finish(qemu)
        for records in self.got:
            last = [-1] * LEVELS
            for _, (level, counted) in sorted(records.items()):
                self.assertGreater(counted, last[level])
                last[level] = counted
        counts = [[self.ram.word(self.ledger(n, level)) for level in range(LEVELS)] for n in range(len(scope.cores))]
        self.assertEqual([self.ram.word(self.ledger(n, 7)) for n in range(len(scope.cores))], [1] * len(scope.cores))
        print(f"{isa} {name}: recorded {counts}, refused {[core.refused() for core in scope.cores]}; {self.looks} looks at "
              f"a live ring returned {sum(map(len, self.got))} records; in {self.stops} stops {self.causes}")
        self.assertGreater(sum(map(len, self.got)), 0)
        self.assertGreater(min(map(min, counts)), 0, "a level recorded nothing")
        return self.causes

    def assert_lapped(self, causes):
        """Otherwise the run shows nothing."""
        self.assertGreater(causes["refused"], 0)
        self.assertGreater(causes["unfinished"], 0)

    def test_rv32_one_hart(self):
        self.assert_lapped(self.run_nested("nested", "rv32", options=self.ICOUNT))

    def test_rv64_one_hart(self):
        self.assert_lapped(self.run_nested("nested", "rv64", options=self.ICOUNT))

    def test_without_atomic_instructions_nobody_is_lapped(self):
        causes = self.run_nested("nested", "rv32imc", options=self.ICOUNT)
        self.assertEqual((causes["refused"], causes["late"]), (0, 0))

    def test_rv32_four_harts(self):
        self.run_nested("nested-harts", "rv32", harts=4, options=self.EVERY_INSTRUCTION, parameter=6000)

    def test_rv64_four_harts(self):
        self.run_nested("nested-harts", "rv64", harts=4, options=self.EVERY_INSTRUCTION, parameter=6000)

    def test_rv32_four_harts_with_rings_of_eight(self):
        self.run_nested("nested-harts8", "rv32", harts=4, options=self.EVERY_INSTRUCTION, parameter=6000)

    def test_rv64_four_harts_with_rings_of_eight(self):
        self.run_nested("nested-harts8", "rv64", harts=4, options=self.EVERY_INSTRUCTION, parameter=6000)

    def test_a_writer_that_does_not_look_is_caught(self):
        with self.assertRaisesRegex(AssertionError, "is a mix of two"):
            self.run_nested("nested-blind", "rv32", options=self.ICOUNT, parameter=1000000)


class Scheduler(Target):
    """examples/trace_sched: a kernel that records, and checks itself what it recorded."""

    WAITING, READY, EXCLUSIVE = 2, 1, 1

    def run_image(self, name, isa="rv32", last="Overall: PASS"):
        """What the image printed; its own checks have passed."""
        out = self.finish(self.start(name, isa))
        lines = out.splitlines()
        self.assertEqual([line for line in lines if line.endswith("FAIL")], [])
        self.assertEqual(lines[-1:], [last])
        return out

    def check_from_outside(self, isa):
        out = self.run_image("trace_sched", isa)
        scope = self.scope()
        self.assertEqual((scope.word_bytes * 8, scope.hz), (int(isa[2:]), 10_000_000))
        (core,) = scope.cores
        self.check_dump(core, out)
        self.check_hexdump(scope, out)
        self.check_waits(scope, core)
        self.check_names(scope)

    def check_names(self, scope):
        """Tasks read by the names that the program gave them, those that are gone, too."""
        tasks = {task.task: "" for task in scope.tasks() if task.state == self.WAITING}
        shown = self.hangscope("show", f"file:{self.ram_file}", "--elf", self.elf.path)
        self.assertEqual(shown.status, 0, shown.err)
        out = shown.out.decode()
        for first, second, mutex in ((min(tasks), max(tasks), "second"), (max(tasks), min(tasks), "first")):
            names = {min(tasks): "locks first", max(tasks): "locks second"}
            self.assertRegex(out, rf"task {first} {names[first]}  waits since .* for {mutex} \(exclusive\), held by task {second} {names[second]}\n")
            self.assertIn(f"mutex_lock  mutex {mutex}, holder {second} {names[second]}\n", out)
        # What is known when the kernel is built has its names from the catalog.
        self.assertRegex(out, r"task_destroy  task \d+ worker, was in state suspended\n")
        self.assertRegex(out, r"isr_enter  interrupt 7 timer\n")
        self.assertRegex(out, r"exception  cause 3 breakpoint\b")

    def check_dump(self, core, out):
        """What the image printed with names is what its memory holds, by the names in the ELF."""
        names = self.elf.catalog()
        printed = [line for line in out[out.index("dump:\n"):].splitlines() if line.startswith("0 ")]
        read = [f"0 {n} {r.time} {names[r.id][0]} {' '.join(map(str, r.parameters))}" for n, r in core.window()]
        self.assertEqual(read, printed)
        self.assertGreater(len(read), 60)
        recorded = {line.split()[3] for line in printed}
        self.assertEqual(recorded, {name for i, (name, _) in names.items() if 16 <= i < 64})
        self.assertEqual(len(recorded), 18)

    def check_hexdump(self, scope, out):
        """The dump on the console is the memory, byte for byte; what it leaves out is zero."""
        dumped, lines = bytearray(scope.bytes), 0
        for line in out.splitlines():
            words = line.split()
            if words[:1] != ["~hs"]:
                continue
            if words[1] == "end":
                self.assertEqual(int(words[2], 16), lines)
                break
            data = bytes.fromhex(words[2])
            self.assertEqual(int(words[3], 16), zlib.crc32(struct.pack("<I", int(words[1], 16)) + data), line)
            dumped[int(words[1], 16):int(words[1], 16) + len(data)] = data
            lines += 1
        else:
            self.fail("the dump has no end")
        self.assertEqual(bytes(dumped), self.ram.bytes(scope.at, scope.bytes))

    def check_waits(self, scope, core):
        """Two tasks wait for each other's mutex, one that waited goes on, the others are gone."""
        tasks = {task.task: task for task in scope.tasks() if task.state}
        waiting = [task for task in tasks.values() if task.state == self.WAITING]
        self.assertEqual(len(waiting), 2, [vars(task) for task in tasks.values()])
        one, other = waiting
        self.assertEqual((one.holder, other.holder), (other.task, one.task))
        self.assertEqual([task.kind for task in waiting], [self.EXCLUSIVE] * 2)
        mutexes = {self.elf.symbols["first"], self.elf.symbols["second"]}
        self.assertEqual({task.resource for task in waiting}, {address & 0xffffffff for address in mutexes})
        self.assertEqual({task.sequence % 2 for task in tasks.values()}, {0})
        records = [r for _, r in core.window()]
        locks = {r.parameters: r.time for r in records if self.elf.catalog()[r.id][0] == "mutex_lock"}
        for task in waiting:
            since = task.since_epoch << 30 | task.since & 0x3fffffff
            self.assertLessEqual(locks[task.resource, task.holder], since, "the wait began after the lock was asked for")
            self.assertLessEqual(since, records[-1].time)
        self.assertEqual(len(tasks), 4, "validator, idle, and the two")

    def test_rv32(self):
        self.check_from_outside("rv32")

    def test_rv64(self):
        self.check_from_outside("rv64")

    def test_without_tracing_nothing_of_it_is_left(self):
        for isa in ("rv32", "rv64"):
            self.run_image("trace_sched-off", isa, "Tracing disabled build: PASS")
            self.assertEqual([name for name in (*self.elf.symbols, *self.elf.sections) if "hangscope" in name], [])

    def test_the_programs_own_yield_is_called_with_tracing(self):
        out = self.run_image("trace_sched-hook")
        self.assertIn("the program's own yield is called: PASS\n", out)

    def test_the_programs_own_yield_is_called_without_tracing(self):
        out = self.run_image("trace_sched-hook-off", last="Tracing disabled build: PASS")
        self.assertIn("the program's own yield is called: PASS\n", out)


class NoInit(Target):
    """tests/target/firmware/noinit.c: what an earlier run recorded is there after a reset."""

    BOOT = 2 # event id

    def run_starts(self, isa, parameter, options=()):
        out = self.finish(self.start("noinit", isa, options=options, parameter=parameter))
        starts = [tuple(int(word.strip(",:")) for word in line.split() if word.strip(",:").isdigit())
                  for line in out.splitlines() if line.startswith("start ")]
        self.assertEqual([start[0] for start in starts], list(range(1, len(starts) + 1)))
        found = out.splitlines()[-1].replace(",", "").split()
        return starts, int(found[2]), int(found[4])

    def named(self, core):
        names = self.elf.catalog()
        return [(n, names[r.id][0], *r.parameters) if isinstance(r, Record) else (n, r) for n, r in core.window()]

    def check_two_resets(self, isa):
        starts, unfinished, refused = self.run_starts(isa, 1)
        self.assertEqual((unfinished, refused), (0, 0))
        # Number of the start, records kept, starts that the scope knows of, unfinished records.
        self.assertEqual(starts, [(1, 0, 1, 0), (2, 5, 2, 0), (3, 10, 3, 0)])
        scope = self.scope()
        self.assertEqual(scope.boots, 3)
        (core,) = scope.cores
        self.assertEqual(core.boot(), 10)
        records = self.named(core)
        self.assertEqual(records[:5], [(i, "noinit_step", 1, i) for i in range(5)])
        self.assertEqual(records[5], (5, "boot", 2, 5))
        self.assertEqual(records[6][1], "anchor")
        self.assertEqual(records[7:10], [(7 + i, "noinit_step", 2, i) for i in range(3)])
        self.assertEqual(records[10], (10, "boot", 3, 10))
        self.assertEqual(records[11][1], "anchor")
        self.assertEqual(len(records), 12)

    def test_rv32(self):
        self.check_two_resets("rv32")

    def test_rv64(self):
        self.check_two_resets("rv64")

    def check_resets_anywhere(self, isa):
        """Whatever instruction a reset comes at, the next start finds no slot that stays taken."""
        starts, unfinished, refused = self.run_starts(isa, 2, Nested.ICOUNT)
        print(f"{isa}: {len(starts)} starts, {unfinished} records unfinished at a reset")
        self.assertGreater(unfinished, 0, "no reset came in the middle of a record, so the test shows nothing")
        self.assertEqual(refused, 0)
        self.assertEqual(len(starts), 61)
        self.assertEqual([start[3] for start in starts], [0] * 61)
        self.assertEqual([start[2] for start in starts], list(range(1, 62)))
        (core,) = self.scope().cores
        records = self.named(core)
        for record, following in zip(records, records[1:]):
            if len(record) == 2: # none there
                self.assertEqual(following[1], "boot", "only the record that a reset caught may be missing")
            if following[1] == "boot":
                self.assertEqual(following[3], min(following[0], core.capacity))
        self.assertIn("boot", [record[1] for record in records])

    def test_a_reset_at_any_instruction_rv32(self):
        self.check_resets_anywhere("rv32")

    def test_a_reset_at_any_instruction_rv64(self):
        self.check_resets_anywhere("rv64")

    def test_a_damaged_header_means_a_fresh_start(self):
        # In the magic, the capacity, the number of starts, the check.
        for bit in (3, 32 * 7 + 6, 32 * 18 + 1, 32 * 47 + 31):
            starts, _, _ = self.run_starts("rv32", 3 + 256 * bit)
            self.assertEqual(starts, [(1, 0, 1, 0), (2, 0, 1, 0)], f"bit {bit}")
            (core,) = self.scope().cores
            self.assertEqual((core.begun(), core.boot()), (0, 0))


class Porting(Target):
    """The hooks of docs/porting.md, compiled with warnings as errors and called by stand-ins for the kernels."""
    WAITING = 2
    EXCLUSIVE, CHANNEL, TIME, SUSPENDED, OUTSIDE = 1, 2, 3, 4, 5
    NOBODY = 0xffffffff

    def recorded(self, name, parameter=0):
        out = self.finish(self.start(name, parameter=parameter))
        return [(words[3], *map(int, words[4:])) for words in (line.split() for line in out.splitlines())]

    def test_freertos(self):
        records = self.recorded("porting-freertos")
        mutex, semaphore, queue = records[9][1], records[11][1], records[13][1]
        self.assertEqual(len({mutex, semaphore, queue}), 3)
        self.assertEqual(records, [
            ("task_create", 1, 5), ("task_create", 2, 6), ("task_switch", 0, 1), ("task_delay", 7, 0), ("task_switch", 1, 2),
            ("task_delay", 9, 0), ("task_suspend", 1, 0), ("task_resume", 1, 0), ("task_resume", 1, 0),
            ("mutex_lock", mutex, 2), ("mutex_unlock", mutex, 0), ("semaphore_post", semaphore, 1),
            ("semaphore_wait", semaphore, 0), ("queue_send", queue, 1), ("queue_receive", queue, 0), ("task_destroy", 1, 0),
            ("task_create", 1, 5), ("mutex_lock", mutex, 1), ("task_create", 3, 7), ("task_switch", 2, 3), ("mutex_lock", mutex, 3)])
        # Wait records: one was destroyed and made again, two waits for the mutex that one had and three has.
        one, two, *rest = self.scope().tasks()
        self.assertEqual((one.task, one.state), (1, 1))
        self.assertEqual((two.task, two.state, two.kind, two.resource, two.holder), (2, 2, 1, mutex, 3))
        self.assertEqual([task.sequence for task in rest[1:]], [0] * 5)
        shown = self.hangscope("show", f"file:{self.ram_file}", "--elf", self.elf.path)
        self.assertRegex(shown.out.decode(), r"task 2 radio  waits since .* for antenna \(exclusive\), held by task 3\n")

    def test_what_freertos_tasks_wait_for(self):
        records = self.recorded("porting-freertos", 2)
        one, two, *rest = self.scope().tasks()
        mutex = next(record[1] for record in records if record[0] == "mutex_lock")
        buffer = next(record[1] for record in records if record[0] == "pipe_write")
        group, bits = next(record[1:] for record in records if record[0] == "event_bits_set")
        self.assertEqual((one.state, one.kind, one.resource), (self.WAITING, self.EXCLUSIVE, mutex))
        self.assertEqual(one.holder, 2)
        self.assertEqual((two.state, two.kind, two.resource), (self.WAITING, self.CHANNEL, buffer))
        self.assertEqual([task.kind for task in rest[:5]],
                         [self.SUSPENDED, self.CHANNEL, self.CHANNEL, self.OUTSIDE, self.OUTSIDE])
        self.assertEqual([task.state for task in rest[:5]], [self.WAITING] * 5)
        self.assertEqual((rest[1].resource, bits), (group, 5))
        self.assertEqual([record[1:] for record in records if record[0] == "task_priority"], [(1, 4), (1, 2)])
        self.assertEqual([record[1:] for record in records if record[0] == "task_notify"], [(1, 1)] * 3)

    def test_what_freertos_reports_as_faults(self):
        records = self.recorded("porting-freertos", 3)
        self.assertEqual([record[0] for record in records], ["exception"])
        with open(self.ram_file, "rb") as ram:
            ram.seek(self.elf.symbols["hangscope_scope"] - 0x80000000)
            lines = scope_reader.read_watch(ram.read(64 << 10))
        fault = next(line for line in lines if line.startswith("detail 0")).split("fault=")[1].split()[0].split(":")
        self.assertEqual(fault[0], "1", "the first is an assert")
        self.assertEqual(fault[-1], "4", "all are counted")

    def test_zephyr(self):
        records = self.recorded("porting-zephyr")
        one, two = records[0][1], records[1][1]
        semaphore, queue = records[8][1], records[10][1]
        self.assertEqual(records, [
            ("task_create", one, 10), ("task_create", two, 9), ("task_switch", 0, one), ("isr_enter", 0, 0), ("isr_exit", 0, 0),
            ("task_switch", one, two), ("task_suspend", one, 0), ("task_resume", one, 0), ("semaphore_post", semaphore, 1),
            ("semaphore_wait", semaphore, 0), ("queue_send", queue, 1), ("queue_receive", queue, 0), ("task_delay", 7, 0),
            ("task_destroy", one, 0)])

    def test_what_zephyr_threads_wait_for(self):
        """tests/target/porting/zephyr.c says who waits for what in the end."""
        records = self.recorded("porting-zephyr", 2)
        threads = [record[1] for record in records if record[0] == "task_create"]
        one, two, three, four, five, six, seven, eight = threads
        a, c, _, b, *_ = [record[1] for record in records if record[0] == "mutex_lock"]
        waits = {task.task: task for task in self.scope().tasks()}
        self.assertEqual(set(waits), set(threads))
        self.assertEqual({task.state for task in waits.values()}, {self.WAITING})
        self.assertEqual([(waits[thread].kind, waits[thread].resource, waits[thread].holder) for thread in (one, two, three)],
                         [(self.EXCLUSIVE, b, two), (self.EXCLUSIVE, a, one), (self.EXCLUSIVE, c, two)])
        self.assertEqual((waits[four].kind, waits[four].holder), (self.CHANNEL, self.NOBODY))
        self.assertEqual((waits[five].kind, waits[five].resource, waits[five].holder), (self.EXCLUSIVE, four, four))
        self.assertEqual([waits[thread].kind for thread in (six, seven, eight)], [self.TIME, self.SUSPENDED, self.OUTSIDE])
        said = self.hangscope("why", f"file:{self.ram_file}", "--elf", self.elf.path).out.decode()
        self.assertIn("deadlock, 2 of 8 tasks wait for each other", said)
        self.assertRegex(said, rf"task {two} radio +waits .* for a\S* \(held by task {one}\)")

    def test_without_tracing_nothing_of_it_is_left(self):
        for name in ("porting-freertos-off", "porting-zephyr-off"):
            self.assertEqual(self.finish(self.start(name)), "")
            # The stand-ins have hooks of their own; Zephyr's are weak in Zephyr.
            self.assertEqual([symbol for symbol in (*self.elf.symbols, *self.elf.sections)
                              if "hangscope" in symbol or "sys_trace" in symbol], [])


if __name__ == "__main__":
    main()
