#!/usr/bin/env python3
"""Weights and features beside the peers' own models: pal export in torchvision's ResNets, published ViTs in ours, pal embed's
files in h5py and numpy, TensorBoard's own reader on our event files; the quickstart's recipe beside lightly's, a few steps.

usage: weights_test.py PAL SOURCE PACKAGES [test names]     (run by the python that has torch; peers go to PACKAGES)
"""
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

PAL, SOURCE, PACKAGES = (os.path.abspath(path) for path in sys.argv[1:4])
sys.path.insert(0, f"{SOURCE}/tests/bench")

import numpy as np
import torch

from peers import install, read_safetensors, write_safetensors

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
CONFIG = f"""
data: {{train: set.h5, test: set-test.h5, threads: 1}}
augment: {{mean: {MEAN}, std: {STD}}}
model: {{projector: [16, 8]}}
train: {{global_batch: 8, steps: 2, seed: 3, threads: 2}}
optim: {{kind: sgd, lr: 0.01}}
log: {{every: 1}}
"""


def make_cifar(folder):
    rng = random.Random(1)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        with open(f"{folder}/{name}", "wb") as file:
            for i in range(4 if name != "test_batch.bin" else 7):
                file.write(bytes([i % 10]) + bytes(rng.randrange(256) for _ in range(3072)))
    with open(f"{folder}/batches.meta.txt", "w", encoding="ascii") as file:
        file.write("\n".join("abcdefghij") + "\n")


