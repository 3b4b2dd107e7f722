#!/usr/bin/env python3
"""Image files of a user, from the outside: sizes, shards, columns, names, groups, test split, and odd files.

usage: photos_test.py PAL [test names]     (standard library only)
"""
import csv
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from data_case import PAL, Case, png  # noqa: E402

CRASHES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "crashes")   # files on which HDF5 1.10.8 crashes

CONFIG = """data: {train: out/x.h5, test: %s}
model: {backbone: convnet, widths: [4], projector: [8]}
loss: {kind: vicreg}
train: {steps: 2, global_batch: 4, threads: 1}
optim: {lr: 0.1}
"""


class Photos(Case):
    """Files of one's own, as JPEG."""

    def write_photos(self, sides=((12, 12),), classes=("cat", "dog"), each=8):
        for c, name in enumerate(classes):
            for i in range(each):
                self.write(f"photos/{name}/{i}.png", png(*sides[i % len(sides)], 90 * c, seed=100 * c + i))

    def config(self, test="out/x-test.h5"):
        self.write("c.yaml", (CONFIG % test).encode())

    def pal(self, *args, code=0):
        done = subprocess.run([PAL, *args], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, f"pal {' '.join(args)}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def ids(self, data):
        return [row[1] for row in csv.reader(self.call("info", data, "--list")[0].splitlines()[1:])]

    def test_one_size(self):
        """The size is stored, so that the pixels are the baseline, --check agrees with train, and data.size may be left out."""
        self.write_photos()
        out = self.call("import", "folder", "photos", "out/x.h5", "--store", "jpeg", "--test-fraction", "0.25")[0]
        self.assertIn("show them with: pal data info out/x.h5", out)
        self.config()
        info = self.call("info", "out/x.h5")[0]
        self.assertRegex(info, r"(?m)^shape +12 x 12 x 3 ")
        self.assertRegex(info, r"(?m)^encoding +jpeg")
        check = self.pal("train", "c.yaml", "--check")
        self.assertIn("2 views of 12x12\n", check)
        self.assertRegex(self.pal("eval", "c.yaml", "linear", "knn", "--features", "pixels"), r"(?m)^linear +100\.00 .* 12 +4 +pixels$")
        self.assertIn("all pairs known: yes", self.pal("oracle", "closure", "c.yaml", "oracle.sampler=captcha", "oracle.class_guess=none"))

    def test_several_sizes(self):
        """Height and width are shown with a suggestion; train, --check and the pixels say the same and nothing false."""
        self.write_photos(sides=((40, 60), (50, 40), (100, 130), (45, 45)))
        self.call("import", "folder", "photos", "out/x.h5", "--test-fraction", "0.25")
        self.config()
        info = self.call("info", "out/x.h5")[0]
        for line in (r"shape +any x any x 3 ", r"height +40 to 100, median (45|50)$", r"width +40 to 130, median (45|60)$", r"data\.size +data\.size=(32|48) suits the median$"):
            self.assertRegex(info, rf"(?m)^{line}")
        sentence = "data.size is 0, but the images have heights of 40 to 100 pixels; set data.size to the side of the views in pixels, for instance data.size="
        for args in (["train", "c.yaml", "--check"], ["train", "c.yaml", "--run-dir", "run"], ["eval", "c.yaml", "knn", "--features", "pixels"],
                     ["oracle", "closure", "c.yaml", "oracle.sampler=captcha"]):
            self.assertIn(sentence, self.pal(*args, code=2))
        self.assertIn("2 views of 32x32\n", self.pal("train", "c.yaml", "data.size=32", "--check"))
        self.write("sized.yaml", self.bytes("c.yaml").replace(b"data: {", b"data: {size: 16, "))
        self.assertRegex(self.pal("eval", "sized.yaml", "knn", "--features", "pixels"), r"(?m)^knn.* 12 +4 +pixels$")

    def test_the_name_means_all_shards(self):
        self.write_photos()
        out = self.call("import", "folder", "photos", "out/x.h5", "--shards", "3")[0]
        command = re.search(r"show them with: pal data info (\S+)", out).group(1)
        self.assertRegex(self.call("info", command)[0], r"(?m)^samples +16$")
        self.assertRegex(self.call("info", *(f"out/x-0000{k}-of-00003.h5" for k in range(3)))[0], r"(?m)^samples +16$")
        self.assertIn("16 samples", self.call("verify", "out/x.h5")[0])
        self.assertIn("16 samples", self.call("verify", *(f"out/x-0000{k}-of-00003.h5" for k in range(3)))[0])
        self.config("null")
        self.assertIn("out/x.h5: 16 samples, 16 trained on", self.pal("train", "c.yaml", "--check"))
        self.assertIn("out/x-00000-of-00003.h5", self.refused("import", "folder", "photos", "out/x.h5", code=2))  # both would be x.h5
        self.call("import", "folder", "photos", "out/x.h5", "--force")
        self.assertEqual(self.made(), ["x.h5"])
        self.call("import", "folder", "photos", "out/x.h5", "--shards", "2", "--force")
        self.assertEqual(self.made(), ["x-00000-of-00002.h5", "x-00001-of-00002.h5"])

    def test_columns_of_a_manifest(self):
        self.write_photos()
        rows = [f"photos/{name}/{i}.png,{100000 + 37 * (i // 2)},{name},ward {i}" for name in ("cat", "dog") for i in range(8)]
        self.write("meta.csv", "\n".join(["filename,patient_id,diagnosis,site", *rows]).encode())
        out = self.call("import", "csv", "meta.csv", "out/x.h5")[0]
        self.assertIn("columns that were not used: patient_id, diagnosis, site; choose the label with --label-column NAME", out)
        out = self.call("import", "csv", "meta.csv", "out/d.h5", "--label-column", "diagnosis")[0]
        self.assertIn("columns that were not used: patient_id, site\n", out)
        self.assertRegex(self.call("info", "out/d.h5")[0], r"(?m)^ +0 +8 +cat\n +1 +8 +dog$")
        self.call("import", "csv", "meta.csv", "out/p.h5", "--label-column", "patient_id")  # far apart: names, not class numbers
        self.assertRegex(self.call("info", "out/p.h5")[0], r"(?m)^classes +4$")
        self.assertRegex(self.call("info", "out/p.h5")[0], r"(?m)^ +3 +4 +100111$")
        self.assertIn("its columns are: filename, patient_id", self.refused("import", "csv", "meta.csv", "out/q.h5", "--label-column", "age"))
        self.write("elsewhere/meta.csv", self.bytes("meta.csv"))
        self.assertRegex(self.refused("import", "csv", "elsewhere/meta.csv", "out/e.h5"),
                         r"^no image of elsewhere/meta\.csv can be read: cannot read elsewhere/photos/cat/0\.png: No such file or directory; paths [^;]*relative to its folder$")
        self.call("import", "images", "photos", "out/l.h5", "--labels", "meta.csv", "--label-column", "diagnosis")
        self.assertRegex(self.call("info", "out/l.h5")[0], r"(?m)^labels +16 known")

    def test_pairs_and_groups_by_name(self):
        self.write_photos(each=4)
        self.call("import", "folder", "photos", "out/x.h5")
        self.config("null")
        self.assertEqual(self.ids("out/x.h5")[5], "dog/1.png")
        self.assertIn("number,id,label\n0,cat/0.png,cat\n", self.call("info", "out/x.h5", "--list")[0])
        self.write("pairs.csv", b'a,b,w\n"photos/cat/0.png",dog/1,2\n3,cat/2.png\n')
        self.assertIn("names samples: photos/cat/0.png; name the data set that has them with --data", self.pal("graph", "info", "pairs.csv", code=3))
        self.assertRegex(self.pal("graph", "info", "pairs.csv", "--data", "out/x.h5"), r"samples +8\npairs +2\n")
        self.pal("graph", "convert", "pairs.csv", "numbers.csv", "--data", "out/x.h5")
        self.assertEqual(self.bytes("numbers.csv"), b"i,j,weight\n0,5,2\n2,3,1\n")
        by_name = ["train", "c.yaml", "graph.kind=pairs", "graph.pairs=pairs.csv", "--check"]
        self.pal(*by_name)
        self.write("pairs.csv", b"cat/0.png,cat/1.png\ncat/9.png,cat/1.png\n")
        self.assertRegex(self.pal(*by_name, code=3), "pairs.csv line 2: no sample has the name: cat/9.png; .*leave out pairs with images of the test split")
        self.write("pairs.csv", b"0.png,cat/1.png\n")
        self.assertIn("several samples have the name: 0.png", self.pal(*by_name, code=3))
        self.write("meta.csv", b"file,patient\nphotos/cat/0.png,ann\nphotos/cat/1.png,ann\nphotos/dog/0.png,bob\nphotos/dog/3.png,bob\n")
        groups = ["graph.kind=supervised", "graph.groups=meta.csv:patient", "--run-dir", "run"]
        self.assertIn("supervised, 4 samples in groups of meta.csv:patient", self.pal("train", "c.yaml", *groups))
        self.assertNotIn("next: pal eval", self.pal("train", "c.yaml", *groups[:2], "--run-dir", "other"))  # there is no data.test
        self.assertIn("supervised or mixed", self.pal("train", "c.yaml", "graph.groups=meta.csv:patient", "--check", code=2))
        self.assertIn("its columns are: file, patient", self.pal("train", "c.yaml", "graph.kind=mixed", "graph.groups=meta.csv:age", "--check", code=3))

    def test_a_test_split(self):
        self.write_photos(classes=("cat", "dog", "hen"), each=10)
        self.write("meta.csv", "\n".join(["file,scene", *(f"{name}/{i}.png,{name}{i // 5}" for name in ("cat", "dog", "hen") for i in range(10))]).encode())
        split = ["import", "folder", "photos", "out/x.h5", "--test-fraction", "0.3", "--force"]
        self.assertRegex(self.call(*split)[0], r"(?m)^train +21 .*\ntest +9 ")
        train, test = self.ids("out/x.h5"), self.ids("out/x-test.h5")
        self.assertEqual(len({*train, *test}), 30)
        self.assertEqual([sum(name.startswith(c) for name in test) for c in ("cat", "dog", "hen")], [3, 3, 3])
        self.call(*split)
        self.assertEqual(self.ids("out/x-test.h5"), test)
        self.call(*split, "--split-seed", "1")
        self.assertNotEqual(self.ids("out/x-test.h5"), test)
        self.call(*split[:-2], "0.5", "--force", "--groups", "meta.csv:scene")
        scenes = [{f"{n.split('/')[0]}{int(n.split('/')[1][:-4]) // 5}" for n in self.ids(f"out/{name}.h5")} for name in ("x", "x-test")]
        self.assertEqual([len(s) for s in scenes], [3, 3])
        self.assertFalse(scenes[0] & scenes[1])
        self.config("out/x.h5")
        self.assertIn("warning: the training set and the test set are the same images", self.pal("eval", "c.yaml", "knn", "--features", "pixels"))
        self.write_mnist()
        self.assertIn("test split of its own", self.refused("import", "idx", "mnist", "out/m.h5", "--test-fraction", "0.3", code=2))

    def test_special_files_and_links(self):
        self.write_photos()
        os.mkfifo(self.path("photos/cat/9.jpg"))
        for a in range(11):  # 11! paths, if every link were followed
            os.makedirs(self.path(f"mesh/{a:02}"))
        for a in range(11):
            for b in range(11):
                os.symlink(f"../{b:02}", self.path(f"mesh/{a:02}/{b:02}"))
        shutil.copytree(self.path("mesh"), self.path("photos/mesh"), symlinks=True)
        out = self.call("import", "folder", "photos", "out/x.h5")[0]
        self.assertRegex(out, r"(?m)^all +16 +2 ")
        self.assertIn("1 special files (FIFO, socket or device)", out)
        self.write("list.txt", b"photos/cat/0.png\nphotos/cat/9.jpg\n")
        self.assertIn("1 left out", self.call("import", "images", "list.txt", "data/new/l.h5")[0])   # in a folder that was not there
        self.assertTrue(os.path.exists(self.path("data/new/l.h5")))

    def test_odd_names(self):
        """Names that are not UTF-8, and names that command a terminal."""
        self.write_photos(classes=("Cat", "cat", "esc\x1b]0;owned\x07"))
        os.rename(self.path("photos/cat").encode(), self.path("photos/").encode() + b"cat\xff")
        self.write_photos(classes=("cat",))
        out = self.call("import", "folder", "photos", "out/x.h5", "--store", "jpeg", "--test-fraction", "0.25")[0]
        self.assertIn("two classes differ in upper and lower case only: Cat and cat", out)
        self.config()
        info = self.call("info", "out/x.h5")[0]
        self.assertIn(r"esc\x1b]0;owned\x07", info)
        self.assertIn(r"cat\xff", info)
        self.assertNotIn("\x1b", info)
        self.pal("eval", "c.yaml", "knn", "--features", "pixels", "--json", "r.json")
        self.assertEqual(len(json.loads(self.bytes("r.json"))["results"][0]["per_class"]), 4)

    def test_features(self):
        def npy(name, kind, shape, content):
            head = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
            head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
            self.write(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content)
        npy("f.npy", "<f4", (3, 2), struct.pack("<6f", *range(6)))
        npy("f-labels.npy", "<i8", (3,), struct.pack("<3q", 1, -1, 0))
        self.assertRegex(self.call("info", "f.npy")[0], r"(?m)^rows +3\nfeatures +2\nlabels +2 known, 1 unknown\nclasses +2$")
        for label in (2**63 - 1, 2**40, -2, -(2**63)):
            npy("f-labels.npy", "<i8", (3,), struct.pack("<3q", 1, label, 0))
            self.assertIn(f"label {label} is not the number of a class", self.refused("info", "f.npy"))
        npy("huge.npy", "<f4", (3 << 30, 256), b"")   # sparse: 3 TB on the disk of a laptop
        os.truncate(self.path("huge.npy"), os.path.getsize(self.path("huge.npy")) + (3 << 40))
        for args in (("data", "info", "huge.npy"), ("train", "c.yaml", "data.train=huge.npy", "model.backbone=none", "--run-dir", "run")):
            self.config("null")
            self.assertRegex(self.pal(*args, code=3), r"^error: huge\.npy needs more memory than is free: 3298\.5 GB; [\d.]+ GB are free: [^\n]*\n$")
        for args in (("data", "info", f"{CRASHES}/features_heap.h5"), ("data", "import", "h5", f"{CRASHES}/images_chunks.h5", "out/crash.h5")):
            self.assertRegex(self.pal(*args, code=3), r"(?m)^error: HDF5 crashed while it read this file: [^\n]*/\w+\.h5; the file is damaged, [^\n]*\n\Z")
        npy("o.npy", "|O", (3,), b"\x80\x04]")
        self.assertIn("Python objects (dtype object)", self.refused("info", "o.npy"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
