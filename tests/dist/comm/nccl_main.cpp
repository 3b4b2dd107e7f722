// nccl_main: GoogleTest on every rank of an MPI job, without LibTorch: it runs where the stand-ins are. Rank 0 prints.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>

namespace {

class FailurePrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& r) override {
    if (r.failed()) std::fprintf(stderr, "%s:%d\n%s\n", r.file_name(), r.line_number(), r.message());
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  const int failed = RUN_ALL_TESTS();
  if (failed != 0) MPI_Abort(MPI_COMM_WORLD, failed);  // other ranks may wait for this one
  MPI_Finalize();
  return 0;
}
