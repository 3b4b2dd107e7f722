#include "core/oracle/ledger/annotators.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace pal::oracle {
namespace {

using Verdicts = std::map<std::string, int>;  // annotator → verdict
constexpr int kVerdicts = 5;

double kappa(double observed, double chance) { return chance >= 1 ? 1 : (observed - chance) / (1 - chance); }

double median_seconds(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

PairAgreement compare_two(const std::string& a, const std::string& b, const std::vector<std::pair<int, int>>& said) {
  PairAgreement result{a, b, static_cast<int64_t>(said.size())};
  std::array<double, kVerdicts> of_a{}, of_b{};
  double equal = 0;
  for (const auto& [x, y] : said) {
    equal += x == y;
    ++of_a[x];
    ++of_b[y];
  }
  const auto n = static_cast<double>(said.size());
  double chance = 0;
  for (int v = 0; v < kVerdicts; ++v) chance += of_a[v] / n * of_b[v] / n;
  result.raw = equal / n;
  result.cohen = kappa(result.raw, chance);
  return result;
}

void fleiss(const std::map<std::pair<int64_t, int64_t>, Verdicts>& questions, AgreementReport& report) {
  std::array<double, kVerdicts> all{};
  double total = 0, agreeing = 0, equal_pairs = 0, pairs = 0;
  for (const auto& [question, verdicts] : questions) {
    if (verdicts.size() < 2) continue;
    std::array<double, kVerdicts> count{};
    for (const auto& [who, v] : verdicts) ++count[v];
    const auto n = static_cast<double>(verdicts.size());
    double equal = 0;
    for (int v = 0; v < kVerdicts; ++v) {
      equal += count[v] * (count[v] - 1);
      all[v] += count[v];
    }
    total += n;
    agreeing += equal / (n * (n - 1));
    equal_pairs += equal;
    pairs += n * (n - 1);
    ++report.questions;
  }
  if (report.questions == 0) return;
  double chance = 0;
  for (double c : all) chance += c / total * c / total;
  report.raw = equal_pairs / pairs;
  report.fleiss = kappa(agreeing / static_cast<double>(report.questions), chance);
}

}  // namespace

AgreementReport annotator_report(const std::vector<RecordedAnswer>& answers) {
  AgreementReport report;
  std::map<std::pair<int64_t, int64_t>, Verdicts> questions;
  std::map<std::string, AnnotatorPace> people;
  std::map<std::string, std::vector<double>> seconds;
  for (const RecordedAnswer& r : answers) {
    if (r.said == "withdrawn") continue;
    const Answer& a = r.answer;
    AnnotatorPace& pace = people[a.annotator];
    pace.annotator = a.annotator;
    pace.cost += a.cost;
    if (a.seconds > 0) seconds[a.annotator].push_back(a.seconds);
    ++(r.superseded_by == 0 ? pace.answers : pace.withdrawn);
    if (r.superseded_by == 0 && a.verdict != Verdict::skip)
      questions[{a.query, a.j}][a.annotator] = static_cast<int>(a.verdict);
  }
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<int, int>>> common;
  for (const auto& [question, verdicts] : questions) {
    for (auto a = verdicts.begin(); a != verdicts.end(); ++a) {
      for (auto b = std::next(a); b != verdicts.end(); ++b)
        common[{a->first, b->first}].emplace_back(a->second, b->second);
    }
  }
  for (const auto& [who, said] : common) report.pairs.push_back(compare_two(who.first, who.second, said));
  for (auto& [name, pace] : people) {
    pace.seconds = median_seconds(seconds[name]);
    report.annotators.push_back(pace);
  }
  fleiss(questions, report);
  return report;
}

}  // namespace pal::oracle
