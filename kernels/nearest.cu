// nearest on CUDA: tiles of scores in fp64; a warp holds the nearest of a query, best first, two to a lane.
//
// A block scores 64 queries against a cut of the support, 64 rows at a time. The scores go through shared memory, half
// of the queries at once, to the warp that owns the query: it scores only those that beat the query's k-th best so far,
// which are few after the first tiles. The cuts are joined as the shards of a support are (nearest_merge).
#include <climits>
#include <cmath>

#include "kernels/base/scratch.h"
#include "kernels/base/tile_product.cuh"
#include "kernels/nearest.h"

namespace pal::kernels::cuda {
namespace {

constexpr int kWarps = kTileThreads / kWarp;
constexpr int kHalf = kSide / 2;
constexpr int kOwned = kHalf / kWarps;    // queries of a warp in a half
constexpr int64_t kBlocks = 1024;         // at least so many, if there is enough support
constexpr int64_t kCutRows = 16 * kSide;  // at least so many
static_assert(kMaxNearest == 2 * kWarp && kSide == 2 * kWarp);

// A candidate: key is the score times its sign, smaller is nearer. Without one: the largest of both.
struct Entry {
  double key;
  int64_t id;
};
__device__ bool nearer(const Entry& a, const Entry& b) { return a.key < b.key || (a.key == b.key && a.id < b.id); }
__device__ Entry empty_entry() { return {INFINITY, LLONG_MAX}; }
__device__ Entry from_lane(const Entry& e, int lane) {
  return {__shfl_sync(kAllLanes, e.key, lane), __shfl_sync(kAllLanes, e.id, lane)};
}
__device__ Entry from_below(const Entry& e) {
  return {__shfl_up_sync(kAllLanes, e.key, 1), __shfl_up_sync(kAllLanes, e.id, 1)};
}

// The nearest of one query so far: places lane and lane + 32. All lanes must call.
struct List {
  Entry low, high;

  __device__ Entry at(int place) const {
    const Entry there{place < kWarp ? low.key : high.key, place < kWarp ? low.id : high.id};
    return from_lane(there, place % kWarp);
  }
  __device__ void insert(const Entry& e) {
    const int lane = threadIdx.x % kWarp;
    const int place =
        __popc(__ballot_sync(kAllLanes, nearer(low, e))) + __popc(__ballot_sync(kAllLanes, nearer(high, e)));
    const Entry carry = from_lane(low, kWarp - 1);
    Entry low_below = from_below(low), high_below = from_below(high);
    if (lane == 0) high_below = carry;
    if (lane >= place) low = lane == place ? e : low_below;
    if (lane + kWarp >= place) high = lane + kWarp == place ? e : high_below;
  }
  // Every lane offers one candidate; those that beat the k-th best are taken in the order of the lanes.
  __device__ void offer(const Entry& mine, int64_t k) {
    unsigned better = __ballot_sync(kAllLanes, nearer(mine, at(static_cast<int>(k) - 1)));
    for (; better != 0; better &= better - 1) insert(from_lane(mine, __ffs(better) - 1));
  }
};

__device__ double sign_of(Metric metric) { return metric == Metric::cosine ? -1.0 : 1.0; }

struct Places {  // (k) of one query
  int64_t* ids;
  double* scores;
  __device__ Entry read(int64_t place, int64_t k, double sign) const {
    return place < k && ids[place] >= 0 ? Entry{sign * scores[place], ids[place]} : empty_entry();
  }
  __device__ void write(int64_t place, int64_t k, double sign, const Entry& e) const {
    if (place >= k) return;
    ids[place] = e.id == LLONG_MAX ? -1 : e.id;
    scores[place] = sign * e.key;
  }
  __device__ List read_all(int64_t k, double sign) const {
    const int lane = threadIdx.x % kWarp;
    return {read(lane, k, sign), read(lane + kWarp, k, sign)};
  }
  __device__ void write_all(int64_t k, double sign, const List& list) const {
    const int lane = threadIdx.x % kWarp;
    write(lane, k, sign, list.low);
    write(lane + kWarp, k, sign, list.high);
  }
};
__device__ Places places_of(const NearestOut& out, int64_t row) {
  return {out.ids.data + row * out.ids.stride, out.scores.data + row * out.scores.stride};
}

template <class T>
struct Search {
  MatrixView<const T> queries;
  SupportView<T> support;
  MatrixView<const int64_t> excluded;
  const double *query_norm, *support_norm;  // of a cosine
  Metric metric;
  int64_t k, cut;  // rows of the support in a cut

