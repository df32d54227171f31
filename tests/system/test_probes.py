"""hangscope show reads the same scope by whatever way it is reached."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
import zlib

from support import DATA, HANGSCOPE, ROOT, Case, main, python

IMAGES = DATA / "scope"
ADDRESS = 0x80001000


def hex_dump(image):
    """As target/dump.h prints it."""
    lines = []
    for at in range(0, len(image), 32):
        data = image[at:at + 32]
        if any(data):
            lines.append(f"~hs {at:08x} {data.hex()} {zlib.crc32(struct.pack('<I', at) + data):08x}")
    return lines + [f"~hs end {len(lines):08x}"]


def elf(order, wide, kind, segments=(), symbol=None):
    """An ELF with segments of (address, bytes), and perhaps the symbol of the scope."""
    word = "Q" if wide else "I"
    header_bytes, entry = (64, 56) if wide else (52, 32)
    names = b"\0hangscope_scope\0"
    if wide:
        symbols = bytes(24) + struct.pack(order + "IBBHQQ", 1, 0x11, 0, 0xFFF1, symbol or 0, 8)
    else:
        symbols = bytes(16) + struct.pack(order + "IIIBBH", 1, symbol or 0, 8, 0x11, 0, 0xFFF1)
    at = header_bytes + entry * len(segments)
    table, content = b"", b""
    for address, data in segments:
        offset = at + len(content)
        fields = (1, 7, offset, address, address, len(data), len(data), 1)
        if not wide:
            fields = (1, offset, address, address, len(data), len(data), 7, 1)
        table += struct.pack(order + ("II6Q" if wide else "8I"), *fields)
        content += data
    content += bytes(-len(content) % 8)
    symbols_at = at + len(content)
    sections = bytes(64 if wide else 40)
    for kind_of, offset, size, link, entry_bytes in ((2, symbols_at, len(symbols), 2, len(symbols) // 2),
                                                     (3, symbols_at + len(symbols), len(names), 0, 0)):
        sections += struct.pack(order + "II" + word * 4 + "II" + word * 2, 0, kind_of, 0, 0, offset, size, link, 1, 8, entry_bytes)
    sections_at = symbols_at + len(symbols) + len(names)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    header = ident + struct.pack(order + "HHI" + word * 3 + "IHHHHHH", kind, 243, 1, 0, header_bytes, sections_at, 0, header_bytes,
                                 entry, len(segments), 64 if wide else 40, 3, 0)
    return header + table + content + symbols + names + sections


class Stub(threading.Thread):
    """A debug server with some memory; notes what it was asked."""

    def __init__(self, where, memory, spoil=0):
        super().__init__(daemon=True)
        self.memory, self.spoil, self.asked = memory, spoil, []
        self.server = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
        self.server.bind(where)
        self.server.listen()

    def answer(self, packet):
        if packet.startswith("qSupported"):
            return "PacketSize=200;QStartNoAckMode+"
        if packet.startswith("m"):
            address, count = (int(part, 16) for part in packet[1:].split(","))
            data = self.memory[address - ADDRESS:address - ADDRESS + count]
            return data.hex() if len(data) == count and address >= ADDRESS else "E14"
        return "OK" if packet == "D" else ""

    def run(self):
        connection, _ = self.server.accept()
        stream = connection.makefile("rwb")
        while True:
            byte = stream.read(1)
            if not byte:
                connection.close()
                self.server.close()
                return
            if byte != b"$":
                if byte == b"-":
                    self.send(stream, reply)
                continue
            packet = b""
            while (byte := stream.read(1)) != b"#":
                packet += byte
            stream.read(2)
            self.asked.append(packet.decode())
            reply = self.answer(packet.decode())
            self.send(stream, reply)

    def send(self, stream, reply):
        check = sum(reply.encode())
        if self.spoil:
            self.spoil -= 1
            check += 1
        stream.write(f"+${reply}#{check % 256:02x}".encode())
        stream.flush()


class Probes(Case):
    def setUp(self):
        super().setUp()
        self.image = (IMAGES / "lossy-big32.bin").read_bytes()
        self.wanted = self.hangscope("show", "--json", IMAGES / "lossy-big32.bin").out

    def show(self, *words):
        return self.hangscope("show", "--json", *words)

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def test_console_log(self):
        lines = ["booting\r", *("[   1.5] " + line + "\r" for line in hex_dump(self.image)), "done"]
        log = self.write("console.log", "\n".join(lines).encode())
        done = self.show(log)
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(done.out, self.wanted)
        self.assertEqual(done.err, b"")

    def test_console_log_that_lost_lines(self):
        """What did not arrive is said, and no record that lies there is made up."""
        dump = hex_dump(self.image)
        sound = {line for line in self.wanted.splitlines() if b'"event"' in line}
        for at in range(7, len(dump) - 1):
            spoilt = dump[at][:20] + ("0" if dump[at][20] != "0" else "1") + dump[at][21:]
            for lines, said in (([*dump[:at], spoilt, *dump[at + 1:]], b"1 damaged and 0 missing"),
                                ([*dump[:at], *dump[at + 1:]], b"0 damaged and 1 missing")):
                done = self.show(self.write("console.log", "\n".join(lines).encode()))
                self.assertEqual(done.status, 0, done.err)
                self.assertIn(said, done.err)
                found = [json.loads(line) for line in done.out.splitlines()]
                events = {(e["core"], e["sequence"], e["id"], *e["parameters"]) for e in found if e["type"] == "event"}
                self.assertLessEqual(events, {(e["core"], e["sequence"], e["id"], *e["parameters"]) for e in map(json.loads, sound)})
                unread = sum(e.get("unread", 0) for e in found)
                self.assertTrue(unread or b"did not arrive" in done.out, dump[at])

    def test_console_log_without_its_first_line(self):
        done = self.show(self.write("console.log", "\n".join(hex_dump(self.image)[1:]).encode()))
        self.assertEqual(done.status, 3)
        self.assertIn(b"did not arrive whole", done.err)

    def test_console_log_without_a_dump(self):
        done = self.show(self.write("console.log", b"nothing to see\n~hs not this\n"))
        self.assertEqual(done.status, 2)
        self.assertEqual(done.err.count(b"\n"), 1)

    def test_core_dump(self):
        for order in "<>":
            for wide in (False, True):
                # The scope lies across two segments.
                segments = [(0x1000, b"hello"), (ADDRESS - 16, bytes(16) + self.image[:100]), (ADDRESS + 100, self.image[100:] + b"x")]
                core = self.write("core", elf(order, wide, 4, segments))
                program = self.write("fw.elf", elf(order, wide, 2, [(ADDRESS, b"x")], ADDRESS))
                for words in ((), ("--elf", program)):
                    done = self.show(f"core:{core}", *words)
                    self.assertEqual(done.status, 0, done.err)
                    self.assertEqual(done.out, self.wanted)

    def test_core_dump_that_is_cut_off(self):
        core = elf("<", True, 4, [(ADDRESS, self.image)])
        done = self.show(f"core:{self.write('core', core[:64 + 56 + 300])}")
        self.assertEqual(done.status, 3)
        self.assertIn(b"not all of them are there", done.err)
        self.assertEqual(self.show(f"core:{self.write('core', core[:30])}").status, 3)
        self.assertEqual(self.show(f"core:{self.write('core', b'no core')}").status, 3)

    def test_debug_server(self):
        program = self.write("fw.elf", elf(">", False, 2, [(ADDRESS, b"x")], ADDRESS))
        stub = Stub(str(self.folder / "gdb"), self.image, spoil=1)
        stub.start()
        done = self.show(f"gdb:{self.folder}/gdb", "--elf", program, "--intrusive")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(done.out, self.wanted)
        stub.join(10)
        self.assertEqual(stub.asked[-1], "D")

    def test_debug_server_over_tcp(self):
        program = self.write("fw.elf", elf(">", False, 2, [(ADDRESS, b"x")], ADDRESS))
        stub = Stub(("127.0.0.1", 0), self.image)
        stub.start()
        done = self.show("gdb:%s:%d" % stub.server.getsockname(), "--elf", program, "--intrusive")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(done.out, self.wanted)
        stub.join(10)
        self.assertEqual(stub.asked[-1], "D")

    def test_debug_server_that_is_none(self):
        """Nothing that comes from one is more than a sentence."""
        program = self.write("fw.elf", elf(">", False, 2, [(ADDRESS, b"x")], ADDRESS))
        for said, message in ((b"", b"closed the connection"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"closed the connection"),
                              (b"+$E01#a6" * 8, b"(it says 'E01')"), (b"+$x#00" * 3, b"checksums are wrong"),
                              (b"+" * (3 << 20), b"is it a debug server?"), (b"$" + b"0" * (3 << 20), b"without an end"),
                              (b"+$OK#9a+$zz#f4", b"something else than bytes: 'zz'")):
            with self.subTest(said[:20]):
                server = socket.create_server(("127.0.0.1", 0))

                def serve():
                    connection, _ = server.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.sendall(said)
                        connection.shutdown(socket.SHUT_WR)
                        while connection.recv(4096):
                            pass

                thread = threading.Thread(target=serve, daemon=True)
                thread.start()
                done = self.show("gdb:%s:%d" % server.getsockname(), "--elf", program, "--intrusive")
                thread.join(10)
                server.close()
                self.assertEqual((done.status, done.out, done.err.count(b"\n")), (3, b"", 1), done.err)
                self.assertIn(message, done.err)

    def test_debug_server_needs_leave(self):
        done = self.show("gdb:localhost:1")
        self.assertEqual(done.status, 2)
        self.assertIn(b"--intrusive", done.err)
        self.assertIn(b"stops its target", done.err)
        done = self.show("gdb:localhost:1", "--intrusive")
        self.assertEqual(done.status, 2)
        self.assertIn(b"--elf", done.err)

    def test_debug_server_that_is_not_there(self):
        program = self.write("fw.elf", elf(">", False, 2, [(ADDRESS, b"x")], ADDRESS))
        done = self.show(f"gdb:{self.folder}/none", "--elf", program, "--intrusive")
        self.assertEqual(done.status, 3)

    def test_helper(self):
        """exec: reaches the same memory by a program of the user's."""
        helper = f"exec:python3 {ROOT}/examples/probes/file_helper.py {IMAGES}/lossy-big32.bin"
        done = self.show(helper + " 0x80000000")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(done.out, self.wanted)
        program = self.write("fw.elf", elf(">", False, 2, [(ADDRESS, b"x")], ADDRESS))
        self.assertEqual(self.show(helper + " 0x80001000", "--elf", program).out, self.wanted)

    def test_a_watch_whose_polls_take_longer_than_their_interval_still_hears_a_signal(self):
        slow = self.write("slow.py", b"""if True:
            import runpy, sys, time
            helper = runpy.run_path(sys.argv[1])
            class Slow(helper["Memory"]):
                def alive(self):
                    time.sleep(0.3)
                    return "live"
            helper["serve"](Slow(sys.argv[2], 0x80000000), sys.stdin.buffer, sys.stdout.buffer)
        """)
        helper = f"exec:exec python3 {slow} {ROOT}/examples/probes/file_helper.py {IMAGES}/watched-big32.bin"
        watcher = subprocess.Popen([HANGSCOPE, "watch", "--interval", "10ms", helper], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(watcher.communicate)
        self.addCleanup(watcher.kill)
        self.assertIn(b"hangscope", watcher.stdout.readline())
        time.sleep(1)
        watcher.send_signal(signal.SIGINT)
        self.assertIn(watcher.wait(timeout=20), (1, 130))  # what it found of that memory by then

    def test_helper_that_went_wrong(self):
        for helper, status, said in (("exec:", 2, b"wants a command"),
                                     ("exec:echo no device >&2; exit 1", 3, b"'no device'"),
                                     ("exec:echo hello", 3, b"begins with 'hello'"),
                                     ("exec:printf 'hangscope-probe 1\nready\n'; cat >&2", 3, b"neither what memory"),
                                     ("exec:printf 'hangscope-probe 1\nrange 0 4096\nready\n'; read r; echo error bus; read r", 3,
                                      b"error bus")):
            done = self.show(helper)
            self.assertEqual(done.status, status, done.err)
            self.assertIn(said, done.err)
            self.assertEqual(done.err.count(b"\n"), 1)

    def process(self):
        """One that has the image mapped, as target/linux.h would."""
        scope = self.write("program.4711.scope", self.image)
        process = subprocess.Popen(python("""if True:
            import mmap, sys, time
            with open(sys.argv[1], "r+b") as f:
                scope = mmap.mmap(f.fileno(), 0)
            print("mapped")
            time.sleep(60)""", scope), stdout=subprocess.PIPE)
        self.addCleanup(self.end, process)
        process.stdout.readline()
        return process, scope

    def test_process(self):
        process, scope = self.process()
        done = self.show(f"pid:{process.pid}")
        self.assertEqual(done.status, 0, done.err)
        events = lambda out: [line for line in out.splitlines() if b'"type":"event"' in line]
        self.assertEqual(events(done.out), events(self.wanted))
        process.kill()
        process.wait()
        self.assertEqual(self.show(scope).out, self.wanted)
        self.assertEqual(self.show(f"pid:{process.pid}").status, 3)

    def test_process_without_a_scope(self):
        done = self.show(f"pid:{os.getpid()}")
        self.assertEqual(done.status, 3)
        self.assertIn(b".scope", done.err)
        self.assertEqual(self.show("pid:x").status, 2)

    def snapshot_of(self, *words, code):
        done = self.run_program(python(code, self.write("program.scope", self.image)), *words)
        self.assertEqual(done.status, 7, done.err)
        folder = self.snapshots()[0]
        manifest = json.loads((folder / "manifest.json").read_text())
        return folder, manifest

    def test_run_puts_the_scope_into_snapshots(self):
        """Also into that of the program's end, when its mappings are gone."""
        folder, manifest = self.snapshot_of("--scope", "pid:", code="""if True:
            import mmap, sys, time
            with open(sys.argv[1], "r+b") as f:
                scope = mmap.mmap(f.fileno(), 0)
            time.sleep(1)
            sys.exit(7)""")
        self.assertEqual((folder / "scope.bin").read_bytes(), self.image)
        self.assertEqual(manifest["scope"]["image"], "scope.bin")
        wanted = [line for line in map(json.loads, self.wanted.splitlines()) if line["type"] == "core"]
        for key in ("emitted", "returned", "overwritten", "torn", "refused"):
            self.assertEqual([core[key] for core in manifest["scope"]["cores"]], [core[key] for core in wanted])
        self.assertEqual(self.show(folder).out, self.wanted)

    def test_run_takes_snapshots_without_a_scope(self):
        folder, manifest = self.snapshot_of("--scope", "pid:", code="raise SystemExit(7)")
        self.assertNotIn("scope", manifest)
        self.assertIn("--scope", self.log.read_text())

    def test_run_finds_the_scope_of_a_descendant_by_itself(self):
        """Only while that lives: what it waited for at its end is no hang of whom it leaves behind."""
        path = self.write("program.scope", self.image)
        holds = f"import mmap, time; f = open({str(path)!r}, 'r+b'); scope = mmap.mmap(f.fileno(), 0); time.sleep(1)"
        launcher = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {holds!r}]); time.sleep(1); sys.exit(7)"
        done = self.run_program(python(launcher))
        self.assertEqual(done.status, 7, done.err)
        self.assertRegex(str(done.messages), r"scope found in process \d+, \d+ cores?")
        self.assertNotIn("warning", str(done.messages))
        self.assertNotIn("scope", json.loads((self.snapshots()[0] / "manifest.json").read_text()))

    def test_run_does_not_look_for_a_scope_that_nobody_wants(self):
        path = self.write("program.scope", self.image)
        holds = f"import mmap, time; f = open({str(path)!r}, 'r+b'); scope = mmap.mmap(f.fileno(), 0); time.sleep(1)"
        self.assertNotIn("scope found", str(self.run_program(python(holds), "--scope", "none").messages))

    def test_run_reads_a_simulators_memory(self):
        ram = self.write("ram.bin", bytes(4096) + self.image)
        folder, manifest = self.snapshot_of("--scope", f"file:{ram}@4096", code="raise SystemExit(7)")
        self.assertEqual(self.show(folder).out, self.wanted)

    def test_follows_until_the_process_ends(self):
        process, scope = self.process()
        show = subprocess.Popen([HANGSCOPE, "show", "--follow", "--json", f"pid:{process.pid}"], stdout=subprocess.PIPE)
        self.addCleanup(self.end, show)
        self.assertIn(b'"scope"', show.stdout.readline())
        process.kill()
        process.wait()
        self.assertEqual(show.wait(20), 0)

    def test_follows_until_interrupted(self):
        process, scope = self.process()
        show = subprocess.Popen([HANGSCOPE, "show", "--follow", "--json", f"pid:{process.pid}"], stdout=subprocess.PIPE)
        self.addCleanup(self.end, show)
        self.assertIn(b'"scope"', show.stdout.readline())
        show.send_signal(signal.SIGINT)
        self.assertEqual(show.wait(20), 130)


if __name__ == "__main__":
    main()
