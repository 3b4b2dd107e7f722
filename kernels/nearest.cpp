// nearest on the CPU: for each block of queries, each worker thread takes the next chunk of the support and keeps the
// nearest rows it has seen in a list of its own. The workers share the best bound so far. It changes how many pairs are
// scored, never the result, which depends neither on the number of workers nor on which worker took which chunk.
#include "kernels/nearest.h"

#include <atomic>

#include "kernels/base/check.h"
#include "kernels/base/scratch.h"
#include "kernels/nearest_filter.h"
#include "kernels/nearest_impl.h"
#include "kernels/nearest_list.h"

namespace pal::kernels {

PAL_ISA_TABLES(nearest_ops, nearest, NearestOps)

namespace cpu {
namespace {

constexpr int64_t kQueryPanels = 8;    // of a block
constexpr int64_t kChunkPanels = 20;   // of support rows
constexpr int64_t kMaxWorkers = 32;    // of a block; fewer where there are many blocks
constexpr int64_t kWorkerRows = 1024;  // a worker needs so much support to be worth its list
constexpr int64_t kFewQueries = 4;     // are scored outright: a product of panels would be mostly padding
constexpr int64_t kCenterRows = 64;    // of the support, whose mean is the center

int64_t max_workers(int64_t queries, int64_t support) {
  const int64_t blocks = queries / (kQueryPanels * kMaxPanelWidth<float>)+1;
  return std::max<int64_t>(1, std::min(kMaxWorkers / blocks, support / kWorkerRows));
}

template <class T>
struct Layout {
  ScratchPieces pieces;
  int64_t lists;   // of a query: one for each worker
  T* center;       // (D)
  T* queries;      // packed
  double* share;   // (Q) of a query in the bound
  double* norm;    // (Q)
  double* bound;   // (Q) the k-th best score that any worker has found
  int64_t* next;   // (blocks, at most Q) the support row where the next chunk begins
  int64_t* ids;    // (lists, Q, k)
  double* scores;  // (lists, Q, k)

  Layout(void* base, int64_t queries_, int64_t support, int64_t dims, int64_t k)
      : pieces(base),
        lists(max_workers(queries_, support)),
        center(pieces.take<T>(dims)),
        queries(pieces.take<T>(whole_panel_elements<T>(queries_, dims))),
        share(pieces.take<double>(queries_)),
        norm(pieces.take<double>(queries_)),
        bound(pieces.take<double>(queries_)),
        next(pieces.take<int64_t>(queries_)),
        ids(pieces.take<int64_t>(lists * queries_ * k)),
        scores(pieces.take<double>(lists * queries_ * k)) {}
};

void lower_to(double& shared, double score, double sign) {
  std::atomic_ref<double> bound(shared);
  double known = bound.load(std::memory_order_relaxed);
  while (sign * score < sign * known && !bound.compare_exchange_weak(known, score, std::memory_order_relaxed)) {
  }
}

// The mean of some rows spread over the support, scaled as the filter scales them.
template <class T>
void find_center(T* center, MatrixView<const T> support, Metric metric, Isa isa) {
  const auto& vec = vec_ops<T>(isa);
  const int64_t dims = support.cols, sampled = std::min(support.rows, kCenterRows);
  double scale[kCenterRows];
  for (int64_t i = 0; i < sampled; ++i) {
    const T* row = support.row(i * (support.rows / sampled));
    const double square = vec.dot(row, row, dims);
    const bool usable = square > 0 && std::isfinite(square);
    scale[i] = usable ? (metric == Metric::cosine ? 1 / std::sqrt(square) : 1.0) / static_cast<double>(sampled) : 0.0;
  }
  for (int64_t k = 0; k < dims; ++k) {
    double sum = 0;
    for (int64_t i = 0; i < sampled; ++i) {
      if (scale[i] > 0) sum += scale[i] * static_cast<double>(support.row(i * (support.rows / sampled))[k]);
    }
    center[k] = static_cast<T>(sum);
  }
}

template <class T>
void check_nearest(const MatrixView<const T>& queries, const SupportView<T>& support,
                   const MatrixView<const int64_t>& excluded, Cpu cpu) {
  check_cpu("nearest", cpu);
  check_matrix("nearest: queries", queries, -1, queries.cols);
  check_matrix("nearest: support", support.rows, -1, queries.cols);
  PAL_CHECK(queries.cols >= 1, "nearest: width of the rows", queries.cols, "give 1 or more");
  if (support.ids.size != 0) check_span("nearest: ids", support.ids, support.rows.rows);
  if (support.samples.size != 0) check_span("nearest: samples", support.samples, support.rows.rows);
  for (int64_t j = 0; j < support.ids.size; ++j) {
    PAL_CHECK(support.ids[j] >= 0, "nearest: ids[" + std::to_string(j) + "]", support.ids[j], "give 0 or more");
  }
  if (excluded.cols != 0) check_matrix("nearest: excluded", excluded, queries.rows, excluded.cols);
}

// What a task needs of the whole search.
template <class T>
struct Search {
  MatrixView<const T> queries;
  SupportView<T> support;
  MatrixView<const int64_t> excluded;
  double sign;
  int64_t k;
  const NearestFilter<T>& filter;
  const Layout<T>& at;
  Isa isa;

