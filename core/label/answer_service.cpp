#include "core/label/answer_service.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/io/files.h"
#include "core/oracle/ledger/answer_lines.h"
#include "kernels/base/error.h"

namespace pal::label {
namespace {

constexpr int64_t kRemembered = 2000;  // newest answers of a person that may be undone

std::string row_uuid(const std::string& card, int64_t member) { return card + "-" + std::to_string(member); }
std::string card_of(const std::string& row) { return row.substr(0, row.rfind('-')); }

}  // namespace

std::vector<std::string> GroupCommit::put(std::vector<oracle::Entry> entries) {
  const auto mine = std::make_shared<Batch>();
  mine->entries = std::move(entries);
  std::unique_lock<std::mutex> lock(mutex_);
  waiting_.push_back(mine);
  while (!mine->done) {
    if (writing_) {
      changed_.wait(lock);
      continue;
    }
    writing_ = true;
    const std::vector<std::shared_ptr<Batch>> batches = std::move(waiting_);
    waiting_.clear();
    lock.unlock();
    write(batches);
    lock.lock();
    for (const auto& b : batches) b->done = true;
    writing_ = false;
    changed_.notify_all();
  }
  if (mine->error) std::rethrow_exception(mine->error);
  return mine->reasons;
}

void GroupCommit::write(const std::vector<std::shared_ptr<Batch>>& batches) const {
  std::vector<oracle::Entry> all;
  for (const auto& b : batches) all.insert(all.end(), b->entries.begin(), b->entries.end());
  try {
    const std::vector<std::string> reasons = write_(all);
    size_t at = 0;
    for (const auto& b : batches) {
      b->reasons.assign(reasons.begin() + static_cast<ptrdiff_t>(at),
                        reasons.begin() + static_cast<ptrdiff_t>(at + b->entries.size()));
      at += b->entries.size();
    }
  } catch (...) {
    for (const auto& b : batches) b->error = std::current_exception();
  }
}

AnswerService::AnswerService(oracle::Ledger& ledger, const std::string& run_dir, const AnswerServiceOptions& options)
    : ledger_(ledger),
      options_(options),
      inbox_(run_dir),
      questions_(run_dir + "/questions.jsonl"),
      committer_([this](const std::vector<oracle::Entry>& entries) { return write(entries); }) {
  for (const oracle::RecordedAnswer& r : ledger_.all_answers()) {
    if (r.sampler == kGoldSampler && r.superseded_by == 0) gold_done_[r.answer.annotator].insert(r.answer.query);
  }
  std::vector<std::string> warnings;
  refresh(warnings);
  first_warnings_ = std::move(warnings);
  reload();
  if (options_.writer == Writer::page) return;
  // The last server may have been killed after it wrote its own ledger and before it wrote the inbox: the answers to
  // questions that the job still publishes are submitted again.
  std::vector<oracle::Entry> entries;
  for (const oracle::RecordedAnswer& r : ledger_.all_answers()) {
    if (r.superseded_by == 0 && r.said != "withdrawn" && handed_out_.count({r.answer.query, r.answer.j}))
      entries.push_back({r.answer});
  }
  submit(entries);
}

void AnswerService::submit(const std::vector<oracle::Entry>& entries) {
  std::string lines;
  for (const oracle::Entry& e : entries) {
    if (e.answer.query >= kOwnGold) continue;
    lines += e.undo.empty() ? oracle::answer_line(e.answer) : oracle::undo_line(e);
  }
  // The names are in order of time: the job reads the files by name, and an answer must come before its undo.
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  if (!lines.empty())
    inbox_.submit("page-" + std::to_string(now) + "-" + std::to_string(getpid()) + "-" + std::to_string(++batches_),
                  lines);
}

std::vector<std::string> AnswerService::write(const std::vector<oracle::Entry>& entries) {
  std::vector<std::string> reasons = ledger_.take(entries).refused;
  if (options_.writer == Writer::job) {
    std::vector<oracle::Entry> taken;
    for (size_t k = 0; k < entries.size(); ++k) {
      if (reasons[k].empty()) taken.push_back(entries[k]);
    }
    submit(taken);
  }
  ++changes_;
  return reasons;
}

std::string AnswerService::put(std::vector<oracle::Entry> entries) {
  for (const std::string& reason : committer_.put(std::move(entries))) {
    if (!reason.empty()) return reason;
  }
  return "";
}

double AnswerService::price(oracle::QueryKind kind, size_t members) const {
  const bool grid = kind == oracle::QueryKind::captcha || kind == oracle::QueryKind::outliers;
  if (grid && options_.prices.grid > 0) return options_.prices.grid / static_cast<double>(members);
  return kind == oracle::QueryKind::coarse && options_.prices.coarse > 0 ? options_.prices.coarse
                                                                         : options_.prices.pair;
}

std::string AnswerService::record(const CardAnswer& card) {
  std::vector<oracle::Entry> entries;
  if (!card.replaces.empty()) entries = withdrawals(card.person, card.replaces);
  const bool again = !entries.empty();
  const std::optional<oracle::QueryKind> kind = ledger_.kind(card.query);
  if (!kind) return "there is no question " + std::to_string(card.query);
  const double members = static_cast<double>(card.verdicts.size()), cost = price(*kind, card.verdicts.size());
  for (const auto& [member, verdict] : card.verdicts) {
    entries.push_back(
        {{card.query, -1, member, verdict, card.person, card.seconds / members, cost, row_uuid(card.uuid, member)}});
  }
  const std::string reason = put(std::move(entries));
  if (again) reload();
  if (reason.empty()) {
    queue_.answered(card.person, card.query, card.verdicts);
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool gold =
        std::any_of(gold_.begin(), gold_.end(), [&](const oracle::Query& q) { return q.id == card.query; });
    if (gold) gold_done_[card.person].insert(card.query);
    since_gold_[card.person] = gold ? 0 : since_gold_[card.person] + 1;
  }
  return reason;
}

std::vector<oracle::Entry> AnswerService::withdrawals(const std::string& person, const std::string& uuid) const {
  std::vector<oracle::Entry> entries;
  for (const oracle::RecordedAnswer& r : ledger_.last_answers(person, kRemembered)) {
    if (card_of(r.answer.uuid) != uuid || r.superseded_by != 0) continue;
    oracle::Entry e;
    e.answer.query = r.answer.query;
    e.answer.annotator = person;
    e.undo = r.answer.uuid;
    entries.push_back(std::move(e));
  }
  return entries;
}

std::string AnswerService::undo(const std::string& person, const std::string& uuid) {
  std::vector<oracle::Entry> entries = withdrawals(person, uuid);
  if (entries.empty()) {
    const std::vector<oracle::RecordedAnswer> last = ledger_.last_answers(person, kRemembered);
    const bool known = std::any_of(last.begin(), last.end(),
                                   [&](const oracle::RecordedAnswer& r) { return card_of(r.answer.uuid) == uuid; });
    return known ? "" : "no answer of yours has this number: " + uuid;  // undone before: nothing to do
  }
  const std::string reason = put(std::move(entries));
  reload();
  return reason;
}

std::string AnswerService::resolve(const std::string& owner, const std::string& uuid, int64_t query, int64_t member,
                                   oracle::Verdict verdict) {
  std::vector<oracle::Entry> entries;
  for (const oracle::RecordedAnswer& r : ledger_.answers_to(query, member)) {
    if (r.answer.uuid == row_uuid(uuid, member)) return "";  // submitted before
    oracle::Entry e;
    e.answer.query = query;
    e.by = owner;
    e.undo = r.answer.uuid;
    entries.push_back(std::move(e));
  }
  if (entries.empty())
    return "question " + std::to_string(query) + " about sample " + std::to_string(member) + " has no answer";
  entries.push_back({{query, -1, member, verdict, owner, 0, options_.prices.pair, row_uuid(uuid, member)}});
  const std::string reason = put(std::move(entries));
  reload();
  return reason;
}

std::vector<PastCard> AnswerService::past(const std::string& person, int64_t cards) const {
  std::vector<PastCard> past;
  for (const oracle::RecordedAnswer& r : ledger_.last_answers(person, cards * 16)) {
    if (r.superseded_by != 0) continue;
    const std::string uuid = card_of(r.answer.uuid);
    if (past.empty() || past.back().uuid != uuid) {
      if (static_cast<int64_t>(past.size()) == cards) break;
      past.push_back({uuid, r.answer.query, r.answer.i, r.kind, {}, r.answer.answered_at});
    }
    past.back().verdicts.emplace_back(r.answer.j, r.answer.verdict);
  }
  for (PastCard& p : past) std::reverse(p.verdicts.begin(), p.verdicts.end());
  return past;
}

std::vector<oracle::Query> AnswerService::next(const std::string& person, double now, int64_t count) {
  std::vector<oracle::Query> cards = queue_.next(person, now, count);
  add_gold(person, cards);
  return cards;
}

// A gold question comes first after every gold_every cards, or when there is no other card: a job that waits for
// answers also waits for these.
void AnswerService::add_gold(const std::string& person, std::vector<oracle::Query>& cards) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (since_gold_[person] < options_.gold_every && !cards.empty()) return;
  const std::set<int64_t>& done = gold_done_[person];
  const auto fresh =
      std::find_if(gold_.begin(), gold_.end(), [&](const oracle::Query& q) { return !done.count(q.id); });
  if (fresh != gold_.end()) cards.insert(cards.begin(), *fresh);
}

