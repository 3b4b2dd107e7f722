// cases_store: the cases of `pal bench graph`: the graph store at ImageNet's size, and the graph of a batch.
#include <ATen/ops/empty.h>

#include <memory>

#include "core/graph/build.h"
#include "core/ops/named_tensors.h"
#include "kernels/base/philox.h"
#include "tests/bench/cases.h"

namespace pal::bench {
namespace {

struct StoreSizes {
  int64_t samples, classes, answers, rows;
};
StoreSizes store_sizes(BenchSizes sizes) {
  return sizes == BenchSizes::full ? StoreSizes{1281167, 1000, 10000000, 4096} : StoreSizes{5000, 20, 20000, 256};
}

std::vector<int64_t> values_of(const at::Tensor& t) {
  return {t.data_ptr<int64_t>(), t.data_ptr<int64_t>() + t.numel()};
}

at::Tensor draw_classes(const StoreSizes& n) {
  const at::Tensor labels = at::empty({n.samples}, at::kLong);
  Random random(1, Purpose::bench, 20);
  for (int64_t s = 0; s < n.samples; ++s) labels.data_ptr<int64_t>()[s] = static_cast<int64_t>(random.below(n.classes));
  return labels;
}

// Answers by the true classes, half of them between samples of one class.
void draw_answers(const StoreSizes& n, const at::Tensor& labels, const at::Tensor& i, const at::Tensor& j,
                  uint64_t stream) {
  std::vector<std::vector<int32_t>> members(n.classes);
  for (int64_t s = 0; s < n.samples; ++s) members[labels.data_ptr<int64_t>()[s]].push_back(static_cast<int32_t>(s));
  Random random(1, Purpose::bench, stream);
  for (int64_t k = 0; k < i.numel(); ++k) {
    const auto a = static_cast<int32_t>(random.below(n.samples));
    const std::vector<int32_t>& own = members[labels.data_ptr<int64_t>()[a]];
    i.data_ptr<int32_t>()[k] = a;
    j.data_ptr<int32_t>()[k] =
        random.below(2) == 0 ? own[random.below(own.size())] : static_cast<int32_t>(random.below(n.samples));
  }
}

void insert_answers(graph::GraphStore& store, const InputTensors& inputs) {
  const auto* labels = inputs.at("labels").data_ptr<int64_t>();
  const auto *i = inputs.at("i").data_ptr<int32_t>(), *j = inputs.at("j").data_ptr<int32_t>();
  for (int64_t k = 0; k < inputs.at("i").numel(); ++k)
    store.insert(i[k], j[k], labels[i[k]] == labels[j[k]] ? graph::Relation::same : graph::Relation::different);
}

// Samples of a batch, one from each stretch of the data set.
at::Tensor draw_batch(const StoreSizes& n) {
  const at::Tensor batch = at::empty({n.rows}, at::kLong);
  Random random(1, Purpose::bench, 24);
  for (int64_t p = 0; p < n.rows; ++p)
    batch.data_ptr<int64_t>()[p] = (p * (n.samples / n.rows)) + static_cast<int64_t>(random.below(n.samples / n.rows));
  return batch;
}

// A store from the label vector.
KernelCase supervised_case(BenchSizes sizes) {
  const StoreSizes n = store_sizes(sizes);
  KernelCase c{.name = "supervised-store", .params = {{"N", n.samples}, {"C", n.classes}}};
  c.peers = {{"scipy connected_components", 0}, {"networkx union-find", 0}};
  c.inputs = [=](const std::string&) { return ops::NamedTensors{{"labels", draw_classes(n)}}; };
  c.ours = [=](const InputTensors& inputs, int) {
    const std::vector<int64_t> labels = values_of(inputs.at("labels"));
    return KernelRun{[labels] {
                       graph::GraphStore store(static_cast<int64_t>(labels.size()));
                       store.set_labels(labels);
                       return static_cast<double>(store.components());
                     },
                     {}};
  };
  return c;
}

// Answered pairs, inserted one by one; the peer gets all "same" pairs at once.
KernelCase answers_case(BenchSizes sizes) {
  const StoreSizes n = store_sizes(sizes);
  KernelCase c{.name = "answers", .params = {{"N", n.samples}, {"C", n.classes}, {"answers", n.answers}}};
  c.peers = {{"scipy connected_components", 0}};
  c.inputs = [=](const std::string&) {
    const at::Tensor labels = draw_classes(n), i = at::empty({n.answers}, at::kInt),
                     j = at::empty({n.answers}, at::kInt);
    draw_answers(n, labels, i, j, 21);
    return ops::NamedTensors{{"labels", labels}, {"i", i}, {"j", j}};
  };
  c.ours = [=](const InputTensors& inputs, int) {
    return KernelRun{[=] {
                       graph::GraphStore store(n.samples);
                       insert_answers(store, inputs);
                       return static_cast<double>(store.components());
                     },
                     {}};
  };
  return c;
}

// A million lookups in a store with a tenth of the answers; the value counts "same".
KernelCase relation_case(BenchSizes sizes) {
  const StoreSizes n = store_sizes(sizes);
  const int64_t asked = n.answers / 10;
  KernelCase c{.name = "relation", .params = {{"N", n.samples}, {"answers", asked}, {"relations", asked}}};
  c.peers = {{"networkx union-find", 0}};
  c.inputs = [=](const std::string&) {
    const at::Tensor labels = draw_classes(n), i = at::empty({asked}, at::kInt), j = at::empty({asked}, at::kInt),
                     a = at::empty({asked}, at::kInt), b = at::empty({asked}, at::kInt);
    draw_answers(n, labels, i, j, 22);
    draw_answers(n, labels, a, b, 23);
    return ops::NamedTensors{{"labels", labels}, {"i", i}, {"j", j}, {"a", a}, {"b", b}};
  };
  c.ours = [=](const InputTensors& inputs, int) {
    auto store = std::make_shared<graph::GraphStore>(n.samples);
    const at::Tensor a = inputs.at("a"), b = inputs.at("b");
    insert_answers(*store, inputs);
    return KernelRun{[=] {
                       double same = 0;
                       for (int64_t k = 0; k < asked; ++k)
                         same += store->relation(a.data_ptr<int32_t>()[k], b.data_ptr<int32_t>()[k]) ==
                                 graph::Relation::same;
                       return same;
                     },
                     {}};
  };
  return c;
}

// The mixed graph of a batch with its mass: Σ |G| off the diagonal, one view.
KernelCase batch_case(BenchSizes sizes) {
  const StoreSizes n = store_sizes(sizes);
  KernelCase c{.name = "batch-graph",
               .params = {{"N", n.samples}, {"C", n.classes}, {"rows", n.rows}, {"alpha", 0.25}}};
  c.peers = {{"scipy Y Yt", 1e-12}};
  c.inputs = [=](const std::string&) {
    return ops::NamedTensors{{"labels", draw_classes(n)}, {"batch", draw_batch(n)}};
  };
  c.ours = [=](const InputTensors& inputs, int) {
    auto store = std::make_shared<graph::GraphStore>(n.samples);
    store->set_labels(values_of(inputs.at("labels")));
    const std::vector<int64_t> batch = values_of(inputs.at("batch"));
    graph::GraphSpec spec;
    spec.kind = graph::GraphKind::mixed;
    spec.alpha = 0.25;
    return KernelRun{[=] { return graph::edge_mass(graph::build_batch_graph(*store, spec, batch, 1)); }, {}};
  };
  return c;
}

// The signed graph of a batch from a store with all answers and no labels: most classes are one component, and most
// components are known to differ.
KernelCase signed_batch_case(BenchSizes sizes) {
  const StoreSizes n = store_sizes(sizes);
  KernelCase c{.name = "signed-batch-graph",
               .params = {{"N", n.samples}, {"C", n.classes}, {"answers", n.answers}, {"rows", n.rows}}};
  c.peers = {{"scipy Y D Yt", 1e-12}};
  c.inputs = [=](const std::string&) {
    const at::Tensor labels = draw_classes(n), i = at::empty({n.answers}, at::kInt),
                     j = at::empty({n.answers}, at::kInt);
    draw_answers(n, labels, i, j, 21);
    return ops::NamedTensors{{"labels", labels}, {"i", i}, {"j", j}, {"batch", draw_batch(n)}};
  };
  c.ours = [=](const InputTensors& inputs, int) {
    auto store = std::make_shared<graph::GraphStore>(n.samples);
    insert_answers(*store, inputs);
    const std::vector<int64_t> batch = values_of(inputs.at("batch"));
    graph::GraphSpec spec;
    spec.kind = graph::GraphKind::signs;
    return KernelRun{[=] { return graph::edge_mass(graph::build_batch_graph(*store, spec, batch, 1)); }, {}};
  };
  return c;
}

}  // namespace

std::vector<KernelCase> store_bench_cases(BenchSizes sizes) {
  return {supervised_case(sizes), answers_case(sizes), relation_case(sizes), batch_case(sizes),
          signed_batch_case(sizes)};
}

}  // namespace pal::bench
