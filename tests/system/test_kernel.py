"""hangscope under Debian's own kernel in QEMU, with a module that plays trace units which share one sink.

What tests/fakes plays of the kernel, the kernel does itself here: the areas' mapping, redirection and inheritance of
events, switching them off for a snapshot, the records beside the areas. Only the trace unit is played
(tests/system/kernel/shared_sink.c).
"""
import base64
import json
import os
import pathlib
import re
import shutil
import stat
import struct
import subprocess
import sys

from support import HANGSCOPE, ROOT, Case, main

MODULE = ROOT / "tests/system/kernel/shared_sink.c"
SINK = 4096
SECONDS = 600  # from the machine's start to its end, on one that others keep busy
BURST = 64  # bytes, in four frames
AUX, AUXTRACE, TELLS_END = 11, 71, 2
BARRIER = b"\xff\xff\xff\x7f" * 4
PACKETS, ATOMS = 35, 31  # of a burst
# Short-lived processes on both CPUs, until the sink was overwritten three times.
PROGRAM = """for cpu in 1 2; do
  while [ ! -e /tmp/stop ]; do taskset $cpu sh -c 'i=0; while [ $i -lt 5000 ]; do i=$((i + 1)); done'; done &
done
wait
"""
# Each part of what it prints stands between two lines that name it.
INIT = f"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /tmp /dev /root
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tracefs nodev /sys/kernel/tracing
export PATH=/bin HOME=/root XDG_RUNTIME_DIR=/tmp XDG_STATE_HOME=/tmp TERM=dumb
part() {{ echo "<$1>"; shift; "$@" 2>&1; echo "</status $?>"; }}
count() {{ cat /sys/module/shared_sink/parameters/$1; }}
part module insmod /shared_sink.ko sink_bytes={SINK}
hangscope run --cpu -e cs_etm/@tmc_etr0/u --cpu-size 1M --heartbeat 0 --prefix /tmp/r -- sh /program > /tmp/said 2>&1 &
recorder=$!
for i in $(seq 600); do
  [ $(count barriers) -gt 2 ] && [ $(count empty_stops) -gt 2 ] && break
  sleep 0.1
done
kill -USR1 $recorder
for i in $(seq 600); do
  [ -e /tmp/r.snapshot-0001/manifest.json ] && break
  sleep 0.1
done
before=$(count drains)
for i in $(seq 100); do
  [ $(count drains) -gt $before ] && break
  sleep 0.1
done
echo "<count drains_after_the_snapshot $(($(count drains) - before))/>"
touch /tmp/stop
wait $recorder
echo "<count ended $?/>"
for name in drains empty_stops barriers drained_bytes; do
  echo "<count $name $(count $name)/>"
