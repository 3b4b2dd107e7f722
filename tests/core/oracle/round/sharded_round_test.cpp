// sharded_round: the rows of a pool are on several ranks, in any order; the questions are those of one process.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "core/config/config.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/round/pool.h"
#include "core/oracle/samplers/exact_sums.h"
#include "core/oracle/samplers/pool_rows.h"
#include "core/oracle/samplers/samplers.h"
#include "tests/core/comm/thread_comm.h"
#include "tests/core/oracle/oracle_cases.h"
#include "tests/core/spec_of.h"

namespace pal::oracle {
namespace {

constexpr int64_t kPlayed = 400;

// The part of a pool on this rank: the places [bounds[r], bounds[r + 1]).
Pool share_of(const Pool& whole, const std::vector<int64_t>& bounds, comm::Comm& comm) {
  const int64_t first = bounds[comm.rank()], rows = bounds[comm.rank() + 1] - first;
  Pool own{whole.samples, whole.embeddings.narrow(0, first, rows).contiguous()};
  if (whole.inputs.defined()) own.inputs = whole.inputs.narrow(0, first, rows).contiguous();
  own.first = first;
  own.comm = &comm;
  return own;
}

Pool shuffled(const Pool& pool) {
  const auto n = static_cast<int64_t>(pool.samples.size());
  std::vector<int64_t> order;
  for (int64_t k = 0; k < n; ++k) order.push_back((k * 37 + 11) % n);  // n is no multiple of 37
  Pool out;
  for (int64_t k : order) out.samples.push_back(pool.samples[k]);
  out.embeddings = pool.embeddings.index_select(0, at::tensor(order, at::kLong));
  if (pool.inputs.defined()) out.inputs = pool.inputs.index_select(0, at::tensor(order, at::kLong));
  return out;
}

// Equal parts, one rank with nearly all, one rank without a row.
const std::vector<std::vector<int64_t>> kBounds = {{0, 125, 250}, {0, 1, 249, 250}, {0, 0, 130, 250}};

struct PlayedGame {  // a store in which something is known
  PlayedGame() : labels(corner_labels(kPlayed, 4)), store(kPlayed) {
    std::vector<int64_t> told = draw_template_labels(labels, 2);
    for (int64_t i = 0; i < kPlayed; i += 8) told[i] = labels[i];
    store.set_labels(told);
    for (int64_t k = 0; k < 200; ++k) {  // few that differ: those are asked about first, by all samplers alike
      const int64_t i = (k * 7) % kPlayed, j = (k * 13 + 5) % kPlayed;
      const graph::Relation relation = labels[i] == labels[j] ? graph::Relation::same : graph::Relation::different;
      if (i != j && store.relation(i, j) == graph::Relation::unknown && (relation == graph::Relation::same || k < 6))
        store.insert(i, j, relation);
    }
    pool = {draw_pool(store, 250, 9, 4), {}};
    pool.embeddings = corner_rows(pool.samples, labels, 0.5);
    pool.inputs = corner_rows(pool.samples, labels, 0.8) *
                  at::exp(at::arange(250, at::kFloat) / 20).unsqueeze(1);  // the longest row differs from rank to rank
  }
  std::vector<int64_t> labels;
  graph::GraphStore store;
  Pool pool;
};

class ShardedRound : public testing::TestWithParam<std::string> {};

TEST_P(ShardedRound, AsksTheSameAsOneProcess) {
  const PlayedGame game;
  std::vector<std::string> settings = {"oracle.members=6"};
  std::string all = GetParam();  // "captcha oracle.center=input"
  std::replace(all.begin(), all.end(), ' ', '\n');
  std::istringstream words(all);
  for (std::string word; words >> word;)
    settings.push_back(word.find('=') == std::string::npos ? "oracle.sampler=" + word : word);
  const auto sampler = make_query_sampler(spec_of(settings).oracle, kTree);
  for (int64_t questions : {30, 220}) {  // the first choice of each class, and all that is left
    const Round round{.seed = 9, .round = 4, .questions = questions};
    std::vector<Query> alone = sampler->choose(game.store, game.pool, round);
    ASSERT_GE(question_count(alone), 15);
    predict_answers(game.store, game.pool, alone);
    for (const Pool& pool : {game.pool, shuffled(game.pool)}) {
      for (const std::vector<int64_t>& bounds : kBounds) {
        comm::run_ranks(static_cast<int>(bounds.size()) - 1, [&](comm::Comm& comm) {
          const Pool own = share_of(pool, bounds, comm);
          std::vector<Query> together = sampler->choose(game.store, own, round);
          predict_answers(game.store, own, together);
          EXPECT_EQ(asked(together), asked(alone)) << "rank " << comm.rank() << " of " << comm.size();
        });
      }
    }
  }
}

std::string as_name(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}
// Every sampler of the table that needs embeddings, and some with other settings.
std::vector<std::string> sharded_samplers() {
  std::vector<std::string> all = {"captcha oracle.center=input", "captcha oracle.center=embeddings",
                                  "captcha oracle.class_guess=embeddings", "coarse oracle.coarse_accuracy=1",
                                  "uncertainty oracle.measure=boundary"};
  for (const std::string& name : sampler_names()) {
    if (make_query_sampler(spec_of({"oracle.sampler=" + name}).oracle, kTree)->needs() != PoolNeeds::samples)
      all.push_back(name);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Oracle, ShardedRound, testing::ValuesIn(sharded_samplers()),
                         [](const auto& info) { return as_name(info.param); });

// Equal rows cover each other completely. Each is still taken once, the lower number first.
TEST(FarthestFirst, TakesEachRowOnce) {
  const at::Tensor rows = at::ones({7, 4}, at::kFloat) / 2;
  comm::run_ranks(2, [&](comm::Comm& comm) {
    const bool first = comm.rank() == 0;
    const std::vector<int64_t> numbers = first ? std::vector<int64_t>{0, 2, 5} : std::vector<int64_t>{1, 3, 4, 6};
    const std::vector<int64_t> order = {0, 1, 2, 3, 4, 5, 6};
    EXPECT_EQ(farthest_first(rows.narrow(0, 0, first ? 3 : 4), numbers, {}, 100, comm), order);
  });
}

TEST(PoolRows, EveryRankGetsTheRowsItAsksFor) {
  const PlayedGame game;
  const PoolRows whole(game.pool);
  const std::vector<int64_t> rows = {249, 0, 17, 17, 130};
  for (const std::vector<int64_t>& bounds : kBounds) {
    comm::run_ranks(static_cast<int>(bounds.size()) - 1, [&](comm::Comm& comm) {
      const PoolRows part(share_of(shuffled(game.pool), bounds, comm));
      EXPECT_EQ(part.samples(), whole.samples());
      EXPECT_TRUE(part.gather(rows).equal(whole.gather(rows)));
      EXPECT_TRUE(std::is_sorted(part.rows_here().begin(), part.rows_here().end()));
      for (int64_t row = 0; row < whole.count(); ++row) {
        const int64_t place = part.place(row);
        if (place >= 0) {
          EXPECT_TRUE(part.here().select(0, place).equal(whole.here().select(0, row)));
        }
      }
    });
  }
}

// Rows of a wide projector are folded and keep their products; narrow rows do not change.
TEST(PoolRows, WideRowsKeepTheirProducts) {
  const int64_t n = 60, dims = 3 * PoolRows::kWidest + 100;
  Pool pool{std::vector<int64_t>(n), at::empty({n, dims}, at::kFloat)};
  std::iota(pool.samples.begin(), pool.samples.end(), int64_t{0});
  for (int64_t i = 0; i < n; ++i) {
    Random center(1, Purpose::bench, 0, static_cast<uint64_t>(i % 6)),
        own(1, Purpose::bench, 1, static_cast<uint64_t>(i));
    for (int64_t k = 0; k < dims; ++k)
      pool.embeddings.data_ptr<float>()[i * dims + k] = static_cast<float>(std::abs(center.normal() + own.normal()));
  }
  const PoolRows rows(pool);
  ASSERT_EQ(rows.dims(), PoolRows::kWidest);
  const at::Tensor unit = pool.embeddings / pool.embeddings.norm(2, 1, true);
  const at::Tensor error = (rows.here().matmul(rows.here().t()) - unit.matmul(unit.t())).abs();
  EXPECT_LT(error.max().item<double>(), 0.11) << "five deviations";
  EXPECT_LT(error.mean().item<double>(), 0.03);
  EXPECT_GT(error.mean().item<double>(), 0.001) << "the rows are folded, so that the test means something";
  pool.embeddings = pool.embeddings.narrow(1, 0, PoolRows::kWidest).contiguous();
  EXPECT_TRUE(PoolRows(pool).here().allclose(pool.embeddings / pool.embeddings.norm(2, 1, true), 1e-6, 1e-7));
}

// Sums in float or double depend on the order of the terms; these have the same bits in any order.
TEST(ExactSums, AreTheSameForAnyOrderAndSharding) {
  const int64_t n = 1000, dims = 7, groups = 5;
  at::Tensor rows = at::empty({n, dims}, at::kFloat);
  std::vector<int64_t> group;
  std::vector<int32_t> times;
  for (int64_t i = 0; i < n; ++i) {
    Random random(1, Purpose::bench, 0, static_cast<uint64_t>(i));
    for (int64_t k = 0; k < dims; ++k)
      rows.data_ptr<float>()[i * dims + k] =
          static_cast<float>(random.normal() * std::pow(10.0, -static_cast<double>(i % 5)));
    group.push_back(static_cast<int64_t>(random.below(groups + 1)) - 1);
    times.push_back(static_cast<int32_t>(random.below(3)));
  }
  const auto alone = comm::make_local_comm();
  const ExactSums whole(rows, group, groups, *alone, times);
  std::vector<double> direct(static_cast<size_t>(groups * dims), 0);
  std::vector<int64_t> rows_of(static_cast<size_t>(groups), 0);
  for (int64_t i = 0; i < n; ++i) {
    if (group[i] < 0) continue;
    rows_of[group[i]] += times[i];
    for (int64_t k = 0; k < dims; ++k)
      direct[group[i] * dims + k] += static_cast<double>(times[i]) * rows.const_data_ptr<float>()[i * dims + k];
  }
  for (int ranks : {1, 2, 3}) {
    comm::run_ranks(ranks, [&](comm::Comm& comm) {
      std::vector<int64_t> mine, own_group;
      std::vector<int32_t> own_times;
      for (int64_t i = n - 1 - comm.rank(); i >= 0; i -= comm.size()) mine.push_back(i);  // backwards, in turns
      for (int64_t i : mine) own_group.push_back(group[i]), own_times.push_back(times[i]);
      const ExactSums part(rows.index_select(0, at::tensor(mine, at::kLong)), own_group, groups, comm, own_times);
      for (int64_t g = 0; g < groups; ++g) {
        EXPECT_EQ(part.rows(g), rows_of[g]);
        for (int64_t k = 0; k < dims; ++k) {
          EXPECT_EQ(part.sum(g, k), whole.sum(g, k));
          EXPECT_NEAR(part.sum(g, k), direct[g * dims + k], 1e-7);
        }
      }
    });
  }
}

}  // namespace
}  // namespace pal::oracle
