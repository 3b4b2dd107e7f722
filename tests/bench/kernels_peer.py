#!/usr/bin/env python3
"""kernels_peer: the peers of `pal bench kernels`: what a PyTorch user would call, forward and backward.

    kernels_peer.py --setup DIR --case NAME             installs the packages of the case's peers into DIR
    kernels_peer.py --packages DIR --images FILE        decodes the JPEGs of foolbox into FILE (safetensors, bytes)
    kernels_peer.py --packages DIR --input FILE --case NAME --params JSON --peer NAME --threads N

The last answers lines, as tests/bench/kernels.cpp has them: "check F", "go MS", "end". A peer is a function of the input
tensors that returns a function to be timed: () -> value, {name: output}. solo-learn's and lightly's functions are their
own; the official VICReg is in no package, its three lines stand here ("VICReg idiom").
"""
import glob
import importlib.util
import os
import sys

from peers import run_peer, write_bytes_safetensors


# ---- pairs: (1/M) sum of w |z_i - z_j|^2 over index sets; blocks: the mean over all pairs of one class -----------------

def with_gradient(leaves, loss):
    """What autograd users time: loss forward and backward."""
    for leaf in leaves.values():
        leaf.requires_grad_(True)

    def run():
        for leaf in leaves.values():
            leaf.grad = None
        value = loss()
        value.backward()
        return value, {name: leaf.grad for name, leaf in leaves.items()}
    return run


def pairs_by_index(inputs, params):
    z, i, j, w = inputs["z"], inputs["i"].long(), inputs["j"].long(), inputs["w"]
    return with_gradient({"gradient": z}, lambda: ((z[i] - z[j]).pow(2).sum(1) * w).sum() / len(i))


def pairs_by_index_select(inputs, params):
    z, i, j, w = inputs["z"], inputs["i"].long(), inputs["j"].long(), inputs["w"]
    return with_gradient({"gradient": z}, lambda: ((z.index_select(0, i) - z.index_select(0, j)).pow(2).sum(1) * w).sum() / len(i))


def symmetric_csr(inputs):
    """The symmetric matrix of the pairs in the peers' best format, with its degrees."""
    import torch
    z, i, j, w = inputs["z"], inputs["i"].long(), inputs["j"].long(), inputs["w"]
    both = torch.sparse_coo_tensor(torch.stack([torch.cat([i, j]), torch.cat([j, i])]), torch.cat([w, w]), (len(z), len(z)))
    csr = both.coalesce().to_sparse_csr()
    csr = torch.sparse_csr_tensor(csr.crow_indices().int(), csr.col_indices().int(), csr.values(), csr.shape)
    return csr, torch.zeros(len(z)).index_add_(0, torch.cat([i, j]), torch.cat([w, w])).unsqueeze(1)


def pairs_by_sparse_autograd(inputs, params):
    import torch
    z, count = inputs["z"], len(inputs["i"])
    matrix, degrees = symmetric_csr(inputs)
    return with_gradient({"gradient": z}, lambda: ((degrees * z - torch.sparse.mm(matrix, z)) * z).sum() / count)


def pairs_by_manual_csr(inputs, params):
    z, count = inputs["z"], len(inputs["i"])
    matrix, degrees = symmetric_csr(inputs)

    def run():
        rest = degrees * z - matrix @ z
        return (rest * z).sum() / count, {"gradient": rest * (2 / count)}
    return run


def blocks_by_index_select(inputs, params):
    import torch
    z, labels = inputs["z"], inputs["labels"]
    i, j = torch.triu_indices(len(z), len(z), 1)
    same = labels[i] == labels[j]
    i, j = i[same], j[same]
    return with_gradient({"gradient": z}, lambda: (z.index_select(0, i) - z.index_select(0, j)).pow(2).sum(1).mean())


# ---- covariance: sum of squares off the diagonal / D, both views -------------------------------------------------------

def covariance_vicreg(inputs, params):
    z1, z2 = inputs["z1"], inputs["z2"]

    def off_diagonal(x):
        n = x.shape[0]
        return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()

    def loss():
        total = 0
        for z in (z1, z2):
            x = z - z.mean(dim=0)
            total = total + off_diagonal((x.T @ x) / (len(x) - 1)).pow_(2).sum().div(x.shape[1])
        return total
    return with_gradient({"gradient1": z1, "gradient2": z2}, loss)


