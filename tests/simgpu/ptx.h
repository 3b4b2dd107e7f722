// ptx: the text of a module as a tree. Names are views into the text, which must outlive the tree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simgpu/types.h"

namespace simgpu::ptx {

// A .loc: where in the source, and for inlined code where it was inlined.
struct Location {
  int file = 0, line = 0, outer_file = 0, outer_line = 0;
};

struct Operand {
  enum class Kind { name, integer, float32, float64, address, list };
  Kind kind = Kind::name;
  std::string_view name;       // of a name; the base of an address, empty if it is a number
  std::string_view second;     // `first|second`
  bool negated = false;        // `!p`
  int64_t value = 0;           // of a number (floats: their bits); the offset of a name or an address
  std::vector<Operand> items;  // of `{a, b}` and `(a, b)`
};

struct Instruction {
  std::string_view guard;  // the predicate of `@p`, or empty
  bool guard_negated = false;
  std::string_view opcode;  // with its modifiers
  std::vector<Operand> operands;
};

struct Variable {
  enum class Space { global, constant, shared, local, param };
  Space space = Space::global;
  Type type = Type::none;
  std::string_view name;
  size_t align = 1, bytes = 0;
  bool external = false;         // `.extern .shared x[]`: dynamic shared memory
  std::vector<Operand> initial;  // flat; the rest of the bytes is zero
};

// `.reg .b32 %r<9>` declares %r0 to %r8; `.reg .pred p` only p.
struct Registers {
  Type type = Type::none;
  std::string_view name;
  int count = 0;  // 0: no <>
};

struct Statement {
  enum class Kind { instruction, label, open, close, registers, variable };
  Kind kind = Kind::instruction;
  int line = 0;
  Location location;
  std::string_view label;
  Instruction instruction;
  Registers registers;
  Variable variable;
};

struct Function {
  std::string_view name;
  enum class Kind { kernel, device, declaration } kind = Kind::device;
  std::vector<Variable> parameters, results;
  int max_threads = 1024;
  int line = 0;
  std::vector<Statement> body;
};

struct Unit {
  int version = 0, target = 0;  // 90 for 9.0, 75 for sm_75
  std::map<int, std::string> files;
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

// Throws Fault(bad_ptx) with the line.
Unit parse(std::string_view text);

}  // namespace simgpu::ptx
