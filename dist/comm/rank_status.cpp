#include "dist/comm/rank_status.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "dist/comm/mpi_check.h"

namespace pal::dist {
namespace {

constexpr int kQuestion = 1, kAnswer = 2;

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

void RankStatusChannel::answer(const LaunchStatus& mine) {
  for (;;) {
    int there = 0;
    MPI_Status status;
    PAL_MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, kQuestion, comm_, &there, &status));
    if (!there) return;
    int64_t question = 0;
    PAL_MPI_CHECK(MPI_Recv(&question, 1, MPI_INT64_T, status.MPI_SOURCE, kQuestion, comm_, MPI_STATUS_IGNORE));
    PAL_MPI_CHECK(MPI_Send(&mine, sizeof(mine), MPI_BYTE, status.MPI_SOURCE, kAnswer, comm_));  // small: goes at once
  }
}

std::vector<std::optional<LaunchStatus>> RankStatusChannel::ask(const LaunchStatus& mine, double seconds,
                                                                const std::function<void()>& meanwhile) {
  // Never freed: a request to a rank that is gone may stay open for ever, and the job is about to end.
  struct Asked {
    int64_t question = 0;
    std::vector<LaunchStatus> answers;
    std::vector<MPI_Request> sent, received;
  };
  const auto n = static_cast<size_t>(size_);
  Asked& asked = *new Asked{mine.number, std::vector<LaunchStatus>(n), std::vector<MPI_Request>(n, MPI_REQUEST_NULL),
                            std::vector<MPI_Request>(n, MPI_REQUEST_NULL)};
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    MPI_Irecv(&asked.answers[r], sizeof(LaunchStatus), MPI_BYTE, r, kAnswer, comm_, &asked.received[r]);
    MPI_Isend(&asked.question, 1, MPI_INT64_T, r, kQuestion, comm_, &asked.sent[r]);
  }
  std::vector<std::optional<LaunchStatus>> places(n);
  places[static_cast<size_t>(rank_)] = mine;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (bool all = false; !all && std::chrono::steady_clock::now() < until;) {
    all = true;
    for (int r = 0; r < size_; ++r) {
      if (places[r]) continue;
      int done = 0, sent = 0;
      MPI_Test(&asked.sent[r], &sent, MPI_STATUS_IGNORE);
      if (MPI_Test(&asked.received[r], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) places[r] = asked.answers[r];
      all = all && places[r].has_value();
    }
    meanwhile();
    if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return places;
}

std::string describe_missing(const std::vector<std::optional<LaunchStatus>>& places, int self, double waited) {
  const LaunchStatus& mine = *places[static_cast<size_t>(self)];
  char begin[192];
  std::snprintf(begin, sizeof(begin), "rank %d waits for %.1f s in NCCL launch %lld (%s)", self, waited,
                static_cast<long long>(mine.number), mine.what);
  std::vector<int> silent, behind;
  int differs = -1;
  for (size_t r = 0; r < places.size(); ++r) {
    if (!places[r])
      silent.push_back(static_cast<int>(r));
    else if (places[r]->number < mine.number)
      behind.push_back(static_cast<int>(r));
    else if (places[r]->number == mine.number && std::string(places[r]->what) != mine.what)
      differs = static_cast<int>(r);
  }
  std::string text = begin;
  if (!silent.empty()) text += "; no answer from " + ranks_text(silent) + ": dead, stopped, or its host is unreachable";
  if (!behind.empty()) {
    const LaunchStatus& first = *places[static_cast<size_t>(behind.front())];
    text += "; " + ranks_text(behind) + " did not come, last at launch " + std::to_string(first.number) +
            (first.number > 0 ? std::string(" (") + first.what + ")" : "");
  }
  if (differs >= 0)
    text += "; rank " + std::to_string(differs) + " has another launch there (" +
            places[static_cast<size_t>(differs)]->what + ")";
  if (silent.empty() && behind.empty() && differs < 0)
    text += ", and all ranks are in it: look at the network (NCCL_DEBUG=INFO)";
  return text;
}

}  // namespace pal::dist
