#include "core/loss/graph_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mm.h>

#include "core/loss/halo.h"
#include "core/ops/graph.h"
#include "core/ops/tensors.h"
#include "kernels/base/error.h"

namespace pal::loss {

LayerShare layer_share(const graph::BlockLayer& layer, const Batch& batch, int rank) {
  constexpr int kUnseen = -1, kSeveral = -2;
  std::vector<int> owner(layer.blocks, kUnseen);
  std::vector<int64_t> count(layer.blocks, 0);
  const int ranks = static_cast<int>(batch.rank_begin.size()) - 1;
  for (int r = 0; r < ranks; ++r) {
    for (int64_t p = batch.rank_begin[r]; p < batch.rank_begin[r + 1]; ++p) {
      const int32_t b = layer.block[p];
      if (b < 0) continue;
      ++count[b];
      owner[b] = owner[b] == kUnseen || owner[b] == r ? r : kSeveral;
    }
  }
  LayerShare share;
  share.weight = layer.weight;
  std::vector<int32_t> number(layer.blocks, -1);
  const auto take = [&](int whose) {
    for (int32_t b = 0; b < layer.blocks; ++b) {
      if (owner[b] != whose) continue;
      number[b] = static_cast<int32_t>(share.rows.size());
      share.rows.push_back(static_cast<double>(count[b] * batch.views));
    }
  };
  if (layer.has_table()) owner.assign(layer.blocks, kSeveral);
  take(kSeveral);
  share.spanning = share.blocks();
  take(rank);
  share.row_block.reserve(batch.local_rows());
  for (int32_t v = 0; v < batch.views; ++v) {
    for (int64_t p = batch.begin; p < batch.end; ++p) {
      share.row_block.push_back(layer.block[p] < 0 ? -1 : number[layer.block[p]]);
    }
  }
  return share;
}

namespace {

using kernels::Into;
using kernels::RowForm;

struct Layer {
  LayerShare share;
  at::Tensor sums;  // (blocks of this rank, D) fp64, over the global batch
};

// Collective. Sums the rows of each block locally, then all-reduces the spanning blocks of all layers at once.
std::vector<Layer> sum_layers(const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
  std::vector<Layer> layers;
  std::vector<at::Tensor> spanning;
  for (const graph::BlockLayer& layer : batch.graph.layers) {
    LayerShare share = layer_share(layer, batch, comm.rank());
    const at::Tensor sums = ops::empty_doubles({share.blocks(), z.size(1)}, z);
    ops::block_sums(sums, z, ops::to_device_of(z, share.row_block), batch.threads);
    spanning.push_back(sums.narrow(0, 0, share.spanning));
    layers.push_back({std::move(share), sums});
  }
  if (comm.size() == 1 || layers.empty()) return layers;
  const at::Tensor all = at::cat(spanning);  // the same size on every rank, so all ranks take the same branch below
  if (all.size(0) == 0) return layers;
  comm.all_reduce(all);
  int64_t at = 0;
  for (at::Tensor& s : spanning) {
    s.copy_(all.narrow(0, at, s.size(0)));
    at += s.size(0);
  }
  return layers;
}

// (blocks, blocks) weight · table.
at::Tensor table_of(const graph::BlockLayer& layer, const at::Tensor& z) {
  return ops::to_device_of(z, layer.table).view({layer.blocks, layer.blocks}) * layer.weight;
}

// dz += 4 · scale · Σ_j G_ij (z_i − z_j) of a layer; adds its share of the value.
void add_differences(const at::Tensor& share, const at::Tensor& dz, const at::Tensor& z, const graph::BlockLayer& layer,
                     const Layer& held, const Batch& batch, const comm::Comm& comm, double scale) {
  const LayerShare& s = held.share;
  const at::Tensor members = ops::to_device_of(z, s.rows), row_block = ops::to_device_of(z, s.row_block),
                   value = ops::empty_doubles({1}, z);
  const at::Tensor means = held.sums.div_(members.clamp_min(1).unsqueeze(1));  // a table may have blocks without rows
  at::Tensor pair_weight = members * s.weight;
  if (layer.has_table()) {
    const at::Tensor between = ops::empty_doubles(means.sizes(), z);
    ops::block_between(between, pair_weight, value, table_of(layer, z), means, members, batch.threads);
    if (comm.rank() == 0) share.add_(value);  // the same on every rank: only rank 0 adds it
    ops::block_rows(dz, between, row_block, 4 * scale, Into::add, batch.threads);
  }
  ops::block_differences(dz, value, z, means, pair_weight, row_block, 4 * scale, Into::add, batch.threads);
  share.add_(value);
}

// out += scale · G Z of a layer; adds its share of Tr ZᵀGZ = Σ_c sum_cᵀ(B sums)_c. Every rank holds the spanning
// blocks, and rank 0 alone counts them.
void add_product(const at::Tensor& share, const at::Tensor& out, const at::Tensor& z, const graph::BlockLayer& layer,
                 const Layer& held, const Batch& batch, const comm::Comm& comm, double scale) {
  const LayerShare& s = held.share;
  at::Tensor related = held.sums;
  if (layer.has_table()) {
    related = ops::empty_doubles(held.sums.sizes(), z);
    ops::block_table(related, table_of(layer, z), held.sums, batch.threads);
  }
  const double weight = layer.has_table() ? 1 : s.weight;
  ops::block_rows(out, related, ops::to_device_of(z, s.row_block), scale * weight, Into::add, batch.threads);
  const int64_t first = comm.rank() == 0 ? 0 : s.spanning, count = s.blocks() - first;
  share.add_((held.sums.narrow(0, first, count) * related.narrow(0, first, count)).sum(), weight);
}

// This rank's rows of F Fᵀ X, X (V n, D) fp64 over all ranks: (n, D), the same for every view.
struct FeatureProduct {
  at::Tensor own;   // (n, width)
  at::Tensor sums;  // (width, D) FᵀX
  at::Tensor rows() const { return own.mm(sums); }
};
FeatureProduct feature_product(const graph::FeatureLayer& layer, const at::Tensor& x, const Batch& batch,
                               comm::Comm& comm) {
  const int64_t n = batch.local_positions();
  const at::Tensor f = ops::to_device_of(x, layer.features).view({batch.graph.samples, layer.width});
  FeatureProduct product{f.narrow(0, batch.begin, n), {}};
  product.sums = product.own.t().mm(x.view({batch.views, n, x.size(1)}).sum(0)).contiguous();
  comm.all_reduce(product.sums);
  return product;
}

// add_product for the features of the graph.
void add_feature_products(const at::Tensor& share, const at::Tensor& out, const at::Tensor& z, const Batch& batch,
                          comm::Comm& comm, double scale) {
  for (const graph::FeatureLayer& layer : batch.graph.features) {
    const FeatureProduct product = feature_product(layer, z.to(at::kDouble), batch, comm);
    out.view({batch.views, batch.local_positions(), z.size(1)})
        .add_(product.rows().to(z.scalar_type()), scale * layer.weight);
    if (comm.rank() == 0) share.add_(product.sums.square().sum(), layer.weight);
  }
}

// add_differences for the features: deg_i z_i − (GZ)_i in fp64, of centered rows to limit cancellation.
void add_feature_differences(const at::Tensor& share, const at::Tensor& dz, const at::Tensor& z, const Batch& batch,
                             comm::Comm& comm, double scale) {
  if (batch.graph.features.empty()) return;
  const int64_t n = batch.local_positions(), dims = z.size(1);
  const at::Tensor mean = z.sum(at::IntArrayRef{0}, true, at::kDouble);
  comm.all_reduce(mean);
  const at::Tensor x = z.to(at::kDouble) - mean / static_cast<double>(batch.global_rows()),
                   views = x.view({batch.views, n, dims});
  for (const graph::FeatureLayer& layer : batch.graph.features) {
    const FeatureProduct product = feature_product(layer, x, batch, comm);
    const at::Tensor all =
        ops::to_device_of(z, layer.features).view({batch.graph.samples, layer.width}).sum(at::IntArrayRef{0}, true);
    const at::Tensor degree = product.own.mm(all.t()) * static_cast<double>(batch.views);  // (n, 1)
    const at::Tensor rows = (degree * views - product.rows()).mul_(layer.weight);
    share.add_((rows * views).sum(), 2);
    dz.view({batch.views, n, dims}).add_(rows.to(z.scalar_type()), 4 * scale);
  }
}

// Removes the self-loops of layers and features: out_i −= scale · G_ii z_i, and Σ_i G_ii ‖z_i‖² from the share.
void remove_self_loops(const at::Tensor& share, const at::Tensor& out, const at::Tensor& z, const Batch& batch,
                       double scale) {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<double> weights;
  for (int64_t i = 0; i <= z.size(0); ++i) {
    offsets.push_back(i);
    if (i == z.size(0)) break;
    const int64_t position = batch.begin + i % batch.local_positions();
    double weight = 0;
    for (const graph::BlockLayer& layer : batch.graph.layers) weight += layer.between(position, position);
    for (const graph::FeatureLayer& layer : batch.graph.features) weight += layer.between(position, position);
    columns.push_back(static_cast<int32_t>(i));
    weights.push_back(weight);
  }
  const at::Tensor value = ops::empty_doubles({1}, z);
  const ops::Csr loops{ops::to_device_of(z, offsets), ops::to_device_of(z, columns), ops::to_device_of(z, weights)};
  ops::graph_rows(out, value, z, z, loops, {RowForm::sum, -scale, Into::add}, batch.threads);
  share.sub_(value);
}

}  // namespace

at::Tensor rest_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                      graph::SelfLoops self_loops, RowForm form, double scale) {
  const at::Tensor value = ops::zero_doubles({1}, z);
  if (batch.graph.rest.offsets.empty()) return value;
  const Halo halo = make_halo(batch, comm.rank(), self_loops);
  const at::Tensor partners = gather_partners(halo, z, batch, comm);
  const ops::Csr rows{ops::to_device_of(z, halo.offsets), ops::to_device_of(z, halo.columns),
                      ops::to_device_of(z, halo.weights)};
  ops::graph_rows(out, value, z, partners, rows, {form, scale, Into::add}, batch.threads);
  return value;
}

