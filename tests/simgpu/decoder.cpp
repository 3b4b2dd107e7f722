// decoder: statements, scopes, labels and calls, which are inlined.
#include "tests/simgpu/decoder.h"

#include <stdexcept>

#include "tests/simgpu/fault.h"
#include "tests/simgpu/printf.h"

namespace simgpu {
namespace {

// The frequent ones first.
constexpr Family kFamilies[] = {
    decode_memory, decode_move,   decode_integer,  decode_float,   decode_control,   decode_compare,
    decode_bits,   decode_fields, decode_convert,  decode_rounded, decode_functions, decode_warp,
    decode_atomic, decode_carry,  decode_products, decode_half,
};

size_t align_up(size_t value, size_t align) { return (value + align - 1) / align * align; }

}  // namespace

Decoder::Decoder(const ptx::Unit& unit, const std::map<std::string, Variable>& globals, Kernel& kernel,
                 Program& program)
    : unit_(unit), globals_(globals), kernel_(kernel), program_(program) {}

void Decoder::fail(const std::string& sentence) const {
  FaultPlace place;
  place.kernel = kernel_.name;
  place.ptx_line = line_;
  place.instruction = quote(program_, line_);
  throw Fault(FaultKind::bad_ptx, sentence, place);
}

void Decoder::decode(const ptx::Function& kernel) {
  line_ = kernel.line;
  frames_.push_back({&kernel, {Scope{}}, {}});
  for (const ptx::Variable& p : kernel.parameters) {
    const size_t offset = align_up(kernel_.parameter_bytes, p.align);
    kernel_.parameters.push_back({offset, p.bytes});
    kernel_.parameter_bytes = offset + p.bytes;
    frames_[0].scopes[0].symbols[std::string(p.name)] = {ptx::Variable::Space::param, offset, false};
  }
  body(kernel);
  emit(nullptr, {}).flow = Flow::exit;  // a kernel without ret at its end
  kernel_.max_threads = kernel.max_threads;
  kernel_.registers = static_cast<int>(program_.register_bytes / 128);
}

void Decoder::body(const ptx::Function& function) {
  for (const ptx::Statement& s : function.body) statement(s);
  close_scope();
}

void Decoder::statement(const ptx::Statement& s) {
  line_ = s.line;
  Scope& scope = frames_.back().scopes.back();
  switch (s.kind) {
    case ptx::Statement::Kind::open:
      frames_.back().scopes.emplace_back();
      break;
    case ptx::Statement::Kind::close:
      close_scope();
      break;
    case ptx::Statement::Kind::label:
      scope.labels[std::string(s.label)] = static_cast<uint32_t>(program_.code.size());
      break;
    case ptx::Statement::Kind::registers:
      if (s.registers.count > 0) {
        scope.ranges.push_back(s.registers);
      } else {
        scope.names[std::string(s.registers.name)] = fresh(s.registers.type);
      }
      break;
    case ptx::Statement::Kind::variable:
      declare(s.variable);
      break;
    case ptx::Statement::Kind::instruction:
      if (program_.locations.empty() || s.location.line != program_.locations.back().line ||
          s.location.file != program_.locations.back().file ||
          s.location.outer_line != program_.locations.back().outer_line) {
        program_.locations.push_back(s.location);
      }
      instruction(s.instruction);
      break;
  }
}

void Decoder::instruction(const ptx::Instruction& in) {
  guard_ = -1;
  guard_negated_ = in.guard_negated;
  if (!in.guard.empty()) {
    const RegisterName* guard = find_register(in.guard);
    if (guard == nullptr || guard->type != Type::pred) fail("unknown predicate " + std::string(in.guard));
    guard_ = static_cast<int16_t>(guard->id);
    if (guard->id > INT16_MAX) fail("more predicates than the decoder counts");
  }
  Opcode op(in.opcode);
  for (const Family family : kFamilies) {
    try {
      if (!family(*this, op, in)) continue;
    } catch (const std::out_of_range&) {
      fail("too few operands");
    }
    if (!op.done()) fail("unknown modifier " + op.left_over() + " of " + std::string(op.base()));
    for (const Widening& w : widenings_) emit(w.sign ? run_widen_signed : run_widen_unsigned, {w.wide, w.narrow});
    widenings_.clear();
    return;
  }
  fail("unknown opcode " + std::string(in.opcode));
}

Instruction& Decoder::emit(Handler run, std::initializer_list<uint32_t> operands) {
  Instruction& in = program_.code.emplace_back();
  in.run = run;
  size_t i = 0;
  for (const uint32_t operand : operands) in.r[i++] = operand;
  in.line = line_;
  in.location = program_.locations.empty() ? 0 : static_cast<uint32_t>(program_.locations.size() - 1);
  in.guard = guard_;
  in.guard_negated = guard_negated_;
  return in;
}

Symbol Decoder::place(const ptx::Variable& v) {
  Symbol symbol;
  symbol.space = v.space;
  switch (v.space) {
    case ptx::Variable::Space::global:
    case ptx::Variable::Space::constant:
      symbol.address = reinterpret_cast<uint64_t>(globals_.at(std::string(v.name)).address);
      break;
    case ptx::Variable::Space::shared:
      symbol.dynamic = v.bytes == 0;
      symbol.address = symbol.dynamic ? 0 : align_up(kernel_.static_shared_bytes, v.align);
      if (!symbol.dynamic) kernel_.static_shared_bytes = symbol.address + v.bytes;
      break;
    case ptx::Variable::Space::local:
    case ptx::Variable::Space::param:  // of a call: in local memory, because the call is inlined
      symbol.space = ptx::Variable::Space::local;
      symbol.address = align_up(kernel_.local_bytes, v.align);
      kernel_.local_bytes = symbol.address + v.bytes;
      break;
  }
  return symbol;
}

// A shared variable exists once, however often the function that declares it is inlined.
void Decoder::declare(const ptx::Variable& v) {
  const std::string name(v.name);
  if (v.space != ptx::Variable::Space::shared) {
    frames_.back().scopes.back().symbols[name] = place(v);
  } else if (module_symbols_.count(name) == 0) {
    module_symbols_[name] = place(v);
  }
}

void Decoder::branch(std::string_view label) {
  frames_.back().scopes.back().jumps.push_back({static_cast<uint32_t>(program_.code.size()), label});
  emit(nullptr, {}).flow = Flow::branch;
}

// Jumps to labels that this scope does not know are the enclosing one's.
void Decoder::close_scope() {
  std::vector<Scope>& scopes = frames_.back().scopes;
  Scope scope = std::move(scopes.back());
  scopes.pop_back();
  for (const auto& [from, label] : scope.jumps) {
    const auto found = scope.labels.find(label);
    if (found != scope.labels.end()) {
      program_.code[from].target = found->second;
    } else if (!scopes.empty()) {
      scopes.back().jumps.push_back({from, label});
    } else {
      fail("unknown label " + std::string(label));
    }
  }
}

void Decoder::leave() {
  if (frames_.size() == 1) {
    emit(nullptr, {}).flow = Flow::exit;
  } else {
    frames_.back().returns.push_back(static_cast<uint32_t>(program_.code.size()));
    emit(nullptr, {}).flow = Flow::branch;
  }
}

const Symbol* Decoder::argument(const ptx::Operand& operand) {
  const Symbol* symbol = operand.kind == ptx::Operand::Kind::name ? find_symbol(operand.name) : nullptr;
  if (symbol == nullptr || symbol->space != ptx::Variable::Space::local)
    fail("a call passes something that is not a .param variable");
  return symbol;
}

void Decoder::call(const ptx::Instruction& in) {
  std::vector<Symbol> results, arguments;
  std::string_view name;
  for (const ptx::Operand& operand : in.operands) {
    if (operand.kind == ptx::Operand::Kind::list) {
      for (const ptx::Operand& item : operand.items) (name.empty() ? results : arguments).push_back(*argument(item));
    } else if (name.empty()) {
      name = operand.name;
    } else {
      fail("an indirect call");
    }
  }
  const ptx::Function* callee = nullptr;
  for (const ptx::Function& f : unit_.functions) {
    if (f.name == name && f.kind == ptx::Function::Kind::device) callee = &f;
  }
  if (callee == nullptr) return built_in(name, results, arguments);
  if (callee->parameters.size() != arguments.size() || callee->results.size() != results.size())
    fail("a call with other parameters than declared");
  for (const Frame& frame : frames_) {
    if (frame.function == callee) fail("a recursive call of " + std::string(name));
  }

  const int16_t guard = guard_;
  const auto around = static_cast<uint32_t>(program_.code.size());
  if (guard >= 0) {
    Instruction& skip = emit(nullptr, {});
    skip.flow = Flow::branch;
    skip.guard_negated = !skip.guard_negated;
  }
  const int line = line_;
  frames_.push_back({callee, {Scope{}}, {}});
  for (size_t i = 0; i < arguments.size(); ++i)
    frames_.back().scopes[0].symbols[std::string(callee->parameters[i].name)] = arguments[i];
  for (size_t i = 0; i < results.size(); ++i)
    frames_.back().scopes[0].symbols[std::string(callee->results[i].name)] = results[i];
  body(*callee);
  const auto end = static_cast<uint32_t>(program_.code.size());
  for (const uint32_t from : frames_.back().returns) program_.code[from].target = end;
  if (guard >= 0) program_.code[around].target = end;
  frames_.pop_back();
  line_ = line;
}

// What CUDA provides without PTX.
void Decoder::built_in(std::string_view name, const std::vector<Symbol>& results,
                       const std::vector<Symbol>& arguments) {
  if (name == "vprintf" && arguments.size() == 2 && results.size() == 1) {
    emit(run_printf, {static_cast<uint32_t>(results[0].address), static_cast<uint32_t>(arguments[0].address),
                      static_cast<uint32_t>(arguments[1].address)});
  } else if (name == "__assertfail" && arguments.size() >= 4) {
    emit(run_assertfail, {0, static_cast<uint32_t>(arguments[0].address), static_cast<uint32_t>(arguments[1].address),
                          static_cast<uint32_t>(arguments[2].address), static_cast<uint32_t>(arguments[3].address)});
  } else {
    fail("call of an unknown function " + std::string(name));
  }
}

}  // namespace simgpu
