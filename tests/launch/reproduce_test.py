#!/usr/bin/env python3
"""pal reproduce --fast: the whole table by real runs of a few steps; a second call trains nothing; missing data are reported.

usage: reproduce_test.py PAL CONFIGS
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import time

PAL, CONFIGS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FASHION = "/usr/share/datasets/fashion-mnist"


def pal(folder, *args, code=0):
    done = subprocess.run([PAL, *args, "--configs", CONFIGS], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280)
    assert done.returncode == code, f"pal {' '.join(args)} gave {done.returncode}\n{done.stdout}"
    return done.stdout


def make_cifar(folder):
    rng = random.Random(1)
    os.makedirs(folder)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        with open(f"{folder}/{name}", "wb") as file:
            for i in range(20):
                file.write(bytes([i % 10]) + rng.randbytes(3072))
    with open(f"{folder}/batches.meta.txt", "w", encoding="ascii") as file:
        file.write("\n".join("abcdefghij") + "\n")


def main():
    with tempfile.TemporaryDirectory(prefix="pal-reproduce-") as folder:
        assert "download cifar-10-binary.tar.gz" in pal(folder, "reproduce", "cifar-paper", code=2)
        make_cifar(f"{folder}/bin")
        out = pal(folder, "reproduce", "cifar-paper", "--data", "bin", "--fast", "--np", "1")
        assert "ssl, 2 epochs" in out and "63" in out, out
        os.remove(f"{folder}/bin/data_batch_3.bin")
        assert "data_batch_3.bin" in pal(folder, "reproduce", "cifar-paper", "--data", "bin", "--out", "other", code=3)
        if not os.path.isdir(FASHION):
            print("skipped: Fashion-MNIST is not here (apt-get install dataset-fashion-mnist)")
            return
        start = time.monotonic()
        out = pal(folder, "reproduce", "fashion", "--fast")
        seconds = time.monotonic() - start
        with open(f"{folder}/runs/fashion-fast/table.json", encoding="utf-8") as file:
            table = json.load(file)
        names = [row["name"] for row in table["rows"]]
        assert names == ["ssl", "mixed, 1 %", "mixed, 10 %", "supervised graph", "baseline MSE", "baseline cross-entropy", "captcha, 60", "captcha, 200", "captcha, 600"], names
        assert all(0.2 < row["linear"][0] < 1 for row in table["rows"]), table   # ten classes: chance is 0.1
        again = time.monotonic()
        second = pal(folder, "reproduce", "fashion", "--fast")
        again = time.monotonic() - again
        assert "seed 0: run 1 of 9\n" in out and "seed 0" not in second and again < 0.3 * seconds, second
        assert second.split("pal reproduce")[1] == out.split("pal reproduce")[1]
        print(f"ok: {seconds:.0f} s, again {again:.1f} s")


main()
