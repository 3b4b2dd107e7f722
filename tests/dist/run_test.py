#!/usr/bin/env python3
"""Whole runs of the real binary on real MPI ranks: world-size invariance, resume, bad input, a failing rank.

usage: run_test.py PAL [test names]     (standard library only)
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
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


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pal-run-test-")
        os.makedirs(f"{cls.folder}/idx")
        make_set(f"{cls.folder}/idx")
        with open(f"{cls.folder}/c.yaml", "w") as f:
            f.write(CONFIG)
        cls.call(cls, "data", "import", "idx", "idx", "set.h5")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def call(self, *args, code=0, prefix=()):
        """Runs pal; the exit code must be `code`. Returns what it printed."""
        done = subprocess.run([*prefix, PAL, *args], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        if done.returncode != code:
            raise AssertionError(f"pal {' '.join(args)} gave exit code {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout

    def train(self, name, *args, ranks=2, code=0, config="c.yaml"):
        return self.call("train", config, *args, "--run-dir", name, "--np", str(ranks), code=code)

    def metrics(self, name):
        with open(f"{self.folder}/{name}/metrics.jsonl") as f:
            return [json.loads(line) for line in f]

    def weights(self, name, step):
        return read_safetensors(f"{self.folder}/{name}/checkpoints/step-{step}/model.safetensors")

    def sha(self, name):
        last = self.metrics(name)[-1]
        self.assertTrue(last["done"])
        return last["weights_sha256"]

    # ---- a run from end to end -----------------------------------------------------------------------------------

    def test_two_ranks_end_to_end(self):
        out = self.train("e2e", "train.dtype=float32", "train.steps=40", "optim.lr=0.3")
        self.assertIn("images/s", out)
        lines = self.metrics("e2e")
        self.assertEqual([m["step"] for m in lines if not m.get("done")], list(range(1, 41)))
        for key in ("step", "epoch", "loss", "terms", "lr", "images_per_s", "graph_version", "queries", "cost"):
            self.assertIn(key, lines[0])
        self.assertAlmostEqual(sum(lines[0]["terms"].values()), lines[0]["loss"], places=4)
        self.assertLess(lines[39]["loss"], lines[0]["loss"])
        self.assertTrue(os.path.exists(f"{self.folder}/e2e/checkpoints/last"))
        self.call("eval", "e2e", "linear", "knn", "--json", "e2e.json")
        with open(f"{self.folder}/e2e.json") as f:
            results = {r["method"]: r["top1"] for r in json.load(f)["results"]}
        self.assertGreater(results["linear"], 0.8, results)   # bars at three heights: chance is 1/3
        self.assertGreater(results["knn"], 0.8, results)
        pixels = self.call("eval", "c.yaml", "linear", "--features", "pixels")
        self.assertIn("pixels", pixels)

    def test_mpirun_by_hand_gives_the_same_weights(self):
        self.train("by-np")
        self.call("train", "c.yaml", "--run-dir", "by-mpirun", prefix=[*MPIRUN, "-np", "2"])
        self.assertEqual(self.sha("by-np"), self.sha("by-mpirun"))

    # ---- the contract of world sizes -----------------------------------------------------------------------------

    def check_world_sizes(self, name, *args):
        for ranks in (1, 2, 3, 4):
            self.train(f"{name}{ranks}", *args, ranks=ranks)
        losses = [m["loss"] for m in self.metrics(f"{name}1") if "loss" in m]
        one = self.weights(f"{name}1", 10)
        self.assertEqual(len(losses), 10)
        for ranks in (2, 3, 4):
            other = [m["loss"] for m in self.metrics(f"{name}{ranks}") if "loss" in m]
            self.assertLessEqual(abs(losses[0] - other[0]), 1e-10 * max(1, abs(losses[0])))
            many = self.weights(f"{name}{ranks}", 10)
            self.assertEqual(one.keys(), many.keys())
            worst = max(abs(a - b) for key in one for a, b in zip(one[key], many[key]))
            self.assertLessEqual(worst, 1e-8, f"W={ranks}")

    def test_world_sizes_vicreg(self):
        self.check_world_sizes("w-vicreg")

    def test_world_sizes_vic2_separate_views_adamw(self):
        self.check_world_sizes("w-vic2", "loss.kind=vic2", "train.views=separate", "optim.kind=adamw", "optim.lr=0.001", "augment.views=3")

    def test_world_sizes_with_an_oracle(self):
        self.check_world_sizes("w-oracle", "graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2",
                               "oracle.questions_per_round=9", "oracle.pool=60")
        queries = [m["queries"] for m in self.metrics("w-oracle2") if "loss" in m]
        self.assertGreater(queries[-1], queries[0])
        self.assertEqual(queries, [m["queries"] for m in self.metrics("w-oracle3") if "loss" in m])

    # ---- resume --------------------------------------------------------------------------------------------------

    def check_resume(self, name, *args):
        self.train(f"{name}-calm", *args)
        self.train(f"{name}-cut", *args)
        shutil.rmtree(f"{self.folder}/{name}-cut/checkpoints/step-10")
        out = self.train(f"{name}-cut", *args)
        self.assertIn("resumed at step 5", out)
        self.assertEqual(self.sha(f"{name}-calm"), self.sha(f"{name}-cut"))
        keep = lambda m: {k: v for k, v in m.items() if k not in ("images_per_s", "seconds")}
        self.assertEqual([keep(m) for m in self.metrics(f"{name}-calm")], [keep(m) for m in self.metrics(f"{name}-cut")])

    def test_resumed_equals_uninterrupted(self):
        self.check_resume("resume")

    def test_resumed_equals_uninterrupted_float32_adamw(self):
        self.check_resume("resume32", "train.dtype=float32", "optim.kind=adamw", "optim.lr=0.001")

    def test_resumed_equals_uninterrupted_with_an_oracle(self):
        self.check_resume("resume-oracle", "graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2",
                          "oracle.questions_per_round=9", "oracle.pool=60")

    def test_killed_run_goes_on(self):
        self.train("kill-calm", "train.steps=60")
        command = [PAL, "train", "c.yaml", "train.steps=60", "--run-dir", "kill", "--np", "2"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 60
        while time.time() < deadline and not os.path.exists(f"{self.folder}/kill/checkpoints/step-10"):
            time.sleep(0.002)
        subprocess.run(["pkill", "-9", "-f", "run-dir kill "], check=False)
        job.wait(timeout=20)
        self.train("kill", "train.steps=60")
        self.assertEqual(self.sha("kill-calm"), self.sha("kill"))

    def test_damaged_checkpoint_falls_back(self):
        self.train("damaged")
        sha = self.sha("damaged")
        with open(f"{self.folder}/damaged/checkpoints/step-10/model.safetensors", "r+b") as f:
            f.seek(-3, os.SEEK_END)
            byte = f.read(1)
            f.seek(-3, os.SEEK_END)
            f.write(bytes([byte[0] ^ 1]))
        out = self.train("damaged")
        self.assertIn("resumed at step 5", out)
        self.assertIn("step-10", out)
        self.assertEqual(self.sha("damaged"), sha)

    def test_finished_run_says_so(self):
        self.train("finished")
        sha = self.sha("finished")
        self.assertIn("finished", self.train("finished"))
        self.assertEqual(self.sha("finished"), sha)

    # ---- bad input -----------------------------------------------------------------------------------------------

    def one_sentence(self, out, *words):
        errors = [line for line in out.splitlines() if "error: " in line]
        self.assertEqual(len(errors), 1, out)
        for word in words:
            self.assertIn(word, errors[0])

    def test_run_folder_of_another_config(self):
        self.train("taken")
        self.one_sentence(self.train("taken", "loss.variance=7", code=2), "loss.variance", "--run-dir")
        self.one_sentence(self.train("taken", "--resume", "never", code=2), "taken")

    def test_unwritable_run_folder(self):
        self.one_sentence(self.train("c.yaml/run", code=2), "c.yaml/run", "--run-dir")

    def test_more_ranks_than_samples_in_a_batch(self):
        self.one_sentence(self.train("wide", "train.global_batch=2", ranks=4, code=2), "4", "ranks")

    def test_steps_and_epochs(self):
        self.one_sentence(self.train("both", "train.epochs=1", code=2), "train.steps", "train.epochs")

    def test_unknown_key(self):
        self.one_sentence(self.train("unknown", "los.kind=vic2", code=2), "los.kind", "loss.kind")

    def test_missing_data(self):
        self.one_sentence(self.train("missing", "data.train=nowhere.h5", code=3), "nowhere.h5")
        self.assertFalse(os.path.exists(f"{self.folder}/missing/checkpoints"))

    def test_flipped_bit_names_the_sample(self):
        shutil.copy(f"{self.folder}/set.h5", f"{self.folder}/flipped.h5")
        with open(f"{self.folder}/flipped.h5", "r+b") as f:
            content = f.read()
            with open(f"{self.folder}/idx/train-images-idx3-ubyte", "rb") as g:
                image = g.read()[16 + 7 * SIDE * SIDE:16 + 8 * SIDE * SIDE]
            at = content.index(image)
            f.seek(at)
            f.write(bytes([image[0] ^ 4]))
        self.one_sentence(self.train("flipped", "data.train=flipped.h5", code=3), "flipped.h5", "sample 7")

    def test_gradient_that_is_not_finite(self):
        out = self.train("nan", "optim.kind=sgd", "optim.lr=1e200", "train.max_skips=3", "train.steps=40", code=4)
        self.one_sentence(out, "not finite", "3 steps")

    # ---- a failing rank ------------------------------------------------------------------------------------------

    def test_a_throwing_rank_brings_all_down(self):
        start = time.time()
        out = subprocess.run([*MPIRUN, "-np", "2", PAL, "train", "c.yaml", "--run-dir", "thrown", ":", "-np", "1", PAL, "train", "c.yaml",
                              "data.train=nowhere.h5", "--run-dir", "thrown"], cwd=self.folder, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertLess(time.time() - start, 5 + 3, "seconds, three of them for the start")
        self.assertEqual(out.returncode, 3, out.stdout)
        self.one_sentence(out.stdout, "[rank 2/3", "nowhere.h5")

    def test_ranks_that_disagree_are_refused(self):
        out = subprocess.run([*MPIRUN, "-np", "1", PAL, "train", "c.yaml", "--run-dir", "disagree", ":", "-np", "1", PAL, "train", "c.yaml",
                              "train.seed=4", "--run-dir", "disagree"], cwd=self.folder, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(out.returncode, 2, out.stdout)
        self.assertIn("do not agree on the config", out.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
