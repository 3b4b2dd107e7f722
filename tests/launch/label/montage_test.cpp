// montage: which samples it shows, and the text below them.
#include "launch/run/montage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/base/printable.h"
#include "tests/core/data/memory_dataset.h"

namespace pal::launch {
namespace {

TEST(Montage, DrawsTheSameSamplesEachTime) {
  const data::MemoryDataset data(1000, 2, 2, 1);
  const std::vector<int64_t> samples = montage_samples(data, 12);
  EXPECT_EQ(samples.size(), 12u);
  EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end()));
  EXPECT_EQ(montage_samples(data, 12), samples);
  std::vector<int64_t> steps;  // neither the first ones nor every so many
  for (size_t k = 1; k < samples.size(); ++k) steps.push_back(samples[k] - samples[k - 1]);
  EXPECT_GT(*std::max_element(steps.begin(), steps.end()), *std::min_element(steps.begin(), steps.end()));
  EXPECT_EQ(montage_samples(data, 5000).size(), 1000u);
}

TEST(Montage, TextIsAscii) {
  EXPECT_EQ(montage_text("gr\u00f6\u00dfe & wei\u00df"), "groesse & weiss");
  EXPECT_EQ(montage_text("\u00c5ngstr\u00f6m \u0141\u00f3d\u017a"), "Angstroem Lodz");
  EXPECT_EQ(montage_text("\u65e5"), "U+65E5 ");
  EXPECT_EQ(montage_text("a\x1b"), "aU+001B ");
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\x1b]0;x\x07\n"), "a\\x1b]0;x\\x07\\x0a");
  EXPECT_EQ(printable("gr\u00f6\u00dfe \u65e5"), "gr\u00f6\u00dfe \u65e5");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\u009b"), "\\xc2\\x9b");
}

}  // namespace
}  // namespace pal::launch
