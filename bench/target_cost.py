"""What an event costs in instructions, loads and stores, counted, and that it does not grow.

RISC-V: `hangscope cost` counts under QEMU what the firmware of bench/target_cost executes. x86-64:
bench/host_cost steps through it. From the event's arguments in registers to the record committed; the
`ret` of the function round it is not the event's and is subtracted. What is called on the way counts.

docs/cost-table.json has the numbers that are promised. A number above it, or above a limit, fails.

    python3 bench/target_cost.py --update

writes what was counted into the table and into docs/performance.md; commit both with the change that
is worth it.

options:
  --build FOLDER   hangscope, target_cost/ and bench/host_cost are there [build/dev]
  --only WHAT      riscv or x86-64 [both]
  --update         write the table instead of comparing with it
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs/cost-table.json"
PAGE = ROOT / "docs/performance.md"
MARKS = ("<!-- cost table: bench/target_cost.py --update -->\n", "<!-- end of the cost table -->\n")
GCC = "riscv64-unknown-elf-gcc"
WHATS = ("instructions", "loads", "stores")
WHATS_SAID = {"locked": "locked instructions"}
SKIPPED = 77

# Variant -> way -> the most that is allowed, whatever the table says.
LIMITS = {
    "rv32-bare": {"recorded": {"instructions": 15, "stores": 5}},
    "rv32-safe": {"recorded": {"instructions": 20, "stores": 6}},
    "rv32-masked": {"recorded": {"instructions": 23, "stores": 6}},
    "x86-64": {"recorded": {"instructions": 26, "locked": 0}},
}
VARIANTS = {
    "rv32-bare": "RV32IMA, bare: writers do not interrupt each other, no mask",
    "rv32-safe": "RV32IMA, safe, no mask",
    "rv32-masked": "RV32IMA, safe, mask: the default",
    "rv32-masked-turns": "the same, the ring's turns included (256 records)",
    "rv32-masked-4harts": "the same on four harts",
    "rv32-masked-noamo": "RV32IMC, safe by masking interrupts, mask",
    "rv64-bare": "RV64IMA, bare",
    "rv64-safe": "RV64IMA, safe, no mask",
    "rv64-masked": "RV64IMA, safe, mask",
    "rv64-masked-4harts": "the same on four harts",
    "x86-64": "x86-64, a thread's ring, safe, mask",
}
WAYS = {
    "recorded": "recorded",
    "inlined": "recorded, inlined in a loop",
    "raw": "recorded where interrupts are off",
    "masked_out": "its class switched off",
    "frozen": "frozen",
    "floor": "floor: `rdtsc`, four stores, a published head",
}


class Wrong(Exception):
    """It cannot be counted."""


class Skip(Exception):
    """It cannot be counted here."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    if done.returncode == SKIPPED:
        raise Skip(done.stderr.strip())
    if done.returncode != 0:
        raise Wrong(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def functions_of(elf):
    """Function -> how many instructions its listing has."""
    functions, name = {}, None
    for line in run("riscv64-unknown-elf-objdump", "-d", "--no-show-raw-insn", elf).splitlines():
        if head := re.match(r"[0-9a-f]+ <(\S+)>:$", line):
            name = head[1]
            functions[name] = 0
        elif re.match(r"\s*[0-9a-f]+:\t", line):
            functions[name] += 1
    return functions


def each(number, events):
    value = number / events
    return int(value) if value == int(value) else round(value, 3)


def count_variant(build, name):
    elf = build / f"target_cost/{name}.elf"
    if not elf.exists():
        raise Wrong(f"'{elf}' was not built: cmake --build it with {GCC}")
    functions = functions_of(elf)
    ways = [way for way in ("recorded", "raw", "masked_out", "frozen") if f"emit_{way}" in functions]
    # What an event jumps to that is not recorded, or begins a turn of the ring.
    callees = ["hangscope_masked"] if "masked_out" in ways else []
    if name.endswith("turns"):
        callees.append("hangscope_turn_began")
    words = [word for way in ways for word in ("--symbol", f"emit_{way}")] + [word for callee in callees for word in ("--symbol", callee)]
    bits = name[2:4]
    harts = 4 if name.endswith("4harts") else 1
    report = json.loads(run(build / "hangscope", "cost", "--json", "--seconds", 60, "--elf", elf, *words, "--mark", "inlined", "--",
                            f"qemu-system-riscv{bits}", "-machine", "virt", "-m", "64M", "-bios", "none", "-nographic", "-monitor", "none",
                            "-serial", "none", "-smp", harts, "-kernel", elf))
    if not report["complete"]:
        raise Wrong(f"{name}: the firmware did not end")
    counted = {subject["name"]: subject for subject in report["subjects"]}
    for subject in counted.values():
        if subject["name"].startswith("emit_") and len({hart["entered"] for hart in subject["harts"]}) != 1:
            raise Wrong(f"{name}: the harts did not record equally often: {subject['harts']}")
    return {way: cost_of(name, way, ways, counted, functions) for way in (*ways, "inlined")}


def cost_of(variant, way, ways, counted, functions):
    if way == "inlined":
        return {what: each(counted["inlined"]["all"][what], counted["inlined"]["all"]["entered"]) for what in WHATS}
    own = counted[f"emit_{way}"]["all"]
    total = {what: own[what] for what in WHATS}
    total["instructions"] -= own["entered"]  # the ret, its own or that of what it jumped to
    if own["instructions"] > own["entered"] * functions[f"emit_{way}"]:
        raise Wrong(f"{variant}, {way}: more is counted than the listing has")
    if way not in ("recorded", "raw"):
        # Shared by the ways that are not recorded.
        masked = counted["hangscope_masked"]["all"]
        others = sum(counted[f"emit_{other}"]["all"]["entered"] for other in ways if other not in ("recorded", "raw"))
        if masked["entered"] != others:
            raise Wrong(f"{variant}: hangscope_masked was entered {masked['entered']} times, not {others}")
        for what in WHATS:
            total[what] += masked[what] * own["entered"] / others
    elif variant.endswith("turns"):
        for what in WHATS:
            # The events inlined in a loop begin turns, too.
            share = own["entered"] / (own["entered"] + counted["inlined"]["all"]["entered"])
            total[what] += counted["hangscope_turn_began"]["all"][what] * share
    return {what: each(total[what], own["entered"]) for what in WHATS}


def count_riscv(build):
    for tool, package in ((GCC, "gcc-riscv64-unknown-elf"), ("qemu-system-riscv32", "qemu-system-misc")):
        if shutil.which(tool) is None:
            raise Skip(f"{tool} is not installed (package {package})")
    return {name: count_variant(build, name) for name in VARIANTS if name.startswith("rv")}


def count_host(build):
    program = build / "bench/host_cost"
    if not program.exists():
        raise Skip(f"'{program}' was not built: it is for x86-64")
    with tempfile.TemporaryDirectory() as folder:
        ways = json.loads(run(program, env={"HANGSCOPE_SCOPE": f"{folder}/cost.scope"}))
    for way, cost in ways.items():
        if cost["least"] != cost["median"]:
            raise Wrong(f"x86-64, {way}: {cost['least']} instructions, and {cost['median']} of most events")
    return {"x86-64": {way: {"instructions": cost["median"], "locked": cost["locked"]} for way, cost in ways.items()}}


def too_much(counted, limits, of_what):
    """What exceeds the limits, as sentences; numbers without a limit do not."""
    said = []
    for variant, ways in counted.items():
        for way, cost in ways.items():
            for what, number in cost.items():
                limit = limits.get(variant, {}).get(way, {}).get(what)
                if limit is not None and number > limit:
                    said.append(f"{variant}, {WAYS[way]}: {number} {WHATS_SAID.get(what, what)} an event, {of_what} {limit}")
    return said


def gcc_version(compiler):
    return run(compiler, "-dumpfullversion").strip() if shutil.which(compiler) else None


def compilers():
    return {"riscv": gcc_version(GCC), "x86-64": gcc_version("g++")}


def compare(counted, table):
    said = too_much(counted, LIMITS, "the limit is")
    for part, version in compilers().items():
        committed = {name: ways for name, ways in table["costs"].items() if name.startswith("rv") == (part == "riscv")}
        mine = {name: ways for name, ways in counted.items() if name in committed}
        if mine and version.split(".")[0] != table["compilers"][part].split(".")[0]:
            print(f"{part}: the table is of GCC {table['compilers'][part]}, this is {version}: only the limits were compared")
            continue
        said += too_much(mine, committed, "the table says")
        for variant, ways in mine.items():
            for way, cost in ways.items():
                if any(cost[what] < committed[variant].get(way, cost)[what] for what in cost):
                    print(f"{variant}, {WAYS[way]}: {cost}, less than the table's {committed[variant][way]}; --update keeps it")
        missing = [name for name in mine if set(mine[name]) - set(committed[name])]
        said += [f"{name} has a way that the table has not" for name in missing]
    said += [f"{name} is not in the table" for name in counted if name not in table["costs"]]
    return said


def rendered(costs):
    lines = ["| | | instructions | loads | stores |", "|---|---|---:|---:|---:|"]
    for name, title in VARIANTS.items():
        for i, (way, cost) in enumerate(costs.get(name, {}).items()):
            numbers = " | ".join(str(cost.get(what, "")) for what in WHATS)
            lines.append(f"| {title if i == 0 else ''} | {WAYS[way]} | {numbers} |")
    return "\n".join(lines) + "\n"


def update(counted):
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {"costs": {}}
    table["about"] = "What an event costs; written by bench/target_cost.py --update, which says how it is counted."
    table["compilers"] = compilers()
    table["costs"].update(counted)
    table["costs"] = {name: table["costs"][name] for name in VARIANTS if name in table["costs"]}
    text = json.dumps({key: table[key] for key in ("about", "compilers", "costs")}, indent=1)
    TABLE.write_text(re.sub(r'\{\s+("instructions"[^}]*?)\s+\}', lambda found: "{" + re.sub(r"\s+", " ", found[1]) + "}", text) + "\n")
    before, rest = PAGE.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(before + MARKS[0] + rendered(table["costs"]) + MARKS[1] + after)
    print(f"written: {TABLE.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="target_cost.py [options]")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--only", choices=("riscv", "x86-64"))
    parser.add_argument("--update", action="store_true")
    words = parser.parse_args()
    counted = {}
    if words.only != "x86-64":
        counted.update(count_riscv(words.build))
    if words.only != "riscv":
        counted.update(count_host(words.build))
    print(rendered(counted))
    said = too_much(counted, LIMITS, "the limit is") if words.update else compare(counted, json.loads(TABLE.read_text()))
    if said:
        raise Wrong("\n  ".join(["an event costs more than it may:", *said,
                                 "If that is worth it: python3 bench/target_cost.py --update, and commit docs/."]))
    if words.update:
        update(counted)


if __name__ == "__main__":
    try:
        main()
    except Skip as skip:
        print("SKIPPED:", skip)
        sys.exit(SKIPPED)
    except Wrong as wrong:
        sys.exit(f"target_cost.py: error: {wrong}")
