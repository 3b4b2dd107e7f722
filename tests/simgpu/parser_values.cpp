// parser_values: numbers, operands and variables with their initial values.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tests/simgpu/parser.h"

namespace simgpu::ptx {

Token Parser::expect_word() {
  if (lexer_.peek().kind != Token::Kind::word) lexer_.fail("a word was expected");
  return lexer_.take();
}

void Parser::expect(char mark) {
  if (!accept(mark)) lexer_.fail(std::string("'") + mark + "' was expected");
}

bool Parser::accept(char mark) {
  if (!lexer_.peek().is(mark)) return false;
  lexer_.take();
  return true;
}

bool Parser::accept(std::string_view word) {
  if (!lexer_.peek().is(word)) return false;
  lexer_.take();
  return true;
}

Operand Parser::number() {
  const bool negative = accept('-');
  const Token token = lexer_.take();
  if (token.kind != Token::Kind::number) lexer_.fail("a number was expected");
  std::string text(token.text);
  Operand result;
  result.kind = Operand::Kind::integer;
  if (text.size() == 10 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F')) {
    result.kind = Operand::Kind::float32;
    result.value = static_cast<int64_t>(std::strtoull(text.c_str() + 2, nullptr, 16));
    if (negative) result.value ^= int64_t{1} << 31;
    return result;
  }
  if (text.size() == 18 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D')) {
    result.kind = Operand::Kind::float64;
    result.value = static_cast<int64_t>(std::strtoull(text.c_str() + 2, nullptr, 16));
    if (negative) result.value ^= INT64_MIN;
    return result;
  }
  if (text.find('.') != std::string::npos) {
    result.kind = Operand::Kind::float64;
    result.value =
        std::bit_cast<int64_t>(negative ? -std::strtod(text.c_str(), nullptr) : std::strtod(text.c_str(), nullptr));
    return result;
  }
  if (text.back() == 'U' || text.back() == 'u') text.pop_back();
  char* end = nullptr;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
    result.value = static_cast<int64_t>(std::strtoull(text.c_str() + 2, &end, 2));
  } else {
    result.value = static_cast<int64_t>(std::strtoull(text.c_str(), &end, 0));
  }
  if (*end != '\0') lexer_.fail("not a number: " + std::string(token.text));
  if (negative) result.value = static_cast<int64_t>(0 - static_cast<uint64_t>(result.value));
  return result;
}

int64_t Parser::integer() {
  const Operand result = number();
  if (result.kind != Operand::Kind::integer) lexer_.fail("a whole number was expected");
  return result.value;
}

Operand Parser::list(char close) {
  Operand result;
  result.kind = Operand::Kind::list;
  while (!accept(close)) {
    result.items.push_back(operand());
    if (!lexer_.peek().is(close)) expect(',');
  }
  return result;
}

Operand Parser::operand() {
  if (accept('{')) return list('}');
  if (accept('(')) return list(')');
  Operand result;
  if (accept('[')) {
    result.kind = Operand::Kind::address;
    if (lexer_.peek().kind == Token::Kind::word) {
      result.name = lexer_.take().text;
    } else {
      result.value = integer();
    }
    if (accept('+')) result.value += integer();
    if (lexer_.peek().is('-')) result.value += integer();
    expect(']');
    return result;
  }
  if (lexer_.peek().is('-') || lexer_.peek().kind == Token::Kind::number) return number();
  result.negated = accept('!');
  result.name = expect_word().text;
  if (accept('|')) result.second = expect_word().text;
  if (accept('+')) result.value = integer();
  return result;
}

bool Parser::variable_space(std::string_view word, Variable::Space& space) const {
  if (word == ".global")
    space = Variable::Space::global;
  else if (word == ".const")
    space = Variable::Space::constant;
  else if (word == ".shared")
    space = Variable::Space::shared;
  else if (word == ".local")
    space = Variable::Space::local;
  else if (word == ".param")
    space = Variable::Space::param;
  else
    return false;
  return true;
}

std::vector<Operand> Parser::initial_value() {
  if (!accept('{')) {
    Operand one = operand();
    if (one.name == "generic") {  // generic(variable): its address
      expect('(');
      one = operand();
      expect(')');
    }
    return {one};
  }
  std::vector<Operand> items;
  while (!accept('}')) {
    for (Operand& item : initial_value()) items.push_back(std::move(item));
    if (!lexer_.peek().is('}')) expect(',');
  }
  return items;
}

// What follows the space, up to but without the `;` or `,`.
Variable Parser::variable(Variable::Space space) {
  Variable v;
  v.space = space;
  size_t width = 0;
  while (lexer_.peek().kind == Token::Kind::word && lexer_.peek().text[0] == '.') {
    const std::string_view word = lexer_.take().text;
    if (word == ".align") {
      v.align = static_cast<size_t>(integer());
    } else if (word == ".ptr" || variable_space(word, space)) {
      // `.param .u64 .ptr .global .align 4 p` says what the pointer points to.
      if (word == ".ptr") {
        while (lexer_.peek().kind == Token::Kind::word && lexer_.peek().text[0] == '.') {
          if (lexer_.take().text == ".align") integer();
        }
      }
    } else if (type_from(word.substr(1)) != Type::none) {
      v.type = type_from(word.substr(1));
      width = size_of(v.type);
    } else {
      lexer_.fail("unknown variable attribute " + std::string(word));
    }
  }
  v.align = std::max(v.align, width);
  v.name = expect_word().text;
  v.bytes = width;
  while (accept('[')) {
    v.bytes *= lexer_.peek().is(']') ? 0 : static_cast<size_t>(integer());
    expect(']');
  }
  if (accept('=')) v.initial = initial_value();
  return v;
}

}  // namespace simgpu::ptx
