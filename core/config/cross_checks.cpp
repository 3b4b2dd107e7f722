#include "core/config/config_internal.h"
#include "kernels/base/error.h"

namespace pal::config {
namespace {

void check_one_of(const Config& config, const std::string& a, const std::string& b, Completeness completeness) {
  const std::string both = a + " (" + config.origin(a) + ") and " + b + " (" + config.origin(b) + ")";
  PAL_CHECK(!config.has(a) || !config.has(b), "both are set: " + both, "",
            "keep one: give the other as " + a + "=null or " + b + "=null");
  PAL_CHECK(completeness == Completeness::optional || config.has(a) || config.has(b),
            "neither " + a + " nor " + b + " is set", "", "set exactly one of them");
}

[[noreturn]] void refuse(const Config& config, const std::string& key, const std::string& must) {
  throw Error(Exit::usage, config.origin(key) + ": " + key + " is " + config.formatted(key) + "; it must be " + must);
}

void check_interval(const Config& config, const std::string& key) {
  const std::vector<double> ends = config.real_list(key);
  if (ends.size() != 2 || ends[0] > ends[1]) refuse(config, key, "[min, max] with min at most max");
}

void check_length(const Config& config, const std::string& key, size_t length, const std::string& what) {
  if (config.text_list(key).size() != length) refuse(config, key, what);
}

void check_per_view(const Config& config, const std::string& key) {
  const size_t length = config.text_list(key).size();
  const int64_t views = config.integer("augment.views") + config.integer("augment.small_views");
  if (length == 0 || static_cast<int64_t>(length) > views) {
    refuse(config, key, "a list of 1 to " + std::to_string(views) + " numbers, one per view (the last one repeats)");
  }
}

bool trains_on_labels(const std::string& loss) {
#define PAL_LOSS(name, cost, target) \
  if (loss == #name) return std::string(#target) == "labels";
#include "core/config/losses.def"
  return false;
}

}  // namespace

void check_between_keys(const Config& config, Completeness completeness) {
  check_one_of(config, "train.steps", "train.epochs", completeness);
  check_one_of(config, "optim.lr", "optim.base_lr", completeness);
  check_interval(config, "augment.crop_scale");
  check_interval(config, "augment.small_crop_scale");
  check_interval(config, "augment.crop_ratio");
  check_interval(config, "augment.blur_sigma");
  for (const char* key : {"augment.flip", "augment.jitter", "augment.gray", "augment.blur", "augment.solarize"})
    check_per_view(config, key);
  check_length(config, "augment.jitter_strength", 4, "four numbers: brightness, contrast, saturation, hue");
  if (config.real_list("augment.jitter_strength")[3] > 0.5)
    refuse(config, "augment.jitter_strength", "four numbers, of which the hue is at most 0.5");
  for (const char* key : {"augment.mean", "augment.std"}) {
    if (config.text_list(key).size() != 1) check_length(config, key, 3, "one number, or three, one per channel");
  }
  const std::string& kind = config.text("graph.kind");
  const auto needs_file = [&](const std::string& key) {
    PAL_CHECK(config.has(key), key + " is not set for graph.kind", kind, "give the file as " + key + "=FILE");
  };
  if (kind == "pairs") needs_file("graph.pairs");
  if (config.has("graph.groups")) {
    if (kind != "supervised" && kind != "mixed") refuse(config, "graph.kind", "supervised or mixed with graph.groups");
    if (config.text("oracle.sampler") != "none" && config.text("graph.deduction") != "on")
      refuse(config, "graph.deduction", "on with graph.groups and an oracle: an answer joins whole groups");
  }
  const std::string& labeler = config.text("oracle.labeler");
  if (labeler == "pairs") {
    PAL_CHECK(config.has("oracle.pairs"), "oracle.pairs is not set for oracle.labeler", labeler,
              "give the file as oracle.pairs=FILE");
  }
  const int64_t annotators = labeler == "pairs" ? 1 : config.integer("oracle.annotators");
  if (labeler != "exchange" && config.integer("oracle.votes") + config.integer("oracle.repeats") > annotators) {
    refuse(
        config, "oracle.annotators",
        "at least oracle.votes + oracle.repeats: an annotator answers a question once (oracle.labeler=pairs has one); "
        "where people answer, set oracle.labeler=exchange");
  }
  if (!config.text_list("oracle.mix").empty() && config.text("oracle.sampler") == "none") {
    refuse(config, "oracle.sampler", "mix when oracle.mix lists samplers");
  }
  if (config.integer("oracle.plateau") > 0 && config.integer("eval.every") == 0) {
    refuse(config, "oracle.plateau", "0 unless eval.every is set: the metric comes from those evaluations");
  }
  if (kind == "regression" || kind == "ranking") needs_file("graph.targets");
  const std::vector<int64_t> predictor = config.integer_list("model.predictor"),
                             projector = config.integer_list("model.projector");
  if (!predictor.empty() && !projector.empty() && predictor.back() != projector.back()) {
    refuse(config, "model.predictor",
           "a list whose last width is that of model.projector, " + std::to_string(projector.back()));
  }
  const std::string& loss = config.text("loss.kind");
  if (trains_on_labels(loss) && kind == "ssl") {
    refuse(config, "loss.kind", "a loss on a graph; or set another graph.kind than ssl, which uses no labels");
  }
  if (config.text("data.decoder") == "nvjpeg") {
    if (config.text("data.decode") != "full")
      refuse(config, "data.decode", "full when data.decoder=nvjpeg: nvJPEG decodes all pixels of a crop");
    if (config.text("train.device") == "cpu")
      refuse(config, "data.decoder", "cpu when train.device=cpu: nvJPEG runs on a GPU");
    if (config.text("train.dtype") != "float32")
      refuse(config, "data.decoder", "cpu when train.dtype=float64: the loader threads make those views");
  }
  if (config.integer("data.window") % 16 != 0) refuse(config, "data.window", "a multiple of 16");
  if (config.integer("train.micro_batches") > 1 && config.integer("augment.small_views") > 0) {
    refuse(config, "train.micro_batches", "1 when augment.small_views is set: views of two sizes are encoded together");
  }
  if (config.integer_list("model.widths").empty()) refuse(config, "model.widths", "a list of at least one width");
}

}  // namespace pal::config
