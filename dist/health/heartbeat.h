// heartbeat: heartbeats between ranks over a communicator of their own: each rank tells rank 0, rank 0 tells every rank.
//
// Thread: the watchdog's alone. Nothing here waits for another rank.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pal::dist {

inline constexpr size_t kComms = 5;  // now, bulk, control, device, node

// What a rank says of itself.
struct Heartbeat {
  int64_t step = 0;
  std::array<int64_t, kComms> number{};      // its newest collective on each communicator
  std::array<int64_t, kComms> waiting_ms{};  // for how long that one has not returned; -1: it has
};

class HeartbeatChannel {
 public:
  HeartbeatChannel();   // Collective: duplicates the world.
  ~HeartbeatChannel();  // Collective, unless the world is coming down.
  HeartbeatChannel(const HeartbeatChannel&) = delete;
  HeartbeatChannel& operator=(const HeartbeatChannel&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  void send(const Heartbeat& beat);                  // to rank 0, or from it to all; skips a rank that takes none
  std::vector<std::pair<int, Heartbeat>> receive();  // what has arrived: (rank, beat), oldest first

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> sent_;  // by rank
  std::vector<Heartbeat> outgoing_;     // by rank: a buffer belongs to its request
};

}  // namespace pal::dist
