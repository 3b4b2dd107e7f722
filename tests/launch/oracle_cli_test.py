#!/usr/bin/env python3
"""oracle_cli: pal oracle compare and closure on Fashion-MNIST and on files of features: figures, resuming, bad input."""
import csv
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PAL = os.path.abspath(sys.argv.pop(1))
IDX = "/usr/share/datasets/fashion-mnist"


def pal(*args, code=0):
    done = subprocess.run([PAL, *args], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"pal {' '.join(args)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def write_npy(path, kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust((10 + len(header) + 64) // 64 * 64 - 11) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def corners(folder, name, count, seed):
    """Four classes on the corners of a simplex in eight dimensions, as FILE.npy and FILE-labels.npy."""
    draw = random.Random(seed)
    labels = [draw.randrange(4) for _ in range(count)]
    rows = [float(label == k) + draw.gauss(0, 0.3) for label in labels for k in range(8)]
    write_npy(f"{folder}/{name}.npy", "<f4", (count, 8), struct.pack(f"<{len(rows)}f", *rows))
    write_npy(f"{folder}/{name}-labels.npy", "<i8", (count,), struct.pack(f"<{count}q", *labels))


def noisy_corners(folder, name, count, seed):
    """Four classes that eight of sixteen columns tell apart, and eight columns of louder noise."""
    draw = random.Random(seed)
    labels = [draw.randrange(4) for _ in range(count)]
    rows = [float(label == k) + draw.gauss(0, 0.45 if k < 8 else 1.35) for label in labels for k in range(16)]
    write_npy(f"{folder}/{name}.npy", "<f4", (count, 16), struct.pack(f"<{len(rows)}f", *rows))
    write_npy(f"{folder}/{name}-labels.npy", "<i8", (count,), struct.pack(f"<{count}q", *labels))


CONFIG = """
data: {{train: {folder}/train.npy, test: {folder}/test.npy}}
model: {{backbone: none, projector: [16, 8]}}
graph: {{kind: mixed, labeled_fraction: 0}}
train: {{global_batch: 64}}
optim: {{kind: adamw}}
oracle: {{sampler: captcha, budget: 120, questions_per_round: 20, pool: 300, every: 5}}
compare:
  seeds: 2
  points: 4
  width: 3
  lines:
    - {{name: ssl, oracle.sampler: ssl}}
    - {{name: random, oracle.sampler: random}}
    - {{name: captcha, oracle.sampler: captcha}}
"""


class Oracle(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = self.temporary.name
        corners(self.folder, "train", 400, 1)
        corners(self.folder, "test", 200, 2)
        self.config = f"{self.folder}/c.yaml"
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(folder=self.folder))

    def tearDown(self):
        self.temporary.cleanup()

    def text(self, name):
        with open(f"{self.folder}/out/{name}", encoding="utf-8") as file:
            return file.read()

    def rows(self, name):
        return list(csv.DictReader(self.text(f"{name}.csv").splitlines()))

    def test_compares_and_resumes(self):
        out = pal("oracle", "compare", self.config, "--out", f"{self.folder}/out")
        self.assertIn("captcha", out)
        self.assertIn("below random", out)
        # Percent in the table and in the plots; the uncertainty of the figures, and the labels known at the start.
        self.assertRegex(out, r"(?m)^test error in %, mean")
        self.assertLessEqual(max(map(len, out.splitlines())), 120, out)
        self.assertRegex(out, r"(?m)^captcha +120 .* \d,\d\d\d +0\.0 % ")   # relations known: thousands with a comma
        self.assertIn("200 test samples: the choice of them alone moves a linear figure by ± ", out)
        self.assertIn("one true label of each class, to random, captcha\n", out)
        for words in ("linear, kNN: with all labels", "own labels: a classifier of the labels that are answered", "same but wrong: of those known as the same"):
            self.assertIn(words, out)   # the heads of the table
        svg = self.text("compare.svg")
        self.assertIn(">test error, %<", svg)
        self.assertNotIn("against cost", svg)   # each question costs 1: the plot would repeat the first one
        self.assertNotIn(">-", svg)   # no axis of a share below 0
        rows = self.rows("compare")
        self.assertEqual(len(rows), 3 * 2 * 5)
        last = [r for r in rows if r["line"] == "captcha" and r["questions"] == "120"]
        self.assertEqual(len(last), 2)
        self.assertTrue(all(float(r["own"]) < 0.3 and int(r["alike"]) > 100 and r["alike_wrong"] == "0" for r in last))
        before = self.text("compare.csv")
        os.remove(f"{self.folder}/out/runs/captcha-noise0-seed1.csv")
        out = pal("oracle", "compare", self.config, "--out", f"{self.folder}/out")
        self.assertIn("5 of 6 runs are complete already", out)
        strip = lambda text: [line.rsplit(",", 1)[0] for line in text.splitlines()]   # the last column is a time
        self.assertEqual(strip(before), strip(self.text("compare.csv")))
        # With other data or settings no earlier result is used.
        self.assertNotIn("already", pal("oracle", "compare", self.config, "--out", f"{self.folder}/out", "data.limit=300"))
        self.assertNotEqual(strip(before), strip(self.text("compare.csv")))
        self.assertIn("6 of 6 runs are complete already", pal("oracle", "compare", self.config, "--out", f"{self.folder}/out", "data.limit=300"))
        self.assertNotIn("already", pal("oracle", "compare", self.config, "--out", f"{self.folder}/out", "oracle.pool=200", "compare.seeds=1", "compare.noise=[0.3]", "oracle.annotators=3", "oracle.votes=3"))
        self.assertIn("linear probe against cost", self.text("compare.svg"))   # three votes cost 3
        self.assertTrue(any(r["line"] == "captcha" and int(r["alike_wrong"]) > 20 for r in self.rows("compare")), "wrong answers are seen in the graph")

    def test_closure_recovers_the_graph(self):
        out = pal("oracle", "closure", self.config, "oracle.class_guess=none")
        self.assertIn("all pairs known: yes; labels agree: yes", out)
        self.assertIn("N·C = 1600", out)

    def test_trains_a_head_on_features_with_an_oracle(self):
        start = time.time()
        out = pal("train", self.config, "--run-dir", f"{self.folder}/run", "train.threads=1", "train.steps=30", "optim.lr=0.01")
        self.assertLess(time.time() - start, 60)
        self.assertTrue(os.path.exists(f"{self.folder}/run/ledger.sqlite"), out)
        out = pal("train", self.config, "--run-dir", f"{self.folder}/bad", "train.steps=30", "optim.lr=0.01", f"data.train={self.folder}/none.npy", code=3)
        self.assertIn("none.npy", out)

    def test_one_step_of_deduction_is_better_than_none(self):
        """A tenth of the answers is wrong; the projector is trained, and its neighbors are looked at, two seeds."""
        noisy_corners(self.folder, "train", 600, 1)
        noisy_corners(self.folder, "test", 400, 2)
        top1 = {"once": 0, "off": 0}
        for deduction in top1:
            for seed in (0, 1):
                run = f"{self.folder}/{deduction}{seed}"
                pal("train", self.config, "--run-dir", run, "train.threads=1", "optim.lr=0.01", "train.steps=400", f"train.seed={seed}", "graph.alpha=0.9", "oracle.budget=900",
                    "oracle.questions_per_round=60", "oracle.pool=600", "oracle.every=10", "oracle.noise=0.1", f"graph.deduction={deduction}", "checkpoint.every=1000")
                pal("eval", run, "knn", "--features", "projector", "--json", f"{run}/eval.json")
                with open(f"{run}/eval.json", encoding="utf-8") as file:
                    top1[deduction] += json.load(file)["results"][0]["top1"] / 2
        self.assertGreater(top1["once"], top1["off"] + 0.04, top1)

    def test_bad_input(self):
        for settings, word, code in [(["compare.lines=[{oracle.sampler: captcha}]"], "name", 2),
                                     (["compare.lines=[{name: a, oracle.sampler: riddle}]"], "line a of compare.lines: oracle.sampler is riddle", 2),
                                     (["compare.lines=[{name: a}, {name: a}]"], "one name", 2),
                                     (["compare.lines=[]"], "compare.lines", 2),
                                     (["oracle.budget=0", "compare.lines=[{name: a, oracle.sampler: captcha}]"], "oracle.budget", 1),
                                     ([f"data.test={self.folder}/c.yaml"], "c.yaml", 3)]:
            out = pal("oracle", "compare", self.config, "--out", f"{self.folder}/out", *settings, code=code)
            self.assertIn(word, out)
        pal("oracle", "compare", self.config, code=2)

    @unittest.skipUnless(os.path.isdir(IDX), "Debian's dataset-fashion-mnist is not installed")
    def test_fashion_mnist_in_a_minute(self):
        pal("data", "import", "idx", IDX, f"{self.folder}/fashion.h5")
        lines = "[{name: ssl, oracle.sampler: ssl}, {name: random-pairs, oracle.sampler: supervised}, {name: random, oracle.sampler: random}, {name: captcha, oracle.sampler: captcha}, " \
                "{name: uncertainty, oracle.sampler: uncertainty}, {name: all, oracle.sampler: ssl, graph.labeled_fraction: 1}]"
        out = pal("oracle", "compare", self.config, "--out", f"{self.folder}/out", f"data.train={self.folder}/fashion.h5", f"data.test={self.folder}/fashion-test.h5",
                  "data.limit=8000", "compare.pca=40", "compare.width=10", "oracle.budget=600", "oracle.questions_per_round=60", "oracle.pool=2000", f"compare.lines={lines}")
        # With 600 questions and two seeds the probe differs by noise only; the graphs differ by more than noise.
        last = {r["line"]: r for r in self.rows("summary")}
        known = {name: float(r["known"]) for name, r in last.items()}
        self.assertGreater(known["captcha"], 3 * known["random"], out)
        self.assertGreater(known["random"], 3 * known["random-pairs"], out)
        self.assertLess(float(last["all"]["linear_mean"]), float(last["ssl"]["linear_mean"]), out)


if __name__ == "__main__":
    unittest.main()
