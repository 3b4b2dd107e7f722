#include "core/study/offline_study.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>

#include "core/data/dataset.h"
#include "core/data/feature_set.h"
#include "core/eval/embed.h"
#include "core/eval/knn.h"
#include "core/eval/linear_probe.h"
#include "core/oracle/oracle.h"
#include "core/oracle/relation_count.h"
#include "core/oracle/samplers/class_model.h"
#include "core/oracle/samplers/samplers.h"
#include "core/study/feature_head.h"
#include "kernels/base/error.h"

namespace pal::study {
namespace {

using StudyClock = std::chrono::steady_clock;

data::FeatureSet study_features(const std::string& path, std::vector<int64_t>* parents) {
  if (data::is_feature_file(path)) return data::read_features(path);
  const auto data = data::Dataset::open(path);
  std::vector<int64_t> all(static_cast<size_t>(data->size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  PAL_DATA_CHECK(data->encoding() == data::Encoding::raw, "images that are not of one size, without a network", path,
                 "make features of them with `pal embed`, and give that file");
  if (parents) *parents = data->parents();
  return {eval::pixels(*data, all), data->labels()};
}

// What is asked, answered and known in one run.
class StudyLoop {
 public:
  StudyLoop(const setup::RunSpec& spec, const StudyLine& line, const StudyData& data)
      : spec_(spec),
        line_(line),
        data_(data),
        seed_(spec.train.seed),
        store_(data.train.size(0), spec.graph.deduction),
        sampler_(oracle::make_query_sampler(spec.oracle, data.parents)),
        labeler_(oracle::make_labeler(spec.oracle, {data.train_labels, data.parents})) {
    if (spec.graph.labeled_fraction == 1 && spec.oracle.sampler == "ssl") {
      store_.set_labels(data.train_labels);
    } else if (oracle::uses_templates(spec.oracle)) {
      store_.set_labels(oracle::draw_template_labels(data.train_labels, seed_));
    }
  }

  graph::GraphStore& store() { return store_; }
  int64_t questions() const { return questions_; }

  // One round of at most `most` questions; false when there was nothing to ask.
  bool ask(int64_t most) {
    if (!sampler_ || most <= 0) return false;
    oracle::Round round{.seed = seed_, .round = rounds_++, .questions = most, .pending = {}, .coarse = coarse_};
    const auto start = StudyClock::now();
    oracle::Pool pool{oracle::draw_pool(store_, spec_.oracle.pool, seed_, round.round, {}, sampler_->refused_order()),
                      {}};
    if (sampler_->needs() != oracle::PoolNeeds::samples)
      pool.embeddings = data_.train.index_select(0, at::tensor(pool.samples, at::kLong));
    if (sampler_->needs() == oracle::PoolNeeds::inputs) pool.inputs = pool.embeddings;
    std::vector<oracle::Query> queries = sampler_->choose(store_, pool, round);
    seconds_ += std::chrono::duration<double>(StudyClock::now() - start).count();
    for (oracle::Query& q : queries) {
      q.id = ++ids_;
      questions_ += static_cast<int64_t>(q.members.size());
      take(q);
    }
    return !queries.empty();
  }

  StudyPoint point() const {
    StudyPoint p;
    p.questions = questions_;
    p.cost = cost_;
    p.components = store_.components();
    p.contradictions = contradictions_;
    p.seconds = seconds_;
    const oracle::RelationCount relations = oracle::count_relations(store_, data_.train_labels);
    p.known = relations.known;
    p.alike = relations.alike;
    p.alike_wrong = relations.alike_wrong;
    return p;
  }

 private:
  void take(const oracle::Query& q) {
    std::vector<oracle::Decision> decisions;
    if (line_.answers == StudyAnswers::assumed) {
      for (int64_t m : q.members)
        decisions.push_back({q.id, q.template_sample, m, q.kind, q.node, oracle::Verdict::yes, 0, 0, 1});
    } else {
      std::vector<int64_t> yes(q.members.size(), 0), no = yes;
      for (int64_t vote = 0; vote < spec_.oracle.votes; ++vote) {
        const std::vector<oracle::Answer> answers = labeler_->answer(q, vote);
        for (size_t k = 0; k < answers.size(); ++k) {
          cost_ += answers[k].cost;
          yes[k] += answers[k].verdict == oracle::Verdict::yes;
          no[k] += answers[k].verdict == oracle::Verdict::no;
        }
      }
      for (size_t k = 0; k < q.members.size(); ++k) {
        const oracle::Verdict verdict = yes[k] > no[k]   ? oracle::Verdict::yes
                                        : no[k] > yes[k] ? oracle::Verdict::no
                                                         : oracle::Verdict::unsure;
        decisions.push_back({q.id, q.template_sample, q.members[k], q.kind, q.node, verdict, 0, 0, 1});
      }
    }
    contradictions_ += static_cast<int64_t>(oracle::insert_answers(store_, decisions).contradicted.size());
    if (q.kind == oracle::QueryKind::coarse) coarse_.insert(coarse_.end(), decisions.begin(), decisions.end());
  }

  const setup::RunSpec& spec_;
  const StudyLine& line_;
  const StudyData& data_;
  const uint64_t seed_;
  graph::GraphStore store_;
  std::unique_ptr<oracle::QuerySampler> sampler_;
  std::unique_ptr<oracle::Labeler> labeler_;
  std::vector<oracle::Decision> coarse_;
  int64_t rounds_ = 0, ids_ = 0, questions_ = 0, contradictions_ = 0;
  double cost_ = 0, seconds_ = 0;
};

// The label that most answers about a sample name, where nothing is deduced; −1 none.
int64_t answered_label(const graph::GraphStore& store, int64_t sample) {
  if (store.label(sample) >= 0) return store.label(sample);
  std::map<int64_t, int64_t> votes;
  store.for_each_answer(sample, [&](int64_t other, graph::Relation relation) {
    if (store.label(other) >= 0) votes[store.label(other)] += relation == graph::Relation::same ? 1 : -1;
  });
  int64_t best = -1, most = 0;
  for (const auto& [label, count] : votes) {
    if (count > most) best = label, most = count;
  }
  return best;
}

// Samples of the training set that evaluation looks at: the first, which are in no order that matters. Two thirds teach the
// probes, the last third chooses the head and is seen by nobody else.
constexpr int64_t kProbeSamples = 15000;

void judge_point(StudyPoint& p, graph::GraphStore& store, FeatureHead& head, const StudyData& data) {
  const int64_t n = std::min(kProbeSamples, data.train.size(0)), taught = n - n / 3;
  const auto first = data.train_labels.begin();
  const HeadSplit split{data.train.narrow(0, 0, taught),
                        data.train.narrow(0, taught, n - taught),
                        {first, first + taught},
                        {first + taught, first + n},
                        data.classes};
  head.see(store);
  choose_head(head, split, {.ridge = 1e-4, .iterations = 20});
  const at::Tensor train = head(split.train), test = head(data.test);
  const std::vector<int64_t>& labels = split.train_labels;
  p.linear =
      1 -
      eval::linear_probe(train, labels, test, data.test_labels, data.classes, {.ridge = 1e-4, .iterations = 50}).top1;
  p.knn = 1 - eval::knn(train, labels, test, data.test_labels, data.classes, {}).top1;
  // What a user has in hand: the labels known so far. No label, no classifier.
  std::vector<int64_t> known;
  for (int64_t i = 0; i < store.samples(); ++i)
    known.push_back(store.deduction() == graph::Deduction::on ? store.label(i) : answered_label(store, i));
  oracle::Pool all{std::vector<int64_t>(known.size()), data.train};
  std::iota(all.samples.begin(), all.samples.end(), int64_t{0});
  const at::Tensor tests = data.test / data.test.norm(2, 1, true).clamp_min(1e-20);
  const oracle::ClassModel model(oracle::PoolRows(all), known, data.classes, oracle::ModelKind::classifier);
  const at::Tensor predicted = model.scores(tests.contiguous()).argmax(1);
  p.own = 1 - predicted.eq(at::tensor(data.test_labels, at::kLong)).to(at::kDouble).mean().item<double>();
}

}  // namespace

StudyData read_study_data(const setup::RunSpec& spec) {
  StudyData data;
  data::FeatureSet train = study_features(spec.data.train, &data.parents),
                   test = study_features(spec.data.test, nullptr);
  for (const auto& [set, key] : {std::pair(&train, "data.train"), std::pair(&test, "data.test")}) {
    const bool all = !set->labels.empty() && *std::min_element(set->labels.begin(), set->labels.end()) >= 0;
    PAL_DATA_CHECK(all, std::string("samples without a label in ") + key,
                   key == std::string("data.train") ? spec.data.train : spec.data.test,
                   "a comparison of oracles answers from the labels: give all");
  }
  PAL_DATA_CHECK(train.rows.size(1) == test.rows.size(1), "the test set has features of another width",
                 test.rows.size(1), "the training set has " + std::to_string(train.rows.size(1)));
  const int64_t limit = spec.data.limit;
  if (limit > 0 && limit < train.rows.size(0)) {
    train.rows = train.rows.narrow(0, 0, limit).contiguous();
    train.labels.resize(static_cast<size_t>(limit));
  }
  if (const int64_t width = spec.compare.pca; width > 0 && width < train.rows.size(1)) {
    const Components reduce = principal_components(train.rows, width);
    train.rows = reduce(train.rows);
    test.rows = reduce(test.rows);
  }
  data.classes = std::max(*std::max_element(train.labels.begin(), train.labels.end()),
                          *std::max_element(test.labels.begin(), test.labels.end())) +
                 1;
  data.train = train.rows;
  data.test = test.rows;
  data.train_labels = std::move(train.labels);
  data.test_labels = std::move(test.labels);
  return data;
}

std::vector<StudyPoint> run_study(const setup::RunSpec& spec, const StudyLine& line, const StudyData& data,
                                  const std::function<void(int64_t)>& progress) {
  const int64_t budget = spec.oracle.limits.questions, points = spec.compare.points;
  PAL_CHECK(budget > 0, "oracle.budget of a comparison", budget,
            "give the number of questions that every oracle may ask");
  StudyLoop loop(spec, line, data);
  FeatureHead head(data.train, spec.compare.width);
  std::vector<StudyPoint> curve;
  for (int64_t k = 0; k <= points; ++k) {
    const int64_t until = budget * k / points;
    while (loop.questions() < until && loop.ask(std::min(spec.oracle.questions_per_round, until - loop.questions()))) {
      if (progress) progress(loop.questions());
    }
    StudyPoint p = loop.point();
    const bool same = !curve.empty() && curve.back().questions == p.questions;  // nothing was asked: nothing is new
    if (same)
      p = curve.back();
    else
      judge_point(p, loop.store(), head, data);
    curve.push_back(p);
  }
  return curve;
}

Closure run_to_closure(const setup::RunSpec& spec, const StudyData& data,
                       const std::function<void(int64_t)>& progress) {
  const auto start = StudyClock::now();
  const StudyLine line{"closure"};
  StudyLoop loop(spec, line, data);
  Closure out;
  // A pool may hold nothing to ask while others do: it ends after as many empty ones as cover the set several times.
  const int64_t patience = 20 + 4 * data.train.size(0) / spec.oracle.pool;
  for (int64_t empty = 0; empty < patience && loop.store().components() > data.classes;) {
    ++out.rounds;
    empty = loop.ask(spec.oracle.questions_per_round) ? 0 : empty + 1;
    if (progress) progress(loop.questions());
  }
  out.questions = loop.questions();
  const int64_t n = data.train.size(0);
  out.complete = oracle::count_relations(loop.store()).known == n * (n - 1) / 2;
  out.right = out.complete;
  std::map<int64_t, int64_t> label_of;  // component → label
  for (int64_t i = 0; i < n && out.right; ++i) {
    out.right = label_of.emplace(loop.store().component(i), data.train_labels[i]).first->second == data.train_labels[i];
  }
  out.right = out.right && static_cast<int64_t>(label_of.size()) == loop.store().components();
  out.seconds = std::chrono::duration<double>(StudyClock::now() - start).count();
  return out;
}

}  // namespace pal::study
