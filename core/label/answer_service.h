// answer_service: gives questions to the people at the labeling page and records their answers.
//
// Without a job the service writes RUN/ledger.sqlite itself. While a job writes that ledger, the service keeps its own,
// RUN/label/ledger.sqlite, with the questions that the job publishes (RUN/questions.jsonl), and submits every answer
// through the inbox. In both cases an answer is acknowledged once it is on disk, and an answer that is sent twice
// counts once. A person's answer to one card has an uuid; the answer to each of its members has UUID-MEMBER.
// Thread: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/label/question_queue.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/ledger/ledger.h"

namespace pal::label {

// The answer to one card.
struct CardAnswer {
  std::string person, uuid;
  int64_t query = 0;
  std::vector<std::pair<int64_t, oracle::Verdict>> verdicts = {};
  double seconds = 0;         // for the whole card
  std::string replaces = {};  // uuid of the same person's card that it replaces; "": none
};
// A card that was answered before; lists have the newest first.
struct PastCard {
  std::string uuid;
  int64_t query = 0, template_sample = 0;
  oracle::QueryKind kind = oracle::QueryKind::captcha;
  std::vector<std::pair<int64_t, oracle::Verdict>> verdicts = {};
  double answered_at = 0;
};
// The cost of an answer, as for simulated annotators.
struct AnswerPrices {
  double pair = 1, grid = 0, coarse = 0;  // grid: of all members together; 0: as pairs
};

// Which process writes the run's ledger: this one, or a job.
enum class Writer { page, job };
struct AnswerServiceOptions {
  Writer writer = Writer::page;
  int64_t votes = 1;  // with Writer::job: answers wanted for each question
  AnswerPrices prices = {};
  int64_t gold_every = 20;  // cards of a person from one gold question to the next
};
// Gold questions are those of this sampler: their answers are known, and every person is shown each of them once, like
// any other question. With Writer::job they belong to the page, are numbered from kOwnGold on, and their answers are
// not submitted to the job.
inline constexpr const char* kGoldSampler = "gold";
inline constexpr int64_t kOwnGold = int64_t{1} << 40;
// Adds gold grids of `members` until the ledger (the run's, or with Writer::job the page's own) holds `count`: a
// labeled sample, and others of which about a third are of its class. Drawn by the seed. Throws Error (usage) when
// fewer than two classes have two labeled samples.
void add_gold_questions(oracle::Ledger& ledger, Writer writer, int64_t count, int64_t members,
                        const std::vector<int64_t>& labels, uint64_t seed);

// Answers of many people, one sync: a caller that arrives while a batch is being written joins the next batch.
// Thread: any number of threads call put(); one of them writes for all that wait.
class GroupCommit {
 public:
  // Writes a batch; returns once it is on disk. A sentence for each entry, "" for those that were recorded.
  using Write = std::function<std::vector<std::string>(const std::vector<oracle::Entry>&)>;
  explicit GroupCommit(Write write) : write_(std::move(write)) {}

  // Returns once these are on disk, with a sentence for each. Entries of one call stay together and in order.
  std::vector<std::string> put(std::vector<oracle::Entry> entries);

 private:
  struct Batch {
    std::vector<oracle::Entry> entries;
    std::vector<std::string> reasons;
    std::exception_ptr error;
    bool done = false;
  };
  void write(const std::vector<std::shared_ptr<Batch>>& batches) const;

  const Write write_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Batch>> waiting_;
  bool writing_ = false;
};

class AnswerService {
 public:
  // `ledger`: the run's ledger; with Writer::job the page's own.
  AnswerService(oracle::Ledger& ledger, const std::string& run_dir, const AnswerServiceOptions& options);

  // Cards for a person, reserved for a while: QuestionQueue::next, with gold questions among them.
  std::vector<oracle::Query> next(const std::string& person, double now, int64_t count);
  // On disk when it returns ""; otherwise the sentence why it was refused.
  std::string record(const CardAnswer& answer);
  std::string undo(const std::string& person, const std::string& uuid);
  // Withdraws every answer to a question and records the owner's answer instead.
  std::string resolve(const std::string& owner, const std::string& uuid, int64_t query, int64_t member,
                      oracle::Verdict verdict);
  std::vector<PastCard> past(const std::string& person, int64_t cards) const;

  // Reads the questions that the job publishes, or the answers in the inbox. Adds a sentence to `warnings` for each one
  // that was refused. One thread calls it now and then.
  void refresh(std::vector<std::string>& warnings);
  // To be called after new questions were recorded in the ledger.
  void reload();

  oracle::Ledger& ledger() { return ledger_; }
  const QuestionQueue& queue() const { return queue_; }
  Writer writer() const { return options_.writer; }
  int64_t changes() const { return changes_; }  // grows with every answer

 private:
  std::vector<std::string> write(const std::vector<oracle::Entry>& entries);
  void submit(const std::vector<oracle::Entry>& entries);
  std::string put(std::vector<oracle::Entry> entries);
  std::vector<oracle::Entry> withdrawals(const std::string& person, const std::string& uuid) const;
  double price(oracle::QueryKind kind, size_t members) const;
  void take_in(std::vector<std::string>& warnings);
  void read_job_questions(std::vector<std::string>& warnings);
  void add_gold(const std::string& person, std::vector<oracle::Query>& cards);

  oracle::Ledger& ledger_;
  const AnswerServiceOptions options_;
  oracle::Inbox inbox_;
  const std::string questions_;  // of the job
  QuestionQueue queue_;
  GroupCommit committer_;
  std::atomic<int64_t> changes_{0}, batches_{0};
  std::string seen_questions_;                        // used by refresh() only
  std::vector<std::string> first_warnings_;           // of the constructor; the first refresh() reports them
  std::mutex mutex_;                                  // guards all members below
  std::set<std::pair<int64_t, int64_t>> handed_out_;  // published by the job: (query, member)
  std::vector<oracle::Query> gold_;
  std::map<std::string, std::set<int64_t>> gold_done_;  // by person
  std::map<std::string, int64_t> since_gold_;           // cards answered, by person
};

}  // namespace pal::label
