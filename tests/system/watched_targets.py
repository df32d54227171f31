"""The three watched examples, started with a fault: examples/device, examples/pipeline, examples/trace_sched.

Each runs until it is stopped, says on its console what it did wrong when it does it ("planted: ..."), and
keeps its scope in a file that outlives it.
"""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import time

from scope_ram import RAM_BASE, Elf
from support import BUILD, FIRMWARE, ROOT

PIPELINE = pathlib.Path(BUILD) / "examples/pipeline/pipeline"
ROLES = ["reader", "unpack", "math", "pack", "writer"]
READER, UNPACK, MATH, PACK, WRITER = range(5)
RAM_BYTES = 64 << 20
PLAN_AT = 0x83f00000


def numbers_of(path, prefix):
    """NAME -> number of an enumeration's lines `PREFIX_NAME = number`."""
    return {name: int(number) for name, number in re.findall(rf"\b{prefix}_(\w+) = (\d+)\b", (ROOT / path).read_text())}


DEVICE_FAULTS = numbers_of("examples/device/faults.h", "FAULT")
EVERY_CORE = 0xffffffff  # as the core of a plan
SCHED_FAULTS = numbers_of("examples/trace_sched/faults.c", "SCHED")
BUS_REASONS = numbers_of("include/hangscope/abi/watch.h", "HANGSCOPE_BUS")
MAILBOX_WORDS = {"waypoint": 0, "wait_kind": 4, "launch": 8, "pause": 9, "paused": 11, "fault": 12, "stack_free": 13,
                 "node": 14, "guard": 15}


class Started:
    """A target that runs. `target` and `elf` are for hangscope; its scope is in a file, at an offset."""

    def __init__(self, command, folder, target, elf, scope, scope_at=0, environment=None):
        self.console = folder / "console"
        self.target, self.elf, self.scope, self.scope_at = target, str(elf), scope, scope_at
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=console,
                                            stderr=subprocess.STDOUT, env=environment)

    def words(self):
        """What hangscope watch is to be told."""
        return ["--elf", self.elf, self.target]

    def said(self):
        return self.console.read_text(errors="replace")

    def planted(self):
        """What it did wrong, as it says: word -> text; None: nothing yet."""
        found = re.search(r"^planted: (.*)\n", self.said(), re.MULTILINE)
        if not found:
            return None
        words, _, cores = found[1].partition(" cores")
        words = words.split()
        planted = dict(zip(words[::2], words[1::2]))
        planted["cores"] = [int(core) for core in cores.split()]
        return planted

    def until_planted(self, timeout=30):
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.process.poll() is None:
            found = self.planted()
            if found:
                return found
            time.sleep(0.02)
        return self.planted()

    def until_recording(self, timeout=30):
        """Until its scope is there, complete."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.scope.exists():
                with open(self.scope, "rb") as file:
                    file.seek(self.scope_at)
                    header = file.read(192)
                if header[:8] == b"hangscop" and header[188:192] != bytes(4):
                    return
            time.sleep(0.01)
        raise TimeoutError(f"no scope in {timeout} s: {self.said()!r}")

    def kill(self):
        """SIGKILL: nothing of it is tidied up."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def new_folder(where):
    """In memory, where there is a file system for it: a disk would have to write all of a guest's RAM."""
    shm = "/dev/shm"
    return pathlib.Path(tempfile.mkdtemp(prefix="hangscope-test-", dir=shm if os.access(shm, os.W_OK) else where))


def guest_command(folder, name, isa, harts, plan, options=(), ram_in_file=True):
    """How to start a firmware of examples/ in QEMU, with `plan`, the words that it finds at PLAN_AT; its ELF; the file of its RAM."""
    elf = FIRMWARE / (name if name.endswith(".elf") else f"{isa}-{name}.elf")
    ram, words = folder / "ram", folder / "plan"
    machine = ["-machine", "virt", "-m", "64M"]
    if ram_in_file:
        with open(ram, "wb") as file:
            file.truncate(RAM_BYTES)
        machine = ["-machine", "virt,memory-backend=ram", "-m", "64M", "-object", f"memory-backend-file,id=ram,size=64M,mem-path={ram},share=on"]
    words.write_bytes(struct.pack(f"<{len(plan)}I", *plan))
    command = [f"qemu-system-riscv{isa[2:4]}", *machine, "-bios", "none", "-kernel", elf,
               "-smp", harts, "-nographic", "-monitor", "none", "-serial", "stdio",
               "-device", f"loader,file={words},addr={PLAN_AT:#x},force-raw=on", *options]
    return [str(word) for word in command], elf, ram


def start_guest(folder, name, isa, harts, plan, options=()):
    command, elf, ram = guest_command(folder, name, isa, harts, plan, options)
    return Started(command, folder, f"file:{ram}", elf, ram, Elf(elf).symbols["hangscope_scope"] - RAM_BASE)


