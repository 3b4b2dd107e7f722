#include "core/oracle/ledger/consensus.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

constexpr double kRight = 1.0, kWrong = 0.1;  // pseudo-counts
constexpr int64_t kMostIterations = 200;

bool is_relation(Verdict v) { return v == Verdict::yes || v == Verdict::no; }

double log_odds(const DawidSkene& model, const Question& q) {
  double odds = std::log(model.yes) - std::log1p(-model.yes);
  for (const Answer& a : q.answers) {
    const auto at = model.annotators.find(a.annotator);
    if (!is_relation(a.verdict) || at == model.annotators.end()) continue;
    const int said = a.verdict == Verdict::yes ? 1 : 0;
    odds += std::log(at->second.says[1][said]) - std::log(at->second.says[0][said]);
  }
  return odds;
}

double posterior_yes(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

Agreed majority(const Question& question) {
  int64_t said[5] = {}, all = 0;
  for (const Answer& a : question.answers) {
    if (a.verdict == Verdict::skip) continue;
    ++said[static_cast<int>(a.verdict)];
    ++all;
  }
  if (all == 0) return {};
  int most = 0;
  for (int v = 1; v < 5; ++v) {
    if (said[v] > said[most]) most = v;
  }
  const bool draw = std::count(said, said + 5, said[most]) > 1;
  return {draw ? Verdict::unsure : static_cast<Verdict>(most),
          static_cast<double>(said[most]) / static_cast<double>(all)};
}

Agreed DawidSkene::agree(const Question& question) const {
  const Agreed counted = majority(question);
  const auto relations = std::count_if(question.answers.begin(), question.answers.end(),
                                       [](const Answer& a) { return is_relation(a.verdict); });
  const auto skips = std::count_if(question.answers.begin(), question.answers.end(),
                                   [](const Answer& a) { return a.verdict == Verdict::skip; });
  if (2 * relations <= static_cast<int64_t>(question.answers.size()) - skips) return counted;
  const double p = posterior_yes(log_odds(*this, question));
  return {p >= 0.5 ? Verdict::yes : Verdict::no, std::max(p, 1 - p)};
}

DawidSkene estimate_annotators(const std::vector<Question>& all) {
  DawidSkene model;
  std::vector<double> yes(all.size(), 0.5);  // posterior of each question, at first its share of yes
  for (size_t q = 0; q < all.size(); ++q) {
    double said_yes = 0, said = 0;
    for (const Answer& a : all[q].answers) {
      if (!is_relation(a.verdict)) continue;
      model.annotators[a.annotator];
      said_yes += a.verdict == Verdict::yes;
      ++said;
    }
    yes[q] = said > 0 ? said_yes / said : 0.5;
  }
  for (; model.iterations < kMostIterations; ++model.iterations) {
    std::map<std::string, AnnotatorModel> counts;
    for (auto& [name, c] : model.annotators) counts[name] = {{{kRight, kWrong}, {kWrong, kRight}}};
    double total_yes = 1, total = 2;
    for (size_t q = 0; q < all.size(); ++q) {
      bool any = false;
      for (const Answer& a : all[q].answers) {
        if (!is_relation(a.verdict)) continue;
        const int said = a.verdict == Verdict::yes ? 1 : 0;
        counts[a.annotator].says[1][said] += yes[q];
        counts[a.annotator].says[0][said] += 1 - yes[q];
        any = true;
      }
      if (!any) continue;
      total_yes += yes[q];
      ++total;
    }
    for (auto& [name, c] : counts) {
      for (auto& truth : c.says) {
        const double sum = truth[0] + truth[1];
        truth[0] /= sum;
        truth[1] /= sum;
      }
    }
    model.annotators = std::move(counts);
    model.yes = total_yes / total;
    double moved = 0;
    for (size_t q = 0; q < all.size(); ++q) {
      const double p = posterior_yes(log_odds(model, all[q]));
      moved = std::max(moved, std::abs(p - yes[q]));
      yes[q] = p;
    }
    if (moved < 1e-9) break;
  }
  return model;
}

std::vector<Decision> decide(const std::vector<Question>& questions, ConsensusKind kind,
                             const std::vector<Question>& all, int64_t effective_step) {
  std::vector<Decision> decisions;
  DawidSkene model;
  if (kind == ConsensusKind::dawid_skene && !questions.empty()) model = estimate_annotators(all);
  for (const Question& q : questions) {
    const Agreed agreed = kind == ConsensusKind::dawid_skene ? model.agree(q) : majority(q);
    decisions.push_back({q.query, q.i, q.j, q.kind, q.node, agreed.verdict, effective_step, q.cost, agreed.confidence});
  }
  return decisions;
}

}  // namespace pal::oracle