at::Tensor invariance_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                            double scale) {
  const at::Tensor share = ops::zero_doubles({1}, z);
  const std::vector<Layer> layers = sum_layers(z, batch, comm);
  for (size_t l = 0; l < layers.size(); ++l)
    add_differences(share, dz, z, batch.graph.layers[l], layers[l], batch, comm, scale);
  add_feature_differences(share, dz, z, batch, comm, scale);
  return share.add_(rest_share(dz, z, batch, comm, graph::SelfLoops::off, RowForm::difference, 4 * scale));
}

at::Tensor product_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                         graph::SelfLoops self_loops, double scale) {
  const at::Tensor share = ops::zero_doubles({1}, z);
  const std::vector<Layer> layers = sum_layers(z, batch, comm);
  for (size_t l = 0; l < layers.size(); ++l)
    add_product(share, out, z, batch.graph.layers[l], layers[l], batch, comm, scale);
  add_feature_products(share, out, z, batch, comm, scale);
  if (self_loops == graph::SelfLoops::off) remove_self_loops(share, out, z, batch, scale);
  return share.add_(rest_share(out, z, batch, comm, self_loops, RowForm::sum, scale));
}

std::vector<double> sum_shares(std::initializer_list<at::Tensor> shares, comm::Comm& comm) {
  const at::Tensor sums = at::cat(std::vector<at::Tensor>(shares));
  comm.all_reduce(sums);
  return ops::to_host(sums);
}

at::Tensor checked_rows(const at::Tensor& z, const Batch& batch, const comm::Comm& comm) {
  PAL_ASSERT(z.dim() == 2 && z.size(0) == batch.local_rows() && z.size(1) > 0, "z holds this rank's rows");
  PAL_ASSERT(static_cast<int>(batch.rank_begin.size()) == comm.size() + 1 &&
                 batch.rank_begin[comm.rank()] == batch.begin && batch.rank_begin[comm.rank() + 1] == batch.end &&
                 batch.rank_begin.front() == 0 && batch.rank_begin.back() == static_cast<int64_t>(batch.samples.size()),
             "the plan cuts the batch into one slice per rank");
  PAL_ASSERT(batch.graph.samples == static_cast<int64_t>(batch.samples.size()) && batch.graph.views == batch.views,
             "the graph is that of the batch");
  return z.contiguous();
}

}  // namespace pal::loss
