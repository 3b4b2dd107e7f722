// nearest: the ids are those of a search that scores and sorts every pair in double precision.
#include "kernels/nearest.h"

#include <algorithm>
#include <numeric>

#include "tests/kernels/common.h"

namespace pal::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Metric kMetrics[] = {Metric::cosine, Metric::euclidean};

struct Found {
  Matrix<int64_t> ids;
  Matrix<double> scores;
  Found(int64_t queries, int64_t k) : ids(queries, k), scores(queries, k) {}
  NearestOut view() { return {ids.view(), scores.view()}; }
};

// What a search is given beside the rows; all of it may be empty.
struct Names {
  std::vector<int64_t> ids = {}, samples = {};
  Matrix<int64_t> excluded = Matrix<int64_t>(0, 0);
};

template <class T>
double naive_score(const Matrix<T>& a, int64_t i, const Matrix<T>& b, int64_t j, Metric metric) {
  double dot = 0, aa = 0, bb = 0, distance = 0;
  for (int64_t k = 0; k < a.cols; ++k) {
    const double x = a.get(i, k), y = b.get(j, k);
    dot += x * y;
    aa += x * x;
    bb += y * y;
    distance += (x - y) * (x - y);
  }
  if (metric == Metric::euclidean) return distance;
  return aa == 0 || bb == 0 ? 0 : dot / (std::sqrt(aa) * std::sqrt(bb));
}

template <class T>
Found naive(const Matrix<T>& queries, const Matrix<T>& support, int64_t k, Metric metric, const Names& names = {}) {
  Found found(queries.rows, k);
  const double sign = metric == Metric::cosine ? -1 : 1;
  for (int64_t q = 0; q < queries.rows; ++q) {
    std::vector<std::pair<double, int64_t>> all;
    for (int64_t j = 0; j < support.rows; ++j) {
      const int64_t id = names.ids.empty() ? j : names.ids[j], sample = names.samples.empty() ? id : names.samples[j];
      bool out = false;
      for (int64_t x = 0; x < names.excluded.cols; ++x) out = out || (sample >= 0 && names.excluded.at(q, x) == sample);
      const double score = naive_score(queries, q, support, j, metric);
      if (!out && std::isfinite(score)) all.push_back({sign * score, id});
    }
    std::sort(all.begin(), all.end());
    for (int64_t c = 0; c < k; ++c) {
      const bool there = c < static_cast<int64_t>(all.size());
      found.ids.at(q, c) = there ? all[c].second : -1;
      found.scores.at(q, c) = there ? sign * all[c].first : sign * kInfinity;
    }
  }
  return found;
}

template <class T>
Found run(const Matrix<T>& queries, const Matrix<T>& support, int64_t k, Metric metric, const Names& names = {},
          Cpu cpu = {}) {
  Found found(queries.rows, k);
  OwnScratch scratch(cpu::nearest_scratch_bytes<T>(queries.rows, support.rows, queries.cols, k));
  cpu::nearest<T>(found.view(), queries.view(), {support.view(), span(names.ids), span(names.samples)},
                  names.excluded.view(), metric, scratch, cpu);
  return found;
}

void expect_same(const Found& found, const Found& expected, double tolerance = 1e-12) {
  EXPECT_EQ(found.ids.data, expected.ids.data);
  for (size_t i = 0; i < found.scores.data.size(); ++i) {
    const double a = found.scores.data[i], b = expected.scores.data[i];
    EXPECT_TRUE(a == b || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) << a << " instead of " << b;
  }
}

template <class T>
void compare(const Matrix<T>& queries, const Matrix<T>& support, int64_t k, const Names& names = {}) {
  for (const Metric metric : kMetrics) {
    const Found expected = naive(queries, support, k, metric, names);
    for (const Cpu cpu : all_cpus()) {
      SCOPED_TRACE(describe(cpu) + ", metric " + std::to_string(static_cast<int>(metric)) + ", D " +
                   std::to_string(queries.cols));
      expect_same(run(queries, support, k, metric, names, cpu), expected);
    }
  }
}

