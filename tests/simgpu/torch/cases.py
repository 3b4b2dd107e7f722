"""cases: the settings that whole jobs on the device are compared in with CPU ranks.

AXES holds every value of every setting that touches the device. A case is a value of some axes; the first value stands
for the axes that it does not name. DEFAULT has every value at least once, `pairs()` makes cases with every two values.
"""
import random
import re

import job

# axis: {value: settings}
AXES = {
    "loss": {
        "vicreg": ["loss.kind=vicreg"],
        "vicreg pooled": ["loss.kind=vicreg", "loss.moments=pooled"],
        "vic2": ["loss.kind=vic2"],
        "scl": ["loss.kind=scl"],
        "sampled": ["loss.kind=sampled_vic2", "loss.pairs=120"],
        "sampled halves": ["loss.kind=sampled_vic2", "loss.pairs=120", "loss.draw=halves", "loss.form=printed"],
        "simclr": ["loss.kind=simclr", "loss.temperature=0.5"],
        "barlow": ["loss.kind=barlow"],
        "barlow graph": ["loss.kind=barlow", "loss.barlow=graph"],
        "nnclr": ["loss.kind=nnclr", "loss.queue=40", "model.predictor=[12, 8]", "loss.temperature=0.5"],
        "nnclr batch": ["loss.kind=nnclr", "loss.queue=0", "loss.neighbors=2", "loss.temperature=0.5"],
        "mse": ["loss.kind=mse"],
        "cross_entropy": ["loss.kind=cross_entropy"],
    },
    "graph": {
        "mixed": [],
        "ssl": ["graph.kind=ssl"],
        "supervised": ["graph.kind=supervised"],
        "signed": ["graph.kind=signed"],
        "table": ["graph.kind=table"],
        "regression": ["graph.kind=regression", "graph.targets=targets.csv"],
        "ranking": ["graph.kind=ranking", "graph.targets=targets.csv"],
        "pairs": ["graph.kind=pairs", "graph.pairs=pairs.csv", "graph.edge_share=0"],
        "missing": ["graph.missing=0.3"],
    },
    "loops": {"auto": [], "on": ["graph.self_loops=on"], "off": ["graph.self_loops=off"]},
    "reduction": {"mean": [], "sum": ["loss.reduction=sum", "optim.lr=0.0001"]},
    "optim": {
        "sgd": [],
        "lars": ["optim.kind=lars", "optim.lars_eta=0.02"],
        "adamw": ["optim.kind=adamw", "optim.lr=0.001"],
    },
    "precision": {"full": [], "bf16": ["train.precision=bf16"]},
    "algorithms": {"any": [], "deterministic": ["train.deterministic=on"]},
    "views": {
        "joint": [],
        "separate": ["train.views=separate"],
        "three": ["augment.views=3"],
        "small": ["augment.small_views=2", "augment.small_size=8"],
        "micro": ["train.micro_batches=2"],
        "micro separate": ["train.micro_batches=3", "train.views=separate"],
    },
    "norm": {"global": [], "node": ["model.batch_norm=node"], "off": ["model.batch_norm=off"]},
    "sent": {"full": [], "bfloat16": ["train.grad_dtype=bfloat16"], "one bucket": ["train.bucket_mb=25"]},
    "augment": {
        "plain": [],
        "all": ["augment.blur=[1.0]", "augment.solarize=[0.5]", "augment.gray=[0.5]", "augment.jitter=[1.0]"],
        "bicubic": ["augment.interpolation=bicubic", "data.size=16"],
        "jpeg": ["data.train=photos.h5", "data.test=", "data.size=16", "graph.labeled_fraction=1"],
        "nvjpeg": ["data.train=photos.h5", "data.test=", "data.size=16", "graph.labeled_fraction=1", "data.decode=full",
                   "data.decoder=nvjpeg"],
        "windows": ["data.shuffle=windows", "data.window=16"],
    },
    "model": {
        "convnet": [],
        "no projector": ["model.projector=[]"],
        "resnet18": ["model.backbone=resnet18", "train.global_batch=5"],
        "resnet50": ["model.backbone=resnet50", "model.stem=imagenet", "data.size=32", "optim.lr=0.001", "train.steps=1"],
        "vit": ["model.backbone=vit_s", "model.patch=6", "data.size=12", "train.global_batch=5"],
        "drop path": ["model.backbone=vit_s", "model.patch=6", "data.size=12", "model.drop_path=0.3", "train.global_batch=5"],
        "features": ["model.backbone=none", "data.train=rows.npy", "data.test="],
    },
    "oracle": {
        "none": [],
        "captcha": ["oracle.sampler=captcha", "oracle.every=1", "oracle.questions_per_round=6", "oracle.pool=40"],
        "uncertainty": ["oracle.sampler=uncertainty", "oracle.every=1", "oracle.questions_per_round=6", "oracle.pool=40"],
    },
    "eval": {"none": [], "online": ["eval.every=2", "eval.train_samples=40", "eval.test_samples=20"]},
}

