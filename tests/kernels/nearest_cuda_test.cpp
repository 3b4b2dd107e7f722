// nearest on CUDA: the ids of the CPU twin, for ties, exclusions, non-finite rows, cuts of the support and merging.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/nearest.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

enum class Values { normal, integers };  // integers: many exact ties

struct Case {
  int64_t queries, support, dims, k, excluded;
  Values values = Values::normal;
};

struct Result {
  std::vector<int64_t> ids;
  std::vector<double> scores;
  NearestOut view(int64_t queries, int64_t k) { return {{ids.data(), queries, k}, {scores.data(), queries, k}}; }
};

template <class T>
struct Twins {
  Case c;
  std::vector<T> queries, support;
  std::vector<int64_t> ids, samples, excluded;

  Twins(const Case& c, Random& random) : c(c) {
    const auto value = [&] { return c.values == Values::integers ? double(random.below(3)) - 1 : random.normal(); };
    for (int64_t n = 0; n < c.queries * c.dims; ++n) queries.push_back(Storage<T>::store(value()));
    for (int64_t n = 0; n < c.support * c.dims; ++n) support.push_back(Storage<T>::store(value()));
    for (int64_t j = 0; j < c.support; ++j) ids.push_back((j * 7 + 3) % c.support + 100);  // in no order
    if (std::gcd(int64_t{7}, c.support) != 1) std::iota(ids.begin(), ids.end(), 100);
    for (int64_t j = 0; j < c.support; ++j) samples.push_back(j / 2);
    for (int64_t n = 0; n < c.queries * c.excluded; ++n) excluded.push_back(int64_t(random.below(c.support)) - 1);
  }

  Result on_cpu(Metric metric) const {
    std::vector<float> q, s;  // bf16 as float: the same numbers
    for (const T& x : queries) q.push_back(float(Storage<T>::read(x)));
    for (const T& x : support) s.push_back(float(Storage<T>::read(x)));
    Result r{std::vector<int64_t>(c.queries * c.k), std::vector<double>(c.queries * c.k)};
    std::vector<char> scratch(cpu::nearest_scratch_bytes<float>(c.queries, c.support, c.dims, c.k));
    cpu::nearest<float>(r.view(c.queries, c.k), {q.data(), c.queries, c.dims},
                        {{s.data(), c.support, c.dims}, {ids.data(), c.support}, {samples.data(), c.support}},
                        {excluded.data(), c.queries, c.excluded}, metric, {scratch.data(), int64_t(scratch.size())},
                        Cpu{});
    return r;
  }

