// subprocess_test: a command that has the terminal until it ends: its code, its output in a file, its signals.
#include "launch/process/subprocess.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <sstream>

#include "tests/test_folder.h"

namespace pal::launch {
namespace {

CommandEnd shell(const std::string& script, const std::string& log = "") {
  return run_in_foreground({"sh", "-c", script}, log);
}

TEST(Foreground, GivesTheCodeAndTheOutput) {
  const TestFolder folder;
  const std::string log = folder / "log";
  EXPECT_EQ(shell("echo out; echo err >&2; cat; exit 7", log).code, 7);  // cat ends: there is no input
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  EXPECT_EQ(text.str(), "out\nerr\n");
  EXPECT_EQ(shell("kill -KILL $$").code, 128 + SIGKILL);
  EXPECT_EQ(shell("exit 0").stopped_by, 0);
}

TEST(Foreground, ForwardsSignalsOfThisProcess) {
  for (const auto& [arrives, forwarded] : {std::pair(SIGINT, "INT"), {SIGTERM, "TERM"}, {SIGHUP, "TERM"}}) {
    const std::string script = std::string("trap 'exit 5' ") + forwarded + "; kill -" + std::to_string(arrives) +
                               " $PPID; while :; do sleep 0.05; done";
    const CommandEnd end = shell(script);
    EXPECT_EQ(end.code, 5) << forwarded;
    EXPECT_EQ(end.stopped_by, arrives);
  }
}

}  // namespace
}  // namespace pal::launch
