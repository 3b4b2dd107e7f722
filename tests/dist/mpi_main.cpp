// mpi_main: GoogleTest on every rank of an MPI job. Rank 0 prints; another rank prints only what failed.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels/base/error.h"
#include "tests/dist/mpi_world.h"

namespace {
pal::dist::World* g_world = nullptr;  // of this test program only: GoogleTest hands no context to a test

class FailurePrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& r) override {
    if (r.failed())
      std::fprintf(stderr, "%s %s:%d\n%s\n", g_world->prefix().c_str(), r.file_name(), r.line_number(), r.message());
  }
};
}  // namespace

namespace pal::dist {
World& test_world() { return *g_world; }
}  // namespace pal::dist

namespace {

// Rank 1's error destroys its World without close(), while rank 0 waits in close(). Rank 1's destructor returns, and
// its exit without MPI_Finalize makes mpirun end rank 0.
[[noreturn]] void leave_without_close() {
  int rank = 0;
  try {
    pal::dist::World world;
    rank = world.rank();
    world.control().barrier();
    if (rank == 1) throw pal::Error(pal::Exit::data, "an error of rank 1");
    world.close();
  } catch (const pal::Error&) {
    std::fprintf(stderr, "rank 1 destroyed its world without close\n");
  }
  std::_Exit(rank == 1 ? static_cast<int>(pal::Exit::data) : 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--without-close") leave_without_close();
  testing::InitGoogleTest(&argc, argv);
  pal::dist::World world;
  g_world = &world;
  at::set_num_threads(1);
  if (world.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  const int failed = RUN_ALL_TESTS();
  world.close();
  return failed;
}
