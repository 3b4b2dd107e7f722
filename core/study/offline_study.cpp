#include "core/study/offline_study.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/data/dataset.h"
#include "core/data/feature_set.h"
#include "core/eval/embed.h"
#include "core/eval/knn.h"
#include "core/eval/linear_probe.h"
#include "core/io/cores.h"
#include "core/oracle/oracle.h"
#include "core/oracle/relation_count.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/round/pool.h"
#include "core/oracle/round/round.h"
#include "core/oracle/samplers/class_model.h"
#include "core/oracle/samplers/samplers.h"
#include "core/study/feature_head.h"
#include "kernels/base/clock.h"
#include "kernels/base/error.h"

namespace pal::study {
namespace {

enum class Part { train, test };  // data.train, of which data.limit may leave some samples, or data.test

data::FeatureSet study_features(const setup::RunSpec& spec, Part part, const ReadProgress& progress,
                                std::vector<int64_t>& parents) {
  const std::string& path = part == Part::train ? spec.data.train : spec.data.test;
  const auto samples_of = [&](int64_t size) {
    std::vector<int64_t> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), int64_t{0});
    return part == Part::train ? setup::training_subset(spec, size) : all;
  };
  const auto chosen = [](const std::vector<int64_t>& labels, const std::vector<int64_t>& samples) {
    std::vector<int64_t> out;
    for (const int64_t i : samples) {
      if (!labels.empty()) out.push_back(labels[static_cast<size_t>(i)]);
    }
    return out;
  };
  if (data::is_feature_file(path)) {
    data::FeatureSet set = data::read_features(path);
    const std::vector<int64_t> samples = samples_of(set.rows.size(0));
    if (static_cast<int64_t>(samples.size()) == set.rows.size(0)) return set;
    return {set.rows.index_select(0, at::tensor(samples, at::kLong)), chosen(set.labels, samples)};
  }
  const auto data = data::Dataset::open(path);
  const std::vector<int64_t> samples = samples_of(data->size());
  if (part == Part::train) parents = data->parents();
  return {eval::inputs(*data, samples, spec.augment, io::usable_cores(),
                       [&](int64_t done) {
                         if (progress) progress(path, done, static_cast<int64_t>(samples.size()));
                       }),
          chosen(data->labels(), samples)};
}

bool knows_all(const setup::RunSpec& spec) { return spec.graph.labeled_fraction == 1 && spec.oracle.sampler == "ssl"; }

// The query rounds of one oracle: what it has asked, and the graph that its answers made.
class StudyLoop {
 public:
  StudyLoop(const setup::RunSpec& spec, const StudyLine& line, const StudyData& data)
      : settings_(spec.oracle),
        line_(line),
        data_(data),
        store_(data.train.size(0), spec.graph.deduction),
        sampler_(oracle::make_query_sampler(spec.oracle, data.parents)),
        labeler_(oracle::make_labeler(spec.oracle, {data.train_labels, data.parents})) {
    if (knows_all(spec)) {
      store_.set_labels(data.train_labels);
    } else if (starts_from_templates(spec)) {
      store_.set_labels(oracle::draw_template_labels(data.train_labels, settings_.seed));
    }
  }

  graph::GraphStore& store() { return store_; }
  int64_t questions() const { return questions_; }
  const oracle::OracleSpec& settings() const { return settings_; }

