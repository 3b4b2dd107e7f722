// mpirun_test: the options of mpirun for a host, and jobs of plain programs: exit codes, signals, nothing left behind.
#include "launch/process/mpirun.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/test_folder.h"

namespace pal::launch {
namespace {

bool has(const std::vector<std::string>& options, const std::string& option) {
  return std::find(options.begin(), options.end(), option) != options.end();
}

TEST(MpirunOptions, AJobOfTheWholeMachineGetsCoreSets) {
  const HostFacts host{.cores = 8, .usable_cores = 8};
  const auto options = mpirun_options(host, 2, 4);
  EXPECT_TRUE(has(options, "slot:PE=4"));
  EXPECT_TRUE(has(options, "core"));
  EXPECT_FALSE(has(options, "--oversubscribe"));
  EXPECT_FALSE(has(options, "--allow-run-as-root"));
}

TEST(MpirunOptions, OtherJobsAreNotBound) {
  EXPECT_TRUE(has(mpirun_options({.cores = 8, .usable_cores = 8}, 2, 2), "none"));  // part of the machine
  EXPECT_TRUE(has(mpirun_options({.cores = 8, .usable_cores = 4}, 2, 4), "none"));  // taskset
  const auto many = mpirun_options({.cores = 2, .usable_cores = 2, .root = true, .cross_memory = false}, 4, 1);
  EXPECT_TRUE(has(many, "none"));
  EXPECT_TRUE(has(many, "--oversubscribe"));
  EXPECT_TRUE(has(many, "--allow-run-as-root"));
  EXPECT_TRUE(has(many, "btl_vader_single_copy_mechanism"));
}

TEST(MpirunOptions, RanksOfOneHostUseSharedMemoryOnly) {
  EXPECT_TRUE(has(mpirun_options({.cores = 8, .usable_cores = 8, .shared_mb = 64}, 8, 1), "self,vader"));
  EXPECT_FALSE(has(mpirun_options({.cores = 8, .usable_cores = 8, .shared_mb = 32}, 8, 1), "btl"));  // a full /dev/shm
  unsetenv("OMPI_MCA_btl");
  for (const char* name : {"OMPI_MCA_btl", "SLURM_JOB_ID"}) {  // the user's own choice, several nodes
    setenv(name, "1", 1);
    EXPECT_EQ(host_facts().shared_mb, 0) << name;
    unsetenv(name);
  }
}

TEST(MpirunOptions, HostFactsAreInRange) {
  const HostFacts host = host_facts();
  EXPECT_GE(host.cores, host.usable_cores);
  EXPECT_GE(host.usable_cores, 1);
  EXPECT_EQ(host.root, geteuid() == 0);
}

class Mpirun : public ::testing::Test {
 protected:
  int run(const std::string& script, int ranks = 2) {
    return run_under_mpirun("/bin/bash", {"-c", script, folder_}, ranks, 1);
  }

  // The pids that the ranks wrote, once there are `count`.
  std::vector<int> pids(size_t count) {
    std::vector<int> found;
    for (int wait = 0; wait < 200 && found.size() < count; ++wait) {
      found.clear();
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        int pid = 0;
        if (std::ifstream(entry.path()) >> pid) found.push_back(pid);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(found.size(), count);
    return found;
  }
  static bool alive(int pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    return std::getline(in, line) && line.substr(line.rfind(')') + 2, 1) != "Z";
  }
  const TestFolder made_;
  const std::string folder_ = made_.path();
};

constexpr const char* kSleeper = "echo $$ > $0/$OMPI_COMM_WORLD_RANK.pid; sleep 60 & wait";

TEST_F(Mpirun, RanksRunWithTheirThreadsAndNoInput) {
  EXPECT_EQ(run("echo $OMP_NUM_THREADS $OMPI_COMM_WORLD_SIZE $(cat | wc -c) > $0/$OMPI_COMM_WORLD_RANK"), 0);
  for (const char* rank : {"/0", "/1"}) {
    std::string line;
    std::getline(std::ifstream(folder_ + rank), line);
    EXPECT_EQ(line, "1 2 0");
  }
}

TEST_F(Mpirun, EachRankHasCoresOfItsOwnWhenThereAreEnough) {
  const HostFacts host = host_facts();
  if (host.cores < 2 || host.usable_cores != host.cores || host.cores % 2 != 0)
    GTEST_SKIP() << "needs an even number of cores, all of them";
  EXPECT_EQ(run_under_mpirun("/bin/bash",
                             {"-c", "grep Cpus_allowed_list /proc/self/status > $0/$OMPI_COMM_WORLD_RANK", folder_}, 2,
                             host.cores / 2),
            0);
  std::string a, b;
  std::getline(std::ifstream(folder_ + "/0"), a);
  std::getline(std::ifstream(folder_ + "/1"), b);
  EXPECT_FALSE(a.empty());
  EXPECT_NE(a, b);
}

TEST_F(Mpirun, ReturnsTheExitCodeOfARank) {
  EXPECT_EQ(run("[ $OMPI_COMM_WORLD_RANK = 0 ] || exit 3; sleep 60"), 3);
  EXPECT_EQ(run("exit 75"), 75);
}

TEST_F(Mpirun, AKilledRankIsReported) {
  ::testing::internal::CaptureStderr();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run("[ $OMPI_COMM_WORLD_RANK = 0 ] || kill -9 $$; sleep 60"), 137);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("error: a rank was killed by signal 9 (Killed)"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(Mpirun, TermReachesTheRanks) {
  const pid_t child = fork();
  if (child == 0) _exit(run(kSleeper));
  const std::vector<int> ranks = pids(2);
  kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM) << status;
  for (int pid : ranks) EXPECT_FALSE(alive(pid));
}

TEST_F(Mpirun, NoRankOutlivesADeadMpirun) {
  const pid_t child = fork();
  if (child == 0) _exit(run(kSleeper));
  const std::vector<int> ranks = pids(2);
  int mpirun = 0;
  std::ifstream("/proc/" + std::to_string(child) + "/task/" + std::to_string(child) + "/children") >> mpirun;
  ASSERT_GT(mpirun, 0);
  kill(mpirun, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL) << status;
  for (int pid : ranks) EXPECT_FALSE(alive(pid));
}

TEST_F(Mpirun, NoRankOutlivesTheStarter) {
  const pid_t child = fork();
  if (child == 0) _exit(run(kSleeper));
  const std::vector<int> ranks = pids(2);
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  for (int wait = 0; wait < 100 && std::any_of(ranks.begin(), ranks.end(), alive); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (int pid : ranks) EXPECT_FALSE(alive(pid));
}

}  // namespace
}  // namespace pal::launch
