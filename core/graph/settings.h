// settings: the settings graph.* of a run; setup makes the store and the GraphSpec from them.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/choices.h"
#include "core/graph/store.h"

namespace pal::graph {

inline constexpr config::NamedChoice<GraphKind> kGraphKinds[] = {
    {"ssl", GraphKind::ssl},         {"supervised", GraphKind::supervised}, {"mixed", GraphKind::mixed},
    {"signed", GraphKind::signs},    {"table", GraphKind::table},           {"regression", GraphKind::regression},
    {"ranking", GraphKind::ranking}, {"pairs", GraphKind::pairs},
};

// The defaults are those of core/config/keys.cpp.
struct GraphSettings {
  GraphKind kind = GraphKind::ssl;
  double alpha = 0;             // mixed: weight of the labels
  double labeled_fraction = 0;  // share of the training labels that the graph knows
  double label_noise = 0;       // share of the known labels that is redrawn
  std::string groups;           // FILE:COLUMN, whose values take the place of the labels; "": none
  std::string table;            // table: "zero-one" or a CSV file
  std::string targets;          // regression, ranking: a CSV file; "": none
  std::string pairs;            // weighted pairs: a CSV or HDF5 file; "": none
  double pair_noise = 0;        // share of these pairs whose weight changes its sign
  double missing = 0;           // probability that the relation of two samples is missing
  Deduction deduction = Deduction::on;
  double edge_share = 0;  // of a batch, drawn in pairs known to be the same
  uint64_t seed = 0;
};

}  // namespace pal::graph
