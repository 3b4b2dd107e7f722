// heartbeat: heartbeats between ranks: each rank sends to rank 0, and rank 0 sends to every rank.
//
// Communicator: a duplicate of MPI_COMM_WORLD that carries nothing else.
// Thread: send() and receive() are called by the watchdog's thread only. They do not wait for another rank.
// Lifetime: close() is the orderly end on all ranks. A channel that was not closed leaks its communicator and its send
//   buffers, because a message to a rank that is gone may never be delivered; the destructor does not communicate.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pal::dist {

inline constexpr size_t kComms = 5;  // now, bulk, control, device, node: the names in flight/*.json

// What a rank reports of itself.
struct Heartbeat {
  int64_t step = 0;
  std::array<int64_t, kComms> number{};      // its newest collective on each communicator
  std::array<int64_t, kComms> waiting_ms{};  // how long that collective has been running; -1: it has returned
  int64_t idle_ms = 0;                       // since it last worked (Watchdog)
};

class HeartbeatChannel {
 public:
  HeartbeatChannel();  // Collective: duplicates MPI_COMM_WORLD.
  ~HeartbeatChannel();
  HeartbeatChannel(const HeartbeatChannel&) = delete;
  HeartbeatChannel& operator=(const HeartbeatChannel&) = delete;

  void close();  // Collective. After it, neither send() nor receive().

  int rank() const { return rank_; }
  int size() const { return size_; }
  // From rank 0 to every rank, from another rank to rank 0. Skips a rank that has not received the last one.
  void send(const Heartbeat& heartbeat);
  std::vector<std::pair<int, Heartbeat>> receive();  // those that have arrived: (rank, heartbeat), oldest first

 private:
  struct Sending {
    std::vector<MPI_Request> requests;  // by rank
    std::vector<Heartbeat> buffers;     // by rank; MPI reads a buffer until its request is complete
  };
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Sending> sending_;
};

}  // namespace pal::dist
