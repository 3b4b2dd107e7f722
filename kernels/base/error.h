// error: pal::Error and the checks that throw it.
//
// An error is one sentence: what was wrong, the value, what to do. A user's mistake (PAL_CHECK, PAL_DATA_CHECK) and
// our own bug (PAL_ASSERT) are kept apart, because they end the program with different exit codes.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace pal {

// The program's exit codes.
enum class Exit : int {
  ok = 0,
  check_failed = 1,  // a check the user asked for did not hold
  usage = 2,         // usage or config
  data = 3,
  numerics = 4,
  bug = 70,
  lost = 71,         // a rank ended, hangs, or differs from the others; a restart continues from the last checkpoint
  again = 75,        // checkpointed, run me again
  no_progress = 76,  // stopped without progress, do not requeue
};

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

namespace detail {
template <class T>
std::string error_text(const T& value) {
  std::ostringstream os;
  os << value;
  return os.str();
}
[[noreturn]] void fail(Exit code, const std::string& what, const std::string& value, const std::string& todo);
[[noreturn]] void fail_bug(const char* expr, const char* file, int line, const std::string& what);
}  // namespace detail

}  // namespace pal

// PAL_CHECK(cond, what, value, what to do): "what: value; what to do", or the value where `what` has {}; exit code 2.
#define PAL_CHECK_CODE(code, cond, what, value, todo)                                     \
  do {                                                                                    \
    if (!(cond)) ::pal::detail::fail(code, what, ::pal::detail::error_text(value), todo); \
  } while (0)
#define PAL_CHECK(cond, what, value, todo) PAL_CHECK_CODE(::pal::Exit::usage, cond, what, value, todo)
// The same for bad files and data, exit code 3.
#define PAL_DATA_CHECK(cond, what, value, todo) PAL_CHECK_CODE(::pal::Exit::data, cond, what, value, todo)
// A bug of ours, exit code 70: names the expression and the place.
#define PAL_ASSERT(cond, what)                                             \
  do {                                                                     \
    if (!(cond)) ::pal::detail::fail_bug(#cond, __FILE__, __LINE__, what); \
  } while (0)
