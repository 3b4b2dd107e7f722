// criterion: the factory of losses.
#include "core/loss/criterion.h"

#include "core/config/config.h"
#include "core/loss/vic2.h"
#include "core/loss/vicreg.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

Reduction reduction(const Config& config) {
  return config.text("loss.reduction") == "sum" ? Reduction::sum : Reduction::mean;
}

VicregOptions vicreg_options(const Config& config) {
  VicregOptions options;
  options.invariance = config.real("loss.invariance");
  options.variance = config.real("loss.variance");
  options.covariance = config.real("loss.covariance");
  options.epsilon = config.real("loss.epsilon");
  options.moments = config.text("loss.moments") == "pooled" ? Moments::pooled : Moments::per_view;
  options.reduction = reduction(config);
  return options;
}

Vic2Options vic2_options(const Config& config) {
  return {config.text("graph.self_loops") == "off" ? SelfLoops::off : SelfLoops::on, reduction(config)};
}

}  // namespace

Criterion make_criterion(const Config& config) {
  const std::string& kind = config.text("loss.kind");
  if (kind == "vicreg") return make_vicreg(vicreg_options(config));
  if (kind == "vic2") return make_vic2(vic2_options(config));
  PAL_CHECK(false, "loss.kind", kind, "choose vicreg or vic2");
  return {};
}

}  // namespace pal
