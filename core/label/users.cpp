#include "core/label/users.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/io/files.h"
#include "core/oracle/ledger/answer_lines.h"
#include "kernels/base/error.h"

namespace pal::label {
namespace {

constexpr size_t kLongestName = 64;
constexpr size_t kSecretBytes = 32;

void make_secret(const std::string& file) {
  unsigned char bytes[kSecretBytes];
  PAL_DATA_CHECK(RAND_bytes(bytes, sizeof(bytes)) == 1, "no random numbers from the system for", file, "try again");
  io::put_new_file(file, hexadecimal(std::string(reinterpret_cast<const char*>(bytes), sizeof(bytes))) + "\n", 0600);
}

bool is_valid_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 32 || c == 127; });
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
  PAL_DATA_CHECK(secret_.size() == kSecretBytes, "not the secret of a labeling page", file,
                 "remove the file: pal label creates a new one, and new links");
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

std::vector<User> read_users(const std::string& file) {
  std::vector<User> people;
  const std::vector<std::string> lines = oracle::split_lines(io::read_whole_file(file));
  for (size_t k = 0; k < lines.size(); ++k) {
    std::string name = lines[k].substr(lines[k].find_first_not_of(" \t"));
    if (name.front() == '#') continue;
    name.erase(name.find_last_not_of(" \t") + 1);
    Role role = Role::annotator;
    if (name.size() > 6 && name.ends_with(" owner")) {
      role = Role::owner;
      name.erase(name.find_last_not_of(" \t", name.size() - 7) + 1);
    }
    const std::string where = file + ":" + std::to_string(k + 1);
    PAL_CHECK(is_valid_name(name), where + ": invalid name", name, "use up to 64 bytes without control characters");
    PAL_CHECK(std::none_of(people.begin(), people.end(), [&](const User& p) { return p.name == name; }),
              where + ": this name appears twice", name, "give every person a name of their own");
    people.push_back({name, role});
  }
  PAL_CHECK(!people.empty(), "no names in", file, "write one name per line");
  if (std::none_of(people.begin(), people.end(), [](const User& p) { return p.role == Role::owner; }))
    people.front().role = Role::owner;
  return people;
}

Users::Users(std::vector<User> people, const Tokens& tokens, std::string file)
    : people_(std::move(people)), tokens_(tokens), file_(std::move(file)) {
  if (!std::filesystem::exists(file_)) return;
  for (const std::string& line : oracle::split_lines(io::read_whole_file(file_))) {
    const size_t space = line.find(' ');
    PAL_DATA_CHECK(space != std::string::npos && space > 0, "expected `NUMBER NAME` in " + file_, line,
                   "remove the file, and label/secret beside it");
    used_[line.substr(space + 1)] = std::strtoll(line.c_str(), nullptr, 10);
  }
}

std::string Users::link(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return open_link(name);
}

std::string Users::open_link(const std::string& name) const {
  const auto used = used_.find(name);
  return tokens_.link(name, used == used_.end() ? 0 : used->second);
}

void Users::publish(const std::string& file, const std::string& page) {
  const std::lock_guard<std::mutex> lock(mutex_);
  published_ = file;
  page_ = page;
  write_links();
}

void Users::write_links() const {
  if (published_.empty()) return;
  std::string lines;
  for (const User& p : people_) lines += p.name + ": " + page_ + "/?token=" + open_link(p.name) + "\n";
  unlink(published_.c_str());
  io::put_new_file(published_, lines, 0600);
}

Users::Visit Users::enter(const std::string& link) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const User& p : people_) {
    const int64_t used = used_.count(p.name) ? used_[p.name] : 0;
    for (int64_t number = 0; number < used; ++number) {
      if (Tokens::equal(link, tokens_.link(p.name, number))) return {Entry::used, &p};
    }
    if (!Tokens::equal(link, tokens_.link(p.name, used))) continue;
    used_[p.name] = used + 1;
    std::string lines;
    for (const auto& [name, count] : used_) lines += std::to_string(count) + " " + name + "\n";
    io::write_file_atomically(file_, lines);
    write_links();
    return {Entry::granted, &p, hexadecimal(p.name) + "." + std::to_string(used) + "." + tokens_.session(p.name, used)};
  }
  return {};
}

const User* Users::of_cookie(const std::string& cookie) const {
  const size_t first = cookie.find('.'), second = cookie.find('.', first + 1);
  if (first == std::string::npos || second == std::string::npos || second - first > 12) return nullptr;
  const std::string name = from_hexadecimal(cookie.substr(0, first)),
                    digits = cookie.substr(first + 1, second - first - 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return nullptr;
  const auto person = std::find_if(people_.begin(), people_.end(), [&](const User& p) { return p.name == name; });
  if (person == people_.end()) return nullptr;
  return Tokens::equal(cookie.substr(second + 1), tokens_.session(name, std::stoll(digits))) ? &*person : nullptr;
}

}  // namespace pal::label
