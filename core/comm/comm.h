// comm: the interface of collectives. One process, MPI and NCCL implement it.
//
// Collective: every rank of the communicator calls the same operation in the same order. Tensors are contiguous; types
//   float32, float64, int32, int64, uint8. Counts are rows (dimension 0) per rank, known to every rank.
// Thread: one thread at a time per communicator.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace pal::comm {

enum class ReduceOp { sum, max, min };

class Comm {
 public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual void barrier() = 0;
  // In place; every rank gets the same bits.
  virtual void all_reduce(at::Tensor t, ReduceOp op = ReduceOp::sum) = 0;
  // Equal shapes (n, …) → (W·n, …) in rank order.
  virtual at::Tensor all_gather(const at::Tensor& t) = 0;
  // Rank r gives counts[r] rows → (Σ counts, …) in rank order.
  virtual at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) = 0;
  // all_gather_v to root only; other ranks get an undefined tensor.
  virtual at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int root) = 0;
  // (Σ counts, …) summed over ranks; rank r keeps its counts[r] rows.
  virtual at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) = 0;
  // send_counts[r] rows go to rank r, recv_counts[r] rows come from it, in rank order.
  virtual at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send_counts,
                                  const std::vector<int64_t>& recv_counts) = 0;
  // In place, from root.
  virtual void broadcast(at::Tensor t, int root) = 0;
};

// LocalComm: the communicator of one process; every collective is the identity.
std::unique_ptr<Comm> make_local_comm();

// counting_comm: a Comm that counts the collectives and the bytes of their results.
// Forwards to `inner`, which must outlive this. On one rank no bytes are counted.
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
