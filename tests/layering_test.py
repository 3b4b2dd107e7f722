#!/usr/bin/env python3
"""layering_test: which folder may include which, checked in the sources and in the built libraries.

    layering_test.py [ROOT [ROOM=LIBRARY_OR_OBJECTS ...]]  checks a tree; exit 1 and a line for each violation
    layering_test.py --self-test                           plants every violation and demands that it is found
    layering_test.py --graph OUT.svg [ROOT]                draws which folder includes which; exit 1 if there is a cycle
    layering_test.py --one-user-headers [ROOT]             lists headers that at most one file needs besides their own sources

ROOT is the repository of this script unless it is given.

Edges go one way: kernels <- core <- dist <- launch (the rooms), and inside a room as in the table FOLDERS.
A room may be given several files, separated by commas.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

import include_graph

ROOMS = ["kernels", "core", "dist", "launch"]
TOP = set(ROOMS) | {"configs", "tests", "CMakeLists.txt", "CMakePresets.json", "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
                    "LICENSE"}
# folder: the folders that it may include, besides itself and (from core on) all of kernels. A folder is listed after
# those it may include, so the table has no cycle. `core/*` are all folders of core that are listed before. An indented line
# continues the one before.
FOLDERS = """
kernels/base:
kernels: kernels/base

core/comm:
core/config:
core/ops:
core/io: core/ops                          # a safetensors file contains named tensors
core/plot:
core/record: core/io core/ops
core/graph: core/config core/io            # config: the tables of names (choices.h), here and below
core/model: core/comm core/config core/io core/ops   # batch norm sums over ranks
core/optim: core/ops core/config
core/data/image:
core/data: core/comm core/data/image core/io   # the ranks of a node fill its cache together
core/data/import: core/data core/data/image core/io
core/data/loader: core/comm core/config core/data core/data/image core/graph core/ops   # edges of the graph are drawn into batches
core/loss: core/comm core/config core/graph core/ops
core/eval: core/comm core/data core/data/loader core/graph core/io core/loss core/model core/ops core/optim
core/oracle/ledger: core/config core/graph core/io   # a database of questions and answers: no model, no data
core/oracle: core/comm core/config core/graph core/io core/oracle/ledger
core/oracle/samplers: core/comm core/config core/ops core/oracle
core/oracle/round: core/comm core/config core/data core/data/loader core/eval core/graph core/io core/model core/oracle
  core/oracle/ledger core/oracle/samplers  # a round embeds its pool
