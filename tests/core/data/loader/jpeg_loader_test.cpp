// loader on JPEG data: equal to whole decodes, small views, reduced decodes within their tolerance, bad files, memory.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/core/data/data_files.h"
#include "tests/core/data/jpeg_dataset.h"
#include "tests/core/data/loader/direct_views.h"
#include "tests/core/data/memory_dataset.h"

namespace pal::data {
namespace {

LoaderOptions jpeg_options(int64_t samples, int32_t size, Decode decode) {
  LoaderOptions o;
  o.plan = {samples, 7, 3};
  kernels::ViewPolicy second;
  second.blur = 0.5f;
  second.solarize = 0.2f;
  o.views.policies = {{}, second};
  o.views.large.seed = 3;
  o.views.large.size = size;
  o.views.decode = decode;
  o.planned_until = 2 * o.plan.steps_per_epoch();
  return o;
}

// Only crop, flip and resize, so that pixels are compared before color operations change their distances.
void only_geometry(LoaderOptions& o) {
  for (kernels::ViewPolicy& p : o.views.policies) p.jitter = p.gray = p.blur = p.solarize = 0;
}

TEST(JpegLoader, EqualsAWholeDecodeForAnyRanksAndThreads) {
  const auto data = std::make_shared<JpegDataset>(40, 9, 130, 11);
  struct Case {
    int ranks, threads, readers;
    at::ScalarType dtype;
  };
  for (const Case& c : {Case{1, 1, 0, at::kFloat}, Case{1, 3, 1, at::kDouble}, Case{2, 2, 2, at::kFloat}}) {
    SCOPED_TRACE("ranks " + std::to_string(c.ranks) + " threads " + std::to_string(c.threads));
    LoaderOptions o = jpeg_options(40, 32, Decode::full);
    o.ranks = c.ranks;
    o.threads = c.threads;
    o.readers = c.readers;
    o.dtype = c.dtype;
    for (o.rank = 0; o.rank < c.ranks; ++o.rank) {
      Loader loader(data, o);
      for (int64_t step = 0; step < o.planned_until; ++step) {
        const LoadedStep s = loader.next();
        const std::vector<int64_t> own(s.samples.begin() + s.rank_begin[o.rank],
                                       s.samples.begin() + s.rank_begin[o.rank + 1]);
        const at::Tensor want = c.dtype == at::kDouble ? direct_views<double>(*data, o, own, step)
                                                       : direct_views<float>(*data, o, own, step);
        ASSERT_LE((s.images - want).abs().max().item<double>(), 1e-6) << "step " << step;
      }
    }
  }
}

// Where a crop has at least twice the pixels of its view, the reduced decode is another low-pass filter than the
// triangle filter of the resize. Tolerance: 1.5/255 on average, 12/255 for 99 of 100 pixels (of pictures with noise).
TEST(JpegLoader, ReducedDecodesStayWithinTheirTolerance) {
  const auto data = std::make_shared<JpegDataset>(24, 100, 300, 5);
  LoaderOptions o = jpeg_options(24, 24, Decode::scaled);
  only_geometry(o);
  Loader loader(data, o);
  double sum = 0, count = 0, beyond = 0;
  for (int64_t step = 0; step < o.planned_until; ++step) {
    const LoadedStep s = loader.next();
    const at::Tensor apart = (s.images - direct_views<float>(*data, o, s.samples, step)).abs() * 255;
    sum += apart.sum().item<double>();
    beyond += apart.gt(12).sum().item<double>();
    count += static_cast<double>(apart.numel());
  }
  RecordProperty("mean", std::to_string(sum / count));
  EXPECT_LT(sum / count, 1.5);
  EXPECT_LT(beyond / count, 1e-2);
  EXPECT_GT(sum / count, 1e-3);  // some were reduced
}

TEST(JpegLoader, ReducesAsFarAsTheViewAllows) {
  EXPECT_EQ(reduction({0, 0, 447, 500}, 224), 1);
  EXPECT_EQ(reduction({0, 0, 448, 500}, 224), 2);
  EXPECT_EQ(reduction({0, 0, 2000, 900}, 224), 4);
  EXPECT_EQ(reduction({0, 0, 9000, 9000}, 224), 8);
  const kernels::CropBox box = hull({2, 30, 10, 10}, {5, 1, 40, 3});
  EXPECT_EQ(box.top, 2);
  EXPECT_EQ(box.left, 1);
  EXPECT_EQ(box.height, 43);
  EXPECT_EQ(box.width, 39);
}

// Two large views and three small ones from one decode: each equals the view made alone.
TEST(JpegLoader, SmallViewsBesideLargeOnes) {
  const auto data = std::make_shared<JpegDataset>(16, 40, 90, 21);
  LoaderOptions o = jpeg_options(16, 32, Decode::full);
  kernels::ViewPolicy little;
  little.crop_scale_min = 0.05f;
  little.crop_scale_max = 0.3f;
  o.views.policies.insert(o.views.policies.end(), 3, little);
  o.views.small_views = 3;
  o.views.small_size = 12;
  Loader loader(data, o);
  const LoadedStep s = loader.next();
  const auto rows = static_cast<int64_t>(s.samples.size());
  ASSERT_EQ(s.images.sizes(), (std::vector<int64_t>{2 * rows, 3, 32, 32}));
  ASSERT_EQ(s.small_images.sizes(), (std::vector<int64_t>{3 * rows, 3, 12, 12}));
  LoaderOptions all = o;
  EXPECT_LE(
      (direct_views<float>(*data, all, s.samples, 0).narrow(0, 0, 2 * rows) - s.images).abs().max().item<double>(),
      1e-6);
  all.views.large.size = 12;
  EXPECT_LE((direct_views<float>(*data, all, s.samples, 0).narrow(0, 2 * rows, 3 * rows) - s.small_images)
                .abs()
                .max()
                .item<double>(),
            1e-6);
}

// The code path of a GPU, on the CPU: workers only decode, next() renders. The same bits, also when parts do not fit
// into the step's buffer (views of 8 pixels of whole decodes), and with small views.
TEST(JpegLoader, ADeviceThatRendersGivesTheSameBits) {
  const auto data = std::make_shared<JpegDataset>(30, 40, 120, 41);
  for (const auto& [size, decode] : {std::pair{32, Decode::scaled}, std::pair{8, Decode::full}}) {
    SCOPED_TRACE("size " + std::to_string(size));
    LoaderOptions o = jpeg_options(30, size, decode);
    o.views.policies.resize(4);
    o.views.small_views = 2;
    o.views.small_size = 5;
    o.threads = 2;
    o.ranks = 2;
    for (o.rank = 0; o.rank < 2; ++o.rank) {
      LoaderOptions there = o;
      there.render = Render::device;
      Loader by_workers(data, o), by_device(data, there);
      for (int64_t step = 0; step < o.planned_until; ++step) {
        const LoadedStep a = by_workers.next(), b = by_device.next();
        ASSERT_EQ(a.samples, b.samples);
        ASSERT_TRUE(at::equal(a.images, b.images)) << "step " << step;
        ASSERT_TRUE(at::equal(a.small_images, b.small_images)) << "step " << step;
      }
    }
  }
}

// A DeviceDecoder in the CPU's memory, by libjpeg. It declines gray and damaged files.
class MemoryDecoder final : public DeviceDecoder {
 public:
  std::unique_ptr<Image> begin(std::vector<uint8_t>& file, const JpegBox& box) override {
    if (!inspect_jpeg(file.data(), file.size(), JpegWalk::to_first_scan).ycc) return nullptr;
    auto image = std::make_unique<Started>();
    std::vector<uint8_t> whole;
    try {
      const DecodedJpeg all = JpegDecoder().decode(file, whole);
      for (int32_t y = 0; y < box.height; ++y) {
        const auto line = whole.begin() + 3 * (int64_t{box.top + y} * all.width + box.left);
        image->rgb.insert(image->rgb.end(), line, line + 3 * box.width);
      }
    } catch (const Error&) {
      return nullptr;
    }
    file.clear();
    return image;
  }
  void finish(std::unique_ptr<Image> image, uint8_t* out, cudaStream_t) override {
    const auto& rgb = static_cast<const Started&>(*image).rgb;
    std::copy(rgb.begin(), rgb.end(), out);
    ++finished;
  }
  int64_t finished = 0;

