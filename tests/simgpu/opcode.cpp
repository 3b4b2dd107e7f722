// opcode: splits `ld.global.v4.f32` and records which modifiers were implemented.
#include <algorithm>

#include "tests/simgpu/decoder.h"

namespace simgpu {

Opcode::Opcode(std::string_view text) {
  for (bool first = true; !text.empty(); first = false) {
    const size_t dot = std::min(text.find('.'), text.size());
    if (first) {
      base_ = text.substr(0, dot);
    } else {
      modifiers_.push_back(text.substr(0, dot));
    }
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
}

bool Opcode::is(std::initializer_list<std::string_view> bases) const {
  return std::find(bases.begin(), bases.end(), base_) != bases.end();
}

bool Opcode::has(std::string_view modifier) const {
  return std::find(modifiers_.begin(), modifiers_.end(), modifier) != modifiers_.end();
}

bool Opcode::take(std::string_view modifier) {
  const auto found = std::find(modifiers_.begin(), modifiers_.end(), modifier);
  if (found == modifiers_.end()) return false;
  modifiers_.erase(found);
  return true;
}

std::string_view Opcode::take_one(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers) {
    if (take(modifier)) return modifier;
  }
  return {};
}

Type Opcode::last_type() const { return modifiers_.empty() ? Type::none : type_from(modifiers_.back()); }

Type Opcode::take_type() {
  const Type type = last_type();
  if (type != Type::none) modifiers_.pop_back();
  return type;
}

std::string Opcode::left_over() const {
  std::string text;
  for (const std::string_view modifier : modifiers_) {
    text += '.';
    text += modifier;
  }
  return text;
}

}  // namespace simgpu
