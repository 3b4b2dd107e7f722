// crc32c: known answers, the two implementations against each other and against a bit-by-bit reference.
#include "core/io/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/base/philox.h"

namespace pal::io {
namespace {

uint32_t bit_by_bit(const uint8_t* data, size_t bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < bytes; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

std::vector<uint8_t> random_bytes(size_t n, uint64_t seed) {
  Random random(seed, Purpose::noise);
  std::vector<uint8_t> bytes(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.next_u32());
  return bytes;
}

TEST(Crc32c, KnownAnswers) {  // RFC 3720 B.4, and the check value of the polynomial's catalog entry
  std::vector<uint8_t> ascending(32), descending(32);
  for (uint8_t i = 0; i < 32; ++i) {
    ascending[i] = i;
    descending[i] = static_cast<uint8_t>(31 - i);
  }
  const std::vector<uint8_t> zeros(32, 0), ones(32, 0xFF);
  for (auto* crc : {&crc32c, &crc32c_portable}) {
    EXPECT_EQ(crc("123456789", 9, 0), 0xE3069283u);
    EXPECT_EQ(crc(zeros.data(), 32, 0), 0x8A9136AAu);
    EXPECT_EQ(crc(ones.data(), 32, 0), 0x62A8AB43u);
    EXPECT_EQ(crc(ascending.data(), 32, 0), 0x46DD794Eu);
    EXPECT_EQ(crc(descending.data(), 32, 0), 0x113FDB5Cu);
    EXPECT_EQ(crc(nullptr, 0, 0), 0u);
  }
}

TEST(Crc32c, EveryLengthAndAlignmentAgreesWithTheReference) {
  const uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<uint8_t> bytes = random_bytes(300, seed);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t n = 0; n < 280; ++n) {
      const uint32_t expected = bit_by_bit(bytes.data() + begin, n);
      ASSERT_EQ(crc32c(bytes.data() + begin, n), expected) << begin << " " << n;
      ASSERT_EQ(crc32c_portable(bytes.data() + begin, n), expected) << begin << " " << n;
    }
  }
}

TEST(Crc32c, ContinuesAnEarlierCall) {
  const std::vector<uint8_t> bytes = random_bytes(1000, 8);
  const uint32_t whole = crc32c(bytes.data(), bytes.size());
  for (size_t cut : {0, 1, 7, 8, 500, 999, 1000}) {
    EXPECT_EQ(crc32c(bytes.data() + cut, bytes.size() - cut, crc32c(bytes.data(), cut)), whole) << cut;
  }
}

TEST(Crc32c, EverySingleBitFlipIsSeen) {
  std::vector<uint8_t> bytes = random_bytes(64, 9);
  const uint32_t good = crc32c(bytes.data(), bytes.size());
  for (size_t bit = 0; bit < 512; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_NE(crc32c(bytes.data(), bytes.size()), good) << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace pal::io
