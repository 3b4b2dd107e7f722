// checkpoint_shares: which rank writes which tensors of a checkpoint, into which file. The same answer on every rank.
//
// Math: the bytes are cut into pieces near (all bytes) / W, but not below `smallest`: a small model stays one file. A
//   group that is one piece is NAME.safetensors, one of n pieces NAME-00001-of-0000n.safetensors. A tensor is never cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pal::record {

struct TensorGroup {
  std::string name;             // model, optim, extra
  std::vector<uint64_t> bytes;  // of each tensor
};

struct SharedFile {
  std::string name;
  size_t group = 0;
  size_t begin = 0, end = 0;  // tensors of the group
  uint64_t bytes = 0;
  int rank = 0;  // who writes it
};

inline constexpr uint64_t kSmallestShare = uint64_t{64} << 20;
// A group without tensors has no file. In the order of the groups.
std::vector<SharedFile> share_out(const std::vector<TensorGroup>& groups, int ranks,
                                  uint64_t smallest = kSmallestShare);

}  // namespace pal::record
