"""hangscope cost: counts are exact, on several harts at once too, and each mistake gets its sentence."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from support import BUILD, CMAKE, HANGSCOPE, Case, main

# Each hart calls `known` 500 times, and hart n another 100 n times; then hart 0 ends QEMU, or does not
# with ENDLESS. The AMO behind the call is of no piece of code.
FIRMWARE = r"""
  .macro mark kind
777:
  .pushsection .hangscope_marks, "", %progbits
  .4byte \kind
#if __riscv_xlen == 64
  .8byte 777b
#else
  .4byte 777b
#endif
  .asciz "call"
  .balign 4
  .popsection
  .endm

  .text
  .globl _start
_start:
  csrr s0, mhartid
  la s1, words
  slli t0, s0, 6
  add s1, s1, t0
  la s2, shared
  li t0, 100
  mul s3, s0, t0
  addi s3, s3, 500
1:
  mv a0, s1
  mv a1, s2
  mark 1
  call known
  mark 2
  amoadd.w zero, zero, (s2)
  addi s3, s3, -1
  bnez s3, 1b
  la t0, done
  li t1, 1
  amoadd.w zero, t1, (t0)
  bnez s0, 3f
2:
  lw t1, 0(t0)
  li t2, HARTS
  bne t1, t2, 2b
#ifndef ENDLESS
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
#endif
3:
  wfi
  j 3b

  /* 21 instructions with the ret, 4 loads, 7 stores. */
  .globl known
  .type known, @function
known:
  li t0, 3
  li t3, 1
1:
  lw t1, 0(a0)
  sw t1, 4(a0)
  amoadd.w t2, t3, (a1)
  addi t0, t0, -1
  bnez t0, 1b
  lr.w t1, (a0)
  sc.w t1, t1, (a0)
  nop
  ret
  .size known, . - known

  .globl never
  .type never, @function
never:
  ret
  .size never, . - never

  .globl sizeless
sizeless:
  ret

  .bss
  .balign 64
words:
  .space 64 * HARTS
  .globl shared
  .type shared, @object
shared:
  .space 4
  .size shared, . - shared
done:
  .space 4
