#include "core/io/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "core/io/safetensors.h"
#include "core/io/sha256.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kOptim = "optim.safetensors";
constexpr const char* kState = "state.json";
constexpr const char* kManifest = "manifest.json";

std::string name_of(int64_t step) { return "step-" + std::to_string(step); }

// The step of a folder's name; nothing for other names.
std::optional<int64_t> step_of(const std::string& name) {
  int64_t step = 0;
  if (name.rfind("step-", 0) != 0) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || name != name_of(step)) return std::nullopt;
  return step;
}

// Steps of the checkpoints in a folder, newest first.
std::vector<int64_t> steps_in(const fs::path& folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder, error))
    if (const auto step = step_of(item.path().filename()); step && item.is_directory(error)) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

// Removed under a hidden name, so that one half removed is never taken for a checkpoint. What cannot be removed stays.
void discard(const fs::path& folder, const std::string& name) {
  std::error_code error;
  const fs::path hidden = folder / (".old-" + name);
  fs::rename(folder / name, hidden, error);
  fs::remove_all(hidden, error);
}

// What a crash while writing or removing has left.
void sweep(const fs::path& folder) {
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder, error)) {
    const std::string name = item.path().filename();
    if (name.rfind(".new-", 0) == 0 || name.rfind(".old-", 0) == 0) fs::remove_all(item.path(), error);
  }
}

std::string write_text(const fs::path& path, const std::string& text) {
  FileWriter file(path);
  file.write(text.data(), text.size());
  file.finish();
  return sha256_hex(text.data(), text.size());
}

std::string state_text(const CheckpointState& state) {
  const json extra = json::parse(state.extra_json, nullptr, false);
  PAL_ASSERT(extra.is_object(), "extra_json is a JSON object");
  return json{{"step", state.step},
              {"seed", state.seed},
              {"fingerprint", state.fingerprint},
              {"graph_version", state.graph_version},
              {"ledger_position", state.ledger_position},
              {"extra", extra}}
             .dump(2) + "\n";
}

void point_last_at(const fs::path& folder, const std::string& name) {
  const fs::path link = folder / ".new-last";
  std::error_code error;
  fs::remove_all(link, error);
  fs::create_directory_symlink(name, link, error);
  PAL_CHECK(!error, "cannot make the link " + (folder / "last").string(), error.message(), "use a file system with links");
  rename_path(link, folder / "last");
}

// Throws Error (data): the file and the reason.
json parse_file(const fs::path& path) {
  json value = json::parse(read_whole_file(path), nullptr, false);
  PAL_DATA_CHECK(value.is_object(), path.string() + " is not a JSON object", "", "remove that checkpoint");
  return value;
}

void verify(const fs::path& path) {
  PAL_DATA_CHECK(fs::exists(path / kManifest), (path / kManifest).string() + " is missing", "",
                 "the checkpoint was not completed");
  const json manifest = parse_file(path / kManifest);
  PAL_DATA_CHECK(manifest.contains("files") && manifest["files"].is_object(), (path / kManifest).string() + " lists no files",
                 "", "remove that checkpoint");
  for (const char* name : {kModel, kOptim, kState}) {
    const std::string file = path / name;
    const auto listed = manifest["files"].find(name);
    PAL_DATA_CHECK(listed != manifest["files"].end() && listed->is_string(), (path / kManifest).string() + " does not list",
                   name, "remove that checkpoint");
    PAL_DATA_CHECK(sha256_file(file) == listed->get<std::string>(), file + " is damaged", "its SHA-256 is not the manifest's",
                   "remove that checkpoint");
  }
}

