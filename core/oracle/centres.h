// centres: how far the points of a pool lie from the centre of each class, in fp64 and in a fixed order of additions, so
// that the same embeddings give the same decisions whatever the threads and ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pal {

struct Distances {
  int64_t classes = 0;
  std::vector<double> squared;     // (points, classes); +∞ for a class without a member
  std::vector<int64_t> nearest;    // (points) class of the nearest centre, ties by the lower number; −1 none
  std::vector<bool> centre;        // (classes) whether the class has a member

  double at(int64_t point, int64_t c) const { return squared[point * classes + c]; }
  bool has_centre(int64_t c) const { return c < static_cast<int64_t>(centre.size()) && centre[c]; }
};

// embeddings (n, D); row_class (n): class of each row, −1 none; rows: the points asked for.
Distances centre_distances(const at::Tensor& embeddings, const std::vector<int64_t>& row_class, int64_t classes,
                           const std::vector<int64_t>& rows);

}  // namespace pal
