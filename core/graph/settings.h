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

// What the graph does with answers, as a sentence; "": answers yes and no both have a weight.
inline std::string answers_without_weight(GraphKind kind) {
  const std::string name = std::string("graph.kind=") + config::choice_name(kGraphKinds, kind);
  if (kind == GraphKind::signs) return "";
  if (kind == GraphKind::mixed || kind == GraphKind::supervised)
    return name +
           " gives weight to answers yes only: an answer no is never asked again and rules out pairs, but adds no "
           "edge (graph.kind=signed uses both)";
  return name + " gives no weight to answers (graph.kind=mixed, supervised and signed do)";
}

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
