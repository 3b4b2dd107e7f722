#!/usr/bin/env python3
"""Runs that are stopped, killed, damaged or started again: a resumed run equals the uninterrupted one.

usage: resume_test.py PAL [test names]     (standard library only)
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from run_case import CAREFUL, MPIRUN, NNCLR, PAL, RunCase, listening, processes_in


class Resume(RunCase):
    def test_resumed_equals_uninterrupted(self):
        self.check_resume("resume")

    def test_resumed_equals_uninterrupted_float32_adamw(self):
        self.check_resume("resume32", "train.dtype=float32", "optim.kind=adamw", "optim.lr=0.001")

    def test_resumed_equals_uninterrupted_with_batch_norm_per_node(self):
        # AdamW's state is larger than the model, so rank 1 writes the model's file. The statistics in it must be rank 0's.
        self.check_resume("resume-off", "model.batch_norm=off", "optim.kind=adamw", "optim.lr=0.001")
        out = self.train("resume-node", "model.batch_norm=node", "optim.kind=adamw", "optim.lr=0.001")
        self.assertIn("model.batch_norm=node: results depend on the number of ranks", out)
        self.train("resume-global", "optim.kind=adamw", "optim.lr=0.001")
        self.assertEqual(self.sha("resume-node"), self.sha("resume-global"))   # one host
        self.assertNotEqual(self.sha("resume-off-calm"), self.sha("resume-global"))

    def test_resumed_with_another_number_of_ranks(self):
        self.train("ranks-calm")
        calm = self.weights("ranks-calm", 10)
        for ranks in (1, 3):
            shutil.copytree(f"{self.folder}/ranks-calm", f"{self.folder}/ranks{ranks}", symlinks=True)
            shutil.rmtree(f"{self.folder}/ranks{ranks}/checkpoints/step-10")
            out = self.train(f"ranks{ranks}", ranks=ranks)
            self.assertIn("resumed at step 5", out)
            self.assertIn("not bit for bit", out)
            other = self.weights(f"ranks{ranks}", 10)
            self.assertLessEqual(max(abs(a - b) for key in calm for a, b in zip(calm[key], other[key])), 1e-8)

    def test_resumed_equals_uninterrupted_with_an_oracle(self):
        self.check_resume("resume-oracle", "graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2",
                          "oracle.questions_per_round=9", "oracle.pool=60")

    def test_resumed_equals_uninterrupted_with_one_step_of_deduction(self):
        self.check_resume("resume-careful", *CAREFUL)

    def test_resumed_equals_uninterrupted_with_a_support_queue(self):
        self.check_resume("resume-nnclr", *NNCLR)

    def test_resumed_equals_uninterrupted_inside_a_query_round(self):
        # The checkpoint is between a round's questions (step 4) and its answers (step 8).
        self.check_resume("resume-round", "graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=4",
                          "oracle.questions_per_round=9", "oracle.pool=60")

    def check_resume_from(self, name, *args):
        """A run that begins with another one's checkpoint ends with its weights."""
        self.train(name, *args)
        for folder in (f"{name}/checkpoints/step-5", f"{name}/checkpoints/step-5/"):
            other = f"{name}-{len(folder)}"
            out = self.train(other, *args, "--resume", folder)
            self.assertIn("resumed at step 5", out)
            self.assertNotIn("warning", out)
            self.assertEqual(self.sha(name), self.sha(other))
            self.assertTrue(os.path.exists(f"{self.folder}/{other}/checkpoints/step-5"), "the folder has its own at once")

    def test_starts_from_another_run(self):
        self.check_resume_from("from")
        out = self.train("from-longer", "train.steps=14", "--resume", "from")   # the newest of the run
        self.assertIn("resumed at step 10", out)
        self.assertIn("with other settings: train.steps", out)
        self.assertEqual(self.metrics("from-longer")[-1]["step"], 14)
        shutil.rmtree(f"{self.folder}/from")
        self.assertIn("finished", self.train("from-longer", "train.steps=14"))   # its own checkpoints are enough

    def test_starts_from_another_run_with_its_answers(self):
        self.check_resume_from("from-oracle", "graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2",
                               "oracle.questions_per_round=9", "oracle.pool=60")

    def test_resume_without_a_checkpoint_is_refused(self):
        self.train("whole")
        refused = lambda where, code, *words: self.one_sentence(self.train("new", "--resume", where, code=code), *words)
        refused("nowhere", 2, "--resume is neither auto, never nor a folder: nowhere")
        refused("idx", 2, "there is no checkpoint in --resume: idx")
        refused("whole", 2, "not before the last step of this run, 10; its step: 10")
        os.makedirs(f"{self.folder}/empty/checkpoints", exist_ok=True)
        refused("empty", 3, "has no checkpoint yet")
        with open(f"{self.folder}/whole/checkpoints/step-5/model.safetensors", "ab") as file:
            file.write(b"x")
        refused("whole/checkpoints/step-5", 3, "model.safetensors")

    def test_killed_run_resumes(self):
        self.train("kill-calm", "train.steps=60")
        command = [PAL, "train", "c.yaml", "train.steps=60", "--run-dir", "kill", "--np", "2"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 60
        while time.time() < deadline and not os.path.exists(f"{self.folder}/kill/checkpoints/step-10"):
            time.sleep(0.002)
        running = processes_in(os.path.realpath(self.folder))
        ports = [("mpirun" in line, *port) for pid, line in running for port in listening(pid)]
        for pid, _ in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        job.wait(timeout=20)
        self.assertEqual([port for port in ports if not port[0]], [], "ranks of one host talk by shared memory only")
        self.assertGreater(len(ports), 1, "mpirun listens")
        self.assertEqual([port for port in ports if "lo" not in port and "127.0.0.1" not in port], [], "for this host alone")
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

    # Keys that were renamed, with values that are not their defaults; the run is that of the new names.
    OLD_KEYS = {"train.wire": "bfloat16", "train.watch": "off", "augment.solarise": "[0.25]", "oracle.centre": "input",
                "oracle.guide": "none", "oracle.firm": "0.75", "oracle.near_until": "7", "oracle.neighbours": "2", "loss.neighbours": "2"}
    NEW_KEYS = ["train.grad_dtype", "train.watchdog", "augment.solarize", "oracle.center", "oracle.class_guess", "oracle.coarse_accuracy",
                "oracle.pruning_near_until", "oracle.neighbors", "loss.neighbors"]

    def test_a_run_folder_with_old_keys_resumes(self):
        new = [f"{key}={value}" for key, value in zip(self.NEW_KEYS, self.OLD_KEYS.values())]
        self.train("renamed-calm", *new)
        self.train("renamed-cut", *new)
        shutil.rmtree(f"{self.folder}/renamed-cut/checkpoints/step-10")
        path = f"{self.folder}/renamed-cut/config.yaml"
        with open(path) as f:
            lines = f.read().split("\n")
        section, count = "", 0
        for k, line in enumerate(lines):
            section = line[:-1] if line and not line.startswith(" ") else section
            key = f"{section}.{line.strip().split(':')[0]}"
            if key in self.NEW_KEYS:
                lines[k] = line.replace(key.split(".")[1], list(self.OLD_KEYS)[self.NEW_KEYS.index(key)].split(".")[1], 1)
                count += 1
        self.assertEqual(count, len(self.NEW_KEYS))
        with open(path, "w") as f:
            f.write("\n".join(lines))
        old = [f"{key}={value}" for key, value in self.OLD_KEYS.items()]
        out = self.train("renamed-cut", *old)
        self.assertIn("resumed at step 5", out)
        for before, now in zip(self.OLD_KEYS, self.NEW_KEYS):   # once each, not once per rank
            self.assertEqual(out.count(f"{before} is now called {now}"), 1, out)
        self.assertEqual(self.sha("renamed-calm"), self.sha("renamed-cut"))
        with open(path) as f, open(f"{self.folder}/renamed-calm/config.yaml") as calm:
            self.assertEqual(f.read(), calm.read())

    def test_old_keys_are_noted_once_under_mpirun(self):
        out = self.call("train", "c.yaml", "train.watch=off", "--run-dir", "renamed-mpirun", prefix=[*MPIRUN, "-np", "2"])
        self.assertEqual(out.count("train.watch is now called train.watchdog"), 1, out)

    def test_more_steps_continue_in_the_same_folder(self):
        self.train("longer")
        self.train("longer-copy", "train.steps=14", "--resume", "longer")
        out = self.train("longer", "train.steps=14")
        self.assertIn("resumed at step 10", out)
        self.assertIn("was train.steps=10; the learning rate follows the new length from step 10 on", out)
        self.assertEqual([m["step"] for m in self.metrics("longer")], [*range(1, 15), 14])
        self.assertEqual(self.sha("longer"), self.sha("longer-copy"))
        self.one_sentence(self.train("longer", code=2), "has more steps than the 10 of this config: 14", "train.steps")
        self.assertIn("finished: 14 steps", self.train("longer", "train.steps=14"))

    def test_a_start_that_failed_does_not_reserve_the_folder(self):
        self.one_sentence(self.train("burnt", "data.train=nowhere.h5", code=3), "nowhere.h5")
        with open(f"{self.folder}/burnt/config.yaml", "w") as f, open(f"{self.folder}/c.yaml") as g:
            f.write(g.read().replace("seed: 3", "seed: 4"))   # as an earlier version left it
        self.train("burnt", "train.steps=5")
        self.assertTrue(os.path.exists(f"{self.folder}/burnt/checkpoints/step-5"))
        self.one_sentence(self.train("burnt", "train.steps=5", "train.seed=5", code=2), "different keys: train.seed", "--resume burnt --run-dir NEW")

    def test_a_finished_run_without_checkpoints_is_refused(self):
        self.train("gone")
        shutil.rmtree(f"{self.folder}/gone/checkpoints")
        before = self.metrics("gone")
        self.one_sentence(self.train("gone", code=3), "finished, but its checkpoints are gone: gone", "--resume never")
        self.assertEqual(self.metrics("gone"), before)
        self.train("gone", "--resume", "never")
        self.assertEqual(self.sha("gone"), before[-1]["weights_sha256"])
        # Of a run that is not finished a warning says that its steps are trained again.
        shutil.rmtree(f"{self.folder}/gone/checkpoints")
        with open(f"{self.folder}/gone/metrics.jsonl", "w") as f:
            f.writelines(json.dumps(m) + "\n" for m in before[:4])
        self.assertIn("warning: the run was trained to step 4, but it has no usable checkpoint: it starts again at step 0", self.train("gone"))
        self.assertNotIn("starts again", self.train("fresh", "train.steps=1"))

    def test_questions_without_a_known_label(self):
        asks = ["graph.kind=ssl", "oracle.sampler=captcha", "oracle.every=2", "oracle.questions_per_round=9", "oracle.pool=60"]
        self.assertIn("0 labels known, classes are discovered", self.call("train", "c.yaml", *asks, "--check"))
        self.train("discovered", *asks)
        self.assertGreater([m["queries"] for m in self.metrics("discovered") if "loss" in m][-1], 0)
        for check in ((), ("--check",)):   # known at the start, by both
            out = self.call("train", "c.yaml", *asks, "oracle.templates=given", "--run-dir", "given", *check, code=2)
            self.one_sentence(out, "oracle.templates=given needs a known label", "discover")
        self.assertFalse(os.path.exists(f"{self.folder}/given/metrics.jsonl"))
        out = self.train("too-short", *asks, "oracle.every=50", ranks=1)
        self.assertIn("warning: no question is asked: oracle.every is 50 and the run has 10 steps", out)
        self.assertIn("no answer takes effect", self.call("train", "c.yaml", *asks, "oracle.every=5", "--check"))

    def test_a_run_folder_with_given_templates_resumes_with_auto(self):
        asks = ["graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2", "oracle.questions_per_round=9", "oracle.pool=60"]
        self.train("older", *asks)
        with open(f"{self.folder}/older/config.yaml") as f:
            text = f.read()
        with open(f"{self.folder}/older/config.yaml", "w") as f:
            f.write(text.replace("  templates: auto\n", "  templates: given\n"))
        self.assertIn("templates: auto", text)
        self.assertIn("finished", self.train("older", *asks))

    def test_a_finished_run_is_reported(self):
        self.train("finished")
        sha = self.sha("finished")
        self.assertIn("finished", self.train("finished"))
        self.assertEqual(self.sha("finished"), sha)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
