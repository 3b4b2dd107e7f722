// query_game: the oracles of the controlled experiments: à la captcha with deduction, and random pairs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/theory/matrix.h"
#include "kernels/base/philox.h"

namespace pal::theory {

// What is known of the graph so far. At the start one example per class is known and only the diagonal is filled.
class CaptchaGame {
 public:
  CaptchaGame(const std::vector<int>& labels, int classes);

  // The class asked least, and up to `batch` points not yet asked for it, drawn with replacement; with predictions
  // (n, or empty) restricted to the points predicted as that class when there are more than `batch` of them.
  struct Query {
    int against = 0;
    std::vector<int> points;
  };
  Query choose(const std::vector<int>& predictions, int64_t batch, Random& random) const;
  // Asks, marks the new examples and fills all pairs among known points and known positives × new negatives.
  void answer(const Query& query);

  const std::vector<char>& known() const { return known_; }
  // The (n, n) graph with `negative` where points are known to differ.
  void graph(Matrix& out, double negative) const;
  int64_t questions() const { return questions_; }  // distinct (point, class) pairs asked
  int64_t entries() const { return entries_; }      // entries of G filled, the diagonal not counted

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
