#include "dist/train/query_round.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/oracle/round/predicted_answers.h"
#include "core/oracle/samplers/samplers.h"
#include "dist/health/consistency.h"
#include "kernels/base/clock.h"

namespace pal::dist {
namespace {

constexpr size_t kSuspects = 3;  // links of a chain that are asked again

}  // namespace

std::string ledger_run(const oracle::OracleSpec& spec, uint64_t data_fingerprint) {
  return fmt::format("data={:016x} seed={} sampler={}", data_fingerprint, spec.seed, spec.sampler);
}

QueryRounds::QueryRounds(const oracle::OracleSpec& spec, World& world, graph::GraphStore& store,
                         const QuestionContext& of, const LedgerLocation& ledger, int64_t step)
    : comm_(world.control()),
      rounds_(world.oracle()),
      store_(store),
      of_(of),
      seed_(spec.seed),
      every_(spec.every),
      per_round_(spec.questions_per_round),
      pool_(spec.pool),
      votes_(spec.votes),
      repeats_(spec.repeats),
      limits_(spec.limits),
      consensus_(spec.consensus),
      sampler_(oracle::make_query_sampler(spec, of.parents)) {
  RoundMessage known;
  if (comm_.rank() == 0) {
    const std::string parent = std::filesystem::path(ledger.path).parent_path().string(),
                      folder = parent.empty() ? "." : parent;
    labeler_ =
        oracle::make_labeler(spec, oracle::LabelerContext{of.labels, of.parents, folder, store.samples(), of.name});
    ledger_ = std::make_unique<oracle::Ledger>(ledger.path, ledger.run_id);
    inbox_ = std::make_unique<oracle::Inbox>(folder);
    recorded_rounds_ = ledger_->rounds();
    // A run killed between a question and its answer: the answer is given now, for the step it would have had. What people
    // handed in meanwhile takes effect there too.
    const int64_t next = (step + every_ - 1) / every_;
    take_in();
    answer_open();
    decide_open(std::max(recorded_rounds_, std::max<int64_t>(next, 1)) * every_,
                std::max<int64_t>(recorded_rounds_ - 1, 0));
    known = {ledger_->questions(), ledger_->open_questions(), look_for_stop(step), ledger_->decisions()};
    later_ = labeler_->answering() == oracle::Answering::later;
    exits_ = spec.wait == oracle::WhileWaiting::exit && later_;
    leaves_ = exits_ && known.open > 0 && decided_now_.empty();
    if (later_) labeler_->publish(ledger_->open_queries());
  }
  at::Tensor head = at::zeros({4}, at::kLong);
  int64_t* h = head.data_ptr<int64_t>();
  h[0] = recorded_rounds_;
  h[1] = exits_ ? 1 : 0;
  h[2] = leaves_ ? 1 : 0;
  h[3] = later_ ? 1 : 0;
  comm_.broadcast(head, 0);
  recorded_rounds_ = h[0];
  exits_ = h[1] != 0;
  leaves_ = h[2] != 0;
  later_ = h[3] != 0;
  RoundMessage message = broadcast_round(known, per_round_, comm_);
  asked_ = message.asked;
  open_ = message.open;
  stop_ = message.stop;
  waiting_ = std::move(message.decisions);
  insert_due(step - 1);
  again_.clear();  // of rounds that the ledger holds
  check_same_graph(store_.fingerprint(), comm_);
}

QueryRounds::~QueryRounds() = default;

void QueryRounds::at_boundary(int64_t step, const EmbedPool& embed) {
  const bool due = step > 0 && step % every_ == 0;
  warning_.clear();
  if (due) collect();
  insert_due(step);
  if (!due) return;
  check_same_graph(store_.fingerprint(), comm_);
  if (step / every_ >= recorded_rounds_) start_round(step, embed);
}

void QueryRounds::start_round(int64_t step, const EmbedPool& embed) {
  if (stop_ != oracle::StopReason::none)
    say_once("stop", "no more questions are asked: " + oracle::to_sentence(stop_, limits_));
  int64_t left = per_round_ - (later_ ? open_ : 0);  // at most so many are out at a time
  if (left <= 0 && stop_ == oracle::StopReason::none) {
    say_once("full", fmt::format("no question is asked: {} wait for an answer, and at most so many are out at a time "
                                 "(oracle.questions_per_round)",
                                 open_));
  }
  if (limits_.questions > 0) left = std::min(left, limits_.questions - asked_);
  oracle::Round round{seed_, step / every_, stop_ == oracle::StopReason::none ? std::max<int64_t>(left, 0) : 0};
  for (const oracle::Decision& d : waiting_) round.pending.push_back({d.query, oracle::QueryKind::pair, d.i, {d.j}});
  for (const auto& [question, known] : known_) {
    const oracle::Decision& d = known.decision;
    if (d.kind == oracle::QueryKind::coarse) {
      round.coarse.push_back(d);
    } else if (!known.inserted && d.verdict != oracle::Verdict::skip) {
      round.closed.emplace_back(d.i, d.j);
    }
  }
  oracle::Pool pool;
  if (round.questions > 0) {
    pool.samples = oracle::draw_pool(store_, pool_, seed_, round.round, of_.samples, sampler_->refused_order());
    if (sampler_->needs() != oracle::PoolNeeds::samples) {
      const eval::SampleSlice slice = eval::own_slice(static_cast<int64_t>(pool.samples.size()), rounds_);
      const Clock::time_point start = Clock::now();
      pool.embeddings = embed(pool.samples, slice);
      times_.embed_ms = 1000 * seconds_since(start);
      pool.first = slice.first;
      pool.comm = &rounds_;
      if (sampler_->needs() == oracle::PoolNeeds::inputs && of_.inputs && !pool.samples.empty())
        pool.inputs = inputs_of(pool, slice);
    }
  }
  under_way_ = true;
  if (comm_.rank() > 0 && pool.comm == nullptr) return;  // rank 0 chooses alone
  preparing_ = std::async(std::launch::async, [this, pool = std::move(pool), round = std::move(round), step] {
    if (comm_.rank() == 0) return prepare(pool, round, step);
    choose(pool, round);
    return RoundMessage{};
  });
}

// Of this rank's slice; a rank without a sample has no row, of the same width.
at::Tensor QueryRounds::inputs_of(const oracle::Pool& pool, eval::SampleSlice slice) const {
  if (slice.first == slice.last) return of_.inputs({pool.samples[0]}).narrow(0, 0, 0);
  return of_.inputs({pool.samples.begin() + slice.first, pool.samples.begin() + slice.last});
}

// Of the threads, on every rank that holds rows of the pool.
std::vector<oracle::Query> QueryRounds::choose(const oracle::Pool& pool, oracle::Round round) {
  no_question_ = oracle::NoQuestion::none;
  if (pool.comm != nullptr) round.pending = broadcast_queries(round.pending, *pool.comm);
  if (round.questions <= 0) return {};
  const Clock::time_point start = Clock::now();
  oracle::Chosen chosen = oracle::choose_questions(*sampler_, store_, pool, round);
  oracle::predict_answers(store_, pool, chosen.queries);
  no_question_ = chosen.why;
  chose_ms_ = 1000 * seconds_since(start);
  return std::move(chosen.queries);
}

// Of the thread, as all up to collect().
RoundMessage QueryRounds::prepare(const oracle::Pool& pool, oracle::Round round, int64_t step) {
  if (of_.before_round) of_.before_round(step);
  take_in();
  for (oracle::Query& q : ledger_->open_queries()) round.pending.push_back(std::move(q));
  // What has just been answered is no longer open, and not in the graph before the next round.
  for (const oracle::Question& q : ledger_->to_decide())
    round.pending.push_back({q.query, oracle::QueryKind::pair, q.i, {q.j}});
  std::vector<oracle::Query> queries = choose(pool, round);
  ledger_->record_queries(queries, {sampler_->name(), round.round, step, votes_, again_, votes_ + repeats_});
  answer_open();
  decided_now_.clear();
  decide_open(step + every_, round.round);
  if (later_) labeler_->publish(ledger_->open_queries());
  return {ledger_->questions(), ledger_->open_questions(), look_for_stop(step), std::move(decided_now_)};
}

// What people handed in since the last time.
void QueryRounds::take_in() {
  inbox_->drain(*ledger_, refused_);
  for (const std::string& sentence : ledger_->take(labeler_->collect(refused_)).refused) {
    if (!sentence.empty()) refused_.push_back(sentence);
  }
}

// Puts every open question to as many annotators as are wanted, if they answer at once.
void QueryRounds::answer_open() {
  if (labeler_->answering() == oracle::Answering::later) return;
  for (bool more = true; more;) {
    std::vector<oracle::Answer> answers;
    for (const oracle::Ledger::Open& open : ledger_->open()) {
      for (oracle::Answer& a : labeler_->answer(open.query, open.votes)) answers.push_back(std::move(a));
    }
    more = ledger_->record_answers(answers) > 0;
  }
}

void QueryRounds::decide_open(int64_t effective_step, int64_t round) {
  const std::vector<oracle::Question> questions = ledger_->to_decide();
  const std::vector<oracle::Question> all = consensus_ == oracle::ConsensusKind::dawid_skene && !questions.empty()
                                                ? ledger_->questions_with_answers()
                                                : std::vector<oracle::Question>{};
  decided_now_ = oracle::decide(questions, consensus_, all, effective_step);
  ledger_->record_decisions(decided_now_, questions, round);
}

oracle::StopReason QueryRounds::look_for_stop(int64_t step) const {
  return oracle::reason_to_stop(limits_, *ledger_, store_, of_.samples, step);
}

void QueryRounds::collect() {
  if (!under_way_) return;
  under_way_ = false;
  again_.clear();
  const Clock::time_point start = Clock::now();
  const RoundMessage message =
      broadcast_round(preparing_.valid() ? preparing_.get() : RoundMessage{}, per_round_, comm_);
  times_.wait_ms = 1000 * seconds_since(start);
  times_.choose_ms = chose_ms_;
  waiting_.insert(waiting_.end(), message.decisions.begin(), message.decisions.end());
  for (const std::string& sentence : refused_) say(sentence);
  refused_.clear();
  asked_ = message.asked;
  open_ = message.open;
  stop_ = message.stop;
  // What is answered takes effect by itself, and who chose a sampler that never asks knows it.
  const bool passes =
      (no_question_ == oracle::NoQuestion::waiting && open_ == 0) || no_question_ == oracle::NoQuestion::silent;
  if (stop_ == oracle::StopReason::none && no_question_ != oracle::NoQuestion::none && !passes) {
    say_once(std::to_string(static_cast<int>(no_question_)),
             "no question is asked: " + oracle::to_sentence(no_question_, *sampler_, open_, pool_));
  }
  leaves_ = exits_ && open_ > 0;
}

int64_t QueryRounds::ledger_position() const {
  if (ledger_ && preparing_.valid()) preparing_.wait();
  return questions_;
}

void QueryRounds::saw_figure(int64_t step, double value) {
  if (ledger_ && limits_.plateau > 0) ledger_->record_figure(step, value);
}

void QueryRounds::insert_due(int64_t step) {
  std::vector<oracle::Decision> due;
  while (due.size() < waiting_.size() && waiting_[due.size()].effective_step <= step)
    due.push_back(waiting_[due.size()]);
  if (due.empty()) return;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<int64_t>(due.size()));
  // What a newer decision changes goes first, all at once.
  std::vector<std::pair<int64_t, int64_t>> taken_back;
  std::vector<oracle::Decision> fresh;
  for (const oracle::Decision& d : due) {
    cost_ += d.cost;
    const auto [at, first] = known_.try_emplace({d.query, d.j}, Known{d, false});
    Known& known = at->second;
    questions_ += first;
    const bool kept = known.inserted && known.decision.relation() == d.relation();
    if (known.inserted && !kept) {
      taken_back.emplace_back(d.i, d.j);
      known.inserted = false;
    }
    std::erase_if(left_out_, [&](const oracle::Decision& old) { return old.query == d.query && old.j == d.j; });
    known.decision = d;
    if (!kept && d.relation() != graph::Relation::unknown) fresh.push_back(d);
  }
  if (!taken_back.empty()) {
    store_.remove(taken_back);
    fresh.insert(fresh.begin(), left_out_.begin(), left_out_.end());
    left_out_.clear();
  }
  const std::vector<oracle::Contradiction> against = oracle::insert_answers(store_, fresh).contradicted;
  for (const oracle::Decision& d : fresh) known_[{d.query, d.j}].inserted = true;
  for (const oracle::Contradiction& c : against) {
    known_[{c.answer.query, c.answer.j}].inserted = false;
    left_out_.push_back(c.answer);
  }
  contradictions_ += static_cast<int64_t>(against.size());
  if (!against.empty()) say(oracle::to_sentence(against));
  ask_again(against);
}

