// program: a kernel decoded: a flat list of instructions over numbered registers.
//
// A register is 32 lanes side by side: 32-bit slots for types up to 32 bits, 64-bit slots for others, addressed by
// its byte offset in the warp's register file. Immediates, special registers and addresses of variables are registers
// too, filled before a block starts, so that every operand is read in the same way. A predicate is one 32-bit mask.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simgpu/ptx.h"

namespace simgpu {

class Warp;
struct Instruction;

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

// Runs the instruction for the lanes of the mask, which is never empty.
using Handler = void (*)(Warp& warp, const Instruction& in, uint32_t mask);

// What the scheduler does with an instruction, beside calling its handler.
enum class Flow : uint8_t {
  plain,         // the handler, then the next instruction
  branch,        // to `target`, by the lanes whose guard holds
  warp_sync,     // the handler once all lanes that r[kMembers] names are here
  warp_barrier,  // the same, but lanes may wait at different instructions (bar.warp.sync)
  barrier,       // waits for the block: `barrier`
  exit,
};

enum class BarrierKind : uint8_t { sync, arrive, red_and, red_or, red_popc };

inline constexpr int kOperands = 6;
inline constexpr int kMembers = 5;  // the operand that holds the member mask of a *.sync
inline constexpr int kAddress = 4;  // the operand that holds an address; its offset is `value`

struct Instruction {
  Handler run = nullptr;
  int64_t value = 0;           // an immediate that is not an operand: an address offset, a table, a modifier
  uint32_t r[kOperands] = {};  // byte offsets of registers or numbers of predicates; [0] is the result
  uint32_t target = 0;         // of a branch
  int32_t line = 0;            // in the PTX text
  uint32_t location = 0;       // in Program::locations
  int16_t guard = -1;          // a predicate, or -1
  Flow flow = Flow::plain;
  bool guard_negated = false;
  bool narrow_address = false;  // the address register is 32 bits wide
  uint8_t modifier = 0;         // of the family
};

// A register that must hold something before the first instruction.
struct Preset {
  enum class Kind : uint8_t {
    constant,
    tid,
    ntid,
    ctaid,
    nctaid,
    lane,
    warp,
    warps,
    lanemask,
    dynamic_shared,
    dynamic_shared_bytes,
    total_shared_bytes,
  };
  Kind kind = Kind::constant;
  uint8_t axis = 0;     // of tid and the like; which lanemask
  bool wide = false;    // 64-bit slots
  uint32_t offset = 0;  // in the register file
  uint64_t value = 0;   // of a constant; the offset from the beginning of dynamic_shared
};

struct Program {
  std::vector<Instruction> code;
  std::vector<Preset> presets;
  std::vector<ptx::Location> locations;  // by Instruction::location
  std::map<int, std::string> files;
  std::shared_ptr<const std::string> text;  // of the module, to quote from
  uint32_t register_bytes = 0;
  uint32_t predicates = 0;
};

// "kernels/csr.cu:12 (inlined at kernels/csr.cu:90)", or empty.
std::string source_of(const Program& program, const Instruction& in);
// The line of PTX, without surrounding space.
std::string quote(const Program& program, int line);

}  // namespace simgpu
