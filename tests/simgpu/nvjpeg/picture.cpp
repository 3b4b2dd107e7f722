#include "tests/simgpu/nvjpeg/picture.h"

// clang-format off
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <jpeglib.h>
// clang-format on

#include <csetjmp>

namespace simnvjpeg {
namespace {

struct Errors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
};

void prepare(jpeg_decompress_struct& codec, Errors& errors) {
  codec.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = [](j_common_ptr c) { std::longjmp(reinterpret_cast<Errors*>(c->err)->jump, 1); };
  errors.manager.emit_message = [](j_common_ptr c, int level) {
    if (level < 0) c->err->error_exit(c);
  };
}

bool known_sampling(const jpeg_decompress_struct& codec) {
  if (codec.num_components != 3) return codec.num_components == 1;
  for (int c = 1; c < 3; ++c) {
    if (codec.comp_info[c].h_samp_factor != 1 || codec.comp_info[c].v_samp_factor != 1) return false;
  }
  const int h = codec.comp_info[0].h_samp_factor, v = codec.comp_info[0].v_samp_factor;
  return (h == 1 && v <= 2) || (h == 2 && v <= 2) || (h == 4 && v <= 2);  // 444, 440, 422, 420, 411, 410
}

}  // namespace

bool read_header(Header& header, const uint8_t* data, size_t bytes) {
  jpeg_decompress_struct codec{};
  Errors errors{};
  prepare(codec, errors);
  jpeg_create_decompress(&codec);
  const bool good = setjmp(errors.jump) == 0;
  if (good) {
    jpeg_mem_src(&codec, data, bytes);
    jpeg_read_header(&codec, TRUE);
    header = {static_cast<int>(codec.image_width), static_cast<int>(codec.image_height), codec.num_components,
              codec.comp_info[0].h_samp_factor,    codec.comp_info[0].v_samp_factor,     known_sampling(codec)};
  }
  jpeg_destroy_decompress(&codec);
  return good;
}

bool read_pixels(std::vector<uint8_t>& rgb, const uint8_t* data, size_t bytes) {
  jpeg_decompress_struct codec{};
  Errors errors{};
  prepare(codec, errors);
  jpeg_create_decompress(&codec);
  const bool good = setjmp(errors.jump) == 0;
  if (good) {
    jpeg_mem_src(&codec, data, bytes);
    jpeg_read_header(&codec, TRUE);
    codec.out_color_space = JCS_RGB;
    jpeg_start_decompress(&codec);
    const size_t stride = size_t{3} * codec.output_width;
    rgb.resize(stride * codec.output_height);
    while (codec.output_scanline < codec.output_height) {
      uint8_t* line = rgb.data() + stride * codec.output_scanline;
      jpeg_read_scanlines(&codec, &line, 1);
    }
    jpeg_finish_decompress(&codec);
  }
  jpeg_destroy_decompress(&codec);
  return good;
}

}  // namespace simnvjpeg
