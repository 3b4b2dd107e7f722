// wire: the bytes that a VICReg step sends. In the covariance form they do not depend on W or the rows; the gather of
// the official code grows with both.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "core/comm/comm.h"
#include "core/comm/rank_slices.h"
#include "core/config/config.h"
#include "core/graph/store.h"
#include "core/loss/criterion.h"
#include "kernels/moments.h"
#include "tests/core/comm/thread_comm.h"
#include "tests/core/spec_of.h"

namespace pal::loss {
namespace {

constexpr int64_t kDims = 24;
constexpr int32_t kTwo = 2;

// Bytes of the collectives of the loss on a rank with `local` samples of two views.
int64_t loss_bytes(int ranks, int64_t local) {
  const int64_t samples = ranks * local;
  const Criterion criterion = make_criterion(spec_of({"loss.kind=vicreg"}).loss);
  at::manual_seed(1);
  const at::Tensor z = at::randn({kTwo * local, kDims});
  int64_t bytes = 0;
  comm::run_ranks(ranks, [&](comm::Comm& inner) {
    comm::CountingComm comm(inner);
    Batch batch;
    for (int64_t s = 0; s < samples; ++s) batch.samples.push_back(s);
    batch.rank_begin = comm::rank_slices(samples, ranks);
    batch.begin = batch.rank_begin[comm.rank()];
    batch.end = batch.rank_begin[comm.rank() + 1];
    batch.graph = graph::build_batch_graph(graph::GraphStore(samples), graph::GraphKind::ssl, 0, batch.samples, kTwo);
    criterion(z, batch, comm);
    if (comm.rank() == 0) bytes = comm.bytes();
  });
  return bytes;
}

// all_gather of two views, and the all-reduce of the gathered rows' gradient in backward.
int64_t official_bytes(int ranks, int64_t local) {
  return 2 * kTwo * ranks * local * kDims * static_cast<int64_t>(sizeof(float));
}

TEST(Wire, TheCovarianceFormDoesNotGrow) {
  ASSERT_TRUE(kernels::covariance_form_wins(2 * 64, kDims, sizeof(float), sizeof(double)));
  const int64_t bytes = loss_bytes(2, 64);
  // Means and packed second moments of two views, and the share of the invariance, in fp64.
  const int64_t moments = kTwo * (kDims + kernels::packed_size(kDims)) * static_cast<int64_t>(sizeof(double));
  EXPECT_GE(bytes, moments);
  EXPECT_LE(bytes, moments + 64);
  EXPECT_EQ(loss_bytes(4, 64), bytes);
  EXPECT_EQ(loss_bytes(8, 64), bytes);
  EXPECT_EQ(loss_bytes(4, 100), bytes);
  EXPECT_LT(bytes, official_bytes(2, 64));
  EXPECT_EQ(loss_bytes(1, 64), 0);
}

TEST(Wire, TheGramFormSendsNothingInBackward) {
  ASSERT_FALSE(kernels::covariance_form_wins(2 * 4, kDims, sizeof(float), sizeof(double)));
  const int64_t means = kTwo * kDims * static_cast<int64_t>(sizeof(double));
  EXPECT_LE(loss_bytes(2, 4), official_bytes(2, 4) / 2 + means + 64);
}

}  // namespace
}  // namespace pal::loss
