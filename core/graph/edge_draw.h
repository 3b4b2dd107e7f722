// edge_draw: the part of a batch that is drawn from what is known, so that related samples meet in a batch.
//
// A batch of 256 out of a million samples holds two given samples once in 10^7 steps: an answered pair would never be
// trained on. A draw takes a sample that has a partner, each with the same probability, and one of its partners.
// A snapshot of the store: the same on every rank, and safe to read from any thread while the store goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/store.h"

namespace pal {

class EdgeDraw {
 public:
  // Of the samples trained on, those that are in a component with another one of them.
  EdgeDraw(const GraphStore& store, const std::vector<int64_t>& trained);

  int64_t members() const { return static_cast<int64_t>(members_.size()); }
  // Appends to a batch up to `count` samples that are not in it yet, drawn in pairs; each comes at most once.
  void add_to(std::vector<int64_t>& batch, int64_t count, uint64_t seed, int64_t step) const;

 private:
  std::vector<int64_t> members_;   // by component
  std::vector<int32_t> group_;     // member → its component's number
  std::vector<int64_t> begin_;     // (components + 1) where its members begin
};

}  // namespace pal
