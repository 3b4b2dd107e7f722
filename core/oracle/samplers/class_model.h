// class_model: which class a point most likely belongs to, learned from the embeddings of the known members.
//
// Math:   x unit rows, μ_c the mean of class c. score_c(x) = μ_cᵀΣ⁻¹x − ½ μ_cᵀΣ⁻¹μ_c, p = softmax over classes with a
//         member. centers: Σ = σ² I, σ² the mean variance of all rows. classifier: Σ = (S + κσ²I) / (n − C + κ), S the
//         scatter of the members around their means, κ = D: the nearest center while few are known, a linear
//         discriminant later.
// Order:  products by panels, means by exact sums, the scatter in the order of samples: bits depend neither on threads
//         and ranks nor on the order of the pool.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/oracle/samplers/candidates.h"

namespace pal::oracle {

enum class ModelKind { centers, classifier };

class ClassModel {
 public:
  // Collective. row_class (rows of the pool), −1 unknown. weights (likewise): how often a row counts; empty: once.
  ClassModel(const PoolRows& rows, const std::vector<int64_t>& row_class, int64_t classes, ModelKind kind,
             const std::vector<int32_t>& weights = {});

  int64_t classes() const { return static_cast<int64_t>(count_.size()); }
  bool has(int64_t c) const { return count_[c] > 0; }
  // (n, classes) float scores, −∞ for a class without a member.
  at::Tensor scores(const at::Tensor& rows) const;
  // Scores of one class (n).
  std::vector<float> scores_of(const at::Tensor& rows, int64_t c) const;
  // ‖Σ⁻¹(μ_a − μ_b)‖: a difference of scores divided by it is the distance to the boundary between a and b.
  double slope(int64_t a, int64_t b) const;

 private:
  std::vector<int64_t> count_;  // members
  at::Tensor weight_;           // (D, classes) float
  std::vector<float> bias_;     // −∞ without a member
};

// The prediction for a point, among the classes it may still belong to.
struct Belief {
  int64_t first = -1, second = -1;  // classes, ties by the lower number; −1 none
  double p_first = 0, p_second = 0, entropy = 0;
  double score = 0;  // of the first
  double gap = 0;    // score of the first less that of the second
};
// Collective. Of these points, each where its row lies, in pieces, so that memory stays bounded.
std::vector<Belief> beliefs(const Candidates& board, const ClassModel& model, const std::vector<int64_t>& points);
// f(index in points, p): the probabilities (classes), 0 where excluded. Called for the points whose rows lie here, in
// order of `points`, by one thread.
void for_each_belief(const Candidates& board, const ClassModel& model, const std::vector<int64_t>& points,
                     const std::function<void(size_t, const float*)>& f);

}  // namespace pal::oracle
