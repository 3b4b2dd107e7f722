#!/usr/bin/env python3
"""`pal data` from the outside: import, info, verify; exit codes, sentences, and what stays on the disk after a failure.

usage: data_cli_test.py PAL [test names]     (standard library only)
"""
import gzip
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from data_case import PAL, Case, idx  # noqa: E402

FASHION = "/usr/share/datasets/fashion-mnist"
HEAD = 8192  # where a shard's images begin


class Data(Case):
    # ---- what works ----------------------------------------------------------------------------------------------

    def test_import_info_verify(self):
        self.write_mnist()
        out = self.call("import", "idx", "mnist", "out/m.h5")[0]
        self.assertRegex(out, r"train +50 +10 +0\.0 MB +out/m\.h5\n")
        self.assertRegex(out, r"test +20 +10 +0\.0 MB +out/m-test\.h5\n")
        self.assertEqual(self.made(), ["m-test.h5", "m.h5"])
        info = self.call("info", "out/m.h5")[0]
        for line in (r"samples +50", r"shape +6 x 6 x 1 ", r"encoding +raw", r"classes +10", r"labels +50 known, 0 unknown", r"fingerprint +[0-9a-f]{16}",
                     r" +9 +5 +9"):
            self.assertRegex(info, rf"(?m)^{line}")
        self.assertIn("… and 7 more classes", self.call("info", "out/m.h5", "--limit", "3")[0])
        self.assertIn("50 samples", self.call("verify", "out/m.h5")[0])

    def test_overwrites_only_when_asked(self):
        self.write_mnist()
        self.call("import", "idx", "mnist", "out/m.h5")
        first = self.bytes("out/m.h5")
        self.assertEqual(self.refused("import", "idx", "mnist", "out/m.h5", code=2), "the output exists already: out/m.h5; give --force to replace it")
        time.sleep(1.1)  # a time stamp would make the files differ
        self.call("import", "idx", "mnist", "out/m.h5", "--force")
        self.assertEqual(self.bytes("out/m.h5"), first)

    def test_shards(self):
        self.write_mnist()
        self.call("import", "idx", "mnist", "out/m.h5")
        self.call("import", "idx", "mnist", "out/s.h5", "--shards", "3", "--classes", ",".join("abcdefghij"))
        self.assertEqual(len(self.made()), 8)
        print_of = lambda data: re.search(r"fingerprint +(\w+)", self.call("info", data)[0]).group(1)
        self.assertEqual(print_of("out/s-0*.h5"), print_of("out/m.h5"))
        self.assertIn("50 samples", self.call("verify", "out/s-0*.h5")[0])
        os.remove(self.path("out/s-00001-of-00003.h5"))
        self.assertIn("out/s-*.h5 has 2 of 3", self.refused("info", "out/s-0*.h5"))

    def test_cifar100_shows_its_parents(self):
        self.write("mnist/fine_label_names.txt", b"apple\nbear\n")
        self.write("mnist/coarse_label_names.txt", b"fruit\nmammal\n")
        for name in ("train", "test"):
            self.write(f"mnist/{name}.bin", b"".join(bytes([label, label]) + bytes(3072) for label in (0, 1, 1)))
        self.call("import", "cifar100", "mnist", "out/c.h5")
        self.assertRegex(self.call("info", "out/c.h5")[0], r"(?m)^ +1 +2 +bear +mammal$")

    @unittest.skipUnless(os.path.isdir(FASHION), "Fashion-MNIST is not installed")
    def test_fashion_mnist(self):
        self.call("import", "idx", FASHION, "out/fashion.h5")
        self.assertIn("60000 samples, 47.0 MB", self.call("verify", "out/fashion.h5")[0])
        info = self.call("info", "out/fashion-test.h5")[0]
        self.assertRegex(info, r"(?m)^samples +10000$")
        self.assertRegex(info, r"(?m)^ +9 +1000 +Ankle boot$")
        pixels = gzip.open(f"{FASHION}/train-images-idx3-ubyte.gz").read()[16:]
        self.assertTrue(self.bytes("out/fashion.h5")[HEAD:HEAD + len(pixels)] == pixels)

    # ---- bad input -------------------------------------------------------------------------------------------

    def test_usage(self):
        self.write_mnist()
        self.assertIn("pal data --help", self.refused(code=2))
        self.assertIn("FORMAT", self.refused("import", "tiff", "mnist", "out/m.h5", code=2))
        self.assertIn("OUT is required", self.refused("import", "idx", "mnist", code=2))
        self.assertIn("must end with .h5", self.refused("import", "idx", "mnist", "out/m", code=2))
        self.assertIn("the number of shards is 0", self.refused("import", "idx", "mnist", "out/m.h5", "--shards", "0", code=2))
        self.assertIn("pal data import idx", self.call("import", "--help")[0])
        self.assertEqual(self.made(), [])

    def test_bad_sources(self):
        self.write_mnist()
        images = self.bytes("mnist/train-images-idx3-ubyte.gz")
        self.assertIn("this folder does not exist: nowhere", self.refused("import", "idx", "nowhere", "out/m.h5"))
        self.assertIn("does not hold: data_batch_1.bin", self.refused("import", "cifar10", "mnist", "out/m.h5"))
        self.write("mnist/train-images-idx3-ubyte.gz", images[:-9])
        self.assertIn("is cut or damaged: unexpected end of file", self.refused("import", "idx", "mnist", "out/m.h5"))
        self.write("mnist/train-images-idx3-ubyte.gz", gzip.compress(idx(0x801, [50, 6, 6], b"")))
        self.assertIn("magic number is 2049", self.refused("import", "idx", "mnist", "out/m.h5"))
        self.write("mnist/train-images-idx3-ubyte.gz", gzip.compress(idx(0x803, [49, 6, 6], bytes(49 * 36))))
        self.assertIn("have different numbers of samples: 50 and 49", self.refused("import", "idx", "mnist", "out/m.h5"))
        self.write("mnist/train-images-idx3-ubyte.gz", images)
        self.assertIn("label 3 of sample 3 is out of range", self.refused("import", "idx", "mnist", "out/m.h5", "--classes", "a,b,c"))
        self.assertIn("cannot be made: Not a directory", self.refused("import", "idx", "mnist", "mnist/train-images-idx3-ubyte.gz/m.h5"))
        self.assertEqual(self.made(), [])

    def test_damaged_samples_are_listed(self):
        self.write_mnist()
        self.call("import", "idx", "mnist", "out/m.h5")
        for sample in (3, 17, 40):
            self.poke("out/m.h5", HEAD + 36 * sample + 5)
        out, err = self.call("verify", "out/m.h5", code=3)
        for sample in (3, 17, 40):
            self.assertIn(f"out/m.h5: sample {sample} (train-{sample}) does not match its CRC32C", out)
        self.assertEqual(err, "error: out/m.h5 is damaged: 3 of 50 samples and 0 files are bad; copy or import it again\n")
        out = self.call("verify", "out/m.h5", "--limit", "1", code=3)[0]
        self.assertNotIn("sample 17", out)
        self.assertIn("… and 2 more", out)

    def test_damaged_files_are_refused_in_one_sentence(self):
        self.write_mnist()
        self.call("import", "idx", "mnist", "out/m.h5")
        good = self.bytes("out/m.h5")
        self.assertIn("this data set does not exist: out/n.h5", self.refused("info", "out/n.h5"))
        self.write("out/m.h5", good[:-1])
        self.assertIn("out/m.h5 is not a complete HDF5 file: truncated file", self.refused("info", "out/m.h5"))
        self.write("out/m.h5", b"nonsense")
        self.assertIn("file signature not found", self.refused("info", "out/m.h5"))
        labels = good.rindex(struct.pack("<3q", 0, 1, 2))
        for at in (20, 60, labels + 8):  # superblock, object header, a label
            self.write("out/m.h5", good)
            self.poke("out/m.h5", at)
            self.assertIn("out/m.h5", self.refused("info", "out/m.h5"))
            self.assertIn("out/m.h5", self.call("verify", "out/m.h5", code=3)[0])

    # ---- full disks and signals ----------------------------------------------------------------

    def test_full_disk(self):
        self.write_mnist()
        for limit in (0, 8192, 10500):
            sentence = self.refused("import", "idx", "mnist", "out/m.h5", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual(sentence, "out/m.h5 cannot be written: File too large; make room or choose another place")
            self.assertEqual(self.made(), [])

    def test_full_file_system(self):
        self.write_mnist(train=3000)
        script = 'mount -t tmpfs -o size=64k none out || exit 99; "$0" data import idx mnist out/m.h5; code=$?; ls out; exit $code'
        if shutil.which("unshare") is None or os.geteuid() != 0:
            self.skipTest("needs root for a file system of its own")
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, PAL], cwd=self.folder, capture_output=True, text=True, timeout=60)
        if done.returncode in (1, 99):
            self.skipTest("no mounts here: " + done.stderr)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "error: out/m.h5 cannot be written: No space left on device; make room or choose another place\n")
        self.assertEqual([line for line in done.stdout.splitlines() if not line.startswith("import ")], [])

    def test_stopped_by_a_signal(self):
        n = 3_000_000
        for prefix, samples in (("train", n), ("t10k", 10)):  # zeros, mostly holes
            for kind, magic, sizes, size in (("images-idx3", 0x803, [samples, 2, 2], 4), ("labels-idx1", 0x801, [samples], 1)):
                name = f"mnist/{prefix}-{kind}-ubyte"
                self.write(name, idx(magic, sizes, b""))
                os.truncate(self.path(name), os.path.getsize(self.path(name)) + samples * size)
        process = subprocess.Popen([PAL, "data", "import", "idx", "mnist", "out/m.h5"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not self.made() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        if process.returncode == 0:
            self.skipTest("the import was faster than the signal")
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        self.assertEqual(self.made(), [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
