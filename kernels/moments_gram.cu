// moments on CUDA, Gram form: the n × n products of centered rows instead of the D × D covariance.
//
//   covariance  ‖Gram‖²_F − Σ_k C_kk²     gradient of z_i  4b/(n−1) · Σ_j Gram_ij z_j  +  z_i ∘ (A_kk − 4b C_kk/(n−1))
// with z centered. (Gram Z)_i = z_i C, so this is the covariance form's z_i A without its off-diagonal matrix.
#include "kernels/moments.cuh"

namespace pal::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Layout {
  Triangle triangle;
  int64_t squares_count;
  double* triangle_parts;  // (splits, n (n + 1) / 2)
  float* gram;             // (n, n)
  double* column_parts;    // (ceil(n / kRowTile), dims)
  double* column_squares;  // (dims) Σ_i (z_ik − m_k)²
  double* variance;        // (dims) terms
  float* diagonal;         // (dims) A_kk − 4b C_kk / (n − 1)
  double* squares;         // (blocks of gram_kernel + dims): Gram_ij², then −C_kk²
  double* sum_partials;
  int64_t bytes;

  Layout(void* base, int64_t n, int64_t dims)
      : triangle(n, dims), squares_count(ceil_div(triangle.packed(), kThreads) + dims) {
    ScratchPieces pieces(base);
    triangle_parts = pieces.take<double>(triangle.splits * triangle.packed());
    gram = pieces.take<float>(n * n);
    column_parts = pieces.take<double>(ceil_div(n, kRowTile) * dims);
    column_squares = pieces.take<double>(dims);
    variance = pieces.take<double>(dims);
    diagonal = pieces.take<float>(dims);
    squares = pieces.take<double>(squares_count);
    sum_partials = pieces.take<double>(kernels::cuda::sum_partials(squares_count > dims ? squares_count : dims));
    bytes = pieces.bytes();
  }
};

// Adds the splits, in order; writes both halves of Gram and its squares. A thread per packed element.
__global__ void gram_kernel(float* gram, double* squares, const double* parts, Triangle t, double rows_less_one) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, packed = t.size * (t.size + 1) / 2;
  double square = 0;
  if (place < packed) {
    int64_t i = 0, high = t.size - 1;  // the last row that begins at or before place
    while (i < high) {
      const int64_t middle = (i + high + 1) / 2;
      if (packed_place(middle, middle, t.size) <= place)
        i = middle;
      else
        high = middle - 1;
    }
    const int64_t j = i + place - packed_place(i, i, t.size);
    double g = 0;
    for (int64_t s = 0; s < t.splits; ++s) g += parts[s * packed + place];
    g /= rows_less_one;
    gram[i * t.size + j] = gram[j * t.size + i] = static_cast<float>(g);
    square = (i == j ? 1 : 2) * g * g;
  }
  square = block_sum(square);
  if (threadIdx.x == 0) squares[blockIdx.x] = square;
}

__global__ void diagonal_kernel(double* variance, double* minus_squares, float* diagonal, const double* column_squares,
                                int64_t dims, double rows_less_one, MomentsOptions options) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= dims) return;
  const double c = column_squares[k] / rows_less_one;
  const VarianceTerm v = variance_of(c, rows_less_one, options);
  variance[k] = v.value;
  minus_squares[k] = -c * c;
  diagonal[k] = static_cast<float>(v.slope - 4 * options.covariance_weight * c / rows_less_one);
}

struct GramRows {  // k runs over all rows, i over the own rows from `first`; Gram is symmetric
  static constexpr bool kAlongK = false;
  const float* gram;
  int64_t n, first, end;
  __device__ float operator()(int64_t k, int i) const { return first + i < end ? gram[k * n + first + i] : 0.0f; }
};

