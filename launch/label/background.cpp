#include "launch/label/background.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "kernels/base/error.h"

namespace pal::launch {
namespace {

constexpr double kBeat = 0.5;  // seconds between two refreshes
// Pause before the figures are computed again, as a multiple of the time that takes: long while people post (a post
// waits for the computation), short when no one posts, longest when there is no new answer (only training may have
// changed them).
constexpr double kRest = 200, kCalmRest = 4, kIdleRest = 2000;
constexpr double kCalm = 1.5;        // seconds without a post after which kCalmRest applies
constexpr double kNothingLeft = 20;  // seconds before the next attempt when there was no question
constexpr int64_t kLow = 3;          // cards of a person below which the next round is asked

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

BackgroundWorker::BackgroundWorker(BackgroundParts parts)
    : parts_(std::move(parts)), why_(parts_.ask ? "the first questions are being chosen" : parts_.why_none) {
  update();
  refreshing_ = std::thread([this] { refresh_loop(); });
  if (parts_.ask) asking_ = std::thread([this] { ask_loop(); });
}

BackgroundWorker::~BackgroundWorker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  refreshing_.join();
  if (asking_.joinable()) asking_.join();
}

std::shared_ptr<const label::LabelStats> BackgroundWorker::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

RunFacts BackgroundWorker::facts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  RunFacts facts = facts_;
  facts.why = why_;
  return facts;
}

bool BackgroundWorker::wait(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !stop_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return stopping_; });
}

void BackgroundWorker::set_why(const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  why_ = why;
}

void BackgroundWorker::update() {
  auto stats = std::make_shared<const label::LabelStats>(parts_.stats());
  RunFacts facts = parts_.facts();
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_ = std::move(stats);
  facts_ = std::move(facts);
}

void BackgroundWorker::refresh_loop() {
  int64_t seen = parts_.service.changes(), before = seen;
  double updated = monotonic_seconds(), changed = updated, took = 0;
  while (wait(kBeat)) {
    try {
      std::vector<std::string> warnings;
      parts_.service.refresh(warnings);
      for (const std::string& w : warnings) parts_.log("warning: " + w);
      const double start = monotonic_seconds();
      const int64_t changes = parts_.service.changes();
      if (changes != before) changed = start;
      before = changes;
      const bool calm = start - changed > kCalm;
      const double rest =
          changes == seen ? std::clamp(kIdleRest * took, 10.0, 60.0) : std::max(1.0, (calm ? kCalmRest : kRest) * took);
      if (start < updated + rest) continue;
      seen = changes;
      update();
      updated = monotonic_seconds();
      took = updated - start;
    } catch (const Error& e) {
      parts_.log(std::string("warning: ") + e.what());
    }
  }
}

bool BackgroundWorker::low() const {
  const std::vector<label::User>& people = parts_.people.all();
  return std::any_of(people.begin(), people.end(),
                     [&](const label::User& p) { return !parts_.service.queue().has(p.name, kLow); });
}

void BackgroundWorker::ask_loop() {
  std::string last_reason;  // why nothing was asked
  while (wait(0.2)) {
    if (!low()) continue;
    AskResult asked;
    try {
      asked = parts_.ask();
      parts_.service.reload();
      if (asked.questions > 0)
        parts_.log("asked " + std::to_string(asked.questions) + " more questions");
      else if (asked.why != last_reason)
        parts_.log("no question is asked: " + asked.why);
      last_reason = asked.why;
    } catch (const std::exception& e) {  // of the data, the disk or LibTorch: people see it, and the page stays up
      asked.why = e.what();
      if (asked.why != last_reason) parts_.log("warning: no questions were chosen: " + asked.why);
      last_reason = asked.why;
    }
    set_why(asked.questions > 0 ? "the next questions are being chosen" : asked.why);
    if (asked.questions == 0 && !wait(kNothingLeft)) return;
  }
}

}  // namespace pal::launch