std::vector<int64_t> range(int64_t n, int64_t first = 0) {
  std::vector<int64_t> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

template <class T>
class NearestTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(NearestTest, Types);

TYPED_TEST(NearestTest, EqualsTheNaiveSearchForAnyWidth) {
  using T = TypeParam;
  const uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const int64_t dims : {1, 2, 7, 16, 33, 127, 128, 129, 300}) {
    if (dims == 1) continue;  // every cosine is ±1: see the ties
    compare(random_matrix<T>(61, dims, seed, 3), random_matrix<T>(333, dims, seed + 1, 5), 1 + dims % 64);
  }
  compare(random_matrix<T>(5, 8192, seed), random_matrix<T>(130, 8192, seed + 1), 9);
  const auto queries = random_matrix<T>(20, 1, seed), support = random_matrix<T>(500, 1, seed + 1);
  expect_same(run(queries, support, 64, Metric::euclidean), naive(queries, support, 64, Metric::euclidean));
}

// Distances 1e-2 around a mean of 1e3: in float the expanded square ‖x‖² − 2xy + ‖y‖² would lose them.
TYPED_TEST(NearestTest, LargeMeansAndSmallDistances) {
  using T = TypeParam;
  compare(random_matrix<T>(30, 40, 21, 0, 1e3, 1e-2), random_matrix<T>(2500, 40, 22, 0, 1e3, 1e-2), 10);
  compare(random_matrix<T>(30, 40, 23, 0, -1e4, 1), random_matrix<T>(2500, 40, 24, 0, -1e4, 1), 10);
}

// Support rows at distance 1 and cosine 1/√2 of a query, but for the rounding of their elements: products in float
// cannot distinguish them, exact scores can.
TEST(Nearest, ScoresCloserThanTheProductsRound) {
  const int64_t dims = 300;
  const auto direction = random_matrix<double>(1, dims, 25);
  const double length = std::sqrt(naive_score(direction, 0, Matrix<double>(1, dims), 0, Metric::euclidean));
  auto away = random_matrix<double>(3000, dims, 26);
  Matrix<float> query(1, dims), support(3000, dims);
  for (int64_t k = 0; k < dims; ++k) query.at(0, k) = static_cast<float>(direction.at(0, k) / length);
  for (int64_t j = 0; j < 3000; ++j) {
    double dot = 0, square = 0;
    for (int64_t k = 0; k < dims; ++k) dot += away.at(j, k) * direction.at(0, k) / length;
    for (int64_t k = 0; k < dims; ++k) away.at(j, k) -= dot * direction.at(0, k) / length;
    for (int64_t k = 0; k < dims; ++k) square += away.at(j, k) * away.at(j, k);
    for (int64_t k = 0; k < dims; ++k)
      support.at(j, k) = static_cast<float>(direction.at(0, k) / length + away.at(j, k) / std::sqrt(square));
  }
  compare(query, support, 20);
}

TYPED_TEST(NearestTest, ExtremeScales) {
  using T = TypeParam;
  for (const double scale : {1e-25, 1e25, sizeof(T) == sizeof(float) ? 1e37 : 1e150}) {
    for (const Metric metric : kMetrics) {
      const auto queries = random_matrix<T>(20, 30, 31, 0, 0, scale),
                 support = random_matrix<T>(300, 30, 32, 0, 0, scale);
      const Found expected = naive(queries, support, 5, metric);
      for (const Cpu cpu : all_cpus()) {
        SCOPED_TRACE(describe(cpu) + ", scale " + std::to_string(scale));
        EXPECT_EQ(run(queries, support, 5, metric, {}, cpu).ids.data, expected.ids.data);
      }
    }
  }
}

