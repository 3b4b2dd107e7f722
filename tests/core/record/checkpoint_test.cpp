// checkpoint: a written checkpoint is loaded; damaged and unfinished ones are skipped, after a kill at any point.
#include "core/record/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/io/files.h"
#include "core/io/sha256.h"
#include "core/ops/named_tensors.h"
#include "core/record/checkpoint_folder.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "tests/test_folder.h"

namespace pal::record {
namespace {

namespace fs = std::filesystem;

// One process writes a whole checkpoint with the calls that dist/train/checkpointer.cpp makes on several ranks.
void write_checkpoint(const std::string& run_dir, const CheckpointState& state, const ops::NamedTensors& model,
                      const ops::NamedTensors& optim, int keep) {
  sweep_checkpoints(run_dir);
  const std::string fresh = begin_checkpoint(run_dir, state.step);
  try {
    FileSums sums;
    const auto put = [&](const std::string& name, const ops::NamedTensors& tensors) {
      if (!tensors.empty()) sums[name] = write_checkpoint_file(fresh + "/" + name, state.step, tensors);
    };
    put("model.safetensors", model);
    put("optim.safetensors", optim);
    sums[kStateFile] = write_checkpoint_text(fresh + "/" + kStateFile, state_text(state));
    commit_checkpoint(run_dir, state.step, sums, keep);
  } catch (...) {
    abandon_checkpoint(run_dir, state.step);
    throw;
  }
}

class Checkpoint : public testing::Test {
 protected:
  fs::path at_step(int64_t step) const { return fs::path(run_) / "checkpoints" / ("step-" + std::to_string(step)); }

  void write(int64_t step, int keep = 3) {
    CheckpointState state;
    state.step = step;
    state.seed = 0xFFFFFFFFFFFFFFFF;
    state.fingerprint = "ranks=2";
    state.graph_version = 5;
    state.ledger_position = 6;
    state.extra_json = R"({"queue":[1,2]})";
    write_checkpoint(run_, state, tensors(step), {{"momentum.w", at::full({3}, step + .5)}}, keep);
  }
  static ops::NamedTensors tensors(int64_t step) {
    return {{"w", at::full({3}, static_cast<float>(step))}, {"n", at::full({}, step, at::kLong)}};
  }
  std::optional<LoadedCheckpoint> load() {
    warnings_.clear();
    return load_newest_checkpoint(run_, [&](const std::string& w) { warnings_.push_back(w); });
  }
  void expect_loads(int64_t step, size_t warnings) {
    const auto loaded = load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->state.step, step);
    EXPECT_TRUE(at::equal(loaded->model.at("w"), tensors(step)[0].second));
    EXPECT_EQ(warnings_.size(), warnings);
  }

