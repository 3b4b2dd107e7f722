#!/usr/bin/env python3
"""counters: what one training step asks of the device, by phase, as a table.

    counters.py PAL_SIMGPU FOLDER_OF_THE_STAND_INS [--net NAME | --config FILE] [--ranks W] [--step N] [--rank R] [KEY=VALUE ...]

Trains a few steps on the stand-ins and prints the counts of one step: kernels and operators launched, copies by
direction and memory, waits of the host, collectives, allocations, threads, sleeps. --net is the small net of the tests,
or a config of the product on random images of the right shape: quickstart (whole), resnet18 (cifar10-vicreg, 16 images). The
counts of the first step include what happens once.
"""
import argparse
import collections
import json
import os
import random
import sys

from job import Jobs, write_idx

GROUPS = [("launch", "kernels of PAL"), ("op", "operators of LibTorch"), ("copy", "copies"), ("wait", "waits of the host"),
          ("read", "operators that read to the host"), ("collective", "NCCL"), ("allocation", "allocations by CUDA"),
          ("thread", "threads created"), ("sleep", "sleeps")]


CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "configs")
NETS = {
    "small": ("c.yaml", []),
    "quickstart": (os.path.join(CONFIGS, "quickstart.yaml"), ["data.train=images.h5", "data.test="]),
    "resnet18": (os.path.join(CONFIGS, "cifar10-vicreg.yaml"),
                 ["data.train=images.h5", "data.test=", "train.epochs=null", "train.global_batch=16"]),
}


def make_images(jobs, net):
    """images.h5: random images in the format that the net's config names."""
    rng, folder = random.Random(1), jobs.path("images")
    os.makedirs(folder)
    if net == "quickstart":
        for split, n in (("train", 600), ("t10k", 10)):
            write_idx(os.path.join(folder, f"{split}-images-idx3-ubyte"), 0x803, (n, 28, 28), rng.randbytes(n * 28 * 28))
            write_idx(os.path.join(folder, f"{split}-labels-idx1-ubyte"), 0x801, (n,), bytes(i % 10 for i in range(n)))
        jobs.call(["data", "import", "idx", "images", "images.h5"], jobs.cpu())
    if net == "resnet18":
        for name in (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"):
            with open(os.path.join(folder, name), "wb") as f:
                f.writelines(bytes([i % 10]) + rng.randbytes(3072) for i in range(20))
        with open(os.path.join(folder, "batches.meta.txt"), "w", encoding="utf-8") as f:
            f.writelines(f"class{i}\n" for i in range(10))
        jobs.call(["data", "import", "cifar10", "images", "images.h5"], jobs.cpu())


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
    parser.add_argument("--net", default="small", choices=NETS)
    parser.add_argument("--config", help="instead of --net")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0, help="whose counts are printed")
    parser.add_argument("--step", type=int, default=3, help="the step that is printed, from 1")
    parser.add_argument("--details", action="store_true", help="also each kernel and operator")
    options, settings = parser.parse_known_args()
    config, of_net = (os.path.abspath(options.config), []) if options.config else NETS[options.net]
    with Jobs(options.pal, options.stand_ins) as jobs:
        make_images(jobs, options.net)
        lines = count(jobs, [*of_net, f"train.steps={options.step}", *settings], options.ranks, config)[options.rank]
    print(table(of_step(lines, options.step), options.details))
    return 0


if __name__ == "__main__":
    sys.exit(main())
