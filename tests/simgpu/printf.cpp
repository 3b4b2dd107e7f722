// printf: formats on the host with one conversion at a time.
#include "tests/simgpu/printf.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/simgpu/access.h"
#include "tests/simgpu/block.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

template <class T>
T read(Warp& warp, const Instruction& in, int lane, uint64_t address) {
  T value;
  std::memcpy(&value, resolve_one(warp, in, lane, address, sizeof(T)), sizeof(T));
  return value;
}

std::string read_string(Warp& warp, const Instruction& in, int lane, uint64_t address) {
  std::string text;
  while (const char c = read<char>(warp, in, lane, address++)) text += c;
  return text;
}

template <class T>
T local_value(Warp& warp, int lane, uint32_t offset) {
  T value;
  std::memcpy(&value, warp.block().local(warp.thread(lane)) + offset, sizeof(T));
  return value;
}

template <class T>
std::string format_one(const std::string& conversion, T value) {
  char buffer[512];
  std::snprintf(buffer, sizeof(buffer), conversion.c_str(), value);
  return buffer;
}

// Arguments lie one after another, each aligned to its size: 4 bytes, or 8 for double, 64-bit integers and pointers.
class Arguments {
 public:
  Arguments(Warp& warp, const Instruction& in, int lane, uint64_t address)
      : warp_(warp), in_(in), lane_(lane), at_(address) {}
  template <class T>
  T take() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const T value = read<T>(warp_, in_, lane_, at_);
    at_ += sizeof(T);
    return value;
  }
  std::string take_string() { return read_string(warp_, in_, lane_, take<uint64_t>()); }

 private:
  Warp& warp_;
  const Instruction& in_;
  int lane_;
  uint64_t at_;
};

std::string format(const std::string& pattern, Arguments arguments) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      text += pattern[i];
      continue;
    }
    std::string conversion = "%";
    bool wide = false;
    for (++i; i < pattern.size() && std::strchr("-+ #0123456789.lhzjt", pattern[i]) != nullptr; ++i) {
      if (std::strchr("ljzt", pattern[i]) != nullptr) {
        wide = true;
      } else if (pattern[i] != 'h') {
        conversion += pattern[i];
      }
    }
    const char kind = i < pattern.size() ? pattern[i] : '%';
    switch (kind) {
      case '%':
        text += '%';
        break;
      case 's':
        text += format_one(conversion + "s", arguments.take_string().c_str());
        break;
      case 'p':
        text += format_one(conversion + "p", reinterpret_cast<void*>(arguments.take<uint64_t>()));
        break;
      case 'c':
        text += format_one(conversion + "c", arguments.take<int32_t>());
        break;
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        text += wide ? format_one(conversion + "ll" + kind, arguments.take<int64_t>())
                     : format_one(conversion + kind, arguments.take<int32_t>());
        break;
      default:
        text += format_one(conversion + kind, arguments.take<double>());
        break;
    }
  }
  return text;
}

}  // namespace

void run_printf(Warp& warp, const Instruction& in, uint32_t mask) {
  for_active(mask, [&](int lane) {
    const std::string pattern = read_string(warp, in, lane, local_value<uint64_t>(warp, lane, in.r[1]));
    const std::string text = format(pattern, Arguments(warp, in, lane, local_value<uint64_t>(warp, lane, in.r[2])));
    std::fputs(text.c_str(), stdout);
    const auto printed = static_cast<int32_t>(text.size());
    std::memcpy(warp.block().local(warp.thread(lane)) + in.r[0], &printed, sizeof(printed));
  });
  std::fflush(stdout);
}

void run_assertfail(Warp& warp, const Instruction& in, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const auto text = [&](int operand) {
    return read_string(warp, in, lane, local_value<uint64_t>(warp, lane, in.r[operand]));
  };
  warp.fail(FaultKind::assertion,
            text(2) + ":" + std::to_string(local_value<uint32_t>(warp, lane, in.r[3])) + ": " + text(4) +
                ": assertion `" + text(1) + "` failed",
            in, lane);
}

}  // namespace simgpu
