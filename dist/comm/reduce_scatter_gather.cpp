// reduce_scatter_gather: the sum of a large buffer over ranks, in blocks (mpi_comm.h).

#include <algorithm>
#include <vector>

#include "core/comm/rank_slices.h"
#include "dist/comm/mpi_check.h"
#include "dist/comm/mpi_comm.h"

namespace pal::dist {
namespace {

// The buffer is summed in blocks, so that the slices of a block stay in the caches. Also bounds the memory used beside
// the buffer.
constexpr int64_t kBlockBytes = int64_t{8} << 20;
constexpr int kSlices = 1, kSums = 2;  // tags

template <class T>
void add(T* to, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

template <class T>
class BlockSum {
 public:
  BlockSum(MPI_Comm comm, MPI_Datatype type, int64_t longest) : comm_(comm), type_(type) {
    PAL_MPI_CHECK(MPI_Comm_rank(comm, &rank_));
    PAL_MPI_CHECK(MPI_Comm_size(comm, &size_));
    slices_.resize(static_cast<size_t>(longest + size_));  // a slice may be longer by one
  }

  void operator()(T* block, int64_t n) {
    const std::vector<int64_t> begin = comm::rank_slices(n, size_);
    const auto length = [&](int r) { return begin[r + 1] - begin[r]; };
    const int64_t own = length(rank_);
    T* const mine = block + begin[rank_];
    exchange([&](int r) { post(MPI_Irecv, slice_of(r, own), own, r, kSlices); },
             [&](int r) { post(MPI_Isend, block + begin[r], length(r), r, kSlices); });
    sum(mine, own);
    exchange([&](int r) { post(MPI_Irecv, block + begin[r], length(r), r, kSums); },
             [&](int r) { post(MPI_Isend, mine, own, r, kSums); });
  }

 private:
  T* slice_of(int rank, int64_t own) { return slices_.data() + rank * own; }

  template <class Call>
  void post(Call call, T* data, int64_t n, int other, int tag) {
    requests_.emplace_back();
    PAL_MPI_CHECK(call(data, static_cast<int>(n), type_, other, tag, comm_, &requests_.back()));
  }
  template <class Receive, class Send>
  void exchange(const Receive& receive, const Send& send) {
    requests_.clear();
    for (int k = 1; k < size_; ++k) receive((rank_ + k) % size_);
    for (int k = 1; k < size_; ++k) send((rank_ + k) % size_);
    wait_without_spinning(requests_.data(), static_cast<int>(requests_.size()));
  }
  // In the order of ranks. On the first two ranks the sum can be made in place.
  void sum(T* mine, int64_t n) {
    T* const total = rank_ <= 1 ? mine : slice_of(0, n);
    if (rank_ <= 1) add(total, slice_of(1 - rank_, n), n);
    for (int r = rank_ <= 1 ? 2 : 1; r < size_; ++r) add(total, r == rank_ ? mine : slice_of(r, n), n);
    if (total != mine) std::copy(total, total + n, mine);
  }

  MPI_Comm comm_;
  MPI_Datatype type_;
  int rank_ = 0, size_ = 1;
  std::vector<T> slices_;  // this rank's slice of the block, as each rank has it
  std::vector<MPI_Request> requests_;
};

template <class T>
void sum_blocks(const at::Tensor& t, MPI_Comm comm, MPI_Datatype type) {
  const int64_t longest = std::min<int64_t>(kBlockBytes / static_cast<int64_t>(sizeof(T)), t.numel());
  BlockSum<T> sum(comm, type, longest);
  T* const data = t.data_ptr<T>();
  for (int64_t at = 0; at < t.numel(); at += longest) sum(data + at, std::min(longest, t.numel() - at));
}

}  // namespace

bool uses_reduce_scatter_gather(const at::Tensor& t) {
  return (t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble) &&
         static_cast<int64_t>(t.nbytes()) >= kReduceScatterBytes;
}

void reduce_scatter_gather(const at::Tensor& t, MPI_Comm comm) {
  if (t.scalar_type() == at::kFloat) {
    sum_blocks<float>(t, comm, MPI_FLOAT);
  } else {
    sum_blocks<double>(t, comm, MPI_DOUBLE);
  }
}

}  // namespace pal::dist