template <class T>
__global__ void __launch_bounds__(kTileThreads, 2)
    gradient_kernel(MatrixView<T> out, const float* gram, Centered<T> z, int64_t begin, const float* diagonal,
                    float factor, Into into) {
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * kSide, j0 = blockIdx.y * kSide;
  float total[kEach][kEach] = {};
  tile_product<float>(total, GramRows{gram, z.rows, begin + i0, begin + out.rows}, ColumnsOf<T>{z, j0}, 0, z.rows);
  for_own(total, [&](int i, int j, float v) {
    if (i0 + i >= out.rows || j0 + j >= out.cols) return;
    const float own = static_cast<float>(z.at(begin + i0 + i, j0 + j));
    v = factor * v + own * diagonal[j0 + j];
    T* to = out.data + (i0 + i) * out.stride + j0 + j;
    *to = from_float<T>(into == Into::add ? to_float(*to) + v : v);
  });
}

}  // namespace

template <class T>
int64_t gram_terms_scratch_bytes(int64_t n, int64_t dims, const MomentsOptions&) {
  return n == 0 || dims == 0 ? 0 : Layout(nullptr, n, dims).bytes;
}

template <class T>
void gram_terms(MatrixView<T> out, double* variance_term, double* covariance_term, MatrixView<const T> z_all,
                Span<const double> mean, int64_t begin, const MomentsOptions& options, Into into, Scratch scratch,
                cudaStream_t stream) {
  const int64_t n = z_all.rows, dims = z_all.cols;
  check_matrix("gram_terms: z_all", z_all, n, dims);
  if (out.data) check_matrix("gram_terms: out", out, -1, dims);
  check_span("gram_terms: mean", mean, dims);
  check_rows("gram_terms", n);
  check_options("gram_terms", options);
  PAL_CHECK(begin >= 0 && begin + out.rows <= n, "gram_terms: begin", begin, "the own rows must lie in z_all");
  if (dims == 0) return zero_terms(variance_term, covariance_term, stream);
  const Layout at(scratch.data, n, dims);
  check_scratch("gram_terms", scratch, at.bytes);

  const Centered<T> z = centered(z_all, mean);
  const double rows_less_one = static_cast<double>(n - 1);
  const int64_t gram_blocks = at.squares_count - dims;
  columns<ColumnForm::centered_square>(at.column_squares, z, at.column_parts, stream);
  triangle(at.triangle_parts, RowsOf<T>{z, 0}, at.triangle, options.accumulate, stream);
  gram_kernel<<<static_cast<unsigned>(gram_blocks), kThreads, 0, stream>>>(at.gram, at.squares, at.triangle_parts,
                                                                           at.triangle, rows_less_one);
  check_launch(stream);
  diagonal_kernel<<<static_cast<unsigned>(ceil_div(dims, kThreads)), kThreads, 0, stream>>>(
      at.variance, at.squares + gram_blocks, at.diagonal, at.column_squares, dims, rows_less_one, options);
  check_launch(stream);
  if (variance_term) sum(variance_term, at.variance, dims, at.sum_partials, stream);
  if (covariance_term) sum(covariance_term, at.squares, at.squares_count, at.sum_partials, stream);
  if (!out.data || out.rows == 0) return;
  const dim3 grid(static_cast<unsigned>(ceil_div(out.rows, kSide)), static_cast<unsigned>(ceil_div(dims, kSide)));
  gradient_kernel<T><<<grid, kTileThreads, 0, stream>>>(
      out, at.gram, z, begin, at.diagonal, static_cast<float>(4 * options.covariance_weight / rows_less_one), into);
  check_launch(stream);
}

#define PAL_INSTANTIATE(T)                                                                                       \
  template int64_t gram_terms_scratch_bytes<T>(int64_t, int64_t, const MomentsOptions&);                         \
  template void gram_terms<T>(MatrixView<T>, double*, double*, MatrixView<const T>, Span<const double>, int64_t, \
                              const MomentsOptions&, Into, Scratch, cudaStream_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(bf16)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cuda
