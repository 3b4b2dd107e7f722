// resume: where a run goes on: its newest good checkpoint, or another run's; the same state on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/comm.h"
#include "core/setup/run_spec.h"
#include "dist/train/checkpointer.h"
#include "dist/train/origin.h"

namespace pal::dist {

// The run that is to go on.
struct ResumeContext {
  const setup::RunSpec& spec;
  std::string run_dir;
  std::optional<Origin> origin;  // for a run folder without a checkpoint
  int64_t last_step = 0;
  std::string fingerprint;  // of ranks, threads and instructions
};

enum class ResumedFrom { nothing, own, other };  // the run's own checkpoint, or another run's

struct Resumed {
  ResumedFrom from = ResumedFrom::nothing;
  int64_t step = 0;                   // steps done
  std::vector<std::string> warnings;  // rank 0
};

// Collective. Rank 0 decides which checkpoint is good and reads it into `state`, the live tensors; the other ranks get them
// from there.
Resumed resume(const ResumeContext& of, const Checkpointer::Groups& state, comm::Comm& comm);

}  // namespace pal::dist
