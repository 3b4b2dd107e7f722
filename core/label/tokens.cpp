#include "core/label/tokens.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <unistd.h>

#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::label {
namespace {

constexpr size_t kSecretBytes = 32;

void make_secret(const std::string& file) {
  unsigned char bytes[kSecretBytes];
  PAL_DATA_CHECK(RAND_bytes(bytes, sizeof(bytes)) == 1, "no random numbers from the system for", file, "try again");
  io::put_new_file(file, hexadecimal(std::string(reinterpret_cast<const char*>(bytes), sizeof(bytes))) + "\n", 0600);
}

}  // namespace

std::string hexadecimal(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  for (const unsigned char c : bytes) digits += {kDigits[c >> 4], kDigits[c & 15]};
  return digits;
}

std::string from_hexadecimal(const std::string& digits) {
  const auto value = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string bytes;
  for (size_t k = 0; k + 1 < digits.size(); k += 2) {
    const int high = value(digits[k]), low = value(digits[k + 1]);
    if (high < 0 || low < 0) return "";
    bytes += static_cast<char>(high * 16 + low);
  }
  return digits.size() % 2 == 0 ? bytes : "";
}

Tokens::Tokens(const std::string& file) {
  if (access(file.c_str(), F_OK) != 0) make_secret(file);
  secret_ = from_hexadecimal(io::read_whole_file(file).substr(0, 2 * kSecretBytes));
  PAL_DATA_CHECK(secret_.size() == kSecretBytes, "this is no secret of a labeling page", file,
                 "remove it: a new one is made, and new links");
}

std::string Tokens::sign(const char* purpose, const std::string& person, int64_t number) const {
  const std::string text = std::string(purpose) + "\n" + std::to_string(number) + "\n" + person;
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &bytes);
  return hexadecimal(std::string(reinterpret_cast<const char*>(mac), bytes));
}

std::string Tokens::link(const std::string& person, int64_t number) const { return sign("link", person, number); }
std::string Tokens::session(const std::string& person, int64_t number) const { return sign("session", person, number); }
std::string Tokens::ticket(const std::string& person, int64_t query) const { return sign("ticket", person, query); }

bool Tokens::equal(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace pal::label
