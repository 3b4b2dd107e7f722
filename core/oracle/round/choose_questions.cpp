#include "core/oracle/round/choose_questions.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <set>

#include "core/oracle/samplers/pool_rows.h"
#include "core/oracle/samplers/products.h"

namespace pal::oracle {
namespace {

void drop_closed(std::vector<Query>& queries, const std::vector<std::pair<int64_t, int64_t>>& closed) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const auto& [i, j] : closed) pairs.insert(std::minmax(i, j));
  for (Query& q : queries) {
    if (q.kind == QueryKind::coarse) continue;
    std::erase_if(q.members, [&](int64_t m) { return pairs.count(std::minmax(q.template_sample, m)) > 0; });
  }
  std::erase_if(queries, [](const Query& q) { return q.members.empty(); });
}

// Closed pairs are dropped: a sampler does not know them and may choose them again.
Chosen choose_open(const QuerySampler& sampler, const graph::GraphStore& store, const Pool& pool, Round round) {
  Chosen out{sampler.choose(store, pool, round)};
  if (out.queries.empty()) return {{}, NoQuestion::pool};
  drop_closed(out.queries, round.closed);
  if (!out.queries.empty()) return out;
  // The sampler chose closed pairs only: it chooses again, and must leave out the samples of these pairs.
  for (const auto& [i, j] : round.closed) round.pending.push_back({0, QueryKind::pair, i, {j}});
  out.queries = sampler.choose(store, pool, round);
  drop_closed(out.queries, round.closed);
  out.why = out.queries.empty() ? NoQuestion::closed : NoQuestion::none;
  return out;
}

}  // namespace

Chosen choose_questions(const QuerySampler& sampler, const graph::GraphStore& store, const Pool& pool,
                        const Round& round) {
  if (pool.samples.empty()) return {{}, NoQuestion::empty};
  Chosen out = choose_open(sampler, store, pool, round);
  if (!out.queries.empty()) return out;
  if (sampler.name() == "ssl") return {{}, NoQuestion::silent};
  if (round.pending.empty()) return out;
  Round alone = round;  // as if no question were pending
  alone.pending.clear();
  if (!choose_open(sampler, store, pool, alone).queries.empty()) out.why = NoQuestion::waiting;
  return out;
}

void predict_answers(const graph::GraphStore& store, const Pool& pool, std::vector<Query>& queries) {
  if (!pool.embeddings.defined()) return;
  const PoolRows rows(pool);
  std::vector<int64_t> known, places;  // rows here whose sample the graph knows
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
  // The nearest known row of this rank, then of all ranks; ties by the lower row.
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

std::string to_sentence(NoQuestion why, const QuerySampler& sampler, int64_t open, int64_t pool) {
  switch (why) {
    case NoQuestion::none:
      return "";
    case NoQuestion::silent:
      return "the sampler " + sampler.name() + " never asks (oracle.sampler)";
    case NoQuestion::empty:
      return "there is no sample to ask about";
    case NoQuestion::waiting:
      return open > 0 ? "every remaining question has been asked: " + std::to_string(open) + " are unanswered"
                      : "every remaining question is answered; the answers take effect in the next round";
    case NoQuestion::closed:
      return "every remaining pair was asked before and has no usable answer: unsure, broken, or contradicting earlier "
             "answers (pal answers show)";
    case NoQuestion::pool:
      return "the sampler " + sampler.name() + " finds no question among the " + std::to_string(pool) +
             " samples of this round; the next round draws other samples (oracle.pool)";
  }
  return "";
}

}  // namespace pal::oracle
