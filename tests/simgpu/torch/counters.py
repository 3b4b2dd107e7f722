#!/usr/bin/env python3
"""counters: what one training step asks of the device, by phase, as a table.

    counters.py PAL_SIMGPU FOLDER_OF_THE_STAND_INS [--config FILE] [--ranks W] [--step N] [--rank R] [KEY=VALUE ...]

Trains a few steps on the stand-ins and prints the counts of one step: kernels and operators launched, copies by
direction and memory, waits of the host, collectives, allocations, threads, sleeps. Without --config: the small net of the tests. The
counts of the first step include what happens once.
"""
import argparse
import collections
import json
import os
import sys

from job import Jobs

GROUPS = [("launch", "kernels of PAL"), ("op", "operators of LibTorch"), ("copy", "copies"), ("wait", "waits of the host"),
          ("read", "operators that read to the host"), ("collective", "NCCL"), ("allocation", "allocations by CUDA"),
          ("thread", "threads created"), ("sleep", "sleeps")]


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def count(jobs, settings, ranks, config="c.yaml"):
    """The lines of each rank's counters."""
    folder = jobs.path("counters")
    os.makedirs(folder, exist_ok=True)
    environment = jobs.device(ranks, SIMGPU_COUNTERS=folder, NVTX_INJECTION64_PATH=os.path.join(jobs.stand_ins, "libcudart.so.13"))
    np = ["--np", str(ranks)] if ranks > 1 else []
    jobs.call(["train", config, "train.device=cuda", *settings, "--run-dir", "counted", *np], environment, timeout=3600)
    out = [read(os.path.join(folder, f"rank-{r}.json")) for r in range(ranks)]
    jobs.forget("counted")
    return out


def of_step(lines, step):
    """{phase: {(kind, what): (times, bytes)}} of one step."""
    phases = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for line in lines:
        first, _, rest = line["phase"].partition("/")
        if first != f"step {step}":
            continue
        tally = phases[rest.split("/")[0] or "between"][(line["kind"], line["what"])]
        tally[0] += line["times"]
        tally[1] += line["bytes"]
    return phases


def table(phases, details):
    names = [p for p in ("round", "load", "plan", "encode", "loss", "backward", "guard", "update", "observe", "between") if p in phases]
    rows = [["", *names, "step", "kB"]]
    for kind, title in GROUPS:
        whats = sorted({what for tallies in phases.values() for k, what in tallies if k == kind})
        def row(title, chosen, kind=kind):
            cells = [sum(phases[p][(kind, w)][0] for w in chosen if (kind, w) in phases[p]) for p in names]
            size = sum(phases[p][(kind, w)][1] for p in names for w in chosen if (kind, w) in phases[p])
            return [title, *(str(c) if c else "" for c in cells), str(sum(cells)), f"{size / 1000:.1f}" if size else ""]
        rows.append(row(title, whats))
        if details or kind in ("copy", "wait", "read", "collective", "allocation", "thread", "sleep"):
            rows += [row("  " + what, [what]) for what in whats]
    width = [max(len(r[c]) for r in rows) for c in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(width[0]) if i == 0 else c.rjust(width[i]) for i, c in enumerate(r)).rstrip() for r in rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pal")
    parser.add_argument("stand_ins")
    parser.add_argument("--config", default="c.yaml")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0, help="whose counts are printed")
    parser.add_argument("--step", type=int, default=3, help="the step that is printed, from 1")
    parser.add_argument("--details", action="store_true", help="also each kernel and operator")
    options, settings = parser.parse_known_args()
    config = "c.yaml" if options.config == "c.yaml" else os.path.abspath(options.config)
    with Jobs(options.pal, options.stand_ins) as jobs:
        lines = count(jobs, [f"train.steps={options.step}", *settings], options.ranks, config)[options.rank]
    print(table(of_step(lines, options.step), options.details))
    return 0


if __name__ == "__main__":
    sys.exit(main())
