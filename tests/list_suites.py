#!/usr/bin/env python3
"""usage: tests/list_suites.py FILE NAME TIMEOUT RESULTS OUT

Writes the tests of a program of GoogleTest's for ctest to include: one for each suite, which leaves its results in
RESULTS/NAME.SUITE.xml. Of a suite named ...Long each case is one, labelled "long" instead of "unit".
"""
import pathlib
import subprocess
import sys

LONG_S = 900
# Their programs spin, and must be given a processor while they are looked at.
SPINNING = ("Steps", "Stops", "Looks", "ThreadTwin")


def cases(program):
    """[(suite, [case...])...]"""
    listed = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = []
    for line in listed.splitlines():
        name = line.split("#")[0].strip()  # behind it stands a parameter
        if line.startswith("  "):
            found[-1][1].append(name)
        elif name.endswith("."):
            found.append((name[:-1], []))
    return found


def main():
    program, name, timeout, results, out = sys.argv[1:]
    lines = []

    def add(what, test_filter, labels, seconds, cost):
        processors = 4 if what in SPINNING else 2
        result = pathlib.Path(results) / (f"{name}.{what}".replace("/", "_") + ".xml")
        test = f"[=[{name}.{what}]=]"
        lines.append(f"add_test({test} [=[{program}]=] [=[--gtest_filter={test_filter}]=] [=[--gtest_output=xml:{result}]=])")
        lines.append(f'set_tests_properties({test} PROPERTIES LABELS {labels} TIMEOUT {seconds} PROCESSORS {processors} COST {cost})')

    for suite, names in cases(program):
        if suite.endswith("Long"):
            for case in names:
                add(f"{suite}.{case}", f"{suite}.{case}", "long", LONG_S, 1)
        else:
            add(suite, f"{suite}.*", "unit", timeout, len(names))  # those of many cases take longest, and begin first
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


main()
