// candidates: the input of a choice: the points of the pool that may be asked about, the classes they may belong to,
// and the pairs that must not be asked: those known, inferred, pending, or chosen before in this round.
//
// A point is a component with a sample in the pool that is not yet a class; its smallest sample there represents it. It
//   is asked about at most once in a round: one of two answers could follow from the other. Without deduction every
//   sample is a point, and its class is that of the template that most of its answers name.
// A class has a template. given: the classes of the labels the store was started with. discover: in addition every
//   component, and then every sample, known to differ from all templates before it (larger components first, ties by
//   id); with nothing known the first sample of the pool is the first template.
// Order: by sample id, for any order of the pool.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/oracle/oracle_spec.h"
#include "core/oracle/samplers/pool_rows.h"

namespace pal::oracle {

struct Point {
  int64_t sample = 0;
  int64_t unit = 0;   // its component; the sample itself without deduction
  int64_t row = 0;    // of the pool (PoolRows)
  uint64_t draw = 0;  // (seed, Purpose::oracle, round, sample): its random order
};

struct PointClass {
  int64_t sample = 0;  // the template
  int64_t unit = 0;
  int64_t known = 0;   // members, plus what pending questions ask
  int64_t label = -1;  // as given, −1 discovered
};

class Candidates {
 public:
  Candidates(const graph::GraphStore& store, const Pool& pool, const Round& round, Templates templates);

  const graph::GraphStore& store() const { return store_; }
  const Round& round() const { return round_; }
  const std::vector<Point>& points() const { return points_; }
  const std::vector<PointClass>& classes() const { return classes_; }
  int64_t count() const { return static_cast<int64_t>(points_.size()); }

  const PoolRows& pool() const { return pool_; }
  const std::vector<int64_t>& row_class() const { return row_class_; }  // of every row of the pool, −1: none
  at::Tensor point_rows(const std::vector<int64_t>& points) const;      // (n, D), on every rank. Collective.
  // Which of these points have their rows here: indices of `points`, and the rows (n, D).
  std::vector<int64_t> points_here(const std::vector<int64_t>& points) const;
  at::Tensor rows_here(const std::vector<int64_t>& points, const std::vector<int64_t>& indices) const;
  std::vector<int64_t> all_points() const;      // 0 … count − 1
  const std::vector<int64_t>& by_draw() const;  // all points by their draws; sorted at the first call

  int64_t unit(int64_t sample) const {
    return store_.deduction() == graph::Deduction::on ? store_.component(sample) : sample;
  }
  // Samples whose relations an answer about the point adds.
  int64_t unit_size(int64_t point) const {
    return store_.deduction() == graph::Deduction::on ? store_.component_size(points_[point].sample) : 1;
  }
  // Classes that the point is known not to belong to, ascending.
  std::vector<int64_t> excluded(int64_t point) const;
  // Whether nothing is known, pending or asked in this round about the point (and the class).
  bool free(int64_t point) const { return !taken_.count(points_[point].unit); }
  bool open(int64_t point, int64_t c) const;
  void take(int64_t point) { taken_.insert(points_[point].unit); }
  // By a coarse answer: the point of this sample, if there is one, does not belong to the class.
  void rule_out(int64_t sample, int64_t c) { ruled_out_[unit(sample)].insert(c); }
  void set_template(int64_t c, int64_t sample) { classes_[c].sample = sample; }

 private:
  void find_classes(Templates templates);
  void classify_rows();

  const graph::GraphStore& store_;
  const Round& round_;
  const PoolRows pool_;
  std::vector<int64_t> row_class_;
  std::vector<Point> points_;
  mutable std::vector<int64_t> by_draw_;
  std::vector<PointClass> classes_;
  std::unordered_map<int64_t, int64_t> class_of_unit_;
  std::unordered_map<int64_t, int64_t> class_of_label_;
  std::unordered_set<int64_t> taken_;                         // units
  std::unordered_map<int64_t, std::set<int64_t>> ruled_out_;  // unit → classes
};

}  // namespace pal::oracle
