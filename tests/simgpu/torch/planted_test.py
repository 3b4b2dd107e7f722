#!/usr/bin/env python3
"""planted_test: each bug of plant.py in the GPU path of training is found by a run on the stand-ins.

    planted_test.py PAL_PLANTED FOLDER_OF_THE_STAND_INS [name of a bug ...]

A bug is found when a stand-in complains, the run fails, or its weights differ from those of the clean program. Each
bug is run with several seeds. The clean program, the same binary, must pass in all of them.
"""
import sys

import plant
from job import Jobs

SEEDS = (1, 2, 3)
STEPS = ["train.steps=2"]
# A hang ends soon, as an error.
LIMITS = ["train.hang_seconds=30", "train.stall_seconds=2", "train.heartbeat_seconds=20"]
# The guard thread asks CUDA about launches that are older than a second, and the watchdog's thread reads its answer with
# every heartbeat: rank 0 is 12 seconds late before its last step. The loader's thread asks CUDA when a pinned buffer is
# given back while a copy is under way, which is seldom: it gets a hundred steps.
# On a busy machine the watchdog must not end such a run before that.
BUSY = ["--allow-faults", "train.heartbeat_seconds=600", "train.hang_seconds=600"]
# Questions that are chosen by the features of the pool change the graph.
ASKING = ["train.steps=4", "oracle.sampler=uncertainty", "oracle.every=1", "oracle.questions_per_round=6", "oracle.pool=40"]
# bug: (settings, sentence that must be printed; "" when wrong weights are how it shows)
EXPECTED = {
    "no after": ([], ""),
    "no before": ([], ""),
    "no join": ([], ""),
    "wrong thread": (["train.steps=3", *BUSY], "works on device 0, but this process computes on device 1"),
    "watchdog": (["train.steps=3", *BUSY], "works on device 0, but this process computes on device 1"),
    "wrong communicator": ([], "ranks differ"),
    "freed in flight": ([], ""),
    "overwritten copy": ([], ""),
    "loader's device": (["train.steps=100", "optim.lr=0.0001"], "works on device 0, but this process computes on device 1"),
    "host read": ([], "host code touches device memory"),
    "features too early": (ASKING, ""),
}


def run(jobs, bug, settings, seed):
    """(exit code was 0, output, hash of the weights or None)."""
    name = f"run-{bug.replace(' ', '-') or 'clean'}-{seed}"
    environment = jobs.device(2, seed=seed, **({"PAL_PLANTED": bug} if bug else {}), **({"PAL_FAULT": "busy:0:2"} if BUSY[0] in settings else {}))
    jobs.forget(name)
    arguments = ["train", "c.yaml", "train.device=cuda", *STEPS, *LIMITS, *settings, "--run-dir", name, "--np", "2", "--max-restarts", "0"]
    out = jobs.call(arguments, environment, code=None)
    try:
        sha = jobs.sha(name)
    except (AssertionError, OSError, IndexError):
        sha = None
    return out, sha


def main():
    chosen = sys.argv[3:] or list(plant.BUGS)
    if set(EXPECTED) != set(plant.BUGS):
        print("every bug of plant.py needs a line in EXPECTED")
        return 1
    failures = 0
    with Jobs(sys.argv[1], sys.argv[2]) as jobs:
        clean = {}
        for bug in chosen:
            settings, sentence = EXPECTED[bug]
            found = ""
            for seed in SEEDS:
                key = (tuple(settings), seed)
                if key not in clean:
                    out, clean[key] = run(jobs, "", settings, seed)
                    if clean[key] is None or "simgpu: " in out or "simnccl: " in out:
                        print(f"the clean program fails with {settings}, seed {seed}:\n{out}")
                        return 1
                out, sha = run(jobs, bug, settings, seed)
                if sentence and sentence in out:
                    found = f"the sentence, seed {seed}"
                elif not sentence and (sha is None or sha != clean[key]):
                    found = ("it ends with an error" if sha is None else "other weights") + f", seed {seed}"
                if found:
                    break
            print(f"{bug:20} {'found: ' + found if found else 'NOT FOUND'}", flush=True)
            if not found:
                failures += 1
                print(out)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
