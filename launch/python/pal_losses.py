"""pal_losses: PAL's losses on a similarity graph, for your own PyTorch training code.

    loss = GraphLoss("vicreg", margin=2.0)          # any loss.kind; settings are the config's loss.* keys
    loss(z, views=2, pairs=pairs, weights=weights)  # z (views * n, D), view-major; a scalar with a gradient

The graph relates the views of a sample, the samples of one label (labels, -1 unknown), and the given pairs, whose
weights may be negative. launch/python/torch_ops.cpp lists all arguments. The library is build/libpal_torch_ops.so, or
$PAL_TORCH_OPS. It works with the torch that it was built with: .deps/venv/bin/python has it.
"""
import csv
import os
import re

import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _load(library):
    if not os.path.exists(library):
        raise ImportError(f"{library} does not exist; build it with cmake --build {ROOT}/build --target pal_torch_ops, "
                          "or name it in PAL_TORCH_OPS")
    with open(library, "rb") as file:
        found = re.search(rb"pal_torch_ops for torch ([\w.]+)", file.read())
    built_with = found[1].decode() if found else "of an unknown version"
    if torch.__version__.split("+")[0] != built_with:
        raise ImportError(f"{library} was built with torch {built_with}, this Python has torch {torch.__version__}; "
                          f"use {ROOT}/.deps/venv/bin/python, or run launch/setup with "
                          f"Torch_DIR={torch.utils.cmake_prefix_path}/Torch in the environment and build PAL again")
    torch.ops.load_library(library)


_load(os.environ.get("PAL_TORCH_OPS", f"{ROOT}/build/libpal_torch_ops.so"))


class GraphLoss(torch.nn.Module):
    def __init__(self, kind, **settings):
        super().__init__()
        self.kind, self.settings = kind, [f"loss.{name}={value}" for name, value in settings.items()]

    def forward(self, z, **graph):
        return getattr(torch.ops.pal, self.kind)(z, settings=self.settings, **graph)


def read_pairs(path):
    """A CSV of lines i,j or i,j,weight over a data set -> pairs (E, 2), weights (E), by default 1."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(line for line in file if line[0].isdigit()))
    pairs, weights = [[int(i), int(j)] for i, j, *_ in rows], [float(row[2]) if len(row) > 2 else 1.0 for row in rows]
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2), torch.tensor(weights, dtype=torch.float64)


def pairs_of_batch(pairs, weights, samples):
    """The pairs whose two ends are in the batch (sample ids, each once), as positions in it."""
    position = torch.full((int(max(samples.max(), pairs.max() if len(pairs) else 0)) + 1,), -1)
    position[samples] = torch.arange(len(samples))
    at = position[pairs]
    known = (at >= 0).all(1)
    return at[known], weights[known]
