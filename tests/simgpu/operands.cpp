// operands: names to registers: declared ones, special ones, immediates and addresses.
#include <bit>
#include <charconv>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/window.h"

namespace simgpu {
namespace {

bool wide(Type type) { return size_of(type) == 8; }
constexpr uint32_t register_bytes(bool is_wide) { return is_wide ? 8 * kLanes : 4 * kLanes; }

// The immediate as the bits of the type.
uint64_t immediate_bits(const ptx::Operand& operand, Type type) {
  using Kind = ptx::Operand::Kind;
  const auto bits = static_cast<uint64_t>(operand.value);
  if (operand.kind == Kind::integer)
    return type == Type::f64 ? std::bit_cast<uint64_t>(static_cast<double>(operand.value)) : bits;
  if (operand.kind == Kind::float32)
    return wide(type) ? std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(bits))}) : bits;
  return wide(type) ? bits : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
}

struct Special {
  std::string_view name;
  Preset::Kind kind;
  uint8_t axis;
};
constexpr Special kSpecials[] = {
    {"%tid.x", Preset::Kind::tid, 0},
    {"%tid.y", Preset::Kind::tid, 1},
    {"%tid.z", Preset::Kind::tid, 2},
    {"%ntid.x", Preset::Kind::ntid, 0},
    {"%ntid.y", Preset::Kind::ntid, 1},
    {"%ntid.z", Preset::Kind::ntid, 2},
    {"%ctaid.x", Preset::Kind::ctaid, 0},
    {"%ctaid.y", Preset::Kind::ctaid, 1},
    {"%ctaid.z", Preset::Kind::ctaid, 2},
    {"%nctaid.x", Preset::Kind::nctaid, 0},
    {"%nctaid.y", Preset::Kind::nctaid, 1},
    {"%nctaid.z", Preset::Kind::nctaid, 2},
    {"%laneid", Preset::Kind::lane, 0},
    {"%warpid", Preset::Kind::warp, 0},
    {"%nwarpid", Preset::Kind::warps, 0},
    {"%lanemask_eq", Preset::Kind::lanemask, 0},
    {"%lanemask_le", Preset::Kind::lanemask, 1},
    {"%lanemask_lt", Preset::Kind::lanemask, 2},
    {"%lanemask_ge", Preset::Kind::lanemask, 3},
    {"%lanemask_gt", Preset::Kind::lanemask, 4},
    {"%dynamic_smem_size", Preset::Kind::dynamic_shared_bytes, 0},
    {"%total_smem_size", Preset::Kind::total_shared_bytes, 0},
};

}  // namespace

Decoder::RegisterName Decoder::fresh(Type type) {
  if (type == Type::pred) return {type, program_.predicates++};
  if (size_of(type) > 8) fail("registers of 128 bits are not known");
  const RegisterName name{type, program_.register_bytes};
  program_.register_bytes += register_bytes(wide(type));
  return name;
}

uint32_t Decoder::temporary(Type type) { return fresh(type).id; }
uint32_t Decoder::temporary_predicate() { return fresh(Type::pred).id; }

const Decoder::RegisterName* Decoder::find_register(std::string_view name) {
  std::vector<Scope>& scopes = frames_.back().scopes;
  for (size_t i = scopes.size(); i-- > 0;) {
    const std::string key(name);
    const auto found = scopes[i].names.find(key);
    if (found != scopes[i].names.end()) return &found->second;
    for (const ptx::Registers& range : scopes[i].ranges) {
      if (name.size() <= range.name.size() || name.substr(0, range.name.size()) != range.name) continue;
      int number = -1;
      const auto [end, error] = std::from_chars(name.data() + range.name.size(), name.data() + name.size(), number);
      if (error != std::errc() || end != name.data() + name.size() || number < 0 || number >= range.count) continue;
      return &(scopes[i].names[key] = fresh(range.type));
    }
  }
  return nullptr;
}

const Symbol* Decoder::find_symbol(std::string_view name) {
  const std::vector<Scope>& scopes = frames_.back().scopes;
  for (size_t i = scopes.size(); i-- > 0;) {
    const auto found = scopes[i].symbols.find(name);
    if (found != scopes[i].symbols.end()) return &found->second;
  }
  const auto known = module_symbols_.find(name);
  if (known != module_symbols_.end()) return &known->second;
  for (const ptx::Variable& v : unit_.variables) {
    if (v.name == name) return &(module_symbols_[std::string(name)] = place(v));
  }
  return nullptr;
}

uint32_t Decoder::preset(Preset preset, Type type) {
  const std::string key = std::to_string(static_cast<int>(preset.kind)) + "," + std::to_string(preset.axis) + "," +
                          std::to_string(preset.value) + (wide(type) ? "w" : "");
  const auto found = presets_.find(key);
  if (found != presets_.end()) return found->second;
  preset.wide = wide(type);
  preset.offset = temporary(type);
  program_.presets.push_back(preset);
  return presets_[key] = preset.offset;
}

