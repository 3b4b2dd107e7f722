#include "core/oracle/centres.h"

#include <limits>

namespace pal {

Distances centre_distances(const at::Tensor& embeddings, const std::vector<int64_t>& row_class, int64_t classes,
                           const std::vector<int64_t>& rows) {
  const at::Tensor z = embeddings.to(at::kCPU, at::kDouble).contiguous();
  const int64_t dims = z.size(1);
  const double* data = z.const_data_ptr<double>();

  std::vector<double> centre(dims * classes, 0);   // (D, classes): the inner loop below runs over classes
  std::vector<int64_t> count(classes, 0);
  for (size_t row = 0; row < row_class.size(); ++row) {
    const int64_t c = row_class[row];
    if (c < 0) continue;
    ++count[c];
    for (int64_t k = 0; k < dims; ++k) centre[k * classes + c] += data[row * dims + k];
  }
  for (int64_t k = 0; k < dims; ++k) {
    for (int64_t c = 0; c < classes; ++c) centre[k * classes + c] /= count[c] > 0 ? static_cast<double>(count[c]) : 1;
  }

  Distances out;
  out.classes = classes;
  out.squared.assign(rows.size() * classes, 0);
  out.nearest.assign(rows.size(), -1);
  for (int64_t n : count) out.centre.push_back(n > 0);
  for (size_t p = 0; p < rows.size(); ++p) {
    double* squared = out.squared.data() + p * classes;
    for (int64_t k = 0; k < dims; ++k) {
      const double x = data[rows[p] * dims + k];
      const double* y = centre.data() + k * classes;
      for (int64_t c = 0; c < classes; ++c) squared[c] += (x - y[c]) * (x - y[c]);
    }
    for (int64_t c = 0; c < classes; ++c) {
      if (count[c] == 0) {
        squared[c] = std::numeric_limits<double>::infinity();
      } else if (out.nearest[p] < 0 || squared[c] < squared[out.nearest[p]]) {
        out.nearest[p] = c;
      }
    }
  }
  return out;
}

}  // namespace pal
