#include "core/loss/layer_share.h"

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

}  // namespace pal::loss
