// cases_dense: VICReg's covariance term, and exact nearest neighbors.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "core/ops/named_tensors.h"
#include "core/ops/tensor_view.h"
#include "kernels/moments.h"
#include "kernels/nearest.h"
#include "tests/bench/cases.h"

namespace pal::bench {
namespace {

namespace cpu = kernels::cpu;

// Σ_{k≠l} C_kl² / D of one view, and its gradient, in the form that kernels::covariance_form_wins chooses.
double covariance_term(const at::Tensor& dz, const at::Tensor& z, int threads) {
  const int64_t rows = z.size(0), dims = z.size(1);
  kernels::MomentsOptions options;
  options.variance_weight = 0;
  options.covariance_weight = 1.0 / dims;
  const auto view = ops::matrix_view<const float>(z);
  const at::Tensor mean = at::empty({dims}, at::kDouble);
  {
    const ops::ScratchMemory scratch(cpu::column_sums_scratch_bytes(rows, dims));
    cpu::column_sums<float>(ops::span<double>(mean), view, scratch, {threads});
  }
  for (int64_t k = 0; k < dims; ++k) mean.data_ptr<double>()[k] /= rows;
  double variance = 0, covariance = 0;
  if (!kernels::covariance_form_wins(rows, dims, sizeof(float), sizeof(double))) {
    const ops::ScratchMemory scratch(cpu::gram_terms_scratch_bytes<float>(rows, dims, options));
    cpu::gram_terms<float>(ops::matrix_view<float>(dz), &variance, &covariance, view, ops::span<const double>(mean), 0,
                           options, kernels::Into::overwrite, scratch, {threads});
    return covariance / dims;
  }
  const at::Tensor packed = at::empty({kernels::packed_size(dims)}, at::kDouble), a = at::empty({dims, dims});
  {
    const ops::ScratchMemory scratch(cpu::centered_second_moment_scratch_bytes<float>(rows, dims, options));
    cpu::centered_second_moment<float>(ops::span<double>(packed), view, ops::span<const double>(mean), options, scratch,
                                       {threads});
  }
  cpu::covariance_terms<float>(ops::matrix_view<float>(a), &variance, &covariance, ops::span<const double>(packed),
                               rows, options, {threads});
  const ops::ScratchMemory scratch(cpu::centered_product_scratch_bytes<float>(rows, dims));
  cpu::centered_product<float>(ops::matrix_view<float>(dz), view, ops::span<const double>(mean),
                               ops::matrix_view<const float>(a), kernels::Into::overwrite, scratch, {threads});
  return covariance / dims;
}

// Both views of a batch, as the peers take them.
KernelCase covariance_case(const std::string& name, int64_t rows, int64_t dims) {
  const bool covariance = kernels::covariance_form_wins(rows, dims, sizeof(float), sizeof(double));
  KernelCase c{.name = name,
               .params = {{"n", rows}, {"D", dims}, {"views", 2}, {"form", covariance ? "covariance" : "gram"}}};
  c.peers = {{"VICReg idiom"}, {"solo-learn"}, {"lightly"}};
  const double n = static_cast<double>(rows), d = static_cast<double>(dims);
  c.flops =
      2 * (covariance ? 3 * n * d * d : 3 * n * n * d);  // half a product for the symmetric matrix, a whole one back
  c.bytes = 2 * 4.0 * 4 * n * d;
  c.inputs = [=](const std::string&) {
    return ops::NamedTensors{{"z1", normal_tensor({rows, dims}, 6)}, {"z2", normal_tensor({rows, dims}, 7)}};
  };
  c.ours = [=](const InputTensors& in, int threads) {
    const at::Tensor z1 = in.at("z1"), z2 = in.at("z2"), dz1 = at::empty_like(z1), dz2 = at::empty_like(z2);
    return KernelRun{[=] { return covariance_term(dz1, z1, threads) + covariance_term(dz2, z2, threads); },
                     {{"gradient1", dz1}, {"gradient2", dz2}}};
  };
  return c;
}

KernelCase nearest_case(BenchSizes sizes, const std::string& name, kernels::Metric metric) {
  const bool full = sizes == BenchSizes::full;
  const int64_t rows = full ? 65536 : 500, dims = full ? 512 : 24, queries = full ? 256 : 16, k = full ? 20 : 5;
  KernelCase c{.name = name,
               .params = {{"support", rows},
                          {"D", dims},
                          {"queries", queries},
                          {"k", k},
                          {"metric", metric == kernels::Metric::cosine ? "cosine" : "euclidean"}}};
  c.peers = {{"faiss IndexFlat"}, {"torch mm+topk"}};
  c.flops = 2.0 * rows * queries * dims;
  c.bytes = 4.0 * dims * (rows + queries);
  c.inputs = [=](const std::string&) {
    const at::Tensor support = normal_tensor({rows, dims}, 8), few = normal_tensor({queries, dims}, 9),
                     count = at::empty({1}, at::kLong);
    count.data_ptr<int64_t>()[0] = k;
    return ops::NamedTensors{{"support", support}, {"queries", few}, {"k", count}};
  };
  c.ours = [=](const InputTensors& in, int threads) {
    const at::Tensor support = in.at("support"), few = in.at("queries");
    const at::Tensor ids = at::empty({queries, k}, at::kLong), scores = at::empty({queries, k}, at::kDouble);
    return KernelRun{[=] {
                       const ops::ScratchMemory scratch(cpu::nearest_scratch_bytes<float>(queries, rows, dims, k));
                       cpu::nearest<float>({ops::matrix_view<int64_t>(ids), ops::matrix_view<double>(scores)},
                                           ops::matrix_view<const float>(few),
                                           {ops::matrix_view<const float>(support), {}, {}}, {}, metric, scratch,
                                           {threads});
                       return 0.0;
                     },
                     {{"scores", scores}, {"ids", ids}}};
  };
  return c;
}

}  // namespace

std::vector<KernelCase> dense_bench_cases(BenchSizes sizes) {
  const bool full = sizes == BenchSizes::full;
  return {covariance_case("covariance-wide", full ? 256 : 16, full ? 2048 : 96),
          covariance_case("covariance-tall", full ? 2048 : 96, full ? 512 : 16),
          nearest_case(sizes, "nearest", kernels::Metric::cosine),
          nearest_case(sizes, "nearest-euclidean", kernels::Metric::euclidean)};
}

}  // namespace pal::bench
