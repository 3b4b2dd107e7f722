// jpeg: calls libjpeg-turbo. Its errors leave by longjmp, which must not pass a C++ destructor:
// so the functions between setjmp and libjpeg hold plain values only, and the Error is thrown after the jump.
#include "core/data/image/jpeg.h"

#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include "kernels/base/error.h"

namespace pal::data {
namespace {

// The first member is libjpeg's own error manager.
struct JumpOnError {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char warning[JMSG_LENGTH_MAX];
  const char* reason;  // of an error found here; null: libjpeg has the message

  void install(jpeg_common_struct* codec) {
    codec->err = jpeg_std_error(&manager);
    manager.error_exit = [](j_common_ptr c) { std::longjmp(reinterpret_cast<JumpOnError*>(c->err)->jump, 1); };
    manager.emit_message = [](j_common_ptr c, int level) {
      if (level < 0 && c->err->num_warnings++ == 0)
        c->err->format_message(c, reinterpret_cast<JumpOnError*>(c->err)->warning);
    };
    manager.output_message = [](j_common_ptr) {};
  }

  [[noreturn]] void fail(const char* what, jpeg_common_struct* codec) {
    char words[JMSG_LENGTH_MAX];
    manager.format_message(codec, words);
    throw Error(Exit::data, std::string(what) + ": " + (reason ? reason : words) + "; leave the image out");
  }
};

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct codec{};
  JumpOnError errors{};
  jpeg_progress_mgr progress{};
  ImageLimits limits;
  std::vector<uint8_t> row;  // of CMYK

  static void limit_scans(j_common_ptr common) {
    auto* codec = reinterpret_cast<j_decompress_ptr>(common);
    auto* state = static_cast<State*>(codec->client_data);
    if (codec->input_scan_number <= state->limits.max_scans) return;
    state->errors.reason = "too many scans";
    common->err->error_exit(common);
  }

  void start(const uint8_t* data, size_t bytes, int eighths) {
    errors.manager.num_warnings = 0;
    errors.warning[0] = '\0';
    errors.reason = nullptr;
    jpeg_mem_src(&codec, data, bytes);
    jpeg_read_header(&codec, TRUE);
    const bool four = codec.num_components == 4;
    codec.out_color_space = four ? JCS_CMYK : JCS_RGB;
    codec.scale_num = static_cast<unsigned>(eighths);
    codec.scale_denom = 8;
    jpeg_start_decompress(&codec);
  }

  // Fancy upsampling of chroma reads one sample to each side: two more pixels make the result equal to a whole decode.
  void narrow(JpegBox& box) {
    if (box.width == static_cast<int32_t>(codec.output_width)) return;
    constexpr int32_t kSide = 2;
    const int32_t from = box.left > kSide ? box.left - kSide : 0;
    const int32_t left_over = static_cast<int32_t>(codec.output_width) - box.left - box.width;
    const int32_t to = box.left + box.width + (left_over < kSide ? left_over : kSide);
    auto left = static_cast<JDIMENSION>(from), width = static_cast<JDIMENSION>(to - from);
    jpeg_crop_scanline(&codec, &left, &width);
    box.left = static_cast<int32_t>(left);
    box.width = static_cast<int32_t>(width);
  }

