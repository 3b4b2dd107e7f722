// op_test: the PTX around one instruction.
#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

constexpr uint32_t kThreads = 128;

std::string declare(const std::string& name, size_t bytes) {
  return ".reg .b" + std::to_string(bytes < 2 ? 16 : 8 * bytes) + " " + name + ";\n";
}

std::string element_address(size_t parameter, size_t width) {
  return "ld.param.u64 base, [p" + std::to_string(parameter) + "];\nmad.wide.u32 at, i, " + std::to_string(width) +
         ", base;\n";
}

// Thread i works on case i; p0 is the result, p1 the number of cases, the others the operands.
std::string op_text(const std::string& instruction, size_t width, const std::vector<Column>& operands) {
  std::string body = ".reg .b64 base, at;\n.reg .b32 i, n, t;\n.reg .pred p, q, outside;\n" + declare("d", width);
  body += "mov.u32 i, %ctaid.x;\nmov.u32 n, %tid.x;\nmad.lo.u32 i, i, " + std::to_string(kThreads) + ", n;\n";
  body += "ld.param.u32 n, [p1];\nsetp.ge.u32 outside, i, n;\n@outside bra END;\n";
  for (size_t k = 0; k < operands.size(); ++k) {
    const std::string name(1, "abce"[k]);
    const std::string type =
        (operands[k].width == 1 && operands[k].is_signed ? "s" : "u") + std::to_string(8 * operands[k].width);
    body += declare(name, operands[k].width) + element_address(k + 2, operands[k].width);
    body += "ld.global." + type + " " + name + ", [at];\n";
  }
  body += instruction + "\n" + element_address(0, width);
  body += "st.global.u" + std::to_string(8 * width) + " [at], d;\nEND:";
  return kernel_text(2 + static_cast<int>(operands.size()), body);
}

}  // namespace

std::string kernel_text(int parameters, const std::string& body) {
  std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(";
  for (int i = 0; i < parameters; ++i) text += (i > 0 ? ", " : "") + std::string(".param .u64 p") + std::to_string(i);
  return text + ")\n{\n" + body + "\nret;\n}\n";
}

LaunchStats run_kernel(Memory& memory, const std::string& text, const LaunchShape& shape,
                       const std::vector<uint64_t>& parameters, const Settings& settings) {
  const Module module(text, memory);
  return launch(memory, *module.find("k"), shape, parameters.data(), settings);
}

std::vector<std::byte> run_columns(const std::string& instruction, size_t width, size_t cases,
                                   const std::vector<Column>& operands) {
  Memory memory;
  auto* results = static_cast<std::byte*>(memory.allocate(cases * width));
  std::vector<uint64_t> parameters = {reinterpret_cast<uint64_t>(results), cases};
  for (const Column& operand : operands) {
    void* values = memory.allocate(operand.bytes.size());
    std::memcpy(values, operand.bytes.data(), operand.bytes.size());
    parameters.push_back(reinterpret_cast<uint64_t>(values));
  }
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.grid.x = static_cast<uint32_t>((cases + kThreads - 1) / kThreads);
  run_kernel(memory, op_text(instruction, width, operands), shape, parameters);
  return {results, results + cases * width};
}

}  // namespace simgpu
