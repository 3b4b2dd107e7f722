#!/usr/bin/env python3
"""torch.ops.pal.* beside the peers' own code in one process, on the two-view graph: value and gradient; autograd; bad input;
a library that does not fit; and the example.

usage: torch_ops_test.py LIBRARY SOURCE PACKAGES [test names]     (run by the python that has torch; peers go to PACKAGES)

solo-learn and lightly are their packages' own functions. The official VICReg and BarlowTwins code is in no package: its lines
stand here. Conventions: the official VICReg and lightly halve the variance term of each view, solo-learn does not (variance 50 is
its 25); PAL's default is the official one. BarlowTwins: solo-learn scales by 0.025, loss.scale here.
"""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, SOURCE, PACKAGES = (os.path.abspath(path) for path in sys.argv[1:4])
os.environ["PAL_TORCH_OPS"] = LIBRARY
sys.path[:0] = [f"{SOURCE}/launch/python", f"{SOURCE}/tests/bench"]

import torch
import torch.nn.functional as F

from pal_losses import GraphLoss, pairs_of_batch, read_pairs
from peers import install

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def solo(name):
    """A module of solo-learn by its file: importing the package asks for all of its dependencies."""
    spec = importlib.util.spec_from_file_location(f"solo_{name}", f"{PACKAGES}/solo/losses/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def official_vicreg(x, y):
    repr_loss = F.mse_loss(x, y)
    x, y = x - x.mean(dim=0), y - y.mean(dim=0)
    std_loss = torch.mean(F.relu(1 - torch.sqrt(x.var(dim=0) + 0.0001))) / 2 + torch.mean(F.relu(1 - torch.sqrt(y.var(dim=0) + 0.0001))) / 2
    off = lambda c: c.pow(2).sum() - c.diagonal().pow(2).sum()
    n, d = x.shape
    return 25 * repr_loss + 25 * std_loss + off(x.T @ x / (n - 1)) / d + off(y.T @ y / (n - 1)) / d


def official_barlow(x, y, lambd=0.0051):
    c = F.batch_norm(x, None, None, training=True).T @ F.batch_norm(y, None, None, training=True) / len(x)
    on = c.diagonal().add(-1).pow(2).sum()
    return on + lambd * (c.pow(2).sum() - c.diagonal().pow(2).sum())


def rows(n, dims, dtype, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, dims, generator=generator, dtype=torch.float64) * torch.linspace(0.2, 1.7, dims) + 0.3
    y = x + 0.3 * torch.randn(n, dims, generator=generator, dtype=torch.float64)
    return torch.cat([x, y]).to(dtype)


class TorchOps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert install(PACKAGES, ["solo-learn", "lightly", "torchvision", "pillow"]) == 0, "the peers cannot be installed"
        sys.path.insert(0, PACKAGES)

    def same(self, ours, peer, dims=(5, 48), dtypes=(torch.float64, torch.float32), **graph):
        """Value and gradient of two functions of two views."""
        for dtype in dtypes:
            for d in dims:
                z = rows(24, d, dtype)
                a, b = z.clone().requires_grad_(), z.clone().requires_grad_()
                mine, theirs = ours(a, **graph), peer(*b.chunk(2))
                (3 * mine).backward()
                (3 * theirs).backward()
                bound = TOLERANCE[dtype]
                self.assertLessEqual(abs(mine.item() - theirs.item()), bound * max(1, abs(theirs.item())), (dtype, d))
                self.assertGreater(b.grad.norm().item(), 1e-3)
                self.assertLessEqual((a.grad - b.grad).norm().item(), bound * b.grad.norm().item(), (dtype, d))

    def test_vicreg(self):
        from lightly.loss.vicreg_loss import VICRegLoss
        self.same(GraphLoss("vicreg"), official_vicreg)
        self.same(GraphLoss("vicreg"), VICRegLoss())
        self.same(GraphLoss("vicreg", variance=50), solo("vicreg").vicreg_loss_func, dtypes=[torch.float32])

    def test_vicreg_of_solo_learn_in_float64(self):
        self.same(GraphLoss("vicreg", variance=50), solo("vicreg").vicreg_loss_func, dtypes=[torch.float64])

    def test_simclr(self):
        from lightly.loss.ntx_ent_loss import NTXentLoss
        self.same(GraphLoss("simclr", temperature=0.2), lambda x, y: solo("simclr").simclr_loss_func(x, y, temperature=0.2))
        self.same(GraphLoss("simclr", temperature=0.5), NTXentLoss(temperature=0.5))

    def test_barlow(self):
        from lightly.loss.barlow_twins_loss import BarlowTwinsLoss
        ours = GraphLoss("barlow", barlow="cross", **{"lambda": 0.0051})
        self.same(ours, official_barlow)
        self.same(GraphLoss("barlow"), BarlowTwinsLoss())
        self.same(GraphLoss("barlow", scale=0.025), solo("barlow").barlow_loss_func, dtypes=[torch.float32])

    def test_nnclr(self):
        support = torch.randn(50, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

        def peer(p1, p2, temperature=0.1):
            z = F.normalize(rows(24, 5, torch.float64, seed=7), dim=1)
            near = support[(z @ F.normalize(support, dim=1).T).argmax(1)]
            loss = solo("nnclr").nnclr_loss_func
            return loss(near[:24], p2, temperature) / 2 + loss(near[24:], p1, temperature) / 2
        self.same(GraphLoss("nnclr"), peer, dims=[5], dtypes=[torch.float64], support=support, anchors=rows(24, 5, torch.float64, seed=7))

    def test_supervised_contrast_of_classes_of_equal_size(self):
        """solo-learn's extra positives: with classes of equal size its mean over each row's positives is the mean over edges."""
        labels = torch.arange(24) % 4
        both = torch.cat([labels, labels])
        extra = both[:, None] == both[None]
        extra.fill_diagonal_(False)
        self.same(GraphLoss("simclr", temperature=0.2), lambda x, y: solo("simclr").simclr_loss_func(x, y, 0.2, extra), labels=labels, views_weight=0.0)

    def test_baselines(self):
        labels = torch.arange(24) % 5
        both = torch.cat([labels, labels])
        self.same(GraphLoss("cross_entropy"), lambda x, y: F.cross_entropy(torch.cat([x, y]), both), labels=labels)
        self.same(GraphLoss("mse"), lambda x, y: F.mse_loss(torch.cat([x, y]), F.one_hot(both, x.shape[1]).to(x)), labels=labels)

    def test_any_graph_of_pairs(self):
        """VIC2, SCL and sampled VIC2 with signed pairs, against their formulas; SGD's favorite check of gradients."""
        pairs, weights = torch.tensor([[0, 3], [1, 2], [4, 4], [5, 0]]), torch.tensor([1.0, -0.5, 2.0, -1.0], dtype=torch.float64)
        g = torch.eye(6, dtype=torch.float64)
        for (i, j), w in zip(pairs.tolist(), weights.tolist()):
            g[i, j] += w
            if i != j:
                g[j, i] += w
        g = g.repeat(2, 2)
        z = rows(6, 3, torch.float64)
        value = lambda z: ((z @ z.T - g) ** 2).sum() / 144
        graph = {"pairs": pairs, "weights": weights}
        self.assertAlmostEqual(GraphLoss("vic2")(z, **graph).item(), value(z).item(), places=12)
        self.assertAlmostEqual(GraphLoss("scl")(z, **graph).item(), value(F.normalize(z, dim=1)).item(), places=12)
        self.assertAlmostEqual(GraphLoss("sampled_vic2")(z, **graph).item(), value(z).item() - (g ** 2).sum().item() / 144, places=12)
        for kind in ("vicreg", "vic2", "scl", "sampled_vic2", "simclr", "barlow"):
            leaf = rows(6, 3, torch.float64).requires_grad_()
            self.assertTrue(torch.autograd.gradcheck(lambda z: GraphLoss(kind)(z, **graph), (leaf,)), kind)
        repelled = torch.tensor([[0, 7], [3, 3], [0, 7]])
        listed = GraphLoss("sampled_vic2")(z, repelled=repelled, repelled_probability=torch.tensor([0.5, 1.0, 0.5]), views_weight=0.0)
        self.assertAlmostEqual(listed.item(), (4 * (z[0] @ z[7]) ** 2 + (z[3] @ z[3]) ** 2).item() / 144, places=12)

    def test_bad_input_gives_a_sentence(self):
        z = rows(6, 3, torch.float32)
        for words, call in [("sample", lambda: GraphLoss("vic2")(z, pairs=torch.tensor([[0, 6]]))),
                            ("twice", lambda: GraphLoss("vic2")(z, pairs=torch.tensor([[0, 1], [0, 1]]), weights=torch.tensor([1.0, 2.0]))),
                            ("multiple of views", lambda: GraphLoss("vic2")(z, views=5)),
                            ("loss.lambda", lambda: GraphLoss("barlow", lambd=1)(z)),
                            ("support", lambda: GraphLoss("nnclr")(z)),
                            ("labels", lambda: GraphLoss("mse")(z)),
                            ("finite", lambda: GraphLoss("vic2")(z, pairs=torch.tensor([[0, 1]]), weights=torch.tensor([float("nan")])))]:
            with self.assertRaises(ValueError, msg=words) as raised:
                call()
            self.assertIn(words, str(raised.exception))

    def test_pairs_of_a_batch(self):
        pairs, weights = torch.tensor([[7, 2], [2, 9], [1, 7]]), torch.tensor([1.0, -1.0, 2.0])
        at, kept = pairs_of_batch(pairs, weights, torch.tensor([2, 5, 7]))
        self.assertEqual((at.tolist(), kept.tolist()), ([[2, 0]], [1.0]))

    def test_files_of_pairs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            for text, expected in [("i,j,weight\n0,1,-0.5\n2,3,1\n", [-0.5, 1.0]), ("i,j\n0,1\n2,3\n", [1.0, 1.0]),
                                   ("0,1\n2,3,0.25\n", [1.0, 0.25])]:
                file.seek(0)
                file.truncate()
                file.write(text)
                file.flush()
                pairs, weights = read_pairs(file.name)
                self.assertEqual((pairs.tolist(), weights.tolist()), ([[0, 1], [2, 3]], expected))

    def test_a_missing_or_unfit_library_gives_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/launch/python")
            shutil.copy(f"{SOURCE}/launch/python/pal_losses.py", f"{folder}/launch/python")
            with open(LIBRARY, "rb") as file:
                library = file.read()
            version = torch.__version__.split("+")[0].encode()
            with open(f"{folder}/other.so", "wb") as file:
                file.write(library.replace(b"pal_torch_ops for torch " + version, b"pal_torch_ops for torch 1.2.3"))
            for name, words in [(None, [f"{folder}/build/libpal_torch_ops.so does not exist", "--target pal_torch_ops"]),
                                ("other.so", ["was built with torch 1.2.3", f"has torch {torch.__version__}"])]:
                env = {key: value for key, value in os.environ.items() if key != "PAL_TORCH_OPS"}
                if name:
                    env["PAL_TORCH_OPS"] = f"{folder}/{name}"
                done = subprocess.run([sys.executable, "-c", "import pal_losses"], cwd=f"{folder}/launch/python", env=env,
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 1)
                self.assertTrue(done.stderr.splitlines()[-1].startswith("ImportError: "), done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)

    def test_example(self):
        for loss in ("vicreg", "vic2"):
            done = subprocess.run([sys.executable, f"{SOURCE}/launch/python/example_graph_loss.py", "--loss", loss], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            before, after = (float(line.split()[3]) for line in done.stdout.splitlines() if line.startswith("rings"))
            self.assertGreater(after, before + 0.1, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
