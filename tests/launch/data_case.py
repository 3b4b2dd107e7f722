"""data_case: what tests of `pal data` share: a folder of their own, calls, and small files to import."""
import gzip
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PAL = os.path.abspath(sys.argv[1])


def idx(magic, sizes, content):
    return struct.pack(f">{1 + len(sizes)}I", magic, *sizes) + content


def png(height, width, gray=0, seed=0):
    """A PNG file: a gray ramp with some noise."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    noise = random.Random(seed)
    rows = b"".join(b"\0" + bytes((gray + x + noise.randrange(9)) % 256 for x in range(width) for _ in range(3)) for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Case(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="pal-data-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        os.makedirs(f"{self.folder}/mnist")
        os.makedirs(f"{self.folder}/out")

    def path(self, name):
        return os.path.join(self.folder, name)

    def bytes(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(content)

    def poke(self, name, at):
        with open(self.path(name), "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 4]))

    def write_mnist(self, train=50, test=20, side=6):
        for prefix, n in (("train", train), ("t10k", test)):
            pixels = bytes((7 * i + n) % 256 for i in range(n * side * side))
            self.write(f"mnist/{prefix}-images-idx3-ubyte.gz", gzip.compress(idx(0x803, [n, side, side], pixels)))
            self.write(f"mnist/{prefix}-labels-idx1-ubyte.gz", gzip.compress(idx(0x801, [n], bytes(i % 10 for i in range(n)))))

    def call(self, *args, code=0, **options):
        """Runs pal; the exit code must be `code`. Returns standard output and standard error."""
        done = subprocess.run([PAL, "data", *args], cwd=self.folder, capture_output=True, text=True, timeout=60, **options)
        self.assertEqual(done.returncode, code, f"pal data {' '.join(args)}\n{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def refused(self, *args, code=3, **options):
        """The one sentence of an error; HDF5 and zlib must not add any of theirs."""
        err = self.call(*args, code=code, **options)[1]
        self.assertRegex(err, r"^error: [^\n]*\n$")
        return err[len("error: "):-1]

    def made(self):
        return sorted(os.listdir(self.path("out")))
