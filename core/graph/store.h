// store: what is known about the relations of samples: labels, answers and weighted pairs. O(N) memory for any number of
// implied pairs.
//
// Positives are kept by union-find (same∘same = same); negatives stand between components (same∘different = different).
// Classes of a label vector differ from each other by their number, without a pair being stored.
// Answers may be wrong: without deduction a relation is known only when the pair itself was answered or both have labels.
//   Deduction::off: no more than that. Deduction::once: no more is known either, but samples answered to be like one and the
//   same are taken for alike where a representation is learned (core/graph/similarity_groups.h).
// Every rank inserts the same answers in the same order, so every rank holds the same store; `fingerprint` proves it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/batch_graph.h"
#include "core/graph/store/hub_pairs.h"
#include "core/graph/store/pair_set.h"
#include "core/graph/store/proof_forest.h"
#include "core/graph/weighted_edges.h"
#include "kernels/base/hash.h"

namespace pal::graph {

enum class Relation : int8_t { different = -1, unknown = 0, same = 1 };
enum class Deduction { on, once, off };

// One step of the reasoning behind a relation.
struct Link {
  int64_t i = 0, j = 0;
  Relation relation = Relation::same;
  int64_t answer = kByLabels;  // its number in the store's list of answers
  static constexpr int64_t kByLabels = -1;
};
// "3 = 5 (answer 0), 5 ≠ 9 (labels)", shortened in the middle when it is long.
std::string to_string(const std::vector<Link>& chain);

class GraphStore {
 public:
  explicit GraphStore(int64_t samples, Deduction deduction = Deduction::on);

  int64_t samples() const { return static_cast<int64_t>(parent_.size()); }
  Deduction deduction() const { return deduction_; }
  // Known labels, before any answer: samples of one class become one component, and classes are known to differ.
  // Any number ≥ 0 is a class, −1 unknown.
  void set_labels(const std::vector<int64_t>& labels);
  // Weighted pairs; they tell no relation and stand beside all else. Set once.
  void set_edges(WeightedEdges edges);
  const WeightedEdges& edges() const { return edges_; }

  // Inserts an answer, same or different. A contradiction with what is known throws Error (data) naming the pair and the
  // chain of answers behind what is known, and changes nothing.
  void insert(int64_t i, int64_t j, Relation relation);
  // Takes back every answer on these pairs; how many that were. All that followed from them goes: O(N + answers).
  int64_t remove(const std::vector<std::pair<int64_t, int64_t>>& pairs);

  Relation relation(int64_t i, int64_t j) const;
  // The links from i to j behind relation(i, j), in order: all same, or one of them different. Empty when it is unknown.
  std::vector<Link> explain(int64_t i, int64_t j) const;
  int64_t answers() const { return static_cast<int64_t>(answers_.size()); }
  Link answer(int64_t number) const;

  // Component of a sample: the same id for samples joined by labels and answers (without deduction too, where that does
  // not make them related). The id is a member of the component.
  int64_t component(int64_t i) const { return root(i); }
  int64_t component_size(int64_t i) const { return size_[root(i)]; }
  int64_t components() const { return components_; }
  // The label of the sample's component as given to set_labels, also when it came by an answer (of the sample itself
  // without deduction); −1 none.
  int64_t label(int64_t i) const;
  // Whether a positive relation of the sample is known: it has a label or a partner.
  bool known(int64_t i) const;

  // Calls f(component) for every component known by an answer to differ from that of i (Deduction::on).
  template <class F>
  void for_each_negative(int64_t i, const F& f) const {
    if (first_.empty()) return;
    for (int32_t n = first_[root(i)]; n >= 0; n = links_[n].next) f(static_cast<int64_t>(root(links_[n].sample)));
  }
  int64_t negatives(int64_t i) const {
    return -static_cast<int64_t>(parent_[root(i)]) - size_[root(i)];
  }  // as inserted
  // The components with many negatives, and which of them differ (Deduction::on).
  const HubPairs& hubs() const { return hubs_; }
  int32_t hub(int64_t i) const { return negatives(i) < HubPairs::kNegatives ? -1 : hubs_.number(root(i)); }
  // Samples that an answer says are the same as sample i (without deduction).
  int64_t partners(int64_t i) const { return partners_.empty() ? 0 : partners_[i]; }
  // Calls f(other, relation) for every answer on sample i (without deduction), each pair once.
  template <class F>
  void for_each_answer(int64_t i, const F& f) const {
    if (first_.empty()) return;
    for (int32_t n = first_[i]; n >= 0; n = links_[n].next) {
      f(static_cast<int64_t>(links_[n].sample), static_cast<Relation>(answers_[links_[n].answer].relation));
    }
  }

  uint64_t version() const { return version_; }          // number of inserts, removals, label and edge sets
  uint64_t fingerprint() const { return fingerprint_; }  // of what was done, in order

 private:
  struct Stored {
    int32_t i, j;
    int32_t relation;
  };
  struct Neighbor {
    int32_t sample;  // was the root of the other component when it was linked: root(sample) is the one now
    int32_t next;    // in links_, −1 at the end
    int32_t answer;
  };

  int32_t root(int64_t i) const;
  void shorten(int64_t i);
  void check_sample(int64_t i) const;
  void chain(uint64_t value) { fingerprint_ = mix(fingerprint_, value); }
  void chain_pair(int64_t i, int64_t j, uint64_t what);
  void reset();
  void join_labels();
  void apply(int32_t answer);
  void merge(int32_t i, int32_t j, int32_t answer);
  void link(int32_t a, int32_t b, int32_t answer);
  void count_negative(int32_t root);
  void add_hub(int32_t root);
  void append_path(std::vector<Link>& chain, int32_t i, int32_t j) const;

  Deduction deduction_;
  std::vector<int32_t> parent_;       // −weight at a root; weight = samples + negatives of the component, as inserted
  std::vector<int32_t> size_;         // samples of the component, right at roots
  std::vector<int32_t> own_class_;    // class of each sample as given, −1 none; empty until set_labels
  std::vector<int32_t> class_;        // class of the component, right at roots; likewise
  std::vector<int64_t> class_label_;  // class → label
  std::vector<int32_t> class_first_;  // class → its first sample
  ProofForest proofs_;
  std::vector<Stored> answers_;
  PairSet different_;              // pairs of roots; of samples without deduction
  PairSet same_;                   // pairs of samples, only without deduction
  std::vector<int32_t> first_;     // root (sample) → its list in links_, −1 none; empty until the first one
  std::vector<Neighbor> links_;   // negatives of components; all answers of samples without deduction
  std::vector<int32_t> partners_;  // (N) without deduction: answers "same" in links_; empty until the first one
  HubPairs hubs_;
  WeightedEdges edges_;
  int64_t components_ = 0;
  uint64_t version_ = 0;
  uint64_t fingerprint_ = 0;
};

enum class GraphKind { ssl, supervised, mixed, signs, table, regression, ranking, pairs };

// The graph of a batch for the kinds that need the store alone (core/graph/build.h has all of them).
BatchGraph build_batch_graph(const GraphStore& store, GraphKind kind, double alpha, const std::vector<int64_t>& samples,
                             int32_t views);

}  // namespace pal::graph
