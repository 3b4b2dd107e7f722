// slurm_script_test: times, sweeps, quoting, site files, and scripts that bash reads.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kernels/base/error.h"
#include "launch/slurm/script.h"
#include "tests/test_folder.h"

namespace pal::launch {
namespace {

std::string complaint(const std::string& text) {
  const TestFolder folder;
  std::ofstream(folder / "site.yaml") << text;
  try {
    read_site(folder / "site.yaml");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

SlurmJob two_nodes() {
  SlurmJob job;
  job.name = "pal-x";
  job.config = "/c/x.yaml";
  job.program = "/p/pal";
  job.working_dir = "/w";
  job.log_dir = "/r";
  job.points = {{"/r", {"train.seed=1"}}};
  job.nodes = 2;
  job.ranks_per_node = 8;
  job.gpus_per_node = 8;
  job.time = "2:00:00";
  return job;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Exit code of bash on a script whose srun, scontrol and mpirun are shell functions; `out` gets what it printed.
int run_script(const std::string& script, const std::string& functions, std::string& out) {
  const TestFolder folder;
  std::ofstream(folder / "job") << functions << script;
  FILE* pipe = popen(("SLURM_JOB_ID=7 SLURM_NNODES=2 bash " + folder / "job" + " 2>&1").c_str(), "r");
  char block[256];
  out.clear();
  while (std::fgets(block, sizeof block, pipe) != nullptr) out += block;
  return WEXITSTATUS(pclose(pipe));
}

TEST(SlurmTime, EveryFormOfSbatch) {
  EXPECT_EQ(slurm_seconds("90"), 5400);
  EXPECT_EQ(slurm_seconds("90:30"), 5430);
  EXPECT_EQ(slurm_seconds("2:30:05"), 9005);
  EXPECT_EQ(slurm_seconds("1-12"), 129600);
  EXPECT_EQ(slurm_seconds("1-12:30"), 131400);
  EXPECT_EQ(slurm_seconds("1-00:00:01"), 86401);
  for (const char* bad : {"", "x", "1:", "1:2:3:4", "1-2-3", "-1", "1::2", "1:2-3"})
    EXPECT_THROW(slurm_seconds(bad), Error) << bad;
}

TEST(SlurmSweep, ProductWithFoldersOfItsOwn) {
  const auto points = sweep_points("/r", {"optim.lr=.1,.2", "model.projector=[8,4],[16]"});
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[1].overrides, (std::vector<std::string>{"optim.lr=.1", "model.projector=[16]"}));
  EXPECT_EQ(points[2].overrides, (std::vector<std::string>{"optim.lr=.2", "model.projector=[8,4]"}));
  EXPECT_EQ(points[2].run_dir, "/r/optim.lr=.2,model.projector=_8,4_");
  EXPECT_THROW(sweep_points("/r", {"optim.lr="}), Error);
  EXPECT_THROW(sweep_points("/r", {"optim.lr=1,,2"}), Error);
  EXPECT_THROW(sweep_points("/r", {"nothing"}), Error);
}

TEST(SlurmScript, WordsAreQuotedForTheShell) {
  EXPECT_EQ(shell_word("a/b-c.d=1"), "a/b-c.d=1");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's; rm"), "'it'\\''s; rm'");
}

TEST(SlurmScript, RequestsTheOptionsOfTheSite) {
  Site site;
  site.account = "me";
  site.gpu_option = "--gres=gpu:a100:{gpus}";
  site.cpus_per_rank = "12";
  const std::string script = sbatch_script(two_nodes(), site);
  for (const char* part :
       {"#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=8\n", "#SBATCH --gres=gpu:a100:8\n", "#SBATCH --account=me\n",
        "#SBATCH --cpus-per-task=12\n", "#SBATCH --signal=USR2@120\n", "#SBATCH --requeue\n",
        "#SBATCH --open-mode=append\n", "srun --mpi=pmix", "SRUN_CPUS_PER_TASK"}) {
    EXPECT_TRUE(has(script, part)) << part << "\n" << script;
  }
  site.starter = Starter::mpirun;
  const std::string by_mpirun = sbatch_script(two_nodes(), site);
  EXPECT_TRUE(has(by_mpirun, "#SBATCH --signal=B:USR2@120\n")) << by_mpirun;
  EXPECT_TRUE(has(by_mpirun, "mpirun -np 16 --map-by ppr:8:node")) << by_mpirun;
}

TEST(SlurmScript, SbatchReadsNamesAsTheyAre) {
  SlurmJob job = two_nodes();
  job.name = "it's";
  job.log_dir = "/a b#c\"d\\e";
  Site site;
  site.constraint = "a100&ib";
  const std::string script = sbatch_script(job, site);
  for (const char* part : {"#SBATCH --job-name=\"it's\"\n", "#SBATCH --constraint=\"a100&ib\"\n",
                           "#SBATCH --output=\"/a b#c\\\"d\\\\e/slurm-%j.log\"\n"})
    EXPECT_TRUE(has(script, part)) << part << "\n" << script;
}

TEST(SlurmScript, ALineBreakInANameIsRefused) {
  const std::string evil = "nl\ntouch PWN;#";
  for (std::string SlurmJob::*name : {&SlurmJob::name, &SlurmJob::config, &SlurmJob::log_dir, &SlurmJob::working_dir}) {
    SlurmJob job = two_nodes();
    job.*name += evil;
    try {
      sbatch_script(job, {});
      ADD_FAILURE() << "it was written";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::usage);
      EXPECT_TRUE(has(e.what(), "control character") && !has(e.what(), "\n")) << e.what();
    }
  }
}

TEST(SlurmScript, ActsOnTheExitCode) {
  const TestFolder run;
  SlurmJob job = two_nodes();
  job.points[0].run_dir = run.path();
  job.working_dir = "/";
  job.max_requeues = 5;
  job.max_deaths = 1;
  const auto with = [&](int code, const std::string& before, std::string& out) {
    const std::string functions = "srun() { case \"$*\" in *'test -d'*) return 0 ;; esac; return " +
                                  std::to_string(code) +
                                  "; }\n"
                                  "scontrol() { echo scontrol \"$@\"; }\nexec() { \"$@\"; exit; }\n" +
                                  before;
    return run_script(sbatch_script(job, {}), functions, out);
  };
  std::string out;
  EXPECT_EQ(with(0, "", out), 0);
  EXPECT_FALSE(has(out, "scontrol")) << out;
  EXPECT_EQ(with(75, "", out), 0);
  EXPECT_TRUE(has(out, "scontrol requeue 7")) << out;
  EXPECT_EQ(with(75, "SLURM_RESTART_COUNT=5\n", out), 76);
  EXPECT_FALSE(has(out, "scontrol")) << out;
  for (int code : {2, 3, 4, 76}) {
    EXPECT_EQ(with(code, "", out), code);
    EXPECT_FALSE(has(out, "scontrol")) << out;
    EXPECT_TRUE(std::filesystem::exists(run / "slurm-stopped"));
  }
  EXPECT_EQ(with(137, "", out), 0);  // requeued after the first death
  EXPECT_TRUE(has(out, "scontrol requeue 7")) << out;
  EXPECT_EQ(with(137, "", out), 137);
  EXPECT_FALSE(has(out, "scontrol")) << out;
}

// What the script prints before it ends with 76, "do not requeue".
std::string stopped(const Site& site, const std::string& functions) {
  const TestFolder folder;
  SlurmJob job = two_nodes();
  job.points[0].run_dir = folder / "run";
  job.working_dir = "/";
  std::string out;
  EXPECT_EQ(run_script(sbatch_script(job, site), functions, out), 76);
  return out;
}

TEST(SlurmScript, AFolderThatANodeCannotReadIsRefused) {
  const std::string out = stopped({}, "srun() { return 1; }\n");
  EXPECT_TRUE(has(out, "some nodes cannot read the run folder")) << out;
}

TEST(SlurmScript, AnMpirunOfAnotherMpiIsRefused) {
  Site site;
  site.starter = Starter::mpirun;
  const std::string out = stopped(site, "srun() { return 0; }\nmpirun() { echo HYDRA build details; }\n");
  EXPECT_TRUE(has(out, "is not Open MPI's")) << out;
}

TEST(SlurmScript, AnArrayTaskStartsItsRun) {
  SlurmJob job = two_nodes();
  job.points = sweep_points("/r", {"train.seed=0,1,2"});
  const std::string script = sbatch_script(job, {});
  EXPECT_TRUE(has(script, "#SBATCH --array=0-2\n")) << script;
  EXPECT_TRUE(has(script, "  2) run=/r/train.seed=2 settings=(train.seed=2) ;;\n")) << script;
  EXPECT_TRUE(has(script, "slurm-%A_%a.log")) << script;
}

TEST(SlurmSite, BadSettingsAreRefused) {
  EXPECT_TRUE(has(complaint("acount: me\n"), "account")) << complaint("acount: me\n");
  EXPECT_TRUE(has(complaint("modules: openmpi\n"), "list")) << complaint("modules: openmpi\n");
  EXPECT_TRUE(has(complaint("mpi: mpich\n"), "srun or mpirun"));
  EXPECT_TRUE(has(complaint("cpus_per_rank: many\n"), "whole number"));
  EXPECT_TRUE(has(complaint("environment: [A]\n"), "NAME=value"));
  EXPECT_EQ(complaint("account: me\nmodules: [a, b]\nenvironment: [A=b]\n"), "");
  EXPECT_THROW(read_site("/no/such/site.yaml"), Error);
}

}  // namespace
}  // namespace pal::launch
