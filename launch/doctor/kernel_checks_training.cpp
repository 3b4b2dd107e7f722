// kernel_checks_training: batch norm and the optimizers' updates, CUDA against CPU.
#include <cstring>
#include <type_traits>

#include "kernels/batch_norm.h"
#include "kernels/update.h"
#include "launch/doctor/kernel_check_tools.h"

namespace pal::launch::detail {
namespace {

// A float as T stores it, and back.
template <class T>
T stored(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof(bits));
    return T{static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};  // to the nearest even
  }
}
template <class T>
float read(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    const uint32_t bits = uint32_t{x.bits} << 16;
    float out = 0;
    std::memcpy(&out, &bits, sizeof(out));
    return out;
  }
}
template <class T>
std::vector<float> read(const std::vector<T>& from) {
  std::vector<float> out;
  for (const T& x : from) out.push_back(read(x));
  return out;
}

// Numbers on both sides: the CPU twin reads as float what T holds.
template <class T>
struct Rows {
  std::vector<float> host;
  DeviceArray<T> device;
  static std::vector<T> drawn(int64_t count, uint64_t stream) {
    std::vector<T> out;
    for (const float x : random_numbers(count, stream)) out.push_back(stored<T>(x));
    return out;
  }
  explicit Rows(const std::vector<T>& numbers) : host(read(numbers)), device(numbers) {}
  Rows(int64_t count, uint64_t stream) : Rows(drawn(count, stream)) {}
};

template <class T>
struct BatchNormChecks {
  std::vector<KernelCheck>& checks;
  const KernelCheckSizes& sizes;
  Cpu cpu;
  ChannelGrid grid{sizes.rows, sizes.dims, 1};
  Rows<T> x{grid.size(), 21}, y{grid.size(), 22}, dy{grid.size(), 23};
  std::vector<float> c[4] = {random_numbers(grid.channels, 24), random_numbers(grid.channels, 25),
                             random_numbers(grid.channels, 26), random_numbers(grid.channels, 27)};
  DeviceArray<float> d0{c[0]}, d1{c[1]}, d2{c[2]}, d3{c[3]};
  std::vector<double> mean = std::vector<double>(c[0].begin(), c[0].end()), sums = std::vector<double>(grid.channels),
                      squares = std::vector<double>(grid.channels);
  DeviceArray<double> device_mean{mean}, device_sums{grid.channels}, device_squares{grid.channels};
  DeviceArray<char> scratch{cuda::channel_sums_scratch_bytes(grid)};
  DeviceArray<T> out{grid.size()};
  std::vector<float> expected = std::vector<float>(grid.size());

  Span<const float> host(int k) const { return {c[k].data(), grid.channels}; }
  Span<double> as_span(std::vector<double>& v) const { return {v.data(), grid.channels}; }

  // `passes`: how often the elements are read or written.
  template <class F>
  KernelCheck& add(const char* op, double passes, double tolerance, const F& launch) {
    KernelCheck check{op, fmt::format("{} x {}{}", grid.outer, grid.channels, sizeof(T) == 4 ? "" : " bf16")};
    check.milliseconds = milliseconds(launch, sizes.repeats);
    check.tolerance = tolerance;
    check.bytes = passes * static_cast<double>(sizeof(T)) * static_cast<double>(grid.size());
    checks.push_back(check);
    return checks.back();
  }
  double off_sums() const {
    return std::max(distance(device_sums.host(), sums), distance(device_squares.host(), squares));
  }
  double off_rows() const { return distance(read(out.host()), expected); }

  void run() {
    const double rounding = sizeof(T) == 4 ? 1e-6 : 4e-3;
    HostScratch lent(cpu::channel_sums_scratch_bytes(grid));
    cpu::channel_sums<float>(as_span(sums), as_span(squares), x.host.data(), {mean.data(), grid.channels}, grid, lent,
                             cpu);
    KernelCheck& statistics = add("channel_sums", 1, 1e-10, [&] {
      cuda::channel_sums<T>(device_sums.span(), device_squares.span(), x.device.data(), device_mean.span(), grid,
                            scratch.scratch(), nullptr);
    });
    statistics.error = off_sums();

    cpu::channel_affine<float>(expected.data(), x.host.data(), dy.host.data(), host(0), host(1), host(2), grid,
                               Activation::relu, cpu);
    KernelCheck& affine = add("channel_affine", 3, rounding, [&] {
      cuda::channel_affine<T>(out.data(), x.device.data(), dy.device.data(), d0.span(), d1.span(), d2.span(), grid,
                              Activation::relu, nullptr);
    });
    affine.error = off_rows();

    cpu::channel_grad_sums<float>(as_span(sums), as_span(squares), expected.data(), dy.host.data(), y.host.data(),
                                  x.host.data(), {mean.data(), grid.channels}, grid, lent, cpu);
    KernelCheck& gradients = add("channel_grad_sums", 4, 1e-10, [&] {
      cuda::channel_grad_sums<T>(device_sums.span(), device_squares.span(), out.data(), dy.device.data(),
                                 y.device.data(), x.device.data(), device_mean.span(), grid, scratch.scratch(),
                                 nullptr);
    });
    gradients.error = std::max(off_sums(), off_rows());

    cpu::channel_grad<float>(expected.data(), dy.host.data(), y.host.data(), x.host.data(), host(0), host(1), host(2),
                             host(3), grid, cpu);
    KernelCheck& grad = add("channel_grad", 4, rounding, [&] {
      cuda::channel_grad<T>(out.data(), dy.device.data(), y.device.data(), x.device.data(), d0.span(), d1.span(),
                            d2.span(), d3.span(), grid, nullptr);
    });
    grad.error = off_rows();
  }
};

