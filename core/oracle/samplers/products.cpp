#include "core/oracle/samplers/products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/panels.h"

namespace pal::oracle {
namespace {

namespace k = kernels;

k::Cpu how() { return {at::get_num_threads()}; }

k::MatrixView<const float> view(const at::Tensor& t) { return {t.const_data_ptr<float>(), t.size(0), t.size(1)}; }

template <class C>
struct PanelMemory {
  explicit PanelMemory(int64_t elements)
      : memory(at::empty({elements + 64 / static_cast<int64_t>(sizeof(C))}, c10::CppTypeToScalarType<C>::value)) {}
  C* data() {  // on a cache line
    const auto at = reinterpret_cast<uintptr_t>(memory.data_ptr<C>());
    return reinterpret_cast<C*>((at + 63) / 64 * 64);
  }
  at::Tensor memory;
};

at::Tensor product_of(const k::Operand<float>& a, const k::Operand<float>& b) {
  at::Tensor out = at::empty({a.extent(), b.extent()}, at::kFloat);
  if (out.numel() == 0) return out;
  float* const c = out.data_ptr<float>();
  const int64_t stride = b.extent();
  PanelMemory<float> scratch(k::panel_elements<float>(a.extent(), a.depth()) +
                             k::panel_elements<float>(b.extent(), b.depth()));
  k::panel_product<float, float>(a, b, k::Half::all, scratch.data(), how(), [&](const k::ProductTile<float>& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      float* to = c + (tile.x0 + r) * stride + tile.y0;
      const float* from = tile.data + r * tile.stride;
      for (int64_t s = 0; s < tile.cols; ++s) to[s] = tile.first ? from[s] : to[s] + from[s];
    }
  });
  return out;
}

}  // namespace

at::Tensor times(const at::Tensor& rows, const at::Tensor& weight) {
  PAL_ASSERT(rows.size(1) == weight.size(0), "a product of fitting matrices");
  return product_of({view(rows), k::Lies::x_by_k}, {view(weight), k::Lies::k_by_x});
}

at::Tensor times_transposed(const at::Tensor& rows, const at::Tensor& others) {
  PAL_ASSERT(rows.size(1) == others.size(1), "rows of one width");
  return product_of({view(rows), k::Lies::x_by_k}, {view(others), k::Lies::x_by_k});
}

std::vector<double> scatter(const at::Tensor& rows) {
  const int64_t dims = rows.size(1);
  std::vector<double> out(static_cast<size_t>(dims * dims), 0);
  if (rows.size(0) == 0) return out;
  const k::Operand<float> a{view(rows), k::Lies::k_by_x};
  PanelMemory<double> scratch(k::panel_elements<double>(dims, a.depth()));
  k::panel_product<double, float>(a, a, k::Half::upper, scratch.data(), how(), [&](const k::ProductTile<double>& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int64_t s = 0; s < tile.cols; ++s) {
        const int64_t x = tile.x0 + r, y = tile.y0 + s;
        if (x > y) continue;
        double& to = out[static_cast<size_t>(x * dims + y)];
        to = tile.first ? tile.data[r * tile.stride + s] : to + tile.data[r * tile.stride + s];
      }
    }
  });
  for (int64_t x = 0; x < dims; ++x) {
    for (int64_t y = 0; y < x; ++y) out[static_cast<size_t>(x * dims + y)] = out[static_cast<size_t>(y * dims + x)];
  }
  return out;
}

}  // namespace pal::oracle
