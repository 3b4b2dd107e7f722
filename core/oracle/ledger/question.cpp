#include "core/oracle/ledger/question.h"

#include "kernels/base/error.h"

namespace pal::oracle {

std::string to_string(QueryKind kind) {
  switch (kind) {
    case QueryKind::pair:
      return "pair";
    case QueryKind::captcha:
      return "captcha";
    case QueryKind::outliers:
      return "outliers";
    case QueryKind::coarse:
      return "coarse";
  }
  PAL_ASSERT(false, "every kind of query has a name");
}

QueryKind query_kind(const std::string& name) {
  for (QueryKind kind : {QueryKind::pair, QueryKind::captcha, QueryKind::outliers, QueryKind::coarse}) {
    if (to_string(kind) == name) return kind;
  }
  PAL_DATA_CHECK(false, "kind of query", name, "it may come from a newer PAL: update this one");
  return QueryKind::pair;
}

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::yes:
      return "yes";
    case Verdict::no:
      return "no";
    case Verdict::unsure:
      return "unsure";
    case Verdict::skip:
      return "skip";
    case Verdict::broken:
      return "broken";
  }
  PAL_ASSERT(false, "every verdict has a name");
}

Verdict verdict(const std::string& name) {
  for (Verdict v : {Verdict::yes, Verdict::no, Verdict::unsure, Verdict::skip, Verdict::broken}) {
    if (to_string(v) == name) return v;
  }
  PAL_DATA_CHECK(false, "answer", name, "give yes, no, unsure, skip or broken");
  return Verdict::unsure;
}

graph::Relation relation_of(QueryKind kind, Verdict verdict) {
  if (verdict == Verdict::no) return graph::Relation::different;
  return verdict == Verdict::yes && kind != QueryKind::coarse ? graph::Relation::same : graph::Relation::unknown;
}

int64_t question_count(const std::vector<Query>& queries) {
  int64_t count = 0;
  for (const Query& q : queries) count += static_cast<int64_t>(q.members.size());
  return count;
}

}  // namespace pal::oracle
