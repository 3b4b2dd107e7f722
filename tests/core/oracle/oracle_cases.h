// oracle_cases: data sets whose classes lie on the corners of a simplex, and decisions of single answers, for tests.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include "core/oracle/oracle.h"
#include "kernels/base/philox.h"

namespace pal::oracle {

inline std::vector<int64_t> corner_labels(int64_t n, int64_t classes, uint64_t seed = 3) {
  std::vector<int64_t> labels(static_cast<size_t>(n));
  Random random(seed, Purpose::bench);
  for (int64_t& label : labels) label = static_cast<int64_t>(random.below(static_cast<uint64_t>(classes)));
  return labels;
}

// (samples, 8): the corner of the label, with Gaussian noise.
inline at::Tensor corner_rows(const std::vector<int64_t>& samples, const std::vector<int64_t>& labels, double noise) {
  at::Tensor z = at::empty({static_cast<int64_t>(samples.size()), 8}, at::kFloat);
  for (size_t row = 0; row < samples.size(); ++row) {
    Random random(5, Purpose::bench, 0, static_cast<uint64_t>(samples[row]));
    for (int64_t k = 0; k < 8; ++k) {
      z.data_ptr<float>()[static_cast<int64_t>(row) * 8 + k] =
          static_cast<float>((labels[samples[row]] == k) + noise * random.normal());
    }
  }
  return z;
}

inline Pool whole_pool(const std::vector<int64_t>& labels, double noise) {
  Pool pool{std::vector<int64_t>(labels.size()), {}};
  std::iota(pool.samples.begin(), pool.samples.end(), int64_t{0});
  pool.embeddings = corner_rows(pool.samples, labels, noise);
  pool.inputs = pool.embeddings;
  return pool;
}

// A taxonomy of four classes: 0, 1 lie under node 4, 2, 3 under node 5; 6 is the root.
inline const std::vector<int64_t> kTree = {4, 4, 5, 5, 6, 6, -1};

// The content of queries with their predictions, to be compared.
using Asked = std::vector<std::tuple<int64_t, int64_t, std::vector<int64_t>, std::vector<graph::Relation>>>;
inline Asked asked(const std::vector<Query>& queries) {
  Asked all;
  for (const Query& q : queries)
    all.emplace_back(static_cast<int64_t>(q.kind), q.template_sample, q.members, q.expected);
  return all;
}

// Decisions of a single answer each, which a loop without a ledger inserts.
inline std::vector<Decision> as_decisions(const Query& query, const std::vector<Answer>& answers) {
  std::vector<Decision> decisions;
  for (const Answer& a : answers)
    decisions.push_back({a.query, a.i, a.j, query.kind, query.node, a.verdict, 0, a.cost, 1.0});
  return decisions;
}

}  // namespace pal::oracle
