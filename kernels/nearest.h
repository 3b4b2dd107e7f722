// nearest: the exact k nearest rows of a support set for each query, by cosine or distance; no Q×M memory.
//
// Shapes: queries (Q, D); support (M, D); out (Q, k), 1 ≤ k ≤ kMaxNearest, best first; excluded (Q, X), X may be 0.
// Math:   cosine     score = xᵀy / (‖x‖ ‖y‖), larger is nearer; 0 when x or y is 0
//         euclidean  score = ‖x − y‖², by differences, smaller is nearer
//         Equal scores: the lower id is nearer. A support row whose sample is among its query's excluded ones is no
//         candidate. Places without a candidate have id −1 and the worst score, −∞ or +∞.
//         A support row with an element that is not finite is never chosen; a query with one has no neighbors; nor
//         do pairs whose squares overflow a double. (Training skips such a step.)
// Order:  a score is taken from its two rows alone: the result depends neither on threads nor on how the support
//         is cut: nearest_merge of the results of shards equals the result of the whole, bit for bit.
//         Scores are fp64 sums over D; on the CPU products in T exclude pairs that cannot be among the nearest.
// Async:  the CUDA twin works on device pointers, and finds the same ids.
#pragma once

#include "kernels/base/cuda.h"
#include "kernels/base/view.h"

namespace pal::kernels {

enum class Metric { cosine, euclidean };

constexpr int64_t kMaxNearest = 64;

struct NearestOut {
  MatrixView<int64_t> ids;
  MatrixView<double> scores;
};

template <class T>
struct SupportView {
  MatrixView<const T> rows;
  Span<const int64_t> ids;      // (M) 0 or more, what is reported; empty: 0 … M−1
  Span<const int64_t> samples;  // (M) what `excluded` is compared with; empty: the ids
};

namespace cpu {
template <class T>
int64_t nearest_scratch_bytes(int64_t queries, int64_t support, int64_t dims, int64_t k);
// excluded: −1 excludes nothing.
template <class T>
void nearest(const NearestOut& out, MatrixView<const T> queries, const SupportView<T>& support,
             MatrixView<const int64_t> excluded, Metric metric, Scratch scratch, Cpu cpu);

// out: the nearest of `parts` results that lie one below the other, part p in rows [p Q, (p + 1) Q), with global ids.
void nearest_merge(const NearestOut& out, MatrixView<const int64_t> ids, MatrixView<const double> scores, int64_t parts,
                   Metric metric, Cpu cpu);
}  // namespace cpu

// T = float, bf16.
namespace cuda {
template <class T>
int64_t nearest_scratch_bytes(int64_t queries, int64_t support, int64_t dims, int64_t k);
template <class T>
void nearest(const NearestOut& out, MatrixView<const T> queries, const SupportView<T>& support,
             MatrixView<const int64_t> excluded, Metric metric, Scratch scratch, cudaStream_t stream);

void nearest_merge(const NearestOut& out, MatrixView<const int64_t> ids, MatrixView<const double> scores, int64_t parts,
                   Metric metric, cudaStream_t stream);
}  // namespace cuda

}  // namespace pal::kernels
