#!/usr/bin/env python3
"""layering_test: the rooms of the design, held by the sources and by the linker.

    layering_test.py ROOT [ROOM=LIBRARY_OR_OBJECTS ...]    checks a tree; exit 1 and a line for each violation
    layering_test.py --self-test                           plants every violation and demands that it is found

Edges go one way, kernels <- core <- dist <- launch. A room may be given several files, separated by commas.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOMS = ["kernels", "core", "dist", "launch"]
TOP = set(ROOMS) | {"configs", "tests", "CMakeLists.txt", "README.md", "LICENSE"}
SOURCE = re.compile(r".*\.(h|cpp|cu|cuh)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)')
HDF5_FILES = {"core/io/h5.cpp", "core/io/h5_foreign.cpp", "core/io/h5_internal.h"}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
# A setting looked up by its name: config.text("train.dtype"), or by a variable: config.text(key).
GETTERS = r"(?:text|integer|real|flag|text_list|integer_list|real_list)"
LOOKUP = re.compile(r'\b(?:%s|has|formatted|origin|find_key)\(\s*"[a-z_]+\.[a-z_]+"|\bconfig_?(?:\.|->)%s\(' % (GETTERS, GETTERS))


def tracked(root):
    """The files of the tree, without what git ignores (or all of them, outside of git)."""
    git = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, text=True)
    if git.returncode == 0:
        return [f for f in git.stdout.splitlines() if os.path.exists(os.path.join(root, f))]
    return [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names]


def check_include(path, room, quote, target):
    first = target.split("/")[0]
    if target in ("mpi.h", "nccl.h") and room != "dist":
        return f"<{target}> belongs under dist/"
    if re.match(r"(hdf5|H5\w*)\.h$", target) and path not in HDF5_FILES:
        return f"<{target}> belongs in core/io/h5*.cpp, whose wrappers the others use"
    if TORCH.match(target) and room == "kernels":
        return f"<{target}>: no torch under kernels/"
    if quote == '"' and first not in ROOMS:
        return f'"{target}": our own headers are included by their path from the root'
    if first in ROOMS and ROOMS.index(first) > ROOMS.index(room):
        return f'"{target}": {room} may not know {first}'
    return None


def check_settings(path, line):
    """Strings end in setup: behind it a setting is a member of a struct (core/setup/run_spec.h)."""
    if path.startswith(("core/config/", "core/setup/")) or not LOOKUP.search(line):
        return None
    return "a setting is looked up by its name; take it from the RunSpec"


def check_sources(root):
    violations, files = [], tracked(root)
    for entry in sorted({f.split("/")[0] for f in files}):
        if entry not in TOP and not entry.startswith("."):
            violations.append(f"{entry}: not an entry of the top level")
    for path in files:
        room = path.split("/")[0]
        if room not in ROOMS or not SOURCE.match(path):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                include = INCLUDE.match(line)
                found = include and check_include(path, room, *include.groups())
                found = found or check_settings(path, line)
                if found:
                    violations.append(f"{path}:{number}: {found}")
    return violations


def symbols(files, *options):
    names = subprocess.run(["nm", "--format=posix", *options, *files], capture_output=True, text=True, check=True).stdout
    return {tuple(line.split()[:2]) for line in names.splitlines() if line and not line.endswith(":")}


def check_symbols(libraries):
    """libraries: room -> files. What a room leaves undefined must not come from torch, MPI or a later room."""
    violations = [f"{file}: not built" for files in libraries.values() for file in files if not os.path.exists(file)]
    if violations:
        return violations
    foreign = {"kernels": r"^(MPI_|ompi_|nccl)|(2at|3c10|5torch|6caffe2)\d", "core": r"^(MPI_|ompi_|nccl)"}
    undefined = {room: {name for name, _ in symbols(files, "-u")} for room, files in libraries.items()}
    strong = {room: {name for name, kind in symbols(files, "--defined-only") if kind in "TDBR"} for room, files in libraries.items()}
    for room, names in undefined.items():
        names -= strong[room]
        bad = [n for n in names if re.search(foreign.get(room, r"^$"), n)]
        for later in ROOMS[ROOMS.index(room) + 1:]:
            bad += names & strong.get(later, set())
        violations += [f"{room} needs {name}" for name in sorted(bad)]
    return violations


def self_test():
    """Every rule must be broken by something."""
    planted = {
        "core/a.cpp": "#include <mpi.h>", "launch/a.cpp": "#include <nccl.h>", "kernels/a.cu": "#include <ATen/ATen.h>",
        "core/data/h6.cpp": "#include <hdf5.h>", "core/data/a.h": "  #  include <H5Dpublic.h>",
        "kernels/b.h": '#include "core/comm/comm.h"', "core/b.cpp": '#include "dist/comm/world.h"', "dist/b.cpp": '#include "launch/cli.h"',
        "launch/c.cpp": 'x = config.text("train.dtype");', "dist/d.cpp": 'if (of.config->has("data.stage")) {', "core/loss/a.cpp": "n = config_.integer(key);",
        "launch/d.cpp": 'config::find_key("oracle.members")',
        "dist/c.cpp": '#include "world.h"', "tools/a.txt": "", "notes.md": "",
    }
    allowed = {"dist/a.cpp": "#include <mpi.h>", "core/io/h5.cpp": "#include <hdf5.h>", "core/io/h5_internal.h": "#include <hdf5.h>", "core/c.cpp": "#include <ATen/ATen.h>",
               "launch/b.cpp": '#include "dist/comm/world.h"', ".ci/run": "", "core/setup/a.cpp": 'c.text("train.dtype");', "core/config/a.cpp": 'config.integer("train.steps")',
               "launch/e.cpp": 'run.spec->config.formatted(key.name); values.has("loss");', "README.md": "#include <mpi.h>"}

    def tree(files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text + "\n")
            return check_sources(root)

    def objects(**codes):
        with tempfile.TemporaryDirectory() as folder:
            for room, code in codes.items():
                subprocess.run([os.environ.get("CXX", "c++"), "-x", "c++", "-c", "-", "-o", f"{folder}/{room}.o"], input=code, text=True, check=True)
            return check_symbols({room: [f"{folder}/{room}.o"] for room in codes})

    missed = [f"not found: {path}: {text}" for path, text in planted.items() if len(tree({path: text})) != 1]
    missed += [f"wrongly found: {v}" for v in tree(allowed)]
    calls_mpi = 'extern "C" void MPI_Init(); void f() { MPI_Init(); }'
    calls_torch = "namespace at { struct Tensor { void zero(); }; } void f(at::Tensor& t) { t.zero(); }"
    calls_later, later = "void later(); void f() { later(); }", "void later() {}"
    for codes in ({"kernels": calls_mpi}, {"core": calls_mpi}, {"kernels": calls_torch}, {"dist": calls_later, "launch": later},
                  {"kernels": calls_later, "core": later}):
        if len(objects(**codes)) != 1:
            missed.append(f"not found: {codes}")
    for codes in ({"dist": calls_mpi}, {"core": calls_torch}, {"core": later, "launch": calls_later}):
        missed += [f"wrongly found: {v}" for v in objects(**codes)]
    return missed


def main(arguments):
    if arguments == ["--self-test"]:
        violations = self_test()
    else:
        libraries = {room: files.split(",") for room, files in (a.split("=", 1) for a in arguments[1:])}
        violations = check_sources(arguments[0]) + (check_symbols(libraries) if libraries else [])
    print("\n".join(violations) or "the rooms hold")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
