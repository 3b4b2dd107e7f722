#!/usr/bin/env python3
"""data_peer: the peers of `pal bench data`: JPEG files to two VICReg views, as a PyTorch user would load them.

    data_peer.py --setup DIR                              installs the peers' packages into DIR
    data_peer.py --packages DIR --make FOLDER --images N  writes N baseline JPEGs (348-500 pixels, foolbox's images)
    data_peer.py --packages DIR --serve FOLDER --peer NAME --size P --batch B --workers W

The last form answers commands: "turn" loads every file once; "compare FILE" reads our views and prints the distance of
torchvision's decode, crop and resize of the same boxes; "end". A peer is PIL (decode and transforms), tensors
(decode_jpeg and torchvision's v2 transforms), or ffcv. A peer that is not available reports that instead of "ready".
"""
import argparse
import glob
import os
import random
import sys
import time

import ffcv_peer
from peers import install, peak_mb, read_safetensors, say

PACKAGES = ["torchvision", "pillow", "foolbox"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def make(packages, folder, images):
    """Crops of the packaged images at several sizes and qualities: all different, all with real content."""
    from PIL import Image
    sources = [Image.open(path).convert("RGB") for path in sorted(glob.glob(f"{packages}/foolbox/data/imagenet_*.jpg"))]
    assert sources, f"no images in {packages}/foolbox/data"
    chance = random.Random(1)
    for k in range(images):
        width, height = (chance.choice((348, 375, 400, 448, 500)) for _ in range(2))
        image = sources[k % len(sources)]
        part = chance.uniform(0.6, 1)
        side = int(part * min(image.size))
        left, top = chance.randrange(image.size[0] - side + 1), chance.randrange(image.size[1] - side + 1)
        image = image.crop((left, top, left + side, top + side)).resize((width, height), Image.BICUBIC)
        image.save(f"{folder}/{k:06d}.jpg", quality=chance.choice((85, 90, 95)), subsampling=2)


def pil_views(size):
    from PIL import ImageFilter
    from torchvision import transforms as t

    class Blur:
        def __init__(self, p):
            self.p = p

        def __call__(self, image):
            return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0))) if random.random() < self.p else image

    def view(blur, solarize):
        return t.Compose([t.RandomResizedCrop(size), t.RandomHorizontalFlip(), t.RandomApply([t.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
                          t.RandomGrayscale(p=0.2), Blur(blur), t.RandomSolarize(128, p=solarize), t.ToTensor(), t.Normalize(MEAN, STD)])
    return view(1.0, 0.0), view(0.1, 0.2)


def tensor_views(size):
    import torch
    from torchvision.transforms import v2 as t

    def view(blur, solarize):
        return t.Compose([t.RandomResizedCrop(size, antialias=True), t.RandomHorizontalFlip(),
                          t.RandomApply([t.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8), t.RandomGrayscale(p=0.2),
                          t.RandomApply([t.GaussianBlur(2 * (size // 20) + 1, (0.1, 2.0))], p=blur), t.RandomSolarize(128, p=solarize),
                          t.ToDtype(torch.float32, scale=True), t.Normalize(MEAN, STD)])
    return view(1.0, 0.0), view(0.1, 0.2)


class Files:
    """A map-style data set of (view, view)."""

    def __init__(self, files, peer, size):
        self.files, self.peer = files, peer
        self.views = (pil_views if peer == "PIL" else tensor_views)(size)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, k):
        if self.peer == "PIL":
            from PIL import Image
            image = Image.open(self.files[k]).convert("RGB")
        else:
            from torchvision.io import ImageReadMode, decode_jpeg, read_file
            image = decode_jpeg(read_file(self.files[k]), mode=ImageReadMode.RGB)
        return tuple(view(image) for view in self.views)


def cpu_seconds(pids):
    """User and system time of this process and of its workers."""
    total = sum(os.times()[:2])
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def compare(files, path):
    """The largest and the mean distance in steps of 1/255 of our views (before color and normalization) from torchvision's."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms.v2 import functional as f
    given, _ = read_safetensors(path)
    worst, mean = 0.0, []
    for view, box, sample in zip(given["views"], given["boxes"].tolist(), given["samples"].tolist()):
        image = decode_jpeg(read_file(files[sample]), mode=ImageReadMode.RGB).to(torch.float32) / 255
        want = f.resized_crop(image, *box, list(view.shape[1:]), antialias=True)
        apart = (view - want).abs() * 255
        worst = max(worst, float(apart.max()))
        mean.append(float(apart.mean()))
    say(worst=worst, mean=sum(mean) / len(mean))


def loader_turn(given, files):
    """DataLoader: workers stay from turn to turn, and a turn ends when every file was loaded: nothing is left over."""
    import torch
    data = Files(files, given.peer, given.size)
    loader = torch.utils.data.DataLoader(data, batch_size=given.batch, shuffle=True, num_workers=given.workers, persistent_workers=True)

    def turn():
        pids = [w.pid for w in getattr(loader._iterator, "_workers", [])]
        cpu, start, count = cpu_seconds(pids), time.perf_counter(), 0
        for first, _ in loader:
            count += len(first)
        seconds = time.perf_counter() - start
        pids = [w.pid for w in loader._iterator._workers]
        return {"images": count, "seconds": seconds, "cpu_seconds": cpu_seconds(pids) - cpu}
    return turn, lambda: [w.pid for w in loader._iterator._workers]


def workers_peak(pids):
    total = peak_mb()
    for pid in pids:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            total += next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    return total


def serve(given):
    import torch
    torch.set_num_threads(1)
    files = sorted(glob.glob(f"{given.serve}/*.jpg"))
    try:
        turn, pids = (ffcv_peer.turn(given, files, MEAN, STD), list) if given.peer == "ffcv" else loader_turn(given, files)
    except ImportError as error:
        return say(ready=False, why=str(error))
    say(ready=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "end":
            break
        if words[0] == "compare":
            compare(files, words[1])
        else:
            say(**turn())
    return say(peak_mb=workers_peak(pids()))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setup")
    parser.add_argument("--packages")
    parser.add_argument("--make")
    parser.add_argument("--images", type=int, default=0)
    parser.add_argument("--serve")
    parser.add_argument("--peer", choices=("PIL", "tensors", "ffcv"), default="PIL")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


def main():
    given = arguments()
    if given.setup:
        ffcv_peer.setup(given.setup)
        return install(given.setup, PACKAGES)
    sys.path.append(given.packages)
    try:
        if given.make:
            make(given.packages, given.make, given.images)
        else:
            serve(given)
    except Exception as error:  # one line for the caller, whatever went wrong
        print(f"data_peer {given.peer}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
