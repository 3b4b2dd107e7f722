// fault: an error of a kernel, and its place.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace simgpu {

enum class FaultKind {
  bad_ptx,          // text that is not PTX, or an opcode or modifier the interpreter does not know
  bad_launch,       // a grid, block, shared memory or parameter size the device does not take
  illegal_address,  // outside every allocation, or freed
  misaligned_address,
  uninitialized,  // shared memory read before it was written
  race,           // shared memory touched by two threads with nothing between them
  barrier,        // a barrier that part of the block never reaches
  inactive_lane,  // a shuffle from a lane that does not take part, or a *.sync without its own lane
  trap,           // __trap()
  assertion,      // assert() in a kernel
  limit,          // more warp-instructions than Settings::limit
};
const char* to_string(FaultKind kind);

// Where in the launch, as far as it is known; -1 and empty where not.
struct FaultPlace {
  std::string kernel;  // the mangled name
  int64_t block[3] = {-1, -1, -1};
  int64_t thread[3] = {-1, -1, -1};
  int ptx_line = 0;         // 1-based, in the text given to Module::parse
  std::string instruction;  // the PTX text
  std::string source;       // file:line of the last .loc, if compiled with -lineinfo
};

// what() is one paragraph that names kind, sentence and place.
class Fault : public std::runtime_error {
 public:
  Fault(FaultKind kind, const std::string& sentence, FaultPlace place = {});
  FaultKind kind() const { return kind_; }
  const std::string& sentence() const { return sentence_; }
  const FaultPlace& place() const { return place_; }

 private:
  FaultKind kind_;
  std::string sentence_;
  FaultPlace place_;
};

}  // namespace simgpu
