#include "core/oracle/round/pool.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

using Keyed = std::vector<std::pair<uint64_t, int64_t>>;

void take_first(std::vector<int64_t>& into, Keyed& from, int64_t count) {
  std::nth_element(from.begin(), from.begin() + count, from.end());
  for (int64_t k = 0; k < count; ++k) into.push_back(from[k].second);
}

}  // namespace

std::vector<int64_t> draw_pool(const graph::GraphStore& store, int64_t size, uint64_t seed, int64_t round,
                               const std::vector<int64_t>& from, RefusedOrder order) {
  Keyed known, refused, open;
  const auto add = [&](int64_t sample) {
    PAL_ASSERT(sample >= 0 && sample < store.samples(), "a pool is drawn from samples of the data set");
    Random random(seed, Purpose::pool, static_cast<uint64_t>(round), static_cast<uint64_t>(sample));
    const bool first = order == RefusedOrder::first && is_refused(store, sample);
    (store.known(sample) ? known : first ? refused : open).emplace_back(random.next_u64(), sample);
  };
  if (from.empty()) {
    for (int64_t s = 0; s < store.samples(); ++s) add(s);
  } else {
    for (int64_t s : from) add(s);
  }
  if (const int64_t half = size / 2;
      static_cast<int64_t>(refused.size()) > half) {  // the rest is drawn like all other samples
    std::nth_element(refused.begin(), refused.begin() + half, refused.end());
    open.insert(open.end(), refused.begin() + half, refused.end());
    refused.resize(static_cast<size_t>(half));
  }
  const auto knowns = static_cast<int64_t>(known.size()), opens = static_cast<int64_t>(open.size());
  const int64_t left = size - static_cast<int64_t>(refused.size());
  const int64_t take_open = std::min(opens, left - std::min(knowns, size / 4));
  const int64_t take_known = std::min(knowns, left - take_open);
  std::vector<int64_t> pool;
  pool.reserve(refused.size() + take_open + take_known);
  take_first(pool, refused, static_cast<int64_t>(refused.size()));
  take_first(pool, open, take_open);
  take_first(pool, known, take_known);
  std::sort(pool.begin(), pool.end());
  return pool;
}

Pool make_pool(const graph::GraphStore& store, const QuerySampler& sampler, const Round& round,
               const PoolSource& source) {
  Pool pool;
  pool.samples = draw_pool(store, source.size, round.seed, round.round, source.samples, sampler.refused_order());
  if (sampler.needs() == PoolNeeds::samples) return pool;
  const auto size = static_cast<int64_t>(pool.samples.size());
  const eval::SampleSlice slice = source.comm ? eval::own_slice(size, *source.comm) : eval::SampleSlice{0, size};
  pool.embeddings = source.embed(pool.samples, slice);
  pool.first = slice.first;
  pool.comm = source.comm;
  if (sampler.needs() == PoolNeeds::inputs && source.inputs && size > 0) {
    // A rank whose slice is empty has a tensor of no row, as wide as that of the others.
    pool.inputs = slice.first == slice.last
                      ? source.inputs({pool.samples[0]}).narrow(0, 0, 0)
                      : source.inputs({pool.samples.begin() + slice.first, pool.samples.begin() + slice.last});
  }
  return pool;
}

bool is_refused(const graph::GraphStore& store, int64_t sample) {
  if (store.known(sample)) return false;
  if (store.deduction() == graph::Deduction::on) return store.negatives(sample) > 0;
  bool any = false;
  store.for_each_answer(sample, [&](int64_t, graph::Relation) { any = true; });
  return any;
}

std::vector<int64_t> draw_template_labels(const std::vector<int64_t>& labels, uint64_t seed) {
  std::map<int64_t, std::pair<uint64_t, int64_t>> first;  // class → smallest draw
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    // Step 1 of the purpose: step 0 draws which labels the graph knows (core/setup).
    Random random(seed, Purpose::labels, 1, i);
    const std::pair<uint64_t, int64_t> key(random.next_u64(), static_cast<int64_t>(i));
    const auto [at, fresh] = first.emplace(labels[i], key);
    if (!fresh) at->second = std::min(at->second, key);
  }
  std::vector<int64_t> known(labels.size(), -1);
  for (const auto& [label, key] : first) known[key.second] = label;
  return known;
}

}  // namespace pal::oracle
