"""ffcv_peer: FFCV as a peer of `pal bench data`: the same JPEG bytes in its own file, a part of the two VICReg views.

FFCV does less work here: only crop, flip and normalization. It has no hue, gray, blur or solarize; its brightness,
contrast and saturation would double its time per image and take LLVM a minute of CPU time to compile. FFCV has one
pipeline per field, so its file holds each image as two fields, and it decodes both.
"""
import contextlib
import os
import sys
import time

from peers import install

PACKAGES = ["ffcv", "numba", "llvmlite", "opencv-python-headless", "psutil", "tqdm", "terminaltables", "pytorch-pfn-extras"]


def setup(folder):
    """FFCV comes as source only; without what its extension is built with, the benchmark runs without FFCV."""
    if install(folder, PACKAGES) != 0:
        print("FFCV cannot be built here: apt-get install g++ pkg-config libopencv-dev libturbojpeg0-dev", file=sys.stderr, flush=True)


def before_import(workers):
    # Numba takes TBB where the system has it; with Debian's libtbb an epoch of a loader, and once the exit, stood still for the
    # rest of a minute and a half (its cause is not known). OpenMP's threads never did. One that waits must not count as work.
    os.environ.update(NUMBA_THREADING_LAYER="omp", NUMBA_NUM_THREADS=str(workers), OMP_WAIT_POLICY="passive")


def write(files, path):
    """The bytes of the files as they are, where FFCV would encode the pixels again."""
    import numpy as np
    from PIL import Image
    from ffcv.fields import RGBImageField, rgb_image
    from ffcv.writer import DatasetWriter

    class Twice:
        def __len__(self):
            return len(files)

        def __getitem__(self, k):
            with open(files[k], "rb") as file:
                data = np.frombuffer(file.read(), dtype=np.uint8)
            rgb_image.encode_jpeg = lambda pixels, quality: data
            pixels = np.asarray(Image.open(files[k]).convert("RGB"))
            return pixels, pixels
    fields = {name: RGBImageField(write_mode="jpg") for name in ("first", "second")}
    DatasetWriter(path, fields, num_workers=1).from_indexed_dataset(Twice(), chunksize=32)


def loader(path, given, mean, std):
    import numpy as np
    from ffcv.fields.decoders import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage

    def view():
        return [RandomResizedCropRGBImageDecoder((given.size, given.size)), RandomHorizontalFlip(),
                NormalizeImage(255 * np.array(mean), 255 * np.array(std), np.float32), ToTensor(), ToTorchImage()]
    return Loader(path, batch_size=given.batch, num_workers=given.workers, order=OrderOption.RANDOM, os_cache=True,
                  drop_last=False, pipelines={"first": view(), "second": view()})


def turn(given, files, mean, std):
    """A function that loads every file once; all of FFCV's threads are this process's."""
    before_import(given.workers)
    path = os.path.join(os.path.dirname(given.serve), "ffcv.beton")
    with contextlib.redirect_stdout(sys.stderr):   # the writer's progress does not belong to the answers on stdout
        write(files, path)
    load = loader(path, given, mean, std)

    def run():
        cpu, start, count = time.process_time(), time.perf_counter(), 0
        for first, _ in load:
            count += len(first)
        return {"images": count, "seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    return run
