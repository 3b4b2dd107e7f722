#include "kernels/base/error.h"

namespace pal::detail {

void fail(Exit code, const std::string& what, const std::string& value, const std::string& todo) {
  std::string s = what;
  if (const size_t place = s.find("{}"); place != std::string::npos) {
    s.replace(place, 2, value);
  } else if (!value.empty()) {
    s += ": " + value;
  }
  if (!todo.empty()) s += "; " + todo;
  throw Error(code, s);
}

void fail_bug(const char* expr, const char* file, int line, const std::string& what) {
  throw Error(Exit::bug, "internal error: " + what + " (" + expr + " does not hold at " + file + ":" +
                             std::to_string(line) + "); please report it");
}

}  // namespace pal::detail
