// parser: PTX text to a tree, by recursive descent: statements in parser.cpp, values in parser_values.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/simgpu/lexer.h"
#include "tests/simgpu/ptx.h"

namespace simgpu::ptx {

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

}  // namespace simgpu::ptx
