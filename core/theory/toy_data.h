// toy_data: the two data sets of the paper's controlled experiments, with four classes each.
//
//   circles   class uniform, radius = class (1 to 4), angle uniform in the plane, Gaussian noise
//   mixture   one-hot(class) in R⁴ plus Gaussian noise
// The test set is the same for every trial: point i of n has class ⌊4i/n⌋ and, on the circles, angle 2π·4i/n.
#pragma once

#include <cstdint>
#include <vector>

#include "core/theory/matrix.h"
#include "kernels/base/philox.h"

namespace pal::theory {

enum class ToyKind { circles, mixture };
constexpr int kToyClasses = 4;

struct ToySet {
  Matrix x;            // (n, d)
  std::vector<int> y;  // (n) class, from 0
};

ToySet toy_train(ToyKind kind, int64_t n, double noise, Random& random);
ToySet toy_test(ToyKind kind, int64_t n, double noise, Random& random);
// Each sample `views` times, each with its own Gaussian noise; rows i·views … belong to sample i.
ToySet toy_views(const ToySet& set, int64_t views, double noise, Random& random);
Matrix one_hot(const std::vector<int>& y, int classes);

}  // namespace pal::theory
