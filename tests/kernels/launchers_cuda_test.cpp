// launchers_cuda: every CUDA launcher is linked; without a device it throws the error of the CUDA runtime.
#include <functional>
#include <string>

#include "kernels/augment_params.h"
#include "kernels/base/error.h"
#include "kernels/block_terms.h"
#include "kernels/csr.h"
#include "kernels/graph_rows.h"
#include "kernels/moments.h"
#include "kernels/nearest.h"
#include "kernels/row_logsumexp.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

alignas(256) char memory[1 << 16];  // stands for device memory; no kernel ever reaches it
template <class T>
T* at(int64_t offset = 0) {
  return reinterpret_cast<T*>(memory + offset);
}
const Scratch kScratch{memory, int64_t{1} << 40};

void expect_no_device(const std::function<void()>& launch) {
  try {
    launch();
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::usage) << e.what();
    EXPECT_NE(std::string(e.what()).find("CUDA: "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("nvidia-smi"), std::string::npos) << e.what();
  }
}

template <class T>
void all_of() {
  const MatrixView<T> out(at<T>(), 4, 8);
  const MatrixView<const T> z(at<T>(), 4, 8);
  const Span<double> mean(at<double>(), 8), packed(at<double>(), packed_size(8));
  const CsrView<float> s{{at<int64_t>(), 5}, {at<int32_t>(), 6}, {at<float>(), 6}};
  const MatrixView<float> a(at<float>(), 8, 8);
  for (const RowForm form : {RowForm::sum, RowForm::difference, RowForm::repulsion}) {
    expect_no_device([&] {
      cuda::graph_rows<T>(out, at<double>(), z, z, s, {form, 1.0, Into::overwrite}, kScratch, nullptr);
    });
  }
  const Span<double> lse(at<double>(), 4);
  const LogSumExpTerms terms{lse, lse};
  expect_no_device([&] { cuda::row_logsumexp<T>(lse, z, z, {}, {}, kScratch, nullptr); });
  expect_no_device([&] { cuda::row_logsumexp_gradient<T>(out, z, z, {}, terms, terms, {}, kScratch, nullptr); });
  const NearestOut nearest{{at<int64_t>(), 4, 2}, {at<double>(), 4, 2}};
  for (const Metric metric : {Metric::cosine, Metric::euclidean}) {
    expect_no_device([&] { cuda::nearest<T>(nearest, z, {z, {}, {}}, {}, metric, kScratch, nullptr); });
  }
  const ImageView image{at<uint8_t>(), 4, 5, 3};
  const int64_t sample = 1;
  const ViewPolicy policy;
  AugmentOptions augment_options;
  augment_options.size = 8;
  expect_no_device([&] {
    cuda::augment<T>(at<T>(), {&image, 1}, {&sample, 1}, {&policy, 1}, augment_options, kScratch, nullptr);
  });
  const ImagePart part{image};
  const ViewParams params{.crop = {0, 0, 4, 5}};
  expect_no_device([&] {
    cuda::augment_parts<T>(at<T>(), {&part, 1}, {&params, 1}, augment_options, kScratch, nullptr);
  });
  expect_no_device([&] { cuda::center_view<T>(at<T>(), {&image, 1}, augment_options, kScratch, nullptr); });
  const MatrixView<double> sums(at<double>(), 2, 8);
  const Span<const int32_t> row_block(at<int32_t>(), 4);
  expect_no_device([&] { cuda::block_sums<T>(sums, z, row_block, kScratch, nullptr); });
  expect_no_device([&] { cuda::block_rows<T>(out, sums, row_block, 1.0, Into::add, nullptr); });
  expect_no_device([&] {
    cuda::block_differences<T>(out, at<double>(), z, sums, {at<double>(), 2}, row_block, 1.0, Into::add, kScratch,
                               nullptr);
  });
  expect_no_device([&] { cuda::column_sums<T>(mean, z, kScratch, nullptr); });
  expect_no_device([&] { cuda::centered_second_moment<T>(packed, z, mean, {}, kScratch, nullptr); });
  expect_no_device([&] { cuda::covariance_terms(a, at<double>(), at<double>(8), packed, 4, {}, kScratch, nullptr); });
  expect_no_device([&] { cuda::centered_product<T>(out, z, mean, a, Into::overwrite, nullptr); });
  expect_no_device([&] {
    cuda::gram_terms<T>(out, at<double>(), at<double>(8), z, mean, 0, {}, Into::overwrite, kScratch, nullptr);
  });
}

