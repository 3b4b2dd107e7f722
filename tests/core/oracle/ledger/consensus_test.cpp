// consensus: one verdict from the answers of several people, and their agreement.
#include "core/oracle/ledger/consensus.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/oracle/ledger/annotators.h"
#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

Question asked(int64_t query, const std::vector<std::pair<std::string, Verdict>>& said) {
  Question q{query, 0, query};
  for (const auto& [who, verdict] : said) q.answers.push_back({query, 0, query, verdict, who});
  return q;
}

TEST(Consensus, MajorityWinsAndATieIsUnsure) {
  using V = Verdict;
  const auto of = [](const std::vector<V>& said) {
    std::vector<std::pair<std::string, V>> all;
    for (V v : said) all.emplace_back("p" + std::to_string(all.size()), v);
    return majority(asked(1, all));
  };
  EXPECT_EQ(of({V::yes, V::no, V::yes}).verdict, V::yes);
  EXPECT_DOUBLE_EQ(of({V::yes, V::no, V::yes}).confidence, 2.0 / 3);
  EXPECT_EQ(of({V::yes, V::no}).verdict, V::unsure);
  EXPECT_EQ(of({V::yes, V::skip, V::skip}).verdict, V::yes);
  EXPECT_EQ(of({V::broken, V::broken, V::no}).verdict, V::broken);
  EXPECT_EQ(of({}).verdict, V::skip);
  EXPECT_EQ(of({V::skip}).verdict, V::skip);
}

// Annotators of known error: the estimate finds the errors, and its verdicts are better than the majority's.
TEST(Consensus, DawidAndSkeneEstimateTheErrorsOfAnnotators) {
  Random random(5, Purpose::bench);
  // Three good annotators: two could not be distinguished from the bad ones.
  const std::vector<double> errors = {0.03, 0.05, 0.08, 0.45, 0.45, 0.45, 0.45};
  std::vector<Question> questions;
  std::vector<bool> truth;
  for (int64_t q = 0; q < 2000; ++q) {
    truth.push_back(random.below(10) < 3);
    std::vector<std::pair<std::string, Verdict>> said;
    for (size_t a = 0; a < errors.size(); ++a) {
      const bool yes = truth.back() != (random.next_double() < errors[a]);
      said.emplace_back("p" + std::to_string(a), yes ? Verdict::yes : Verdict::no);
    }
    questions.push_back(asked(q, said));
  }
  const DawidSkene model = estimate_annotators(questions);
  for (size_t a = 0; a < errors.size(); ++a)
    EXPECT_NEAR(model.annotators.at("p" + std::to_string(a)).error(), errors[a], 0.04) << "seed 5, annotator " << a;
  EXPECT_NEAR(model.yes, 0.3, 0.04);
  int64_t wrong = 0, wrong_by_majority = 0;
  double unsure = 0;
  for (size_t q = 0; q < questions.size(); ++q) {
    const Agreed agreed = model.agree(questions[q]);
    wrong += (agreed.verdict == Verdict::yes) != truth[q];
    unsure += 1 - agreed.confidence;
    wrong_by_majority += (majority(questions[q]).verdict == Verdict::yes) != truth[q];
  }
  EXPECT_LT(4 * wrong, wrong_by_majority) << "seed 5";
  EXPECT_NEAR(unsure, static_cast<double>(wrong), 12) << "confidences are probabilities";
  std::vector<Question> back(questions.rbegin(), questions.rend());
  EXPECT_NEAR(estimate_annotators(back).annotators.at("p3").error(), model.annotators.at("p3").error(), 1e-9)
      << "any order";
}

