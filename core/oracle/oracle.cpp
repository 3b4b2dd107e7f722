// oracle: inserts decisions into the graph.
#include "core/oracle/oracle.h"

#include <utility>

#include "kernels/base/error.h"

namespace pal::oracle {

AnswersUsed insert_answers(graph::GraphStore& store, const std::vector<Decision>& decisions) {
  AnswersUsed used;
  for (const Decision& a : decisions) {
    if (a.relation() == graph::Relation::unknown) {
      ++used.unsure;
      continue;
    }
    const graph::Relation known = store.relation(a.i, a.j);
    if (known != graph::Relation::unknown && known != a.relation()) {
      used.contradicted.push_back({a, store.explain(a.i, a.j)});
      continue;
    }
    store.insert(a.i, a.j, a.relation());
    ++(known == graph::Relation::unknown ? used.inserted : used.implied);
  }
  return used;
}

std::string to_sentence(const std::vector<Contradiction>& against) {
  if (against.empty()) return "";
  const Decision& first = against[0].answer;
  return std::to_string(against.size()) + " answers contradict earlier ones and are left out; by the first, " +
         std::to_string(first.i) + " and " + std::to_string(first.j) +
         (first.relation() == graph::Relation::same ? " are the same" : " differ") + ", but " +
         to_string(against[0].chain) + " (with graph.deduction=off every answer counts by itself)";
}

}  // namespace pal::oracle
