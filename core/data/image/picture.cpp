#include "core/data/image/picture.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/error.h"

#if defined(__x86_64__)
#include <smmintrin.h>
#endif

namespace pal::data {
namespace {

// Output x of an axis is Σ_j weights[x · taps + j] · input[first[x] + j], in 1/2^14: weights of 16 bits, which every
// vector unit multiplies.
struct Axis {
  int32_t taps = 1;
  std::vector<int32_t> first;
  std::vector<int16_t> weights;
};
constexpr int kShift = 14;

// With at least `taps` of them where there are as many inputs: those too many weigh 0.
Axis triangle_axis(int32_t from, int32_t to, int32_t taps = 1) {
  const double scale = static_cast<double>(from) / to, support = std::max(scale, 1.0);
  Axis axis;
  axis.taps = std::min(from, std::max(taps, static_cast<int32_t>(std::floor(2 * support)) +
                                                1));  // centers inside an interval of 2 · support
  for (int32_t x = 0; x < to; ++x) {
    const double center = (x + 0.5) * scale;
    const int32_t first = std::clamp(static_cast<int32_t>(std::floor(center - support + 0.5)), 0, from - axis.taps);
    std::vector<double> weights(static_cast<size_t>(axis.taps));
    double sum = 0;
    for (int32_t j = 0; j < axis.taps; ++j) {
      weights[size_t(j)] = std::max(0.0, 1 - std::abs(first + j + 0.5 - center) / support);
      sum += weights[size_t(j)];
    }
    int32_t left = 1 << kShift;  // the weights add up to one exactly: a plain picture stays plain
    for (double& w : weights) {
      const auto fixed = static_cast<int32_t>(std::lround(w / sum * (1 << kShift)));
      left -= fixed;
      axis.weights.push_back(static_cast<int16_t>(fixed));
    }
    const auto largest = static_cast<size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
    int16_t& heaviest = axis.weights[size_t(x) * size_t(axis.taps) + largest];
    heaviest = static_cast<int16_t>(heaviest + left);
    axis.first.push_back(first);
  }
  return axis;
}

uint8_t to_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp((sum + (1 << (kShift - 1))) >> kShift, 0, 255)); }

// kTaps 0: any number. Few taps, known to the compiler, have weights from 0 to 1: nothing needs to be cut off. Bytes
// may alias anything, so __restrict excludes it.
template <int kTaps>
uint8_t rounded(int32_t sum) {
  return kTaps > 0 ? static_cast<uint8_t>((sum + (1 << (kShift - 1))) >> kShift) : to_byte(sum);
}

// A row of n bytes from the rows at `source`, `stride` apart.
template <int kTaps>
void blend_rows(uint8_t* __restrict to, const uint8_t* __restrict source, size_t stride,
                const int16_t* __restrict weights, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    int32_t sum = 0;
    for (int j = 0; j < kTaps; ++j) sum += weights[j] * static_cast<int16_t>(source[size_t(j) * stride + i]);
    to[i] = rounded<kTaps>(sum);
  }
}
void blend_any_rows(uint8_t* __restrict to, const uint8_t* __restrict source, size_t stride,
                    const int16_t* __restrict weights, int32_t taps, size_t n, int32_t* __restrict sums) {
  std::fill_n(sums, n, 0);
  for (int32_t j = 0; j < taps; ++j) {  // along contiguous rows first
    const uint8_t* row = source + size_t(j) * stride;
    for (size_t i = 0; i < n; ++i) sums[i] += weights[j] * static_cast<int16_t>(row[i]);
  }
  for (size_t i = 0; i < n; ++i) to[i] = to_byte(sums[i]);
}

// The outputs [begin, end) of a row.
template <int kChannels, int kTaps>
void resample_row(uint8_t* __restrict to, const uint8_t* __restrict row, const Axis& axis, int32_t begin, int32_t end) {
  const int32_t taps = kTaps > 0 ? kTaps : axis.taps;
  const int16_t* __restrict weights = axis.weights.data() + size_t(begin) * size_t(taps);
  const int32_t* __restrict first = axis.first.data();
  to += size_t(begin) * kChannels;
  for (int32_t x = begin; x < end; ++x, weights += taps, to += kChannels) {
    const uint8_t* source = row + size_t(first[x]) * kChannels;
    int32_t sum[kChannels] = {};
    for (int32_t j = 0; j < taps; ++j) {
      for (int c = 0; c < kChannels; ++c) sum[c] += weights[j] * source[j * kChannels + c];
    }
    for (int c = 0; c < kChannels; ++c) to[c] = rounded<kTaps>(sum[c]);
  }
}

#if defined(__x86_64__)
constexpr size_t kRowEnd = 4;  // bytes read behind a row: a load of 16 takes four pixels and more

