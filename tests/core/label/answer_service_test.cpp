// answer_service: the service of the labeling page: tokens, users, the question queue, group commit, the service
// itself.
#include "core/label/answer_service.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <set>
#include <thread>

#include "core/io/files.h"
#include "core/label/label_stats.h"
#include "core/label/rate_limit.h"
#include "core/label/users.h"
#include "core/oracle/ledger/answer_lines.h"
#include "kernels/base/error.h"
#include "tests/killed_at_write.h"
#include "tests/test_folder.h"

namespace pal::label {
namespace {

const std::string kU1(32, '1'), kU2(32, '2'), kU3(32, '3');

std::vector<oracle::Query> grids(int64_t count, int64_t members) {
  std::vector<oracle::Query> queries;
  for (int64_t q = 0; q < count; ++q) {
    queries.push_back({0, oracle::QueryKind::captcha, q});
    for (int64_t m = 0; m < members; ++m) queries.back().members.push_back(100 + 20 * q + m);
  }
  return queries;
}

CardAnswer filled(const std::string& person, const std::string& uuid, const oracle::Query& card,
                  oracle::Verdict verdict = oracle::Verdict::yes) {
  CardAnswer a{person, uuid, card.id};
  for (const int64_t m : card.members) a.verdicts.emplace_back(m, verdict);
  return a;
}

TEST(QuestionQueue, ReservesAQuestionForOnePersonUntilTheTimeIsOver) {
  QuestionLeases leases(10);
  EXPECT_TRUE(leases.take(1, "ann", 0));
  EXPECT_TRUE(leases.take(1, "ann", 1)) << "again";
  EXPECT_FALSE(leases.take(1, "bob", 5));
  EXPECT_TRUE(leases.take(1, "bob", 5, 2)) << "two are wanted";
  EXPECT_EQ(leases.holders(1, 5), (std::vector<std::string>{"ann", "bob"}));
  EXPECT_TRUE(leases.take(1, "cid", 15.5)) << "all reservations have ended";
  leases.release(1, "cid");
  EXPECT_TRUE(leases.holders(1, 16).empty());
}

TEST(LabelTokens, DependOnTheSecretThePurposeAndThePerson) {
  const TestFolder folder;
  const Tokens tokens(folder / "secret"), again(folder / "secret"), other(folder / "other");
  std::set<std::string> seen;
  for (const char* person : {"ann", "bob"}) {
    for (int64_t n = 0; n < 3; ++n) {
      for (const std::string& t : {tokens.link(person, n), tokens.session(person, n), tokens.ticket(person, n)}) {
        EXPECT_EQ(t.size(), 64u);
        EXPECT_TRUE(seen.insert(t).second);
      }
    }
  }
  EXPECT_EQ(again.link("ann", 1), tokens.link("ann", 1));
  EXPECT_NE(other.link("ann", 1), tokens.link("ann", 1));
  struct stat s {};
  ASSERT_EQ(stat((folder / "secret").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
  io::write_file_atomically(folder / "bad", "abc\n");
  EXPECT_THROW(Tokens(folder / "bad"), Error);
  EXPECT_TRUE(Tokens::equal("abc", "abc"));
  EXPECT_FALSE(Tokens::equal("abc", "abd") || Tokens::equal("abc", "ab"));
}

TEST(LabelTokens, AKillWhileTheSecretIsWrittenLeavesNoFile) {
  const TestFolder folder;
  ASSERT_TRUE(killed_at_write([&] { Tokens(folder / "secret"); }));
  EXPECT_FALSE(std::filesystem::exists(folder / "secret"));
  const Tokens first(folder / "secret");
  EXPECT_FALSE(io::put_new_file(folder / "secret", "another")) << "the second process reads the first one's secret";
  EXPECT_EQ(Tokens(folder / "secret").link("ann", 0), first.link("ann", 0));
  EXPECT_THROW(Tokens(folder / "no folder/secret"), Error);
}

TEST(LabelUsers, LinksWorkOnceAndCookiesLast) {
  const TestFolder folder;
  const Tokens tokens(folder / "secret");
  std::string first, cookie;
  {
    Users people({{"ann", Role::owner}, {"bob"}}, tokens, folder / "links");
    first = people.link("ann");
    const Users::Visit visit = people.enter(first);
    ASSERT_EQ(visit.entry, Users::Entry::granted);
    EXPECT_EQ(visit.person->name, "ann");
    cookie = visit.cookie;
    EXPECT_EQ(people.enter(first).entry, Users::Entry::used);
    EXPECT_EQ(people.enter(std::string(64, 'a')).entry, Users::Entry::unknown);
  }
  Users people({{"ann", Role::owner}, {"bob"}}, tokens, folder / "links");  // the server was started again
  EXPECT_EQ(people.enter(first).entry, Users::Entry::used);
  ASSERT_NE(people.of_cookie(cookie), nullptr);
  EXPECT_EQ(people.of_cookie(cookie)->name, "ann");
  EXPECT_EQ(people.enter(people.link("ann")).entry, Users::Entry::granted) << "a second browser";
  std::string forged = cookie;
  forged.replace(0, forged.find('.'), hexadecimal("bob"));
  for (const std::string& wrong : {std::string(), std::string("a"), std::string(".."), forged, cookie + "0",
                                   cookie.substr(1), std::string("..") + cookie}) {
    EXPECT_EQ(people.of_cookie(wrong), nullptr) << wrong;
  }
  EXPECT_EQ(Users({{"bob"}}, tokens, folder / "links").of_cookie(cookie), nullptr)
      << "a person who is not in the file any more";
}

TEST(LabelUsers, BadFilesAreRefused) {
  const TestFolder folder;
  const auto read = [&](const std::string& text) {
    io::write_file_atomically(folder / "users", text);
    return read_users(folder / "users");
  };
  const std::vector<User> people = read("# us\nann\n\n  bob owner \n<b>Eve</b>\n");
  ASSERT_EQ(people.size(), 3u);
  EXPECT_EQ(people[1].name, "bob");
  EXPECT_EQ(people[1].role, Role::owner);
  EXPECT_EQ(people[0].role, Role::annotator);
  EXPECT_EQ(read("ann\nbob\n")[0].role, Role::owner);
  for (const char* wrong : {"", "# no name\n", "ann\nann\n", "a\x01nn\n"}) EXPECT_THROW(read(wrong), Error) << wrong;
}

TEST(LabelRateLimit, ABurstThenARate) {
  RateLimit limit(2, 3);
  for (int k = 0; k < 3; ++k) EXPECT_TRUE(limit.allow("a", 10));
  EXPECT_FALSE(limit.allow("a", 10));
  EXPECT_TRUE(limit.allow("b", 10));
  EXPECT_TRUE(limit.allow("a", 10.5));
  EXPECT_FALSE(limit.allow("a", 10.5));
}

TEST(GroupCommit, ManyCallersWaitForOneWrite) {
  std::atomic<int> writes{0}, entries{0};
  GroupCommit committer([&](const std::vector<oracle::Entry>& batch) {
    ++writes;
    entries += static_cast<int>(batch.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::vector<std::string> reasons;
    for (const oracle::Entry& e : batch)
      reasons.push_back(e.undo == "bad" ? "no" : e.undo == "throw" ? throw Error(Exit::data, "disk") : "");
    return reasons;
  });
  std::vector<std::thread> threads;
  std::atomic<int> good{0}, bad{0};
  for (int k = 0; k < 40; ++k) {
    threads.emplace_back([&, k] {
      const std::vector<std::string> reasons = committer.put({{{}, "x"}, {{}, k == 7 ? "bad" : "y"}});
      ASSERT_EQ(reasons.size(), 2u);
      ++(reasons[1].empty() ? good : bad);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(entries, 80);
  EXPECT_EQ(good, 39);
  EXPECT_EQ(bad, 1);
  EXPECT_LT(writes, 20);
  EXPECT_THROW(committer.put({{{}, "throw"}}), Error);
  EXPECT_EQ(committer.put({{{}, "x"}}).size(), 1u) << "the thread still runs";
}

class AnswerServiceTest : public testing::Test {
 protected:
  void ask(int64_t count, int64_t members, int64_t votes) {
    std::vector<oracle::Query> queries = grids(count, members);
    ledger_.record_queries(queries, {"captcha", 1, 0, votes});
  }
  const TestFolder folder_;
  oracle::Ledger ledger_{folder_ / "ledger.sqlite", "run"};
};

TEST_F(AnswerServiceTest, GivesAQuestionToAsManyPeopleAsAreWanted) {
  ask(3, 4, 2);
  AnswerService service(ledger_, folder_.path().string(), {});
  const auto ann = service.next("ann", 0, 2), bob = service.next("bob", 0, 2), eve = service.next("eve", 0, 5);
  ASSERT_EQ(ann.size(), 2u);
  EXPECT_EQ(ann[0].id, bob[0].id) << "two answers are wanted";
  ASSERT_EQ(eve.size(), 1u) << "the others are with two people";
  EXPECT_EQ(eve[0].id, 3);
  EXPECT_EQ(service.next("ann", 1, 2)[0].id, ann[0].id) << "a reload shows the same";
  EXPECT_EQ(service.record(filled("ann", kU1, ann[0])), "");
  EXPECT_NE(service.next("ann", 2, 1)[0].id, ann[0].id) << "never what they answered themselves";
  for (const oracle::Query& q : service.next("ann", 350, 5))
    EXPECT_NE(q.id, ann[0].id) << "nor when no other person has it";
  EXPECT_EQ(service.record(filled("bob", kU2, bob[0], oracle::Verdict::no)), "");
  EXPECT_EQ(ledger_.open_questions(), 8);
  EXPECT_EQ(service.next("eve", 400, 5).size(), 2u) << "leases end";
}

TEST_F(AnswerServiceTest, LargeQueriesComeInParts) {
  ask(1, 18, 1);
  AnswerService service(ledger_, folder_.path().string(), {});
  const auto first = service.next("ann", 0, 3);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].members.size(), 15u);
  EXPECT_EQ(service.record(filled("ann", kU1, first[0])), "");
  const auto rest = service.next("ann", 0, 3);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].members, (std::vector<int64_t>{115, 116, 117}));
}

TEST_F(AnswerServiceTest, TheSameAnswerCountsOnceAndUndoSupersedes) {
  ask(2, 3, 1);
  AnswerService service(ledger_, folder_.path().string(), {});
  const oracle::Query card = service.next("ann", 0, 1)[0];
  for (int k = 0; k < 3; ++k) EXPECT_EQ(service.record(filled("ann", kU1, card)), "");
  EXPECT_EQ(ledger_.all_answers().size(), 3u);
  EXPECT_NE(service.record(filled("ann", kU2, card)), "") << "a second answer of the same person";
  EXPECT_NE(service.undo("bob", kU1), "") << "another person's";
  for (int k = 0; k < 2; ++k) EXPECT_EQ(service.undo("ann", kU1), "");
  EXPECT_EQ(ledger_.all_answers().size(), 6u) << "nothing is deleted";
  EXPECT_EQ(service.next("ann", 0, 1)[0].id, card.id) << "asked again";
  EXPECT_EQ(service.record(filled("ann", kU2, card, oracle::Verdict::no)), "");
  CardAnswer changed = filled("ann", kU3, card, oracle::Verdict::unsure);
  changed.replaces = kU2;
  for (int k = 0; k < 2; ++k) EXPECT_EQ(service.record(changed), "");
  const std::vector<PastCard> past = service.past("ann", 10);
  ASSERT_EQ(past.size(), 1u);
  EXPECT_EQ(past[0].uuid, kU3);
  EXPECT_EQ(past[0].verdicts, changed.verdicts);
  CardAnswer foreign = filled("ann", std::string(32, '4'), card);
  foreign.verdicts = {{7, oracle::Verdict::yes}};
  EXPECT_NE(service.record(foreign), "") << "a member that was not asked";
}

TEST_F(AnswerServiceTest, ASkippedCardIsForAnotherPerson) {
  ask(1, 2, 1);
  AnswerService service(ledger_, folder_.path().string(), {});
  EXPECT_EQ(service.record(filled("ann", kU1, service.next("ann", 0, 1)[0], oracle::Verdict::skip)), "");
  EXPECT_TRUE(service.next("ann", 1, 1).empty());
  EXPECT_EQ(service.next("bob", 1, 1).size(), 1u);
  EXPECT_EQ(ledger_.open_questions(), 2);
}

TEST_F(AnswerServiceTest, AnswersFromOtherProgramsCloseQuestions) {
  ask(2, 2, 1);
  AnswerService service(ledger_, folder_.path().string(), {});
  std::string lines;
  for (const int64_t m : {100, 101}) lines += oracle::answer_line({1, 0, m, oracle::Verdict::yes, "file"});
  oracle::Inbox(folder_.path().string()).submit("elsewhere", lines);
  std::vector<std::string> warnings;
  service.refresh(warnings);
  EXPECT_TRUE(warnings.empty());
  const auto cards = service.next("ann", 0, 5);
  ASSERT_EQ(cards.size(), 1u);
  EXPECT_EQ(cards[0].id, 2);
}

TEST_F(AnswerServiceTest, GoldIsShownToEachPersonOnce) {
  ask(30, 1, 1);
  std::vector<oracle::Query> gold = {{0, oracle::QueryKind::captcha, 1, {2, 3}}};
  gold[0].sampler = kGoldSampler;
  ledger_.record_queries(gold, {kGoldSampler, 1, 0, 1});
  AnswerServiceOptions options;
  options.gold_every = 3;
  AnswerService service(ledger_, folder_.path().string(), options);
  for (const std::string person : {"ann", "bob"}) {
    int seen = 0;
    for (int k = 0; k < 10; ++k) {
      const oracle::Query card = service.next(person, 0, 1)[0];
      seen += card.sampler == kGoldSampler;
      EXPECT_EQ(card.sampler == kGoldSampler, k == 3);
      EXPECT_EQ(
          service.record(filled(person, std::string(30, person[0] == 'a' ? 'a' : 'b') + "0" + std::to_string(k), card)),
          "");
    }
    EXPECT_EQ(seen, 1);
  }
  const LabelStats s = label_stats(ledger_, graph::GraphStore(1000), oracle::ConsensusKind::majority, [] {
    std::vector<int64_t> labels(1000, -1);
    labels[1] = labels[2] = 0, labels[3] = 1;
    return labels;
  }());
  EXPECT_EQ(s.gold.at("ann").right, 1);
  EXPECT_EQ(s.gold.at("ann").of, 2);
  EXPECT_EQ(service.next("eve", 0, 40).front().sampler, "captcha");
  for (const oracle::Query& q : service.next("eve", 0, 40))
    EXPECT_EQ(
        service.record(filled("eve", std::string(29, 'e') + std::to_string(100 + q.id), q, oracle::Verdict::skip)), "");
  const std::vector<oracle::Query> left = service.next("zoe", 0, 1), none = service.next("eve", 0, 5);
  EXPECT_EQ(left.size(), 1u);
  for (const oracle::Query& q : none) EXPECT_EQ(q.sampler, kGoldSampler) << "when there is nothing else";
}

// A job writes the ledger; the service has a copy of its open questions and submits answers to the job.
TEST(BesideAJob, AnswersReachTheJobOnceAlsoAfterKills) {
  const TestFolder folder;
  const std::string run = folder.path().string();
  oracle::Ledger job(folder / "ledger.sqlite", "run");
  std::vector<oracle::Query> queries = grids(3, 2);
  job.record_queries(queries, {"captcha", 1, 0});
  const auto publish = [&] {
    std::string lines;
    for (const oracle::Query& q : job.open_queries()) lines += oracle::question_line(q);
    io::write_file_atomically(folder / "questions.jsonl", lines);
  };
  publish();
  AnswerServiceOptions options;
  options.writer = Writer::job;
  std::vector<std::string> warnings;
  {
    oracle::Ledger copy(folder / "copy.sqlite", "run");
    AnswerService service(copy, run, options);
    const auto cards = service.next("ann", 0, 2);
    ASSERT_EQ(cards.size(), 2u);
    EXPECT_EQ(service.record(filled("ann", kU1, cards[0])), "");
    EXPECT_EQ(service.record(filled("ann", kU2, cards[1], oracle::Verdict::no)), "");
    EXPECT_EQ(service.undo("ann", kU2), "");
    EXPECT_NE(service.next("ann", 0, 5)[0].id, cards[0].id) << "although the job has not read it yet";
  }
  std::filesystem::remove_all(folder / "inbox");  // as if the server had been killed before it submitted the answer
  {
    oracle::Ledger copy(folder / "copy.sqlite", "run");
    AnswerService service(copy, run, options);
    EXPECT_EQ(oracle::Inbox(run).drain(job, warnings).recorded, 2);
    publish();
    service.refresh(warnings);
    EXPECT_EQ(service.queue().open(), 2);
    EXPECT_EQ(service.record(filled("ann", kU3, service.next("ann", 0, 1)[0])), "");
    // The other questions are answered by a file.
    job.record_answers({{3, 2, 140, oracle::Verdict::no, "file"}, {3, 2, 141, oracle::Verdict::no, "file"}});
    oracle::Inbox(run).drain(job, warnings);
    publish();
    service.refresh(warnings);
    EXPECT_EQ(service.queue().open(), 0);
  }
  EXPECT_EQ(job.open_questions(), 0);
  EXPECT_TRUE(warnings.empty());
}

// Beside a job gold questions belong to the page: their answers are scored and not submitted, because the job would
// refuse them.
TEST(BesideAJob, GoldIsNotSubmitted) {
  const TestFolder folder;
  oracle::Ledger job(folder / "ledger.sqlite", "run"), copy(folder / "copy.sqlite", "run");
  std::vector<oracle::Query> queries = grids(3, 2);
  job.record_queries(queries, {"captcha", 1, 0});
  std::string lines;
  for (const oracle::Query& q : job.open_queries()) lines += oracle::question_line(q);
  io::write_file_atomically(folder / "questions.jsonl", lines);
  for (int k = 0; k < 2; ++k) add_gold_questions(copy, Writer::job, 1, 2, {0, 0, 1, 1}, 1);  // started twice
  AnswerServiceOptions options;
  options.writer = Writer::job;
  options.gold_every = 1;
  AnswerService service(copy, folder.path().string(), options);
  EXPECT_EQ(service.record(filled("ann", kU1, service.next("ann", 0, 1)[0])), "");
  const oracle::Query gold = service.next("ann", 0, 1)[0];
  ASSERT_EQ(gold.id, kOwnGold);
  EXPECT_EQ(service.record(filled("ann", kU2, gold)), "");
  EXPECT_EQ(service.undo("ann", kU2), "");
  EXPECT_EQ(service.resolve("bob", kU3, 1, 100, oracle::Verdict::no), "");
  std::vector<std::string> warnings;
  const oracle::LedgerIntake intake = oracle::Inbox(folder.path().string()).drain(job, warnings);
  EXPECT_EQ(intake.recorded, 3);
  EXPECT_EQ(intake.withdrawn, 1);
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

}  // namespace
}  // namespace pal::label
