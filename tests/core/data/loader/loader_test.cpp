// loader: the views of a step equal direct calls of the kernel, for any ranks, threads, depth and first step.
#include "core/data/loader/loader.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/comm/rank_slices.h"
#include "tests/core/data/loader/direct_views.h"
#include "tests/core/data/memory_dataset.h"

namespace pal::data {
namespace {

LoaderOptions small_options(int64_t samples) {
  LoaderOptions o;
  o.plan = {samples, 23, 5};
  kernels::ViewPolicy second;
  second.blur = 0.5f;
  second.solarize = 0.5f;
  o.views.policies = {{}, second, {}};
  o.views.large.seed = 5;
  o.views.large.size = 12;
  o.planned_until = 3 * o.plan.steps_per_epoch();
  return o;
}

std::vector<int64_t> rank_samples(const LoadedStep& s, int rank) {
  return {s.samples.begin() + s.rank_begin[rank], s.samples.begin() + s.rank_begin[rank + 1]};
}

TEST(Loader, EqualsTheKernelForAnyRanksThreadsAndDepth) {
  const auto data = std::make_shared<MemoryDataset>(50, 14, 17, 3);
  struct Case {
    int ranks, threads, depth;
    kernels::Layout layout;
    at::ScalarType dtype;
  };
  for (const Case& c :
       {Case{1, 1, 1, kernels::Layout::nchw, at::kFloat}, Case{1, 4, 3, kernels::Layout::channels_last, at::kFloat},
        Case{2, 3, 2, kernels::Layout::nchw, at::kDouble}, Case{3, 2, 5, kernels::Layout::nchw, at::kFloat}}) {
    SCOPED_TRACE("ranks " + std::to_string(c.ranks) + " threads " + std::to_string(c.threads) + " depth " +
                 std::to_string(c.depth));
    LoaderOptions o = small_options(50);
    o.ranks = c.ranks;
    o.threads = c.threads;
    o.depth = c.depth;
    o.views.large.layout = c.layout;
    o.dtype = c.dtype;
    for (o.rank = 0; o.rank < c.ranks; ++o.rank) {
      Loader loader(data, o);
      for (int64_t step = 0; step < o.planned_until; ++step) {
        const LoadedStep s = loader.next();
        EXPECT_EQ(s.step, step);
        ASSERT_EQ(s.samples, batch_samples(o.plan, step));
        ASSERT_EQ(s.rank_begin, comm::rank_slices(static_cast<int64_t>(s.samples.size()), c.ranks));
        const auto own = rank_samples(s, o.rank);
        const at::Tensor want = c.dtype == at::kDouble ? direct_views<double>(*data, o, own, step)
                                                       : direct_views<float>(*data, o, own, step);
        ASSERT_EQ(s.images.strides(), want.strides());
        ASSERT_TRUE(at::equal(s.images, want)) << "step " << step;
      }
    }
  }
}

TEST(Loader, ADeviceThatRendersGivesTheSameBits) {
  const auto data = std::make_shared<MemoryDataset>(50, 9, 9, 1);
  LoaderOptions o = small_options(50);
  o.render = Render::device;
  Loader loader(data, o);
  for (int64_t step = 0; step < o.planned_until; ++step) {
    const LoadedStep s = loader.next();
    ASSERT_TRUE(at::equal(s.images, direct_views<float>(*data, o, s.samples, step))) << "step " << step;
  }
}

TEST(Loader, SubsetGivesSampleIds) {
  const auto data = std::make_shared<MemoryDataset>(200, 9, 9, 1);
  LoaderOptions o = small_options(30);
  for (int64_t i = 0; i < 30; ++i) o.subset.push_back(199 - 5 * i);
  Loader loader(data, o);
  std::vector<int64_t> seen;
  for (int64_t step = 0; step < o.plan.steps_per_epoch(); ++step) {
    const LoadedStep s = loader.next();
    ASSERT_TRUE(at::equal(s.images, direct_views<float>(*data, o, s.samples, step)));
    seen.insert(seen.end(), s.samples.begin(), s.samples.end());
  }
  std::sort(seen.begin(), seen.end(), std::greater<>());
  EXPECT_EQ(seen, o.subset);
}

// Pairs that become known after step 4 change the batches from step 4 on and none before, however far ahead the threads
// are.
TEST(Loader, BatchesFollowWhatIsKnownAtTheirStep) {
  const auto data = std::make_shared<MemoryDataset>(60, 8, 8, 1);
  graph::GraphStore store(60);
  for (int64_t i = 1; i < 10; ++i) store.insert(0, i, graph::Relation::same);
  const std::vector<int64_t> all = [] {
    std::vector<int64_t> v;
    for (int64_t i = 0; i < 60; ++i) v.push_back(i);
    return v;
  }();
  const auto early = std::make_shared<const graph::EdgeDraw>(store, all);
  for (int64_t i = 41; i < 50; ++i) store.insert(40, i, graph::Relation::same);
  const auto late = std::make_shared<const graph::EdgeDraw>(store, all);
  LoaderOptions o = small_options(60);
  o.plan.global_batch = 6;
  o.edge_samples = 4;
  o.planned_until = 0;
  o.threads = 3;
  o.depth = 5;
  Loader loader(data, o);
  int64_t from_late = 0;
  for (int64_t step = 0; step < 8; ++step) {
    if (step % 4 == 0) loader.plan_on(step + 4, step == 0 ? early : late);
    const LoadedStep s = loader.next();
    std::vector<int64_t> want = batch_samples(o.plan, step);
    (step < 4 ? early : late)->add_to(want, 4, o.plan.seed, step);
    ASSERT_EQ(s.samples, want) << "step " << step;
    ASSERT_EQ(s.weights.size(), want.size());
    for (size_t k = 0; k < want.size(); ++k) {
      ASSERT_DOUBLE_EQ(s.weights[k], 1 / (step < 4 ? early : late)->inclusion(want[k], 4, 6.0 / 60));
    }
    ASSERT_TRUE(at::equal(s.images, direct_views<float>(*data, o, s.samples, step)));
    for (size_t k = 6; k < s.samples.size(); ++k) {
      ASSERT_TRUE(s.samples[k] < 10 || (step >= 4 && s.samples[k] >= 40 && s.samples[k] < 50)) << "step " << step;
      from_late += s.samples[k] >= 40;
    }
  }
  EXPECT_GT(from_late, 0);
}

TEST(Loader, ResumedEqualsUninterrupted) {
  const auto data = std::make_shared<MemoryDataset>(50, 14, 17, 3);
  LoaderOptions o = small_options(50);
  o.threads = 2;
  Loader whole(data, o);
  std::vector<LoadedStep> steps;
  for (int64_t s = 0; s < o.planned_until; ++s) steps.push_back(whole.next());
  o.first_step = 4;  // inside the second epoch
  o.threads = 3;
  Loader resumed(data, o);
  for (int64_t s = 4; s < o.planned_until; ++s) {
    const LoadedStep got = resumed.next();
    EXPECT_EQ(got.step, s);
    EXPECT_EQ(got.samples, steps[s].samples);
    EXPECT_TRUE(at::equal(got.images, steps[s].images));
  }
}

TEST(Loader, HoldsAtMostDepthSteps) {
  const auto data = std::make_shared<MemoryDataset>(1000, 4, 4, 1);
  LoaderOptions o = small_options(1000);
  o.plan.global_batch = 10;
  o.planned_until = 100;
  o.threads = 3;
  o.depth = 2;
  Loader loader(data, o);
  for (int i = 0; i < 1000 && data->reads < 20; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(data->reads, 20);
  loader.next();
  for (int i = 0; i < 1000 && data->reads < 30; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(data->reads, 30);
}

TEST(Loader, ErrorReachesItsStep) {
  const auto data = std::make_shared<MemoryDataset>(50, 8, 8, 1);
  LoaderOptions o = small_options(50);
  o.threads = 3;
  data->broken = batch_samples(o.plan, 2)[4];
  Loader loader(data, o);
  EXPECT_NO_THROW(loader.next());
  EXPECT_NO_THROW(loader.next());
  for (int again = 0; again < 2; ++again) {
    try {
      loader.next();
      FAIL() << "the broken sample was not noticed";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::data);
      EXPECT_NE(std::string(e.what()).find("CRC of sample: " + std::to_string(data->broken)), std::string::npos);
    }
  }
}

TEST(Loader, ErrorOfTheKernelReachesNext) {
  const auto data = std::make_shared<MemoryDataset>(50, 8, 8, 2);  // two channels
  Loader loader(data, small_options(50));
  EXPECT_THROW(loader.next(), Error);
}

TEST(Loader, StopsQuicklyInTheMiddle) {
  const auto data = std::make_shared<MemoryDataset>(10000, 8, 8, 1);
  data->delay = std::chrono::milliseconds(2);
  LoaderOptions o = small_options(10000);
  o.plan.global_batch = 1000;
  o.threads = 4;
  o.planned_until = 10;
  const auto start = std::chrono::steady_clock::now();
  {
    Loader loader(data, o);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_LT(data->reads, 1000);
  { const Loader never_asked(data, o); }
}

TEST(Loader, RankWithoutRowsGetsAnEmptyTensor) {
  const auto data = std::make_shared<MemoryDataset>(2, 8, 8, 1);
  LoaderOptions o = small_options(2);
  o.ranks = 3;
  o.rank = 2;
  Loader loader(data, o);
  EXPECT_EQ(loader.next().images.size(0), 0);
}

TEST(Loader, CenterViews) {
  const auto data = std::make_shared<MemoryDataset>(50, 14, 17, 3);
  const kernels::AugmentOptions o = small_options(50).views.large;
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < 33; ++i) samples.push_back((i * 7) % 50);
  const auto views = [&](int64_t batch, int threads) {
    LoaderOptions options = center_views(*data, samples, batch, o, at::kDouble);
    options.threads = threads;
    Loader loader(data, options);
    std::vector<at::Tensor> steps;
    for (int64_t step = 0; step < options.planned_until; ++step) steps.push_back(loader.next().images.clone());
    return at::cat(steps);
  };
  const at::Tensor all = views(33, 1);
  EXPECT_TRUE(at::equal(all, views(33, 3)));
  EXPECT_TRUE(at::equal(all, views(5, 2)));  // in the order of the samples
  std::vector<at::Tensor> singles;
  for (const int64_t s : samples) {
    std::vector<uint8_t> bytes;
    data->read(s, bytes);
    const kernels::ImageView image = data->image(s, bytes);
    at::Tensor one = at::empty({1, 3, 12, 12}, at::kDouble);
    std::vector<char> scratch(kernels::cpu::augment_scratch_bytes({&image, 1}, o, {1}));
    kernels::cpu::center_view(one.data_ptr<double>(), {&image, 1}, o,
                              {scratch.data(), static_cast<int64_t>(scratch.size())}, {1});
    singles.push_back(one);
  }
  EXPECT_TRUE(at::equal(all, at::cat(singles)));
  data->broken = samples[20];
  EXPECT_THROW(views(33, 2), Error);
}

TEST(Loader, StepsOfCenterViewsFitIntoMemory) {
  const MemoryDataset data(50, 14, 17, 3);
  kernels::AugmentOptions o = small_options(50).views.large;
  const std::vector<int64_t> samples(40, 1);
  EXPECT_EQ(center_views(data, samples, 256, o, at::kFloat).plan.global_batch, 256);
  o.size = 2000;  // 48 MB
  const LoaderOptions large = center_views(data, samples, 256, o, at::kFloat);
  EXPECT_EQ(large.plan.global_batch, 5);
  EXPECT_EQ(large.planned_until, 8);
}

}  // namespace
}  // namespace pal::data
