#include "dist/scale/scale_model.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace pal::dist {
namespace {

// Seconds of one GPU for its share of the samples, layer by layer.
class Compute {
 public:
  Compute(const ModelCost& model, const Workload& workload, const Cluster& cluster)
      : rate_(workload.precision == model::Precision::bf16 ? cluster.bf16 : cluster.full),
        floor_(cluster.kernel_seconds) {
    if (workload.measured_sample_seconds <= 0) return;
    double seconds = 0;
    for (const LayerCost& layer : model.layers) seconds += 3 * layer.flops / speed(layer);
    scale_ = workload.measured_sample_seconds / seconds;
    floor_ = 0;
  }
  double forward(const LayerCost& layer, double samples) const {
    return layer.flops == 0 ? 0 : std::max(floor_, scale_ * samples * layer.flops / speed(layer));
  }
  double matmul(double flops) const { return flops / (rate_.peak * rate_.matmul); }

 private:
  double speed(const LayerCost& layer) const {
    return rate_.peak * (layer.kind == LayerCost::Kind::matmul ? rate_.matmul : rate_.conv);
  }
  GpuRate rate_;
  double floor_, scale_ = 1;
};

double packed(int64_t dims) { return 0.5 * static_cast<double>(dims) * static_cast<double>(dims + 1); }

// FLOPs of the loss on one of `gpus`, forward and gradient.
double loss_flops(const LossShape& loss, int64_t samples, int gpus) {
  const auto n = static_cast<double>(samples), d = static_cast<double>(loss.dims),
             all = n * static_cast<double>(loss.views);
  const double own = all / gpus, rows = all / static_cast<double>(loss.groups);  // rows of a group
  switch (loss.form) {
    case LossForm::official:
      return 6 * all * d * d;  // the product, and two for its gradient, of all rows
    case LossForm::covariance:
      return 4 * own * d * d;  // the product and Z times a D×D matrix
    case LossForm::gram:
      return 4 * own * rows * d;
    case LossForm::similarity:
      return 6 * own * all * d;
    case LossForm::local:
      return 0;
  }
  return 0;
}

double loss_memory(const LossShape& loss, int64_t samples, int gpus) {
  const auto groups = static_cast<double>(loss.groups), d = static_cast<double>(loss.dims);
  const double all = static_cast<double>(samples * loss.views) * d * loss.z_bytes,
               own = 2 * all / gpus;  // Z and its gradient
  switch (loss.form) {
    case LossForm::official:
      return own + 2 * all + groups * 2 * d * d * loss.z_bytes;
    case LossForm::covariance:
      return own + packed(loss.dims) * loss.statistic_bytes + d * d * loss.z_bytes;
    case LossForm::gram:
      return own + all / groups;
    case LossForm::similarity:
      return own + all;
    case LossForm::local:
      return own;
  }
  return 0;
}

}  // namespace

int64_t ModelCost::parameters() const {
  int64_t sum = 0;
  for (const LayerCost& layer : layers) sum += layer.parameters;
  return sum;
}

double ModelCost::flops() const {
  double sum = 0;
  for (const LayerCost& layer : layers) sum += layer.flops;
  return sum;
}

const char* loss_form_name(LossForm form) {
  switch (form) {
    case LossForm::official:
      return "official";
    case LossForm::covariance:
      return "covariance";
    case LossForm::gram:
      return "gram";
    case LossForm::similarity:
      return "similarity";
    case LossForm::local:
      return "local";
  }
  return "";
}

