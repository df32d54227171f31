"""What each of a watcher's features costs a target: instructions, code and data, counted, and that it
does not grow.

Instructions: on RISC-V `hangscope cost` counts under QEMU what the firmware of bench/target_cost/watch.c
executes, on x86-64 bench/watch_steps steps through it: of one call of a function that does nothing but use the
feature, less one of a function that does the same without it. Code: the bytes of that function, less the
other's; and of what the feature adds once to the program, with no feature but this one. Data: what it adds
for each core and each node, with no feature but this one, and with all.

docs/watch-cost-table.json has the numbers that are promised. A number above it, or above a limit, fails.

    python3 bench/watch_cost.py --update

writes what was counted into the table and into docs/performance.md; commit both with the change that
is worth it.

options:
  --build FOLDER   hangscope, target_cost/ and bench/watch_steps are there [build/dev]
  --update         write the table instead of comparing with it
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import sys
import tempfile

from target_cost import GCC, ROOT, SKIPPED, Skip, Wrong, compilers, each, run

TABLE = ROOT / "docs/watch-cost-table.json"
PAGE = ROOT / "docs/performance.md"
MARKS = ("<!-- watch cost table: bench/watch_cost.py --update -->\n", "<!-- end of the watch cost table -->\n")

# Use -> what it is without the feature, and in words. In the order of bench/target_cost/watch_uses.h.
USES = {
    "waypoint": ("nothing", "waypoint"),
    "heartbeat": ("nothing", "heartbeat, a pause point too"),
    "kernel": ("nothing", "kernel id"),
    "wait": ("nothing", "wait and its end"),
    "hold": ("nothing", "hold and release"),
    "assert_holds": ("condition", "assert that holds, less its condition"),
    "pause_point": ("nothing", "pause point"),
    "debug": ("nothing", "debug value"),
    "delay_off": ("nothing", "delay, none set"),
    "delay_100": ("delay_off", "delay of 100 rounds, less one of none"),
    "waypoints": ("nothing", "two waypoints, each a change"),
    "count": ("nothing", "amount of a buffer"),
    "bus_write": ("issue", "bus write, checked against three ranges, less the write"),
    "bus_off": ("issue", "bus write, the check switched off, less the write"),
    "stack_look": ("nothing", "look at a stack of which 4 bytes are free"),
    "stack_look_1024": ("stack_look", "each further KiB that is free"),
    "guards_look": ("nothing", "look at four guard words"),
}
BASELINES = ("nothing", "condition", "issue")
VARIANTS = {
    "rv32": "RV32IMA",
    "rv32-out-of-line": "out of line",
    "rv32-4harts": "four harts",
    "rv32-history": "with history",
    "rv64": "RV64IMA",
    "x86-64": "x86-64, a thread",
}
# The most that is allowed, whatever the table says.
LIMITS = {
    "rv32": {"waypoint": {"instructions": 4, "loads": 0, "stores": 1}, "delay_off": {"instructions": 3, "loads": 1, "stores": 0},
             "pause_point": {"instructions": 3, "loads": 1, "stores": 0}, "assert_holds": {"instructions": 4}},
    "rv32-4harts": {"waypoint": {"loads": 0, "stores": 1}},
    "rv32-history": {"waypoint": {"stores": 0}},  # one that changes nothing
    "rv64": {"waypoint": {"instructions": 4, "loads": 0, "stores": 1}},
}

# Feature -> what switches it on alone; where HANGSCOPE_WATCH=0 has switched all off.
FEATURES = {
    "waypoints": ("-DHANGSCOPE_WAYPOINTS=1", "waypoints, heartbeat, kernel, launch state"),
    "waits": ("-DHANGSCOPE_WAITS=1", "waits, held and provided resources"),
    "asserts": ("-DHANGSCOPE_ASSERTS=1", "asserts"),
    "pauses": ("-DHANGSCOPE_PAUSES=1", "pauses"),
    "debug": ("-DHANGSCOPE_DEBUG_RING=32", "debug ring of 32 values"),
    "delays": ("-DHANGSCOPE_DELAYS=1", "delays"),
    "bus": ("-DHANGSCOPE_BUS=1", "bus check"),
    "stacks": ("-DHANGSCOPE_STACKS=1", "painted stacks"),
    "guards": ("-DHANGSCOPE_GUARDS=4", "four guard words"),
    "all": ("-DHANGSCOPE_WATCH=1", "all of it"),
}
RV32 = (GCC, "-march=rv32ima_zicsr", "-mabi=ilp32", "-mcmodel=medany", "-ffreestanding")
RV64 = (GCC, "-march=rv64ima_zicsr", "-mabi=lp64", "-mcmodel=medany", "-ffreestanding")
LINUX = ("gcc", "-D_GNU_SOURCE", "-fno-asynchronous-unwind-tables", "-fcf-protection=none", "-fno-pic")
PROGRAM = '#define HANGSCOPE_DEFINE\n#include "hangscope/hangscope.h"\n#if HANGSCOPE_BUS\n#include "hangscope/target/bus.h"\n#endif\n'


def sizes_of(elf):
    """Symbol -> bytes."""
    found = {}
    for line in run("nm", "-S", elf).splitlines():
        words = line.split()
        if len(words) == 4:
            found[words[3]] = int(words[1], 16)
    return found


def use_costs(counted, sizes):
    costs = {}
    for use, (baseline, _) in USES.items():
        costs[use] = {what: each(counted[use][what] - counted[baseline][what], 1) for what in counted[use]}
        if baseline in BASELINES:
            costs[use]["code"] = sizes[f"use_{use}"] - sizes[f"use_{baseline}"]
    return costs


def count_riscv(build, name):
    elf = build / f"target_cost/watch-{name}.elf"
    if not elf.exists():
        raise Wrong(f"'{elf}' was not built: cmake --build it with {GCC}")
    marks = [word for mark in (*BASELINES, *USES) for word in ("--mark", mark)]
    report = json.loads(run(build / "hangscope", "cost", "--json", "--seconds", 60, "--elf", elf, *marks, "--",
                            f"qemu-system-riscv{name[2:4]}", "-machine", "virt", "-m", "64M", "-bios", "none", "-nographic", "-monitor", "none",
                            "-serial", "none", "-smp", 4 if name.endswith("4harts") else 1, "-kernel", elf))
    if not report["complete"]:
        raise Wrong(f"{name}: the firmware did not end")
    counted = {}
    for subject in report["subjects"]:
        total = subject["all"]
        counted[subject["name"]] = {what: each(total[what], total["entered"]) for what in ("instructions", "loads", "stores")}
    return use_costs(counted, sizes_of(elf))


def count_host(build):
    program = build / "bench/watch_steps"
    if not program.exists():
        raise Skip(f"'{program}' was not built: it is for x86-64")
    with tempfile.TemporaryDirectory() as folder:
        counted = json.loads(run(program, env={"HANGSCOPE_SCOPE": f"{folder}/cost.scope"}))
    sizes = {re.sub(r"^_ZL?\d+(\w+?)v$", r"\1", name): size for name, size in sizes_of(program).items()}
    return use_costs({name: {"instructions": number} for name, number in counted.items()}, sizes)


def memory_of(folder, *command):
    """(bytes that are only read, bytes that are written) of a program's one file that has hangscope."""
    source = folder / "program.c"
    output = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "program.o"
    run(*command, "-std=c11", f"-I{ROOT}/include", "-DHANGSCOPE_RING_CAPACITY=8", "-c", source, "-o", output)
    read = written = 0
    for line in run("size", "-A", output).splitlines():
        if found := re.match(r"(\.\S+)\s+(\d+)\s", line):
            if re.match(r"\.(text|rodata|srodata|data\.rel\.ro)", found[1]):
                read += int(found[2])
            elif re.match(r"\.(data|sdata|bss|sbss|tbss|tdata|noinit)", found[1]):
                written += int(found[2])
    return read, written


