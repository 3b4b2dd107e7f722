#!/usr/bin/env python3
"""planted_test: every planted bug is found, with its line and the right message; every correct twin passes.

    planted_test.py PROGRAM FOLDER_OF_THE_STAND_IN FOLDER_OF_THE_SOURCES
"""
import glob
import os
import re
import subprocess
import sys

RACE, LATE, LIMIT = {"SIMGPU_RACE": "1"}, {"SIMGPU_STREAMS": "late"}, {"SIMGPU_LIMIT": "200000"}
WRONG = "wrong numbers"  # the stand-in cannot know what was meant: the program's own comparison fails
# case: environment, what the program prints (an error's name), words that the stand-in must use
CASES = {
    "missing_syncthreads": (RACE, "cudaErrorLaunchFailure", "race"),
    "missing_syncwarp": (RACE, "cudaErrorLaunchFailure", "race"),
    "shared_out_of_bounds": ({}, "cudaErrorIllegalAddress", "shared"),
    "uninitialized_shared": ({}, "cudaErrorLaunchFailure", "no thread has written"),
    "partial_barrier": ({}, "cudaErrorLaunchFailure", "barrier"),
    "divergent_barrier": ({}, "cudaErrorLaunchFailure", "barrier"),
    "global_out_of_bounds": ({}, "cudaErrorIllegalAddress", "400"),
    "use_after_free": ({}, "cudaErrorIllegalAddress", "freed"),
    "misaligned_vector": ({}, "cudaErrorMisalignedAddress", "16"),
    "host_pointer": ({}, "cudaErrorIllegalAddress", "address"),
    "shuffle_inactive": ({}, "cudaErrorLaunchFailure", "lane"),
    "shuffle_mask": ({}, "cudaErrorLaunchFailure", "lane"),
    "endless_spin": (LIMIT, "cudaErrorLaunchTimeout", "200000"),
    "failed_check": ({}, "cudaErrorLaunchFailure", "row 31 of 31"),
    "too_many_threads": ({}, "cudaErrorInvalidConfiguration", "__launch_bounds__ of 64"),
    "too_much_shared": ({}, "cudaErrorInvalidValue", "60000 bytes of dynamic shared memory"),
    "written_constant": ({}, "cudaErrorIllegalAddress", "constant"),
    "missing_stream_sync": (LATE, WRONG, None),
    "missing_event": (LATE, WRONG, None),
    "reused_pinned_source": (LATE, WRONG, None),
}
SEEDS = range(6)


def marks(folder):
    """case -> "file:line" where the source says that it must be found."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*.cu")):
        with open(path, encoding="utf-8") as source:
            for number, text in enumerate(source, 1):
                mark = re.search(r"// found here: (.*)", text)
                for case in mark.group(1).split() if mark else []:
                    found[case] = f"{os.path.basename(path)}:{number}"
    return found


def run(program, library, case, version, settings):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SIMGPU_")}
    return subprocess.run([program, case, version], capture_output=True, text=True, timeout=120, check=False,
                          env={**clean, "LD_LIBRARY_PATH": library, **settings})


def check_bug(result, expected, words, place):
    if expected == WRONG:
        return [] if result.returncode == 4 else [f"ended with {result.returncode}, not with wrong numbers"]
    text = result.stdout + result.stderr
    wanted = [expected] + [w for w in (words, place) if w]
    return [f"no '{w}'" for w in wanted if w not in text] + ([] if result.returncode == 3 else [f"ended with {result.returncode}"])


def main(program, library, sources):
    failures, places = 0, marks(sources)
    for case, (settings, expected, words) in CASES.items():
        for seed in SEEDS:
            with_seed = {**settings, "SIMGPU_SEED": str(seed)}
            bug = run(program, library, case, "bug", with_seed)
            wrong = [f"bug: {w}" for w in check_bug(bug, expected, words, places.get(case))]
            for streams in ("now", "late"):  # a clean twin is clean with every check on
                clean = run(program, library, case, "clean", {**with_seed, **RACE, "SIMGPU_STREAMS": streams})
                if clean.returncode != 0 or clean.stderr:
                    wrong.append(f"clean twin, streams {streams}: ended with {clean.returncode}: {clean.stdout}{clean.stderr}")
            if wrong:
                failures += 1
                print(f"{case}, seed {seed}: " + "; ".join(wrong) + f"\n  it said: {bug.stdout}{bug.stderr}")
        print(f"{case}: {expected}" + (f" at {places[case]}" if case in places else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
