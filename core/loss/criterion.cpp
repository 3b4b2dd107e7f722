// criterion: the factory of losses.
#include "core/loss/criterion.h"

#include <utility>

#include "core/config/config.h"
#include "core/loss/barlow.h"
#include "core/loss/nnclr.h"
#include "core/loss/sampled_vic2.h"
#include "core/loss/simclr.h"
#include "core/loss/supervised.h"
#include "core/loss/vic2.h"
#include "core/loss/vicreg.h"
#include "kernels/base/error.h"

namespace pal::loss {
namespace {

Reduction reduction(const config::Config& config) {
  return config.text("loss.reduction") == "sum" ? Reduction::sum : Reduction::mean;
}

VicregOptions vicreg_options(const config::Config& config) {
  VicregOptions options;
  options.invariance = config.real("loss.invariance");
  options.variance = config.real("loss.variance");
  options.covariance = config.real("loss.covariance");
  options.epsilon = config.real("loss.epsilon");
  options.moments = config.text("loss.moments") == "pooled" ? Moments::pooled : Moments::per_view;
  options.reduction = reduction(config);
  options.margin = config.real("loss.margin");
  return options;
}

graph::SelfLoops self_loops(const config::Config& config, graph::SelfLoops by_itself) {
  const std::string& asked = config.text("graph.self_loops");
  return asked == "auto" ? by_itself : asked == "on" ? graph::SelfLoops::on : graph::SelfLoops::off;
}

Vic2Options vic2_options(const config::Config& config) {
  return {self_loops(config, graph::SelfLoops::on), reduction(config)};
}

SampledVic2Options sampled_vic2_options(const config::Config& config) {
  return {config.text("loss.form") == "printed" ? SampledForm::printed : SampledForm::unbiased,
          self_loops(config, graph::SelfLoops::on), reduction(config)};
}

BarlowOptions barlow_options(const config::Config& config) {
  return {config.text("loss.barlow") == "graph" ? BarlowForm::graph : BarlowForm::cross, config.real("loss.lambda"),
          config.real("loss.scale"), self_loops(config, graph::SelfLoops::off)};
}

}  // namespace

LossResult result_of(LossTerms terms, const at::Tensor& dz) {
  LossResult result{0, std::move(terms), dz};
  for (const auto& term : result.terms) result.value += term.second;
  return result;
}

Batch positions_of(const Batch& batch) {
  Batch positions = batch;
  positions.views = positions.graph.views = 1;
  return positions;
}

Criterion make_criterion(const config::Config& config) {
  const std::string& kind = config.text("loss.kind");
  if (kind == "vicreg") return make_vicreg(vicreg_options(config));
  if (kind == "vic2") return make_vic2(vic2_options(config));
  if (kind == "scl") return make_scl(vic2_options(config));
  if (kind == "sampled_vic2") return make_sampled_vic2(sampled_vic2_options(config));
  if (kind == "simclr") return make_simclr({config.real("loss.temperature"), reduction(config)});
  if (kind == "barlow") return make_barlow(barlow_options(config));
  if (kind == "nnclr") {
    return make_nnclr({{config.real("loss.temperature"), reduction(config)},
                       config.integer("loss.neighbors"),
                       config.integer("loss.queue") == 0 ? NeighborSource::batch : NeighborSource::support});
  }
  if (kind == "mse") return make_supervised(Supervision::mse, reduction(config));
  if (kind == "cross_entropy") return make_supervised(Supervision::cross_entropy, reduction(config));
  PAL_CHECK(false, "loss.kind without a criterion", kind, "add a line to make_criterion");
  return {};
}

}  // namespace pal::loss