"""
KNOWN = {"instructions": 21, "loads": 4, "stores": 7}
HARTS = 4


class Cost(Case):
    def setUp(self):
        super().setUp()
        for tool, package in (("qemu-system-riscv32", "qemu-system-misc"), ("riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf")):
            if shutil.which(tool) is None:
                self.skipTest(f"{tool} is not installed (package {package})")

    def firmware(self, bits=32, *defines):
        source = self.folder / "known.S"
        source.write_text(FIRMWARE)
        elf = self.folder / f"known{bits}.elf"
        abi = "ilp32" if bits == 32 else "lp64"
        subprocess.run(["riscv64-unknown-elf-gcc", f"-march=rv{bits}ima_zicsr", f"-mabi={abi}", "-mcmodel=medany", "-nostdlib",
                        "-nostartfiles", "-Wl,-n,-Ttext=0x80000000,--no-relax", "-Wl,--no-warn-rwx-segments", f"-DHARTS={HARTS}",
                        *[f"-D{define}" for define in defines], "-o", elf, source], check=True)
        return elf

    def qemu(self, elf, bits=32, thread="multi", harts=HARTS):
        return [f"qemu-system-riscv{bits}", "-accel", f"tcg,thread={thread}", "-machine", "virt", "-m", "64M", "-bios", "none",
                "-nographic", "-monitor", "none", "-serial", "none", "-smp", str(harts), "-kernel", str(elf)]

    def count(self, elf, *words, **machine):
        outcome = self.hangscope("cost", "--seconds", 30, "--json", "--elf", elf, *words, "--", *self.qemu(elf, **machine))
        self.assertEqual(outcome.status, 0, outcome.err)
        return json.loads(outcome.out)

    def assert_calls(self, subject, each):
        for hart in subject["harts"]:
            calls = 500 + 100 * hart["hart"]
            self.assertEqual(hart["entered"], calls, hart)
            for what, number in each.items():
                self.assertEqual(hart[what], calls * number, (what, hart))
                self.assertEqual(hart["per_event"][what], number, (what, hart))


class Exact(Cost):
    def test_harts_that_run_at_once_are_counted_to_the_instruction(self):
        for bits in (32, 64):
            elf = self.firmware(bits)
            report = self.count(elf, "--symbol", "known", bits=bits)
            self.assertEqual((report["target"], report["complete"]), (f"riscv{bits}", True))
            self.assertEqual(len(report["subjects"][0]["harts"]), HARTS)
            self.assert_calls(report["subjects"][0], KNOWN)

    def test_one_thread_for_all_harts_counts_the_same(self):
        self.assert_calls(self.count(self.firmware(), "--symbol", "known", thread="single")["subjects"][0], KNOWN)

    def test_marks_count_what_is_called_between_them(self):
        for thread in ("multi", "single"):
            report = self.count(self.firmware(), "--mark", "call", "--symbol", "known", thread=thread)
            symbol, mark = report["subjects"]
            self.assertEqual((mark["name"], mark["kind"], symbol["kind"]), ("call", "mark", "symbol"))
            self.assert_calls(symbol, KNOWN)
            self.assert_calls(mark, {**KNOWN, "instructions": KNOWN["instructions"] + 2})  # a call is two

    def test_an_event_is_what_the_user_says(self):
        report = self.count(self.firmware(), "--symbol", "known", "--per", 2)
        self.assertEqual(report["subjects"][0]["all"]["per_event"], {what: number / 2 for what, number in KNOWN.items()})


class Table(Cost):
    def test_it_has_a_line_for_each_hart_and_one_for_all(self):
        elf = self.firmware()
        outcome = self.hangscope("cost", "--elf", elf, "--symbol", "known", "--", *self.qemu(elf))
        self.assertEqual(outcome.status, 0, outcome.err)
        lines = [line.split() for line in outcome.out.decode().splitlines()]
        self.assertEqual(lines[0], ["NAME", "HART", "ENTERED", "INSTRUCTIONS", "LOADS", "STORES"])
        self.assertEqual(lines[1], ["known", "0", "500", "21", "4", "7"])
        self.assertEqual(lines[-1], ["known", "all", "2", "600", "21", "4", "7"])
        self.assertEqual(len(lines), 1 + HARTS + 1)

    def test_firmware_without_end_is_ended_after_the_time(self):
        elf = self.firmware(32, "ENDLESS")
        outcome = self.hangscope("cost", "--elf", elf, "--symbol", "known", "--seconds", "2", "--", *self.qemu(elf))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn(b"QEMU was ended", outcome.err)
        self.assertIn("2 600", outcome.out.decode())

    def test_an_interrupt_ends_it_with_the_counts_so_far(self):
        elf = self.firmware(32, "ENDLESS")
        process = subprocess.Popen([HANGSCOPE, "cost", "--elf", elf, "--symbol", "known", "--", "sh", "-c", f": > {self.folder}/started; exec \"$@\"",
                                    "sh", *self.qemu(elf)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.until((self.folder / "started").exists)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(b"known", out)
        self.assertIn(b"QEMU was ended", err)


class Mistakes(Cost):
    def mistake(self, *words, status, **run):
        """The one sentence that hangscope says."""
        outcome = self.hangscope("cost", *words, **run)
        self.assertEqual(outcome.status, status, outcome.err)
        said = [line for line in outcome.err.decode().splitlines() if line.startswith("hangscope: ")]
        self.assertEqual(len(said), 1, outcome.err)
        self.assertTrue(said[0].startswith("hangscope: error: "), said)
        return said[0]

    def test_symbols_that_cannot_be_counted(self):
        elf = self.firmware()
        qemu = self.qemu(elf)
        said = self.mistake("--elf", elf, "--symbol", "knwon", "--", *qemu, status=3)
        self.assertIn("has no symbol 'knwon', did you mean 'known'?", said)
        self.assertIn("has no size", self.mistake("--elf", elf, "--symbol", "sizeless", "--", *qemu, status=2))
        self.assertIn("is data", self.mistake("--elf", elf, "--symbol", "shared", "--", *qemu, status=2))
        self.assertIn("has no mark 'cal', did you mean 'call'?", self.mistake("--elf", elf, "--mark", "cal", "--", *qemu, status=3))

    def test_files_and_commands_that_are_something_else(self):
        elf = self.firmware()
        qemu = self.qemu(elf)
        no_elf = self.folder / "no.elf"
        no_elf.write_text("no")
        self.assertIn("is not an ELF file", self.mistake("--elf", no_elf, "--symbol", "known", "--", *qemu, status=3))
        self.assertIn("No such file", self.mistake("--elf", self.folder / "none", "--symbol", "known", "--", *qemu, status=3))
        self.assertIn("'ls -l' is no QEMU", self.mistake("--elf", elf, "--symbol", "known", "--", "ls", "-l", status=2))
        self.assertIn("cannot start", self.mistake("--elf", elf, "--symbol", "known", "--", "/nowhere/qemu-system-riscv32", status=3))
        self.assertIn("--elf is missing", self.mistake("--symbol", "known", "--", *qemu, status=2))
        self.assertIn("neither --symbol nor --mark", self.mistake("--elf", elf, "--", *qemu, status=2))
        self.assertIn("no QEMU to run", self.mistake("--elf", elf, "--symbol", "known", status=2))
        self.assertIn("--per '0'", self.mistake("--elf", elf, "--symbol", "known", "--per", "0", "--", *qemu, status=2))

    def test_an_event_that_never_comes(self):
        elf = self.firmware()
        self.assertIn("no event was seen: 'never' was never entered", self.mistake("--elf", elf, "--symbol", "never", "--", *self.qemu(elf), status=3))

    def test_a_qemu_that_fails(self):
        elf = self.firmware()
        said = self.mistake("--elf", elf, "--symbol", "known", "--", *self.qemu(elf), "-no-such-option", status=3)
        self.assertIn("QEMU ended with status 1 before it loaded the plugin", said)

    def own_installation(self):
        """A hangscope in a folder of its own, without a plugin."""
        folder = self.folder / "own,folder"
        folder.mkdir()
        shutil.copy(HANGSCOPE, folder / "hangscope")
        return folder

    def run_own(self, folder):
        elf = self.firmware()
        done = subprocess.run([folder / "hangscope", "cost", "--elf", elf, "--symbol", "known", "--", *self.qemu(elf)],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_a_plugin_that_is_missing_or_beside_it(self):
        folder = self.own_installation()
        status, _, err = self.run_own(folder)
        self.assertEqual(status, 3)
        self.assertIn("the plugin for QEMU is missing: there is no", err)
        shutil.copy(os.path.join(BUILD, "qemu", "hangscope_count.so"), folder)
        status, out, err = self.run_own(folder)
        self.assertEqual(status, 0, err)
        self.assertIn("known", out)

    def test_an_installed_one_finds_its_plugin(self):
        prefix = self.folder / "prefix"
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", prefix], check=True, capture_output=True)
        self.assertTrue((prefix / "libexec/hangscope/hangscope_count.so").exists())
        status, out, err = self.run_own(prefix / "bin")
        self.assertEqual(status, 0, err)
        self.assertIn("known", out)

    def test_a_qemu_with_another_plugin_interface(self):
        compiler = shutil.which("c++") or self.skipTest("no C++ compiler")
        folder = self.own_installation()
        source = self.folder / "other.cc"
        source.write_text('extern "C" int qemu_plugin_version;\nint qemu_plugin_version = 1000;\n'
                          'extern "C" int qemu_plugin_install() { return 0; }\n')
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "hangscope_count.so", source], check=True)
        status, _, err = self.run_own(folder)
        self.assertEqual(status, 3)
        self.assertIn("this QEMU refuses the plugin, which is made for version 1 of its plugin interface", err)


if __name__ == "__main__":
    main()
