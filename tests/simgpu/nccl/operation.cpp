#include "tests/simgpu/nccl/operation.h"

#include <algorithm>
#include <cstring>

namespace simnccl {
namespace {

const char* type_name(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return "int8";
    case ncclUint8:
      return "uint8";
    case ncclInt32:
      return "int32";
    case ncclInt64:
      return "int64";
    case ncclFloat32:
      return "float32";
    case ncclFloat64:
      return "float64";
    case ncclBfloat16:
      return "bfloat16";
    default:
      return "?";
  }
}

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter; }
bool rooted(Kind kind) { return kind == Kind::reduce || kind == Kind::broadcast; }

bool same(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.type == b.type && a.count == b.count && (!reduces(a.kind) || a.op == b.op) &&
         (!rooted(a.kind) || a.peer == b.peer);
}

std::vector<Operation> only(const std::vector<Operation>& all, Kind kind, int peer) {
  std::vector<Operation> chosen;
  for (const Operation& o : all) {
    if (o.kind == kind && o.peer == peer) chosen.push_back(o);
  }
  return chosen;
}

std::string both(size_t a, const std::string& left, size_t b, const std::string& right) {
  return "rank " + std::to_string(a) + " has " + left + ", rank " + std::to_string(b) + " has " + right;
}

std::string collective_difference(const std::vector<std::vector<Operation>>& asked) {
  std::vector<std::vector<Operation>> lists(asked.size());
  for (size_t r = 0; r < asked.size(); ++r)
    std::copy_if(asked[r].begin(), asked[r].end(), std::back_inserter(lists[r]), collective);
  for (size_t r = 1; r < lists.size(); ++r) {
    for (size_t k = 0; k < std::max(lists[0].size(), lists[r].size()); ++k) {
      const std::string left = k < lists[0].size() ? describe(lists[0][k]) : "nothing",
                        right = k < lists[r].size() ? describe(lists[r][k]) : "nothing";
      if (k >= lists[0].size() || k >= lists[r].size() || !same(lists[0][k], lists[r][k]))
        return both(0, left, r, right);
    }
  }
  return "";
}

template <class T, class Op>
void fold(void* to, const std::vector<const void*>& parts, uint64_t count, const Op& op) {
  for (uint64_t i = 0; i < count; ++i) {
    T value = static_cast<const T*>(parts[0])[i];
    for (size_t r = 1; r < parts.size(); ++r) value = op(value, static_cast<const T*>(parts[r])[i]);
    static_cast<T*>(to)[i] = value;
  }
}

template <class T>
bool fold_op(void* to, const std::vector<const void*>& parts, uint64_t count, ncclRedOp_t op) {
  switch (op) {
    case ncclSum:
      fold<T>(to, parts, count, [](T a, T b) { return static_cast<T>(a + b); });
      return true;
    case ncclMax:
      fold<T>(to, parts, count, [](T a, T b) { return std::max(a, b); });
      return true;
    case ncclMin:
      fold<T>(to, parts, count, [](T a, T b) { return std::min(a, b); });
      return true;
    default:
      return false;
  }
}

float widen(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint16_t narrow(float value) {  // to the nearest, ties to even; NaN stays one
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

bool collective(const Operation& o) { return o.kind != Kind::send && o.kind != Kind::receive; }

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce:
      return "reduce";
    case Kind::broadcast:
      return "broadcast";
    case Kind::all_gather:
      return "all_gather";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::send:
      return "send";
    case Kind::receive:
      return "receive";
  }
  return "?";
}

size_t type_bytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

std::string describe(const Operation& o) {
  std::string text = std::string(kind_name(o.kind)) + " of " + std::to_string(o.count) + " " + type_name(o.type);
  if (reduces(o.kind)) text += o.op == ncclSum ? ", sum" : o.op == ncclMax ? ", max" : ", min";
  if (rooted(o.kind)) text += ", root " + std::to_string(o.peer);
  if (!collective(o)) text += (o.kind == Kind::send ? " to rank " : " from rank ") + std::to_string(o.peer);
  return text;
}

size_t from_bytes(const Operation& o, int rank, int ranks) {
  const size_t one = o.count * type_bytes(o.type);
  if (o.kind == Kind::receive || (o.kind == Kind::broadcast && o.peer != rank)) return 0;
  return o.kind == Kind::reduce_scatter ? one * static_cast<size_t>(ranks) : one;
}

size_t to_bytes(const Operation& o, int rank, int ranks) {
  const size_t one = o.count * type_bytes(o.type);
  if (o.kind == Kind::send || (o.kind == Kind::reduce && o.peer != rank)) return 0;
  return o.kind == Kind::all_gather ? one * static_cast<size_t>(ranks) : one;
}

std::string difference(const std::vector<std::vector<Operation>>& asked) {
  if (const std::string text = collective_difference(asked); !text.empty()) return text;
  for (size_t a = 0; a < asked.size(); ++a) {
    for (size_t b = 0; b < asked.size(); ++b) {
      const auto sent = only(asked[a], Kind::send, static_cast<int>(b)),
                 taken = only(asked[b], Kind::receive, static_cast<int>(a));
      for (size_t k = 0; k < std::max(sent.size(), taken.size()); ++k) {
        const std::string left = k < sent.size() ? describe(sent[k]) : "no send to rank " + std::to_string(b);
        const std::string right = k < taken.size() ? describe(taken[k]) : "no receive from rank " + std::to_string(a);
        if (k >= sent.size() || k >= taken.size() || sent[k].count != taken[k].count || sent[k].type != taken[k].type)
          return both(a, left, b, right);
      }
    }
  }
  return "";
}

bool combine(void* to, const std::vector<const void*>& parts, uint64_t count, ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclUint8:
      return fold_op<uint8_t>(to, parts, count, op);
    case ncclInt8:
      return fold_op<int8_t>(to, parts, count, op);
    case ncclInt32:
      return fold_op<int32_t>(to, parts, count, op);
    case ncclInt64:
      return fold_op<int64_t>(to, parts, count, op);
    case ncclFloat32:
      return fold_op<float>(to, parts, count, op);
    case ncclFloat64:
      return fold_op<double>(to, parts, count, op);
    case ncclBfloat16: {
      std::vector<std::vector<float>> wide(parts.size(), std::vector<float>(count));
      std::vector<const void*> wide_parts;
      for (size_t r = 0; r < parts.size(); ++r) {
        for (uint64_t i = 0; i < count; ++i) wide[r][i] = widen(static_cast<const uint16_t*>(parts[r])[i]);
        wide_parts.push_back(wide[r].data());
      }
      std::vector<float> sum(count);
      if (!fold_op<float>(sum.data(), wide_parts, count, op)) return false;
      for (uint64_t i = 0; i < count; ++i) static_cast<uint16_t*>(to)[i] = narrow(sum[i]);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace simnccl
