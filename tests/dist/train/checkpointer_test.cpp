// checkpointer: the state at save() is on disk after drain(); a failed write loses one checkpoint only.
#include "dist/train/checkpointer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/ops/named_tensors.h"
#include "core/record/checkpoint_folder.h"
#include "dist/health/consistency.h"
#include "dist/health/faults.h"
#include "dist/train/step_sync.h"
#include "kernels/base/error.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

namespace fs = std::filesystem;

class Saved : public testing::Test {
 protected:
  void SetUp() override {
    run_ = fs::temp_directory_path() / ("pal-saved-" + std::to_string(getppid()));  // of mpirun: the same on every rank
    if (comm().rank() == 0) fs::create_directories(run_);
    comm().barrier();
  }
  void TearDown() override {
    comm().barrier();
    if (comm().rank() == 0) fs::remove_all(run_);
    comm().barrier();
  }
  static comm::Comm& comm() { return test_world().control(); }

  // 5 MB of weights and as much momentum, cut small, so that several ranks share the work; one is channels-last.
  Checkpointer::Groups state() {
    ops::NamedTensors model = {
        {"conv",
         at::arange(4 * 3 * 5 * 5, at::kFloat).reshape({4, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast)},
        {"count", at::zeros({}, at::kLong)}};
    ops::NamedTensors optim;
    for (int k = 0; k < 20; ++k) {
      model.emplace_back("w" + std::to_string(k), at::arange(1 << 16, at::kFloat) + k);
      optim.emplace_back("m" + std::to_string(k), at::arange(1 << 16, at::kFloat) - k);
    }
    return {{"model", model}, {"optim", optim}, {"extra", {{"queue", at::arange(7, at::kDouble)}}}};
  }
  CheckpointerOptions options() {
    return {run_, 2, 2, [this](const std::string& w) { warnings_.push_back(w); }, nullptr, 1 << 20};
  }
  std::string run_;
  std::vector<std::string> warnings_;
};

TEST_F(Saved, HoldsTheStateAtTheTimeOfSave) {
  Checkpointer::Groups live = state();
  const Checkpointer::Groups before = state();
  {
    Checkpointer checkpoints(options(), comm(), live);
    record::CheckpointState now;
    now.step = 3;
    now.ledger_position = 9;
    checkpoints.save(now);
    for (auto& [name, tensors] : live) {
      for (auto& [tensor, t] : tensors) t.add_(1);  // the next step
    }
    EXPECT_TRUE(checkpoints.drain());
    EXPECT_FALSE(checkpoints.pending());
  }
  const auto loaded = record::load_newest_checkpoint(run_, [](const std::string& w) { ADD_FAILURE() << w; });
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->state.step, 3);
  EXPECT_EQ(loaded->state.ledger_position, 9);
  for (const auto& [name, tensors] : before) {
    const auto& read = name == "model" ? loaded->model : name == "optim" ? loaded->optim : loaded->extra;
    EXPECT_EQ(read.size(), tensors.size()) << name;
    for (const auto& [tensor, t] : tensors) EXPECT_TRUE(at::equal(read.at(tensor), t)) << tensor;
  }
  size_t files = 0;
  for (const auto& file : fs::directory_iterator(record::checkpoint_path(run_, 3)))
    files += file.path().extension() == ".safetensors";
  EXPECT_GE(files, 3u);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(Saved, NoRankWaitsForAWrite) {
  Checkpointer::Groups live = state();
  Checkpointer checkpoints(options(), comm(), live);
  record::CheckpointState now;
  for (now.step = 1; now.step <= 4; ++now.step) checkpoints.save(now);  // each waits for the one before
  EXPECT_TRUE(checkpoints.pending());
  EXPECT_TRUE(checkpoints.drain());
  EXPECT_EQ(record::checkpoint_steps(run_), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(record::verify_checkpoint(record::checkpoint_path(run_, 3)).size(),
            record::verify_checkpoint(record::checkpoint_path(run_, 4)).size());
}

TEST_F(Saved, AFailedWriteOfOneRankAbandonsTheCheckpointOnAll) {
  const int last = comm().size() - 1;
  Faults faults(parse_faults("write-fail:" + std::to_string(last) + ":2"), comm().rank(), 0);
  CheckpointerOptions with = options();
  with.before_write = [&](int64_t step) { faults.before_write(step); };
  Checkpointer checkpoints(with, comm(), state());
  record::CheckpointState now;
  for (now.step = 1; now.step <= 3; ++now.step) {
    checkpoints.save(now);
    EXPECT_EQ(checkpoints.drain(), now.step != 2);
    EXPECT_EQ(record::checkpoint_steps(run_).front(), now.step == 2 ? 1 : now.step);
    comm().barrier();
  }
  EXPECT_EQ(record::checkpoint_steps(run_), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(warnings_.size(), comm().rank() == last ? 1u : 0u);
  if (!warnings_.empty()) {
    EXPECT_NE(warnings_[0].find("step 2 is abandoned"), std::string::npos) << warnings_[0];
  }
}

TEST_F(Saved, DrainReportsAFailureThatWasSettledBetweenSteps) {
  Faults faults(parse_faults("write-fail:" + std::to_string(comm().size() - 1) + ":2"), comm().rank(), 0);
  CheckpointerOptions with = options();
  with.before_write = [&](int64_t step) { faults.before_write(step); };
  Checkpointer checkpoints(with, comm(), state());
  record::CheckpointState now;
  now.step = 2;
  checkpoints.save(now);
  StepSync between_steps(comm(), nullptr, nullptr);
  while (checkpoints.pending()) between_steps.sync(checkpoints);
  EXPECT_FALSE(checkpoints.drain());
  EXPECT_TRUE(record::checkpoint_steps(run_).empty());
  checkpoints.save(now);  // the fault occurs once
  EXPECT_TRUE(checkpoints.drain());
}

TEST(Consistency, ARankWithOtherParametersIsNamed) {
  comm::Comm& comm = test_world().control();
  ops::NamedTensors p = {{"a", at::arange(1000, at::kFloat)}, {"b", at::arange(3, at::kFloat)}};
  EXPECT_NO_THROW(check_same_parameters(p, 5, comm));
  if (comm.size() == 1) return;
  for (int64_t k : {0, 1}) {
    ops::NamedTensors q = {{"a", p[0].second.clone()}, {"b", p[1].second.clone()}};
    if (comm.rank() == 1)
      static_cast<int32_t*>(q[k].second.data_ptr())[k == 0 ? 999 : 2] ^= 1;  // the last bit of the last element
    try {
      check_same_parameters(q, 5, comm);
      ADD_FAILURE() << "not seen";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::lost);
      EXPECT_NE(std::string(e.what()).find("after step 5: rank 1 of"), std::string::npos) << e.what();
    }
  }
}

TEST(Consistency, EveryBitOfTheParametersCounts) {
  comm::Comm& comm = test_world().control();
  if (comm.size() == 1) return;
  const ops::NamedTensors p = {{"a", at::arange(19, at::kFloat)}};
  auto* words = static_cast<uint32_t*>(p[0].second.data_ptr());
  for (int bit = 0; bit < 19 * 32; ++bit) {
    const uint32_t flip = comm.rank() == 1 ? uint32_t{1} << bit % 32 : 0;
    words[bit / 32] ^= flip;
    EXPECT_THROW(check_same_parameters(p, 5, comm), Error) << "bit " << bit % 32 << " of element " << bit / 32;
    words[bit / 32] ^= flip;
  }
}

}  // namespace
}  // namespace pal::dist
