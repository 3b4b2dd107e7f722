#include "core/comm/comm.h"

#include <ATen/ops/clone.h>

#include "kernels/base/error.h"

namespace pal::comm {
namespace {

class LocalComm final : public Comm {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  void all_reduce(at::Tensor, ReduceOp) override {}
  at::Tensor all_gather(const at::Tensor& t) override { return t.clone(); }
  at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) override { return own(t, counts); }
  at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int) override { return own(t, counts); }
  at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) override { return own(t, counts); }
  at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send,
                          const std::vector<int64_t>& recv) override {
    PAL_ASSERT(send == recv, "one rank sends itself as many rows as it receives");
    return own(t, send);
  }
  void broadcast(at::Tensor, int) override {}

 private:
  static at::Tensor own(const at::Tensor& t, const std::vector<int64_t>& counts) {
    PAL_ASSERT(counts.size() == 1 && counts[0] == t.size(0), "one count per rank, equal to the rows given");
    return t.clone();
  }
};

}  // namespace

std::unique_ptr<Comm> make_local_comm() { return std::make_unique<LocalComm>(); }

template <class F>
at::Tensor ForwardingComm::forward(const char* kind, const at::Tensor& given, const F& collective) {
  begin(kind, given.defined() ? given.sizes() : at::IntArrayRef());
  at::Tensor result;
  try {
    result = collective();
  } catch (...) {
    end(nullptr);
    throw;
  }
  end(given.defined() ? &result : nullptr);
  return result;
}

void ForwardingComm::barrier() {
  forward("barrier", {}, [&] {
    inner_.barrier();
    return at::Tensor();
  });
}

void ForwardingComm::all_reduce(at::Tensor t, ReduceOp op) {
  forward("all_reduce", t, [&] {
    inner_.all_reduce(t, op);
    return t;
  });
}

at::Tensor ForwardingComm::all_gather(const at::Tensor& t) {
  return forward("all_gather", t, [&] { return inner_.all_gather(t); });
}

at::Tensor ForwardingComm::all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) {
  return forward("all_gather_v", t, [&] { return inner_.all_gather_v(t, counts); });
}

at::Tensor ForwardingComm::gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int root) {
  return forward("gather_v", t, [&] { return inner_.gather_v(t, counts, root); });
}

at::Tensor ForwardingComm::reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) {
  return forward("reduce_scatter", t, [&] { return inner_.reduce_scatter(t, counts); });
}

at::Tensor ForwardingComm::all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& send_counts,
                                        const std::vector<int64_t>& recv_counts) {
  return forward("all_to_all_v", t, [&] { return inner_.all_to_all_v(t, send_counts, recv_counts); });
}

void ForwardingComm::broadcast(at::Tensor t, int root) {
  forward("broadcast", t, [&] {
    inner_.broadcast(t, root);
    return t;
  });
}

}  // namespace pal::comm
