// toy_data: the two data sets of the controlled experiments, four classes each (PAPER section 5).
//
//   circles   class uniform, radius = class (1 to 4), angle uniform in the plane, Gaussian noise
//   mixture   one-hot(class) in R⁴ plus Gaussian noise
// A test set is the same for every trial: point i of n has class ⌊4i/n⌋ and, on the circles, the angle 2π·4i/n.
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
// Every sample `views` times with Gaussian noise on each; rows i·views … are of sample i. The clean point is not kept.
ToySet toy_views(const ToySet& set, int64_t views, double noise, Random& random);
Matrix one_hot(const std::vector<int>& y, int classes);

}  // namespace pal::theory
