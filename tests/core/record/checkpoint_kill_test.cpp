// checkpoint_kill: writers killed with SIGKILL at random moments; every checkpoint reported as complete can be loaded.
//
// Two processes write the files of a checkpoint, as two ranks do, and the first one completes it when the second has
// reported that it is done. Both are killed, or one of them first. PAL_KILLS sets how often (200).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/io/files.h"
#include "core/io/safetensors_bytes.h"
#include "core/record/checkpoint_folder.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "tests/test_folder.h"

namespace pal::record {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTensors = 12, kBytes = 40'000;
const std::vector<TensorGroup> kGroups = {{"model", std::vector<uint64_t>(kTensors, kBytes)},
                                          {"optim", std::vector<uint64_t>(kTensors, kBytes)}};

// The values of tensor k of a checkpoint: every byte depends on the step.
std::string content(int64_t step, size_t k) {
  return std::string(kBytes, static_cast<char>('a' + (step * 7 + static_cast<int64_t>(k)) % 26));
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe(ends) != 0) std::abort();
  }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
};

class Killed : public testing::Test {
 protected:
  FileSums write_share(int64_t step, int rank) {
    const std::string fresh = begin_checkpoint(run_, step);
    FileSums sums;
    for (const SharedFile& f : files_) {
      if (f.rank != rank) continue;
      std::vector<io::TensorBytes> tensors;
      for (size_t k = f.begin; k < f.end; ++k)
        tensors.push_back({std::string("t") + std::to_string(k), "U8", 1, {static_cast<int64_t>(kBytes)}, kBytes});
      std::string bytes;
      const auto source = [&](size_t k) {
        bytes = content(step, f.begin + k);
        return static_cast<const void*>(bytes.data());
      };
      sums[f.name] =
          io::write_safetensors_bytes(fresh + "/" + f.name, tensors, source, {{"step", std::to_string(step)}});
    }
    return sums;
  }

