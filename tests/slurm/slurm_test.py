#!/usr/bin/env python3
"""pal submit on a real two-node SLURM: submit, signal, requeue, finish; an array; a chain; a rank killed; bad input.

usage: slurm_test.py PAL [test names: Slurm, TimeLimit, Slurm.test_array ...]     (standard library only; needs slurm-wlm, munge and root, else it is skipped)
"""
import glob
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "dist"))
import cluster  # noqa: E402
import run_case  # noqa: E402

PAL = run_case.PAL
TEMPLATES = os.path.abspath(os.path.join(HERE, "..", "..", "launch", "slurm"))
CONFIG = run_case.PLAIN.replace("train: {", "train: {steps: 300, ")


class Case(unittest.TestCase):
    """A cluster, a data set, and the calm run that others are compared with."""

    @classmethod
    def setUpClass(cls):
        cls.folder = run_case.make_case(CONFIG)
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.cluster = cluster.Cluster()
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        # The run to compare with: the same two ranks, without SLURM.
        cls.pal(cls, "train", "c.yaml", "--run-dir", "calm", "--np", "2")

    def pal(self, *args, code=0):
        done = self.cluster.run(PAL, *args, cwd=self.folder, check=False)
        if done.returncode != code:
            raise AssertionError(f"pal {' '.join(args)} gave exit code {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout

    def submit(self, run, *args):
        """The numbers of the jobs."""
        out = self.pal("submit", "c.yaml", "--nodes", "2", "--time", "10", "--run-dir", run, *args)
        return [line for line in out.splitlines() if line.isdigit()]

    def log(self, run):
        text = ""
        for name in sorted(glob.glob(f"{self.folder}/{run}/slurm-*.log")):
            with open(name) as f:
                text += f.read()
        return text

    def metrics(self, run):
        return run_case.metrics_so_far(f"{self.folder}/{run}")

    def sha(self, run):
        last = self.metrics(run)[-1]
        self.assertTrue(last.get("done"), self.log(run))
        return last["weights_sha256"]

    def wait_state(self, job, *states, seconds=90, run=""):
        try:
            self.cluster.wait(lambda: self.cluster.state(job)[0] in states, seconds, f"job {job} does not get to {states}")
        except TimeoutError as e:
            raise AssertionError(f"{e}\nstate {self.cluster.state(job)}\n{self.log(run)}") from None

    def wait_steps(self, run, steps):
        self.cluster.wait(lambda: len(self.metrics(run)) >= steps, 60, f"{run} does not get to step {steps}:\n{self.log(run)}")

    def ranks(self, run):
        """Processes of the run's ranks."""
        out = subprocess.run(["pgrep", "-f", f"{PAL} train .*--run-dir {self.folder}/{run}$"], stdout=subprocess.PIPE, text=True).stdout
        return [int(pid) for pid in out.split() if os.readlink(f"/proc/{pid}/exe") == PAL]


class Templates(unittest.TestCase):
    def test_they_are_clean(self):
        scripts = glob.glob(f"{TEMPLATES}/*.sbatch")
        self.assertEqual(len(scripts), 3)
        for checker in (["bash", "-n"], ["shellcheck"]):
            if shutil.which(checker[0]):
                for script in scripts:
                    done = subprocess.run([*checker, script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    self.assertEqual(done.returncode, 0, done.stdout)

    def test_they_print_their_usage(self):
        for script in glob.glob(f"{TEMPLATES}/*.sbatch"):
            done = subprocess.run(["bash", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("usage: sbatch", done.stdout)


class Slurm(Case):
    # ---- jobs from start to end -----------------------------------------------------------------------------------------

    def test_signal_requeue_finish(self):
        job, = self.submit("signaled")
        self.wait_steps("signaled", 40)
        self.cluster.run("scancel", "--signal=USR2", job)       # what SLURM sends before the time limit
        self.wait_state(job, "COMPLETED", run="signaled")
        self.assertEqual(self.cluster.state(job)[1], 1, self.log("signaled"))
        self.assertIn("it wrote a checkpoint before the limit; queued again", self.log("signaled"))
        self.assertIn("resumed at step", self.log("signaled"))
        self.assertEqual(self.sha("signaled"), self.sha("calm"))
        steps = [m["step"] for m in self.metrics("signaled") if not m.get("done")]
        self.assertEqual(steps, list(range(1, 301)))            # no step lost, none done twice

    def test_a_killed_rank(self):
        job, = self.submit("killed", "checkpoint.every=50")
        self.wait_steps("killed", 80)
        os.kill(self.ranks("killed")[-1], 9)
        self.wait_state(job, "COMPLETED", run="killed")
        self.assertEqual(self.cluster.state(job)[1], 1, self.log("killed"))
        self.assertIn("a rank died", self.log("killed"))
        self.assertEqual(self.sha("killed"), self.sha("calm"))

    def test_a_rank_that_always_dies_ends_the_job(self):
        job, = self.submit("dying", "--max-restarts", "0")
        self.wait_steps("dying", 20)
        os.kill(self.ranks("dying")[0], 9)
        self.wait_state(job, "FAILED", run="dying")
        self.assertIn("not queued again", self.log("dying"))

    def test_array(self):
        job, = self.submit("sweep", "train.steps=40", "--sweep", "train.seed=3,4")
        for task in (0, 1):
            self.wait_state(f"{job}_{task}", "COMPLETED", run="sweep")
        self.assertNotEqual(self.sha("sweep/train.seed=3"), self.sha("sweep/train.seed=4"))

    def test_chain(self):
        first, second, third = self.submit("chained", "--chain", "3")
        self.wait_steps("chained", 40)
        self.cluster.run("scancel", "--signal=USR2", first)
        self.wait_state(third, "COMPLETED", run="chained")
        self.assertEqual([self.cluster.state(job) for job in (first, second)], [("COMPLETED", 0)] * 2, self.log("chained"))
        self.assertIn("the next job of the chain resumes the run", self.log("chained"))
        self.assertIn("this run is finished", self.log("chained"))
        self.assertEqual(self.sha("chained"), self.sha("calm"))

    # ---- the plain templates of launch/slurm -----------------------------------------------------------------------

    def template(self, name, run, *settings, options=()):
        os.makedirs(f"{self.folder}/{run}")
        out = self.cluster.run("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1", f"--export=ALL,PAL={PAL}", f"--output={self.folder}/{run}/slurm-%j.log",
                               *options, f"{TEMPLATES}/{name}", "c.yaml", run, *settings, cwd=self.folder).stdout
        return out.split()[-1]

    def test_srun_template_with_staging_on_each_node(self):
        # Each node's ranks read their own copy: the path differs from node to node.
        job = self.template("srun.sbatch", "staged", f"data.stage={self.folder}/scratch-${{SLURMD_NODENAME:-none}}")
        self.wait_state(job, "COMPLETED", run="staged")
        self.assertEqual(self.sha("staged"), self.sha("calm"))
        for node in ("n1", "n2"):
            copies = glob.glob(f"{self.folder}/scratch-{node}/pal-*/*.h5")
            self.assertEqual(len(copies), 1, f"{node}: {copies}\n{self.log('staged')}")

    def test_mpirun_template_signal_requeue_finish(self):
        job = self.template("mpirun.sbatch", "by-mpirun")
        self.wait_steps("by-mpirun", 40)
        self.cluster.run("scancel", "--batch", "--signal=USR2", job)    # what --signal=B:USR2 does
        self.wait_state(job, "COMPLETED", run="by-mpirun")
        self.assertEqual(self.cluster.state(job)[1], 1, self.log("by-mpirun"))
        self.assertEqual(self.sha("by-mpirun"), self.sha("calm"))

    def test_array_template_signal_requeue_finish(self):
        job = self.template("array.sbatch", "seeds", options=["--array=3-4"])
        self.wait_steps("seeds/seed-3", 40)
        self.cluster.run("scancel", "--signal=USR2", f"{job}_3")
        for task in (3, 4):
            self.wait_state(f"{job}_{task}", "COMPLETED", run="seeds")
        # One task went back to the queue, the other was not touched.
        self.assertEqual([self.cluster.state(f"{job}_{task}")[1] for task in (3, 4)], [1, 0], self.log("seeds"))
        self.assertIn("resumed at step", self.log("seeds"))
        self.assertEqual(self.sha("seeds/seed-3"), self.sha("calm"))    # whose seed is 3
        self.assertNotEqual(self.sha("seeds/seed-4"), self.sha("calm"))
        steps = [m["step"] for m in self.metrics("seeds/seed-3") if not m.get("done")]
        self.assertEqual(steps, list(range(1, 301)))

    # ---- bad input --------------------------------------------------------------------------------------------------

    def test_a_wrong_setting_is_not_queued_again(self):
        job, = self.submit("broken", "data.train=nowhere.h5")
        self.wait_state(job, "FAILED", run="broken")
        self.assertIn("nowhere.h5", self.log("broken"))
        self.assertIn("not queued again", self.log("broken"))

    def test_a_wrong_partition(self):
        out = self.pal("submit", "c.yaml", "--nodes", "2", "--partition", "absent", "--run-dir", "wrong", code=2)
        self.assertIn("sbatch refused the job", out)
        self.assertIn("absent", out)

    def test_too_little_time(self):
        self.assertIn("the time limit is too short", self.pal("submit", "c.yaml", "--time", "2", "--run-dir", "short", code=2))

    def test_an_unknown_key_is_found_before_the_queue(self):
        self.assertIn("train.steps", self.pal("submit", "c.yaml", "train.step=3", "--run-dir", "typo", code=2))

    def test_processes_that_do_not_connect(self):
        out = self.cluster.run("srun", "-N2", "-n2", "--mpi=none", PAL, "train", "c.yaml", "--run-dir", "lonely", cwd=self.folder, check=False)
        self.assertEqual(out.returncode, 2, out.stdout)
        self.assertIn("they did not connect to each other", out.stdout)
        self.assertFalse(os.path.exists(f"{self.folder}/lonely/config.yaml"))

    def test_no_sbatch(self):
        env = dict(os.environ, PATH="/nonexistent")
        done = subprocess.run([PAL, "submit", "c.yaml", "--run-dir", "none"], cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("sbatch is not on this machine", done.stdout)


class TimeLimit(Case):
    """The signal of a real limit: SLURM counts in minutes, and signals up to one of them early. Two minutes."""

    def test_time_limit(self):
        with open(f"{self.folder}/site.yaml", "w") as f:
            f.write("signal_seconds: 60\n")
        out = self.pal("submit", "c.yaml", "--nodes", "2", "--time", "2", "--site", "site.yaml", "--run-dir", "limited", "train.steps=1000000")
        job = next(line for line in out.splitlines() if line.isdigit())
        self.cluster.wait(lambda: self.cluster.state(job)[1] == 1, 180, "the limit does not bring the job back to the queue")
        self.assertIn("it wrote a checkpoint before the limit; queued again", self.log("limited"))
        self.cluster.run("scancel", job)


if __name__ == "__main__":
    lacking = cluster.missing()
    if lacking:
        print("skipped: this machine lacks " + ", ".join(lacking))
        sys.exit(0)
    unittest.main(argv=[sys.argv[0], *(sys.argv[2:] or ["Templates", "Slurm"])], verbosity=2)
