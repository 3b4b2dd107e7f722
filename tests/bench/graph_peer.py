#!/usr/bin/env python3
"""graph_peer: the peers of `pal bench graph`: what a Python user would build a similarity graph with.

    graph_peer.py --setup DIR --case NAME
    graph_peer.py --packages DIR --input FILE --case NAME --params JSON --peer NAME --threads N

Commands and functions as in kernels_peer.py. No peer supports "different"; they are timed on "same" only.
"""
import sys

from peers import run_peer


def joined(samples, i, j):
    """Components of the pairs, by scipy: a sparse matrix, then its connected components."""
    import numpy
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    graph = coo_matrix((numpy.ones(len(i), dtype=numpy.int8), (i, j)), shape=(samples, samples)).tocsr()
    return connected_components(graph, directed=False)


def first_of_class(labels):
    import numpy
    _, first, inverse = numpy.unique(labels, return_index=True, return_inverse=True)
    return first[inverse]


def supervised_scipy(inputs, params):
    import numpy
    labels = inputs["labels"].numpy()
    samples = numpy.arange(params["N"])
    return lambda: (joined(params["N"], samples, first_of_class(labels))[0], {})


def supervised_networkx(inputs, params):
    from networkx.utils import UnionFind
    labels = inputs["labels"].tolist()

    def run():
        sets, first = UnionFind(), {}
        for sample, label in enumerate(labels):
            sets.union(first.setdefault(label, sample), sample)
        return len({sets[sample] for sample in first.values()}), {}
    return run


def answers_scipy(inputs, params):
    labels, i, j = (inputs[name].numpy() for name in ("labels", "i", "j"))

    def run():
        same = labels[i] == labels[j]
        return joined(params["N"], i[same], j[same])[0], {}
    return run


def relation_networkx(inputs, params):
    from networkx.utils import UnionFind
    labels, i, j, a, b = (inputs[name].tolist() for name in ("labels", "i", "j", "a", "b"))
    sets = UnionFind(range(params["N"]))
    for one, other in zip(i, j):
        if labels[one] == labels[other]:
            sets.union(one, other)
    return lambda: (sum(sets[one] == sets[other] for one, other in zip(a, b)), {})


def batch_scipy(inputs, params):
    import numpy
    from scipy.sparse import csr_matrix, identity
    labels, batch, rows, alpha = inputs["labels"].numpy(), inputs["batch"].numpy(), params["rows"], params["alpha"]

    def run():
        y = csr_matrix((numpy.ones(rows), labels[batch], numpy.arange(rows + 1)), shape=(rows, params["C"]))
        graph = (1 - alpha) * identity(rows, format="csr") + alpha * (y @ y.T)
        return abs(graph).sum() - abs(graph.diagonal()).sum(), {}
    return run


def signed_batch_scipy(inputs, params):
    """D: -1 between components that answers tell apart, 1 on its diagonal; made once."""
    import numpy
    from scipy.sparse import coo_matrix, csr_matrix, identity
    labels, i, j, batch = (inputs[name].numpy() for name in ("labels", "i", "j", "batch"))
    rows, same = params["rows"], labels[i] == labels[j]
    count, component = joined(params["N"], i[same], j[same])
    a, b = component[i[~same]], component[j[~same]]
    apart = coo_matrix((numpy.ones(2 * len(a)), (numpy.append(a, b), numpy.append(b, a))), shape=(count, count)).tocsr()
    apart.data[:] = 1
    signs = identity(count, format="csr") - apart

    def run():
        y = csr_matrix((numpy.ones(rows), component[batch], numpy.arange(rows + 1)), shape=(rows, count))
        graph = y @ signs @ y.T
        return abs(graph).sum() - abs(graph.diagonal()).sum(), {}
    return run


PEERS = {
    "supervised-store": {"scipy connected_components": supervised_scipy, "networkx union-find": supervised_networkx},
    "answers": {"scipy connected_components": answers_scipy},
    "relation": {"networkx union-find": relation_networkx},
    "batch-graph": {"scipy Y Yt": batch_scipy},
    "signed-batch-graph": {"scipy Y D Yt": signed_batch_scipy},
}
PACKAGES = {case: ["scipy"] for case in PEERS if case != "relation"}  # networkx comes with torch

if __name__ == "__main__":
    sys.exit(run_peer("graph_peer", PEERS, PACKAGES))
