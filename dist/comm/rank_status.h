// rank_status: after a deadline, the newest NCCL launch of every rank.
//
// Thread: the guard thread of each NcclChannel calls reply() every 50 ms; it does not wait for collectives. The thread
//   whose launch is overdue, the enqueuing one or the guard thread, calls query().
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pal::dist {

// The newest launch of a rank.
struct LaunchStatus {
  int64_t number = 0;
  char what[96] = {};  // "all_reduce of 1024 float32"
};

class RankStatusChannel {
 public:
  // No other messages may use comm, and comm must outlive this.
  explicit RankStatusChannel(MPI_Comm comm);

  // Replies to the queries that have arrived.
  void reply(const LaunchStatus& mine);
  // By rank; nothing from ranks that did not reply within `seconds`. Calls `meanwhile` while waiting.
  std::vector<std::optional<LaunchStatus>> query(const LaunchStatus& mine, double seconds,
                                                 const std::function<void()>& meanwhile);

 private:
  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
};

// "rank 3", "ranks 1, 4".
std::string ranks_text(const std::vector<int>& ranks);
// A sentence about the ranks for which rank `self` has waited `waited` seconds.
std::string describe_missing(const std::vector<std::optional<LaunchStatus>>& statuses, int self, double waited);

}  // namespace pal::dist
