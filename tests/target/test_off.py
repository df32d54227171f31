"""Switched off, hangscope leaves nothing behind: each allocated section of an object file, and what
its bytes refer to, is what the compiler makes of the same source without the calls."""
from toolchains import *

SOURCE = HERE / "instrumented.c"
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")


class Off(Case):
    def compile_calls(self, toolchain, language, level, enable):
        return self.compile(toolchain, language, SOURCE, level, *WARNINGS, "-DCALLS=1", f"-DHANGSCOPE_ENABLE={enable}")

    def check(self, toolchain):
        for language in STANDARDS:
            for level in ("-O1", "-O2", "-Os"):
                with self.subTest(language=language, level=level):
                    without = self.compile(toolchain, language, SOURCE, level, *WARNINGS, "-DCALLS=0")
                    off = self.compile_calls(toolchain, language, level, 0)
                    on = self.compile_calls(toolchain, language, level, 1)
                    self.assertGreater(sum(section[3] for section in without.allocated()), 300)
                    self.assertTrue(off.allocated() == without.allocated(), f"not the same:\n{off.allocated()}\n{without.allocated()}")
                    self.assertEqual(off.undefined(), without.undefined())
                    # Seen to tell the difference where there is one.
                    self.assertFalse(on.allocated() == without.allocated(), "nothing was recorded")

    def test_rv32(self):
        self.check(RV32)

    def test_rv32_without_atomic_instructions(self):
        self.check(RV32_WITHOUT_A)

    def test_rv64(self):
        self.check(RV64)

    def test_x86_64_linux(self):
        self.check(LINUX)

    def test_x86_64_freestanding(self):
        self.check(EXAMPLE)

    def test_one_call_left_is_seen(self):
        """What an argument does besides is done, recorded or not: the least of that is a look at volatile memory."""
        text = SOURCE.read_text()
        left = text.replace("CALL(hangscope_tick();)", "CALL(hangscope_isr_enter(*(volatile uint32_t*)&queues[0].seed);)")
        self.assertNotEqual(left, text)
        without = self.compile(RV32, "c", SOURCE, "-O2", "-DCALLS=0")
        off = self.compile(RV32, "c", left, "-O2", "-DCALLS=1", "-DHANGSCOPE_ENABLE=0")
        self.assertFalse(off.allocated() == without.allocated(), "the look is gone")


if __name__ == "__main__":
    main()
