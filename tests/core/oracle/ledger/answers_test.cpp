// answers: stop rules, lines of answers, the inbox, other formats, labelers.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/config/config.h"
#include "core/graph/graph_files.h"
#include "core/io/files.h"
#include "core/oracle/labeler.h"
#include "core/oracle/ledger/answer_lines.h"
#include "core/oracle/ledger/answers_io.h"
#include "core/oracle/ledger/consensus.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/stop_rules.h"
#include "kernels/base/error.h"
#include "tests/test_folder.h"

namespace pal::oracle {
namespace {

namespace fs = std::filesystem;

TEST(StopRules, TheFirstRuleThatHoldsIsNamed) {
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
  EXPECT_EQ(with([](StopState& s) { s.figures = {0.5, 0.4, 0.3}; }), StopReason::none) << "too few evaluations";
  EXPECT_EQ(with([](StopState& s) { s.agreements = {0.1, 0.95, 0.9, 0.92}; }), StopReason::agreement);
  EXPECT_EQ(with([](StopState& s) { s.agreements = {0.95, 0.95, 0.89}; }), StopReason::none);
  state.questions = 1000000;
  state.cost = 1e9;
  EXPECT_EQ(stop_reason({}, state), StopReason::none) << "no limits";
  EXPECT_NE(to_sentence(StopReason::questions, limits).find("100 questions"), std::string::npos);
}

TEST(StopRules, ClosureMeansThatEveryRelationIsKnown) {
  graph::GraphStore store(6);
  store.insert(0, 1, graph::Relation::same);
  store.insert(2, 3, graph::Relation::same);
  store.insert(0, 2, graph::Relation::different);
  EXPECT_FALSE(closure_reached(store, {}));
  EXPECT_TRUE(closure_reached(store, {0, 1, 2, 3}));
  store.insert(4, 0, graph::Relation::same);
  store.insert(5, 3, graph::Relation::same);
  EXPECT_TRUE(closure_reached(store, {}));
  graph::GraphStore off(3, graph::Deduction::off);
  off.insert(0, 1, graph::Relation::same);
  off.insert(1, 2, graph::Relation::same);
  EXPECT_FALSE(closure_reached(off, {}));
  off.insert(0, 2, graph::Relation::same);
  EXPECT_TRUE(closure_reached(off, {}));
}

std::string refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(AnswerLines, AreReadBackAndWrongOnesAreNamed) {
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
  EXPECT_EQ(parse_entry(undo_line({{}, "u", "ann"}), "x").undo, "u");
  const auto wrong = [](const std::string& line) { return refused([&] { parse_entry(line, "f.jsonl:3"); }); };
  EXPECT_NE(wrong("{\"query\": 1,").find("f.jsonl:3"), std::string::npos);
  EXPECT_NE(wrong("[1]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(wrong("{\"member\": 1, \"answer\": \"yes\"}").find("query"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 1.5, \"member\": 1, \"answer\": \"yes\"}").find("query"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 99999999999999999999, \"member\": 1, \"answer\": \"yes\"}"), "");
  EXPECT_NE(wrong("{\"query\": 1, \"member\": 1}").find("answer"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 1, \"member\": 1, \"answer\": \"maybe\"}").find("maybe"), std::string::npos);
  EXPECT_NE(wrong("{\"query\": 1, \"member\": 1, \"answer\": \"yes\", \"seconds\": \"2\"}").find("seconds"),
            std::string::npos);
  EXPECT_NE(wrong("{\"query\": 1, \"member\": 1, \"answer\": \"yes\", \"annotator\": \"\"}").find("annotator"),
            std::string::npos);
}

class InRun : public testing::Test {
 protected:
  InRun() {
    std::vector<Query> queries = {{0, QueryKind::captcha, 7, {3, 1, 2}}, {0, QueryKind::pair, 8, {9}}};
    ledger_->record_queries(queries, {"captcha", 0, 50});
  }
  bool any_waits() const {
    for (const auto& entry : fs::directory_iterator(run_ + "/inbox")) {
      const std::string name = entry.path().filename();
      if (name.front() != '.' && name.ends_with(".jsonl")) return true;
    }
    return false;
  }
  const TestFolder folder_;
  const std::string run_ = folder_.path();
  std::unique_ptr<Ledger> ledger_ = std::make_unique<Ledger>(run_ + "/ledger.sqlite", "run");
};

TEST_F(InRun, TheInboxIsDrainedOnceAndKeepsWrongLines) {
  Inbox inbox(run_);
  inbox.submit("a1", answer_line({1, 7, 3, Verdict::yes, "ann"}));
  inbox.submit("a1", answer_line({1, 7, 3, Verdict::yes, "ann"}));
  inbox.submit("b",
               answer_line({1, 7, 1, Verdict::no, "ann"}) + "{nonsense\n" + answer_line({5, 7, 1, Verdict::no, "ann"}));
  std::ofstream(run_ + "/inbox/.half.jsonl") << "{";
  std::vector<std::string> warnings;
  const LedgerIntake intake = inbox.drain(*ledger_, warnings);
  EXPECT_EQ(intake.recorded, 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("2 submitted answers"), std::string::npos) << warnings[0];
  EXPECT_FALSE(any_waits());
  EXPECT_EQ(split_lines(io::read_whole_file(run_ + "/inbox/rejected/b.jsonl")).size(), 2u);
  EXPECT_NE(io::read_whole_file(run_ + "/inbox/rejected/b.txt").find("query 5"), std::string::npos);
  inbox.submit("a1", answer_line({1, 7, 3, Verdict::yes, "ann"}));  // the sender does not know whether it succeeded
  EXPECT_EQ(inbox.drain(*ledger_, warnings).known, 1);
  EXPECT_NE(refused([&] { inbox.submit("../x", ""); }), "");
}

TEST_F(InRun, ManyFilesAreDrainedTogetherAndEachKeepsItsOwnWrongLines) {
  std::vector<Query> queries = {{0, QueryKind::captcha, 50000, {}}};
  for (int64_t m = 100; m < 2100; ++m) queries[0].members.push_back(m);
  ledger_->record_queries(queries, {"captcha", 1, 60, 4});
  Inbox inbox(run_);
  for (const std::string who : {"ann", "bea", "cid"}) {  // more than go into one transaction
    const std::string wrong = answer_line({77, 50000, 100, Verdict::yes, who});
    std::string lines = who == "cid" ? wrong : "";
    for (int64_t m : queries[0].members) lines += answer_line({queries[0].id, 50000, m, Verdict::yes, who});
    inbox.submit(who, who == "ann" ? lines + wrong : lines);
  }
  inbox.submit("zoe", answer_line({queries[0].id, 50000, 100, Verdict::no, "zoe"}));
  std::vector<std::string> warnings;
  const LedgerIntake intake = inbox.drain(*ledger_, warnings);
  EXPECT_EQ(intake.recorded, 3 * 2000 + 1);
  EXPECT_EQ(warnings.size(), 2u);
  for (const std::string who : {"ann", "cid"}) {
    const std::vector<std::string> kept = split_lines(io::read_whole_file(run_ + "/inbox/rejected/" + who + ".jsonl"));
    ASSERT_EQ(kept.size(), 1u) << who;
    EXPECT_NE(kept[0].find("\"" + who + "\""), std::string::npos) << kept[0];
    EXPECT_NE(kept[0].find("77"), std::string::npos) << kept[0];
  }
  for (const char* who : {"bea", "zoe"})
    EXPECT_FALSE(std::filesystem::exists(run_ + "/inbox/rejected/" + who + ".jsonl")) << who;
  EXPECT_FALSE(any_waits());
  EXPECT_EQ(ledger_->answers_to(queries[0].id, 100).size(), 4u);
}

const std::string kDeepLine = R"({"query": 1, "member": 3, "answer": "yes", "seconds": )" + std::string(300'000, '[') +
                              std::string(300'000, ']') + "}\n";

// An entry of any other kind in the inbox is skipped with one warning; the answers beside it count, and nothing throws.
TEST_F(InRun, OddEntriesOfTheInboxArePassedOver) {
  const std::string box = run_ + "/inbox/";
  const auto good = [](int64_t member) { return answer_line({1, 7, member, Verdict::yes, "ann"}); };
  fs::create_directories(box + "rejected/kept.jsonl/in-the-way");  // where refused lines belong
  struct Case {
    const char* name;
    std::function<void(const std::string&)> make;
    bool stays;
  };
  const Case cases[] = {
      {"folder", [](const std::string& p) { fs::create_directory(p); }, true},
      {"dangling", [](const std::string& p) { fs::create_symlink("nowhere", p); }, true},
      {"pipe", [](const std::string& p) { ASSERT_EQ(mkfifo(p.c_str(), 0600), 0); }, true},
      {"device", [](const std::string& p) { fs::create_symlink("/dev/zero", p); }, true},
      {"huge", [](const std::string& p) { std::ofstream(p).close(), fs::resize_file(p, kMaxAnswerBytes + 1); }, true},
      {"endless", [](const std::string& p) { std::ofstream(p) << std::string(kMaxAnswerLines + 1, '\n'); }, true},
      {"kept", [](const std::string& p) { std::ofstream(p) << "{nonsense\n"; }, true},
      {"deep", [](const std::string& p) { std::ofstream(p) << kDeepLine; }, false},
      {"wide", [](const std::string& p) { std::ofstream(p) << std::string(kMaxAnswerLine + 1, ' ') + "{}\n"; }, false},
      {"line\nbreak $(id)", [](const std::string& p) { std::ofstream(p) << "{nonsense\n"; }, false},
      {"not \xff utf8", [](const std::string& p) { std::ofstream(p) << "\xff\n"; }, false},
      {"partial", [](const std::string& p) { std::ofstream(p) << "{\"query\": 1"; }, false},
  };
  Inbox inbox(run_);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    c.make(box + c.name + ".jsonl");
    std::vector<std::string> warnings;
    EXPECT_EQ(inbox.drain(*ledger_, warnings).recorded, 0);
    EXPECT_EQ(warnings.size(), 1u);
    EXPECT_EQ(fs::exists(fs::symlink_status(box + c.name + ".jsonl")), c.stays);
  }
  std::ofstream(box + "empty.jsonl").close();
  inbox.submit("zoe", good(3));
  std::vector<std::string> warnings;
  EXPECT_EQ(inbox.drain(*ledger_, warnings).recorded, 1);
  EXPECT_EQ(warnings.size(), 0u) << warnings[0] << ": each is named once";
}

TEST_F(InRun, TheReasonOfARefusedLineIsShort) {
  Inbox inbox(run_);
  const std::string wide(60'000, 'x');
  const char* const good = R"({"query": 1, "member": 3, "answer": "yes")";
  for (const std::string& line :
       {R"({"query": 1, "member": 3, "answer": ")" + wide + "\"}", good + (R"(, "seconds": ")" + wide + "\"}"),
        good + (R"(, "undo": ")" + wide + "\"}")}) {
    inbox.submit("wide", line + "\n");
    std::vector<std::string> warnings;
    EXPECT_EQ(inbox.drain(*ledger_, warnings).recorded, 0);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_LT(warnings[0].size(), 1000u) << warnings[0];
  }
}

TEST_F(InRun, AnAnswersFileThatCannotBeReadIsPassedOver) {
  const auto exchange = make_file_labeler(run_, {});
  const std::string path = run_ + "/answers.jsonl";
  std::vector<std::string> warnings;
  fs::create_directory(path);
  for (int round = 0; round < 2; ++round) EXPECT_TRUE(exchange->collect(warnings).empty());
  EXPECT_EQ(warnings.size(), 1u);
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(exchange->collect(warnings).empty());
  fs::remove(path);
  std::ofstream(path).close();
  EXPECT_TRUE(exchange->collect(warnings).empty());
  std::ofstream(path) << std::string(kMaxAnswerLines + 1, '\n');
  EXPECT_TRUE(exchange->collect(warnings).empty());
  EXPECT_EQ(warnings.size(), 2u);
  std::ofstream(path) << kDeepLine << answer_line({1, 7, 3, Verdict::yes, "ann"});
  EXPECT_EQ(exchange->collect(warnings).size(), 1u);
  EXPECT_EQ(warnings.size(), 3u);
}

TEST_F(InRun, DeeplyNestedFilesAreRefused) {
  const std::string nested = std::string(300'000, '[') + std::string(300'000, ']');
  const auto tasks = [&](const std::string& query, const std::string& by) {
    return R"([{"data": {"query": )" + query + R"(, "member": 3}, "annotations": [{"completed_by": )" + by +
           R"(, "result": [{"value": {"choices": ["yes"]}}]}]}])";
  };
  for (const std::string& text : {nested, tasks(nested, "1"), tasks("1", nested), tasks("1", "1").substr(1)}) {
    std::ofstream(run_ + "/deep.json") << text;
    EXPECT_NE(refused([&] { import_answers(run_ + "/deep.json", AnswerFormat::label_studio, "x"); }), "");
  }
  std::ofstream(run_ + "/deep.jsonl") << kDeepLine;
  EXPECT_EQ(import_answers(run_ + "/deep.jsonl", AnswerFormat::jsonl, "x").bad_lines.size(), 1u);
}

TEST_F(InRun, TheFileLabelerPublishesAndCollectsWholeLines) {
  const auto exchange = make_file_labeler(run_, [](int64_t s) { return "img" + std::to_string(s); });
  EXPECT_EQ(exchange->answering(), Answering::later);
  exchange->publish(ledger_->open_queries());
  const std::vector<std::string> lines = split_lines(io::read_whole_file(run_ + "/questions.jsonl"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("img7"), std::string::npos);
  std::vector<std::string> warnings;
  EXPECT_TRUE(exchange->collect(warnings).empty());
  const std::string first = answer_line({1, 7, 3, Verdict::yes, "ann"}),
                    second = answer_line({2, 8, 9, Verdict::no, "ann"});
  std::ofstream(run_ + "/answers.jsonl") << first << "oops\n" << second.substr(0, 20);
  EXPECT_EQ(exchange->collect(warnings).size(), 1u);
  EXPECT_EQ(warnings.size(), 1u);
  std::ofstream(run_ + "/answers.jsonl", std::ios::app) << second.substr(20);
  const std::vector<Entry> more = exchange->collect(warnings);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].answer.query, 2);
}

TEST_F(InRun, OtherFormatsAreExportedAndImported) {
  ledger_->record_answers(
      {{1, 7, 3, Verdict::yes, "ann", 2.5}, {1, 7, 1, Verdict::no, "=bob, jr"}, {2, 8, 9, Verdict::unsure, "ann"}});
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
    ReadEntries read = import_answers(path, format, "zoe");
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
  EXPECT_EQ(io::read_whole_file(run_ + "/e.csv"), "i,j,weight\n1,7,-1\n3,7,1\n");
  EXPECT_EQ(export_answers(*ledger_, run_ + "/e.h5", AnswerFormat::h5, ConsensusKind::majority, 20), 2);
  const auto edges = [&](const std::string& name) {
    return graph::WeightedEdges(20, graph::read_pairs(run_ + name, 20).pairs, name);
  };
  EXPECT_EQ(edges("/e.h5").pairs(), 2);
  EXPECT_EQ(edges("/e.h5").fingerprint(), edges("/e.csv").fingerprint());
  EXPECT_NE(refused([&] { import_answers(run_ + "/e.csv", AnswerFormat::edges, "x"); }).find("pairs, not questions"),
            std::string::npos);
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
  EXPECT_NE(refused([&] { circle->answer({1, QueryKind::coarse, 0, {1}, 2}, 0); }).find("cycle"), std::string::npos);
}

TEST(PairsLabeler, AnswersFromTheFile) {
  const auto labeler = make_pairs_labeler(graph::WeightedEdges(4, {{0, 1, 1.0}, {0, 2, -0.5}}, "x"));
  const std::vector<Answer> answers = labeler->answer({1, QueryKind::captcha, 0, {1, 2, 3}}, 0);
  EXPECT_EQ(answers[0].verdict, Verdict::yes);
  EXPECT_EQ(answers[1].verdict, Verdict::no);
  EXPECT_EQ(answers[2].verdict, Verdict::unsure);
}

TEST(OracleKeys, AreCheckedTogether) {
  EXPECT_NE(refused([] { config::Config::defaults({"oracle.votes=3"}); }).find("oracle.annotators"), std::string::npos);
  EXPECT_NE(refused([] { config::Config::defaults({"oracle.labeler=pairs"}); }).find("oracle.pairs"),
            std::string::npos);
  EXPECT_NE(refused([] { config::Config::defaults({"oracle.plateau=3"}); }).find("eval.every"), std::string::npos);
  EXPECT_EQ(refused([] { config::Config::defaults({"oracle.votes=3", "oracle.labeler=exchange"}); }), "");
}

}  // namespace
}  // namespace pal::oracle