def feature_costs():
    """Feature -> code in a program of each kind (of all features, or it takes too long), data for each core and node."""
    kinds = {"rv32": RV32, "rv32-out-of-line": (*RV32, "-DHANGSCOPE_OUT_OF_LINE=1"), "rv64": RV64, "x86-64": LINUX}
    # So many more of them, and over it, that they end at a cache line, too.
    more = 16
    shapes = {"once": (4, 1), "core": (4 + more, 1), "node": (4, 1 + more)}
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(name)
        (folder / "program.c").write_text(PROGRAM)
        jobs = {}
        for feature, flag in {"none": "-DHANGSCOPE_WATCH=0", **{name: flag for name, (flag, _) in FEATURES.items()}}.items():
            flags = (flag,) if feature in ("none", "all") else ("-DHANGSCOPE_WATCH=0", flag)
            for kind, compiler in kinds.items():
                if feature in ("none", "all") or kind in ("rv32", "x86-64"):
                    jobs[feature, kind] = pool.submit(memory_of, folder, *compiler, "-O2", *flags)
            for shape, (cores, nodes) in shapes.items():
                jobs[feature, shape] = pool.submit(memory_of, folder, *RV32, "-O0", *flags, f"-DHANGSCOPE_CORES={cores}", f"-DHANGSCOPE_NODES={nodes}")
        size = {key: job.result() for key, job in jobs.items()}
    costs = {}
    for feature in FEATURES:
        costs[feature] = {kind: size[feature, kind][0] - size["none", kind][0] for kind in kinds if (feature, kind) in size}
        rings = size["none", "core"][1] - size["none", "once"][1]
        costs[feature]["core"] = each(size[feature, "core"][1] - size[feature, "once"][1] - rings, more)
        costs[feature]["node"] = each(size[feature, "node"][1] - size[feature, "once"][1], more)
    return costs


