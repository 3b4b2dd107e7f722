#!/usr/bin/env python3
"""The long suite of runs with faults: random faults for minutes, thousands of steps without a fault, slow hangs, and a loaded machine.

usage: soak_test.py PAL [test names]     (standard library only)
PAL_SOAK_MINUTES (10) and PAL_SEED (1) are settings of Soak.test_random_faults, which takes about 1.7 times the minutes;
PAL_LOAD_MINUTES (10) and PAL_LOAD (15), the runnable threads of the machine, of Loaded.
"""
import os
import random
import signal
import statistics
import subprocess
import sys
import time
import unittest

from fault_case import LAST, STEADY, FaultCase
from run_case import PAL, metrics_so_far


class Soak(FaultCase):
    def test_a_rank_that_hangs_in_its_own_code_is_named(self):
        out, _ = self.faulty("hung", "hang:2:25", ranks=3)
        self.assertIn("rank 2 has not reached collective", out)
        self.assertRegex(out, LAST)
        self.assertEqual(self.flight("hung", 0)["rank"], 0)

    def test_a_slow_disk_is_no_reason_to_end_a_job(self):
        out, seconds = self.faulty("slow-disk", "late-write:1:10", "train.steps=200")
        self.assertGreater(seconds, 12)
        for word in ("error", "restart"):
            self.assertNotIn(word, out)

    def test_rank_zero_stopped(self):
        out, _ = self.faulty("stopped0", "stop:0:25")
        self.assertIn("[rank 1/2", out)
        self.assertIn("rank 0 sent no heartbeat", out)
        self.assertEqual(self.sha("stopped0"), self.sha("calm"))

    def test_a_job_that_is_suspended_as_a_whole_continues(self):
        command = [PAL, "train", "c.yaml", *STEADY, "train.steps=600", "--run-dir", "suspended", "--np", "2"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while sum("loss" in m for m in metrics_so_far(f"{self.folder}/suspended")) < 20:   # so that the watchdog has measured the steps
            time.sleep(0.1)
        pids = self.rank_pids()
        self.assertEqual(len(pids), 2)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(14)   # longer than any silence or collective may last
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
            time.sleep(1.5)   # the hosts continue one after the other
        out = job.communicate(timeout=240)[0]
        self.assertEqual(job.returncode, 0, out)
        self.assertNotIn("error", out)

    def test_random_faults(self):
        """A fault about every 15 s. Before the next fault the job must have written a new checkpoint, because a run that fails
        again and again without progress stops with exit code 76."""
        minutes = float(os.environ.get("PAL_SOAK_MINUTES", "10"))
        seed = int(os.environ.get("PAL_SEED", "1"))
        print("seed", seed, flush=True)
        rng = random.Random(seed)
        size = (*STEADY, "checkpoint.every=10", "checkpoint.keep=2", "log.every=1000")
        self.train("rate", *size, "train.steps=2000")
        rate = 2000 / self.metrics("rate")[-1]["seconds"]
        steps = f"train.steps={int(rate * 60 * minutes * 0.7)}"   # the rest of the time is for starts, hangs and lost steps
        struck, seen, last = [], -1, time.time()
        until = last + 60 * minutes
        with open(f"{self.folder}/soak.txt", "w+") as said:
            job = subprocess.Popen([PAL, "train", "c.yaml", *size, steps, "--run-dir", "soak", "--np", "2", "--max-restarts", "100000"],
                                   cwd=self.folder, stdout=said, stderr=subprocess.STDOUT)
            while job.poll() is None:
                time.sleep(0.1)
                ranks = self.rank_pids()
                if not ranks or time.time() > until or time.time() - last < 15 or self.newest("soak") <= seen:
                    continue
                last = time.time()
                struck.append(rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP)))
                try:
                    os.kill(rng.choice(ranks), struck[-1])
                except ProcessLookupError:   # it has just finished
                    pass
                while set(ranks) & set(self.rank_pids()) and time.time() - last < 60:
                    time.sleep(0.1)
                seen = self.newest("soak")
            said.seek(0)
            out = said.read()
        self.assertEqual(job.returncode, 0, out[-3000:])
        restarts = out.count("; restart ")
        print(f"{len(struck)} faults in {time.time() - until + 60 * minutes:.0f} s, of them {struck.count(signal.SIGSTOP)} stops; {restarts} restarts; {steps}", flush=True)
        self.assertGreaterEqual(len(struck), 2 * minutes)
        self.assertIn(restarts, (len(struck) - 1, len(struck)), "one for each fault, and no false alarm; the last fault may come after the end")
        self.train("soak-calm", *size, steps, "checkpoint.every=1000000", timeout=120 * minutes + 60)
        self.assertEqual(self.sha("soak"), self.sha("soak-calm"))


