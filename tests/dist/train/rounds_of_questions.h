// rounds_of_questions: a small data set and its query rounds on all ranks, for the tests of query_round.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "dist/train/query_round.h"
#include "tests/core/spec_of.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {

class Rounds : public testing::Test {
 protected:
  Rounds() {
    for (int64_t s = 0; s < kN; ++s) {
      labels.push_back(s % 3);
      all.push_back(s);
    }
    begin_anew();
  }
  ~Rounds() override {
    world.control().barrier();
    if (world.rank() == 0) std::filesystem::remove_all(folder);
  }
  void begin_anew() {
    world.control().barrier();
    if (world.rank() == 0) {
      std::filesystem::remove_all(folder);
      std::filesystem::create_directory(folder);
    }
    world.control().barrier();
    versions.clear();
    said.clear();
  }
  std::vector<int64_t> templates() const {
    std::vector<int64_t> one_each(kN, -1);
    for (int64_t c = 0; c < 3; ++c) one_each[c] = c;
    return one_each;
  }
  // Runs boundaries [from, to) on a store that knows one template of each class.
  uint64_t run(graph::GraphStore& store, int64_t from, int64_t to, int64_t* questions = nullptr,
               const std::function<void(int64_t)>& before = {}) {
    if (templates_given) store.set_labels(templates());
    QueryRounds rounds(spec, world, store, QuestionContext{all, labels}, LedgerLocation{path, "run"}, from);
    for (int64_t s = from; s < to; ++s) {
      if (before) {
        rounds.ledger_position();
        if (world.rank() == 0) before(s);
        world.control().barrier();
      }
      rounds.at_boundary(s, embed);
      versions.push_back(store.version());
      if (!rounds.warning().empty()) said.push_back(rounds.warning());
    }
    if (questions != nullptr) *questions = rounds.questions();
    leaves = rounds.leaves();
    open = rounds.open_questions();
    contradictions = rounds.contradictions();
    cost = rounds.cost();
    return store.fingerprint();
  }

  // Repeats a run from step `from` to `to` on the existing ledger: it has the same versions and the same graph.
  void expect_the_same_from(int64_t from, int64_t to, uint64_t fingerprint) {
    const std::vector<uint64_t> before = versions;
    versions.resize(from);
    graph::GraphStore again(kN);
    EXPECT_EQ(run(again, from, to), fingerprint);
    EXPECT_EQ(versions, before);
  }

  static constexpr int64_t kN = 60;
  World& world = test_world();
  static oracle::OracleSpec with(std::vector<std::string> more) {
    std::vector<std::string> all = {"train.steps=1",    "optim.lr=1",
                                    "graph.kind=mixed", "oracle.sampler=captcha",
                                    "oracle.every=5",   "oracle.questions_per_round=12",
                                    "oracle.pool=60",   "oracle.class_guess=none"};
    all.insert(all.end(), more.begin(), more.end());
    return spec_of(all).oracle;
  }
  oracle::OracleSpec spec = with({});
  const std::string folder = "query_round_test.W" + std::to_string(test_world().size());
  const std::string path = folder + "/ledger.sqlite";
  QueryRounds::EmbedPool embed = [](const std::vector<int64_t>&, eval::SampleSlice) -> at::Tensor {
    throw std::runtime_error("not needed");
  };
  bool leaves = false, templates_given = true;
  int64_t open = 0, contradictions = 0;
  double cost = 0;
  std::vector<std::string> said;  // of the last runs
  std::vector<int64_t> labels, all;
  std::vector<uint64_t> versions;
};

}  // namespace pal::dist
