// module: PTX text, parsed and decoded: kernels by name, and the module's variables in memory.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simgpu/memory.h"

namespace simgpu {

struct Program;  // decoded instructions: program.h

struct Parameter {
  size_t offset = 0, bytes = 0;
};

struct Kernel {
  std::string name;  // mangled
  std::vector<Parameter> parameters;
  size_t parameter_bytes = 0;
  size_t static_shared_bytes = 0;
  size_t local_bytes = 0;  // per thread
  int registers = 0;       // 32-bit, declared in the PTX: far above what ptxas would use
  int max_threads = 1024;  // .maxntid
  std::shared_ptr<const Program> program;
};

struct Variable {
  void* address = nullptr;
  size_t bytes = 0;
};

class Module {
 public:
  // Throws Fault(bad_ptx). An unknown opcode or modifier is refused here, before anything runs, with its line.
  Module(std::string_view ptx, Memory& memory);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const Kernel* find(const std::string& name) const;  // nullptr if there is none
  const Variable* variable(const std::string& name) const;
  const std::map<std::string, Kernel>& kernels() const { return kernels_; }
  int target() const { return target_; }            // 75 for sm_75
  int ptx_version() const { return ptx_version_; }  // 90 for 9.0

 private:
  Memory& memory_;
  std::map<std::string, Kernel> kernels_;
  std::map<std::string, Variable> variables_;
  int target_ = 0, ptx_version_ = 0;
};

}  // namespace simgpu