// The questions that may be wrong where a decision contradicts what is known: its own, and the least sure links of the chain.
void QueryRounds::ask_again(const std::vector<oracle::Contradiction>& against) {
  if (repeats_ == 0 || against.empty()) return;
  std::map<Pair, double> confidence;
  for (const auto& [question, known] : known_) confidence[pair_of(known.decision)] = known.decision.confidence;
  std::set<Pair> seen(again_.begin(), again_.end());
  const auto want = [&](const Pair& pair) {
    if (seen.insert(pair).second) again_.push_back(pair);
  };
  for (const oracle::Contradiction& c : against) {
    want(pair_of(c.answer));
    std::vector<std::pair<double, Pair>> links;
    for (const graph::Link& link : c.chain) {
      const Pair pair = std::minmax(link.i, link.j);
      const auto at = confidence.find(pair);
      if (link.answer != graph::Link::kByLabels && at != confidence.end()) links.emplace_back(at->second, pair);
    }
    std::sort(links.begin(), links.end());
    for (size_t k = 0; k < std::min(kSuspects, links.size()); ++k) want(links[k].second);
  }
}

void QueryRounds::say(const std::string& sentence) { warning_ += (warning_.empty() ? "" : "; ") + sentence; }

void QueryRounds::say_once(const std::string& kind, const std::string& sentence) {
  if (said_.insert(kind).second) say(sentence);
}

}  // namespace pal::dist
