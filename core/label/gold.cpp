// gold: makes questions whose answers are known by labels.
#include <algorithm>
#include <map>

#include "core/label/answer_service.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::label {

void add_gold_questions(oracle::Ledger& ledger, Writer writer, int64_t count, int64_t members,
                        const std::vector<int64_t>& labels, uint64_t seed) {
  std::map<int64_t, std::vector<int64_t>> by_class;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0) by_class[labels[i]].push_back(static_cast<int64_t>(i));
  }
  std::erase_if(by_class, [](const auto& c) { return c.second.size() < 2; });
  PAL_CHECK(by_class.size() >= 2, "gold questions need two classes with two labeled samples each; there are",
            by_class.size(), "leave out --gold, or train with a larger graph.labeled_fraction");
  std::vector<std::vector<int64_t>> classes;
  for (auto& c : by_class) classes.push_back(std::move(c.second));
  const std::vector<oracle::Query> known = ledger.queries();
  const auto have =
      std::count_if(known.begin(), known.end(), [](const oracle::Query& q) { return q.sampler == kGoldSampler; });
  std::vector<oracle::Query> queries;
  for (int64_t k = have; k < count; ++k) {
    Random random(seed, Purpose::oracle, uint64_t{0x901D}, static_cast<uint64_t>(k));
    const auto draw = [&](size_t of) { return static_cast<size_t>(random.next_u64() % of); };
    const size_t own = draw(classes.size());
    oracle::Query q{0, oracle::QueryKind::captcha, classes[own][draw(classes[own].size())]};
    for (int64_t attempt = 0; static_cast<int64_t>(q.members.size()) < members && attempt < 20 * members; ++attempt) {
      const std::vector<int64_t>& from = classes[draw(3) == 0 ? own : draw(classes.size())];
      const int64_t sample = from[draw(from.size())];
      if (sample != q.template_sample && !std::count(q.members.begin(), q.members.end(), sample))
        q.members.push_back(sample);
    }
    q.sampler = kGoldSampler;
    if (writer == Writer::job) q.id = kOwnGold + k;
    queries.push_back(std::move(q));
  }
  if (writer == Writer::job)
    ledger.adopt(queries, 1);
  else if (!queries.empty())
    ledger.record_queries(queries, {kGoldSampler, std::max<int64_t>(ledger.rounds() - 1, 0), 0, 1});
}

}  // namespace pal::label
