#!/usr/bin/env python3
"""eval_test: evaluation with --device cuda on the stand-ins gives the figures of --device cpu.

    eval_test.py PAL_SIMGPU FOLDER_OF_THE_STAND_INS [test names]
"""
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import unittest

import operators_test
from job import Jobs

PAL, STAND_INS = sys.argv[1:3]
MPIRUN = ["mpirun", *(["--allow-run-as-root"] if os.getuid() == 0 else []), "--oversubscribe", "--bind-to", "none", "-np"]
TRAINED = ["train.steps=3", "oracle.sampler=captcha", "oracle.every=1", "oracle.questions_per_round=6", "oracle.pool=40",
           "eval.every=1", "eval.train_samples=40", "eval.test_samples=20"]
METHODS = ["linear", "ridge", "knn", "sgd", "finetune", "diagnostics", "--k", "3,20", "--epochs", "4", "--lr", "5", "--batch", "16"]
PHOTOS = ["data.train=photos.h5", "data.test=", "data.size=16", "graph.labeled_fraction=1", "train.steps=1"]
TOLERANCE = 1e-5   # of features and of figures that are no counts; features are of the order of 1


def read_npy(path):
    """The float32 numbers of a .npy file."""
    with open(path, "rb") as f:
        data = f.read()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    assert b"'<f4'" in data[:begin], data[:begin]
    return struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])