class Weights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert install(PACKAGES, ["lightly", "torchvision", "pillow", "h5py", "timm", "tensorboard", "protobuf", "absl-py", "packaging"]) == 0, "the peers cannot be installed"
        sys.path.insert(0, PACKAGES)
        cls.folder = tempfile.mkdtemp(prefix="pal-weights-test-")
        os.makedirs(f"{cls.folder}/cifar")
        make_cifar(f"{cls.folder}/cifar")
        with open(f"{cls.folder}/c.yaml", "w", encoding="ascii") as file:
            file.write(CONFIG)
        cls.pal(cls, "data", "import", "cifar10", "cifar", "set.h5")
        with open(f"{cls.folder}/cifar/test_batch.bin", "rb") as file:
            raw = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32)
        scaled = torch.from_numpy(raw.copy()).float() / 255
        cls.images = (scaled - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def pal(self, *args, code=0):
        done = subprocess.run([PAL, *args], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
        if done.returncode != code:
            raise AssertionError(f"pal {' '.join(args)} gave exit code {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout

    def features(self, run):
        """Of the test set, by pal embed."""
        self.pal("embed", run, "test", "--out", f"{run}.npy")
        return torch.from_numpy(np.load(f"{self.folder}/{run}.npy"))

    def close(self, ours, peer, bound=1e-4):
        self.assertEqual(ours.shape, peer.shape)
        self.assertGreater(peer.std().item(), 1e-3)
        self.assertLess((ours - peer).abs().max().item() / peer.abs().max().item(), bound)

    # ---- export --------------------------------------------------------------------------------------------------

    def check_resnet(self, name, stem):
        import torchvision
        run = f"{name}-{stem}"
        self.pal("train", "c.yaml", f"model.backbone={name}", f"model.stem={stem}", "--run-dir", run)
        out = self.pal("export", run, "--out", f"{run}.safetensors")
        self.assertIn(f"torchvision.models.{name}", out)
        tensors, about = read_safetensors(f"{self.folder}/{run}.safetensors")
        self.assertEqual((about["pal_backbone"], about["pal_step"]), (name, "2"))
        m = getattr(torchvision.models, name)()
        m.fc = torch.nn.Identity()
        if stem == "cifar":
            m.conv1, m.maxpool = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False), torch.nn.Identity()
        m.load_state_dict(tensors)
        with torch.no_grad():
            self.close(self.features(run), m.eval()(self.images))

    def test_resnet18_in_torchvision(self):
        self.check_resnet("resnet18", "imagenet")

    def test_resnet18_with_the_cifar_stem(self):
        self.check_resnet("resnet18", "cifar")

    def test_resnet50_in_torchvision(self):
        self.check_resnet("resnet50", "imagenet")

    def test_all_parts(self):
        self.pal("train", "c.yaml", "model.backbone=convnet", "--run-dir", "parts")
        self.pal("export", "parts", "--out", "all.safetensors", "--part", "all")
        names = set(read_safetensors(f"{self.folder}/all.safetensors")[0])
        self.assertIn("projector.0.weight", names)
        self.assertIn("backbone.blocks.0.conv.weight", names)

    # ---- published weights ------------------------------------------------------------------------------------------

    def begin_with(self, run, weights, *settings, code=0):
        """A run of one step that moves nothing, from these weights: name -> tensor."""
        write_safetensors(f"{self.folder}/{run}.safetensors", weights)
        return self.pal("train", "c.yaml", f"model.init={run}.safetensors", "train.steps=1", "optim.lr=0", "optim.weight_decay=0", *settings,
                        "--run-dir", run, code=code)

    def check_vit(self, name, run, size, patch, *settings, prefix="", model_size=None, **more):
        import timm
        torch.manual_seed(1)
        m = timm.create_model(name, img_size=model_size or size, patch_size=patch, num_classes=0, **more)
        for p in m.parameters():
            torch.nn.init.normal_(p, std=0.05) if p.dim() > 1 else torch.nn.init.uniform_(p, 0.5, 1.5)
        head = {f"{prefix}head.weight": torch.zeros(10, m.num_features)}
        self.begin_with(run, {prefix + n: t for n, t in m.state_dict().items()} | head, f"data.size={size}", f"model.patch={patch}", *settings)
        images = torch.nn.functional.interpolate(self.images, size=size, mode="bilinear", antialias=True, align_corners=False) if size != 32 else self.images
        if model_size:
            m.set_input_size(img_size=size)
        with torch.no_grad():
            self.close(self.features(run), m.eval()(images))

    def test_vit_small_of_timm(self):
        self.check_vit("vit_small_patch16_224", "vits16", 32, 16, "model.backbone=vit_s")

    def test_vit_small_with_patches_of_4_as_dino_names_it(self):
        self.check_vit("vit_small_patch16_224", "vits4", 32, 4, "model.backbone=vit_s", "model.drop_path=0.2", prefix="module.backbone.")

    def test_vit_base_with_patches_of_14(self):
        self.check_vit("vit_base_patch16_224", "vitb14", 28, 14, "model.backbone=vit_b")

    def test_vit_with_layer_scale_as_dino_v2_has_it(self):
        self.check_vit("vit_small_patch14_dinov2", "vits14-scaled", 28, 14, "model.backbone=vit_s", init_values=1.0)

    def test_positions_of_another_size_are_resampled_as_in_timm(self):
        self.check_vit("vit_small_patch16_224", "vits-resampled", 32, 8, "model.backbone=vit_s", model_size=64)

    def test_vit_of_torchvision(self):
        from torchvision.models.vision_transformer import VisionTransformer
        torch.manual_seed(2)
        m = VisionTransformer(32, 16, 12, 6, 384, 1536)
        for p in m.parameters():
            torch.nn.init.normal_(p, std=0.05) if p.dim() > 1 else torch.nn.init.uniform_(p, 0.5, 1.5)
        self.begin_with("vit-torchvision", m.state_dict(), "data.size=32", "model.backbone=vit_s")
        m.heads = torch.nn.Identity()
        with torch.no_grad():
            self.close(self.features("vit-torchvision"), m.eval()(self.images))

    def test_vit_exports_to_timm(self):
        import timm
        self.pal("train", "c.yaml", "model.backbone=vit_s", "model.patch=8", "data.size=32", "--run-dir", "vit-export")
        self.assertIn("timm.create_model", self.pal("export", "vit-export", "--out", "vit-export.safetensors"))
        m = timm.create_model("vit_small_patch16_224", img_size=32, patch_size=8, num_classes=0)
        m.load_state_dict(read_safetensors(f"{self.folder}/vit-export.safetensors")[0])
        with torch.no_grad():
            self.close(self.features("vit-export"), m.eval()(self.images))

    def test_resnet_weights_begin_a_run(self):
        import torchvision
        torch.manual_seed(3)
        state = torchvision.models.resnet18().state_dict()
        for prefix in ("", "module.backbone.", "backbone.", "teacher.backbone."):
            run = f"init-{prefix}r18"
            out = self.begin_with(run, {prefix + n: t for n, t in state.items()}, "model.backbone=resnet18", "model.stem=imagenet")
            self.assertRegex(" ".join(out.split()), rf"begins with {run}.safetensors: 120 tensors.*2 ignored \({prefix}fc\.bias, {prefix}fc\.weight\)")
            after = read_safetensors(f"{self.folder}/{run}/checkpoints/step-1/model.safetensors")[0]
            for name in ("conv1.weight", "layer4.1.conv2.weight", "layer2.0.downsample.0.weight"):
                self.assertTrue(torch.equal(after["backbone." + name], state[name]), prefix + name)

    def test_weights_that_do_not_fit_are_reported(self):
        import torchvision
        state = torchvision.models.resnet18().state_dict()
        out = self.begin_with("wrong-stem", state, "model.backbone=resnet18", "model.stem=cifar", code=3)
        self.assertIn("conv1.weight has shape (64, 3, 7, 7), not (64, 3, 3, 3)", out)
        out = self.begin_with("wrong-depth", state, "model.backbone=resnet34", "model.stem=imagenet", code=3)
        self.assertRegex(out, r"error: .*layer1\.2\.\S+ is missing, .* and \d+ more; choose")
        out = self.begin_with("too-deep", torchvision.models.resnet34().state_dict(), "model.backbone=resnet18", "model.stem=imagenet", code=3)
        self.assertRegex(out, r"error: .*layer1\.2\.\S+ is not in this backbone, .* and \d+ more; choose")
        out = self.begin_with("wrong-model", {"a.weight": torch.zeros(3), "b.bias": torch.zeros(2)}, "model.backbone=resnet18", code=3)
        self.assertIn("its first names are: a.weight, b.bias; choose", out)
        self.assertRegex(self.pal("train", "c.yaml", "model.init=w.pth", "--run-dir", "pickle", code=3), "error: .*pickle.*convert")
        self.assertRegex(self.pal("train", "c.yaml", "model.init=none.safetensors", "--run-dir", "none", code=3), "error: cannot read none.safetensors")
        self.assertRegex(self.pal("train", "c.yaml", "model.backbone=vit_s", "--run-dir", "no-size", code=2), "error: .*data.size")
        self.assertRegex(self.pal("train", "c.yaml", "model.backbone=vit_s", "data.size=30", "--run-dir", "odd-size", code=2), "error: .*model.patch=16: 30")

    def test_a_file_with_overflowing_lengths(self):
        for name, header in {"long": {"w": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 8]}},
                             "beyond": {"w": {"dtype": "F32", "shape": [4], "data_offsets": [2**63 - 8, 2**63 + 8]}},
                             "backwards": {"w": {"dtype": "F32", "shape": [0], "data_offsets": [8, 4]}}}.items():
            text = json.dumps(header).encode()
            with open(f"{self.folder}/{name}.safetensors", "wb") as file:
                file.write(len(text).to_bytes(8, "little") + text + bytes(8))
            self.assertRegex(self.pal("train", "c.yaml", f"model.init={name}.safetensors", "--run-dir", f"bad-{name}", code=3), "error: bad safetensors file")
        with open(f"{self.folder}/huge.safetensors", "wb") as file:
            file.write(b"\xff" * 8 + b"{}")
        self.assertRegex(self.pal("train", "c.yaml", "model.init=huge.safetensors", "--run-dir", "bad-huge", code=3), "error: bad safetensors file")

    # ---- the whole recipe beside lightly's ----------------------------------------------------------------------------

    def write_images(self, folder, split, n):
        """Ten classes of 28 x 28: a bright bar at one of ten heights, and noise."""
        rng = np.random.default_rng(n)
        labels = np.arange(n, dtype=np.uint8) % 10
        images = rng.integers(0, 90, (n, 28, 28), dtype=np.uint8)
        for i, label in enumerate(labels):
            images[i, 2 * label + 3:2 * label + 6] += 120
        for name, magic, shape, data in ((f"{split}-images-idx3-ubyte", 0x803, images.shape, images), (f"{split}-labels-idx1-ubyte", 0x801, labels.shape, labels)):
            with gzip.open(f"{folder}/{name}.gz", "wb", compresslevel=1) as file:
                file.write(magic.to_bytes(4, "big") + b"".join(side.to_bytes(4, "big") for side in shape) + data.tobytes())

    def test_the_quickstart_beside_lightly(self):
        images, out = f"{self.folder}/idx", f"{self.folder}/beside"
        os.makedirs(images)
        self.write_images(images, "train", 600)
        self.write_images(images, "t10k", 300)

        def compare(*args, code=0):
            done = subprocess.run([sys.executable, f"{SOURCE}/tests/bench/fashion_peer.py", "--images", images, "--seeds", "1", "--out", out, *args], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
            self.assertEqual(done.returncode, code, done.stdout)
            return done.stdout

        first = compare("--steps", "6", "--pal", PAL)
        self.assertIn("step 6 of 6", first)
        with open(f"{out}/table.json", encoding="ascii") as file:
            table = json.load(file)
        for side in ("peer", "ours"):
            self.assertGreater(table[side][0]["linear"], 0.5)
            self.assertGreater(table[side][0]["seconds"], 0)
        for method in ("linear", "knn"):   # the same network and the same probe; one or two samples may be classified differently
            self.assertLessEqual(abs(table["ours"][0]["here"][method] - table["ours"][0][method]), 2.1 / 300)
        again = compare("--steps", "6", "--runs", out)   # what is there is not made again
        self.assertNotIn("step 6 of 6", again)
        self.assertEqual(again.split("\n\n")[-1], first.split("\n\n")[-1])
        self.assertIn("comparison of other settings", compare("--steps", "7", "--runs", out, code=1))
        config = f"{out}/ssl-0/config.yaml"
        with open(config, encoding="utf-8") as file:
            text = file.read()
        with open(config, "w", encoding="utf-8") as file:
            file.write(text.replace("  lr: 0.003", "  lr: 0.004"))
        self.assertIn("another recipe: optim.lr is 0.004, not 0.003", compare("--steps", "6", "--runs", out, code=1))

    # ---- features and events -------------------------------------------------------------------------------------------

    def test_features_in_h5py_and_numpy(self):
        import h5py
        self.pal("train", "c.yaml", "model.backbone=convnet", "--run-dir", "f")
        self.pal("embed", "f", "set-test.h5", "--out", "f.h5")
        flat = self.features("f")
        with h5py.File(f"{self.folder}/f.h5", "r") as file:
            self.assertEqual(file["features"].shape, (7, 128))
            self.assertTrue(np.array_equal(file["features"][:], flat.numpy()))
            self.assertEqual(file["labels"][:].tolist(), list(range(7)))
            self.assertEqual(file.attrs["pal_step"], b"2")
            self.assertEqual(len(file["ids"]), 7)
        self.assertEqual(np.load(f"{self.folder}/f-labels.npy").tolist(), list(range(7)))
        self.pal("embed", "f", "train", "--out", "p.h5", "--features", "projector")
        with h5py.File(f"{self.folder}/p.h5", "r") as file:
            self.assertEqual(file["features"].shape, (20, 8))
        self.assertRegex(self.pal("embed", "f", "test", "--out", "f.txt", code=2), "error: .*end it with .h5 or .npy")

    def test_tensorboard_reads_the_events(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        self.pal("train", "c.yaml", "model.backbone=convnet", "train.steps=6", "checkpoint.every=3", "--run-dir", "tb")
        with open(f"{self.folder}/tb/metrics.jsonl", encoding="ascii") as file:
            lines = [json.loads(line) for line in file][:-1]
        read = EventAccumulator(f"{self.folder}/tb/tb").Reload()
        for tag, value in {"loss": lambda l: l["loss"], "terms/variance": lambda l: l["terms"]["variance"], "lr": lambda l: l["lr"]}.items():
            events = read.Scalars(tag)
            self.assertEqual([e.step for e in events], [l["step"] for l in lines])
            np.testing.assert_allclose([e.value for e in events], [value(l) for l in lines], rtol=1e-6)
        # A run that resumes at step 3 leaves one curve: the later points of the first start are dropped.
        shutil.rmtree(f"{self.folder}/tb/checkpoints/step-6")
        self.pal("train", "c.yaml", "model.backbone=convnet", "train.steps=6", "checkpoint.every=3", "--run-dir", "tb")
        self.assertEqual([e.step for e in EventAccumulator(f"{self.folder}/tb/tb").Reload().Scalars("loss")], [1, 2, 3, 4, 5, 6])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
