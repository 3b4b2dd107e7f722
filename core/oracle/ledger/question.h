// question: questions, answers and decisions. Without torch, files or time.
//
// A question is one member of a query. An annotator answers yes, no, unsure, skip or broken (an Answer). A Decision is
// made of one or more answers, and enters the graph of every rank before the same step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/store.h"

namespace pal::oracle {

// What is asked. The ledger stores the names, so the order here may change.
//   pair       is the member the same as the template? (one member)
//   captcha    which of these are the same as the template?
//   outliers   all of these are believed to be the same as the template: which are not?
//   coarse     does the member lie under the class node `node` of the taxonomy? The template is an example of the node.
enum class QueryKind : int8_t { pair, captcha, outliers, coarse };
std::string to_string(QueryKind kind);
QueryKind query_kind(const std::string& name);  // throws Error (data) on a name it does not know

// An answer, always to "is the member the same as the template" (coarse: "does it lie under the node"), whatever the
// wording of the kind: a member marked as an outlier is `no`.
//   unsure   it cannot be decided from the images: the question is not asked again
//   skip     this annotator does not answer, another one may: counts as no answer
//   broken   the image cannot be judged (damaged, empty): never asked again
enum class Verdict : int8_t { yes, no, unsure, skip, broken };
std::string to_string(Verdict verdict);
Verdict verdict(const std::string& name);  // throws Error (data) on a name it does not know

// The relation of template and member by a verdict. coarse: `no` makes them different (the template lies under the
// node); `yes` leaves it unknown and is used by the sampler only (Round::coarse).
graph::Relation relation_of(QueryKind kind, Verdict verdict);

constexpr int64_t kNoNode = -1;

// "Which of these members are the same as the template?" Every member is one question: it counts once toward
// oracle.questions_per_round and oracle.budget.
struct Query {
  int64_t id = 0;  // running number in the run, from 1; given when it is recorded
  QueryKind kind = QueryKind::captcha;
  int64_t template_sample = 0;
  std::vector<int64_t> members = {};  // samples, each asked against the template
  int64_t node = kNoNode;             // coarse: class node, as in the data set's /parents
  std::string sampler = {};           // that chose it; "": the round's sampler
  std::vector<graph::Relation> expected =
      {};  // of each member, predicted by the model before it was asked; empty: no prediction
};

// The answer of one annotator to one question: i the template, j the member.
struct Answer {
  int64_t query = 0;  // Query::id
  int64_t i = 0, j = 0;
  Verdict verdict = Verdict::unsure;
  std::string annotator = {};
  double seconds = 0;  // that it took
  double cost = 1;
  std::string uuid = {};   // an answer that is sent twice counts once; "": made of the answer itself
  double answered_at = 0;  // seconds since 1970; 0: now
};

// A submitted answer, or the undo of one.
struct Entry {
  Answer answer;
  std::string undo = {};  // uuid of the answer that is withdrawn; "": this is an answer
  std::string by = {};    // the owner of the run, who may withdraw any answer; "": `answer.annotator`, of their own
};

// The verdict about one question by the answers so far; a later decision about the same question replaces it.
struct Decision {
  int64_t query = 0;
  int64_t i = 0, j = 0;
  QueryKind kind = QueryKind::captcha;
  int64_t node = kNoNode;
  Verdict verdict = Verdict::unsure;  // skip: open again (all answers were withdrawn)
  int64_t effective_step = 0;         // every rank inserts it before this step; chosen by rank 0
  double cost = 0;                    // of the answers since the last decision about the question
  double confidence = 1;              // probability of the verdict given the answers

  graph::Relation relation() const { return relation_of(kind, verdict); }
};

// Questions in a list of queries.
int64_t question_count(const std::vector<Query>& queries);

}  // namespace pal::oracle
