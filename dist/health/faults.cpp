#include "dist/health/faults.h"

#include <ATen/core/grad_mode.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <sstream>
#include <thread>

#include "core/ops/named_tensors.h"
#include "kernels/base/clock.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

struct FaultName {
  const char* name;
  FaultKind kind;
};
constexpr std::array<FaultName, 9> kFaults = {{{"kill", FaultKind::kill},
                                               {"stop", FaultKind::stop},
                                               {"hang", FaultKind::hang},
                                               {"busy", FaultKind::busy},
                                               {"nan", FaultKind::nan},
                                               {"flip", FaultKind::flip},
                                               {"write-fail", FaultKind::write_fail},
                                               {"late-round", FaultKind::late_round},
                                               {"late-write", FaultKind::late_write}}};
constexpr auto kLate = std::chrono::seconds(12);  // longer than a rank may keep the others waiting within a step

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

int64_t number(const std::string& text, const std::string& whole) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  PAL_CHECK(error == std::errc() && end == text.data() + text.size() && value >= 0,
            "PAL_FAULT has a part that is no number", whole, "write kind:rank:step");
  return value;
}

Fault parse_fault(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  PAL_CHECK(parts.size() == 3 || (parts.size() == 4 && parts[3] == "always"), "PAL_FAULT cannot be read", text,
            "write kind:rank:step or kind:rank:step:always");
  Fault fault;
  bool known = false;
  for (const FaultName& f : kFaults) {
    if (parts[0] == f.name) {
      fault.kind = f.kind;
      known = true;
    }
  }
  PAL_CHECK(known, "PAL_FAULT names an unknown kind", parts[0],
            "use kill, stop, hang, busy, nan, flip, write-fail, late-round or late-write");
  fault.rank = static_cast<int>(number(parts[1], text));
  const std::vector<std::string> steps = split(parts[2], '-');
  PAL_CHECK(steps.size() == 1 || steps.size() == 2, "PAL_FAULT has no step", text, "write a step or first-last");
  fault.first = number(steps.front(), text);
  fault.last = number(steps.back(), text);
  fault.always = parts.size() == 4;
  return fault;
}

// In a copy on the host: the parameter may be on a GPU.
void flip_bit(const at::Tensor& parameter) {
  const at::NoGradGuard no_grad;
  const at::Tensor host = parameter.cpu();
  static_cast<unsigned char*>(host.data_ptr())[2] ^= 1;
  if (!parameter.is_cpu()) parameter.copy_(host);
}

}  // namespace

std::vector<Fault> parse_faults(const std::string& text) {
  std::vector<Fault> faults;
  for (const std::string& part : split(text, ',')) faults.push_back(parse_fault(part));
  return faults;
}

Faults::Faults(std::vector<Fault> faults, int rank, int restarts) {
  for (const Fault& f : faults) {
    if (f.rank == rank && (restarts == 0 || f.always)) faults_.push_back(f);
  }
}

bool Faults::strikes(FaultKind kind, int64_t step) {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (size_t k = 0; k < faults_.size(); ++k) {
    const Fault& f = faults_[k];
    if (f.kind == kind && step >= f.first && step <= f.last && (f.always || struck_.insert({k, step}).second))
      any = true;
  }
  return any;
}

void Faults::before_step(int64_t step, const ops::NamedTensors& parameters) {
  if (faults_.empty()) return;
  if (strikes(FaultKind::kill, step)) raise(SIGKILL);
  if (strikes(FaultKind::stop, step)) raise(SIGSTOP);
  if (strikes(FaultKind::hang, step)) {
    for (;;) pause();
  }
  if (strikes(FaultKind::busy, step)) {
    for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < kLate.count();) {
    }
  }
  if (strikes(FaultKind::flip, step)) flip_bit(parameters.front().second);
}

void Faults::poison(at::Tensor gradient, int64_t step) {
  if (strikes(FaultKind::nan, step)) gradient.fill_(std::numeric_limits<double>::quiet_NaN());
}

void Faults::before_write(int64_t step) {
  if (strikes(FaultKind::late_write, step)) std::this_thread::sleep_for(kLate);
  PAL_CHECK(!strikes(FaultKind::write_fail, step), "cannot write the checkpoint", "No space left on device (injected)",
            "free some space there");
}

void Faults::before_round(int64_t step) {
  if (strikes(FaultKind::late_round, step)) std::this_thread::sleep_for(kLate);
}

}  // namespace pal::dist
