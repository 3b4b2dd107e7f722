// thread_comm: the collectives of the test communicator itself, on sums that are exact.
#include "tests/core/comm/thread_comm.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace pal::comm {
namespace {

TEST(ThreadComm, ImplementsTheInterface) {
  run_ranks(3, [](ThreadComm& comm) {
    const int r = comm.rank();
    at::Tensor t = at::full({2}, r + 1, at::kFloat);
    comm.all_reduce(t);
    EXPECT_TRUE(at::equal(t, at::full({2}, 6, at::kFloat)));
    comm.all_reduce(t.fill_(r), ReduceOp::max);
    EXPECT_EQ(t[0].item<float>(), 2);
    comm.all_reduce(t.fill_(r), ReduceOp::min);
    EXPECT_EQ(t[0].item<float>(), 0);

    const at::Tensor own = at::full({r}, r, at::kLong);  // rank r gives r rows
    const at::Tensor all = comm.all_gather_v(own, {0, 1, 2});
    EXPECT_EQ(all.sizes(), at::IntArrayRef({3}));
    EXPECT_EQ(all[0].item<int64_t>(), 1);
    EXPECT_EQ(all[2].item<int64_t>(), 2);
    EXPECT_EQ(comm.gather_v(own, {0, 1, 2}, 1).defined(), r == 1);

    const at::Tensor kept = comm.reduce_scatter(at::arange(4, at::kDouble), {1, 0, 3});
    EXPECT_TRUE(
        at::equal(kept, r == 0 ? at::full({1}, 0., at::kDouble) : at::arange(1, r == 1 ? 1 : 4, at::kDouble).mul(3)));

    // Rank r sends one row to every rank: 10 r + receiver.
    const at::Tensor got = comm.all_to_all_v(at::arange(3, at::kInt).add(10 * r), {1, 1, 1}, {1, 1, 1});
    EXPECT_TRUE(at::equal(got, at::arange(3, at::kInt).mul(10).add(r)));
    comm.broadcast(t.fill_(r), 2);
    EXPECT_EQ(t[1].item<float>(), 2);
  });
}

TEST(ThreadComm, ReleasesRanksThatWaitForAFailedRank) {
  EXPECT_THROW(run_ranks(2,
                         [](ThreadComm& comm) {
                           if (comm.rank() == 1) throw Error(Exit::data, "rank 1 fails");
                           comm.barrier();
                         }),
               Error);
}

}  // namespace
}  // namespace pal::comm
