#!/usr/bin/env python3
"""operators_test: LibTorch's CUDA half has every operator of operators.txt and operators_eval.txt.

    operators_test.py FOLDER_OF_LIBTORCH

The stand-in runs any operator on the CPU; the real libtorch_cuda.so must have each that training (operators.txt)
or evaluation besides (operators_eval.txt) uses on the device. matrix_test.py and eval_test.py compare the files with what the
runs use, so for a new operator a developer must check that the library has it, whether it waits for the device, and whether it
is deterministic.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LISTED, LISTED_EVAL = os.path.join(HERE, "operators.txt"), os.path.join(HERE, "operators_eval.txt")
# Operators that LibTorch's CUDA half has under another name.
OTHER_NAMES = {"convolution": "cudnn_convolution", "convolution_backward": "cudnn_convolution"}
# A kernel that LibTorch's CUDA half enters into a table of the CPU half: no function has its name.
STUBS = {"copy_"}


def listed(path=LISTED):
    with open(path, encoding="utf-8") as f:
        return set(f.read().split())


def used(lines):
    """Names without namespace and overload, of lines of counters."""
    return {line["what"].removeprefix("aten::").split(".")[0] for line in lines if line["kind"] == "op"}


def in_library(torch):
    """Functions at::cuda::NAME of the real library."""
    out = subprocess.run(["nm", "-D", "--defined-only", os.path.join(torch, "lib", "libtorch_cuda.so")], capture_output=True, text=True, check=True).stdout
    return {match.group(2)[:int(match.group(1))] for match in re.finditer(r" _ZN2at4cuda(\d+)(\w+)", out)}


def main():
    there, names = in_library(sys.argv[1]), listed() | listed(LISTED_EVAL)
    missing = []
    for name in sorted(names - STUBS):
        real = OTHER_NAMES.get(name, name)
        if not {real, real + "_out", real + "_outf", real + "_"} & there:
            missing.append(f"the real libtorch_cuda.so has no at::cuda::{real} for {name}")
    print(f"{len(names)} operators, {len(there)} functions in the real library")
    print("\n".join(missing))
    return 1 if missing or len(there) < 1000 or len(names) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
