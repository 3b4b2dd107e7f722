// parser: PTX text to a tree, by recursive descent.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>

#include "tests/simgpu/fault.h"
#include "tests/simgpu/lexer.h"
#include "tests/simgpu/ptx.h"

namespace simgpu::ptx {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}
  Unit unit();

 private:
  Token expect_word();
  void expect(char mark);
  bool accept(char mark);
  bool accept(std::string_view word);
  int64_t integer();
  std::string_view statement_word();

  void file();
  Operand number();
  Operand operand();
  Operand list(char close);
  std::vector<Operand> initial_value();
  bool variable_space(std::string_view word, Variable::Space& space) const;
  Variable variable(Variable::Space space);
  std::vector<Variable> parameters();
  Function function(Function::Kind kind);
  void body(Function& f);
  void location();
  void registers(Function& f);
  void instruction(Function& f, Token word);
  Statement& add(Function& f, Statement::Kind kind, int line);

  Lexer lexer_;
  Unit unit_;
  Location location_;
};

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
    result.value = std::bit_cast<int64_t>(negative ? -std::strtod(text.c_str(), nullptr) : std::strtod(text.c_str(), nullptr));
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

void Parser::file() {
  const int index = static_cast<int>(integer());
  unit_.files[index] = std::string(lexer_.take().text);
  while (accept(',')) integer();  // time stamp and size
}

bool Parser::variable_space(std::string_view word, Variable::Space& space) const {
  if (word == ".global") space = Variable::Space::global;
  else if (word == ".const") space = Variable::Space::constant;
  else if (word == ".shared") space = Variable::Space::shared;
  else if (word == ".local") space = Variable::Space::local;
  else if (word == ".param") space = Variable::Space::param;
  else return false;
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

std::vector<Variable> Parser::parameters() {
  std::vector<Variable> result;
  if (!accept('(')) return result;
  while (!accept(')')) {
    if (!accept(std::string_view(".param"))) lexer_.fail(".param was expected");
    result.push_back(variable(Variable::Space::param));
    if (!lexer_.peek().is(')')) expect(',');
  }
  return result;
}

Function Parser::function(Function::Kind kind) {
  Function f;
  f.kind = kind;
  if (kind == Function::Kind::device) f.results = parameters();
  f.line = lexer_.peek().line;
  f.name = expect_word().text;
  f.parameters = parameters();
  while (!lexer_.peek().is('{') && !lexer_.peek().is(';')) {
    const std::string_view word = expect_word().text;
    if (word == ".maxntid" || word == ".reqntid") {
      f.max_threads = static_cast<int>(integer());
      while (accept(',')) f.max_threads *= static_cast<int>(integer());
    } else if (word == ".minnctapersm" || word == ".maxnreg") {
      integer();
    } else if (word != ".noreturn") {
      lexer_.fail("unknown kernel directive " + std::string(word));
    }
  }
  if (accept(';')) {
    f.kind = Function::Kind::declaration;
  } else {
    body(f);
  }
  return f;
}

Statement& Parser::add(Function& f, Statement::Kind kind, int line) {
  Statement& s = f.body.emplace_back();
  s.kind = kind;
  s.line = line;
  s.location = location_;
  return s;
}

// .loc file line column [, function_name label, inlined_at file line column]
void Parser::location() {
  location_ = {};
  location_.file = static_cast<int>(integer());
  location_.line = static_cast<int>(integer());
  integer();
  if (!accept(',')) return;
  expect_word();  // function_name
  expect_word();
  if (accept('+')) integer();
  expect(',');
  expect_word();  // inlined_at
  location_.outer_file = static_cast<int>(integer());
  location_.outer_line = static_cast<int>(integer());
  integer();
}

void Parser::registers(Function& f) {
  const int line = lexer_.peek().line;
  Registers r;
  r.type = type_from(expect_word().text.substr(1));
  if (r.type == Type::none) lexer_.fail("unknown register type");
  do {
    r.name = expect_word().text;
    r.count = 0;
    if (accept('<')) {
      r.count = static_cast<int>(integer());
      expect('>');
    }
    add(f, Statement::Kind::registers, line).registers = r;
  } while (accept(','));
  expect(';');
}

void Parser::instruction(Function& f, Token word) {
  Statement& s = add(f, Statement::Kind::instruction, word.line);
  s.instruction.opcode = word.text;
  while (!accept(';')) {
    s.instruction.operands.push_back(operand());
    if (!lexer_.peek().is(';')) expect(',');
  }
}

void Parser::body(Function& f) {
  expect('{');
  location_ = {};
  for (int depth = 1; depth > 0;) {
    const int line = lexer_.peek().line;
    if (accept(';')) continue;
    if (accept('{')) {
      ++depth;
      add(f, Statement::Kind::open, line);
    } else if (accept('}')) {
      if (--depth > 0) add(f, Statement::Kind::close, line);
    } else if (accept('@')) {
      const bool negated = accept('!');
      const std::string_view guard = expect_word().text;
      instruction(f, expect_word());
      f.body.back().instruction.guard = guard;
      f.body.back().instruction.guard_negated = negated;
    } else {
      const Token word = expect_word();
      Variable::Space space{};
      if (accept(':')) {
        add(f, Statement::Kind::label, line).label = word.text;
      } else if (word.text == ".loc") {
        location();
      } else if (word.text == ".reg") {
        registers(f);
      } else if (word.text == ".pragma") {
        lexer_.take();
        expect(';');
      } else if (variable_space(word.text, space)) {
        add(f, Statement::Kind::variable, line).variable = variable(space);
        expect(';');
      } else if (word.text[0] == '.') {
        lexer_.fail("unknown directive " + std::string(word.text));
      } else {
        instruction(f, word);
      }
    }
  }
}

Unit Parser::unit() {
  bool external = false;
  while (lexer_.peek().kind != Token::Kind::end) {
    if (accept(';')) continue;
    const std::string_view word = expect_word().text;
    Variable::Space space{};
    if (word == ".version") {
      const std::string text(lexer_.take().text);  // 9.0
      const size_t dot = text.find('.');
      if (dot == std::string::npos) lexer_.fail("a version was expected");
      unit_.version = std::atoi(text.c_str()) * 10 + std::atoi(text.c_str() + dot + 1);
    } else if (word == ".target") {
      const std::string_view target = expect_word().text;  // sm_75, sm_90a
      if (target.substr(0, 3) != "sm_") lexer_.fail("unknown target");
      unit_.target = std::atoi(std::string(target.substr(3)).c_str());
      while (accept(',')) expect_word();
    } else if (word == ".address_size") {
      if (integer() != 64) lexer_.fail("only 64-bit addresses are known");
    } else if (word == ".file") {
      file();
    } else if (word == ".section") {
      expect_word();
      expect('{');
      lexer_.skip_block();
    } else if (word == ".extern") {
      external = true;
      continue;
    } else if (word == ".entry" || word == ".func") {
      unit_.functions.push_back(function(word == ".entry" ? Function::Kind::kernel : Function::Kind::device));
    } else if (variable_space(word, space)) {
      unit_.variables.push_back(variable(space));
      unit_.variables.back().external = external;
      expect(';');
    } else if (word != ".visible" && word != ".weak" && word != ".common") {
      lexer_.fail("unknown directive " + std::string(word));
    }
    external = false;
  }
  return std::move(unit_);
}

}  // namespace

Unit parse(std::string_view text) { return Parser(text).unit(); }

}  // namespace simgpu::ptx
