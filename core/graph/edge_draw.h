// edge_draw: the part of a batch that is drawn from what is known, so that related samples meet in a batch.
//
// A batch of 256 out of a million samples holds two given samples once in 10^7 steps: an answered pair would never be
// trained on. A draw takes a sample that has a partner, each with the same probability (once for each group it lies in), and
// one of its partners.
// A snapshot of the store: the same on every rank, and safe to read from any thread while the store goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/store.h"

namespace pal::graph {

class EdgeDraw {
 public:
  // Of the samples trained on, those with another one of them in a group that is taken for alike (core/graph/similarity_groups.h) or at
  // the other end of a weighted pair or, with Deduction::off, of an answer "same".
  EdgeDraw(const GraphStore& store, const std::vector<int64_t>& trained);

  int64_t members() const { return static_cast<int64_t>(members_.size() + linked_.size()); }
  // Appends to a batch up to `count` samples that are not in it yet, drawn in pairs; each comes at most once.
  void add_to(std::vector<int64_t>& batch, int64_t count, uint64_t seed, int64_t step) const;

  // The probability that a sample is in the batch: one of B_epoch with probability `epoch_share`, or drawn here.
  // Math: a draw takes it with probability (first + second) / members, as the first or as the partner of another; in a
  //   component that is 2 / members. 1 − (1 − epoch_share) (1 − that)^draws, and a last draw of one alone if count is odd.
  double inclusion(int64_t sample, int64_t count, double epoch_share) const;

 private:
  void add_partners(const GraphStore& store, const std::vector<int64_t>& trained);
  void count_chances(int64_t samples);

  std::vector<int64_t> members_;        // by group; a sample once for each of its own
  std::vector<int32_t> group_;          // member → its group's number
  std::vector<int64_t> begin_;          // (groups + 1) where its members begin
  std::vector<int64_t> linked_;         // samples with a partner of their own, ascending
  std::vector<int64_t> partner_begin_;  // (linked + 1) into partners_
  std::vector<int64_t> partners_;
  std::vector<float> first_,
      second_;  // by sample: how often a draw takes it first, or second, of `members` draws; may be empty
};

}  // namespace pal::graph