  bool excludes(int64_t query, int64_t row) const {
    if (excluded.cols == 0) return false;
    const int64_t sample = support.samples.size ? support.samples[row] : support.ids.size ? support.ids[row] : row;
    const int64_t* list = excluded.row(query);
    return sample >= 0 && std::find(list, list + excluded.cols, sample) != list + excluded.cols;
  }

  void pack_queries(int64_t first, int64_t width) const {
    auto rows = filter.begin(queries, first, width);
    for (int64_t k0 = 0; k0 < queries.cols; k0 += kPanelRun) {
      filter.pack_run(at.queries + first * queries.cols + k0 * width, rows, k0, std::min(kPanelRun, queries.cols - k0));
    }
    for (int64_t i = 0; i < rows.count; ++i) {
      at.share[first + i] = filter.share(rows, i);
      at.norm[first + i] = rows.norm[i];
    }
  }

  // Queries [first, last) against support rows [begin, end), every pair.
  void score_all(int64_t list, int64_t first, int64_t last, int64_t begin, int64_t end) const {
    for (int64_t j = begin; j < end; ++j) {
      const auto rows = filter.begin(support.rows, j, 1);
      for (int64_t q = first; q < last; ++q) look_at(list, q, rows, 0, j);
    }
  }

  // The same, the pairs that pass the filter; first begins a panel.
  void run(int64_t list, int64_t first, int64_t last, int64_t begin, int64_t end) const {
    const PanelOps<T>& panels = panel_ops<T>(isa);
    const NearestOps<T>& ops = nearest_ops<T>(isa);
    constexpr int64_t kMax = kMaxPanelWidth<T>;
    alignas(64) T products[kQueryPanels * kMax * kMax], run[kMax * kPanelRun], high[kQueryPanels * kMax], low[kMax];
    const int64_t width = panels.width, dims = queries.cols;
    double known[kQueryPanels * kMax];  // the bounds that `high` was made from
    std::fill_n(known, kQueryPanels * kMax, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(high, kQueryPanels * kMax, std::numeric_limits<T>::infinity());
    for (int64_t j = begin; j < end; j += width) {
      auto rows = filter.begin({support.rows.row(0), end, dims, support.rows.stride}, j, width);
      for (int64_t k0 = 0; k0 < dims; k0 += kPanelRun) {
        const int64_t depth = std::min(kPanelRun, dims - k0);
        filter.pack_run(run, rows, k0, depth);
        for (int64_t q = first; q < last; q += width) {
          (k0 == 0 ? panels.tile : panels.tile_add)(products + (q - first) * width, width, run,
                                                    at.queries + q * dims + k0 * width, depth);
        }
      }
      for (int64_t i = 0; i < rows.count; ++i) low[i] = filter.low(rows, i);
      for (int64_t q = first; q < last; q += width) {
        const int64_t count = std::min(width, last - q);
        const T* tile = products + (q - first) * width;
        T* limits = high + (q - first);
        for (int64_t lane = 0; lane < count; ++lane) refresh(limits[lane], known[q - first + lane], q + lane);
        uint64_t lanes = 0;
        for (int64_t i = ops.next(&lanes, tile, 0, rows.count, low, limits); i < rows.count;
             i = ops.next(&lanes, tile, i + 1, rows.count, low, limits)) {
          for (lanes &= ~uint64_t{0} >> (64 - count); lanes != 0; lanes &= lanes - 1) {
            const int64_t lane = __builtin_ctzll(lanes);
            look_at(list, q + lane, rows, i, j + i);
            refresh(limits[lane], known[q - first + lane], q + lane);
          }
        }
      }
    }
  }

  // The filter's limit of a query, when its bound is no longer the one that was known.
  void refresh(T& limit, double& known, int64_t query) const {
    const double bound = std::atomic_ref<double>(at.bound[query]).load(std::memory_order_relaxed);
    if (bound == known) return;
    known = bound;
    limit = filter.high(at.share[query], bound);
  }

  // Scores a pair and keeps it if it is among the nearest of a list.
  void look_at(int64_t list, int64_t query, const typename NearestFilter<T>::Rows& rows, int64_t i, int64_t row) const {
    if (excludes(query, row)) return;
    const double score = filter.score(queries.row(query), at.norm[query], rows, i);
    if (!std::isfinite(score)) return;
    int64_t* ids = at.ids + (list * queries.rows + query) * k;
    double* scores = at.scores + (list * queries.rows + query) * k;
    insert(ids, scores, k, support.ids.size ? support.ids[row] : row, score, sign);
    if (ids[k - 1] >= 0) lower_to(at.bound[query], scores[k - 1], sign);
  }
};

}  // namespace

template <class T>
int64_t nearest_scratch_bytes(int64_t queries, int64_t support, int64_t dims, int64_t k) {
  return Layout<T>(nullptr, queries, support, dims, k).pieces.bytes();
}

template <class T>
void nearest(const NearestOut& out, MatrixView<const T> queries, const SupportView<T>& support,
             MatrixView<const int64_t> excluded, Metric metric, Scratch scratch, Cpu cpu) {
  const int64_t k = out.ids.cols, count = support.rows.rows;
  check_nearest(queries, support, excluded, cpu);
  check_out("nearest", out, queries.rows);
  check_scratch("nearest", scratch, nearest_scratch_bytes<T>(queries.rows, count, queries.cols, k));
  const Layout<T> at(scratch.data, queries.rows, count, queries.cols, k);
  const int64_t width = panel_ops<T>(cpu.isa).width, block = kQueryPanels * width, chunk = kChunkPanels * width;
  const int64_t blocks = (queries.rows + block - 1) / block, workers = std::min<int64_t>(at.lists, cpu.threads);
  std::fill_n(at.ids, workers * queries.rows * k, int64_t{-1});
  std::fill_n(at.bound, queries.rows, worst_score(metric));
  std::fill_n(at.next, blocks, int64_t{0});
  if (count > 0 && queries.rows > 0) {
    find_center(at.center, support.rows, metric, cpu.isa);
    const NearestFilter<T> filter(metric, at.center, queries.cols, cpu.isa);
    const Search<T> search{queries, support, excluded, sign_of(metric), k, filter, at, cpu.isa};
    parallel_for(cpu, queries.rows, width, [&](int64_t first, int64_t) { search.pack_queries(first, width); });
    parallel_for(cpu, blocks * workers, 1, [&](int64_t task, int64_t) {
      const int64_t list = task % workers, first = task / workers * block, last = std::min(queries.rows, first + block);
      const std::atomic_ref<int64_t> next(at.next[task / workers]);
      for (int64_t j = next.fetch_add(chunk); j < count; j = next.fetch_add(chunk)) {
        const int64_t end = std::min(count, j + chunk);
        if (last - first <= kFewQueries)
          search.score_all(list, first, last, j, end);
        else
          search.run(list, first, last, j, end);
      }
    });
  }
  const int64_t rows = workers * queries.rows;
  nearest_merge(out, {at.ids, rows, k}, {at.scores, rows, k}, workers, metric, cpu);
}

#define PAL_INSTANTIATE(T)                                                                                           \
  template int64_t nearest_scratch_bytes<T>(int64_t, int64_t, int64_t, int64_t);                                     \
  template void nearest<T>(const NearestOut&, MatrixView<const T>, const SupportView<T>&, MatrixView<const int64_t>, \
                           Metric, Scratch, Cpu);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace cpu
}  // namespace pal::kernels
