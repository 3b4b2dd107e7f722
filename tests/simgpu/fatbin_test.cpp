// fatbin: PTX is found among other entries; an unusable file is refused with a sentence about what to do.
#include "tests/simgpu/runtime/fatbin.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/simgpu/fault.h"

namespace simgpu {
namespace {

// A fat binary as nvcc lays it out.
class FatBinary {
 public:
  FatBinary& add(uint16_t kind, uint32_t target, uint64_t flags, std::string payload) {
    const uint32_t header = kind == 1 ? 80 : 64;
    payload.resize((payload.size() + 8) / 8 * 8, '\0');
    std::string entry(header, '\0');
    put(entry, 0, kind);
    put(entry, 4, header);
    put(entry, 8, uint64_t{payload.size()});
    put(entry, 28, target);
    put(entry, 40, flags);
    data_ += entry + payload;
    return *this;
  }
  const void* wrapper() {
    std::string header(16, '\0');
    put(header, 0, uint32_t{0xba55ed50});
    put(header, 6, uint16_t{16});
    put(header, 8, uint64_t{data_.size()});
    whole_ = header + data_;
    wrapper_ = {0x466243b1, 1, whole_.data(), nullptr};
    return &wrapper_;
  }

 private:
  template <class T>
  static void put(std::string& text, size_t at, T value) {
    std::memcpy(text.data() + at, &value, sizeof(T));
  }
  struct {
    uint32_t magic, version;
    const void *data, *file;
  } wrapper_{};
  std::string data_, whole_;
};

std::string refusal(const void* wrapper) {
  try {
    ptx_images(wrapper);
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.kind(), FaultKind::bad_ptx);
    return fault.what();
  }
  return "";
}

TEST(FatBinary, PtxAmongMachineCode) {
  FatBinary binary;
  binary
      .add(2, 80, 0,
           "\x7f"
           "ELF")
      .add(1, 75, 0, ".version 9.0 a")
      .add(2, 90, 0,
           "\x7f"
           "ELF")
      .add(1, 90, 0, ".version 9.0 b")
      .add(1, 80, 0, "c");
  const auto images = ptx_images(binary.wrapper());
  ASSERT_EQ(images.size(), 3u);
  EXPECT_EQ(images[0].text, ".version 9.0 a");
  EXPECT_EQ(images[0].target, 75);
  EXPECT_EQ(newest(images).text, ".version 9.0 b");
}

TEST(FatBinary, CompressedPtxIsPassedOverOrRefused) {
  FatBinary both, only;
  both.add(1, 90, 0x8000, "zzz").add(1, 75, 0, "plain");
  EXPECT_EQ(newest(ptx_images(both.wrapper())).text, "plain");
  only.add(1, 90, 0x8000, "zzz");
  EXPECT_NE(refusal(only.wrapper()).find("--no-compress"), std::string::npos);
}

TEST(FatBinary, NoPtxNoFatBinaryCutOff) {
  FatBinary machine_code;
  machine_code.add(2, 80, 0, "ELF");
  EXPECT_NE(refusal(machine_code.wrapper()).find("virtual target"), std::string::npos);
  const uint64_t zeros[4] = {};
  EXPECT_NE(refusal(zeros).find("no fat binary"), std::string::npos);
}

}  // namespace
}  // namespace simgpu
