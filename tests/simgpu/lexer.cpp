// lexer: one pass over the characters.
#include "tests/simgpu/lexer.h"

#include <cctype>

#include "tests/simgpu/fault.h"

namespace simgpu::ptx {
namespace {

bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool in_word(char c) { return starts_word(c) || std::isdigit(static_cast<unsigned char>(c)); }

}  // namespace

Lexer::Lexer(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) { scan(); }

Token Lexer::take() {
  const Token token = next_;
  scan();
  return token;
}

void Lexer::fail(const std::string& sentence) const {
  FaultPlace place;
  place.ptx_line = next_.line;
  place.instruction = std::string(next_.text);
  throw Fault(FaultKind::bad_ptx, sentence, place);
}

void Lexer::skip_space() {
  for (; at_ < end_; ++at_) {
    if (*at_ == '\n') {
      ++line_;
    } else if (end_ - at_ > 1 && at_[0] == '/' && at_[1] == '/') {
      while (at_ + 1 < end_ && at_[1] != '\n') ++at_;
    } else if (end_ - at_ > 1 && at_[0] == '/' && at_[1] == '*') {
      for (at_ += 2; at_ + 1 < end_ && !(at_[0] == '*' && at_[1] == '/'); ++at_) line_ += *at_ == '\n';
      ++at_;
    } else if (*at_ != ' ' && *at_ != '\t' && *at_ != '\r' && *at_ != '\0') {
      return;
    }
  }
}

void Lexer::scan() {
  skip_space();
  next_ = Token{};
  next_.line = line_;
  if (at_ >= end_) return;
  const char* begin = at_;
  if (starts_word(*at_)) {
    next_.kind = Token::Kind::word;
    // `ld.global.L2::128B` and `%tid.x` are one word, `label:` is a word and a mark, `.reg.b32` are two words.
    const bool directive = *at_++ == '.';
    while (at_ < end_ && !(directive && *at_ == '.') &&
           (in_word(*at_) || (end_ - at_ > 1 && at_[0] == ':' && at_[1] == ':')))
      at_ += *at_ == ':' ? 2 : 1;
  } else if (std::isdigit(static_cast<unsigned char>(*at_))) {
    next_.kind = Token::Kind::number;
    while (at_ < end_ && (std::isalnum(static_cast<unsigned char>(*at_)) || *at_ == '.')) ++at_;
  } else if (*at_ == '"') {
    next_.kind = Token::Kind::string;
    begin = ++at_;
    while (at_ < end_ && *at_ != '"') ++at_;
    next_.text = std::string_view(begin, at_ - begin);
    ++at_;
    return;
  } else {
    next_.kind = Token::Kind::mark;
    ++at_;
  }
  next_.text = std::string_view(begin, at_ - begin);
}

void Lexer::skip_block() {
  for (int depth = 1; depth > 0;) {
    const Token token = take();
    if (token.kind == Token::Kind::end) fail("a block that never closes");
    if (token.is('{')) ++depth;
    if (token.is('}')) --depth;
  }
}

}  // namespace simgpu::ptx
