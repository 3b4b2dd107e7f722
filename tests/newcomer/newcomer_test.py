#!/usr/bin/env python3
"""newcomer_test: a new loss and a new sampler touch the files that CONTRIBUTING.md lists, and no others; then they work.

    newcomer_test.py ROOT BUILD WORK     BUILD: a built tree, whose choices (LibTorch, CUDA) and compiler cache are used
    newcomer_test.py --files ROOT        builds nothing: whether the patches apply, touch these files, and all files exist

Applies loss.patch and sampler.patch of this folder to a copy of the sources, compares the files of each patch with the list
in CONTRIBUTING.md, builds `pal` and `core_test` in the copy, runs the patches' own tests, and trains with both.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOYS = {"loss": "pull", "sampler": "every_third"}   # what is added: its name, "x" in CONTRIBUTING.md
CACHED = ["PAL_TORCH_DIR", "PAL_NCCL_DIR", "PAL_CUDA", "PAL_CUDA_ARCHITECTURES", "CMAKE_CUDA_COMPILER", "CMAKE_BUILD_TYPE"]


def listed_files(contributing, kind, name):
    """The paths of the list entry "- **a KIND**: ...", with x as the name."""
    entry = re.search(rf"^- \*\*an? {kind}\*\*: (.*?)(?=^- \*\*|^$)", contributing, re.M | re.S)
    if not entry:
        raise SystemExit(f"CONTRIBUTING.md has no entry for a {kind}")
    paths = re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.(?:cpp|h|def|txt|py))`", entry.group(1))
    return {re.sub(r"/x(?=[._])", f"/{name}", path) for path in paths}


def missing_files(contributing, root):
    """Files of the section "To add something, touch these files" that do not exist. A name without a folder is in the
    folder of the name before it; names with x or x_ are the new files."""
    section = contributing[contributing.index("## To add something"):contributing.index("### A loss, step by step")]
    missing = []
    for entry in re.split(r"^- (?=\*\*)", section, flags=re.M)[1:]:
        folder = "."
        for name in re.findall(r"`([\w./*-]+(?:\.(?:cpp|h|cu|def|txt|py|js|md|\*)|/))`|(`CMakeLists.txt`)", entry):
            name = name[0] or name[1].strip("`")
            if "/" in name:
                folder = os.path.dirname(name)
            path = name if "/" in name or os.path.exists(f"{root}/{name}") else f"{folder}/{name}"
            if not re.search(r"(?:^|[/_])x[._]", path) and not glob.glob(f"{root}/{path}"):
                missing.append(path)
    return missing


def check_files(root):
    """What can be seen without a build. Returns sentences about what is wrong."""
    with open(f"{root}/CONTRIBUTING.md", encoding="utf-8") as file:
        contributing = file.read()
    wrong = [f"CONTRIBUTING.md names {path}, which does not exist" for path in missing_files(contributing, root)]
    for kind, name in TOYS.items():
        patch = f"{HERE}/{kind}.patch"
        wanted, touched = listed_files(contributing, kind, name), patched_files(patch)
        if wanted != touched:
            wrong.append(f"a new {kind}: CONTRIBUTING.md lists {sorted(wanted)}, but the patch touches {sorted(touched)}")
        tried = subprocess.run(["patch", "-p1", "--dry-run", "--fuzz=0", "-i", patch], cwd=root, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        if tried.returncode:
            wrong.append(f"{kind}.patch does not apply to these sources: {tried.stdout}")
    return wrong


def patched_files(patch):
    with open(patch, encoding="utf-8") as file:
        return set(re.findall(r"^\+\+\+ b/(\S+)", file.read(), re.M))


def copy_sources(root, tree):
    shutil.rmtree(tree, ignore_errors=True)
    listing = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True,
                             text=True, check=True).stdout
    for path in listing.splitlines():
        if os.path.exists(f"{root}/{path}"):
            os.makedirs(os.path.dirname(f"{tree}/{path}"), exist_ok=True)
            shutil.copy2(f"{root}/{path}", f"{tree}/{path}")
    if os.path.exists(f"{root}/.deps"):   # by the same relative path as in ROOT, which the compiler cache needs
        os.symlink(f"{root}/.deps", f"{tree}/.deps")


def choices(root, build, tree):
    """-D arguments: those of BUILD, with paths into ROOT moved to the copy."""
    with open(f"{build}/CMakeCache.txt", encoding="utf-8") as file:
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
    return [f"-D{name}={re.sub('^' + re.escape(root) + '(?=/)', tree, cache[name])}" for name in CACHED if cache.get(name)]


def run(*command, cwd, **environment):
    print("+", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def main(root, build, work):
    if root == "--files":
        wrong = check_files(os.path.realpath(build))
        print("\n".join(wrong) or "the patches apply, and touch the files that CONTRIBUTING.md lists")
        return 1 if wrong else 0
    root, build, tree = os.path.realpath(root), os.path.realpath(build), f"{os.path.realpath(work)}/tree"
    if wrong := check_files(root):
        raise SystemExit("\n".join(wrong))
    copy_sources(root, tree)
    for kind in TOYS:
        run("patch", "-p1", "--no-backup-if-mismatch", "-i", f"{HERE}/{kind}.patch", cwd=tree)
    ccache = {"CCACHE_BASEDIR": tree, "CCACHE_NOHASHDIR": "1"}
    run("cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DPAL_TESTS=ON", *choices(root, build, tree), cwd=tree, **ccache)
    run("cmake", "--build", "build", "--target", "pal", "core_test", cwd=tree, **ccache)
    own = run("ctest", "--output-on-failure", "--no-tests=error", "-R", r"^core\.loss\.pull$|^core\.oracle\.samplers\.(every_third|samplers)$",
              cwd=f"{tree}/build")
    print(own)
    if "100% tests passed" not in own or "out of 3" not in own:
        raise SystemExit("the tests of the patches are not three")
    train(f"{tree}/build/pal", tree)
    return 0


def train(pal, tree):
    """A run with both on a small set: they are known to the config, to the factories and to the scale model."""
    sys.argv = [sys.argv[0], pal]
    sys.path.insert(0, f"{tree}/tests/dist")
    import run_case   # reads PAL from the arguments
    folder = run_case.make_case(run_case.PLAIN)
    try:
        run(pal, "train", "c.yaml", "loss.kind=pull", "oracle.sampler=every_third", "oracle.every=2", "oracle.questions_per_round=9",
            "oracle.pool=60", "graph.kind=mixed", "graph.labeled_fraction=0.05", "train.steps=8", "--run-dir", "run", "--np", "2", cwd=folder)
        lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl", encoding="utf-8")]
        steps = [line for line in lines if "loss" in line]
        if len(steps) != 8 or set(steps[0]["terms"]) != {"invariance", "norm"} or steps[-1]["queries"] <= 0:
            raise SystemExit(f"the run is not one of 8 steps with the toy loss and answers of the toy sampler: {steps[-1]}")
        for topic, name in (("losses", "pull"), ("samplers", "every_third")):
            if name not in run(pal, "help", topic, cwd=folder):
                raise SystemExit(f"`pal help {topic}` does not name {name}")
        print("trained with the new loss and the new sampler")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:4] + [""])[:3]))
