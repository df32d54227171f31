"""gdb/hangscope.py says in gdb what hangscope says outside."""
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import unittest.mock

from support import BUILD, DATA, FIRMWARE, HANGSCOPE, ROOT, Case, main
from watched_targets import DEVICE_FAULTS, start_device

SCRIPT = ROOT / "gdb/hangscope.py"
ADDRESS = 0x80001000
MACHINES = {("<", 4): 243, ("<", 8): 243, (">", 4): 20, (">", 8): 21}  # RISC-V, PowerPC
MAILBOX_GUARD = 0x686D6278


def fnv(data):
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 % 2**32
    return value


def elf(order, word, image, catalog=b""):
    """A program in whose data the scope lies, at the symbol hangscope_scope."""
    wide = word == 8
    names = b"\0.data\0.symtab\0.strtab\0.shstrtab\0.hangscope.catalog\0"
    strings = b"\0hangscope_scope\0"
    symbol = struct.pack(order + ("IBBHQQ" if wide else "IIIBBH"), *((1, 0x11, 0, 1, ADDRESS, 8) if wide else (1, ADDRESS, 8, 0x11, 0, 1)))
    parts = [(".data", 1, 3, ADDRESS, image, 0, 0, 0), (".symtab", 2, 0, 0, bytes(len(symbol)) + symbol, 3, 1, len(symbol)),
             (".strtab", 3, 0, 0, strings, 0, 0, 0), (".shstrtab", 3, 0, 0, names, 0, 0, 0),
             (".hangscope.catalog", 1, 0, 0, catalog, 0, 0, 0)]
    at = header_bytes = 64 if wide else 52
    sections, content = bytes(64 if wide else 40), b""
    for name, kind, flags, address, data, link, info, entry in parts:
        content += bytes(-len(content) % 16)
        offset, size = at + len(content), len(data)
        where = names.index(b"\0" + name.encode() + b"\0") + 1
        sections += struct.pack(order + ("IIQQQQIIQQ" if wide else "10I"), where, kind, flags, address, offset, size, link, info, 8, entry)
        content += data
    content += bytes(-(at + len(content)) % 16)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    word_code = "Q" if wide else "I"
    header = ident + struct.pack(order + "HHI" + word_code * 3 + "IHHHHHH", 2, MACHINES[order, word], 1, ADDRESS, 0, at + len(content), 0,
                                 header_bytes, 56 if wide else 32, 0, 64 if wide else 40, 6, 4)
    return header + content + sections


class Image:
    """A scope with mailboxes, of either byte order and word size."""

    def __init__(self, order, word, cores, debug=8):
        self.order, self.word, self.cores, self.debug = order, word, cores, debug
        ring = 128 + 8 * 16
        self.rings_at = 192
        self.mailboxes_at = self.rings_at + cores * ring
        self.watch_at = self.mailboxes_at + cores * 64
        self.nodes_at = self.watch_at + 64
        self.claims_at = self.nodes_at + 32
        self.claim_stride, self.detail_stride = 40, 128 + 8 * debug
        self.details_at = self.claims_at + cores * self.claim_stride
        self.bytes = bytearray(self.details_at + cores * self.detail_stride)
        self.put(0, "II", 0x676E6168, 0x706F6373)
        self.put(8, "HHHBB", 1, 1, 192, word, 16)
        self.put(16, "8I", len(self.bytes), 0, cores, 8, self.rings_at, ring, self.mailboxes_at, 64)
        self.put(60, "IQI", 3, 10**9, 1)
        self.put(144, "I", self.watch_at)
        self.put(self.watch_at + 4, "8I", 64, 0x1FF, 1, self.nodes_at, 32, self.details_at, self.detail_stride, self.claims_at)
        self.put(self.watch_at + 36, "IHHIII", self.claim_stride, 4, 4, debug, 0, 0)
        self.put(self.watch_at, "I", fnv(self.bytes[self.watch_at + 4:self.watch_at + 56]))
        for core in range(cores):
            self.mailbox(core)
        self.sign()

    def put(self, at, form, *values):
        struct.pack_into(self.order + form, self.bytes, at, *values)

    def sign(self):
        self.put(188, "I", fnv(self.bytes[:120]))

    def mailbox(self, core, waypoint="", wait=0, kind=0, fault=0, paused=0):
        text = int.from_bytes(waypoint.encode().ljust(4, b"\0"), "little")
        self.put(self.mailboxes_at + 64 * core, "14IHHI", text, 7, 1 if wait else 0, wait, kind, 1000 + core, 0, 0, 2, 0, 0, paused, fault,
                 0xFFFFFFFF, 0, 0, MAILBOX_GUARD ^ core)

    def claim(self, core, holds=0, provides=0):
        at = self.claims_at + core * self.claim_stride
        self.put(at, "I", holds)
        self.put(at + 16, "I", provides)

    def events(self, core, epoch, *lows):
        """Records of event 77, with these halves of times, all of one epoch."""
        at = self.rings_at + core * (128 + 8 * 16)
        ticket = len(lows) << 12
        self.put(at, *(("Q", ticket) if self.word == 8 else ("II", ticket, 1)))
        self.put(at + 56, "II", epoch, 1)
        self.put(at + 68, "I", 2)
        for n, low in enumerate(lows):
            self.put(at + 128 + 16 * n, "4I", n << 12 | 77, low, n, core)

    def catalog(self, *entries):
        """Entries of (kind, id, name, text, fields)."""
        data = b""
        for kind, identity, *texts in entries:
            data += struct.pack(self.order + "III", kind, identity, 0) + b"".join(t.encode() + b"\0" for t in texts)
            data += bytes(-len(data) % 4)
        return struct.pack(self.order + "III", 0x6C746163, 1, 12 + len(data)) + data


