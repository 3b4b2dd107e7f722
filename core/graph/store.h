// store: what is known about the relations of samples: labels and answers. O(N) memory for any number of implied pairs.
//
// Positives are kept by union-find (same∘same = same); negatives stand between components (same∘different = different).
// Classes of a label vector differ from each other by their number, without a pair being stored.
// Every rank inserts the same answers in the same order, so every rank holds the same store; `fingerprint` proves it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/batch_graph.h"
#include "core/graph/pair_set.h"

namespace pal {

enum class Relation : int8_t { different = -1, unknown = 0, same = 1 };

class GraphStore {
 public:
  explicit GraphStore(int64_t samples);

  int64_t samples() const { return static_cast<int64_t>(parent_.size()); }
  // Known labels, before any answer: samples of one class become one component, and classes are known to differ.
  // Any number ≥ 0 is a class, −1 unknown.
  void set_labels(const std::vector<int64_t>& labels);

  // Inserts an answer, same or different. A contradiction with what is known throws Error (data) naming the pair and
  // changes nothing.
  void insert(int64_t i, int64_t j, Relation relation);
  Relation relation(int64_t i, int64_t j) const;

  // Component of a sample: the same id for samples known to be the same. The id is a member of the component.
  int64_t component(int64_t i) const { return root(i); }
  int64_t component_size(int64_t i) const { return size_[root(i)]; }
  int64_t components() const { return components_; }
  // The label of the sample's component as given to set_labels, also when it came by an answer; −1 none.
  int64_t label(int64_t i) const;
  // Whether a positive relation of the sample is known: it has a label or a partner.
  bool known(int64_t i) const;

  uint64_t version() const { return version_; }      // number of inserts and label sets
  uint64_t fingerprint() const { return fingerprint_; }   // of what was inserted, in order

 private:
  struct Neighbour {
    int32_t sample;   // was the root of the other component when it was linked: root(sample) is the one now
    int32_t next;     // in negatives_, −1 at the end
  };

  int32_t root(int64_t i) const;
  void check_sample(int64_t i) const;
  void merge(int32_t a, int32_t b);
  void separate(int32_t a, int32_t b);
  void link(int32_t a, int32_t b);
  void chain(uint64_t value);

  std::vector<int32_t> parent_;      // −weight at a root; weight = samples + negatives of the component, as inserted
  std::vector<int32_t> size_;        // samples of the component, right at roots
  std::vector<int32_t> class_;       // class of the component, right at roots, −1 none; empty until set_labels
  std::vector<int64_t> class_label_; // class → label
  PairSet different_;                // pairs of roots
  std::vector<int32_t> first_;       // root → its list in negatives_, −1 none; empty until the first negative
  std::vector<Neighbour> negatives_;
  int64_t components_ = 0;
  uint64_t version_ = 0;
  uint64_t fingerprint_ = 0;
};

enum class GraphKind { ssl, supervised, mixed };

// Builds the graph of a batch. ssl: a block per sample; supervised: a block per component (an unlabelled sample without
// a partner is one of its own); mixed: (1−α)·ssl + α·components, where samples of which nothing is known lie in no
// component, as the rows of Ŷ that are zero. A sample that comes twice is related to itself.
BatchGraph build_batch_graph(const GraphStore& store, GraphKind kind, double alpha, const std::vector<int64_t>& samples,
                             int32_t views);

}  // namespace pal
