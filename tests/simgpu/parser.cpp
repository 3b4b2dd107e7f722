// parser: functions, their statements, and the module around them.
#include "tests/simgpu/parser.h"

#include <cstdlib>

namespace simgpu::ptx {

void Parser::file() {
  const int index = static_cast<int>(integer());
  unit_.files[index] = std::string(lexer_.take().text);
  while (accept(',')) integer();  // time stamp and size
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

Unit parse(std::string_view text) { return Parser(text).unit(); }

}  // namespace simgpu::ptx
