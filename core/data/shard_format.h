// shard_format: the names of the arrays and attributes of a shard (an HDF5 file).
//
//   /images/bytes    uint8 (total)     the images, one after the other
//   /images/offsets  uint64 (N + 1)    sample i is bytes[offsets[i] : offsets[i + 1]]
//   /images/crc32c   uint32 (N)        of each image's bytes
//   /labels          int64 (N)         −1 unknown; optional
//   /ids             text (N)          name of the sample at its source; optional
//   /classes         text (C)          present when /labels is
//   /parents         int64 (P)         taxonomy: the parent of each node, C leaves first; −1 root; optional
//   /parent_names    text (P − C)      of the inner nodes; optional
// Attributes of the file: pal_format (1), encoding (raw or jpeg), shape (height, width, channels; 0 where images
// differ), sides (jpeg: least, median, greatest height, then of the width; optional), split (optional).
// Every array but the images' bytes has an attribute crc32c of its own bytes (checked when
// it is there).
#pragma once

#include <cstdint>

namespace pal::data::shard_format {

inline constexpr uint64_t kMaxImageBytes = (uint64_t{1} << 31) - 1;  // of the file of an image
inline constexpr int kVersion = 1;
inline constexpr const char* kBytes = "images/bytes";
inline constexpr const char* kOffsets = "images/offsets";
inline constexpr const char* kCrcs = "images/crc32c";
inline constexpr const char* kLabels = "labels";
inline constexpr const char* kIds = "ids";
inline constexpr const char* kClasses = "classes";
inline constexpr const char* kParents = "parents";
inline constexpr const char* kParentNames = "parent_names";
inline constexpr const char* kCrcAttribute = "crc32c";

}  // namespace pal::data::shard_format
