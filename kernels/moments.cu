// moments on CUDA, covariance form: column sums, the centered second moment in triangular tiles, terms, gradient.
#include <cmath>

#include "kernels/moments.cuh"

namespace pal::kernels::cuda {
namespace {

constexpr int kBlock = 32;  // side of covariance_terms' tiles

// A block per tile (i, j), i <= j, of A: terms of its elements, A and its mirror.
__global__ void covariance_kernel(MatrixView<float> a, double* variance, double* covariance, const double* packed,
                                  int64_t dims, double rows_less_one, MomentsOptions options) {
  if (blockIdx.x < blockIdx.y) return;
  __shared__ float mirror[kBlock][kBlock + 1];
  const int x = threadIdx.x % kBlock, y0 = threadIdx.x / kBlock;
  const int64_t i0 = blockIdx.y * kBlock, j0 = static_cast<int64_t>(blockIdx.x) * kBlock, l = j0 + x;
  double on_diagonal = 0, off_diagonal = 0;
  for (int y = y0; y < kBlock; y += kWarp / 4) {
    const int64_t k = i0 + y;
    if (k > l || l >= dims) continue;
    const double c = packed[packed_place(k, l, dims)] / rows_less_one;
    double slope = 4 * options.covariance_weight * c / rows_less_one;
    if (k == l) {
      const VarianceTerm v = variance_of(c, rows_less_one, options);
      on_diagonal += v.value;
      slope = v.slope;
    } else {
      off_diagonal += 2 * c * c;
    }
    mirror[y][x] = static_cast<float>(slope);
    if (a.data) a.data[k * a.stride + l] = static_cast<float>(slope);
  }
  const int64_t tile = packed_place(blockIdx.y, blockIdx.x, gridDim.x);
  on_diagonal = block_sum(on_diagonal);
  off_diagonal = block_sum(off_diagonal);  // its barriers also stand between the writes of mirror and its reads
  if (threadIdx.x == 0) {
    variance[tile] = on_diagonal;
    covariance[tile] = off_diagonal;
  }
  if (a.data == nullptr) return;
  for (int y = y0; y < kBlock; y += kWarp / 4) {
    const int64_t row = j0 + y, column = i0 + x;  // below the diagonal
    if (column < row && row < dims) a.data[row * a.stride + column] = mirror[x][y];
  }
}

struct TermsLayout {
  int64_t side, tiles;
  double *variance, *covariance, *sum_partials;
  int64_t bytes;
  TermsLayout(void* base, int64_t dims) : side(ceil_div(dims, kBlock)), tiles(side * (side + 1) / 2) {
    ScratchPieces pieces(base);
    variance = pieces.take<double>(tiles);
    covariance = pieces.take<double>(tiles);
    sum_partials = pieces.take<double>(kernels::cuda::sum_partials(tiles));
    bytes = pieces.bytes();
  }
};

template <class T>
__global__ void __launch_bounds__(kTileThreads, 2)
    product_kernel(MatrixView<T> out, Centered<T> z, MatrixView<const float> a, Into into) {
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * kSide, j0 = blockIdx.y * kSide;
  float total[kEach][kEach] = {};
  tile_product<float>(total, RowsOf<T>{z, i0}, ColumnsFrom<float>{a, j0}, 0, z.columns);
  for_own(total, [&](int i, int j, float v) {
    if (i0 + i >= out.rows || j0 + j >= out.cols) return;
    T* to = out.data + (i0 + i) * out.stride + j0 + j;
    *to = from_float<T>(into == Into::add ? to_float(*to) + v : v);
  });
}

}  // namespace

int64_t column_sums_scratch_bytes(int64_t rows, int64_t dims) {
  ScratchPieces pieces(nullptr);
  pieces.take<double>(ceil_div(rows, kRowTile) * dims);
  return pieces.bytes();
}

template <class T>
void column_sums(Span<double> sums, MatrixView<const T> z, Scratch scratch, cudaStream_t stream) {
  check_matrix("column_sums: z", z, -1, z.cols);
  check_span("column_sums: sums", sums, z.cols);
  if (z.cols == 0) return;
  if (z.rows == 0) {
    PAL_CUDA_CHECK(cudaMemsetAsync(sums.data, 0, sums.size * sizeof(double), stream));
    return;
  }
  check_scratch("column_sums", scratch, column_sums_scratch_bytes(z.rows, z.cols));
  double* parts = ScratchPieces(scratch.data).take<double>(ceil_div(z.rows, kRowTile) * z.cols);
  columns<ColumnForm::sum>(sums.data, centered<T>(z, {}), parts, stream);
}

template <class T>
int64_t centered_second_moment_scratch_bytes(int64_t rows, int64_t dims, const MomentsOptions&) {
  if (rows == 0 || dims == 0) return 0;
  const Triangle t(dims, rows);
  ScratchPieces pieces(nullptr);
  if (t.splits > 1) pieces.take<double>(t.splits * t.packed());
  return pieces.bytes();
}

template <class T>
void centered_second_moment(Span<double> packed, MatrixView<const T> z, Span<const double> mean,
                            const MomentsOptions& options, Scratch scratch, cudaStream_t stream) {
  check_matrix("centered_second_moment: z", z, -1, z.cols);
  check_span("centered_second_moment: mean", mean, z.cols);
  check_span("centered_second_moment: packed", packed, packed_size(z.cols));
  if (z.cols == 0) return;
  if (z.rows == 0) {
    PAL_CUDA_CHECK(cudaMemsetAsync(packed.data, 0, packed.size * sizeof(double), stream));
    return;
  }
  check_scratch("centered_second_moment", scratch, centered_second_moment_scratch_bytes<T>(z.rows, z.cols, options));
  const Triangle t(z.cols, z.rows);
  double* parts = t.splits > 1 ? ScratchPieces(scratch.data).take<double>(t.splits * t.packed()) : packed.data;
  triangle(parts, ColumnsOf<T>{centered(z, mean), 0}, t, options.accumulate, stream);
  if (t.splits > 1) add_parts(packed.data, parts, t.splits, t.packed(), stream);
}

int64_t covariance_terms_scratch_bytes(int64_t dims) { return TermsLayout(nullptr, dims).bytes; }

void covariance_terms(MatrixView<float> a, double* variance_term, double* covariance_term, Span<const double> packed,
                      int64_t n, const MomentsOptions& options, Scratch scratch, cudaStream_t stream) {
  const int64_t dims = a.data ? a.cols : static_cast<int64_t>((std::sqrt(8.0 * packed.size + 1) - 1) / 2 + 0.5);
  check_span("covariance_terms: packed", packed, packed_size(dims));
  if (a.data) check_matrix("covariance_terms: a", a, dims, dims);
  check_rows("covariance_terms", n);
  check_options("covariance_terms", options);
  if (dims == 0) return zero_terms(variance_term, covariance_term, stream);
  const TermsLayout at(scratch.data, dims);
  check_scratch("covariance_terms", scratch, at.bytes);
  const auto side = static_cast<unsigned>(at.side);
  covariance_kernel<<<dim3(side, side), 256, 0, stream>>>(a, at.variance, at.covariance, packed.data, dims,
                                                          static_cast<double>(n - 1), options);
  check_launch(stream);
  if (variance_term) sum(variance_term, at.variance, at.tiles, at.sum_partials, stream);
  if (covariance_term) sum(covariance_term, at.covariance, at.tiles, at.sum_partials, stream);
}

template <class T>
void centered_product(MatrixView<T> out, MatrixView<const T> z, Span<const double> mean, MatrixView<const float> a,
                      Into into, cudaStream_t stream) {
  check_matrix("centered_product: z", z, -1, z.cols);
  check_matrix("centered_product: out", out, z.rows, z.cols);
  check_matrix("centered_product: a", a, z.cols, z.cols);
  check_span("centered_product: mean", mean, z.cols);
  if (z.rows == 0 || z.cols == 0) return;
  const dim3 grid(static_cast<unsigned>(ceil_div(z.rows, kSide)), static_cast<unsigned>(ceil_div(z.cols, kSide)));
  product_kernel<T><<<grid, kTileThreads, 0, stream>>>(out, centered(z, mean), a, into);
  check_launch(stream);
}

#define PAL_INSTANTIATE(T)                                                                                           \
  template void column_sums<T>(Span<double>, MatrixView<const T>, Scratch, cudaStream_t);                            \
  template void centered_second_moment<T>(Span<double>, MatrixView<const T>, Span<const double>,                     \
                                          const MomentsOptions&, Scratch, cudaStream_t);                             \
  template int64_t centered_second_moment_scratch_bytes<T>(int64_t, int64_t, const MomentsOptions&);                 \
  template void centered_product<T>(MatrixView<T>, MatrixView<const T>, Span<const double>, MatrixView<const float>, \
                                    Into, cudaStream_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(bf16)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cuda
