// sampled_vic2: both forms on listed pairs and on all pairs, against their formulas; identities of the full sums; the
// mean over draws; any world size.
#include "core/loss/sampled_vic2.h"

#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <set>

#include "core/loss/vic2.h"
#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"

namespace pal::loss {
namespace {

PairSample all_pairs(int64_t rows) {
  PairSample sample;
  for (int64_t k = 0; k < rows * rows; ++k) {
    sample.i.push_back(k / rows);
    sample.j.push_back(k % rows);
    sample.probability.push_back(1);
  }
  return sample;
}

// Pairs across ranks, repeated pairs and self-pairs, with different probabilities.
PairSample some_pairs(int64_t rows, uint64_t seed) {
  PairSample sample = draw_pairs(rows, 15, PairDraw::any, seed, 0);
  for (int64_t k : {0, 1}) {
    sample.i.push_back(sample.i[k]);
    sample.j.push_back(k == 0 ? sample.i[k] : sample.j[k]);
    sample.probability.push_back(0.5);
  }
  for (size_t k = 0; k < sample.probability.size(); ++k) sample.probability[k] = 0.2 + 0.1 * static_cast<double>(k % 5);
  return sample;
}

DenseLoss dense_sampled(const SampledVic2Options& options, const graph::BatchGraph& graph, int64_t dims,
                        const PairSample& related, const PairSample& repelled) {
  return [=](const std::vector<double>& z) {
    const std::vector<double> g = graph::dense(graph, options.self_loops);
    const int64_t rows = graph.samples * graph.views;
    const auto dot = [&](int64_t i, int64_t j) { return product(&z[i * dims], &z[j * dims], dims); };
    const bool printed = options.form == SampledForm::printed;
    double sum = 0;
    for (size_t k = 0; k < related.i.size(); ++k) {
      const int64_t i = related.i[k], j = related.j[k];
      const double term = printed ? dot(i, i) + dot(j, j) - 2 * dot(i, j) : -2 * dot(i, j);
      sum += g[i * rows + j] * term / related.probability[k];
    }
    for (size_t k = 0; k < repelled.i.size(); ++k) {
      const int64_t i = repelled.i[k], j = repelled.j[k];
      sum += (dot(i, j) * dot(i, j) - (printed ? dot(i, i) + dot(j, j) : 0)) / repelled.probability[k];
    }
    return options.reduction == Reduction::sum ? sum : sum / static_cast<double>(rows * rows);
  };
}

TEST(SampledVic2, EqualsTheDenseFormulaAndItsFiniteDifferences) {
  const int64_t dims = 3;
  for (int32_t views : {1, 2}) {
    for (const auto& [name, graph] : test_graphs(6, views, graph::Signs::any)) {
      for (SampledForm form : {SampledForm::unbiased, SampledForm::printed}) {
        for (graph::SelfLoops loops : {graph::SelfLoops::on, graph::SelfLoops::off}) {
          for (int given = 0; given < 4; ++given) {
            SCOPED_TRACE(name + ", views " + std::to_string(views) + ", form " +
                         std::to_string(static_cast<int>(form)) + ", given " + std::to_string(given));
            const int64_t rows = graph.samples * views;
            const SampledVic2Options options{form, loops, given == 3 ? Reduction::sum : Reduction::mean};
            const PairSample related = given & 1 ? some_pairs(rows, 1) : all_pairs(rows);
            const PairSample repelled = given & 2 ? some_pairs(rows, 2) : all_pairs(rows);
            expect_equal_to_formula(make_sampled_vic2(options), dense_sampled(options, graph, dims, related, repelled),
                                    random_rows(rows, dims, 11), graph, [&](Batch& batch) {
                                      if (given & 1) batch.related = related;
                                      if (given & 2) batch.repelled = repelled;
                                    });
          }
        }
      }
    }
  }
}

TEST(SampledVic2, IsTheSameForAnyWorldSize) {
  for (const auto& [name, graph] : test_graphs(10, 2, graph::Signs::any)) {
    for (SampledForm form : {SampledForm::unbiased, SampledForm::printed}) {
      for (int given : {0, 3}) {
        if (given == 0 && form == SampledForm::unbiased) continue;  // computed by the sums of VIC²
        SCOPED_TRACE(name + ", form " + std::to_string(static_cast<int>(form)) + ", given " + std::to_string(given));
        expect_any_world_size(make_sampled_vic2({form, graph::SelfLoops::on, Reduction::mean}), random_rows(20, 5, 5),
                              graph, [&](Batch& batch) {
                                if (given == 0) return;
                                batch.related = some_pairs(20, 1);
                                batch.repelled = some_pairs(20, 2);
                              });
      }
    }
  }
}

TEST(SampledVic2, FullSumsAreVic2AndItsIdentity) {
  const auto graph = test_graphs(6, 2, graph::Signs::any)[3].second;
  const at::Tensor z = random_rows(12, 4, 2);
  const auto value = [&](const Criterion& c) { return run_sliced(c, z, graph, {0, 6}).value; };
  const double vic2 =
      value(make_vic2({graph::SelfLoops::on, Reduction::sum})) - squared_norm(graph, graph::SelfLoops::on);
  EXPECT_NEAR(value(make_sampled_vic2({SampledForm::unbiased, graph::SelfLoops::on, Reduction::sum})), vic2,
              1e-10 * std::abs(vic2));
  // printed − (‖ZZᵀ − G‖² − ‖G‖²) = 2 Tr((Deg − R) ZZᵀ)
  const std::vector<double> degree = degrees(graph, graph::SelfLoops::on, graph::Weights::all), rows = flat(z);
  double identity = 0;
  for (int64_t i = 0; i < 12; ++i) identity += 2 * (degree[i % 6] - 12) * product(&rows[i * 4], &rows[i * 4], 4);
  EXPECT_NEAR(value(make_sampled_vic2({SampledForm::printed, graph::SelfLoops::on, Reduction::sum})) - vic2, identity,
              1e-10 * std::abs(identity));
}

// The mean over draws equals the full sum within standard errors. The printed form of the same draws does not.
TEST(SampledVic2, DrawsAreUnbiased) {
  const auto graph = test_graphs(5, 2, graph::Signs::any)[2].second;
  const at::Tensor z = random_rows(10, 3, 7);
  const auto value = [&](SampledForm form, const Prepare& prepare) {
    return run_sliced(make_sampled_vic2({form, graph::SelfLoops::on, Reduction::mean}), z, graph, {0, 5}, prepare)
        .value;
  };
  for (PairDraw draw : {PairDraw::any, PairDraw::halves}) {
    double sum = 0, square = 0;
    const int draws = 400;
    for (uint64_t step = 0; step < draws; ++step) {
      const double v = value(SampledForm::unbiased, [&](Batch& batch) {
        batch.related = draw_pairs(10, 40, PairDraw::any, 1, step);
        batch.repelled = draw_pairs(10, 30, draw, 2, step);
      });
      sum += v;
      square += v * v;
    }
    const double mean = sum / draws, error = std::sqrt((square / draws - mean * mean) / draws);
    EXPECT_NEAR(mean, value(SampledForm::unbiased, {}), 4 * error);
    EXPECT_GT(std::abs(mean - value(SampledForm::printed, {})), 10 * error);
  }
}

TEST(SampledVic2, HalvesShareNoRow) {
  const PairSample sample = draw_pairs(11, 200, PairDraw::halves, 3, 9);
  std::set<int64_t> left, right;
  for (int k = 0; k < 200; ++k) {
    left.insert(sample.i[k]);
    right.insert(sample.j[k]);
  }
  for (int64_t i : left) EXPECT_EQ(right.count(i), 0u);
  EXPECT_EQ(left.size() + right.size(), 11u);
  EXPECT_EQ(sample.i.size(), 211u) << "and every row with itself";
  EXPECT_NE(draw_pairs(11, 200, PairDraw::halves, 3, 10).i, sample.i);
  EXPECT_THROW(draw_pairs(1, 3, PairDraw::any, 0, 0), Error);
}

TEST(SampledVic2, BadInputAndConfig) {
  const auto graph = test_graphs(4, 2, graph::Signs::any)[0].second;
  const at::Tensor z = random_rows(8, 3, 1);
  const auto value = [&](const Criterion& c, const Prepare& prepare) {
    return run_sliced(c, z, graph, {0, 4}, prepare).value;
  };
  const Criterion made =
      make_criterion(spec_of({"loss.kind=sampled_vic2", "loss.form=printed", "graph.self_loops=off"}).loss);
  EXPECT_EQ(value(made, {}),
            value(make_sampled_vic2({SampledForm::printed, graph::SelfLoops::off, Reduction::mean}), {}));
  EXPECT_THROW(value(made, [](Batch& batch) { batch.repelled = PairSample{{0}, {8}, {1}}; }), Error);
  EXPECT_THROW(value(made, [](Batch& batch) { batch.related = PairSample{{0}, {1}, {0}}; }), Error);
}

}  // namespace
}  // namespace pal::loss
