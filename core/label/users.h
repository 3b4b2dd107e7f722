// users: who may answer at the labeling page: names, their links for a first visit, and their cookies.
//
// The users file has a name a line; `NAME owner` may also review, settle and export. Without a line that says so the first
// one is the owner. A link is good for one visit, after which the browser shows a cookie: the next link of that person has
// another number. The numbers are kept in a file, so that a used link stays used.
// Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/label/tokens.h"

namespace pal::label {

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
  std::string link(const std::string& name) const;  // the one that is good now

  enum class Entry { granted, used, unknown };
  struct Visit {
    Entry entry = Entry::unknown;
    const User* person = nullptr;
    std::string cookie = {};  // of a granted one
  };
  // Uses the link up. On disk when it returns.
  Visit enter(const std::string& link);
  // Whose cookie it is; nullptr: nobody's.
  const User* of_cookie(const std::string& cookie) const;

 private:
  const std::vector<User> people_;
  const Tokens& tokens_;
  const std::string file_;
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> used_;  // links so far, by name
};

}  // namespace pal::label
