#!/usr/bin/env python3
"""doctor_test: `pal doctor` on the stand-ins: fit where all is right, unfit for each planted bug and for a broken device.

    doctor_test.py PAL_SIMGPU FOLDER_OF_THE_STAND_INS PAL_PLANTED SOURCE_ROOT [test names]
"""
import glob
import html
import os
import re
import socket
import sys
import tempfile
import time
import unittest

import plant
from job import Jobs

PAL, STAND_INS, PLANTED, ROOT = sys.argv[1:5]
PARTS = ("start", "kernels", "operators", "loader", "NCCL", "training", "contexts")
# Bugs of plant.py and where the doctor finds them: a part that is named in its table, or a sentence of a stand-in.
FOUND_BY = {
    "no after": r"(?m)^NCCL +rank .*WRONG",
    "no before": r"(?m)^NCCL +rank .*WRONG",
    "no join": r"(?m)^NCCL +rank .*WRONG",
    "wrong thread": "works on device 0, but this process computes on device 1",
    "watchdog": "works on device 0, but this process computes on device 1",
    "loader's device": "works on device 0, but this process computes on device 1",
    "wrong communicator": "ranks differ",
    "freed in flight": r"(?m)^training +rank .*WRONG",
    "overwritten copy": r"(?m)^loader +rank .*WRONG",
    "host read": "host code touches device memory",
}
# What the doctor does not run: it asks no questions while it trains.
NOT_SHOWN = {"features too early"}


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.jobs = Jobs(PAL, STAND_INS)

    @classmethod
    def tearDownClass(cls):
        cls.jobs.__exit__()

    def doctor(self, *arguments, code=0, ranks=2, pal=PAL, seed=0, **environment):
        self.jobs.pal = os.path.abspath(pal)
        return self.jobs.call(["doctor", "--quick", *arguments], self.jobs.device(ranks, seed=seed, **environment), code=code)

    def unfit(self, out, *words):
        result = re.findall(r"(?m)^Result: (.*)$", out)
        self.assertEqual(len(result), 1, out)
        self.assertTrue(result[0].startswith("unfit: "), out)
        for word in words:
            self.assertIn(word, result[0])

    # ---- right machines ----

    def test_two_devices_are_fit(self):
        begin = time.monotonic()
        out = self.doctor("--report", "out.html", seed=1, NCCL_DEBUG="WARN", MY_PASSWORD="hunter-12345")
        print(f"two devices: {time.monotonic() - begin:.0f} s")
        self.assertIn("Result: fit: this machine can train on 2 GPUs.", out)
        for part in PARTS:
            self.assertRegex(out, rf"(?m)^{part} +all 2 devices +ok ")
        with open(self.jobs.path("out.html"), encoding="utf-8") as f:
            page = f.read()
        text = html.unescape(page)
        for word in ("fit: this machine", "CUDA runtime", "NCCL", "LibTorch", "channel_grad_sums", "PCI 0000:01:00.0", "bus GB/s",
                     "NCCL_DEBUG", "simgpu, a stand-in", *PARTS):
            self.assertIn(word, text)
        for secret in ("hunter-12345", "MY_PASSWORD", os.path.expanduser("~") + "/", self.jobs.folder, ROOT):
            self.assertNotIn(secret, text)
        self.assertNotRegex(page, r"(src|href)=\"?(https?:)?//")   # one file

    def test_one_device_is_fit(self):
        out = self.doctor(ranks=1)
        self.assertIn("Result: fit: this machine can train on 1 GPU.", out)

    def test_the_ranks_of_mpirun_are_tested_together(self):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "3"]
        self.jobs.pal = mpirun[0]
        out = self.jobs.call([*mpirun[1:], os.path.abspath(PAL), "doctor", "--quick"], self.jobs.device(3, seed=2), code=0)
        self.assertEqual(out.count("Result: fit"), 1, out)
        self.assertRegex(out, r"(?m)^NCCL +all 3 devices +ok ")
        self.assertEqual(glob.glob(self.jobs.path("pal-doctor-*")), [])

    def test_devices_in_exclusive_mode(self):
        with tempfile.TemporaryDirectory() as locks:
            self.assertIn("Result: fit", self.doctor(SIMGPU_EXCLUSIVE=locks))

    # ---- wrong ones ----

    def test_a_device_that_breaks_is_named(self):
        out = self.doctor(code=1, SIMGPU_BREAK="40:1")
        self.unfit(out, f"kernels on host {socket.gethostname()}, cuda:1, PCI 0000:02:00.0")
        self.assertRegex(out, r"(?m)^kernels +rank 1, .*WRONG .*uncorrectable ECC")
        self.assertRegex(out, r"(?m)^training +rank 0, .*not run")

    def test_more_ranks_than_devices(self):
        self.unfit(self.doctor("--np", "3", code=1), "NCCL on host")

    def test_planted_bugs(self):
        self.assertEqual(set(FOUND_BY) | NOT_SHOWN, set(plant.BUGS), "every bug of plant.py is in FOUND_BY or NOT_SHOWN")
        for bug, pattern in FOUND_BY.items():
            with self.subTest(bug):
                out = self.doctor(code=1, pal=PLANTED, seed=3, PAL_PLANTED=bug)
                self.unfit(out)
                self.assertRegex(out, pattern)

    def test_the_planted_program_is_fit_without_a_bug(self):
        self.assertIn("Result: fit", self.doctor(pal=PLANTED, seed=3))

    # ---- the list of kernels ----

    def test_every_kernel_is_checked(self):
        launchers, checked = set(), set()
        for path in glob.glob(f"{ROOT}/kernels/*.h"):
            with open(path, encoding="utf-8") as f:
                for space in re.findall(r"(?s)namespace cuda \{(.*?)\}  // namespace cuda", f.read()):
                    launchers.update(re.findall(r"(?m)^void (\w+)\(", space))
        for path in glob.glob(f"{ROOT}/launch/doctor/kernel_checks_*.cpp"):
            with open(path, encoding="utf-8") as f:
                checked.update(re.findall(r"\bcuda::(\w+)[<(]", f.read()))
        self.assertGreater(len(launchers), 20)
        self.assertEqual(launchers - checked, set(), "kernels that pal doctor does not compare")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
