// types: names and sizes.
#include "tests/simgpu/types.h"

namespace simgpu {
namespace {

struct Row {
  std::string_view name;
  size_t bytes;
};
constexpr Row kRows[] = {
    // in the order of Type
    {"", 0},    {"pred", 0}, {"b8", 1},   {"b16", 2},   {"b32", 4},    {"b64", 8}, {"b128", 16},
    {"u8", 1},  {"u16", 2},  {"u32", 4},  {"u64", 8},   {"s8", 1},     {"s16", 2}, {"s32", 4},
    {"s64", 8}, {"f16", 2},  {"bf16", 2}, {"f16x2", 4}, {"bf16x2", 4}, {"f32", 4}, {"f64", 8},
};

}  // namespace

Type type_from(std::string_view name) {
  for (size_t i = 1; i < std::size(kRows); ++i) {
    if (kRows[i].name == name) return static_cast<Type>(i);
  }
  return Type::none;
}

size_t size_of(Type type) { return kRows[static_cast<size_t>(type)].bytes; }

}  // namespace simgpu
