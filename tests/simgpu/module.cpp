// module: variables into memory, kernels through the decoder.
#include "tests/simgpu/module.h"

#include <algorithm>
#include <cstring>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/fault.h"
#include "tests/simgpu/ptx.h"

namespace simgpu {
namespace {

// Numbers as they are, names as the address of the variable; what is not given is zero.
void initialize(const ptx::Variable& v, const std::map<std::string, Variable>& variables, const Memory& memory) {
  auto* at = static_cast<std::byte*>(memory.host(variables.at(std::string(v.name)).address));
  const size_t width = size_of(v.type);
  for (const ptx::Operand& item : v.initial) {
    auto bits = static_cast<uint64_t>(item.value);
    if (item.kind == ptx::Operand::Kind::name) {
      const auto found = variables.find(std::string(item.name));
      if (found == variables.end())
        throw Fault(FaultKind::bad_ptx, "the variable " + std::string(v.name) + " starts as the address of " +
                                            std::string(item.name) + ", which is no variable");
      bits += reinterpret_cast<uint64_t>(found->second.address);
    }
    std::memcpy(at, &bits, width);
    at += width;
  }
}

}  // namespace

Module::Module(std::string_view text, Memory& memory) : memory_(memory) {
  const auto copy = std::make_shared<const std::string>(text);
  const ptx::Unit unit = ptx::parse(*copy);
  target_ = unit.target;
  ptx_version_ = unit.version;
  for (const ptx::Variable& v : unit.variables) {
    if (v.space != ptx::Variable::Space::global && v.space != ptx::Variable::Space::constant) continue;
    if (v.external)
      throw Fault(FaultKind::bad_ptx, "the variable " + std::string(v.name) + " is defined in another module");
    Variable variable;
    variable.bytes = v.bytes;
    variable.address = memory.allocate(std::max<size_t>(v.bytes, 1), Space::variable, std::string(v.name));
    std::memset(memory.host(variable.address), 0, v.bytes);
    variables_[std::string(v.name)] = variable;
  }
  for (const ptx::Variable& v : unit.variables) {
    if (v.space == ptx::Variable::Space::global || v.space == ptx::Variable::Space::constant)
      initialize(v, variables_, memory);
    if (v.space == ptx::Variable::Space::constant) memory.make_read_only(variables_.at(std::string(v.name)).address);
  }
  for (const ptx::Function& f : unit.functions) {
    if (f.kind != ptx::Function::Kind::kernel) continue;
    auto program = std::make_shared<Program>();
    program->text = copy;
    program->files = unit.files;
    Kernel kernel;
    kernel.name = std::string(f.name);
    Decoder(unit, variables_, kernel, *program).decode(f);
    kernel.program = program;
    kernels_[kernel.name] = kernel;
  }
}

Module::~Module() {
  for (const auto& [name, variable] : variables_) memory_.free(variable.address);
}

const Kernel* Module::find(const std::string& name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

const Variable* Module::variable(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

}  // namespace simgpu
