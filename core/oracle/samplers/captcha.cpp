// captcha: "which of these are the same as this one?", asked for the class of which least is known; and outliers:
// "which of these do not belong?".
//
// Classes and templates: candidates.h. A grid asks up to `members` points against the template of the class with the
//   fewest known members for its prior (those asked in this round count as known, so that classes take turns and a stop
//   at any time leaves them balanced).
// Guide::embeddings  the points whose nearest class center is this one come first, the nearest first; then the others.
// Guide::classifier  the points that a classifier on the known members predicts as this class come first, in the order
//   of their draws (the nearest ones add little); then the others, the most likely first. For many classes: a grid then
//   holds mostly its own class.
// With a guide, a point that does not belong to its likeliest class is asked against the next one before any other
//   point: the known members are then a representative part of the class, not only its easy samples.
// Guide::none, and a class without an embedded member: in the order of the draws.
// Outliers ask only the points predicted as the class, the most likely first, and fewer grids where there are none.
// Center::embeddings, Center::input: the template is the known member in the pool nearest (cosine) to the mean of the
//   class, by embedding or by Pool::inputs; not without deduction, where an answer holds for its own template alone.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/oracle/samplers/candidates.h"
#include "core/oracle/samplers/class_model.h"
#include "core/oracle/samplers/exact_sums.h"
#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

// Collective. The pool's inputs in the order of the rows here, scaled so that the longest on any rank has length 1.
at::Tensor inputs_here(const Candidates& board, const Pool& pool) {
  const auto n = static_cast<int64_t>(board.pool().rows_here().size());
  PAL_CHECK(pool.inputs.defined() && pool.inputs.size(0) == n, "inputs of the pool",
            pool.inputs.defined() ? pool.inputs.size(0) : 0,
            "oracle.center=input needs images of one size; use oracle.center=embeddings");
  const at::Tensor rows = board.pool().in_order(pool.inputs);
  at::Tensor longest = at::full({1}, n == 0 ? 0.0 : rows.norm(2, 1).max().item<double>(), at::kDouble);
  board.pool().comm().all_reduce(longest, comm::ReduceOp::max);
  return rows / std::max(longest.item<double>(), 1e-20);
}

// Collective. rows (rows of the pool here, D): embeddings or inputs. The template of every class with a known member in
// the pool becomes the member nearest (cosine) to the mean of its members there; ties by the lower sample.
void move_templates(Candidates& board, const at::Tensor& rows) {
  const PoolRows& pool = board.pool();
  const int64_t dims = rows.size(1);
  const float* x = rows.const_data_ptr<float>();
  std::vector<int64_t> class_here;
  for (int64_t row : pool.rows_here()) class_here.push_back(board.row_class()[row]);
  const auto classes = static_cast<int64_t>(board.classes().size());
  const ExactSums sums(rows, class_here, classes, pool.comm());
  std::vector<double> cosine(board.row_class().size(), 0);  // to the mean, times the length of the sum
  for (size_t k = 0; k < class_here.size(); ++k) {
    if (class_here[k] < 0) continue;
    double dot = 0, square = 1e-30;
    for (int64_t d = 0; d < dims; ++d) {
      const double v = x[static_cast<int64_t>(k) * dims + d];
      dot += sums.sum(class_here[k], d) * v;
      square += v * v;
    }
    cosine[pool.rows_here()[k]] = dot / std::sqrt(square);
  }
  pool.complete(cosine);
  std::vector<int64_t> best(static_cast<size_t>(classes), -1);
  for (size_t row = 0; row < cosine.size(); ++row) {
    const int64_t c = board.row_class()[row];
    if (c >= 0 && (best[c] < 0 || cosine[row] > cosine[best[c]])) best[c] = static_cast<int64_t>(row);
  }
  for (int64_t c = 0; c < classes; ++c) {
    if (best[c] >= 0) board.set_template(c, pool.samples()[best[c]]);
  }
}