  __device__ bool excludes(int64_t query, int64_t row) const {
    if (excluded.cols == 0) return false;
    const int64_t sample = support.samples.size ? support.samples.data[row]
                           : support.ids.size   ? support.ids.data[row]
                                                : row;
    const int64_t* list = excluded.data + query * excluded.stride;
    bool found = false;
    for (int64_t x = 0; x < excluded.cols; ++x) found |= list[x] == sample;
    return found && sample >= 0;
  }
  // From Σ x y, or from Σ (x − y)².
  __device__ Entry candidate(double sum, int64_t query, int64_t row) const {
    if (metric == Metric::cosine) {
      const double norms = query_norm[query] * support_norm[row];
      sum = query_norm[query] == 0 || support_norm[row] == 0 ? 0.0 : sum / norms;
    }
    if (!isfinite(sum)) return empty_entry();
    const int64_t id = support.ids.size ? support.ids.data[row] : row;
    PAL_DEVICE_CHECK(id >= 0);
    return {sign_of(metric) * sum, id};
  }
};

// A warp per row.
template <class T>
__global__ void norms_kernel(double* norms, MatrixView<const T> m) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (i >= m.rows) return;
  double square = 0;
  for (int64_t c = threadIdx.x % kWarp; c < m.cols; c += kWarp) {
    const double x = to_float(m.data[i * m.stride + c]);
    square += x * x;
  }
  square = warp_sum(square);
  if (threadIdx.x % kWarp == 0) norms[i] = sqrt(square);
}

// out: the results of the cuts, one below the other. A block per 64 queries and cut.
template <class T, class Combine>
__global__ void __launch_bounds__(kTileThreads) search_kernel(NearestOut out, Search<T> s) {
  __shared__ double scores[kHalf][kSide + 1];
  __shared__ Entry bound[kSide];  // the k-th best
  const int64_t q0 = static_cast<int64_t>(blockIdx.x) * kSide, begin = blockIdx.y * s.cut,
                end = min(begin + s.cut, s.support.rows.rows);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const double sign = sign_of(s.metric);
  const auto own = [&](int half, int n) { return half * kHalf + warp * kOwned + n; };
  for (int half = 0; half < 2; ++half) {
    for (int n = 0; n < kOwned; ++n) {
      const int64_t query = q0 + own(half, n);
      if (lane == 0) bound[own(half, n)] = empty_entry();
      if (query < s.queries.rows)
        places_of(out, blockIdx.y * s.queries.rows + query).write_all(s.k, sign, {empty_entry(), empty_entry()});
    }
  }
  for (int64_t j0 = begin; j0 < end; j0 += kSide) {
    double total[kEach][kEach] = {};
    tile_product<double>(total, RowsFrom<T>{s.queries, q0}, RowsFrom<T>{s.support.rows, j0}, 0, s.queries.cols,
                         Combine{});
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      __syncthreads();  // the former scores are used up
      for_own(total, [&](int i, int j, double v) {
        if (i / kHalf == half) scores[i % kHalf][j] = v;
      });
      __syncthreads();
      for (int n = 0; n < kOwned; ++n) {
        const int64_t query = q0 + own(half, n);
        if (query >= s.queries.rows) break;
        const Entry worst = bound[own(half, n)];
        const double* row = scores[own(half, n) - half * kHalf];
        const int64_t j = j0 + lane, j_high = j + kWarp;
        Entry low = j < end ? s.candidate(row[lane], query, j) : empty_entry();
        Entry high = j_high < end ? s.candidate(row[lane + kWarp], query, j_high) : empty_entry();
        if (nearer(low, worst) && s.excludes(query, j)) low = empty_entry();
        if (nearer(high, worst) && s.excludes(query, j_high)) high = empty_entry();
        if (!__any_sync(kAllLanes, nearer(low, worst) || nearer(high, worst))) continue;
        const Places places = places_of(out, blockIdx.y * s.queries.rows + query);
        List list = places.read_all(s.k, sign);
        list.offer(low, s.k);
        list.offer(high, s.k);
        places.write_all(s.k, sign, list);
        const Entry last = list.at(static_cast<int>(s.k) - 1);
        __syncwarp();  // all have read the bound; it is read again behind the barriers of the next tile
        if (lane == 0) bound[own(half, n)] = last;
      }
    }
  }
}

// A warp per query.
__global__ void merge_kernel(NearestOut out, MatrixView<const int64_t> ids, MatrixView<const double> scores,
                             int64_t parts, Metric metric) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp, k = out.ids.cols;
  if (query >= out.ids.rows) return;
  const double sign = sign_of(metric);
  List list{empty_entry(), empty_entry()};
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t row = part * out.ids.rows + query;
    for (int64_t c0 = 0; c0 < ids.cols; c0 += kWarp) {
      const int64_t c = c0 + threadIdx.x % kWarp;
      const int64_t id = c < ids.cols ? ids.data[row * ids.stride + c] : -1;
      const double score = c < ids.cols ? scores.data[row * scores.stride + c] : 0.0;
      list.offer(id >= 0 && !isnan(score) ? Entry{sign * score, id} : empty_entry(), k);
    }
  }
  places_of(out, query).write_all(k, sign, list);
}

