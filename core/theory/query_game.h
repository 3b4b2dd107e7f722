// query_game: the oracles of the controlled experiments: captcha-style questions with deduction, and random pairs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/theory/matrix.h"
#include "kernels/base/philox.h"

namespace pal::theory {

// The known part of the graph. At the start one example per class is known and only the diagonal is filled.
class CaptchaGame {
 public:
  CaptchaGame(const std::vector<int>& labels, int classes);

  // Chooses the class with the fewest questions and draws up to `batch` points not yet asked for it, with replacement.
  // Predictions (n, or empty) restrict the draw to points predicted as that class, if there are more than `batch`.
  struct Query {
    int against = 0;
    std::vector<int> points;
  };
  Query choose(const std::vector<int>& predictions, int64_t batch, Random& random) const;
  // Answers the query, marks new examples, and fills all pairs of known points and known positives × new negatives.
  void answer(const Query& query);

  const std::vector<char>& known() const { return known_; }
  // The (n, n) graph with `negative` where points are known to differ.
  void graph(Matrix& out, double negative) const;
  int64_t questions() const { return questions_; }  // distinct (point, class) pairs asked
  int64_t entries() const { return entries_; }      // filled entries of G without the diagonal

 private:
  void relate(int64_t i, int64_t j);

  std::vector<int> labels_;
  int classes_;
  std::vector<char> known_;            // (n)
  std::vector<char> asked_;            // (n, classes)
  std::vector<signed char> relation_;  // (n, n) −1, 0, 1
  int64_t questions_ = 0, entries_ = 0;
};

// All pairs i < j in random order.
std::vector<std::pair<int, int>> random_pairs(int64_t n, Random& random);

}  // namespace pal::theory
