"""What the tests of the target half share: the compilers, and what lies in an object file."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
sys.path.insert(0, str(HERE.parent / "system"))
from support import main  # noqa: E402,F401  the tests' entry, and the status 77 for "skipped"

RISCV = "riscv64-unknown-elf-"


class Toolchain:
    """A compiler and the flags that make it one of the targets."""

    def __init__(self, name, prefix, *flags):
        self.name = name
        self.prefix = prefix
        self.flags = flags

    def compiler(self, language):
        return self.prefix + ("gcc" if language == "c" else "g++")


RV32 = Toolchain("RV32 with A", RISCV, "-march=rv32imac_zicsr", "-mabi=ilp32", "-ffreestanding")
RV32_WITHOUT_A = Toolchain("RV32 without A", RISCV, "-march=rv32imc_zicsr", "-mabi=ilp32", "-ffreestanding")
RV64 = Toolchain("RV64 with A", RISCV, "-march=rv64imac_zicsr", "-mabi=lp64", "-ffreestanding")
RV64_WITHOUT_A = Toolchain("RV64 without A", RISCV, "-march=rv64imc_zicsr", "-mabi=lp64", "-ffreestanding")
LINUX = Toolchain("Linux", "", "-D_GNU_SOURCE")
AARCH64 = Toolchain("AArch64", "aarch64-linux-gnu-", "-D_GNU_SOURCE", "-march=armv8-a", "-mno-outline-atomics")
AARCH64_LSE = Toolchain("AArch64 with LSE", "aarch64-linux-gnu-", "-D_GNU_SOURCE", "-march=armv8.1-a")
ARMV7 = Toolchain("ARMv7-A", "arm-linux-gnueabihf-", "-D_GNU_SOURCE", "-march=armv7-a", "-mfpu=neon")
# Debian's compiler for Linux makes code for every Cortex-M, too.
CORTEX_M0, CORTEX_M3, CORTEX_M33 = (
    Toolchain(f"Cortex-M{which}", "arm-linux-gnueabihf-", "-U__linux__", "-ffreestanding", f"-mcpu=cortex-m{which}", "-mthumb", "-mfloat-abi=soft")
    for which in (0, 3, 33))
EXAMPLE = Toolchain("the example port", "", "-ffreestanding", '-DHANGSCOPE_PORT="hangscope/port/example.h"')

STANDARDS = {"c": "-std=c11", "c++": "-std=c++20"}


class Case(unittest.TestCase):
    """A test with an empty folder, skipped where a compiler is missing."""

    def setUp(self):
        for prefix in ("", RISCV):
            if shutil.which(prefix + "gcc") is None:
                self.skipTest(f"there is no {prefix}gcc")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hangscope-target-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.objects = 0

    def compile(self, toolchain, language, source, *flags):
        """The object file made of a source, a path or text; None with -fsyntax-only."""
        if not isinstance(source, os.PathLike):
            text, source = source, self.folder / ("source.c" if language == "c" else "source.cc")
            source.write_text(text)
        self.objects += 1
        output = self.folder / f"{self.objects}.o"
        command = [toolchain.compiler(language), "-x", language, STANDARDS[language], *toolchain.flags, *flags,
                   "-I", str(INCLUDE), "-c", str(source), "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            self.fail(f"{toolchain.name}, {language}: {' '.join(command)}\n{done.stderr}")
        return ObjectFile(output.read_bytes()) if output.exists() else None


class ObjectFile:
    """What of an ELF relocatable file ends up in a target's memory, and what it asks of others."""

    SHF_ALLOC = 2
    SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 2, 4, 8, 9

    def __init__(self, data):
        self.data = data
        self.wide = data[4] == 2
        if self.wide:
            at, = struct.unpack_from("<Q", data, 40)
            size, count, names = struct.unpack_from("<HHH", data, 58)
            form = "<IIQQQQIIQQ"
        else:
            at, = struct.unpack_from("<I", data, 32)
            size, count, names = struct.unpack_from("<HHH", data, 46)
            form = "<IIIIIIIIII"
        self.headers = [struct.unpack_from(form, data, at + i * size) for i in range(count)]
        self.names = [self._text(names, header[0]) for header in self.headers]

    def _text(self, section, offset):
        begin = self.headers[section][4] + offset
        return self.data[begin:self.data.index(b"\0", begin)].decode()

    def _bytes(self, header):
        return b"" if header[1] == self.SHT_NOBITS else self.data[header[4]:header[4] + header[5]]

    def symbols(self):
        """(name, section's number, value, info) of each, in the table's order."""
        found = []
        for header in self.headers:
            if header[1] != self.SHT_SYMTAB:
                continue
            for at in range(header[4], header[4] + header[5], header[9]):
                if self.wide:
                    name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
                else:
                    name, value, _, info, _, section = struct.unpack_from("<IIIBBH", self.data, at)
                found.append((self._text(header[6], name), section, value, info))
        return found

    def undefined(self):
        return {name for name, section, _, _ in self.symbols() if section == 0 and name}

    def _relocations(self, target):
        """Where a section's bytes are not final: (offset, type, symbol or section and offset in it, addend)."""
        symbols, found = self.symbols(), []
        for header in self.headers:
            if header[1] != self.SHT_RELA or header[7] != target:
                continue
            for at in range(header[4], header[4] + header[5], header[9]):
                offset, info, addend = struct.unpack_from("<QQq" if self.wide else "<IIi", self.data, at)
                symbol, kind = (info >> 32, info & 0xffffffff) if self.wide else (info >> 8, info & 0xff)
                name, section, value, _ = symbols[symbol]
                place = name if section in (0, 0xfff2) else (self.names[section] if section < 0xff00 else name, value)
                found.append((offset, kind, place, addend))
        return found

    def allocated(self):
        """What takes memory: (name, type, flags, size, alignment, bytes, relocations) of each section, no empty ones."""
        return [(self.names[i], h[1], h[2], h[5], h[8], self._bytes(h), self._relocations(i))
                for i, h in enumerate(self.headers) if h[2] & self.SHF_ALLOC and h[5] > 0]