# Settings whose loss on the device is another one by design, and the relative difference that is allowed for it.
# A ResNet on a few tiny images multiplies differences of the last bit; of ResNet-50 the first loss alone is compared.
LOOSE = {("precision", "bf16"): 0.1, ("sent", "bfloat16"): 2e-3, ("model", "resnet18"): 1e-4, ("model", "resnet50"): 1e-4}
# Results that depend on the number of ranks: the CPU runs on as many.
PER_WORLD = {("norm", "off"), ("norm", "node"), ("sent", "bfloat16")}
# What is drawn from the pixels of a view, whose last bits differ: the twin is one device with streams in order.
OWN_TWIN = {("model", "drop path")}
TOLERANCE = 4e-6


def settings(case):
    out = []
    for axis, values in AXES.items():
        out += values[case[axis]] if axis in case else []
    return out


def cpu_settings(case):
    """The same for CPU ranks: decoders and precisions of a device have no twin there."""
    twin = {axis: value for axis, value in case.items() if axis != "precision"}
    return [s for s in settings(twin) if not s.startswith("data.decoder")]


def tolerance(case):
    return max([TOLERANCE, case.get("tolerance", 0)] + [LOOSE.get((a, v), 0) for a, v in case.items()])


def per_world(case):
    return any((a, v) in PER_WORLD for a, v in case.items())


def own_twin(case):
    return any((a, v) in OWN_TWIN for a, v in case.items())


def name(case):
    return ", ".join(v for a, v in case.items() if a in AXES) or "all defaults"


def allowed(case):
    """What the program refuses, or what makes no sense, is no case."""
    get = {axis: case.get(axis, next(iter(values))) for axis, values in AXES.items()}
    labels = get["loss"] in ("mse", "cross_entropy")
    jpeg = get["augment"] in ("jpeg", "nvjpeg")
    transformer = get["model"] in ("vit", "drop path")
    small_batch = transformer or get["model"] == "resnet18"   # too few samples for pieces of them
    return not (
        (transformer and get["views"] == "small") or
        (small_batch and get["views"].startswith("micro")) or
        (labels and get["graph"] in ("ssl", "pairs", "regression", "ranking")) or
        (get["loss"] in ("simclr", "nnclr", "nnclr batch", "barlow", "barlow graph") and get["graph"] in ("signed", "table", "regression", "ranking", "pairs")) or
        (get["loss"].startswith("barlow") and get["views"] == "three") or
        (jpeg and (get["graph"] in ("regression", "ranking", "pairs") or get["eval"] == "online")) or
        (get["model"] == "features" and (get["augment"] not in ("plain", "windows") or get["views"] == "small" or get["eval"] == "online")) or
        (get["oracle"] != "none" and get["graph"] in ("regression", "ranking", "pairs", "table")))


# (case, ranks): every value of every axis at least once.
DEFAULT = [
    ({}, (1, 2, 3)),
    ({"loss": "vicreg pooled", "optim": "lars"}, (2,)),
    ({"loss": "vic2", "graph": "signed", "sent": "one bucket"}, (1, 2)),
    ({"loss": "scl", "graph": "supervised", "norm": "off"}, (2,)),
    ({"loss": "sampled", "graph": "pairs"}, (1, 3)),
    ({"loss": "sampled halves", "graph": "missing"}, (2,)),
    ({"loss": "simclr", "graph": "ssl", "optim": "lars"}, (1, 2)),
    ({"loss": "barlow", "graph": "ssl", "augment": "bicubic"}, (2,)),
    ({"loss": "barlow graph", "graph": "supervised"}, (3,)),
    ({"loss": "nnclr"}, (1, 2)),
    ({"loss": "nnclr batch", "graph": "ssl"}, (3,)),
    ({"loss": "mse", "graph": "supervised"}, (2,)),
    ({"loss": "cross_entropy", "graph": "supervised", "augment": "windows"}, (1, 3)),
    ({"loss": "vic2", "graph": "table"}, (2,)),
    ({"loss": "vic2", "graph": "regression", "norm": "node"}, (1, 2)),
    ({"loss": "scl", "graph": "ranking"}, (3,)),
    ({"optim": "adamw", "model": "no projector"}, (1, 2)),
    ({"precision": "bf16"}, (1, 2)),
    ({"precision": "bf16", "model": "vit"}, (1,)),
    ({"algorithms": "deterministic", "model": "resnet18"}, (2,)),
    ({"views": "separate", "optim": "lars"}, (2,)),
    ({"views": "three", "loss": "vicreg", "graph": "signed"}, (3,)),
    ({"views": "small", "augment": "all"}, (2,)),
    ({"views": "micro"}, (1, 2)),
    ({"views": "micro separate", "sent": "bfloat16"}, (2,)),
    ({"augment": "jpeg"}, (1,)),
    ({"augment": "nvjpeg"}, (1, 2)),
    ({"model": "resnet18"}, (1,)),
    ({"model": "resnet50"}, (2,)),
    ({"model": "features"}, (1, 2)),
    ({"loops": "on"}, (2,)),
    ({"loops": "off", "loss": "vic2"}, (1,)),
    ({"reduction": "sum", "loss": "scl"}, (2,)),
    ({"model": "drop path"}, (2,)),
    ({"oracle": "captcha"}, (1, 2)),
    ({"oracle": "uncertainty", "graph": "mixed", "eval": "online"}, (2,)),
    ({"eval": "online", "norm": "node"}, (2,)),
]