struct NearestLayout {
  int64_t cuts, cut;
  double *query_norm, *support_norm;
  int64_t* ids;    // (cuts, Q, k)
  double* scores;  // (cuts, Q, k)
  int64_t bytes;

  NearestLayout(void* base, int64_t queries, int64_t support, int64_t k) {
    cuts = std::max<int64_t>(1, std::min(kBlocks / ceil_div(queries, kSide), support / kCutRows));
    cut = ceil_div(ceil_div(support, cuts), kSide) * kSide;
    ScratchPieces pieces(base);
    query_norm = pieces.take<double>(queries);
    support_norm = pieces.take<double>(support);
    ids = pieces.take<int64_t>(cuts * queries * k);
    scores = pieces.take<double>(cuts * queries * k);
    bytes = pieces.bytes();
  }
};

void check_out(const std::string& op, const NearestOut& out, int64_t queries) {
  PAL_CHECK(out.ids.cols >= 1 && out.ids.cols <= kMaxNearest, op + ": k", out.ids.cols,
            "give 1 to " + std::to_string(kMaxNearest));
  check_matrix((op + ": ids of out").c_str(), out.ids, queries, out.ids.cols);
  check_matrix((op + ": scores of out").c_str(), out.scores, queries, out.ids.cols);
}

template <class T>
void norms(double* out, MatrixView<const T> m, cudaStream_t stream) {
  if (m.rows == 0) return;
  norms_kernel<T><<<static_cast<unsigned>(ceil_div(m.rows, kWarps)), kTileThreads, 0, stream>>>(out, m);
  check_launch(stream);
}

}  // namespace

template <class T>
int64_t nearest_scratch_bytes(int64_t queries, int64_t support, int64_t, int64_t k) {
  return queries == 0 ? 0 : NearestLayout(nullptr, queries, support, k).bytes;
}

template <class T>
void nearest(const NearestOut& out, MatrixView<const T> queries, const SupportView<T>& support,
             MatrixView<const int64_t> excluded, Metric metric, Scratch scratch, cudaStream_t stream) {
  const int64_t count = support.rows.rows, k = out.ids.cols;
  check_matrix("nearest: queries", queries, -1, queries.cols);
  check_matrix("nearest: support", support.rows, -1, queries.cols);
  PAL_CHECK(queries.cols >= 1, "nearest: width of the rows", queries.cols, "give 1 or more");
  if (support.ids.size != 0) check_span("nearest: ids", support.ids, count);
  if (support.samples.size != 0) check_span("nearest: samples", support.samples, count);
  if (excluded.cols != 0) check_matrix("nearest: excluded", excluded, queries.rows, excluded.cols);
  check_out("nearest", out, queries.rows);
  if (queries.rows == 0) return;
  const NearestLayout at(scratch.data, queries.rows, count, k);
  check_scratch("nearest", scratch, at.bytes);

  if (metric == Metric::cosine) norms(at.query_norm, queries, stream);
  if (metric == Metric::cosine) norms(at.support_norm, support.rows, stream);
  const Search<T> search{queries, support, excluded, at.query_norm, at.support_norm, metric, k, at.cut};
  const int64_t rows = at.cuts * queries.rows;
  const NearestOut parts{{at.ids, rows, k}, {at.scores, rows, k}};
  const dim3 grid(static_cast<unsigned>(ceil_div(queries.rows, kSide)), static_cast<unsigned>(at.cuts));
  if (metric == Metric::cosine)
    search_kernel<T, Multiply><<<grid, kTileThreads, 0, stream>>>(parts, search);
  else
    search_kernel<T, SquaredDifference><<<grid, kTileThreads, 0, stream>>>(parts, search);
  check_launch(stream);
  nearest_merge(out, parts.ids, parts.scores, at.cuts, metric, stream);
}

void nearest_merge(const NearestOut& out, MatrixView<const int64_t> ids, MatrixView<const double> scores, int64_t parts,
                   Metric metric, cudaStream_t stream) {
  PAL_CHECK(parts >= 0, "nearest_merge: parts", parts, "give 0 or more");
  check_out("nearest_merge", out, out.ids.rows);
  check_matrix("nearest_merge: ids", ids, parts * out.ids.rows, ids.cols);
  check_matrix("nearest_merge: scores", scores, parts * out.ids.rows, ids.cols);
  if (out.ids.rows == 0) return;
  merge_kernel<<<static_cast<unsigned>(ceil_div(out.ids.rows, kWarps)), kTileThreads, 0, stream>>>(out, ids, scores,
                                                                                                   parts, metric);
  check_launch(stream);
}

#define PAL_INSTANTIATE(T)                                                                                           \
  template int64_t nearest_scratch_bytes<T>(int64_t, int64_t, int64_t, int64_t);                                     \
  template void nearest<T>(const NearestOut&, MatrixView<const T>, const SupportView<T>&, MatrixView<const int64_t>, \
                           Metric, Scratch, cudaStream_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(bf16)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cuda