 private:
  struct Started final : Image {
    std::vector<uint8_t> rgb;
  };
};

// The code path of nvJPEG: images that the device finishes beside images that libjpeg decoded (with and without room
// for them). The same bits as the workers', and every image is counted.
TEST(JpegLoader, ADeviceThatDecodesGivesTheSameBits) {
  const auto data = std::make_shared<JpegDataset>(40, 40, 120, 43);
  for (const int size : {32, 8}) {
    SCOPED_TRACE("size " + std::to_string(size));
    LoaderOptions o = jpeg_options(40, size, Decode::full);
    o.views.policies.resize(4);
    o.views.small_views = 2;
    o.views.small_size = 5;
    o.threads = 2;
    LoaderOptions there = o;
    const auto decoder = std::make_shared<MemoryDecoder>();
    there.render = Render::device;
    there.decoder = decoder;
    Loader by_workers(data, o), by_device(data, there);
    int64_t images = 0;
    for (int64_t step = 0; step < o.planned_until; ++step) {
      const LoadedStep a = by_workers.next(), b = by_device.next();
      images += static_cast<int64_t>(b.samples.size());
      ASSERT_TRUE(at::equal(a.images, b.images)) << "step " << step;
      ASSERT_TRUE(at::equal(a.small_images, b.small_images)) << "step " << step;
    }
    EXPECT_EQ(images, 80);
    EXPECT_EQ(by_device.report().left_to_libjpeg, 10);  // every eighth is gray, two epochs
    EXPECT_EQ(decoder->finished, images - 10);
    EXPECT_EQ(by_workers.report().left_to_libjpeg, 0);
  }
}

// Without a GPU: everything but the pixels, on the meta device.
TEST(JpegLoader, AnotherDeviceGetsTheViews) {
  LoaderOptions o = jpeg_options(30, 16, Decode::scaled);
  o.render = Render::device;
  o.device = at::kMeta;
  o.views.large.layout = kernels::Layout::channels_last;
  Loader loader(std::make_shared<JpegDataset>(30, 20, 60, 42), o);
  const LoadedStep s = loader.next();
  EXPECT_TRUE(s.images.is_meta());
  EXPECT_EQ(s.images.sizes(), (std::vector<int64_t>{2 * static_cast<int64_t>(s.samples.size()), 3, 16, 16}));
  EXPECT_TRUE(s.images.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(JpegLoader, CenterViewsEqualAWholeDecode) {
  const auto data = std::make_shared<JpegDataset>(12, 20, 90, 31);
  kernels::AugmentOptions o;
  o.size = 24;
  std::vector<int64_t> samples = {3, 0, 7, 11};
  const at::Tensor got = Loader(data, center_views(*data, samples, 4, o, at::kFloat)).next().images;
  for (size_t i = 0; i < samples.size(); ++i) {
    const kernels::ImageView image = data->image(samples[i], {});
    at::Tensor want = empty_images(1, o, at::kFloat);
    std::vector<char> scratch(kernels::cpu::augment_scratch_bytes({&image, 1}, o, {1}));
    kernels::cpu::center_view(want.data_ptr<float>(), {&image, 1}, o,
                              {scratch.data(), static_cast<int64_t>(scratch.size())}, {1});
    // 90 pixels are more than twice 24: some are reduced.
    EXPECT_LT((got.narrow(0, static_cast<int64_t>(i), 1) - want).abs().mean().item<double>() * 255, 1.5);
  }
}

// A file that cannot be decoded stops the run with exit code 3 and is named, at its own step, by any decoder.
TEST(JpegLoader, BadFilesAreNamed) {
  for (const bool header : {true, false}) {
    const auto data = std::make_shared<JpegDataset>(14, 40, 60, 41);
    const LoaderOptions o = jpeg_options(14, 16, Decode::full);
    const int64_t bad = batch_samples(o.plan, 1)[2];
    std::vector<uint8_t>& file = data->file(bad);
    if (header) {
      std::fill(file.begin(), file.begin() + 20, 0);
    } else {
      // The length of the first Huffman table: the header can be read, the image cannot be decoded.
      for (size_t i = 2; i + 21 < file.size(); ++i) {
        if (file[i] == 0xFF && file[i + 1] == 0xC4) {
          std::fill(file.begin() + static_cast<std::ptrdiff_t>(i) + 5,
                    file.begin() + static_cast<std::ptrdiff_t>(i) + 21, 255);
          break;
        }
      }
    }
    LoaderOptions there = o;
    there.render = Render::device;
    there.decoder = std::make_shared<MemoryDecoder>();
    std::string first;
    for (const LoaderOptions& way : {o, there}) {
      Loader loader(data, way);
      loader.next();
      const std::string words = error_of(Exit::data, [&] { loader.next(); });
      EXPECT_TRUE(contains(words, "memory.h5: sample " + std::to_string(bad) + ": ")) << words;
      if (first.empty()) first = words;
      EXPECT_EQ(words, first);  // the same sentence where the device decodes
    }
  }
}

TEST(JpegLoader, MemoryIsBoundedBySettings) {
  const auto data = std::make_shared<JpegDataset>(16, 30, 40, 51);
  LoaderOptions o = jpeg_options(16, 256, Decode::full);
  o.plan.global_batch = 8;  // 2 views of 8 images of 3 × 256 × 256 floats: 12 MB
  o.depth = 8;
  o.memory_mb = 60;
  EXPECT_EQ(Loader(data, o).report().depth, 3);  // 7/8 of 60 MB hold four: three ahead, and the trainer's
  EXPECT_LE(Loader(data, o).report().bound_mb, 60);
  o.memory_mb = 20;
  const std::string words = error_of(Exit::usage, [&] { Loader(data, o); });
  EXPECT_TRUE(contains(words, "data.memory_mb is 20, which holds fewer than two steps; give at least 28")) << words;
  o.memory_mb = 28;
  EXPECT_EQ(Loader(data, o).report().depth, 1);
}

// The buffer of a step is reused when no tensor refers to it any more, and not before.
TEST(JpegLoader, BuffersAreUsedAgainWhenDropped) {
  const auto data = std::make_shared<MemoryDataset>(64, 8, 8, 1);
  LoaderOptions o = jpeg_options(64, 8, Decode::full);
  o.plan.global_batch = 8;
  o.depth = 2;
  o.planned_until = 16;
  Loader loader(data, o);
  const LoadedStep held = loader.next();
  const at::Tensor before = held.images.clone();
  std::vector<const void*> seen;
  for (int k = 1; k < 16; ++k) {
    const LoadedStep s = loader.next();
    EXPECT_NE(s.images.data_ptr(), held.images.data_ptr());
    if (std::find(seen.begin(), seen.end(), s.images.data_ptr()) == seen.end()) seen.push_back(s.images.data_ptr());
  }
  EXPECT_LE(seen.size(), 4u);
  EXPECT_TRUE(at::equal(before, held.images));
}

// Readers read ahead of the worker, within their share of the memory.
TEST(JpegLoader, ReadersReadAhead) {
  const auto data = std::make_shared<MemoryDataset>(4000, 8, 8, 1);
  data->delay = std::chrono::milliseconds(4);
  LoaderOptions o = jpeg_options(4000, 8, Decode::full);
  o.plan.global_batch = 16;
  o.planned_until = 100;
  o.depth = 6;
  o.readers = 3;
  {
    Loader loader(data, o);
    for (int i = 0; i < 500 && data->reads < 96; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_GT(loader.report().read_ahead_mb, 0);
    EXPECT_EQ(loader.report().depth, 6);
  }
  o.readers = 0;
  Loader alone(data, o);
  alone.next();
  EXPECT_EQ(alone.report().read_ahead_mb, 0);
}

}  // namespace
}  // namespace pal::data
