// mpi_comm: Comm over an MPI communicator, for CPU tensors.
//
// Waiting::sleep is for a thread that runs beside the computing thread (gradients, oracle). Its collectives, except
// gather_v and reduce_scatter, start without blocking; the thread then tests for the end every 50 µs and sleeps in
// between, because a blocking call of MPI would spin on a core that the computing thread needs. Its large sums use
// reduce_scatter_gather().
// Rows are sent as one derived type, so counts stay below 2^31 for rows of any width; reductions are cut into pieces.
// Lifetime: the destructor frees no communicator, because MPI_Comm_free is collective; MPI_Finalize does
//   (World::close).
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
  // Starts by `begin(request)`, then waits without spinning.
  template <class Begin>
  void start_and_wait(const Begin& begin);

  const Waiting waiting_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

// The sum of a large buffer over ranks, without spinning: each rank receives one slice of the buffer from every rank,
// adds them, and sends the sum to every rank. Each element is x_0 + x_1 + … in the order of ranks.
// The busiest rank has half the bytes and half the additions of MPI_Iallreduce, whose algorithm for few ranks is a tree
// (two ranks, 268 MB: 166 against 564 ms; four: 259 against 524).
// Collective, of two ranks or more. t is contiguous and on the CPU.
void reduce_scatter_gather(const at::Tensor& t, MPI_Comm comm);
// float32 or float64 of at least this many bytes. Below, latency dominates and MPI_Iallreduce is as fast.
constexpr int64_t kReduceScatterBytes = int64_t{1} << 20;
bool uses_reduce_scatter_gather(const at::Tensor& t);

}  // namespace pal::dist
