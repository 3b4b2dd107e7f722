#!/usr/bin/env python3
"""Runs with faults: ranks die, hang, compute NaN; disks fill; ranks run other programs or settings.

usage: faults_test.py PAL [test names]     (standard library only)
"""
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

from fault_case import LAST, STEADY, STEPS, FaultCase
from run_case import PAL, metrics_so_far, read_safetensors


def is_paused(pid):
    """Whether the main thread is in pause(), as PAL_FAULT=hang leaves it: system call 34 of x86-64."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().split()[0] == "34"


class Faults(FaultCase):
    # ---- a rank dies ---------------------------------------------------------------------------------------------

    def test_any_rank_may_be_killed(self):
        for rank in (0, 1):
            out, _ = self.faulty(f"killed{rank}", f"kill:{rank}:25")
            self.assertRegex(out, r"a rank was killed by signal 9 \(Killed\); restart 1 of 3 with 2 ranks, " + LAST)
            self.assertRegex(out, r"resumed at step (10|20)\n")
            self.assertEqual(self.sha(f"killed{rank}"), self.sha("calm"), "bit for bit")

    def test_restarts_without_progress_stop(self):
        out, _ = self.faulty("nowhere", "kill:1:4:always", "--max-restarts", "10", code=76)
        self.assertEqual(out.count("warning: a rank was killed"), 3, out)
        self.one_sentence(out, "3 restarts in a row wrote no checkpoint newer")

    def test_fewer_ranks_continue_with_the_same_losses(self):
        self.train("curve", *STEPS, "train.dtype=float64")
        out, _ = self.faulty("fewer", "kill:1:25:always", "train.dtype=float64", "--min-np", "1")
        self.assertRegex(out, "with 1 rank, " + LAST)
        calm, fewer = self.weights("curve", 60), self.weights("fewer", 60)
        self.assertLess(max(abs(a - b) for key in calm for a, b in zip(calm[key], fewer[key])), 1e-8)

    # ---- a rank hangs --------------------------------------------------------------------------------------------

    def test_a_stopped_rank_is_named_and_the_run_continues(self):
        out, seconds = self.faulty("stopped", "stop:1:25")
        self.assertIn("rank 1 sent no heartbeat for 10.", out)
        self.assertRegex(out, LAST)
        self.assertEqual(self.sha("stopped"), self.sha("calm"))
        self.assertLess(seconds, 12 + 3 * self.calm_seconds, "ten seconds of silence, two to end the job, and two starts")
        waiting = [c for log in self.flight("stopped", 0)["collectives"].values() for c in log if c["pending"]]
        self.assertGreater(len(waiting), 0)
        self.assertGreater(waiting[0]["seconds"], 9)

    def test_a_rank_that_sleeps_in_a_step_is_named(self):
        out, _ = self.faulty("sleeping", "hang:1:25", "train.stall_seconds=3", "train.heartbeat_seconds=3")
        self.assertRegex(out, r"error: rank 1 has not reached collective \d+ of '\w+', in which other ranks have waited for [34]\.")
        self.assertEqual(self.sha("sleeping"), self.sha("calm"))

    def test_a_rank_that_works_for_long_gets_a_warning_and_is_not_ended(self):
        out, _ = self.faulty("busy", "busy:1:25", "train.stall_seconds=3", "train.heartbeat_seconds=3", "train.hang_seconds=60")
        self.assertRegex(out, r"warning: rank 1 has not reached collective \d+ of '\w+', .*; it still works, so the job waits for it, 60 s at most")
        self.assertNotIn("restart", out)
        self.assertEqual(self.sha("busy"), self.sha("calm"))
        out, _ = self.faulty("too-busy", "busy:1:25", "train.stall_seconds=2", "train.hang_seconds=4")
        self.assertRegex(out, r"error: rank 1 has not reached collective \d+ of '\w+', in which other ranks have waited for 4\.")

    # ---- numbers and disks ---------------------------------------------------------------------------------------

    def test_a_nan_on_one_rank_skips_the_step_on_all(self):
        self.faulty("nan", "nan:1:30", "checkpoint.every=1", "checkpoint.keep=1000")
        losses = {m["step"]: m["loss"] for m in self.metrics("nan") if "loss" in m}
        calm = {m["step"]: m["loss"] for m in self.metrics("calm") if "loss" in m}
        self.assertEqual([losses[s] for s in range(1, 32)], [calm[s] for s in range(1, 32)])
        self.assertNotEqual(losses[32], calm[32])
        self.assertEqual(self.weights("nan", 30), self.weights("nan", 31))   # the statistics of batch norm too

    def test_a_skipped_step_leaves_the_support_queue_as_it_was(self):
        self.faulty("nan-queue", "nan:1:30", "checkpoint.every=1", "checkpoint.keep=1000", "loss.kind=nnclr", "loss.queue=40", "model.predictor=[12, 8]",
                    "loss.temperature=0.5")
        queue = lambda step: read_safetensors(f"{self.folder}/nan-queue/checkpoints/step-{step}/extra.safetensors")
        self.assertNotEqual(queue(29), queue(30))
        self.assertEqual(queue(30), queue(31))
        self.assertNotEqual(queue(31), queue(32))

    def test_many_nans_roll_back_and_then_stop(self):
        out, _ = self.faulty("rolled", "nan:1:25-27", "train.max_skips=3")
        self.assertIn("the run goes back to the last checkpoint", out)
        self.assertRegex(out, r"resumed at step (10|20)\n")
        self.assertEqual(self.sha("rolled"), self.sha("calm"))
        out, _ = self.faulty("hopeless", "nan:1:25-60:always", "train.max_skips=3", code=4)
        self.one_sentence(out, "not finite in 3 steps in a row, also after going back", "last at step 27;")
        self.assertTrue(os.path.exists(f"{self.folder}/hopeless/checkpoints/step-10"))

    def test_a_failing_write_keeps_the_last_good_checkpoint(self):
        out, _ = self.faulty("unwritten", "write-fail:1:30", "checkpoint.keep=10")
        self.assertIn("warning: the checkpoint of step 30 is abandoned", out)
        self.assertIn("the last good one is step-20", out)
        kept = {name for name in os.listdir(f"{self.folder}/unwritten/checkpoints") if name.startswith("step-")}
        self.assertEqual(kept, {f"step-{s}" for s in (10, 20, 40, 50, 60)})
        self.assertEqual(self.sha("unwritten"), self.sha("calm"))

    def test_a_last_checkpoint_that_fails_is_written_again(self):
        self.faulty("last-again", "write-fail:1:60")
        self.assertEqual(self.newest("last-again"), 60)
        self.assertEqual(self.sha("last-again"), self.sha("calm"))

    def test_a_last_checkpoint_that_cannot_be_written_is_an_error(self):
        for steps, lost in (("train.steps=60", 60), ("train.steps=57", 57)):   # of checkpoint.every, and of the end
            name = f"lost{lost}"
            out, _ = self.faulty(name, f"write-fail:1:{lost}:always", steps, code=2)
            self.one_sentence(out, f"the last checkpoint, of step {lost}, could not be written", "give the same command")
            self.assertNotIn("trained", out)
            self.assertFalse(any("done" in m for m in self.metrics(name)))
            table = self.call("runs", name)
            self.assertRegex(table, f"{name} +stopped +{lost}/{lost}")
            self.assertIn(f"it ended after step {lost} without a checkpoint of it; the same command resumes from step 50", table)
        self.train("lost60", *STEPS)
        self.assertEqual(self.sha("lost60"), self.sha("calm"))

    def test_a_run_that_skipped_every_step_is_an_error(self):
        for first in ("0", "30"):   # never trained, and not since the last checkpoint
            out, _ = self.faulty("skipped", f"nan:1:{first}-60", "train.max_skips=100", code=4 if first == "0" else 0)
            if first == "0":
                self.one_sentence(out, "nothing was trained: the gradient was not finite in any step up to 60;")
                self.assertEqual(self.newest("skipped"), -1)
        self.assertTrue(self.metrics("skipped")[-1]["done"])
        self.train("late-skips", *STEPS, "train.steps=50")   # a start that skips all of its steps, of a run that was trained before
        self.faulty("late-skips", "nan:1:50-60", "train.max_skips=100")
        self.assertTrue(self.metrics("late-skips")[-1]["done"])

    def test_a_checkpoint_is_due_by_the_clock_too(self):
        more = (*STEADY, "train.steps=600", "log.every=10")
        self.train("clock-calm", *STEPS, *more)
        out, _ = self.faulty("clock", "kill:1:500", *more, "checkpoint.every=100000", "checkpoint.minutes=0.0001", "checkpoint.keep=1000")
        self.assertRegex(out, r"resumed at step \d+\n")
        self.assertEqual(self.sha("clock"), self.sha("clock-calm"), "bit for bit")
        steps = [int(n[5:]) for n in os.listdir(f"{self.folder}/clock/checkpoints") if n.startswith("step-")]
        self.assertGreater(len(steps), 2)

    # ---- the run folder changes under the run --------------------------------------------------------------------

    def lose(self, name, change):
        """A job whose run folder is changed after its first checkpoint; what it printed. It must end with 3."""
        command = [PAL, "train", "c.yaml", *STEPS, *STEADY, "train.steps=100000", "--run-dir", name, "--np", "2"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while self.newest(name) < 0:
            time.sleep(0.02)
        change(f"{self.folder}/{name}")
        out = job.communicate(timeout=60)[0]
        self.assertEqual(job.returncode, 3, out)
        self.assertNotIn("trained", out)
        return out

    def test_a_run_folder_that_is_moved_or_removed_ends_the_run(self):
        out = self.lose("moving", lambda path: os.rename(path, path + "-moved"))
        self.one_sentence(out, "the run folder was moved or removed during the run: moving")
        self.assertFalse(os.path.exists(f"{self.folder}/moving"), "nothing is written to the old place")
        self.assertGreaterEqual(self.newest("moving-moved"), 10)
        out = self.lose("removing", lambda path: subprocess.run(["rm", "-rf", path], check=True))
        # rm removes the lock before the folder: a checkpoint between the two finds the lock missing.
        self.assertRegex(out, "the run folder was moved or removed|the lock of the run folder was removed")

    def test_a_removed_lock_ends_the_run(self):
        out = self.lose("unlocked", lambda path: os.remove(path + "/lock"))
        self.one_sentence(out, "the lock of the run folder was removed during the run", "unlocked/lock")

    def test_the_link_to_the_newest_checkpoint_is_repaired(self):
        shutil.copytree(f"{self.folder}/calm", f"{self.folder}/linked", symlinks=True)
        last = f"{self.folder}/linked/checkpoints/last"
        os.remove(last)
        os.symlink("step-40", last)
        self.train("linked", *STEPS)
        self.assertEqual(os.readlink(last), "step-60")
        os.makedirs(f"{self.folder}/blocked/checkpoints/last/in-the-way")   # the link cannot be made, and the run does not need it
        self.train("blocked", *STEPS)
        self.assertEqual(self.newest("blocked"), 60)
        self.assertEqual(self.sha("blocked"), self.sha("calm"))

    def test_a_full_disk_does_not_stop_training(self):
        """Full as the ranks see it: no file may grow, for a while."""
        command = [PAL, "train", "c.yaml", *STEPS, *STEADY, "train.steps=2000", "log.every=1", "--run-dir", "full", "--np", "2"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        limit = lambda size: [resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)) for pid in self.rank_pids()]
        while not os.path.exists(f"{self.folder}/full/checkpoints/step-10"):
            time.sleep(0.01)
        self.assertEqual(len(limit(100)), 2)
        said = []
        for line in job.stdout:
            said.append(line)
            if "is abandoned" in line:
                break
        time.sleep(0.3)
        limit(resource.RLIM_INFINITY)
        out = "".join(said) + job.communicate(timeout=120)[0]
        self.assertEqual(job.returncode, 0, out)
        self.assertRegex(out, r"warning: the checkpoint of step \d+ is abandoned: cannot write .*File too large")
        self.assertRegex(out, r"warning: cannot write .*metrics.jsonl")
        self.assertTrue(os.path.exists(f"{self.folder}/full/checkpoints/step-2000"))
        self.assertEqual(self.metrics("full")[-1]["step"], 2000)   # every line is whole

    def test_parameters_that_differ_are_detected_before_they_are_saved(self):
        out, _ = self.faulty("flipped", "flip:1:33")
        self.assertIn("the parameters differ between ranks after step 40: rank 1 of 2 differs from rank 0", out)
        self.assertRegex(out, r"from the checkpoint of step (10|20|30)\b")
        self.assertEqual(self.sha("flipped"), self.sha("calm"))
        out, _ = self.faulty("compared", "flip:1:33", "train.compare_every=7")   # and between checkpoints
        self.assertIn("the parameters differ between ranks after step 35", out)
        self.assertEqual(self.sha("compared"), self.sha("calm"))

    # ---- a round of questions ------------------------------------------------------------------------------------

    def test_a_checkpoint_waits_for_a_round_that_is_late(self):
        """A round is asked at step 400 and ends 12 s late: the checkpoint of 410 waits for it, and the watchdog names no rank."""
        asks = (*STEADY, "train.steps=830", "checkpoint.every=410", "log.every=10", "graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=400",
                "oracle.questions_per_round=9", "oracle.pool=60")
        self.train("asked", *STEPS, *asks)
        out, _ = self.faulty("late", "late-round:0:400,kill:1:700", *asks)
        self.assertEqual(out.count("; restart "), 1, out)
        self.assertIn("a rank was killed by signal 9 (Killed); restart 1 of 3 with 2 ranks, from the checkpoint of step 410", out)
        self.assertEqual([m["queries"] for m in self.metrics("late")[:-1]], [m["queries"] for m in self.metrics("asked")[:-1]])
        self.assertGreater(self.metrics("asked")[-2]["queries"], 0)
        self.assertEqual(self.sha("late"), self.sha("asked"))

    def test_a_ledger_that_cannot_be_written_ends_in_a_restart(self):
        asks = (*STEADY, "train.steps=1500", "checkpoint.every=50", "log.every=10", "graph.labeled_fraction=0.05", "oracle.sampler=captcha",
                "oracle.every=25", "oracle.questions_per_round=2", "oracle.pool=60")
        self.train("written", *STEPS, *asks)
        command = [PAL, "train", "c.yaml", *STEPS, *asks, "--run-dir", "unwritable", "--np", "2"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while self.newest("unwritable") < 0:
            time.sleep(0.02)
        for pid in self.rank_pids():   # no file may grow
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        out = job.communicate(timeout=120)[0]
        self.assertEqual(job.returncode, 0, out)
        self.assertRegex(out, r"error: database unwritable/ledger.sqlite: .*File too large.*; a restart continues from the last checkpoint")
        self.assertNotIn("NFS", out)
        self.assertIn("exit code 71; restart 1 of 3", out)
        self.assertEqual(self.sha("unwritable"), self.sha("written"))

    # ---- signals -------------------------------------------------------------------------------------------------

    def test_term_makes_a_checkpoint_and_75(self):
        for number in (signal.SIGTERM, signal.SIGUSR2):
            name = f"told{number}"
            command = [PAL, "train", "c.yaml", *STEPS, "train.steps=100000", "checkpoint.every=100000", "log.every=20", "--run-dir", name, "--np", "2"]
            job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            while not os.path.exists(f"{self.folder}/{name}/metrics.jsonl") or len(self.metrics(name)) < 2:
                time.sleep(0.05)
            job.send_signal(number)
            out = job.communicate(timeout=30)[0]
            self.assertEqual(job.returncode, 75, out)
            self.assertIn("with a checkpoint; the same command resumes it", out)
            steps = [int(n[5:]) for n in os.listdir(f"{self.folder}/{name}/checkpoints") if n.startswith("step-")]
            self.assertEqual(len(steps), 1)
            self.assertIn(f"stopped at step {steps[0]} ", out)

    def start_alone(self, name, fault=""):
        """A run without --np, after its first 40 steps."""
        command = [PAL, "train", "c.yaml", *STEPS, "train.steps=100000", "checkpoint.every=100000", "log.every=20", "--run-dir", name, "--allow-faults"]
        job = subprocess.Popen(command, cwd=self.folder, env={**os.environ, "PAL_FAULT": fault}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while len(metrics_so_far(f"{self.folder}/{name}")) < 2:
            time.sleep(0.02)
        return job

    def test_without_np_a_signal_makes_a_checkpoint_too(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            name = f"alone{number}"
            job = self.start_alone(name)
            job.send_signal(number)
            out = job.communicate(timeout=30)[0]
            self.assertEqual(job.returncode, 75, out)
            self.assertIn(f"stopped at step {self.newest(name)} with a checkpoint", out)

    def test_a_second_interrupt_ends_at_once(self):
        job = self.start_alone("impatient", "hang:0:45")
        while not is_paused(job.pid):   # before that, a signal ends the run after the step
            time.sleep(0.02)
        job.send_signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertIsNone(job.poll(), "the step must end first")
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=30)
        self.assertEqual(job.returncode, -signal.SIGINT)

    # ---- ranks that do not fit together --------------------------------------------------------------------------

    def test_a_rank_with_another_program_or_setting_is_named_at_once(self):
        plain = [PAL, "train", "c.yaml", *STEPS, "--run-dir", "misfit0"]
        shutil.copy(PAL, f"{self.folder}/pal-of-yesterday")
        with open(f"{self.folder}/pal-of-yesterday", "ab") as file:
            file.write(b"x")   # behind what is loaded
        # Settings with which a rank starts with threads, folders or communicators that the other ranks do not have.
        for words, other in (("do not run the same program: rank 1 of 2 differs from rank 0", ["./pal-of-yesterday", *plain[1:]]),
                             ("rank 1 of 2 differs from rank 0 in train.watchdog", [*plain, "train.watchdog=off"]),
                             ("rank 1 of 2 differs from rank 0 in data.stage", [*plain, f"data.stage={self.folder}/scratch"]),
                             ("rank 1 of 2 differs from rank 0 in model.batch_norm", [*plain, "model.batch_norm=node"])):
            start = time.time()
            code, out = self.ranks(plain, other)
            self.assertEqual(code, 2, out)
            self.one_sentence(out, words)
            self.assertLess(time.time() - start, 5 + self.calm_seconds, words)
        self.assertFalse(os.path.exists(f"{self.folder}/misfit0"))

    def test_ranks_that_do_not_fit_are_named(self):
        plain = [PAL, "train", "c.yaml", *STEPS]
        other = ["env", "TMPDIR=/nowhere", *plain, "train.seed=9", "optim.lr=0.1"]   # the check needs no file
        code, out = self.ranks([*plain, "--run-dir", "misfit"], [*other, "--run-dir", "misfit"])
        self.assertEqual(code, 2, out)
        self.one_sentence(out, "rank 1 of 2 differs from rank 0 in train.seed, optim.lr")
        # A file of the same name with other bytes.
        os.makedirs(f"{self.folder}/there", exist_ok=True)
        shutil.copy(f"{self.folder}/set-test.h5", f"{self.folder}/there/set.h5")
        shutil.copy(f"{self.folder}/c.yaml", f"{self.folder}/there/c.yaml")
        there = ["env", "-C", f"{self.folder}/there"]
        code, out = self.ranks([*plain, "--run-dir", f"{self.folder}/misfit2"], [*there, *plain, "--run-dir", f"{self.folder}/misfit2"])
        self.assertEqual(code, 3, out)
        self.one_sentence(out, "training set set.h5: rank 1 of 2 reads another one than rank 0")
        shutil.copy(f"{self.folder}/set.h5", f"{self.folder}/there/set.h5")
        code, out = self.ranks([*plain, "--run-dir", "apart"], [*there, *plain, "--run-dir", "apart"])
        self.assertEqual(code, 2, out)
        self.one_sentence(out, "the run folder apart is not shared by all ranks: rank 1 of 2 does not see rank 0's")

    def test_a_checkpoint_of_another_model(self):
        self.train("small", *STEPS, "train.steps=10")
        self.train("large", *STEPS, "train.steps=10", "model.projector=[16,12]")
        shutil.rmtree(f"{self.folder}/small/checkpoints")
        shutil.copytree(f"{self.folder}/large/checkpoints", f"{self.folder}/small/checkpoints", symlinks=True)
        self.one_sentence(self.train("small", *STEPS, "train.steps=10", code=3), "model.safetensors does not fit this model", "has shape")

    def test_refusals(self):
        self.one_sentence(self.train("few", *STEPS, "--min-np", "3", code=2), "--min-np is above --np: 3")
        code, out = self.ranks(*[[PAL, "train", "c.yaml", *STEPS, "--run-dir", "few", "--min-np", "3"]] * 2)
        self.assertEqual(code, 2, out)
        self.one_sentence(out, "fewer ranks than --min-np, which is 3: 2")
        for fault, flags, words in (("kill:0:1", [], "--allow-faults"), ("melt:0:1", ["--allow-faults"], "melt"), ("kill:0", ["--allow-faults"], "kill:0"),
                                    ("kill:x:1", ["--allow-faults"], "kill:x:1")):
            done = subprocess.run([PAL, "train", "c.yaml", *STEPS, *flags, "--run-dir", "few", "--np", "2"], cwd=self.folder,
                                  env={**os.environ, "PAL_FAULT": fault}, capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.one_sentence(done.stderr, words)

    def test_checkpoint_list_and_verify(self):
        out = self.call("checkpoint", "list", "calm")
        self.assertIn("step-60", out)
        out = self.call("checkpoint", "verify", "calm")
        self.assertIn("right", out)
        self.assertRegex(out, r"(?m)^verify  (\d+)/\1  100 %")
        shutil.copytree(f"{self.folder}/calm", f"{self.folder}/bent", symlinks=True)
        with open(f"{self.folder}/bent/checkpoints/step-50/optim.safetensors", "ab") as file:
            file.write(b"x")
        self.one_sentence(self.call("checkpoint", "verify", "bent", code=3), "damaged checkpoints: 1")
        self.one_sentence(self.call("checkpoint", "list", "nowhere-at-all", code=2), "nowhere-at-all")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
