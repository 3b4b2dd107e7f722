#!/usr/bin/env python3
"""The whole story: a run on Fashion-MNIST's features asks, a person answers 200 grids in a browser, training goes on.

The graph grows, what the next checkpoint makes of it (labels.csv) is better than what the one that asked did, and the ledger
holds what the browser sent.

usage: label_story_test.py PAL     (run by the python that has selenium; without it, chromium or the data it says "skipped:")
"""
import csv
import gzip
import os
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from label_case import Browser, Server, browser_or_skip, rows  # noqa: E402

browser_or_skip()
PAL = os.path.abspath(sys.argv[1])
FASHION = "/usr/share/datasets/fashion-mnist"
TRAIN, TEST, GRIDS, MEMBERS = 4000, 1000, 200, 15

CONFIG = f"""
data: {{train: features.npy, test: features-test.npy}}
model: {{backbone: none, projector: [64, 32]}}
graph: {{kind: mixed, alpha: 0.1, labeled_fraction: 0.005, edge_share: 0.5}}
oracle: {{sampler: captcha, labeler: exchange, wait: exit, every: 50, questions_per_round: {GRIDS * MEMBERS}, members: {MEMBERS}, budget: {GRIDS * MEMBERS}, pool: {TRAIN}}}
train: {{global_batch: 256, steps: 150, seed: 1}}
optim: {{kind: lars, lr: 0.5}}
checkpoint: {{every: 50, keep: 20}}
log: {{every: 10}}
"""


def idx(name, count):
    with gzip.open(f"{FASHION}/{name}") as f:
        head = f.read(16 if "images" in name else 8)
        return f.read(count * (784 if "images" in name else 1)), head


def write_npy(path, code, shape, payload):
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + payload)


def make_features(folder):
    """Means of 4 x 4 pixels: 49 features a sample, with labels beside them. Returns the labels of the training set."""
    kept = None
    for split, name, count in (("train", "features", TRAIN), ("t10k", "features-test", TEST)):
        pixels, _ = idx(f"{split}-images-idx3-ubyte.gz", count)
        labels, _ = idx(f"{split}-labels-idx1-ubyte.gz", count)
        values = []
        for i in range(count):
            image = pixels[784 * i:784 * (i + 1)]
            for y in range(0, 28, 4):
                for x in range(0, 28, 4):
                    values.append(sum(sum(image[28 * (y + d) + x:28 * (y + d) + x + 4]) for d in range(4)) / 2040)
        write_npy(f"{folder}/{name}.npy", "<f4", (count, 49), struct.pack(f"<{len(values)}f", *values))
        write_npy(f"{folder}/{name}-labels.npy", "<i8", (count,), struct.pack(f"<{count}q", *labels))
        kept = kept or list(labels)
    return kept


def pal(folder, *args, code=0):
    done = subprocess.run([PAL, *args], cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == code, f"pal {' '.join(args)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def made_labels(folder, labels):
    """labels.csv of the run: rows, and the share of all samples whose class is right."""
    pal(folder, "labels", "run", "--out", "labels.csv")
    with open(f"{folder}/labels.csv") as f:
        made = list(csv.DictReader(f))
    return made, sum(int(row["class"]) == labels[int(row["id"])] for row in made) / len(made)


def answer_all(browser, link, labels, sent):
    """200 grids by keyboard, as the labels say."""
    query = browser.open(link)
    for n in range(GRIDS):
        template, members = browser.members()
        marks = []
        for k, m in enumerate(members):
            same = labels[m] == labels[template]
            sent[query, m] = "yes" if same else "no"
            if same:
                marks.append("12345qwertasdfg"[k])
        browser.js("""for (const key of arguments[0]) document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));""", [*marks, " "])
        if n + 1 < GRIDS:
            query = browser.next_card(query)
    browser.settled()


def main():
    if not os.path.isdir(FASHION):
        print("skipped: Fashion-MNIST is not here (apt-get install dataset-fashion-mnist)")
        return
    with tempfile.TemporaryDirectory(prefix="pal-story-") as folder:
        labels = make_features(folder)
        with open(f"{folder}/c.yaml", "w") as f:
            f.write(CONFIG)
        out = pal(folder, "train", "c.yaml", "--run-dir", "run", code=75)   # it asks, and leaves
        assert "questions are out" in out, out
        _, before = made_labels(folder, labels)
        asked = rows(f"{folder}/run/ledger.sqlite", "select count(*) from queries")[0][0]
        assert asked == GRIDS, asked
        sent, browser = {}, Browser(folder)
        try:
            server = Server(PAL, folder, "run")
            start = time.time()
            answer_all(browser, server.links["me"], labels, sent)
            seconds = time.time() - start
            browser.keys("p")
            browser.wait("+document.querySelector('.proud b')?.textContent.replaceAll(',', '') > 100000", 30, "relations that nobody had to be asked")
            implied = browser.js("return document.querySelector('.proud b').textContent")
            server.stop()
        finally:
            browser.quit()
        stands = rows(f"{folder}/run/ledger.sqlite", "select query, j, answer from answers where superseded_by is null and answer <> 'withdrawn'")
        assert len(stands) == len(sent) == GRIDS * MEMBERS, (len(stands), len(sent))
        assert {(q, j): a for q, j, a in stands} == sent, "the ledger is what the browser sent"
        pal(folder, "train", "c.yaml", "--run-dir", "run")
        made, after = made_labels(folder, labels)
        known = [row for row in made if row["how"] in ("asked", "implied", "given")]
        assert len(made) == TRAIN and all(int(row["class"]) == labels[int(row["id"])] for row in known), "what is known is right"
        print(f"{GRIDS} grids in {seconds:.0f} s, {implied} relations implied; labels.csv: {before:.3f} right by the checkpoint that asked, "
              f"{after:.3f} by the last one, {len(known)} of {TRAIN} known")
        assert after > before + 0.05, (before, after)


if __name__ == "__main__":
    main()
