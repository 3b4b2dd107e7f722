#!/usr/bin/env python3
"""pal bench kernels and graph from the outside, at small sizes: its table, its JSON, its refusals. The figures are not checked.

usage: bench_cli_test.py PAL SOURCE PYTHON [test names]     (PYTHON has torch; the cases here need no other package)
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PAL, SOURCE, PYTHON = (os.path.abspath(path) for path in sys.argv[1:4])
PEER = f"{SOURCE}/tests/bench/kernels_peer.py"


class Bench(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="pal-bench-test-")
        self.folder = self.temporary.name

    def tearDown(self):
        self.temporary.cleanup()

    def bench(self, *args, code=0, peer=PEER, python=PYTHON, suite="kernels"):
        done = subprocess.run([PAL, "bench", suite, "--quick", "--turns", "2", "--turn-ms", "0", "--python", python, "--peer", peer,
                               "--packages", f"{self.folder}/packages", *args], cwd=self.folder, capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_table_and_json(self):
        done = self.bench("--case", "pairs", "--case", "blocks", "--json", "out.json")
        with open(f"{self.folder}/out.json", encoding="utf-8") as file:
            out = json.load(file)
        self.assertGreater(out["machine"]["copy_gb_s"], 0)
        self.assertGreater(out["machine"]["sgemm_gf_s"], 0)
        self.assertEqual([(r["name"], r["peer"]) for r in out["results"]],
                         [("pairs", "z[I]"), ("pairs", "index_select"), ("pairs", "sparse CSR autograd"), ("pairs", "manual CSR spmm"),
                          ("blocks", "index_select"), ("blocks", "ours, 2 classes"), ("blocks", "ours, 100 classes")])
        for result in out["results"]:
            self.assertIn(result["peer"], done.stdout)
            self.assertLessEqual(result["difference"], 1e-5)
            self.assertEqual(len(result["ours_samples_ms"]), 2)
            self.assertEqual(len(result["peer_samples_ms"]), 2)
            for name in ("ours_ms", "peer_ms", "ratio", "ours_peak_mb", "peer_peak_mb", "ours_gb_s"):
                self.assertGreater(result[name], 0, name)
            for name in ("noise", "ours_extra_mb", "peer_extra_mb"):
                self.assertGreaterEqual(result[name], 0, name)
        self.assertEqual(out["results"][0]["params"], {"N": 256, "D": 40, "M": 1000})

    def test_the_graph_store(self):
        self.bench("--case", "relation", "--json", "out.json", suite="graph", peer=f"{SOURCE}/tests/bench/graph_peer.py")
        with open(f"{self.folder}/out.json", encoding="utf-8") as file:
            results = json.load(file)["results"]
        self.assertEqual([(r["name"], r["peer"], r["difference"]) for r in results], [("relation", "networkx union-find", 0)])
        self.assertGreater(results[0]["peer_ms"], 0)

    def test_a_peer_with_other_results_is_not_timed(self):
        for path in ("tests/bench/kernels_peer.py", "tests/bench/peers.py", "launch/setup.d/versions.lock", "launch/setup.d/hashes.lock"):
            os.makedirs(os.path.dirname(f"{self.folder}/{path}"), exist_ok=True)
            shutil.copy(f"{SOURCE}/{path}", f"{self.folder}/{path}")
        peer = f"{self.folder}/tests/bench/kernels_peer.py"
        with open(peer, encoding="utf-8") as file:
            text = file.read()
        with open(peer, "w", encoding="utf-8") as file:
            file.write(text.replace("return F.cross_entropy(", "return 1.001 * F.cross_entropy("))
        done = self.bench("--case", "simclr", "--case", "blocks", "--json", "out.json", code=1, peer=peer)
        self.assertRegex(done.stderr, r"simclr: ours and dense matrix do not compute the same; difference: 1\.0e-03")
        with open(f"{self.folder}/out.json", encoding="utf-8") as file:
            self.assertEqual({r["name"] for r in json.load(file)["results"]}, {"blocks"})   # the others are

    def test_refusals(self):
        self.assertIn("there is no Python with torch here: nowhere", self.bench(code=2, python="nowhere").stderr)
        self.assertIn("the script of the peer does not exist: gone.py", self.bench(code=2, peer="gone.py").stderr)
        self.assertIn("--case", self.bench("--case", "nonsense", code=2).stderr)

    def test_a_large_set_is_opened_by_four_processes(self):
        done = subprocess.run([PAL, "bench", "data", "--images", "0", "--records", "50000", "--json", "out.json"], cwd=self.folder,
                              capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(f"{self.folder}/out.json", encoding="utf-8") as file:
            large = json.load(file)["large_set"]
        self.assertEqual(len(large), 4)
        for process in large:
            self.assertEqual(process["checksum"], 50000 * 49999)   # each sample once, in both orders of an epoch
            self.assertGreater(process["open_s"], 0)
            self.assertGreaterEqual(process["rss_mb"], process["pss_mb"])
            self.assertGreaterEqual(process["pss_mb"], process["own_mb"])
            self.assertGreater(process["own_mb"], 1)
            self.assertLess(process["rss_mb"] - process["libraries_rss_mb"], 60)   # of the set alone
            full, windows = process["classes_in_a_batch"]
            self.assertAlmostEqual(full, 1000 * (1 - 0.999 ** 256), delta=3)
            self.assertGreater(windows, 0.85 * full)
        self.assertEqual(os.listdir(self.folder), ["out.json"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
