#include "launch/run/montage.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/data/image/jpeg.h"
#include "kernels/base/hash.h"

namespace pal::launch {
namespace {

// Letters of 5 x 7 dots, ASCII 32 to 126. A letter is five columns from left to right; bit 0 is the top row.
constexpr int kLetterWidth = 5, kLetterHeight = 8;  // with the descenders' row

constexpr uint8_t kLetters[95][5] = {{0x00, 0x00, 0x00, 0x00, 0x00}, {0x00, 0x00, 0x5F, 0x00, 0x00},
                                     {0x00, 0x07, 0x00, 0x07, 0x00}, {0x14, 0x7F, 0x14, 0x7F, 0x14},  //   ! " #
                                     {0x24, 0x2A, 0x7F, 0x2A, 0x12}, {0x23, 0x13, 0x08, 0x64, 0x62},
                                     {0x36, 0x49, 0x55, 0x22, 0x50}, {0x00, 0x05, 0x03, 0x00, 0x00},  // $ % & '
                                     {0x00, 0x1C, 0x22, 0x41, 0x00}, {0x00, 0x41, 0x22, 0x1C, 0x00},
                                     {0x14, 0x08, 0x3E, 0x08, 0x14}, {0x08, 0x08, 0x3E, 0x08, 0x08},  // ( ) * +
                                     {0x00, 0x50, 0x30, 0x00, 0x00}, {0x08, 0x08, 0x08, 0x08, 0x08},
                                     {0x00, 0x60, 0x60, 0x00, 0x00}, {0x20, 0x10, 0x08, 0x04, 0x02},  // , - . /
                                     {0x3E, 0x51, 0x49, 0x45, 0x3E}, {0x00, 0x42, 0x7F, 0x40, 0x00},
                                     {0x42, 0x61, 0x51, 0x49, 0x46}, {0x21, 0x41, 0x45, 0x4B, 0x31},  // 0 1 2 3
                                     {0x18, 0x14, 0x12, 0x7F, 0x10}, {0x27, 0x45, 0x45, 0x45, 0x39},
                                     {0x3C, 0x4A, 0x49, 0x49, 0x30}, {0x01, 0x71, 0x09, 0x05, 0x03},  // 4 5 6 7
                                     {0x36, 0x49, 0x49, 0x49, 0x36}, {0x06, 0x49, 0x49, 0x29, 0x1E},
                                     {0x00, 0x36, 0x36, 0x00, 0x00}, {0x00, 0x56, 0x36, 0x00, 0x00},  // 8 9 : ;
                                     {0x08, 0x14, 0x22, 0x41, 0x00}, {0x14, 0x14, 0x14, 0x14, 0x14},
                                     {0x00, 0x41, 0x22, 0x14, 0x08}, {0x02, 0x01, 0x51, 0x09, 0x06},  // < = > ?
                                     {0x32, 0x49, 0x79, 0x41, 0x3E}, {0x7E, 0x11, 0x11, 0x11, 0x7E},
                                     {0x7F, 0x49, 0x49, 0x49, 0x36}, {0x3E, 0x41, 0x41, 0x41, 0x22},  // @ A B C
                                     {0x7F, 0x41, 0x41, 0x22, 0x1C}, {0x7F, 0x49, 0x49, 0x49, 0x41},
                                     {0x7F, 0x09, 0x09, 0x09, 0x01}, {0x3E, 0x41, 0x49, 0x49, 0x7A},  // D E F G
                                     {0x7F, 0x08, 0x08, 0x08, 0x7F}, {0x00, 0x41, 0x7F, 0x41, 0x00},
                                     {0x20, 0x40, 0x41, 0x3F, 0x01}, {0x7F, 0x08, 0x14, 0x22, 0x41},  // H I J K
                                     {0x7F, 0x40, 0x40, 0x40, 0x40}, {0x7F, 0x02, 0x0C, 0x02, 0x7F},
                                     {0x7F, 0x04, 0x08, 0x10, 0x7F}, {0x3E, 0x41, 0x41, 0x41, 0x3E},  // L M N O
                                     {0x7F, 0x09, 0x09, 0x09, 0x06}, {0x3E, 0x41, 0x51, 0x21, 0x5E},
                                     {0x7F, 0x09, 0x19, 0x29, 0x46}, {0x46, 0x49, 0x49, 0x49, 0x31},  // P Q R S
                                     {0x01, 0x01, 0x7F, 0x01, 0x01}, {0x3F, 0x40, 0x40, 0x40, 0x3F},
                                     {0x1F, 0x20, 0x40, 0x20, 0x1F}, {0x3F, 0x40, 0x38, 0x40, 0x3F},  // T U V W
                                     {0x63, 0x14, 0x08, 0x14, 0x63}, {0x07, 0x08, 0x70, 0x08, 0x07},
                                     {0x61, 0x51, 0x49, 0x45, 0x43}, {0x00, 0x7F, 0x41, 0x41, 0x00},  // X Y Z [
                                     {0x02, 0x04, 0x08, 0x10, 0x20}, {0x00, 0x41, 0x41, 0x7F, 0x00},
                                     {0x04, 0x02, 0x01, 0x02, 0x04}, {0x40, 0x40, 0x40, 0x40, 0x40},  // \ ] ^ _
                                     {0x00, 0x01, 0x02, 0x04, 0x00}, {0x20, 0x54, 0x54, 0x54, 0x78},
                                     {0x7F, 0x48, 0x44, 0x44, 0x38}, {0x38, 0x44, 0x44, 0x44, 0x20},  // ` a b c
                                     {0x38, 0x44, 0x44, 0x48, 0x7F}, {0x38, 0x54, 0x54, 0x54, 0x18},
                                     {0x08, 0x7E, 0x09, 0x01, 0x02}, {0x18, 0xA4, 0xA4, 0xA4, 0x7C},  // d e f g
                                     {0x7F, 0x08, 0x04, 0x04, 0x78}, {0x00, 0x44, 0x7D, 0x40, 0x00},
                                     {0x40, 0x80, 0x84, 0x7D, 0x00}, {0x7F, 0x10, 0x28, 0x44, 0x00},  // h i j k
                                     {0x00, 0x41, 0x7F, 0x40, 0x00}, {0x7C, 0x04, 0x18, 0x04, 0x78},
                                     {0x7C, 0x08, 0x04, 0x04, 0x78}, {0x38, 0x44, 0x44, 0x44, 0x38},  // l m n o
                                     {0xFC, 0x24, 0x24, 0x24, 0x18}, {0x18, 0x24, 0x24, 0x28, 0xFC},
                                     {0x7C, 0x08, 0x04, 0x04, 0x08}, {0x48, 0x54, 0x54, 0x54, 0x20},  // p q r s
                                     {0x04, 0x3F, 0x44, 0x40, 0x20}, {0x3C, 0x40, 0x40, 0x20, 0x7C},
                                     {0x1C, 0x20, 0x40, 0x20, 0x1C}, {0x3C, 0x40, 0x30, 0x40, 0x3C},  // t u v w
                                     {0x44, 0x28, 0x10, 0x28, 0x44}, {0x1C, 0xA0, 0xA0, 0xA0, 0x7C},
                                     {0x44, 0x64, 0x54, 0x4C, 0x44}, {0x00, 0x08, 0x36, 0x41, 0x00},  // x y z {
                                     {0x00, 0x00, 0x7F, 0x00, 0x00}, {0x00, 0x41, 0x36, 0x08, 0x00},
                                     {0x08, 0x04, 0x08, 0x10, 0x08}};  // | } ~

constexpr int32_t kMargin = 6, kTextHeight = 14;
constexpr uint8_t kBackground = 250, kInk = 30;

void paste(data::Picture& onto, const data::Picture& picture, int32_t top, int32_t left) {
  for (int32_t y = 0; y < picture.height; ++y) {
    const auto row = picture.pixels.begin() + ptrdiff_t{y} * picture.width * 3;
    std::copy(row, row + ptrdiff_t{picture.width} * 3,
              onto.pixels.begin() + (ptrdiff_t{top + y} * onto.width + left) * 3);
  }
}

// Latin letters from U+00C0 to U+017F without their accents; a letter of two is followed by its second one.
constexpr const char* kLatin[] = {
    "A",  "A", "A",  "A", "Ae", "A", "AE", "C",  "E",  "E", "E",  "E",  "I", "I", "I",  "I",  "D",  "N", "O",  "O",
    "O",  "O", "Oe", "x", "O",  "U", "U",  "U",  "Ue", "Y", "Th", "ss", "a", "a", "a",  "a",  "ae", "a", "ae", "c",
    "e",  "e", "e",  "e", "i",  "i", "i",  "i",  "d",  "n", "o",  "o",  "o", "o", "oe", "/",  "o",  "u", "u",  "u",
    "ue", "y", "th", "y", "A",  "a", "A",  "a",  "A",  "a", "C",  "c",  "C", "c", "C",  "c",  "C",  "c", "D",  "d",
    "D",  "d", "E",  "e", "E",  "e", "E",  "e",  "E",  "e", "E",  "e",  "G", "g", "G",  "g",  "G",  "g", "G",  "g",
    "H",  "h", "H",  "h", "I",  "i", "I",  "i",  "I",  "i", "I",  "i",  "I", "i", "IJ", "ij", "J",  "j", "K",  "k",
    "k",  "L", "l",  "L", "l",  "L", "l",  "L",  "l",  "L", "l",  "N",  "n", "N", "n",  "N",  "n",  "n", "N",  "n",
    "O",  "o", "O",  "o", "O",  "o", "OE", "oe", "R",  "r", "R",  "r",  "R", "r", "S",  "s",  "S",  "s", "S",  "s",
    "S",  "s", "T",  "t", "T",  "t", "T",  "t",  "U",  "u", "U",  "u",  "U", "u", "U",  "u",  "U",  "u", "U",  "u",
    "W",  "w", "Y",  "y", "Y",  "Z", "z",  "Z",  "z",  "Z", "z",  "s"};
static_assert(std::size(kLatin) == 0x180 - 0xC0);

// As many letters as fit into `room` pixels; the last ones become dots when not all do.
void draw_text(data::Picture& onto, std::string text, int32_t top, int32_t left, int32_t room) {
  text = montage_text(text);
  const auto fit = static_cast<size_t>(room / (kLetterWidth + 1));
  if (text.size() > fit) text = text.substr(0, fit - 2) + "..";
  for (const char c : text) {
    const uint8_t* columns = kLetters[static_cast<unsigned char>(c) - 32];
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

std::string montage_text(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    uint32_t letter = length == 1 ? byte : byte & (0x7Fu >> length);
    for (size_t k = 1; k < length && i + k < text.size(); ++k)
      letter = letter << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    i += length;
    if (letter >= 0x20 && letter < 0x7F)
      out += static_cast<char>(letter);
    else if (letter >= 0xC0 && letter < 0x180)
      out += kLatin[letter - 0xC0];
    else
      out += fmt::format("U+{:04X} ", letter);
  }
  return out;
}

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
  // The k-th drawn of each class in turn, until there are enough. Without labels all samples are one class.
  std::vector<std::vector<int64_t>> by_class(data.classes().size() + 1);
  for (int64_t i = 0; i < data.size(); ++i)
    by_class[data.labels().empty() ? 0 : static_cast<size_t>(data.labels()[static_cast<size_t>(i)] + 1)].push_back(i);
  std::erase_if(by_class, [](const auto& samples) { return samples.empty(); });
  for (std::vector<int64_t>& samples : by_class) {
    std::sort(samples.begin(), samples.end(), [](int64_t a, int64_t b) {
      return std::pair(mix(1, static_cast<uint64_t>(a)), a) < std::pair(mix(1, static_cast<uint64_t>(b)), b);
    });
  }
  const auto classes = static_cast<int64_t>(by_class.size());
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
