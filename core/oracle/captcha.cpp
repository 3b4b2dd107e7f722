#include "core/oracle/captcha.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/oracle/centres.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal {
namespace {

// A point of the pool that may be asked about: the smallest sample of its component there.
struct Point {
  int64_t sample = 0;
  int64_t component = 0;
  int64_t row = 0;      // in pool.samples
  uint64_t draw = 0;    // its place when nothing guides
};

// What is known of a class: its template and how many members.
struct Class {
  int64_t sample = 0;   // the template; stands for its component
  int64_t known = 0;    // members, plus what this round and pending ones ask
  bool exhausted = false;
};

class Captcha final : public QuerySampler {
 public:
  explicit Captcha(const CaptchaOptions& options) : options_(options) {}

  std::string name() const override { return "captcha"; }
  PoolNeeds needs() const override {
    return options_.guide == Guide::embeddings ? PoolNeeds::embeddings : PoolNeeds::samples;
  }

  std::vector<Query> choose(const GraphStore& store, const Pool& pool, const Round& round) const override {
    std::vector<Point> points = make_points(store, pool, round);
    std::vector<Class> classes = find_classes(store, points);
    std::unordered_map<int64_t, size_t> class_of;
    for (size_t c = 0; c < classes.size(); ++c) class_of[store.component(classes[c].sample)] = c;
    std::unordered_set<int64_t> asked;   // components
    for (const Query& q : round.pending) {
      const auto at = class_of.find(store.component(q.template_sample));
      if (at != class_of.end()) classes[at->second].known += static_cast<int64_t>(q.members.size());
      for (int64_t m : q.members) asked.insert(store.component(m));
    }

    Distances distances;
    if (options_.guide == Guide::embeddings && pool.embeddings.defined()) {
      std::vector<int64_t> row_class(pool.samples.size(), -1), rows;
      for (size_t row = 0; row < pool.samples.size(); ++row) {
        const auto at = class_of.find(store.component(pool.samples[row]));
        if (at != class_of.end()) row_class[row] = static_cast<int64_t>(at->second);
      }
      for (const Point& p : points) rows.push_back(p.row);
      distances = centre_distances(pool.embeddings, row_class, static_cast<int64_t>(classes.size()), rows);
    }

    std::vector<Query> queries;
    for (int64_t left = round.questions; left > 0;) {
      const int64_t c = least_known(classes);
      if (c < 0) break;
      Query query{0, QueryKind::captcha, classes[c].sample, {}};
      query.members = grid(store, classes[c], c, points, asked, distances, std::min(left, options_.members));
      classes[c].exhausted = query.members.empty();
      if (query.members.empty()) continue;
      classes[c].known += static_cast<int64_t>(query.members.size());
      left -= static_cast<int64_t>(query.members.size());
      queries.push_back(std::move(query));
    }
    return queries;
  }

 private:
  static std::vector<Point> make_points(const GraphStore& store, const Pool& pool, const Round& round) {
    PAL_ASSERT(!pool.embeddings.defined() || pool.embeddings.size(0) == static_cast<int64_t>(pool.samples.size()),
               "one embedding for each sample of the pool");
    std::vector<int64_t> order(pool.samples.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return pool.samples[a] < pool.samples[b]; });
    std::vector<Point> points;
    std::unordered_set<int64_t> seen;
    for (int64_t row : order) {
      const int64_t sample = pool.samples[row];
      PAL_ASSERT(sample >= 0 && sample < store.samples(), "a pool holds samples of the data set");
      if (!seen.insert(store.component(sample)).second) continue;
      Random random(round.seed, Purpose::oracle, static_cast<uint64_t>(round.round), static_cast<uint64_t>(sample));
      points.push_back({sample, store.component(sample), row, random.next_u64()});
    }
    return points;
  }

  std::vector<Class> find_classes(const GraphStore& store, const std::vector<Point>& points) const {
    std::vector<Class> labelled, others;
    for (int64_t i = 0; i < store.samples(); ++i) {
      if (store.component(i) != i) continue;
      if (store.label(i) >= 0) {
        labelled.push_back({i, store.component_size(i)});
      } else if (store.known(i)) {
        others.push_back({i, store.component_size(i)});
      }
    }
    if (options_.templates == Templates::given) {
      PAL_CHECK(!labelled.empty(), "classes with a known example", 0,
                "give labels (graph.labeled_fraction) or set oracle.templates=discover");
      return labelled;
    }
    for (const Point& p : points) {
      if (!store.known(p.sample)) others.push_back({p.sample, 1});
    }
    std::sort(others.begin(), others.end(),
              [](const Class& a, const Class& b) { return std::tie(b.known, a.sample) < std::tie(a.known, b.sample); });
    for (const Class& candidate : others) {
      const bool fresh = std::all_of(labelled.begin(), labelled.end(), [&](const Class& c) {
        return store.relation(c.sample, candidate.sample) == Relation::different;
      });
      if (fresh) labelled.push_back(candidate);
    }
    return labelled;
  }

  static int64_t least_known(const std::vector<Class>& classes) {
    int64_t least = -1;
    for (size_t c = 0; c < classes.size(); ++c) {
      if (classes[c].exhausted) continue;
      if (least < 0 || std::tie(classes[c].known, classes[c].sample) < std::tie(classes[least].known, classes[least].sample)) {
        least = static_cast<int64_t>(c);
      }
    }
    return least;
  }

  // The first `count` points whose relation to the class is open; they are marked as asked.
  static std::vector<int64_t> grid(const GraphStore& store, const Class& target, int64_t c, const std::vector<Point>& points,
                                   std::unordered_set<int64_t>& asked, const Distances& distances, int64_t count) {
    using Key = std::tuple<bool, double, uint64_t, int64_t>;   // nearer to another class, distance, draw, sample
    std::vector<std::pair<Key, const Point*>> open;
    for (size_t p = 0; p < points.size(); ++p) {
      const Point& point = points[p];
      if (asked.count(point.component) || store.relation(point.sample, target.sample) != Relation::unknown) continue;
      const bool guided = distances.has_centre(c);
      const Key key{guided && distances.nearest[p] != c, guided ? distances.at(static_cast<int64_t>(p), c) : 0.0,
                    guided ? 0 : point.draw, point.sample};
      open.emplace_back(key, &point);
    }
    const int64_t take = std::min<int64_t>(count, static_cast<int64_t>(open.size()));
    std::partial_sort(open.begin(), open.begin() + take, open.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<int64_t> members;
    for (int64_t k = 0; k < take; ++k) {
      members.push_back(open[k].second->sample);
      asked.insert(open[k].second->component);
    }
    return members;
  }

  const CaptchaOptions options_;
};

}  // namespace

std::unique_ptr<QuerySampler> make_captcha(const CaptchaOptions& options) {
  PAL_CHECK(options.members >= 1, "oracle.members", options.members, "give at least 1");
  return std::make_unique<Captcha>(options);
}

}  // namespace pal
