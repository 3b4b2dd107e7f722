"""peers: shared by the peers' scripts: packages in locked versions, safetensors, and the command loop."""
import argparse
import importlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import warnings

LOCKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "launch", "setup.d")


def versions():
    """Name -> version of the lock's [python.peers]."""
    found, section = {}, ""
    with open(os.path.join(LOCKS, "versions.lock"), encoding="utf-8") as lock:
        for line in lock.read().splitlines():
            if line.startswith("["):
                section = line
            elif section == "[python.peers]" and line and not line.startswith("#"):
                name, version = line.split("=", 1)
                found[name] = version
    return found


def install(folder, names):
    """Into `folder`, without dependencies: the peers run on the torch and numpy that are there. The exit code."""
    lock, sums = versions(), {}
    missing = [f"{name}=={lock[name]}" for name in names
               if not os.path.isdir(os.path.join(folder, f"{name.replace('-', '_')}-{lock[name]}.dist-info"))]
    if not missing:
        return 0
    with open(os.path.join(LOCKS, "hashes.lock"), encoding="utf-8") as lines:
        for package, sha256, _ in (line.split() for line in lines if not line.startswith("#")):
            sums.setdefault(package, []).append(f" --hash=sha256:{sha256}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.writelines(f"{package}{''.join(sums[package])}\n" for package in missing)
        wanted.flush()
        code = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check",
                               "--use-pep517", "--upgrade", "--require-hashes", "--target", folder, "-r", wanted.name]).returncode
    importlib.invalidate_caches()   # the folder may have been on the path before
    return code


def read_safetensors(path):
    """Name -> tensor, and the metadata. The format: length of the header, the header in JSON, raw bytes."""
    import torch
    kinds = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8}
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    metadata, tensors = header.pop("__metadata__", {}), {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.uint8, offset=begin, count=end - begin) if end > begin else torch.empty(0, dtype=torch.uint8)
        tensors[name] = flat.view(kinds[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def _write_safetensors(path, entries):
    """(name, dtype, shape, bytes) each."""
    header, at = {}, 0
    for name, dtype, shape, data in entries:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for entry in entries:
            file.write(entry[3])


def write_bytes_safetensors(path, arrays):
    """Name -> uint8 array."""
    _write_safetensors(path, [(name, "U8", array.shape, array.tobytes()) for name, array in arrays.items()])


def write_safetensors(path, tensors):
    """Name -> tensor."""
    kinds = {"torch.float32": "F32", "torch.float64": "F64", "torch.int64": "I64"}
    _write_safetensors(path, [(name, kinds[str(t.dtype)], t.shape, t.detach().contiguous().numpy().tobytes()) for name, t in tensors.items()])


def peak_mb():
    """VmHWM of this process."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def say(**line):
    print(json.dumps(line), flush=True)


# ---- a script of peers: case -> name -> function of the inputs and parameters that returns what is timed ---------------

def arguments(description, peers):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--setup", metavar="DIR")
    parser.add_argument("--packages", metavar="DIR")
    parser.add_argument("--images", metavar="FILE")
    parser.add_argument("--input", metavar="FILE")
    parser.add_argument("--case", choices=peers)
    parser.add_argument("--params", type=json.loads, default={})
    parser.add_argument("--peer")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def reset_peak():
    """Resets the peak to the memory that the process holds now, and returns that."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
            refs.write("5")
    except OSError:
        pass
    return peak_mb()


def check(run, path):
    import torch
    value, outputs = run()
    for name, tensor in outputs.items():
        tensor.detach().to(torch.float32).contiguous().numpy().tofile(f"{path}.{name}")
    say(value=float(torch.as_tensor(value).detach()), outputs=list(outputs))


def go(run, at_least):
    times = []
    while not times or sum(times) < at_least:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    say(ms=times)


def serve(given, peers):
    import torch
    warnings.simplefilter("ignore")  # of torch's sparse matrices
    torch.set_num_threads(given.threads)
    run = peers[given.case][given.peer](read_safetensors(given.input)[0], given.params)
    before = reset_peak()
    say(ready=True, torch=torch.__version__)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "end":
            break
        if words[0] == "check":
            check(run, words[1])
        else:
            go(run, float(words[1]))
    say(peak_mb=peak_mb(), extra_mb=peak_mb() - before)


def run_peer(name, peers, packages, decode_images=None):
    """Does what the command line says; the exit code."""
    given = arguments(name, peers)
    if given.setup:
        return install(given.setup, packages.get(given.case, []))
    # Before torch and faiss start their threads.
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    sys.path.append(given.packages)
    try:
        if given.images:
            decode_images(given.packages, given.images)
        else:
            serve(given, peers)
    except Exception as error:  # one line for the caller, whatever went wrong
        print(f"{name} {given.case} {given.peer}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0
