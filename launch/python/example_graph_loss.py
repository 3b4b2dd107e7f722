#!/usr/bin/env python3
"""example_graph_loss: a plain PyTorch loop whose loss is PAL's, on a graph of pairs from a CSV.

    example_graph_loss.py [PAIRS.csv] [--loss vicreg] [--steps 400]

Points lie on four rings; the CSV lists pairs of points on the same ring (1) or on different rings (-1). Without a CSV
the example writes one. It prints the accuracy of a linear classifier (least squares) on the embedding before and after.
"""
import argparse
import math
import random
import tempfile

import torch

from pal_losses import GraphLoss, pairs_of_batch, read_pairs

SAMPLES, RINGS = 400, 4


def rings(generator):
    label = torch.randint(RINGS, (SAMPLES,), generator=generator)
    angle = 2 * math.pi * torch.rand(SAMPLES, generator=generator)
    return torch.stack([angle.cos(), angle.sin()], 1) * (1.0 + label)[:, None], label


def write_pairs(path, label, count=8000):
    draw, asked = random.Random(1), set()
    with open(path, "w", encoding="utf-8") as file:
        file.write("i,j,weight\n")
        while len(asked) < count:
            i, j = sorted(draw.sample(range(SAMPLES), 2))
            if (i, j) not in asked:
                asked.add((i, j))
                file.write(f"{i},{j},{1 if label[i] == label[j] else -1}\n")


def linear_accuracy(z, label):
    x = torch.cat([z, torch.ones(len(z), 1)], 1)
    weights = torch.linalg.lstsq(x, torch.nn.functional.one_hot(label, RINGS).float()).solution
    return ((x @ weights).argmax(1) == label).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", nargs="?")
    parser.add_argument("--loss", default="vicreg")
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    points, label = rings(generator)
    if args.pairs is None:
        args.pairs = tempfile.NamedTemporaryFile(suffix=".csv", delete=False).name
        write_pairs(args.pairs, label)
    pairs, weights = read_pairs(args.pairs)
    model = torch.nn.Sequential(torch.nn.Linear(2, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
                                torch.nn.Linear(128, 8))
    loss_on_graph = GraphLoss(args.loss)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    print(f"rings classified correctly: {linear_accuracy(model(points).detach(), label):.3f} before", flush=True)
    for step in range(args.steps):
        samples = torch.randperm(SAMPLES, generator=generator)[:256]
        views = [points[samples] + 0.05 * torch.randn(256, 2, generator=generator) for _ in range(2)]
        batch_pairs, batch_weights = pairs_of_batch(pairs, weights, samples)
        loss = loss_on_graph(model(torch.cat(views)), views=2, pairs=batch_pairs, weights=batch_weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"rings classified correctly: {linear_accuracy(model(points).detach(), label):.3f} after")


if __name__ == "__main__":
    main()
