#include "core/oracle/round/predicted_answers.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "core/oracle/samplers/pool_rows.h"
#include "core/oracle/samplers/products.h"

namespace pal::oracle {

void predict_answers(const graph::GraphStore& store, const Pool& pool, std::vector<Query>& queries) {
  if (!pool.embeddings.defined()) return;
  const PoolRows rows(pool);
  std::vector<int64_t> known, places;  // rows here whose place in the graph is known
  for (int64_t row : rows.rows_here()) {
    if (!store.known(rows.samples()[row])) continue;
    known.push_back(row);
    places.push_back(rows.place(row));
  }
  std::vector<int64_t> knowns = {static_cast<int64_t>(known.size())};
  rows.complete(knowns);
  std::vector<int64_t> asked_rows;
  std::vector<std::pair<size_t, size_t>> asked;  // query, member
  for (size_t q = 0; q < queries.size(); ++q) {
    if (queries[q].kind == QueryKind::coarse) continue;
    for (size_t k = 0; k < queries[q].members.size(); ++k) {
      const auto at = std::lower_bound(rows.samples().begin(), rows.samples().end(), queries[q].members[k]);
      if (at == rows.samples().end() || *at != queries[q].members[k]) continue;
      asked_rows.push_back(at - rows.samples().begin());
      asked.emplace_back(q, k);
    }
  }
  if (asked.empty() || knowns[0] < 2) return;
  // The nearest here, then of all ranks; ties by the lower row.
  const at::Tensor similarity =
      times_transposed(rows.gather(asked_rows), rows.here().index_select(0, at::tensor(places, at::kLong)));
  at::Tensor best = at::full({static_cast<int64_t>(asked.size()), 2}, -2, at::kDouble);  // similarity, row
  double* b = best.data_ptr<double>();
  const auto columns = static_cast<int64_t>(known.size());
  for (size_t a = 0; a < asked.size(); ++a) {
    const float* s = similarity.const_data_ptr<float>() + static_cast<int64_t>(a) * columns;
    for (int64_t k = 0; k < columns; ++k) {
      if (known[k] == asked_rows[a] || s[k] <= b[2 * a]) continue;
      b[2 * a] = s[k];
      b[2 * a + 1] = static_cast<double>(known[k]);
    }
  }
  const at::Tensor all = rows.comm().all_gather(best);  // one rank after the other
  for (size_t a = 0; a < asked.size(); ++a) {
    std::pair<double, double> nearest(2, 0);  // −similarity, row
    for (int r = 0; r < rows.comm().size(); ++r) {
      const double* of = all.const_data_ptr<double>() + 2 * (static_cast<size_t>(r) * asked.size() + a);
      if (of[0] > -2) nearest = std::min(nearest, std::pair(-of[0], of[1]));
    }
    Query& q = queries[asked[a].first];
    q.expected.resize(q.members.size(), graph::Relation::unknown);
    const int64_t near = rows.samples()[static_cast<size_t>(nearest.second)];
    q.expected[asked[a].second] = store.component(near) == store.component(q.template_sample)
                                      ? graph::Relation::same
                                      : graph::Relation::different;
  }
}

}  // namespace pal::oracle