class Gdb(Case):
    DEBUGGER, PACKAGE = "gdb", "gdb"

    def setUp(self):
        super().setUp()
        if shutil.which(self.DEBUGGER) is None:
            self.skipTest(f"{self.DEBUGGER} is not installed (package {self.PACKAGE})")

    def gdb(self, *commands, expect=0):
        """Runs gdb commands; what each printed, without what gdb says by itself."""
        words = [self.DEBUGGER, "-nx", "-batch", "-ex", "set width 0", "-ex", f"source {SCRIPT}",
                 "-ex", f'set var $hangscope_program = "{os.path.abspath(HANGSCOPE)}"']
        for command in commands:
            words += ["-ex", "echo \\n<<<\\n", "-ex", command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
        self.said = done.stderr
        self.assertNotIn("Traceback", done.stderr)
        self.assertNotIn("Python Exception", done.stderr)
        own = lambda line: not line.startswith("[Inferior ")
        return [list(filter(own, part.strip("\n").splitlines())) for part in done.stdout.split("\n<<<\n")[1:]]

    def events(self, *target):
        """As hangscope show --json has them, in the words of the script."""
        done = self.hangscope("show", "--json", *target)
        self.assertEqual(done.status, 0, done.err)
        lines = []
        for event in map(json.loads, done.out.splitlines()):
            if event["type"] != "event" or event["name"] == "anchor":
                continue
            when = f"{event['ns'] / 1e9:.6f}" if event["ns"] is not None else f"{int(event['ticks'], 16)} ticks"
            when = ("~" if event["ambiguous"] else "") + when
            task = f"task {event['task']:<4} " if event["task"] is not None else ""
            age = f"(start -{event['age']}) " if event["age"] else ""
            text = "  " + event["text"] if event.get("text") else "" if "text" in event else " (" + ", ".join(map(str, event["parameters"])) + ")"
            lines.append(f"{when:>16}  core {event['core']}  {task}{age}{event['name']}{text}")
        return lines


class Process(Gdb):
    def setUp(self):
        super().setUp()
        self.program = pathlib.Path(BUILD) / "tests/abba"
        self.environment = unittest.mock.patch.dict(os.environ, HANGSCOPE_SCOPE=str(self.folder / "abba.scope"))
        with self.environment:
            self.process = subprocess.Popen([self.program], stdout=subprocess.PIPE)
        self.addCleanup(self.end, self.process)
        self.assertEqual(self.process.stdout.readline(), b"stuck\n")

    def check(self, *how):
        events, status, waits, verdict = self.gdb(*how, "hangscope events 100", "hangscope status", "hangscope waits", "hangscope verdict")[-4:]
        self.assertEqual([line for line in events if "  core " in line], self.wanted)
        self.assertRegex("\n".join(status), r"core \d left waits for lock_b \(exclusive\) at LOCW, take a lock, .*abba.cc:\d+ since")
        self.assertRegex("\n".join(waits), r"core \d left waits for lock_b .* since [\d.]+, which core \d right holds\n")
        self.assertRegex(waits[-1], r"^cycle: core \d (left|right) -> core \d (left|right) -> ")
        self.assertEqual(verdict[0], "HANG: deadlock, 2 of 3 cores wait for each other (certain)")
        self.assertRegex("\n".join(verdict), r"(?m)^  thread left +waits .*at LOCW for lock_b \(held by thread right\) +abba.cc:\d+")
        self.assertRegex("\n".join(verdict), r"(?m)^  also waiting for these: thread reader$")
        self.assertRegex("\n".join(verdict), r"(?m)^gdb: it does not change any more: 3 waiting$")

    def test_live_process(self):
        self.wanted = self.events(f"pid:{self.process.pid}")
        self.assertEqual(len(self.wanted), 4)
        self.check(f"attach {self.process.pid}")

    def test_asks_again_after_it_went_on(self):
        looks = self.gdb(f"attach {self.process.pid}", "hangscope verdict", "hangscope verdict",
                         f"shell (sleep 0.3; kill -INT {self.process.pid}) &", "continue", "hangscope verdict")
        for look in (1, 2, 5):
            self.assertEqual(looks[look][0], "HANG: deadlock, 2 of 3 cores wait for each other (certain)")

    def test_says_what_hangscope_why_says(self):
        """Of a dead target, which gdb and hangscope can both read."""
        core = self.core(0x3F)
        verdict = self.gdb(f"file {self.program}", f"core-file {core}", "hangscope verdict")[-1]
        why = self.hangscope("why", "--elf", self.program, f"core:{core}")
        self.assertEqual(why.status, 1, why.err)
        self.assertEqual(verdict, [line.replace(f"core:{core}:", "gdb:") for line in why.out.decode().rstrip().splitlines()])

    def test_without_hangscope(self):
        self.gdb(f"attach {self.process.pid}", 'set var $hangscope_program = "/nowhere/hangscope"', "hangscope verdict")
        self.assertIn("hangscope: /nowhere/hangscope cannot be started: No such file or directory", self.said)
        said = self.gdb(f"attach {self.process.pid}", 'set var $hangscope_program = "/bin/false"', "hangscope verdict", "hangscope status")
        self.assertEqual(len(said[-1]), 3)
        self.assertRegex(self.said, "hangscope: /bin/false ended with status 1")

    def core(self, filter_bits):
        pathlib.Path(f"/proc/{self.process.pid}/coredump_filter").write_text(f"{filter_bits:#x}")
        core = self.folder / "core"
        self.gdb(f"attach {self.process.pid}", f"generate-core-file {core}")
        self.process.kill()
        self.process.wait()
        (self.folder / "abba.scope").unlink()
        return core

    def test_core_dump(self):
        self.wanted = self.events(f"pid:{self.process.pid}")
        core = self.core(0x3F)
        self.check(f"file {self.program}", f"core-file {core}")
        self.assertEqual(self.events("--elf", self.program, f"core:{core}"), self.wanted)

    def test_core_dump_without_the_scope(self):
        core = self.core(0x33)
        said = self.gdb(f"file {self.program}", f"core-file {core}", "hangscope verdict")[-1]
        self.assertEqual(said, [])
        self.assertRegex(self.said, r"hangscope: gdb cannot read 0x[0-9a-f]+ \d+: the memory at 0x[0-9a-f]+ cannot be read; does the program run, or does the dump have it\?")


class Multiarch(Gdb):
    DEBUGGER, PACKAGE = "gdb-multiarch", "gdb-multiarch"

    def program(self, order, word, image, catalog=b""):
        path = self.folder / f"program-{len(list(self.folder.iterdir()))}.elf"
        path.write_bytes(elf(order, word, bytes(image), catalog))
        return path

    def test_events_of_both_byte_orders_and_word_sizes(self):
        images = sorted((DATA / "scope").glob("*.bin"))
        self.assertGreaterEqual(len(images), 24)
        commands = []
        for image in images:
            order, word = (">" if "big" in image.name else "<"), (8 if "64" in image.name else 4)
            commands += [f"file {self.program(order, word, image.read_bytes())}", "hangscope events 100000"]
        for image, said in zip(images, self.gdb(*commands)[1::2]):
            with self.subTest(image.name):
                self.assertEqual([line for line in said if "  core " in line], self.events(image))

    def test_events_a_little_before_their_epoch(self):
        for order, word in MACHINES:
            image = Image(order, word, 2)
            image.events(0, 1, 2**30 - 16, 2**30 + 16, 2**31)
            image.events(1, 5, 2**30 - 1, 2**30 + 2**31 - 1, 2**30 + 2**31)
            path = self.folder / f"{order == '<'}{word}.bin"
            path.write_bytes(image.bytes)
            said = self.gdb(f"file {self.program(order, word, image.bytes)}", "hangscope events")[1]
            self.assertEqual(len(said), 6)
            self.assertEqual(said, self.events(path))

    def on_all(self, make, *commands):
        """What the commands say of an image, the same for all machines."""
        answers = []
        for order, word in MACHINES:
            image, catalog = make(order, word)
            said = self.gdb(f"file {self.program(order, word, image.bytes, catalog)}", *commands)[1:] + [self.said.strip().splitlines()]
            checks = lambda line: re.sub("is 0x[0-9a-f]{8} and should be 0x[0-9a-f]{8}", "is wrong", line)
            answers.append([list(map(checks, lines)) for lines in said])
        for answer in answers[1:]:
            self.assertEqual(answer, answers[0])
        return answers[0]

    def test_deadlock_of_three_through_channels(self):
        def make(order, word):
            image = Image(order, word, 4)
            for core in range(3):
                image.mailbox(core, "CRBW", wait=0x10001 + core, kind=2)
                image.claim(core, provides=0x10001 + (core + 2) % 3)
            image.mailbox(3, "RUN")
            return image, image.catalog((5, 1, "cb1", "", ""), (5, 2, "cb2", "", ""), (6, 0, "mover", "", ""),
                                        (2, 0x100, "CRBW", "reserve back", "cb.c:88"))

        waits, verdict, said = self.on_all(make, "hangscope waits", "hangscope verdict")
        self.assertEqual(waits[-1], "cycle: core 0 mover -> core 1 mover -> core 2 mover -> core 0 mover")
        # Whose kind nobody knows, and who runs: one look cannot tell whether one of them is about to go on.
        self.assertEqual(verdict[:5], ["perhaps deadlock, 3 of 4 cores wait for each other (possible)",
                                       "  core 0 mover  waits at CRBW for cb1 of (0,0) (provided by core 1)   cb.c:88",
                                       "  core 1 mover  waits at CRBW for cb2 of (0,0) (provided by core 2)   cb.c:88",
                                       "  core 2 mover  waits at CRBW for 0x10003 (provided by core 0)   cb.c:88",
                                       "  first to stop: core 0 mover"])
        self.assertRegex("\n".join(verdict), "not certain: .*it may have been in the middle of a hand-over")
        self.assertEqual(said, [])

    def test_wait_for_one_of_two_providers_is_no_deadlock(self):
        """One of them goes on."""
        def make(order, word):
            image = Image(order, word, 3)
            image.mailbox(0, "A", wait=5, kind=2)
            image.mailbox(1, "B", wait=6, kind=2)
            image.mailbox(2, "RUN")
            image.claim(0, provides=6)
            image.claim(1, provides=5)
            image.claim(2, provides=5)
            return image, b""

        verdict, _ = self.on_all(make, "hangscope verdict")
        self.assertEqual(verdict[:2], ["no hang found", "gdb: it does not change any more: 1 running, 2 waiting"])

    def test_fault_and_who_starves_of_it(self):
        def make(order, word):
            image = Image(order, word, 2)
            image.mailbox(0, "PUSH", fault=1)
            image.put(image.details_at, "16II", 1, 0, 41, 0, 0x80000120, 0, 0, 0, 0, 0, 0, 0, 0, 0, 77, 0, 3)
            image.mailbox(1, "POPW", wait=9, kind=2)
            image.claim(0, provides=9)
            return image, image.catalog((3, 0x80000100, "", "count below capacity", "cb.c:41"), (3, 0x80000110, "", "another", "cb.c:57"),
                                        (3, 0x80000150, "", "far from it", "x.c:41"))

        verdict, _ = self.on_all(make, "hangscope verdict")
        self.assertEqual(verdict[0], "FAULT: core 0: assert 'count below capacity' tripped at cb.c:41 (certain)")
        self.assertIn("  also waiting for it: core 1", verdict)

    def test_debug_ring(self):
        def make(order, word):
            image = Image(order, word, 2)
            for n in range(1, 13):
                core = n % 2
                image.put(image.details_at + core * image.detail_stride + 128 + n // 2 % 8 * 8, "II", n, 0xABC00 + n)
            image.put(image.nodes_at, "HHII", 3, 4, 0, 12)
            return image, b""

        ring, _ = self.on_all(make, "hangscope ring")
        self.assertEqual(ring, ["node 0 (3,4): 12 of 12 values, the newest first, as core:value",
                                "  " + " ".join(f"{n % 2}:{0xABC00 + n:08x}" for n in range(12, 4, -1)),
                                "  " + " ".join(f"{n % 2}:{0xABC00 + n:08x}" for n in range(4, 0, -1))])

    def test_corrupted_mailbox_is_named_and_the_rest_goes_on(self):
        def make(order, word):
            image = Image(order, word, 3)
            image.mailbox(0, "A", wait=5, kind=1)
            image.mailbox(1, "B", wait=6, kind=1)
            image.claim(0, holds=6)
            image.claim(1, holds=5)
            image.mailbox(2, "C", fault=99)
            return image, b""

        verdict, status, _ = self.on_all(make, "hangscope verdict", "hangscope status")
        self.assertEqual(verdict[0], "HANG: deadlock, 2 of 3 cores wait for each other (certain)")
        self.assertIn("CORRUPT: core 2: fault 0x00000063: 0 to 7 are types (certain)", verdict)
        self.assertTrue(status[2].startswith("core 2 corrupt"), status)

    def test_half_made_or_broken_scope_is_one_sentence(self):
        def broken(change):
            def make(order, word):
                image = Image(order, word, 1)
                change(image)
                return image, b""
            return make

        def sign(image, *put):
            image.put(*put)
            image.sign()

        for change, own, said in (
                (lambda image: image.put(0, "I", 0), "there is no scope at 0x80001000: its magic is missing", "has no scope at 0x80001000: there is no magic"),
                (lambda image: image.put(188, "I", 0), "is not ready: the program is still making it", "is not ready yet"),
                (lambda image: image.put(24, "I", 77), "cannot be right: its check is", "is damaged: its check is wrong"),
                (lambda image: sign(image, 8, "H", 2), "version 2.1, and this script reads 1", "version 2.1, and this hangscope reads version 1"),
                (lambda image: sign(image, 24, "I", 0x7FFFFFFF), "contradicts itself: 2147483647 rings", "contradicts itself: 2147483647 rings"),
                (lambda image: sign(image, 28, "I", 0), "contradicts itself: rings of 0 records", "contradicts itself: rings of 0 records"),
                (lambda image: sign(image, 32, "I", 0xFFFFFF00), "contradicts itself: 1 rings", "contradicts itself: 1 rings")):
            status, verdict, error = self.on_all(broken(change), "hangscope status", "hangscope verdict")
            self.assertEqual((status, verdict, len(error)), ([], [], 2), error)
            self.assertIn(own, error[0])
            self.assertIn(said, error[1])
        status, verdict, error = self.on_all(broken(lambda image: image.put(image.watch_at + 12, "I", 0x7FFFFFFF)), "hangscope status", "hangscope verdict")
        self.assertRegex(status[-1], "^corrupt: watch: its check is wrong; what cores do now is not known")
        self.assertEqual((verdict, len(error)), ([], 1), error)
        self.assertIn("says of its mailboxes contradicts itself: its check is wrong", error[0])

    def test_scope_where_the_user_says(self):
        """Not at the symbol, where nothing is."""
        image = Image("<", 8, 1)
        image.mailbox(0, "HERE")
        program = self.program("<", 8, bytes(256) + image.bytes)
        status, verdict = self.gdb(f"file {program}", f"set var $hangscope_at = {ADDRESS + 256:#x}", "hangscope status", "hangscope verdict")[2:]
        self.assertEqual((status, self.said), (["core 0 running at HERE, heartbeat 7, 0 events"], ""))
        self.assertEqual(verdict[0], "no hang found")

    def test_without_a_program_or_with_a_wrong_word(self):
        self.gdb("hangscope verdict")
        self.assertIn("no hangscope here: there is no symbol hangscope_scope", self.said)
        self.gdb("hangscope verdit")
        self.assertIn("hangscope verdit: there are status, events, ring, waits, verdict", self.said)

    def guest(self, isa):
        """A guest that has not begun, and its debug server: at its end two tasks wait for each other."""
        self.need_firmware()
        firmware, ram, server = FIRMWARE / f"{isa}-trace_sched.elf", self.folder / f"{isa}.ram", self.folder / f"{isa}.gdb"
        qemu = subprocess.Popen(
            [f"qemu-system-riscv{isa[2:]}", "-machine", "virt,memory-backend=ram", "-m", "64M", "-object",
             f"memory-backend-file,id=ram,size=64M,mem-path={ram},share=on", "-bios", "none", "-kernel", firmware, "-nographic",
             "-S", "-monitor", "none", "-serial", "null", "-gdb", f"unix:{server},server=on,wait=off"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(self.end, qemu)
        return firmware, ram, server

    def test_debug_server_of_qemu(self):
        for isa in ("rv32", "rv64"):
            with self.subTest(isa):
                firmware, ram, server = self.guest(isa)
                self.until(server.exists)
                _, _, events, verdict = self.gdb(f"file {firmware}", f"target remote {server}", "break platform_power_off", "hangscope verdict", "continue",
                                                        "hangscope events 100000", "hangscope verdict")[-4:]
                self.assertIn("there is no magic; has the program started?", self.said)
                wanted = self.events("--elf", firmware, ram)
                self.assertGreater(len(wanted), 50)
                self.assertEqual([line for line in events if "  core " in line], wanted)
                self.assertRegex("\n".join(verdict), r"HANG: deadlock, 2 of \d+ tasks wait for each other \(certain\)\n  task \d+ .* for (first|second) \(held by task \d+ locks \w+\)")

    def test_faults_of_a_device(self):
        """Five harts of a node, stopped through QEMU's server: cores, places, resources, faults by their names."""
        self.need_firmware()
        for fault, place, said in (
                ("DEADLOCK2", dict(core=3, other=1), r"^HANG: deadlock, 2 of 5 cores wait for each other \(certain\)\n"
                 r"  core 1 unpack +waits at LCKW for pack_lock of \(0,0\) \(held by core 3\) .*\n"
                 r"  core 3 pack +waits at LCKW for unpack_lock of \(0,0\) \(held by core 1\)"),
                ("DEADLOCK5", dict(core=4), r"^HANG: deadlock, 5 of 5 cores wait for each other \(likely\)\n  core 0 reader +waits at NSW for credit of"),
                ("ASSERT", dict(core=2), r"^FAULT: core 2 math: assert '[^']+' tripped at [^ ]*:\d+"),
                ("BUS", dict(core=0, value=1), r"^FAULT: core 0 reader: write of 0 bytes to .*: zero length at bus_faults\.c:\d+ in spoil_bus"),
                ("CORRUPT", dict(core=1, other=12, value=99), "^CORRUPT: core 1: fault 0x00000063")):
            with self.subTest(fault):
                folder = self.folder / fault
                folder.mkdir()
                guest = start_device(folder, fault=fault, block=5, pace_us=100, options=["-gdb", f"unix:{folder}/gdb,server=on,wait=off"], **place)
                self.addCleanup(guest.kill)
                self.assertIsNotNone(guest.until_planted())

                def stuck():
                    verdict = "\n".join(self.gdb(f"file {guest.elf}", f"target remote {folder}/gdb", "hangscope verdict")[-1])
                    self.verdict = re.sub(r"(core \d+ \w+) \(0,0\)", r"\1", verdict)
                    return re.search(said, self.verdict, re.MULTILINE)

                try:
                    self.until(stuck)
                except AssertionError:
                    self.assertRegex(self.verdict, said)
                if fault == "ASSERT":
                    shown, dumped = self.gdb(f"file {guest.elf}", f"target remote {folder}/gdb", "hangscope dump", "hangscope dump all")[-2:]
                    self.assertEqual(len(shown), 5, shown)
                    self.assertEqual(shown[0], f"all  dispatch mode development, planted {DEVICE_FAULTS[fault]}")
                    self.assertRegex(shown[1], r"^node 0 \(0,0\)  cb0 pushed \d+, cb0 popped \d+$")
                    self.assertEqual(dumped[0], f"all  dispatch mode development, planted {DEVICE_FAULTS[fault]}, cores done 0")
                    self.assertRegex(dumped[1], "^" + re.escape(shown[1]) + r", credits \d+, guarded 0x\w+$")
                    # A register, which QEMU reads for its debugger: of each core.
                    self.assertRegex("\n".join(dumped[5:]), r"(core \d+ .*  mtimecmp 0x\w+\n?)+$")
                guest.kill()

    def test_history_of_a_device(self):
        """Waits, waypoints, transactions and amounts, with the names that hangscope show has for them."""
        self.need_firmware()
        guest = start_device(self.folder, fault="DEADLOCK2", core=3, other=1, block=5, pace_us=100, firmware="device-history",
                             options=["-gdb", f"unix:{self.folder}/gdb,server=on,wait=off"])
        self.addCleanup(guest.kill)
        self.assertIsNotNone(guest.until_planted())
        # The reader, the last one that goes on, has filled its buffer.
        self.until(lambda: any("core 0  wait_begin  resource room in cb0" in line for line in self.events("--elf", guest.elf, guest.target)))
        events = self.gdb(f"file {guest.elf}", f"target remote {self.folder}/gdb", "hangscope events 100000")[-1]
        self.assertEqual([line for line in events if "  core " in line], self.events("--elf", guest.elf, guest.target))


class Monitor:
    """QEMU's own, to see and stop a guest without its debug server."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rw")
        self.lines.readline()
        self.ask("qmp_capabilities")

    def ask(self, command):
        self.lines.write(json.dumps({"execute": command}) + "\n")
        self.lines.flush()
        while True:
            answer = json.loads(self.lines.readline())
            if "return" in answer:
                return answer["return"]

    def runs(self):
        return self.ask("query-status")["running"]


class DebugServer(Case):
    """hangscope at QEMU's debug server, of a guest that runs or that somebody has stopped."""

    def guest(self, server, *options):
        self.need_firmware()
        guest = start_device(self.folder, fault="DEADLOCK2", core=3, other=1, block=5, pace_us=100,
                             options=["-gdb", server, "-qmp", f"unix:{self.folder}/qmp,server=on,wait=off", *options])
        self.addCleanup(guest.kill)
        self.until((self.folder / "qmp").exists)
        monitor = Monitor(self.folder / "qmp")
        self.addCleanup(monitor.socket.close)
        self.addCleanup(monitor.lines.close)
        return guest, monitor

    def test_a_guest_that_runs_goes_on_after_each_look(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for where, server in ((f"{self.folder}/gdb", f"unix:{self.folder}/gdb,server=on,wait=off"), (f"127.0.0.1:{port}", f"tcp:127.0.0.1:{port}")):
            with self.subTest(where):
                guest, monitor = self.guest(server)
                self.assertIsNotNone(guest.until_planted())
                for look in range(5):
                    shown = self.hangscope("show", "--intrusive", "--elf", guest.elf, f"gdb:{where}")
                    self.assertEqual((look, shown.status, shown.err), (look, 0, b""))
                    self.assertIn(b"core 4", shown.out)
                    self.assertTrue(monitor.runs(), f"stopped by look {look}")
                why = self.hangscope("why", "--intrusive", "--elf", guest.elf, f"gdb:{where}")
                self.assertEqual(why.status, 1, why.err)
                self.assertIn(b"HANG: deadlock, 2 of 5 cores wait for each other (certain)", why.out)
                self.assertIn(f"gdb:{where}: stopped for one look: 5 waiting".encode(), why.out)
                self.assertTrue(monitor.runs())
                guest.kill()
                (self.folder / "qmp").unlink()

    def test_a_guest_that_stands_still_stays_so(self):
        guest, monitor = self.guest(f"unix:{self.folder}/gdb,server=on,wait=off", "-S")
        look = lambda: self.hangscope("show", "--intrusive", "--elf", guest.elf, f"gdb:{self.folder}/gdb")
        for _ in range(2):
            self.assertIn(b"there is no magic", look().err)
            self.assertEqual(monitor.ask("query-status")["status"], "prelaunch")
        monitor.ask("cont")
        self.assertIsNotNone(guest.until_planted())
        monitor.ask("stop")
        for _ in range(2):
            shown = look()
            self.assertEqual((shown.status, shown.err), (0, b""))
            self.assertFalse(monitor.runs(), "started by a look")


if __name__ == "__main__":
    main()
