// cases_graph: pairs over index sets, supervised blocks, and SimCLR.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <numeric>

#include "core/ops/named_tensors.h"
#include "core/ops/tensor_view.h"
#include "kernels/base/philox.h"
#include "kernels/block_terms.h"
#include "kernels/csr.h"
#include "kernels/graph_rows.h"
#include "kernels/row_logsumexp.h"
#include "tests/bench/cases.h"

namespace pal::bench {
namespace {

namespace cpu = kernels::cpu;
using kernels::Into;
using kernels::RowForm;

// A CSR matrix and its buffers, reused between calls.
struct Graph {
  at::Tensor offsets, columns, weights, degrees;
  int64_t nnz = 0;

  Graph(int64_t rows, int64_t pairs)
      : offsets(at::empty({rows + 1}, at::kLong)),
        columns(at::empty({kernels::csr_capacity(pairs)}, at::kInt)),
        weights(at::empty({kernels::csr_capacity(pairs)})),
        degrees(at::empty({rows})) {}
  void build(const at::Tensor& i, const at::Tensor& j, const at::Tensor& w, int threads) {
    const int64_t rows = degrees.numel();
    const ops::ScratchMemory scratch(cpu::csr_scratch_bytes<float>(rows, i.numel()));
    cpu::csr<float>({ops::span<int64_t>(offsets), ops::span<int32_t>(columns), ops::span<float>(weights),
                     ops::span<float>(degrees), &nnz},
                    {ops::span<const int32_t>(i), ops::span<const int32_t>(j), ops::span<const float>(w)}, rows,
                    scratch, {threads});
  }
  double rows_of(const at::Tensor& out, const at::Tensor& z, RowForm form, double scale, Into into, int threads) const {
    const ops::ScratchMemory scratch(cpu::graph_rows_scratch_bytes<float>(z.size(0), nnz, z.size(1)));
    const kernels::CsrView<float> s{
        ops::span<const int64_t>(offsets), {columns.data_ptr<int32_t>(), nnz}, {weights.data_ptr<float>(), nnz}};
    double value = 0;
    cpu::graph_rows<float>(ops::matrix_view<float>(out), &value, ops::matrix_view<const float>(z),
                           ops::matrix_view<const float>(z), s, {form, scale, into}, scratch, {threads});
    return value;
  }
};

// (1/M) Σ w ‖z_i − z_j‖² over M index pairs; timing starts from the index sets.
KernelCase pairs_case(BenchSizes sizes) {
  const bool full = sizes == BenchSizes::full;
  const int64_t rows = full ? 8192 : 256, dims = full ? 512 : 40, pairs = full ? 65536 : 1000;
  KernelCase c{.name = "pairs", .params = {{"N", rows}, {"D", dims}, {"M", pairs}}};
  c.peers = {{"z[I]"}, {"index_select"}, {"sparse CSR autograd"}, {"manual CSR spmm"}};
  c.bytes = 4.0 * dims * (2 * pairs + 2 * rows);
  c.flops = 5.0 * dims * 2 * pairs;
  c.inputs = [=](const std::string&) {
    const at::Tensor i = at::empty({pairs}, at::kInt), j = at::empty({pairs}, at::kInt), w = at::empty({pairs});
    Random random(1, Purpose::bench, 1);
    for (int64_t m = 0; m < pairs; ++m) {
      i.data_ptr<int32_t>()[m] = static_cast<int32_t>(random.below(rows));
      // never i itself
      j.data_ptr<int32_t>()[m] = static_cast<int32_t>((i.data_ptr<int32_t>()[m] + 1 + random.below(rows - 1)) % rows);
      w.data_ptr<float>()[m] = random.uniform(0.5f, 1.5f);
    }
    return ops::NamedTensors{{"z", normal_tensor({rows, dims}, 2)}, {"i", i}, {"j", j}, {"w", w}};
  };
  c.ours = [=](const InputTensors& in, int threads) {
    const auto graph = std::make_shared<Graph>(rows, pairs);
    const at::Tensor z = in.at("z"), i = in.at("i"), j = in.at("j"), w = in.at("w"), dz = at::empty_like(z);
    return KernelRun{[=] {
                       graph->build(i, j, w, threads);
                       // The symmetric matrix holds each pair twice.
                       return graph->rows_of(dz, z, RowForm::difference, 2.0 / pairs, Into::overwrite, threads) /
                              (2.0 * pairs);
                     },
                     {{"gradient", dz}}};
  };
  return c;
}

// The mean of ‖z_i − z_j‖² over all pairs of one class.
KernelCase blocks_case(BenchSizes sizes, const std::string& name, int64_t classes) {
  const bool full = sizes == BenchSizes::full;
  const int64_t rows = full ? 4096 : 200, dims = full ? 128 : 20;
  KernelCase c{.name = name, .params = {{"B", rows}, {"D", dims}, {"classes", classes}}};
  c.bytes = 4.0 * dims * 3 * rows;
  c.flops = 6.0 * dims * rows;
  c.inputs = [=](const std::string&) {
    const at::Tensor labels = at::empty({rows}, at::kInt);
    Random random(1, Purpose::bench, 3);
    for (int64_t r = 0; r < rows; ++r) labels.data_ptr<int32_t>()[r] = static_cast<int32_t>(random.below(classes));
    return ops::NamedTensors{{"z", normal_tensor({rows, dims}, 4)}, {"labels", labels}};
  };
  c.ours = [=](const InputTensors& in, int threads) {
    const at::Tensor z = in.at("z"), labels = in.at("labels"), dz = at::empty_like(z);
    const at::Tensor sums = at::empty({classes, dims}, at::kDouble), counts = at::empty({classes}, at::kDouble);
    return KernelRun{[=] {
                       double pairs = 0, value = 0;
                       double* count = counts.data_ptr<double>();
                       std::fill_n(count, classes, 0.0);
                       for (int64_t r = 0; r < rows; ++r) count[labels.data_ptr<int32_t>()[r]] += 1;
                       for (int64_t k = 0; k < classes; ++k) pairs += count[k] * (count[k] - 1) / 2;
                       const ops::ScratchMemory scratch(std::max(cpu::block_sums_scratch_bytes(rows, classes, dims),
                                                                 cpu::block_differences_scratch_bytes(rows)));
                       cpu::block_sums<float>(ops::matrix_view<double>(sums), ops::matrix_view<const float>(z),
                                              ops::span<const int32_t>(labels), scratch, {threads});
                       for (int64_t k = 0; k < classes; ++k) {
                         double* row = sums.data_ptr<double>() + k * dims;
                         for (int64_t d = 0; d < dims && count[k] > 0; ++d) row[d] /= count[k];
                       }
                       cpu::block_differences<float>(
                           ops::matrix_view<float>(dz), &value, ops::matrix_view<const float>(z),
                           ops::matrix_view<const double>(sums), ops::span<const double>(counts),
                           ops::span<const int32_t>(labels), 2 / pairs, Into::overwrite, scratch, {threads});
                       return value / (2 * pairs);
                     },
                     {{"gradient", dz}}};
  };
  return c;
}

// SimCLR of unit rows 2k, 2k + 1, temperature 0.1: the mean over rows of lse_i − s_i,partner.
KernelCase simclr_case(BenchSizes sizes) {
  const bool full = sizes == BenchSizes::full;
  const int64_t rows = full ? 8192 : 64, dims = full ? 128 : 20;
  constexpr double kTemperature = 0.1;
  KernelCase c{.name = "simclr", .params = {{"N", rows}, {"D", dims}, {"temperature", kTemperature}}};
  c.peers = {{"dense matrix"}};
  c.flops = 6.0 * rows * rows * dims;  // similarities in forward and again in backward, and their product with the rows
  c.bytes = 4.0 * dims * 3 * rows;
  c.inputs = [=](const std::string&) {
    const at::Tensor z = normal_tensor({rows, dims}, 5);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = z.data_ptr<float>() + r * dims;
      const float norm = std::sqrt(std::inner_product(row, row + dims, row, 0.0f));
      for (int64_t d = 0; d < dims; ++d) row[d] /= norm;
    }
    return ops::NamedTensors{{"z", z}};
  };
  c.ours = [=](const InputTensors& in, int threads) {
    const at::Tensor z = in.at("z"), dz = at::empty_like(z);
    const at::Tensor i = at::empty({rows / 2}, at::kInt), j = at::empty({rows / 2}, at::kInt),
                     self = at::empty({rows}, at::kLong);
    const at::Tensor lse = at::empty({rows}, at::kDouble), degrees = at::empty({rows}, at::kDouble);
    for (int64_t r = 0; r < rows; ++r) {
      self.data_ptr<int64_t>()[r] = r;
      degrees.data_ptr<double>()[r] = 1;
      (r % 2 ? j : i).data_ptr<int32_t>()[r / 2] = static_cast<int32_t>(r);
    }
    const auto graph = std::make_shared<Graph>(rows, rows / 2);
    return KernelRun{
        [=] {
          const auto view = ops::matrix_view<const float>(z);
          {
            const ops::ScratchMemory scratch(cpu::row_logsumexp_scratch_bytes<float>(rows, rows, dims));
            cpu::row_logsumexp<float>(ops::span<double>(lse), view, view, ops::span<const int64_t>(self),
                                      {kTemperature}, scratch, {threads});
          }
          {
            const ops::ScratchMemory scratch(cpu::row_logsumexp_gradient_scratch_bytes<float>(rows, rows, dims));
            const kernels::LogSumExpTerms terms{ops::span<const double>(lse), ops::span<const double>(degrees)};
            cpu::row_logsumexp_gradient<float>(ops::matrix_view<float>(dz), view, view, ops::span<const int64_t>(self),
                                               terms, terms, {kTemperature, 1.0 / rows}, scratch, {threads});
          }
          graph->build(i, j, at::empty({0}), threads);
          const double positives = graph->rows_of(dz, z, RowForm::sum, -2 / (kTemperature * rows), Into::add, threads);
          double sum = 0;
          for (int64_t r = 0; r < rows; ++r) sum += lse.data_ptr<double>()[r];
          return (sum - positives / kTemperature) / rows;
        },
        {{"gradient", dz}}};
  };
  return c;
}

}  // namespace

std::vector<KernelCase> graph_bench_cases(BenchSizes sizes) {
  KernelCase blocks = blocks_case(sizes, "blocks", 10);
  blocks.peers = {
      {"index_select"}, {"ours, 2 classes", kAgreement, "blocks-2"}, {"ours, 100 classes", kAgreement, "blocks-100"}};
  return {pairs_case(sizes), blocks, blocks_case(sizes, "blocks-2", 2), blocks_case(sizes, "blocks-100", 100),
          simclr_case(sizes)};
}

}  // namespace pal::bench
