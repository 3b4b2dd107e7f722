"""job: one training run on the stand-ins or on the CPU, in a folder with small data sets of its own.

The program is pal_simgpu: the product's objects with its kernels as PTX. Without the stand-ins in the path it trains on
the CPU as the product does.
"""
import contextlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import zlib

SIDE, SAMPLES, CLASSES = 12, 60, 3

CONFIG = """
data: {train: set.h5, test: set-test.h5, threads: 1, memory_mb: 64}
augment: {crop_scale: [0.5, 1.0], mean: [0.5], std: [0.25]}
model: {backbone: convnet, widths: [6, 8], projector: [16, 8]}
graph: {kind: mixed, alpha: 0.5, labeled_fraction: 0.5}
train: {global_batch: 13, steps: 3, seed: 3, threads: 1, bucket_mb: 0.001}
optim: {kind: sgd, lr: 0.05, weight_decay: 1.0e-4}
checkpoint: {every: 1000}
log: {every: 1}
"""


def write_png(path, rows):
    """rows: lists of (r, g, b)."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def write_idx(path, magic, shape, payload):
    with open(path, "wb") as f:
        f.write(struct.pack(">i", magic) + struct.pack(">%di" % len(shape), *shape) + payload)


def write_npy(path, kind, shape, numbers):
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        f.write(struct.pack(f"<{len(numbers)}{'f' if kind == '<f4' else 'q'}", *numbers))


class Jobs:
    """Runs pal_simgpu in a temporary folder. Use as a context."""

    def __init__(self, pal, stand_ins):
        self.pal, self.stand_ins = os.path.abspath(pal), os.path.abspath(stand_ins)
        self.folder = tempfile.mkdtemp(prefix="pal-simgpu-")
        self.make_data()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def make_data(self):
        rng = random.Random(1)
        os.makedirs(self.path("idx"))
        for split, n in (("train", SAMPLES), ("t10k", 30)):
            images, labels = bytearray(), bytearray(i % CLASSES for i in range(n))
            for i in range(n):
                for y in range(SIDE):
                    images.extend(min(255, (170 if y // 4 == i % CLASSES else 20) + rng.randrange(80)) for _ in range(SIDE))
            write_idx(self.path("idx", f"{split}-images-idx3-ubyte"), 0x803, (n, SIDE, SIDE), bytes(images))
            write_idx(self.path("idx", f"{split}-labels-idx1-ubyte"), 0x801, (n,), bytes(labels))
        for i in range(36):
            os.makedirs(self.path("photos", f"class{i % CLASSES}"), exist_ok=True)
            rows = [[tuple(min(255, 40 + 50 * (x // 8 == i % CLASSES) + rng.randrange(60)) for _ in range(3)) for x in range(24)] for _ in range(20)]
            write_png(self.path("photos", f"class{i % CLASSES}", f"{i}.png"), rows)
        with open(self.path("c.yaml"), "w", encoding="utf-8") as f:
            f.write(CONFIG)
        with open(self.path("targets.csv"), "w", encoding="utf-8") as f:
            f.writelines(f"{rng.random():.4f},{rng.random():.4f}\n" for _ in range(SAMPLES))
        write_npy(self.path("rows.npy"), "<f4", (SAMPLES, 10), [rng.gauss(i % CLASSES, 1) for i in range(SAMPLES) for _ in range(10)])
        write_npy(self.path("rows-labels.npy"), "<i8", (SAMPLES,), [i % CLASSES for i in range(SAMPLES)])
        with open(self.path("pairs.csv"), "w", encoding="utf-8") as f:
            f.write("i,j,weight\n")
            for i in range(SAMPLES):
                for j in {rng.randrange(SAMPLES) for _ in range(8)} - {i}:
                    f.write(f"{i},{j},{1 if i % CLASSES == j % CLASSES else -0.5}\n")
        self.call(["data", "import", "idx", "idx", "set.h5"], self.cpu())
        self.call(["data", "import", "folder", "photos", "photos.h5", "--store", "jpeg"], self.cpu())

    # ---- environments ----

    def cpu(self):
        return {**os.environ, "OMP_NUM_THREADS": "1"}

    def device(self, ranks=1, seed=0, streams="late", **more):
        return {**self.cpu(), "LD_LIBRARY_PATH": self.stand_ins, "SIMGPU_DEVICES": str(ranks), "SIMGPU_SEED": str(seed),
                "SIMGPU_STREAMS": streams, **more}

    # ---- runs ----

    def call(self, arguments, environment, code=0, timeout=600, prefix=()):
        """Runs pal. Returns what it printed; raises when the exit code is not `code` or a stand-in complained."""
        with subprocess.Popen([*prefix, self.pal, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", env=environment, start_new_session=True) as process:
            try:
                out = process.communicate(timeout=timeout)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)   # mpirun and its ranks, too
                out = process.communicate()[0]
                raise AssertionError(f"pal {' '.join(arguments)} does not end within {timeout} s:\n{out}") from None
        if code is not None and process.returncode != code:
            raise AssertionError(f"pal {' '.join(arguments)} gave exit code {process.returncode}, not {code}:\n{out}")
        if code == 0 and ("simgpu: " in out or "simnccl: " in out or "simnvjpeg: " in out):
            raise AssertionError(f"pal {' '.join(arguments)}: a stand-in complains:\n{out}")
        return out

    def train(self, name, settings, environment, ranks=1, device="cuda", **more):
        np = ["--np", str(ranks)] if ranks > 1 else []
        arguments = ["train", "c.yaml", f"train.device={device}", *settings, "--run-dir", name, *np]
        return self.call(arguments, environment, **more)

    def metrics(self, name):
        with open(self.path(name, "metrics.jsonl"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def losses(self, name):
        return [m["loss"] for m in self.metrics(name) if "loss" in m]

    def sha(self, name):
        last = self.metrics(name)[-1]
        assert last.get("done"), f"{name} did not end"
        return last["weights_sha256"]

    def forget(self, name):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.path(name))


def difference(one, other):
    """The largest relative difference of two lists of losses."""
    if len(one) != len(other) or not one:
        raise AssertionError(f"{len(one)} losses beside {len(other)}")
    return max(abs(a - b) / max(1, abs(a)) for a, b in zip(one, other))


class Clock:
    def __init__(self):
        self.begin = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.begin
