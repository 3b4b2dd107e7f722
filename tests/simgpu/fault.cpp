// fault: the text of a fault, one paragraph.
#include "tests/simgpu/fault.h"

#include <sstream>

namespace simgpu {
namespace {

std::string triple(const int64_t (&v)[3]) {
  std::ostringstream text;
  text << '(' << v[0] << ',' << v[1] << ',' << v[2] << ')';
  return text.str();
}

std::string paragraph(FaultKind kind, const std::string& sentence, const FaultPlace& place) {
  std::string text = std::string("simgpu: ") + to_string(kind) + ": " + sentence;
  if (!place.kernel.empty()) text += "\n  kernel " + place.kernel;
  if (place.block[0] >= 0) text += "\n  block " + triple(place.block);
  if (place.thread[0] >= 0) text += " thread " + triple(place.thread);
  if (!place.source.empty()) text += "\n  at " + place.source;
  if (place.ptx_line > 0) text += "\n  PTX line " + std::to_string(place.ptx_line) + ": " + place.instruction;
  return text;
}

}  // namespace

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::bad_ptx:
      return "PTX not understood";
    case FaultKind::bad_launch:
      return "launch refused";
    case FaultKind::illegal_address:
      return "illegal address";
    case FaultKind::misaligned_address:
      return "misaligned address";
    case FaultKind::uninitialized:
      return "uninitialized shared memory";
    case FaultKind::race:
      return "race";
    case FaultKind::barrier:
      return "barrier";
    case FaultKind::inactive_lane:
      return "inactive lane";
    case FaultKind::trap:
      return "trap";
    case FaultKind::assertion:
      return "assertion";
    case FaultKind::limit:
      return "instruction limit";
  }
  return "fault";
}

Fault::Fault(FaultKind kind, const std::string& sentence, FaultPlace place)
    : std::runtime_error(paragraph(kind, sentence, place)),
      kind_(kind),
      sentence_(sentence),
      place_(std::move(place)) {}

}  // namespace simgpu
