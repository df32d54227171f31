"""The instructions that RISC-V's weak memory asks for are in the object code, in the places where
abi/record.h wants them. A machine that runs tests (x86, or QEMU on it) would hide that they are missing."""
import re

from toolchains import *

SOURCE = """#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#define TWO_EVENTS(EVENT) EVENT(two, USER, "%u %u", u32, first, u32, second)
HANGSCOPE_EVENTS(test, HANGSCOPE_FIRST_USER_ID, TWO_EVENTS);
void writer(uint32_t first, uint32_t second);
void writer(uint32_t first, uint32_t second) { hangscope_two(first, second); }
void raw_writer(uint32_t first, uint32_t second);
void raw_writer(uint32_t first, uint32_t second) { hangscope_two_raw(first, second); }
void waiter(uint32_t resource);
void waiter(uint32_t resource) { HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, resource); }
void debugger(uint32_t value);
void debugger(uint32_t value) { HANGSCOPE_DEBUG(value); }
"""
COLD = ("hangscope_refused", "hangscope_turn_began", "hangscope_new_epoch", "hangscope_write_anew", "hangscope_masked")
BRANCH = re.compile(r"(c\.)?(b[a-z]+|j|jal)$")


class Instruction:
    def __init__(self, address, name, operands):
        self.address, self.name, self.operands = address, name, operands

    def __repr__(self):
        return f"{self.address:x}: {self.name} {','.join(self.operands)}"

    def memory(self):
        """(offset, base) of a load's or a store's address."""
        return re.fullmatch(r"(-?\d+)\((\w+)\)", self.operands[-1]).groups()

    def is_store(self):
        return self.name in ("sw", "c.sw", "sd", "c.sd", "c.swsp", "c.sdsp")

    def is_load(self):
        return self.name in ("lw", "c.lw", "ld", "c.ld", "lwu")

    def is_fence(self, before, after):
        """Orders all `before` (r or w) before all `after`."""
        return self.name == "fence" and before in self.operands[0] and after in self.operands[1]

    def target(self):
        """Where a branch or a jump in the same function goes; None for anything else."""
        if not BRANCH.match(self.name):
            return None
        return int(self.operands[-1].split()[0], 16)


def at(list_, what):
    """Index of the only instruction that `what` is true of."""
    found = [i for i, instruction in enumerate(list_) if what(instruction)]
    assert len(found) == 1, f"{len(found)} of them in\n" + "\n".join(map(str, list_))
    return found[0]


