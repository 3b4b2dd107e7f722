#!/usr/bin/env python3
"""runs_test: jobs on devices: resume on other devices, faults, full memory, a lost device, an old driver.

    runs_test.py PAL_SIMGPU FOLDER_OF_THE_STAND_INS [test names]
"""
import re
import socket
import sys
import unittest

import counters
from job import Jobs, difference

PAL, STAND_INS = sys.argv[1:3]
STEPS = ["train.steps=4", "checkpoint.every=2", "checkpoint.keep=9"]
# Momentum and a queue are part of a checkpoint, too.
STATE = [*STEPS, "optim.kind=lars", "optim.lars_eta=0.02", "loss.kind=nnclr", "loss.queue=40", "model.predictor=[12, 8]", "loss.temperature=0.5"]


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.jobs = Jobs(PAL, STAND_INS)

    @classmethod
    def tearDownClass(cls):
        cls.jobs.__exit__()

    def on_device(self, name, settings, ranks=1, environment=(), code=0, more=(), **options):
        np = ["--np", str(ranks)] if ranks > 1 else []
        arguments = ["train", "c.yaml", "train.device=cuda", *settings, "--run-dir", name, *np, *more]
        return self.jobs.call(arguments, self.jobs.device(ranks, **options, **dict(environment)), code=code)

    def one_error(self, out, *words):
        errors = [line for line in out.splitlines() if "error: " in line and "error: the ranks ended" not in line]   # mpirun's supervisor
        self.assertEqual(len(errors), 1, out)
        for word in words:
            self.assertIn(word, errors[0])
        for word in ("please report", "terminate", "Aborted"):
            self.assertNotIn(word, out)

    # ---- checkpoints ----

    def test_a_checkpoint_moves_between_devices_and_numbers_of_ranks(self):
        jobs = self.jobs
        jobs.train("cpu", STATE, jobs.cpu(), 1, device="cpu")
        self.on_device("one", STATE, seed=1)
        self.on_device("two", STATE, 2, seed=2)
        losses = jobs.losses("cpu")
        self.assertEqual(len(losses), 4)
        for name in ("one", "two"):
            self.assertLess(difference(losses, jobs.losses(name)), 1e-5, name)
        # From the CPU to three devices, from two devices to one, from one device to two CPU ranks.
        self.on_device("cpu-to-3", STATE, 3, more=["--resume", "cpu/checkpoints/step-2"], seed=3)
        self.on_device("2-to-1", STATE, 1, more=["--resume", "two/checkpoints/step-2"], seed=4)
        jobs.call(["train", "c.yaml", "train.device=cpu", *STATE, "--run-dir", "1-to-cpu", "--np", "2", "--resume", "one/checkpoints/step-2"], jobs.cpu())
        for name in ("cpu-to-3", "2-to-1", "1-to-cpu"):
            self.assertLess(difference(losses[2:], jobs.losses(name)), 1e-5, name)

    def test_a_resumed_run_equals_the_uninterrupted_run(self):
        for ranks in (1, 2):
            self.on_device(f"whole-{ranks}", STATE, ranks, seed=1)
            self.on_device(f"second-half-{ranks}", STATE, ranks, more=["--resume", f"whole-{ranks}/checkpoints/step-2"], seed=2)
            self.assertEqual(self.jobs.sha(f"whole-{ranks}"), self.jobs.sha(f"second-half-{ranks}"))

    def test_deterministic_algorithms(self):
        asked = {"SIMGPU_DETERMINISTIC": "1"}
        self.on_device("repeats", [*STATE, "train.deterministic=on"], 2, asked)   # job.py refuses a complaint
        self.on_device("repeats-half", [*STATE, "train.deterministic=on"], 2, asked, more=["--resume", "repeats/checkpoints/step-2"])
        self.assertEqual(self.jobs.sha("repeats"), self.jobs.sha("repeats-half"))
        with self.assertRaisesRegex(AssertionError, "convolution runs with an algorithm that may differ"):
            self.on_device("may-differ", ["train.steps=1"], 1, asked)

    def test_ranks_wait_for_each_other_at_the_start(self):
        out = self.on_device("late", ["train.steps=1", "train.start_seconds=1"], 2, {"SIMNCCL_START_MS": "60000"}, code=71, more=["--max-restarts", "0"])
        self.assertIn("in NCCL launch 0 (start)", out)
        self.assertIn("raise train.start_seconds", out)
        self.on_device("in-time", ["train.steps=1"], 2, {"SIMNCCL_START_MS": "1500"})

    def test_one_rank_under_mpirun(self):
        self.on_device("alone", STEPS)
        self.jobs.call(["train", "c.yaml", "train.device=cuda", *STEPS, "--run-dir", "alone-np", "--np", "1"], self.jobs.device())
        self.assertEqual(self.jobs.sha("alone"), self.jobs.sha("alone-np"))

    # ---- faults ----

    def test_a_killed_rank_is_restarted_and_the_weights_are_the_same(self):
        self.on_device("calm", STEPS, 2)
        out = self.on_device("killed", STEPS, 2, {"PAL_FAULT": "kill:1:3"}, more=["--allow-faults", "--max-restarts", "1"])
        self.assertIn("killed by signal 9", out)
        self.assertEqual(self.jobs.sha("calm"), self.jobs.sha("killed"))

    def test_gradients_that_are_not_finite_skip_the_step(self):
        self.on_device("nan", STEPS, 2, {"PAL_FAULT": "nan:1:1"}, more=["--allow-faults"])
        self.assertEqual(len(self.jobs.losses("nan")), 4)
        self.on_device("calm-nan", STEPS, 2)
        self.assertNotEqual(self.jobs.sha("nan"), self.jobs.sha("calm-nan"))

    def test_a_flipped_bit_on_a_device_is_found(self):
        out = self.on_device("flip", [*STEPS, "train.compare_every=1"], 2, {"PAL_FAULT": "flip:1:1"}, code=71, more=["--allow-faults", "--max-restarts", "0"])
        self.assertIn("rank 1", out)
        self.assertNotIn("host code touches device memory", out)

    # ---- errors that users of GPUs meet ----

    def test_full_device_memory(self):
        for ranks in (1, 2):
            out = self.on_device(f"full-{ranks}", ["model.projector=[512, 512]"], ranks, {"SIMGPU_MEMORY": "3000000"}, code=2, more=["--max-restarts", "0"])
            self.one_error(out, "out of memory", "Tried to allocate", "is free", "train.micro_batches", "train.global_batch")

    def test_a_lost_device_ends_in_a_restart(self):
        for ranks in (1, 2):
            out = self.on_device(f"lost-{ranks}", [], ranks, {"SIMGPU_BREAK": f"150:{ranks - 1}"}, code=71, more=["--max-restarts", "0"])
            self.one_error(out, "the device is lost", f"PCI 0000:0{ranks}:00.0, host {socket.gethostname()}", "uncorrectable ECC", "a restart continues from the last checkpoint")

    def test_an_old_driver(self):
        out = self.on_device("old", [], 1, {"SIMGPU_DRIVER": "12080"}, code=2)
        self.one_error(out, "the driver supports CUDA 12.8, this program needs 13.0", "newer NVIDIA driver")

    # ---- figures ----

    def test_metrics_of_devices(self):
        self.on_device("figures", ["train.bucket_mb=0.001"], 2)
        last = [m for m in self.jobs.metrics("figures") if "loss" in m][-1]
        self.assertGreater(last["sync_ms"], 0)
        self.assertTrue(0 <= last["sync_hidden"] <= 1, last)
        self.assertGreater(last["device_peak_mb"], 0.01)
        self.assertGreaterEqual(last["device_reserved_mb"], last["device_peak_mb"])

    def test_a_step_creates_no_thread(self):
        for lines in counters.count(self.jobs, ["train.steps=4"], 2):
            phases = [line["phase"] for line in lines if line["kind"] == "thread"]
            self.assertIn("", phases)   # those of the loader are created before the first step
            self.assertEqual([phase for phase in phases if phase.startswith(("step 3", "step 4"))], [])

    def test_the_estimate_of_device_memory(self):
        big = ["model.projector=[1024, 1024]", "model.widths=[32, 64]", "data.size=24", "train.global_batch=24"]
        self.on_device("memory", [*big, "train.steps=2"])
        measured = [m for m in self.jobs.metrics("memory") if "loss" in m][-1]["device_peak_mb"]
        out = self.jobs.call(["train", "c.yaml", *big, "--check"], self.jobs.cpu())
        tensors, unit = re.search(r"(?m)^memory per GPU +.*tensors ([0-9.]+) (kB|MB|GB)", out).groups()
        estimate = float(tensors) * {"kB": 1e-3, "MB": 1, "GB": 1e3}[unit]
        self.assertTrue(0.5 < estimate / measured < 2, f"estimated {estimate} MB, measured {measured} MB")
        self.assertNotIn("memory per GPU", self.jobs.call(["train", "c.yaml", "train.device=cpu", "--check"], self.jobs.cpu()))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
