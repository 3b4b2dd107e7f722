#include "core/data/import/image_converter.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "core/data/image/png.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

struct Magic {
  const char* format;
  size_t at;
  std::string_view bytes;
};
using namespace std::string_view_literals;
constexpr Magic kMagics[] = {{"JPEG", 0, "\xFF\xD8\xFF"sv},
                             {"PNG", 0, "\x89PNG\r\n\x1a\n"sv},
                             {"GIF", 0, "GIF8"sv},
                             {"BMP", 0, "BM"sv},
                             {"TIFF", 0, "II*\0"sv},
                             {"TIFF", 0, "MM\0*"sv},
                             {"WebP", 8, "WEBP"sv},
                             {"AVIF", 4, "ftypavif"sv},
                             {"HEIC", 4, "ftyphei"sv},
                             {"HEIC", 4, "ftypmif1"sv},
                             {"JPEG 2000", 4, "jP  \r\n\x87\n"sv},
                             {"JPEG XL", 4, "JXL \r\n\x87\n"sv},
                             {"JPEG XL", 0, "\xFF\x0A"sv},
                             {"Photoshop", 0, "8BPS"sv},
                             {"PDF", 0, "%PDF"sv},
                             {"netpbm", 0, "P6"sv},
                             {"netpbm", 0, "P5"sv},
                             {"ICO", 0, "\0\0\1\0"sv}};

struct NameOf {
  std::string_view ending;
  const char* format;
};
constexpr NameOf kNames[] = {{"jpg", "JPEG"},   {"jpeg", "JPEG"},     {"jpe", "JPEG"},    {"jfif", "JPEG"},
                             {"png", "PNG"},    {"gif", "GIF"},       {"bmp", "BMP"},     {"tif", "TIFF"},
                             {"tiff", "TIFF"},  {"webp", "WebP"},     {"avif", "AVIF"},   {"heic", "HEIC"},
                             {"heif", "HEIC"},  {"jp2", "JPEG 2000"}, {"jxl", "JPEG XL"}, {"psd", "Photoshop"},
                             {"ppm", "netpbm"}, {"pgm", "netpbm"},    {"ico", "ICO"}};

std::string ending_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  std::string ending(name.substr(dot + 1));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

std::string format_of_name(std::string_view name) {
  const std::string ending = ending_of(name);
  for (const NameOf& known : kNames) {
    if (known.ending == ending) return known.format;
  }
  return "";
}

Picture to_gray(const Picture& picture) {  // of a picture whose channels are equal
  Picture gray{picture.height, picture.width, 1, {}};
  gray.pixels.resize(picture.pixels.size() / 3);
  for (size_t i = 0; i < gray.pixels.size(); ++i) gray.pixels[i] = picture.pixels[3 * i];
  return gray;
}

Picture to_color(const Picture& picture) {
  Picture color{picture.height, picture.width, 3, {}};
  for (const uint8_t value : picture.pixels) color.pixels.insert(color.pixels.end(), 3, value);
  return color;
}

}  // namespace

const char* treatment_name(Treatment treatment) {
  constexpr const char* kTreatments[] = {"kept", "converted", "left out"};
  return kTreatments[static_cast<int>(treatment)];
}

std::string image_format(const uint8_t* data, size_t bytes) {
  for (const Magic& magic : kMagics) {
    if (bytes >= magic.at + magic.bytes.size() &&
        std::memcmp(data + magic.at, magic.bytes.data(), magic.bytes.size()) == 0)
      return magic.format;
  }
  return "";
}

bool has_image_name(std::string_view name) { return !format_of_name(name).empty(); }

ConvertedImage ImageConverter::take(std::vector<uint8_t> file, std::string_view name) {
  ConvertedImage out;
  try {
    PAL_DATA_CHECK(!file.empty(), "file without bytes", "0", "copy it again from its source");
    const std::string format = image_format(file.data(), file.size()), named = format_of_name(name);
    PAL_DATA_CHECK(!format.empty(), "unknown image format", "its first bytes match no format", "leave it out");
    PAL_DATA_CHECK(format == "JPEG" || format == "PNG", format + " is not read", std::string(name),
                   "convert it to JPEG or PNG");
    if (!named.empty() && named != format) out.oddities.push_back({Treatment::kept, format + " named as " + named});
    if (format == "JPEG")
      convert_jpeg(std::move(file), out);
    else
      convert_png(file, out);
  } catch (const Error& error) {
    if (error.code() != Exit::data) throw;
    out.bytes.clear();
    out.oddities.push_back({Treatment::left_out, error.what()});
  }
  return out;
}

