// decoder: turns one kernel's tree into a Program; what the families of opcodes (ops_*.cpp) need for that.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/simgpu/module.h"
#include "tests/simgpu/program.h"
#include "tests/simgpu/ptx.h"

namespace simgpu {

// An opcode's words. The decoder of an instruction takes the modifiers that it implements; the others are refused.
class Opcode {
 public:
  explicit Opcode(std::string_view text);
  std::string_view base() const { return base_; }
  bool is(std::initializer_list<std::string_view> bases) const;
  bool has(std::string_view modifier) const;
  bool take(std::string_view modifier);
  // The modifier among these that is present, taken; empty if none is.
  std::string_view take_one(std::initializer_list<std::string_view> modifiers);
  Type last_type() const;  // none if the last modifier is not a type
  Type take_type();        // the last modifier
  bool done() const { return modifiers_.empty(); }
  std::string left_over() const;

 private:
  std::string_view base_;
  std::vector<std::string_view> modifiers_;
};

// Where a function's variable lies, or a formal parameter bound to the caller's.
struct Symbol {
  ptx::Variable::Space space = ptx::Variable::Space::global;
  uint64_t address = 0;  // of a global: in the host; otherwise an offset in its space
  bool dynamic = false;  // extern shared: it lies behind the static variables, whose size is known last
};

class Decoder {
 public:
  Decoder(const ptx::Unit& unit, const std::map<std::string, Variable>& globals, Kernel& kernel, Program& program);
  void decode(const ptx::Function& kernel);

  // ---- for the families ----
  // The register that holds an operand, as a slot of the type.
  uint32_t source(const ptx::Operand& operand, Type type);
  uint32_t result(const ptx::Operand& operand, Type type);
  uint32_t predicate_source(const ptx::Operand& operand);
  uint32_t predicate_result(std::string_view name);
  uint32_t carry();  // the condition code of add.cc
  uint32_t constant(uint64_t value, Type type);
  uint32_t temporary(Type type);
  uint32_t temporary_predicate();
  Instruction& emit(Handler run, std::initializer_list<uint32_t> operands);
  // Fills kAddress; returns the symbol if the base is one.
  const Symbol* address(const ptx::Operand& operand, Instruction& in);
  void branch(std::string_view label);
  void call(const ptx::Instruction& in);
  void leave();  // ret
  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  struct RegisterName {
    Type type = Type::none;
    uint32_t id = 0;  // offset, or number of a predicate
  };
  struct Scope {
    std::unordered_map<std::string, RegisterName> names;
    std::vector<ptx::Registers> ranges;
    std::map<std::string, Symbol, std::less<>> symbols;
    std::map<std::string, uint32_t, std::less<>> labels;
    std::vector<std::pair<uint32_t, std::string_view>> jumps;  // instruction, label
  };
  struct Frame {  // one function on the way from the kernel to the innermost inlined call
    const ptx::Function* function = nullptr;
    std::vector<Scope> scopes;
    std::vector<uint32_t> returns;  // branches to the end of the inlined body
  };

  void body(const ptx::Function& function);
  void statement(const ptx::Statement& s);
  void instruction(const ptx::Instruction& in);
  Symbol place(const ptx::Variable& v);
  void declare(const ptx::Variable& v);
  void close_scope();
  const RegisterName* find_register(std::string_view name);
  const Symbol* find_symbol(std::string_view name);
  const Symbol* argument(const ptx::Operand& operand);
  uint32_t special(std::string_view name, Type type);
  uint32_t preset(Preset preset, Type type);
  RegisterName fresh(Type type);
  void built_in(std::string_view name, const std::vector<Symbol>& results, const std::vector<Symbol>& arguments);

  const ptx::Unit& unit_;
  const std::map<std::string, Variable>& globals_;
  Kernel& kernel_;
  Program& program_;
  std::vector<Frame> frames_;
  std::map<std::string, Symbol, std::less<>> module_symbols_;  // of the module, and all shared ones
  std::map<std::string, uint32_t> presets_;                    // by what they hold
  uint32_t carry_ = 0;
  bool has_carry_ = false;
  int line_ = 0;
  int16_t guard_ = -1;
  bool guard_negated_ = false;
  struct Widening {
    uint32_t narrow, wide;
    bool sign;
  };
  std::vector<Widening> widenings_;  // of results, after the instruction
};

// A family decodes the instruction if the opcode is one of its own, and says whether it was.
using Family = bool (*)(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_integer(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_carry(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_products(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_bits(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_fields(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_float(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_rounded(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_half(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_functions(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_compare(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_move(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_convert(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_memory(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_atomic(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_warp(Decoder&, Opcode&, const ptx::Instruction&);
bool decode_control(Decoder&, Opcode&, const ptx::Instruction&);
// The decoder's own moves: a slot widened by sign or zeros, a 64-bit slot narrowed, predicates (ops_move.cpp).
void run_widen_signed(Warp&, const Instruction&, uint32_t);
void run_widen_unsigned(Warp&, const Instruction&, uint32_t);
void run_narrow(Warp&, const Instruction&, uint32_t);
void run_select_32(Warp&, const Instruction&, uint32_t);
void run_set_predicate(Warp&, const Instruction&, uint32_t);
void run_clear_predicate(Warp&, const Instruction&, uint32_t);
void run_not_predicate(Warp&, const Instruction&, uint32_t);

}  // namespace simgpu