TYPED_TEST(NearestTest, EqualScoresGoByTheLowerId) {
  using T = TypeParam;
  auto support = random_matrix<T>(700, 20, 41);
  for (int64_t j = 0; j < 700; ++j) {
    for (int64_t k = 0; k < 20; ++k) support.at(j, k) = support.at(j % 7, k);  // a hundred copies of seven rows
  }
  Names names;
  for (int64_t j = 0; j < 700; ++j) names.ids.push_back((j * 3'000'000'019) % 7'000'000'000'003);
  const auto queries = random_matrix<T>(9, 20, 42);
  compare(queries, support, 64);
  compare(queries, support, 64, names);
  Matrix<T> same(3000, 6), asked(4, 6);  // everything collapsed to one point
  same.fill(T{0.3});
  asked.fill(T{0.7});
  for (const Metric metric : kMetrics) {
    const Found found = run(asked, same, 5, metric);
    for (int64_t q = 0; q < 4; ++q) {
      for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(found.ids.at(q, c), c);
    }
  }
}

TYPED_TEST(NearestTest, ExcludedSamplesAreNoCandidates) {
  using T = TypeParam;
  const auto z = random_matrix<T>(400, 12, 51);
  Names self;  // a row is not its own neighbor
  self.excluded = Matrix<int64_t>(400, 1);
  for (int64_t i = 0; i < 400; ++i) self.excluded.at(i, 0) = i;
  compare(z, z, 5, self);
  EXPECT_NE(run(z, z, 1, Metric::euclidean, self).ids.at(3, 0), 3);
  EXPECT_EQ(run(z, z, 1, Metric::euclidean).ids.at(3, 0), 3);
  Names samples;  // two views of each sample, and a second sample that is excluded for some
  samples.ids = range(400, 1000);
  for (int64_t j = 0; j < 400; ++j) samples.samples.push_back(j % 11 ? j % 200 : -1);  // −1: of no sample
  samples.excluded = Matrix<int64_t>(400, 2, 1);
  for (int64_t i = 0; i < 400; ++i) {
    samples.excluded.at(i, 0) = i % 200;
    samples.excluded.at(i, 1) = i % 3 ? -1 : (i + 1) % 200;
  }
  compare(z, z, 7, samples);
}

TYPED_TEST(NearestTest, FewerCandidatesThanAsked) {
  using T = TypeParam;
  const auto queries = random_matrix<T>(50, 9, 61), support = random_matrix<T>(6, 9, 62);
  compare(queries, support, 64);
  compare(queries, Matrix<T>(0, 9), 3);
  compare(Matrix<T>(0, 9), support, 3);
  const Found none = run(queries, Matrix<T>(0, 9), 2, Metric::euclidean);
  EXPECT_EQ(none.ids.at(0, 1), -1);
  EXPECT_EQ(none.scores.at(0, 1), kInfinity);
  EXPECT_EQ(run(queries, Matrix<T>(0, 9), 2, Metric::cosine).scores.at(0, 1), -kInfinity);
  Names all;
  all.samples.assign(6, 4);
  all.excluded = Matrix<int64_t>(50, 1);
  all.excluded.fill(4);
  compare(queries, support, 2, all);
}

TYPED_TEST(NearestTest, ZeroRowsHaveCosineZero) {
  using T = TypeParam;
  auto queries = random_matrix<T>(20, 5, 71), support = random_matrix<T>(200, 5, 72, 0, 2, 1);
  for (int64_t k = 0; k < 5; ++k) {
    queries.at(3, k) = 0;
    for (int64_t j = 0; j < 200; j += 9) support.at(j, k) = 0;
  }
  compare(queries, support, 30);
}

TYPED_TEST(NearestTest, RowsThatAreNotFiniteAreNeverChosen) {
  using T = TypeParam;
  auto queries = random_matrix<T>(70, 33, 81), support = random_matrix<T>(300, 33, 82);
  for (int64_t j = 0; j < 300; j += 3) {
    support.at(j, j % 33) = j % 2 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
  }
  queries.at(5, 32) = std::numeric_limits<T>::quiet_NaN();
  queries.at(6, 0) = -std::numeric_limits<T>::infinity();
  compare(queries, support, 12);
  EXPECT_EQ(run(queries, support, 1, Metric::cosine).ids.at(5, 0), -1);
  EXPECT_EQ(run(queries, support, 1, Metric::euclidean).ids.at(6, 0), -1);
}

TYPED_TEST(NearestTest, ThreadsAndShardsKeepTheBits) {
  using T = TypeParam;
  const int64_t count = 5003, k = 11;
  const auto queries = random_matrix<T>(90, 30, 91);
  auto support = random_matrix<T>(count, 30, 92);
  for (int64_t c = 0; c < 30; ++c) {
    for (int64_t j = 0; j < count; j += 50) support.at(j, c) = support.at(j / 2, c);  // ties across shards
  }
  for (const Metric metric : kMetrics) {
    const Found whole = run(queries, support, k, metric, {}, Cpu{1});
    expect_same(whole, naive(queries, support, k, metric));
    for (const int threads : {2, 3}) {
      const Found again = run(queries, support, k, metric, {}, Cpu{threads});
      EXPECT_EQ(again.ids.data, whole.ids.data);
      EXPECT_EQ(again.scores.data, whole.scores.data);
    }
    for (const auto& cuts : {std::vector<int64_t>{0, 2500, count}, {0, 3, 3, 1900, 4999, count}}) {
      const int64_t parts = static_cast<int64_t>(cuts.size()) - 1;
      Found partial(parts * queries.rows, k), merged(queries.rows, k);
      for (int64_t p = 0; p < parts; ++p) {
        Matrix<T> shard(cuts[p + 1] - cuts[p], 30);
        std::copy_n(support.data.begin() + cuts[p] * 30, shard.data.size(), shard.data.begin());
        Names names;
        names.ids = range(shard.rows, cuts[p]);
        const Found found = run(queries, shard, k, metric, names, Cpu{2});
        std::copy(found.ids.data.begin(), found.ids.data.end(), partial.ids.data.begin() + p * queries.rows * k);
        std::copy(found.scores.data.begin(), found.scores.data.end(),
                  partial.scores.data.begin() + p * queries.rows * k);
      }
      cpu::nearest_merge(merged.view(), partial.ids.view(), partial.scores.view(), parts, metric, Cpu{2});
      EXPECT_EQ(merged.ids.data, whole.ids.data);
      EXPECT_EQ(merged.scores.data, whole.scores.data);
    }
  }
}

TYPED_TEST(NearestTest, RefusesBadArguments) {
  using T = TypeParam;
  const auto z = random_matrix<T>(3, 4, 101);
  const auto with = [&](const Names& names, int64_t k = 2) { run(z, z, k, Metric::cosine, names); };
  expect_error([&] { with({}, 0); }, "k: 0");
  expect_error([&] { with({}, 65); }, "k: 65");
  expect_error([&] { with({{0, 1}, {}}); }, "ids");
  expect_error([&] { with({{0, -1, 2}, {}}); }, "ids[1]: -1");
  expect_error([&] { with({{}, {0, 1}}); }, "samples");
  expect_error([&] { with({{}, {}, Matrix<int64_t>(2, 1)}); }, "excluded");
  expect_error([&] { run(z, Matrix<T>(3, 5), 2, Metric::cosine); }, "support");
  expect_error([&] { run(Matrix<T>(3, 0), Matrix<T>(3, 0), 2, Metric::cosine); }, "width");
  expect_error([&] { run(z, z, 2, Metric::cosine, {}, Cpu{0}); }, "threads");
  Found found(3, 2), few(2, 2), narrow(3, 1);
  OwnScratch scratch(cpu::nearest_scratch_bytes<T>(3, 3, 4, 2)), small(cpu::nearest_scratch_bytes<T>(3, 3, 4, 2) - 1);
  const SupportView<T> support{z.view(), {}, {}}, negative{{z.data.data(), -1, 4}, {}, {}};
  expect_error([&] { cpu::nearest<T>(few.view(), z.view(), support, {}, Metric::cosine, scratch, Cpu{}); },
               "ids of out");
  expect_error(
      [&] {
        cpu::nearest<T>({found.ids.view(), narrow.scores.view()}, z.view(), support, {}, Metric::cosine, scratch,
                        Cpu{});
      },
      "scores of out");
  expect_error([&] { cpu::nearest<T>(found.view(), z.view(), support, {}, Metric::cosine, small, Cpu{}); }, "scratch");
  expect_error([&] { cpu::nearest<T>(found.view(), z.view(), negative, {}, Metric::cosine, scratch, Cpu{}); },
               "support negative size");
  Found two(6, 2);
  expect_error([&] { cpu::nearest_merge(found.view(), two.ids.view(), two.scores.view(), 3, Metric::cosine, Cpu{}); },
               "ids");
  expect_error(
      [&] { cpu::nearest_merge(found.view(), two.ids.view(), narrow.scores.view(), 2, Metric::cosine, Cpu{}); },
      "scores");
  expect_error([&] { cpu::nearest_merge(found.view(), two.ids.view(), two.scores.view(), -1, Metric::cosine, Cpu{}); },
               "parts");
}

TEST(Nearest, SizesAreCountedIn64BitsAndStaySmall) {
  const int64_t rows = 1'300'000, dims = 8192;
  EXPECT_GE(cpu::nearest_scratch_bytes<float>(rows, rows, dims, 64), 4 * rows * dims) << "the packed queries";
  EXPECT_LT(cpu::nearest_scratch_bytes<float>(256, rows, dims, 64), int64_t{64} << 20) << "the support is not copied";
}

}  // namespace
}  // namespace pal::kernels
