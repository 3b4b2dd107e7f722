#!/usr/bin/env python3
"""Runs that something happens to: ranks die, hang, compute nonsense; disks fill; ranks do not fit together.

usage: faults_test.py PAL [test names]     (standard library only; the names Soak.* are the long suite)
"""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dist"))
from run_case import MPIRUN, PAL, RunCase, metrics_so_far

STEPS = ("train.dtype=float32", "train.steps=60", "checkpoint.every=10")
# Before step 25. Checkpoints are written beside the steps, which take a millisecond here: the newest may not be there yet.
LAST = r"from the checkpoint of step (10|20)\b"


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


class FaultCase(RunCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        start = time.time()
        cls.call(cls, "train", "c.yaml", *STEPS, "--run-dir", "calm", "--np", "2")
        cls.calm_seconds = time.time() - start

    def tearDown(self):
        left = processes_in(os.path.realpath(self.folder))
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "no process outlives its job")

    def faulty(self, name, fault, *args, ranks=2, code=0):
        """A run with a fault; what it printed, and its seconds."""
        start = time.time()
        done = subprocess.run([PAL, "train", "c.yaml", *STEPS, *args, "--run-dir", name, "--np", str(ranks), "--allow-faults"], cwd=self.folder,
                              env={**os.environ, "PAL_FAULT": fault}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout, time.time() - start

    def ranks(self, *commands):
        """An mpirun by hand, a command for each rank; its exit code and what it printed."""
        job = []
        for command in commands:
            job += [":"] * bool(job) + ["-np", "1", *command]
        done = subprocess.run([*MPIRUN, *job], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout

    def rank_pids(self):
        return [pid for pid, line in processes_in(os.path.realpath(self.folder)) if "--np" not in line and "mpirun" not in line]

    def flight(self, name, rank):
        with open(f"{self.folder}/{name}/flight/rank-{rank}.json") as file:
            return json.load(file)


class Faults(FaultCase):
    # ---- a rank dies ---------------------------------------------------------------------------------------------

    def test_any_rank_may_be_killed(self):
        for rank in (0, 1):
            out, _ = self.faulty(f"killed{rank}", f"kill:{rank}:25")
            self.assertRegex(out, r"a rank was killed by signal 9 \(Killed\); restart 1 of 3 with 2 ranks, " + LAST)
            self.assertRegex(out, r"resumed at step (10|20)\n")
            self.assertEqual(self.sha(f"killed{rank}"), self.sha("calm"), "bit for bit")

    def test_restarts_that_get_nowhere_stop(self):
        out, _ = self.faulty("nowhere", "kill:1:4:always", "--max-restarts", "10", code=76)
        self.assertEqual(out.count("warning: a rank was killed"), 3, out)
        self.one_sentence(out, "3 restarts brought no newer checkpoint")

    def test_fewer_ranks_go_on_with_the_same_curve(self):
        self.train("curve", *STEPS, "train.dtype=float64")
        out, _ = self.faulty("fewer", "kill:1:25:always", "train.dtype=float64", "--min-np", "1")
        self.assertRegex(out, "with 1 rank, " + LAST)
        calm, fewer = self.weights("curve", 60), self.weights("fewer", 60)
        self.assertLess(max(abs(a - b) for key in calm for a, b in zip(calm[key], fewer[key])), 1e-8)

    # ---- a rank hangs --------------------------------------------------------------------------------------------

    def test_a_stopped_rank_is_named_and_the_run_goes_on(self):
        out, seconds = self.faulty("stopped", "stop:1:25")
        self.assertIn("rank 1 gave no sign of life for 10.", out)
        self.assertRegex(out, LAST)
        self.assertEqual(self.sha("stopped"), self.sha("calm"))
        self.assertLess(seconds, 12 + 3 * self.calm_seconds, "ten seconds of silence, two to end the job, and two starts")
        waiting = [c for log in self.flight("stopped", 0)["collectives"].values() for c in log if c["pending"]]
        self.assertGreater(len(waiting), 0)
        self.assertGreater(waiting[0]["seconds"], 9)

    # ---- numbers and disks ---------------------------------------------------------------------------------------

    def test_a_nan_on_one_rank_skips_the_step_on_all(self):
        self.faulty("nan", "nan:1:30", "checkpoint.every=1", "checkpoint.keep=1000")
        losses = {m["step"]: m["loss"] for m in self.metrics("nan") if "loss" in m}
        calm = {m["step"]: m["loss"] for m in self.metrics("calm") if "loss" in m}
        self.assertEqual([losses[s] for s in range(1, 32)], [calm[s] for s in range(1, 32)])
        self.assertNotEqual(losses[32], calm[32])
        self.assertEqual(self.weights("nan", 30), self.weights("nan", 31))   # the statistics of batch norm too

    def test_many_nans_roll_back_and_then_stop(self):
        out, _ = self.faulty("rolled", "nan:1:25-27", "train.max_skips=3")
        self.assertIn("the run goes back to the last checkpoint", out)
        self.assertRegex(out, r"resumed at step (10|20)\n")
        self.assertEqual(self.sha("rolled"), self.sha("calm"))
        out, _ = self.faulty("hopeless", "nan:1:25-60:always", "train.max_skips=3", code=4)
        self.one_sentence(out, "not finite in 3 steps in a row, also after going back", "step: 27")
        self.assertTrue(os.path.exists(f"{self.folder}/hopeless/checkpoints/step-10"))

    def test_a_failing_write_keeps_the_last_good_checkpoint(self):
        out, _ = self.faulty("unwritten", "write-fail:1:30", "checkpoint.keep=10")
        self.assertIn("warning: the checkpoint of step 30 is given up", out)
        self.assertIn("the last good one is step-20", out)
        kept = {name for name in os.listdir(f"{self.folder}/unwritten/checkpoints") if name.startswith("step-")}
        self.assertEqual(kept, {f"step-{s}" for s in (10, 20, 40, 50, 60)})
        self.assertEqual(self.sha("unwritten"), self.sha("calm"))

    def test_a_full_disk_does_not_stop_training(self):
        """Full as the ranks see it: no file may grow, for a while."""
        command = [PAL, "train", "c.yaml", *STEPS, "train.steps=2000", "log.every=1", "--run-dir", "full", "--np", "2"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        limit = lambda size: [resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)) for pid in self.rank_pids()]
        while not os.path.exists(f"{self.folder}/full/checkpoints/step-10"):
            time.sleep(0.01)
        self.assertEqual(len(limit(100)), 2)
        said = []
        for line in job.stdout:
            said.append(line)
            if "is given up" in line:
                break
        time.sleep(0.3)
        limit(resource.RLIM_INFINITY)
        out = "".join(said) + job.communicate(timeout=60)[0]
        self.assertEqual(job.returncode, 0, out)
        self.assertRegex(out, r"warning: the checkpoint of step \d+ is given up: cannot write .*File too large")
        self.assertRegex(out, r"warning: cannot write .*metrics.jsonl")
        self.assertTrue(os.path.exists(f"{self.folder}/full/checkpoints/step-2000"))
        self.assertEqual(self.metrics("full")[-1]["step"], 2000)   # every line is whole

    def test_parameters_that_differ_are_seen_before_they_are_saved(self):
        out, _ = self.faulty("flipped", "flip:1:33")
        self.assertIn("the parameters differ between ranks after step 40: rank 1 of 2 differs from rank 0", out)
        self.assertRegex(out, r"from the checkpoint of step (10|20|30)\b")
        self.assertEqual(self.sha("flipped"), self.sha("calm"))

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
            self.assertIn("with a checkpoint; the same command goes on", out)
            steps = [int(n[5:]) for n in os.listdir(f"{self.folder}/{name}/checkpoints") if n.startswith("step-")]
            self.assertEqual(len(steps), 1)
            self.assertIn(f"stopped at step {steps[0]} ", out)

    # ---- ranks that do not fit together --------------------------------------------------------------------------

    def test_ranks_that_do_not_fit_are_named(self):
        plain = [PAL, "train", "c.yaml", *STEPS]
        code, out = self.ranks([*plain, "--run-dir", "misfit"], [*plain, "train.seed=9", "optim.lr=0.1", "--run-dir", "misfit"])
        self.assertEqual(code, 2, out)
        self.one_sentence(out, "rank 1 of 2 differs from rank 0 in train.seed, optim.lr")
        # The same name, other bytes.
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
        self.assertIn("right", self.call("checkpoint", "verify", "calm"))
        shutil.copytree(f"{self.folder}/calm", f"{self.folder}/bent", symlinks=True)
        with open(f"{self.folder}/bent/checkpoints/step-50/optim.safetensors", "ab") as file:
            file.write(b"x")
        self.one_sentence(self.call("checkpoint", "verify", "bent", code=3), "damaged checkpoints: 1")
        self.one_sentence(self.call("checkpoint", "list", "nowhere-at-all", code=2), "nowhere-at-all")


class Soak(FaultCase):
    def test_a_rank_that_hangs_in_its_own_code_is_named(self):
        out, _ = self.faulty("hung", "hang:2:25", ranks=3)
        self.assertIn("rank 2 did not come to collective", out)
        self.assertRegex(out, LAST)
        self.assertEqual(self.flight("hung", 0)["rank"], 0)

    def test_rank_zero_stopped(self):
        out, _ = self.faulty("stopped0", "stop:0:25")
        self.assertIn("[rank 1/2", out)
        self.assertIn("rank 0 gave no sign of life", out)
        self.assertEqual(self.sha("stopped0"), self.sha("calm"))

    def test_a_job_that_is_suspended_as_a_whole_goes_on(self):
        command = [PAL, "train", "c.yaml", "train.steps=600", "train.dtype=float32", "--run-dir", "suspended", "--np", "2"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while sum("loss" in m for m in metrics_so_far(f"{self.folder}/suspended")) < 20:   # then it knows how long a step takes
            time.sleep(0.1)
        pids = self.rank_pids()
        self.assertEqual(len(pids), 2)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(14)   # longer than any silence or collective may last
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
            time.sleep(1.5)   # one host wakes after the other
        out = job.communicate(timeout=240)[0]
        self.assertEqual(job.returncode, 0, out)
        self.assertNotIn("error", out)

    def test_ten_thousand_calm_steps_and_what_watching_costs(self):
        size = ("train.steps=10000", "train.dtype=float32", "log.every=1000", "checkpoint.every=1000")
        out = self.train("long", *size)
        for word in ("warning", "error", "restart"):
            self.assertNotIn(word, out)
        seconds = {"on": [], "off": []}
        for turn in range(5):
            for watch in seconds:
                self.train(f"watch-{watch}-{turn}", *size, "train.steps=2500", f"train.watch={watch}")
                seconds[watch].append(self.metrics(f"watch-{watch}-{turn}")[-1]["seconds"])
        cost = min(seconds["on"]) / min(seconds["off"]) - 1
        print(f"watching costs {100 * cost:.2f} % of a step of {1e6 * min(seconds['on']) / 2500:.0f} us", seconds, flush=True)
        self.assertLess(cost, 0.01 + 0.02, "1 %, and the noise of this machine")

    def test_random_faults(self):
        minutes = float(os.environ.get("PAL_SOAK_MINUTES", "10"))
        seed = int(os.environ.get("PAL_SEED", "1"))
        print("seed", seed, flush=True)
        rng = random.Random(seed)
        size = ("train.dtype=float32", "checkpoint.every=10", "checkpoint.keep=2", "log.every=1000")
        probe = self.train("rate", *size, "train.steps=2000")
        rate = 2000 / self.metrics("rate")[-1]["seconds"]
        self.assertIn("trained", probe)
        steps = f"train.steps={int(rate * 60 * minutes / 2)}"
        command = [PAL, "train", "c.yaml", *size, steps, "--run-dir", "soak", "--np", "2", "--max-restarts", "100000"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        struck = []
        while True:
            try:
                out = job.communicate(timeout=15)[0]
                break
            except subprocess.TimeoutExpired:
                ranks = self.rank_pids()
                if ranks:
                    struck.append(rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP)))
                    try:
                        os.kill(rng.choice(ranks), struck[-1])
                    except ProcessLookupError:
                        pass
        self.assertEqual(job.returncode, 0, out[-3000:])
        print(len(struck), "faults, of them", struck.count(signal.SIGSTOP), "stops;", out.count("restart "), "restarts", flush=True)
        self.train("soak-calm", *size, steps)
        self.assertEqual(self.sha("soak"), self.sha("soak-calm"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(sys.argv[2:] or ["Faults"])], verbosity=2)
