// local_comm: every collective on one process is the identity.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "core/comm/comm.h"
#include "kernels/base/error.h"

namespace pal::comm {
namespace {

TEST(LocalComm, IsTheIdentity) {
  auto comm = make_local_comm();
  EXPECT_EQ(comm->rank(), 0);
  EXPECT_EQ(comm->size(), 1);
  const at::Tensor t = at::arange(6, at::kDouble).reshape({3, 2});
  EXPECT_TRUE(at::equal(comm->all_gather(t), t));
  EXPECT_TRUE(at::equal(comm->all_gather_v(t, {3}), t));
  EXPECT_TRUE(at::equal(comm->gather_v(t, {3}, 0), t));
  EXPECT_TRUE(at::equal(comm->reduce_scatter(t, {3}), t));
  EXPECT_TRUE(at::equal(comm->all_to_all_v(t, {3}, {3}), t));
  at::Tensor u = t.clone();
  comm->all_reduce(u);
  comm->broadcast(u, 0);
  EXPECT_TRUE(at::equal(u, t));
  EXPECT_THROW(comm->all_gather_v(t, {2}), Error);
}

}  // namespace
}  // namespace pal::comm
