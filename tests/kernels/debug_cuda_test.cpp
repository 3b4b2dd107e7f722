// debug_cuda: the debug build (PAL_SYNC_DEBUG): an index out of range stops the kernel and the error names the
// condition.
//
// A stopped kernel destroys the CUDA context of its process, so every case runs in a process of its own.
#include <cstdio>

#include "kernels/base/error.h"
#include "kernels/block_terms.h"
#include "kernels/graph_rows.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

class DebugCuda : public CudaTest {
 protected:
  DebugCuda() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Ends the process with the error's exit code, or 0.
template <class F>
[[noreturn]] void exit_with(const F& launch) {
  try {
    launch();
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::exit(static_cast<int>(e.code()));
  }
  std::exit(0);
}
const auto kStopped = testing::ExitedWithCode(static_cast<int>(Exit::bug));
const auto kPassed = testing::ExitedWithCode(0);

void graph_rows(const std::vector<int64_t>& offsets, const std::vector<int32_t>& columns) {
  exit_with([&] {
    const DeviceArray<float> z(std::vector<float>(3 * 4, 1.0f)), weights(std::vector<float>(columns.size(), 1.0f)),
        out(3 * 4);
    const DeviceArray<int64_t> device_offsets(offsets);
    const DeviceArray<int32_t> device_columns(columns);
    const DeviceArray<char> scratch(cuda::graph_rows_scratch_bytes<float>(3, int64_t(columns.size()), 4));
    const MatrixView<const float> view(z.data(), 3, 4);
    cuda::graph_rows<float>({out.data(), 3, 4}, nullptr, view, view,
                            {device_offsets.span(), device_columns.span(), weights.span()}, {}, scratch.scratch(),
                            nullptr);
  });
}
TEST_F(DebugCuda, GraphRows) {
  EXPECT_EXIT(graph_rows({0, 1, 2, 3}, {0, 1, 2}), kPassed, "");
  EXPECT_EXIT(graph_rows({0, 1, 2, 3}, {0, 3, 2}), kStopped, "partners.rows");
  EXPECT_EXIT(graph_rows({0, 1, 2, 3}, {0, -1, 2}), kStopped, "partners.rows");
  EXPECT_EXIT(graph_rows({0, 1, 2, 4}, {0, 1, 2}), kStopped, "nnz");
  EXPECT_EXIT(graph_rows({0, 2, 1, 3}, {0, 1, 2}), kStopped, "begin <= end");
}

void block_sums(const std::vector<int32_t>& row_block) {
  exit_with([&] {
    const DeviceArray<float> z(std::vector<float>(3 * 4, 1.0f));
    const DeviceArray<double> sums(2 * 4);
    const DeviceArray<int32_t> blocks(row_block);
    const DeviceArray<char> scratch(cuda::block_sums_scratch_bytes(3, 2, 4));
    cuda::block_sums<float>({sums.data(), 2, 4}, {z.data(), 3, 4}, blocks.span(), scratch.scratch(), nullptr);
  });
}
void block_rows(const std::vector<int32_t>& row_block) {
  exit_with([&] {
    const DeviceArray<float> out(3 * 4);
    const DeviceArray<double> sums(std::vector<double>(2 * 4, 1.0));
    const DeviceArray<int32_t> blocks(row_block);
    cuda::block_rows<float>({out.data(), 3, 4}, {sums.data(), 2, 4}, blocks.span(), 1.0, Into::overwrite, nullptr);
  });
}
void block_differences(const std::vector<int32_t>& row_block) {
  exit_with([&] {
    const DeviceArray<float> z(std::vector<float>(3 * 4, 1.0f)), out(3 * 4);
    const DeviceArray<double> means(std::vector<double>(2 * 4, 1.0)), weight(std::vector<double>(2, 1.0));
    const DeviceArray<int32_t> blocks(row_block);
    const DeviceArray<char> scratch(cuda::block_differences_scratch_bytes(3, 4));
    cuda::block_differences<float>({out.data(), 3, 4}, nullptr, {z.data(), 3, 4}, {means.data(), 2, 4}, weight.span(),
                                   blocks.span(), 1.0, Into::overwrite, scratch.scratch(), nullptr);
  });
}
TEST_F(DebugCuda, BlockTerms) {
  for (const auto launch : {block_sums, block_rows, block_differences}) {
    EXPECT_EXIT(launch({0, -1, 1}), kPassed, "");
    EXPECT_EXIT(launch({0, 2, 1}), kStopped, "block <");
    EXPECT_EXIT(launch({0, -2, 1}), kStopped, "block >= -1");
  }
}

}  // namespace
}  // namespace pal::kernels
