// support: helpers that the tests of all folders share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/base/error.h"

namespace pal {

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The message of the Error that `call` throws, which must have this exit code; "" if it throws none.
template <class F>
std::string error_of(Exit code, const F& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  return "";
}

}  // namespace pal
