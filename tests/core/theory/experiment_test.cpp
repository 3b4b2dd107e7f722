// experiment: the claims of the published figures with fixed seeds, equal results for any threads and ranks, bad input.
#include "core/theory/experiment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/theory/query_game.h"
#include "kernels/base/error.h"
#include "tests/core/comm/thread_comm.h"

namespace pal::theory {
namespace {

ExperimentResult run_trials(const std::string& name, int64_t trials,
                            const std::function<void(ExperimentOptions&)>& change = {}) {
  const FigureSpec& f = figure(name);
  ExperimentOptions o = with_dataset(f, ToyKind::circles);
  o.trials = trials;
  o.threads = 2;
  if (change) change(o);
  return run_figure(f, o, *comm::make_local_comm());
}

double mean_at(const CurveStatistics& s, double x) {
  for (size_t k = 0; k < s.x.size(); ++k) {
    if (std::abs(s.x[k] - x) < 1e-9) return s.mean[k];
  }
  ADD_FAILURE() << "no point at " << x;
  return NAN;
}

TEST(Experiment, ActiveIsBelowPassive) {
  const ExperimentResult r = run_trials("active", 10);
  const CurveStatistics &active = r.error[0], &passive = r.error[1];
  EXPECT_EQ(active.series, "active");
  EXPECT_EQ(passive.series, "passive");
  double gap = 0;
  int points = 0;
  for (size_t k = 0; k < active.x.size(); ++k) {
    if (active.x[k] >= 50) {
      EXPECT_LT(active.mean[k], passive.mean[k]) << active.x[k] << " queries";
    }
    if (active.x[k] < 100 || active.x[k] > 300) continue;
    gap += passive.mean[k] - active.mean[k];
    ++points;
    EXPECT_GT(passive.mean[k] - active.mean[k], 0.1)
        << active.x[k] << " queries";  // ten trials: a little below .15 at an end
  }
  EXPECT_GT(gap / points, 0.15);
  EXPECT_LT(std::abs(mean_at(active, 400) - mean_at(active, 790)), 0.01);  // flat
  EXPECT_GT(mean_at(passive, 400) - mean_at(passive, 790), 0.05);
}

TEST(Experiment, NegativesRaiseTheErrorFirstAndLowerItLater) {
  const ExperimentResult r = run_trials("contrastive", 6, [](ExperimentOptions& o) { o.steps = 26; });
  double early = 0, late = 0;
  for (double x = 50; x <= 120; x += 10) early += mean_at(r.error[0], x) - mean_at(r.error[1], x);
  for (double x = 180; x <= 250; x += 10) late += mean_at(r.error[0], x) - mean_at(r.error[1], x);
  EXPECT_GT(early / 8, 0.01);
  EXPECT_LT(late / 8, -0.01);
}

TEST(Experiment, ASmallAlphaIsSoonBelowSsl) {
  const ExperimentResult r = run_trials("interpolation", 8, [](ExperimentOptions& o) {
    o.steps = 26;
    o.orders = 2;
  });
  const double ssl = mean_at(r.error[0], 0);
  for (int a : {0, 1}) {
    double highest = 0;
    for (size_t k = 1; k < 12; ++k) highest = std::max(highest, r.error[a].mean[k]);
    EXPECT_GT(highest, ssl + 0.02) << r.error[a].series;
  }
  EXPECT_EQ(r.error[1].series, "alpha=0.001");
  EXPECT_LT(mean_at(r.error[1], 25), ssl);
  EXPECT_GT(mean_at(r.error[0], 14), mean_at(r.error[1], 14));
}

TEST(Experiment, TheErrorFollowsTheConnectedComponents) {
  const ExperimentResult r = run_trials("missing", 20);
  const std::vector<double>&e = r.error[0].mean, &c = r.also[0].mean;
  EXPECT_NEAR(c.front(), 4, 0.1);
  EXPECT_NEAR(c.back(), 100, 1e-12);  // p = 1: no entry is left
  double se = 0, sc = 0, see = 0, scc = 0, sec = 0;
  const size_t n = e.size() - 1;  // the last graph has no entry
  for (size_t k = 0; k < n; ++k) {
    se += e[k], sc += c[k], see += e[k] * e[k], scc += c[k] * c[k], sec += e[k] * c[k];
  }
  const double m = static_cast<double>(n);
  EXPECT_GT((sec - se * sc / m) / std::sqrt((see - se * se / m) * (scc - sc * sc / m)), 0.9);
}

TEST(Experiment, TheErrorGrowsNearLinearlyWithNoise) {
  const ExperimentResult r = run_trials("noise", 6, [](ExperimentOptions& o) { o.batch = 30, o.steps = 10; });
  const CurveStatistics& s = r.error[0];
  double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (size_t k = 0; k < s.x.size(); ++k)
    sx += s.x[k], sy += s.mean[k], sxx += s.x[k] * s.x[k], sxy += s.x[k] * s.mean[k], syy += s.mean[k] * s.mean[k];
  const double m = static_cast<double>(s.x.size());
  EXPECT_GT((sxy - sx * sy / m) / std::sqrt((sxx - sx * sx / m) * (syy - sy * sy / m)), 0.97);
  EXPECT_GT(s.mean.back() - s.mean.front(), 0.2);
}

TEST(Experiment, IsTheSameForAnyThreadsAndRanks) {
  for (const FigureSpec& f : figures()) {
    ExperimentOptions o = with_dataset(f, ToyKind::mixture);
    o.trials = 5;
    o.n = 30;
    o.test = 40;
    o.steps = std::min<int64_t>(o.steps, 3);
    o.seed = 9;
    o.network_steps = 20;
    const ExperimentResult one = run_figure(f, o, *comm::make_local_comm());
    o.threads = 3;
    const auto same = [&](const ExperimentResult& r) {
      for (size_t s = 0; s < one.error.size(); ++s) {
        EXPECT_EQ(r.error[s].mean, one.error[s].mean) << f.name;
        EXPECT_EQ(r.mse[s].std, one.mse[s].std) << f.name;
      }
    };
    same(run_figure(f, o, *comm::make_local_comm()));
    o.threads = 1;
    for (int ranks : {2, 3}) comm::run_ranks(ranks, [&](comm::Comm& comm) { same(run_figure(f, o, comm)); });
    o.seed = 10;
    EXPECT_NE(run_figure(f, o, *comm::make_local_comm()).mse[0].mean, one.mse[0].mean) << f.name;
  }
}

TEST(Experiment, RefusesInvalidSizes) {
  const auto refused = [](const char* name, const std::function<void(ExperimentOptions&)>& change) {
    ExperimentOptions o = with_dataset(figure(name), ToyKind::circles);
    change(o);
    EXPECT_THROW(check_experiment(figure(name), o), Error);
  };
  refused("active", [](auto& o) { o.n = 0; });
  refused("active", [](auto& o) { o.n = 4; });  // narrower than the representation
  refused("active", [](auto& o) { o.trials = 0; });
  refused("active", [](auto& o) { o.kernel.sigma = 0; });
  refused("interpolation", [](auto& o) { o.alphas = {1.5}; });
  refused("interpolation", [](auto& o) { o.steps = 201; });
  refused("noise", [](auto& o) { o.steps = 31; });
  EXPECT_THROW(figure("actve"), Error);
}

TEST(Experiment, TheCaptchaGameInfersOnlyTrueRelations) {
  Random random(3, Purpose::bench);
  std::vector<int> labels(40);
  for (int& y : labels) y = static_cast<int>(random.below(4));
  CaptchaGame game(labels, 4);
  Matrix g(40, 40);
  int64_t before = 0;
  for (int step = 0; step < 60; ++step) {
    game.answer(game.choose({}, 5, random));
    EXPECT_GE(game.entries(), before);
    before = game.entries();
    game.graph(g, -1);
    for (int64_t i = 0; i < 40; ++i) {
      for (int64_t j = 0; j < 40; ++j) {
        EXPECT_EQ(g(i, j), g(j, i));
        if (g(i, j) != 0) {
          EXPECT_EQ(g(i, j) > 0, labels[i] == labels[j]);
        }
      }
    }
  }
  EXPECT_EQ(game.entries(), 40 * 39);   // all of it
  EXPECT_LE(game.questions(), 40 * 4);  // with at most N·C questions
}

TEST(Experiment, ASmallNetworkLearnsTheFullGraphAsTheClosedFormDoes) {
  const ExperimentResult r =
      run_trials("network", 2, [](ExperimentOptions& o) { o.steps = 2, o.batch = 100, o.n = 100; });
  EXPECT_LT(r.error[1].mean[1], 0.25);                      // all labels known
  EXPECT_GT(r.error[1].mean[0], r.error[1].mean[1] + 0.2);  // none known
  EXPECT_LT(r.error[0].mean[1], 0.25);
}

TEST(Experiment, SnapshotsAreDrawn) {
  ExperimentOptions o = with_dataset(figure("active"), ToyKind::circles);
  o.n = 30;
  o.steps = 9;
  const SnapshotPictures p = draw_snapshots(o);
  EXPECT_NE(p.representation.find("</svg>"), std::string::npos);
  EXPECT_NE(p.graph.find("80 queries"), std::string::npos);
}

}  // namespace
}  // namespace pal::theory
