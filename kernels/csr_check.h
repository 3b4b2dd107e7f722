// csr_check: the argument checks that both twins of csr share.
#pragma once

#include <limits>
#include <string>

#include "kernels/base/check.h"
#include "kernels/csr.h"

namespace pal::kernels::detail {

template <class T>
void check_csr(const CsrOut<T>& out, const PairsView<T>& pairs, int64_t rows) {
  const int64_t count = pairs.i.size, room = csr_capacity(count);
  PAL_CHECK(rows >= 0 && rows <= std::numeric_limits<int32_t>::max(), "csr: rows", rows, "give 0 to 2^31 - 1");
  check_span("csr: i", pairs.i, count);
  check_span("csr: j", pairs.j, count);
  if (pairs.w.size != 0) check_span("csr: w", pairs.w, count);
  check_span("csr: offsets", out.offsets, rows + 1);
  check_span("csr: degrees", out.degrees, rows);
  PAL_CHECK(out.columns.size >= room, "csr: room for columns", out.columns.size, "give " + std::to_string(room));
  PAL_CHECK(out.weights.size >= room, "csr: room for weights", out.weights.size, "give " + std::to_string(room));
  PAL_CHECK(out.nnz != nullptr, "csr: nnz", "null", "give a pointer to write it to");
}

}  // namespace pal::kernels::detail
