#!/usr/bin/env python3
"""plant: writes copies of product files with bugs that an environment variable switches on.

    plant.py SOURCE_ROOT OUTPUT_FOLDER [--list]

pal_planted is linked from these copies. PAL_PLANTED=name switches one bug on; without it the program is the product.
A text that is no longer in its file is an error: the bug must then be planted anew.
"""
import os
import sys

HEAD = """#include <cstdlib>
#include <cstring>
static bool planted(const char* bug) {
  const char* name = std::getenv("PAL_PLANTED");
  return name != nullptr && std::strcmp(name, bug) == 0;
}
"""

# name of the bug: (file, text of the product, text with the bug)
BUGS = {
    "no after": ("dist/comm/nccl_channel.cpp", "void NcclChannel::after(cudaStream_t user) {\n",
                 "void NcclChannel::after(cudaStream_t user) {\n  if (planted(\"no after\")) return;\n"),
    "no before": ("dist/comm/nccl_channel.cpp", "void NcclChannel::before(cudaStream_t user) {\n",
                  "void NcclChannel::before(cudaStream_t user) {\n  if (planted(\"no before\")) return;\n"),
    "wrong thread": ("dist/comm/nccl_guard.cpp", "  cudaSetDevice(device_);\n", "  if (!planted(\"wrong thread\")) cudaSetDevice(device_);\n"),
    "watchdog": ("dist/comm/nccl_guard.cpp", "  const Clock::rep since = waiting_since_;\n",
                 "  if (planted(\"watchdog\")) cudaStreamQuery(stream_);\n  const Clock::rep since = waiting_since_;\n"),
    "no join": ("dist/comm/nccl_comm.cpp", "  void join() override {\n", "  void join() override {\n    if (planted(\"no join\")) return;\n"),
    "wrong communicator": ("dist/comm/nccl_comm.cpp", "reach == Reach::world ? *world_ : *node_,",
                           "reach == Reach::world && !wrong ? *world_ : *node_,"),
    "freed in flight": ("dist/train/grad_sync.cpp", "    device->begin_all_reduce(rounds ? narrow[b] : bucket);\n",
                        "    if (planted(\"freed in flight\")) {\n      const at::Tensor copy = bucket.clone();\n"
                        "      narrow[b] = at::from_blob(copy.data_ptr(), copy.sizes(), copy.options());\n"
                        "      return device->begin_all_reduce(narrow[b]);\n    }\n"
                        "    device->begin_all_reduce(rounds ? narrow[b] : bucket);\n"),
    "overwritten copy": ("core/data/loader/device_step.cpp", "  buffer_ = at::Tensor();\n",
                         "  if (planted(\"overwritten copy\")) std::memset(buffer_.data_ptr(), 0, static_cast<size_t>(together));\n"
                         "  buffer_ = at::Tensor();\n"),
    "loader's device": ("core/data/loader/device_step.cpp", "guard(device.is_cuda() ? std::optional(device) : std::nullopt);",
                        "guard(device.is_cuda() && !planted(\"loader's device\") ? std::optional(device) : std::nullopt);"),
    "host read": ("dist/train/grad_sync.cpp", "bool all_finite(const at::Tensor& bucket) {\n",
                  "bool all_finite(const at::Tensor& bucket) {\n"
                  "  if (planted(\"host read\")) return *static_cast<const float*>(bucket.const_data_ptr()) < 1e30f;\n"),
    "features too early": ("core/eval/embed.cpp", "    under_way_->done.synchronize();\n",
                           "    if (!planted(\"features too early\")) under_way_->done.synchronize();\n"),
}
# What a bug needs besides.
HELP = {
    "dist/comm/nccl_comm.cpp": [
        # The second communicator of the world, for the gradients, is another one on rank 1.
        ("    return std::make_unique<NcclComm>(std::move(host)", "    static int asked = 0;\n"
         "    const bool wrong = planted(\"wrong communicator\") && reach == Reach::world && world_->rank() == 1 && ++asked == 2;\n"
         "    return std::make_unique<NcclComm>(std::move(host)"),
    ],
    "dist/train/grad_sync.cpp": [("#include <ATen/ops/empty.h>\n", "#include <ATen/ops/empty.h>\n#include <ATen/ops/from_blob.h>\n")],
}


def main():
    root, out = sys.argv[1:3]
    files = sorted({bug[0] for bug in BUGS.values()})
    if "--list" in sys.argv:
        print(";".join(files))
        return 0
    for name in files:
        with open(os.path.join(root, name), encoding="utf-8") as f:
            text = f.read()
        changes = [(old, new) for file, old, new in BUGS.values() if file == name] + HELP.get(name, [])
        for old, new in changes:
            if text.count(old) != 1:
                print(f"plant.py: {name} has this text {text.count(old)} times, not once; plant the bug anew:\n{old}", file=sys.stderr)
                return 1
            text = text.replace(old, new)
        os.makedirs(out, exist_ok=True)
        with open(os.path.join(out, os.path.basename(name)), "w", encoding="utf-8") as f:
            f.write(HEAD + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