def covariance_solo(inputs, params):
    z1, z2 = inputs["z1"], inputs["z2"]
    # Its own file, without the package around it, which wants a torch and a Lightning of 2021.
    path = next(os.path.join(p, "solo/losses/vicreg.py") for p in sys.path if os.path.exists(os.path.join(p, "solo/losses/vicreg.py")))
    spec = importlib.util.spec_from_file_location("solo_vicreg", path)
    solo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(solo)
    return with_gradient({"gradient1": z1, "gradient2": z2}, lambda: solo.covariance_loss(z1, z2))


def covariance_lightly(inputs, params):
    from lightly.loss.vicreg_loss import covariance_loss
    z1, z2 = inputs["z1"], inputs["z2"]
    return with_gradient({"gradient1": z1, "gradient2": z2}, lambda: covariance_loss(z1) + covariance_loss(z2))


# ---- SimCLR of unit rows 2k, 2k + 1 ------------------------------------------------------------------------------------

def simclr_dense(inputs, params):
    import torch
    import torch.nn.functional as F
    z = inputs["z"]
    partner = torch.arange(len(z)) ^ 1

    def loss():
        return F.cross_entropy((z @ z.T / params["temperature"]).fill_diagonal_(float("-inf")), partner)
    return with_gradient({"gradient": z}, loss)


# ---- nearest: exact neighbors; an index and the norms of its rows are made before, ours takes the rows as they are -----

def nearest_faiss(inputs, params):
    import faiss
    import torch
    import torch.nn.functional as F
    support, queries, k = inputs["support"], inputs["queries"], params["k"]
    cosine = params["metric"] == "cosine"
    index = (faiss.IndexFlatIP if cosine else faiss.IndexFlatL2)(support.shape[1])
    index.add((F.normalize(support) if cosine else support).numpy())

    def run():
        scores, ids = index.search((F.normalize(queries) if cosine else queries).numpy(), k)
        return 0, {"scores": torch.from_numpy(scores), "ids": torch.from_numpy(ids)}
    return run


def nearest_torch(inputs, params):
    import torch.nn.functional as F
    support, queries, k = inputs["support"], inputs["queries"], params["k"]
    if params["metric"] == "cosine":
        rows = F.normalize(support)

        def run():
            scores, ids = (F.normalize(queries) @ rows.T).topk(k)
            return 0, {"scores": scores, "ids": ids}
    else:
        squares = support.pow(2).sum(1)

        def run():
            distances = queries.pow(2).sum(1, keepdim=True) + squares - 2 * queries @ support.T
            scores, ids = distances.topk(k, largest=False)
            return 0, {"scores": scores, "ids": ids}
    return run


# ---- augment: torchvision's own functions with the parameters that ours drew -------------------------------------------

def augment_with(inputs, params, dtype):
    import torch
    from concurrent.futures import ThreadPoolExecutor
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional as F
    size, drawn = params["pixels"], inputs.pop("params").tolist()
    images = [inputs[name].permute(2, 0, 1) for name in sorted(inputs)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # an image per thread is what serves small images best, as a loader's workers do
    pool = ThreadPoolExecutor(threads)
    kernel = size // 20 * 2 + 1 if size >= 40 else 3
    jitter = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]

    def view(line, image):
        top, left, height, width, flip, color, gray, blur, solarize, sigma = line[:10]
        x = F.crop(image, int(top), int(left), int(height), int(width))
        if dtype != torch.uint8:
            x = F.to_dtype(x, dtype, scale=True)
        x = F.resize(x, [size, size], InterpolationMode.BICUBIC, antialias=True)
        if dtype != torch.uint8:
            x = x.clamp_(0, 1)
        if flip:
            x = F.horizontal_flip(x)
        for step in map(int, line[10:14] if color else []):
            x = jitter[step](x, line[14 + step])
        if gray:
            x = F.rgb_to_grayscale(x, num_output_channels=3)
        if blur:
            x = F.gaussian_blur(x, [kernel, kernel], [sigma, sigma])
        if solarize:
            x = F.solarize(x, 128 if dtype == torch.uint8 else 0.5)
        x = F.to_dtype(x, torch.float32, scale=True)
        return F.normalize(x, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])

    def run():
        return 0, {"views": torch.stack(list(pool.map(view, drawn, images + images)))}
    return run


