#!/usr/bin/env python3
"""tidy: runs clang-tidy on C++ sources with the flags they are compiled with. Used by launch/check.

    tidy.py BUILD JOBS FILE...     FILE: sources by their path from the root; a file that is not compiled is left out

CMake compiles several sources as one (unity), with a precompiled header and with g++'s own flags: here every source
gets an entry of its own in a database that clang can read.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

VERSION = "14"
DROP = re.compile(r"-Winvalid-pch|-fno-trapping-math|-Wno-restrict|-mprefer-vector-width=.*")


def database(build):
    """source -> (folder, arguments)"""
    with open(f"{build}/compile_commands.json", encoding="utf-8") as file:
        entries = json.load(file)
    found = {}
    for entry in entries:
        arguments = shlex.split(entry["command"])
        if os.path.basename(arguments[0]) == "ccache":
            arguments = arguments[1:]
        if not entry["file"].endswith((".cpp", ".cxx")) or "nvcc" in arguments[0]:
            continue
        kept, skip = [], 0
        for i, argument in enumerate(arguments):
            if skip:
                skip -= 1
            elif argument in ("-o", "-c") or argument == "-include" and "cmake_pch" in arguments[i + 1]:
                skip = 1
            elif not DROP.fullmatch(argument):
                kept.append(argument)
        sources = [entry["file"]]
        if "/Unity/unity_" in entry["file"]:
            with open(entry["file"], encoding="utf-8") as unity:
                sources = re.findall(r'^#include "([^"]+)"', unity.read(), re.M)
        for source in sources:
            found.setdefault(os.path.realpath(source), (entry["directory"], kept))
    return found


def main(arguments):
    build, jobs, *files = arguments
    tidy = shutil.which(f"clang-tidy-{VERSION}") or shutil.which("clang-tidy")
    known = database(build)
    chosen = [os.path.realpath(f) for f in files if os.path.realpath(f) in known]
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/compile_commands.json", "w", encoding="utf-8") as out:
            json.dump([{"directory": known[f][0], "file": f, "arguments": [*known[f][1], "-c", f]} for f in chosen],
                      out)

        def run(file):
            done = subprocess.run([tidy, "-p", folder, "--quiet", file], capture_output=True, text=True, check=False)
            return file, done.returncode, done.stdout

        bad = 0
        with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
            for number, (file, code, text) in enumerate(pool.map(run, chosen), 1):
                if code:
                    bad += 1
                    print(text.strip())
                print(f"  [{number}/{len(chosen)}] {os.path.relpath(file)}", file=sys.stderr, flush=True)
    print(f"clang-tidy: {len(chosen)} sources, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
