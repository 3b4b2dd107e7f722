#!/usr/bin/env python3
"""Commands on runs: pal eval on ranks, evaluation while training, watch, runs, report; and incomplete runs.

usage: eval_runs_test.py PAL [test names]     (standard library only)
"""
import fcntl
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import unittest

from run_case import MPIRUN, PAL, TEST, TRAIN, RunCase


class EvalRuns(RunCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.call(cls, "train", "c.yaml", "eval.every=5", "eval.train_samples=60", "eval.test_samples=20", "--run-dir", "run")

    def evaluate(self, ranks, *args):
        prefix = [] if ranks == 1 else [*MPIRUN, "-np", str(ranks)]
        self.call("eval", "run", *args, "--json", f"eval-{ranks}.json", prefix=prefix)
        with open(f"{self.folder}/eval-{ranks}.json") as file:
            return json.load(file)

    def test_every_method_gives_the_same_for_any_number_of_ranks(self):
        args = ["linear", "ridge", "knn", "sgd", "finetune", "diagnostics", "--k", "3,20", "--temperature", "0.07,0.5", "--epochs", "20", "--lr", "20", "--labels", "0.5", "--batch", "16"]
        one = self.evaluate(1, *args)
        methods = [r["method"] for r in one["results"]]
        self.assertEqual(methods, ["linear", "ridge", "knn k=3 t=0.07", "knn k=3 t=0.5", "knn k=20 t=0.07", "knn k=20 t=0.5", "sgd (20 epochs)", "finetune (20 epochs)"])
        for result in one["results"]:
            self.assertEqual(result["test"], TEST)
            self.assertEqual(result["train"], 45 if "epochs" in result["method"] else TRAIN)
            self.assertEqual(sum(map(sum, result["confusion"])), TEST)   # each test sample once
            self.assertLessEqual(result["low"], result["top1"])
            self.assertGreater(result["top1"], 0.45, result["method"])
            self.assertAlmostEqual(result["top1"], sum(result["confusion"][c][c] for c in range(3)) / TEST)
        self.assertGreater(one["diagnostics"]["rank"], 1)
        self.assertLess(one["diagnostics"]["uniformity"], 0)
        self.assertGreater(one["diagnostics"]["alignment"], 0)
        for ranks in (2, 3):
            many = self.evaluate(ranks, *args)
            self.assertEqual([r["confusion"] for r in many["results"]], [r["confusion"] for r in one["results"]])
            for name in ("rank", "uniformity", "alignment"):
                self.assertAlmostEqual(many["diagnostics"][name], one["diagnostics"][name], places=6)

    def test_methods_do_not_affect_each_other(self):
        args = ["--epochs", "3", "--lr", "20", "--batch", "16"]
        alone = {m: self.evaluate(1, m, *args) for m in ("sgd", "finetune", "diagnostics")}
        together = self.evaluate(1, "finetune", "sgd", "finetune", "diagnostics", *args)
        tuned, sgd, again = (r["confusion"] for r in together["results"])
        self.assertEqual(tuned, again)
        self.assertEqual(tuned, alone["finetune"]["results"][0]["confusion"])
        self.assertEqual(sgd, alone["sgd"]["results"][0]["confusion"])
        self.assertEqual(together["diagnostics"], alone["diagnostics"]["diagnostics"])

    def test_one_percent_of_these_labels_is_one_of_each_class(self):
        self.assertEqual(self.evaluate(1, "finetune", "--labels", "0.01", "--epochs", "1")["results"][0]["train"], 3)
        self.assertEqual(self.evaluate(1, "finetune", "--labels", "0.1", "--epochs", "1")["results"][0]["train"], 9)
        self.assertEqual(self.evaluate(1, "finetune", "--epochs", "1")["results"][0]["train"], TRAIN)

    def test_the_ridge_is_chosen_or_given(self):
        out = self.call("eval", "run", "linear", "ridge", "--json", "chosen.json")
        self.assertRegex(out, r"(?m)^ridge penalty of linear: \S+, chosen on a fifth of the training features$")
        with open(f"{self.folder}/chosen.json") as file:
            chosen = {r["method"]: r["ridge"] for r in json.load(file)["results"]}
        for ridge in chosen.values():
            self.assertAlmostEqual(math.log10(ridge), round(math.log10(ridge)), places=6)
        self.assertIn("ridge penalty of ridge: 0.5\n", self.call("eval", "run", "ridge", "--ridge", "0.5", "--json", "given.json"))
        with open(f"{self.folder}/given.json") as file:
            self.assertEqual(json.load(file)["results"][0]["ridge"], 0.5)

    def test_diagnostics_report_a_low_rank(self):
        out = self.call("eval", "run", "diagnostics")
        self.assertRegex(out, r"(?m)^rank \d\.\d of 8: (low, the features use few directions|not low)")
        self.assertRegex(out, r"(?m)^uniformity -\d\.\d\d \(0: all features are equal")
        self.assertRegex(out, r"(?m)^alignment \d\.\d{3} \(0: two views")
        self.train("line", "model.widths=[6, 1]", "train.steps=1", ranks=1)   # all features on a line, as after a collapse
        self.assertRegex(self.call("eval", "line", "diagnostics"), r"(?m)^rank 1\.0 of 1: low, the features use few directions")

    def test_commands_that_take_long_show_progress(self):
        """A line at the start and at the end at least; a terminal shows a bar."""
        out = self.call("eval", "run", "linear", "knn")
        for words in ("embed train", "embed test", "linear  300/300  100 %", f"knn  {TEST}/{TEST}  100 %"):
            self.assertIn(words, out)
        self.assertIn(f"pixels train  {TRAIN}/{TRAIN}  100 %", self.call("eval", "c.yaml", "ridge", "--features", "pixels"))
        self.assertRegex(self.call("report", "run", "--out", "p.html"), rf"run: embed train  {TRAIN}/{TRAIN}  100 %")
        self.assertRegex(self.call("embed", "run", "set-test.h5", "--out", "f.npy"), rf"embed .*{TEST}/{TEST}  100 %")
        self.assertRegex(self.call("data", "verify", "set.h5"), rf"verify  {TRAIN}/{TRAIN}  100 %")
        self.assertRegex(self.call("data", "import", "idx", "idx", "again.h5"), r"import .*100 %")

    def test_transfer_and_picture(self):
        out = self.call("eval", "run", "ridge", "--train", "set-test.h5", "--test", "set.h5", "--picture", "plane.svg")
        self.assertRegex(out, rf"ridge .* {TEST} +{TRAIN} ")
        with open(f"{self.folder}/plane.svg") as file:
            self.assertEqual(file.read().count("<circle"), TRAIN + 10)   # and the legend of the ten classes that IDX files have
        self.one_sentence(self.call("eval", "run", "--train", "set.h5", code=2), "--train and --test")
        self.one_sentence(self.call("eval", "run", "sgd", "--features", "projector", code=2), "sgd")

    def test_evaluation_while_training_changes_nothing_and_is_the_same_for_any_number_of_ranks(self):
        lines = {line["step"]: line for line in self.metrics("run") if "loss" in line}
        self.assertEqual([s for s in lines if "eval_knn_top1" in lines[s]], [5, 10])
        self.assertGreater(lines[10]["eval_linear_top1"], 0.5)
        self.train("no-looks", ranks=1)
        self.assertEqual(self.sha("no-looks"), self.sha("run"))
        self.train("looks-2", "eval.every=5", "eval.train_samples=60", "eval.test_samples=20", ranks=2)
        other = {line["step"]: line for line in self.metrics("looks-2") if "loss" in line}
        for name in ("eval_knn_top1", "eval_linear_top1"):
            self.assertEqual(other[10][name], lines[10][name])
        self.one_sentence(self.train("no-test", "eval.every=5", "data.test=null", ranks=1, code=2), "data.test")

    def test_results_are_kept_in_the_run_folder_and_accumulate(self):
        shutil.copytree(f"{self.folder}/run", f"{self.folder}/kept", symlinks=True, ignore=shutil.ignore_patterns("eval.json"))

        def kept():
            with open(f"{self.folder}/kept/eval.json") as file:
                return json.load(file)

        self.assertIn("measured: the checkpoint of step 10", self.call("eval", "kept", "linear"))
        self.call("eval", "kept", "knn", "--json", "other.json")
        self.assertEqual([r["method"] for r in kept()["results"]], ["knn", "linear"])
        self.assertEqual(kept()["command"], "pal eval kept linear; pal eval kept knn --json other.json")
        self.call("eval", "kept", "ridge", "--features", "projector")        # another kind of result
        self.call("eval", "kept", "ridge", "--train", "set-test.h5", "--test", "set.h5")
        self.assertEqual([r["method"] for r in kept()["results"]], ["knn", "linear"])
        figures = {r["method"]: f"{100 * r['top1']:.2f}" for r in kept()["results"]}
        self.assertRegex(self.page("kept", "--no-samples"), rf"<td[^>]*>{figures['linear']}</td>")
        self.assertRegex(self.call("runs", "kept"), rf"{figures['linear']} +{figures['knn']}")
        # Its confusion matrix is drawn, unless the file was changed by hand.
        self.assertIn("confusion of", self.page("kept", "--no-samples"))
        cut = kept()
        for r in cut["results"]:
            r["confusion"] = [row[:1] for row in r["confusion"]]
        with open(f"{self.folder}/kept/eval.json", "w") as file:
            json.dump(cut, file)
        self.assertNotIn("confusion of", self.page("kept", "--no-samples"))
        deep = json.dumps({**cut, "results": ["deep"]}).replace('"deep"', "[" * 300000 + "]" * 300000)   # for the stack
        with open(f"{self.folder}/kept/eval.json", "w") as file:
            file.write(deep)
        self.call("eval", "kept", "knn")
        self.assertEqual([r["method"] for r in kept()["results"]], ["knn"])
        # The checkpoint is older than the last step trained: eval warns and measures again.
        shutil.rmtree(f"{self.folder}/kept/checkpoints/step-10")
        out = self.call("eval", "kept", "knn")
        self.assertIn("warning: the checkpoint is of step 5, but the run was trained to step 10", out)
        self.assertEqual([(r["method"], kept()["step"]) for r in kept()["results"]], [("knn", 5)])
        shutil.rmtree(f"{self.folder}/kept")

    def test_a_place_that_cannot_be_written_is_found_before_the_work(self):
        self.one_sentence(self.call("report", "run", "--out", "nowhere/page.html", code=3), "nowhere/page.html")
        self.one_sentence(self.call("export", "run", "--out", "nowhere/w.safetensors", code=3), "nowhere/w.safetensors")
        self.one_sentence(self.call("embed", "run", "test", "--out", "nowhere/f.npy", code=3), "nowhere/f.npy")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))   # as a full disk
        for command in (("report", "run", "--out", "page.html"), ("export", "run", "--out", "w.safetensors"), ("embed", "run", "test", "--out", "w.npy")):
            done = subprocess.run([PAL, *command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=limit, timeout=60)
            self.assertEqual(done.returncode, 3, done.stdout)
            self.one_sentence(done.stdout, command[-1])
            self.assertNotIn("embed", done.stdout)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("w.") or ".part" in name], [])

    # ---- watch and runs -----------------------------------------------------------------------------------------

    def test_watch_warns_of_a_falling_effective_rank(self):
        self.assertNotIn("effective rank fell", self.call("watch", "run"))
        shutil.copytree(f"{self.folder}/run", f"{self.folder}/flat")
        lines = self.metrics("flat")
        for line, rank in zip(lines, (4, 6, 5, 2)):
            line["effective_rank"] = rank
        with open(f"{self.folder}/flat/metrics.jsonl", "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines[:4])
        self.assertIn("warning: the effective rank fell from 6.0 at step 2 to 2.0", self.call("watch", "flat"))
        shutil.rmtree(f"{self.folder}/flat")

    def test_runs_fit_into_120_columns(self):
        for k in range(2):   # the same run under settings that differ in many keys
            shutil.copytree(f"{self.folder}/run", f"{self.folder}/unlike/{k}", symlinks=True)
        with open(f"{self.folder}/unlike/1/config.yaml") as file:
            text = file.read()
        with open(f"{self.folder}/unlike/1/config.yaml", "w") as file:
            file.write(re.sub(r"(?m)^(  (?:views|invariance|variance|covariance|seed|lr|limit): )(\d)", r"\g<1>1\2", text))
        lines = [line for line in self.call("runs", "unlike").splitlines() if not line.startswith("note")]
        self.assertLessEqual(max(map(len, lines)), 120, lines)
        self.assertRegex(lines[1], r"data\.limit=\S+ .*\+\d+ more$")
        self.assertIn("2 runs", self.page("unlike", "--no-samples"))   # a folder of runs
        shutil.rmtree(f"{self.folder}/unlike")

    def test_watch_shows_a_finished_run(self):
        out = self.call("watch", "run")
        for words in ("10/10", "loss", "invariance", "images/s", "memory", "kNN top-1 %", "newest checkpoint of step 10"):
            self.assertIn(words, out)
        self.assertNotIn("eta", out)
        self.one_sentence(self.call("watch", "idx", code=2), "idx")

    def test_watch_of_a_running_run_has_an_eta_and_the_last_warnings(self):
        shutil.copytree(f"{self.folder}/run", f"{self.folder}/live")
        lines = self.metrics("live")[:6]
        for line in lines[:5]:
            line["warning"] = f"careful at {line['step']}"
        for line in lines:
            line["seconds"] = 5 * line["step"]   # four steps are left
        lines[-1].update(queries=40, cost=12.5)
        with open(f"{self.folder}/live/metrics.jsonl", "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        self.assertRegex(self.call("watch", "live"), r"live .*6/10.* stopped")   # no job holds its lock
        with open(f"{self.folder}/live/lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            out = self.call("watch", "live")
        self.assertRegex(out, r"live .*6/10.* eta 0:20")
        self.assertRegex(out, r"queries +40 ")
        self.assertRegex(out, r"cost +12\.5 ")
        self.assertEqual(re.findall(r"warning at step (\d): careful at \1", out), ["3", "4", "5"])
        shutil.rmtree(f"{self.folder}/live")

    def test_control_characters_are_escaped(self):
        """Names of folders, terms and warnings with escape sequences, as watch, runs and eval print them."""
        odd = "odd/a\x1b]0;x\x07"
        shutil.copytree(f"{self.folder}/run", f"{self.folder}/{odd}", symlinks=True)
        lines = self.metrics(odd)[:6]
        lines[-1]["warning"] = "careful\x1b[2J"
        for line in lines:
            line["terms"]["b\x1b[3J"] = 1
        with open(f"{self.folder}/{odd}/metrics.jsonl", "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
            file.write("cut")
        os.remove(f"{self.folder}/{odd}/checkpoints/step-10/model.safetensors")
        with open(f"{self.folder}/{odd}/eval.json", "w") as file:
            file.write("[]")
        out = self.call("watch", odd)
        for words in (r"a\x1b]0;x\x07", r"warning at step 6: careful\x1b[2J", r"b\x1b[3J", r"note: odd/a\x1b]0;x\x07/eval.json is not"):
            self.assertIn(words, out)
        listed = self.call("runs", "odd")
        self.assertIn(r"note: odd/a\x1b]0;x\x07: 1 line(s)", listed)
        skipped = self.call("eval", odd, "knn")
        self.assertRegex(skipped, r"warning: .*a\\x1b\]0;x\\x07.*step-10")
        self.assertNotIn("\x1b", out + listed + skipped)
        shutil.rmtree(f"{self.folder}/odd")

    def test_runs_lists_states_and_differences(self):
        os.makedirs(f"{self.folder}/many", exist_ok=True)
        for name, lr in (("a", 0.05), ("b", 0.01)):
            self.train(f"many/{name}", f"optim.lr={lr}", "train.steps=3", ranks=1)
        with open(f"{self.folder}/many/b/metrics.jsonl", "r+") as file:
            lines = file.read().splitlines(True)
            file.seek(0)
            file.truncate()
            file.write("".join(lines[:-1]))
        os.utime(f"{self.folder}/many/b/metrics.jsonl", (1, 1))
        out = self.call("runs", "many")
        self.assertRegex(out, r"many/a +done +3/3 .*optim.lr=0\.05")
        self.assertRegex(out, r"many/b +stopped +3/3 .*optim.lr=0\.01")
        self.assertNotIn("loss.kind", out)
        self.one_sentence(self.call("runs", "idx", code=2), "no run below")

    # ---- report --------------------------------------------------------------------------------------------------

    def page(self, *args):
        self.call("report", *args, "--out", "page.html")
        with open(f"{self.folder}/page.html") as file:
            return file.read()

    def test_report_of_one_run(self):
        self.evaluate(1, "knn", "--k", "7")
        shutil.copy(f"{self.folder}/eval-1.json", f"{self.folder}/run/eval.json")   # without what other tests measured
        page = self.page("run")
        for words in ("terms of the loss", "accuracy while training", "throughput", "effective rank of Z", "confusion of knn", "nearest", "widths: [6, 8]", "pal eval run knn --k 7 --json eval-1.json", "pal train c.yaml eval.every=5"):
            self.assertIn(words, page)
        self.assertGreaterEqual(page.count("<svg"), 7)
        self.assertGreaterEqual(page.count("data:image/png;base64,"), 8 * 10)
        self.assertEqual(re.findall(r"(?:src|href)=\"(?!data:|#)[^\"]*\"", page), [])

    def test_report_compares_runs_and_shows_questions(self):
        asks = ["graph.kind=mixed", "graph.labeled_fraction=0", "oracle.sampler=captcha", "oracle.every=2", "oracle.questions_per_round=10"]
        self.train("asks", *asks, ranks=2)
        page = self.page("asks", "run")
        for words in ("2 runs", "Where they differ", "oracle.sampler", "questions and their cost", "communication", "Questions and answers: asks"):
            self.assertIn(words, page)
        self.assertRegex(page, r"<td>(same|different|yes|no)</td>")
        self.assertEqual(page.count("<figcaption>The global loss"), 1)
        # The commands appear once above the curves, not under each of them.
        curves = re.search(r'<section id="curves">.*?</section>', page, re.S).group()
        for words in ("asks/metrics.jsonl", "oracle.sampler=captcha", "run/metrics.jsonl", "eval.train_samples=60"):
            self.assertEqual(curves.count(words), 1, words)
        self.assertNotIn("<code>", re.search(r'<div class="figures">.*', curves, re.S).group())
        # Neighbors and plane of each run.
        for name in ("asks", "run"):
            self.assertIn(f"Samples and their nearest neighbors: {name}", page)
            self.assertRegex(page, rf"<figcaption>{name}: 30 test samples of step 10")

    def test_report_of_a_run_without_a_test_set(self):
        """Its neighbors are those of training samples, without the samples themselves."""
        self.train("untested", "data.test=null", "train.steps=1", ranks=1)
        page = self.page("untested")
        self.assertIn("black frame: a training sample", page)
        self.assertIn(f"untested: {TRAIN} training samples of step 1", page)
        self.assertNotIn("--picture", page)   # needs data.test
        self.assertNotIn("pal eval", page)
        self.assertIn("No evaluation: without a test set (data.test) there is nothing to measure on.", page)
        rows = re.findall(r'<div class="near">(.*?)</div>', page, re.S)
        self.assertEqual(len(rows), 10)
        for row in rows:
            query, *near = re.findall(r"data:image/png;base64,[^\"]+", row)
            self.assertEqual(len(near), 7)
            self.assertNotIn(query, near)

    def test_report_names_different_versions(self):
        shutil.copytree(f"{self.folder}/run", f"{self.folder}/older")
        with open(f"{self.folder}/older/machine.json") as file:
            starts = json.load(file)
        with open(f"{self.folder}/older/machine.json", "w") as file:
            json.dump([{**starts[0], "pal": "0.0.1"}], file)
        self.assertIn("different versions of pal or LibTorch", self.page("run", "older", "--no-samples"))
        self.assertNotIn("different versions of pal or LibTorch", self.page("run", "run", "--no-samples"))
        shutil.rmtree(f"{self.folder}/older")

    def test_incomplete_runs_are_reported_with_sentences(self):
        shutil.copytree(f"{self.folder}/run", f"{self.folder}/poor")
        shutil.rmtree(f"{self.folder}/poor/checkpoints")
        self.assertIn("no checkpoint", self.page("poor"))
        self.one_sentence(self.call("eval", "poor", code=3), "no usable checkpoint")
        self.one_sentence(self.call("export", "poor", "--out", "w.safetensors", code=3), "no usable checkpoint")
        with open(f"{self.folder}/poor/metrics.jsonl") as file:
            first = file.readline()
        with open(f"{self.folder}/poor/metrics.jsonl", "w") as file:
            file.write(re.sub(r'"loss":[^,]*', '"loss":null', first) + first[:25])
        page = self.page("poor")
        self.assertIn("not finite in 1 logged step", page)
        self.assertIn("1 line(s) of its metrics.jsonl are cut", page)
        open(f"{self.folder}/poor/metrics.jsonl", "w").close()
        self.assertIn("no logged step yet", self.page("poor"))
        os.remove(f"{self.folder}/poor/metrics.jsonl")
        self.assertIn("nothing was logged", self.page("poor"))
        with open(f"{self.folder}/poor/machine.json") as file:
            starts = json.load(file)
        with open(f"{self.folder}/poor/machine.json", "w") as file:
            json.dump(starts + [{**starts[0], "pal": "9.9"}], file)
        self.assertIn("several versions", self.page("poor"))
        os.rename(f"{self.folder}/set-test.h5", f"{self.folder}/away.h5")
        try:
            self.assertIn("No samples are shown", self.page("run"))
        finally:
            os.rename(f"{self.folder}/away.h5", f"{self.folder}/set-test.h5")
        self.one_sentence(self.call("report", "idx", code=2), "no run below")
        shutil.rmtree(f"{self.folder}/poor")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
