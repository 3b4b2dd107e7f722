# simgpu_core: the interpreter (parser, decoder, warps, memory), without the CUDA runtime around it.
add_library(simgpu_core STATIC)
pal_sources(simgpu_core
  tests/simgpu/settings.cpp tests/simgpu/fault.cpp tests/simgpu/arena.cpp tests/simgpu/memory.cpp
  tests/simgpu/types.cpp tests/simgpu/lexer.cpp tests/simgpu/parser.cpp tests/simgpu/parser_values.cpp
  tests/simgpu/opcode.cpp tests/simgpu/operands.cpp tests/simgpu/decoder.cpp tests/simgpu/program.cpp
  tests/simgpu/module.cpp
  tests/simgpu/ops_move.cpp tests/simgpu/ops_integer.cpp tests/simgpu/ops_carry.cpp tests/simgpu/ops_products.cpp
  tests/simgpu/ops_bits.cpp
  tests/simgpu/ops_fields.cpp
  tests/simgpu/ops_compare.cpp tests/simgpu/ops_float.cpp tests/simgpu/ops_rounded.cpp tests/simgpu/ops_functions.cpp
  tests/simgpu/ops_half.cpp tests/simgpu/ops_convert.cpp tests/simgpu/ops_memory.cpp tests/simgpu/ops_atomic.cpp
  tests/simgpu/ops_warp.cpp tests/simgpu/ops_control.cpp tests/simgpu/printf.cpp
  tests/simgpu/access.cpp tests/simgpu/shared.cpp tests/simgpu/race.cpp
  tests/simgpu/warp.cpp tests/simgpu/block.cpp tests/simgpu/launch.cpp)
target_include_directories(simgpu_core PUBLIC ${PROJECT_SOURCE_DIR})
# The loops over 32 lanes are to be vectorized. No contraction: an add stays an add, as in the PTX.
target_compile_options(simgpu_core PRIVATE -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math)
# For the machine that builds, which is the one that tests; by names, so that a compiler cache tells machines apart.
include(CheckCXXSourceRuns)
foreach(isa avx512vl avx2)
  check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"${isa}\") ? 0 : 1; }" SIMGPU_${isa})
endforeach()
if(SIMGPU_avx512vl)
  target_compile_options(simgpu_core PRIVATE -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
elseif(SIMGPU_avx2)
  target_compile_options(simgpu_core PRIVATE -mfma -mavx2)
endif()

# Each family of opcodes against the host's arithmetic, and what the interpreter must refuse.
add_executable(simgpu_core_test)
pal_sources(simgpu_core_test
  tests/simgpu/op_test.cpp tests/simgpu/integer_test.cpp tests/simgpu/bits_test.cpp tests/simgpu/float_test.cpp
  tests/simgpu/convert_test.cpp
  tests/simgpu/memory_test.cpp tests/simgpu/warp_test.cpp tests/simgpu/race_test.cpp tests/simgpu/module_test.cpp)
target_compile_options(simgpu_core_test PRIVATE -O1)   # many small instances: compiling them is what costs
target_link_libraries(simgpu_core_test PRIVATE simgpu_core GTest::gtest_main)
add_test(NAME simgpu.core COMMAND simgpu_core_test)
set_tests_properties(simgpu.core PROPERTIES LABELS unit TIMEOUT 60)
