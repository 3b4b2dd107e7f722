// nccl_collectives: the collectives of NcclChannel. Those that NCCL lacks are groups of its calls in one launch.
#include <numeric>

#include "dist/comm/nccl_channel.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

ncclDataType_t nccl_type(NcclType type) {
  switch (type) {
    case NcclType::float32:
      return ncclFloat32;
    case NcclType::float64:
      return ncclFloat64;
    case NcclType::bfloat16:
      return ncclBfloat16;
    case NcclType::int32:
      return ncclInt32;
    case NcclType::int64:
      return ncclInt64;
    case NcclType::uint8:
      return ncclUint8;
  }
  return ncclFloat32;
}

const char* type_name(NcclType type) {
  switch (type) {
    case NcclType::float32:
      return "float32";
    case NcclType::float64:
      return "float64";
    case NcclType::bfloat16:
      return "bfloat16";
    case NcclType::int32:
      return "int32";
    case NcclType::int64:
      return "int64";
    case NcclType::uint8:
      return "uint8";
  }
  return "";
}

ncclRedOp_t nccl_op(NcclOp op) { return op == NcclOp::sum ? ncclSum : op == NcclOp::max ? ncclMax : ncclMin; }

std::string text(const char* kind, int64_t count, NcclType type) {
  return std::string(kind) + " of " + std::to_string(count) + " " + type_name(type);
}

int64_t sum(const NcclChannel::Counts& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

bool even(const NcclChannel::Counts& counts) {
  for (int64_t n : counts) {
    if (n != counts.front()) return false;
  }
  return true;
}

const char* at(const void* base, int64_t elements, NcclType type) {
  return static_cast<const char*>(base) + elements * nccl_type_bytes(type);
}
char* at(void* base, int64_t elements, NcclType type) {
  return static_cast<char*>(base) + elements * nccl_type_bytes(type);
}

void check_counts(const NcclChannel::Counts& counts, int size) {
  PAL_ASSERT(static_cast<int>(counts.size()) == size, "counts has the elements of every rank");
  for (int64_t n : counts) PAL_ASSERT(n >= 0, "a count is not negative");
}

}  // namespace

int64_t nccl_type_bytes(NcclType type) {
  switch (type) {
    case NcclType::float32:
    case NcclType::int32:
      return 4;
    case NcclType::float64:
    case NcclType::int64:
      return 8;
    case NcclType::bfloat16:
      return 2;
    case NcclType::uint8:
      return 1;
  }
  return 0;
}

void NcclChannel::all_reduce(const void* from, void* to, int64_t count, NcclType type, NcclOp op) {
  if (count == 0) return;
  launch(text("all_reduce", count, type), [&] {
    call(ncclAllReduce(from, to, static_cast<size_t>(count), nccl_type(type), nccl_op(op), comm_, stream_));
  });
}

void NcclChannel::broadcast(void* data, int64_t count, NcclType type, int root) {
  if (count == 0) return;
  launch(text("broadcast", count, type),
         [&] { call(ncclBroadcast(data, data, static_cast<size_t>(count), nccl_type(type), root, comm_, stream_)); });
}

// Uneven counts: one broadcast from each rank with a count above 0, in one launch.
void NcclChannel::all_gather(const void* from, void* to, const Counts& counts, NcclType type) {
  check_counts(counts, size_);
  if (sum(counts) == 0) return;
  launch(text("all_gather", sum(counts), type), [&] {
    if (even(counts))
      return call(ncclAllGather(from, to, static_cast<size_t>(counts[0]), nccl_type(type), comm_, stream_));
    int64_t begin = 0;
    for (int r = 0; r < size_; begin += counts[r++]) {
      if (counts[r] == 0) continue;
      char* const part = at(to, begin, type);
      call(ncclBroadcast(r == rank_ ? from : part, part, static_cast<size_t>(counts[r]), nccl_type(type), r, comm_,
                         stream_));
    }
  });
}

// Uneven counts: one reduction to each rank with a count above 0, in one launch.
void NcclChannel::reduce_scatter(const void* from, void* to, const Counts& counts, NcclType type) {
  check_counts(counts, size_);
  if (sum(counts) == 0) return;
  launch(text("reduce_scatter", sum(counts), type), [&] {
    if (even(counts))
      return call(
          ncclReduceScatter(from, to, static_cast<size_t>(counts[0]), nccl_type(type), ncclSum, comm_, stream_));
    int64_t begin = 0;
    for (int r = 0; r < size_; begin += counts[r++]) {
      if (counts[r] == 0) continue;
      call(ncclReduce(at(from, begin, type), r == rank_ ? to : nullptr, static_cast<size_t>(counts[r]), nccl_type(type),
                      ncclSum, r, comm_, stream_));
    }
  });
}

void NcclChannel::gather(const void* from, void* to, const Counts& counts, NcclType type, int root) {
  check_counts(counts, size_);
  if (sum(counts) == 0) return;
  launch(text("gather", sum(counts), type), [&] {
    if (counts[rank_] > 0)
      call(ncclSend(from, static_cast<size_t>(counts[rank_]), nccl_type(type), root, comm_, stream_));
    int64_t begin = 0;
    for (int r = 0; rank_ == root && r < size_; begin += counts[r++]) {
      if (counts[r] > 0)
        call(ncclRecv(at(to, begin, type), static_cast<size_t>(counts[r]), nccl_type(type), r, comm_, stream_));
    }
  });
}

void NcclChannel::all_to_all(const void* from, const Counts& send, void* to, const Counts& receive, NcclType type) {
  check_counts(send, size_);
  check_counts(receive, size_);
  PAL_ASSERT(send[rank_] == receive[rank_], "a rank sends itself what it receives from itself");
  launch(std::string("all_to_all of ") + type_name(type), [&] {  // counts differ from rank to rank
    int64_t sent = 0, received = 0;
    for (int r = 0; r < size_; ++r) {
      if (send[r] > 0)
        call(ncclSend(at(from, sent, type), static_cast<size_t>(send[r]), nccl_type(type), r, comm_, stream_));
      if (receive[r] > 0)
        call(ncclRecv(at(to, received, type), static_cast<size_t>(receive[r]), nccl_type(type), r, comm_, stream_));
      sent += send[r];
      received += receive[r];
    }
  });
}

}  // namespace pal::dist
