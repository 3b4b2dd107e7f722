// pool_rows: the embeddings of a round's pool, on the ranks that computed them.
//
// Every rank knows all samples of the pool; each holds the rows of some of them. Values of a row are computed by the
//   rank that holds it, and complete() makes them known to all ranks.
// Width:      rows wider than kWidest columns are folded onto so many, each column with a sign of its own: products of
//             rows change by about 1/√kWidest of their lengths (0.02), and a round costs what it costs at that width.
//             Reference: Charikar et al., "Finding frequent items in data streams" (2002), with equal buckets.
// Order:      a row's number is its sample's place by id, for any order of the pool and any rank that holds it.
// Collective: gather and complete, called in the same order by all ranks of the pool.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/comm.h"
#include "core/oracle/oracle.h"

namespace pal::oracle {

class PoolRows {
 public:
  static constexpr int64_t kWidest = 2048;

  explicit PoolRows(const Pool& pool);

  const std::vector<int64_t>& samples() const { return samples_; }  // of all rows, ascending
  int64_t count() const { return static_cast<int64_t>(samples_.size()); }
  bool embedded() const { return here_.defined(); }
  int64_t dims() const { return here_.size(1); }

  const at::Tensor& here() const { return here_; }  // (rows here, D) float, unit length, by ascending row
  const std::vector<int64_t>& rows_here() const { return rows_here_; }
  int64_t place(int64_t row) const { return place_[static_cast<size_t>(row)]; }  // in here(); −1: on another rank
  // Something else that the pool has for each of its rows here (Pool::inputs), in the order of here(), as float.
  at::Tensor in_order(const at::Tensor& of_pool) const;

  // (rows, D), on every rank.
  at::Tensor gather(const std::vector<int64_t>& rows) const;
  // Each rank has filled in what belongs to its rows and left 0 elsewhere: exact, since only one of the terms is not 0.
  void complete(at::Tensor values) const { comm().all_reduce(values); }
  void complete(std::vector<double>& values) const;
  void complete(std::vector<float>& values) const;
  void complete(std::vector<int64_t>& values) const;

  comm::Comm& comm() const { return alone_ ? *alone_ : *comm_; }

 private:
  std::vector<int64_t> samples_, rows_here_, place_;
  std::vector<int64_t> order_;  // of the pool's own rows here, to ascending rows; empty: they ascend already
  at::Tensor here_;
  std::unique_ptr<comm::Comm> alone_;
  comm::Comm* comm_ = nullptr;
};

}  // namespace pal::oracle
