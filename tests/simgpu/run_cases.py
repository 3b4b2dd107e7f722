#!/usr/bin/env python3
"""run_cases: runs a GoogleTest program of CUDA kernels on the stand-in runtime, once for every scheduling seed.

    run_cases.py FOLDER_OF_THE_STAND_IN PROGRAM [--seeds 1 2 3] [--budget N] [GoogleTest arguments]

Each run has the race mode on and streams late. It fails if a run fails or skips for want of a device, or if a case takes
more than N million warp-instructions: then it belongs among the long ones (DISABLED_Long...). Runs share the cores.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

LAUNCH = re.compile(r"^simgpu: (\d+) warp-instructions in (.*)")
CASE = re.compile(r"^\[ RUN      \] (\S+)")
SKIPPED = re.compile(r"no CUDA device here")


def run(program, library, seed, arguments):
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "SIMGPU_SEED": str(seed), "SIMGPU_RACE": "1",
                   "SIMGPU_STREAMS": "late", "SIMGPU_STATS": "1", "OMP_NUM_THREADS": "1"}
    begin = time.monotonic()
    result = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                            env=environment, check=False)
    return seed, time.monotonic() - begin, result


def read(output):
    """Warp-instructions by case, and the output without the lines that count them."""
    counts, case, rest = {}, None, []
    for line in output.splitlines():
        launch, begin = LAUNCH.match(line), CASE.match(line)
        if begin:
            case = begin.group(1)
            counts[case] = 0
        if launch:
            counts[case] = counts.get(case, 0) + int(launch.group(1))
        else:
            rest.append(line)
    return counts, rest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--budget", type=float, default=float("inf"), help="million warp-instructions that a case may take")
    options, arguments = parser.parse_known_args()

    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(run, options.program, options.library, seed, arguments) for seed in options.seeds]
        for job in concurrent.futures.as_completed(jobs):
            seed, seconds, result = job.result()
            counts, rest = read(result.stdout)
            problems = [f"ended with {result.returncode}"] if result.returncode else []
            problems += ["no case ran"] if not counts else []
            problems += [f"skipped: {line}" for line in rest if SKIPPED.search(line)]
            problems += [f"{case}: {n / 1e6:.1f} M warp-instructions, allowed are {options.budget:g}" for case, n in counts.items()
                         if n > options.budget * 1e6]
            largest = max(counts, key=counts.get, default="-")
            print(f"seed {seed}: {len(counts)} cases, {sum(counts.values()) / 1e6:.1f} M warp-instructions, {seconds:.1f} s; "
                  f"largest {largest} with {counts.get(largest, 0) / 1e6:.1f} M", flush=True)
            if problems:
                failed = True
                print("\n".join(rest[-200:] + [f"seed {seed}: {p}" for p in problems]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
