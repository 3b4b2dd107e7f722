#!/usr/bin/env python3
"""ddp_step: the Python peer of `pal bench step`: one VICReg step of torchvision's ResNet-18 under DDP and gloo.

What a PyTorch user would write: the official VICReg loss with its gathering layer, DistributedDataParallel over gloo,
local batch norm, SGD with momentum. The same initial weights and the same batches as ours come from a file.

    ddp_step.py --setup DIR                   installs torchvision (no dependencies) into DIR, if needed
    ddp_step.py --input FILE --packages DIR [options]

Input, a safetensors file (float32 or float64; converted to --dtype):
    backbone.*, projector.*      initial parameters by torchvision's and our projector's names; buffers are optional
    batch.K.view.V               images (B, 3, H, W) of the GLOBAL batch, K = 0, 1, ... and V = 0, 1; step s uses batch
                                 s mod (number of batches); rank r of W takes the rows [r B/W, (r+1) B/W)
    __metadata__                 lr, momentum, weight_decay (not for 1-D parameters), stem (cifar, imagenet),
                                 views (joint: one forward for both views; separate: one each)

Output of rank 0, one JSON object per line:
    {"ready": true, "torch": ..., "torchvision": ..., "ranks": W, "threads": 1, "parameters": n}
    {"losses": [...], "ms": [...], "loss_bytes": n}   global loss before each update, time of each step, and the
                                              bytes that the collectives of the loss leave on a rank per step
    {"done": true, "peak_mb": ...}            VmHWM of rank 0, last

Without --serve it runs --steps steps and ends. With --serve it reads commands from standard input: "go K" runs K more
steps and answers with a losses line; "end" or the end of input ends it. It blocks between commands and uses no CPU, so
that the caller can alternate turns. A step is timed from one barrier to the next, so it is that of the slowest rank.
Errors: one line on standard error, exit code 1.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

from peers import install, peak_mb, read_safetensors, say


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--setup", metavar="DIR")
    parser.add_argument("--input", metavar="FILE")
    parser.add_argument("--packages", metavar="DIR", help="where --setup put torchvision")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--bind", action="store_true", help="rank r on the r-th core it may use")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--meet", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.setup and not given.input:
        parser.error("give --setup DIR or --input FILE")
    return given


def build_model(tensors, metadata, dtype):
    import torch
    import torchvision
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = torchvision.models.resnet18()
            self.backbone.fc = nn.Identity()
            if metadata.get("stem", "cifar") == "cifar":
                self.backbone.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
                self.backbone.maxpool = nn.Identity()
            widths, layers = [512], []
            linears = sorted((int(n.split(".")[1]), t) for n, t in tensors.items() if n.startswith("projector.") and t.dim() == 2)
            for _, weight in linears:
                if layers:
                    layers += [nn.BatchNorm1d(widths[-1]), nn.ReLU(inplace=True)]
                layers.append(nn.Linear(widths[-1], weight.shape[0], bias=False))
                widths.append(weight.shape[0])
            self.projector = nn.Sequential(*layers)

        def forward(self, x, y):
            if metadata.get("views", "separate") == "joint":
                z = self.projector(self.backbone(torch.cat([x, y])))
                return z[: x.shape[0]], z[x.shape[0]:]
            return self.projector(self.backbone(x)), self.projector(self.backbone(y))

    model = Model().to(dtype)  # before the weights: loading rounds to the model's type
    weights = {n: t for n, t in tensors.items() if not n.startswith("batch.")}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    missing = [n for n in missing if n in dict(model.named_parameters())]
    if missing or unexpected:
        raise ValueError(f"the weights do not fit ResNet-18: missing {missing[:3]}, unexpected {unexpected[:3]}")
    return model


def vicreg(x, y, gather):
    """The official loss, weights 25, 25, 1: invariance of the own rows, variance and covariance of the gathered rows."""
    import torch
    import torch.nn.functional as F
    invariance = F.mse_loss(x, y)
    x, y = torch.cat(gather(x)), torch.cat(gather(y))
    rows, dims = x.shape
    x, y = x - x.mean(dim=0), y - y.mean(dim=0)
    spread = [torch.sqrt(z.var(dim=0) + 0.0001) for z in (x, y)]
    variance = sum(torch.mean(F.relu(1 - s)) / 2 for s in spread)
    covariance = 0
    for z in (x, y):
        c = (z.T @ z) / (rows - 1)
        off_diagonal = c.flatten()[:-1].view(dims - 1, dims + 1)[:, 1:].flatten()
        covariance = covariance + off_diagonal.pow_(2).sum() / dims
    return 25 * invariance + 25 * variance + covariance


def make_gather():
    """All ranks' rows, with a gradient: the sum over ranks comes back in backward."""
    import torch
    import torch.distributed as dist

    class Gather(torch.autograd.Function):
        received = 0   # bytes that collectives left here

        @staticmethod
        def forward(ctx, z):
            Gather.received += dist.get_world_size() * z.numel() * z.element_size()
            out = [torch.zeros_like(z) for _ in range(dist.get_world_size())]
            dist.all_gather(out, z.contiguous())
            return tuple(out)

        @staticmethod
        def backward(ctx, *gradients):
            total = torch.stack(gradients)
            Gather.received += total.numel() * total.element_size()
            dist.all_reduce(total)
            return total[dist.get_rank()]

    return Gather