  const TestFolder folder_;
  const std::string run_ = folder_.path();
  std::vector<std::string> warnings_;
};

TEST_F(Checkpoint, IsLoadedAsItWasWritten) {
  EXPECT_FALSE(load());
  write(7);
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(loaded->path, at_step(7));
  EXPECT_EQ(loaded->state.step, 7);
  EXPECT_EQ(loaded->state.seed, 0xFFFFFFFFFFFFFFFF);
  EXPECT_EQ(loaded->state.fingerprint, "ranks=2");
  EXPECT_EQ(loaded->state.graph_version, 5u);
  EXPECT_EQ(loaded->state.ledger_position, 6);
  EXPECT_EQ(loaded->state.extra_json, R"({"queue":[1,2]})");
  ops::NamedTensors into = {{"w", at::zeros({3})}, {"n", at::zeros({}, at::kLong)}},
                    optim = {{"momentum.w", at::zeros({3})}};
  restore(into, loaded->model, "model");
  restore(optim, loaded->optim, "optim");
  EXPECT_TRUE(at::equal(into[0].second, at::full({3}, 7.f)));
  EXPECT_EQ(into[1].second.item<int64_t>(), 7);
  EXPECT_TRUE(at::equal(optim[0].second, at::full({3}, 7.5f)));
}

TEST_F(Checkpoint, KeepsTheNewestAndLastPointsAtIt) {
  for (const int64_t step : {5, 90, 100, 1000}) write(step, 2);
  EXPECT_FALSE(fs::exists(at_step(5)));
  EXPECT_FALSE(fs::exists(at_step(90)));
  EXPECT_TRUE(fs::exists(at_step(100)));
  EXPECT_EQ(fs::canonical(fs::path(run_) / "checkpoints/last"), fs::canonical(at_step(1000)));
  expect_loads(1000, 0);
  size_t names = 0;
  for ([[maybe_unused]] const auto& item : fs::directory_iterator(fs::path(run_) / "checkpoints")) ++names;
  EXPECT_EQ(names, 3u);  // two and `last`: nothing temporary
}

TEST_F(Checkpoint, DamagedOnesAreSkippedForTheOneBefore) {
  const auto damage = [&](const std::string& file, const std::function<void(const fs::path&)>& how) {
    for (const int64_t step : {10, 20}) write(step);
    how(at_step(20) / file);
    expect_loads(10, 1);
    EXPECT_NE(warnings_[0].find("step-20"), std::string::npos) << warnings_[0];
    EXPECT_NE(warnings_[0].find(file), std::string::npos) << warnings_[0];
  };
  for (const std::string file : {"model.safetensors", "optim.safetensors", "state.json", "manifest.json"}) {
    SCOPED_TRACE(file);
    damage(file, [](const fs::path& p) { fs::remove(p); });
    damage(file, [](const fs::path& p) { fs::resize_file(p, fs::file_size(p) / 2); });
    damage(file, [](const fs::path& p) { fs::resize_file(p, 0); });
    damage(file, [](const fs::path& p) { io::write_file_atomically(p, "{}"); });
  }
  damage("model.safetensors", [](const fs::path& p) {  // one bit
    std::string bytes = io::read_whole_file(p);
    bytes.back() ^= 1;
    io::write_file_atomically(p, bytes);
  });
  // A manifest that matches a file without meaning.
  const auto forge = [&](const std::string& file, const std::function<std::string(std::string)>& edited) {
    damage(file, [&](const fs::path& p) {
      const std::string old_hash = io::sha256_file(p);
      io::write_file_atomically(p, edited(io::read_whole_file(p)));
      std::string manifest = io::read_whole_file(p.parent_path() / "manifest.json");
      manifest.replace(manifest.find(old_hash), 64, io::sha256_file(p));
      io::write_file_atomically(p.parent_path() / "manifest.json", manifest);
    });
  };
  const std::string deep = std::string(400000, '[') + std::string(400000, ']');
  forge("state.json", [](const std::string&) { return R"({"step":"x"})"; });
  for (const std::string step : {"-5", "17", "4611686018427387904", "18446744073709551615", "20.5", "\"20\""}) {
    SCOPED_TRACE(step);
    forge("state.json",
          [&](std::string text) { return text.replace(text.find("\"step\": 20"), 10, "\"step\": " + step); });
  }
  forge("state.json", [&](std::string text) { return text.replace(text.find("[\n") + 1, 0, deep + ","); });
  forge("state.json", [&](std::string text) { return text.replace(text.find("5"), 1, deep); });
  forge("model.safetensors", [&](const std::string&) {
    const std::string header = R"({"w":{"dtype":)" + deep + R"(,"shape":[3],"data_offsets":[0,12]}})";
    const uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(12, 'x');
  });
  for (const int64_t step : {10, 20}) fs::remove(at_step(step) / "manifest.json");
  EXPECT_THROW(load(), Error);  // no new run overwrites checkpoints that a user may still repair
  EXPECT_EQ(warnings_.size(), 2u);
}

TEST_F(Checkpoint, ARunThatWentBackReplacesLaterCheckpoints) {
  for (const int64_t step : {10, 20, 30}) write(step, 5);
  fs::resize_file(at_step(20) / "model.safetensors", 3);
  fs::resize_file(at_step(30) / "model.safetensors", 3);
  expect_loads(10, 2);
  write(15, 1);  // keeps the one just written, not the later ones that were given up
  expect_loads(15, 0);
  write(15, 1);  // the same step again
  expect_loads(15, 0);
}

TEST_F(Checkpoint, FilesOfOtherNamesAreNotTouched) {
  write(10);
  for (const char* name :
       {"step-", "step-x", "step-011", "step-99999999999999999999", "notes", ".new-step-20", ".old-step-20"})
    fs::create_directories(fs::path(run_) / "checkpoints" / name);
  expect_loads(10, 0);
  write(11);
  EXPECT_TRUE(fs::exists(fs::path(run_) / "checkpoints/notes"));
  EXPECT_FALSE(fs::exists(fs::path(run_) / "checkpoints/.new-step-20"));
}

TEST_F(Checkpoint, AFailedWriteLeavesTheOldOne) {
  write(10);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 64;  // as a disk that is full
  setrlimit(RLIMIT_FSIZE, &small);
  std::string said;
  try {
    write(20);
  } catch (const Error& e) {
    said = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(said.find("model.safetensors"), std::string::npos) << said;
  expect_loads(10, 0);
  EXPECT_FALSE(fs::exists(fs::path(run_) / "checkpoints/.new-step-20"));
}

// A child writes one checkpoint after the other, reports each on a pipe, and is killed at some moment. What it reported
// can be loaded.
TEST_F(Checkpoint, AKilledWriterLeavesACompleteOne) {
  Random random(9, Purpose::bench);
  int64_t step = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(testing::Message() << "seed 9, round " << round);
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int64_t next = step + 1;; ++next) {
        write(next, 2);
        if (::write(pipe_ends[1], &next, sizeof(next)) != sizeof(next)) _exit(1);
      }
    }
    close(pipe_ends[1]);
    int64_t said = step;
    if (round % 2 == 0) {  // let it finish one first
      ASSERT_EQ(read(pipe_ends[0], &said, sizeof(said)), static_cast<ssize_t>(sizeof(said)));
    }
    usleep(static_cast<useconds_t>(random.below(15000)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (int64_t more = 0; read(pipe_ends[0], &more, sizeof(more)) == sizeof(more);) said = more;
    close(pipe_ends[0]);
    const auto loaded = load();
    ASSERT_TRUE(loaded || said == 0);
    if (!loaded) continue;
    EXPECT_TRUE(loaded->state.step == said || loaded->state.step == said + 1)
        << loaded->state.step << " after " << said;
    EXPECT_TRUE(at::equal(loaded->model.at("w"), tensors(loaded->state.step)[0].second));
    EXPECT_TRUE(warnings_.empty()) << warnings_[0];
    step = loaded->state.step;
  }
  EXPECT_GT(step, 0);
}

TEST_F(Checkpoint, RestoreListsWhatDoesNotFit) {
  const std::map<std::string, at::Tensor> from = {{"a", at::zeros({2})}, {"b", at::zeros({3})}, {"d", at::zeros({1})}};
  const at::Tensor untouched = at::full({2}, 5.f);
  try {
    restore({{"a", untouched}, {"b", at::zeros({4})}, {"c", at::zeros({1})}}, from, "FILE");
    ADD_FAILURE() << "was restored";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::data);
    for (const char* part : {"FILE", "b has shape (3), not (4)", "c is missing", "d is not part of this model"})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
  EXPECT_TRUE(at::equal(untouched, at::full({2}, 5.f)));
}

}  // namespace
}  // namespace pal::record