  // Rank 1: reads a step, writes its share, sends the checksums. Never returns.
  [[noreturn]] void second(Pipe& steps, Pipe& sums) {
    for (int64_t step = 0; read(steps.ends[0], &step, sizeof(step)) == sizeof(step);) {
      std::string text;
      for (const auto& [name, sum] : write_share(step, 1)) text += sum;
      if (write(sums.ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) break;
    }
    _exit(0);
  }
  // Rank 0: writes one checkpoint after the other and reports each complete one. Never returns.
  [[noreturn]] void first(int64_t step, Pipe& steps, Pipe& sums, Pipe& said) {
    std::vector<std::string> others;
    for (const SharedFile& f : files_) {
      if (f.rank == 1) others.push_back(f.name);
    }
    std::sort(others.begin(), others.end());
    for (;; ++step) {
      if (write(steps.ends[1], &step, sizeof(step)) != sizeof(step)) _exit(1);
      FileSums all = write_share(step, 0);
      for (const std::string& name : others) {
        std::string sum(64, '\0');
        if (read(sums.ends[0], sum.data(), 64) != 64) _exit(1);
        all[name] = sum;
      }
      commit_checkpoint(run_, step, all, 2);
      if (write(said.ends[1], &step, sizeof(step)) != sizeof(step)) _exit(1);
    }
  }

  // Both writers, from the checkpoint after `newest` on, until the caller kills them.
  struct Writers {
    Pipe steps, sums, said;
    pid_t one = -1, zero = -1;
  };
  void start(Writers& w, int64_t newest) {
    w.one = fork();
    if (w.one == 0) second(w.steps, w.sums);
    w.zero = fork();
    if (w.zero == 0) first(newest + 1, w.steps, w.sums, w.said);
    close(std::exchange(w.said.ends[1], -1));
  }
  static void end(Writers& w) {
    for (const pid_t pid : {w.zero, w.one}) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  // Microseconds of one checkpoint here and now: kills are spread over twice as much.
  int64_t usual_time() {
    Writers w;
    start(w, 0);
    constexpr int kTimed = 5;
    const auto begin = std::chrono::steady_clock::now();
    int64_t step = 0;
    for (int k = 0; k < kTimed; ++k)
      EXPECT_EQ(read(w.said.ends[0], &step, sizeof(step)), static_cast<ssize_t>(sizeof(step)));
    const auto spent = std::chrono::steady_clock::now() - begin;
    end(w);
    fs::remove_all(run_);
    fs::create_directories(run_);
    return std::chrono::duration_cast<std::chrono::microseconds>(spent).count() / kTimed;
  }

  // The newest checkpoint verifies and holds its own step's bytes alone.
  void expect_whole(int64_t step) {
    const std::string path = checkpoint_path(run_, step);
    const std::vector<std::string> names = verify_checkpoint(path);
    ASSERT_EQ(names.size(), files_.size());
    for (const SharedFile& f : files_) {
      const std::string bytes = io::read_whole_file(path + "/" + f.name);
      std::string wanted;  // tensors of one type lie by name
      std::vector<std::string> order;
      for (size_t k = f.begin; k < f.end; ++k) order.push_back("t" + std::to_string(k));
      std::sort(order.begin(), order.end());
      for (const std::string& name : order) wanted += content(step, std::stoul(name.substr(1)));
      ASSERT_EQ(bytes.substr(bytes.size() - wanted.size()), wanted) << f.name;
    }
  }

  const std::vector<SharedFile> files_ = share_out(kGroups, 2, 200'000);
  const TestFolder folder_;
  const std::string run_ = folder_.path();
};

TEST_F(Killed, TheNewestCompleteCheckpointLoads) {
  ASSERT_EQ(std::count_if(files_.begin(), files_.end(), [](const SharedFile& f) { return f.rank == 1; }),
            static_cast<int64_t>(files_.size()) / 2);
  const char* asked = std::getenv("PAL_KILLS");
  const int kills = asked ? std::atoi(asked) : 200;
  Random random(17, Purpose::bench);
  const auto usual = static_cast<uint32_t>(std::clamp<int64_t>(usual_time(), 1000, 200'000));
  int64_t newest = 0, fresh = 0;
  for (int round = 0; round < kills; ++round) {
    SCOPED_TRACE(testing::Message() << "seed 17, kill " << round);
    sweep_checkpoints(run_);
    Writers w;
    start(w, newest);
    ASSERT_GT(std::min(w.zero, w.one), 0);
    usleep(static_cast<useconds_t>(random.below(2 * usual)));
    kill(random.below(2) == 0 ? w.zero : w.one, SIGKILL);  // this one first
    if (random.below(2) == 0) usleep(static_cast<useconds_t>(random.below(3000)));
    end(w);
    int64_t last = newest;
    for (int64_t more = 0; read(w.said.ends[0], &more, sizeof(more)) == sizeof(more);) last = more;
    if (fs::exists(fs::path(run_) / "checkpoints" / (".new-step-" + std::to_string(last + 1)))) ++fresh;
    const std::vector<int64_t> stands = checkpoint_steps(run_);
    if (stands.empty()) {
      ASSERT_EQ(last, 0);
      continue;
    }
    // Reported as complete, or completed just before the report.
    ASSERT_TRUE(stands.front() == last || stands.front() == last + 1) << stands.front() << " after " << last;
    for (const int64_t step : stands) expect_whole(step);
    if (testing::Test::HasFatalFailure()) return;
    newest = stands.front();
  }
  EXPECT_GT(newest, kills / 10);  // they wrote something
  EXPECT_GT(fresh, kills / 10);   // and were killed while they did
}

TEST(Shares, EveryTensorOnceAndEqualShares) {
  Random random(3, Purpose::bench);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(testing::Message() << "seed 3, round " << round);
    std::vector<TensorGroup> groups = {{"model", {}}, {"optim", {}}, {"extra", {}}};
    uint64_t all = 0, largest = 0;
    for (TensorGroup& g : groups) {
      for (uint64_t k = random.below(60); k > 0; --k) {
        g.bytes.push_back(random.below(5) == 0 ? 0 : random.below(1'000'000));
        all += g.bytes.back();
        largest = std::max(largest, g.bytes.back());
      }
    }
    const int ranks = 1 + static_cast<int>(random.below(9));
    const std::vector<SharedFile> files = share_out(groups, ranks, 1);
    std::vector<size_t> next(groups.size(), 0);
    std::vector<uint64_t> load(ranks, 0);
    for (const SharedFile& f : files) {
      EXPECT_EQ(f.begin, next[f.group]);
      EXPECT_LT(f.begin, f.end);
      next[f.group] = f.end;
      load[f.rank] += f.bytes;
    }
    for (size_t g = 0; g < groups.size(); ++g) EXPECT_EQ(next[g], groups[g].bytes.size());
    // No rank has more than two pieces above the mean.
    EXPECT_LE(*std::max_element(load.begin(), load.end()), 2 * (all / ranks + largest) + 1);
  }
}

TEST(Shares, SmallGroupsStayOneFileAndLargeOnesAreNamedInOrder) {
  const auto names = [](const std::vector<SharedFile>& files) {
    std::vector<std::string> all;
    for (const SharedFile& f : files) all.push_back(f.name);
    return all;
  };
  const std::vector<TensorGroup> two = {{"model", {40, 60}}, {"optim", {40, 59}}, {"extra", {}}};
  EXPECT_EQ(names(share_out(two, 4, 1000)), (std::vector<std::string>{"model.safetensors", "optim.safetensors"}));
  const auto halves = share_out(two, 2, 1);
  EXPECT_EQ(names(halves), (std::vector<std::string>{"model.safetensors", "optim.safetensors"}));
  EXPECT_NE(halves[0].rank, halves[1].rank);
  EXPECT_EQ(names(share_out({{"model", {50, 50}}}, 2, 1)),
            (std::vector<std::string>{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}));
}

}  // namespace
}  // namespace pal::record
