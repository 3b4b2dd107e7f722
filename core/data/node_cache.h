// node_cache: the shards of a data set copied once per node to a local folder, before the first epoch.
//
// Copies are in FOLDER/pal-<fingerprint>; the fingerprint is of the sources' paths, sizes and times, so other sources
// get other copies. A copy is written under a temporary name, read back, compared with the source by CRC32C and
// renamed, so that a reader sees whole files only. Its checksum is stored beside it; a second run on the node checks
// and reuses it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/comm/comm.h"

namespace pal::data {

struct NodeCacheReport {
  std::string data;  // what to open instead of the pattern
  int64_t files = 0;
  int64_t copied = 0;  // of them; the others existed already
  int64_t bytes = 0;   // of all files
};

// Collective over the ranks of one node: rank 0 of the node copies, the others wait. Only its report has counts;
// `data` is the same on all ranks. Throws Error (data) when a source cannot be read or a copy does not match.
NodeCacheReport cache_on_node(const std::string& pattern, const std::string& folder, comm::Comm& node);

}  // namespace pal::data
