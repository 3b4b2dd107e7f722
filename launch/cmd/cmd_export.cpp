// cmd_export: pal export RUN --out F.safetensors: a trained encoder for Python, with torchvision's names (ViT: timm's).
#include <fmt/format.h>

#include <filesystem>

#include "core/io/safetensors.h"
#include "core/model/state.h"
#include "core/ops/named_tensors.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/run/output_file.h"
#include "launch/run/trained_run.h"

namespace pal::launch {
namespace {

// The network of that name in Python, "library.name"; "" where there is none.
std::string published(model::BackboneKind kind) {
  switch (kind) {
#define PAL_BACKBONE(name, published) \
  case model::BackboneKind::name:     \
    return published;
#include "core/config/backbones.def"
  }
  return "";
}

// What a Python user types to load it.
std::string python_model(const model::ModelSpec& spec) {
  const std::string name = published(spec.backbone), net = name.substr(name.find('.') + 1);
  if (name.empty()) return "";
  if (name.starts_with("timm."))
    return fmt::format("timm.create_model('{}_patch{}_224', img_size={}, num_classes=0)", net, spec.patch, spec.image);
  return "torchvision.models." + net + "(); m.fc = torch.nn.Identity()" +
         (spec.stem == model::Stem::cifar
              ? "; m.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False); m.maxpool = torch.nn.Identity()"
              : "");
}

}  // namespace

int cmd_export(const std::vector<std::string>& arguments, Context&) {
  std::string run, out, part = "backbone";
  CLI::App app("Writes a trained encoder as safetensors with torchvision's names (ViT: timm's).", "pal export");
  app.add_option("RUN", run, "run folder")->required();
  app.add_option("--out", out, "file to write, F.safetensors")->required();
  app.add_option(
         "--part", part,
         "backbone: the backbone alone; all: everything, with the prefixes backbone., projector. and predictor.")
      ->check(CLI::IsMember({"backbone", "all"}))
      ->capture_default_str();
  app.footer(
      "Examples:\n"
      "  pal export runs/quickstart --out encoder.safetensors\n"
      "  pal train configs/cifar10-vicreg.yaml model.init=encoder.safetensors\n"
      "See also: pal help python");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  PAL_CHECK(out.ends_with(".safetensors"), "{} is not a name for a file of weights", out, "end it with .safetensors");

  const setup::RunSpec spec = run_spec(run);
  OutputFile file(out);
  const auto alone = comm::make_local_comm();
  const TrainedRun trained = load_trained_run(run, spec, *alone);
  ops::NamedTensors tensors;
  int64_t numbers = 0;
  for (const auto& [name, tensor] : model::model_state(*trained.encoder)) {
    const std::string head = "backbone.";
    if (part == "backbone" && !name.starts_with(head)) continue;
    tensors.emplace_back(part == "backbone" ? name.substr(head.size()) : name, tensor);
    numbers += tensor.numel();
  }
  const std::string sum =
      io::write_safetensors(file.path(), tensors,
                            {{"format", "pt"},
                             {"pal_backbone", config::choice_name(model::kBackbones, spec.model.backbone)},
                             {"pal_stem", config::choice_name(model::kStems, spec.model.stem)},
                             {"pal_step", std::to_string(trained.step)},
                             {"pal_version", PAL_VERSION}});
  file.publish();
  fmt::print("{}: {} tensors, {:.2f} M numbers, of step {}, SHA-256 {}\n", out, tensors.size(),
             static_cast<double>(numbers) / 1e6, trained.step, sum.substr(0, 16));
  if (const std::string model = python_model(spec.model); part == "backbone" && !model.empty()) {
    fmt::print("in Python:  m = {}\n            m.load_state_dict(safetensors.torch.load_file('{}'))\n", model, out);
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
