// oracle: the factories of samplers and labelers, and what is common to all of them.
#include "core/oracle/oracle.h"

#include <utility>

#include "core/config/config.h"
#include "core/oracle/captcha.h"
#include "core/oracle/labeler.h"
#include "kernels/base/error.h"

namespace pal {

std::unique_ptr<QuerySampler> make_query_sampler(const Config& config) {
  const std::string& kind = config.text("oracle.sampler");
  if (kind == "none") return nullptr;
  if (kind == "captcha") {
    return make_captcha({config.integer("oracle.members"),
                         config.text("oracle.templates") == "discover" ? Templates::discover : Templates::given,
                         config.text("oracle.guide") == "none" ? Guide::none : Guide::embeddings});
  }
  PAL_CHECK(false, "oracle.sampler", kind, "choose none or captcha");
  return nullptr;
}

std::unique_ptr<Labeler> make_labeler(const Config& config, std::vector<int64_t> labels) {
  const std::string& kind = config.text("oracle.labeler");
  if (kind == "labels") {
    SimulatedOptions options;
    options.noise = config.real("oracle.noise");
    options.seed = static_cast<uint64_t>(config.integer("train.seed"));
    return make_simulated_labeler(std::move(labels), options);
  }
  PAL_CHECK(false, "oracle.labeler", kind, "choose labels");
  return nullptr;
}

std::string to_string(QueryKind kind) {
  switch (kind) {
    case QueryKind::pair: return "pair";
    case QueryKind::captcha: return "captcha";
  }
  PAL_ASSERT(false, "every kind of query has a name");
}

QueryKind query_kind(const std::string& name) {
  for (QueryKind kind : {QueryKind::pair, QueryKind::captcha}) {
    if (to_string(kind) == name) return kind;
  }
  PAL_DATA_CHECK(false, "kind of query", name, "it may come from a newer PAL: update this one");
  return QueryKind::pair;
}

int64_t question_count(const std::vector<Query>& queries) {
  int64_t count = 0;
  for (const Query& q : queries) count += static_cast<int64_t>(q.members.size());
  return count;
}

AnswersUsed insert_answers(GraphStore& store, const std::vector<Answer>& answers) {
  AnswersUsed used;
  for (const Answer& a : answers) {
    if (a.relation == Relation::unknown) {
      ++used.unsure;
      continue;
    }
    const Relation known = store.relation(a.i, a.j);
    if (known != Relation::unknown && known != a.relation) {
      used.contradicted.push_back({a, store.explain(a.i, a.j)});
      continue;
    }
    store.insert(a.i, a.j, a.relation);
    ++(known == Relation::unknown ? used.inserted : used.implied);
  }
  return used;
}

std::string to_sentence(const std::vector<Contradiction>& against) {
  if (against.empty()) return "";
  const Answer& first = against[0].answer;
  return std::to_string(against.size()) + " of the answers contradict earlier ones and are left out; the first says that " + std::to_string(first.i) +
         " and " + std::to_string(first.j) + (first.relation == Relation::same ? " are the same" : " differ") + ", but " + to_string(against[0].chain) +
         " (graph.deduction=off takes every answer by itself)";
}

}  // namespace pal
