// findings: what `pal doctor` finds out about a machine without using its GPUs, and the verdict.
#pragma once

#include <string>
#include <vector>

#include "dist/comm/device.h"
#include "launch/entry.h"

namespace pal::launch {

enum class Verdict { ok, warn, missing };

struct Finding {
  const char* what;
  Verdict verdict;
  std::string found;
  std::string todo = "";
};

// Also starts a job of two ranks, unless this process is a rank itself.
std::vector<Finding> check_machine(const Context& context, const dist::CudaState& cuda);
bool is_healthy(const std::vector<Finding>& findings);
std::vector<std::vector<std::string>> finding_rows(const std::vector<Finding>& findings);

}  // namespace pal::launch
