#!/usr/bin/env python3
"""fashion_peer: the ssl run of `pal reproduce fashion` in PyTorch with lightly, compared in accuracy and time.

    .deps/venv/bin/python tests/bench/fashion_peer.py                      reads our side from runs/fashion/ssl-SEED
    .deps/venv/bin/python tests/bench/fashion_peer.py --pal build/pal      trains our side too, in turns

What a PyTorch user would write for configs/quickstart.yaml: the same network and initialization, torchvision's transforms
on PIL images in a DataLoader with one worker per rank, lightly's VICRegLoss (25/25/1, gathered), DDP over gloo with 2
processes of 1 thread, fused AdamW 3e-3 with our warm-up and cosine, 400 steps of 256. Then kNN and a linear probe, as in
pal eval. Differences: the random numbers; batch norm uses the rows of one process (torch's synchronized one needs a GPU);
an epoch has 234 steps and skips 96 images, ours has 235. This script also evaluates our encoders: load_state_dict accepts
them and the results equal those of pal eval, so network and evaluation are the same.

Seconds count the steps; CPU-seconds count all work of the processes including the start, and are the better figure on a
busy machine. Each seed's result is stored in --out, so the same command continues after a stop. Prints a table in
Markdown and writes table.json; exit code 1 when our mean is more than two of the peer's deviations below its mean.
"""
import argparse
import gzip
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PACKAGES = os.path.join(ROOT, ".deps", "peer")
IMAGES = "/usr/share/datasets/fashion-mnist"
sys.path[:0] = [HERE]
sys.path.append(PACKAGES)

import ddp_quickstart
from peers import install, read_safetensors, versions, write_safetensors

BATCH, PEAK, WARMUP, FINAL = 256, 3e-3, 0.1, 0.001   # of configs/quickstart.yaml; the last two are defaults
# The settings of a run with the same recipe, as `pal config` prints them.
SAME = {"data.limit": "0", "augment.views": "2", "augment.crop_scale": "[0.4, 1]", "augment.jitter_strength": "[0.4, 0.4, 0, 0]", "augment.gray": "[0]",
        "augment.blur": "[0]", "augment.mean": "[0.286]", "augment.std": "[0.353]", "model.backbone": "convnet", "model.widths": "[16, 32, 64, 256]",
        "model.projector": "[256, 256, 128]", "graph.kind": "ssl", "loss.kind": "vicreg", "loss.invariance": "25", "loss.variance": "25", "loss.covariance": "1",
        "loss.moments": "per_view", "train.global_batch": str(BATCH), "train.views": "joint", "optim.kind": "adamw", "optim.lr": "0.003",
        "optim.weight_decay": "0.0001", "optim.final_ratio": "0.001"}


def labels_of(folder, split):
    import numpy
    import torch
    with gzip.open(f"{folder}/{split}-labels-idx1-ubyte.gz") as file:
        return torch.from_numpy(numpy.frombuffer(file.read(), numpy.uint8, offset=8).astype("int64"))


def images_of(folder, split):
    import numpy
    with gzip.open(f"{folder}/{split}-images-idx3-ubyte.gz") as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 28, 28)


# ---- the network, under the names of our checkpoints -----------------------------------------------------------------