def missing_values():
    """Values that no case of DEFAULT has."""
    seen = {(axis, case.get(axis, next(iter(values)))) for case, _ in DEFAULT for axis, values in AXES.items()}
    return [(axis, value) for axis, values in AXES.items() for value in values if (axis, value) not in seen]


# Keys with a choice that stays on the host, and choices that bring nothing new to the device.
HOST = {"graph.deduction", "oracle.labeler", "oracle.consensus", "oracle.wait", "oracle.templates", "oracle.class_guess", "oracle.center",
        "oracle.measure", "train.watchdog"}
NOTHING_NEW = {
    "model.backbone": {"resnet34": "the blocks of resnet18", "vit_b": "the blocks of vit_s"},
    "train.device": {"auto": "cuda here", "cpu": "what every case is compared with"},
    "train.dtype": {"float64": "for CPU ranks"},
    # A sampler sees embeddings in host memory: uncertainty chooses by them, captcha does not.
    "oracle.sampler": dict.fromkeys(("ssl supervised random outliers nnclr pruning coarse ensemble model_change gradients typical "
                                     "k_center merging mix").split(), "chooses on the host"),
}


def choices(listed):
    """{key: (default, values)} of the keys with a choice, from `pal config --keys`."""
    found = {}
    for key, default, text in re.findall(r"(?m)^([a-z_]+\.[a-z_]+) = (.*)\n((?:    .*\n)*)", listed):
        values = re.match(r"[\w-]+(, [\w-]+)* or [\w-]+(?= )", " ".join(text.split()))
        if values and values[0] != "true or false":
            found[key] = (default, re.split(", | or ", values[0]))
    return found


def missing_choices(listed):
    """Choices of the schema that no case of DEFAULT makes."""
    base = {f"{section}.{key}": value for section, keys in re.findall(r"(?m)^(\w+): {(.*)}$", job.CONFIG)
            for key, value in re.findall(r"(\w+): ([^,\[]+)", keys)}
    cases = [dict(s.split("=", 1) for s in settings(case)) | {"train.device": "cuda"} for case, _ in DEFAULT]
    missing = []
    for key, (default, values) in choices(listed).items():
        made = {case.get(key, base.get(key, default)) for case in cases}
        if key not in HOST:
            missing += [f"{key}={value}" for value in values if value not in made and value not in NOTHING_NEW.get(key, {})]
    return missing


def pairs(seed=1):
    """Cases in which every allowed pair of values of two axes occurs, by a greedy draw."""
    rng = random.Random(seed)
    axes = list(AXES)
    open_pairs = {((a, v), (b, w)) for i, a in enumerate(axes) for b in axes[i + 1:] for v in AXES[a] for w in AXES[b] if allowed({a: v, b: w})}
    cases = []
    while open_pairs:
        best, covered = None, set()
        first = rng.choice(sorted(open_pairs))
        for _ in range(60):
            case = dict(first)
            for axis in rng.sample(axes, len(axes)):
                values = [v for v in AXES[axis] if allowed({**case, axis: v})]
                if axis not in case and values:
                    case[axis] = rng.choice(values)
            case = {axis: case[axis] for axis in axes if axis in case}
            hits = {p for p in open_pairs if p[0] in case.items() and p[1] in case.items()}
            if len(hits) > len(covered):
                best, covered = case, hits
        cases.append(best)
        open_pairs -= covered
    return cases


if __name__ == "__main__":
    print(f"{len(DEFAULT)} cases, {sum(len(r) for _, r in DEFAULT)} runs on the device; missing: {missing_values()}; {len(pairs())} cases for pairs")
