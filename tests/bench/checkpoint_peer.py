#!/usr/bin/env python3
"""checkpoint_peer: how long PyTorch's ways to save a state block the training process; peer of `pal bench checkpoint`.

    checkpoint_peer.py --setup DIR            nothing to install
    checkpoint_peer.py --shapes FILE --out DIR

FILE is JSON: a list of [name, shape], float32. Commands on standard input: "save" (torch.save), "dcp"
(torch.distributed.checkpoint.async_save with its defaults), "dcp-kept" (the same with a staging buffer that is kept
between saves), "end". The answer is {"ms": until the call returned, "total_ms": until the files were written}.
"""
import argparse
import gc
import json
import os
import shutil
import sys
import time

from peers import peak_mb, say


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--setup", metavar="DIR")
    parser.add_argument("--shapes")
    parser.add_argument("--out")
    given = parser.parse_args()
    if given.setup:
        return 0
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
    with open(given.shapes, encoding="utf-8") as file:
        state = {name: torch.full(shape, 0.5) for name, shape in json.load(file)}
    kept = DefaultStager(StagingOptions(use_pinned_memory=False, use_shared_memory=False, use_async_staging=False, use_non_blocking_copy=False))
    say(ready=True, torch=torch.__version__, bytes=sum(t.nbytes for t in state.values()), threads=torch.get_num_threads())
    for line in sys.stdin:
        how, start = line.strip(), time.perf_counter()
        path = os.path.join(given.out, "peer-" + how)
        if how == "end":
            break
        if how == "save":
            torch.save(state, path)
            blocked = time.perf_counter()
        else:
            options = {"async_stager": kept} if how == "dcp-kept" else {}
            future = dcp.async_save(state, checkpoint_id=path, **options)
            blocked = time.perf_counter()
            future.result()
        total = time.perf_counter()
        (shutil.rmtree if os.path.isdir(path) else os.remove)(path)
        gc.collect()
        say(ms=1000 * (blocked - start), total_ms=1000 * (total - start))
    say(done=True, peak_mb=round(peak_mb(), 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
