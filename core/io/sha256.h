// sha256: SHA-256 of files and weights.
#pragma once

#include <cstddef>
#include <string>

struct evp_md_ctx_st;

namespace pal::io {

// Sha256: add() the pieces, then hex() once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(const void* data, size_t bytes);
  std::string hex();  // 64 digits

 private:
  evp_md_ctx_st* context_;
};

std::string sha256_hex(const void* data, size_t bytes);
std::string sha256_file(const std::string& path);

}  // namespace pal::io
