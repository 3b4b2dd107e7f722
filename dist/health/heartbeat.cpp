#include "dist/health/heartbeat.h"

#include <type_traits>

#include "dist/comm/mpi_check.h"

namespace pal::dist {

static_assert(std::is_trivially_copyable_v<Heartbeat>);

HeartbeatChannel::HeartbeatChannel() : sending_(std::make_unique<Sending>()) {
  PAL_MPI_CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  PAL_MPI_CHECK(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  PAL_MPI_CHECK(MPI_Comm_rank(comm_, &rank_));
  PAL_MPI_CHECK(MPI_Comm_size(comm_, &size_));
  sending_->requests.assign(size_, MPI_REQUEST_NULL);
  sending_->buffers.resize(size_);
}

HeartbeatChannel::~HeartbeatChannel() {
  if (comm_ != MPI_COMM_NULL) (void)sending_.release();  // MPI may still read the buffers
}

// Every heartbeat is received before the communicator is freed. After the first barrier no rank sends, and a heartbeat
// is small enough for MPI to deliver it without the receiver's help.
void HeartbeatChannel::close() {
  PAL_MPI_CHECK(MPI_Barrier(comm_));
  for (int round = 0; round < 3; ++round) {
    receive();
    PAL_MPI_CHECK(MPI_Barrier(comm_));
  }
  PAL_MPI_CHECK(MPI_Waitall(size_, sending_->requests.data(), MPI_STATUSES_IGNORE));
  PAL_MPI_CHECK(MPI_Comm_free(&comm_));  // sets it to MPI_COMM_NULL
}

void HeartbeatChannel::send(const Heartbeat& heartbeat) {
  for (int to = 0; to < size_; ++to) {
    if (to == rank_ || (rank_ != 0 && to != 0)) continue;
    MPI_Request* const request = &sending_->requests[to];
    int done = 0;
    PAL_MPI_CHECK(MPI_Test(request, &done, MPI_STATUS_IGNORE));
    if (!done) continue;
    sending_->buffers[to] = heartbeat;
    PAL_MPI_CHECK(MPI_Isend(&sending_->buffers[to], sizeof(Heartbeat), MPI_BYTE, to, 0, comm_, request));
  }
}

std::vector<std::pair<int, Heartbeat>> HeartbeatChannel::receive() {
  std::vector<std::pair<int, Heartbeat>> heartbeats;
  for (;;) {
    int arrived = 0;
    MPI_Status status;
    PAL_MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &arrived, &status));
    if (!arrived) return heartbeats;
    Heartbeat heartbeat;
    PAL_MPI_CHECK(MPI_Recv(&heartbeat, sizeof(heartbeat), MPI_BYTE, status.MPI_SOURCE, 0, comm_, MPI_STATUS_IGNORE));
    heartbeats.emplace_back(status.MPI_SOURCE, heartbeat);
  }
}

}  // namespace pal::dist