def make_net():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

        def forward(self, x):
            return torch.relu_(self.bn(self.conv(x)))

    class Backbone(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [3, 16, 32, 64, 256]   # gray images are repeated to three channels
            self.blocks = nn.ModuleList(Block(widths[k], widths[k + 1], 2 if k else 1) for k in range(4))

        def forward(self, x):
            x = x.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)
            for block in self.blocks:
                x = block(x)
            return x.mean((2, 3))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = Backbone()
            self.projector = nn.Sequential(nn.Linear(256, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(inplace=True), nn.Linear(256, 256, bias=False),
                                           nn.BatchNorm1d(256), nn.ReLU(inplace=True), nn.Linear(256, 128, bias=False))

        def forward(self, x, y):
            return self.projector(self.backbone(torch.cat([x, y]))).chunk(2)   # one forward for both views

    return Net().to(memory_format=torch.channels_last)


# ---- the peer's training ---------------------------------------------------------------------------------------------

def rate(step, steps):
    """Share of the peak: linear warm-up over a tenth of the run, then half a cosine to a thousandth."""
    warm = int(steps * WARMUP)
    if step < warm:
        return (step + 1) / warm
    high = 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
    return high + FINAL * (1 - high)


class OwnBatches:
    """A rank's part of each step's batch, in an order of (seed, epoch) that all ranks draw alike."""

    def __init__(self, seed, samples, steps, rank, ranks):
        self.seed, self.samples, self.steps, self.rank, self.ranks = seed, samples, steps, rank, ranks

    def __len__(self):
        return self.steps

    def __iter__(self):
        import torch
        per_epoch = self.samples // BATCH
        for step in range(self.steps):
            epoch, place = divmod(step, per_epoch)
            if place == 0:
                order = torch.randperm(self.samples, generator=torch.Generator().manual_seed(1000 * self.seed + epoch))
            yield order[place * BATCH:(place + 1) * BATCH].chunk(self.ranks)[self.rank].tolist()


def train_rank(rank, ranks, seed, steps, folder, meet, out):
    import torch
    import torch.distributed as dist
    from lightly.loss.vicreg_loss import VICRegLoss
    from torch.nn.parallel import DistributedDataParallel
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=ranks)
    images = images_of(folder, "train")
    start = time.perf_counter()
    torch.manual_seed(seed)
    net = make_net()
    model = DistributedDataParallel(net, forward_sync_buffers=False, gradient_as_bucket_view=True)
    torch.manual_seed(1000 * seed + rank)   # from here on each rank draws its own views
    parameters = list(net.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 1e-4},
                                   {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}], lr=PEAK, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, steps))
    criterion = VICRegLoss(gather_distributed=True)
    loader = torch.utils.data.DataLoader(ddp_quickstart.TwoViews(images), batch_sampler=OwnBatches(seed, len(images), steps, rank, ranks), num_workers=1, prefetch_factor=3)
    for step, (x, y) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = criterion(*model(x, y))
        loss.backward()
        optimizer.step()
        schedule.step()
        if rank == 0 and (step % 50 == 0 or step == steps):
            print(f"  seed {seed}: step {step} of {steps}, loss {loss.item():.3f}, {time.perf_counter() - start:.0f} s", flush=True)
    dist.barrier()
    seconds = time.perf_counter() - start
    if rank == 0:
        write_safetensors(f"{out}.part", net.state_dict() | {"seconds": torch.tensor([seconds], dtype=torch.float64)})   # of the steps alone
        os.rename(f"{out}.part", out)
    dist.destroy_process_group()


# ---- evaluation, as pal eval linear knn ------------------------------------------------------------------------------

