"""A linker that collects unused sections leaves the texts of the code that it leaves, at no cost in code."""
import os
import re

from toolchains import *

EXAMPLES = pathlib.Path(os.environ.get("FIRMWARE", ""))
PLACE = re.compile(rb"catl\x01\0\0\0....([\x02-\x03])\0\0\0(....)....([^\0]*)\0([^\0]*)\0([^\0]*:\d+)\0", re.S)
SOURCE = """
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"
#include "hangscope/target/mark.h"
int used(int a) {
  HANGSCOPE_WAYPOINT_NAMED("USED", "of what is called");
  HANGSCOPE_ASSERT(a != 1, "is kept");
  HANGSCOPE_MARK_BEGIN(kept);
  a *= 3;
  HANGSCOPE_MARK_END(kept);
  return a;
}
int unused(int a) {
  HANGSCOPE_WAYPOINT_NAMED("GONE", "of what nobody calls");
  HANGSCOPE_ASSERT(a != 1, "is gone");
  HANGSCOPE_MARK_BEGIN(gone);
  a *= 5;
  HANGSCOPE_MARK_END(gone);
  return a;
}
static inline __attribute__((always_inline)) void step(int i) { HANGSCOPE_ASSERT(i != 9, "in each copy"); }
#ifdef __cplusplus
inline int of_many_files(int a) { HANGSCOPE_ASSERT(a != 2, "in a function of many files"); return a; }
#endif
int main(void) {
  for (int i = 0; i < 4; i++) step(used(i));
  step(2);
#ifdef __cplusplus
  static int (*volatile called)(int) = of_many_files;
  called(1);
#endif
  return 0;
}
"""


def section(elf, name):
    return elf._bytes(elf.headers[elf.names.index(name)]) if name in elf.names else b""


def places(elf):
    """(kind, name, text, where) of each waypoint and assert, and their addresses."""
    found = [(m[1][0], m[3].decode(), m[4].decode(), m[5].decode(), struct.unpack("<I", m[2])[0])
             for m in PLACE.finditer(section(elf, ".hangscope.places"))]
    return {f[:4] for f in found}, [f[4] for f in found]


class GcSections(Case):
    def link(self, toolchain, language, *flags):
        source, output = self.folder / "source", self.folder / "output.elf"
        source.write_text(SOURCE)
        subprocess.run([toolchain.compiler(language), "-x", language, STANDARDS[language], *toolchain.flags, "-O2", "-I", str(INCLUDE),
                        "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections,--no-warn-rwx-segments,--fatal-warnings", *flags, "-o", str(output), str(source)], check=True)
        return ObjectFile(output.read_bytes())

    def check(self, toolchain, language):
        flags = () if toolchain is LINUX else ("-nostdlib", "-nostartfiles", "-Wl,-e,main")
        kept = self.link(toolchain, language, *flags)
        texts, addresses = places(kept)
        self.assertEqual({(name, text) for _, name, text, _ in texts},
                         {("USED", "of what is called"), ("", "is kept"), ("", "in each copy"),
                          *({("", "in a function of many files")} if language == "c++" else ())})
        self.assertNotIn(0, addresses)
        self.assertGreaterEqual(len(addresses), len(texts))
        marks = section(kept, ".hangscope_marks")
        self.assertIn(b"kept\0", marks)
        self.assertNotIn(b"gone\0", marks)
        without = self.link(toolchain, language, *flags, "-DHANGSCOPE_LINK_ORDER=0")
        self.assertEqual(section(kept, ".text"), section(without, ".text"))
        self.assertEqual(places(without)[0], set(), "this linker keeps them by itself, and this proves nothing")

    def test_rv32(self):
        for language in STANDARDS:
            with self.subTest(language=language):
                self.check(RV32, language)

    def test_x86_64(self):
        for language in STANDARDS:
            with self.subTest(language=language):
                self.check(LINUX, language)

    def test_every_example(self):
        """All that its own program has of places, and of events, is there."""
        linked = sorted(EXAMPLES.glob("gc-*.elf")) if EXAMPLES.name else []
        if not linked:
            self.skipTest("$FIRMWARE has no firmware")
        found = 0
        for path in linked:
            with self.subTest(path=path.name):
                plain, collected = (ObjectFile(p.read_bytes()) for p in (path.with_name("rv32" + path.name[2:]), path))
                self.assertEqual(section(collected, ".hangscope.catalog"), section(plain, ".hangscope.catalog"))
                called = {name for name, number, _, info in collected.symbols() if info & 15 == 2 and number}
                gone = {name for name, number, _, info in plain.symbols() if info & 15 == 2 and number} - called
                if not gone & {name for name in gone if not name.startswith("hangscope_")}:
                    self.assertEqual(places(collected)[0], places(plain)[0])
                self.assertLessEqual(places(collected)[0], places(plain)[0])
                self.assertNotIn(0, places(collected)[1])
                self.assertLess(len(section(collected, ".text")), len(section(plain, ".text")) + 1)
                found += len(places(collected)[0])
        self.assertGreater(found, 30)


if __name__ == "__main__":
    main()
