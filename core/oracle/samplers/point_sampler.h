// point_sampler: the common part of samplers that choose points, or pairs, in an order of their own.
//
// A point is asked against the class it most likely belongs to, of those that are still open for it (class_model.h);
//   after a no it is asked against the next likely class in the next round, before any other point: the known samples
//   are then a representative part of those asked, hard ones included. Points of one class share grids of up to
//   `members`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/oracle/samplers/candidates.h"
#include "core/oracle/samplers/class_model.h"

namespace pal::oracle {

struct PointOptions {
  int64_t members = 10;
  Templates templates = Templates::given;
  ModelKind model = ModelKind::classifier;
};

// Points, the first to be asked first: at least `count` of the free ones where there are as many. Each once.
using PointOrder = std::function<std::vector<int64_t>(const Candidates& board, const ClassModel& model, int64_t count)>;
std::unique_ptr<QuerySampler> make_point_sampler(const std::string& name, const PointOptions& options,
                                                 PointOrder order);

// Pairs of points, without classes, the first to be asked first. Pairs that may not be asked are dropped afterwards.
struct PointPair {
  int64_t a = 0, b = 0;
};
using PairOrder = std::function<std::vector<PointPair>(const Candidates& board, int64_t count)>;
std::unique_ptr<QuerySampler> make_pair_sampler(const std::string& name, PoolNeeds needs, PairOrder order);

// Asks about these points, up to count questions, as above.
std::vector<Query> ask_points(Candidates& board, const std::vector<int64_t>& points, const std::vector<Belief>& beliefs,
                              int64_t members, int64_t count);

// Functions for orders:

// The free points that a class refused, by their draws, then the others in this order.
std::vector<int64_t> refused_first(const Candidates& board, const std::vector<int64_t>& order);
// The free points, at most `most` of them: those with the smallest draws, ascending.
std::vector<int64_t> free_points(const Candidates& board, int64_t most);
// The n points of the highest score, best first, ties by the lower point. scores: one for each of `points`.
std::vector<int64_t> best_points(const std::vector<int64_t>& points, const std::vector<double>& scores, int64_t n);
// Collective. Of the best 4 · count the first, then always the one least similar to those taken: a batch that does not
// repeat itself.
std::vector<int64_t> best_and_diverse(const Candidates& board, const std::vector<int64_t>& points,
                                      const std::vector<double>& scores, int64_t count);
// Collective. The numbers of `count` rows, each the least similar (cosine) to all before it and to what is covered;
// ties by the lower number. rows (n, D): those here; numbers (n): distinct over all ranks, ascending; covered (n): the
// similarity to what is covered, or empty; then the row of the lowest number is taken first.
std::vector<int64_t> farthest_first(const at::Tensor& rows, const std::vector<int64_t>& numbers,
                                    std::vector<float> covered, int64_t count, comm::Comm& comm);

}  // namespace pal::oracle
