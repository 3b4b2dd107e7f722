#include "dist/train/round_leader.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/oracle/ledger/sqlite.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

// What writes the ledger: a disk that fails is tried once more. Then the job ends with a code that restarts it: no
// answer is lost, and the round is prepared again from the last checkpoint.
template <class F>
auto written(const F& write) {
  try {
    return write();
  } catch (const oracle::DiskError&) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  try {
    return write();
  } catch (const oracle::DiskError& e) {
    throw Error(Exit::lost, std::string(e.what()) + "; a restart continues from the last checkpoint");
  }
}

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

RoundLeader::RoundLeader(const oracle::OracleSpec& settings, const QuestionContext& context,
                         const LedgerLocation& location, const graph::GraphStore& store)
    : settings_(settings),
      context_(context),
      store_(store),
      labeler_(oracle::make_labeler(
          settings, {context.labels, context.parents, folder_of(location.path), store.samples(), context.name})),
      ledger_(location.path, location.run_id),
      inbox_(folder_of(location.path)) {}

RoundStart RoundLeader::start(int64_t step) {
  RoundStart start;
  start.recorded_rounds = ledger_.rounds();
  const int64_t next = (step + settings_.every - 1) / settings_.every;
  const int64_t effective = std::max(start.recorded_rounds, std::max<int64_t>(next, 1)) * settings_.every;
  written([&] { oracle::take_in_answers(ledger_, inbox_, *labeler_, refused_); });
  written([&] { oracle::answer_open(ledger_, *labeler_); });
  const std::vector<oracle::Decision> fresh = written([&] {
    return oracle::decide_open(ledger_, settings_.consensus, effective,
                               std::max<int64_t>(start.recorded_rounds - 1, 0));
  });
  start.message = message(step, ledger_.decisions());
  start.answered_later = labeler_->answering() == oracle::Answering::later;
  start.exits = settings_.wait == oracle::WhileWaiting::exit && start.answered_later;
  start.exits_now = start.exits && start.message.open > 0 && fresh.empty();
  if (start.answered_later) labeler_->publish(ledger_.open_queries());
  return start;
}

void RoundLeader::begin(oracle::Round& round, int64_t step) {
  if (context_.before_round) context_.before_round(step);
  written([&] { oracle::take_in_answers(ledger_, inbox_, *labeler_, refused_); });
  for (oracle::Query& q : ledger_.open_queries()) round.pending.push_back(std::move(q));
  for (oracle::Query& q : oracle::undecided_queries(ledger_)) round.pending.push_back(std::move(q));
}

RoundMessage RoundLeader::finish(std::vector<oracle::Query>& queries, const oracle::Round& round,
                                 const std::string& sampler, const std::vector<SamplePair>& contradicted,
                                 int64_t step) {
  const oracle::RoundRecord by{sampler,         round.round,  step,
                               settings_.votes, contradicted, settings_.votes + settings_.repeats};
  written([&] { ledger_.record_queries(queries, by); });
  written([&] { oracle::answer_open(ledger_, *labeler_); });
  std::vector<oracle::Decision> decisions =
      written([&] { return oracle::decide_open(ledger_, settings_.consensus, step + settings_.every, round.round); });
  if (labeler_->answering() == oracle::Answering::later) labeler_->publish(ledger_.open_queries());
  return message(step, std::move(decisions));
}

RoundMessage RoundLeader::message(int64_t step, std::vector<oracle::Decision> decisions) const {
  return {ledger_.questions(), ledger_.open_questions(),
          oracle::reason_to_stop(settings_.limits, ledger_, store_, context_.samples, step), std::move(decisions)};
}

void RoundLeader::record_figure(int64_t step, double value) {
  if (settings_.limits.plateau > 0) written([&] { ledger_.record_figure(step, value); });
}

}  // namespace pal::dist