// Four taps, RGB: a pixel's three sums side by side. Writes a byte behind each pixel, so not the last one.
__attribute__((target("sse4.1"))) int32_t resample_rgb_sse41(uint8_t* to, const uint8_t* row, const Axis& axis,
                                                             int32_t width) {
  const __m128i first_two = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
  const __m128i last_two = _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const __m128i half = _mm_set1_epi32(1 << (kShift - 1));
  for (int32_t x = 0; x + 1 < width; ++x, to += 3) {
    const __m128i pixels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + size_t(axis.first[size_t(x)]) * 3));
    const __m128i weights = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(axis.weights.data() + size_t(x) * 4));
    const __m128i left = _mm_madd_epi16(_mm_shuffle_epi8(pixels, first_two), _mm_shuffle_epi32(weights, 0x00));
    const __m128i right = _mm_madd_epi16(_mm_shuffle_epi8(pixels, last_two), _mm_shuffle_epi32(weights, 0x55));
    const __m128i sums = _mm_srai_epi32(_mm_add_epi32(_mm_add_epi32(left, right), half), kShift);
    const int32_t rgb = _mm_cvtsi128_si32(_mm_packus_epi16(_mm_packus_epi32(sums, sums), sums));
    std::memcpy(to, &rgb, 4);
  }
  return width - 1;
}
#else
constexpr size_t kRowEnd = 0;
#endif

template <int kChannels>
void resample_row(uint8_t* to, const uint8_t* row, const Axis& axis, int32_t width) {
  if (axis.taps != 4) return resample_row<kChannels, 0>(to, row, axis, 0, width);
  int32_t done = 0;
#if defined(__x86_64__)
  if (kChannels == 3 && __builtin_cpu_supports("sse4.1")) done = resample_rgb_sse41(to, row, axis, width);
#endif
  resample_row<kChannels, 4>(to, row, axis, done, width);
}

}  // namespace

Picture turn_upright(const Picture& picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return picture;
  const bool sideways = orientation >= 5;
  const bool upside_down =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;  // axes of the source
  const bool mirrored = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Picture out;
  out.channels = picture.channels;
  out.height = sideways ? picture.width : picture.height;
  out.width = sideways ? picture.height : picture.width;
  out.pixels.resize(picture.pixels.size());
  const auto channels = static_cast<size_t>(picture.channels);
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      int32_t from_y = sideways ? x : y, from_x = sideways ? y : x;
      if (upside_down) from_y = picture.height - 1 - from_y;
      if (mirrored) from_x = picture.width - 1 - from_x;
      const size_t from = (size_t(from_y) * size_t(picture.width) + size_t(from_x)) * channels;
      std::copy_n(picture.pixels.begin() + static_cast<ptrdiff_t>(from), channels,
                  out.pixels.begin() + static_cast<ptrdiff_t>((size_t(y) * size_t(out.width) + size_t(x)) * channels));
    }
  }
  return out;
}

Picture resize_picture(const Picture& picture, int32_t height, int32_t width) {
  PAL_ASSERT(height > 0 && width > 0, "a picture without pixels");
  PAL_ASSERT(picture.channels == 1 || picture.channels == 3, "a picture is gray or RGB");
  Picture out;
  out.channels = picture.channels;
  out.height = height;
  out.width = width;
  out.pixels.resize(size_t(height) * size_t(width) * size_t(picture.channels));
  const Axis xs = triangle_axis(picture.width, width, 4), ys = triangle_axis(picture.height, height);
  const auto channels = static_cast<size_t>(picture.channels), stride = size_t(picture.width) * channels;
  std::vector<int32_t> sums(stride);
  std::vector<uint8_t> row(stride + kRowEnd);
  for (int32_t y = 0; y < height; ++y) {
    const uint8_t* source = picture.pixels.data() + size_t(ys.first[size_t(y)]) * stride;
    const int16_t* weights = ys.weights.data() + size_t(y) * size_t(ys.taps);
    if (ys.taps == 3)
      blend_rows<3>(row.data(), source, stride, weights, stride);
    else if (ys.taps == 4)
      blend_rows<4>(row.data(), source, stride, weights, stride);
    else
      blend_any_rows(row.data(), source, stride, weights, ys.taps, stride, sums.data());
    uint8_t* to = out.pixels.data() + size_t(y) * size_t(width) * channels;
    channels == 3 ? resample_row<3>(to, row.data(), xs, width) : resample_row<1>(to, row.data(), xs, width);
  }
  return out;
}

void shorter_side_size(int32_t height, int32_t width, int32_t shorter, int32_t* new_height, int32_t* new_width) {
  const auto longer = [&](int32_t a, int32_t b) { return static_cast<int32_t>((int64_t{a} * shorter + b / 2) / b); };
  *new_height = height <= width ? shorter : longer(height, width);
  *new_width = width <= height ? shorter : longer(width, height);
}

}  // namespace pal::data
