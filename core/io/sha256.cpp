#include "core/io/sha256.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "core/io/regular_file.h"
#include "kernels/base/error.h"

namespace pal::io {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  PAL_ASSERT(context_ && EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1, "OpenSSL has SHA-256");
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::add(const void* data, size_t bytes) {
  PAL_ASSERT(EVP_DigestUpdate(context_, data, bytes) == 1, "SHA-256 takes any bytes");
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  PAL_ASSERT(EVP_DigestFinal_ex(context_, digest, &size) == 1, "SHA-256 ends once");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += "0123456789abcdef"[digest[i] >> 4];
    text += "0123456789abcdef"[digest[i] & 15];
  }
  return text;
}

std::string sha256_hex(const void* data, size_t bytes) {
  Sha256 hash;
  hash.add(data, bytes);
  return hash.hex();
}

std::string sha256_file(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fdopen(open_regular_file(path), "rb"), std::fclose);
  PAL_DATA_CHECK(file, "cannot read " + path, std::strerror(errno), "check the path and its permissions");
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  size_t got = 0;
  while ((got = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0) hash.add(buffer.data(), got);
  PAL_DATA_CHECK(!std::ferror(file.get()), "cannot read " + path, std::strerror(errno), "check the disk");
  return hash.hex();
}

}  // namespace pal::io
