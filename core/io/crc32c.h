// crc32c: the checksum of samples and records (Castagnoli polynomial), by the CPU's own instruction where it has one.
//
// Reference: RFC 3720, appendix B.4 (known answers).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pal::io {

// `crc` continues an earlier call: crc32c(b, m, crc32c(a, n)) is the checksum of a followed by b.
uint32_t crc32c(const void* data, size_t bytes, uint32_t crc = 0);

// Without the instruction, by tables; the same values. For machines without it, and for the test that compares both.
uint32_t crc32c_portable(const void* data, size_t bytes, uint32_t crc = 0);

}  // namespace pal::io
