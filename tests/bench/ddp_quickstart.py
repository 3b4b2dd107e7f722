#!/usr/bin/env python3
"""ddp_quickstart: the Python peer of `pal bench step --case quickstart`: the quickstart's network and loader.

What a PyTorch user would write: Fashion-MNIST through torchvision's transforms on PIL images in a DataLoader with one
worker per rank, the same small network, the official VICReg loss with its gathering layer, DDP over gloo, fused AdamW, local
batch norm. Arguments, requests and answers are those of ddp_step.py; --input is the folder of the IDX files.
"""
import gzip
import os
import sys

import ddp_step


def read_images(folder):
    import numpy
    path = os.path.join(folder, "train-images-idx3-ubyte")
    opened = gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb")
    with opened as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 28, 28)


class TwoViews:
    """Two augmented views of each image, by torchvision on PIL, as configs/quickstart.yaml asks for."""

    def __init__(self, images):
        from torchvision import transforms
        self.images = images
        self.transform = transforms.Compose([
            transforms.RandomResizedCrop(28, scale=(0.4, 1.0)),
            transforms.RandomHorizontalFlip(0.5),
            transforms.RandomApply([transforms.ColorJitter(0.4, 0.4)], p=0.8),
            transforms.ToTensor(),
            transforms.Normalize([0.286], [0.353]),
        ])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        from PIL import Image
        image = Image.fromarray(self.images[index])
        return self.transform(image), self.transform(image)


def build_model(layout):
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            layers, channels = [], 1
            for width in (16, 32, 64, 256):
                layers += [nn.Conv2d(channels, width, 3, stride=2 if layers else 1, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                channels = width
            self.backbone = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.projector = nn.Sequential(nn.Linear(256, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(inplace=True),
                                           nn.Linear(256, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(inplace=True),
                                           nn.Linear(256, 128, bias=False))

        def forward(self, x, y):
            z = self.projector(self.backbone(torch.cat([x, y])))
            return z[: x.shape[0]], z[x.shape[0]:]

    return Model().to(memory_format=layout)


class QuickstartPeer(ddp_step.Peer):
    def __init__(self, given):
        import torch
        from torch.nn.parallel import DistributedDataParallel
        ddp_step.join(given)
        torch.manual_seed(0)
        self.layout = torch.channels_last if given.channels_last else torch.contiguous_format
        model = build_model(self.layout)
        self.model = DistributedDataParallel(model, forward_sync_buffers=False, gradient_as_bucket_view=True)
        parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 1e-4},
                                            {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}], lr=0.003, fused=True)
        data = TwoViews(read_images(given.input))
        sampler = torch.utils.data.DistributedSampler(data, given.ranks, given.rank)
        self.loader = torch.utils.data.DataLoader(data, batch_size=256 // given.ranks, sampler=sampler, num_workers=1, prefetch_factor=3,
                                                  drop_last=True, persistent_workers=True)
        self.batches, self.gather = self.forever(), ddp_step.make_gather()

    def forever(self):
        while True:
            yield from self.loader

    def next_batch(self):
        return next(self.batches)


if __name__ == "__main__":
    sys.exit(ddp_step.main(QuickstartPeer))
