#!/usr/bin/env python3
"""pal plan, pal train --check and pal bench comm from the outside.

usage: plan_cli_test.py PAL CONFIGS     (standard library only)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PAL, CONFIGS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SMALL = ["model.backbone=resnet18", "model.projector=[64]", "data.size=32"]


class Plan(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pal-plan-")
        self.addCleanup(shutil.rmtree, self.folder)

    def pal(self, *args, code=0):
        done = subprocess.run([PAL, *args], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250)
        self.assertEqual(done.returncode, code, f"pal {' '.join(args)}:\n{done.stdout}")
        return done.stdout

    def test_table_json_and_svg(self):
        out = self.pal("plan", f"{CONFIGS}/imagenet-vicreg.yaml", *SMALL, "--samples-per-gpu", "32", "--json", "p.json", "--svg", "p.svg")
        self.assertIn("not a measurement", out)
        with open(f"{self.folder}/p.json") as f:
            plan = json.load(f)
        self.assertIn("not a measurement", plan["label"])
        self.assertEqual([p["gpus"] for p in plan["points"]], [2 ** k for k in range(13)])
        for point in plan["points"]:
            forms = {f["form"]: f for f in point["forms"]}
            self.assertEqual(set(forms), {"official", "covariance", "gram"})
            for f in forms.values():
                parts = sum(f[k] for k in ("compute_ms", "loss_compute_ms", "optimizer_ms", "exposed_norm_ms", "exposed_loss_ms", "exposed_gradients_ms"))
                self.assertAlmostEqual(parts, f["step_ms"], delta=1e-6 * parts)
        self.assertLess(plan["points"][-1]["forms"][0]["efficiency"], 1)
        xml.etree.ElementTree.parse(f"{self.folder}/p.svg")

    def test_published_points(self):
        out = self.pal("plan", "--published")
        self.assertLessEqual(max(map(len, out.splitlines())), 120, out)
        for word in ("PyTorch, mixed precision", "ResNet-101", "VGG-16", "fitted to this"):
            self.assertIn(word, out)

    def test_a_cluster_file_reads_back(self):
        with open(f"{self.folder}/mine.yaml", "w") as f:
            f.write(self.pal("plan", "--cluster", "h100-8", "--describe"))
        self.assertIn("h100-8", self.pal("plan", f"{CONFIGS}/cifar10-vicreg.yaml", *SMALL, "--cluster", "mine.yaml", "--gpus", "1,8"))

    def test_bad_input(self):
        config = f"{CONFIGS}/cifar10-vicreg.yaml"
        self.assertIn("needs a config", self.pal("plan", code=2))
        self.assertIn("presets are a100-8", self.pal("plan", config, "--cluster", "nowhere", code=2))
        self.assertIn("every number of GPUs", self.pal("plan", config, *SMALL, "train.global_batch=4", "--gpus", "8", code=2))
        with open(f"{self.folder}/bad.yaml", "w") as f:
            f.write("gpus_per_nod: 8\n")
        self.assertIn("gpus_per_node", self.pal("plan", config, "--cluster", "bad.yaml", code=2))
        self.assertIn("at least 4096", self.pal("bench", "comm", "--most-bytes", "64", code=2))

    def test_check_needs_no_data_and_writes_nothing(self):
        for config, small in (("quickstart.yaml", []), ("cifar10-vicreg.yaml", ["model.projector=[32]"])):
            out = self.pal("train", f"{CONFIGS}/{config}", *small, "data.train=nowhere.h5", "--np", "4", "--check")
            for word in ("not available", "memory per rank", "sent per step", "learning rate", "nothing was trained"):
                self.assertIn(word, out, config)
            self.assertLessEqual(max(map(len, out.splitlines())), 120, out)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIn("optim.base_lr", self.pal("train", f"{CONFIGS}/cifar10-vicreg.yaml", "optim.base_l=3", "--check", code=2))

    def test_check_and_plan_agree(self):
        config = [f"{CONFIGS}/quickstart.yaml", "data.train=nowhere.h5"]
        out = self.pal("train", *config, "--np", "4", "--check")
        self.pal("plan", *config, "--cluster", "local", "--gpus", "4", "--json", "p.json")
        with open(f"{self.folder}/p.json") as f:
            plan = json.load(f)
        chosen = plan["points"][0]["forms"][0]
        units = {"kB": 1e3, "MB": 1e6, "GB": 1e9}

        def said(line, name):
            text = next(row for row in out.splitlines() if row.startswith(line))
            number, unit = re.search(name + r" ([\d.]+) (kB|MB|GB)", text).groups()
            return float(number) * units[unit]

        for line, name, bytes_ in (("memory per rank", "rank ", chosen["memory_bytes"]), ("sent per step", "gradients", chosen["gradient_bytes"]),
                                   ("sent per step", "batch norm", chosen["norm_bytes"]), ("sent per step", "loss", chosen["loss_bytes"]),
                                   ("checkpoint", "checkpoint      ", chosen["checkpoint_bytes"]), ("memory per rank", "gradients", 4 * plan["parameters"])):
            self.assertAlmostEqual(said(line, name), bytes_, delta=0.05 * bytes_, msg=f"{line}: {name}\n{out}")
        self.assertIn(f"({chosen['form']} form)", out)
        # 400 steps, a tenth of them warm-up to 0.003, then down.
        self.assertIn("peak 0.003 after 10.0 % of the run", out)
        rates = [float(x) for x in re.search(r"100 %: (.*)", out).group(1).split(", ")]
        self.assertTrue(rates[0] < rates[1] < 0.003 and rates[1] > rates[2] > rates[3] > rates[4], rates)

    def test_bench_comm(self):
        self.pal("bench", "comm", "--ranks", "2", "--most-bytes", "65536", "--turns", "2", "--json", "c.json", "--cluster", "c.yaml")
        with open(f"{self.folder}/c.json") as f:
            results = json.load(f)["results"]
        self.assertEqual([r["name"] for r in results], ["all_reduce", "all_gather", "broadcast", "all_to_all_v"])
        for r in results:
            self.assertTrue(r["alpha_us"] >= 0 and r["beta_gb_per_s"] > 0, r)
            points = r["points"]
            self.assertEqual([p["bytes"] for p in points[:4]], [64, 96, 128, 192])
            self.assertEqual([p["role"] for p in points[:2]], ["fitted", "predicted"])
            errors = sorted(abs(p["model_us"] / p["measured_us"] - 1) for p in points if p["role"] == "predicted")
            self.assertAlmostEqual(errors[-1], r["worst_error"], places=9)
        with open(f"{self.folder}/c.yaml") as f:
            self.assertIn("node_gather: [0, ", f.read())
        self.assertIn("measured", self.pal("plan", f"{CONFIGS}/cifar10-vicreg.yaml", *SMALL, "--cluster", "c.yaml", "--gpus", "1,2"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
