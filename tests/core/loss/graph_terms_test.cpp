// graph_terms: the communication between ranks, and the halo of the sparse rest.
#include "core/loss/graph_terms.h"

#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "core/loss/halo.h"
#include "tests/core/loss/loss_cases.h"

namespace pal::loss {
namespace {

// The number of collectives of one invariance term on each of two ranks.
int64_t collectives(const graph::BatchGraph& graph, const std::vector<int64_t>& rank_begin) {
  std::vector<int64_t> calls(2);
  comm::run_ranks(2, [&](comm::ThreadComm& comm) {
    const Batch batch = slice_of(graph, rank_begin, comm.rank());
    const at::Tensor z = random_rows(batch.local_rows(), 3, 1), dz = at::zeros_like(z);
    invariance_share(dz, z, batch, comm, 1);
    calls[comm.rank()] = comm.calls();
  });
  EXPECT_EQ(calls[0], calls[1]);
  return calls[0];
}

TEST(GraphTerms, SendsOnlySumsThatSpanRanks) {
  const auto graphs = test_graphs(10, 2, graph::Signs::positive);
  EXPECT_EQ(collectives(graphs[0].second, {0, 5, 10}), 0) << "views of a sample live on one rank";
  EXPECT_EQ(collectives(graphs[1].second, {0, 5, 10}), 1) << "the sums of classes";
  EXPECT_EQ(collectives(graphs[2].second, {0, 5, 10}), 1) << "all layers at once";
  EXPECT_EQ(collectives(graphs[2].second, {0, 10, 10}), 0);
  EXPECT_EQ(collectives(graphs[3].second, {0, 5, 10}), 2) << "and the halo";
}

TEST(LayerShare, SpanningBlocksComeFirst) {
  graph::BatchGraph graph;
  graph.samples = 6;
  graph.views = 2;
  graph.layers.push_back({{2, 0, -1, 0, 1, 1}, 3, 0.5});
  const LayerShare left = layer_share(graph.layers[0], slice_of(graph, {0, 3, 6}, 0), 0);
  EXPECT_EQ(left.spanning, 1);
  EXPECT_EQ(left.rows, (std::vector<double>{4, 2}));
  EXPECT_EQ(left.row_block, (std::vector<int32_t>{1, 0, -1, 1, 0, -1}));
  const LayerShare right = layer_share(graph.layers[0], slice_of(graph, {0, 3, 6}, 1), 1);
  EXPECT_EQ(right.rows, (std::vector<double>{4, 4}));
  EXPECT_EQ(right.row_block, (std::vector<int32_t>{0, 1, 1, 0, 1, 1}));
}

TEST(Halo, FewRowsGoAllToAllManyAreGathered) {
  graph::BatchGraph graph;
  graph.samples = 12;
  graph.views = 2;
  graph.rest.offsets.assign(13, 0);
  const auto set = [&](const std::vector<std::pair<int, int>>& pairs) {
    std::vector<std::vector<int32_t>> columns(12);
    for (auto [p, q] : pairs) {
      columns[p].push_back(q);
      columns[q].push_back(p);
    }
    graph.rest.columns.clear();
    for (int p = 0; p < 12; ++p) {
      std::sort(columns[p].begin(), columns[p].end());
      graph.rest.columns.insert(graph.rest.columns.end(), columns[p].begin(), columns[p].end());
      graph.rest.offsets[p + 1] = static_cast<int64_t>(graph.rest.columns.size());
    }
    graph.rest.weights.assign(graph.rest.columns.size(), 1.0);
    graph::check(graph);
  };
  set({{0, 5}, {0, 6}, {1, 2}, {3, 11}});
  const Batch batch = slice_of(graph, {0, 4, 8, 12}, 0);
  const Halo few = make_halo(batch, 0, graph::SelfLoops::off);
  EXPECT_EQ(few.carrier, Carrier::all_to_all);
  EXPECT_EQ(few.send, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(few.send_counts, (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(few.recv_counts, (std::vector<int64_t>{0, 2, 1}));
  std::vector<std::pair<int, int>> all;
  for (int p = 0; p < 12; ++p) {
    for (int q = 0; q < p; ++q) all.emplace_back(p, q);
  }
  set(all);
  EXPECT_EQ(make_halo(slice_of(graph, {0, 4, 8, 12}, 0), 0, graph::SelfLoops::off).carrier, Carrier::all_gather);
}

}  // namespace
}  // namespace pal::loss
