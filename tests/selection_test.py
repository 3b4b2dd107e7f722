#!/usr/bin/env python3
"""selection_test: every test of a GoogleTest program is selected by exactly one ctest.

    selection_test.py BUILD PROGRAM...     BUILD: a configured build folder whose programs are built
    selection_test.py --self-test

ctest starts a program once per test file with --gtest_filter (launch/cmake/PalTests.cmake). A test that no filter selects
would never run again without anyone seeing it; one that two filters select would run twice. Tests of configuration Long
may repeat others.
"""
import json
import os
import re
import subprocess
import sys


def listed(output):
    """Full names from --gtest_list_tests: a suite's line ends in a dot, its tests follow indented."""
    names, suite = [], ""
    for line in output.splitlines():
        line = line.split("#")[0].rstrip()   # "# TypeParam = ..." and "# GetParam() = ..."
        if line.startswith("  "):
            names.append(suite + line.strip())
        elif line.endswith("."):
            suite = line
    return names


def pattern(text):
    """A GoogleTest filter as a regular expression: patterns with * and ?, separated by colons; no negative part."""
    one = lambda p: "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in p)
    return re.compile("(?:" + "|".join(one(p) for p in text.split(":")) + r")\Z")


def violations(tests, filters):
    """tests: names; filters: ctest -> filter."""
    found = []
    for name, text in filters.items():
        if not any(pattern(text).match(test) for test in tests):
            found.append(f"the ctest {name} selects no test: {text}")
    for test in tests:
        by = [name for name, text in filters.items() if pattern(text).match(test)]
        if len(by) != 1:
            found.append(f"{test} is selected by " + (f"{len(by)} ctests: {', '.join(by)}" if by else "no ctest"))
    return found


def ctests(build):
    """(name, command, is long) of every ctest."""
    shown = subprocess.run(["ctest", "--show-only=json-v1", "-C", "Long"], cwd=build, capture_output=True, text=True, check=True)
    for test in json.loads(shown.stdout)["tests"]:
        labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])
        yield test["name"], test.get("command", []), "long" in labels


def self_test():
    tests = listed("Running main() from gtest_main.cc\nA.\n  x\n  y\nB/0.  # TypeParam = float\n  x\nAll/C.\n  x/0  # GetParam() = 4\n")
    assert tests == ["A.x", "A.y", "B/0.x", "All/C.x/0"], tests
    whole = {"a": "A.*", "b": "B/*.*:*/C.*"}
    assert violations(tests, whole) == []
    assert violations(tests, {"a": "A.x", "a2": "A.y", "b": "B/*.x", "c": "*/C.x/*"}) == []
    assert len(violations(tests, {"a": "A.*"})) == 2, "B and C are not selected"
    assert len(violations(tests, {**whole, "d": "*.y"})) == 1, "A.y is selected twice"
    assert len(violations(tests, {**whole, "d": "D.*"})) == 1, "d selects nothing"
    assert len(violations(tests + ["AA.x"], whole)) == 1, "A.* is not AA.x"


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        print("found what was planted")
        return 0
    build, *programs = arguments
    commands, found = list(ctests(build)), []
    for program in programs:
        listing = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
        filters = {name: command[1].removeprefix("--gtest_filter=") for name, command, is_long in commands
                   if not is_long and command and os.path.realpath(command[0]) == os.path.realpath(program)
                   and len(command) == 2 and command[1].startswith("--gtest_filter=")}
        tests = listed(listing)
        print(f"{os.path.basename(program)}: {len(tests)} tests in {len(filters)} ctests")
        found += violations(tests, filters) if tests else [f"{program} lists no test"]
    print("\n".join(found) or "every test is selected once")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
