#include "core/loss/graph_terms.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "core/loss/halo.h"
#include "core/loss/layer_share.h"
#include "core/loss/tensor_view.h"
#include "kernels/block_terms.h"
#include "kernels/graph_rows.h"

namespace pal {
namespace {

namespace cpu = kernels::cpu;
using kernels::Into;

struct Layer {
  LayerShare share;
  at::Tensor sums;   // (blocks dealt with, D) fp64, of the whole batch
};

// Collective. Sums of the rows of each block: local first, then the spanning ones of all layers in one all-reduce.
std::vector<Layer> sum_layers(const at::Tensor& z, const Batch& batch, Comm& comm) {
  const kernels::Cpu threads{batch.threads};
  const int64_t dims = z.size(1);
  std::vector<Layer> layers;
  std::vector<at::Tensor> spanning;
  for (const BlockLayer& layer : batch.graph.layers) {
    LayerShare share = layer_share(layer, batch, comm.rank());
    at::Tensor sums = at::empty({share.blocks(), dims}, at::kDouble);
    const ScratchMemory scratch(cpu::block_sums_scratch_bytes(z.size(0), share.blocks(), dims));
    by_type(z, [&](auto t) {
      using T = decltype(t);
      cpu::block_sums<T>(matrix_view<double>(sums), matrix_view<const T>(z), span_of(share.row_block), scratch, threads);
    });
    spanning.push_back(sums.narrow(0, 0, share.spanning));
    layers.push_back({std::move(share), sums});
  }
  if (comm.size() == 1 || layers.empty()) return layers;
  const at::Tensor all = at::cat(spanning);   // every rank has the same spanning blocks: the choice below is global
  if (all.size(0) == 0) return layers;
  comm.all_reduce(all);
  int64_t at = 0;
  for (at::Tensor& s : spanning) {
    s.copy_(all.narrow(0, at, s.size(0)));
    at += s.size(0);
  }
  return layers;
}

// Collective. Adds scale · the rows of the sparse rest in the given form; returns the share of its value.
double rest_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, Comm& comm, SelfLoops self_loops,
                  kernels::RowForm form, double scale) {
  if (batch.graph.rest.offsets.empty()) return 0;
  const Halo halo = make_halo(batch, comm.rank(), self_loops);
  const at::Tensor partners = gather_partners(halo, z, batch, comm);
  double value = 0;
  by_type(z, [&](auto t) {
    using T = decltype(t);
    const std::vector<T> weights(halo.weights.begin(), halo.weights.end());
    const kernels::CsrView<T> s{span_of(halo.offsets), span_of(halo.columns), span_of(weights)};
    const ScratchMemory scratch(cpu::graph_rows_scratch_bytes<T>(z.size(0), static_cast<int64_t>(weights.size()), z.size(1)));
    cpu::graph_rows<T>(matrix_view<T>(out), &value, matrix_view<const T>(z), matrix_view<const T>(partners), s,
                       {form, scale, Into::add}, scratch, {batch.threads});
  });
  return value;
}

// out_i −= scale · G_ii z_i, and the share of Σ_i G_ii ‖z_i‖² over the layers: what self-loops off takes away.
double take_off_loops(const at::Tensor& out, const at::Tensor& z, const Batch& batch, double scale) {
  double sum = 0;
  by_type(z, [&](auto t) {
    using T = decltype(t);
    const auto rows = matrix_view<const T>(z);
    const auto result = matrix_view<T>(out);
    for (const BlockLayer& layer : batch.graph.layers) {
      for (int64_t i = 0; i < rows.rows; ++i) {
        if (layer.block[batch.begin + i % batch.local_positions()] < 0) continue;
        double square = 0;
        for (int64_t k = 0; k < rows.cols; ++k) {
          const double value = rows.row(i)[k];
          square += value * value;
          result.row(i)[k] -= static_cast<T>(scale * layer.weight * value);
        }
        sum += layer.weight * square;
      }
    }
  });
  return sum;
}

}  // namespace

double invariance_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, Comm& comm, double scale) {
  double share = 0;
  for (Layer& layer : sum_layers(z, batch, comm)) {
    const LayerShare& s = layer.share;
    const at::Tensor rows = at::from_blob(const_cast<double*>(s.rows.data()), {s.blocks(), 1}, at::kDouble);
    const at::Tensor means = layer.sums.div_(rows);
    std::vector<double> pair_weight = s.rows;
    for (double& w : pair_weight) w *= s.weight;
    const ScratchMemory scratch(cpu::block_differences_scratch_bytes(z.size(0)));
    double value = 0;
    by_type(z, [&](auto t) {
      using T = decltype(t);
      cpu::block_differences<T>(matrix_view<T>(dz), &value, matrix_view<const T>(z), matrix_view<const double>(means),
                                span_of(pair_weight), span_of(s.row_block), 4 * scale, Into::add, scratch, {batch.threads});
    });
    share += value;
  }
  return share + rest_share(dz, z, batch, comm, SelfLoops::off, kernels::RowForm::difference, 4 * scale);
}

double product_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, Comm& comm, SelfLoops self_loops,
                     double scale) {
  double share = 0;
  for (const Layer& layer : sum_layers(z, batch, comm)) {
    const LayerShare& s = layer.share;
    by_type(z, [&](auto t) {
      using T = decltype(t);
      cpu::block_rows<T>(matrix_view<T>(out), matrix_view<const double>(layer.sums), span_of(s.row_block), scale * s.weight,
                         Into::add, {batch.threads});
    });
    // Tr ZᵀMBMᵀZ = w Σ_c ‖sum_c‖²; every rank holds the spanning blocks, rank 0 counts them.
    const int64_t first = comm.rank() == 0 ? 0 : s.spanning;
    const double* sums = layer.sums.const_data_ptr<double>();
    double squares = 0;
    for (int64_t k = first * z.size(1); k < layer.sums.numel(); ++k) squares += sums[k] * sums[k];
    share += s.weight * squares;
  }
  if (self_loops == SelfLoops::off) share -= take_off_loops(out, z, batch, scale);
  return share + rest_share(out, z, batch, comm, self_loops, kernels::RowForm::sum, scale);
}

std::vector<double> sum_shares(std::initializer_list<double> shares, Comm& comm) {
  std::vector<double> sums(shares);
  comm.all_reduce(at::from_blob(sums.data(), {static_cast<int64_t>(sums.size())}, at::kDouble));
  return sums;
}

at::Tensor checked_rows(const at::Tensor& z, const Batch& batch, const Comm& comm) {
  PAL_ASSERT(z.dim() == 2 && z.size(0) == batch.local_rows() && z.size(1) > 0, "z holds this rank's rows");
  PAL_ASSERT(z.device().is_cpu(), "criteria run on CPU tensors");
  PAL_ASSERT(static_cast<int>(batch.rank_begin.size()) == comm.size() + 1 && batch.rank_begin[comm.rank()] == batch.begin &&
                 batch.rank_begin[comm.rank() + 1] == batch.end && batch.rank_begin.front() == 0 &&
                 batch.rank_begin.back() == static_cast<int64_t>(batch.samples.size()),
             "the plan cuts the batch into one slice per rank");
  PAL_ASSERT(batch.graph.samples == static_cast<int64_t>(batch.samples.size()) && batch.graph.views == batch.views,
             "the graph is that of the batch");
  return z.contiguous();
}

}  // namespace pal
