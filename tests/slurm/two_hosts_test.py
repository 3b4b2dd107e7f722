#!/usr/bin/env python3
"""mpirun across two hosts: network namespaces joined by a cable (veth), with names of their own; a script takes the place of ssh.

usage: two_hosts_test.py PAL [test names]     (standard library only; needs root and iproute2, else it is skipped)
"""
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dist"))
import run_case  # noqa: E402

PAL = run_case.PAL
TAG = f"pal{os.getpid()}"
NET = "10.77.0"
CONFIG = run_case.PLAIN.replace("train: {", "train: {steps: 30, ")
AGENT = f"""#!/bin/bash
# HOST COMMAND...: what ssh would do.
host=$1
shift
exec ip netns exec {TAG}-${{host##*.}} unshare --uts bash -c 'hostname "$0"; eval "$@"' host-${{host##*.}} "$@"
"""


def ip(*words, check=True):
    return subprocess.run(["ip", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=check)


def missing():
    """Why this machine cannot do it; empty when it can."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        return "root, ip or unshare"
    made = ip("netns", "add", f"{TAG}-probe", check=False)
    ip("netns", "del", f"{TAG}-probe", check=False)
    return "" if made.returncode == 0 else f"network namespaces ({made.stdout.strip()})"


class TwoHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = run_case.make_case(CONFIG)
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.addClassCleanup(cls.take_down)
        for k in ("1", "2"):
            ip("netns", "add", f"{TAG}-{k}")
            ip("-n", f"{TAG}-{k}", "link", "set", "lo", "up")
        ip("link", "add", "cable1", "netns", f"{TAG}-1", "type", "veth", "peer", "name", "cable2", "netns", f"{TAG}-2")
        for k in ("1", "2"):
            ip("-n", f"{TAG}-{k}", "addr", "add", f"{NET}.{k}/24", "dev", f"cable{k}")
            ip("-n", f"{TAG}-{k}", "link", "set", f"cable{k}", "up")
        cls.agent = f"{cls.folder}/agent"
        with open(cls.agent, "w") as f:
            f.write(AGENT)
        os.chmod(cls.agent, 0o755)

    @classmethod
    def end_all(cls):
        """All processes that still run on the two hosts."""
        for k in ("1", "2"):
            for pid in ip("netns", "pids", f"{TAG}-{k}", check=False).stdout.split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except (ProcessLookupError, ValueError):
                    pass

    @classmethod
    def take_down(cls):
        cls.end_all()
        for k in ("1", "2"):
            ip("netns", "del", f"{TAG}-{k}", check=False)

    def start(self, run, *settings):
        """mpirun on the first host, a rank on each."""
        command = [self.agent, f"{NET}.1", "mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", "2", "-H", f"{NET}.1:1,{NET}.2:1",
                   "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", self.agent, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", f"{NET}.0/24",
                   "--mca", "oob_tcp_if_include", f"{NET}.0/24", "--wdir", self.folder, PAL, "train", "c.yaml", *settings, "--run-dir", run]
        self.out = open(f"{self.folder}/{run}.out", "w+")
        self.addCleanup(self.out.close)
        return subprocess.Popen(command, stdout=self.out, stderr=subprocess.STDOUT, cwd=self.folder)

    def said(self):
        self.out.flush()
        with open(self.out.name) as f:
            return f.read()

    def metrics(self, run):
        return run_case.metrics_so_far(f"{self.folder}/{run}")

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what} within {seconds} s:\n{self.said()}")
            time.sleep(0.1)

    def test_a_run_across_hosts_equals_the_run_on_one(self):
        job = self.start("two")
        self.addCleanup(self.end_all)
        self.wait(lambda: job.poll() is not None, 120, "the run does not end")
        self.assertEqual(job.returncode, 0, self.said())
        subprocess.run([PAL, "train", "c.yaml", "--run-dir", "one", "--np", "2"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.metrics("two")[-1]["weights_sha256"], self.metrics("one")[-1]["weights_sha256"])

    def test_a_cut_cable_is_detected_and_named(self):
        job = self.start("cut", "train.steps=1000000")
        self.wait(lambda: len(self.metrics("cut")) >= 20, 120, "no twenty steps")
        ip("-n", f"{TAG}-1", "link", "set", "cable1", "down")
        self.addCleanup(ip, "-n", f"{TAG}-1", "link", "set", "cable1", "up")
        self.addCleanup(self.end_all)
        cut = time.monotonic()
        # The watchdog takes ten seconds on a quiet machine; the fault tests measure its time.
        self.wait(lambda: "rank 1 sent no heartbeat" in self.said(), 60, "the cut is not named")
        self.assertGreater(time.monotonic() - cut, 5)
        self.assertIn("[rank 0/2 host-1]", self.said())
        self.assertIn("its host is unreachable", self.said())
        # Open MPI's mpirun waits for its daemon behind the cut until TCP gives up, so this test ends it.
        job.kill()
        job.wait()


if __name__ == "__main__":
    lacking = missing()
    if lacking:
        print("skipped: this machine lacks " + lacking)
        sys.exit(0)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
