// batch_norm on CUDA against the CPU twin: sums and maps, over widths and tiles of rows.
#include <algorithm>
#include <limits>
#include <string>

#include "kernels/batch_norm.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

// The CPU twin on the numbers that T stores: float unchanged, bf16 as a float of the same value.
template <class T>
std::vector<float> floats(const std::vector<T>& stored) {
  std::vector<float> out;
  for (const T& x : stored) out.push_back(static_cast<float>(Storage<T>::read(x)));
  return out;
}
template <class T>
std::vector<T> rounded(const std::vector<float>& numbers) {
  std::vector<T> out;
  for (const float x : numbers) out.push_back(Storage<T>::store(x));
  return out;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
struct Twins {
  ChannelGrid grid;
  Numbers<T> x, y, dy;
  std::vector<float> host_x, host_y, host_dy;
  DeviceArray<T> device_x, device_y, device_dy;
  std::vector<double> mean;
  std::vector<std::vector<float>> coefficients;  // four of them

  Twins(int64_t rows, int64_t channels, Random& random, double center = 0.5)
      : grid{rows, channels, 1},
        x(grid.size(), center, 1, random),
        y(grid.size(), 0, 1, random),
        dy(grid.size(), 0, 1, random),
        host_x(floats(x.stored)),
        host_y(floats(y.stored)),
        host_dy(floats(dy.stored)),
        device_x(x.stored),
        device_y(y.stored),
        device_dy(dy.stored) {
    for (int64_t c = 0; c < channels; ++c) mean.push_back(center + 0.1 * random.normal());
    for (int k = 0; k < 4; ++k) coefficients.push_back(floats(Numbers<float>(channels, 0.3, 1, random).stored));
  }
  Span<const float> host(int k) const { return {coefficients[k].data(), grid.channels}; }
  Span<const double> host_mean() const { return {mean.data(), grid.channels}; }

  void expect_sums() {
    const int64_t channels = grid.channels;
    std::vector<char> lent(cpu::channel_sums_scratch_bytes(grid));
    const Scratch host_scratch{lent.data(), static_cast<int64_t>(lent.size())};
    const DeviceArray<char> scratch(cuda::channel_sums_scratch_bytes(grid));
    const DeviceArray<double> first(channels), second(channels), device_mean(mean);
    std::vector<double> a(channels), b(channels);
    const auto compare = [&](const char* what) {
      PAL_CUDA_CHECK(cudaDeviceSynchronize());
      EXPECT_LT(distance(first.host(), a), 1e-13) << what;
      EXPECT_LT(distance(second.host(), b), 1e-13) << what;
    };
    for (const bool shifted : {false, true}) {
      cpu::channel_sums<float>({a.data(), channels}, {b.data(), channels}, host_x.data(),
                               shifted ? host_mean() : Span<const double>{}, grid, host_scratch, Cpu{});
      cuda::channel_sums<T>(first.span(), second.span(), device_x.data(),
                            shifted ? Span<const double>(device_mean.span()) : Span<const double>{}, grid,
                            scratch.scratch(), nullptr);
      compare(shifted ? "shifted" : "plain");
    }
    for (const bool relu : {false, true}) {
      std::vector<float> g(grid.size());
      const DeviceArray<T> device_g(grid.size());
      cpu::channel_grad_sums<float>({a.data(), channels}, {b.data(), channels}, g.data(), host_dy.data(),
                                    relu ? host_y.data() : nullptr, host_x.data(), host_mean(), grid, host_scratch,
                                    Cpu{});
      cuda::channel_grad_sums<T>(first.span(), second.span(), device_g.data(), device_dy.data(),
                                 relu ? device_y.data() : nullptr, device_x.data(), device_mean.span(), grid,
                                 scratch.scratch(), nullptr);
      compare("gradient");
      EXPECT_TRUE(same(device_g.host(), rounded<T>(g)));
      cuda::channel_grad_sums<T>(first.span(), second.span(), nullptr, device_dy.data(),
                                 relu ? device_y.data() : nullptr, device_x.data(), device_mean.span(), grid,
                                 scratch.scratch(), nullptr);
      compare("gradient that is not kept");
    }
  }

  static void expect_close(const DeviceArray<T>& got, const std::vector<float>& expected, const char* what) {
    EXPECT_LT(distance(read(got.host()), {expected.begin(), expected.end()}), sizeof(T) == 4 ? 1e-6 : 4e-3) << what;
  }

  void expect_maps() {
    const DeviceArray<float> c0(coefficients[0]), c1(coefficients[1]), c2(coefficients[2]), c3(coefficients[3]);
    std::vector<float> out(grid.size());
    const DeviceArray<T> device_out(grid.size());
    for (const Activation act : {Activation::none, Activation::relu}) {
      for (const bool residual : {false, true}) {
        cpu::channel_affine<float>(out.data(), host_x.data(), residual ? host_dy.data() : nullptr, host(0), host(1),
                                   host(2), grid, act, Cpu{});
        cuda::channel_affine<T>(device_out.data(), device_x.data(), residual ? device_dy.data() : nullptr, c0.span(),
                                c1.span(), c2.span(), grid, act, nullptr);
        PAL_CUDA_CHECK(cudaDeviceSynchronize());
        expect_close(device_out, out, "affine");
      }
    }
    for (const bool relu : {false, true}) {
      cpu::channel_grad<float>(out.data(), host_dy.data(), relu ? host_y.data() : nullptr, host_x.data(), host(0),
                               host(1), host(2), host(3), grid, Cpu{});
      cuda::channel_grad<T>(device_out.data(), device_dy.data(), relu ? device_y.data() : nullptr, device_x.data(),
                            c0.span(), c1.span(), c2.span(), c3.span(), grid, nullptr);
      PAL_CUDA_CHECK(cudaDeviceSynchronize());
      expect_close(device_out, out, "grad");
    }
  }
};

class BatchNormCuda : public CudaTest {};

TEST_F(BatchNormCuda, RowsAndWidths) {
  Random random(61, Purpose::bench);
  SCOPED_TRACE("seed 61");
  for (const auto& [rows, channels] : {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {64, 32}, {65, 33}, {130, 70}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << channels << " channels");
    Twins<float> plain(rows, channels, random);
    plain.expect_sums();
    plain.expect_maps();
    Twins<bf16> half(rows, channels, random);
    half.expect_sums();
    half.expect_maps();
  }
}

// One tile of sums, one more row, several tiles.
TEST_F(BatchNormCuda, TilesOfRows) {
  Random random(62, Purpose::bench);
  SCOPED_TRACE("seed 62");
  for (const int64_t rows : {1023, 1024, 1025, 3100}) Twins<float>(rows, 5, random).expect_sums();
}

TEST_F(BatchNormCuda, FarFromTheOrigin) {
  Random random(63, Purpose::bench);
  Twins<float>(300, 4, random, 1e4).expect_sums();
}

TEST_F(BatchNormCuda, NanStaysNanAndNoRowsAreAccepted) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const DeviceArray<float> x(std::vector<float>{nan, -1}), y(2), zero(std::vector<float>{0}),
      one(std::vector<float>{1});
  cuda::channel_affine<float>(y.data(), x.data(), nullptr, zero.span(), one.span(), zero.span(), {2, 1, 1},
                              Activation::relu, nullptr);
  const DeviceArray<double> sums(std::vector<double>{7, 7}), squares(std::vector<double>{7, 7});
  cuda::channel_sums<float>(sums.span(), squares.span(), nullptr, {}, {0, 2, 1}, {}, nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_TRUE(std::isnan(y.host()[0]));
  EXPECT_EQ(y.host()[1], 0);
  EXPECT_EQ(sums.host(), (std::vector<double>{0, 0}));
  EXPECT_EQ(squares.host(), (std::vector<double>{0, 0}));
}

TEST_F(BatchNormCuda, PlanesAreRefused) {
  const DeviceArray<double> sums(2);
  try {
    cuda::channel_sums<float>(sums.span(), sums.span(), nullptr, {}, {1, 2, 9}, {}, nullptr);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("inner size of the grid: 9"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace pal::kernels
