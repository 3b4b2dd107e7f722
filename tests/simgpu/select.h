// select: from a PTX type to the handler made for its C++ type.
#pragma once

#include "tests/simgpu/program.h"
#include "tests/simgpu/types.h"

namespace simgpu {

// f is a generic lambda `[]<class T>() -> Handler`. nullptr if the type is not in the list.
template <class F>
Handler for_integer(Type type, const F& f) {
  switch (type) {
    case Type::b16:
    case Type::u16:
      return f.template operator()<uint16_t>();
    case Type::b32:
    case Type::u32:
      return f.template operator()<uint32_t>();
    case Type::b64:
    case Type::u64:
      return f.template operator()<uint64_t>();
    case Type::s16:
      return f.template operator()<int16_t>();
    case Type::s32:
      return f.template operator()<int32_t>();
    case Type::s64:
      return f.template operator()<int64_t>();
    default:
      return nullptr;
  }
}

// By size alone, as unsigned bits.
template <class F>
Handler for_bits(Type type, const F& f) {
  switch (size_of(type)) {
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return nullptr;
  }
}

}  // namespace simgpu
