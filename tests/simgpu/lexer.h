// lexer: PTX text as words, numbers, strings and marks.
#pragma once

#include <string>
#include <string_view>

namespace simgpu::ptx {

struct Token {
  enum class Kind { end, word, number, string, mark };
  Kind kind = Kind::end;
  std::string_view text;  // a string without its quotes
  int line = 0;
  bool is(char mark) const { return kind == Kind::mark && text[0] == mark; }
  bool is(std::string_view word) const { return kind == Kind::word && text == word; }
};

// One token of look-ahead.
class Lexer {
 public:
  explicit Lexer(std::string_view text);
  const Token& peek() const { return next_; }
  Token take();
  // Past the closing brace of a block whose opening one was just taken.
  void skip_block();
  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  void scan();
  void skip_space();

  const char* at_;
  const char* end_;
  int line_ = 1;
  Token next_;
};

}  // namespace simgpu::ptx
