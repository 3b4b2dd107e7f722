#!/usr/bin/env python3
"""recovery: from kill -9 of a rank to the first new step, ours against torchrun, in turns; used by `pal bench recovery`.

    recovery.py --pal PAL --python PYTHON [--turns n] [--json FILE]

Both sides train a small convolutional network on two ranks x 1 thread and save every 50 steps. The script kills the last
and the first rank in turn. The time runs from the kill to the output line of the first step after the restart.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = """
data: {train: set.h5, threads: 1}
augment: {crop_scale: [0.5, 1.0], mean: [0.5], std: [0.25]}
model: {backbone: convnet, widths: [16, 32], projector: [64, 64]}
train: {global_batch: 32, steps: 1000000, threads: 1}
optim: {kind: sgd, lr: 0.01}
checkpoint: {every: 50, keep: 2}
log: {every: 1}
"""


def worker(folder):
    """The peer's rank, started by torchrun: a small net under DDP and gloo, saved every 50 steps by rank 0."""
    import torch
    import torch.distributed as dist
    from torch import nn
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, restart = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                        nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64))
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    saved, step = f"{folder}/saved.pt", 0
    if os.path.exists(saved):
        state = torch.load(saved, weights_only=True)
        net.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optim"])
        step = state["step"]
    with open(f"{folder}/steps.jsonl", "a", encoding="utf-8", buffering=1) as log:
        with open(f"{folder}/pid.{rank}", "w", encoding="utf-8") as file:
            json.dump({"pid": os.getpid()}, file)
        images = torch.rand(32, 3, 12, 12)
        while True:
            optimizer.zero_grad()
            model(images).square().mean().backward()
            optimizer.step()
            step += 1
            if rank == 0:
                log.write(json.dumps({"restart": restart, "step": step}) + "\n")
                if step % 50 == 0:
                    torch.save({"model": net.state_dict(), "optim": optimizer.state_dict(), "step": step}, saved + ".new")
                    os.replace(saved + ".new", saved)


def last_line(path):
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            lines = file.read().decode(errors="replace").split("\n")
        return json.loads(lines[-2]) if len(lines) > 1 else {}
    except (OSError, ValueError):
        return {}


def wait_for(what, seconds=60):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        if what():
            return time.perf_counter()
        time.sleep(0.002)
    raise RuntimeError("nothing happened for a minute")


def ranks_of(folder):
    """Our ranks, by rank."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", encoding="utf-8").read()
            if os.path.realpath(f"/proc/{pid}/cwd") == folder and "--run-dir" in line and "--np" not in line and "mpirun" not in line.split("\0")[0]:
                environment = open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace").read().split("\0")
                rank = next(e for e in environment if e.startswith("OMPI_COMM_WORLD_RANK="))
                found[int(rank.split("=")[1])] = int(pid)
        except (OSError, StopIteration):
            pass
    return found


class Job:
    """A job that is killed once; run() is the seconds from the kill to the first new step."""

    def __init__(self, command, folder, environment):
        self.folder = folder
        self.job = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.resumed = None
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.job.stdout:
            if line.startswith("resumed at step "):
                self.resumed = int(line.split()[3])

    def end(self):
        self.job.send_signal(signal.SIGTERM)
        try:
            self.job.wait(20)
        except subprocess.TimeoutExpired:
            self.job.kill()
            self.job.wait()


def ours(pal, victim):
    with tempfile.TemporaryDirectory(prefix="pal-recovery-") as folder:
        folder = os.path.realpath(folder)
        sys.argv[1:2] = [pal]
        sys.path.insert(0, os.path.join(HERE, "..", "dist"))
        from run_case import make_set
        os.makedirs(f"{folder}/idx")
        make_set(f"{folder}/idx")
        with open(f"{folder}/c.yaml", "w", encoding="utf-8") as file:
            file.write(CONFIG)
        subprocess.run([pal, "data", "import", "idx", "idx", "set.h5"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        job = Job([pal, "train", "c.yaml", "--run-dir", "run", "--np", "2"], folder, dict(os.environ))
        try:
            log = f"{folder}/run/metrics.jsonl"
            wait_for(lambda: last_line(log).get("step", 0) > 120)
            start = time.perf_counter()
            os.kill(ranks_of(folder)[victim], signal.SIGKILL)
            wait_for(lambda: job.resumed is not None)
            return wait_for(lambda: last_line(log).get("step", 0) > job.resumed) - start
        finally:
            job.end()


def peer(python, victim):
    with tempfile.TemporaryDirectory(prefix="pal-recovery-") as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        job = Job([python, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "3", "--master-port", "29511",
                   os.path.abspath(__file__), "--worker", folder], folder, environment)
        try:
            log = f"{folder}/steps.jsonl"
            wait_for(lambda: last_line(log).get("step", 0) > 120)
            start = time.perf_counter()
            os.kill(json.load(open(f"{folder}/pid.{victim}", encoding="utf-8"))["pid"], signal.SIGKILL)
            return wait_for(lambda: last_line(log).get("restart", 0) > 0) - start
        finally:
            job.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--worker", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--pal")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--json")
    given = parser.parse_args()
    if given.worker:
        return worker(given.worker)
    a, b = [], []
    for turn in range(given.turns):
        a.append(ours(os.path.abspath(given.pal), 1 - turn % 2))
        b.append(peer(os.path.abspath(given.python), 1 - turn % 2))
        print(f"turn {turn + 1}: kill -9 of rank {1 - turn % 2}: ours {a[-1]:.2f} s, torchrun {b[-1]:.2f} s", flush=True)
    mine, theirs = statistics.median(a), statistics.median(b)
    spread = max((max(x) - min(x)) / 2 / statistics.median(x) for x in (a, b))
    print(f"median: ours {mine:.2f} s, torchrun {theirs:.2f} s, ratio {theirs / mine:.2f} (peer / ours, larger is better), noise {spread:.2f}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"machine": {"cores": os.cpu_count()}, "results": [
                {"name": "recovery", "params": {"ranks": 2}, "ours_ms": 1000 * mine, "peer": "torchrun", "peer_ms": 1000 * theirs, "ratio": theirs / mine,
                 "noise": spread, "ours_samples_ms": [1000 * x for x in a], "peer_samples_ms": [1000 * x for x in b]}]}, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
