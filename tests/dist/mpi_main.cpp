// mpi_main: GoogleTest on every rank of an MPI job. Rank 0 prints; another rank prints only what failed.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdio>

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

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  pal::dist::World world;
  g_world = &world;
  at::set_num_threads(1);
  if (world.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  return RUN_ALL_TESTS();
}
