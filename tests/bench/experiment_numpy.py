#!/usr/bin/env python3
"""experiment_numpy: the active figure in straightforward numpy, the peer of `pal bench experiment`.

    experiment_numpy.py FOLDER --trials T --n N --test M --steps S --batch B --processes P

Reads the trials that the parent wrote (float64: test, train, draws, pairs) and answers commands:
"check F" writes the 0-1 errors (trial, series, step) to F, "go" runs all trials and prints the milliseconds, "end".
"""
import argparse
import json
import multiprocessing
import sys
import time

import numpy as np

CLASSES, SIGMA, LAMBDA, WIDTH = 4, 0.2, 1e-3, 5


def kernel(a, b):
    return np.exp(-np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(2)) / SIGMA)


class Problem:
    def __init__(self, folder, options):
        o, read = options, lambda name: np.fromfile(f"{folder}/{name}")
        test = read("test")
        self.x_test, self.y_test = test[:-o.test].reshape(o.test, -1), test[-o.test:].astype(int)
        train = read("train").reshape(o.trials, -1)
        self.x = train[:, :-o.n].reshape(o.trials, o.n, -1)
        self.y = train[:, -o.n:].astype(int)
        self.draws = read("draws").reshape(o.trials, -1)
        self.pairs = read("pairs").astype(int).reshape(o.trials, -1, 2)
        self.one_hot = np.eye(CLASSES)[self.y_test]
        self.options = o

    def error(self, phi):
        w = np.linalg.lstsq(phi, self.one_hot, rcond=1e-6)[0]
        return (np.argmax(phi @ w, axis=1) != self.y_test).mean()

    def trial(self, t):
        o, x, y, n = self.options, self.x[t], self.y[t], self.options.n
        values, vectors = np.linalg.eigh(kernel(x, x))
        keep = np.abs(values) > 1e-5 / n
        inverse = (vectors[:, keep] / values[keep]) @ vectors[:, keep].T
        train_map, test_map = kernel(x, x) @ inverse, kernel(self.x_test, x) @ inverse
        truth = np.where(y[:, None] == y[None, :], 1.0, -1.0)
        active, passive = np.eye(n), np.eye(n)
        known = np.zeros(n, bool)
        for c in range(CLASSES):
            if (y == c).any():
                known[np.argmax(y == c)] = True
        asked = np.zeros((n, CLASSES), bool)
        used, errors = 0, np.empty((2, o.steps))
        for step in range(o.steps):
            v = np.linalg.eigh(active - LAMBDA * inverse)[1][:, -WIDTH:]
            errors[0, step] = self.error(test_map @ v)
            phi = train_map @ v
            prediction = np.argmax(phi @ (np.linalg.pinv(phi[known], rcond=1e-6) @ np.eye(CLASSES)[y[known]]), axis=1)
            against = asked.sum(0).argmin()
            open_points = np.flatnonzero(~known & ~asked[:, against])
            likely = open_points[prediction[open_points] == against]
            if len(likely) > o.batch:
                open_points = likely
            if len(open_points) >= o.batch:
                draws = self.draws[t, used:used + o.batch]
                used += o.batch
                open_points = open_points[(draws * len(open_points)).astype(int)]
            known[open_points[y[open_points] == against]] = True
            examples = np.flatnonzero(known)
            active[np.ix_(examples, examples)] = truth[np.ix_(examples, examples)]
            positives, negatives = examples[y[examples] == against], open_points[y[open_points] != against]
            active[np.ix_(positives, negatives)] = -1
            active[np.ix_(negatives, positives)] = -1
            asked[open_points, against] = True
            asked[examples] = True

            v = np.linalg.eigh(passive - LAMBDA * inverse)[1][:, -WIDTH:]
            errors[1, step] = self.error(test_map @ v)
            i, j = self.pairs[t, step * o.batch:(step + 1) * o.batch].T
            passive[i, j] = passive[j, i] = truth[i, j]
        return errors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name in ("trials", "n", "test", "steps", "batch", "processes"):
        parser.add_argument("--" + name, type=int, required=True)
    options = parser.parse_args()
    problem = Problem(options.folder, options)
    pool = multiprocessing.get_context("fork").Pool(options.processes) if options.processes > 1 else None

    def run():
        trials = range(options.trials)
        return np.stack(pool.map(problem.trial, trials, chunksize=1) if pool else [problem.trial(t) for t in trials])

    say = lambda line: print(json.dumps(line), flush=True)
    say({"ready": True})
    for line in sys.stdin:
        word = line.split()
        if word[0] == "end":
            break
        start = time.perf_counter()
        errors = run()
        ms = 1000 * (time.perf_counter() - start)
        if word[0] == "check":
            errors.tofile(word[1])
        say({"ms": ms})


if __name__ == "__main__":
    main()
