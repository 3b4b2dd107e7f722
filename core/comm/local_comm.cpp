// local_comm: the communicator of one process; every collective is the identity.
#include <ATen/ops/clone.h>

#include "core/comm/comm.h"
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
    PAL_ASSERT(send == recv, "all_to_all_v on one rank sends and receives the same rows");
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

}  // namespace pal::comm