// The points that a class may be asked about, and how many members of it are known.
struct Demand {
  double known = 0;  // members, plus what this round and pending ones ask, for its prior
  bool exhausted = false;
  std::vector<int64_t> predicted;  // points predicted as this class, the first to be asked last
  std::vector<int64_t> others;     // then these, the first to be asked first, from `next` on; −1: not computed yet
  int64_t next = -1;
};

struct CaptchaOptions {
  int64_t members;
  Templates templates;
  Guide guide;
  QueryKind kind;  // captcha or outliers
  Center center;
  std::vector<double> priors;  // by label; empty: equal; a label beyond the list has the mean one
};

class Captcha final : public QuerySampler {
 public:
  explicit Captcha(const CaptchaOptions& options) : options_(options) {}

  std::string name() const override { return to_string(options_.kind); }
  PoolNeeds needs() const override {
    if (options_.center == Center::input) return PoolNeeds::inputs;
    return options_.guide != Guide::none || options_.center == Center::embeddings ? PoolNeeds::embeddings
                                                                                  : PoolNeeds::samples;
  }
  RefusedOrder refused_order() const override { return finishes() ? RefusedOrder::first : RefusedOrder::drawn; }

  std::vector<Query> choose(const graph::GraphStore& store, const Pool& pool, const Round& round) const override {
    if (pool.samples.empty() || round.questions <= 0) return {};
    Candidates board(store, pool, round, options_.templates);
    if (options_.center != Center::off && store.deduction() == graph::Deduction::on) {
      move_templates(board, options_.center == Center::input ? inputs_here(board, pool) : board.pool().here());
    }
    const auto classes = static_cast<int64_t>(board.classes().size());
    std::optional<ClassModel> model;
    if (options_.guide != Guide::none && pool.embeddings.defined()) {
      model.emplace(board.pool(), board.row_class(), classes,
                    options_.guide == Guide::classifier ? ModelKind::classifier : ModelKind::centers);
    }
    std::vector<Demand> demands = make_demands(board, model);

    std::vector<Query> queries;
    for (int64_t left = round.questions; left > 0;) {
      const int64_t c = least_known(demands);
      if (c < 0) break;
      Query query{.kind = options_.kind, .template_sample = board.classes()[c].sample};
      query.members = grid(board, model, c, demands[c], std::min(left, options_.members), left);
      demands[c].exhausted = query.members.empty();
      if (query.members.empty()) continue;
      demands[c].known += static_cast<double>(query.members.size()) / prior(board.classes()[c].label);
      left -= static_cast<int64_t>(query.members.size());
      queries.push_back(std::move(query));
    }
    return queries;
  }

 private:
  double prior(int64_t label) const {
    if (options_.priors.empty()) return 1;
    const double mean = std::accumulate(options_.priors.begin(), options_.priors.end(), 0.0) /
                        static_cast<double>(options_.priors.size());
    const bool given = label >= 0 && label < static_cast<int64_t>(options_.priors.size());
    return given ? options_.priors[label] : mean;
  }

  std::vector<Demand> make_demands(const Candidates& board, const std::optional<ClassModel>& model) const {
    std::vector<Demand> demands(board.classes().size());
    for (size_t c = 0; c < demands.size(); ++c)
      demands[c].known = static_cast<double>(board.classes()[c].known) / prior(board.classes()[c].label);
    if (!model) return demands;
    const std::vector<int64_t> points = board.all_points();
    const std::vector<Belief> all = beliefs(board, *model, points);
    for (int64_t p : points) {
      if (all[p].first >= 0) demands[all[p].first].predicted.push_back(p);
    }
    const bool nearest_first = options_.guide == Guide::embeddings || options_.kind == QueryKind::outliers;
    std::vector<char> begun(points.size(), 0);
    if (finishes()) {
      for (int64_t p : points) begun[p] = is_refused(board.store(), board.points()[p].sample);
    }
    for (size_t c = 0; c < demands.size(); ++c) {
      std::sort(demands[c].predicted.begin(), demands[c].predicted.end(), [&](int64_t a, int64_t b) {
        if (begun[a] != begun[b]) return begun[a] < begun[b];
        if (!nearest_first) return std::pair(board.points()[a].draw, a) > std::pair(board.points()[b].draw, b);
        return std::pair(all[a].score, -a) < std::pair(all[b].score, -b);
      });
    }
    return demands;
  }

