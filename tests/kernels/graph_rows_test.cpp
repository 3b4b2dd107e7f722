// graph_rows: against the formulas of its header, pair by pair in double precision.
#include "kernels/graph_rows.h"

#include <limits>

#include "tests/kernels/common.h"

namespace pal::kernels {
namespace {

template <class T>
struct Graph {
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> columns;
  std::vector<T> weights;
  CsrView<T> view() const { return {span(offsets), span(columns), span(weights)}; }
  int64_t nnz() const { return static_cast<int64_t>(columns.size()); }
};

// degrees[i] partners of row i, drawn from `partners` with repeats.
template <class T>
Graph<T> random_graph(const std::vector<int64_t>& degrees, int64_t partners, uint64_t seed) {
  Random random(seed, Purpose::bench);
  Graph<T> g;
  for (const int64_t degree : degrees) {
    for (int64_t e = 0; e < degree; ++e) {
      g.columns.push_back(static_cast<int32_t>(random.below(partners)));
      g.weights.push_back(static_cast<T>(random.normal()));
    }
    g.offsets.push_back(g.nnz());
  }
  return g;
}

// The header's formulas; *size: the sum of the absolute values of all that is added up in the value.
template <class T>
double reference(Matrix<double>& out, double* size, const Matrix<T>& z, const Matrix<T>& p, const Graph<T>& g,
                 const GraphRowsOptions& o) {
  double value = 0;
  *size = 0;
  for (int64_t i = 0; i < z.rows; ++i) {
    std::vector<double> row(z.cols);
    for (int64_t e = g.offsets[i]; e < g.offsets[i + 1]; ++e) {
      const int64_t j = g.columns[e];
      const double w = static_cast<double>(g.weights[e]);
      double dot = 0, absolute = 0, distance = 0, zz = 0, pp = 0;
      for (int64_t k = 0; k < z.cols; ++k) {
        const double a = z.get(i, k), b = p.get(j, k);
        dot += a * b;
        absolute += std::abs(a * b);
        distance += (a - b) * (a - b);
        zz += a * a;
        pp += b * b;
      }
      for (int64_t k = 0; k < z.cols; ++k) {
        const double a = z.get(i, k), b = p.get(j, k);
        row[k] += w * (o.form == RowForm::sum ? b : o.form == RowForm::difference ? a - b : dot * b - a);
      }
      value += w * (o.form == RowForm::sum ? dot : o.form == RowForm::difference ? distance : dot * dot - zz - pp);
      *size += std::abs(w) * (o.form == RowForm::sum          ? absolute
                              : o.form == RowForm::difference ? distance
                                                              : absolute * absolute + zz + pp);
    }
    for (int64_t k = 0; k < z.cols; ++k) out.at(i, k) = (o.into == Into::add ? out.at(i, k) : 0) + o.scale * row[k];
  }
  return value;
}

template <class T>
double run(Matrix<T>& out, const Matrix<T>& z, const Matrix<T>& p, const Graph<T>& g, const GraphRowsOptions& o,
           Cpu cpu = {}) {
  double value = -1;
  OwnScratch scratch(cpu::graph_rows_scratch_bytes<T>(z.rows, g.nnz(), z.cols));
  cpu::graph_rows(out.view(), &value, z.view(), p.view(), g.view(), o, scratch, cpu);
  return value;
}

template <class T>
void compare(const Matrix<T>& z, const Matrix<T>& p, const Graph<T>& g, double row_tolerance, double value_tolerance) {
  for (const RowForm form : {RowForm::sum, RowForm::difference, RowForm::repulsion}) {
    for (const Into into : {Into::overwrite, Into::add}) {
      const GraphRowsOptions options{form, -1.5, into};
      Matrix<double> expected(z.rows, z.cols);
      expected.fill(0.25);
      double size = 0;
      const double value = reference(expected, &size, z, p, g, options);
      for (const Cpu cpu : all_cpus()) {
        SCOPED_TRACE(describe(cpu) + ", form " + std::to_string(static_cast<int>(form)) + ", D " +
                     std::to_string(z.cols));
        Matrix<T> out(z.rows, z.cols, 3);
        out.fill(static_cast<T>(0.25));
        const double got = run(out, z, p, g, options, cpu);
        EXPECT_LT(relative_error(out, expected), row_tolerance);
        EXPECT_LE(std::abs(got - value), value_tolerance * size);
      }
    }
  }
}

template <class T>
class GraphRowsTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GraphRowsTest, Types);

TYPED_TEST(GraphRowsTest, EqualsTheFormulasForAnyWidth) {
  using T = TypeParam;
  const uint64_t seed = 21;
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const int64_t dims : {1, 2, 7, 8, 15, 16, 17, 33, 64, 96, 100, 127, 128, 131, 257, 512, 1000}) {
    const auto z = random_matrix<T>(9, dims, seed, 2), p = random_matrix<T>(14, dims, seed + 1, 5);
    const auto g = random_graph<T>({0, 1, 2, 3, 14, 70, 0, 200, 5}, p.rows, seed + 2);
    compare(z, p, g, tolerance<T>(2e-6, 1e-14), tolerance<T>(2e-6, 1e-14));
  }
}

