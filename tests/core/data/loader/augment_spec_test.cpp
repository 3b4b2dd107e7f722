// augment_spec: from the settings of the views to the policies of the kernel.
#include "core/data/loader/augment_spec.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/data/memory_dataset.h"
#include "tests/core/spec_of.h"

namespace pal::data {
namespace {

TEST(AugmentSpec, ListsArePerViewAndTheLastRepeats) {
  const AugmentSpec spec =
      spec_of({"augment.views=4", "augment.blur=[1.0, 0.1]", "augment.solarize=[0, 0.2, 0.3, 0.4]",
               "augment.flip=[0.25]", "augment.crop_scale=[0.08, 0.9]", "augment.crop_ratio=[0.5, 2]",
               "augment.jitter=[0.7]", "augment.jitter_strength=[0.1, 0.2, 0.3, 0.4]", "augment.gray=[0.6]",
               "augment.blur_sigma=[0.3, 1.5]"})
          .augment;
  const auto views = view_policies(spec);
  ASSERT_EQ(views.size(), 4u);
  const float blur[] = {1.0f, 0.1f, 0.1f, 0.1f}, solarize[] = {0, 0.2f, 0.3f, 0.4f};
  for (int v = 0; v < 4; ++v) {
    EXPECT_FLOAT_EQ(views[v].blur, blur[v]);
    EXPECT_FLOAT_EQ(views[v].solarize, solarize[v]);
    EXPECT_FLOAT_EQ(views[v].flip, 0.25f);
    EXPECT_FLOAT_EQ(views[v].crop_scale_min, 0.08f);
    EXPECT_FLOAT_EQ(views[v].crop_scale_max, 0.9f);
    EXPECT_FLOAT_EQ(views[v].crop_ratio_min, 0.5f);
    EXPECT_FLOAT_EQ(views[v].crop_ratio_max, 2);
    EXPECT_FLOAT_EQ(views[v].jitter, 0.7f);
    EXPECT_FLOAT_EQ(views[v].brightness, 0.1f);
    EXPECT_FLOAT_EQ(views[v].contrast, 0.2f);
    EXPECT_FLOAT_EQ(views[v].saturation, 0.3f);
    EXPECT_FLOAT_EQ(views[v].hue, 0.4f);
    EXPECT_FLOAT_EQ(views[v].gray, 0.6f);
    EXPECT_FLOAT_EQ(views[v].blur_sigma_min, 0.3f);
    EXPECT_FLOAT_EQ(views[v].blur_sigma_max, 1.5f);
  }
}

TEST(AugmentSpec, OptionsFromConfigAndData) {
  const MemoryDataset data(3, 14, 17, 1);
  kernels::AugmentOptions o =
      augment_options(spec_of({"train.seed=8", "augment.mean=[0.1, 0.2, 0.3]", "augment.std=[1, 2, 3]"}).augment, data);
  EXPECT_EQ(o.size, 14);
  EXPECT_EQ(o.channels, 1);  // gray stays one channel; the encoder takes it for three
  EXPECT_EQ(augment_options(spec_of().augment, MemoryDataset(3, 14, 17, 3)).channels, 3);
  EXPECT_FLOAT_EQ(augment_options(spec_of({"augment.std=0.5"}).augment, data).std[2], 0.5f);
  EXPECT_EQ(o.seed, 8u);
  EXPECT_EQ(o.interpolation, kernels::Interpolation::bilinear);
  EXPECT_EQ(augment_options(spec_of({"augment.interpolation=bicubic"}).augment, data).interpolation,
            kernels::Interpolation::bicubic);
  EXPECT_FLOAT_EQ(o.mean[2], 0.3f);
  EXPECT_FLOAT_EQ(o.std[1], 2);
  EXPECT_EQ(augment_options(spec_of({"data.size=20"}).augment, data).size, 20);
}

TEST(AugmentSpec, ImagesOfManySizesNeedASize) {
  const MemoryDataset data(3, 0, 0, 3);
  EXPECT_EQ(augment_options(spec_of({"data.size=20"}).augment, data).size, 20);
  try {
    augment_options(spec_of().augment, data);
    FAIL() << "no size, no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::usage);
    EXPECT_NE(std::string(e.what()).find("data.size"), std::string::npos);
  }
}

// What the config accepts, the kernel accepts.
TEST(AugmentSpec, DefaultsRun) {
  const MemoryDataset data(1, 14, 17, 1);
  const AugmentSpec spec = spec_of().augment;
  const auto views = view_policies(spec);
  const kernels::AugmentOptions o = augment_options(spec, data);
  std::vector<uint8_t> bytes;
  data.read(0, bytes);
  const kernels::ImageView image = data.image(0, bytes);
  const int64_t sample = 0;
  std::vector<float> out(views.size() * 3 * 14 * 14);
  std::vector<char> scratch(kernels::cpu::augment_scratch_bytes({&image, 1}, o, {1}));
  kernels::cpu::augment(out.data(), {&image, 1}, {&sample, 1}, {views.data(), static_cast<int64_t>(views.size())}, o,
                        {scratch.data(), static_cast<int64_t>(scratch.size())}, {1});
}

}  // namespace
}  // namespace pal::data
