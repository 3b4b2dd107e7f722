"""fault_case: shared by the tests of runs with faults: a run without faults to compare with, runs with a fault, and checks
of processes.

A test file that uses it is called as  TEST.py PAL [test names]  (standard library only).
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dist"))
from run_case import MPIRUN, PAL, RunCase, processes_in

STEPS = ("train.dtype=float32", "train.steps=60", "checkpoint.every=10")
# For runs of a thousand steps and more: with LARS the weights of the projector's last layer become too large.
STEADY = ("train.dtype=float32", "optim.kind=adamw", "optim.lr=0.001")
# Before step 25. A step takes a millisecond here, so the newest checkpoint may still be being written in the background.
LAST = r"from the checkpoint of step (10|20)\b"


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

    def newest(self, name):
        """The step of a run's newest checkpoint, -1 without one."""
        try:
            names = os.listdir(f"{self.folder}/{name}/checkpoints")
        except FileNotFoundError:
            return -1
        return max([int(n[5:]) for n in names if re.fullmatch(r"step-\d+", n)], default=-1)

    def flight(self, name, rank):
        with open(f"{self.folder}/{name}/flight/rank-{rank}.json") as file:
            return json.load(file)