  // Of support rows [begin, end).
  Result on_cuda(Metric metric, int64_t begin, int64_t end) const {
    const DeviceArray<T> q(queries), s(support);
    const DeviceArray<int64_t> device_ids(ids), device_samples(samples), device_excluded(excluded),
        out_ids(c.queries * c.k);
    const DeviceArray<double> out_scores(c.queries * c.k);
    const DeviceArray<char> scratch(cuda::nearest_scratch_bytes<T>(c.queries, end - begin, c.dims, c.k));
    cuda::nearest<T>({{out_ids.data(), c.queries, c.k}, {out_scores.data(), c.queries, c.k}},
                     {q.data(), c.queries, c.dims},
                     {{s.data() + begin * c.dims, end - begin, c.dims},
                      {device_ids.data() + begin, end - begin},
                      {device_samples.data() + begin, end - begin}},
                     {device_excluded.data(), c.queries, c.excluded}, metric, scratch.scratch(), nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    return {out_ids.host(), out_scores.host()};
  }

  void expect_equal(Metric metric) const {
    SCOPED_TRACE(testing::Message() << "metric " << int(metric) << ", " << c.queries << " x " << c.support << ", dims "
                                    << c.dims << ", k " << c.k);
    const Result want = on_cpu(metric), got = on_cuda(metric, 0, c.support);
    for (size_t n = 0; n < want.ids.size(); ++n) {
      ASSERT_EQ(got.ids[n], want.ids[n]) << "query " << n / c.k << ", place " << n % c.k << ", score "
                                         << want.scores[n];
      if (want.ids[n] < 0)
        ASSERT_EQ(got.scores[n], want.scores[n]);
      else
        ASSERT_NEAR(got.scores[n], want.scores[n], 1e-12 * (1 + std::abs(want.scores[n])));
    }
  }
  void expect_both() const {
    expect_equal(Metric::cosine);
    expect_equal(Metric::euclidean);
  }
};

class NearestCuda : public CudaTest {};

TEST_F(NearestCuda, EqualsTheCpu) {
  Random random(61, Purpose::bench);
  SCOPED_TRACE("seed 61");
  for (const Case& c : {Case{1, 1, 1, 1, 0}, Case{3, 5, 2, 9, 1}, Case{70, 130, 33, 5, 2}, Case{5, 200, 17, 64, 3},
                        Case{4, 100, 3, 64, 0}, Case{9, 65, 130, 33, 0}}) {
    Twins<float>(c, random).expect_both();
    Twins<bf16>(c, random).expect_both();
  }
}

TEST_F(NearestCuda, EqualScoresGoByTheLowerId) {
  Random random(62, Purpose::bench);
  SCOPED_TRACE("seed 62");
  for (const int64_t k : {1, 7, 32, 64}) {
    Twins<float>({6, 150, 3, k, 1, Values::integers}, random).expect_both();
    Twins<bf16>({6, 150, 3, k, 1, Values::integers}, random).expect_both();
  }
}

// Enough support to be cut in two; and the results of its shards merge to those of the whole, bit for bit.
TEST_F(NearestCuda, CutsAndShardsMergeExactly) {
  Random random(63, Purpose::bench);
  SCOPED_TRACE("seed 63");
  const Case c{3, 2100, 4, 6, 1, Values::integers};
  const Twins<float> twins(c, random);
  twins.expect_both();
  const Result whole = twins.on_cuda(Metric::cosine, 0, c.support);
  Result parts{{}, {}};
  const int64_t ends[] = {0, 3, 700, c.support};  // the first has fewer rows than k
  for (int p = 0; p < 3; ++p) {
    const Result part = twins.on_cuda(Metric::cosine, ends[p], ends[p + 1]);
    parts.ids.insert(parts.ids.end(), part.ids.begin(), part.ids.end());
    parts.scores.insert(parts.scores.end(), part.scores.begin(), part.scores.end());
  }
  const DeviceArray<int64_t> ids(parts.ids), out_ids(c.queries * c.k);
  const DeviceArray<double> scores(parts.scores), out_scores(c.queries * c.k);
  cuda::nearest_merge({{out_ids.data(), c.queries, c.k}, {out_scores.data(), c.queries, c.k}},
                      {ids.data(), 3 * c.queries, c.k}, {scores.data(), 3 * c.queries, c.k}, 3, Metric::cosine,
                      nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_EQ(out_ids.host(), whole.ids);
  EXPECT_EQ(out_scores.host(), whole.scores);
}

TEST_F(NearestCuda, ZeroAndNotFiniteRows) {
  Random random(64, Purpose::bench);
  SCOPED_TRACE("seed 64");
  Twins<float> twins({4, 80, 5, 10, 0}, random);
  const float bad[] = {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  for (int n = 0; n < 3; ++n) twins.support[(n * 20 + 3) * 5 + n] = bad[n];
  std::fill_n(twins.support.begin() + 70 * 5, 5, 0.0f);
  std::fill_n(twins.queries.begin(), 5, 0.0f);
  twins.queries[2 * 5 + 1] = bad[0];
  twins.expect_both();
}

TEST_F(NearestCuda, NoSupport) {
  Random random(65, Purpose::bench);
  const Result none = Twins<float>({2, 1, 3, 4, 0}, random).on_cuda(Metric::euclidean, 0, 0);
  EXPECT_EQ(none.ids, std::vector<int64_t>(8, -1));
  EXPECT_EQ(none.scores, std::vector<double>(8, std::numeric_limits<double>::infinity()));
}

}  // namespace
}  // namespace pal::kernels
