#include "core/record/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "core/io/regular_file.h"
#include "core/io/safetensors.h"
#include "core/ops/named_tensors.h"
#include "core/record/checkpoint_folder.h"
#include "kernels/base/error.h"

namespace pal::record {
namespace {

using nlohmann::json;

// The tensors of a group, from the one file or the several that hold it.
std::map<std::string, at::Tensor> load_group(const std::string& path, const std::vector<std::string>& names,
                                             const std::string& group) {
  std::map<std::string, at::Tensor> all;
  for (const std::string& name : names) {
    if (!name.ends_with(".safetensors") || (name != group + ".safetensors" && name.rfind(group + "-", 0) != 0))
      continue;
    all.merge(io::read_safetensors(path + "/" + name).tensors);
  }
  return all;
}

}  // namespace

LoadedCheckpoint load_checkpoint(const std::string& path) {
  const std::vector<std::string> names = verify_checkpoint(path);
  LoadedCheckpoint loaded;
  loaded.path = path;
  const std::string file = path + "/" + kStateFile;
  PAL_DATA_CHECK(std::find(names.begin(), names.end(), kStateFile) != names.end(),
                 path + "/manifest.json does not list", kStateFile, "remove that checkpoint");
  loaded.state = parse_state(io::read_regular_file(file, kMaxText), file);
  const std::string folder = std::filesystem::path(path).filename();
  PAL_DATA_CHECK(!folder.starts_with("step-") || folder == "step-" + std::to_string(loaded.state.step),
                 file + " is of another checkpoint; its step", loaded.state.step, "remove that checkpoint");
  loaded.model = load_group(path, names, "model");
  loaded.optim = load_group(path, names, "optim");
  loaded.extra = load_group(path, names, "extra");
  return loaded;
}

CheckpointState parse_state(const std::string& text, const std::string& file) {
  CheckpointState state;
  try {
    const json read = io::parse_json(text);
    const auto count = [&](const char* key) {  // json would also take text for a number, and cut 1.5 to 1
      const json& value = read.at(key);
      PAL_DATA_CHECK(value.is_number_unsigned(), file + " has no count for", key, "remove that checkpoint");
      return value.get<uint64_t>();
    };
    PAL_DATA_CHECK(count("step") <= INT64_MAX, file + " has the step", count("step"), "remove that checkpoint");
    state.step = static_cast<int64_t>(count("step"));
    state.seed = count("seed");
    state.graph_version = count("graph_version");
    state.ledger_position = static_cast<int64_t>(std::min<uint64_t>(count("ledger_position"), INT64_MAX));
    read.at("fingerprint").get_to(state.fingerprint);
    state.extra_json = read.at("extra").dump();
  } catch (const json::exception& e) {
    throw Error(Exit::data, file + " is not a checkpoint's state: " + e.what() + "; remove that checkpoint");
  }
  return state;
}

std::string state_text(const CheckpointState& state) {
  const json extra = io::parse_json(state.extra_json);
  PAL_ASSERT(extra.is_object(), "extra_json is a JSON object");
  return json{{"step", state.step},
              {"seed", state.seed},
              {"fingerprint", state.fingerprint},
              {"graph_version", state.graph_version},
              {"ledger_position", state.ledger_position},
              {"extra", extra}}
             .dump(2) +
         "\n";
}

std::string write_checkpoint_file(const std::string& path, int64_t step, const ops::NamedTensors& tensors) {
  return io::write_safetensors(path, tensors, {{"format", "pt"}, {"step", std::to_string(step)}});
}

std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_dir,
                                                       const std::function<void(const std::string&)>& warn) {
  const std::vector<int64_t> steps = checkpoint_steps(run_dir);
  for (const int64_t step : steps) {
    try {
      return load_checkpoint(checkpoint_path(run_dir, step));
    } catch (const Error& e) {
      warn("checkpoint step-" + std::to_string(step) + " is damaged, the one before it is used instead: " + e.what());
    }
  }
  PAL_DATA_CHECK(steps.empty(), "every checkpoint of this run is damaged", run_dir + "/checkpoints",
                 "restore one from a copy, or move the folder away to begin at step 0");
  return std::nullopt;
}

void restore(const ops::NamedTensors& into, const std::map<std::string, at::Tensor>& from, const std::string& what) {
  const at::NoGradGuard no_grad;
  std::vector<std::string> wrong;
  std::map<std::string, at::Tensor> rest = from;
  for (const auto& [name, tensor] : into) {
    const auto found = rest.find(name);
    if (found == rest.end()) {
      wrong.push_back(name + " is missing");
      continue;
    }
    const at::Tensor& given = found->second;
    if (given.sizes() != tensor.sizes())
      wrong.push_back(fmt::format("{} has shape ({}), not ({})", name, fmt::join(given.sizes(), ", "),
                                  fmt::join(tensor.sizes(), ", ")));
    else if (given.is_floating_point() != tensor.is_floating_point())
      wrong.push_back(name + " has the wrong number type");
    rest.erase(found);
  }
  for (const auto& [name, tensor] : rest) wrong.push_back(name + " is not part of this model");
  if (!wrong.empty()) {
    const size_t shown = std::min<size_t>(wrong.size(), 4);
    throw Error(Exit::data, fmt::format("{} does not fit this model: {}{}; use the config it was made with", what,
                                        fmt::join(wrong.begin(), wrong.begin() + shown, ", "),
                                        wrong.size() > shown ? fmt::format(" and {} more", wrong.size() - shown) : ""));
  }
  for (const auto& [name, tensor] : into) at::Tensor(tensor).copy_(from.at(name));
}

}  // namespace pal::record