void ImageConverter::convert_jpeg(std::vector<uint8_t> file, ConvertedImage& out) {
  const JpegHeader header = inspect_jpeg(file.data(), file.size(), JpegWalk::whole, options_.limits);
  const int32_t shorter = std::min(header.height, header.width), wanted = options_.resize_shorter;
  if (header.end < file.size()) out.oddities.push_back({Treatment::kept, "bytes behind the end of a JPEG file"});
  if (header.height == 1 && header.width == 1) out.oddities.push_back({Treatment::kept, "1x1 image"});
  if (header.components == 1) out.oddities.push_back({Treatment::kept, "gray JPEG file"});
  if (header.components == 4) out.oddities.push_back({Treatment::converted, "CMYK JPEG file"});
  if (header.orientation != 1) out.oddities.push_back({Treatment::converted, "Exif rotation"});
  const bool smaller = wanted > 0 && shorter > wanted;
  if (!smaller && header.components != 4 && header.orientation == 1 && options_.encoding == Encoding::jpeg) {
    out.bytes = std::move(file);
    return;
  }
  JpegPart part;
  if (smaller) {
    while (part.eighths > 1 && scaled_side(shorter, part.eighths - 1) >= wanted) --part.eighths;
  }
  Picture picture;
  const DecodedJpeg decoded = decoder_.decode(file.data(), file.size(), part, picture.pixels);
  PAL_DATA_CHECK(decoded.warning.empty(), "damaged JPEG data", decoded.warning, "copy it again from its source");
  picture.height = decoded.height;
  picture.width = decoded.width;
  if (smaller) {  // by the size of the file, not of its scaled decode
    int32_t height = 0, width = 0;
    shorter_side_size(header.height, header.width, wanted, &height, &width);
    picture = resize_picture(picture, height, width);
  }
  store(header.components == 1 ? to_gray(picture) : std::move(picture), header.orientation, out);
}

void ImageConverter::convert_png(const std::vector<uint8_t>& file, ConvertedImage& out) {
  Picture picture;
  const PngHeader header = decode_png(file.data(), file.size(), picture.pixels, options_.limits);
  picture.height = header.height;
  picture.width = header.width;
  picture.channels = header.channels;
  if (header.height == 1 && header.width == 1) out.oddities.push_back({Treatment::kept, "1x1 image"});
  if (header.bits == 16) out.oddities.push_back({Treatment::converted, "16-bit PNG file"});
  if (header.transparent) out.oddities.push_back({Treatment::converted, "PNG file with transparency"});
  if (options_.encoding == Encoding::jpeg) out.oddities.push_back({Treatment::converted, "PNG file"});
  const int32_t shorter = std::min(header.height, header.width);
  if (options_.resize_shorter > 0 && shorter > options_.resize_shorter) {
    int32_t height = 0, width = 0;
    shorter_side_size(header.height, header.width, options_.resize_shorter, &height, &width);
    picture = resize_picture(picture, height, width);
  }
  store(std::move(picture), 1, out);
}

void ImageConverter::store(Picture picture, int orientation, ConvertedImage& out) {
  if (orientation != 1) picture = turn_upright(picture, orientation);
  if (options_.encoding == Encoding::jpeg) {
    const Chroma chroma = options_.quality >= 90 ? Chroma::full : Chroma::halved;
    out.bytes =
        encode_jpeg(picture.pixels.data(), picture.height, picture.width, picture.channels, options_.quality, chroma);
    return;
  }
  if (picture.channels == 1 && options_.shape[2] == 3) picture = to_color(picture);
  const bool fits = picture.height == options_.shape[0] && picture.width == options_.shape[1] &&
                    picture.channels == options_.shape[2];
  PAL_DATA_CHECK(
      fits, "another size than the rest of the data set",
      std::to_string(picture.width) + " x " + std::to_string(picture.height) + " x " + std::to_string(picture.channels),
      "raw pixels need one size; import with --store jpeg");
  out.bytes = std::move(picture.pixels);
}

}  // namespace pal::data
