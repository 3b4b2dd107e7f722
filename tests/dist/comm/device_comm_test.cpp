// device_comm: gradient buckets over a communicator that enqueues, as NCCL's does. The one here is late on purpose: it
// computes a sum only at join(). Also how the flight recorder shows collectives that are enqueued and not done.
#include "dist/comm/device_comm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/ops/named_tensors.h"
#include "dist/train/grad_sync.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

class LateComm final : public DeviceComm {
 public:
  explicit LateComm(comm::Comm& inner) : inner_(inner) {}
  std::vector<int64_t> begun;  // elements of each, in order

  bool enqueues() const override { return true; }
  void begin_all_reduce(at::Tensor t) override {
    begun.push_back(t.numel());
    waiting_.push_back(t);
  }
  void join() override {
    for (const at::Tensor& t : waiting_) {
      if (t.scalar_type() != at::kBFloat16) {
        inner_.all_reduce(t, comm::ReduceOp::sum);
        continue;
      }
      const at::Tensor wide = t.to(at::kFloat);  // MPI does not know the type
      inner_.all_reduce(wide, comm::ReduceOp::sum);
      t.copy_(wide);
    }
    waiting_.clear();
  }
  Overlap overlap() override { return {0.5, 0.125}; }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void barrier() override { inner_.barrier(); }
  void all_reduce(at::Tensor t, comm::ReduceOp op) override { inner_.all_reduce(t, op); }
  at::Tensor all_gather(const at::Tensor& t) override { return inner_.all_gather(t); }
  at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& n) override {
    return inner_.all_gather_v(t, n);
  }
  at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& n, int root) override {
    return inner_.gather_v(t, n, root);
  }
  at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& n) override {
    return inner_.reduce_scatter(t, n);
  }
  at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>& s, const std::vector<int64_t>& r) override {
    return inner_.all_to_all_v(t, s, r);
  }
  void broadcast(at::Tensor t, int root) override { inner_.broadcast(t, root); }

 private:
  comm::Comm& inner_;
  std::vector<at::Tensor> waiting_;
};

ops::NamedTensors two_parameters() {
  return {{"a", at::ones({30}).requires_grad_(true)}, {"b", at::ones({50}).requires_grad_(true)}};
}

TEST(DeviceComm, BucketsAreEnqueuedInTheirOrderAndJoinedBeforeTheyAreRead) {
  for (const GradDtype wire : {GradDtype::full, GradDtype::bfloat16}) {
    LateComm late(test_world().gradients());
    LateComm& comm = late;
    const ops::NamedTensors p = two_parameters();
    GradSync sync(p, comm, {16, wire});  // a bucket each
    for (int step = 0; step < 2; ++step) {
      late.begun.clear();
      sync.begin();
      sync.release();
      // Hooks fire in another order on odd ranks; small integers: exact in bfloat16 too.
      const at::Tensor &first = p[comm.rank() % 2].second, &second = p[1 - comm.rank() % 2].second;
      const float share = static_cast<float>(comm.rank() + 1);
      ((first * share).sum() + (second * share).sum()).backward();
      sync.sum();
      if (comm.size() == 1) continue;                         // one rank sends nothing
      EXPECT_EQ(late.begun, (std::vector<int64_t>{64, 32}));  // the last parameter's bucket first, in whole cache lines
      const float sum = static_cast<float>(comm.size() * (comm.size() + 1) / 2);
      for (const auto& [name, t] : p) EXPECT_TRUE(at::equal(t.grad(), at::ones_like(t) * sum)) << name;
      EXPECT_TRUE(sync.finite());
      EXPECT_EQ(sync.time().seconds, 0.5);  // by the events of the device
      EXPECT_EQ(sync.time().hidden(), 0.75);
    }
  }
}

TEST(DeviceComm, ANonFiniteGradientOfOneRankIsSeenAfterTheJoin) {
  LateComm late(test_world().gradients());
  const ops::NamedTensors p = two_parameters();
  GradSync sync(p, late, {16});
  sync.begin();
  sync.release();
  const float factor = late.rank() == late.size() - 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
  ((p[0].second * factor).sum() + p[1].second.sum()).backward();
  sync.sum();
  EXPECT_FALSE(sync.finite());
}

TEST(DeviceComm, TheFlightRecorderShowsUnfinishedLaunchesAsPending) {
  FlightRecorder log("device");
  log.begin("all_reduce", {3});
  log.end();
  const auto since = std::chrono::steady_clock::now();
  log.begin("all_reduce", {4});
  log.end();
  EXPECT_FALSE(log.newest().pending);
  log.watch([since] { return std::optional(since); });
  EXPECT_TRUE(log.newest().pending);
  EXPECT_EQ(log.newest().begin, since);
  const std::vector<CollectiveRecord> all = log.all();
  EXPECT_FALSE(all[0].pending);
  EXPECT_TRUE(all[1].pending);
  log.watch([] { return std::nullopt; });
  EXPECT_FALSE(log.newest().pending);
  log.watch({});
  EXPECT_FALSE(log.all()[1].pending);
}

}  // namespace
}  // namespace pal::dist
