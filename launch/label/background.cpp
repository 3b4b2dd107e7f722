#include "launch/label/background.h"

#include <algorithm>
#include <chrono>

#include "kernels/base/error.h"

namespace pal::launch {
namespace {

constexpr double kBeat = 0.5;  // seconds between looks at the inbox
// Of the time a look at all answers takes, before the next one: people who post wait for it; when nobody does it may be soon;
// and when nothing was answered, for what training did.
constexpr double kRest = 200, kCalmRest = 4, kIdleRest = 2000;
constexpr double kCalm = 1.5;        // seconds without a post after which nobody posts
constexpr double kNothingLeft = 20;  // seconds before asking again when there was nothing to ask
constexpr int64_t kLow = 3;          // cards of a person below which a round is asked

double keeper_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

BackgroundWorker::BackgroundWorker(BackgroundParts parts) : parts_(std::move(parts)) {
  look();
  looks_ = std::thread([this] { keep(); });
  if (parts_.ask) asks_ = std::thread([this] { keep_asking(); });
}

BackgroundWorker::~BackgroundWorker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  looks_.join();
  if (asks_.joinable()) asks_.join();
}

std::shared_ptr<const label::LabelStats> BackgroundWorker::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

RunFacts BackgroundWorker::facts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return facts_;
}

bool BackgroundWorker::wait(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !stop_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return stopping_; });
}

void BackgroundWorker::look() {
  auto stats = std::make_shared<const label::LabelStats>(parts_.look());
  RunFacts facts = parts_.facts();
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_ = std::move(stats);
  facts_ = std::move(facts);
}

void BackgroundWorker::keep() {
  int64_t seen = parts_.service.changes(), before = seen;
  double looked = keeper_seconds(), changed = looked, took = 0;
  while (wait(kBeat)) {
    try {
      std::vector<std::string> warnings;
      parts_.service.refresh(warnings);
      for (const std::string& w : warnings) parts_.log("warning: " + w);
      const double start = keeper_seconds();
      const int64_t changes = parts_.service.changes();
      if (changes != before) changed = start;
      before = changes;
      const bool calm = start - changed > kCalm;
      const double rest =
          changes == seen ? std::clamp(kIdleRest * took, 10.0, 60.0) : std::max(1.0, (calm ? kCalmRest : kRest) * took);
      if (start < looked + rest) continue;
      seen = changes;
      look();
      looked = keeper_seconds();
      took = looked - start;
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

void BackgroundWorker::keep_asking() {
  std::string said;  // why nothing was asked, the last time
  while (wait(0.2)) {
    if (!low()) continue;
    AskResult asked;
    try {
      asked = parts_.ask();
      parts_.service.reload();
      if (asked.queries > 0)
        parts_.log("asked " + std::to_string(asked.queries) + " more");
      else if (asked.why != said)
        parts_.log("no question is asked: " + asked.why);
      said = asked.why;
    } catch (const Error& e) {
      parts_.log(std::string("warning: no questions were chosen: ") + e.what());
    }
    if (asked.queries == 0 && !wait(kNothingLeft)) return;
  }
}

}  // namespace pal::launch
