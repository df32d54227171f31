"""The same few programs (zoo/builds.cc) in every way that a program is built: by CMake those of the C++ compiler at hand, the
others when they are needed."""
from zoo_cases import DEADLOCK, LOST, SPIN

C = ["-x", "c", "-pthread"]
# name -> what CMake has built, or (compiler, options)
BUILDS = {
    "O0": "zoo_builds_O0",
    "O1": "zoo_builds_O1",
    "O3": "zoo_builds_O3",
    "Os": "zoo_builds_Os",
    "no PIE": "zoo_builds_no_pie",
    "static": "zoo_builds_static",
    "static PIE": "zoo_builds_static_pie",
    "stripped": "zoo_builds_stripped",
    "static, stripped": "zoo_builds_static_stripped",
    "no unwind tables": "zoo_builds_no_tables",
    "no unwind tables, frame pointers": "zoo_builds_no_tables_frames",
    "LTO": "zoo_builds_lto",
    "musl": ("musl-gcc", *C, "-O1"),
    "musl, static": ("musl-gcc", *C, "-O1", "-static"),
    "32 bits, static": ("i686-linux-gnu-gcc", *C, "-O1", "-static"),
    "clang O0": ("clang", *C, "-O0"),
    "clang O2": ("clang", *C, "-O2"),
}
NAMELESS = ("stripped", "static, stripped")


def case(what, how, *words, **more):
    """What a case of this program, built so, begins with, and its options."""
    built = BUILDS[how]
    options = dict(more)
    if isinstance(built, str):
        command = f"{built} {what}"
    else:
        command, options["build"] = what, ("builds.cc", *built)
    return (f"{how}, {what}", command, *words, options)


def names(how, text):
    return "left right" if how in NAMELESS and "left" in text else "" if how in NAMELESS else text


HANGS = [
    *[case("abba", how, DEADLOCK + ", 2 ", names(how, "lock_a lock_b TakeBoth left right")) for how in BUILDS],
    *[case("spin", how, SPIN, names(how, "ready_flag WaitForFlag"), cpu=True)
      for how in ("O3", "stripped", "static, stripped", "no unwind tables", "LTO", "musl", "32 bits, static", "clang O2")],
    *[case("cond-lost", how, LOST, names(how, "not_empty WaitForWork")) for how in ("static", "stripped", "musl, static", "32 bits, static", "clang O2")],
    *[case("sem-lost", how, LOST, names(how, "items WaitForItem")) for how in ("O3", "musl", "static PIE")],
    *[case("own-pipe", how, "no writer", names(how, "pipe ReadOwnPipe")) for how in ("static, stripped", "musl, static", "32 bits, static", "clang O0")],
    *[case("joined", how, DEADLOCK + ", 2 ", names(how, "lock_a JoinWithLock thread")) for how in ("O3", "static", "musl", "musl, static")],
]

CONTROLS = [
    *[case("pool", how) for how in BUILDS],
    *[case("contended", how, cpu=True) for how in ("O3", "static, stripped", "no unwind tables", "LTO", "musl", "musl, static", "32 bits, static", "clang O2")],
    *[case("compute", how, cpu=True) for how in ("O0", "O3", "static, stripped", "LTO", "musl", "32 bits, static", "clang O2")],
    *[case("prime", how, cpu=True) for how in ("O1", "O3", "no unwind tables", "musl, static", "32 bits, static", "clang O2")],
    *[case("held", how) for how in ("stripped", "static PIE", "musl", "32 bits, static", "no PIE")],
    *[case("ticker", how, restless=True) for how in ("static", "musl, static", "32 bits, static", "no unwind tables, frame pointers")],
]
