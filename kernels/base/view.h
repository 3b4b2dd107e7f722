// view: the arguments of launchers: pointer and shape, without ownership.
#pragma once

#include <cstdint>

#include "kernels/base/error.h"
#include "kernels/base/isa.h"

namespace pal::kernels {

// Row-major matrix; row i starts at data + i * stride (in elements).
template <class T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  MatrixView() = default;
  MatrixView(T* data, int64_t rows, int64_t cols) : data(data), rows(rows), cols(cols), stride(cols) {}
  MatrixView(T* data, int64_t rows, int64_t cols, int64_t stride)
      : data(data), rows(rows), cols(cols), stride(stride) {}
  template <class U>  // T const from U
  MatrixView(const MatrixView<U>& o) : data(o.data), rows(o.rows), cols(o.cols), stride(o.stride) {}

  T* row(int64_t i) const { return data + i * stride; }
};

template <class T>
struct Span {
  T* data = nullptr;
  int64_t size = 0;

  Span() = default;
  Span(T* data, int64_t size) : data(data), size(size) {}
  template <class U>
  Span(const Span<U>& o) : data(o.data), size(o.size) {}

  T& operator[](int64_t i) const { return data[i]; }
};

// Symmetric sparse matrix in CSR form, columns ascending inside a row.
template <class T>
struct CsrView {
  Span<const int64_t> offsets;  // (rows + 1)
  Span<const int32_t> columns;  // (nnz)
  Span<const T> weights;        // (nnz)
  int64_t rows() const { return offsets.size - 1; }
};

// Whether a launcher overwrites its output or adds to it.
enum class Into { overwrite, add };

// Memory that the caller provides for one call; a launcher never allocates.
struct Scratch {
  void* data = nullptr;
  int64_t bytes = 0;
};

// How a CPU twin runs, in the place where a CUDA twin takes its stream.
struct Cpu {
  int threads = 1;
  Isa isa = best_isa();
};

}  // namespace pal::kernels
