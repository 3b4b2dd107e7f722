// operation: one collective, send or receive as a rank asked for it, and whether the ranks asked for the same.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace simnccl {

enum class Kind : int32_t { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send, receive };

struct Operation {
  Kind kind = Kind::all_reduce;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int32_t peer = 0;    // root, or the other side
  uint64_t count = 0;  // as NCCL's arguments have it: of one rank for all_gather and reduce_scatter
  const void* from = nullptr;
  void* to = nullptr;
};

const char* kind_name(Kind kind);
size_t type_bytes(ncclDataType_t type);                      // 0: not known to the stand-in
bool collective(const Operation& operation);                 // neither a send nor a receive
std::string describe(const Operation& operation);            // "all_reduce of 5 float32, sum"
size_t from_bytes(const Operation& o, int rank, int ranks);  // that this rank gives; 0: `from` is not read
size_t to_bytes(const Operation& o, int rank, int ranks);    // that this rank gets

// What each rank launched: empty, or a sentence about the first difference. asked[r] is rank r's.
std::string difference(const std::vector<std::vector<Operation>>& asked);

// to[i] = op over ranks of parts[r][i]; bfloat16 is added in fp32 and rounded once. False: type or op not known.
bool combine(void* to, const std::vector<const void*>& parts, uint64_t count, ncclDataType_t type, ncclRedOp_t op);

}  // namespace simnccl
