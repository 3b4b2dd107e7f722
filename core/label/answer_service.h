// answer_service: where the labeling page hands out questions and takes answers: the run's ledger, or a copy of its open questions
// beside a job that writes it.
//
// Alone the service writes RUN/ledger.sqlite itself. Beside a job it keeps a ledger of its own, RUN/label/ledger.sqlite, of the
// questions that the job hands out (RUN/questions.jsonl), and hands every answer on through the inbox. Either way an answer
// is acknowledged once it is on disk, and the same one handed in twice counts once.
// What one person says to one card has an uuid; of its members, UUID-MEMBER.
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

// One card filled in.
struct CardAnswer {
  std::string person, uuid;
  int64_t query = 0;
  std::vector<std::pair<int64_t, oracle::Verdict>> verdicts = {};
  double seconds = 0;         // for the whole card
  std::string replaces = {};  // uuid of the card by the same person that it stands in place of; "": none
};
// One that was filled in before, newest first in a list.
struct PastCard {
  std::string uuid;
  int64_t query = 0, template_sample = 0;
  oracle::QueryKind kind = oracle::QueryKind::captcha;
  std::vector<std::pair<int64_t, oracle::Verdict>> verdicts = {};
  double answered_at = 0;
};
// What an answer of people costs, as the simulated ones do.
struct AnswerPrices {
  double pair = 1, grid = 0, coarse = 0;  // grid: of all members together; 0: as pairs
};

// Who writes the run's ledger: this process, or a job beside it.
enum class Writer { page, job };
struct AnswerServiceOptions {
  Writer writer = Writer::page;
  int64_t votes = 1;  // beside a job: answers wanted of each question
  AnswerPrices prices = {};
  int64_t gold_every = 20;  // cards of a person from one gold question to the next
};
// Gold questions are those of this sampler: their answers are known, every person is shown each of them once, as if it
// were any other. Beside a job they are the page's own, numbered from here on, and their answers are not handed on.
inline constexpr const char* kGoldSampler = "gold";
inline constexpr int64_t kOwnGold = int64_t{1} << 40;

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
  // `ledger`: the run's own, or the copy beside a job.
  AnswerService(oracle::Ledger& ledger, const std::string& run_dir, const AnswerServiceOptions& options);

  // Cards for a person, theirs for a while: QuestionQueue::next, and gold questions among them.
  std::vector<oracle::Query> next(const std::string& person, double now, int64_t count);
  // On disk when it returns "" ; otherwise the sentence why it was refused.
  std::string record(const CardAnswer& answer);
  std::string undo(const std::string& person, const std::string& uuid);
  // Takes every answer to a question back and puts the owner's in their place.
  std::string resolve(const std::string& owner, const std::string& uuid, int64_t query, int64_t member,
                      oracle::Verdict verdict);
  std::vector<PastCard> past(const std::string& person, int64_t cards) const;

  // What others did meanwhile: questions that the job beside hands out, or answers in the inbox. Sentences about what was
  // refused are added to `warnings`. To be called now and then, by one thread.
  void refresh(std::vector<std::string>& warnings);
  // The ledger was given new questions.
  void reload();

  oracle::Ledger& ledger() { return ledger_; }
  const QuestionQueue& queue() const { return queue_; }
  Writer writer() const { return options_.writer; }
  int64_t changes() const { return changes_; }  // grows with every answer

 private:
  std::vector<std::string> write(const std::vector<oracle::Entry>& entries);
  void hand_on(const std::vector<oracle::Entry>& entries);
  std::string put(std::vector<oracle::Entry> entries);
  std::vector<oracle::Entry> withdrawals(const std::string& person, const std::string& uuid) const;
  double price(oracle::QueryKind kind, size_t members) const;
  void take_in(std::vector<std::string>& warnings);
  void read_job_questions(std::vector<std::string>& warnings);
  void add_gold(const std::string& person, std::vector<oracle::Query>& cards);

  oracle::Ledger& ledger_;
  const AnswerServiceOptions options_;
  const oracle::Inbox inbox_;
  const std::string questions_;  // file of the job beside
  QuestionQueue queue_;
  GroupCommit committer_;
  std::atomic<int64_t> changes_{0}, batches_{0};
  std::string seen_questions_;                        // of refresh() alone
  std::mutex mutex_;                                  // for all below
  std::set<std::pair<int64_t, int64_t>> handed_out_;  // by the job beside: (query, member)
  std::vector<oracle::Query> gold_;
  std::map<std::string, std::set<int64_t>> gold_done_;  // by person
  std::map<std::string, int64_t> since_gold_;           // cards answered, by person
};

}  // namespace pal::label