LoadedCheckpoint load(const fs::path& path) {
  verify(path);
  LoadedCheckpoint loaded;
  loaded.path = path;
  const json state = parse_file(path / kState);
  try {
    state.at("step").get_to(loaded.state.step);
    state.at("seed").get_to(loaded.state.seed);
    state.at("fingerprint").get_to(loaded.state.fingerprint);
    state.at("graph_version").get_to(loaded.state.graph_version);
    state.at("ledger_position").get_to(loaded.state.ledger_position);
    loaded.state.extra_json = state.at("extra").dump();
  } catch (const json::exception& e) {
    throw Error(Exit::data, (path / kState).string() + " is not a checkpoint's state: " + e.what() + "; remove that checkpoint");
  }
  loaded.model = read_safetensors(path / kModel).tensors;
  loaded.optim = read_safetensors(path / kOptim).tensors;
  return loaded;
}

}  // namespace

void write_checkpoint(const std::string& run_dir, const CheckpointState& state, const NamedTensors& model,
                      const NamedTensors& optim, int keep) {
  const fs::path folder = fs::path(run_dir) / "checkpoints";
  const std::string name = name_of(state.step);
  std::error_code error;
  fs::create_directories(folder, error);
  PAL_CHECK(!error, "cannot make the folder " + folder.string(), error.message(), "choose a run folder you may write to");
  sweep(folder);
  const fs::path fresh = folder / (".new-" + name);
  try {
    fs::create_directory(fresh, error);
    PAL_CHECK(!error, "cannot make the folder " + fresh.string(), error.message(), "choose a run folder you may write to");
    const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"step", std::to_string(state.step)}};
    json files;
    files[kModel] = write_safetensors(fresh / kModel, model, metadata);
    files[kOptim] = write_safetensors(fresh / kOptim, optim, metadata);
    files[kState] = write_text(fresh / kState, state_text(state));
    write_text(fresh / kManifest, json{{"format", 1}, {"step", state.step}, {"files", files}}.dump(2) + "\n");
    sync_folder(fresh);
    // One of that step stands there when the run went back to an earlier one: it is swapped out.
    if (!fs::exists(folder / name) || !exchange_paths(fresh, folder / name)) {
      if (fs::exists(folder / name)) discard(folder, name);
      rename_path(fresh, folder / name);
    }
    point_last_at(folder, name);
    sync_folder(folder);
  } catch (...) {
    fs::remove_all(fresh, error);
    throw;
  }
  fs::remove_all(fresh, error);
  int kept = 0;
  for (const int64_t step : steps_in(folder))
    if (step > state.step || ++kept > std::max(1, keep)) discard(folder, name_of(step));
}

std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_dir,
                                                       const std::function<void(const std::string&)>& warn) {
  const fs::path folder = fs::path(run_dir) / "checkpoints";
  const std::vector<int64_t> steps = steps_in(folder);
  for (const int64_t step : steps) {
    try {
      return load(folder / name_of(step));
    } catch (const Error& e) {
      warn("checkpoint " + name_of(step) + " is skipped for the one before: " + e.what());
    }
  }
  PAL_DATA_CHECK(steps.empty(), "every checkpoint is damaged in", folder.string(),
                 "restore one from a copy, or move the folder away to begin at step 0");
  return std::nullopt;
}

void restore(const NamedTensors& into, const std::map<std::string, at::Tensor>& from, const std::string& what) {
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
      wrong.push_back(fmt::format("{} has shape ({}), not ({})", name, fmt::join(given.sizes(), ", "), fmt::join(tensor.sizes(), ", ")));
    else if (given.is_floating_point() != tensor.is_floating_point())
      wrong.push_back(name + " has another kind of numbers");
    rest.erase(found);
  }
  for (const auto& [name, tensor] : rest) wrong.push_back(name + " is not known here");
  if (!wrong.empty()) {
    const size_t shown = std::min<size_t>(wrong.size(), 4);
    throw Error(Exit::data, fmt::format("{} does not fit this model: {}{}; use the config it was made with", what,
                                        fmt::join(wrong.begin(), wrong.begin() + shown, ", "),
                                        wrong.size() > shown ? fmt::format(" and {} more", wrong.size() - shown) : ""));
  }
  for (const auto& [name, tensor] : into) at::Tensor(tensor).copy_(from.at(name));
}

}  // namespace pal
