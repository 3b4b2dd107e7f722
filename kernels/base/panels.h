// panels: matrix products over packed panels, with centering and conversion done while packing.
//
// Math:   c_xy = Σ_k a_kx b_ky. An element is one chain of fused additions over k in fixed steps: its bits do not
//         depend on the threads, nor on the position of its row and column (so not on the split over ranks). A BLAS
//         guarantees neither, so the kernels do not use one.
// Packed: panel p of an operand holds `width` of its x as (depth, width); the last one is filled up with zeros.
#pragma once

#include <algorithm>

#include "kernels/base/panels_impl.h"
#include "kernels/base/threads.h"
#include "kernels/base/view.h"

namespace pal::kernels {

enum class Lies { k_by_x, x_by_k };  // how an operand lies in memory

// An operand before packing. The mean belongs to the columns of the source.
template <class T>
struct Operand {
  MatrixView<const T> source;
  Lies lies;
  const double* mean = nullptr;
  int64_t extent() const { return lies == Lies::k_by_x ? source.cols : source.rows; }
  int64_t depth() const { return lies == Lies::k_by_x ? source.rows : source.cols; }
};

constexpr int64_t kPanelStep = 1024;  // depth packed at a time; bounds the scratch
constexpr int64_t kPanelRun = 128;    // depth of one chain; two panels of it fit the L1 cache
constexpr int64_t kTilePanels = 4;    // a task is a square of this many panels

// Elements of scratch that one operand takes.
template <class C>
int64_t panel_elements(int64_t extent, int64_t depth) {
  constexpr int64_t kWidth = kMaxPanelWidth<C>;
  return (extent + kWidth - 1) / kWidth * kWidth * std::min(depth, kPanelStep);
}

// The same for an operand that is packed in its whole depth.
template <class C>
int64_t whole_panel_elements(int64_t extent, int64_t depth) {
  constexpr int64_t kWidth = kMaxPanelWidth<C>;
  return (extent + kWidth - 1) / kWidth * kWidth * depth;
}

// Packs steps [k, k + depth) of an operand.
template <class C, class T>
void pack_operand(C* panels, const Operand<T>& o, int64_t k, int64_t depth, Cpu cpu) {
  const PackOps<T, C>& ops = pack_ops<T, C>(cpu.isa);
  parallel_for(cpu, o.extent(), panel_ops<C>(cpu.isa).width, [&](int64_t x, int64_t end) {
    if (o.lies == Lies::k_by_x) {
      ops.pack(panels + x * depth, o.source.row(k) + x, o.source.stride, depth, end - x, o.mean ? o.mean + x : nullptr);
    } else {
      ops.turn(panels + x * depth, o.source.row(x) + k, o.source.stride, depth, end - x, o.mean ? o.mean + k : nullptr);
    }
  });
}

// A finished square of c for one step of depth: element (x0 + r, y0 + s) is data[r * stride + s].
template <class C>
struct ProductTile {
  const C* data;
  int64_t stride, x0, y0, rows, cols;
  bool first;  // of the steps of depth: overwrite; otherwise add
};

enum class Half { all, upper };  // upper: only panels that touch x <= y; a and b are the same operand

// c = aᵀ b. `scratch`: panel_elements() of a, then (not for Half::upper) of b, on a cache line. sink(tile) is called
// from many threads, once per tile and step of depth, the steps in order.
template <class C, class T, class Sink>
void panel_product(const Operand<T>& a, const Operand<T>& b, Half half, C* scratch, Cpu cpu, const Sink& sink) {
  const PanelOps<C>& ops = panel_ops<C>(cpu.isa);
  const int64_t width = ops.width, side = kTilePanels * width, depth = a.depth();
  C* a_panels = scratch;
  C* b_panels = half == Half::upper ? scratch : scratch + panel_elements<C>(a.extent(), depth);
  const int64_t down = (a.extent() + side - 1) / side, across = (b.extent() + side - 1) / side;
  for (int64_t k = 0; k < depth; k += kPanelStep) {
    const int64_t step = std::min(kPanelStep, depth - k);
    pack_operand(a_panels, a, k, step, cpu);
    if (half == Half::all) pack_operand(b_panels, b, k, step, cpu);
    parallel_for(cpu, down * across, 1, [&](int64_t task, int64_t) {
      const int64_t x0 = task / across * side, y0 = task % across * side;
      const int64_t x1 = std::min(a.extent(), x0 + side), y1 = std::min(b.extent(), y0 + side);
      if (half == Half::upper && y1 <= x0) return;
      alignas(64) C square[kTilePanels * kMaxPanelWidth<C> * kTilePanels * kMaxPanelWidth<C>];
      for (int64_t run = 0; run < step; run += kPanelRun) {
        const auto tile = run == 0 ? ops.tile : ops.tile_add;
        for (int64_t y = y0; y < y1; y += width) {
          for (int64_t x = x0; x < x1; x += width) {
            if (half == Half::upper && y + width <= x) continue;
            tile(square + (x - x0) * side + (y - y0), side, a_panels + x * step + run * width,
                 b_panels + y * step + run * width, std::min(kPanelRun, step - run));
          }
        }
      }
      sink(ProductTile<C>{square, side, x0, y0, x1 - x0, y1 - y0, k == 0});
    });
  }
}

// c = aᵀ b of `down` panels of a and `across` panels of b, packed in their whole depth: c lies in `across` panels, each
// (down · width, width). The chains are those of panel_product.
template <class C>
void panel_block(C* c, const C* a, int64_t down, const C* b, int64_t across, int64_t depth, const PanelOps<C>& ops) {
  const int64_t width = ops.width;
  for (int64_t run = 0; run < depth; run += kPanelRun) {
    const auto tile = run == 0 ? ops.tile : ops.tile_add;
    for (int64_t y = 0; y < across; ++y) {
      for (int64_t x = 0; x < down; ++x) {
        tile(c + (y * down + x) * width * width, width, a + (x * depth + run) * width, b + (y * depth + run) * width,
             std::min(kPanelRun, depth - run));
      }
    }
  }
}

}  // namespace pal::kernels
