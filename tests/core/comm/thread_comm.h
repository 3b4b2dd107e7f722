// thread_comm: a Comm whose ranks are threads of one process, to test collective code without MPI.
//
// run_ranks(3, [&](Comm& comm) { … }) runs the body once per rank, each on its own thread, and returns when all are
// done. It rethrows the first exception and releases the ranks that wait for the failed one. Sums go in rank order, so
// they are reproducible.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/comm/comm.h"
#include "kernels/base/error.h"

namespace pal::comm {

class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks) : ranks(ranks), slots(ranks), counts(ranks) {}

  void wait() {
    std::unique_lock lock(mutex_);
    if (failed_) throw std::runtime_error("another rank failed");
    const int64_t round = round_;
    if (++arrived_ == ranks) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round || failed_; });
      if (round_ == round) throw std::runtime_error("another rank failed");
    }
  }
  void fail() {
    std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

  const int ranks;
  std::vector<at::Tensor> slots;             // input of each rank
  std::vector<std::vector<int64_t>> counts;  // its rows per rank

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  int64_t round_ = 0;
  bool failed_ = false;
};

class ThreadComm final : public Comm {
 public:
  ThreadComm(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_.ranks; }
  int64_t calls() const { return calls_; }  // collectives so far

  void barrier() override {
    exchange({}, {}, [](auto&) { return at::Tensor(); });
  }
  void all_reduce(at::Tensor t, ReduceOp op = ReduceOp::sum) override {
    t.copy_(exchange(t, {}, [op](ThreadGroup& g) { return reduce(g, op); }));
  }
  at::Tensor all_gather(const at::Tensor& t) override {
    return exchange(t, {}, [](ThreadGroup& g) { return at::cat(g.slots); });
  }
  at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) override {
    check(counts, t.size(0));
    return all_gather(t);
  }
  at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int root) override {
    at::Tensor all = all_gather_v(t, counts);
    return rank_ == root ? all : at::Tensor();
  }
  at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) override {
    PAL_ASSERT(static_cast<int>(counts.size()) == size(), "one count per rank");
    int64_t begin = 0;
    for (int r = 0; r < rank_; ++r) begin += counts[r];
    return exchange(t, {}, [](ThreadGroup& g) { return reduce(g, ReduceOp::sum); })
        .narrow(0, begin, counts[rank_])
        .clone();
  }
  at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send,
                          const std::vector<int64_t>& recv) override {
    check(recv, -1);
    return exchange(t, send, [&](ThreadGroup& g) {
      std::vector<at::Tensor> parts;
      for (int r = 0; r < size(); ++r) {
        int64_t begin = 0;
        for (int to = 0; to < rank_; ++to) begin += g.counts[r][to];
        PAL_ASSERT(g.counts[r][rank_] == recv[r], "what is sent is what the receiver expects");
        parts.push_back(g.slots[r].narrow(0, begin, recv[r]));
      }
      return at::cat(parts);
    });
  }
  void broadcast(at::Tensor t, int root) override {
    t.copy_(exchange(t, {}, [root](ThreadGroup& g) { return g.slots[root].clone(); }));
  }

 private:
  static at::Tensor reduce(ThreadGroup& g, ReduceOp op) {
    at::Tensor total = g.slots[0].clone();
    for (int r = 1; r < g.ranks; ++r) {
      PAL_ASSERT(g.slots[r].sizes() == total.sizes() && g.slots[r].scalar_type() == total.scalar_type(),
                 "all ranks reduce the same shape and type");
      if (op == ReduceOp::sum) total.add_(g.slots[r]);
      if (op == ReduceOp::max) total = at::maximum(total, g.slots[r]);
      if (op == ReduceOp::min) total = at::minimum(total, g.slots[r]);
    }
    return total;
  }
  void check(const std::vector<int64_t>& counts, int64_t rows) const {
    PAL_ASSERT(static_cast<int>(counts.size()) == size() && (rows < 0 || counts[rank_] == rows), "one count per rank");
  }
  // All ranks write their input, then all read, then all leave.
  template <class F>
  at::Tensor exchange(const at::Tensor& t, const std::vector<int64_t>& counts, const F& look) {
    PAL_ASSERT(!t.defined() || t.is_contiguous(), "collectives take contiguous tensors");
    ++calls_;
    group_.slots[rank_] = t.defined() ? t.detach() : t;
    group_.counts[rank_] = counts;
    group_.wait();
    at::Tensor result = look(group_);
    group_.wait();
    return result;
  }

  ThreadGroup& group_;
  const int rank_;
  int64_t calls_ = 0;
};

// Thread: the body runs on a thread per rank.
inline void run_ranks(int ranks, const std::function<void(ThreadComm&)>& body) {
  ThreadGroup group(ranks);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        ThreadComm comm(group, r);
        body(comm);
      } catch (...) {
        {
          std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        group.fail();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace pal::comm
