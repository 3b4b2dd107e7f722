#!/usr/bin/env python3
"""nccl_planted_test: every wrong use of NCCL is found, with the right message and in time; every correct twin passes.

    nccl_planted_test.py PROGRAM FOLDER_OF_THE_STAND_INS
"""
import concurrent.futures
import os
import subprocess
import sys
import time

MPIRUN = ["mpirun", "--quiet", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "odls_base_sigkill_timeout", "0"]
# mpirun does not end the other ranks when one is killed: they must notice it themselves.
RECOVER = ["--mca", "orte_enable_recovery", "1", "--mca", "orte_abort_on_non_zero_status", "0"]
DELAY = {"SIMNCCL_DELAY_MS": "150"}
NCCL, WRONG, USAGE, BUG, LOST = 3, 4, 2, 70, 71
# case: ranks, environment, exit code, words in the output
CASES = {
    "other_count": (3, {}, NCCL, "ranks differ: rank 0 has all_reduce of 64 float32, sum, rank 1 has all_reduce of 63 float32, sum"),
    "other_type": (2, {}, NCCL, "rank 1 has all_reduce of 64 int32, sum"),
    "other_operation": (2, {}, NCCL, "rank 1 has all_reduce of 64 float32, max"),
    "other_order": (2, {}, NCCL, "rank 0 has all_reduce of 64 float32, sum, rank 1 has broadcast of 64 float32, root 0"),
    "other_part": (2, {}, NCCL, "rank 1 has send of 5 float32 to rank 0"),
    "input_before_event": (2, {}, WRONG, "wrong numbers"),
    "output_before_event": (2, {}, WRONG, "wrong numbers"),
    "touched_under_way": (2, DELAY, NCCL, "was touched before the collective was done"),
    "freed_under_way": (2, DELAY, NCCL, "was touched before the collective was done"),
    "state_not_asked": (2, {}, NCCL, "a launch while the communicator is still in progress"),
    "after_abort": (2, {}, NCCL, "ncclAllReduce with a communicator that was aborted"),
    "host_buffer": (2, {}, NCCL, "a buffer that is not device memory"),
    "short_buffer": (2, {}, NCCL, "a buffer that is too short"),
    "missing_rank": (3, {}, LOST, "rank 1 has not reached it, last at launch 1 (all_reduce of 64 float32)"),
    "other_count_in_channel": (3, {}, BUG, "NCCL: invalid usage: launch 0: ranks differ"),
}
# Faults of the machine, by rank; each must give one sentence and end all ranks.
MACHINES = {
    "shared device": ([{"SIMGPU_BUS": "0000:07:00.0"}] * 2, "ranks 0 and 1 would share the device at 0000:07:00.0"),
    "no device on rank 1": ([{}, {"SIMGPU_DEVICES": "0"}], "rank 1 on host {host} has no CUDA device: no CUDA-capable device is detected"),
    "mixed versions": ([{}, {"SIMNCCL_VERSION": "22805"}], "rank 0 2.29.7, rank 1 on host {host} 2.28.5"),
}


def run(program, library, job, arguments, options=()):
    """job: the environment of each rank."""
    command = [*MPIRUN, *options]
    for k, environment in enumerate(job):
        command += [":"] if k else []
        command += ["-np", "1"]
        for name, value in {"LD_LIBRARY_PATH": library, "SIMGPU_STREAMS": "late", **environment}.items():
            command += ["-x", f"{name}={value}"]
        command += [program, *arguments]
    begin = time.monotonic()
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=60, check=False)
    return result.returncode, result.stdout, time.monotonic() - begin


def check(name, version, code, expected_code, text, words, seconds, limit):
    problems = []
    if code != expected_code:
        problems.append(f"ended with {code}, expected {expected_code}")
    if words and words not in text:
        problems.append(f"did not say: {words}")
    if not words and text:
        problems.append("was not silent")
    if seconds > limit:
        problems.append(f"took {seconds:.1f} s")
    print(f"{name}, {version}: {seconds:.1f} s" + "".join(f"; {p}" for p in problems) + (f"\n{text}" if problems else ""), flush=True)
    return not problems


def case(program, library, name):
    ranks, environment, code, words = CASES[name]
    clean = run(program, library, [environment] * ranks, [name, "clean"])
    bug = run(program, library, [environment] * ranks, [name, "bug"])
    return check(name, "clean", clean[0], 0, clean[1], "", clean[2], 20) & check(name, "bug", bug[0], code, bug[1], words, bug[2], 10)


def machine(program, library, name):
    environments, words = MACHINES[name]
    code, text, seconds = run(program, library, environments, ["start", "bug"])
    return check(name, "bug", code, USAGE, text, words.format(host=os.uname().nodename), seconds, 6)


def killed(program, library):
    clean = run(program, library, [{}] * 3, ["killed_rank", "clean"], RECOVER)
    _, text, seconds = run(program, library, [{}] * 3, ["killed_rank", "bug"], RECOVER)
    # A deadline of 2 s, 2 s for replies, and the start and the end of mpirun.
    return check("killed_rank", "clean", clean[0], 0, clean[1], "", clean[2], 20) & check(
        "killed_rank", "bug", 0, 0, text, "rank 1 does not reply: ended, stopped, or its host is unreachable", seconds, 12)


def main(program, library, *only):
    jobs = [(case, name) for name in CASES] + [(machine, name) for name in MACHINES] + [(killed, None)]
    if only:
        jobs = [j for j in jobs if j[1] in only]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda j: j[0](program, library, *([j[1]] if j[1] else [])), jobs))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
