#include "launch/run/montage.h"

#include <algorithm>
#include <string>

#include "core/data/image/jpeg.h"
#include "launch/run/font.h"

namespace pal::launch {
namespace {

constexpr int32_t kMargin = 6, kTextHeight = 14;
constexpr uint8_t kBackground = 250, kInk = 30;

void paste(data::Picture& onto, const data::Picture& picture, int32_t top, int32_t left) {
  for (int32_t y = 0; y < picture.height; ++y) {
    const auto row = picture.pixels.begin() + ptrdiff_t{y} * picture.width * 3;
    std::copy(row, row + ptrdiff_t{picture.width} * 3,
              onto.pixels.begin() + (ptrdiff_t{top + y} * onto.width + left) * 3);
  }
}

// As many letters as fit into `room` pixels; the last ones become dots when not all do.
void draw_text(data::Picture& onto, std::string text, int32_t top, int32_t left, int32_t room) {
  const auto fit = static_cast<size_t>(room / (kLetterWidth + 1));
  if (text.size() > fit) text = text.substr(0, fit - 2) + "..";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x80 && code < 0xC0) continue;  // the rest of a letter beyond ASCII, whose first byte became '?'
    const uint8_t* columns = kLetters[(code < 32 || code > 126 ? '?' : code) - 32];
    for (int32_t x = 0; x < kLetterWidth; ++x) {
      for (int32_t y = 0; y < kLetterHeight; ++y) {
        if (columns[x] >> y & 1)
          std::fill_n(onto.pixels.begin() + (ptrdiff_t{top + y} * onto.width + left + x) * 3, 3, kInk);
      }
    }
    left += kLetterWidth + 1;
  }
}

}  // namespace

data::Picture sample_picture(const data::Dataset& data, int64_t sample) {
  data::JpegDecoder decoder;
  std::vector<uint8_t> bytes;
  data.read(sample, bytes);
  data::Picture picture;
  if (data.encoding() == data::Encoding::jpeg) {
    const data::DecodedJpeg decoded = decoder.decode(bytes, picture.pixels);
    picture.height = decoded.height;
    picture.width = decoded.width;
    return picture;
  }
  const kernels::ImageView view = data.image(sample, bytes);
  picture.height = view.height;
  picture.width = view.width;
  for (size_t i = 0; i < bytes.size(); ++i)
    picture.pixels.insert(picture.pixels.end(), view.channels == 1 ? 3 : 1, bytes[i]);
  return picture;
}

std::vector<int64_t> montage_samples(const data::Dataset& data, int64_t count) {
  count = std::min(count, data.size());
  std::vector<int64_t> chosen;
  for (int64_t k = 0; k < count; ++k) chosen.push_back(k * data.size() / count);
  if (data.labels().empty()) return chosen;
  // The k-th of each class in turn, until there are enough.
  std::vector<std::vector<int64_t>> by_class(data.classes().size() + 1);
  for (int64_t i = 0; i < data.size(); ++i)
    by_class[static_cast<size_t>(data.labels()[static_cast<size_t>(i)] + 1)].push_back(i);
  std::erase_if(by_class, [](const auto& samples) { return samples.empty(); });
  const auto classes = static_cast<int64_t>(by_class.size());
  chosen.clear();
  for (int64_t k = 0; static_cast<int64_t>(chosen.size()) < count; ++k) {
    const int64_t stride = std::max<int64_t>(classes / count, 1);  // more classes than cells: some of them
    for (int64_t c = 0; c < classes && static_cast<int64_t>(chosen.size()) < count; c += stride) {
      const auto& samples = by_class[static_cast<size_t>(c)];
      if (k < static_cast<int64_t>(samples.size())) chosen.push_back(samples[static_cast<size_t>(k)]);
    }
    if (k > data.size()) break;  // the strided classes have no more
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

data::Picture make_montage(const data::Dataset& data, const MontageOptions& options) {
  const std::vector<int64_t> samples = montage_samples(data, int64_t{options.columns} * options.rows);
  const int32_t columns = std::min<int32_t>(options.columns, static_cast<int32_t>(samples.size()));
  const int32_t rows = (static_cast<int32_t>(samples.size()) + columns - 1) / columns;
  const int32_t step_x = options.cell + kMargin, step_y = options.cell + kTextHeight + kMargin;
  data::Picture out;
  out.height = rows * step_y + kMargin;
  out.width = columns * step_x + kMargin;
  out.pixels.assign(size_t(out.height) * size_t(out.width) * 3, kBackground);
  for (size_t k = 0; k < samples.size(); ++k) {
    const int32_t top = static_cast<int32_t>(k) / columns * step_y + kMargin,
                  left = static_cast<int32_t>(k) % columns * step_x + kMargin;
    data::Picture picture = sample_picture(data, samples[k]);
    const int32_t longer = std::max(picture.height, picture.width);
    const auto side = [&](int32_t n) {
      return std::max(1, static_cast<int32_t>((int64_t{n} * options.cell + longer / 2) / longer));
    };
    picture = data::resize_picture(picture, side(picture.height), side(picture.width));
    paste(out, picture, top + (options.cell - picture.height) / 2, left + (options.cell - picture.width) / 2);
    const int64_t label = data.labels().empty() ? -1 : data.labels()[static_cast<size_t>(samples[k])];
    draw_text(out, label >= 0 ? data.classes()[static_cast<size_t>(label)] : data.id(samples[k]),
              top + options.cell + 3, left, options.cell);
  }
  return out;
}

}  // namespace pal::launch
