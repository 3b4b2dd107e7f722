// check: the argument checks that launchers share. They come before any work and name the argument.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/base/vec.h"
#include "kernels/base/view.h"

namespace pal::kernels {

inline void check_equal(const char* name, const char* what, int64_t size, int64_t expected) {
  PAL_CHECK(size == expected, std::string(name) + " " + what, size, "it must be " + std::to_string(expected));
}

// A matrix of this shape; rows of −1: any number of them.
template <class T>
void check_matrix(const char* name, const MatrixView<T>& m, int64_t rows, int64_t cols) {
  PAL_CHECK(m.rows >= 0 && m.cols >= 0, std::string(name) + " negative size", std::min(m.rows, m.cols),
            "give 0 or more");
  if (rows >= 0) check_equal(name, "rows", m.rows, rows);
  check_equal(name, "columns", m.cols, cols);
  PAL_CHECK(m.rows <= 1 || m.stride >= m.cols, std::string(name) + " stride", m.stride,
            "it must be at least the columns, " + std::to_string(m.cols));
  PAL_CHECK(m.data != nullptr || m.rows * m.cols == 0, name, "null", "give its data");
}

template <class T>
void check_span(const char* name, const Span<T>& s, int64_t size) {
  PAL_CHECK(s.size >= 0, std::string(name) + " size", s.size, "give 0 or more");
  check_equal(name, "size", s.size, size);
  PAL_CHECK(s.data != nullptr || size == 0, name, "null", "give its data");
}

// Every index lies in [low, high).
inline void check_indices(const char* name, Span<const int32_t> x, int64_t low, int64_t high, Isa isa) {
  const int64_t at = index_ops(isa).first_outside(x.data, x.size, low, high);
  PAL_CHECK(at < 0, std::string(name) + "[" + std::to_string(at) + "]", x[at],
            "an index must be at least " + std::to_string(low) + " and below " + std::to_string(high));
}

template <class T>
void check_finite(const char* name, Span<const T> x, Isa isa) {
  const int64_t at = vec_ops<T>(isa).first_not_finite(x.data, x.size);
  PAL_CHECK(at < 0, std::string(name) + "[" + std::to_string(at) + "]", x[at], "it must be a finite number");
}

inline void check_cpu(const char* op, Cpu cpu) {
  PAL_CHECK(cpu.threads >= 1, std::string(op) + ": threads", cpu.threads, "give 1 or more");
}

inline void check_scratch(const char* op, Scratch scratch, int64_t bytes) {
  PAL_CHECK(scratch.bytes >= bytes && (scratch.data != nullptr || bytes == 0), std::string(op) + ": scratch bytes",
            scratch.bytes, std::string("give ") + op + "_scratch_bytes() = " + std::to_string(bytes));
}

}  // namespace pal::kernels
