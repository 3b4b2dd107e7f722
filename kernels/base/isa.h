// isa: which compiled copy of the vector loops runs on this machine.
//
// The sources *_impl.cpp are compiled once per instruction set (PAL_ISA = scalar, avx2, avx512), each copy in a namespace
// of that name. best_isa() is what the CPU and the operating system allow; a test asks for another through Cpu::isa.
#pragma once

#include "kernels/base/error.h"

namespace pal::kernels {

enum class Isa { scalar, avx2, avx512 };

// The widest one this machine runs; found once by cpuid, the same ever after.
Isa best_isa();
bool isa_supported(Isa isa);
const char* isa_name(Isa isa);

// The copy of a table that belongs to `isa`; refuses one that this machine would trap on.
template <class Table>
const Table& choose_isa(Isa isa, const Table& scalar, const Table& avx2, const Table& avx512) {
  PAL_CHECK(isa_supported(isa), "this machine cannot run the instruction set", isa_name(isa), "ask for best_isa()");
  return isa == Isa::avx512 ? avx512 : isa == Isa::avx2 ? avx2 : scalar;
}

}  // namespace pal::kernels
