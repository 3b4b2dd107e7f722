#!/usr/bin/env python3
"""A run on Fashion-MNIST trains and asks, a person answers 200 grids in a browser, training continues.

The graph gets the answers. The next checkpoint is better on test images than the one before the answers, and than the
same run without them. The dashboard shows it, labels.csv is written, and the ledger holds what the browser sent.

usage: label_story_test.py PAL     (run by the python that has selenium; without it, chromium or the data it prints "skipped:")
"""
import csv
import gzip
import json
import os
import shutil
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
TRAIN, TEST, PROBE, GRIDS, MEMBERS = 3100, 2000, 300, 200, 15

CONFIG = f"""
data: {{train: set.h5, test: set-test.h5, threads: 1}}
augment: {{crop_scale: [0.7, 1.0], jitter_strength: [0.4, 0.4, 0.0, 0.0], gray: 0, mean: 0.286, std: 0.353}}
model: {{backbone: convnet, widths: [8, 16, 32, 64], projector: []}}
loss: {{kind: simclr, temperature: 0.2}}
graph: {{kind: mixed, alpha: 0.9, labeled_fraction: 0.01, edge_share: 0.5}}
oracle: {{sampler: captcha, labeler: exchange, wait: exit, every: 40, questions_per_round: {GRIDS * MEMBERS}, members: {MEMBERS}, budget: {GRIDS * MEMBERS}, pool: {TRAIN}}}
train: {{global_batch: 128, steps: 480, seed: 1, threads: 1}}
optim: {{kind: adamw, lr: 0.01, weight_decay: 1.0e-4}}
eval: {{every: 80, train_samples: {PROBE}, test_samples: {TEST}}}
checkpoint: {{every: 40, keep: 20}}
log: {{every: 10}}
"""


def make_set(folder):
    """The first images of both splits. Returns the labels of the training set."""
    os.makedirs(f"{folder}/idx")
    for split, count in (("train", TRAIN), ("t10k", TEST)):
        for name, head, each in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            with gzip.open(f"{FASHION}/{split}-{name}-ubyte.gz") as f:
                data = f.read(head + count * each)
            with open(f"{folder}/idx/{split}-{name}-ubyte", "wb") as f:
                f.write(data[:4] + struct.pack(">i", count) + data[8:])
    pal(folder, "data", "import", "idx", "idx", "set.h5")
    with open(f"{folder}/idx/train-labels-idx1-ubyte", "rb") as f:
        return list(f.read()[8:])


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


def accuracy(run):
    """Of the newest look at the test images: a linear probe that saw the classes of PROBE training images."""
    with open(f"{run}/metrics.jsonl") as f:
        looks = [m for m in map(json.loads, f) if "eval_linear_top1" in m]
    return looks[-1]["eval_linear_top1"]


def on_the_dashboard(browser):
    """The accuracy that it shows, and the relations that were inferred from answers."""
    browser.keys("p")
    browser.wait("+document.querySelector('.proud b')?.textContent.replaceAll(',', '') > 20000", 30, "relations that were inferred")
    shown = browser.js("return [...document.querySelectorAll('.figure')].find((f) => f.innerText.includes('accuracy')).querySelector('b').textContent")
    return float(shown.split()[0]) / 100, browser.js("return document.querySelector('.proud b').textContent")


def main():
    if not os.path.isdir(FASHION):
        print("skipped: Fashion-MNIST is not here (apt-get install dataset-fashion-mnist)")
        return
    with tempfile.TemporaryDirectory(prefix="pal-story-") as folder:
        labels = make_set(folder)
        with open(f"{folder}/c.yaml", "w") as f:
            f.write(CONFIG)
        out = pal(folder, "train", "c.yaml", "--run-dir", "run", code=75)   # it asks, and ends with exit code 75
        assert "questions wait for answers" in out, out
        _, right_before = made_labels(folder, labels)
        asked = rows(f"{folder}/run/ledger.sqlite", "select count(*) from queries")[0][0]
        assert asked == GRIDS, asked
        # A copy of the run trains without answers while the person gives them.
        shutil.copytree(f"{folder}/run", f"{folder}/control", symlinks=True)
        sent, browser, server = {}, Browser(folder), None
        with subprocess.Popen([PAL, "train", "c.yaml", "oracle.wait=continue", "--run-dir", "control"], cwd=folder, stdout=subprocess.DEVNULL) as control:
            try:
                server = Server(PAL, folder, "run")
                start = time.time()
                answer_all(browser, server.links["me"], labels, sent)
                seconds = time.time() - start
                shown_before, implied = on_the_dashboard(browser)
                server.stop()
                stands = rows(f"{folder}/run/ledger.sqlite", "select query, j, answer from answers where superseded_by is null and answer <> 'withdrawn'")
                assert len(stands) == len(sent) == GRIDS * MEMBERS, (len(stands), len(sent))
                assert {(q, j): a for q, j, a in stands} == sent, "the ledger is what the browser sent"
                before = accuracy(f"{folder}/run")
                pal(folder, "train", "c.yaml", "--run-dir", "run")
                after = accuracy(f"{folder}/run")
                server = Server(PAL, folder, "run", port=server.port)   # the browser has its session
                browser.driver.get(f"http://127.0.0.1:{server.port}/")
                shown_after, _ = on_the_dashboard(browser)
                server.stop()
            finally:
                browser.quit()
                if server and server.process.poll() is None:
                    server.kill()
        assert control.returncode == 0, control.returncode
        without = accuracy(f"{folder}/control")
        made, right = made_labels(folder, labels)
        known = [row for row in made if row["how"] in ("asked", "implied", "given")]
        assert len(made) == TRAIN and all(int(row["class"]) == labels[int(row["id"])] for row in known), "what is known is right"
        print(f"{GRIDS} grids in {seconds:.0f} s, {implied} relations implied; accuracy on {TEST} test images: {before:.3f} when it asked, {after:.3f} after, "
              f"{without:.3f} without the answers; labels.csv: {right_before:.3f} right, then {right:.3f}, {len(known)} of {TRAIN} known")
        assert right > right_before + 0.05, (right_before, right)
        assert after > before + 0.02 and after > without + 0.05, (before, after, without)
        assert abs(shown_before - before) < 0.001 and abs(shown_after - after) < 0.001, (shown_before, shown_after)


if __name__ == "__main__":
    main()
