// block_terms on CUDA: sums, table, rows and differences against the CPU twin in double, over widths, strides, blocks.
#include <algorithm>

#include "kernels/block_terms.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

struct Case {
  int64_t rows, dims, padding;  // padding: stride − dims
  std::vector<int32_t> row_block;
  int64_t blocks;
};

// Rows anywhere among the blocks, −1 included; block 1 stays empty.
Case scattered(int64_t rows, int64_t dims, int64_t padding, int64_t blocks, Random& random) {
  Case c{rows, dims, padding, {}, blocks};
  for (int64_t i = 0; i < rows; ++i) {
    const auto b = static_cast<int32_t>(random.below(blocks + 1)) - 1;
    c.row_block.push_back(b == 1 ? 0 : b);
  }
  return c;
}

// Blocks of these sizes, dealt out so that neighbors in the batch lie in different blocks where they can.
Case of_sizes(const std::vector<int64_t>& sizes, int64_t dims) {
  Case c{0, dims, 0, {}, static_cast<int64_t>(sizes.size())};
  for (int64_t round = 0; c.rows == 0 || round < *std::max_element(sizes.begin(), sizes.end()); ++round) {
    for (size_t b = 0; b < sizes.size(); ++b) {
      if (round < sizes[b]) c.row_block.push_back(static_cast<int32_t>(b)), ++c.rows;
    }
  }
  return c;
}

template <class T>
struct Twins {
  Case c;
  int64_t stride;
  Numbers<T> z, before;
  DeviceArray<T> device_z;
  DeviceArray<int32_t> row_block;
  std::vector<double> sums;  // (blocks, dims), of the CPU

  Twins(const Case& c, Random& random, double mean = 0, double std = 1)
      : c(c),
        stride(c.dims + c.padding),
        z(c.rows * stride, mean, std, random),
        before(c.rows * stride, 0, 1, random),
        device_z(z.stored),
        row_block(c.row_block),
        sums(c.blocks * c.dims) {
    cpu::block_sums<double>(sums_view(), exact(), host_blocks(), {}, Cpu{});
  }
  MatrixView<double> sums_view() { return {sums.data(), c.blocks, c.dims}; }
  MatrixView<const double> exact() const { return {z.exact.data(), c.rows, c.dims, stride}; }
  MatrixView<const T> stored() const { return {device_z.data(), c.rows, c.dims, stride}; }
  Span<const int32_t> host_blocks() const { return {c.row_block.data(), c.rows}; }

