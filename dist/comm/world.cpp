#include "dist/comm/world.h"

#include <ATen/ops/zeros.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "core/ops/torch_cuda.h"
#include "dist/comm/mpi_check.h"
#include "dist/comm/mpi_comm.h"

namespace pal::dist {
namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

// Collective over the ranks of a host. Ranks may be bound to cores of their own, share all of them, or anything
// between.
double share_of_cores(comm::Comm& node) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const at::Tensor users = at::zeros({CPU_SETSIZE}, at::kInt);
  auto mine = users.accessor<int32_t, 1>();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) mine[cpu] = CPU_ISSET(cpu, &set) ? 1 : 0;
  node.all_reduce(users);
  double share = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) share += CPU_ISSET(cpu, &set) ? 1.0 / mine[cpu] : 0;
  return share;
}

// srun without a PMI that this MPI supports starts processes that do not connect: each of them is rank 0 of 1.
void check_ranks_found_each_other(int size) {
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (size > 1 || tasks == nullptr || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return;
  PAL_CHECK(std::atoi(tasks) <= 1,
            "srun started " + std::string(tasks) +
                " tasks, but they did not connect to each other; ranks in this process's world",
            size, "start them with srun --mpi=pmix (srun --mpi=list shows what this SLURM has), or with mpirun");
}

}  // namespace

bool started_as_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, length);
  return all.substr(0, all.find(','));
}

World::World() : host_(host_name()) {
  if (!started_as_rank()) {  // one process: without MPI_Init, which would start a daemon
    compute_ = comm::make_local_comm();
    gradients_ = comm::make_local_comm();
    control_ = comm::make_local_comm();
    oracle_ = comm::make_local_comm();
    node_ = comm::make_local_comm();
    cores_ = share_of_cores(*node_);
    check_ranks_found_each_other(1);
    return;
  }
  int provided = 0;
  PAL_MPI_CHECK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  PAL_CHECK(provided == MPI_THREAD_MULTIPLE, "this MPI has thread level", provided,
            "use an MPI built with MPI_THREAD_MULTIPLE");
  mpi_ = true;
  PAL_MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  PAL_MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  check_ranks_found_each_other(size_);
  MPI_Comm node = MPI_COMM_NULL;
  PAL_MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node));
  PAL_MPI_CHECK(MPI_Comm_rank(node, &local_rank_));
  PAL_MPI_CHECK(MPI_Comm_size(node, &local_size_));
  node_ = record_collectives(std::make_unique<MpiComm>(node), node_log_);
  PAL_MPI_CHECK(MPI_Comm_free(&node));
  cores_ = share_of_cores(*node_);
  compute_ = record_collectives(std::make_unique<MpiComm>(MPI_COMM_WORLD), compute_log_);
  gradients_ = record_collectives(std::make_unique<MpiComm>(MPI_COMM_WORLD, Waiting::sleep), gradients_log_);
  control_ = record_collectives(std::make_unique<MpiComm>(MPI_COMM_WORLD), control_log_);
  oracle_ = std::make_unique<MpiComm>(MPI_COMM_WORLD, Waiting::sleep);
}

DeviceDecision World::use_device(const std::string& asked, const std::string& setting, double start_seconds) {
  const FoundDevices mine = found_devices(host_, local_rank_);
  const DeviceDecision decision =
      decide_device(asked, mpi_ ? gather_found(mine, MPI_COMM_WORLD) : std::vector<FoundDevices>{mine}, rank_, setting);
  if (decision.kind == DeviceKind::cpu) return decision;
  ops::load_torch_cuda();
  if (size_ == 1) {  // under mpirun -np 1 they are MPI's, which carry no GPU tensors
    compute_ = comm::make_local_comm();
    gradients_ = comm::make_local_comm();
    node_ = comm::make_local_comm();
    return decision;
  }
  PAL_ASSERT(!channels_, "a world's device is chosen once");
  channels_ = make_device_channels(decision.ordinal, start_seconds, device_log_, [this](const std::string& sentence) {
    std::fprintf(stderr, "%s error: %s\n", prefix().c_str(), sentence.c_str());
    abort(static_cast<int>(Exit::lost));
  });
  compute_ = channels_->carry(std::move(compute_), DeviceChannels::Reach::world);
  gradients_ = channels_->carry(std::move(gradients_), DeviceChannels::Reach::world);
  node_ = channels_->carry(std::move(node_), DeviceChannels::Reach::node);
  return decision;
}

World::~World() {
  if (mpi_ && std::uncaught_exceptions() == 0)
    std::fprintf(stderr, "%s warning: the world ends without close(); MPI is not finalized\n", prefix().c_str());
}

void World::close() {
  if (!mpi_) return;
  if (channels_) channels_->close();
  compute_.reset();
  gradients_.reset();
  control_.reset();
  oracle_.reset();
  node_.reset();
  channels_.reset();
  mpi_ = false;
  PAL_MPI_CHECK(MPI_Finalize());
}

std::string World::prefix() const {
  return "[rank " + std::to_string(rank_) + "/" + std::to_string(size_) + " " + host_ + "]";
}

void World::abort(int exit_code) {
  if (mpi_) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace pal::dist
