// png: calls libpng. As in jpeg.cpp its errors leave by longjmp: between setjmp and libpng there
// are plain values only, and the Error is thrown after the jump.
#include "core/data/image/png.h"

#include <png.h>

#include <csetjmp>
#include <cstring>

#include "kernels/base/error.h"

namespace pal::data {
namespace {

constexpr size_t kHeaderBytes = 33;  // signature and IHDR

struct PngMemory {
  const uint8_t* data;
  size_t bytes;
  size_t at = 0;
  bool cut = false;
  char words[128] = "";
};

void read_png_memory(png_structp png, png_bytep out, size_t bytes) {
  auto* memory = static_cast<PngMemory*>(png_get_io_ptr(png));
  if (memory->bytes - memory->at < bytes) {
    memory->cut = true;
    png_error(png, "it is cut off");
  }
  std::memcpy(out, memory->data + memory->at, bytes);
  memory->at += bytes;
}

[[noreturn]] void jump_from_png(png_structp png, png_const_charp words) {
  auto* memory = static_cast<PngMemory*>(png_get_error_ptr(png));
  std::strncpy(memory->words, words, sizeof memory->words - 1);
  png_longjmp(png, 1);
}

// Rows of `channels` (2 and 4: with alpha) 8-bit values, through libpng's transformations.
void start_png(png_structp png, png_infop info, PngMemory* memory) {
  png_set_read_fn(png, memory, read_png_memory);
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);  // png_header has checked the size
  png_set_chunk_malloc_max(png, 8 << 20);
  png_read_info(png, info);
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

// The channels of the rows that were read; 0: libpng failed, and memory holds its message.
[[gnu::noinline]] size_t read_png(PngMemory& memory, size_t width, std::vector<png_bytep>& rows,
                                  std::vector<uint8_t>& pixels) {
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &memory, jump_from_png, [](png_structp, png_const_charp) {});
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  PAL_ASSERT(info != nullptr, "libpng cannot be used");
  if (setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, &info, nullptr);
    return 0;
  }
  start_png(png, info, &memory);
  const size_t channels = png_get_channels(png, info), stride = channels * width;
  if (png_get_rowbytes(png, info) != stride || channels < 1 || channels > 4)
    png_error(png, "rows of an unexpected length");
  pixels.resize(stride * rows.size());
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * stride;
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  return channels;
}

// Over white, in place: n pixels of `channels` with alpha to one less.
void flatten_alpha(uint8_t* pixels, size_t n, size_t channels) {
  uint8_t* out = pixels;
  for (size_t i = 0; i < n; ++i, pixels += channels) {
    const int alpha = pixels[channels - 1];
    for (size_t c = 0; c + 1 < channels; ++c)
      *out++ = static_cast<uint8_t>((pixels[c] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
}

uint32_t big_endian_at(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

}  // namespace

bool is_png(const uint8_t* data, size_t bytes) { return bytes >= 8 && std::memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0; }

PngHeader inspect_png(const uint8_t* data, size_t bytes, const ImageLimits& limits) {
  PAL_DATA_CHECK(is_png(data, bytes), "not a PNG file", "it has no PNG signature", "leave the image out");
  PAL_DATA_CHECK(bytes > kHeaderBytes && std::memcmp(data + 12, "IHDR", 4) == 0, "cut PNG file",
                 std::to_string(bytes) + " bytes", "copy it again from its source");
  const int64_t width = big_endian_at(data + 16), height = big_endian_at(data + 20);
  check_image_size(height, width, limits);
  // Deflate makes a byte of at most 1032: a small file cannot hold a huge picture.
  PAL_DATA_CHECK(width * height / 8 <= 1100 * static_cast<int64_t>(bytes),
                 "the header claims a picture that the file cannot hold",
                 std::to_string(width) + " x " + std::to_string(height) + " in " + std::to_string(bytes) + " bytes",
                 "leave the image out");
  PngHeader header;
  header.width = static_cast<int32_t>(width);
  header.height = static_cast<int32_t>(height);
  header.bits = data[24];
  const int type = data[25];
  header.channels = (type & PNG_COLOR_MASK_COLOR) ? 3 : 1;
  header.transparent = (type & PNG_COLOR_MASK_ALPHA) != 0;
  return header;
}

PngHeader decode_png(const uint8_t* data, size_t bytes, std::vector<uint8_t>& pixels, const ImageLimits& limits) {
  PngHeader header = inspect_png(data, bytes, limits);
  PngMemory memory{data, bytes};
  std::vector<png_bytep> rows(static_cast<size_t>(header.height));
  const size_t channels = read_png(memory, static_cast<size_t>(header.width), rows, pixels);
  if (channels == 0) {
    throw Error(Exit::data, std::string(memory.cut ? "cut PNG file: " : "damaged PNG file: ") + memory.words +
                                "; leave the image out");
  }
  header.transparent = channels % 2 == 0;
  header.channels = channels < 3 ? 1 : 3;
  const size_t count = rows.size() * static_cast<size_t>(header.width);
  if (header.transparent) flatten_alpha(pixels.data(), count, channels);
  pixels.resize(count * static_cast<size_t>(header.channels));
  return header;
}

std::vector<uint8_t> encode_png(const uint8_t* pixels, int32_t height, int32_t width, int channels) {
  std::vector<uint8_t> file;
  PngMemory memory{nullptr, 0};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &memory, jump_from_png, nullptr);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  PAL_ASSERT(info != nullptr, "libpng cannot be used");
  if (setjmp(png_jmpbuf(png))) {
    png_destroy_write_struct(&png, &info);
    throw Error(Exit::data, std::string("cannot be written as PNG: ") + memory.words + "; make it smaller");
  }
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep data, size_t n) {
        auto* out = static_cast<std::vector<uint8_t>*>(png_get_io_ptr(p));
        out->insert(out->end(), data, data + n);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8,
               channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (int32_t y = 0; y < height; ++y) png_write_row(png, pixels + size_t(y) * size_t(width) * size_t(channels));
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

}  // namespace pal::data