def judge(state, folder):
    """Top-1 of a linear probe and of kNN on the backbone's features of all images, one plain view each."""
    import torch
    net = make_net()
    net.load_state_dict(state)
    net.eval()
    with torch.no_grad():
        x, test = (torch.cat([net.backbone((torch.from_numpy(part.copy())[:, None].float() / 255 - 0.286) / 0.353) for part in parts])
                   for parts in ([a[i:i + 1000] for i in range(0, len(a), 1000)] for a in (images_of(folder, "train"), images_of(folder, "t10k"))))
    y, truth = labels_of(folder, "train"), labels_of(folder, "t10k")
    mean, std = x.mean(0), x.std(0, unbiased=False).clamp_min(1e-8)
    flat, plain = (x - mean) / std, (test - mean) / std
    w, b = torch.zeros(x.shape[1], 10, requires_grad=True), torch.zeros(10, requires_grad=True)
    solver = torch.optim.LBFGS([w, b], max_iter=100, tolerance_grad=1e-6, tolerance_change=1e-9, history_size=10, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        loss = torch.nn.functional.cross_entropy(flat @ w + b, y) + 0.5e-4 * w.square().sum()
        loss.backward()
        return loss
    solver.step(closure)
    linear = ((plain @ w + b).argmax(1) == truth).double().mean().item()
    support, right = torch.nn.functional.normalize(x), 0
    for part, wanted in zip(torch.nn.functional.normalize(test).split(1000), truth.split(1000)):
        similarity, index = (part @ support.T).topk(20)
        votes = torch.zeros(len(part), 10).scatter_add_(1, y[index], ((similarity - 1) / 0.07).exp())
        right += (votes.argmax(1) == wanted).sum().item()
    return {"linear": linear, "knn": right / len(truth)}


# ---- both sides, by seed ---------------------------------------------------------------------------------------------

def kept(path, make):
    """What make() gives, made once."""
    if not os.path.exists(path):
        found = make()
        with open(path + ".part", "w", encoding="ascii") as file:
            json.dump(found, file)
        os.rename(path + ".part", path)
    with open(path, encoding="ascii") as file:
        return json.load(file)


def cpu_seconds(run):
    """Of the processes that run() starts and waits for, their own children included: what others do meanwhile does not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def train_peer(seed, weights, args):
    from torch import multiprocessing
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(train_rank, (args.processes, seed, args.steps, args.images, f"{folder}/meet", weights), nprocs=args.processes)


def peer(seed, args):
    weights = f"{args.out}/peer-{seed}.safetensors"
    spent = kept(f"{args.out}/peer-{seed}-cpu.json", lambda: cpu_seconds(lambda: train_peer(seed, weights, args)))
    state = read_safetensors(weights)[0]
    seconds = state.pop("seconds").item()
    return kept(f"{args.out}/peer-{seed}.json", lambda: judge(state, args.images)) | {"seconds": seconds} | spent


def train_ours(seed, args):
    run, data = f"{args.runs}/ssl-{seed}", f"{args.out}/fashion.h5"
    pal = lambda *words: subprocess.run([os.path.abspath(args.pal), *words], check=True, stdout=subprocess.DEVNULL)
    if not os.path.exists(data):
        pal("data", "import", "idx", args.images, data)
    train = lambda: pal("train", f"{ROOT}/configs/quickstart.yaml", "graph.kind=ssl", f"data.train={data}", f"data.test={args.out}/fashion-test.h5",
                        f"train.steps={args.steps}", f"train.seed={seed}", "--run-dir", run, "--np", str(args.processes))
    kept(f"{args.out}/ours-{seed}-cpu.json", lambda: cpu_seconds(train))
    if not os.path.exists(f"{run}/eval.json"):
        pal("eval", run, "linear", "knn", "--json", f"{run}/eval.json")


def settings(run):
    """section.key -> value of a resolved config, as it is written."""
    found, section = {}, ""
    with open(f"{run}/config.yaml", encoding="utf-8") as file:
        for line in file:
            if match := re.match(r"(\w+):\s*$", line):
                section = match.group(1)
            elif match := re.match(r"  (\w+): (.*?)\s*(?:#.*)?$", line):
                found[f"{section}.{match.group(1)}"] = match.group(2).strip("\"'")
    return found


def ours(seed, args):
    run = f"{args.runs}/ssl-{seed}"
    try:
        with open(f"{run}/metrics.jsonl", encoding="ascii") as file:
            lines = [json.loads(line) for line in file]
        with open(f"{run}/eval.json", encoding="utf-8") as file:
            results = {r["method"]: r["top1"] for r in json.load(file)["results"]}
        with open(f"{run}/machine.json", encoding="utf-8") as file:
            starts = len(json.load(file))
    except (OSError, ValueError) as error:
        sys.exit(f"fashion_peer: {run} is no finished run ({error}); make it with `pal reproduce fashion`, or give --pal build/pal")
    told = settings(run)
    wanted = SAME | {"train.steps": str(args.steps), "train.seed": str(seed)}
    if wrong := [f"{key} is {told.get(key)}, not {value}" for key, value in wanted.items() if told.get(key) != value]:
        sys.exit(f"fashion_peer: {run} is another recipe: {'; '.join(wrong[:3])}")
    if not lines[-1].get("done"):
        sys.exit(f"fashion_peer: {run} has not ended; give the command that began it again")
    # A resumed run reports the seconds of its last start only.
    rates = [line["images_per_s"] for line in lines if line.get("images_per_s")]
    seconds = lines[-1]["seconds"] if starts == 1 else args.steps * BATCH / statistics.median(rates)
    state = read_safetensors(f"{run}/checkpoints/step-{args.steps}/model.safetensors")[0]
    again = kept(f"{args.out}/ours-{seed}.json", lambda: judge(state, args.images))
    spent = kept(f"{args.out}/ours-{seed}-cpu.json", lambda: {"cpu": None})   # unknown of a run that was not started here
    return {"linear": results["linear"], "knn": results["knn"], "seconds": seconds, "here": again} | spent


# ---- the table -------------------------------------------------------------------------------------------------------

def spread(values, scale=100):
    return f"{scale * statistics.mean(values):.2f}" + (f" ± {scale * statistics.stdev(values):.2f}" if len(values) > 1 else "")


def table(found, args):
    lock = versions()
    names = {"peer": f"lightly {lock['lightly']}, torchvision {lock['torchvision']}, DDP", "ours": "PAL"}
    print(f"\n| ssl, {args.steps} steps of {BATCH}, {args.seeds} seed{'s' if args.seeds > 1 else ''}, {args.processes} processes × 1 thread | linear probe % | kNN % | seconds a run | CPU-seconds | images/s |\n|---|---:|---:|---:|---:|---:|")
    for side, name in names.items():
        column = {key: [r[key] for r in found[side]] for key in ("linear", "knn", "seconds")}
        middle, spent = statistics.median(column["seconds"]), [r["cpu"] for r in found[side] if r["cpu"]]
        print(f"| {name} | {spread(column['linear'])} | {spread(column['knn'])} | {middle:.0f} ({min(column['seconds']):.0f} to {max(column['seconds']):.0f}) | {f'{statistics.median(spent):.0f}' if spent else '-'} | {args.steps * BATCH / middle:.0f} |")
    apart = max(abs(r["here"][key] - r[key]) for r in found["ours"] for key in ("linear", "knn"))
    print(f"\nOur encoders evaluated by the peer's code: at most {100 * apart:.2f} points from pal eval.")
    theirs, mine = [r["linear"] for r in found["peer"]], [r["linear"] for r in found["ours"]]
    away, bound = statistics.mean(mine) - statistics.mean(theirs), 2 * statistics.stdev(theirs) if len(theirs) > 1 else math.inf
    said = "within" if abs(away) <= bound else "above" if away > 0 else "below"
    spread_text = f"{said} two of its deviations (± {100 * bound:.2f})" if len(theirs) > 1 else "one seed, so there is no spread to judge by"
    ratio = statistics.median(r["seconds"] for r in found["peer"]) / statistics.median(r["seconds"] for r in found["ours"])
    print(f"Linear probe: ours is {100 * away:+.2f} points from the peer's mean, {spread_text}. Time: the peer takes {ratio:.2f} times as long.")
    with open(f"{args.out}/table.json", "w", encoding="ascii") as file:
        json.dump({"steps": args.steps, "batch": BATCH, "processes": args.processes, **found, "difference": away, "verdict": said, "time_ratio": ratio}, file, indent=2)
    return 1 if said == "below" else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--images", default=IMAGES, help="folder of the IDX files, compressed")
    parser.add_argument("--runs", default="runs/fashion", help="where our runs ssl-SEED are")
    parser.add_argument("--pal", help="train our runs, too, into --out, in turns with the peer's")
    parser.add_argument("--out", default="runs/fashion-peer")
    args = parser.parse_args()
    if args.pal:
        args.runs = args.out
    if install(PACKAGES, ["lightly", "torchvision", "pillow"]) != 0:
        sys.exit("fashion_peer: the peer's packages cannot be installed (PyPI)")
    os.makedirs(args.out, exist_ok=True)
    # Results of another number of steps must not be mixed with these.
    asked = {"steps": args.steps, "images": args.images, "processes": args.processes}
    if kept(f"{args.out}/asked.json", lambda: asked) != asked:
        sys.exit(f"fashion_peer: {args.out} holds a comparison of other settings; give another --out, or remove it")
    found = {"peer": [], "ours": []}
    for seed in range(args.seeds):
        found["peer"].append(peer(seed, args))
        if args.pal:
            train_ours(seed, args)
        found["ours"].append(ours(seed, args))
        print(f"seed {seed}: " + "; ".join(f"{side} {100 * rows[-1]['linear']:.2f} %, kNN {100 * rows[-1]['knn']:.2f} %, {rows[-1]['seconds']:.0f} s" for side, rows in found.items()), flush=True)
    return table(found, args)


if __name__ == "__main__":
    sys.exit(main())