class Calm(FaultCase):
    """Nothing happens: no alarm, and watching costs nothing that can be felt."""
    SIZE = (*STEADY, "log.every=1000", "checkpoint.every=1000")

    def quiet(self, out):
        for word in ("warning", "error", "restart"):
            self.assertNotIn(word, out)

    def watch_share(self, job):
        """Of the processors' time of all ranks, what the threads that watch had; looked at until the job ends."""
        watch, every = {}, {}
        while job.poll() is None:
            for pid in self.rank_pids():
                try:
                    for thread in os.listdir(f"/proc/{pid}/task"):
                        with open(f"/proc/{pid}/task/{thread}/comm") as name, open(f"/proc/{pid}/task/{thread}/schedstat") as time_of:
                            every[thread] = int(time_of.read().split()[0])   # nanoseconds
                            if name.read().strip() == "watchdog":
                                watch[thread] = every[thread]
                except OSError:   # it has just ended
                    pass
            time.sleep(0.2)
        self.assertEqual(len(watch), 2, "one in each rank")
        return sum(watch.values()) / sum(every.values())

    def test_ten_thousand_steps_without_a_warning(self):
        with open(f"{self.folder}/long.txt", "w+") as said:
            job = subprocess.Popen([PAL, "train", "c.yaml", *self.SIZE, "train.steps=10000", "--run-dir", "long", "--np", "2"], cwd=self.folder,
                                   stdout=said, stderr=subprocess.STDOUT)
            share = self.watch_share(job)
            said.seek(0)
            out = said.read()
        self.assertEqual(job.returncode, 0, out)
        self.quiet(out)
        seconds = self.metrics("long")[-1]["seconds"]
        print(f"10,000 steps of {seconds / 10:.2f} ms, no false alarm; the threads that watch had {100 * share:.3f} % of the processors' time", flush=True)
        self.assertLess(share, 0.01)

    def test_the_cost_of_the_watchdog(self):
        """Wall time, watched and not watched by turns: the threads above may also get in the way of others."""
        turns = int(os.environ.get("PAL_CALM_TURNS", "10"))
        seconds = {"on": [], "off": []}
        for turn in range(turns):
            for watch in ("on", "off") if turn % 2 else ("off", "on"):
                self.quiet(self.train(f"watch-{watch}-{turn}", *self.SIZE, "train.steps=1000", f"train.watchdog={watch}"))
                seconds[watch].append(self.metrics(f"watch-{watch}-{turn}")[-1]["seconds"])
        ratios = [on / off - 1 for on, off in zip(seconds["on"], seconds["off"])]
        cost = statistics.median(ratios)
        spread = statistics.median(abs(r - cost) for r in ratios)
        noise = 1.25 * 1.48 * spread / len(ratios) ** 0.5   # of the median, if the ratios were normally distributed
        print(f"watching costs {100 * cost:.2f} % +- {100 * noise:.2f} % of a step of {statistics.median(seconds['off']):.2f} ms "
              f"({turns} x 1,000 steps each way; single turns differ by {100 * spread:.1f} %)", flush=True)
        self.assertLess(cost, 0.01 + 2 * noise, "1 %, and the noise of this machine")


class Loaded(FaultCase):
    """Two ranks among many more runnable processes than cores, at their low priority: a rank that gets no processor for
    seconds is not a rank that hangs."""
    NICE = ("nice", "-n", "19")
    NETWORK = ("data.train=set.h5", "model.widths=[16, 32, 64, 256]", "model.projector=[256, 256, 128]", "train.global_batch=80",
               "train.dtype=float32", "optim.kind=adamw", "optim.lr=0.001", "checkpoint.every=200", "log.every=50")

    def setUp(self):
        self.spinners = []

    def tearDown(self):
        for spinner in self.spinners:
            spinner.kill()
            spinner.wait()
        super().tearDown()

    def keep_load(self, wanted):
        """One spinner more, or one fewer, so that this many threads can run."""
        with open("/proc/loadavg") as file:
            runnable = int(file.read().split()[3].split("/")[0]) - 1   # not this process
        if runnable < wanted:
            self.spinners.append(subprocess.Popen([*self.NICE, sys.executable, "-c", "while True: pass"]))
        elif runnable > wanted and self.spinners:
            spinner = self.spinners.pop()
            spinner.kill()
            spinner.wait()

    def test_no_false_alarm_at_a_high_load(self):
        wanted, minutes = int(os.environ.get("PAL_LOAD", "15")), float(os.environ.get("PAL_LOAD_MINUTES", "10"))
        until, runs, steps, loads, lines = time.time() + 60 * minutes, 0, 0, [], []
        while time.time() < until:
            name = f"loaded{runs}"
            with open(f"{self.folder}/{name}.txt", "w+") as said:
                job = subprocess.Popen([*self.NICE, PAL, "train", "c.yaml", *self.NETWORK, "train.steps=10000", "--run-dir", name, "--np", "2"],
                                       cwd=self.folder, stdout=said, stderr=subprocess.STDOUT)
                asked = False
                while job.poll() is None:
                    self.keep_load(wanted)
                    time.sleep(2)
                    loads.append(os.getloadavg()[0])
                    if time.time() > until and not asked:   # a checkpoint, and exit code 75
                        job.send_signal(signal.SIGTERM)
                        asked = True
                said.seek(0)
                out = said.read()
            done = metrics_so_far(f"{self.folder}/{name}")
            steps += done[-1]["step"] if done else 0
            runs += 1
            lines += [line for line in out.splitlines() if "warning" in line or "error" in line]
            print(f"{time.strftime('%H:%M:%S')} run {runs}: exit {job.returncode}, {steps} steps in all, load {loads[-1]:.1f} "
                  f"(mean {statistics.mean(loads):.1f}), {len(self.spinners)} spinners, {len(lines)} warnings", flush=True)
            self.assertIn(job.returncode, (0, 75) if asked else (0,), out[-3000:])
        print(*lines, sep="\n", flush=True)
        self.assertEqual([line for line in lines if "error" in line or "restart" in line], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
