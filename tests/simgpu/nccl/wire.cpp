#include "tests/simgpu/nccl/wire.h"

#include <chrono>
#include <thread>

namespace simnccl {

int Wire::tag(Stage stage) const { return (1 << 20) + context_ * 8 + static_cast<int>(stage); }

void Wire::send(int to, Stage stage, const void* data, size_t bytes) {
  requests_.push_back(MPI_REQUEST_NULL);
  received_.push_back(false);
  MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, world_rank(to), tag(stage), MPI_COMM_WORLD, &requests_.back());
}

void Wire::receive(int from, Stage stage, void* data, size_t capacity) {
  requests_.push_back(MPI_REQUEST_NULL);
  received_.push_back(true);
  MPI_Irecv(data, static_cast<int>(capacity), MPI_BYTE, world_rank(from), tag(stage), MPI_COMM_WORLD,
            &requests_.back());
}

std::vector<size_t> Wire::finish(const std::atomic<bool>& aborted) {
  std::vector<MPI_Status> statuses(requests_.size());
  for (int done = 0; done == 0;) {
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses.data());
    if (done != 0) break;
    if (aborted) throw Aborted();  // the requests stay as they are: the job is coming down
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  std::vector<size_t> bytes;
  for (size_t k = 0; k < statuses.size(); ++k) {
    if (!received_[k]) continue;
    int n = 0;
    MPI_Get_count(&statuses[k], MPI_BYTE, &n);
    bytes.push_back(static_cast<size_t>(n));
  }
  requests_.clear();
  received_.clear();
  return bytes;
}

}  // namespace simnccl
