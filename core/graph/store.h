// store: the known relations of samples: labels, answers and weighted pairs. Implied pairs take no memory.
//
// Union-find joins samples that are the same (same∘same = same). Negatives are edges between components
// (same∘different = different). Different classes of a label vector differ; no pair is stored for that.
// Deduction::on: relations follow from answers by these rules. Answers may be wrong, hence two other modes, in which a
//   relation is known only if the pair itself was answered or both samples have labels. Deduction::off: nothing more.
//   Deduction::once: training also treats samples as the same that were answered "same" with one common sample
//   (core/graph/similarity_groups.h).
// Order: every rank inserts the same answers in the same order and holds the same store; ranks compare `fingerprint`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/batch_graph.h"
#include "core/graph/store_structures.h"
#include "core/graph/weighted_edges.h"
#include "kernels/base/hash.h"

namespace pal::graph {

enum class Relation : int8_t { different = -1, unknown = 0, same = 1 };
enum class Deduction { on, once, off };

// One step of the proof of a relation.
struct Link {
  int64_t i = 0, j = 0;
  Relation relation = Relation::same;
  int64_t answer = kByLabels;  // index into the list of answers
  static constexpr int64_t kByLabels = -1;
};
// "3 = 5 (answer 0), 5 ≠ 9 (labels)", shortened in the middle if it is long.
std::string to_string(const std::vector<Link>& chain);

class GraphStore {
 public:
  explicit GraphStore(int64_t samples, Deduction deduction = Deduction::on);

  int64_t samples() const { return static_cast<int64_t>(parent_.size()); }
  Deduction deduction() const { return deduction_; }
  // Sets known labels, once, before any answer. Samples of one class become one component; different classes differ.
  // A class is any number ≥ 0, −1 means unknown.
  void set_labels(const std::vector<int64_t>& labels);
  // Instead of labels: samples of one group become one component. Two groups may be the same or different, so this is
  // unknown until it is answered. A group is any number ≥ 0, −1 means none. Deduction::on.
  void set_groups(const std::vector<int64_t>& groups);
  // Weighted pairs are added to batch graphs and imply no relation. Set once.
  void set_edges(WeightedEdges edges);
  const WeightedEdges& edges() const { return edges_; }

  // Inserts an answer, same or different. An answer that contradicts a known relation throws Error (data) with the pair
  // and the chain of answers behind that relation; the store does not change.
  void insert(int64_t i, int64_t j, Relation relation);
  // Removes every answer on these pairs and all that followed from them; returns their number. O(N + answers).
  int64_t remove(const std::vector<std::pair<int64_t, int64_t>>& pairs);

  Relation relation(int64_t i, int64_t j) const;
  // The chain of links from i to j that proves relation(i, j): all same, or one different. Empty if it is unknown.
  std::vector<Link> explain(int64_t i, int64_t j) const;
  int64_t answers() const { return static_cast<int64_t>(answers_.size()); }
  Link answer(int64_t number) const;

  // The component of a sample; its id is one of its samples. Labels and answers "same" join components in every mode,
  // but only Deduction::on makes their samples related.
  int64_t component(int64_t i) const { return root(i); }
  int64_t component_size(int64_t i) const { return size_[root(i)]; }
  int64_t components() const { return components_; }
  // The label of the sample's component as given to set_labels, −1 for none. Without deduction: of the sample itself.
  int64_t label(int64_t i) const;
  // True when the sample has a label or a partner.
  bool known(int64_t i) const;

  // Calls f(component) for every component that differs by an answer from that of i (Deduction::on).
  template <class F>
  void for_each_negative(int64_t i, const F& f) const {
    if (first_.empty()) return;
    for (int32_t n = first_[root(i)]; n >= 0; n = links_[n].next) f(static_cast<int64_t>(root(links_[n].sample)));
  }
  int64_t negatives(int64_t i) const {
    return -static_cast<int64_t>(parent_[root(i)]) - size_[root(i)];
  }  // counts repeated answers
  // The components with many negatives, and the pairs of them that differ (Deduction::on).
  const HubPairs& hubs() const { return hubs_; }
  int32_t hub(int64_t i) const { return negatives(i) < HubPairs::kNegatives ? -1 : hubs_.number(root(i)); }
  // Number of samples answered "same" with sample i (without deduction).
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
  uint64_t fingerprint() const { return fingerprint_; }  // hash of the changes, in order

 private:
  struct Stored {
    int32_t i, j;
    int32_t relation;
  };
  struct Neighbor {
    int32_t sample;  // root of the other component at that time; root(sample) is its root now
    int32_t next;    // in links_, −1 at the end
    int32_t answer;
  };

  int32_t root(int64_t i) const;
  void shorten(int64_t i);
  void check_sample(int64_t i) const;
  void chain(uint64_t value) { fingerprint_ = mix(fingerprint_, value); }
  void chain_pair(int64_t i, int64_t j, uint64_t what);
  void reset();
  void set_classes(const std::vector<int64_t>& labels);
  void join_labels();
  void apply(int32_t answer);
  void merge(int32_t i, int32_t j, int32_t answer);
  void link(int32_t a, int32_t b, int32_t answer);
  void count_negative(int32_t root);
  void add_hub(int32_t root);
  void append_path(std::vector<Link>& chain, int32_t i, int32_t j) const;

  Deduction deduction_;
  bool classes_differ_ = true;        // false: they are groups
  std::vector<int32_t> parent_;       // −weight at a root; weight = samples + inserted negatives of the component
  std::vector<int32_t> size_;         // samples of the component, valid at roots
  std::vector<int32_t> own_class_;    // class of each sample, −1 none; empty until set_labels
  std::vector<int32_t> class_;        // class of the component, valid at roots; empty until set_labels, and of groups
  std::vector<int64_t> class_label_;  // class → label
  std::vector<int32_t> class_first_;  // class → its first sample
  ProofForest proofs_;
  std::vector<Stored> answers_;
  PairSet different_;              // pairs of roots; of samples without deduction
  PairSet same_;                   // pairs of samples, only without deduction
  std::vector<int32_t> first_;     // root (or sample) → head of its list in links_, −1 none; empty until the first
  std::vector<Neighbor> links_;    // negatives of components; without deduction all answers of samples
  std::vector<int32_t> partners_;  // (N) without deduction: number of answers "same"; empty until the first
  HubPairs hubs_;
  WeightedEdges edges_;
  int64_t components_ = 0;
  uint64_t version_ = 0;
  uint64_t fingerprint_ = 0;
};

enum class GraphKind { ssl, supervised, mixed, signs, table, regression, ranking, pairs };

// The graph of a batch for the kinds that need only the store; core/graph/build.h has all kinds.
BatchGraph build_batch_graph(const GraphStore& store, GraphKind kind, double alpha, const std::vector<int64_t>& samples,
                             int32_t views);

}  // namespace pal::graph
