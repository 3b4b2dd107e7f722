// common: shared by the tests of the CPU kernels: instruction sets, random matrices, scratch.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/base/philox.h"
#include "kernels/base/view.h"

namespace pal::kernels {

// Every instruction set of this machine. The number of threads has tests of its own.
inline std::vector<Cpu> all_cpus() {
  std::vector<Cpu> cpus;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa_supported(isa)) cpus.push_back({1, isa});
  }
  return cpus;
}
inline std::string describe(Cpu cpu) { return isa_name(cpu.isa); }

// A row-major matrix with rows that are `pad` longer than its width; the padding is filled with NaN, which must never
// reach a result.
template <class T>
struct Matrix {
  int64_t rows, cols, stride;
  std::vector<T> data;

  Matrix(int64_t rows, int64_t cols, int64_t pad = 0)
      : rows(rows),
        cols(cols),
        stride(cols + pad),
        data(static_cast<size_t>(rows * stride), std::numeric_limits<T>::quiet_NaN()) {
    fill(T{0});
  }
  void fill(T v) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < cols; ++k) at(i, k) = v;
    }
  }
  T& at(int64_t i, int64_t k) { return data[static_cast<size_t>(i * stride + k)]; }
  const T& at(int64_t i, int64_t k) const { return data[static_cast<size_t>(i * stride + k)]; }
  double get(int64_t i, int64_t k) const { return static_cast<double>(at(i, k)); }
  MatrixView<T> view() { return {data.data(), rows, cols, stride}; }
  MatrixView<const T> view() const { return {data.data(), rows, cols, stride}; }
};

template <class T>
Matrix<T> random_matrix(int64_t rows, int64_t cols, uint64_t seed, int64_t pad = 0, double mean = 0, double std = 1) {
  Matrix<T> m(rows, cols, pad);
  Random random(seed, Purpose::bench);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < cols; ++k) m.at(i, k) = static_cast<T>(mean + std * random.normal());
  }
  return m;
}

template <class T>
Span<T> span(std::vector<T>& v) {
  return {v.data(), static_cast<int64_t>(v.size())};
}
template <class T>
Span<const T> span(const std::vector<T>& v) {
  return {v.data(), static_cast<int64_t>(v.size())};
}

// Scratch of exactly the asked size.
class OwnScratch {
 public:
  explicit OwnScratch(int64_t bytes) : data_(static_cast<size_t>(bytes), '\x7f') {}
  operator Scratch() { return {data_.data(), static_cast<int64_t>(data_.size())}; }

 private:
  std::vector<char> data_;
};

// ‖a − b‖ / ‖b‖ over all elements; b is the reference.
template <class T>
double relative_error(const Matrix<T>& a, const Matrix<double>& b) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < b.rows; ++i) {
    for (int64_t k = 0; k < b.cols; ++k) {
      difference += (a.get(i, k) - b.get(i, k)) * (a.get(i, k) - b.get(i, k));
      norm += b.get(i, k) * b.get(i, k);
    }
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}
inline double relative_error(double a, double b) { return std::abs(a - b) / std::max(std::abs(b), 1e-300); }

template <class T>
constexpr double tolerance(double for_float, double for_double) {
  return sizeof(T) == sizeof(float) ? for_float : for_double;
}

// The call throws an Error whose sentence names `word`.
template <class F>
void expect_error(const F& call, const std::string& word) {
  try {
    call();
    ADD_FAILURE() << "no error that names " << word;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
  }
}

}  // namespace pal::kernels
