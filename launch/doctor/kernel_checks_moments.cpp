// kernel_checks_moments: column sums, second moments, their terms and gradients, CUDA against CPU.
#include "kernels/moments.h"
#include "launch/doctor/kernel_check_tools.h"

namespace pal::launch::detail {
namespace {

// The inputs of all checks, on both sides; the CPU's results are the input of the next op on both.
struct Inputs {
  int64_t rows, dims;
  std::vector<float> z;
  std::vector<double> mean;
  DeviceArray<float> device_z;
  MatrixView<const float> view, device_view;

  Inputs(int64_t rows, int64_t dims, Cpu cpu)
      : rows(rows),
        dims(dims),
        z(random_numbers(rows * dims, 6)),
        mean(dims),
        device_z(z),
        view(z.data(), rows, dims),
        device_view(device_z.data(), rows, dims) {
    cpu::column_sums<float>({mean.data(), dims}, view, HostScratch(cpu::column_sums_scratch_bytes(rows, dims)), cpu);
    for (double& m : mean) m /= static_cast<double>(rows);
  }
  std::string shape() const { return fmt::format("{} x {}", rows, dims); }
};

KernelCheck check_column_sums(const Inputs& in, int repeats) {
  const DeviceArray<double> sums(in.dims);
  const DeviceArray<char> scratch(cuda::column_sums_scratch_bytes(in.rows, in.dims));
  KernelCheck check{"column_sums", in.shape()};
  check.milliseconds =
      milliseconds([&] { cuda::column_sums<float>(sums.span(), in.device_view, scratch.scratch(), nullptr); }, repeats);
  std::vector<double> means = sums.host();
  for (double& m : means) m /= static_cast<double>(in.rows);
  check.error = distance(means, in.mean);
  check.tolerance = 1e-10;
  check.bytes = 4.0 * static_cast<double>(in.rows * in.dims);
  check.flops = static_cast<double>(in.rows * in.dims);
  return check;
}

// S, then A with the two terms, then the rows times A.
void check_covariance_form(std::vector<KernelCheck>& checks, const Inputs& in, int repeats, Cpu cpu) {
  const int64_t rows = in.rows, dims = in.dims;
  const double square = static_cast<double>(dims) * static_cast<double>(dims);
  const MomentsOptions options;  // sums in fp64, as in training
  std::vector<double> packed(packed_size(dims));
  cpu::centered_second_moment<float>({packed.data(), packed_size(dims)}, in.view, {in.mean.data(), dims}, options,
                                     HostScratch(cpu::centered_second_moment_scratch_bytes<float>(rows, dims, options)),
                                     cpu);
  const DeviceArray<double> mean(in.mean), device_packed(packed_size(dims)), same_packed(packed), terms(2);
  const DeviceArray<char> scratch(std::max(cuda::centered_second_moment_scratch_bytes<float>(rows, dims, options),
                                           cuda::covariance_terms_scratch_bytes(dims)));
  KernelCheck moment{"centered_second_moment", in.shape()};
  moment.milliseconds = milliseconds(
      [&] {
        cuda::centered_second_moment<float>(device_packed.span(), in.device_view, mean.span(), options,
                                            scratch.scratch(), nullptr);
      },
      repeats);
  moment.error = distance(device_packed.host(), packed);
  moment.tolerance = 1e-5;
  moment.bytes = 4.0 * static_cast<double>(rows * dims) + 4.0 * square;
  moment.flops = static_cast<double>(rows) * square;
  checks.push_back(moment);

  std::vector<float> a(dims * dims);
  double variance = 0, covariance = 0;
  cpu::covariance_terms<float>({a.data(), dims, dims}, &variance, &covariance, {packed.data(), packed_size(dims)}, rows,
                               options, cpu);
  const DeviceArray<float> device_a(dims * dims), same_a(a), out(rows * dims);
  KernelCheck term{"covariance_terms", fmt::format("{} x {}", dims, dims)};
  term.milliseconds = milliseconds(
      [&] {
        cuda::covariance_terms({device_a.data(), dims, dims}, terms.data(), terms.data() + 1, same_packed.span(), rows,
                               options, scratch.scratch(), nullptr);
      },
      repeats);
  term.error =
      std::max(distance(device_a.host(), a), distance(terms.host(), std::vector<double>{variance, covariance}));
  term.tolerance = 1e-5;
  term.bytes = 8.0 * square;
  checks.push_back(term);

  std::vector<float> expected(rows * dims);
  cpu::centered_product<float>({expected.data(), rows, dims}, in.view, {in.mean.data(), dims}, {a.data(), dims, dims},
                               Into::overwrite, HostScratch(cpu::centered_product_scratch_bytes<float>(rows, dims)),
                               cpu);
  KernelCheck product{"centered_product", in.shape()};
  product.milliseconds = milliseconds(
      [&] {
        cuda::centered_product<float>({out.data(), rows, dims}, in.device_view, mean.span(),
                                      {same_a.data(), dims, dims}, Into::overwrite, nullptr);
      },
      repeats);
  product.error = distance(out.host(), expected);
  product.tolerance = 1e-5;
  product.bytes = 8.0 * static_cast<double>(rows * dims) + 4.0 * square;
  product.flops = 2.0 * static_cast<double>(rows) * square;
  checks.push_back(product);
}

KernelCheck check_gram_form(const Inputs& in, int repeats, Cpu cpu) {
  const int64_t rows = in.rows, dims = in.dims;
  const MomentsOptions options;  // sums in fp64, as in training
  std::vector<float> expected(rows * dims);
  std::vector<double> expected_terms(2);
  cpu::gram_terms<float>({expected.data(), rows, dims}, expected_terms.data(), expected_terms.data() + 1, in.view,
                         {in.mean.data(), dims}, 0, options, Into::overwrite,
                         HostScratch(cpu::gram_terms_scratch_bytes<float>(rows, dims, options)), cpu);
  const DeviceArray<float> out(rows * dims);
  const DeviceArray<double> mean(in.mean), terms(2);
  const DeviceArray<char> scratch(cuda::gram_terms_scratch_bytes<float>(rows, dims, options));
  KernelCheck check{"gram_terms", in.shape()};
  check.milliseconds = milliseconds(
      [&] {
        cuda::gram_terms<float>({out.data(), rows, dims}, terms.data(), terms.data() + 1, in.device_view, mean.span(),
                                0, options, Into::overwrite, scratch.scratch(), nullptr);
      },
      repeats);
  check.error = std::max(distance(out.host(), expected), distance(terms.host(), expected_terms));
  check.tolerance = 1e-4;  // the covariance is what is left of two larger sums
  check.bytes = 8.0 * static_cast<double>(rows * dims);
  check.flops = 3.0 * static_cast<double>(rows) * static_cast<double>(rows) * static_cast<double>(dims);
  return check;
}

}  // namespace

void check_moment_ops(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const Inputs many(sizes.rows, sizes.dims, cpu), fewer(sizes.pair_rows, sizes.dims, cpu);
  checks.push_back(check_column_sums(many, sizes.repeats));
  check_covariance_form(checks, many, sizes.repeats, cpu);
  checks.push_back(check_gram_form(fewer, sizes.repeats, cpu));
}

}  // namespace pal::launch::detail
