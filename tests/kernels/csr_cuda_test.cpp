// csr on CUDA: the same bits as on the CPU, for repeated pairs, loops, empty rows and one long row; bad pairs fail.
#include <limits>

#include "kernels/csr.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

struct Pairs {
  std::vector<int32_t> i, j;
  std::vector<float> w;
};

struct Result {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<float> weights, degrees;
  int64_t nnz;
};

Result on_cpu(const Pairs& p, int64_t rows) {
  const int64_t count = p.i.size(), room = csr_capacity(count);
  Result r{std::vector<int64_t>(rows + 1), std::vector<int32_t>(room), std::vector<float>(room),
           std::vector<float>(rows), -9};
  std::vector<char> scratch(cpu::csr_scratch_bytes<float>(rows, count));
  cpu::csr<float>({{r.offsets.data(), rows + 1},
                   {r.columns.data(), room},
                   {r.weights.data(), room},
                   {r.degrees.data(), rows},
                   &r.nnz},
                  {{p.i.data(), count}, {p.j.data(), count}, {p.w.data(), static_cast<int64_t>(p.w.size())}}, rows,
                  {scratch.data(), static_cast<int64_t>(scratch.size())}, Cpu{});
  r.columns.resize(r.nnz);
  r.weights.resize(r.nnz);
  return r;
}

Result on_cuda(const Pairs& p, int64_t rows) {
  const int64_t count = p.i.size(), room = csr_capacity(count);
  const DeviceArray<int32_t> i(p.i), j(p.j), columns(room);
  const DeviceArray<float> w(p.w), weights(room), degrees(rows);
  const DeviceArray<int64_t> offsets(rows + 1), nnz(1);
  const DeviceArray<char> scratch(cuda::csr_scratch_bytes<float>(rows, count));
  cuda::csr<float>({offsets.span(), columns.span(), weights.span(), degrees.span(), nnz.data()},
                   {i.span(), j.span(), w.span()}, rows, scratch.scratch(), nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  Result r{offsets.host(), columns.host(), weights.host(), degrees.host(), nnz.host()[0]};
  if (r.nnz >= 0) r.columns.resize(r.nnz);
  if (r.nnz >= 0) r.weights.resize(r.nnz);
  return r;
}

Pairs random_pairs(int64_t count, int64_t rows, uint64_t seed) {
  Random random(seed, Purpose::bench);
  Pairs p;
  for (int64_t n = 0; n < count; ++n) {
    p.i.push_back(static_cast<int32_t>(random.below(rows)));
    p.j.push_back(random.below(4) == 0 ? p.i.back() : static_cast<int32_t>(random.below(rows)));
    p.w.push_back(static_cast<float>(random.normal()));
  }
  return p;
}

void expect_same_bits(const Pairs& p, int64_t rows) {
  const Result a = on_cuda(p, rows), b = on_cpu(p, rows);
  EXPECT_EQ(a.nnz, b.nnz);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.degrees, b.degrees);
}

class CsrCuda : public CudaTest {};

TEST_F(CsrCuda, SameBitsAsTheCpu) {
  const struct {
    int64_t pairs, rows;
  } cases[] = {{1, 1}, {1, 2}, {5, 1}, {100, 3}, {300, 64}, {2000, 1000}, {50, 5000}};
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << c.pairs << " pairs, " << c.rows << " rows, seed 11");
    expect_same_bits(random_pairs(c.pairs, c.rows, 11), c.rows);
  }
}

TEST_F(CsrCuda, NoWeightsNoPairsOneLongRow) {
  Pairs p = random_pairs(500, 40, 12);
  p.w.clear();
  expect_same_bits(p, 40);
  expect_same_bits({}, 7);
  Pairs star;
  for (int32_t n = 0; n < 3000; ++n) {
    star.i.push_back(5);
    star.j.push_back(n % 2900);
    star.w.push_back(1.0f / static_cast<float>(n + 1));
  }
  expect_same_bits(star, 2900);
}

TEST_F(CsrCuda, BadPairsAreLeftOutAndReported) {
  const Pairs good = random_pairs(50, 20, 13);
  Pairs bad = good;
  bad.i.push_back(20);
  bad.j.push_back(3);
  bad.w.push_back(1);
  const Result index = on_cuda(bad, 20);
  EXPECT_EQ(index.nnz, kCsrBadIndex);
  EXPECT_EQ(index.offsets, on_cpu(good, 20).offsets);
  bad.i.back() = -1;
  EXPECT_EQ(on_cuda(bad, 20).nnz, kCsrBadIndex);
  bad.i.back() = 4;
  bad.w.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(on_cuda(bad, 20).nnz, kCsrBadWeight);
}

}  // namespace
}  // namespace pal::kernels
