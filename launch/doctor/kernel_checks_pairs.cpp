// kernel_checks_pairs: the kernels that compare all rows with all (row_logsumexp, nearest) and augment, CUDA against
// CPU.
#include "kernels/augment_params.h"
#include "kernels/nearest.h"
#include "kernels/row_logsumexp.h"
#include "launch/doctor/kernel_check_tools.h"

namespace pal::launch::detail {
namespace {

void check_row_logsumexp(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const int64_t n = sizes.pair_rows, dims = sizes.dims;
  const double products = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(dims);
  std::vector<float> z = random_numbers(n * dims, 7);
  for (float& x : z) x /= std::sqrt(static_cast<float>(dims) / 3);  // about norm 1
  std::vector<int64_t> self(n);
  for (int64_t i = 0; i < n; ++i) self[i] = i;
  const std::vector<double> degrees(n, 1.0);
  std::vector<double> lse(n);
  std::vector<float> gradient(n * dims);
  const MatrixView<const float> view(z.data(), n, dims);
  const RowLogSumExpOptions options;
  cpu::row_logsumexp<float>({lse.data(), n}, view, view, {self.data(), n}, options,
                            HostScratch(cpu::row_logsumexp_scratch_bytes<float>(n, n, dims)), cpu);
  const LogSumExpTerms terms{{lse.data(), n}, {degrees.data(), n}};
  cpu::row_logsumexp_gradient<float>({gradient.data(), n, dims}, view, view, {self.data(), n}, terms, terms, options,
                                     HostScratch(cpu::row_logsumexp_gradient_scratch_bytes<float>(n, n, dims)), cpu);

  const DeviceArray<float> device_z(z), out(n * dims);
  const DeviceArray<int64_t> device_self(self);
  const DeviceArray<double> device_lse(n), same_lse(lse), device_degrees(degrees);
  const DeviceArray<char> scratch(std::max(cuda::row_logsumexp_scratch_bytes<float>(n, n, dims),
                                           cuda::row_logsumexp_gradient_scratch_bytes<float>(n, n, dims)));
  const MatrixView<const float> device_view(device_z.data(), n, dims);
  const std::string shape = fmt::format("{} x {} x {}", n, n, dims);
  KernelCheck value{"row_logsumexp", shape};
  value.milliseconds = milliseconds(
      [&] {
        cuda::row_logsumexp<float>(device_lse.span(), device_view, device_view, device_self.span(), options,
                                   scratch.scratch(), nullptr);
      },
      sizes.repeats);
  value.error = distance(device_lse.host(), lse);
  value.tolerance = 1e-5;
  value.bytes = 4.0 * static_cast<double>(n * dims) + 8.0 * static_cast<double>(n);
  value.flops = 2 * products;
  checks.push_back(value);

  const LogSumExpTerms device_terms{same_lse.span(), device_degrees.span()};
  KernelCheck slope{"row_logsumexp_gradient", shape};
  slope.milliseconds = milliseconds(
      [&] {
        cuda::row_logsumexp_gradient<float>({out.data(), n, dims}, device_view, device_view, device_self.span(),
                                            device_terms, device_terms, options, scratch.scratch(), nullptr);
      },
      sizes.repeats);
  slope.error = distance(out.host(), gradient);
  slope.tolerance = 1e-4;
  slope.bytes = 8.0 * static_cast<double>(n * dims) + 16.0 * static_cast<double>(n);
  slope.flops = 4 * products;
  checks.push_back(slope);
}

void check_nearest(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const int64_t queries = sizes.pair_rows, dims = sizes.dims, k = std::min<int64_t>(20, queries);
  const std::vector<float> x = random_numbers(queries * dims, 8);
  std::vector<int64_t> ids(queries * k);
  std::vector<double> scores(queries * k);
  const MatrixView<const float> view(x.data(), queries, dims);
  const DeviceArray<float> device_x(x);
  const DeviceArray<int64_t> device_ids(queries * k);
  const DeviceArray<double> device_scores(queries * k);
  const DeviceArray<char> scratch(cuda::nearest_scratch_bytes<float>(queries, queries, dims, k));
  const MatrixView<const float> device_view(device_x.data(), queries, dims);
  for (const Metric metric : {Metric::cosine, Metric::euclidean}) {
    cpu::nearest<float>({{ids.data(), queries, k}, {scores.data(), queries, k}}, view, {view, {}, {}},
                        {nullptr, queries, 0}, metric,
                        HostScratch(cpu::nearest_scratch_bytes<float>(queries, queries, dims, k)), cpu);
    KernelCheck check{metric == Metric::cosine ? "nearest cosine" : "nearest euclidean",
                      fmt::format("{} x {} x {}, k {}", queries, queries, dims, k)};
    check.milliseconds = milliseconds(
        [&] {
          cuda::nearest<float>({{device_ids.data(), queries, k}, {device_scores.data(), queries, k}}, device_view,
                               {device_view, {}, {}}, {nullptr, queries, 0}, metric, scratch.scratch(), nullptr);
        },
        sizes.repeats);
    check.error = distance(device_scores.host(), scores);  // ids may swap when scores agree to fp32
    check.tolerance = 1e-5;
    check.bytes = 4.0 * static_cast<double>(queries * dims) + 16.0 * static_cast<double>(queries * k);
    check.flops = (metric == Metric::cosine ? 2.0 : 3.0) * static_cast<double>(queries) * static_cast<double>(queries) *
                  static_cast<double>(dims);
    checks.push_back(check);
  }
}

// Two results of halves of the support become that of the whole: the same bits.
void check_nearest_merge(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const int64_t queries = sizes.pair_rows, k = std::min<int64_t>(20, queries), parts = 2, rows = parts * queries;
  const std::vector<float> drawn = random_numbers(rows * k, 12);
  std::vector<double> scores(drawn.begin(), drawn.end());
  std::vector<int64_t> ids(rows * k);
  for (int64_t row = 0; row < rows; ++row) {
    std::sort(scores.begin() + row * k, scores.begin() + (row + 1) * k);  // the smaller distance is nearer
    for (int64_t n = 0; n < k; ++n) ids[row * k + n] = row / queries * k + n;
  }
  std::vector<int64_t> expected_ids(queries * k);
  std::vector<double> expected(queries * k);
  cpu::nearest_merge({{expected_ids.data(), queries, k}, {expected.data(), queries, k}}, {ids.data(), rows, k},
                     {scores.data(), rows, k}, parts, Metric::euclidean, cpu);
  const DeviceArray<int64_t> device_ids(ids), out_ids(queries * k);
  const DeviceArray<double> device_scores(scores), out(queries * k);
  KernelCheck check{"nearest_merge", fmt::format("{} x {}, {} parts", queries, k, parts)};
  check.milliseconds = milliseconds(
      [&] {
        cuda::nearest_merge({{out_ids.data(), queries, k}, {out.data(), queries, k}}, {device_ids.data(), rows, k},
                            {device_scores.data(), rows, k}, parts, Metric::euclidean, nullptr);
      },
      sizes.repeats);
  check.error = out_ids.host() == expected_ids && out.host() == expected ? 0 : 1;
  check.bytes = 16.0 * static_cast<double>((rows + queries) * k);
  checks.push_back(check);
}

// The largest difference of two pictures; NaN stays.
double largest_difference(const std::vector<float>& got, const std::vector<float>& expected) {
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double off = std::abs(got[i] - expected[i]);
    error = off <= error ? error : off;
  }
  return error;
}

}  // namespace

