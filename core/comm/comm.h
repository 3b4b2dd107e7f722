// comm: the interface of the collectives. core and dist call it; one process, MPI or NCCL implements it.
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

// ForwardingComm: a Comm that passes every collective on to `inner`, which must outlive it. A derived class overrides
// begin() and end() only, so that it need not list the collectives.
class ForwardingComm : public Comm {
 public:
  explicit ForwardingComm(Comm& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void barrier() override;
  void all_reduce(at::Tensor t, ReduceOp op) override;
  at::Tensor all_gather(const at::Tensor& t) override;
  at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) override;
  at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int root) override;
  at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) override;
  at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send_counts,
                          const std::vector<int64_t>& recv_counts) override;
  void broadcast(at::Tensor t, int root) override;

 protected:
  // Before a collective: its name and the shape of what this rank gives.
  virtual void begin(const char* /*kind*/, at::IntArrayRef /*shape*/) {}
  // After it. `result` is null after a barrier and when the collective threw an error.
  virtual void end(const at::Tensor* /*result*/) {}

 private:
  template <class F>
  at::Tensor forward(const char* kind, const at::Tensor& given, const F& collective);
  Comm& inner_;
};

// CountingComm: counts the collectives that have a result, and the bytes of their results on this rank. A communicator
// of one rank sends nothing, so it counts no bytes.
class CountingComm final : public ForwardingComm {
 public:
  using ForwardingComm::ForwardingComm;
  int64_t bytes() const { return bytes_; }  // since the start
  int64_t calls() const { return calls_; }

 private:
  void end(const at::Tensor* result) override {
    if (result == nullptr) return;
    ++calls_;
    if (size() > 1 && result->defined()) bytes_ += static_cast<int64_t>(result->nbytes());
  }
  int64_t bytes_ = 0, calls_ = 0;
};

}  // namespace pal::comm
