// row_logsumexp on CUDA: values and gradient against the CPU twin in double: masks, chunks, extreme logits, NaN.
#include <limits>

#include "kernels/row_logsumexp.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Shape {
  int64_t rows, columns, dims, padding;  // padding: stride − dims
};

enum class Columns { constants, with_terms };

template <class T>
struct Twins {
  Shape shape;
  int64_t stride;
  Numbers<T> rows, columns;
  std::vector<int64_t> self;
  DeviceArray<T> device_rows, device_columns;
  DeviceArray<int64_t> device_self;

  Twins(const Shape& shape, const std::vector<int64_t>& self, double std, Random& random)
      : shape(shape),
        stride(shape.dims + shape.padding),
        rows(shape.rows * stride, 0, std, random),
        columns(shape.columns * stride, 0, std, random),
        self(self),
        device_rows(rows.stored),
        device_columns(columns.stored),
        device_self(self) {}

  MatrixView<const double> exact_rows() const { return {rows.exact.data(), shape.rows, shape.dims, stride}; }
  MatrixView<const double> exact_columns() const { return {columns.exact.data(), shape.columns, shape.dims, stride}; }
  MatrixView<const T> stored_rows() const { return {device_rows.data(), shape.rows, shape.dims, stride}; }
  MatrixView<const T> stored_columns() const { return {device_columns.data(), shape.columns, shape.dims, stride}; }
  Span<const int64_t> host_self() const { return {self.data(), static_cast<int64_t>(self.size())}; }

  std::vector<double> lse_of_cpu(const RowLogSumExpOptions& options) const {
    std::vector<double> lse(shape.rows);
    std::vector<char> scratch(cpu::row_logsumexp_scratch_bytes<double>(shape.rows, shape.columns, shape.dims));
    cpu::row_logsumexp<double>({lse.data(), shape.rows}, exact_rows(), exact_columns(), host_self(), options,
                               {scratch.data(), static_cast<int64_t>(scratch.size())}, Cpu{});
    return lse;
  }
  std::vector<double> lse_of_cuda(const RowLogSumExpOptions& options) const {
    const DeviceArray<double> lse(shape.rows);
    const DeviceArray<char> scratch(cuda::row_logsumexp_scratch_bytes<T>(shape.rows, shape.columns, shape.dims));
    cuda::row_logsumexp<T>(lse.span(), stored_rows(), stored_columns(), device_self.span(), options, scratch.scratch(),
                           nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    return lse.host();
  }
  void expect_lse(const RowLogSumExpOptions& options) const {
    const std::vector<double> want = lse_of_cpu(options), got = lse_of_cuda(options);
    for (int64_t i = 0; i < shape.rows; ++i) {
      if (std::isinf(want[i]))
        ASSERT_EQ(got[i], want[i]) << i;
      else
        ASSERT_NEAR(got[i], want[i], 2e-6 * (1 + std::abs(want[i]))) << i;  // bf16 is stored, not rounded again
    }
  }

  void expect_gradient(const RowLogSumExpOptions& options, Columns kind, Random& random) const {
    const Numbers<T> before(shape.rows * stride, 0, 0.1, random);
    const std::vector<double> row_lse = lse_of_cpu(options);
    std::vector<double> row_degrees, column_lse, column_degrees;
    for (int64_t i = 0; i < shape.rows; ++i) row_degrees.push_back(random.next_double());
    for (int64_t j = 0; kind == Columns::with_terms && j < shape.columns; ++j) {
      column_lse.push_back(j % 5 == 4 ? -kInfinity : row_lse[j % shape.rows] + 0.1);
      column_degrees.push_back(random.next_double());
    }
    const auto host = [](const std::vector<double>& v) {
      return Span<const double>(v.data(), static_cast<int64_t>(v.size()));
    };
    std::vector<double> want = before.exact;
    std::vector<char> host_scratch(
        cpu::row_logsumexp_gradient_scratch_bytes<double>(shape.rows, shape.columns, shape.dims));
    cpu::row_logsumexp_gradient<double>({want.data(), shape.rows, shape.dims, stride}, exact_rows(), exact_columns(),
                                        host_self(), {host(row_lse), host(row_degrees)},
                                        {host(column_lse), host(column_degrees)}, options,
                                        {host_scratch.data(), static_cast<int64_t>(host_scratch.size())}, Cpu{});
    const DeviceArray<T> out(before.stored);
    const DeviceArray<double> a(row_lse), b(row_degrees), c(column_lse), d(column_degrees);
    const DeviceArray<char> scratch(
        cuda::row_logsumexp_gradient_scratch_bytes<T>(shape.rows, shape.columns, shape.dims));
    cuda::row_logsumexp_gradient<T>({out.data(), shape.rows, shape.dims, stride}, stored_rows(), stored_columns(),
                                    device_self.span(), {a.span(), b.span()}, {c.span(), d.span()}, options,
                                    scratch.scratch(), nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_LT(distance(read(out.host()), want), Storage<T>::kGradient);
  }
};

class RowLogSumExpCuda : public CudaTest {};

template <class T>
void over_shapes(uint64_t seed) {
  Random random(seed, Purpose::bench);
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const Shape& shape :
       {Shape{1, 1, 1, 0}, Shape{5, 7, 3, 2}, Shape{70, 130, 33, 0}, Shape{20, 600, 16, 0}, Shape{3, 65, 130, 1}}) {
    SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.columns << ", dims " << shape.dims);
    std::vector<int64_t> self;  // own rows lie among the columns; one row has none
    for (int64_t i = 0; i < shape.rows; ++i) self.push_back(i == 2 ? -1 : shape.columns - 1 - i % shape.columns);
    for (const bool masked : {true, false}) {
      const Twins<T> twins(shape, masked ? self : std::vector<int64_t>{}, 1 / std::sqrt(double(shape.dims)), random);
      twins.expect_lse({0.2, 1.0, Into::overwrite});
      twins.expect_gradient({0.2, -0.7, masked ? Into::add : Into::overwrite},
                            masked ? Columns::with_terms : Columns::constants, random);
    }
  }
}
TEST_F(RowLogSumExpCuda, ShapesFloat) { over_shapes<float>(51); }
TEST_F(RowLogSumExpCuda, ShapesBf16) { over_shapes<bf16>(52); }

