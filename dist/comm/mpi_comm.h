// mpi_comm: Comm over an MPI communicator, for CPU tensors.
//
// A communicator whose waits sleep starts its collectives without blocking (all but gather_v and reduce_scatter) and asks now and
// then whether they are done: for a thread beside the one that computes, whose core a blocking call would take.
// Rows travel as one derived type, so counts stay below 2^31 for rows of any width; reductions go in pieces.
// Large sums of such a communicator are dist/comm/reduce_scatter_gather.h's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "core/comm/comm.h"

namespace pal::dist {

enum class Waiting { spin, sleep };

class MpiComm final : public comm::Comm {
 public:
  explicit MpiComm(MPI_Comm parent, Waiting waiting = Waiting::spin);  // Collective: duplicates the communicator.
  ~MpiComm() override;
  MpiComm(const MpiComm&) = delete;
  MpiComm& operator=(const MpiComm&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override;
  void all_reduce(at::Tensor t, comm::ReduceOp op) override;
  at::Tensor all_gather(const at::Tensor& t) override;
  at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) override;
  at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int root) override;
  at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) override;
  at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send_counts,
                          const std::vector<int64_t>& recv_counts) override;
  void broadcast(at::Tensor t, int root) override;

 private:
  // Starts by `begin(request)` and waits asleep.
  template <class Begin>
  void asleep(const Begin& begin);

  const Waiting waiting_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

}  // namespace pal::dist
