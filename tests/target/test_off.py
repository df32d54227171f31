"""Switched off, hangscope leaves nothing behind: each allocated section of an object file, and what
its bytes refer to, is what the compiler makes of the same source without the calls."""
import re

from toolchains import *

SOURCE = HERE / "instrumented.c"
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
WATCHED = HERE / "watched.c"
# Of the features with calls in there: the bit, what switches them off, and what else must be gone then.
FEATURES = (
    (1 << 0, "WAYPOINTS", ()),
    (1 << 1, "WAITS", ("hangscope_wait_begins", "hangscope_wait_ends", "hangscope_claim_in", "hangscope_unclaim_in")),
    (1 << 2, "ASSERTS", ("hangscope_assert_fails", "hangscope_hardware_fault", "hangscope_fault_is_pending")),
    (1 << 3, "PAUSES", ("hangscope_pause_here", "hangscope_pause_point")),
    (1 << 4, "DEBUG_RING", ("hangscope_debug",)),
    (1 << 7, "STACKS", ("hangscope_stack_paint", "hangscope_stack_is", "hangscope_stack_look", "hangscope_stacks", "hangscope_own_stack",
                        "hangscope_stack_paint_thread")),
    # Beside its own calls it records those of waypoints and waits.
    (1 << 9, "HISTORY", ("hangscope_counts", "hangscope_bus_begins", "hangscope_bus_ends", "hangscope_waypoint_is")),
    (1 << 8, "GUARDS", ("hangscope_guard", "hangscope_guard_null", "hangscope_guards_look", "hangscope_guard_table")),
)
ALL = sum(bit for bit, _, _ in FEATURES)
# 1 would do for most; these are sizes.
SIZES = {"DEBUG_RING": 32, "GUARDS": 4}


