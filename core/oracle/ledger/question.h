// question: what is asked, what somebody says to it, and what the run makes of that. Without torch, files or time.
//
// A question is one member of a query. Users say yes, no, unsure, skip or broken to it (an Answer); one or more answers
// make a Decision, which is what the graph takes in, at one step, on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/store.h"

namespace pal::oracle {

// What is asked. The ledger stores the names, so that a kind keeps its meaning whatever the order here.
//   pair       is the member the same as the template? (one member)
//   captcha    which of these are the same as the template?
//   outliers   all of these are believed to be the same as the template: which are not?
//   coarse     does the member lie under the class node `node` of the taxonomy? The template is an example of the node.
enum class QueryKind : int8_t { pair, captcha, outliers, coarse };
std::string to_string(QueryKind kind);
QueryKind query_kind(const std::string& name);  // throws Error (data) on a name it does not know

// What somebody says. Always about "is the member the same as the template" (coarse: "does it lie under the node"),
// whatever the wording of the kind: a member marked as an outlier is `no`.
//   unsure   nobody could tell; an honest answer: the question is not asked again
//   skip     this annotator does not want to tell; somebody else may: counts as no answer
//   broken   the image cannot be judged (damaged, empty): never asked again
enum class Verdict : int8_t { yes, no, unsure, skip, broken };
std::string to_string(Verdict verdict);
Verdict verdict(const std::string& name);  // throws Error (data) on a name it does not know

// What a verdict says about template and member. coarse: `no` makes them different (the template lies under the node),
// `yes` leaves them open: it is for the sampler (Round::coarse).
graph::Relation relation_of(QueryKind kind, Verdict verdict);

constexpr int64_t kNoNode = -1;

// "Which of these members are the same as the template?" Every member is one question: it counts once toward
// oracle.questions_per_round and oracle.budget.
struct Query {
  int64_t id = 0;  // running number in the run, from 1; given by who records it
  QueryKind kind = QueryKind::captcha;
  int64_t template_sample = 0;
  std::vector<int64_t> members = {};  // samples, each asked against the template
  int64_t node = kNoNode;             // coarse: class node, as in the data set's /parents
  std::string sampler = {};           // who chose it; "": the round's sampler
  std::vector<graph::Relation> expected =
      {};  // what the model thought of each member when it was asked; empty: it was not asked
};

// What one annotator said to one question: i the template, j the member.
struct Answer {
  int64_t query = 0;  // Query::id
  int64_t i = 0, j = 0;
  Verdict verdict = Verdict::unsure;
  std::string annotator = {};
  double seconds = 0;  // that it took
  double cost = 1;
  std::string uuid = {};   // the same answer handed in twice counts once; "": one is made of the answer itself
  double answered_at = 0;  // seconds since 1970; 0: now
};

// What somebody hands in: an answer, or the taking back of one.
struct Entry {
  Answer answer;
  std::string undo = {};  // uuid of the answer that `answer.annotator` takes back; "": this is an answer
};

// What stands about one question after the answers so far; a later one about the same question replaces it.
struct Decision {
  int64_t query = 0;
  int64_t i = 0, j = 0;
  QueryKind kind = QueryKind::captcha;
  int64_t node = kNoNode;
  Verdict verdict = Verdict::unsure;  // skip: open again (all answers were taken back)
  int64_t effective_step = 0;         // the step at which every rank takes it in; decided by rank 0
  double cost = 0;                    // of the answers since the last decision about the question
  double confidence = 1;              // probability of the verdict given the answers

  graph::Relation relation() const { return relation_of(kind, verdict); }
};

// Questions in a list of queries.
int64_t question_count(const std::vector<Query>& queries);

}  // namespace pal::oracle
