#!/usr/bin/env python3
"""Whole runs of the real binary on real MPI ranks: world-size invariance, kinds of graphs, bad input, a failing rank.

usage: run_test.py PAL [test names]     (standard library only)
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import unittest

from run_case import CAREFUL, CLASSES, MPIRUN, NNCLR, PAL, SIDE, TRAIN, RunCase


class Run(RunCase):
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
        self.assertGreater(lines[39]["sync_ms"], 0)
        self.assertTrue(0 <= lines[39]["sync_hidden"] <= 1)
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

    # ---- results do not depend on W -----------------------------------------------------------------------------

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

    def test_every_loss_gives_the_same_on_one_and_two_ranks(self):
        losses = {"scl": ["loss.kind=scl"], "simclr": ["loss.kind=simclr", "loss.temperature=0.5"], "barlow": ["loss.kind=barlow"],
                  "barlow-graph": ["loss.kind=barlow", "loss.barlow=graph"],
                  "sampled": ["loss.kind=sampled_vic2", "loss.pairs=300", "loss.draw=halves"],
                  "nnclr": [*NNCLR], "mse": ["loss.kind=mse"], "cross-entropy": ["loss.kind=cross_entropy"]}
        for name, args in losses.items():
            with self.subTest(name):
                for ranks in (1, 2):
                    self.train(f"l-{name}{ranks}", *args, "optim.kind=sgd", "train.steps=5", ranks=ranks)
                one, two = (self.weights(f"l-{name}{ranks}", 5) for ranks in (1, 2))
                self.assertLessEqual(max(abs(a - b) for key in one for a, b in zip(one[key], two[key])), 1e-8)
                alone, lines = (self.metrics(f"l-{name}{ranks}")[:5] for ranks in (1, 2))
                self.assertAlmostEqual(sum(lines[4]["terms"].values()), lines[4]["loss"], places=9)
                self.assertNotEqual(lines[0]["loss"], lines[4]["loss"])
                self.assertEqual(alone[0]["loss_bytes"], 0)
                self.assertGreater(lines[0]["loss_bytes"], 0)
                self.assertAlmostEqual(lines[0]["pairs_positive"] + lines[0]["pairs_unknown"], 1)
                self.assertEqual(alone[2]["column_std"] > 0, True)
                self.assertAlmostEqual(alone[2]["column_std"], lines[2]["column_std"], places=8)

    def test_world_sizes_in_micro_batches(self):
        self.check_world_sizes("w-micro", "train.micro_batches=2", "train.views=separate")

    def test_small_views_of_staged_shards_in_windows(self):
        for ranks in (1, 2):
            self.train(f"staged{ranks}", f"data.stage={self.folder}/local{ranks}", "data.shuffle=windows", "data.window=32", "augment.small_views=2",
                       "augment.small_size=8", "train.steps=5", ranks=ranks)
            copies = [name for _, _, names in os.walk(f"{self.folder}/local{ranks}") for name in names]
            self.assertEqual(len([name for name in copies if name.endswith(".h5")]), 1, copies)
        one, two = (self.weights(f"staged{ranks}", 5) for ranks in (1, 2))
        self.assertLessEqual(max(abs(a - b) for key in one for a, b in zip(one[key], two[key])), 1e-8)

    def test_world_sizes_with_an_oracle(self):
        self.check_world_sizes("w-oracle", "graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2",
                               "oracle.questions_per_round=9", "oracle.pool=60")
        last = [m for m in self.metrics("w-oracle2") if "loss" in m][-1]
        for took in ("round_embed_ms", "round_wait_ms", "round_choose_ms"):
            self.assertGreater(last[took], 0, took)
        queries = [m["queries"] for m in self.metrics("w-oracle2") if "loss" in m]
        self.assertGreater(queries[-1], queries[0])
        self.assertEqual(queries, [m["queries"] for m in self.metrics("w-oracle3") if "loss" in m])

    def test_world_sizes_with_wrong_answers_and_one_step_of_deduction(self):
        self.check_world_sizes("w-careful", *CAREFUL)
        rows = [m for m in self.metrics("w-careful2") if "loss" in m]
        self.assertGreater(rows[-1]["queries"], 20)
        self.assertGreater(rows[-1]["graph_version"], rows[0]["graph_version"])
        self.train("w-on", *CAREFUL, "graph.deduction=on", ranks=1)
        self.train("w-off", *CAREFUL, "graph.deduction=off", ranks=1)
        last = {name: [m["loss"] for m in self.metrics(name) if "loss" in m][-1] for name in ("w-careful1", "w-on", "w-off")}
        self.assertEqual(len({round(v, 9) for v in last.values()}), 3, "each trains on a different graph")

    def test_neighbors_of_the_batch_and_plain_ssl(self):
        for name, settings in (("batch", ["loss.queue=0"]), ("top3", ["loss.neighbors=3"]), ("plain", ["loss.neighbors=0"])):
            for ranks in (1, 2):
                self.train(f"nn-{name}{ranks}", *NNCLR, *settings, ranks=ranks)
            one, two = ([m["loss"] for m in self.metrics(f"nn-{name}{ranks}") if "loss" in m] for ranks in (1, 2))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(one, two)), 1e-8, name)

    # ---- kinds of graphs -----------------------------------------------------------------------------------------

    def write(self, name, lines):
        with open(f"{self.folder}/{name}", "w") as f:
            f.write("".join(",".join(str(x) for x in line) + "\n" for line in lines))
        return name

    def test_every_kind_of_graph(self):
        rng = random.Random(2)
        drawn = {(rng.randrange(TRAIN), rng.randrange(TRAIN)) for _ in range(200)}
        pairs = {(i, j) for i, j in drawn if (j, i) not in drawn or i <= j}
        self.write("pairs.csv", [(i, j, 1 if i % CLASSES == j % CLASSES else -0.5) for i, j in sorted(pairs)])
        self.call("graph", "convert", "pairs.csv", "pairs.h5", "--samples", str(TRAIN))
        self.write("table.csv", [(0, 1, 2), (1, 0, 1), (2, 1, 0)])
        self.write("targets.csv", [(s % CLASSES - 1, rng.random(), rng.random()) for s in range(TRAIN)])
        kinds = {
            "ssl": [], "supervised": ["graph.label_noise=0.3"], "mixed": ["graph.deduction=off"], "missing": ["graph.kind=supervised", "graph.missing=0.5"],
            "signed": [], "signed-once": ["graph.kind=signed", *CAREFUL], "signed-oracle": ["graph.kind=signed", "graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=1",
                                            "oracle.questions_per_round=9", "oracle.pool=60"],
            "table": [], "table-file": ["graph.kind=table", "graph.table=table.csv"], "regression": ["graph.targets=targets.csv"],
            "ranking": ["graph.targets=targets.csv"], "pairs": ["graph.pairs=pairs.csv", "graph.pair_noise=0.1"],
            "pairs-csr": ["graph.kind=pairs", "graph.pairs=pairs.h5", "graph.pair_noise=0.1"],
        }
        losses = {}
        for kind, settings in kinds.items():
            for ranks in (1, 2):
                name = f"kind-{kind}-{ranks}"
                out = self.train(name, f"graph.kind={kind.split('-')[0] if kind != 'missing' else 'supervised'}", *settings, "loss.kind=vic2",
                                 "train.steps=3", ranks=ranks)
                losses[name] = [m["loss"] for m in self.metrics(name) if "loss" in m]
                self.assertEqual(len(losses[name]), 3, out)
            for a, b in zip(losses[f"kind-{kind}-1"], losses[f"kind-{kind}-2"]):
                self.assertLessEqual(abs(a - b), 1e-9 * max(1, abs(a)), kind)
        first = {kind: round(losses[f"kind-{kind}-1"][0], 9) for kind in kinds}
        self.assertEqual(first["pairs"], first.pop("pairs-csr"))
        self.assertEqual(len(set(first.values())), len(first), first)   # all graphs are different

    def test_members_of_small_groups_are_drawn_together(self):
        """All samples lie in a group of two: partners are drawn, alike on any ranks and in a resumed run."""
        self.write("meta.csv", [("file", "patient"), *((f"train-{s}", s // 2) for s in range(TRAIN))])
        groups = ["graph.kind=supervised", "graph.labeled_fraction=1", "graph.groups=meta.csv:patient"]
        self.check_resume("groups", *groups)
        out = self.train("groups1", *groups, ranks=1)
        one, two = self.weights("groups1", 10), self.weights("groups-calm", 10)
        self.assertLessEqual(max(abs(a - b) for key in one for a, b in zip(one[key], two[key])), 1e-8)
        chance = self.train("groups-chance", *groups, "graph.edge_share=0", ranks=1)
        share = {run: [m["rows_with_partner"] for m in self.metrics(run) if "loss" in m] for run in ("groups1", "groups-calm", "groups-chance")}
        self.assertEqual(share["groups1"], share["groups-calm"])
        self.assertGreater(sum(share["groups1"]), sum(share["groups-chance"]) + 1)   # about a quarter, over ten steps
        printed = [float(re.search(r"partners +(\d+) % of a batch's rows", text).group(1)) / 100 for text in (out, chance)]
        self.assertAlmostEqual(printed[0], sum(share["groups1"][:8]) / 8, delta=0.006)
        self.assertAlmostEqual(printed[1], sum(share["groups-chance"][:8]) / 8, delta=0.006)
        few = self.train("groups-few", *groups, "graph.edge_share=0", "train.global_batch=4", "train.steps=1", ranks=1)
        self.assertIn("warning: 0.0 % of a batch's rows have a related sample in the batch; raise graph.edge_share, which is 0, or train.global_batch", few)
        self.assertNotIn("; raise graph.edge_share", out)

    def test_questions_about_groups(self):
        """An answer joins whole groups, alike on one rank and on two; groups that were not asked about are not different."""
        self.write("meta.csv", [("file", "patient"), *((f"train-{s}", s % 45) for s in range(TRAIN))])   # of one class: 45 = 15 * 3
        asks = ["graph.labeled_fraction=1", "graph.groups=meta.csv:patient", "oracle.sampler=captcha", "oracle.every=1", "oracle.questions_per_round=9",
                "oracle.pool=60"]
        for ranks in (1, 2):
            self.train(f"grouped{ranks}", *asks, ranks=ranks)
        one, two = self.weights("grouped1", 10), self.weights("grouped2", 10)
        self.assertLessEqual(max(abs(a - b) for key in one for a, b in zip(one[key], two[key])), 1e-8)
        lines = [m for m in self.metrics("grouped1") if "loss" in m]
        self.assertGreater(lines[-1]["queries"], 20)
        self.assertGreater(lines[-1]["pairs_positive"], lines[0]["pairs_positive"])
        self.call("labels", "grouped1", "--known-only", "--out", "grouped.csv")
        with open(f"{self.folder}/grouped.csv") as f:
            rows = [line.split(",") for line in f.read().splitlines()[1:]]
        classes = {name: {int(row[0]) % CLASSES for row in rows if row[2] == name} for name in {row[2] for row in rows}}
        self.assertTrue(all(len(members) == 1 for members in classes.values()), classes)
        self.assertLess(len(classes), 45 - 5, "groups were joined")

    # ---- bad input -----------------------------------------------------------------------------------------------

    def test_run_folder_of_another_config(self):
        self.train("taken")
        self.one_sentence(self.train("taken", "loss.variance=7", code=2), "loss.variance", "--run-dir")
        self.one_sentence(self.train("taken", "--resume", "never", code=2), "taken")

    def test_unwritable_run_folder(self):
        self.one_sentence(self.train("c.yaml/run", code=2), "c.yaml/run", "--run-dir")

    def test_more_ranks_than_samples_in_a_batch(self):
        self.one_sentence(self.train("wide", "train.global_batch=2", ranks=4, code=2), "4", "ranks")

    def test_a_batch_larger_than_the_set(self):
        for check in ((), ("--check",)):
            out = self.call("train", "c.yaml", "train.global_batch=91", "--run-dir", "huge", *check, code=2)
            self.one_sentence(out, "train.global_batch is larger than the 90 samples trained on: 91")

    def test_steps_and_epochs(self):
        self.one_sentence(self.train("both", "train.epochs=1", code=2), "train.steps", "train.epochs")

    def test_losses_that_do_not_fit(self):
        self.one_sentence(self.train("no-labels", "loss.kind=mse", "graph.kind=ssl", code=2), "loss.kind", "graph.kind")
        self.one_sentence(self.train("few-outputs", "loss.kind=mse", "model.projector=[16, 2]", code=2), "model.projector", "class")
        self.one_sentence(self.train("predictor", "loss.kind=nnclr", "model.predictor=[12, 9]", code=2), "model.predictor", "8")

    def test_a_collapse_is_reported_once(self):
        out = self.train("collapse", "loss.variance=0", "loss.covariance=0", "optim.kind=sgd", "optim.lr=0.05", "train.steps=60", ranks=1)
        self.assertEqual(out.count("have collapsed"), 1, out)
        self.assertEqual(len([m for m in self.metrics("collapse") if "warning" in m]), 1)

    def test_bf16_on_a_cpu(self):
        self.one_sentence(self.train("bf16", "train.precision=bf16", code=2), "train.precision=bf16", "train.precision=full")

    def test_more_micro_batches_than_samples(self):
        self.one_sentence(self.train("micro", "train.micro_batches=7", code=2), "train.micro_batches", "7")

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

    def test_an_error_of_one_rank_ends_all(self):
        os.mkdir(f"{self.folder}/elsewhere")   # the config is there, the data is not
        shutil.copy(f"{self.folder}/c.yaml", f"{self.folder}/elsewhere")
        command = [PAL, "train", "c.yaml", "--run-dir", f"{self.folder}/thrown"]
        start = time.time()
        out = subprocess.run([*MPIRUN, "-np", "2", *command, ":", "-np", "1", "-wdir", "elsewhere", *command], cwd=self.folder, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertLess(time.time() - start, 5 + 3, "seconds, three of them for the start")
        self.assertEqual(out.returncode, 3, out.stdout)
        self.one_sentence(out.stdout, "[rank 2/3", "set.h5")

    def test_ranks_that_disagree_are_refused(self):
        out = subprocess.run([*MPIRUN, "-np", "1", PAL, "train", "c.yaml", "--run-dir", "disagree", ":", "-np", "1", PAL, "train", "c.yaml",
                              "train.seed=4", "--run-dir", "disagree"], cwd=self.folder, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(out.returncode, 2, out.stdout)
        self.assertIn("do not agree on the config", out.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