TEST(CudaLaunchers, ThrowWithoutADevice) {
  if (has_device()) GTEST_SKIP() << "there is a CUDA device";
  expect_no_device([] { cuda::csr_scratch_bytes<float>(4, 6); });
  expect_no_device([] {
    cuda::csr<float>({{at<int64_t>(), 5}, {at<int32_t>(), 12}, {at<float>(), 12}, {at<float>(), 4}, at<int64_t>()},
                     {{at<int32_t>(), 6}, {at<int32_t>(), 6}, {at<float>(), 6}}, 4, kScratch, nullptr);
  });
  expect_no_device([] {
    cuda::block_between({at<double>(64), 2, 8}, {at<double>(), 2}, at<double>(), {at<double>(), 2, 2},
                        {at<double>(), 2, 8}, {at<double>(), 2}, kScratch, nullptr);
  });
  expect_no_device([] {
    cuda::block_table({at<double>(64), 2, 8}, {at<double>(), 2, 2}, {at<double>(), 2, 8}, nullptr);
  });
  expect_no_device([] {
    cuda::nearest_merge({{at<int64_t>(), 2, 1}, {at<double>(), 2, 1}}, {at<int64_t>(), 4, 1}, {at<double>(), 4, 1}, 2,
                        Metric::cosine, nullptr);
  });
  all_of<float>();
  all_of<bf16>();
}

// Wrong arguments are named before CUDA is asked for anything.
TEST(CudaLaunchers, CheckTheirArguments) {
  const MatrixView<const float> z(at<float>(), 4, 8);
  const auto message = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const auto names = [&](const char* what, const std::function<void()>& f) {
    EXPECT_NE(message(f).find(what), std::string::npos) << message(f);
  };
  names("column_sums: sums", [&] { cuda::column_sums<float>({at<double>(), 7}, z, kScratch, nullptr); });
  names("column_sums: scratch", [&] { cuda::column_sums<float>({at<double>(), 8}, z, {memory, 1}, nullptr); });
  names("centered_product: a", [&] {
    cuda::centered_product<float>({at<float>(), 4, 8}, z, {at<double>(), 8}, {at<float>(), 8, 7}, Into::add, nullptr);
  });
  names("graph_rows: offsets", [&] {
    cuda::graph_rows<float>({}, at<double>(), z, z, {{at<int64_t>(), 4}, {}, {}}, {}, kScratch, nullptr);
  });
  names("block_rows: row_block", [&] {
    cuda::block_rows<float>({at<float>(), 4, 8}, {at<double>(), 2, 8}, {at<int32_t>(), 3}, 1.0, Into::add, nullptr);
  });
  names("augment: size", [&] { cuda::augment<float>(at<float>(), {}, {}, {}, {}, kScratch, nullptr); });
  names("row_logsumexp: temperature", [&] {
    cuda::row_logsumexp<float>({at<double>(), 4}, z, z, {}, {0.0, 1.0, Into::add}, kScratch, nullptr);
  });
  names("nearest: k", [&] {
    cuda::nearest<float>({{at<int64_t>(), 4, 65}, {at<double>(), 4, 65}}, z, {z, {}, {}}, {}, Metric::cosine, kScratch,
                         nullptr);
  });
  names("csr: j", [&] {
    cuda::csr<float>({{at<int64_t>(), 5}, {at<int32_t>(), 12}, {at<float>(), 12}, {at<float>(), 4}, at<int64_t>()},
                     {{at<int32_t>(), 6}, {at<int32_t>(), 5}, {}}, 4, kScratch, nullptr);
  });
}

}  // namespace
}  // namespace pal::kernels