  // One round of at most `most` questions; false when there was no question.
  bool ask(int64_t most) {
    if (!sampler_ || most <= 0) return false;
    // An answer takes effect at once, so no query is pending. No pair is closed: an undecided one may be asked again.
    oracle::Round round{
        .seed = settings_.seed, .round = rounds_++, .questions = most, .pending = {}, .coarse = coarse_};
    const Clock::time_point start = Clock::now();
    const auto features = [&](const std::vector<int64_t>& samples) {
      return data_.train.index_select(0, at::tensor(samples, at::kLong));
    };
    const oracle::Pool pool =
        oracle::make_pool(store_, *sampler_, round,
                          {settings_.pool,
                           {},
                           [&](const std::vector<int64_t>& samples, eval::SampleSlice) { return features(samples); },
                           features});
    oracle::Chosen chosen = oracle::choose_questions(*sampler_, store_, pool, round);
    seconds_ += seconds_since(start);
    for (oracle::Query& q : chosen.queries) {
      q.id = ++ids_;
      questions_ += static_cast<int64_t>(q.members.size());
      answer(q);
    }
    return !chosen.queries.empty();
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
  void answer(const oracle::Query& q) {
    std::vector<oracle::Decision> decisions;
    if (line_.answers == StudyAnswers::assumed) {
      for (int64_t m : q.members)
        decisions.push_back({q.id, q.template_sample, m, q.kind, q.node, oracle::Verdict::yes, 0, 0, 1});
    } else {
      const std::vector<oracle::Question> questions = oracle::ask_annotators(*labeler_, q, settings_.votes);
      for (const oracle::Question& question : questions) {
        for (const oracle::Answer& a : question.answers) cost_ += a.cost;
      }
      decisions = oracle::decide(questions, oracle::ConsensusKind::majority, {}, 0);
    }
    contradictions_ += static_cast<int64_t>(oracle::insert_answers(store_, decisions).contradicted.size());
    if (q.kind == oracle::QueryKind::coarse) coarse_.insert(coarse_.end(), decisions.begin(), decisions.end());
  }

  const oracle::OracleSpec& settings_;
  const StudyLine& line_;
  const StudyData& data_;
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

// Samples of the training set that evaluation uses: the first ones. The probes train on two thirds; the last third only
// chooses the head.
constexpr int64_t kProbeSamples = 15000;

void evaluate_point(StudyPoint& p, graph::GraphStore& store, FeatureHead& head, const StudyData& data) {
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
  // The labels that a user has: those known so far. Without a label there is no classifier.
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

bool starts_from_templates(const setup::RunSpec& spec) {
  return !knows_all(spec) && oracle::uses_templates(spec.oracle);
}

StudyData read_study_data(const setup::RunSpec& spec, const ReadProgress& progress) {
  StudyData data;
  data::FeatureSet train = study_features(spec, Part::train, progress, data.parents),
                   test = study_features(spec, Part::test, progress, data.parents);
  for (const auto& [set, key] : {std::pair(&train, "data.train"), std::pair(&test, "data.test")}) {
    const bool all = !set->labels.empty() && *std::min_element(set->labels.begin(), set->labels.end()) >= 0;
    PAL_DATA_CHECK(all, std::string("samples without a label in ") + key,
                   key == std::string("data.train") ? spec.data.train : spec.data.test,
                   "a comparison of oracles answers from the labels: label every sample");
  }
  PAL_DATA_CHECK(train.rows.size(1) == test.rows.size(1), "the test set has features of another width",
                 test.rows.size(1), "the training set has " + std::to_string(train.rows.size(1)));
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
  StudyLoop loop(spec, line, data);
  const int64_t budget = loop.settings().limits.questions, points = spec.compare.points;
  PAL_CHECK(budget > 0, "oracle.budget of a comparison", budget,
            "give the number of questions that every oracle may ask");
  FeatureHead head(data.train, spec.compare.width);
  std::vector<StudyPoint> curve;
  for (int64_t k = 0; k <= points; ++k) {
    const int64_t until = budget * k / points;
    while (loop.questions() < until &&
           loop.ask(std::min(loop.settings().questions_per_round, until - loop.questions()))) {
      if (progress) progress(loop.questions());
    }
    StudyPoint p = loop.point();
    const bool same =
        !curve.empty() && curve.back().questions == p.questions;  // nothing was asked since the last point
    if (same)
      p = curve.back();
    else
      evaluate_point(p, loop.store(), head, data);
    curve.push_back(p);
  }
  return curve;
}

Closure run_to_closure(const setup::RunSpec& spec, const StudyData& data,
                       const std::function<void(int64_t)>& progress) {
  const Clock::time_point start = Clock::now();
  const StudyLine line{"closure"};
  StudyLoop loop(spec, line, data);
  Closure out;
  // A pool may have nothing to ask while another has: ends after as many empty pools as cover the set several times.
  const int64_t patience = 20 + 4 * data.train.size(0) / loop.settings().pool;
  for (int64_t empty = 0; empty < patience && loop.store().components() > data.classes;) {
    ++out.rounds;
    empty = loop.ask(loop.settings().questions_per_round) ? 0 : empty + 1;
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
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace pal::study
