// nearest_merge on the CPU: every entry of every part goes through the same list as in the search.
#include <cmath>

#include "kernels/base/threads.h"
#include "kernels/nearest_list.h"

namespace pal::kernels::cpu {

void nearest_merge(const NearestOut& out, MatrixView<const int64_t> ids, MatrixView<const double> scores, int64_t parts,
                   Metric metric, Cpu cpu) {
  check_cpu("nearest_merge", cpu);
  PAL_CHECK(parts >= 0, "nearest_merge: parts", parts, "give 0 or more");
  check_out("nearest_merge", out, out.ids.rows);
  const int64_t queries = out.ids.rows, k = out.ids.cols;
  check_matrix("nearest_merge: ids", ids, parts * queries, ids.cols);
  check_matrix("nearest_merge: scores", scores, parts * queries, ids.cols);
  const double sign = sign_of(metric);
  parallel_for(cpu, queries, 64, [&](int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
      std::fill_n(out.ids.row(q), k, int64_t{-1});
      std::fill_n(out.scores.row(q), k, worst_score(metric));
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t row = part * queries + q;
        for (int64_t c = 0; c < ids.cols; ++c) {
          const double score = scores.row(row)[c];
          if (ids.row(row)[c] >= 0 && !std::isnan(score)) {
            insert(out.ids.row(q), out.scores.row(q), k, ids.row(row)[c], score, sign);
          }
        }
      }
    }
  });
}

}  // namespace pal::kernels::cpu
