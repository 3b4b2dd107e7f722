#!/usr/bin/env python3
"""pal start: from a folder of pictures to a report and the labeling page, as a user does it.

usage: start_test.py PAL [test names]     (standard library only)
"""
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from data_case import PAL, Case, png  # noqa: E402

SIDE = 4   # blocks of eight pixels
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})   # a machine of one core: one rank, one thread, quick also where others work


def jpeg(blocks):
    """A gray JPEG file of SIDE x SIDE flat blocks: baseline, with nothing but DC coefficients."""
    def part(mark, content):
        return bytes([0xFF, mark]) + struct.pack(">H", 2 + len(content)) + content
    bits, before = "", 0
    for value in blocks:
        dc = 8 * (value - 128)
        step, before = dc - before, dc
        size = abs(step).bit_length()
        bits += f"{size:04b}" + (f"{step if step > 0 else step + 2**size - 1:0{size}b}" if size else "") + "0"
    bits += "1" * (-len(bits) % 8)
    data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xFF", b"\xFF\0")
    return (b"\xFF\xD8" + part(0xDB, b"\0" + b"\1" * 64) + part(0xC0, struct.pack(">BHHBBBB", 8, 8 * SIDE, 8 * SIDE, 1, 1, 0x11, 0))
            + part(0xC4, b"\0" + bytes([0, 0, 0, 12] + [0] * 12) + bytes(range(12))) + part(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0")
            + part(0xDA, bytes([1, 1, 0, 0, 63, 0])) + data + b"\xFF\xD9")


def bar(label, seed):
    """A picture of a class: a bright row of blocks, and noise."""
    noise = random.Random(seed)
    return jpeg([(190 if i // SIDE == label else 60) + noise.randrange(60) for i in range(SIDE * SIDE)])


class Start(Case):
    def setUp(self):
        super().setUp()
        shutil.rmtree(self.path("out"))   # of the base class

    def pictures(self, folder, classes=("low", "mid", "top"), each=24):
        for label, name in enumerate(classes):
            for i in range(each):
                self.write(f"{folder}/{name}/{name}{i:02}.jpg", bar(label, 100 * label + i))

    def pal(self, *args, code=0):
        done = subprocess.run([PAL, *args], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
        self.assertEqual(done.returncode, code, f"pal {' '.join(args)}\n{done.stdout}")
        return done.stdout

    def start(self, *args, code=0, minutes="0.02"):
        return self.pal("start", *args, "--minutes", minutes, code=code)

    def text(self, name):
        return self.bytes(name).decode()

    def metrics(self, run):
        try:
            return [json.loads(line) for line in self.text(f"{run}/metrics.jsonl").split("\n")[:-1]]
        except FileNotFoundError:
            return []

    def ids(self, data):
        return [line.split(",")[1] for line in self.call("info", data, "--list")[0].splitlines()[1:]]

    def until(self, holds, what):
        end = time.time() + 100
        while not holds():
            self.assertLess(time.time(), end, what)
            time.sleep(0.02)

    def test_class_folders(self):
        """Stopped and killed while it trains, resumed, done; then again with nothing new; embed and train take the folder too."""
        self.pictures("in/photos")
        self.write("in/photos/notes.txt", b"x")
        for i in range(5):
            self.write(f"in/photos/new{i}.jpg", bar(i % 3, 900 + i))
        command = [PAL, "start", "in", "--minutes", "0.12"]
        for sign in (signal.SIGINT, signal.SIGKILL):
            before = len(self.metrics("runs/in"))
            with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as first:
                self.until(lambda: len(self.metrics("runs/in")) > before, "no step")
                first.send_signal(sign)
                out = first.stdout.read()   # to the end of the last of its processes
            self.assertEqual(first.returncode, 75 if sign == signal.SIGINT else -9, out)
            if sign == signal.SIGINT:
                self.assertIn("77 images below in/photos\nits 3 sub-folders are taken as classes: low, mid, top (--labels none ignores them)\n"
                              "5 images outside of these folders have no label\n20 % of each class become the test part", out)
                self.assertIn("\n$ pal data import folder in/photos runs/in/data.h5 --test-fraction 0.2 --force\n", out)
                self.assertIn("stopped at step", out)
                shown = out
        out = self.pal(*command[1:])
        self.assertIn("the data set is runs/in/data.h5, imported before\n", out)
        self.assertIn("resumed at step", out)
        self.assertIn("The report is runs/in/report.html\n", out)
        self.assertRegex(out, r"(?m)^raw pixels +[\d.]+ +[\d.]+\nthis run +[\d.]+ +[\d.]+\nThe encoder is ")
        self.assertFalse(os.path.exists(self.path("runs/in/measure")))
        self.assertEqual((len(self.ids("runs/in/data.h5")), len(self.ids("runs/in/data-test.h5"))), (63, 14))
        self.assertFalse([name for name in self.ids("runs/in/data-test.h5") if "new" in name])
        config = self.text("runs/in/start.yaml")
        for line in config.splitlines():   # every value has its reason
            self.assertRegex(line, r"^(#.*|[a-z]+:|  \w+: \S.* # \w.*)$")
        self.assertIn(config, shown)
        self.assertIn("eval_knn_top1", str(self.metrics("runs/in")))
        page = self.text("runs/in/report.html")
        self.assertIn("linear", page)
        shown = re.findall(r'<figure class="(\w+)"><img[^>]*><figcaption>new\d', page)   # their class is not known
        self.assertEqual(set(shown), {"plain"})
        out = self.pal(*command[1:])
        self.assertIn("trained already", out)
        self.assertIn("The encoder is ", out)
        self.assertNotIn("\n$ ", out)
        # Without an image to ask about there is no page, in a terminal either.
        config, times = self.text("runs/in/start.yaml"), os.stat(self.path("runs/in/start.yaml"))
        self.write("runs/in/start.yaml", re.sub(r"(?m)^oracle:\n(  .*\n)+", "", config).encode())
        os.utime(self.path("runs/in/start.yaml"), ns=(times.st_atime_ns, times.st_mtime_ns))   # as old as what was made with it
        out = self.terminal(command)
        self.assertIn(b"Every image has a label, so no question is open.", out)
        self.assertNotIn(b"pal label", out)
        self.write("runs/in/start.yaml", config.encode())
        # Other commands take the folder, too.
        self.assertIn("this run is finished", self.pal("train", "in"))
        self.assertIn("f.npy", self.pal("embed", "runs/in", "in/photos/low", "--out", "f.npy"))
        out = self.pal("embed", "runs/in", "in/photos/low", "--out", "f.npy")
        self.assertIn("imported before", out)
        self.assertIn("24 x ", out)
        named = re.search(r"the names of its rows: pal (data info \S+ --list)\n", out)[1].split()
        self.assertIn("0,low00.jpg,", self.pal(*named))
        os.rename(self.path("runs/in/checkpoints"), self.path("away"))
        before = self.text("runs/in/metrics.jsonl")
        self.assertIn("error: the run is finished, but its checkpoints are gone: runs/in; put them back", self.pal(*command[1:], code=3))
        self.write("in/photos/later.jpg", bar(0, 999))   # nothing is imported again for `pal train`, either
        self.assertIn("its checkpoints are gone: runs/in; put them back, or start at step 0 with --resume never", self.pal("train", "in", code=3))
        self.assertEqual(self.text("runs/in/metrics.jsonl"), before)
        self.assertEqual(len(self.ids("runs/in/data.h5")), 63)

    def test_answers(self):
        """Pictures without labels: answers are used by the next start, and nothing is asked twice. A collapse is named."""
        for i in range(40):
            self.write(f"flat/{i:02}.png", png(24 + i % 3, 30, gray=5 * i, seed=i))
        out = self.start("flat", "--no-label")
        self.assertIn("without labels all images are trained on", out)
        self.assertEqual(self.text("runs/flat/report.html").count('<div class="near">'), 10)
        self.assertNotIn("the same class", self.text("runs/flat/report.html"))
        self.assertIn("$ pal data import images flat runs/flat/data.h5 --force\n", out)
        self.assertNotIn("$ pal eval", out)
        steps = self.metrics("runs/flat")[-1]["step"]
        ask = ["ask", "runs/flat", "oracle.sampler=captcha", "--n", "12", "--out", "q.jsonl"]
        self.pal(*ask)
        with open(self.path("a.jsonl"), "w") as f:
            for q in map(json.loads, self.text("q.jsonl").splitlines()):
                for k, m in enumerate(q["members"]):
                    f.write(json.dumps({"query": q["query"], "member": m, "answer": "yes" if k % 2 else "no", "annotator": "ann"}) + "\n")
        self.pal("answers", "import", "runs/flat", "a.jsonl")
        self.write("runs/flat/inbox/odd\x1b]0;x\x07.jsonl", b"nonsense\n")
        out = self.start("flat")   # no terminal: no page
        self.assertIn(r"odd\x1b]0;x\x07.jsonl; the first: ", out)
        self.assertNotIn("\x1b", out)
        self.assertIn("12 new answers: the run continues to step", out)
        self.assertIn("$ pal report", out)
        last = [m for m in self.metrics("runs/flat") if "queries" in m][-1]
        self.assertEqual(last["queries"], 12)
        self.assertGreater(last["step"], steps)
        self.assertIn("no new answers", self.start("flat"))
        self.pal(*ask)
        with sqlite3.connect(self.path("runs/flat/ledger.sqlite")) as db:
            asked = db.execute("select count(*), count(distinct min(template, sample) || '-' || max(template, sample)) from members join queries on id = query").fetchone()
        db.close()
        self.assertEqual(asked[0], asked[1])
        self.page("flat")
        self.write("flat/new.png", png(24, 30))
        self.assertIn("the pictures have changed since, and this run keeps the earlier ones", self.start("flat"))
        self.assertIn("was made by another command", self.start("flat", "--labels", self.labels("flat"), code=2))
        # The user's own values are kept. Here a network of one channel puts all embeddings on a line.
        shutil.rmtree(self.path("runs/flat/checkpoints"))
        for name in ("metrics.jsonl", "ledger.sqlite", "config.yaml"):
            os.unlink(self.path(f"runs/flat/{name}"))
        os.unlink(self.path("flat/new.png"))
        config = self.text("runs/flat/start.yaml")
        for key, value in (("widths", "[8, 1]"), ("projector", "[8]"), ("steps", "400")):
            config = re.sub(rf"(?m)^  {key}: .*", f"  {key}: {value}", config)
        self.write("runs/flat/start.yaml", config.encode())
        out = self.start("flat", code=4)
        self.assertIn("the config is runs/flat/start.yaml, as it was before", out)
        late = re.search(r"(?m)^the training took \d+:\d\d instead of 0:01: its steps were slower than the measured ones", out)
        self.assertEqual(bool(late), self.metrics("runs/flat")[-1]["seconds"] > 1.25 * 1.2, out)
        self.assertRegex(out, r"error: the embeddings have collapsed: they (lie on a line|point the same way) .*; this encoder is of no use")
        self.assertIn("The report is runs/flat/report.html", out)

    def labels(self, folder):
        self.write("labels.csv", "".join(f"{name},{'odd' if k % 2 else 'even'}\n" for k, name in enumerate(sorted(os.listdir(self.path(folder))))).encode())
        return "labels.csv"

    def page(self, folder):
        """In a terminal the link of the page is shown, and Ctrl-C ends it."""
        out = self.terminal([PAL, "start", folder, "--minutes", "0.02", "--classes", "3"])
        self.assertRegex(out, rb"me: http://127\.0\.0\.1:\d+/\?token=\w+")
        self.assertIn(b"continues with the answers", out)

    def terminal(self, command):
        """What a command prints in a terminal; Ctrl-C ends a page."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.environ["TERM"] = "xterm"
            os.execv(command[0], command)
        out, end, sent = b"", time.time() + 100, False
        try:
            while time.time() < end:
                if select.select([terminal], [], [], 0.5)[0]:
                    out += os.read(terminal, 4096)
                if not sent and b"stop with Ctrl-C" in out:
                    os.write(terminal, b"\x03")
                    sent = True
        except OSError:   # its end
            pass
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, out)
        return out

    def test_groups(self):
        """Patients stay on one side and are related; labels of a column are for the evaluation. Without labels people are asked."""
        self.pictures("scans", each=8)
        names = sorted(os.path.basename(name) for name in self.ids_of("scans"))
        self.write("meta.csv", "\n".join(["file,patient,finding", *(f"{n},{n[:3]}{int(n[3:5]) // 2},{n[0] in 'lm'}" for n in names)]).encode())
        out = self.start("scans", "--groups", "meta.csv:patient", "--labels", "meta.csv:finding", "--no-label", "--out", "o")
        self.assertIn("images of one group of meta.csv:patient stay together", out)
        self.assertIn("meta.csv names 2 classes: False, True", out)
        self.assertIn("With --groups and a label for every image people are not asked", out)
        self.assertRegex(self.text("o/start.yaml"), r"(?m)^  groups: .*meta\.csv:patient")
        patient = lambda name: os.path.basename(name)[:3] + str(int(os.path.basename(name)[3:5]) // 2)
        sides = [{patient(i) for i in self.ids(f"o/{name}.h5")} for name in ("data", "data-test")]
        self.assertTrue(sides[0] and sides[1])
        self.assertFalse(sides[0] & sides[1])
        start = ["scans", "--groups", "meta.csv:patient", "--labels", "none", "--no-label", "--out", "asked"]
        self.assertIn("To answer questions: the same `pal start` in a terminal", self.start(*start))
        self.pal("ask", "asked", "oracle.sampler=captcha", "--n", "6", "--out", "q.jsonl")
        ids, answers = self.ids("asked/data.h5"), []
        for q in map(json.loads, self.text("q.jsonl").splitlines()):
            for m in q["members"]:
                self.assertNotEqual(patient(ids[q["template"]]), patient(ids[m]), "images of one patient are known to be the same")
                answers.append({"query": q["query"], "member": m, "annotator": "ann", "answer": "yes" if ids[q["template"]][:3] == ids[m][:3] else "no"})
        self.assertIn("yes", str(answers))
        self.write("a.jsonl", "".join(json.dumps(a) + "\n" for a in answers).encode())
        self.pal("answers", "import", "asked", "a.jsonl")
        self.assertIn(f"{len(answers)} new answers: the run continues to step", self.start(*start))
        self.assertEqual([m for m in self.metrics("asked") if "queries" in m][-1]["queries"], len(answers))
        self.pal("labels", "asked", "--known-only", "--out", "labels.csv")
        self.assertEqual({line.split(",")[3] for line in self.text("labels.csv").splitlines()[1:]}, {"group", "asked", "implied"})

    def ids_of(self, folder):
        return [name for _, _, names in os.walk(self.path(folder)) for name in names]

    def test_bad_input(self):
        self.write("a.jpg", bar(0, 0))
        self.write("empty/sub/x.txt", b"x")
        self.write("few/a.jpg", bar(0, 0))
        self.pictures("ok", each=4)
        self.write("meta.csv", b"file,patient\nlow00.jpg,1\n")
        for code, sentence, args in ((3, "this folder does not exist: nowhere; give the folder with the images", ["nowhere"]),
                                     (2, "this is a file: a.jpg; give the folder with the images", ["a.jpg"]),
                                     (3, "there is no image below this folder: empty; give a folder with JPEG or PNG files", ["empty"]),
                                     (3, "few has too few images to train on: 1; give at least 10", ["few"]),
                                     (3, "meta.csv has no column of this name: age; its columns are: file, patient", ["ok", "--groups", "meta.csv:age"]),
                                     (2, "a column of a CSV file is named FILE:COLUMN, not: meta.csv", ["ok", "--groups", "meta.csv"]),
                                     (3, "the file of --labels does not exist: none.csv", ["ok", "--labels", "none.csv"]),
                                     (3, "labels of two classes or more are needed", ["ok", "--labels", "meta.csv:patient"]),
                                     (2, "--np: Value 0 not in range", ["ok", "--np", "0"]),
                                     (2, "--minutes", ["ok", "--minutes", "0"])):
            out = self.pal("start", *args, code=code)
            self.assertRegex(out, r"^error: [^\n]*\n$")
            self.assertIn(sentence, out)
        self.assertFalse(os.path.exists(self.path("runs")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