class Eval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.jobs = Jobs(PAL, STAND_INS)
        cls.jobs.train("run", TRAINED, cls.jobs.device(1))

    @classmethod
    def tearDownClass(cls):
        cls.jobs.__exit__()

    def on(self, device, command, *arguments, ranks=1, seed=1, more=(), **options):
        """Runs a command with --device; late, with the seed."""
        environment = self.jobs.cpu() if device == "cpu" else self.jobs.device(ranks, seed=seed, **dict(more))
        prefix = [*MPIRUN, str(ranks)] if ranks > 1 else []
        return self.jobs.call([command, *arguments, "--device", device], environment, prefix=prefix, **options)

    def one_error(self, out, *words):
        errors = [line for line in out.splitlines() if "error: " in line]
        self.assertEqual(len(errors), 1, out)
        for word in words:
            self.assertIn(word, errors[0])
        self.assertNotIn("please report", out)

    def near(self, one, other):
        self.assertEqual(len(one), len(other))
        self.assertGreater(len(one), 0)
        worst = max(abs(a - b) / max(1, abs(a)) for a, b in zip(one, other))
        self.assertLess(worst, TOLERANCE)

    # ---- figures ----

    def test_every_method_gives_the_figures_of_the_cpu(self):
        def figures(device, ranks, seed=1):
            out = self.on(device, "eval", "run", *METHODS, "--json", "figures.json", ranks=ranks, seed=seed)
            self.assertIn("on the GPU" if device == "cuda" else "on the CPU", out)
            self.assertEqual("device cuda:0: local rank 0 of" in out, device == "cuda", out)
            with open(self.jobs.path("figures.json"), encoding="utf-8") as f:
                return json.load(f)
        cpu = figures("cpu", 1)
        self.assertEqual(len(cpu["results"]), 6)
        for ranks, seed in ((1, 1), (1, 2), (2, 3)):
            device = figures("cuda", ranks, seed)
            for a, b in zip(cpu["results"], device["results"], strict=True):
                for name in ("method", "top1", "top5", "train", "test", "confusion", "ridge"):
                    self.assertEqual(a.get(name), b.get(name), f"{name} of {a['method']}, {ranks} rank(s)")
            self.near([cpu["diagnostics"][k] for k in ("rank", "uniformity", "alignment")],
                      [device["diagnostics"][k] for k in ("rank", "uniformity", "alignment")])

    def test_operators(self):
        self.on("cuda", "eval", "run", *METHODS, more={"SIMGPU_COUNTERS": self.jobs.folder})
        with open(self.jobs.path("rank-0.json"), encoding="utf-8") as f:
            used = operators_test.used(json.load(f))
        training, evaluation = operators_test.listed(), operators_test.listed(operators_test.LISTED_EVAL)
        self.assertEqual(used - training, evaluation, "is a new operator in LibTorch's CUDA half? then write it into operators_eval.txt")

    def test_features(self):
        jobs = self.jobs
        jobs.train("photo-run", PHOTOS, jobs.cpu(), device="cpu")
        self.on("cpu", "embed", "run", "train", "--out", "features.h5")
        of_features = ["data.train=features.h5", "data.test=", "model.backbone=none", "train.steps=1"]
        jobs.train("feature-run", of_features, jobs.cpu(), device="cpu")
        # Pictures that are stored as pixels, JPEG files, rows of features.
        for run, features, seeds in (("run", "backbone", (1, 2)), ("photo-run", "backbone", (1,)), ("feature-run", "projector", (1,))):
            self.on("cpu", "embed", run, "train", "--out", "cpu.npy", "--features", features)
            expected = read_npy(jobs.path("cpu.npy"))
            self.assertTrue(all(map(math.isfinite, expected)))
            for seed in seeds:
                self.on("cuda", "embed", run, "train", "--out", "cuda.npy", "--features", features, seed=seed)
                self.near(expected, read_npy(jobs.path("cuda.npy")))
        # On two ranks; auto means the GPUs.
        self.on("cpu", "embed", "run", "test", "--out", "cpu.npy")
        out = self.jobs.call(["embed", "run", "test", "--out", "two.npy"], jobs.device(2), prefix=[*MPIRUN, "2"])
        self.assertIn("device cuda:0: local rank 0 of 2", out)
        self.near(read_npy(jobs.path("cpu.npy")), read_npy(jobs.path("two.npy")))

    def test_questions_labels_and_the_report(self):
        found = {}
        for device in ("cpu", "cuda"):
            run = f"copy-{device}"
            shutil.copytree(self.jobs.path("run"), self.jobs.path(run))
            self.on(device, "labels", run, "--out", "labels.csv")
            self.on(device, "ask", run, "--n", "9", "--out", "questions.jsonl")
            self.on(device, "report", run, "--out", "report.html")
            found[device] = []
            for name in ("labels.csv", "questions.jsonl", "report.html"):
                with open(self.jobs.path(name), encoding="utf-8") as f:
                    found[device].append(f.read().replace(run, "RUN"))
        for k in range(2):
            self.assertEqual(found["cpu"][k], found["cuda"][k])
        self.assertIn("predicted", found["cuda"][0])
        self.assertGreater(found["cuda"][1].count("\n"), 0)
        near = [re.findall(r'<div class="near">.*', found[device][2]) for device in ("cpu", "cuda")]
        self.assertEqual(len(near[0]), 10)
        self.assertEqual(near[0], near[1])

    def test_probes_while_training(self):
        kept = ("eval_knn_top1", "eval_linear_top1", "eval_rank", "eval_uniformity")
        jobs, of = self.jobs, {}
        for device in ("cpu", "cuda"):
            jobs.train(f"online-{device}", TRAINED, jobs.cpu() if device == "cpu" else jobs.device(2, seed=4), ranks=2, device=device)
            of[device] = [[m[k] for k in kept] for m in jobs.metrics(f"online-{device}") if kept[0] in m]
        self.assertEqual(len(of["cpu"]), 3)
        for cpu, cuda in zip(of["cpu"], of["cuda"], strict=True):
            self.assertEqual(cpu[:2], cuda[:2])
            self.near(cpu[2:], cuda[2:])

    # ---- the thread of the labeling page that chooses questions ----

    def test_the_labeling_page_chooses_questions_on_the_device(self):
        shutil.copytree(self.jobs.path("run"), self.jobs.path("labeled"))
        command = [self.jobs.pal, "label", "labeled", "--port", "0", "--device", "cuda"]
        with subprocess.Popen(command, cwd=self.jobs.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=self.jobs.device(1)) as page:
            lines = []
            for line in page.stdout:
                lines.append(line)
                if line.startswith(("asked ", "no question is asked", "warning: ", "simgpu: ")):
                    break
            page.send_signal(signal.SIGTERM)
            lines += page.stdout.readlines()
        out = "".join(lines)
        self.assertRegex(out, r"(?m)^asked \d+ more questions$")
        self.assertNotIn("simgpu: ", out)
        self.assertEqual(page.returncode, 0, out)

    # ---- errors ----

    def test_without_a_gpu_cuda_is_refused_and_auto_takes_the_cpu(self):
        commands = [["eval", "run"], ["embed", "run", "train", "--out", "none.npy"], ["ask", "run", "--out", "none.jsonl"],
                    ["labels", "run", "--out", "none.csv"], ["report", "run", "--out", "none.html"], ["label", "run", "--port", "0"],
                    ["start", "photos", "--out", "none"]]
        for command in commands:
            out = self.jobs.call([*command, "--device", "cuda"], self.jobs.cpu(), code=2)
            self.one_error(out, "has no CUDA device: no NVIDIA driver", "--device is: cuda; set --device=cpu")
        self.assertIn("on the CPU", self.jobs.call(["eval", "run", "knn"], self.jobs.cpu()))
        self.one_error(self.jobs.call(["eval", "run", "--features", "pixels", "--device", "cuda"], self.jobs.device(1), code=2), "--device=cuda")

    def test_float64_is_for_the_cpu(self):
        self.jobs.train("wide", ["train.dtype=float64", "train.steps=1"], self.jobs.cpu(), device="cpu")
        self.one_error(self.on("cuda", "eval", "wide", "knn", code=2), "train.dtype=float64 is for CPU ranks", "--device=cpu")
        self.assertIn("on the CPU", self.jobs.call(["eval", "wide", "knn"], self.jobs.device(1)))

    def test_full_device_memory(self):
        environment = {**self.jobs.device(1), "SIMGPU_MEMORY": "1000000"}
        out = self.jobs.call(["eval", "run", "knn", "--device", "cuda"], environment, code=2)
        self.one_error(out, "out of memory", "Tried to allocate", "is free", "--device=cpu")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
