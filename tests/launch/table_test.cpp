// table_test: alignment of text and numbers, UTF-8 widths.
#include <gtest/gtest.h>

#include <sstream>

#include "launch/terminal.h"

namespace pal::launch {
namespace {

TEST(Table, NumbersAreRightAligned) {
  EXPECT_EQ(format_table({{"graph", "top-1", "n"}, {"ssl", "81.2", "5"}, {"supervised", "9.75", "-"}}),
            "graph       top-1  n\n"
            "ssl          81.2  5\n"
            "supervised   9.75  -\n");
}

TEST(Table, AColumnWithAWordIsText) { EXPECT_EQ(format_table({{"v"}, {"10"}, {"none"}, {"1"}}), "v\n10\nnone\n1\n"); }

TEST(Table, CountsCharactersNotBytes) {
  EXPECT_EQ(format_table({{"a", "b"}, {"é→x", "y"}, {"long", "z"}}), "a     b\né→x   y\nlong  z\n");
}

TEST(Table, RaggedRowsAndNoRows) {
  EXPECT_EQ(format_table({}), "");
  EXPECT_EQ(format_table({{"head"}, {"a", "b"}}), "head\na     b\n");
}

TEST(Table, TextOfTheLastColumnIsBroken) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "word" + std::to_string(i) + " ";
  const std::string table = format_table({{"what", "n", "found"}, {"a", "1", text}, {"b", "2", "short"}});
  EXPECT_EQ(table.substr(0, 25), "what  n  found\na     1  w");
  EXPECT_NE(table.find("\n         word"), std::string::npos);
  EXPECT_NE(table.find("\nb     2  short\n"), std::string::npos);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kPageColumns);
}

TEST(Table, ALongWordStaysWhole) {
  const std::string word(150, 'x');
  EXPECT_EQ(format_table({{"a", "b"}, {"c", word + " y"}}), "a  b\nc  " + word + "\n   y\n");
}

}  // namespace
}  // namespace pal::launch
