// feature_file: writes the features of a data set for Python: HDF5 (.h5) or NumPy's own format (.npy).
//
// HDF5: /features (n, D) float32 or float64, /labels (n) int64 where the set has them, /ids (n) and /classes
// fixed-length text, attributes of the file by name. NumPy: the features alone, and FILE-labels.npy beside it. Same
// input, same bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pal::io {

struct FeatureFile {
  at::Tensor features;                       // (n, D)
  std::vector<int64_t> labels;               // (n), −1 unknown; or empty
  std::vector<std::string> ids, classes;     // (n), (C); or empty
  std::map<std::string, std::string> about;  // what made it
};

// The files written. A name that ends neither with .h5 nor with .npy throws Error (usage).
std::vector<std::string> write_feature_file(const std::string& path, const FeatureFile& file);

}  // namespace pal::io
