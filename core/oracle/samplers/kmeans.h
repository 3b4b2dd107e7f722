// kmeans: k-means by cosine on unit rows that may lie on several ranks.
//
// Math:   center = the normalized sum of its rows; a row belongs to the center of the largest inner product, ties by
//         the lower number. Starts from twice `clusters` rows drawn by (seed, Purpose::oracle, round, sample), of which
//         it keeps those that are least alike: so fewer clusters start with two centers. Ends after `iterations` or
//         when no row moves. A center without rows takes the row that fits its own worst.
// Order:  sums are exact (exact_sums.h): the same centers, bit for bit, for any number of ranks and threads and any
//         order of the rows.
// Rows:   as faiss does, at most `per_cluster` rows for each cluster are used while the centers move, drawn by the
//         seed; all rows are assigned at the end.
// Collective.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/comm/comm.h"

namespace pal::oracle {

struct KmeansOptions {
  int64_t clusters = 1;
  int iterations = 25;
  int64_t per_cluster = 256;  // 0: all rows
  uint64_t seed = 0;
  int64_t round = 0;
};

struct Kmeans {
  at::Tensor centers;             // (clusters, D) float, unit rows; the same on every rank
  std::vector<int64_t> assigned;  // (rows) of this rank
  std::vector<float> similarity;  // (rows) to their centers
  int iterations = 0;             // done
};

// rows (n, D) float, unit length; ids (n): the rows' samples, distinct over all ranks. Fewer rows than clusters: a
// cluster for each.
Kmeans kmeans(const at::Tensor& rows, const std::vector<int64_t>& ids, const KmeansOptions& options, comm::Comm& comm);

// Which of some moving centers each row belongs to, without a product of every pair in every pass.
// Math:   the center of the largest inner product in float (products.h), ties by the lower number: exactly what all
//         products give. A unit row's product with a center changes by no more than the center moves, ‖c' − c‖. So a
//         row keeps a bound on its products with all centers but its own, and in a pass it is multiplied only with
//           the hot centers, those that moved by more than τ,
//           all of them, where its own center is no longer ahead of the bound + τ.
//         τ makes the number of products smallest. Bounds allow for the rounding of float products.
// Order:  neither τ nor the history changes the result, so it does not depend on which rows lie here.
// Reference: the bounds are Hamerly's (2010), kept tight by the hot centers.
class Assignment {
 public:
  explicit Assignment(at::Tensor rows);  // (n, D) float, none longer than 1

  // Assigns all rows to these (C, D) unit centers; true when a row has another center than before. C stays the same.
  bool update(const at::Tensor& centers);

  const std::vector<int64_t>& center() const { return center_; }
  const std::vector<float>& similarity() const { return similarity_; }  // to the own center: its sum is taken in double
  int64_t products() const { return products_; }                        // taken so far, of n · C for each pass

 private:
  // The hot centers, the rows that are multiplied with all centers, and those with the hot ones only.
  struct Plan {
    std::vector<int64_t> hot, meet_all, meet_hot;
    double cold_moved = 0;  // τ: no other center moved further
  };
  Plan plan(const std::vector<double>& moved) const;
  void meet_all(const std::vector<int64_t>& rows);
  std::vector<int64_t> meet_hot(const Plan& plan);  // returns the rows that are still undecided
  void find_similarity();

  at::Tensor rows_, centers_;
  std::vector<int64_t> center_;
  std::vector<float> similarity_;
  std::vector<double> others_;  // above every product with another center
  double rounding_;             // of a product in float, at most
  int64_t products_ = 0;
};

}  // namespace pal::oracle
