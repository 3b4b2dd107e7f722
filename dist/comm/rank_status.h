// rank_status: after a deadline, who is where: every rank asked answers from a thread that does not wait for the collective.
//
// Thread: answer() is called now and then by one thread of each rank, ask() by whoever lost patience.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pal::dist {

// Where a rank is: its newest launch.
struct LaunchStatus {
  int64_t number = 0;
  char what[96] = {};  // "all_reduce of 1024 float32"
};

class RankStatusChannel {
 public:
  // comm must carry nothing else and outlive this.
  explicit RankStatusChannel(MPI_Comm comm);

  void answer(const LaunchStatus& mine);
  // By rank; nothing from those that did not answer within `seconds`. `meanwhile` is called while waiting.
  std::vector<std::optional<LaunchStatus>> ask(const LaunchStatus& mine, double seconds,
                                               const std::function<void()>& meanwhile);

 private:
  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
};

// "rank 3", "ranks 1, 4".
std::string ranks_text(const std::vector<int>& ranks);
// What the answers mean for a rank that waits since `waited` seconds.
std::string describe_missing(const std::vector<std::optional<LaunchStatus>>& places, int self, double waited);

}  // namespace pal::dist