  static int64_t least_known(const std::vector<Demand>& demands) {
    int64_t least = -1;
    for (size_t c = 0; c < demands.size(); ++c) {
      if (!demands[c].exhausted && (least < 0 || demands[c].known < demands[least].known))
        least = static_cast<int64_t>(c);
    }
    return least;
  }

  // Refused points are asked again until their class is known. Outliers ask only about points predicted as the class.
  bool finishes() const { return options_.guide != Guide::none && options_.kind == QueryKind::captcha; }

  // Samples of up to `count` points, taken; `left` is what the round may still ask.
  std::vector<int64_t> grid(Candidates& board, const std::optional<ClassModel>& model, int64_t c, Demand& demand,
                            int64_t count, int64_t left) const {
    std::vector<int64_t> samples;
    const auto ask = [&](int64_t point) {
      if (!board.open(point, c)) return;
      board.take(point);
      samples.push_back(board.points()[point].sample);
    };
    const auto full = [&] { return static_cast<int64_t>(samples.size()) == count; };
    while (!demand.predicted.empty() && !full()) {
      const int64_t point = demand.predicted.back();
      demand.predicted.pop_back();
      ask(point);
    }
    if (full() || options_.kind == QueryKind::outliers) return samples;
    // The others: by the model, or by their draws. What is not open now stays so in this round, so `next` only grows.
    const bool guided = model && model->has(c);
    if (guided && demand.next < 0) demand.others = likely_points(board, *model, c, left);
    const std::vector<int64_t>& others = guided ? demand.others : board.by_draw();
    for (demand.next = std::max<int64_t>(demand.next, 0); demand.next < static_cast<int64_t>(others.size()) && !full();
         ++demand.next)
      ask(others[demand.next]);
    return samples;
  }

  // The `most` open points likeliest to be of class c: the round asks no more than these.
  static std::vector<int64_t> likely_points(const Candidates& board, const ClassModel& model, int64_t c, int64_t most) {
    std::vector<int64_t> open;
    for (int64_t p = 0; p < board.count(); ++p) {
      if (board.open(p, c)) open.push_back(p);
    }
    const std::vector<int64_t> here = board.points_here(open);
    const std::vector<float> scores = model.scores_of(board.rows_here(open, here), c);
    std::vector<float> likely(open.size(), 0);
    for (size_t k = 0; k < here.size(); ++k) likely[here[k]] = scores[k];
    board.pool().complete(likely);
    return best_points(open, {likely.begin(), likely.end()}, most);
  }

  const CaptchaOptions options_;
};

std::unique_ptr<QuerySampler> make_captcha(const CaptchaOptions& options) {
  PAL_CHECK(options.members >= 1, "oracle.members", options.members, "give at least 1");
  PAL_CHECK(options.kind != QueryKind::outliers || options.guide != Guide::none,
            "oracle.sampler=outliers does not work with oracle.class_guess={}", "none",
            "set embeddings or classifier: a question shows samples that are predicted as one class");
  for (double prior : options.priors)
    PAL_CHECK(prior > 0, "oracle.priors holds {}", prior, "give numbers above 0, one for each class");
  return std::make_unique<Captcha>(options);
}

}  // namespace

std::unique_ptr<QuerySampler> captcha_sampler(const OracleSpec& s, const std::vector<int64_t>&) {
  return make_captcha({s.members, s.templates, s.class_guess, QueryKind::captcha, s.center, s.priors});
}

std::unique_ptr<QuerySampler> outliers_sampler(const OracleSpec& s, const std::vector<int64_t>&) {
  return make_captcha({s.outliers, s.templates, s.class_guess, QueryKind::outliers, s.center, s.priors});
}

}  // namespace pal::oracle
