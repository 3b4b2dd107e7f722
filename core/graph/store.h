// store: what is known about the relations of samples: labels and answers. O(N) memory for any number of implied pairs.
//
// Positives are kept by union-find (same∘same = same); negatives stand between components (same∘different = different).
// Every rank inserts the same answers in the same order, so every rank holds the same store; `fingerprint` proves it.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "core/graph/batch_graph.h"

namespace pal {

enum class Relation : int8_t { different = -1, unknown = 0, same = 1 };

class GraphStore {
 public:
  explicit GraphStore(int64_t samples);

  int64_t samples() const { return static_cast<int64_t>(parent_.size()); }
  // Known labels at the start: samples of one class become one component, and classes are known to differ. −1 unknown.
  void set_labels(const std::vector<int64_t>& labels);

  // Inserts an answer. A contradiction with what is known throws Error (data) naming the pair and changes nothing.
  void insert(int64_t i, int64_t j, Relation relation);
  Relation relation(int64_t i, int64_t j) const;
  // Component of a sample: the same id for samples known to be the same; find without path compression, so const.
  int64_t component(int64_t i) const;
  int64_t component_size(int64_t i) const;
  int64_t components() const { return components_; }

  uint64_t version() const { return version_; }      // number of inserts and label sets
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  std::vector<int32_t> parent_;   // union-find by size: negative = −size at the root
  std::vector<std::unordered_set<int32_t>> different_;  // per root, the roots known to differ (kept small by the smaller side)
  int64_t components_ = 0;
  uint64_t version_ = 0;
  uint64_t fingerprint_ = 0;
};

enum class GraphKind { ssl, supervised, mixed };

// Builds the batch's graph: ssl: one block per sample, weight 1; supervised: one block per known component of two or
// more samples or label, weight 1, and each unlabelled sample a block of its own; mixed: (1−α)·ssl + α·known components.
BatchGraph build_batch_graph(const GraphStore& store, GraphKind kind, double alpha, const std::vector<int64_t>& samples,
                             int32_t views);

}  // namespace pal