TEST(Consensus, DecisionsHaveTheKindAndNodeOfTheQuestion) {
  Question q = asked(4, {{"a", Verdict::yes}});
  q.kind = QueryKind::coarse;
  q.node = 11;
  q.cost = 2.5;
  for (ConsensusKind kind : {ConsensusKind::majority, ConsensusKind::dawid_skene}) {
    const Decision d = decide({q}, kind, {q}, 70)[0];
    EXPECT_EQ(d.verdict, Verdict::yes);
    EXPECT_EQ(d.relation(), graph::Relation::unknown) << "a coarse yes leaves the pair open";
    EXPECT_EQ(d.node, 11);
    EXPECT_EQ(d.effective_step, 70);
    EXPECT_DOUBLE_EQ(d.cost, 2.5);
  }
}

RecordedAnswer said_by(int64_t query, const std::string& who, Verdict verdict, double seconds = 0) {
  RecordedAnswer r;
  r.answer = {query, 0, query, verdict, who, seconds};
  r.said = to_string(verdict);
  return r;
}

// By hand: 10 questions, two people. Both yes 4, both no 3, a yes b no 2, a no b yes 1.
TEST(Kappa, CohensIsThatOfTheTextbook) {
  std::vector<RecordedAnswer> answers;
  const auto both = [&](Verdict a, Verdict b) {
    const auto query = static_cast<int64_t>(answers.size());
    answers.push_back(said_by(query, "ann", a, 1.0 + static_cast<double>(query)));
    answers.push_back(said_by(query, "bob", b));
  };
  for (int k = 0; k < 4; ++k) both(Verdict::yes, Verdict::yes);
  for (int k = 0; k < 3; ++k) both(Verdict::no, Verdict::no);
  for (int k = 0; k < 2; ++k) both(Verdict::yes, Verdict::no);
  both(Verdict::no, Verdict::yes);
  answers.push_back(said_by(100, "ann", Verdict::yes));
  answers.push_back(said_by(101, "ann", Verdict::no));
  answers.back().superseded_by = 7;
  const AgreementReport report = annotator_report(answers);
  ASSERT_EQ(report.pairs.size(), 1u);
  EXPECT_EQ(report.pairs[0].questions, 10);
  EXPECT_DOUBLE_EQ(report.pairs[0].raw, 0.7);
  EXPECT_NEAR(report.pairs[0].cohen, (0.7 - (0.6 * 0.5 + 0.4 * 0.5)) / (1 - 0.5), 1e-12);
  EXPECT_EQ(report.questions, 10);
  const double chance = 0.55 * 0.55 + 0.45 * 0.45;
  EXPECT_NEAR(report.fleiss, (0.7 - chance) / (1 - chance), 1e-12);
  ASSERT_EQ(report.annotators.size(), 2u);
  EXPECT_EQ(report.annotators[0].annotator, "ann");
  EXPECT_EQ(report.annotators[0].answers, 11);
  EXPECT_EQ(report.annotators[0].withdrawn, 1);
  EXPECT_DOUBLE_EQ(report.annotators[0].seconds, 11.0);
}

// A table of 14 raters and 10 subjects that is often shown for this kappa (0.2099 with five categories), its last two
// categories taken together: 0.232408, by the formula in Python.
TEST(Kappa, FleissOfATable) {
  const int table[10][4] = {{0, 0, 0, 14}, {0, 2, 6, 6}, {0, 0, 3, 11}, {0, 3, 9, 2}, {2, 2, 8, 2},
                            {7, 7, 0, 0},  {3, 2, 6, 3}, {2, 5, 3, 4},  {6, 5, 2, 1}, {0, 2, 2, 10}};
  const Verdict verdicts[4] = {Verdict::yes, Verdict::no, Verdict::unsure, Verdict::broken};
  std::vector<RecordedAnswer> answers;
  for (int subject = 0; subject < 10; ++subject) {
    int rater = 0;
    for (int c = 0; c < 4; ++c) {
      for (int k = 0; k < table[subject][c]; ++k)
        answers.push_back(said_by(subject, "r" + std::to_string(rater++), verdicts[c]));
    }
  }
  EXPECT_NEAR(annotator_report(answers).fleiss, 0.232408, 1e-6);
}

}  // namespace
}  // namespace pal::oracle
