// batch_norm: sums and maps against plain loops, for every instruction set; threads change no bit.
#include "kernels/batch_norm.h"

#include "tests/kernels/common.h"

namespace pal::kernels {
namespace {

const ChannelGrid kGrids[] = {{0, 3, 1}, {1, 1, 1}, {5, 8, 1},  {130, 37, 1}, {1100, 70, 1}, {0, 3, 4},
                              {2, 3, 1}, {3, 5, 4}, {2, 9, 49}, {4, 2, 70},   {7, 1, 33}};

template <class T>
std::vector<T> random_numbers(int64_t n, uint64_t seed) {
  Random random(seed, Purpose::bench);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(random.normal());
  return v;
}

// Small integers: their sums and products are exact in any order.
template <class T>
std::vector<T> random_integers(int64_t n, uint64_t seed) {
  Random random(seed, Purpose::bench);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(static_cast<int>(random.below(15)) - 7);
  return v;
}

int64_t channel(const ChannelGrid& g, int64_t e) { return e / g.inner % g.channels; }

std::string describe(const ChannelGrid& g) {
  return std::to_string(g.outer) + "x" + std::to_string(g.channels) + "x" + std::to_string(g.inner) + ", seed 1";
}

template <class T>
class BatchNormKernel : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(BatchNormKernel, Types);

TYPED_TEST(BatchNormKernel, SumsAreExactOnIntegers) {
  using T = TypeParam;
  for (const Cpu cpu : all_cpus())
    for (const ChannelGrid& g : kGrids) {
      SCOPED_TRACE(pal::kernels::describe(cpu) + ", " + describe(g));
      const auto x = random_integers<T>(g.size(), 1), dy = random_integers<T>(g.size(), 2),
                 y = random_integers<T>(g.size(), 3);
      const auto shift = random_integers<double>(g.channels, 4);
      OwnScratch scratch(cpu::channel_sums_scratch_bytes(g));
      std::vector<double> first(g.channels, -1), second(g.channels, -1), a(g.channels), b(g.channels);
      for (const bool shifted : {false, true}) {
        std::fill(a.begin(), a.end(), 0);
        std::fill(b.begin(), b.end(), 0);
        for (int64_t e = 0; e < g.size(); ++e) {
          const double v = x[e] - (shifted ? shift[channel(g, e)] : 0);
          a[channel(g, e)] += v;
          b[channel(g, e)] += v * v;
        }
        cpu::channel_sums<T>(span(first), span(second), x.data(), shifted ? span(shift) : Span<const double>(), g,
                             scratch, cpu);
        EXPECT_EQ(first, a);
        EXPECT_EQ(second, b);
      }
      for (const bool masked : {false, true})
        for (const bool kept : {false, true}) {
          std::fill(a.begin(), a.end(), 0);
          std::fill(b.begin(), b.end(), 0);
          std::vector<T> g_expected(x.size()), g_found(x.size());
          for (int64_t e = 0; e < g.size(); ++e) {
            g_expected[e] = masked && y[e] <= 0 ? 0 : dy[e];
            a[channel(g, e)] += g_expected[e];
            b[channel(g, e)] += g_expected[e] * (x[e] - shift[channel(g, e)]);
          }
          cpu::channel_grad_sums<T>(span(first), span(second), kept ? g_found.data() : nullptr, dy.data(),
                                    masked ? y.data() : nullptr, x.data(), span(shift), g, scratch, cpu);
          EXPECT_EQ(first, a);
          EXPECT_EQ(second, b);
          if (kept) {
            EXPECT_EQ(g_found, g_expected);
          }
        }
    }
}

TYPED_TEST(BatchNormKernel, MapsFollowTheirFormulas) {
  using T = TypeParam;
  for (const Cpu cpu : all_cpus())
    for (const ChannelGrid& g : kGrids) {
      SCOPED_TRACE(pal::kernels::describe(cpu) + ", " + describe(g));
      const auto x = random_numbers<T>(g.size(), 1), r = random_numbers<T>(g.size(), 2),
                 dy = random_numbers<T>(g.size(), 3);
      const auto s = random_numbers<T>(g.channels, 4), a = random_numbers<T>(g.channels, 5),
                 p = random_numbers<T>(g.channels, 6), q = random_numbers<T>(g.channels, 7);
      std::vector<T> out(x.size());
      for (const Activation act : {Activation::none, Activation::relu})
        for (const bool added : {false, true}) {
          cpu::channel_affine<T>(out.data(), x.data(), added ? r.data() : nullptr, span(s), span(a), span(p), g, act,
                                 cpu);
          for (int64_t e = 0; e < g.size(); ++e) {
            const int64_t c = channel(g, e);
            double v = (double(x[e]) - s[c]) * a[c] + p[c] + (added ? r[e] : 0);
            if (act == Activation::relu) v = std::max(v, 0.0);
            ASSERT_NEAR(out[e], v, tolerance<T>(3e-6, 1e-14)) << e;
          }
        }
      for (const bool masked : {false, true}) {
        cpu::channel_grad<T>(out.data(), dy.data(), masked ? r.data() : nullptr, x.data(), span(s), span(a), span(p),
                             span(q), g, cpu);
        for (int64_t e = 0; e < g.size(); ++e) {
          const int64_t c = channel(g, e);
          const double v = a[c] * (masked && r[e] <= 0 ? 0.0 : dy[e]) + p[c] * (double(x[e]) - s[c]) + q[c];
          ASSERT_NEAR(out[e], v, tolerance<T>(5e-6, 3e-14)) << e;
        }
      }
    }
}

TYPED_TEST(BatchNormKernel, ThreadsChangeNoBit) {
  using T = TypeParam;
  for (const ChannelGrid g : {ChannelGrid{3000, 70, 1}, ChannelGrid{60, 37, 100}}) {
    SCOPED_TRACE(describe(g));
    const auto x = random_numbers<T>(g.size(), 1), dy = random_numbers<T>(g.size(), 2);
    const auto mean = random_numbers<double>(g.channels, 3);
    std::vector<std::vector<double>> results;
    for (const int threads : {1, 2, 5}) {
      const Cpu cpu{threads};
      OwnScratch scratch(cpu::channel_sums_scratch_bytes(g));
      std::vector<double> all(4 * g.channels);
      const auto part = [&](int k) { return Span<double>(all.data() + k * g.channels, g.channels); };
      cpu::channel_sums<T>(part(0), part(1), x.data(), span(mean), g, scratch, cpu);
      cpu::channel_grad_sums<T>(part(2), part(3), nullptr, dy.data(), x.data(), x.data(), span(mean), g, scratch, cpu);
      results.push_back(all);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

}  // namespace
}  // namespace pal::kernels
