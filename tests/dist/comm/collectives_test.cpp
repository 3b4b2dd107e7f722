// collectives: each one on small integers, whose sums are exact, compared bit for bit with the expected values.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

#include "kernels/base/error.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

// The input of rank r: `rows` rows of width 3; the value is different for every rank, row and column.
at::Tensor given(int rank, int64_t rows, at::ScalarType type) {
  return (at::arange(rows * 3, at::kLong).remainder(17) + 5 * rank).reshape({rows, 3}).to(type);
}

enum class Waits { spinning, sleeping };  // a communicator of either kind

class Collectives : public testing::TestWithParam<std::tuple<at::ScalarType, Waits>> {
 protected:
  const at::ScalarType type = std::get<0>(GetParam());
  comm::Comm& comm = std::get<1>(GetParam()) == Waits::spinning ? test_world().compute() : test_world().oracle();
  const int W = comm.size(), r = comm.rank();
  // Uneven on purpose: rank k has k + 1 rows, rank 2 none.
  std::vector<int64_t> counts() const {
    std::vector<int64_t> n;
    for (int k = 0; k < W; ++k) n.push_back(k == 2 ? 0 : k + 1);
    return n;
  }
  at::Tensor everyone(const std::vector<int64_t>& n) const {
    std::vector<at::Tensor> parts;
    for (int k = 0; k < W; ++k) parts.push_back(given(k, n[k], type));
    return at::cat(parts);
  }
};

TEST_P(Collectives, AllReduce) {
  for (int64_t rows : {0, 1, 7, 5000}) {
    at::Tensor sum = given(r, rows, type), low = sum.clone(), high = sum.clone();
    comm.all_reduce(sum, comm::ReduceOp::sum);
    comm.all_reduce(low, comm::ReduceOp::min);
    comm.all_reduce(high, comm::ReduceOp::max);
    at::Tensor expected = at::zeros({rows, 3}, type);
    for (int k = 0; k < W; ++k) expected += given(k, rows, type);
    EXPECT_TRUE(at::equal(sum, expected)) << rows;
    EXPECT_TRUE(at::equal(low, given(0, rows, type)));
    EXPECT_TRUE(at::equal(high, given(W - 1, rows, type)));
  }
}

// The communicator whose waits sleep has its own path for large sums: of one block, of several, and of uneven slices.
TEST_P(Collectives, LargeSums) {
  for (int64_t rows : {(1 << 18) / 3, (1 << 21) / 3 + 1, 1'500'001}) {
    at::Tensor sum = given(r, rows, type);
    comm.all_reduce(sum, comm::ReduceOp::sum);
    at::Tensor expected = at::zeros({rows, 3}, type);
    for (int k = 0; k < W; ++k) expected += given(k, rows, type);
    EXPECT_TRUE(at::equal(sum, expected)) << rows;
  }
}

TEST(LargeSum, AddsInTheOrderOfRanks) {
  comm::Comm& bulk = test_world().gradients();
  const int64_t n = 300'001;
  const auto share = [&](int rank) {
    return at::arange(n, at::kFloat) / (3.0f + static_cast<float>(rank));
  };  // sums of these are rounded
  at::Tensor sum = share(bulk.rank()), expected = share(0);
  for (int k = 1; k < bulk.size(); ++k) expected = expected + share(k);
  bulk.all_reduce(sum, comm::ReduceOp::sum);
  EXPECT_TRUE(at::equal(sum, expected));
}

TEST_P(Collectives, Gathers) {
  EXPECT_TRUE(at::equal(comm.all_gather(given(r, 4, type)), everyone(std::vector<int64_t>(W, 4))));
  const auto n = counts();
  EXPECT_TRUE(at::equal(comm.all_gather_v(given(r, n[r], type), n), everyone(n)));
  for (int root = 0; root < W; ++root) {
    const at::Tensor all = comm.gather_v(given(r, n[r], type), n, root);
    EXPECT_EQ(all.defined(), r == root);
    if (r == root) {
      EXPECT_TRUE(at::equal(all, everyone(n)));
    }
  }
}

TEST_P(Collectives, ReduceScatter) {
  const auto n = counts();
  const int64_t total = std::accumulate(n.begin(), n.end(), int64_t{0});
  at::Tensor expected = at::zeros({total, 3}, type);
  for (int k = 0; k < W; ++k) expected += given(k, total, type);
  const int64_t begin = std::accumulate(n.begin(), n.begin() + r, int64_t{0});
  EXPECT_TRUE(at::equal(comm.reduce_scatter(given(r, total, type), n), expected.narrow(0, begin, n[r])));
}

TEST_P(Collectives, AllToAll) {
  // Rank a sends (a + 2b) mod 3 rows to rank b, filled with 10 a + b.
  const auto rows = [](int from, int to) { return int64_t{(from + 2 * to) % 3}; };
  std::vector<int64_t> send, recv;
  std::vector<at::Tensor> out, expected;
  for (int k = 0; k < W; ++k) {
    send.push_back(rows(r, k));
    recv.push_back(rows(k, r));
    out.push_back(at::zeros({send[k], 2}, type).fill_(10 * r + k));
    expected.push_back(at::zeros({recv[k], 2}, type).fill_(10 * k + r));
  }
  EXPECT_TRUE(at::equal(comm.all_to_all_v(at::cat(out), send, recv), at::cat(expected)));
}

TEST_P(Collectives, Broadcast) {
  comm.barrier();
  for (int root = 0; root < W; ++root) {
    at::Tensor t = given(r, 5, type);
    comm.broadcast(t, root);
    EXPECT_TRUE(at::equal(t, given(root, 5, type)));
  }
}

TEST_P(Collectives, WrongCountsAreRefusedBeforeAnythingIsSent) {
  EXPECT_THROW(comm.all_gather_v(given(r, 2, type), std::vector<int64_t>(W, 3)), Error);
  EXPECT_THROW(comm.all_gather_v(given(r, 2, type).t(), std::vector<int64_t>(W, 3)), Error);
}

INSTANTIATE_TEST_SUITE_P(Types, Collectives,
                         testing::Combine(testing::Values(at::kFloat, at::kDouble, at::kInt, at::kLong, at::kByte),
                                          testing::Values(Waits::spinning, Waits::sleeping)),
                         [](const auto& info) {
                           return std::string(c10::toString(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) == Waits::spinning ? "Spinning" : "Sleeping");
                         });

TEST(World, RanksAndHost) {
  World& w = test_world();
  EXPECT_GE(w.rank(), 0);
  EXPECT_LT(w.rank(), w.size());
  EXPECT_EQ(w.local_size(), w.size());  // the tests run on one host
  EXPECT_EQ(w.local_rank(), w.rank());
  EXPECT_FALSE(w.host().empty());
}

}  // namespace
}  // namespace pal::dist