void check_pair_ops(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  check_row_logsumexp(checks, sizes, cpu);
  check_nearest(checks, sizes, cpu);
  check_nearest_merge(checks, sizes, cpu);
}

void check_augment(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, Cpu cpu) {
  const int32_t side = sizes.image_size;
  const int64_t count = sizes.images, image_bytes = int64_t{3} * side * side, views = 2,
                pixels = views * count * image_bytes;
  Random random(1, Purpose::bench, 9);
  std::vector<uint8_t> bytes(count * image_bytes);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.next_u32());
  const DeviceArray<uint8_t> device_bytes(bytes);
  std::vector<ImageView> images, device_images;
  std::vector<int64_t> sample;
  for (int64_t i = 0; i < count; ++i) {
    images.push_back({bytes.data() + i * image_bytes, side, side, 3});
    device_images.push_back({device_bytes.data() + i * image_bytes, side, side, 3});
    sample.push_back(i);
  }
  std::vector<ViewPolicy> policies(views);
  policies[1].blur = 1;
  AugmentOptions options;
  options.size = side;
  const Span<const ImageView> host_span(images.data(), count), device_span(device_images.data(), count);
  std::vector<float> expected(pixels);
  cpu::augment<float>(expected.data(), host_span, {sample.data(), count}, {policies.data(), views}, options,
                      HostScratch(cpu::augment_scratch_bytes(host_span, options, cpu)), cpu);
  const DeviceArray<float> out(pixels);
  const DeviceArray<char> scratch(cuda::augment_scratch_bytes(device_span, options));
  KernelCheck check{"augment", fmt::format("{} images of {} x {}, {} views", count, side, side, views)};
  check.milliseconds = milliseconds(
      [&] {
        cuda::augment<float>(out.data(), device_span, {sample.data(), count}, {policies.data(), views}, options,
                             scratch.scratch(), nullptr);
      },
      sizes.repeats);
  check.error = largest_difference(out.host(), expected);
  check.tolerance = 1.0 / 255;
  check.bytes = static_cast<double>(views * count * image_bytes) + 4.0 * static_cast<double>(pixels);
  checks.push_back(check);

  // As the loader calls it: decoded parts of images, with the parameters of their views.
  std::vector<ImagePart> parts, device_parts;
  std::vector<ViewParams> params;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back({images[i]});
    device_parts.push_back({device_images[i]});
    params.push_back(
        draw_view_params(policies[1], options.seed, options.step, static_cast<uint64_t>(sample[i]), 1, side, side));
  }
  const Span<const ImagePart> host_parts(parts.data(), count), there(device_parts.data(), count);
  expected.resize(count * image_bytes);
  cpu::augment_parts<float>(expected.data(), host_parts, {params.data(), count}, options,
                            HostScratch(cpu::augment_parts_scratch_bytes(host_parts, options, cpu)), cpu);
  const DeviceArray<float> views_out(count * image_bytes);
  const DeviceArray<char> parts_scratch(cuda::augment_parts_scratch_bytes(there, options));
  KernelCheck of_parts{"augment_parts", fmt::format("{} images of {} x {}", count, side, side)};
  of_parts.milliseconds = milliseconds(
      [&] {
        cuda::augment_parts<float>(views_out.data(), there, {params.data(), count}, options, parts_scratch.scratch(),
                                   nullptr);
      },
      sizes.repeats);
  of_parts.error = largest_difference(views_out.host(), expected);
  of_parts.tolerance = 1.0 / 255;
  of_parts.bytes = 5.0 * static_cast<double>(count * image_bytes);
  checks.push_back(of_parts);

  cpu::center_view<float>(expected.data(), host_span, options,
                          HostScratch(cpu::augment_scratch_bytes(host_span, options, cpu)), cpu);
  KernelCheck center{"center_view", of_parts.shape};
  center.milliseconds = milliseconds(
      [&] { cuda::center_view<float>(views_out.data(), device_span, options, scratch.scratch(), nullptr); },
      sizes.repeats);
  center.error = largest_difference(views_out.host(), expected);
  center.tolerance = 1.0 / 255;
  center.bytes = of_parts.bytes;
  checks.push_back(center);
}

}  // namespace pal::launch::detail
