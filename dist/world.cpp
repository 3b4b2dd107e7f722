#include "dist/world.h"

#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "dist/mpi_check.h"
#include "dist/mpi_comm.h"

namespace pal {
namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
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
  if (!started_as_rank()) {   // alone: no MPI at all, so that no daemon is started for one process
    now_ = make_local_comm();
    bulk_ = make_local_comm();
    control_ = make_local_comm();
    node_ = make_local_comm();
    return;
  }
  int provided = 0;
  PAL_MPI_CHECK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  PAL_CHECK(provided == MPI_THREAD_MULTIPLE, "this MPI gives thread level", provided,
            "use an MPI built with MPI_THREAD_MULTIPLE");
  mpi_ = true;
  PAL_MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  PAL_MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  MPI_Comm node = MPI_COMM_NULL;
  PAL_MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node));
  PAL_MPI_CHECK(MPI_Comm_rank(node, &local_rank_));
  PAL_MPI_CHECK(MPI_Comm_size(node, &local_size_));
  node_ = std::make_unique<MpiComm>(node);
  PAL_MPI_CHECK(MPI_Comm_free(&node));
  now_ = std::make_unique<MpiComm>(MPI_COMM_WORLD);
  bulk_ = std::make_unique<MpiComm>(MPI_COMM_WORLD);
  control_ = std::make_unique<MpiComm>(MPI_COMM_WORLD);
}

World::~World() {
  if (!mpi_ || std::uncaught_exceptions() > 0) return;
  now_.reset();
  bulk_.reset();
  control_.reset();
  node_.reset();
  MPI_Finalize();
}

std::string World::prefix() const {
  return "[rank " + std::to_string(rank_) + "/" + std::to_string(size_) + " " + host_ + "]";
}

void World::abort(int exit_code) {
  if (mpi_) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace pal
