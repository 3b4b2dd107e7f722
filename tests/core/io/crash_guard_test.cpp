// crash_guard: what a crash prints, and with which exit code the process ends.
#include "core/io/crash_guard.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

namespace pal::io {
namespace {

int overflow(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return overflow(depth + 1) + frame[0];
}

TEST(CrashGuardDeathTest, ACrashIsASentenceWithTheFile) {
  const std::string path = "folder/a\x1b]0;x.h5";
  const std::string said =
      "^error: HDF5 crashed while it read this file: folder/a\\?]0;x\\.h5; the file is damaged, .*\n$";
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    EXPECT_EXIT(
        {
          const CrashGuard outer("HDF5", path);
          const CrashGuard inner("HDF5", "another");
          raise(signal);
        },
        testing::ExitedWithCode(3), said)
        << signal;
  }
#ifndef __SANITIZE_ADDRESS__  // which reports the overflow itself
  EXPECT_EXIT(
      {
        const CrashGuard guard("HDF5", path);
        overflow(0);
      },
      testing::ExitedWithCode(3), said);
#endif
}

TEST(CrashGuardDeathTest, OtherCrashesEndAsBefore) {
  EXPECT_EXIT(
      {
        { const CrashGuard guard("HDF5", "a.h5"); }
        raise(SIGABRT);
      },
      testing::KilledBySignal(SIGABRT), "^$");
  EXPECT_EXIT(
      {
        const CrashGuard guard("HDF5", "a.h5");
        std::thread([] { raise(SIGABRT); }).join();
      },
      testing::KilledBySignal(SIGABRT), "^$");
}

}  // namespace
}  // namespace pal::io
