// types: PTX's scalar types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simgpu {

enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32,
  f64,
};

Type type_from(std::string_view name);  // "u32"; none if it is not a type
size_t size_of(Type type);              // bytes in memory; 0 for none and pred
inline bool is_signed(Type t) { return t == Type::s8 || t == Type::s16 || t == Type::s32 || t == Type::s64; }
inline bool is_bits(Type t) { return t >= Type::b8 && t <= Type::b128; }
inline bool is_integer(Type t) { return t >= Type::u8 && t <= Type::s64; }
inline bool is_float(Type t) { return t >= Type::f16; }

}  // namespace simgpu
