// oracle: who asks and who answers. A QuerySampler chooses questions, a Labeler answers them; any sampler works with any
// labeler. Neither knows ranks, files or time: the query round (dist) carries questions and answers, the ledger keeps them.
//
// Order: a choice is a function of (store, pool, seed, round) alone, ties by sample id: the same for any sharding of the
//   pool and for any W. Randomness is counter-based: (seed, Purpose::oracle, round, sample).
// To add a sampler or a labeler: one file, one line in its factory, one test.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/store.h"

namespace pal {

class Config;

// What is asked. The ledger stores the names, so that a kind keeps its meaning whatever the order here.
enum class QueryKind : int8_t { pair, captcha };
std::string to_string(QueryKind kind);
QueryKind query_kind(const std::string& name);   // throws Error (data) on a name it does not know

// "Which of these members are the same as the template?" Every member is one question: it counts once towards
// oracle.questions_per_round and oracle.budget.
struct Query {
  int64_t id = 0;                  // running number in the run, from 1; given by who records it
  QueryKind kind = QueryKind::captcha;
  int64_t template_sample = 0;
  std::vector<int64_t> members;    // samples, each asked against the template
};

// One relation out of a query: i the template, j the member. `unknown` is an honest answer: nobody could tell.
struct Answer {
  int64_t query = 0;               // Query::id
  int64_t i = 0, j = 0;
  Relation relation = Relation::unknown;
  int64_t effective_step = 0;      // the step at which every rank inserts it; decided by rank 0
  double cost = 1.0;
};

// Questions in a list of queries.
int64_t question_count(const std::vector<Query>& queries);

// The samples a round may choose from, and what the model thinks of them.
struct Pool {
  std::vector<int64_t> samples;    // distinct, any order
  at::Tensor embeddings;           // (samples, D), a row for each; undefined when the sampler did not ask for them
};
enum class PoolNeeds { samples, embeddings };

// One round of questions.
struct Round {
  uint64_t seed = 0;
  int64_t round = 0;
  int64_t questions = 0;           // at most this many (the round's share, cut by what is left of the budget)
  std::vector<Query> pending;      // asked before and not yet in the store: not to be asked again
};

class QuerySampler {
 public:
  virtual ~QuerySampler() = default;
  virtual std::string name() const = 0;
  // What the ranks have to compute of the pool before choose().
  virtual PoolNeeds needs() const = 0;
  // Queries without id; none when nothing is left to ask of this pool. Never a relation known, implied or pending.
  virtual std::vector<Query> choose(const GraphStore& store, const Pool& pool, const Round& round) const = 0;
};

class Labeler {
 public:
  virtual ~Labeler() = default;
  virtual std::string name() const = 0;
  // An answer for every member, in order, effective_step left at 0. The query has its id: repeats draw noise anew.
  virtual std::vector<Answer> answer(const Query& query) const = 0;
};

// By oracle.sampler: none gives nothing.
std::unique_ptr<QuerySampler> make_query_sampler(const Config& config);
// By oracle.labeler. labels (N), −1 unknown.
std::unique_ptr<Labeler> make_labeler(const Config& config, std::vector<int64_t> labels);

// The pool of a round: `size` distinct samples drawn by (seed, Purpose::pool, round), ascending. Samples of which
// nothing is known come first, except that a quarter is kept for known ones (they tell where the classes lie); what
// one side lacks the other gives. `from`: the samples to draw from; empty: all.
std::vector<int64_t> draw_pool(const GraphStore& store, int64_t size, uint64_t seed, int64_t round,
                               const std::vector<int64_t>& from = {});
// One sample of each class, drawn by the seed, with its label, −1 for all others: what captcha starts from
// (oracle.templates=given) when the graph knows no labels.
std::vector<int64_t> draw_template_labels(const std::vector<int64_t>& labels, uint64_t seed);

// An answer against what is known, and the chain of earlier answers and labels that says otherwise.
struct Contradiction {
  Answer answer;
  std::vector<Link> chain;
};
// What became of answers handed to the store, in order.
struct AnswersUsed {
  int64_t inserted = 0;            // told something new
  int64_t implied = 0;             // known already: kept, it stands when what implied it is taken back
  int64_t unsure = 0;              // relation unknown: nothing to insert
  std::vector<Contradiction> contradicted;  // left out of the store, kept in the ledger
};
AnswersUsed insert_answers(GraphStore& store, const std::vector<Answer>& answers);
// How many there are, and the chain behind the first; "" of none.
std::string to_sentence(const std::vector<Contradiction>& against);

}  // namespace pal
