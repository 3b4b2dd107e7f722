// torch_ops: registers every criterion as torch.ops.pal.KIND (KIND: a loss.kind) with autograd, for training in Python.
//
//   torch.ops.load_library("libpal_torch_ops.so")
//   loss = torch.ops.pal.simclr(z, pairs=pairs, settings=["loss.temperature=0.2"])
// Shapes: z (V · n, D), view-major, float32 or float64. The graph of its n samples is the sum of
//   views_weight · (the views of a sample) + labels_weight · (the samples of one label ≥ 0) + pairs (E, 2), weights
//   (E). A pair is undirected and listed once; the default weight is 1. labels (n) are also the targets of mse and
//   cross_entropy. NNCLR takes support (M, D) and anchors (V · n, D; default z). Sampled VIC² takes related and
//   repelled (K, 2), rows of z, with their probabilities (K). settings are keys of the config, such as
//   "loss.lambda=0.1".
// One process; several ranks need `pal train`.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>
#include <torch/version.h>

#include <map>
#include <optional>

#include "core/config/config.h"
#include "core/loss/criterion.h"
#include "core/setup/run_spec.h"
#include "kernels/base/error.h"

namespace pal::launch {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

const char* const kSchema =
    "(Tensor z, int views=2, Tensor? pairs=None, Tensor? weights=None, Tensor? labels=None, float views_weight=1.0, "
    "float labels_weight=1.0, Tensor? support=None, Tensor? anchors=None, Tensor? related=None, Tensor? "
    "related_probability=None, "
    "Tensor? repelled=None, Tensor? repelled_probability=None, str[]? settings=None) -> Tensor";

template <class T>
std::vector<T> numbers(const at::Tensor& t) {
  const at::Tensor host = t.detach().to(at::kCPU, c10::CppTypeToScalarType<T>::value).contiguous();
  return {host.const_data_ptr<T>(), host.const_data_ptr<T>() + host.numel()};
}

void check_pairs(const char* what, const at::Tensor& pairs, const MaybeTensor& values) {
  PAL_CHECK(pairs.dim() == 2 && pairs.size(1) == 2 && !pairs.is_floating_point(), std::string(what) + " has shape {}",
            c10::str(pairs.sizes()), "give integers (pairs, 2)");
  PAL_CHECK(!values || values->numel() == pairs.size(0), std::string(what) + " has {} values",
            values ? values->numel() : 0, "give one per pair");
}

// Undirected pairs in both directions.
graph::SparseRest rest_of(const at::Tensor& pairs, const MaybeTensor& weights, int64_t samples) {
  check_pairs("pairs", pairs, weights);
  const std::vector<int64_t> ends = numbers<int64_t>(pairs);
  const std::vector<double> weight = weights ? numbers<double>(*weights) : std::vector<double>(pairs.size(0), 1.0);
  std::vector<std::map<int32_t, double>> rows(samples);
  for (size_t e = 0; e < weight.size(); ++e) {
    const int64_t i = ends[2 * e], j = ends[2 * e + 1];
    PAL_DATA_CHECK(i >= 0 && i < samples && j >= 0 && j < samples, "a pair names sample {}",
                   i >= 0 && i < samples ? j : i, "samples are 0 to " + std::to_string(samples - 1));
    const auto [at, fresh] = rows[i].emplace(static_cast<int32_t>(j), weight[e]);
    PAL_DATA_CHECK(fresh || at->second == weight[e],
                   "pair " + std::to_string(i) + "," + std::to_string(j) + " comes twice; the second weight is {}",
                   weight[e], "give it once");
    const auto [back, news] = rows[j].emplace(static_cast<int32_t>(i), weight[e]);
    PAL_DATA_CHECK(news || back->second == weight[e],
                   "pair " + std::to_string(i) + "," + std::to_string(j) + " comes both ways; the second weight is {}",
                   weight[e], "give it once");
  }
  graph::SparseRest rest;
  rest.offsets.push_back(0);
  for (const auto& row : rows) {
    for (const auto& [column, w] : row) {
      rest.columns.push_back(column);
      rest.weights.push_back(w);
    }
    rest.offsets.push_back(static_cast<int64_t>(rest.columns.size()));
  }
  return rest;
}

std::optional<loss::PairSample> sample_of(const char* what, const MaybeTensor& pairs, const MaybeTensor& probability) {
  if (!pairs) return {};
  check_pairs(what, *pairs, probability);
  const std::vector<int64_t> ends = numbers<int64_t>(*pairs);
  loss::PairSample sample;
  for (size_t e = 0; e < ends.size(); e += 2) {
    sample.i.push_back(ends[e]);
    sample.j.push_back(ends[e + 1]);
  }
  sample.probability = probability ? numbers<double>(*probability) : std::vector<double>(sample.i.size(), 1.0);
  return sample;
}

struct Call {
  loss::Criterion criterion;
  loss::Batch batch;
};

// The arguments after z, in the schema's order.
Call call_of(const std::string& kind, const at::Tensor& z, const std::vector<c10::IValue>& a) {
  const auto maybe = [&](size_t k) { return a[k].isNone() ? MaybeTensor() : MaybeTensor(a[k].toTensor()); };
  const int64_t views = a[0].toInt();
  PAL_CHECK(z.dim() == 2 && (z.scalar_type() == at::kFloat || z.scalar_type() == at::kDouble), "the embeddings are {}",
            c10::str(z.scalar_type(), z.sizes()), "give float32 or float64 rows (views · samples, width)");
  PAL_CHECK(views >= 1 && z.size(0) % views == 0, "the embeddings have {} rows", z.size(0),
            "give a multiple of views, " + std::to_string(views));
  const int64_t samples = z.size(0) / views;
  Call call;
  std::vector<std::string> settings = {"loss.kind=" + kind, "graph.kind=supervised"};  // labels may be read
  if (!a[12].isNone()) {
    for (const auto& s : a[12].toListRef()) settings.push_back(s.toStringRef());
  }
  call.criterion = loss::make_criterion(setup::make_run_spec(config::Config::defaults(settings)).loss);
  loss::Batch& batch = call.batch;
  batch.views = batch.graph.views = static_cast<int32_t>(views);
  batch.graph.samples = batch.end = samples;
  batch.samples.resize(samples);
  batch.rank_begin = {0, samples};
  batch.threads = at::get_num_threads();
  if (const double weight = a[4].toDouble(); weight != 0) {
    graph::BlockLayer layer{{}, static_cast<int32_t>(samples), weight, {}};
    for (int64_t p = 0; p < samples; ++p) layer.block.push_back(static_cast<int32_t>(p));
    batch.graph.layers.push_back(std::move(layer));
  }
  if (const MaybeTensor labels = maybe(3)) {
    batch.labels = numbers<int64_t>(*labels);
    PAL_CHECK(static_cast<int64_t>(batch.labels.size()) == samples, "there are {} labels", batch.labels.size(),
              "give one per sample, -1 unknown");
    std::map<int64_t, int32_t> block;
    graph::BlockLayer layer{{}, 0, a[5].toDouble(), {}};
    for (int64_t label : batch.labels)
      layer.block.push_back(label < 0 ? -1 : block.emplace(label, static_cast<int32_t>(block.size())).first->second);
    layer.blocks = static_cast<int32_t>(block.size());
    if (layer.weight != 0) batch.graph.layers.push_back(std::move(layer));
  }
  if (const MaybeTensor pairs = maybe(1)) batch.graph.rest = rest_of(*pairs, maybe(2), samples);
  graph::check(batch.graph);
  if (const MaybeTensor support = maybe(6)) {
    batch.support = support->detach().to(z.options()).contiguous();
    batch.anchors = maybe(7).value_or(z).detach().to(z.options()).contiguous();
  }
  batch.related = sample_of("related", maybe(8), maybe(9));
  batch.repelled = sample_of("repelled", maybe(10), maybe(11));
  return call;
}

class GraphLoss : public torch::autograd::Function<GraphLoss> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& z, const Call* call) {
    const auto alone = comm::make_local_comm();
    const loss::LossResult result = call->criterion(z.detach().contiguous(), call->batch, *alone);
    context->save_for_backward({result.dz});
    return at::full({}, result.value, z.options());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0].mul(context->get_saved_variables()[0]), at::Tensor()};
  }
};

// One function for all operators: the operator's name selects the loss.
void graph_loss(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  std::vector<c10::IValue> arguments = torch::jit::pop(*stack, count);
  const at::Tensor z = arguments.front().toTensor();
  arguments.erase(arguments.begin());
  const std::string& name = op.schema().name();  // pal::KIND
  try {
    const Call call = call_of(name.substr(name.rfind(':') + 1), z, arguments);
    torch::jit::push(*stack, GraphLoss::apply(z, &call));
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

// pal_losses.py looks for it in the file before it loads it: a library for another torch may not load.
[[gnu::used]] const char kBuiltWith[] = "pal_torch_ops for torch " TORCH_VERSION;

}  // namespace
}  // namespace pal::launch

TORCH_LIBRARY(pal, library) {
  for (const auto& loss : pal::loss::kLosses) {
    library.def((std::string(loss.name) + pal::launch::kSchema).c_str(),
                torch::CppFunction::makeFromBoxedFunction<&pal::launch::graph_loss>());
  }
}