def join(given):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + given.meet, rank=given.rank, world_size=given.ranks)


class Peer:
    """One rank's side of the training; steps() is the measured part."""

    def __init__(self, given):
        import torch
        from torch.nn.parallel import DistributedDataParallel
        join(given)
        tensors, metadata = read_safetensors(given.input)
        dtype = getattr(torch, given.dtype)
        layout = torch.channels_last if given.channels_last else torch.contiguous_format
        model = build_model(tensors, metadata, dtype).to(memory_format=layout)
        count = len({n.split(".")[1] for n in tensors if n.startswith("batch.")})
        per_rank, rest = divmod(tensors["batch.0.view.0"].shape[0], given.ranks)
        if rest:
            raise ValueError(f"{given.ranks} ranks do not divide the batch")
        own = slice(given.rank * per_rank, (given.rank + 1) * per_rank)
        self.batches = [[tensors[f"batch.{k}.view.{v}"][own].to(dtype).contiguous(memory_format=layout) for v in range(2)]
                        for k in range(count)]
        self.model = DistributedDataParallel(model, forward_sync_buffers=False, gradient_as_bucket_view=True)
        decay, setting = float(metadata.get("weight_decay", 0)), {"lr": float(metadata["lr"]), "momentum": float(metadata["momentum"])}
        parameters = list(model.parameters())
        self.optimizer = torch.optim.SGD([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": decay},
                                          {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}], **setting)
        self.gather, self.step_number = make_gather(), 0

    def next_batch(self):
        self.step_number += 1
        return self.batches[(self.step_number - 1) % len(self.batches)]

    def steps(self, count):
        import torch
        import torch.distributed as dist
        losses, times = [], []
        for _ in range(count):
            dist.barrier()
            start = time.perf_counter()
            x, y = self.next_batch()
            self.optimizer.zero_grad()
            loss = vicreg(*self.model(x, y), self.gather.apply)
            loss.backward()
            self.optimizer.step()
            dist.barrier()
            times.append((time.perf_counter() - start) * 1000)
            losses.append(loss.detach())
        mean = torch.stack(losses).double()  # the invariance is each rank's own; the rest is the same on all
        dist.all_reduce(mean)
        received, self.gather.received = self.gather.received, 0
        return {"losses": (mean / dist.get_world_size()).tolist(), "ms": times, "loss_bytes": received // count}


def agree(count):
    """Rank 0's count, on every rank; 0 ends."""
    import torch
    import torch.distributed as dist
    number = torch.tensor([count], dtype=torch.int64)
    dist.broadcast(number, 0)
    return int(number)


def requests(given):
    """How many steps to run, time and again: from standard input, or --steps once. On rank 0."""
    if not given.serve:
        yield given.steps
        return
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["end"]:
            return
        if len(words) != 2 or words[0] != "go" or not words[1].isdigit() or int(words[1]) == 0:
            raise ValueError(f"not a request: {line.strip()!r}; say 'go K' or 'end'")
        yield int(words[1])


def run(given, make_peer):
    import torch
    import torchvision
    if given.bind:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[given.rank]})
    peer = make_peer(given)
    if given.rank != 0:
        while count := agree(0):
            peer.steps(count)
        return
    say(ready=True, torch=torch.__version__, torchvision=torchvision.__version__, ranks=given.ranks, threads=1,
        parameters=sum(p.numel() for p in peer.model.parameters()))
    try:
        for count in requests(given):
            say(**peer.steps(agree(count)))
    finally:
        agree(0)
    say(done=True, peak_mb=round(peak_mb(), 1))


def main(make_peer=Peer):
    given = arguments()
    if given.setup:
        return install(given.setup, ["torchvision", "pillow"])  # torchvision cannot be imported without pillow
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if given.packages:
        sys.path.insert(0, given.packages)
    with tempfile.TemporaryDirectory() as folder:
        others = []
        if given.rank == 0:
            given.meet = os.path.join(folder, "meet")
            others = [subprocess.Popen([sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:], "--rank", str(r), "--meet", given.meet],
                                       stdin=subprocess.DEVNULL) for r in range(1, given.ranks)]
        try:
            run(given, make_peer)
        except Exception as error:  # one line for the caller, whatever went wrong
            print(f"ddp_step rank {given.rank}: {error}", file=sys.stderr, flush=True)
            for other in others:
                other.kill()
            os._exit(1)
        return max([other.wait() for other in others], default=0)


if __name__ == "__main__":
    sys.exit(main())
