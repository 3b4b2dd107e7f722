// update on CUDA: the bits of the CPU twin for every element; LARS's factors from the same sums.
#include "kernels/update.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

// Parameters of these sizes, cut into runs of at most `most` elements; every third one does not decay.
struct Parameters {
  std::vector<int64_t> sizes, offset, begin{0};  // begin: runs by parameter
  std::vector<float> p, first, second, g;
  std::vector<UpdateRun> runs;  // on the host, of device pointers
  DeviceArray<float> device_p, device_first, device_second, device_g;

  static std::vector<float> drawn(int64_t n, double mean, Random& random) {
    std::vector<float> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(mean + random.normal()));
    return x;
  }
  static int64_t total(const std::vector<int64_t>& sizes) {
    int64_t n = 0;
    for (const int64_t size : sizes) n += size;
    return n;
  }

  Parameters(const std::vector<int64_t>& sizes, int64_t most, Random& random)
      : sizes(sizes),
        p(drawn(total(sizes), 0, random)),
        first(drawn(total(sizes), 0, random)),
        second(drawn(total(sizes), 9, random)),
        g(drawn(total(sizes), 0, random)),
        device_p(p),
        device_first(first),
        device_second(second),
        device_g(g) {
    for (float& v : second) v *= v;  // no root of a negative number
    PAL_CUDA_CHECK(
        cudaMemcpy(device_second.data(), second.data(), second.size() * sizeof(float), cudaMemcpyHostToDevice));
    int64_t at = 0;
    for (size_t k = 0; k < sizes.size(); ++k) {
      offset.push_back(at);
      for (int64_t from = 0; from < sizes[k]; from += most) {
        const int64_t here = at + from;
        runs.push_back({device_p.data() + here, device_first.data() + here, device_second.data() + here,
                        device_g.data() + here, std::min(most, sizes[k] - from), static_cast<int32_t>(k), decays(k)});
      }
      at += sizes[k];
      begin.push_back(static_cast<int64_t>(runs.size()));
    }
  }
  static int32_t decays(size_t k) { return k % 3 == 2 ? 0 : 1; }
  int64_t count() const { return static_cast<int64_t>(sizes.size()); }
  // The device's numbers have the bits of the host's.
  void expect_equal() const {
    EXPECT_EQ(device_p.host(), p);
    EXPECT_EQ(device_first.host(), first);
    EXPECT_EQ(device_second.host(), second);
  }
};

const std::vector<int64_t> kSizes = {1, 300, 7, 257, 1000, 64, 0, 513};
const UpdateOps<float>& on_cpu() { return update_ops<float>(best_isa()); }

class UpdateCuda : public CudaTest {};

TEST_F(UpdateCuda, MomentumHasTheBitsOfTheCpu) {
  Random random(51, Purpose::bench);
  SCOPED_TRACE("seed 51");
  for (const int64_t most : {100, 4096}) {
    Parameters all(kSizes, most, random);
    const std::vector<float> factors = Parameters::drawn(all.count(), 1, random);
    MomentumNumbers<float> numbers{0.1f, 0.9f, 0.01f, 0};
    const DeviceArray<float> device_factors(factors);
    const DeviceArray<UpdateRun> runs(all.runs);
    cuda::momentum(runs.span(), device_factors.span(), numbers, nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    for (size_t k = 0; k < all.sizes.size(); ++k) {
      numbers.factor = factors[k];
      numbers.decay = Parameters::decays(k) ? 0.01f : 0;
      on_cpu().momentum(all.p.data() + all.offset[k], all.first.data() + all.offset[k], all.g.data() + all.offset[k],
                        numbers, all.sizes[k]);
    }
    all.expect_equal();
  }
}

TEST_F(UpdateCuda, AdamHasTheBitsOfTheCpu) {
  Random random(52, Purpose::bench);
  SCOPED_TRACE("seed 52");
  Parameters all(kSizes, 300, random);
  AdamNumbers<float> numbers{0.99f, 0.9f, 0.1f, 0.999f, 0.001f, 0.02f, 1.5f, 1e-8f};
  const DeviceArray<UpdateRun> runs(all.runs);
  cuda::adam(runs.span(), numbers, nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  for (size_t k = 0; k < all.sizes.size(); ++k) {
    numbers.keep = Parameters::decays(k) ? 0.99f : 1;
    const int64_t at = all.offset[k];
    on_cpu().adam(all.p.data() + at, all.first.data() + at, all.second.data() + at, all.g.data() + at, numbers,
                  all.sizes[k]);
  }
  all.expect_equal();
}

TEST_F(UpdateCuda, AdaptationIsTheRatioOfNorms) {
  Random random(53, Purpose::bench);
  SCOPED_TRACE("seed 53");
  for (const int64_t most : {2, 4096}) {  // 500 runs of one parameter are more than a block has threads
    Parameters all(kSizes, most, random);
    std::fill_n(all.g.begin() + all.offset[3], all.sizes[3], 0.0f);  // without decay the update would be 0; with it not
    std::fill_n(all.p.begin() + all.offset[1], all.sizes[1], 0.0f);  // ‖p‖ = 0: the factor is 1
    PAL_CUDA_CHECK(cudaMemcpy(all.device_g.data(), all.g.data(), all.g.size() * sizeof(float), cudaMemcpyHostToDevice));
    PAL_CUDA_CHECK(cudaMemcpy(all.device_p.data(), all.p.data(), all.p.size() * sizeof(float), cudaMemcpyHostToDevice));
    const DeviceArray<UpdateRun> runs(all.runs);
    const DeviceArray<int64_t> begin(all.begin);
    const DeviceArray<float> factors(all.count());
    const DeviceArray<char> scratch(cuda::adaptation_scratch_bytes(static_cast<int64_t>(all.runs.size())));
    cuda::adaptation(factors.span(), runs.span(), begin.span(), 0.01f, 1e-3, scratch.scratch(), nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<float> got = factors.host();
    for (size_t k = 0; k < all.sizes.size(); ++k) {
      double of_p = 0, of_update = 0;
      on_cpu().squares(&of_p, &of_update, all.p.data() + all.offset[k], all.g.data() + all.offset[k], 0.01f,
                       all.sizes[k]);
      const bool adapts = Parameters::decays(k) && of_p > 0 && of_update > 0;
      const double expected = adapts ? 1e-3 * std::sqrt(of_p) / std::sqrt(of_update) : 1;
      EXPECT_FLOAT_EQ(got[k], static_cast<float>(expected)) << "parameter " << k;
    }
  }
}

TEST_F(UpdateCuda, NothingToDo) {
  cuda::momentum({}, {}, {}, nullptr);
  cuda::adam({}, {}, nullptr);
  const DeviceArray<float> factors(2);
  const DeviceArray<int64_t> begin(std::vector<int64_t>{0, 0, 0});
  cuda::adaptation(factors.span(), {}, begin.span(), 0, 1, {}, nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_EQ(factors.host(), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace pal::kernels
