"""peers: what the peers' scripts share: packages of the lock's versions, safetensors, lines of JSON."""
import json
import os
import struct
import subprocess
import sys

LOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "launch", "lock")


def versions():
    """Name -> version of the lock's [python.peers]."""
    found, section = {}, ""
    with open(LOCK, encoding="utf-8") as lock:
        for line in lock.read().splitlines():
            if line.startswith("["):
                section = line
            elif section == "[python.peers]" and line and not line.startswith("#"):
                name, version = line.split("=", 1)
                found[name] = version
    return found


def install(folder, names):
    """Into `folder`, without dependencies: the peers run on the torch and numpy that are there. The exit code."""
    lock = versions()
    missing = [f"{name}=={lock[name]}" for name in names
               if not os.path.isdir(os.path.join(folder, f"{name.replace('-', '_')}-{lock[name]}.dist-info"))]
    if not missing:
        return 0
    return subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check",
                           "--upgrade", "--target", folder, *missing]).returncode


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


def write_bytes_safetensors(path, arrays):
    """Name -> uint8 array."""
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "U8", "shape": list(array.shape), "data_offsets": [at, at + array.size]}
        at += array.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.tobytes())


def peak_mb():
    """VmHWM of this process."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def say(**line):
    print(json.dumps(line), flush=True)