std::vector<Exchange> loss_exchanges(const LossShape& loss, int64_t samples) {
  const auto d = static_cast<double>(loss.dims), rows = static_cast<double>(samples * loss.views);
  const double z = rows * d * loss.z_bytes;
  std::vector<Exchange> out;
  switch (loss.form) {
    case LossForm::official:
      for (int64_t v = 0; v < loss.views; ++v)
        out.push_back({Collective::all_gather, z / static_cast<double>(loss.views)});
      for (int64_t v = 0; v < loss.views; ++v)
        out.push_back({Collective::all_reduce, z / static_cast<double>(loss.views)});
      return out;
    case LossForm::similarity:
      return {{Collective::all_gather, z},
              {Collective::all_gather, 2 * rows * loss.statistic_bytes},
              {Collective::all_reduce, 8}};
    case LossForm::local:
      return {{Collective::all_reduce, 8}};
    default:
      break;
  }
  out.push_back({Collective::all_reduce, 8});  // the invariance term
  out.push_back({Collective::all_reduce, static_cast<double>(loss.groups) * d * loss.statistic_bytes});  // the means
  for (int64_t g = 0; g < loss.groups; ++g) {
    if (loss.form == LossForm::covariance) {
      out.push_back({Collective::all_reduce, packed(loss.dims) * loss.statistic_bytes});
    } else {
      out.push_back({Collective::all_gather, z / static_cast<double>(loss.groups)});
    }
  }
  return out;
}

