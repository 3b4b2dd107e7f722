// graph_files: round trips of pairs, tables and targets, and the errors of malformed files.
#include "core/graph/graph_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/graph/build.h"
#include "core/io/h5.h"
#include "kernels/base/philox.h"
#include "tests/support.h"
#include "tests/test_folder.h"

namespace pal::graph {
namespace {

class GraphFiles : public testing::Test {
 protected:
  std::string write(const std::string& text, const std::string& name = "f.csv") const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // The error message, from the name of the file on.
  template <class F>
  std::string refused(const F& read) const {
    const std::string text = error_of(Exit::data, read), folder = folder_ / "";
    const size_t at = text.find(folder);
    return at == std::string::npos ? text : text.substr(at + folder.size());
  }
  std::string pairs_refused(const std::string& text) const {
    const std::string path = write(text);
    return refused([&] { WeightedEdges(5, read_pairs(path, 5).pairs, path); });
  }

  const TestFolder folder_;
};

WeightedEdges random_edges(int64_t n, uint64_t seed) {
  Random random(seed, Purpose::bench);
  std::vector<WeightedPair> pairs;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) {
      if (random.below(4) == 0) pairs.push_back({i, j, random.normal()});
    }
  }
  return WeightedEdges(n, pairs, "test");
}

TEST_F(GraphFiles, PairsRoundTripBitForBit) {
  const WeightedEdges edges = random_edges(25, 4);
  for (const char* name : {"g.csv", "g.h5"}) {
    const std::string path = folder_ / name;
    write_pairs(path, edges);
    EXPECT_EQ(WeightedEdges(25, read_pairs(path, 25).pairs, path).fingerprint(), edges.fingerprint()) << name;
  }
  EXPECT_EQ(read_pairs(folder_ / "g.h5", kAsInFile).samples, 25);
  EXPECT_NE(refused([&] { read_pairs(folder_ / "g.h5", 24); }).find("g.h5: /graph/indptr has 25 rows"),
            std::string::npos);
}

TEST_F(GraphFiles, CommonVariantsAreRead) {
  const auto file = read_pairs(write("i,j,weight\r\n0, 1, 0.5\r\n\n4,2\n3;3;-1e-3"), kAsInFile);
  EXPECT_EQ(file.samples, 5);
  ASSERT_EQ(file.pairs.size(), 3u);
  EXPECT_EQ(file.pairs[0].weight, 0.5);
  EXPECT_EQ(file.pairs[1].weight, 1);
  EXPECT_EQ(file.pairs[2].weight, -1e-3);
}

TEST_F(GraphFiles, BadPairsAreRefusedInOneSentence) {
  EXPECT_EQ(pairs_refused("0,1,1\n"), "");
  EXPECT_EQ(pairs_refused("0,1,1\n2,5,1\n"), "f.csv line 2: sample outside the data set: 5; samples are 0 to 4");
  EXPECT_EQ(pairs_refused("-1,1,1\n"), "f.csv line 1: sample outside the data set: -1; samples are 0 to 4");
  EXPECT_EQ(pairs_refused("0,1,nan\n"), "f.csv line 1: the weight is nan; give a finite one");
  EXPECT_EQ(pairs_refused("0,1,inf\n"), "f.csv line 1: the weight is inf; give a finite one");
  EXPECT_EQ(pairs_refused("0,1,1\n1,0,2\n"),
            "f.csv: the directions of a pair have different weights: (0, 1) with weight 1 and (1, 0) with weight 2; "
            "give both directions the same weight");
  EXPECT_EQ(pairs_refused("0,1,1\n0,1,2\n"),
            "f.csv: a pair has two weights: (0, 1) with weight 1 and (0, 1) with weight 2; keep one of them");
  EXPECT_EQ(pairs_refused("0,1,1\n0;x\n"), "f.csv line 2 is not a list of numbers: 0;x; write numbers between commas");
  EXPECT_EQ(pairs_refused("0.5,1\n"),
            "f.csv line 1: 0.5 is not the number of a sample; samples are whole numbers from 0");
  EXPECT_EQ(pairs_refused("0,1,1,1\n"), "f.csv line 1 has 4 numbers; write i,j or i,j,weight");
  EXPECT_NE(refused([&] { read_pairs(folder_ / "none.csv", 5); }), "");
}

