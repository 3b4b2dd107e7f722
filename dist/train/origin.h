// origin: another run's folder, or one of its checkpoints, to go on from in a new run folder (pal train --resume DIR).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/record/checkpoint.h"

namespace pal::dist {

struct Origin {
  std::string run_dir;     // of the other run; "" for a checkpoint that lies by itself
  std::string checkpoint;  // "": the newest good one of that run
};

// `folder` is a run folder or a folder step-N. Throws Error (usage) when it is neither.
Origin find_origin(const std::string& folder);

// Verified. `warn` gets a sentence for each damaged one that is skipped. None left: throws Error (data).
record::LoadedCheckpoint load_origin(const Origin& origin, const std::function<void(const std::string&)>& warn);

// Copies the other run's ledger into `run_dir`, where there is none yet: a run goes on with the answers it had. Synced.
// Throws Error (usage) while that run is being written, or when `answers` of them were used and there is no ledger.
void adopt_ledger(const Origin& origin, const std::string& run_dir, int64_t answers);

}  // namespace pal::dist
