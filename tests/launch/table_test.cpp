// table_test: alignment of text and numbers, UTF-8 widths.
#include <gtest/gtest.h>

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

TEST(Facts, ALongTextGoesOnBelowItself) {
  const std::string word(50, 'x');
  EXPECT_EQ(format_facts({{"run", ""}, {"text", word + " " + word + " é " + word}, {"long one", "1"}}),
            "run\ntext      " + word + " " + word + " é\n          " + word + "\nlong one  1\n");
  const std::string path(150, 'p');  // one word is not cut
  EXPECT_EQ(format_facts({{"path", path}}), "path  " + path + "\n");
  EXPECT_EQ(format_facts({{"a", "bc", word + " " + word + " " + word}}),
            "a  bc  " + word + " " + word + "\n       " + word + "\n");
}

}  // namespace
}  // namespace pal::launch
