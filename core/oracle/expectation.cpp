#include "core/oracle/expectation.h"

#include <ATen/ops/tensor.h>

#include <unordered_map>
#include <utility>

namespace pal {

void expect_answers(const GraphStore& store, const Pool& pool, std::vector<Query>& queries) {
  if (!pool.embeddings.defined()) return;
  std::unordered_map<int64_t, int64_t> row_of;
  std::unordered_map<int64_t, int64_t> support_of;   // row → its place in support
  std::vector<int64_t> support;                      // rows whose place is known
  for (size_t row = 0; row < pool.samples.size(); ++row) {
    row_of[pool.samples[row]] = static_cast<int64_t>(row);
    if (!store.known(pool.samples[row])) continue;
    support_of[static_cast<int64_t>(row)] = static_cast<int64_t>(support.size());
    support.push_back(static_cast<int64_t>(row));
  }
  std::vector<int64_t> rows;
  std::vector<std::pair<size_t, size_t>> asked;      // query, member
  for (size_t q = 0; q < queries.size(); ++q) {
    if (queries[q].kind == QueryKind::coarse) continue;
    for (size_t k = 0; k < queries[q].members.size(); ++k) {
      const auto at = row_of.find(queries[q].members[k]);
      if (at == row_of.end()) continue;
      rows.push_back(at->second);
      asked.emplace_back(q, k);
    }
  }
  if (rows.empty() || support.size() < 2) return;
  const at::Tensor unit = pool.embeddings.div(pool.embeddings.norm(2, {1}, true).clamp_min(1e-12));
  const at::Tensor similarity = unit.index_select(0, at::tensor(rows)).matmul(unit.index_select(0, at::tensor(support)).t());
  for (size_t a = 0; a < rows.size(); ++a) {
    const auto itself = support_of.find(rows[a]);
    if (itself != support_of.end()) similarity.select(0, static_cast<int64_t>(a)).select(0, itself->second).fill_(-2);
  }
  const at::Tensor nearest = similarity.argmax(1);
  for (size_t a = 0; a < rows.size(); ++a) {
    Query& q = queries[asked[a].first];
    q.expected.resize(q.members.size(), Relation::unknown);
    const int64_t near = pool.samples[support[nearest.data_ptr<int64_t>()[a]]];
    q.expected[asked[a].second] = store.component(near) == store.component(q.template_sample) ? Relation::same : Relation::different;
  }
}

}  // namespace pal
