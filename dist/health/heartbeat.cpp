#include "dist/health/heartbeat.h"

#include <type_traits>

#include "dist/comm/mpi_check.h"

namespace pal::dist {
namespace {

static_assert(std::is_trivially_copyable_v<Heartbeat>);

}  // namespace

HeartbeatChannel::HeartbeatChannel() {
  PAL_MPI_CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  PAL_MPI_CHECK(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  PAL_MPI_CHECK(MPI_Comm_rank(comm_, &rank_));
  PAL_MPI_CHECK(MPI_Comm_size(comm_, &size_));
  sent_.assign(size_, MPI_REQUEST_NULL);
  outgoing_.resize(size_);
}

// Every beat is received before the communicator goes: after the barrier no rank sends, and a beat fits into a message
// that needs no answer.
HeartbeatChannel::~HeartbeatChannel() {
  MPI_Barrier(comm_);
  for (int round = 0; round < 3; ++round) {
    receive();
    MPI_Barrier(comm_);
  }
  MPI_Waitall(size_, sent_.data(), MPI_STATUSES_IGNORE);
  MPI_Comm_free(&comm_);
}

void HeartbeatChannel::send(const Heartbeat& beat) {
  for (int to = 0; to < size_; ++to) {
    if (to == rank_ || (rank_ != 0 && to != 0)) continue;
    int done = 0;
    PAL_MPI_CHECK(MPI_Test(&sent_[to], &done, MPI_STATUS_IGNORE));
    if (!done) continue;
    outgoing_[to] = beat;
    PAL_MPI_CHECK(MPI_Isend(&outgoing_[to], sizeof(Heartbeat), MPI_BYTE, to, 0, comm_, &sent_[to]));
  }
}

std::vector<std::pair<int, Heartbeat>> HeartbeatChannel::receive() {
  std::vector<std::pair<int, Heartbeat>> beats;
  for (;;) {
    int there = 0;
    MPI_Status status;
    PAL_MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &there, &status));
    if (!there) return beats;
    Heartbeat beat;
    PAL_MPI_CHECK(MPI_Recv(&beat, sizeof(beat), MPI_BYTE, status.MPI_SOURCE, 0, comm_, MPI_STATUS_IGNORE));
    beats.emplace_back(status.MPI_SOURCE, beat);
  }
}

}  // namespace pal::dist
