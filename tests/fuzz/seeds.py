"""seeds: files to begin from: a shard that `pal data import` makes of a few IDX images, and a small JPEG file by hand.

usage: seeds.py WORK_FOLDER PAL"""
import os
import struct
import subprocess
import sys
import tempfile

work, pal = sys.argv[1], os.path.abspath(sys.argv[2])
# 8 x 8 pixels of one gray: quantisation, frame, Huffman tables of one code each, scan.
JPEG = (b"\xff\xd8\xff\xdb\0\x43\0" + bytes([1] * 64) + b"\xff\xc0\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0"
        + b"\xff\xc4\0\x14\0\x01" + bytes(15) + b"\0" + b"\xff\xc4\0\x14\x10\x01" + bytes(15) + b"\0"
        + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + b"\x3f" + b"\xff\xd9")
with open(f"{work}/jpeg/plain.jpg", "wb") as file:
    file.write(JPEG)
with tempfile.TemporaryDirectory() as folder:
    for prefix in ("train", "t10k"):
        with open(f"{folder}/{prefix}-images-idx3-ubyte", "wb") as file:
            file.write(struct.pack(">4I", 0x803, 3, 4, 4) + bytes(48))
        with open(f"{folder}/{prefix}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">2I", 0x801, 3) + bytes([0, 1, 2]))
    if os.path.exists(pal) and not os.path.exists(f"{work}/shard/idx.h5"):
        subprocess.run([pal, "data", "import", "idx", folder, f"{folder}/x.h5"], check=True, stdout=subprocess.DEVNULL)
        os.replace(f"{folder}/x.h5", f"{work}/shard/idx.h5") if os.stat(folder).st_dev == os.stat(work).st_dev else \
            subprocess.run(["cp", f"{folder}/x.h5", f"{work}/shard/idx.h5"], check=True)
