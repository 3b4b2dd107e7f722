#!/usr/bin/env python3
"""fashion_peer: the ssl line of `pal reproduce fashion` in PyTorch with lightly's VICReg loss: accuracy and time beside ours.

    .deps/venv/bin/python tests/bench/fashion_peer.py [--seeds 3] [--steps 400] [--ours build/pal] [--threads 2]

The same images, net (16-32-64-256, projector 256-256-128), views (torchvision's transforms on bytes), loss (lightly's, 25/25/1),
AdamW 3e-3 with a cosine, batch 256 and steps; then kNN and a linear probe by L-BFGS on centred views. With --ours also our run
of each seed, and whether our mean lies within two of the peer's deviations.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
IMAGES = "/usr/share/datasets/fashion-mnist"


def idx(name, offset):
    import numpy
    with gzip.open(f"{IMAGES}/{name}.gz") as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=offset)


def make_net():
    from torch import nn
    layers, before = [], 1
    for k, width in enumerate((16, 32, 64, 256)):
        layers += [nn.Conv2d(before, width, 3, 1 if k == 0 else 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        before = width
    backbone = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    head = nn.Sequential(nn.Linear(256, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(),
                         nn.Linear(256, 128, bias=False))
    return backbone, head


def train_peer(seed, steps, images):
    import torch
    from lightly.loss.vicreg_loss import VICRegLoss
    from torchvision.transforms import v2
    torch.manual_seed(seed)
    views = v2.Compose([v2.RandomResizedCrop(28, scale=(0.4, 1.0), antialias=True), v2.RandomHorizontalFlip(0.5),
                        v2.RandomApply([v2.ColorJitter(0.4, 0.4)], p=0.8), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.286], [0.353])])
    backbone, head = make_net()
    loss_on = VICRegLoss()
    parameters = [*backbone.parameters(), *head.parameters()]
    optimiser = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 1e-4}, {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0}], lr=3e-3)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: (t + 1) / warm if t < warm else 0.5 * (1 + torch.cos(torch.tensor((t - warm) / max(1, steps - warm) * torch.pi)).item()))
    order, start = torch.empty(0, dtype=torch.long), time.perf_counter()
    for _ in range(steps):
        if len(order) < 256:
            order = torch.randperm(len(images))
        batch, order = images[order[:256]], order[256:]
        pair = [torch.stack([views(image) for image in batch]) for _ in range(2)]
        z = head(backbone(torch.cat(pair)))
        loss = loss_on(*z.chunk(2))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return backbone.eval(), time.perf_counter() - start


def features(backbone, images):
    import torch
    with torch.no_grad():
        return torch.cat([backbone((part.float() / 255 - 0.286) / 0.353) for part in images.split(1000)])


def probe(x, y, test, labels):
    import torch
    mean, std = x.mean(0), x.std(0, unbiased=False).clamp_min(1e-8)
    x, test = (x - mean) / std, (test - mean) / std
    w, b = torch.zeros(x.shape[1], 10, requires_grad=True), torch.zeros(10, requires_grad=True)
    solver = torch.optim.LBFGS([w, b], max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        loss = torch.nn.functional.cross_entropy(x @ w + b, y) + 0.5e-4 * w.square().sum()
        loss.backward()
        return loss
    solver.step(closure)
    return ((test @ w + b).argmax(1) == labels).float().mean().item()


def ours(program, seed, steps, folder, threads):
    run = f"{folder}/ours-{seed}"
    start = time.perf_counter()
    subprocess.run([program, "train", f"{ROOT}/configs/quickstart.yaml", f"data.train={folder}/f.h5", f"data.test={folder}/f-test.h5", f"train.seed={seed}", f"train.steps={steps}",
                    f"train.threads={threads}", "--run-dir", run], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    subprocess.run([program, "eval", run, "linear", "--json", f"{run}.json"], check=True, stdout=subprocess.DEVNULL)
    with open(f"{run}.json", encoding="utf-8") as file:
        return json.load(file)["results"][0]["top1"], seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ours")
    args = parser.parse_args()
    sys.path[:0] = [HERE]
    from peers import install
    packages = f"{ROOT}/.deps/peer"
    assert install(packages, ["lightly", "torchvision", "pillow"]) == 0
    sys.path.append(packages)
    import torch
    torch.set_num_threads(args.threads)
    train = torch.from_numpy(idx("train-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28).copy())
    test = torch.from_numpy(idx("t10k-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28).copy())
    y, labels = torch.from_numpy(idx("train-labels-idx1-ubyte", 8).copy()).long(), torch.from_numpy(idx("t10k-labels-idx1-ubyte", 8).copy()).long()
    with tempfile.TemporaryDirectory() as folder:
        if args.ours:
            subprocess.run([args.ours, "data", "import", "idx", IMAGES, f"{folder}/f.h5"], check=True, stdout=subprocess.DEVNULL)
        rows = {"peer": [], "ours": []}
        for seed in range(args.seeds):
            backbone, seconds = train_peer(seed, args.steps, train)
            rows["peer"].append((probe(features(backbone, train), y, features(backbone, test), labels), seconds))
            if args.ours:
                rows["ours"].append(ours(os.path.abspath(args.ours), seed, args.steps, folder, args.threads))
            print({who: [f"{100 * a:.2f} % in {s:.0f} s" for a, s in found] for who, found in rows.items()}, flush=True)
    if args.ours and args.seeds > 1:
        peer, mine = [a for a, _ in rows["peer"]], [a for a, _ in rows["ours"]]
        within = abs(statistics.mean(mine) - statistics.mean(peer)) <= 2 * statistics.stdev(peer) + 0.005
        print(f"ours {100 * statistics.mean(mine):.2f} ± {100 * statistics.stdev(mine):.2f}, lightly {100 * statistics.mean(peer):.2f} ± {100 * statistics.stdev(peer):.2f}: "
              f"{'within' if within else 'outside'} two deviations and half a point; {statistics.median(s for _, s in rows['ours']):.0f} s against {statistics.median(s for _, s in rows['peer']):.0f} s")
        return 0 if within else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
