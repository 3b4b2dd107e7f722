// snapshots: what one trial of the active experiment has learned after some questions, as pictures (the paper's figures
// 4 and 8): level lines of the third coordinate, the optimal probe's classes, and the graph.
#pragma once

#include <string>

#include "core/theory/experiment.h"

namespace pal::theory {

struct SnapshotPictures {
  std::string representation;  // SVG; "" for data that is not in the plane
  std::string graph;           // SVG
};
SnapshotPictures draw_snapshots(const ExperimentOptions& options);

}  // namespace pal::theory
