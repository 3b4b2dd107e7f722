// mix: several samplers that share the questions of a round.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

class Mix final : public QuerySampler {
 public:
  explicit Mix(std::vector<MixPart> parts) : parts_(std::move(parts)) {
    PAL_CHECK(!parts_.empty(), "oracle.mix is empty", "", "name at least one sampler");
    for (const MixPart& p : parts_)
      PAL_CHECK(std::isfinite(p.share) && p.share > 0, "a share of oracle.mix is {}", p.share, "give a number above 0");
    for (const MixPart& p : parts_) {  // without a question before it, the number of answers never reaches `from`
      const bool reached = p.from <= 0 || std::any_of(parts_.begin(), parts_.end(),
                                                      [&](const MixPart& q) { return active(q, p.from - 1); });
      PAL_CHECK(reached, "a part of oracle.mix never begins: it waits for {} answers, and no other part asks before",
                p.from, "let another part ask until then");
    }
  }
  std::string name() const override { return "mix"; }
  PoolNeeds needs() const override {  // the most that any part needs
    PoolNeeds most = PoolNeeds::samples;
    for (const MixPart& p : parts_) most = std::max(most, p.sampler->needs());
    return most;
  }
  RefusedOrder refused_order() const override {
    const bool any = std::any_of(parts_.begin(), parts_.end(),
                                 [](const MixPart& p) { return p.sampler->refused_order() == RefusedOrder::first; });
    return any ? RefusedOrder::first : RefusedOrder::drawn;
  }

  std::vector<Query> choose(const graph::GraphStore& store, const Pool& pool, const Round& round) const override {
    std::vector<const MixPart*> asking;
    double total = 0;
    for (const MixPart& p : parts_) {
      if (!active(p, store.answers())) continue;
      asking.push_back(&p);
      total += p.share;
    }
    std::vector<Query> queries;
    Round rest = round;
    const auto ask = [&](const MixPart& part, int64_t questions) {
      rest.questions = questions;
      std::vector<Query> chosen = part.sampler->choose(store, pool, rest);
      for (Query& q : chosen) {
        if (q.sampler.empty()) q.sampler = part.sampler->name();
        rest.pending.push_back(q);  // the other parts do not ask it again
        queries.push_back(std::move(q));
      }
    };
    // Whole questions by cumulative shares, so that they add up; then the questions that a part could not use go to the
    // others.
    double before = 0;
    for (const MixPart* p : asking) {
      const double after = before + p->share / total;
      const auto n = static_cast<double>(round.questions);
      ask(*p, std::llround(after * n) - std::llround(before * n));
      before = after;
    }
    for (const MixPart* p : asking) {
      if (const int64_t left = round.questions - question_count(queries); left > 0) ask(*p, left);
    }
    return queries;
  }

 private:
  static bool active(const MixPart& p, int64_t answers) {
    return answers >= p.from && (p.until < 0 || answers < p.until);
  }

  const std::vector<MixPart> parts_;
};

}  // namespace

std::unique_ptr<QuerySampler> make_mix(std::vector<MixPart> parts) { return std::make_unique<Mix>(std::move(parts)); }

}  // namespace pal::oracle
