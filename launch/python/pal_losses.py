"""pal_losses: PAL's losses on a similarity graph, for your own PyTorch training code.

    loss = GraphLoss("vicreg", margin=2.0)          # any loss.kind; settings are the config's loss.* keys
    loss(z, views=2, pairs=pairs, weights=weights)  # z (views * n, D), view by view; a scalar with a gradient

The graph relates the views of a sample, the samples of one label (labels, -1 unknown), and the given pairs, whose weights
may be negative. launch/python/torch_ops.cpp lists all arguments. The library is build/libpal_torch_ops.so, or $PAL_TORCH_OPS.
"""
import csv
import os

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
torch.ops.load_library(os.environ.get("PAL_TORCH_OPS", os.path.join(HERE, "..", "..", "build", "libpal_torch_ops.so")))


class GraphLoss(torch.nn.Module):
    def __init__(self, kind, **settings):
        super().__init__()
        self.kind, self.settings = kind, [f"loss.{name}={value}" for name, value in settings.items()]

    def forward(self, z, **graph):
        return getattr(torch.ops.pal, self.kind)(z, settings=self.settings, **graph)


def read_pairs(path):
    """A CSV of lines i,j,weight over a data set -> pairs (E, 2), weights (E)."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = [(int(i), int(j), float(w)) for i, j, w in csv.reader(line for line in file if line[0].isdigit())]
    return torch.tensor([row[:2] for row in rows]).reshape(-1, 2), torch.tensor([row[2] for row in rows], dtype=torch.float64)


def pairs_of_batch(pairs, weights, samples):
    """The pairs whose two ends are in the batch (sample ids, each once), as positions in it."""
    position = torch.full((int(max(samples.max(), pairs.max() if len(pairs) else 0)) + 1,), -1)
    position[samples] = torch.arange(len(samples))
    at = position[pairs]
    known = (at >= 0).all(1)
    return at[known], weights[known]