def too_much(counted, limits, of_what):
    return [f"{variant}, {use}: {number} of {what}, {of_what} {limits[variant][use][what]}"
            for variant, uses in counted.items() for use, cost in uses.items() for what, number in cost.items()
            if number > limits.get(variant, {}).get(use, {}).get(what, number)]


def compare(counted, table):
    said = too_much(counted, LIMITS, "the limit is")
    for part, version in compilers().items():
        if version.split(".")[0] != table["compilers"][part].split(".")[0]:
            print(f"the table is of GCC {table['compilers'][part]} for {part}, this is {version}: only the limits were compared")
            return said
    said += too_much(counted, table["costs"], "the table says")
    return said + [f"{variant}, {use} is not in the table" for variant in counted for use in counted[variant]
                   if use not in table["costs"].get(variant, {})]


def rendered(costs):
    lines = ["| instructions (loads, stores), and bytes of code where it is used | " + " | ".join(VARIANTS.values()) + " |",
             "|---|" + "---:|" * len(VARIANTS)]
    for use, (_, title) in USES.items():
        cells = []
        for variant in VARIANTS:
            cost = costs[variant][use]
            accesses = f" ({cost['loads']}, {cost['stores']})" if "loads" in cost else ""
            code = f"; {cost['code']} B" if "code" in cost else ""
            cells.append(f"{cost['instructions']}{accesses}{code}")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += ["", "| bytes, with this feature alone | code once: RV32 | out of line | RV64 | x86-64 | data: each core | each node |",
              "|---|---:|---:|---:|---:|---:|---:|"]
    columns = ("rv32", "rv32-out-of-line", "rv64", "x86-64", "core", "node")
    for feature, (_, title) in FEATURES.items():
        lines.append(f"| {title} | " + " | ".join(str(costs["features"][feature].get(what, "")) for what in columns) + " |")
    return "\n".join(lines) + "\n"


def update(costs):
    table = {"about": "What a watcher's features cost; written by bench/watch_cost.py --update, which says how it is counted.",
             "compilers": compilers(), "costs": costs}
    text = re.sub(r'\{\s+("\w[^{}]*?)\s+\}', lambda found: "{" + re.sub(r"\s+", " ", found[1]) + "}", json.dumps(table, indent=1))
    TABLE.write_text(text + "\n")
    before, rest = PAGE.read_text().split(MARKS[0])
    PAGE.write_text(before + MARKS[0] + rendered(costs) + MARKS[1] + rest.split(MARKS[1])[1])
    print(f"written: {TABLE.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="watch_cost.py [options]")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--update", action="store_true")
    words = parser.parse_args()
    for tool, package in ((GCC, "gcc-riscv64-unknown-elf"), ("qemu-system-riscv32", "qemu-system-misc")):
        if shutil.which(tool) is None:
            raise Skip(f"{tool} is not installed (package {package})")
    counted = {name: count_riscv(words.build, name) for name in VARIANTS if name.startswith("rv")}
    counted["x86-64"] = count_host(words.build)
    counted["features"] = feature_costs()
    print(rendered(counted))
    said = too_much(counted, LIMITS, "the limit is") if words.update else compare(counted, json.loads(TABLE.read_text()))
    if said:
        raise Wrong("\n  ".join(["a feature costs more than it may:", *said,
                                 "If that is worth it: python3 bench/watch_cost.py --update, and commit docs/."]))
    if words.update:
        update(counted)


if __name__ == "__main__":
    try:
        main()
    except Skip as skip:
        print("SKIPPED:", skip)
        sys.exit(SKIPPED)
    except Wrong as wrong:
        sys.exit(f"watch_cost.py: error: {wrong}")