// Parameters in runs as an optimizer cuts them; the last parameter does not decay. Launches change the parameters, so
// the first one is checked and the others are timed.
class UpdateChecks {
 public:
  UpdateChecks(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes) : checks_(checks), sizes_(sizes) {
    for (int64_t k = 0; k < kParameters; ++k) {
      for (int64_t from = 0; from < each_; from += kRun) {
        const int64_t at = k * each_ + from;
        runs_.push_back({p_.data() + at, first_.data() + at, second_.data() + at, g_.data() + at,
                         std::min(kRun, each_ - from), static_cast<int32_t>(k), decays(k)});
      }
      begin_.push_back(static_cast<int64_t>(runs_.size()));
    }
  }

  void run() {
    const DeviceArray<UpdateRun> runs(runs_);
    const DeviceArray<int64_t> begin(begin_);
    const DeviceArray<char> scratch(cuda::adaptation_scratch_bytes(static_cast<int64_t>(runs_.size())));
    const UpdateOps<float>& ops = update_ops<float>(best_isa());
    const DeviceArray<float> factors(kParameters);
    std::vector<float> expected;
    for (int64_t k = 0; k < kParameters; ++k) {
      double of_p = 0, of_update = 0;
      ops.squares(&of_p, &of_update, host_p_.data() + k * each_, host_g_.data() + k * each_, kDecay, each_);
      expected.push_back(decays(k) ? static_cast<float>(1e-3 * std::sqrt(of_p) / std::sqrt(of_update)) : 1);
    }
    const auto adapt = [&] {
      cuda::adaptation(factors.span(), runs.span(), begin.span(), kDecay, 1e-3, scratch.scratch(), nullptr);
    };
    adapt();
    const double off = distance(factors.host(), expected);
    add("adaptation (LARS)", 2, adapt, off, 1e-6);

    MomentumNumbers<float> momentum{0.1f, 0.9f, kDecay, 0};
    const auto step = [&] { cuda::momentum(runs.span(), factors.span(), momentum, nullptr); };
    const std::vector<float> used = factors.host();
    step();
    for (int64_t k = 0; k < kParameters; ++k) {
      momentum.factor = used[k];
      momentum.decay = decays(k) ? kDecay : 0;
      ops.momentum(host_p_.data() + k * each_, host_first_.data() + k * each_, host_g_.data() + k * each_, momentum,
                   each_);
    }
    momentum.decay = kDecay;
    const double moved = std::max(distance(p_.host(), host_p_), distance(first_.host(), host_first_));
    add("momentum (SGD, LARS)", 5, step, moved, 0);

    AdamNumbers<float> adam{0.99f, 0.9f, 0.1f, 0.999f, 0.001f, 0.02f, 1.5f, 1e-8f};
    host_p_ = p_.host();
    host_first_ = first_.host();
    const auto adam_step = [&] { cuda::adam(runs.span(), adam, nullptr); };
    adam_step();
    for (int64_t k = 0; k < kParameters; ++k) {
      AdamNumbers<float> own = adam;
      own.keep = decays(k) ? adam.keep : 1;
      const int64_t at = k * each_;
      ops.adam(host_p_.data() + at, host_first_.data() + at, host_second_.data() + at, host_g_.data() + at, own, each_);
    }
    const double off_adam = std::max(
        {distance(p_.host(), host_p_), distance(first_.host(), host_first_), distance(second_.host(), host_second_)});
    add("adam", 7, adam_step, off_adam, 0);
  }

 private:
  static constexpr int64_t kParameters = 3, kRun = 4096;
  static constexpr float kDecay = 0.01f;
  static int32_t decays(int64_t k) { return k + 1 < kParameters ? 1 : 0; }
  static std::vector<float> squared(std::vector<float> x) {
    for (float& v : x) v *= v;
    return x;
  }

  // Bits are the CPU's, so the tolerance of an update is 0.
  template <class F>
  void add(const char* op, double passes, const F& launch, double error, double tolerance) {
    KernelCheck check{op, fmt::format("{} x {}", kParameters, each_)};
    check.error = error;
    check.tolerance = tolerance;
    check.milliseconds = milliseconds(launch, sizes_.repeats);
    check.bytes = passes * 4.0 * static_cast<double>(total_);
    checks_.push_back(check);
  }

  std::vector<KernelCheck>& checks_;
  const KernelCheckSizes& sizes_;
  const int64_t each_ = sizes_.rows * sizes_.dims / kParameters, total_ = kParameters * each_;
  std::vector<float> host_p_ = random_numbers(total_, 31), host_first_ = random_numbers(total_, 32),
                     host_second_ = squared(random_numbers(total_, 33)), host_g_ = random_numbers(total_, 34);
  DeviceArray<float> p_{host_p_}, first_{host_first_}, second_{host_second_}, g_{host_g_};
  std::vector<UpdateRun> runs_;
  std::vector<int64_t> begin_ = {0};
};

}  // namespace

void check_training_ops(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  BatchNormChecks<float>{checks, sizes, cpu}.run();
  BatchNormChecks<bf16>{checks, sizes, cpu}.run();
  UpdateChecks(checks, sizes).run();
}

}  // namespace pal::launch::detail
