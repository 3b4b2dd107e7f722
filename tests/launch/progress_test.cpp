// progress_test: the line's text, plain lines on a pipe, a bar that redraws itself on a terminal.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "launch/terminal.h"

namespace pal::launch {
namespace {

TEST(ProgressLine, Text) {
  EXPECT_EQ(progress_line({"step", "loss 3.1", 5, 20, 62}, 0), "step  5/20  25 %  eta 1:02  loss 3.1");
  EXPECT_EQ(progress_line({"step", "", 20, 20, 0}, 0), "step  20/20  100 %");
  EXPECT_EQ(progress_line({"step", "", 199, 200, -1}, 0), "step  199/200  99 %");
  EXPECT_EQ(progress_line({"step", "x", 10, 20, -1}, 80), "step  [============            ]  10/20  50 %  x");
  EXPECT_EQ(progress_line({"empty", "", 0, 0, -1}, 0), "empty  0/0  100 %");
}

TEST(ProgressLine, CutToTheTerminalByCharacters) {
  EXPECT_EQ(progress_line({"ééé", "", 1, 2, -1}, 3), "éé");
  EXPECT_EQ(progress_line({"step", std::string(300, 'x'), 1, 2, -1}, 60).size(), 59u);
}

TEST(ProgressLine, Seconds) {
  EXPECT_EQ(format_seconds(0), "0:00");
  EXPECT_EQ(format_seconds(59.6), "1:00");
  EXPECT_EQ(format_seconds(3661), "1:01:01");
  EXPECT_EQ(format_seconds(-5), "0:00");
  EXPECT_EQ(format_seconds(1e300).empty(), false);
}

// What `body` writes to standard output when that is `fd`'s file; `reader` is its other end.
std::string written(int fd, int reader, const std::function<void()>& body) {
  std::fflush(stdout);
  const int saved = dup(STDOUT_FILENO);
  dup2(fd, STDOUT_FILENO);
  body();
  std::fflush(stdout);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  std::string out;
  char buffer[4096];
  pollfd ready{reader, POLLIN, 0};
  while (poll(&ready, 1, 100) > 0) {  // a terminal delivers one line per read
    const ssize_t n = read(reader, buffer, sizeof buffer);
    if (n <= 0) break;
    out.append(buffer, static_cast<size_t>(n));
  }
  return out;
}

class ProgressOutput : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TERM", "xterm", 1);
    unsetenv("PAL_TERMINAL");
    unsetenv("OMPI_COMM_WORLD_RANK");
  }
  void TearDown() override { SetUp(); }

  std::string on_pipe(const std::function<void()>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const std::string out = written(ends[1], ends[0], body);
    close(ends[0]);
    close(ends[1]);
    return out;
  }
  std::string on_terminal(const std::function<void()>& body) {
    int master = -1, slave = -1;
    winsize size{24, 50, 0, 0};
    EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
    const std::string out = written(slave, master, body);
    close(slave);
    close(master);
    return out;
  }
};

void count_to(int64_t last, double quiet_seconds) {
  Progress progress("work", last, quiet_seconds);
  for (int64_t i = 1; i <= last; ++i) progress.update(i, "note");
}

TEST_F(ProgressOutput, PipeGetsTheFirstAndTheLastLine) {
  const std::string out = on_pipe([] { count_to(1000, 60); });
  EXPECT_EQ(out, "work  1/1000  0 %  note\nwork  1000/1000  100 %  note\n");
}

TEST_F(ProgressOutput, PipeGetsEveryLineWhenAsked) {
  const std::string out = on_pipe([] { count_to(5, 0); });
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 5);
}

TEST_F(ProgressOutput, TerminalGetsOneLineThatIsRedrawn) {
  const std::string out = on_terminal([] { count_to(1000, 60); });
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1) << out;
  EXPECT_NE(out.find("\r\x1b[Kwork  [========================]  1000/1000  10"), std::string::npos) << out;
  EXPECT_NE(out.find("0 %  no"), std::string::npos) << out;  // 50 columns have no room for more
  EXPECT_EQ(out.find("0 %  not"), std::string::npos) << out;
}

TEST_F(ProgressOutput, ARankHasABarOnlyWhenItsStarterAsksForOne) {
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  EXPECT_EQ(on_terminal([] { count_to(2, 60); }).find('\x1b'), std::string::npos);
  setenv("PAL_TERMINAL", "120", 1);
  EXPECT_NE(on_pipe([] { count_to(2, 60); }).find("\r\x1b[Kwork  ["), std::string::npos);
}

TEST_F(ProgressOutput, NothingWithoutAnUpdate) {
  EXPECT_EQ(on_pipe([] { Progress progress("work", 10); }), "");
}

}  // namespace
}  // namespace pal::launch
