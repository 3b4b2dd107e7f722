#!/usr/bin/env python3
"""oracle_peer: the peers of `pal bench oracle`: faiss for k-means, modAL over scikit-learn for uncertainty sampling.

    oracle_peer.py --setup DIR
    oracle_peer.py --packages DIR --what kmeans|modal --folder DIR --clusters C --threads N

Reads rows.npy or pool.npy (with pool-labels.npy, -1 unknown) from the folder. Answers `go` with the milliseconds, `end`
with the peak memory. k-means writes centers.npy.
"""
import argparse
import itertools
import sys
import time

from peers import install, peak_mb, say

PACKAGES = ["faiss-cpu", "packaging", "scipy", "scikit-learn", "joblib", "cloudpickle", "threadpoolctl", "narwhals", "pandas", "python-dateutil",
            "six", "modAL-python"]


def kmeans(given):
    import faiss
    import numpy
    faiss.omp_set_num_threads(given.threads)
    rows = numpy.load(f"{given.folder}/rows.npy")

    seeds = itertools.count(1)

    def run():
        # No subsampling: both sides use all rows. Every turn starts from other centers.
        model = faiss.Kmeans(rows.shape[1], given.clusters, niter=20, spherical=True, seed=next(seeds), verbose=False,
                             max_points_per_centroid=rows.shape[0], min_points_per_centroid=1)
        model.train(rows)
        return model.centroids

    return f"faiss-cpu {faiss.__version__}", run, lambda centers: numpy.save(f"{given.folder}/centers.npy", centers)


def modal(given):
    import numpy
    from modAL.models import ActiveLearner
    from modAL.uncertainty import margin_sampling
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    rows, labels = numpy.load(f"{given.folder}/pool.npy"), numpy.load(f"{given.folder}/pool-labels.npy")
    known = labels >= 0

    def run():
        learner = ActiveLearner(estimator=LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5), query_strategy=margin_sampling,
                                X_training=rows[known], y_training=labels[known])
        return learner.query(rows[~known], n_instances=200)

    return "modAL + scikit-learn LDA", run, lambda _: None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", metavar="DIR")
    parser.add_argument("--packages", metavar="DIR")
    parser.add_argument("--what", choices=["kmeans", "modal"])
    parser.add_argument("--folder")
    parser.add_argument("--clusters", type=int)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    if given.setup:
        return install(given.setup, PACKAGES)
    sys.path.insert(0, given.packages)
    name, run, keep = {"kmeans": kmeans, "modal": modal}[given.what](given)
    say(ready=name)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        start = time.perf_counter()
        result = run()
        elapsed = (time.perf_counter() - start) * 1000
        keep(result)
        say(ms=elapsed)
    say(peak_mb=peak_mb())
    return 0


if __name__ == "__main__":
    sys.exit(main())
