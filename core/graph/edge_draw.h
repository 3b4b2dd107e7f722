// edge_draw: draws the part of a batch whose samples are known to be related.
//
// A batch of 256 out of a million samples holds two given samples once in 10^7 steps, so an answered pair would never
// be trained on. A draw takes a sample that has a partner, then one of its partners. Each sample has the same
// probability, once for each group that it lies in.
// Thread: an immutable snapshot of the store, the same on every rank. Any thread may read it while the store changes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/store.h"

namespace pal::graph {

class EdgeDraw {
 public:
  // Partners are trained samples that share a similarity group (core/graph/similarity_groups.h), a weighted pair or,
  // with Deduction::off, an answer "same".
  EdgeDraw(const GraphStore& store, const std::vector<int64_t>& trained);

  int64_t members() const { return static_cast<int64_t>(members_.size() + linked_.size()); }
  // The share of the trained samples that would find a partner in a batch of that many drawn at random.
  // Math: mean over samples of 1 − (1 − (batch − 1) / (trained − 1))^partners; in a component partners = size − 1.
  double meets_by_chance(int64_t batch) const;
  // Appends up to `count` samples that are not in the batch yet, drawn in pairs; none is added twice.
  void add_to(std::vector<int64_t>& batch, int64_t count, uint64_t seed, int64_t step) const;

  // The probability that a sample is in the batch, either by the epoch's order (`epoch_share`) or drawn here.
  // Math: 1 − (1 − epoch_share) (1 − q)^draws, q = (first + second) / members: a draw takes the sample first, or as a
  //   partner. In a component q = 2 / members. An odd count ends with a draw of one sample.
  double inclusion(int64_t sample, int64_t count, double epoch_share) const;

 private:
  void add_partners(const GraphStore& store, const std::vector<int64_t>& trained);
  void count_chances(int64_t samples);

  int64_t trained_ = 0;
  std::vector<int64_t> members_;        // by group; a sample occurs once per group
  std::vector<int32_t> group_;          // member → group
  std::vector<int64_t> begin_;          // (groups + 1) offsets into members_
  std::vector<int64_t> linked_;         // samples with partners outside groups, ascending
  std::vector<int64_t> partner_begin_;  // (linked + 1) offsets into partners_
  std::vector<int64_t> partners_;
  std::vector<float> first_,
      second_;  // (N) expected draws as first and as partner, of `members` draws; may be empty
};

}  // namespace pal::graph
