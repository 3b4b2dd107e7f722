// users: the people who may answer at the labeling page: their names, the link of their first visit, their cookies, and
// the keyed hashes that these are made of.
//
// The users file has a name a line; `NAME owner` may also review, resolve and export. Without such a line the first
// user is the owner. A link works for one visit; from then on the browser sends a cookie, and the next link of that
// person has another number. The numbers are kept in a file, so that a used link stays used.
// Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace pal::label {

// Keyed hashes (HMAC-SHA256, 256 bits) of one secret of the run.
//   link     opens the page for a person; each number of theirs once
//   session  what the browser sends from then on (a cookie)
//   ticket   is sent with a question and comes back with its answer: proof that this person was asked the question,
//            also after a restart of the server
// The secret is in a file that only its owner may read; removing the file makes all hashes void.
class Tokens {
 public:
  // Reads the secret, or creates one. Throws Error (data) when the file cannot be created or holds something else.
  explicit Tokens(const std::string& file);

  std::string link(const std::string& person, int64_t number) const;
  std::string session(const std::string& person, int64_t number) const;
  std::string ticket(const std::string& person, int64_t query) const;

  // The time does not depend on where the texts differ.
  static bool equal(const std::string& a, const std::string& b);

 private:
  std::string sign(const char* purpose, const std::string& person, int64_t number) const;  // 64 hexadecimal digits
  std::string secret_;
};

std::string hexadecimal(const std::string& bytes);
std::string from_hexadecimal(const std::string& digits);  // "" when they are not hexadecimal

enum class Role { annotator, owner };
struct User {
  std::string name;
  Role role = Role::annotator;
};

// Throws Error (usage) naming file and line: empty, a name twice, unfit for a name.
std::vector<User> read_users(const std::string& file);

class Users {
 public:
  // `file`: where the numbers of the links are kept.
  Users(std::vector<User> people, const Tokens& tokens, std::string file);

  const std::vector<User>& all() const { return people_; }
  std::string link(const std::string& name) const;  // the link that works now
  // Writes the link of every person that works now, as `NAME: PAGE/?token=LINK`, to a file that only its owner may
  // read, and again after each visit that uses one.
  void publish(const std::string& file, const std::string& page);

  enum class Entry { granted, used, unknown };
  struct Visit {
    Entry entry = Entry::unknown;
    const User* person = nullptr;
    std::string cookie = {};  // when granted
  };
  // Marks the link as used. On disk when it returns.
  Visit enter(const std::string& link);
  // The person whose cookie it is; nullptr: unknown.
  const User* of_cookie(const std::string& cookie) const;

 private:
  std::string open_link(const std::string& name) const;  // these two with mutex_ held
  void write_links() const;

  const std::vector<User> people_;
  const Tokens& tokens_;
  const std::string file_;
  mutable std::mutex mutex_;
  std::string published_, page_;         // file of publish(); "": none
  std::map<std::string, int64_t> used_;  // links so far, by name
};

}  // namespace pal::label