class ObjectCode(Case):
    def functions(self, toolchain, *flags, include=INCLUDE):
        source = self.folder / "code.c"
        source.write_text(SOURCE)
        output = self.folder / "code.o"
        subprocess.run([toolchain.compiler("c"), "-std=c11", *toolchain.flags, "-O2", *flags, "-I", str(include), "-c", str(source),
                        "-o", str(output)], check=True)
        listing = subprocess.run([RISCV + "objdump", "-d", "--no-show-raw-insn", "-M", "no-aliases", str(output)],
                                 check=True, capture_output=True, text=True).stdout
        found = {}
        for line in listing.splitlines():
            if match := re.match(r"[0-9a-f]+ <(\w+)>:", line):
                if not match[1].startswith("."):
                    code = found[match[1]] = []
            elif match := re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*([^#]*)", line):
                code.append(Instruction(int(match[1], 16), match[2], match[3].strip().split(",")))
        return found

    def common_path(self, code):
        """What runs when no branch is taken, to the first return."""
        return code[:at_first(code, lambda i: i.name in ("c.jr", "jalr", "ret"))]

    def published(self, path, parameters=2):
        """Indices of the stores of a record's words, in memory's order: the mark's, the time's, ..."""
        mark = max(i for i, instruction in enumerate(path) if instruction.is_store())
        offset, base = path[mark].memory()
        words = [mark]
        for word in range(1, 2 + parameters):
            place = (str(int(offset) + 4 * word), base)
            words.append(at(path, lambda i: i.is_store() and i.memory() == place))
        return words

    def check_fence(self, path, words):
        between = path[max(words[1:]) + 1:words[0]]
        self.assertTrue(any(i.is_fence("w", "w") for i in between), f"no fence before the mark: {between}")

    def check_atomic(self, toolchain, *flags, parameters=2, nesting=True, include=INCLUDE):
        code = self.functions(toolchain, *flags, f"-DHANGSCOPE_PARAMETERS={parameters}", include=include)
        path = self.common_path(code["writer"])
        words = self.published(path, parameters)
        add = at(path, lambda i: i.name.startswith("amoadd"))
        self.assertRegex(path[add].name, r"\.(aq|aqrl)$")
        self.assertRegex(path[add].name, r"amoadd\.d" if toolchain is RV64 else r"amoadd\.w")
        self.assertLess(add, min(words))
        if nesting:
            swap = at(path, lambda i: i.name.startswith("amoswap"))
            self.assertRegex(path[swap].name, r"amoswap\.w\.(aq|aqrl)$")
            self.assertLess(add, swap)
            self.assertLess(swap, min(words))
        else:
            self.assertFalse([i for i in path if i.name.startswith("amoswap")])
        self.check_fence(path, words)
        self.check_no_loop(code)

    def check_masking(self, toolchain, *flags, include=INCLUDE):
        """Interrupts are masked from before the head is read until the mark is written; no other memory is."""
        code = self.functions(toolchain, *flags, include=include)
        path = self.common_path(code["writer"])
        words = self.published(path)
        enter = at(path, lambda i: i.name == "csrrci" and i.operands[1] == "mstatus")
        leave = at(path, lambda i: i.name == "csrrs" and i.operands[:2] == ["zero", "mstatus"])
        head = at(path, lambda i: i.is_store() and i.memory()[0] == "0")
        read = at(path, lambda i: i.is_load() and i.memory() == path[head].memory())
        self.assertLess(enter, read)
        self.assertLess(read, head)
        self.assertLess(words[0], leave)
        self.assertTrue(any(i.is_fence("w", "w") for i in path[head + 1:min(words)]), "no fence behind the head")
        self.check_fence(path, words)
        self.check_no_loop(code)
        self.assertFalse([i for i in path if i.name.startswith(("amo", "lr.", "sc."))])
        return words[0] - read + 1

    def check_raw(self, toolchain, include=INCLUDE):
        """The same but for the instructions that mask: for code that runs with its interrupts off."""
        code = self.functions(toolchain, include=include)
        path, whole = self.common_path(code["raw_writer"]), self.common_path(code["writer"])
        self.assertFalse([i for i in path if "mstatus" in i.operands])
        self.check_fence(path, self.published(path))
        kept = [i.name for i in whole if i.is_store() or i.name == "fence"]
        self.assertEqual([i.name for i in path if i.is_store() or i.name == "fence"], kept)
        self.assertLess(len(path), len(whole))

    def check_no_loop(self, code):
        """No function of the writer's can come to an instruction twice: each jump back leads out."""
        self.assertLessEqual({"writer", "hangscope_refused", "hangscope_new_epoch", "hangscope_masked"}, set(code))
        for name in ("writer", *COLD):
            if name in code:
                self.check_order(name, code[name])

    def check_order(self, name, code):
        by_address = {instruction.address: i for i, instruction in enumerate(code)}
        state = [None] * len(code)  # None, "on the way here", "done"
        stack = [(0, None)]
        while stack:
            here, nexts = stack.pop()
            if nexts is None:
                if state[here] == "done":
                    continue
                self.assertIsNone(state[here], f"{name} loops at {code[here]}")
                state[here], nexts = "on the way here", self.nexts(code, here, by_address)
            if nexts:
                stack.append((here, nexts[1:]))
                self.assertNotEqual(state[nexts[0]], "on the way here", f"{name} loops at {code[here]}")
                stack.append((nexts[0], None))
            else:
                state[here] = "done"

    def nexts(self, code, here, by_address):
        """What may come after an instruction, in the same function."""
        instruction = code[here]
        target = instruction.target()
        leads = [by_address[target]] if target in by_address else []
        leaves = instruction.name in ("c.jr", "c.j", "mret") or (instruction.name in ("jal", "jalr") and instruction.operands[0] == "zero")
        return leads if leaves or here + 1 == len(code) else leads + [here + 1]

    def check_reader(self, toolchain, include=INCLUDE):
        """hangscope_get looks at the mark, then at the rest, then at both again."""
        code = self.functions(toolchain, include=include)["hangscope_get"]
        loads = {}
        for i, instruction in enumerate(code):
            if instruction.is_load():
                loads.setdefault(instruction.memory(), []).append(i)
        place = next(p for p, list_ in loads.items()
                     if len(list_) == 2 and all((str(int(p[0]) + 4 * w), p[1]) in loads for w in (1, 2, 3)))
        first, again = loads[place]
        rest = [loads[str(int(place[0]) + 4 * w), place[1]][0] for w in (1, 2, 3)]
        self.assertTrue(any(i.is_fence("r", "r") for i in code[first:min(rest)]), "no fence behind the first look")
        self.assertTrue(any(i.is_fence("r", "r") for i in code[max(rest):again]), "no fence before the second look")
        # The head of core 0 follows the header.
        heads = [i for p, list_ in loads.items() if p[0] in ("0", "192") for i in list_]
        self.assertTrue(any(i > again for i in heads), "no second look at the head")

    def check_wait(self, toolchain, include=INCLUDE):
        """The stores of what is waited for lie behind a fence, so behind the end of the wait before, and before the
        store of the odd number by another."""
        path = self.functions(toolchain, include=include)["waiter"]
        words = self.published(path, parameters=3)
        self.check_fence(path, words)
        self.assertTrue(any(i.is_fence("w", "w") for i in path[:min(words[1:])]), "no fence behind the wait before")

    def check_fault(self, toolchain, include=INCLUDE):
        """The last store publishes what the others wrote."""
        code = self.functions(toolchain, include=include)["hangscope_fault_is"]
        fences = [i for i, instruction in enumerate(code) if instruction.is_fence("w", "w")]
        self.assertTrue(fences, "no fence")
        behind = [i for i in code[fences[-1]:] if i.is_store() and i.memory()[1] not in ("sp",)]
        self.assertEqual(len(behind), 1, f"not one store behind the fence: {behind}")

    def check_debug(self, toolchain, include=INCLUDE):
        """The slot is taken by an instruction that nothing overtakes; the order is stored behind a fence, the value before."""
        path = self.functions(toolchain, include=include)["debugger"]
        at(path, lambda i: re.match(r"amoswap\.w\.(aq|aqrl)$", i.name))
        fence = at(path, lambda i: i.is_fence("w", "w"))
        stores = [i for i, instruction in enumerate(path) if instruction.is_store() and instruction.memory()[1] != "sp"]
        self.assertEqual([i < fence for i in stores], [True, False])

    def check_anchor(self, toolchain, include=INCLUDE):
        """What is stored behind the exchange of an anchor's mark lies behind a fence: sc.w orders nothing."""
        code = self.functions(toolchain, include=include)["hangscope_new_epoch"]
        exchange = at(code, lambda i: i.name.startswith("sc.w"))
        fence = next(i for i, instruction in enumerate(code) if i > exchange and instruction.is_fence("w", "w"))
        self.assertFalse([i for i in code[exchange + 1:fence] if i.is_store()])

    def test_anchors(self):
        self.check_anchor(RV32)
        self.check_anchor(RV64)

    def test_waits(self):
        self.check_wait(RV32)
        self.check_wait(RV64)
        self.check_wait(RV32_WITHOUT_A)

    def test_faults(self):
        self.check_fault(RV32)
        self.check_fault(RV64)
        self.check_fault(RV32_WITHOUT_A)

    def test_debug_values(self):
        self.check_debug(RV32)
        self.check_debug(RV64)

    def test_rv32(self):
        self.check_atomic(RV32)

    def test_rv64(self):
        self.check_atomic(RV64)

    def test_more_parameters(self):
        self.check_atomic(RV32, parameters=6)
        self.check_atomic(RV64, parameters=6)

    def test_without_nesting(self):
        self.check_atomic(RV32, "-DHANGSCOPE_NESTING=0", nesting=False)
        self.check_atomic(RV64, "-DHANGSCOPE_NESTING=0", nesting=False)

    def test_rv32_without_atomic_instructions(self):
        """As many are masked as port/riscv.h says."""
        text = re.sub(r"\s*\n \* ", " ", (INCLUDE / "hangscope/port/riscv.h").read_text())  # a comment over lines
        stated = int(re.search(r"to its commit, (\d+) instructions", text)[1])
        self.assertEqual(self.check_masking(RV32_WITHOUT_A), stated)

    def test_rv64_without_atomic_instructions(self):
        self.assertLessEqual(self.check_masking(RV64_WITHOUT_A), 15)

    def test_raw_writers(self):
        for toolchain in (RV32_WITHOUT_A, RV64_WITHOUT_A):
            with self.subTest(target=toolchain.name):
                self.check_raw(toolchain)
        for toolchain in (RV32, RV64):  # where nothing is masked they are the others
            with self.subTest(target=toolchain.name):
                code = self.functions(toolchain, "-fno-ipa-icf")
                raw, other = ([(i.name, i.operands) for i in code[name] if i.target() is None] for name in ("raw_writer", "writer"))
                self.assertEqual(raw, other)
                self.assertGreater(len(raw), 15)

    def test_reader(self):
        self.check_reader(RV32)
        self.check_reader(RV64)

    def test_each_instruction_is_missed(self):
        """The checks above can fail: each of the instructions left out is found out."""
        atomic, masking, reader, anchor = self.check_atomic, self.check_masking, self.check_reader, self.check_anchor
        wait, fault, debug, raw = self.check_wait, self.check_fault, self.check_debug, self.check_raw
        release = "  __atomic_thread_fence(__ATOMIC_RELEASE);\n  hangscope_port_store(mark, value);"
        mutants = (
            (atomic, RV32, "port/riscv.h", "amoadd.w.aq", "amoadd.w"),
            (atomic, RV64, "port/riscv.h", "amoadd.d.aq", "amoadd.d"),
            (atomic, RV32, "port/riscv.h", "amoswap.w.aq", "amoswap.w"),
            (atomic, RV64, "port/riscv.h", "amoswap.w.aq", "amoswap.w"),
            (atomic, RV32, "port/generic.h", release, "  hangscope_port_store(mark, value);"),
            (atomic, RV64, "port/generic.h", release, "  hangscope_port_store(mark, value);"),
            (masking, RV32_WITHOUT_A, "port/generic.h", release, "  hangscope_port_store(mark, value);"),
            (masking, RV32_WITHOUT_A, "port/riscv.h", '__asm__ volatile("fence w, w" ::: "memory");', ""),
            (masking, RV64_WITHOUT_A, "port/riscv.h", '__asm__ volatile("fence w, w" ::: "memory");', ""),
            (masking, RV32_WITHOUT_A, "port/riscv.h", "csrrci %0, mstatus, 8", "csrrs %0, mstatus, zero"),
            (masking, RV32_WITHOUT_A, "target/record.h",
             "  const uint32_t ticket = hangscope_port_reserve(core->ring.head);\n",
             "  const uint32_t ticket = hangscope_port_reserve(core->ring.head);\n  hangscope_port_leave(before);\n"),
            (raw, RV32_WITHOUT_A, "port/generic.h", release, "  hangscope_port_store(mark, value);"),
            (raw, RV32_WITHOUT_A, "target/record.h", "raw ? 0 : hangscope_port_enter()", "hangscope_port_enter()"),
            (raw, RV64_WITHOUT_A, "target/record.h", "  if (!raw) hangscope_port_leave(before);", "  hangscope_port_leave(before);"),
            (atomic, RV32, "target/record.h", "  hangscope_fill(record, time, parameters);\n",
             "  while (hangscope_port_load(&record[1]) == time) {\n  }\n  hangscope_fill(record, time, parameters);\n"),
            (wait, RV32, "port/generic.h", release, "  hangscope_port_store(mark, value);"),
            (wait, RV64, "target/wait.h", "a reader looks at that last */\n  hangscope_port_stores_in_order();",
             "a reader looks at that last */"),
            (fault, RV32, "port/generic.h", release, "  hangscope_port_store(mark, value);"),
            (fault, RV64, "target/fault.h", "  hangscope_port_publish(&mailbox->fault, type);",
             "  hangscope_port_publish(&mailbox->fault, type);\n  hangscope_port_store(&detail->fault.line, from[2]);"),
            (debug, RV32, "port/generic.h", release, "  hangscope_port_store(mark, value);"),
            (debug, RV64, "port/generic.h", "__atomic_exchange_n(word, value, HANGSCOPE_PORT_ATOMIC)", "__atomic_exchange_n(word, value, __ATOMIC_RELAXED)"),
            (anchor, RV32, "target/record.h", "HANGSCOPE_MARK_TAKEN)) {\n      hangscope_port_stores_in_order();", "HANGSCOPE_MARK_TAKEN)) {"),
            (reader, RV32, "port/generic.h", "  __atomic_thread_fence(__ATOMIC_ACQUIRE);\n", ""),
            (reader, RV64, "target/control.h", "hangscope_port_load_acquire(&record[0])", "hangscope_port_load(&record[0])"),
        )
        for number, (check, toolchain, header, text, instead) in enumerate(mutants):
            with self.subTest(target=toolchain.name, header=header, text=text):
                include = self.folder / f"include{number}"
                shutil.copytree(INCLUDE, include)
                path = include / "hangscope" / header
                original = path.read_text()
                path.write_text(original.replace(text, instead))
                self.assertNotEqual(path.read_text(), original, "the mutant is the original")
                with self.assertRaises((AssertionError, StopIteration)):
                    check(toolchain, include=include)

    ASSERTS = """#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
int check(uint32_t a, uint32_t b, uint32_t c);
int check(uint32_t a, uint32_t b, uint32_t c) {
  HANGSCOPE_ASSERT(a < b, "first");
  HANGSCOPE_ASSERT(b < c, "second");
  HANGSCOPE_ASSERT_ARGUMENT(a != 3, "third", a);
  if (c == 7) HANGSCOPE_ASSERT(a == 1, "fourth"); else HANGSCOPE_ASSERT(b == 1, "fifth, of the fourth's line");
  HANGSCOPE_ASSERT(c != 9, "the last");
  return (int)(a + b + c);
}
"""

    def asserts(self, toolchain, optimise, halt, include=INCLUDE):
        """(message, line, line that is recorded) of each assert's call, by the return address, as a host looks for it."""
        source, output = self.folder / "asserts.c", self.folder / "asserts.elf"
        source.write_text(self.ASSERTS)
        subprocess.run([toolchain.compiler("c"), "-std=c11", *toolchain.flags, optimise, f"-DHANGSCOPE_HALT={halt}", "-I", str(include),
                        "-nostdlib", "-nostartfiles", "-Wl,-e,check,--no-warn-rwx-segments", str(source), "-o", str(output)], check=True)
        elf = ObjectFile(output.read_bytes())
        catalog = elf._bytes(elf.headers[elf.names.index(".hangscope.places")])
        entries = []
        for found in re.finditer(rb"catl\x01\0\0\0(....)\x03\0\0\0(....)(....)\0([^\0]*)\0[^\0]*:(\d+)\0", catalog, re.S):
            entries.append((struct.unpack("<I", found[2])[0], found[4].decode(), int(found[5])))
        listing = subprocess.run([RISCV + "objdump", "-d", "--no-show-raw-insn", "-M", "no-aliases", str(output)],
                                 check=True, capture_output=True, text=True).stdout
        code = [(int(a, 16), b, c) for a, b, c in re.findall(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$", listing, re.M)]
        said = []
        for i, (address, name, operands) in enumerate(code):
            if "<hangscope_assert_fails>" in operands and name in ("jal", "c.jal", "jalr"):
                near = max(entry for entry in entries if entry[0] <= code[i + 1][0])
                self.assertLess(code[i + 1][0] - near[0], 64)
                lines = [int(c.split(",")[-1]) for a, n, c in code if near[0] <= a < address and c.startswith("a1,") and n in ("c.li", "addi")]
                said.append((near[1], near[2], *lines))
        return sorted(said)

    def check_asserts(self, toolchain, include=INCLUDE):
        wanted = [("fifth, of the fourth's line", 8, 8), ("first", 5, 5), ("fourth", 8, 8), ("second", 6, 6), ("the last", 9, 9), ("third", 7, 7)]
        for optimise in ("-O1", "-O2", "-Os"):
            for halt in (0, 1):
                with self.subTest(toolchain=toolchain.name, optimise=optimise, halt=halt):
                    self.assertEqual(self.asserts(toolchain, optimise, halt, include), wanted)

    def test_each_assert_is_found_by_its_return_address(self):
        self.check_asserts(RV32)
        self.check_asserts(RV64)

    def test_asserts_that_share_a_call_are_seen(self):
        include = self.folder / "include"
        shutil.copytree(INCLUDE, include)
        path = include / "hangscope/target/assert.h"
        text = path.read_text().replace('      __asm__ volatile("/* assert " HANGSCOPE_TEXT(__COUNTER__) " */");', "      (void)0;")
        path.write_text(text.replace("HANGSCOPE_OPAQUE void hangscope_assert_fails", "HANGSCOPE_COLD void hangscope_assert_fails"))
        self.assertNotEqual(path.read_text(), (INCLUDE / "hangscope/target/assert.h").read_text())
        self.assertNotEqual(self.asserts(RV32, "-Os", 1, include), self.asserts(RV32, "-Os", 1))


def at_first(list_, what):
    return next(i for i, instruction in enumerate(list_) if what(instruction))


class OnArm(Case):
    """There acquire orders the load of an atomic instruction, and its store may still come late: a fence lies behind it."""

    ATOMIC = re.compile(r"(swp|stxr|strex|ldadd|stlxr)")

    def setUp(self):
        super().setUp()
        for toolchain in (AARCH64, ARMV7):
            if shutil.which(toolchain.compiler("c")) is None:
                self.skipTest(f"there is no {toolchain.compiler('c')}")

    def function(self, name, toolchain, include, *flags):
        source, output = self.folder / "code.c", self.folder / "code.o"
        source.write_text(SOURCE)
        subprocess.run([toolchain.compiler("c"), "-std=c11", *toolchain.flags, "-O2", *flags, "-I", str(include), "-c", str(source),
                        "-o", str(output)], check=True)
        listing = subprocess.run([toolchain.prefix + "objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", str(output)],
                                 check=True, capture_output=True, text=True).stdout
        return [match[1] for match in re.finditer(r"^\s*[0-9a-f]+:\s+(.*)", listing, re.M)]

    def fences(self, code, begin, end):
        return [line for line in code[begin:end] if re.match(r"dmb\s+ish\b", line)]

    def check_record(self, toolchain, *flags, include=INCLUDE):
        code = self.function("writer", toolchain, include, *flags)
        stores = {}
        for i, line in enumerate(code):
            if match := re.match(r"str(?:\.w)?\s+\w+, \[(\w+), #(\d+)\]", line):
                stores[match[1], int(match[2])] = i
        marks = [(i, base, place) for (base, place), i in stores.items() if all((base, place + 4 * w) in stores for w in (1, 2, 3))]
        self.assertEqual(len(marks), 1, code)
        mark, base, place = marks[0]
        words = [stores[base, place + 4 * w] for w in (1, 2, 3)]
        taken = max(i for i, line in enumerate(code[:min(words)]) if self.ATOMIC.match(line))
        self.assertLess(max(words), mark)
        self.assertTrue(self.fences(code, taken, min(words)), "no fence behind the mark that says busy")
        self.assertTrue(self.fences(code, max(words), mark), "no fence before the mark")

    def check_debug(self, toolchain, include=INCLUDE):
        code = self.function("debugger", toolchain, include)
        taken = next(i for i, line in enumerate(code) if re.match(r"swp", line))
        value = next(i for i, line in enumerate(code) if i > taken and re.match(r"str\s+\w+, \[", line))
        self.assertTrue(self.fences(code, taken, value), "no fence behind the order that says busy")

    def test_records(self):
        for toolchain in (AARCH64, AARCH64_LSE, ARMV7):
            for flags in ((), ("-DHANGSCOPE_NESTING=0",)):
                with self.subTest(toolchain=toolchain.name, flags=flags):
                    self.check_record(toolchain, *flags)

    def check_anchor(self, toolchain, include=INCLUDE):
        code = self.function("hangscope_new_epoch", toolchain, include)
        taken = next(i for i, line in enumerate(code) if re.match(r"cas", line))
        epoch = next(i for i, line in enumerate(code) if i > taken and re.match(r"str\s+\w+, \[", line))
        self.assertTrue(self.fences(code, taken, epoch), "no fence behind the mark that says busy")

    def test_debug_values(self):
        self.check_debug(AARCH64_LSE)

    def test_anchors(self):
        self.check_anchor(AARCH64_LSE)

    def test_each_fence_is_missed(self):
        for number, (check, header, text, instead) in enumerate((
                (self.check_record, "target/record.h", "  hangscope_port_stores_behind_atomic();\n", ""),
                (self.check_record, "port/generic.h", "  __atomic_thread_fence(__ATOMIC_RELEASE);\n  hangscope_port_store(mark", "  hangscope_port_store(mark"),
                (self.check_debug, "port/generic.h", "  hangscope_port_stores_behind_atomic();\n  return was;", "  return was;"))):
            include = self.folder / f"include{number}"
            shutil.copytree(INCLUDE, include)
            path = include / "hangscope" / header
            self.assertIn(text, path.read_text())
            path.write_text(path.read_text().replace(text, instead))
            with self.subTest(text=text), self.assertRaises(AssertionError):
                check(AARCH64_LSE, include=include)


if __name__ == "__main__":
    main()