TEST_F(GraphFiles, BadCsrGroupsAreRefused) {
  const auto csr = [&](const std::vector<int32_t>& indptr, const std::vector<int64_t>& indices,
                       const std::vector<double>& data) {
    const std::string path = folder_ / "f.h5";
    io::h5::File file = io::h5::File::create(path);
    file.make_group("/graph");
    file.write("/graph/indptr", indptr);
    file.write("/graph/indices", indices);
    file.write("/graph/data", data);
    file.close();
    return refused([&] { WeightedEdges(2, read_pairs(path, 2).pairs, path); });
  };
  EXPECT_EQ(csr({0, 1, 2}, {1, 0}, {2, 2}), "");
  EXPECT_NE(csr({0, 1, 2}, {1, 2}, {2, 2}).find("outside the data set"), std::string::npos);
  EXPECT_NE(csr({0, 1, 2}, {1, 0}, {2, 3}).find("different weights"), std::string::npos);
  EXPECT_NE(csr({0, 2, 2}, {1, 1}, {2, 3}).find("a pair has two weights"), std::string::npos);
  EXPECT_NE(csr({0, 1, 2}, {1, 0}, {2, std::nan("")}).find("not finite"), std::string::npos);
  EXPECT_NE(csr({0, 3, 2}, {1, 0}, {2, 2}).find("ascends"), std::string::npos);
  EXPECT_NE(csr({0, 1, 2}, {1, 0}, {2}).find("ascends"), std::string::npos);
  EXPECT_NE(csr({0, 1}, {1}, {2}).find("2 samples"), std::string::npos);
}

TEST_F(GraphFiles, TablesAndTargets) {
  const LossTable table = read_loss_table(write("0,1,2\n1,0,0.5\n2,0.5,0\n"));
  EXPECT_EQ(table.classes, 3);
  EXPECT_EQ(table.loss, (std::vector<double>{0, 1, 2, 1, 0, 0.5, 2, 0.5, 0}));
  const auto table_refused = [&](const std::string& text) { return refused([&] { read_loss_table(write(text)); }); };
  EXPECT_EQ(
      table_refused("0,1\n2,0\n"),
      "f.csv: the loss between classes 0 and 1 is 1, and another one in the other direction; give a symmetric table");
  EXPECT_NE(table_refused("0,1\n1\n").find("line 2 has 1 losses"), std::string::npos);
  EXPECT_NE(table_refused("0,1\n").find("has 1 lines of losses"), std::string::npos);
  EXPECT_NE(table_refused("").find("has 0 lines of losses"), std::string::npos);
  EXPECT_NE(table_refused("nan\n").find("finite"), std::string::npos);

  const Targets targets = read_targets(write("y,z\n1,2\n3,4\n"), 2);
  EXPECT_EQ(targets.width, 2);
  EXPECT_EQ(targets.values, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_NE(refused([&] {
              read_targets(write("1\n2\n"), 3);
            }).find("has 2 lines of targets; give one for each of the 3 samples"),
            std::string::npos);
  EXPECT_NE(refused([&] { read_targets(write("1\nnan\n"), 2); }).find("line 2: a target is nan"), std::string::npos);
  EXPECT_NE(refused([&] { read_targets(write("1,2\n1\n"), 2); }).find("line 2 has 1 numbers"), std::string::npos);
}

TEST(GraphNoise, FlipsBothDirectionsOfAPair) {
  std::vector<WeightedPair> pairs;
  for (int64_t i = 0; i < 3000; ++i) {
    pairs.push_back({i, i + 1, 1});
    pairs.push_back({i + 1, i, 1});
  }
  flip_weights(pairs, 0.25, 8);
  double flipped = 0;
  for (const WeightedPair& pair : pairs) flipped += pair.weight < 0;
  EXPECT_NEAR(flipped / 6000, 0.25, 0.04);
  EXPECT_EQ(WeightedEdges(3001, pairs, "flipped").pairs(), 3000) << "still symmetric";
}

TEST(GraphNoise, RedrawsAShareOfTheLabels) {
  std::vector<int64_t> labels;
  for (int64_t s = 0; s < 6000; ++s) labels.push_back(s % 6 == 5 ? -1 : s % 6 * 10);  // five classes, and unknown ones
  const std::vector<int64_t> before = labels;
  redraw_labels(labels, 0.5, 8);
  double changed = 0;
  for (size_t s = 0; s < labels.size(); ++s) {
    changed += labels[s] != before[s];
    EXPECT_TRUE(before[s] < 0 ? labels[s] == -1 : labels[s] % 10 == 0 && labels[s] <= 40) << "sample " << s;
  }
  EXPECT_NEAR(changed / 5000, 0.5 * 4 / 5, 0.03) << "a redrawn label is its own in one of five cases";
}

TEST_F(GraphFiles, PairsOfNames) {
  const io::NameIndex names({"cat/0.jpg", "cat/1.jpg", "dog/0.jpg", "a,b.jpg"});
  const auto read = [&](const std::string& text) {
    return read_pairs(write(text), 4, [&]() -> const io::NameIndex& { return names; }).pairs;
  };
  const std::vector<WeightedPair> pairs = read("first,second,w\nphotos/cat/0.jpg,1.jpg,2\n\"a,b.jpg\",2\n0,1\n");
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].i, 0);
  EXPECT_EQ(pairs[0].j, 1);
  EXPECT_EQ(pairs[0].weight, 2);
  EXPECT_EQ(pairs[1].i, 3);
  EXPECT_EQ(pairs[1].j, 2);
  EXPECT_THROW(read("cat/0.jpg,nothing\n"), Error);  // half a header is a mistake
  EXPECT_THROW(read("a,b\n0.jpg,cat/1.jpg\n"), Error);
}

}  // namespace
}  // namespace pal::graph
