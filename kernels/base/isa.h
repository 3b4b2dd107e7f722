// isa: which compiled copy of the vector loops runs on this machine, and the tables that choose it.
//
// The sources *_impl.cpp are compiled once per instruction set (PAL_ISA = scalar, avx2, avx512), each copy in a
// namespace of that name. best_isa() is the widest that the CPU and the operating system allow; Cpu::isa can choose
// another.
#pragma once

#include "kernels/base/error.h"

namespace pal::kernels {

enum class Isa { scalar, avx2, avx512 };

// The widest one this machine runs; found by cpuid once.
Isa best_isa();
bool isa_supported(Isa isa);
const char* isa_name(Isa isa);

// The table of `isa`. Throws Error for an instruction set that this machine cannot run.
template <class Table>
const Table& choose_isa(Isa isa, const Table& scalar, const Table& avx2, const Table& avx512) {
  PAL_CHECK(isa_supported(isa), "this machine cannot run the instruction set", isa_name(isa), "ask for best_isa()");
  return isa == Isa::avx512 ? avx512 : isa == Isa::avx2 ? avx2 : scalar;
}

// PAL_ISA_TABLE(PREFIX, FUNCTION, NAME, TABLE): in pal::kernels, defines `PREFIX const TABLE& FUNCTION(Isa)`, which
// chooses among the three objects NAME that an *_impl.cpp defines in pal::kernels::PAL_ISA. PREFIX is
// empty or template <>.
#define PAL_ISA_DECLARE(name, ...) \
  namespace scalar {               \
  extern const __VA_ARGS__ name;   \
  }                                \
  namespace avx2 {                 \
  extern const __VA_ARGS__ name;   \
  }                                \
  namespace avx512 {               \
  extern const __VA_ARGS__ name;   \
  }
#define PAL_ISA_TABLE(prefix, function, name, ...) \
  PAL_ISA_DECLARE(name, __VA_ARGS__)               \
  prefix const __VA_ARGS__& function(Isa isa) { return choose_isa(isa, scalar::name, avx2::name, avx512::name); }
// The same for a function template of float and double: tables NAME_float and NAME_double of type OPS<T>.
#define PAL_ISA_TABLES(function, name, ops)                      \
  PAL_ISA_TABLE(template <>, function, name##_float, ops<float>) \
  PAL_ISA_TABLE(template <>, function, name##_double, ops<double>)

}  // namespace pal::kernels