def device_command(folder, fault="NONE", core=0, other=0, value=0, block=0, blocks=0, pace_us=1000, power_off=False,
                   nodes=1, isa="rv32", options=(), ram_in_file=True, firmware="device"):
    plan = [DEVICE_FAULTS[fault], core, other, value, block, blocks, pace_us, int(power_off)]
    return guest_command(folder, firmware, isa, 5 * nodes, plan, options, ram_in_file)


def start_device(folder, fault="NONE", core=0, other=0, value=0, block=0, blocks=0, pace_us=1000, power_off=False,
                 nodes=1, isa="rv32", options=(), firmware="device"):
    plan = [DEVICE_FAULTS[fault], core, other, value, block, blocks, pace_us, int(power_off)]
    return start_guest(folder, firmware, isa, 5 * nodes, plan, options)


def hex_numbers_of(path):
    """NAME -> number of a file's lines `#define NAME 0x...`."""
    return {name: int(number, 16) for name, number in re.findall(r"#define (\w+) (0x[0-9a-f]+)\b", (ROOT / path).read_text())}


TILES = hex_numbers_of("examples/device/tiles.h")


class StartedTiles(Started):
    """The device with a scope in each of four nodes' memory. `file` lists its memories for --device."""

    def __init__(self, command, folder, ram, file):
        super().__init__(command, folder, str(file), "", ram, TILES["TILE_SCOPE_AT"])
        self.folder, self.ram, self.file = folder, ram, file

    def words(self):
        return ["--device", str(self.file)]

    def write_file(self, name="grid.json", lost=(), ram=lambda node: "file:ram", elfs=None):
        """A file for --device; the memories of the nodes `lost` are not to be read."""
        elfs = elfs or {"elfs": {role: str(tile_elf(role)) for role in ROLES}}
        memories = []
        for node in range(4):
            where = "file:nothing" if node in lost else ram(node)
            at = node * TILES["TILE_BYTES"] + TILES["TILE_SCOPE_AT"]
            memories.append({"node": [node % 2, node // 2], "memory": f"{where}@{at:#x}", **elfs})
        file = self.folder / name
        file.write_text(json.dumps({"name": "grid", "clock": "shared", "memories": memories}, indent=1))
        return file

    def dump(self):
        """A file for --device of copies of each node's memory, as it is now."""
        for node in range(4):
            at = node * TILES["TILE_BYTES"]
            with open(self.ram, "rb") as ram, open(self.folder / f"dump{node}", "wb") as dump:
                ram.seek(at)
                dump.seek(at)
                dump.write(ram.read(TILES["TILE_BYTES"]))
        return self.write_file("dumps.json", ram=lambda node: f"file:dump{node}")


def tile_elf(role):
    return FIRMWARE / f"rv32-tile-{role}.elf"


def start_tiles(folder, fault="NONE", core=0, other=0, value=0, block=0, blocks=0, pace_us=1000):
    """2 x 2 nodes, five ELFs in each, in QEMU. Their images lie in the guest's RAM before it starts."""
    ram = folder / "ram"
    plan = [DEVICE_FAULTS[fault], core, other, value, block, blocks, pace_us, 0]
    with open(ram, "wb") as file:
        file.truncate(RAM_BYTES)
        for node in range(4):
            for role in ROLES:
                for address, image in Elf(tile_elf(role)).loaded():
                    file.seek(address - RAM_BASE + node * TILES["TILE_BYTES"])
                    file.write(image)
        file.seek(PLAN_AT - RAM_BASE)
        file.write(struct.pack(f"<{len(plan)}I", *plan))
    command = ["qemu-system-riscv32", "-machine", "virt,memory-backend=ram", "-m", "64M", "-object",
               f"memory-backend-file,id=ram,size=64M,mem-path={ram},share=on", "-bios", "none", "-smp", "20",
               "-nographic", "-monitor", "none", "-serial", "stdio"]
    started = StartedTiles(command, folder, ram, folder / "grid.json")
    started.write_file()
    return started


def start_sched(folder, fault="NONE", task=0, other=0, value=0, round=0, rounds=0, pace_ms=2, isa="rv32"):
    return start_guest(folder, "trace_sched-faults", isa, 1, [SCHED_FAULTS[fault], task, other, value, round, rounds, pace_ms, 0])


def start_porting(folder, kernel, mode):
    """A stand-in for another kernel, tests/target/porting; `mode` is one of its enumeration."""
    modes = re.search(r"^enum { (kE|kRecords).*};", (ROOT / f"tests/target/porting/{kernel}.c").read_text(), re.MULTILINE)[0]
    return start_guest(folder, f"porting-{kernel}", "rv32", 1, [1 + re.findall(r"k\w+", modes).index(mode)])


def start_pipeline(folder, **options):
    """A process; its target is its id. `folder`/pipeline.scope outlives it."""
    words = [str(word) for name, value in options.items() for word in ("--" + name.replace("_", "-"), value)]
    environment = dict(os.environ, HANGSCOPE_SCOPE=str(folder / "pipeline.scope"))
    started = Started([PIPELINE, *words], folder, None, PIPELINE, folder / "pipeline.scope", environment=environment)
    started.target = f"pid:{started.process.pid}"
    return started