core/label: core/graph core/io core/oracle core/oracle/ledger   # the page's service: it runs without a model
core/setup: core/*
core/study: core/*
core/public/pal: core/*                    # <pal/loss.h> and others: what a C++ user includes
core/theory: core/comm core/config core/io core/loss core/ops core/plot   # a library of its own, beside data and oracle

dist/scale: core/config core/data core/data/loader core/loss core/model core/setup   # a formula: no MPI
dist/comm: core/comm core/io core/ops
dist/health: core/comm core/config core/io core/ops dist/comm
dist/train: core/* dist/comm dist/health
dist/public/pal: dist/comm

launch: core/config core/io dist/comm      # arguments and tables: what all commands share
launch/process:
launch/python: core/config core/loss core/setup
launch/slurm: core/config launch
launch/run: core/* dist/comm launch launch/process
launch/report: core/* launch launch/run
launch/doctor: core/* dist/comm dist/health dist/train launch launch/process   # three steps of training
launch/label: core/* dist/train launch launch/report launch/run   # dist/train: the lock of a run folder; report: base64
launch/cmd: core/* dist/* launch/* launch
"""
# A pattern such as core/* allows these folders only to the folders named here.
NOT_OF_ALL = {"core/theory": {"launch/cmd"}, "core/public/pal": set(), "dist/public/pal": set()}
SOURCE = re.compile(r".*\.(h|cpp|cu|cuh)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)')
HDF5_FILES = {"core/io/h5.cpp", "core/io/h5_foreign.cpp", "core/io/h5_internal.h"}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
# A setting looked up by its name: config.text("train.dtype"), or by a variable: config.text(key). For any other
# name of the variable: the libraries of dist and launch must not need the getters, and in core only these see a config:
SETTINGS = ("core/config/", "core/setup/")
GETTERS = r"(?:text|integer|real|flag|text_list|integer_list|real_list)"
NEEDED_LOOKUP = re.compile(r"_ZNK3pal6config6Config\d+%s[BE]" % GETTERS)
LOOKUP = re.compile(r'\b(?:%s|has|formatted|origin|find_key)\(\s*"[a-z_]+\.[a-z_]+"|\bconfig_?(?:\.|->)%s\(' % (GETTERS, GETTERS))


def read_table(text):
    """folder -> the set of folders that it may include, itself among them."""
    allowed = {}
    for line in re.sub(r"\n +", " ", text).splitlines():
        folder, _, names = line.split("#")[0].partition(":")
        if not folder.strip():
            continue
        allowed[folder] = {folder}
        for name in names.split():
            group = [f for f in allowed if f.startswith(name[:-1])] if name.endswith("/*") else [name]
            if not set(group) <= set(allowed):
                raise SystemExit(f"FOLDERS: {folder} names {name}, which is listed after it or not at all")
            allowed[folder] |= {g for g in group if g == name or folder in NOT_OF_ALL.get(g, {folder})}
    return allowed


ALLOWED = read_table(FOLDERS)


def check_folder(path, target):
    """One include of our own, by the table of folders."""
    folder, other = os.path.dirname(path), os.path.dirname(target)
    if folder not in ALLOWED:
        return f"{folder}/ is not in the table FOLDERS of tests/layering_test.py: add it with what it may include"
    if other not in ALLOWED:
        return f'"{target}": {other}/ is not in the table FOLDERS of tests/layering_test.py'
    if other.split("/")[0] == "kernels" and folder.split("/")[0] != "kernels":
        return None
    if other not in ALLOWED[folder]:
        return f'"{target}": {folder} may not include {other} (table FOLDERS of tests/layering_test.py)'
    return None


def folder_edges(root):
    """folder -> {folder it includes}, as the sources are."""
    edges = collections.defaultdict(set)
    for path in tracked(root):
        if path.split("/")[0] in ROOMS and SOURCE.match(path):
            folder = os.path.dirname(path)
            edges[folder] |= {os.path.dirname(target) for _, _, target in includes(root, path)
                              if target.split("/")[0] in ROOMS} - {folder}
    return edges


def stale_folders(root):
    """Folders of the table that do not exist."""
    return sorted(set(ALLOWED) - {os.path.dirname(path) for path in tracked(root) if SOURCE.match(path)})


def one_user_headers(root):
    """(header, its user or "-") of all headers that at most one file of the product includes, besides the sources of the
    same name. Such a header is one more place to look at: it may belong into its user. Tests do not count as users."""
    users = collections.defaultdict(set)
    files = [path for path in tracked(root) if path.split("/")[0] in ROOMS and SOURCE.match(path)]
    for path in files:
        for _, _, target in includes(root, path):
            users[target].add(path)
    stem = lambda path: os.path.splitext(path)[0]
    headers = [path for path in files if path.endswith((".h", ".cuh"))]
    others = {h: [u for u in users[h] if stem(u) != stem(h) or u.endswith((".h", ".cuh"))] for h in headers}
    return len(headers), [(h, (others[h] or ["-"])[0]) for h in headers if len(others[h]) <= 1]


def includes(root, path):
    """(line number, quote, target) of every include of a file."""
    with open(os.path.join(root, path), encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, *found.groups()


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
    if target == "core/config/config.h" and room == "core" and not path.startswith(SETTINGS):
        return f'"{target}": in core only core/setup reads settings by their names'
    if first in ROOMS and ROOMS.index(first) > ROOMS.index(room):
        return f'"{target}": {room} may not know {first}'
    return check_folder(path, target) if first in ROOMS else None


def check_settings(path, line):
    """Strings end in setup: behind it a setting is a member of a struct (core/setup/run_spec.h)."""
    if path.startswith(SETTINGS):
        return None
    if LOOKUP.search(line):
        return "a setting is looked up by its name; take it from the RunSpec"
    if path.startswith("core/") and re.search(r"(\.|->)config\b(?!\.h)", line):
        return "core takes settings from the members of the RunSpec, not from its config"
    return None


def check_sources(root):
    violations, files = [], tracked(root)
    for entry in sorted({f.split("/")[0] for f in files}):
        if entry not in TOP and not entry.startswith("."):
            violations.append(f"{entry}: not an entry of the top level")
    for path in files:
        room = path.split("/")[0]
        if room not in ROOMS or not SOURCE.match(path):
            continue
        for number, quote, target in includes(root, path):
            found = check_include(path, room, quote, target)
            if found:
                violations.append(f"{path}:{number}: {found}")
        with open(os.path.join(root, path), encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                found = check_settings(path, line)
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
        if room in ("dist", "launch"):
            bad += [n for n in names if NEEDED_LOOKUP.match(n)]
        violations += [f"{room} needs {name}" for name in sorted(bad)]
    return violations


def self_test():
    """Plants a violation of every rule. Returns those that are not found, and allowed code that is refused."""
    planted = {
        "core/io/a.cpp": "#include <mpi.h>", "launch/a.cpp": "#include <nccl.h>", "kernels/a.cu": "#include <ATen/ATen.h>",
        "core/data/h6.cpp": "#include <hdf5.h>", "core/data/a.h": "  #  include <H5Dpublic.h>",
        "kernels/b.h": '#include "core/comm/comm.h"', "core/io/b.cpp": '#include "dist/comm/world.h"',
        "dist/comm/b.cpp": '#include "launch/cli.h"', "dist/comm/c.cpp": '#include "world.h"', "tools/a.txt": "", "notes.md": "",
        "launch/cmd/d.cpp": 'x = config.text("train.dtype");', "dist/train/d.cpp": 'if (of.config->has("data.stage")) {',
        "core/loss/b.cpp": "n = config_.integer(key);", "launch/run/d.cpp": 'config::find_key("oracle.members")',
        "core/loss/d.cpp": '#include "core/config/config.h"', "core/study/d.cpp": "const auto& c = run.config;",
        # the table: upward in each room, sideways, a folder that is not listed (on both sides), theory, MPI beside scale
        "kernels/base/a.h": '#include "kernels/csr.h"', "core/ops/a.h": '#include "core/loss/criterion.h"',
        "core/record/a.cpp": '#include "core/setup/setup.h"', "core/oracle/a.h": '#include "core/oracle/round/round.h"',
        "dist/comm/d.h": '#include "dist/train/trainer.h"', "launch/run/a.h": '#include "launch/cmd/train_check.h"',
        "core/model/a.h": '#include "core/optim/optimizer.h"', "core/new/a.h": '#include "core/io/files.h"',
        "core/loss/a.h": '#include "core/new/a.h"', "core/setup/a.h": '#include "core/theory/matrix.h"',
        "dist/scale/a.h": '#include "dist/comm/world.h"', "launch/cmd/a.cpp": '#include "core/public/pal/loss.h"',
    }
    allowed = {"dist/comm/a.cpp": "#include <mpi.h>", "core/io/h5.cpp": "#include <hdf5.h>",
               "core/io/h5_internal.h": "#include <hdf5.h>", "core/loss/c.cpp": "#include <ATen/ATen.h>",
               "launch/cmd/b.cpp": '#include "dist/comm/world.h"', ".ci/run": "", "README.md": "#include <mpi.h>",
               "launch/cmd/c.cpp": '#include "core/theory/matrix.h"', "launch/run/c.cpp": '#include "kernels/base/error.h"',
               "core/setup/c.cpp": '#include "core/oracle/samplers/samplers.h"', "core/io/c.cpp": '#include "core/io/files.h"',
               "core/setup/d.cpp": 'c.text("train.dtype");', "core/config/a.cpp": 'config.integer("train.steps")',
               "launch/cmd/e.cpp": 'run.spec->config.formatted(key.name); values.has("loss");',
               "CONTRIBUTING.md": "", "CHANGELOG.md": "", "CMakePresets.json": ""}

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

    with tempfile.TemporaryDirectory() as empty:
        if stale_folders(empty) != sorted(ALLOWED):
            return ["not found: a folder of the table that does not exist"]
    missed = [f"not found: {path}: {text}" for path, text in planted.items() if len(tree({path: text})) != 1]
    missed += [f"wrongly found: {v}" for v in tree(allowed)]
    ring = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    if include_graph.cycles(ring) != [{"a", "b", "c"}] or include_graph.cycles({"a": {"b", "d"}, "b": {"d"}, "d": set()}):
        missed.append("not found: the cycle a -> b -> c -> a")
    if "1 cycle(s)" not in include_graph.draw(ring, "") or "No cycle" not in include_graph.draw({"a": {"b"}}, ""):
        missed.append("not drawn: the cycle a -> b -> c -> a")
    calls_mpi = 'extern "C" void MPI_Init(); void f() { MPI_Init(); }'
    calls_torch = "namespace at { struct Tensor { void zero(); }; } void f(at::Tensor& t) { t.zero(); }"
    looks_up = ("#include <string>\nnamespace pal::config { struct Config { const std::string& text(const std::string&) const; }; }\n"
                "char f(const pal::config::Config& c) { return c.text(std::string(3, 'k'))[0]; }")
    calls_later, later = "void later(); void f() { later(); }", "void later() {}"
    for codes in ({"kernels": calls_mpi}, {"core": calls_mpi}, {"kernels": calls_torch}, {"dist": calls_later, "launch": later},
                  {"kernels": calls_later, "core": later}, {"dist": looks_up}, {"launch": looks_up}):
        if len(objects(**codes)) != 1:
            missed.append(f"not found: {codes}")
    for codes in ({"dist": calls_mpi}, {"core": calls_torch}, {"core": looks_up}, {"core": later, "launch": calls_later}):
        missed += [f"wrongly found: {v}" for v in objects(**codes)]
    return missed


def draw(out, root):
    edges = folder_edges(root)
    with open(out, "w", encoding="utf-8") as file:
        file.write(include_graph.draw(edges, "PAL: includes between folders"))
    print(f"{out}: {len(edges)} folders")
    return ["a cycle between " + ", ".join(sorted(ring)) for ring in include_graph.cycles(edges)]


def check(root, libraries):
    violations = check_sources(root) + (check_symbols(libraries) if libraries else [])
    return violations + [f"the table FOLDERS names {folder}, which has no sources" for folder in stale_folders(root)]


def print_one_user_headers(root):
    count, found = one_user_headers(root)
    print("\n".join(f"{header:44} {user}" for header, user in found) + f"\n{len(found)} of {count} headers have at most one user")


def room_and_files(text):
    room, equals, files = text.partition("=")
    if room not in ROOMS or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not ROOM=FILE[,FILE...]; rooms: {' '.join(ROOMS)}")
    return room, files.split(",")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--self-test", action="store_true")
    mode.add_argument("--graph", metavar="OUT.svg")
    mode.add_argument("--one-user-headers", action="store_true")
    parser.add_argument("root", nargs="?", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("libraries", nargs="*", type=room_and_files, metavar="ROOM=FILES")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if options.one_user_headers:
        print_one_user_headers(options.root)
        return 0
    if options.self_test:
        violations = self_test()
    elif options.graph:
        violations = draw(options.graph, options.root)
    else:
        violations = check(options.root, dict(options.libraries))
    print("\n".join(violations) or "no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
