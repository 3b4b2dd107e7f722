// nearest_list: the k nearest so far, best first, and their order.
#pragma once

#include <limits>
#include <string>

#include "kernels/base/check.h"
#include "kernels/nearest.h"

namespace pal::kernels::cpu {

// Scores times their sign: smaller is nearer.
inline double sign_of(Metric metric) { return metric == Metric::cosine ? -1.0 : 1.0; }
inline double worst_score(Metric metric) { return sign_of(metric) * std::numeric_limits<double>::infinity(); }

inline bool nearer(double a_score, int64_t a_id, double b_score, int64_t b_id, double sign) {
  if (b_id < 0) return true;
  return sign * a_score < sign * b_score || (a_score == b_score && a_id < b_id);
}

// Puts a candidate into a list of k, best first.
inline void insert(int64_t* ids, double* scores, int64_t k, int64_t id, double score, double sign) {
  int64_t at = k;
  for (; at > 0 && nearer(score, id, scores[at - 1], ids[at - 1], sign); --at) {
    if (at == k) continue;
    ids[at] = ids[at - 1];
    scores[at] = scores[at - 1];
  }
  if (at == k) return;
  ids[at] = id;
  scores[at] = score;
}

inline void check_out(const char* op, const NearestOut& out, int64_t queries) {
  const std::string name = op;
  PAL_CHECK(out.ids.cols >= 1 && out.ids.cols <= kMaxNearest, name + ": k", out.ids.cols,
            "give 1 to " + std::to_string(kMaxNearest));
  check_matrix((name + ": ids of out").c_str(), out.ids, queries, out.ids.cols);
  check_matrix((name + ": scores of out").c_str(), out.scores, queries, out.ids.cols);
}

}  // namespace pal::kernels::cpu
