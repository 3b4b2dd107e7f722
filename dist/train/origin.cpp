#include "dist/train/origin.h"

#include <filesystem>

#include "core/io/files.h"
#include "dist/train/run_folder.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLedger = "/ledger.sqlite";
constexpr const char* kJournal = "/ledger.sqlite-journal";  // of a writer that was killed; SQLite rolls it back

}  // namespace

Origin find_origin(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  PAL_CHECK(fs::is_directory(path), "--resume is neither auto, never nor a folder", folder,
            "give a run folder, or one of its checkpoints/step-N");
  if (fs::is_directory(path / "checkpoints")) return {path.string(), ""};
  PAL_CHECK(fs::exists(path / "manifest.json"), "nothing to go on from in --resume", folder,
            "give a run folder with checkpoints, or one of its checkpoints/step-N");
  const fs::path absolute = fs::absolute(path / "manifest.json").parent_path();  // without a slash at the end
  const bool in_run = absolute.parent_path().filename() == "checkpoints";
  return {in_run ? absolute.parent_path().parent_path().string() : "", absolute.string()};
}

record::LoadedCheckpoint load_origin(const Origin& origin, const std::function<void(const std::string&)>& warn) {
  if (!origin.checkpoint.empty()) return record::load_checkpoint(origin.checkpoint);
  std::optional<record::LoadedCheckpoint> newest = record::load_newest_checkpoint(origin.run_dir, warn);
  PAL_DATA_CHECK(newest.has_value(), "the run of --resume has no checkpoint yet", origin.run_dir,
                 "wait for its first one");
  return std::move(*newest);
}

void adopt_ledger(const Origin& origin, const std::string& run_dir, int64_t answers) {
  if (fs::exists(run_dir + kLedger)) return;
  if (origin.run_dir.empty() || !fs::exists(origin.run_dir + kLedger)) {
    PAL_CHECK(answers == 0, "the checkpoint of --resume rests on answers whose ledger is not beside it; answers",
              answers, "give it inside its run folder, as RUN/checkpoints/step-N");
    return;
  }
  const RunLock other(origin.run_dir);  // nobody writes it meanwhile
  if (fs::exists(origin.run_dir + kJournal))
    io::write_file_atomically(run_dir + kJournal, io::read_whole_file(origin.run_dir + kJournal));
  io::write_file_atomically(run_dir + kLedger, io::read_whole_file(origin.run_dir + kLedger));
}

}  // namespace pal::dist