// Logits of ± thousands: the maximum moves from tile to tile, and nothing overflows.
TEST_F(RowLogSumExpCuda, ExtremeLogits) {
  Random random(53, Purpose::bench);
  SCOPED_TRACE("seed 53");
  const Twins<float> twins({9, 700, 8, 0}, {}, 10, random);
  twins.expect_lse({0.05, 1.0, Into::overwrite});
}

TEST_F(RowLogSumExpCuda, NoColumnsAndNan) {
  Random random(54, Purpose::bench);
  Twins<float> none({4, 0, 8, 0}, {}, 1, random);
  EXPECT_EQ(none.lse_of_cuda({}), std::vector<double>(4, -kInfinity));
  none.expect_gradient({0.1, 1.0, Into::overwrite}, Columns::constants, random);
  Twins<float> bad({70, 66, 8, 0}, {}, 1, random);
  std::vector<float> stored = bad.rows.stored;
  stored[3 * 8 + 5] = std::nanf("");
  PAL_CUDA_CHECK(
      cudaMemcpy(bad.device_rows.data(), stored.data(), stored.size() * sizeof(float), cudaMemcpyHostToDevice));
  const std::vector<double> lse = bad.lse_of_cuda({});
  for (int64_t i = 0; i < 70; ++i) EXPECT_EQ(std::isnan(lse[i]), i == 3) << i;
}

// A row has the same bits alone and among others.
TEST_F(RowLogSumExpCuda, RowsAreIndependent) {
  Random random(55, Purpose::bench);
  const Twins<float> all({70, 100, 20, 0}, {}, 1, random);
  const std::vector<double> lse = all.lse_of_cuda({});
  const DeviceArray<double> one(1);
  const DeviceArray<char> scratch(cuda::row_logsumexp_scratch_bytes<float>(1, 100, 20));
  cuda::row_logsumexp<float>(one.span(), {all.device_rows.data() + 66 * 20, 1, 20}, all.stored_columns(), {}, {},
                             scratch.scratch(), nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_EQ(one.host()[0], lse[66]);
}

}  // namespace
}  // namespace pal::kernels
