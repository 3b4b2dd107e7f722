// counting_comm: a Comm that counts what a collective leaves on a rank: the bytes of every result that came from others.
#pragma once

#include <cstdint>
#include <vector>

#include "core/comm/comm.h"

namespace pal::comm {

// Forwards to `inner`, which must outlive this. Alone nothing travels and nothing is counted.
class CountingComm final : public Comm {
 public:
  explicit CountingComm(Comm& inner) : inner_(inner) {}

  int64_t bytes() const { return bytes_; }  // since the start
  int64_t calls() const { return calls_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void barrier() override { inner_.barrier(); }
  void all_reduce(at::Tensor t, ReduceOp op) override {
    inner_.all_reduce(t, op);
    count(t);
  }
  at::Tensor all_gather(const at::Tensor& t) override { return count(inner_.all_gather(t)); }
  at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) override {
    return count(inner_.all_gather_v(t, counts));
  }
  at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int root) override {
    return count(inner_.gather_v(t, counts, root));
  }
  at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) override {
    return count(inner_.reduce_scatter(t, counts));
  }
  at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send,
                          const std::vector<int64_t>& recv) override {
    return count(inner_.all_to_all_v(t, send, recv));
  }
  void broadcast(at::Tensor t, int root) override {
    inner_.broadcast(t, root);
    count(t);
  }

 private:
  at::Tensor count(at::Tensor t) {
    ++calls_;
    if (size() > 1 && t.defined()) bytes_ += static_cast<int64_t>(t.nbytes());
    return t;
  }

  Comm& inner_;
  int64_t bytes_ = 0, calls_ = 0;
};

}  // namespace pal::comm