def augment_float(inputs, params):
    import torch
    return augment_with(inputs, params, torch.float32)


def augment_bytes(inputs, params):
    import torch
    return augment_with(inputs, params, torch.uint8)


COVARIANCE = {"VICReg idiom": covariance_vicreg, "solo-learn": covariance_solo, "lightly": covariance_lightly}
NEAREST = {"faiss IndexFlat": nearest_faiss, "torch mm+topk": nearest_torch}
# ---- optimizers: one update from gradients that lie ready --------------------------------------------------------------

def leaves_of(inputs):
    """Parameters with their gradients, by name; convolutions channels-last, as training on a CPU wants them."""
    import torch
    leaves = {}
    for name, tensor in inputs.items():
        if name.startswith("p."):
            layout = torch.channels_last if tensor.dim() == 4 else torch.contiguous_format
            leaf = tensor.clone().contiguous(memory_format=layout).requires_grad_()
            leaf.grad = inputs["g." + name[2:]].contiguous(memory_format=layout)
            leaves[name[2:]] = leaf
    return leaves


def shown(leaves):
    names = ("backbone.conv1.weight", "backbone.bn1.bias", "projector.0.weight")
    return 0.0, {name: leaves[name].detach() for name in names}


def optim_adamw(**how):
    def peer(inputs, params):
        import torch
        leaves = leaves_of(inputs)
        groups = [{"params": [p for p in leaves.values() if (p.dim() > 1) == decays], "weight_decay": 1e-4 * decays} for decays in (True, False)]
        optimizer = torch.optim.AdamW(groups, lr=params["lr"], **how)

        def run():
            optimizer.step()
            return shown(leaves)
        return run
    return peer


def optim_lars(inputs, params):
    """The update of the official VICReg code, parameter by parameter; 1-D ones without decay and adaptation."""
    import torch
    leaves, lr, decay, momentum, eta = leaves_of(inputs), params["lr"], 1e-4, 0.9, 1e-3
    buffers = {name: torch.zeros_like(p) for name, p in leaves.items()}

    @torch.no_grad()
    def run():
        for name, p in leaves.items():
            dp = p.grad
            if p.ndim > 1:
                dp = dp.add(p, alpha=decay)
                norm, update_norm, one = torch.norm(p), torch.norm(dp), torch.ones_like(p[(0,) * p.ndim])
                dp = dp.mul(torch.where(norm > 0.0, torch.where(update_norm > 0, eta * norm / update_norm, one), one))
            mu = buffers[name]
            mu.mul_(momentum).add_(dp)
            p.add_(mu, alpha=-lr)
        return shown(leaves)
    return run


PEERS = {
    "pairs": {"z[I]": pairs_by_index, "index_select": pairs_by_index_select, "sparse CSR autograd": pairs_by_sparse_autograd,
              "manual CSR spmm": pairs_by_manual_csr},
    "blocks": {"index_select": blocks_by_index_select},
    "covariance-wide": COVARIANCE,
    "covariance-tall": COVARIANCE,
    "simclr": {"dense matrix": simclr_dense},
    "nearest": NEAREST,
    "nearest-euclidean": NEAREST,
    "lars": {"official LARS": optim_lars},
    "adamw": {"AdamW fused": optim_adamw(fused=True), "AdamW foreach": optim_adamw(foreach=True)},
    "augment": {"torchvision v2 float": augment_float, "torchvision v2 bytes": augment_bytes},
}
PACKAGES = {
    "covariance-wide": ["solo-learn", "lightly", "torchvision", "pillow"],
    "covariance-tall": ["solo-learn", "lightly", "torchvision", "pillow"],
    "nearest": ["faiss-cpu", "packaging"],
    "nearest-euclidean": ["faiss-cpu", "packaging"],
    "augment": ["torchvision", "pillow", "foolbox"],
}


def decode_images(packages, path):
    import numpy
    from PIL import Image
    files = sorted(glob.glob(os.path.join(packages, "foolbox/data/imagenet_*.jpg")))
    write_bytes_safetensors(path, {f"{k:02}": numpy.asarray(Image.open(f).convert("RGB")) for k, f in enumerate(files)})


if __name__ == "__main__":
    sys.exit(run_peer("kernels_peer", PEERS, PACKAGES, decode_images))