void AnswerService::reload() {
  std::vector<oracle::Ledger::Waiting> waiting = ledger_.waiting();
  std::erase_if(waiting, [](const oracle::Ledger::Waiting& w) { return w.query.sampler == kGoldSampler; });
  std::vector<oracle::Query> gold = ledger_.queries();
  std::erase_if(gold, [](const oracle::Query& q) { return q.sampler != kGoldSampler; });
  const std::lock_guard<std::mutex> lock(mutex_);
  gold_ = std::move(gold);
  if (options_.writer == Writer::job) {
    // The job no longer publishes a question that was answered in another way.
    for (oracle::Ledger::Waiting& w : waiting) {
      for (size_t k = 0; k < w.query.members.size(); ++k) {
        if (!handed_out_.count({w.query.id, w.query.members[k]})) w.wanted[k] = 0;
      }
    }
  }
  queue_.load(std::move(waiting));
}

void AnswerService::refresh(std::vector<std::string>& warnings) {
  for (std::string& w : std::exchange(first_warnings_, {})) warnings.push_back(std::move(w));
  options_.writer == Writer::page ? take_in(warnings) : read_job_questions(warnings);
}

void AnswerService::take_in(std::vector<std::string>& warnings) {
  const oracle::LedgerIntake intake = inbox_.drain(ledger_, warnings);
  if (intake.recorded + intake.withdrawn == 0) return;
  ++changes_;
  reload();
}

void AnswerService::read_job_questions(std::vector<std::string>& warnings) {
  if (!std::filesystem::exists(questions_)) return;
  std::string text = io::read_whole_file(questions_);
  if (text == seen_questions_) return;
  std::vector<oracle::Query> queries;
  std::set<std::pair<int64_t, int64_t>> handed_out;
  for (const std::string& line : oracle::split_lines(text)) {
    try {
      queries.push_back(oracle::parse_question(line, questions_));
      for (const int64_t m : queries.back().members) handed_out.emplace(queries.back().id, m);
    } catch (const Error& e) {
      warnings.emplace_back(e.what());
    }
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    handed_out_ = std::move(handed_out);
  }
  if (ledger_.adopt(queries, options_.votes) > 0) ++changes_;
  reload();
  seen_questions_ = std::move(text);
}

}  // namespace pal::label
