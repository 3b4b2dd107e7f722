#include "dist/comm/mpi_comm.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

#include "dist/comm/mpi_check.h"

namespace pal::dist {
namespace {

// Elements per reduction call: below MPI's int counts.
constexpr int64_t kPiece = int64_t{1} << 28;

MPI_Datatype mpi_type(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kInt:
      return MPI_INT32_T;
    case at::kLong:
      return MPI_INT64_T;
    case at::kByte:
      return MPI_UINT8_T;
    default:
      break;
  }
  PAL_ASSERT(false, std::string("no MPI type for tensors of type ") + c10::toString(t.scalar_type()));
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op(comm::ReduceOp op) {
  switch (op) {
    case comm::ReduceOp::sum:
      return MPI_SUM;
    case comm::ReduceOp::max:
      return MPI_MAX;
    case comm::ReduceOp::min:
      return MPI_MIN;
  }
  return MPI_OP_NULL;
}

void check_tensor(const at::Tensor& t) {
  PAL_ASSERT(t.defined() && t.is_contiguous() && t.device().is_cpu(), "MPI carries contiguous CPU tensors");
}

// A row of t (everything behind dimension 0) as one MPI type.
class RowType {
 public:
  explicit RowType(const at::Tensor& t) {
    int64_t width = 1;
    for (int64_t d = 1; d < t.dim(); ++d) width *= t.size(d);
    PAL_ASSERT(width < (int64_t{1} << 31), "a row is narrower than 2^31 elements");
    PAL_MPI_CHECK(MPI_Type_contiguous(static_cast<int>(width), mpi_type(t), &type_));
    PAL_MPI_CHECK(MPI_Type_commit(&type_));
  }
  ~RowType() { MPI_Type_free(&type_); }
  RowType(const RowType&) = delete;
  RowType& operator=(const RowType&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// Counts and displacements of a v-collective, in rows.
struct RowCounts {
  std::vector<int> counts, starts;
  int64_t total = 0;

  explicit RowCounts(const std::vector<int64_t>& rows) {
    for (int64_t n : rows) {
      counts.push_back(static_cast<int>(n));
      starts.push_back(static_cast<int>(total));
      total += n;
    }
    PAL_ASSERT(total < (int64_t{1} << 31), "a collective moves fewer than 2^31 rows");
  }
};

at::Tensor empty_rows(const at::Tensor& like, int64_t rows) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, like.options());
}

}  // namespace

MpiComm::MpiComm(MPI_Comm parent, Waiting waiting) : waiting_(waiting) {
  PAL_MPI_CHECK(MPI_Comm_dup(parent, &comm_));
  PAL_MPI_CHECK(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  PAL_MPI_CHECK(MPI_Comm_rank(comm_, &rank_));
  PAL_MPI_CHECK(MPI_Comm_size(comm_, &size_));
}

template <class Begin>
void MpiComm::start_and_wait(const Begin& begin) {
  MPI_Request request = MPI_REQUEST_NULL;
  PAL_MPI_CHECK(begin(&request));
  wait_without_spinning(&request, 1);
}

void MpiComm::barrier() {
  if (waiting_ == Waiting::sleep) return start_and_wait([&](MPI_Request* r) { return MPI_Ibarrier(comm_, r); });
  PAL_MPI_CHECK(MPI_Barrier(comm_));
}

void MpiComm::all_reduce(at::Tensor t, comm::ReduceOp op) {
  check_tensor(t);
  if (size_ > 1 && waiting_ == Waiting::sleep && op == comm::ReduceOp::sum && uses_reduce_scatter_gather(t))
    return reduce_scatter_gather(t, comm_);
  char* data = static_cast<char*>(t.data_ptr());
  for (int64_t at = 0; at < t.numel(); at += kPiece) {
    const int n = static_cast<int>(std::min(kPiece, t.numel() - at));
    char* const piece = data + at * t.element_size();
    if (waiting_ == Waiting::sleep) {
      start_and_wait(
          [&](MPI_Request* r) { return MPI_Iallreduce(MPI_IN_PLACE, piece, n, mpi_type(t), mpi_op(op), comm_, r); });
    } else {
      PAL_MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, piece, n, mpi_type(t), mpi_op(op), comm_));
    }
  }
}