done
part said cat /tmp/said
part manifest cat /tmp/r.snapshot-0001/manifest.json
part why hangscope why /tmp/r.snapshot-0001
part json hangscope why --json /tmp/r.snapshot-0001
part unload rmmod shared_sink
part kernel dmesg
part file base64 /tmp/r.snapshot-0001/cpu.perf.data
poweroff -f
"""


def newc(entries):
    """An archive as the kernel unpacks it; `entries`: path, mode, content."""
    archive = bytearray()
    for number, (path, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        archive += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        archive += b"\0" * (-len(archive) % 4) + content
        archive += b"\0" * (-len(archive) % 4)
    return bytes(archive)


def libraries(binary):
    """What the loader maps for it, and the loader."""
    said = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", said)


class SharedSinkLong(Case):
    def setUp(self):
        super().setUp()
        kernels = sorted(pathlib.Path("/boot").glob("vmlinuz-*"))
        self.kernel = next((kernel for kernel in reversed(kernels) if self.headers(kernel).is_dir()), None)
        for what, found, package in (("a kernel of Debian's with its headers", self.kernel, "linux-image-amd64 linux-headers-amd64"),
                                     ("busybox", shutil.which("busybox"), "busybox-static"),
                                     ("QEMU", shutil.which("qemu-system-x86_64"), "qemu-system-x86"),
                                     ("make", shutil.which("make"), "make")):
            if not found:
                self.skipTest(f"{what} is not here: {package} (scripts/ensure-packages long)")
        if os.uname().machine != "x86_64":
            self.skipTest(f"the kernel would have to be one for {os.uname().machine}")
        if not os.access(self.kernel, os.R_OK):
            self.skipTest(f"{self.kernel} may not be read")

    def headers(self, kernel):
        return pathlib.Path("/lib/modules") / kernel.name.removeprefix("vmlinuz-") / "build"

    def module(self):
        shutil.copy(MODULE, self.folder)
        (self.folder / "Makefile").write_text("obj-m := shared_sink.o\n")
        done = subprocess.run(["make", "-C", self.headers(self.kernel), f"M={self.folder}", "KCFLAGS=-Werror", "modules"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return (self.folder / "shared_sink.ko").read_bytes()

    def stripped(self):
        """hangscope without its debug information, which is most of it."""
        subprocess.run(["strip", "--strip-debug", "-o", self.folder / "hangscope", HANGSCOPE], check=True)
        return (self.folder / "hangscope").read_bytes()

    def initramfs(self):
        files = {"init": INIT.encode(), "shared_sink.ko": self.module(), "program": PROGRAM.encode(), "bin/busybox": pathlib.Path(shutil.which("busybox")).read_bytes(),
                 "bin/hangscope": self.stripped()}
        for library in libraries(HANGSCOPE):
            files[library.lstrip("/")] = pathlib.Path(library).read_bytes()
        folders = sorted({str(folder) for name in files for folder in pathlib.PurePath(name).parents} - {"."})
        return newc([(folder, stat.S_IFDIR | 0o755, b"") for folder in folders] +
                    [(name, stat.S_IFREG | 0o755, content) for name, content in files.items()])

    def boot(self):
        """What the machine says from its start to its end. Emulated: virtual machines have a /dev/kvm that starts nothing."""
        console = self.folder / "console"
        (self.folder / "initramfs").write_bytes(self.initramfs())
        words = ["qemu-system-x86_64", "-accel", "tcg", "-smp", "2", "-m", "1G", "-nodefaults", "-display", "none", "-no-reboot",
                 "-serial", f"file:{console}", "-kernel", str(self.kernel), "-initrd", str(self.folder / "initramfs"),
                 "-append", "console=ttyS0 panic=-1 loglevel=1 oops=panic"]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.fail(f"the machine did not end within {SECONDS} s; it said\n{console.read_text(errors='replace')[-4000:]}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return console.read_text(errors="replace").replace("\r", "")

    def part(self, said, name):
        """What a part printed, and its status."""
        found = re.search(rf"<{name}>\n(.*?)</status (\d+)>", said, re.S)
        self.assertIsNotNone(found, f"no part {name} in\n{said[-4000:]}")
        return found[1], int(found[2])

    def counts(self, said):
        return {name: int(count) for name, count in re.findall(r"<count (\w+) (-?\d+)/>", said)}

    def pieces(self, data):
        """What came into the areas, by the records beside them: [(CPU, bytes)]."""
        at, size = struct.unpack_from("<QQ", data, 40)
        end, areas, told = at + size, {}, []
        while at < end:
            kind, _, size = struct.unpack_from("<IHH", data, at)
            if kind == AUX:
                told.append((*struct.unpack_from("<QQQ", data, at + 8), struct.unpack_from("<I", data, at + size - 16)[0]))
            at += size
            if kind == AUXTRACE:
                held, offset, _, _, _, cpu, _ = struct.unpack_from("<QQQIIII", data, at - 40)
                areas[cpu] = offset, data[at:at + held]
                at += held
        pieces = []
        for offset, size, flags, cpu in told:
            begin, area = areas[cpu]
            first = offset - begin - (size if flags & TELLS_END else 0)
            if 0 <= first and first + size <= len(area):
                pieces.append((cpu, area[first:first + size]))
        return pieces

    def test_is_recorded_by_the_kernel_and_read(self):
        said = self.boot()
        self.assertEqual(self.part(said, "module"), ("", 0))
        self.assertNotRegex(self.part(said, "kernel")[0], r"WARNING:|BUG:|Oops|Call Trace")
        counts = self.counts(said)
        print(f"the module counted {counts}")
        # The kernel took the events, and takes them again after a snapshot.
        self.assertNotIn("cs_etm", self.part(said, "said")[0])
        self.assertEqual(counts["ended"], 0)
        self.assertGreater(counts["drains_after_the_snapshot"], 0, counts)
        manifest = json.loads(self.part(said, "manifest")[0])
        self.assertIn("cs_etm/@tmc_etr0/u", manifest["cpu"]["events"])
        self.assertEqual((manifest["cpu"]["threads_not_recorded"], manifest["cpu"]["side_band_lost"]), (0, 0))
        # The sink is shared: most who stop get nothing, and a piece has frames of both CPUs.
        data = base64.b64decode(self.part(said, "file")[0])
        pieces = self.pieces(data)
        ids = [{piece[at] >> 1 for at in range(0, len(piece), 16) if piece[at:at + 16] != BARRIER} for _, piece in pieces]
        self.assertGreater(len(pieces), 2)
        self.assertEqual(set.union(*ids), {0x10, 0x12})
        self.assertGreater(sum(len(each) == 2 for each in ids), 0, ids)
        overwritten = [piece for _, piece in pieces if piece.startswith(BARRIER)]
        self.assertGreater(len(overwritten), 0)
        self.assertEqual({len(piece) for piece in overwritten}, {SINK})
        self.assertFalse(any(BARRIER in piece[1:] for _, piece in pieces))
        # hangscope tells all of them, in the machine and here.
        self.check_told([json.loads(line) for line in self.part(said, "json")[0].splitlines() if line.startswith("{")], pieces)
        file = self.folder / "cpu.perf.data"
        file.write_bytes(data)
        self.check_told([json.loads(line) for line in self.hangscope("why", "--json", file).out.splitlines()], pieces)
        if shutil.which("perf"):
            compared = subprocess.run([sys.executable, ROOT / "scripts/try-coresight", "--hangscope", HANGSCOPE, "--file", file], capture_output=True, text=True)
            if "missing  a perf that decodes CoreSight" not in compared.stdout:
                self.assertEqual(compared.returncode, 0, compared.stdout)
        self.assertEqual(self.part(said, "unload"), ("", 0))

    def check_told(self, lines, pieces):
        spans = [line for line in lines if line["type"] == "trace_span"]
        self.assertEqual(sum(span["held_bytes"] for span in spans), sum(len(piece) for _, piece in pieces))
        self.assertEqual({span["ring"]["number"] for span in spans}, {cpu for cpu, _ in pieces})
        # All bursts of a piece that was not overwritten are whole.
        whole = [span for span in spans if span["held_bytes"] < SINK]
        self.assertGreater(len(whole), 0)
        for span in whole:
            bursts = span["held_bytes"] // BURST
            self.assertEqual((span["packets"], span["atoms"]), (bursts * PACKETS, bursts * ATOMS), span)
        # Here goes what the reader tells of shared sinks: which CPUs' bytes a piece has, and where its oldest were overwritten.


if __name__ == "__main__":
    main()
