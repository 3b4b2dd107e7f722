#include "core/record/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/io/files.h"
#include "core/io/sha256.h"
#include "kernels/base/error.h"

namespace pal::record {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";

fs::path folder_of(const std::string& run_dir) { return fs::path(run_dir) / "checkpoints"; }
std::string name_of(int64_t step) { return "step-" + std::to_string(step); }
fs::path fresh_path(const std::string& run_dir, int64_t step) { return folder_of(run_dir) / (".new-" + name_of(step)); }

// The step of a folder's name; nothing for other names.
std::optional<int64_t> step_of(const std::string& name) {
  int64_t step = 0;
  if (name.rfind("step-", 0) != 0) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || name != name_of(step)) return std::nullopt;
  return step;
}

// Removed under a hidden name, so that one half removed is never taken for a checkpoint. What cannot be removed stays.
void discard(const fs::path& folder, const std::string& name) {
  std::error_code error;
  const fs::path hidden = folder / (".old-" + name);
  fs::rename(folder / name, hidden, error);
  fs::remove_all(hidden, error);
}

void point_last_at(const fs::path& folder, const std::string& name) {
  const fs::path link = folder / ".new-last";
  std::error_code error;
  fs::remove_all(link, error);
  fs::create_directory_symlink(name, link, error);
  PAL_CHECK(!error, "cannot make the link " + (folder / "last").string(), error.message(),
            "use a file system with links");
  io::rename_path(link, folder / "last");
}

}  // namespace

std::vector<int64_t> checkpoint_steps(const std::string& run_dir) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder_of(run_dir), error))
    if (const auto step = step_of(item.path().filename()); step && item.is_directory(error)) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::string checkpoint_path(const std::string& run_dir, int64_t step) { return folder_of(run_dir) / name_of(step); }

void sweep_checkpoints(const std::string& run_dir) {
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder_of(run_dir), error)) {
    const std::string name = item.path().filename();
    if (name.rfind(".new-", 0) == 0 || name.rfind(".old-", 0) == 0) fs::remove_all(item.path(), error);
  }
}

std::string begin_checkpoint(const std::string& run_dir, int64_t step) {
  const fs::path fresh = fresh_path(run_dir, step);
  std::error_code error;
  fs::create_directories(fresh, error);
  PAL_CHECK(!error, "cannot make the folder " + fresh.string(), error.message(),
            "choose a run folder you may write to");
  return fresh;
}

void commit_checkpoint(const std::string& run_dir, int64_t step, const FileSums& files, int keep) {
  const fs::path folder = folder_of(run_dir), fresh = fresh_path(run_dir, step);
  const std::string name = name_of(step);
  const nlohmann::json manifest = {{"format", 1}, {"step", step}, {"files", files}};
  write_checkpoint_text(fresh / kManifest, manifest.dump(2) + "\n");
  io::sync_folder(fresh);
  // One of that step stands there when the run went back to an earlier one: it is swapped out.
  if (!fs::exists(folder / name) || !io::exchange_paths(fresh, folder / name)) {
    if (fs::exists(folder / name)) discard(folder, name);
    io::rename_path(fresh, folder / name);
  }
  point_last_at(folder, name);
  io::sync_folder(folder);
  std::error_code error;
  fs::remove_all(fresh, error);
  int kept = 0;
  for (const int64_t other : checkpoint_steps(run_dir))
    if (other > step || ++kept > std::max(1, keep)) discard(folder, name_of(other));
}

void abandon_checkpoint(const std::string& run_dir, int64_t step) {
  std::error_code error;
  fs::remove_all(fresh_path(run_dir, step), error);
}

std::string write_checkpoint_text(const std::string& path, const std::string& text) {
  io::FileWriter file(path);
  file.write(text.data(), text.size());
  file.finish();
  return io::sha256_hex(text.data(), text.size());
}

std::vector<std::string> verify_checkpoint(const std::string& path) {
  const std::string file = path + "/" + kManifest;
  PAL_DATA_CHECK(fs::exists(file), file + " is missing", "", "the checkpoint was not completed");
  const nlohmann::json manifest = nlohmann::json::parse(io::read_whole_file(file), nullptr, false);
  PAL_DATA_CHECK(manifest.is_object(), file + " is not a JSON object", "", "remove that checkpoint");
  PAL_DATA_CHECK(manifest.contains("files") && manifest["files"].is_object(), file + " lists no files", "",
                 "remove that checkpoint");
  std::vector<std::string> names;
  for (const auto& [name, sum] : manifest["files"].items()) {
    PAL_DATA_CHECK(sum.is_string() && name.find('/') == std::string::npos, file + " lists no SHA-256 for", name,
                   "remove that checkpoint");
    PAL_DATA_CHECK(io::sha256_file(path + "/" + name) == sum.get<std::string>(), path + "/" + name + " is damaged",
                   "its SHA-256 is not the manifest's", "remove that checkpoint");
    names.push_back(name);
  }
  return names;
}

}  // namespace pal::record
