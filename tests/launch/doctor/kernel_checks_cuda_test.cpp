// kernel_checks_cuda: every op of the doctor's table agrees with its CPU twin, and has a row.
#include "launch/doctor/kernel_checks.h"
#include "tests/kernels/cuda_test.h"

namespace pal::launch {
namespace {

class KernelChecks : public kernels::CudaTest {};

TEST_F(KernelChecks, AllPassOnSmallSizes) {
  KernelCheckSizes sizes;
  sizes.rows = 70;
  sizes.pair_rows = 40;
  sizes.dims = 36;
  sizes.images = 2;
  sizes.image_size = 12;
  sizes.repeats = 1;
  const std::vector<KernelCheck> checks = check_kernels(sizes, {});
  EXPECT_EQ(checks.size(), 33u);
  for (const KernelCheck& c : checks) {
    EXPECT_TRUE(c.passed()) << c.op << ", " << c.shape << ": " << c.error << " above " << c.tolerance;
    EXPECT_GT(c.bytes, 0) << c.op;
    EXPECT_GT(c.milliseconds, 0) << c.op;
  }
  EXPECT_EQ(kernel_check_rows(checks).size(), checks.size() + 1);
}

TEST(KernelChecksTable, ShowsWhatIsWrong) {
  KernelCheck check{"op", "2 x 2"};
  check.error = std::nan("");
  check.tolerance = 1;
  check.bytes = 3e6;
  check.milliseconds = 1;
  const auto row = kernel_check_rows({check})[1];
  EXPECT_EQ(row[2], "WRONG");
  EXPECT_EQ(row[6], "3.0");
}

}  // namespace
}  // namespace pal::launch
