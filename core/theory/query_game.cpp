#include "core/theory/query_game.h"

#include <algorithm>

namespace pal::theory {

CaptchaGame::CaptchaGame(const std::vector<int>& labels, int classes)
    : labels_(labels),
      classes_(classes),
      known_(labels.size(), 0),
      asked_(labels.size() * classes, 0),
      relation_(labels.size() * labels.size(), 0) {
  const size_t n = labels.size();
  for (size_t i = 0; i < n; ++i) relation_[i * n + i] = 1;
  for (int c = 0; c < classes; ++c) {
    const auto first = std::find(labels.begin(), labels.end(), c);
    if (first != labels.end()) known_[first - labels.begin()] = 1;
  }
}

CaptchaGame::Query CaptchaGame::choose(const std::vector<int>& predictions, int64_t batch, Random& random) const {
  Query query;
  int64_t least = -1;
  for (int c = 0; c < classes_; ++c) {
    int64_t asked = 0;
    for (size_t i = 0; i < labels_.size(); ++i) asked += asked_[i * classes_ + c];
    if (least < 0 || asked < least) least = asked, query.against = c;
  }
  std::vector<int> open, likely;
  for (size_t i = 0; i < labels_.size(); ++i) {
    if (known_[i] || asked_[i * classes_ + query.against]) continue;
    open.push_back(static_cast<int>(i));
    if (!predictions.empty() && predictions[i] == query.against) likely.push_back(static_cast<int>(i));
  }
  if (static_cast<int64_t>(likely.size()) > batch) open = likely;
  if (static_cast<int64_t>(open.size()) < batch) {
    query.points = open;
    return query;
  }
  for (int64_t b = 0; b < batch; ++b)
    query.points.push_back(open[static_cast<size_t>(random.next_double() * static_cast<double>(open.size()))]);
  return query;
}

void CaptchaGame::relate(int64_t i, int64_t j) {
  const auto n = static_cast<int64_t>(labels_.size());
  entries_ += relation_[i * n + j] == 0;
  relation_[i * n + j] = labels_[i] == labels_[j] ? 1 : -1;
}

void CaptchaGame::answer(const Query& query) {
  std::vector<int64_t> examples, positives;
  for (int p : query.points) {
    if (labels_[p] == query.against) known_[p] = 1;
  }
  for (size_t i = 0; i < known_.size(); ++i) {
    if (!known_[i]) continue;
    examples.push_back(static_cast<int64_t>(i));
    if (labels_[i] == query.against) positives.push_back(static_cast<int64_t>(i));
  }
  for (int64_t i : examples) {
    for (int64_t j : examples) relate(i, j);
  }
  for (int p : query.points) {
    if (labels_[p] == query.against) continue;
    for (int64_t i : positives) {
      relate(i, p);
      relate(p, i);
    }
  }
  for (int p : query.points) {
    questions_ += !asked_[static_cast<size_t>(p) * classes_ + query.against];
    asked_[static_cast<size_t>(p) * classes_ + query.against] = 1;
  }
  for (int64_t i : examples) std::fill_n(asked_.begin() + i * classes_, classes_, 1);
}

void CaptchaGame::graph(Matrix& out, double negative) const {
  for (size_t i = 0; i < relation_.size(); ++i) out.data[i] = relation_[i] < 0 ? negative : relation_[i];
}

std::vector<std::pair<int, int>> random_pairs(int64_t n, Random& random) {
  std::vector<std::pair<int, int>> pairs;
  pairs.reserve(static_cast<size_t>(n * (n - 1) / 2));
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) pairs.emplace_back(i, j);
  }
  for (size_t k = pairs.size(); k > 1; --k) std::swap(pairs[k - 1], pairs[random.below(k)]);
  return pairs;
}

}  // namespace pal::theory
