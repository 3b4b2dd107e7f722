// feature_set: a data set of feature vectors that another program has computed, with labels if it has them.
//
// NumPy (.npy): (n, D) of float16, float32 or float64 in C order; labels in FILE-labels.npy beside it (integers). HDF5
// (.h5): /features (n, D) of any float type, and /labels (n), as `pal embed` writes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pal::data {

class Dataset;

struct FeatureSet {
  at::Tensor rows;              // (n, D) float
  std::vector<int64_t> labels;  // (n), −1 unknown; empty: none
};

// Whether the file holds features rather than images: *.npy, or HDF5 with /features.
bool is_feature_file(const std::string& path);
int64_t feature_width(const std::string& path);  // D
// Throws Error (data) with the file: wrong format, cut off, a number that is not finite, labels of another length.
FeatureSet read_features(const std::string& path);
// The same as a data set: an "image" is a row of D floats. Classes are named by their numbers.
std::shared_ptr<Dataset> open_features(const std::string& path);

}  // namespace pal::data