  void expect_sums() {
    const int64_t wide = c.dims + 1;  // a stride of its own; what lies between the rows stays
    const DeviceArray<double> out(std::vector<double>(c.blocks * wide, 7.0));
    const DeviceArray<char> scratch(cuda::block_sums_scratch_bytes(c.rows, c.blocks, c.dims));
    cuda::block_sums<T>({out.data(), c.blocks, c.dims, wide}, stored(), row_block.span(), scratch.scratch(), nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<double> got = out.host();
    for (int64_t b = 0; b < c.blocks; ++b) {
      for (int64_t k = 0; k < c.dims; ++k) {
        ASSERT_NEAR(got[b * wide + k], sums[b * c.dims + k], 1e-10 * (1 + std::abs(sums[b * c.dims + k])))
            << b << ", " << k;
      }
      ASSERT_EQ(got[b * wide + c.dims], 7.0);
    }
  }

  void expect_rows(Into into) {
    std::vector<double> expected = before.exact;
    cpu::block_rows<double>({expected.data(), c.rows, c.dims, stride}, sums_view(), host_blocks(), -0.3, into, Cpu{});
    const DeviceArray<T> out(before.stored);
    const DeviceArray<double> per_block(sums);
    cuda::block_rows<T>({out.data(), c.rows, c.dims, stride}, {per_block.data(), c.blocks, c.dims}, row_block.span(),
                        -0.3, into, nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_LT(distance(read(out.host()), expected), Storage<T>::kGradient);
  }

  void expect_differences(Into into) {
    std::vector<double> means = sums, weight(c.blocks), expected = before.exact;
    for (int64_t b = 0; b < c.blocks; ++b) {
      const auto size = static_cast<double>(std::count(c.row_block.begin(), c.row_block.end(), b));
      weight[b] = (b % 3 == 1 ? -0.5 : 1.0 + 0.1 * static_cast<double>(b)) * size;
      for (int64_t k = 0; k < c.dims; ++k) means[b * c.dims + k] /= std::max(1.0, size);
    }
    double expected_value = 0, magnitude = 0;
    std::vector<char> host_scratch(cpu::block_differences_scratch_bytes(c.rows));
    const Scratch lent{host_scratch.data(), static_cast<int64_t>(host_scratch.size())};
    const auto on_cpu = [&](double* value, MatrixView<double> out) {
      cpu::block_differences<double>(out, value, exact(), {means.data(), c.blocks, c.dims}, {weight.data(), c.blocks},
                                     host_blocks(), 0.4, into, lent, Cpu{});
    };
    on_cpu(&expected_value, {expected.data(), c.rows, c.dims, stride});
    const std::vector<double> signed_weight = weight;
    for (double& w : weight) w = std::abs(w);
    on_cpu(&magnitude, {});

    const DeviceArray<T> out(before.stored);
    const DeviceArray<double> device_means(means), device_weight(signed_weight), value(1), alone(1);
    const DeviceArray<char> scratch(cuda::block_differences_scratch_bytes(c.rows, c.dims));
    const MatrixView<const double> means_view(device_means.data(), c.blocks, c.dims);
    cuda::block_differences<T>({out.data(), c.rows, c.dims, stride}, value.data(), stored(), means_view,
                               device_weight.span(), row_block.span(), 0.4, into, scratch.scratch(), nullptr);
    cuda::block_differences<T>({}, alone.data(), stored(), means_view, device_weight.span(), row_block.span(), 0.4,
                               into, scratch.scratch(), nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_LT(distance(read(out.host()), expected), Storage<T>::kGradient);
    EXPECT_NEAR(value.host()[0], expected_value, 1e-6 * magnitude);  // z is stored exactly: only the sums round
    EXPECT_EQ(alone.host()[0], value.host()[0]);
  }

  void expect_all() {
    SCOPED_TRACE(testing::Message() << "rows " << c.rows << ", dims " << c.dims << " + " << c.padding << ", blocks "
                                    << c.blocks);
    expect_sums();
    for (const Into into : {Into::overwrite, Into::add}) {
      expect_rows(into);
      expect_differences(into);
    }
  }
};

class BlockTermsCuda : public CudaTest {};

TEST_F(BlockTermsCuda, WidthsStridesAndBlocks) {
  Random random(41, Purpose::bench);
  SCOPED_TRACE("seed 41");
  for (const int64_t dims : {1, 3, 8, 31, 130, 300}) {
    const Case c = scattered(37, dims, dims % 2, 5, random);
    Twins<float>(c, random).expect_all();
    Twins<bf16>(c, random).expect_all();
  }
}

// Blocks at every position against the tiles of 128 rows: exactly a tile, one more, one over three tiles, none.
TEST_F(BlockTermsCuda, BlocksOverTiles) {
  Random random(42, Purpose::bench);
  SCOPED_TRACE("seed 42");
  const std::vector<int64_t> sizes[] = {{400}, {128, 128, 1}, {127, 130, 0, 127}, {1, 127, 256, 3}, {60, 300, 0}};
  for (const auto& s : sizes) {
    const Case c = of_sizes(s, 5);
    Twins<float>(c, random).expect_all();
    Twins<bf16>(c, random).expect_all();
  }
  Twins<float>(scattered(700, 9, 0, 250, random), random).expect_all();  // as many as pairs of views
}

TEST_F(BlockTermsCuda, DifferencesStayRightFarFromTheOrigin) {
  Random random(43, Purpose::bench);
  SCOPED_TRACE("seed 43");
  const Case c = scattered(40, 64, 0, 4, random);
  Twins<float>(c, random, 1e4, 1).expect_differences(Into::overwrite);
  Twins<float>(c, random, 0, 1e-3).expect_differences(Into::overwrite);
}

TEST_F(BlockTermsCuda, RowsWithoutBlockAndNoRows) {
  Random random(44, Purpose::bench);
  Case none{6, 10, 0, std::vector<int32_t>(6, -1), 3};
  Twins<float>(none, random).expect_all();
  const DeviceArray<double> sums(std::vector<double>(6, 7.0));
  cuda::block_sums<float>({sums.data(), 2, 3}, {nullptr, 0, 3}, {}, {}, nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_EQ(sums.host(), std::vector<double>(6));
}

TEST_F(BlockTermsCuda, Between) {
  Random random(46, Purpose::bench);
  SCOPED_TRACE("seed 46");
  for (const auto& [blocks, dims] : {std::pair<int64_t, int64_t>{1, 1}, {5, 300}, {33, 7}}) {
    SCOPED_TRACE(testing::Message() << blocks << " blocks, dims " << dims);
    const int64_t stride = dims + 2;
    const Numbers<float> table(blocks * blocks, 0, 1, random), means(blocks * stride, 100, 1, random);
    std::vector<double> members, between(blocks * dims), weight(blocks);
    for (int64_t c = 0; c < blocks; ++c) members.push_back(c == 2 ? 0.0 : 1.0 + static_cast<double>(c % 7));
    double value = 0, magnitude = 0;
    std::vector<char> lent(cpu::block_between_scratch_bytes(blocks));
    const auto on_cpu = [&](double* sum, const std::vector<double>& b) {
      cpu::block_between({between.data(), blocks, dims}, {weight.data(), blocks}, sum, {b.data(), blocks, blocks},
                         {means.exact.data(), blocks, dims, stride}, {members.data(), blocks},
                         {lent.data(), int64_t(lent.size())}, Cpu{});
    };
    std::vector<double> sizes = table.exact;
    for (double& b : sizes) b = std::abs(b);
    on_cpu(&magnitude, sizes);
    on_cpu(&value, table.exact);
    const DeviceArray<double> b(table.exact), m(means.exact), n(members), out(blocks * dims), out_weight(blocks),
        out_value(1);
    const DeviceArray<char> scratch(cuda::block_between_scratch_bytes(blocks, dims));
    cuda::block_between({out.data(), blocks, dims}, out_weight.span(), out_value.data(), {b.data(), blocks, blocks},
                        {m.data(), blocks, dims, stride}, n.span(), scratch.scratch(), nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_LT(distance(out.host(), between), 1e-13);
    EXPECT_LT(distance(out_weight.host(), weight), 1e-14);
    EXPECT_NEAR(out_value.host()[0], value, 1e-13 * magnitude);
  }
}

TEST_F(BlockTermsCuda, Table) {
  Random random(45, Purpose::bench);
  SCOPED_TRACE("seed 45");
  for (const auto& [blocks, dims] : {std::pair<int64_t, int64_t>{1, 1}, {5, 70}, {70, 9}, {129, 65}}) {
    SCOPED_TRACE(testing::Message() << blocks << " blocks, dims " << dims);
    const int64_t stride = blocks + 1;
    const Numbers<float> table(blocks * stride, 0, 1, random), sums(blocks * dims, 0, 1, random);
    std::vector<double> expected(blocks * dims);
    cpu::block_table({expected.data(), blocks, dims}, {table.exact.data(), blocks, blocks, stride},
                     {sums.exact.data(), blocks, dims}, Cpu{});
    const DeviceArray<double> device_table(table.exact), device_sums(sums.exact), out(blocks * dims);
    cuda::block_table({out.data(), blocks, dims}, {device_table.data(), blocks, blocks, stride},
                      {device_sums.data(), blocks, dims}, nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_LT(distance(out.host(), expected), 1e-14);
  }
}

}  // namespace
}  // namespace pal::kernels