TYPED_TEST(GraphRowsTest, WidthOf8192AndAHeavyRow) {
  using T = TypeParam;
  const auto z = random_matrix<T>(3, 8192, 31), p = random_matrix<T>(40, 8192, 32);
  compare(z, p, random_graph<T>({3, 300, 2}, p.rows, 33), tolerance<T>(2e-6, 1e-14), tolerance<T>(2e-6, 1e-14));
}

TYPED_TEST(GraphRowsTest, RowsOfVeryDifferentDegreeKeepTheirBitsForAnyThreads) {
  using T = TypeParam;
  const auto z = random_matrix<T>(50, 40, 41), p = random_matrix<T>(300, 40, 42);
  std::vector<int64_t> degrees(50, 3);
  degrees[7] = 100'000;  // split into tiles
  degrees[8] = 5'000;
  const auto g = random_graph<T>(degrees, p.rows, 43);
  for (const RowForm form : {RowForm::sum, RowForm::difference, RowForm::repulsion}) {
    Matrix<T> first(50, 40);
    const double value = run(first, z, p, g, {form, 1.0, Into::overwrite}, Cpu{1});
    for (const int threads : {1, 2, 3, 5}) {
      Matrix<T> again(50, 40);
      EXPECT_EQ(run(again, z, p, g, {form, 1.0, Into::overwrite}, Cpu{threads}), value) << threads;
      EXPECT_EQ(again.data, first.data) << threads;
    }
  }
}

TYPED_TEST(GraphRowsTest, OneRowWithAMillionPartners) {
  using T = TypeParam;
  const auto z = random_matrix<T>(2, 3, 51), p = random_matrix<T>(1000, 3, 52);
  const auto g = random_graph<T>({1'000'000, 1}, p.rows, 53);
  Matrix<double> expected(2, 3);
  const GraphRowsOptions options{RowForm::difference, 1.0, Into::overwrite};
  double size = 0;
  const double value = reference(expected, &size, z, p, g, options);
  for (const Cpu cpu : all_cpus()) {
    Matrix<T> out(2, 3);
    EXPECT_NEAR(run(out, z, p, g, options, cpu), value, tolerance<T>(1e-7, 1e-13) * size) << describe(cpu);
    // The row is a random walk of a million steps: its own size is the scale.
    EXPECT_LT(relative_error(out, expected), tolerance<T>(2e-6, 1e-12)) << describe(cpu);
  }
}

// deg ⊙ Z − S Z loses these; differences do not.
TYPED_TEST(GraphRowsTest, DifferencesStayRightForClosePairsAndFarMeans) {
  using T = TypeParam;
  for (const double mean : {0.0, 1e4}) {
    const double distance = mean == 0 ? 1e-3 : 1.0;
    auto z = random_matrix<T>(64, 100, 61, 0, 0.0, distance);
    const auto center = random_matrix<double>(1, 100, 62, 0, mean, 1.0);
    for (int64_t i = 0; i < z.rows; ++i) {
      for (int64_t k = 0; k < z.cols; ++k)
        z.at(i, k) = static_cast<T>(static_cast<double>(z.at(i, k)) + center.at(0, k));
    }
    auto g = random_graph<T>(std::vector<int64_t>(64, 30), z.rows, 63);
    for (T& w : g.weights) w = std::abs(w);
    Matrix<double> expected(64, 100);
    const GraphRowsOptions options{RowForm::difference, 1.0, Into::overwrite};
    double size = 0;
    const double value = reference(expected, &size, z, z, g, options);
    for (const Cpu cpu : all_cpus()) {
      SCOPED_TRACE(describe(cpu) + ", mean " + std::to_string(mean));
      Matrix<T> out(64, 100);
      EXPECT_LT(relative_error(run(out, z, z, g, options, cpu), value), tolerance<T>(1e-6, 1e-13));
      EXPECT_LT(relative_error(out, expected), tolerance<T>(1e-6, 1e-13));
    }
  }
}

TYPED_TEST(GraphRowsTest, GradientFactorsOfTheHeader) {
  using T = TypeParam;
  if constexpr (sizeof(T) == sizeof(double)) {
    auto z = random_matrix<T>(6, 5, 71);
    Graph<T> g;  // symmetric: S_ij = 1 / (1 + i + j), i = j included
    for (int32_t i = 0; i < 6; ++i) {
      for (int32_t j = 0; j < 6; ++j) {
        g.columns.push_back(j);
        g.weights.push_back(1.0 / (1 + i + j));
      }
      g.offsets.push_back(g.nnz());
    }
    for (const auto& [form, factor] :
         {std::pair{RowForm::sum, 2.0}, {RowForm::difference, 4.0}, {RowForm::repulsion, 4.0}}) {
      Matrix<T> gradient(6, 5), unused(6, 5);
      run(gradient, z, z, g, {form, factor, Into::overwrite});
      const double h = 1e-5;
      for (int64_t i = 0; i < 6; ++i) {
        for (int64_t k = 0; k < 5; ++k) {
          const T keep = z.at(i, k);
          z.at(i, k) = keep + h;
          const double above = run(unused, z, z, g, {form, 1.0, Into::overwrite});
          z.at(i, k) = keep - h;
          const double below = run(unused, z, z, g, {form, 1.0, Into::overwrite});
          z.at(i, k) = keep;
          EXPECT_NEAR(gradient.at(i, k), (above - below) / (2 * h), 1e-7) << static_cast<int>(form);
        }
      }
    }
  }
}