class Off(Case):
    def compile_calls(self, toolchain, language, level, enable):
        return self.compile(toolchain, language, SOURCE, level, *WARNINGS, "-DCALLS=1", f"-DHANGSCOPE_ENABLE={enable}")

    def check(self, toolchain):
        for language in STANDARDS:
            for level in ("-O1", "-O2", "-Os"):
                with self.subTest(language=language, level=level):
                    without = self.compile(toolchain, language, SOURCE, level, *WARNINGS, "-DCALLS=0")
                    off = self.compile_calls(toolchain, language, level, 0)
                    self.assertGreater(sum(section[3] for section in without.allocated()), 300)
                    self.assertTrue(off.allocated() == without.allocated(), f"not the same:\n{off.allocated()}\n{without.allocated()}")
                    self.assertEqual(off.undefined(), without.undefined())
            # Seen to tell the difference where there is one.
            on = self.compile_calls(toolchain, language, level, 1)
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

    def watched(self, toolchain, language, calls, *flags):
        return self.compile(toolchain, language, WATCHED, "-O2", *WARNINGS, f"-DCALLS={calls}", *flags)

    def check_same(self, one, other, what):
        self.assertTrue(one.allocated() == other.allocated(), f"{what}: not the same:\n{one.allocated()}\n{other.allocated()}")
        self.assertEqual(one.undefined(), other.undefined())

    def defined(self, toolchain, language, *flags):
        """What the file that defines it all has; C++ writes the names of what is static in its own way."""
        made = self.watched(toolchain, language, ALL, "-O0", "-DDEFINES", "-DHANGSCOPE_OUT_OF_LINE=1", *flags)
        return {re.sub(r"^_ZL\d+", "", name) for name, *_ in made.symbols()}

    def check_features(self, toolchain, language):
        nothing = "-DHANGSCOPE_WATCH=0"
        self.check_same(self.watched(toolchain, language, ALL, nothing), self.watched(toolchain, language, 0, nothing), "all off")
        for bit, name, gone in FEATURES:
            with self.subTest(feature=name):
                off, on = f"-DHANGSCOPE_{name}=0", f"-DHANGSCOPE_{name}={SIZES.get(name, 1)}"
                # Off by itself, its calls leave nothing in the midst of the others'.
                self.check_same(self.watched(toolchain, language, ALL, off), self.watched(toolchain, language, ALL - bit, off), "off")
                # On by itself, the others' calls leave nothing round its own.
                alone = self.watched(toolchain, language, bit, nothing, on)
                self.check_same(self.watched(toolchain, language, ALL, nothing, on), alone, "on alone")
                # Where it is on, its calls are seen.
                everything = self.watched(toolchain, language, ALL, on)
                self.assertFalse(self.watched(toolchain, language, ALL - bit, on).allocated() == everything.allocated(), "its calls do nothing")
                self.assertEqual(self.defined(toolchain, language, off) & set(gone), set())
        wanted = {symbol for *_, gone in FEATURES for symbol in gone}
        missing = {"hangscope_own_stack", "hangscope_stack_paint_thread"} if toolchain is not LINUX else {"hangscope_stacks"}
        self.assertEqual(wanted - self.defined(toolchain, language, "-DHANGSCOPE_HISTORY=1"), missing, "names that would be gone in any case")

    def check_history(self, toolchain, language):
        """Waypoints and waits are records, too, and nothing but stores into a mailbox where the history is off."""
        for bit, name in ((1 << 0, "WAYPOINTS"), (1 << 1, "WAITS")):
            with self.subTest(feature=name):
                off = self.watched(toolchain, language, bit, "-DHANGSCOPE_HISTORY=0")
                self.check_same(self.watched(toolchain, language, bit), off, "without the option")
                on = self.watched(toolchain, language, bit, "-DHANGSCOPE_HISTORY=1")
                # Where a record goes that is masked out.
                self.assertEqual([("hangscope_masked" in one.undefined()) for one in (on, off)], [True, False])
                # What is not built in has no history.
                without = (f"-DHANGSCOPE_{name}=0", "-DHANGSCOPE_HISTORY=1")
                self.check_same(self.watched(toolchain, language, bit, *without), self.watched(toolchain, language, 0, *without), "not built in")

    def test_the_history_rv32(self):
        self.check_history(RV32, "c")

    def test_the_history_linux(self):
        self.check_history(LINUX, "c++")

    def test_each_feature_by_itself_rv32(self):
        self.check_features(RV32, "c")

    def test_each_feature_by_itself_linux(self):
        self.check_features(LINUX, "c++")

    LOOK = "*(volatile uint32_t*)&queues[0].seed"

    def check_arguments(self, call, same):
        text = SOURCE.read_text()
        left = text.replace("CALL(hangscope_tick();)", f"CALL({call};)")
        self.assertNotEqual(left, text)
        without = self.compile(RV32, "c", SOURCE, "-O2", *WARNINGS, "-DCALLS=0")
        off = self.compile(RV32, "c", left, "-O2", *WARNINGS, "-DCALLS=1", "-DHANGSCOPE_ENABLE=0")
        self.assertEqual(off.allocated() == without.allocated(), same, call)

    def test_arguments_are_not_evaluated(self):
        """Not even a look at volatile memory, the least that an argument can do besides."""
        for call in (f"hangscope_isr_enter({self.LOOK})", f"hangscope_task_waits(0, 1, HANGSCOPE_RESOURCE_TIME, {self.LOOK}, 0)",
                     f"HANGSCOPE_EMIT(net_sent(1, {self.LOOK}, 0, 0))", f"hangscope_holder_is({self.LOOK}, 1)", "HANGSCOPE_EMIT(net_down())",
                     f"hangscope_hardware_fault({self.LOOK}, 0, 0)", f"hangscope_delay_set({self.LOOK}, HANGSCOPE_DELAY_READ, 1, 1)"):
            with self.subTest(call=call):
                self.check_arguments(call, True)

    def test_one_call_left_is_seen(self):
        """A plain function is called with its arguments."""
        self.check_arguments(f"hangscope_net_sent(1, {self.LOOK}, 0, 0)", False)


if __name__ == "__main__":
    main()