uint32_t Decoder::constant(uint64_t value, Type type) {
  Preset p;
  p.value = wide(type) ? value : static_cast<uint32_t>(value);
  return preset(p, type);
}

uint32_t Decoder::special(std::string_view name, Type type) {
  for (const Special& s : kSpecials) {
    if (s.name != name) continue;
    Preset p;
    p.kind = s.kind;
    p.axis = s.axis;
    return preset(p, type);
  }
  if (name == "%smid" || name == "%clusterid.x" || name == "%cluster_ctarank") return constant(0, type);
  if (name == "%nsmid" || name == "%cluster_nctarank" || name == "WARP_SZ")
    return constant(name == "WARP_SZ" ? kLanes : 1, type);
  fail("unknown name " + std::string(name));
}

uint32_t Decoder::source(const ptx::Operand& operand, Type type) {
  using Kind = ptx::Operand::Kind;
  if (operand.kind == Kind::integer || operand.kind == Kind::float32 || operand.kind == Kind::float64)
    return constant(immediate_bits(operand, type), type);
  if (operand.kind != Kind::name || operand.negated || !operand.second.empty())
    fail("an operand that is neither a register nor a number");
  if (const RegisterName* name = find_register(operand.name)) {
    if (name->type == Type::pred) fail("a predicate where a value is expected: " + std::string(operand.name));
    if (wide(name->type) == wide(type)) return name->id;
    if (!wide(name->type)) fail("a 32-bit register where 64 bits are expected: " + std::string(operand.name));
    const uint32_t narrow = temporary(type);
    emit(run_narrow, {narrow, name->id});
    return narrow;
  }
  if (const Symbol* symbol = find_symbol(operand.name)) {
    if (symbol->dynamic) {
      Preset p;
      p.kind = Preset::Kind::dynamic_shared;
      p.value = static_cast<uint64_t>(operand.value);
      return preset(p, type);
    }
    const uint64_t window = symbol->space == ptx::Variable::Space::param ? kParamWindow : 0;
    return constant(window + symbol->address + static_cast<uint64_t>(operand.value), type);
  }
  return special(operand.name, type);
}

uint32_t Decoder::result(const ptx::Operand& operand, Type type) {
  if (operand.kind == ptx::Operand::Kind::name && operand.name == "_") return temporary(type);
  const RegisterName* name = operand.kind == ptx::Operand::Kind::name ? find_register(operand.name) : nullptr;
  if (name == nullptr || name->type == Type::pred) fail("a result that is not a register");
  if (wide(name->type) == wide(type)) return name->id;
  if (!wide(name->type)) fail("a 64-bit result in a 32-bit register: " + std::string(operand.name));
  const uint32_t wide_register = name->id;
  widenings_.push_back({temporary(type), wide_register, is_signed(type)});
  return widenings_.back().narrow;
}

uint32_t Decoder::predicate_source(const ptx::Operand& operand) {
  if (operand.kind == ptx::Operand::Kind::integer) {
    const uint32_t fixed = temporary_predicate();
    emit(operand.value != 0 ? run_set_predicate : run_clear_predicate, {fixed});
    return fixed;
  }
  const RegisterName* name = operand.kind == ptx::Operand::Kind::name ? find_register(operand.name) : nullptr;
  if (name == nullptr || name->type != Type::pred) fail("a predicate was expected: " + std::string(operand.name));
  if (!operand.negated) return name->id;
  const uint32_t id = name->id, negated = temporary_predicate();
  emit(run_not_predicate, {negated, id});
  return negated;
}

uint32_t Decoder::predicate_result(std::string_view name) {
  if (name == "_") return temporary_predicate();
  const RegisterName* found = find_register(name);
  if (found == nullptr || found->type != Type::pred) fail("a predicate was expected: " + std::string(name));
  return found->id;
}

uint32_t Decoder::carry() {
  if (!has_carry_) carry_ = temporary_predicate();
  has_carry_ = true;
  return carry_;
}

const Symbol* Decoder::address(const ptx::Operand& operand, Instruction& in) {
  if (operand.kind != ptx::Operand::Kind::address) fail("an address was expected");
  in.value = operand.value;
  if (operand.name.empty()) {
    in.r[kAddress] = constant(0, Type::u64);
    return nullptr;
  }
  if (const RegisterName* name = find_register(operand.name)) {
    in.r[kAddress] = name->id;
    in.narrow_address = !wide(name->type);
    return nullptr;
  }
  const Symbol* symbol = find_symbol(operand.name);
  if (symbol == nullptr) fail("unknown name " + std::string(operand.name));
  ptx::Operand base;
  base.name = operand.name;
  in.r[kAddress] = source(base, Type::u64);
  return symbol;
}

}  // namespace simgpu
