#include "core/record/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "core/io/files.h"
#include "core/io/json.h"
#include "core/io/regular_file.h"
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

// Renames to a hidden name first, so that a half-removed folder is never taken for a checkpoint. Ignores failures.
void discard(const fs::path& folder, const std::string& name) {
  std::error_code error;
  const fs::path hidden = folder / (".old-" + name);
  fs::rename(folder / name, hidden, error);
  fs::remove_all(hidden, error);
}

// Ignores failures: the link is for people. The next checkpoint, or the next start, points it again.
void point_last_at(const fs::path& folder, const std::string& name) {
  const fs::path link = folder / ".new-last";
  std::error_code error;
  fs::remove_all(link, error);
  fs::create_directory_symlink(name, link, error);
  if (!error) fs::rename(link, folder / "last", error);
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
  const std::vector<int64_t> steps = checkpoint_steps(run_dir);
  if (!steps.empty()) point_last_at(folder_of(run_dir), name_of(steps.front()));
}

std::string begin_checkpoint(const std::string& run_dir, int64_t step) {
  const fs::path fresh = fresh_path(run_dir, step);
  std::error_code error;
  // Never the run folder itself: when it was moved, a new one would hold checkpoints alone.
  fs::create_directory(fresh.parent_path(), error);
  if (!error) fs::create_directory(fresh, error);
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
  // A checkpoint of that step exists when the run went back to an earlier one: the new one replaces it.
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
  const nlohmann::json manifest = io::parse_json(io::read_regular_file(file, kMaxText));
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

std::vector<SharedFile> share_out(const std::vector<TensorGroup>& groups, int ranks, uint64_t smallest) {
  uint64_t all = 0;
  for (const TensorGroup& g : groups) all = std::accumulate(g.bytes.begin(), g.bytes.end(), all);
  // A tenth more, so that two groups of nearly the same size on two ranks are two files.
  const uint64_t target = std::max<uint64_t>({smallest, all / ranks + all / ranks / 10, 1});
  std::vector<SharedFile> files;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<uint64_t>& bytes = groups[g].bytes;
    if (bytes.empty()) continue;
    const uint64_t total = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
    const uint64_t pieces = std::max<uint64_t>(1, (total + target - 1) / target);
    const size_t first = files.size();
    uint64_t before = 0, current = 0;
    for (size_t t = 0; t < bytes.size(); ++t) {
      // A tensor belongs to the piece that holds its middle.
      const uint64_t piece = total == 0 ? 0 : (before + bytes[t] / 2) * pieces / total;
      if (t == 0 || piece != current) files.push_back({"", g, t, t, 0, 0});
      current = piece;
      files.back().end = t + 1;
      files.back().bytes += bytes[t];
      before += bytes[t];
    }
    const size_t count = files.size() - first;
    for (size_t k = 0; k < count; ++k)
      files[first + k].name =
          groups[g].name + (count == 1 ? "" : fmt::format("-{:05}-of-{:05}", k + 1, count)) + ".safetensors";
  }
  // The largest first, each to the rank with the fewest bytes.
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return files[a].bytes > files[b].bytes; });
  std::vector<uint64_t> load(ranks, 0);
  for (const size_t k : order) {
    const auto least = std::min_element(load.begin(), load.end());
    files[k].rank = static_cast<int>(least - load.begin());
    *least += files[k].bytes;
  }
  return files;
}

}  // namespace pal::record
