// graph_rows on CUDA: every form against the CPU twin in double, over widths, strides and degrees.
#include "kernels/graph_rows.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

struct Graph {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> columns;
  std::vector<float> weights;

  // Row r has degree(r) partners among `partners`.
  template <class F>
  Graph(int64_t rows, int64_t partners, const F& degree, Random& random) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t e = degree(r); e > 0; --e) {
        columns.push_back(static_cast<int32_t>(random.below(partners)));
        weights.push_back(static_cast<float>(random.normal()));
      }
      offsets.push_back(static_cast<int64_t>(columns.size()));
    }
  }
  int64_t nnz() const { return static_cast<int64_t>(columns.size()); }
};

struct Shape {
  int64_t rows, partners, dims, padding;  // padding: stride − dims
};

template <class T>
void expect_equal(const Shape& shape, const Graph& graph, GraphRowsOptions options, Random& random, double mean = 0,
                  double std = 1) {
  const int64_t stride = shape.dims + shape.padding, nnz = graph.nnz();
  const Numbers<T> z(shape.rows * stride, mean, std, random), p(shape.partners * stride, mean, std, random);
  const Numbers<T> before(shape.rows * stride, 0, 1, random);

  std::vector<double> expected = before.exact, weights(graph.weights.begin(), graph.weights.end());
  double expected_value = 0;
  std::vector<char> host_scratch(cpu::graph_rows_scratch_bytes<double>(shape.rows, nnz, shape.dims));
  cpu::graph_rows<double>({expected.data(), shape.rows, shape.dims, stride}, &expected_value,
                          {z.exact.data(), shape.rows, shape.dims, stride},
                          {p.exact.data(), shape.partners, shape.dims, stride},
                          {{graph.offsets.data(), shape.rows + 1}, {graph.columns.data(), nnz}, {weights.data(), nnz}},
                          options, {host_scratch.data(), static_cast<int64_t>(host_scratch.size())}, Cpu{});

  const DeviceArray<T> device_z(z.stored), device_p(p.stored), out(before.stored);
  const DeviceArray<int64_t> offsets(graph.offsets);
  const DeviceArray<int32_t> columns(graph.columns);
  const DeviceArray<float> device_weights(graph.weights);
  const DeviceArray<double> value(1);
  const DeviceArray<char> scratch(cuda::graph_rows_scratch_bytes<T>(shape.rows, nnz, shape.dims));
  const MatrixView<const T> zv(device_z.data(), shape.rows, shape.dims, stride),
      pv(device_p.data(), shape.partners, shape.dims, stride);
  const CsrView<float> s{offsets.span(), columns.span(), device_weights.span()};
  cuda::graph_rows<T>({out.data(), shape.rows, shape.dims, stride}, value.data(), zv, pv, s, options, scratch.scratch(),
                      nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_LT(distance(read(out.host()), expected), Storage<T>::kGradient);
  // Weights of both signs cancel; the sum has D random terms of z_iᵀp_j, or for repulsion D squares.
  const double terms = static_cast<double>(nnz * shape.dims),
               size = options.form == RowForm::repulsion ? terms : std::sqrt(terms);
  EXPECT_NEAR(value.host()[0], expected_value, Storage<T>::kValue * (std::abs(expected_value) + size * std * std));

  const DeviceArray<double> alone(1);  // the value alone has the same bits
  cuda::graph_rows<T>({}, alone.data(), zv, pv, s, options, scratch.scratch(), nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_EQ(alone.host()[0], value.host()[0]);
}

template <class T>
void all_forms(const Shape& shape, const Graph& graph, Random& random) {
  for (const RowForm form : {RowForm::sum, RowForm::difference, RowForm::repulsion}) {
    for (const Into into : {Into::overwrite, Into::add}) {
      SCOPED_TRACE(testing::Message() << "form " << static_cast<int>(form) << ", into " << static_cast<int>(into)
                                      << ", rows " << shape.rows << ", dims " << shape.dims << " + " << shape.padding);
      expect_equal<T>(shape, graph, {form, 0.7, into}, random);
    }
  }
}

class GraphRowsCuda : public CudaTest {};

TEST_F(GraphRowsCuda, FormsWidthsAndStrides) {
  Random random(21, Purpose::bench);
  SCOPED_TRACE("seed 21");
  for (const Shape& shape : {Shape{9, 7, 1, 0}, Shape{5, 6, 8, 0}, Shape{5, 6, 33, 0}, Shape{4, 5, 128, 8},
                             Shape{3, 5, 130, 1}, Shape{3, 4, 512, 0}, Shape{2, 3, 1032, 0}}) {
    const Graph graph(
        shape.rows, shape.partners, [&](int64_t r) { return r == 1 ? 0 : 1 + (r * 37) % 70; }, random);
    all_forms<float>(shape, graph, random);
    all_forms<bf16>(shape, graph, random);
  }
}

// Rows above the cap, at every position against the tiles: a long first row, one that begins inside a tile, two long
// ones in one tile, a long last row.
TEST_F(GraphRowsCuda, LongRows) {
  Random random(22, Purpose::bench);
  SCOPED_TRACE("seed 22");
  const std::vector<int64_t> degrees[] = {
      {2500}, {3, 1025, 1024, 2, 2500, 0}, {1024, 1025, 1023, 1500}, {2048, 1, 2048, 1200}};
  for (const auto& d : degrees) {
    const Shape shape{static_cast<int64_t>(d.size()), 50, 12, 0};
    const Graph graph(
        shape.rows, shape.partners, [&](int64_t r) { return d[r]; }, random);
    for (const RowForm form : {RowForm::sum, RowForm::difference, RowForm::repulsion}) {
      SCOPED_TRACE(testing::Message() << "form " << static_cast<int>(form) << ", rows " << shape.rows);
      expect_equal<float>(shape, graph, {form, 0.7, Into::overwrite}, random);
      expect_equal<bf16>(shape, graph, {form, 0.7, Into::add}, random);
    }
  }
}

// So many rows that their values are summed in several tiles.
TEST_F(GraphRowsCuda, ManyRows) {
  Random random(26, Purpose::bench);
  SCOPED_TRACE("seed 26");
  const Shape shape{8200, 20, 1, 0};
  const Graph graph(
      shape.rows, shape.partners, [](int64_t r) { return r % 2; }, random);
  expect_equal<float>(shape, graph, {RowForm::difference, 1.0, Into::overwrite}, random);
}

// The widest rows, and a row as long as a large batch.
TEST_F(GraphRowsCuda, DISABLED_LongExtremes) {
  Random random(25, Purpose::bench);
  SCOPED_TRACE("seed 25");
  for (const Shape& shape : {Shape{5, 9, 8192, 0}, Shape{5, 9, 8191, 1}}) {
    const Graph graph(
        shape.rows, shape.partners, [](int64_t r) { return 3 + r; }, random);
    all_forms<float>(shape, graph, random);
    all_forms<bf16>(shape, graph, random);
  }
  const Shape shape{3, 4000, 33, 0};
  const Graph graph(
      shape.rows, shape.partners, [](int64_t r) { return r == 1 ? 20000 : 7; }, random);
  all_forms<float>(shape, graph, random);
}

TEST_F(GraphRowsCuda, DifferencesStayRightFarFromTheOrigin) {
  Random random(23, Purpose::bench);
  SCOPED_TRACE("seed 23");
  const Shape shape{8, 8, 64, 0};
  const Graph graph(
      shape.rows, shape.partners, [](int64_t) { return 20; }, random);
  expect_equal<float>(shape, graph, {RowForm::difference, 1.0, Into::overwrite}, random, 1e4, 1);
}

TEST_F(GraphRowsCuda, EmptyGraph) {
  Random random(24, Purpose::bench);
  const Shape shape{4, 4, 16, 0};
  const Graph graph(
      shape.rows, shape.partners, [](int64_t) { return 0; }, random);
  all_forms<float>(shape, graph, random);
}

}  // namespace
}  // namespace pal::kernels
