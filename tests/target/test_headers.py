"""Each public header stands alone, in every language and on every target it is for, and asks for
nothing that a freestanding program does not have."""
import re

from toolchains import *

STRICT = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-pedantic", "-Werror", "-O2")
# Without object code: it takes the compiler most of its time, and most warnings come before.
ONLY_READ = "-fsyntax-only"
# The port's own name for a clock that the test does not have; and the compiler's own arithmetic.
OWN = re.compile(r"hangscope_|example_timer_wraps$|__aeabi_(?!mem)|_GLOBAL_OFFSET_TABLE_$|DW\.ref\.|__gxx_personality_v0$")


def headers():
    return sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.glob("hangscope/**/*.h"))


DEFINE = "#define HANGSCOPE_DEFINE\n"


class Headers(Case):
    def compile_includes(self, toolchain, language, included, *flags, define=DEFINE):
        """Of a file that includes the headers only, each twice."""
        with self.subTest(target=toolchain.name, headers=included, language=language, define=define, flags=flags):
            includes = "".join(f'#include "{header}"\n' * 2 for header in included)
            made = self.compile(toolchain, language, define + includes + "extern int used;\nint used = 1;\n", *STRICT, *flags)
            if made is not None and "-ffreestanding" in toolchain.flags:
                self.assertEqual([name for name in made.undefined() if not OWN.match(name)], [])

    def check_all(self, toolchain, *others, flags=(), languages=STANDARDS):
        """All but the ports, of which a target has one: each alone, as each of the program's files includes it (with flags,
        the other has it all), and as the one does that defines what there is once. What is then made of the definitions,
        of all of them in one file: most headers have most of them."""
        included = [name for name in headers() if "/port/" not in name and (toolchain is LINUX or not name.endswith("target/linux.h"))]
        included += others
        for language in languages:
            for header in included:
                if not flags:
                    self.compile_includes(toolchain, language, [header], define="")
                self.compile_includes(toolchain, language, [header], ONLY_READ, *flags)
            self.compile_includes(toolchain, language, included, *flags)

    def test_there_are_headers_for_all_words(self):
        self.assertGreater(len(headers()), 15)

    def test_rv32(self):
        self.check_all(RV32, "hangscope/port/riscv.h", "hangscope/port/choose.h")

    def test_rv32_without_atomic_instructions(self):
        self.check_all(RV32_WITHOUT_A, "hangscope/port/riscv.h", "hangscope/port/choose.h")

    def test_rv64(self):
        self.check_all(RV64, "hangscope/port/riscv.h", "hangscope/port/choose.h")

    def test_linux(self):
        self.check_all(LINUX, "hangscope/port/linux.h", "hangscope/port/choose.h")

    def test_cortex_m(self):
        for toolchain in (CORTEX_M0, CORTEX_M3, CORTEX_M33):
            if shutil.which(toolchain.compiler("c")) is None:
                self.skipTest(f"there is no {toolchain.compiler('c')}")
            self.check_all(toolchain, "hangscope/port/cortex_m.h", "hangscope/port/choose.h", languages=["c"])
            with self.subTest(target=toolchain.name, header="freertos_trace.h"):
                self.compile(toolchain, "c", HERE / "porting/freertos.c", "-Wall", "-Wextra", "-Werror", "-O2", "-DHANGSCOPE_TASKS=3",
                             *(f"-I{HERE.parent.parent / 'examples' / folder}" for folder in ("common", "porting")))

    def test_example_port(self):
        self.check_all(EXAMPLE, "hangscope/port/example.h", "hangscope/port/generic.h", "hangscope/port/choose.h")

    def test_choices(self):
        """What config.h offers, as far as it changes which lines are compiled; on a device without atomic instructions and on
        one with them, to the object code."""
        choices = (("-DHANGSCOPE_ENABLE=0",), ("-DHANGSCOPE_NESTING=0",), ("-DHANGSCOPE_MASK=0",), ("-DHANGSCOPE_NAMES=1",),
                   ("-DHANGSCOPE_TASKS=3", "-DHANGSCOPE_PARAMETERS=4"), ("-DHANGSCOPE_NOINIT=1",), ("-DHANGSCOPE_CORES=5",),
                   ("-DHANGSCOPE_PARAMETERS=6", "-DHANGSCOPE_RING_CAPACITY=8"),
                   ("-DHANGSCOPE_PARAMETERS=14", "-DHANGSCOPE_RING_CAPACITY=65536"),
                   ("-DHANGSCOPE_NAMES=1", "-DHANGSCOPE_ENABLE=0"), ("-DHANGSCOPE_WATCH=0",), ("-DHANGSCOPE_OUT_OF_LINE=1",),
                   ("-DHANGSCOPE_WAIT_FRAMES=0", "-DHANGSCOPE_TASKS=3"), ("-DHANGSCOPE_CORES=5", "-DHANGSCOPE_TASKS=3"),
                   ("-DHANGSCOPE_HALT=0", "-DHANGSCOPE_CORES=4", "-DHANGSCOPE_NODES=4", "-DHANGSCOPE_DEBUG_RING=1", "-DHANGSCOPE_GUARDS=1"))
        for toolchain, language, how in ((RV32, "c", ()), (RV32_WITHOUT_A, "c++", ()), (RV64, "c", (ONLY_READ,)), (LINUX, "c++", (ONLY_READ,))):
            for flags in choices:
                if "-DHANGSCOPE_NOINIT=1" in flags and toolchain is LINUX:
                    continue  # a process has a file
                self.compile_includes(toolchain, language, ["hangscope/hangscope.h"], *how, *flags)

    def test_types_that_a_kernel_has_of_its_own(self):
        """Other ones than the compiler's <stdint.h> has, which may then not be included."""
        types = self.folder / "own_types.h"
        types.write_text("".join(f"typedef unsigned {c} uint{bits}_t;\ntypedef signed {c} int{bits}_t;\n"
                                 for c, bits in (("char", 8), ("short", 16), ("int", 32), ("long long", 64))) +
                         "typedef unsigned int uintptr_t;\ntypedef int intptr_t;\n")
        text = f"""#include "{types}"
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#ifdef _STDINT_H
#error "the compiler's types are there, too"
#endif
void all(uint32_t number);
void all(uint32_t number) {{
  hangscope_init();
  hangscope_task_create(number, 1);
  HANGSCOPE_ASSERT(number < 3, "small");
}}
"""
        for toolchain in (RV32, RV32_WITHOUT_A):
            for enable in (0, 1):
                self.compile(toolchain, "c", text, *STRICT, "-O0", f'-DHANGSCOPE_STDINT="{types}"', f"-DHANGSCOPE_ENABLE={enable}",
                             "-DHANGSCOPE_TASKS=3")

    def test_former_names_are_accepted(self):
        text = """#include "hangscope/target/config.h"
#if HANGSCOPE_HOLD_SLOTS != 3 || HANGSCOPE_PROVIDE_SLOTS != 7
#error "the former name was not taken"
#endif
"""
        self.compile(RV32, "c", text, *STRICT, "-DHANGSCOPE_HOLDS=3", "-DHANGSCOPE_PROVIDES_MOST=7")

    def test_each_feature_of_the_watcher(self):
        """Off while the others are on, and on while they are off; the one on a device, the other on Linux."""
        for name in ("WAYPOINTS", "WAITS", "ASSERTS", "PAUSES", "DEBUG_RING", "DELAYS", "BUS", "STACKS", "GUARDS"):
            size = {"DEBUG_RING": 8, "GUARDS": 2}.get(name, 1)
            for toolchain, language, flags in ((RV32_WITHOUT_A, "c", (f"-DHANGSCOPE_{name}=0",)),
                                               (LINUX, "c++", (ONLY_READ, "-DHANGSCOPE_WATCH=0", f"-DHANGSCOPE_{name}={size}", "-DHANGSCOPE_OUT_OF_LINE=1"))):
                self.compile_includes(toolchain, language, ["hangscope/hangscope.h"], *flags)

    def test_every_header_without_hangscope(self):
        self.check_all(RV32, flags=("-DHANGSCOPE_ENABLE=0",))
        self.check_all(LINUX, flags=("-DHANGSCOPE_ENABLE=0",))

    def test_calls_compile_whether_enabled_or_not(self):
        """With results that nobody looks at."""
        text = """#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
void all(void);
void all(void) {
  struct hangscope_event event;
  hangscope_init();
  hangscope_set_mask(HANGSCOPE_CLASS_TASK);
  if (hangscope_get(0, 0, &event) != HANGSCOPE_OK) hangscope_freeze();
  hangscope_count(0) > 3 ? hangscope_clear() : hangscope_freeze_after(hangscope_refusals(0));
  hangscope_task_yield();
  hangscope_task_switch(1, (uint32_t)hangscope_overwrites(0));
  hangscope_tick();
"""
        for toolchain in (RV32, RV64, LINUX):
            path = "  (void)hangscope_scope_path();\n" if toolchain is LINUX else ""
            for language in STANDARDS:
                for enable in (0, 1):
                    with self.subTest(toolchain=toolchain.name, language=language, enable=enable):
                        self.compile(toolchain, language, text + path + "}\n", *STRICT, "-O0", f"-DHANGSCOPE_ENABLE={enable}")

    def test_the_example_of_the_documentation(self):
        page = (INCLUDE.parent / "docs/watching.md").read_text()
        example, = re.findall(r"^```c\n(.*?)^```$", page, re.S | re.M)
        prototypes = "".join(line[:-2] + ";\n" for line in re.findall(r"^void \w+\([^)]*\) \{", example, re.M))
        for toolchain in (RV32, LINUX):
            for language in STANDARDS:
                for flags in ((), ("-DHANGSCOPE_ENABLE=0",), ("-DHANGSCOPE_OUT_OF_LINE=1", "-DHANGSCOPE_CORES=2")):
                    with self.subTest(target=toolchain.name, language=language, flags=flags):
                        made = self.compile(toolchain, language, prototypes + example, *STRICT, "-O0", *flags)
                        self.assertTrue(any("start" in name for name, *_ in made.symbols()))

    def test_every_call_of_the_documentation_is_there(self):
        """And each call that a program makes is in the table."""
        page = (INCLUDE.parent / "docs/watching.md").read_text()
        headers = "".join((INCLUDE / f"hangscope/target/{name}.h").read_text() for name in
                          ("waypoint", "wait", "assert", "pause", "debug", "stack", "guard", "linux"))
        table = page[page.index("| | what it says"):page.index("Names of resources")]
        named = set(re.findall(r"`(HANGSCOPE_[A-Z_]+|hangscope_[a-z_]+)\(", table))
        self.assertGreater(len(named), 18)
        self.assertEqual({name for name in named if not re.search(rf"\b{name}\(", headers)}, set())
        macros = {name for name in re.findall(r"^#define (HANGSCOPE_[A-Z_]+)\(", headers, re.M) if not name.endswith(("_OF", "_WORD"))}
        for name in macros:
            with self.subTest(macro=name):
                short = re.sub(r".*(_NAMED|_FOR|_ARGUMENT|_NO_MORE)$", r"`\1(", name)
                self.assertTrue(f"`{name}(" in table or (short in table or short.rstrip("(") + "`" in table))

    def test_writers_of_wide_records_call_nothing(self):
        for toolchain in (RV32, RV64):
            for parameters in (2, 6, 14):
                for optimise in ("-O1", "-O2", "-Os"):
                    for language in STANDARDS:
                        with self.subTest(toolchain=toolchain.name, parameters=parameters, optimise=optimise, language=language):
                            made = self.compile(toolchain, language, "#define HANGSCOPE_DEFINE\n#include \"hangscope/target/kernel_events.h\"\n"
                                                "void all(void);\nvoid all(void) { hangscope_task_switch(1, 2); hangscope_task_yield(); }\n",
                                                *STRICT, optimise, f"-DHANGSCOPE_PARAMETERS={parameters}")
                            self.assertEqual([name for name in made.undefined() if not OWN.match(name)], [])

    def test_a_header_with_a_fault_is_seen(self):
        fault = self.folder / "fault.h"
        for text in ("static int unused;", "#include <string.h>", "static inline short f(int l) { short s = l; return s; }"):
            fault.write_text(text + "\n")
            with self.subTest(text=text), self.assertRaises(AssertionError):
                self.compile(RV32, "c", f'#include "{fault}"\n', *STRICT)

    def test_a_call_of_libc_is_seen(self):
        made = self.compile(RV32, "c", "struct s { char c[999]; };\nvoid f(struct s*, const struct s*);\n"
                            "void f(struct s* a, const struct s* b) { *a = *b; }\n", *STRICT)
        self.assertEqual([name for name in made.undefined() if not OWN.match(name)], ["memcpy"])


if __name__ == "__main__":
    main()
