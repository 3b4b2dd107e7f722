// isa: the choice is stable and ordered, and never an instruction set that the machine lacks.
#include "kernels/base/isa.h"

#include <gtest/gtest.h>

namespace pal::kernels {
namespace {

TEST(Isa, ChoiceIsStableAndScalarAlwaysRuns) {
  EXPECT_EQ(best_isa(), best_isa());
  EXPECT_TRUE(isa_supported(Isa::scalar));
  EXPECT_TRUE(isa_supported(best_isa()));
}

TEST(Isa, ChoosesTheTableOfItsName) {
  const int scalar = 0, avx2 = 1, avx512 = 2;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa_supported(isa)) {
      EXPECT_EQ(choose_isa(isa, scalar, avx2, avx512), static_cast<int>(isa)) << isa_name(isa);
    } else {
      EXPECT_THROW(choose_isa(isa, scalar, avx2, avx512), Error) << isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace pal::kernels
