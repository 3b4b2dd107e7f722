// assignment: which of some moving centers each row belongs to, without looking at every pair in every pass.
//
// Math:   the center of the largest inner product in float (products.h), ties by the lower number: exactly what a look at all
//         pairs finds. A unit row's product with a center changes by no more than the center moves, ‖c' − c‖. So a row keeps a
//         bound on its products with all centers but its own, and in a pass meets only
//           the hot centers, those that moved by more than τ,
//           all of them, where its own center is no longer ahead of the bound + τ.
//         τ makes the number of products smallest. Bounds allow for the rounding of float products.
// Order:  neither τ nor the history changes the result, so it does not depend on which rows lie here.
// Reference: the bounds are Hamerly's (2010), kept tight by the hot centers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pal::oracle {

class Assignment {
 public:
  explicit Assignment(at::Tensor rows);  // (n, D) float, none longer than 1

  // Assigns all rows to these (C, D) unit centers; says whether a row has another center than before. C stays the same.
  bool update(const at::Tensor& centers);

  const std::vector<int64_t>& center() const { return center_; }
  const std::vector<float>& similarity() const { return similarity_; }  // to the own center: its sum is taken in double
  int64_t products() const { return products_; }                        // taken so far, of n · C for each pass

 private:
  // The hot centers and the rows that meet all centers.
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
