// tokens: keyed hashes (HMAC-SHA256, 256 bits) of one secret of the run: who may come in, and what was put to whom.
//
//   link     opens the page for a person; each number of theirs once
//   session  what their browser shows from then on (a cookie)
//   ticket   goes with a question and comes back with its answer: proof that this person was asked it, which no restart of
//            the server forgets
// The secret lies in a file that only its owner may read; whoever removes it makes all of these void.
// Thread: any.
#pragma once

#include <cstdint>
#include <string>

namespace pal::label {

class Tokens {
 public:
  // Reads the secret, or makes one. Throws Error (data) when the file cannot be made or is none of ours.
  explicit Tokens(const std::string& file);

  std::string link(const std::string& person, int64_t number) const;
  std::string session(const std::string& person, int64_t number) const;
  std::string ticket(const std::string& person, int64_t query) const;

  // In a time that does not depend on where they differ.
  static bool equal(const std::string& a, const std::string& b);

 private:
  std::string sign(const char* purpose, const std::string& person, int64_t number) const;  // 64 hexadecimal digits
  std::string secret_;
};

std::string hexadecimal(const std::string& bytes);
std::string from_hexadecimal(const std::string& digits);  // "" when they are none

}  // namespace pal::label