  void read_rows(const JpegBox& box, uint8_t* rgb) {
    if (box.top > 0) jpeg_skip_scanlines(&codec, static_cast<JDIMENSION>(box.top));
    const size_t stride = size_t(box.width) * 3;
    for (int32_t y = 0; y < box.height; ++y, rgb += stride) {
      if (codec.out_color_space == JCS_CMYK) {
        uint8_t* line = row.data();
        jpeg_read_scanlines(&codec, &line, 1);
        const int flip = codec.saw_Adobe_marker ? 0 : 255;
        for (int32_t x = 0; x < box.width; ++x, line += 4) {
          const int k = line[3] ^ flip;
          for (int c = 0; c < 3; ++c) rgb[3 * x + c] = static_cast<uint8_t>(((line[c] ^ flip) * k + 127) / 255);
        }
      } else {
        jpeg_read_scanlines(&codec, &rgb, 1);
      }
    }
    // Reading to the end of the file detects a cut file, if the whole image was requested.
    if (codec.output_scanline == codec.output_height)
      jpeg_finish_decompress(&codec);
    else
      jpeg_abort_decompress(&codec);
  }
};

JpegDecoder::JpegDecoder(const ImageLimits& limits) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.limits = limits;
  s.errors.install(reinterpret_cast<j_common_ptr>(&s.codec));
  if (setjmp(s.errors.jump)) s.errors.fail("libjpeg cannot be used", reinterpret_cast<j_common_ptr>(&s.codec));
  jpeg_create_decompress(&s.codec);
  s.codec.client_data = &s;
  s.progress.progress_monitor = State::limit_scans;
  s.codec.progress = &s.progress;
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->codec); }

DecodedJpeg JpegDecoder::decode(const uint8_t* data, size_t bytes, const JpegPart& part, std::vector<uint8_t>& rgb) {
  PAL_ASSERT(part.eighths >= 1 && part.eighths <= 8, "a scale of " + std::to_string(part.eighths) + "/8");
  State& s = *state_;
  const JpegHeader header = inspect_jpeg(data, bytes, JpegWalk::to_first_scan, s.limits);
  const int32_t height = scaled_side(header.height, part.eighths), width = scaled_side(header.width, part.eighths);
  JpegBox box = part.box;
  if (box.height == 0) box.height = height - box.top;
  if (box.width == 0) box.width = width - box.left;
  PAL_ASSERT(box.top >= 0 && box.left >= 0 && box.height > 0 && box.width > 0 && box.top <= height - box.height &&
                 box.left <= width - box.width,
             "a part outside of the image");
  DecodedJpeg decoded;
  decoded.height = height;
  decoded.width = width;
  decoded.box = box;
  if (setjmp(s.errors.jump)) {
    jpeg_abort_decompress(&s.codec);
    s.errors.fail("damaged JPEG file", reinterpret_cast<j_common_ptr>(&s.codec));
  }
  s.start(data, bytes, part.eighths);
  PAL_ASSERT(
      static_cast<int32_t>(s.codec.output_height) == height && static_cast<int32_t>(s.codec.output_width) == width,
      "libjpeg reports another size than jpeg_header");
  s.narrow(decoded.box);
  rgb.resize(size_t(decoded.box.height) * size_t(decoded.box.width) * 3);
  s.row.resize(s.codec.out_color_space == JCS_CMYK ? size_t(width) * 4 : 0);
  s.read_rows(decoded.box, rgb.data());
  decoded.warning = s.errors.warning;
  return decoded;
}

std::vector<uint8_t> encode_jpeg(const uint8_t* pixels, int32_t height, int32_t width, int channels, int quality,
                                 Chroma chroma) {
  jpeg_compress_struct codec{};
  JumpOnError errors{};
  unsigned char* buffer = nullptr;
  unsigned long bytes = 0;
  const auto common = reinterpret_cast<j_common_ptr>(&codec);
  errors.install(common);
  if (setjmp(errors.jump)) {
    jpeg_destroy_compress(&codec);
    std::free(buffer);
    errors.fail("cannot be written as JPEG", common);
  }
  jpeg_create_compress(&codec);
  jpeg_mem_dest(&codec, &buffer, &bytes);
  codec.image_height = static_cast<JDIMENSION>(height);
  codec.image_width = static_cast<JDIMENSION>(width);
  codec.input_components = channels;
  codec.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, quality, TRUE);
  if (chroma == Chroma::full) codec.comp_info[0].h_samp_factor = codec.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&codec, TRUE);
  while (codec.next_scanline < codec.image_height) {
    auto* line = const_cast<uint8_t*>(pixels) + size_t(codec.next_scanline) * size_t(width) * size_t(channels);
    jpeg_write_scanlines(&codec, &line, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  std::vector<uint8_t> file(buffer, buffer + bytes);
  std::free(buffer);
  return file;
}

}  // namespace pal::data