namespace {

StepCost step_of(const ModelCost& model, const Workload& work, const Cluster& cluster, int gpus) {
  const Compute compute(model, work, cluster);
  const auto collective = [&](Collective c, double bytes, int ranks) {
    return collective_seconds(c, cluster.fabric, ranks, bytes, work.route);
  };
  StepCost cost;
  cost.gpus = gpus;
  cost.nodes = (gpus + cluster.fabric.per_node - 1) / cluster.fabric.per_node;
  cost.samples_per_gpu = static_cast<double>(work.samples) / gpus;
  const double own = std::ceil(cost.samples_per_gpu);  // the slowest GPU's share
  const int norm_ranks = work.norm == Workload::Norm::off    ? 1
                         : work.norm == Workload::Norm::node ? std::min(gpus, cluster.fabric.per_node)
                                                             : gpus;

  // Forward: with micro-batches all pieces are encoded twice.
  const int encodes = work.micro_batches > 1 ? 2 : 1;
  for (const LayerCost& layer : model.layers) {
    cost.compute += encodes * compute.forward(layer, own);
    if (layer.statistics == 0) continue;
    const double up = 8.0 * (2.0 * static_cast<double>(layer.statistics) + 1),
                 down = 16.0 * static_cast<double>(layer.statistics);
    cost.exposed_norm += work.forwards * (encodes * collective(Collective::all_reduce, up, norm_ranks) +
                                          collective(Collective::all_reduce, down, norm_ranks));
    cost.norm_bytes += norm_ranks > 1 ? work.forwards * (encodes * up + down) : 0;
  }
  // Loss.
  cost.loss_compute = compute.matmul(loss_flops(work.loss, work.samples, gpus));
  for (const Exchange& e : loss_exchanges(work.loss, work.samples)) {
    cost.exposed_loss += collective(e.collective, e.bytes, gpus);
    if (gpus > 1) cost.loss_bytes += e.bytes;
  }
  // Backward, last layer first: a bucket goes when the next parameter does not fit; buckets wait for each other.
  double now = 0, link_free = 0, filled = 0;
  const auto send = [&] {
    if (filled == 0 || gpus == 1) return;
    const double seconds = collective(Collective::all_reduce, filled, gpus);
    link_free = std::max(now, link_free) + seconds;
    cost.gradient_seconds += seconds;
    cost.gradient_bytes += filled;
    filled = 0;
  };
  const double norm_down = cost.exposed_norm == 0 ? 0 : cost.exposed_norm / (1 + encodes);  // spread over backward
  double statistics = 0, backward_compute = 0;
  for (const LayerCost& layer : model.layers) statistics += layer.statistics > 0 ? 1 : 0;
  for (auto layer = model.layers.rbegin(); layer != model.layers.rend(); ++layer) {
    const double bytes = static_cast<double>(layer->parameters) * work.gradient_bytes;
    if (filled + bytes > work.bucket_bytes) send();
    const double seconds =
        2 * compute.forward(*layer, own / work.micro_batches);  // only the last piece's backward hides anything
    now += seconds + (layer->statistics > 0 ? norm_down / statistics : 0);
    backward_compute += 2 * compute.forward(*layer, own);
    filled += bytes;
    if (filled >= work.bucket_bytes) send();
  }
  send();
  cost.compute += backward_compute;
  cost.exposed_gradients = std::max(0.0, link_free - now);
  // Optimizer: reads weights, gradients and state, writes weights and state.
  const auto p = static_cast<double>(model.parameters());
  cost.optimizer = p * work.state_bytes * (3 + 2 * work.optimizer_slots) / cluster.memory_rate;
  cost.step = cost.compute + cost.loss_compute + cost.optimizer + cost.exposed_norm + cost.exposed_loss +
              cost.exposed_gradients;
  cost.loader_per_node = static_cast<double>(work.samples) / cost.nodes / cost.step;
  if (cluster.loader_rate > 0 && cost.loader_per_node > cluster.loader_rate) {
    cost.loader_bound = true;
    cost.step = static_cast<double>(work.samples) / cost.nodes / cluster.loader_rate;
  }
  cost.samples_per_s = static_cast<double>(work.samples) / cost.step;

  StepCost::Memory& m = cost.memory;
  const double half = work.precision == model::Precision::bf16 ? 0.5 : 1;
  m.weights = p * work.state_bytes + static_cast<double>(model.buffers) * work.state_bytes;
  m.gradients = p * work.state_bytes;
  m.optimizer = p * work.state_bytes * work.optimizer_slots;
  m.activations = own / work.micro_batches * model.activation_bytes * half * work.state_bytes / 4 +
                  own * model.input_bytes * work.state_bytes / 4;
  m.loss = loss_memory(work.loss, work.samples, gpus);
  m.context = cluster.context_bytes;

  cost.checkpoint_bytes = m.weights + m.optimizer;
  cost.checkpoint_stall = std::max(0.01, cost.checkpoint_bytes / gpus / cluster.copy_rate);
  const double write = cost.checkpoint_bytes / (cluster.storage_rate * cost.nodes),
               mtbf = cluster.node_mtbf / cost.nodes;
  cost.checkpoint_interval = std::max(daly_interval(cost.checkpoint_stall, mtbf), write);
  // A checkpoint counts only when it is written, in the background: a failure before that costs the time too.
  cost.effective =
      effective_share(cost.checkpoint_interval, cost.checkpoint_stall, cluster.restart_seconds + write, mtbf);
  return cost;
}

}  // namespace

StepCost predict_step(const ModelCost& model, const Workload& workload, const Cluster& cluster, int gpus) {
  PAL_CHECK(gpus >= 1 && gpus <= workload.samples,
            "a batch of " + std::to_string(workload.samples) + " samples cannot be divided among {} GPUs", gpus,
            "give at most as many GPUs as samples, or a larger batch");
  StepCost cost = step_of(model, workload, cluster, gpus);
  Workload alone = workload;
  alone.samples = static_cast<int64_t>(std::ceil(cost.samples_per_gpu));
  const StepCost one = step_of(model, alone, cluster, 1);
  cost.efficiency = cost.samples_per_s / (gpus * one.samples_per_s);
  return cost;
}

double young_interval(double stall, double mtbf) { return std::sqrt(2 * stall * mtbf); }

double daly_interval(double stall, double mtbf) {
  if (stall >= 2 * mtbf) return mtbf;
  const double x = stall / (2 * mtbf);
  return young_interval(stall, mtbf) * (1 + std::sqrt(x) / 3 + x / 9) - stall;
}

double effective_share(double interval, double stall, double restart, double mtbf) {
  return interval / (mtbf * std::exp(restart / mtbf) * std::expm1((interval + stall) / mtbf));
}

}  // namespace pal::dist
