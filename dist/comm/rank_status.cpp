#include "dist/comm/rank_status.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "dist/comm/mpi_check.h"

namespace pal::dist {
namespace {

constexpr int kQuery = 1, kReply = 2;  // tags

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t k = 0; k < ranks.size(); ++k) text += (k > 0 ? ", " : "") + std::to_string(ranks[k]);
  return text;
}

RankStatusChannel::RankStatusChannel(MPI_Comm comm) : comm_(comm) {
  PAL_MPI_CHECK(MPI_Comm_rank(comm, &rank_));
  PAL_MPI_CHECK(MPI_Comm_size(comm, &size_));
}

void RankStatusChannel::reply(const LaunchStatus& mine) {
  for (;;) {
    int arrived = 0;
    MPI_Status status;
    PAL_MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, kQuery, comm_, &arrived, &status));
    if (!arrived) return;
    int64_t query = 0;
    PAL_MPI_CHECK(MPI_Recv(&query, 1, MPI_INT64_T, status.MPI_SOURCE, kQuery, comm_, MPI_STATUS_IGNORE));
    PAL_MPI_CHECK(
        MPI_Send(&mine, sizeof(mine), MPI_BYTE, status.MPI_SOURCE, kReply, comm_));  // small: MPI sends it at once
  }
}

std::vector<std::optional<LaunchStatus>> RankStatusChannel::query(const LaunchStatus& mine, double seconds,
                                                                  const std::function<void()>& meanwhile) {
  // Never freed: a request to a rank that has ended may never complete, and the job is about to end.
  struct Query {
    int64_t number = 0;
    std::vector<LaunchStatus> replies;
    std::vector<MPI_Request> sent, received;
  };
  const auto n = static_cast<size_t>(size_);
  Query& query = *new Query{mine.number, std::vector<LaunchStatus>(n), std::vector<MPI_Request>(n, MPI_REQUEST_NULL),
                            std::vector<MPI_Request>(n, MPI_REQUEST_NULL)};
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    MPI_Irecv(&query.replies[r], sizeof(LaunchStatus), MPI_BYTE, r, kReply, comm_, &query.received[r]);
    MPI_Isend(&query.number, 1, MPI_INT64_T, r, kQuery, comm_, &query.sent[r]);
  }
  std::vector<std::optional<LaunchStatus>> statuses(n);
  statuses[static_cast<size_t>(rank_)] = mine;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (bool all = false; !all && std::chrono::steady_clock::now() < until;) {
    all = true;
    for (int r = 0; r < size_; ++r) {
      if (statuses[r]) continue;
      int done = 0, sent = 0;
      MPI_Test(&query.sent[r], &sent, MPI_STATUS_IGNORE);
      if (MPI_Test(&query.received[r], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) statuses[r] = query.replies[r];
      all = all && statuses[r].has_value();
    }
    meanwhile();
    if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return statuses;
}

std::string describe_missing(const std::vector<std::optional<LaunchStatus>>& statuses, int self, double waited) {
  const LaunchStatus& mine = *statuses[static_cast<size_t>(self)];
  char begin[192];
  std::snprintf(begin, sizeof(begin), "rank %d has waited %.1f s in NCCL launch %lld (%s)", self, waited,
                static_cast<long long>(mine.number), mine.what);
  std::vector<int> silent, behind;
  int differs = -1;
  for (size_t r = 0; r < statuses.size(); ++r) {
    if (!statuses[r])
      silent.push_back(static_cast<int>(r));
    else if (statuses[r]->number < mine.number)
      behind.push_back(static_cast<int>(r));
    else if (statuses[r]->number == mine.number && std::string(statuses[r]->what) != mine.what)
      differs = static_cast<int>(r);
  }
  std::string text = begin;
  if (!silent.empty())
    text += "; " + ranks_text(silent) + (silent.size() == 1 ? " does" : " do") +
            " not reply: ended, stopped, or its host is unreachable";
  if (!behind.empty()) {
    const LaunchStatus& first = *statuses[static_cast<size_t>(behind.front())];
    text += "; " + ranks_text(behind) + (behind.size() == 1 ? " has" : " have") + " not reached it, last at launch " +
            std::to_string(first.number) + (first.number > 0 ? std::string(" (") + first.what + ")" : "");
  }
  if (differs >= 0)
    text += "; rank " + std::to_string(differs) + " has a different launch of this number (" +
            statuses[static_cast<size_t>(differs)]->what + ")";
  if (silent.empty() && behind.empty() && differs < 0)
    text += ", and all ranks are in it: check the network (NCCL_DEBUG=INFO)";
  if (mine.number == 0) text += "; raise train.start_seconds if ranks only need longer to start";
  return text;
}

}  // namespace pal::dist