TYPED_TEST(GraphRowsTest, ValueOnlyRowsOnlyAndEmpty) {
  using T = TypeParam;
  const auto z = random_matrix<T>(5, 20, 81);
  const auto g = random_graph<T>({2, 0, 3, 1, 4}, 5, 82);
  for (const RowForm form : {RowForm::sum, RowForm::difference, RowForm::repulsion}) {
    const GraphRowsOptions options{form, 2.0, Into::overwrite};
    OwnScratch scratch(cpu::graph_rows_scratch_bytes<T>(5, g.nnz(), 20));
    Matrix<T> both(5, 20), rows(5, 20);
    double value = -1, only = -2;
    cpu::graph_rows<T>(both.view(), &value, z.view(), z.view(), g.view(), options, scratch, Cpu{});
    cpu::graph_rows<T>({}, &only, z.view(), z.view(), g.view(), options, scratch, Cpu{});
    cpu::graph_rows<T>(rows.view(), nullptr, z.view(), z.view(), g.view(), options, scratch, Cpu{});
    EXPECT_EQ(value, only);
    EXPECT_EQ(both.data, rows.data);
  }
  Matrix<T> empty(0, 20), none(5, 20);
  none.fill(T{3});
  EXPECT_EQ(run(empty, Matrix<T>(0, 20), z, Graph<T>{}, {}), 0);
  Graph<T> no_edges;
  no_edges.offsets.assign(6, 0);
  EXPECT_EQ(run(none, z, z, no_edges, {}), 0);
  EXPECT_EQ(none.data, Matrix<T>(5, 20).data) << "rows without partners are overwritten by 0";
}

TYPED_TEST(GraphRowsTest, RefusesBadArguments) {
  using T = TypeParam;
  const auto z = random_matrix<T>(3, 4, 91);
  Matrix<T> out(3, 4), narrow(3, 3);
  const Graph<T> good{{0, 1, 2, 2}, {0, 2}, {T{1}, T{1}}};
  const auto with = [&](const Graph<T>& g) { run(out, z, z, g, {}); };
  expect_error([&] { with({{0, 1, 2, 2}, {0, 3}, {T{1}, T{1}}}); }, "columns of s[1]: 3");
  expect_error([&] { with({{0, 1, 2, 2}, {-1, 0}, {T{1}, T{1}}}); }, "columns of s[0]: -1");
  expect_error([&] { with({{0, 1, 2, 2}, {0, 1}, {T{1}, std::numeric_limits<T>::quiet_NaN()}}); }, "weights of s[1]");
  expect_error([&] { with({{0, 2, 1, 2}, {0, 1}, {T{1}, T{1}}}); }, "offsets of s");
  expect_error([&] { with({{0, 1, 2}, {0, 1}, {T{1}, T{1}}}); }, "offsets of s");
  expect_error([&] { with({{0, 1, 1, 1}, {0, 1}, {T{1}, T{1}}}); }, "last offset");
  expect_error([&] { with({{0, 1, 2, 2}, {0, 1}, {T{1}}}); }, "weights of s");
  expect_error([&] { run(narrow, z, z, good, {}); }, "out");
  expect_error([&] { run(out, z, Matrix<T>(3, 5), good, {}); }, "partners");
  MatrixView<const T> negative(z.data.data(), -1, 4);
  OwnScratch enough(cpu::graph_rows_scratch_bytes<T>(3, 2, 4));
  expect_error([&] { cpu::graph_rows<T>(out.view(), nullptr, negative, z.view(), good.view(), {}, enough, Cpu{}); },
               "z negative size: -1");
  expect_error([&] { run(out, z, z, good, {}, Cpu{0}); }, "threads: 0");
  OwnScratch small(cpu::graph_rows_scratch_bytes<T>(3, 2, 4) - 1);
  expect_error([&] { cpu::graph_rows<T>(out.view(), nullptr, z.view(), z.view(), good.view(), {}, small, Cpu{}); },
               "scratch");
}

// 1.3 M rows of 8192 columns: offsets beyond 2^31 elements, by arithmetic.
TEST(GraphRows, SizesAreCountedIn64Bits) {
  const int64_t rows = 1'300'000, dims = 8192;
  const MatrixView<float> z(nullptr, rows, dims);
  EXPECT_EQ((rows - 1) * z.stride, int64_t{10'649'591'808});
  EXPECT_GE(cpu::graph_rows_scratch_bytes<float>(rows, int64_t{1} << 33, dims), (int64_t{1} << 35));
}

}  // namespace
}  // namespace pal::kernels
