#!/usr/bin/env python3
"""nccl_run_test: the program of a CUDA build where there may be no driver: it starts, and says what it computes on and why.

    nccl_run_test.py PAL FOLDER_OF_THE_STAND_INS TORCH_FREE_PROGRAM... [test names]
"""
import os
import re
import subprocess
import sys
import time
import unittest

from run_case import PAL, RunCase

STAND_INS, TORCH_FREE = os.path.abspath(sys.argv[2]), [p for p in sys.argv[3:] if os.path.exists(p)]


def libraries(program, path=""):
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, env={**os.environ, "LD_LIBRARY_PATH": path}).stdout
    return dict(re.findall(r"(\S+) => (\S+)", out))


class Device(RunCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.doctor = cls.call(cls, "doctor")
        cls.gpu = re.search(r"(?m)^GPU +ok ", cls.doctor) is not None

    def test_cuda_without_a_driver_is_refused_and_ends_all_ranks(self):
        if self.gpu:
            self.skipTest("there is a GPU")
        begin = time.monotonic()
        out = self.train("cuda", "train.device=cuda", "train.dtype=float32", code=2)
        self.one_sentence(out, "rank 0 on host", "has no CUDA device: no NVIDIA driver", "set train.device=cpu")
        self.assertLess(time.monotonic() - begin, 15)
        self.one_sentence(self.train("cuda64", "train.device=cuda", code=2), "train.dtype=float64", "train.dtype=float32")

    def test_auto_prints_why_it_takes_the_cpu(self):
        if self.gpu:
            self.skipTest("there is a GPU")
        out = self.train("auto", "train.dtype=float32", "train.steps=1")
        self.assertRegex(out, r"(?m)^device +cpu: rank 0 on host \S+ has no CUDA device: no NVIDIA driver")
        self.assertRegex(self.train("cpu", "train.device=cpu", "train.steps=1"), r"(?m)^device +cpu: train.device=cpu$")
        self.assertRegex(self.train("wide", "train.steps=1"), r"(?m)^device +cpu: train.dtype=float64 is for CPU ranks")

    def test_doctor_and_bench_name_what_they_cannot_check(self):
        if self.gpu:
            self.skipTest("there is a GPU")
        self.assertRegex(self.doctor, r"(?m)^GPUs and NCCL: no NVIDIA driver .*\nNot checked: .*peer access.*sums.*bandwidth")
        self.assertRegex(self.doctor, r"(?m)^Result: this machine can train on CPUs; no GPU was tested")
        self.one_sentence(self.call("bench", "comm", "--device", "cuda", code=2), "no NVIDIA driver")

    def test_only_torch_free_programs_load_the_stand_ins(self):
        ours = libraries(PAL)
        self.assertTrue(any("libc10_cuda" in name for name in ours), "a CUDA build")
        for name in ("libcudart.so.13", "libnccl.so.2"):
            self.assertNotIn(STAND_INS, ours[name])
        for program in TORCH_FREE:
            found = libraries(program, STAND_INS)
            self.assertFalse([name for name in found if "torch" in name], program)
            for name in ("libcudart.so.13", "libnccl.so.2"):
                self.assertTrue(os.path.realpath(found[name]).startswith(os.path.realpath(STAND_INS)), f"{program}: {found[name]}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + [a for a in sys.argv[3:] if a not in TORCH_FREE], verbosity=2)
