// answers: what several people make of a question, how far they agree, when asking ends, lines, the inbox and other formats.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/config/config.h"
#include "core/graph/graph_files.h"
#include "core/io/files.h"
#include "core/oracle/annotators.h"
#include "core/oracle/answer_lines.h"
#include "core/oracle/answers_io.h"
#include "core/oracle/consensus.h"
#include "core/oracle/exchange.h"
#include "core/oracle/inbox.h"
#include "core/oracle/labeler.h"
#include "core/oracle/question_leases.h"
#include "core/oracle/stop_rules.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "tests/test_folder.h"

namespace pal {
namespace {

namespace fs = std::filesystem;

Question asked(int64_t query, const std::vector<std::pair<std::string, Verdict>>& said) {
  Question q{query, 0, query};
  for (const auto& [who, verdict] : said) q.answers.push_back({query, 0, query, verdict, who});
  return q;
}

TEST(Consensus, MajorityCountsAndADrawIsUnsure) {
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
TEST(Consensus, DawidAndSkeneFindWhoErrs) {
  Random random(5, Purpose::bench);
  const std::vector<double> errors = {0.03, 0.05, 0.08, 0.45, 0.45, 0.45, 0.45};   // three good ones: two cannot be told apart
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
  for (size_t a = 0; a < errors.size(); ++a) EXPECT_NEAR(model.annotators.at("p" + std::to_string(a)).error(), errors[a], 0.04) << "seed 5, annotator " << a;
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
  EXPECT_NEAR(estimate_annotators(back).annotators.at("p3").error(), model.annotators.at("p3").error(), 1e-9) << "any order";
}

TEST(Consensus, DecisionsCarryWhatTheQuestionSaid) {
  Question q = asked(4, {{"a", Verdict::yes}});
  q.kind = QueryKind::coarse;
  q.node = 11;
  q.cost = 2.5;
  for (ConsensusKind kind : {ConsensusKind::majority, ConsensusKind::dawid_skene}) {
    const Decision d = decide({q}, kind, {q}, 70)[0];
    EXPECT_EQ(d.verdict, Verdict::yes);
    EXPECT_EQ(d.relation(), Relation::unknown) << "a coarse yes leaves the pair open";
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
TEST(Agreement, IsThatOfTheTextbook) {
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
TEST(Agreement, FleissOfATable) {
  const int table[10][4] = {{0, 0, 0, 14}, {0, 2, 6, 6}, {0, 0, 3, 11}, {0, 3, 9, 2}, {2, 2, 8, 2},
                            {7, 7, 0, 0}, {3, 2, 6, 3}, {2, 5, 3, 4}, {6, 5, 2, 1}, {0, 2, 2, 10}};
  const Verdict verdicts[4] = {Verdict::yes, Verdict::no, Verdict::unsure, Verdict::broken};
  std::vector<RecordedAnswer> answers;
  for (int subject = 0; subject < 10; ++subject) {
    int rater = 0;
    for (int c = 0; c < 4; ++c) {
      for (int k = 0; k < table[subject][c]; ++k) answers.push_back(said_by(subject, "r" + std::to_string(rater++), verdicts[c]));
    }
  }
  EXPECT_NEAR(annotator_report(answers).fleiss, 0.232408, 1e-6);
}

TEST(Stop, TheFirstRuleThatHolds) {
  StopLimits limits{100, 50, 2, 3, 0.01, 0.9};
  StopState state;
  EXPECT_EQ(stop_reason(limits, state), StopReason::none);
  const auto with = [&](const std::function<void(StopState&)>& change) {
    StopState s = state;
    change(s);
    return stop_reason(limits, s);
  };
  EXPECT_EQ(with([](StopState& s) { s.questions = 100; }), StopReason::questions);
  EXPECT_EQ(with([](StopState& s) { s.cost = 50; }), StopReason::cost);
  EXPECT_EQ(with([](StopState& s) { s.hours = 2.1; }), StopReason::hours);
  EXPECT_EQ(with([](StopState& s) { s.closure = true; }), StopReason::closure);
  EXPECT_EQ(with([](StopState& s) { s.figures = {0.5, 0.7, 0.705, 0.69, 0.7}; }), StopReason::plateau);
  EXPECT_EQ(with([](StopState& s) { s.figures = {0.5, 0.7, 0.705, 0.69, 0.72}; }), StopReason::none);
  EXPECT_EQ(with([](StopState& s) { s.figures = {0.5, 0.4, 0.3}; }), StopReason::none) << "too few looks";
  EXPECT_EQ(with([](StopState& s) { s.agreements = {0.1, 0.95, 0.9, 0.92}; }), StopReason::agreement);
  EXPECT_EQ(with([](StopState& s) { s.agreements = {0.95, 0.95, 0.89}; }), StopReason::none);
  state.questions = 1000000;
  state.cost = 1e9;
  EXPECT_EQ(stop_reason({}, state), StopReason::none) << "no limits";
  EXPECT_NE(to_sentence(StopReason::questions, limits).find("100 questions"), std::string::npos);
}

TEST(Stop, ClosureIsWhenEveryRelationIsKnown) {
  GraphStore store(6);
  store.insert(0, 1, Relation::same);
  store.insert(2, 3, Relation::same);
  store.insert(0, 2, Relation::different);
  EXPECT_FALSE(closure_reached(store, {}));
  EXPECT_TRUE(closure_reached(store, {0, 1, 2, 3}));
  store.insert(4, 0, Relation::same);
  store.insert(5, 3, Relation::same);
  EXPECT_TRUE(closure_reached(store, {}));
  GraphStore off(3, Deduction::off);
  off.insert(0, 1, Relation::same);
  off.insert(1, 2, Relation::same);
  EXPECT_FALSE(closure_reached(off, {}));
  off.insert(0, 2, Relation::same);
  EXPECT_TRUE(closure_reached(off, {}));
}

TEST(Leases, OnePersonAtATimeUntilTheTimeIsOver) {
  QuestionLeases leases(10);
  EXPECT_TRUE(leases.take(1, "ann", 0));
  EXPECT_TRUE(leases.take(1, "ann", 1)) << "again";
  EXPECT_FALSE(leases.take(1, "bob", 5));
  EXPECT_TRUE(leases.take(1, "bob", 5, 2)) << "two are wanted";
  EXPECT_EQ(leases.holders(1, 5), (std::vector<std::string>{"ann", "bob"}));
  EXPECT_TRUE(leases.take(1, "cid", 15.5)) << "all are over";
  leases.give_back(1, "cid");
  EXPECT_TRUE(leases.holders(1, 16).empty());
}

std::string refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Lines, SurviveAndWrongOnesAreNamed) {
  const Query q{12, QueryKind::coarse, 7, {3, 1}, 5, "mix"};
  const Query back = parse_question(question_line(q, [](int64_t s) { return "n" + std::to_string(s); }), "x");
  EXPECT_EQ(back.id, 12);
  EXPECT_EQ(back.kind, QueryKind::coarse);
  EXPECT_EQ(back.members, q.members);
  EXPECT_EQ(back.node, 5);
  Answer a{12, 7, 3, Verdict::broken, "ann \"x\"", 1.5, 2.0};
  a.uuid = "u";
  a.answered_at = 1.7e9;
  const Entry entry = parse_entry(answer_line(a), "x");
  EXPECT_EQ(entry.answer.verdict, Verdict::broken);
  EXPECT_EQ(entry.answer.annotator, a.annotator);
  EXPECT_DOUBLE_EQ(entry.answer.seconds, 1.5);
  EXPECT_DOUBLE_EQ(entry.answer.answered_at, 1.7e9);
  EXPECT_EQ(parse_entry(undo_line("u", "ann"), "x").undo, "u");
  const auto wrong = [](const std::string& line) { return refused([&] { parse_entry(line, "f.jsonl:3"); }); };
  EXPECT_NE(wrong("{\"query\": 1,").find("f.jsonl:3"), std::string::npos);
  EXPECT_NE(wrong("[1]").find("no JSON object"), std::string::npos);
  EXPECT_NE(wrong("{\"member\": 1, \"answer\": \"yes\"}").find("query"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 1.5, \"member\": 1, \"answer\": \"yes\"}").find("query"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 99999999999999999999, \"member\": 1, \"answer\": \"yes\"}"), "");
  EXPECT_NE(wrong("{\"query\": 1, \"member\": 1}").find("answer"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 1, \"member\": 1, \"answer\": \"maybe\"}").find("maybe"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 1, \"member\": 1, \"answer\": \"yes\", \"seconds\": \"2\"}").find("seconds"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 1, \"member\": 1, \"answer\": \"yes\", \"annotator\": \"\"}").find("annotator"), std::string::npos);
}

class InRun : public testing::Test {
 protected:
  InRun() {
    std::vector<Query> queries = {{0, QueryKind::captcha, 7, {3, 1, 2}}, {0, QueryKind::pair, 8, {9}}};
    ledger_->record_queries(queries, {"captcha", 0, 50});
  }
  const TestFolder folder_;
  const std::string run_ = folder_.path();
  std::unique_ptr<Ledger> ledger_ = std::make_unique<Ledger>(run_ + "/ledger.sqlite", "run");
};

TEST_F(InRun, TheInboxIsDrainedOnceAndKeepsWhatIsWrong) {
  const Inbox inbox(run_);
  inbox.submit("a1", answer_line({1, 7, 3, Verdict::yes, "ann"}));
  inbox.submit("a1", answer_line({1, 7, 3, Verdict::yes, "ann"}));
  inbox.submit("b", answer_line({1, 7, 1, Verdict::no, "ann"}) + "{nonsense\n" + answer_line({5, 7, 1, Verdict::no, "ann"}));
  EXPECT_EQ(inbox.waiting(), 4);
  std::ofstream(run_ + "/inbox/.half.jsonl") << "{";
  std::vector<std::string> warnings;
  const Intake intake = inbox.drain(*ledger_, warnings);
  EXPECT_EQ(intake.recorded, 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("2 of the answers"), std::string::npos) << warnings[0];
  EXPECT_EQ(inbox.waiting(), 0);
  EXPECT_EQ(split_lines(read_whole_file(run_ + "/inbox/rejected/b.jsonl")).size(), 2u);
  EXPECT_NE(read_whole_file(run_ + "/inbox/rejected/b.txt").find("query 5"), std::string::npos);
  inbox.submit("a1", answer_line({1, 7, 3, Verdict::yes, "ann"}));   // not sure whether it was done
  EXPECT_EQ(inbox.drain(*ledger_, warnings).known, 1);
  EXPECT_NE(refused([&] { inbox.submit("../x", ""); }), "");
}

TEST_F(InRun, ManyFilesAreDrainedTogetherAndEachKeepsItsOwnWrongLines) {
  std::vector<Query> queries = {{0, QueryKind::captcha, 50000, {}}};
  for (int64_t m = 100; m < 2100; ++m) queries[0].members.push_back(m);
  ledger_->record_queries(queries, {"captcha", 1, 60, 4});
  const Inbox inbox(run_);
  for (const std::string who : {"ann", "bea", "cid"}) {   // more than go into one transaction
    const std::string wrong = answer_line({77, 50000, 100, Verdict::yes, who});
    std::string lines = who == "cid" ? wrong : "";
    for (int64_t m : queries[0].members) lines += answer_line({queries[0].id, 50000, m, Verdict::yes, who});
    inbox.submit(who, who == "ann" ? lines + wrong : lines);
  }
  inbox.submit("zoe", answer_line({queries[0].id, 50000, 100, Verdict::no, "zoe"}));
  std::vector<std::string> warnings;
  const Intake intake = inbox.drain(*ledger_, warnings);
  EXPECT_EQ(intake.recorded, 3 * 2000 + 1);
  EXPECT_EQ(warnings.size(), 2u);
  for (const std::string who : {"ann", "cid"}) {
    const std::vector<std::string> kept = split_lines(read_whole_file(run_ + "/inbox/rejected/" + who + ".jsonl"));
    ASSERT_EQ(kept.size(), 1u) << who;
    EXPECT_NE(kept[0].find("\"" + who + "\""), std::string::npos) << kept[0];
    EXPECT_NE(kept[0].find("77"), std::string::npos) << kept[0];
  }
  for (const char* who : {"bea", "zoe"}) EXPECT_FALSE(std::filesystem::exists(run_ + "/inbox/rejected/" + who + ".jsonl")) << who;
  EXPECT_EQ(inbox.waiting(), 0);
  EXPECT_EQ(ledger_->answers_to(queries[0].id, 100).size(), 4u);
}

TEST_F(InRun, TheExchangeHandsOutAndCollectsWholeLines) {
  const auto exchange = make_exchange_labeler(run_, [](int64_t s) { return "img" + std::to_string(s); });
  EXPECT_EQ(exchange->answering(), Answering::later);
  exchange->publish(ledger_->open_queries());
  const std::vector<std::string> lines = split_lines(read_whole_file(run_ + "/questions.jsonl"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("img7"), std::string::npos);
  std::vector<std::string> warnings;
  EXPECT_TRUE(exchange->collect(warnings).empty());
  const std::string first = answer_line({1, 7, 3, Verdict::yes, "ann"}), second = answer_line({2, 8, 9, Verdict::no, "ann"});
  std::ofstream(run_ + "/answers.jsonl") << first << "oops\n" << second.substr(0, 20);
  EXPECT_EQ(exchange->collect(warnings).size(), 1u);
  EXPECT_EQ(warnings.size(), 1u);
  std::ofstream(run_ + "/answers.jsonl", std::ios::app) << second.substr(20);
  const std::vector<Entry> more = exchange->collect(warnings);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].answer.query, 2);
}

TEST_F(InRun, OtherFormatsOutAndIn) {
  ledger_->record_answers({{1, 7, 3, Verdict::yes, "ann", 2.5}, {1, 7, 1, Verdict::no, "bob, jr"}, {2, 8, 9, Verdict::unsure, "ann"}});
  const auto questions = ledger_->to_decide();
  ledger_->record_decisions(decide(questions, ConsensusKind::majority, {}, 10), questions, 0);
  const std::vector<RecordedAnswer> before = ledger_->all_answers();
  for (const std::string ending : {"x.jsonl", "x.csv", "x.json"}) {
    SCOPED_TRACE(ending);
    const std::string path = run_ + "/" + ending;
    const AnswerFormat format = answer_format("", path);
    EXPECT_EQ(export_answers(*ledger_, path, format, ConsensusKind::majority, 20), 3);
    const std::string other = run_ + "/" + ending + ".d";
    fs::create_directory(other);
    Ledger second(other + "/ledger.sqlite", "run");
    std::vector<Query> queries = {{0, QueryKind::captcha, 7, {3, 1, 2}}, {0, QueryKind::pair, 8, {9}}};
    second.record_queries(queries, {"captcha", 0, 50});
    ReadEntries read = import_answers(path, format, "nobody");
    EXPECT_EQ(take_entries(second, read).recorded, 3);
    EXPECT_TRUE(read.bad_lines.empty());
    const std::vector<RecordedAnswer> after = second.all_answers();
    ASSERT_EQ(after.size(), before.size());
    for (size_t k = 0; k < after.size(); ++k) {
      EXPECT_EQ(after[k].answer.j, before[k].answer.j);
      EXPECT_EQ(after[k].answer.verdict, before[k].answer.verdict);
      EXPECT_EQ(after[k].answer.annotator, before[k].answer.annotator);
    }
  }
  EXPECT_EQ(export_answers(*ledger_, run_ + "/e.csv", AnswerFormat::edges, ConsensusKind::majority, 20), 2);
  EXPECT_EQ(read_whole_file(run_ + "/e.csv"), "i,j,weight\n1,7,-1\n3,7,1\n");
  EXPECT_EQ(export_answers(*ledger_, run_ + "/e.h5", AnswerFormat::h5, ConsensusKind::majority, 20), 2);
  const auto edges = [&](const std::string& name) { return WeightedEdges(20, read_pairs(run_ + name, 20).pairs, name); };
  EXPECT_EQ(edges("/e.h5").pairs(), 2);
  EXPECT_EQ(edges("/e.h5").fingerprint(), edges("/e.csv").fingerprint());
  EXPECT_NE(refused([&] { import_answers(run_ + "/e.csv", AnswerFormat::edges, "x"); }).find("pairs, not questions"), std::string::npos);
  std::ofstream(run_ + "/bad.csv") << "task,worker,label\n1:3,ann,yes\n1-3,ann,yes\n";
  const ReadEntries bad = import_answers(run_ + "/bad.csv", AnswerFormat::csv, "x");
  EXPECT_EQ(bad.entries.size(), 1u);
  EXPECT_EQ(bad.bad_lines.size(), 1u);
}

TEST(SimulatedLabeler, AnnotatorsCostsAndTheTaxonomy) {
  SimulatedOptions options;
  options.annotators = 3;
  options.annotator_noise = {0, 1};
  options.grid_cost = 6;
  options.coarse_cost = 0.25;
  // Classes 0, 1 under node 3; class 2 under node 4.
  const auto labeler = make_simulated_labeler({0, 1, 2, -1}, options, {3, 3, 4, -1, -1});
  const Query grid{1, QueryKind::captcha, 0, {1, 2, 3}};
  const std::vector<Answer> first = labeler->answer(grid, 0), second = labeler->answer(grid, 2);
  EXPECT_EQ(first[0].annotator, "labels-1");
  EXPECT_EQ(second[0].annotator, "labels-0");
  EXPECT_TRUE(labeler->answer(grid, 3).empty()) << "there are three";
  EXPECT_EQ(first[0].verdict, Verdict::yes) << "annotator 1 is always wrong";
  EXPECT_EQ(second[0].verdict, Verdict::no);
  EXPECT_EQ(second[2].verdict, Verdict::unsure);
  EXPECT_DOUBLE_EQ(first[0].cost, 2) << "a grid of three costs six";
  const Query coarse{3, QueryKind::coarse, 0, {1, 2}, 3};
  const std::vector<Answer> groups = labeler->answer(coarse, 0);
  EXPECT_EQ(groups[0].verdict, Verdict::yes);
  EXPECT_EQ(groups[1].verdict, Verdict::no);
  EXPECT_DOUBLE_EQ(groups[0].cost, 0.25);
  const auto circle = make_simulated_labeler({0, 1}, {}, {1, 0, -1});
  EXPECT_NE(refused([&] { circle->answer({1, QueryKind::coarse, 0, {1}, 2}, 0); }).find("circle"), std::string::npos);
}

TEST(PairsLabeler, AnswersWhatTheFileHolds) {
  const auto labeler = make_pairs_labeler(WeightedEdges(4, {{0, 1, 1.0}, {0, 2, -0.5}}, "x"));
  const std::vector<Answer> answers = labeler->answer({1, QueryKind::captcha, 0, {1, 2, 3}}, 0);
  EXPECT_EQ(answers[0].verdict, Verdict::yes);
  EXPECT_EQ(answers[1].verdict, Verdict::no);
  EXPECT_EQ(answers[2].verdict, Verdict::unsure);
}

TEST(OracleKeys, AreCheckedTogether) {
  EXPECT_NE(refused([] { Config::defaults({"oracle.votes=3"}); }).find("oracle.annotators"), std::string::npos);
  EXPECT_NE(refused([] { Config::defaults({"oracle.labeler=pairs"}); }).find("oracle.pairs"), std::string::npos);
  EXPECT_NE(refused([] { Config::defaults({"oracle.plateau=3"}); }).find("eval.every"), std::string::npos);
  EXPECT_EQ(refused([] { Config::defaults({"oracle.votes=3", "oracle.labeler=exchange"}); }), "");
}

}  // namespace
}  // namespace pal