at::Tensor MpiComm::all_gather(const at::Tensor& t) { return all_gather_v(t, std::vector<int64_t>(size_, t.size(0))); }

at::Tensor MpiComm::all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) {
  check_tensor(t);
  PAL_ASSERT(int(counts.size()) == size_ && counts[rank_] == t.size(0), "counts has the rows of every rank");
  const RowCounts rows(counts);
  at::Tensor out = empty_rows(t, rows.total);
  const RowType row(t);
  if (waiting_ == Waiting::sleep) {
    start_and_wait([&](MPI_Request* r) {
      return MPI_Iallgatherv(t.data_ptr(), rows.counts[rank_], row, out.data_ptr(), rows.counts.data(),
                             rows.starts.data(), row, comm_, r);
    });
  } else {
    PAL_MPI_CHECK(MPI_Allgatherv(t.data_ptr(), rows.counts[rank_], row, out.data_ptr(), rows.counts.data(),
                                 rows.starts.data(), row, comm_));
  }
  return out;
}

at::Tensor MpiComm::gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int root) {
  check_tensor(t);
  PAL_ASSERT(int(counts.size()) == size_ && counts[rank_] == t.size(0), "counts has the rows of every rank");
  const RowCounts rows(counts);
  at::Tensor out;
  if (rank_ == root) out = empty_rows(t, rows.total);
  const RowType row(t);
  PAL_MPI_CHECK(MPI_Gatherv(t.data_ptr(), rows.counts[rank_], row, out.defined() ? out.data_ptr() : nullptr,
                            rows.counts.data(), rows.starts.data(), row, root, comm_));
  return out;
}

at::Tensor MpiComm::reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) {
  check_tensor(t);
  const RowCounts rows(counts);
  PAL_ASSERT(int(counts.size()) == size_ && rows.total == t.size(0), "counts add up to the rows given");
  at::Tensor out = empty_rows(t, counts[rank_]);
  const int64_t width = t.size(0) == 0 ? 0 : t.numel() / t.size(0);
  std::vector<int> elements;  // MPI reduces elements of a basic type, not rows
  for (int64_t n : counts) {
    PAL_ASSERT(n * width < (int64_t{1} << 31), "reduce_scatter gives a rank fewer than 2^31 elements");
    elements.push_back(static_cast<int>(n * width));
  }
  PAL_MPI_CHECK(MPI_Reduce_scatter(t.data_ptr(), out.data_ptr(), elements.data(), mpi_type(t), MPI_SUM, comm_));
  return out;
}

at::Tensor MpiComm::all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send_counts,
                                 const std::vector<int64_t>& recv_counts) {
  check_tensor(t);
  const RowCounts send(send_counts), recv(recv_counts);
  PAL_ASSERT(int(send_counts.size()) == size_ && int(recv_counts.size()) == size_ && send.total == t.size(0),
             "send counts add up to the rows given");
  at::Tensor out = empty_rows(t, recv.total);
  const RowType row(t);
  if (waiting_ == Waiting::sleep) {
    start_and_wait([&](MPI_Request* r) {
      return MPI_Ialltoallv(t.data_ptr(), send.counts.data(), send.starts.data(), row, out.data_ptr(),
                            recv.counts.data(), recv.starts.data(), row, comm_, r);
    });
  } else {
    PAL_MPI_CHECK(MPI_Alltoallv(t.data_ptr(), send.counts.data(), send.starts.data(), row, out.data_ptr(),
                                recv.counts.data(), recv.starts.data(), row, comm_));
  }
  return out;
}

void MpiComm::broadcast(at::Tensor t, int root) {
  check_tensor(t);
  char* data = static_cast<char*>(t.data_ptr());
  for (int64_t at = 0; at < t.numel(); at += kPiece) {
    const int n = static_cast<int>(std::min(kPiece, t.numel() - at));
    char* const piece = data + at * t.element_size();
    if (waiting_ == Waiting::sleep) {
      start_and_wait([&](MPI_Request* r) { return MPI_Ibcast(piece, n, mpi_type(t), root, comm_, r); });
    } else {
      PAL_MPI_CHECK(MPI_Bcast(piece, n, mpi_type(t), root, comm_));
    }
  }
}

}  // namespace pal::dist
