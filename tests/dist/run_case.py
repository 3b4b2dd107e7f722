"""run_case: what tests of whole runs share: a small data set, a config, and the real binary on real MPI ranks.

A test file that uses it is called as  TEST.py PAL [test names]  (standard library only).
"""
import contextlib
import ctypes
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

PAL = os.path.abspath(sys.argv[1])
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
SIDE, TRAIN, TEST, CLASSES = 12, 90, 30, 3

CONFIG = """
data: {train: set.h5, test: set-test.h5, threads: 1}
augment: {crop_scale: [0.5, 1.0], mean: [0.5], std: [0.25]}
model: {backbone: convnet, widths: [6, 8], projector: [16, 8]}
graph: {kind: mixed, alpha: 0.5, labeled_fraction: 0.5}
train: {global_batch: 13, steps: 10, seed: 3, dtype: float64, threads: 1}
optim: {kind: lars, lr: 0.05, lars_eta: 0.02, weight_decay: 1.0e-4}
checkpoint: {every: 5, keep: 10}
log: {every: 1}
"""

NNCLR = ["loss.kind=nnclr", "loss.queue=40", "model.predictor=[12, 8]", "loss.temperature=0.5"]
# A tenth of the answers is wrong; graph.deduction=once.
CAREFUL = ["graph.labeled_fraction=0", "oracle.sampler=captcha", "oracle.templates=discover", "oracle.every=1", "oracle.questions_per_round=9",
           "oracle.pool=60", "oracle.noise=0.1", "graph.deduction=once"]

# A short run in float32, for tests that look at how it is started and ended.
PLAIN = """
data: {train: set.h5, test: set-test.h5, threads: 1}
augment: {crop_scale: [0.5, 1.0], mean: [0.5], std: [0.25]}
model: {backbone: convnet, widths: [6, 8], projector: [16, 8]}
train: {global_batch: 12, seed: 3, threads: 1}
optim: {kind: lars, lr: 0.05, lars_eta: 0.02, weight_decay: 1.0e-4}
checkpoint: {every: 1000}
log: {every: 1}
"""


def write_idx(path, magic, shape, payload):
    with open(path, "wb") as f:
        f.write(struct.pack(">i", magic) + struct.pack(">%di" % len(shape), *shape) + payload)


def make_set(folder):
    """Images whose classes can be told apart: a bright bar at a height that depends on the class, plus noise."""
    rng = random.Random(1)
    for split, n in (("train", TRAIN), ("t10k", TEST)):
        images, labels = bytearray(), bytearray()
        for i in range(n):
            label = i % CLASSES
            labels.append(label)
            for y in range(SIDE):
                for _ in range(SIDE):
                    images.append(min(255, (170 if y // 4 == label else 20) + rng.randrange(80)))
        write_idx(f"{folder}/{split}-images-idx3-ubyte", 0x803, (n, SIDE, SIDE), bytes(images))
        write_idx(f"{folder}/{split}-labels-idx1-ubyte", 0x801, (n,), bytes(labels))


def read_safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        code = {"F64": "d", "F32": "f", "I64": "q"}[entry["dtype"]]
        begin, end = entry["data_offsets"]
        out[name] = struct.unpack("<%d%s" % ((end - begin) // struct.calcsize(code), code), data[begin:end])
    return out


def make_case(config):
    """A new folder with set.h5, set-test.h5 and c.yaml."""
    folder = tempfile.mkdtemp(prefix="pal-run-test-")
    os.makedirs(f"{folder}/idx")
    make_set(f"{folder}/idx")
    with open(f"{folder}/c.yaml", "w") as f:
        f.write(config)
    subprocess.run([PAL, "data", "import", "idx", "idx", "set.h5"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


def metrics_so_far(run_dir):
    """Of a run that may still write: whole lines only."""
    try:
        with open(f"{run_dir}/metrics.jsonl") as f:
            return [json.loads(line) for line in f.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


def processes_in(folder):
    """Processes that work in a folder: (pid, command line)."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                line = file.read().replace("\0", " ")
            if os.path.realpath(f"/proc/{pid}/cwd") == folder and "pal" in line:
                found.append((int(pid), line))
        except OSError:
            pass
    return found


def listening(pid):
    """The addresses at which a process waits for TCP connections, and the device that each socket is bound to."""
    process, found = os.pidfd_open(pid), []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError, ValueError):   # closed meanwhile
            if not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                continue
            with socket.socket(fileno=ctypes.CDLL(None).syscall(438, process, int(fd), 0)) as one:   # pidfd_getfd
                if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    device = one.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0").decode()
                    found.append((one.getsockname()[0], device))
    os.close(process)
    return found


class RunCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = make_case(CONFIG)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def call(self, *args, code=0, prefix=(), timeout=120):
        """Runs pal; the exit code must be `code`. Returns what it printed."""
        done = subprocess.run([*prefix, PAL, *args], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        if done.returncode != code:
            raise AssertionError(f"pal {' '.join(args)} gave exit code {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout

    def train(self, name, *args, ranks=2, code=0, config="c.yaml", timeout=120):
        return self.call("train", config, *args, "--run-dir", name, "--np", str(ranks), code=code, timeout=timeout)

    def metrics(self, name):
        with open(f"{self.folder}/{name}/metrics.jsonl") as f:
            return [json.loads(line) for line in f]

    def weights(self, name, step):
        return read_safetensors(f"{self.folder}/{name}/checkpoints/step-{step}/model.safetensors")

    def sha(self, name):
        last = self.metrics(name)[-1]
        self.assertTrue(last["done"])
        return last["weights_sha256"]

    def check_resume(self, name, *args):
        """A run that lost its newest checkpoint ends with the weights and the metrics of the uninterrupted one."""
        self.train(f"{name}-calm", *args)
        self.train(f"{name}-cut", *args)
        shutil.rmtree(f"{self.folder}/{name}-cut/checkpoints/step-10")
        out = self.train(f"{name}-cut", *args)
        self.assertIn("resumed at step 5", out)
        self.assertEqual(self.sha(f"{name}-calm"), self.sha(f"{name}-cut"))
        times = ("images_per_s", "seconds", "sync_hidden", "memory_mb")
        keep = lambda m: {k: v for k, v in m.items() if not k.endswith("_ms") and k not in times}
        self.assertEqual([keep(m) for m in self.metrics(f"{name}-calm")], [keep(m) for m in self.metrics(f"{name}-cut")])

    def one_sentence(self, out, *words):
        errors = [line for line in out.splitlines() if "error: " in line]
        self.assertEqual(len(errors), 1, out)
        for word in words:
            self.assertIn(word, errors[0])
